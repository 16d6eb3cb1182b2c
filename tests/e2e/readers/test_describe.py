"""Whoever may read a release learns what it is, and nothing else."""

import json
import sys
from datetime import UTC, datetime, timedelta

import pytest
from tables import define_patients

import dbanon
from dbanon.cli import main
from dbanon.domain.messages import RECODED
from dbanon.formats import policies
from dbanon.settings import Settings

COMMENTS = """
SELECT a.attname::text, col_description(a.attrelid, a.attnum)
  FROM pg_attribute AS a
 WHERE a.attrelid = 'anon.patients'::regclass AND a.attnum > 0
 ORDER BY a.attnum"""


def publish_for_an_analyst(database):
    define_patients(database)
    analyst = database.role("describing_analyst")
    dbanon.publish("patients", grants=[analyst], settings=database.settings)


@pytest.fixture
def database(copied):
    return copied(publish_for_an_analyst)


@pytest.fixture
def reader(database):
    """Settings of an analyst who may read anon.patients and do nothing else."""
    return Settings(dsn=database.dsn_as("describing_analyst"))


@pytest.mark.exhaustive
def test_an_analyst_learns_what_each_column_is_and_when_it_was_proved(reader):
    found = dbanon.describe("anon.patients", settings=reader)
    words = {column.name: (column.role, column.words) for column in found.columns}
    assert ("quasi", f"quasi-identifier, published as {RECODED['interval']}") == words["age"]
    assert ("sensitive", "sensitive, published as it is") == words["disease"]
    assert ("insensitive", "published as it is") == words["note"]
    assert "id" not in words
    assert [model.name for model in found.models] == ["k-anonymity", "l-diversity"]
    assert found.release == 1
    assert timedelta(0) <= datetime.now(UTC) - found.proved_at < timedelta(hours=1)


def test_the_words_are_comments_that_hold_no_value_of_a_row(database, reader):
    assert reader.dsn
    comments = dict(database.execute(COMMENTS))
    assert all(text.startswith(f"{name}: ") for name, text in comments.items())
    values = {row[0] for row in database.execute("SELECT disease FROM public.patients")} - {None}
    assert not [v for v in values if any(v in text.split() for text in comments.values())]


def test_a_source_comment_is_not_published(database, reader):
    database.execute("COMMENT ON COLUMN public.patients.age IS 'Ada is 36'")
    dbanon.refresh("patients", settings=database.settings)
    words = [column.words for column in dbanon.describe("anon.patients", settings=reader).columns]
    assert "Ada" not in " ".join(words)


def test_a_live_view_is_described_too(database, reader):
    dbanon.publish("patients", kind="view", name="live", settings=database.settings)
    found = dbanon.describe("anon.live", settings=database.settings)
    assert "range" in found.columns[0].words


def test_what_is_no_release_is_not_described(database, reader, monkeypatch, capsys):
    assert reader.dsn
    with pytest.raises(dbanon.ConfigError, match="not a relation that dbanon published"):
        dbanon.describe("patients", settings=database.settings)
    monkeypatch.setattr(sys, "argv", ["dbanon", "describe", "anon.patients", "--json"])
    monkeypatch.setenv("DBANON_DSN", reader.dsn)
    with pytest.raises(SystemExit):
        main()
    assert json.loads(capsys.readouterr().out)["release"] == 1


def test_an_odd_name_of_a_column_does_no_harm(database):
    database.execute('CREATE TABLE public.odd (id int PRIMARY KEY, "a\'; --" int, s text)')
    database.execute(
        "INSERT INTO public.odd SELECT i, i / 5, 's' || i FROM generate_series(0, 19) i"
    )
    policy = """
table = "public.odd"
[columns.id]
role = "identifier"
[columns."a'; --"]
role = "quasi"
[columns.s]
role = "sensitive"
[models]
k = 5
"""
    dbanon.set_policy("odd", policies.parse(policy), settings=database.settings)
    dbanon.publish("odd", settings=database.settings)
    found = dbanon.describe("anon.odd", settings=database.settings)
    assert ["a'; --", "s"] == [column.name for column in found.columns]
