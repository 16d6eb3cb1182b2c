"""Examples of the pages that no command line parses are run as they stand."""

import re

import psycopg
import pytest
from pages import page
from psycopg import sql
from tables import publish_patients


@pytest.fixture
def patients(copied):
    return copied(publish_patients)


@pytest.fixture
def job():
    """Return what pg_cron is to run, of the example that schedules it."""
    examples = page("docs/reference/scheduling.md").blocks("postgresql")
    (example,) = (text for text in examples if "dbanon.verify" in text)
    return re.search(r"\$job\$(.+)\$job\$", example, re.DOTALL)[1]


@pytest.mark.exhaustive
def test_the_scheduled_proof_fails_once_a_release_does_not_hold_and_not_before(patients, job):
    patients.execute(job)
    ((comment,),) = patients.execute("SELECT obj_description('anon.patients'::regclass)")
    more = comment.replace('"k": 5', '"k": 150')
    assert more != comment
    patients.execute(sql.SQL("COMMENT ON VIEW anon.patients IS {}").format(more))
    with pytest.raises(psycopg.errors.RaiseException, match="does not hold what it promises"):
        patients.execute(job)


@pytest.mark.parametrize("name", ["README.md", "docs/reference/models.md"])
def test_the_proof_for_auditors_has_a_row_for_each_model(patients, name):
    (example,) = (text for text in page(name).blocks("sql") if "dbanon.verify" in text)
    assert [(row[0], row[-1]) for row in patients.execute(example)] == [
        ("k-anonymity", "passed"),
        ("l-diversity", "passed"),
    ]


def test_the_example_of_a_data_frame_prints_a_table(capsys):
    example = page("docs/guides/data-frames.md").blocks("python")[2]
    exec(compile(example, "the example", "exec"), {})  # noqa: S102 - of our own page
    assert re.match(r" +age sex disease\n0  +\[\d+,\d+\] ", capsys.readouterr().out)
