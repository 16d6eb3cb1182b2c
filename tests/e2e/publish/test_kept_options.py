"""What the ledger keeps of a publication's options, so that a refresh can ask for the same.

Its digests hold only as long as the same options are kept in the same words. A change that is
meant needs a way for older ledgers, and a new kept_options.json.
"""

import json
from pathlib import Path

import pytest
from data.schemas.clinic import make_clinic
from selection import exhaustive_after
from tables import define_patients, make_patients, patients_policy

import dbanon
from dbanon.domain.policy import ModelSpec
from dbanon.domain.table import TableName

KEPT = json.loads(Path(__file__).with_name("kept_options.json").read_text(encoding="utf-8"))
ALL = (
    *("--k", 5, "--model", "entropy-l-diversity:l=3"),
    *("--model", "t-closeness:t=0.9,distance=equal"),
    *("--max-suppressed", 0.9, "--algorithm", "auto", "--effort", "fast", "--time-limit", "300ms"),
    *("--param", "loss=il", "--schema", "shown", "--name", "people", "--grant", "public"),
    *("--keep-assignment", "--allow-foreign", "--seed", 7),
)
WORDS = {
    "nothing": (),
    "two counts": ("--k", 6, "--l", 2),
    "all": ALL,
    "a live view": ("--k", 5, "--as", "view", "--grant", "public"),
    "persons": ("--subject", "id", "--rows-per-subject", "group"),
    "blocks": ("--algorithm", "mdav", "--block", 60),
    "a population": ("--model", "k-map:k=5", "--population", "public.people"),
    "another policy": ("--policy", "research", "--param", "loss=ncp"),
}
ARGUMENTS = {
    "arguments": {"k": 5, "effort": "fast", "time_limit": 1, "algorithm": "auto"},
    "models": {
        "models": [
            ModelSpec("t-closeness", {"t": 0.9}),
            {"name": "p-sensitivity", "params": {"p": 2}},
        ],
        "grants": ["public"],
        "kind": "table",
        "params": {},
    },
}


@pytest.fixture
def database(copied):
    """A table with two policies."""
    return copied(define)


def define(database):
    define_patients(database)
    make_patients(database, rows=400, name="people")
    research = patients_policy(TableName("public", "patients"), name="research", algorithm="auto")
    dbanon.set_policy("patients", research, settings=database.settings)


@pytest.mark.parametrize("case", exhaustive_after(1, WORDS))
def test_the_ledger_keeps_what_the_command_line_was_told(database, run, case):
    run("publish", "patients", *WORDS[case])
    (release,) = dbanon.list_releases(settings=database.settings)
    assert KEPT[case] == release.overrides


@pytest.mark.exhaustive
@pytest.mark.parametrize("case", ARGUMENTS)
def test_the_ledger_keeps_what_a_caller_asked_for(database, case):
    asked = {**ARGUMENTS[case], "settings": database.settings, "dry_run": True}
    assert KEPT[case] == dbanon.publish("patients", **asked).overrides


@pytest.mark.exhaustive
def test_the_ledger_keeps_what_linked_tables_were_asked_for(bare_database, tmp_path):
    dbanon.init(bare_database.settings)
    file = make_clinic(bare_database, tmp_path)
    releases = dbanon.publish_dataset(file, k=5, settings=bare_database.settings, dry_run=True)
    assert [KEPT["linked tables"]] * len(releases) == [one.overrides for one in releases]
