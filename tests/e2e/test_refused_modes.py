"""What a mode refuses, word for word, with its hint or exit code."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from data.schemas.clinic import POLICIES, TABLES, fill_clinic
from tables import make_patients, patients_policy

import dbanon
from dbanon.formats import policies
from dbanon.formats.datasets import dataset_of

TABLE, BRIEF = dbanon.TableName("public", "patients"), dbanon.TableName("public", "brief")
KEPT = json.loads(Path(__file__).with_name("refused_modes.json").read_text())


def fill(database):
    """Publish patients, buckets of them, and a dataset."""
    make_patients(database)
    dbanon.set_policy(TABLE, patients_policy(TABLE), settings=database.settings)
    dbanon.publish(TABLE, settings=database.settings)
    database.execute("GRANT SELECT ON anon.patients TO public")
    buckets = patients_policy(TABLE, k=None, name="buckets", anatomy=True, algorithm="auto")
    dbanon.set_policy(TABLE, buckets, settings=database.settings)
    others = {"new_series": True, "recipients_changed": True}
    dbanon.publish(TABLE, policy="buckets", **others, settings=database.settings)
    fill_clinic(database)
    dbanon.publish_dataset(dataset_of(TABLES), k=5, settings=database.settings)


@pytest.fixture
def database(copied):
    return copied(fill)


def of_dataset(table, **changes):
    """Return a function that publishes a dataset in which the policy of a table is another."""

    def call(settings):
        policy = replace(policies.parse(POLICIES[table]), **changes)
        dbanon.set_policy(table, policy, settings=settings)
        dbanon.publish_dataset(dataset_of(TABLES), k=5, settings=settings)

    return call


def unlogged(database):
    """Make a table that a crash empties, with a policy."""
    database.execute("CREATE UNLOGGED TABLE public.brief AS SELECT * FROM public.patients")
    database.execute("ALTER TABLE public.brief ADD PRIMARY KEY (id)")
    dbanon.set_policy(BRIEF, patients_policy(BRIEF), settings=database.settings)


CALLS = {
    "blocks, where earlier classes are reused": partial(dbanon.publish, TABLE, rows_per_block=600),
    "a subject of the persons of a dataset": of_dataset("persons", subject="ssn"),
    "rows_per_subject of the persons of a dataset": of_dataset(
        "persons", subject="person_id", rows_per_subject=1
    ),
    "a key of two columns of the persons of a dataset": of_dataset(
        "persons", key=("person_id", "birth_date")
    ),
    "no subject of a table of a dataset": of_dataset("encounters", subject=None),
    "attack of anatomy": partial(dbanon.attack, "anon.patients_buckets"),
    "attack of a table of a dataset": partial(dbanon.attack, "anon.encounters"),
    "report of a table of a dataset": partial(dbanon.report, "anon.persons", public=True),
    "counts of several rows a person": partial(
        dbanon.count, "anon.encounters", by=["encounter_class"], epsilon=0.1
    ),
    "check of anatomy with k": partial(dbanon.check, "anon.patients_buckets", k=5),
}
COMMANDS = {
    "plan patients --refresh --k 7": "--refresh",
    "plan --refresh": "--refresh",
    "plan patients --allow-superuser": "--allow-superuser",
    "report --dataset clinic.toml --html x.html": "--dataset",
    "report --dataset clinic.toml --against x.json": "--dataset",
    "report anon.patients --dataset clinic.toml": "--dataset",
    "attack anon.patients --with anon.other --as journalist": "--with",
    "check --all --quasi age": "--all",
    "check anon.patients --all": "--all",
}


def refused(call, database):
    with pytest.raises(dbanon.DbanonError) as caught:
        call(settings=database.settings)
    return [type(caught.value).__name__, str(caught.value), caught.value.hint]


@pytest.mark.parametrize("name", CALLS)
def test_each_mode_refuses_in_the_words_that_were_agreed(database, name):
    assert KEPT[name] == refused(CALLS[name], database)


def test_guards_of_a_live_view_refuse_rows_that_change_without_a_statement(database):
    unlogged(database)
    call = partial(dbanon.publish, BRIEF, kind="view")
    assert KEPT["a live view of an unlogged table"] == refused(call, database)


@pytest.mark.parametrize("words", COMMANDS)
def test_options_that_a_mode_would_ignore_are_errors_of_usage(run, words):
    told = " ".join(run(*words.split(), code=2).err.replace("│", " ").split())
    assert f"Invalid value for {COMMANDS[words]}: {KEPT[words]}" in told
