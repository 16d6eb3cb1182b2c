"""A dump that is restored elsewhere is named as that, and a refresh mends it."""

import subprocess

import pytest
from tables import publish_patients, rows_proved, serve_patients

import dbanon
from dbanon.server.server import bundled_binaries


def restore(source, target):
    """Dump a database and restore it in the place of another; skips without a fitting pg_dump."""
    tools = bundled_binaries()
    dumped = subprocess.run(
        [tools / "pg_dump", "--dbname", source.dsn], capture_output=True, text=True, check=False
    )
    if "server version mismatch" in dumped.stderr:
        pytest.skip("pg_dump is older than the server")
    assert dumped.returncode == 0, dumped.stderr
    target.execute("DROP SCHEMA IF EXISTS dbanon, dbanon_data, anon CASCADE")
    command = [tools / "psql", "--quiet", "--dbname", target.dsn]
    subprocess.run(command, input=dumped.stdout, capture_output=True, text=True, check=True)


def failures(database):
    return [found for found in dbanon.doctor(settings=database.settings) if found.exit_code]


def test_a_restored_live_view_is_named_in_one_line_and_a_refresh_mends_it(copied, database):
    restore(copied(serve_patients), database)
    assert [(0,)] == database.execute("SELECT count(*) FROM anon.patients")
    (found,) = failures(database)
    assert "this is a restored copy of its database" in found.message
    assert "dbanon refresh public.patients" == found.hint
    (refreshed,) = dbanon.refresh("patients", settings=database.settings)
    assert rows_proved(refreshed.release) == 200
    assert [] == failures(database)


@pytest.mark.exhaustive
def test_a_restored_copy_is_served_and_refreshed_as_before(copied, database):
    restore(copied(publish_patients), database)
    assert [(200,)] == database.execute("SELECT count(*) FROM anon.patients")
    assert [] == failures(database)
    assert not dbanon.refresh("patients", settings=database.settings)[0].changed
