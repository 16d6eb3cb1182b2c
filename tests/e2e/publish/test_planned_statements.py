"""The statements that ``plan --print-sql`` prints are those of a publication, in outline.

A change that is meant: DBANON_WRITE=1 pytest tests/e2e/publish/test_planned_statements.py
"""

import os
import re
from pathlib import Path

import psycopg
import pytest
from data.schemas.clinic import make_clinic
from tables import make_patients, patients_policy

import dbanon

FILE = Path(__file__).with_name("planned_statements.txt")
NUMBERS = re.compile(r'_[0-9a-f]{8}\b|(?<=_)\d+(?=[_"])|(?<="release": )\d+')
OUTLINE = re.compile(r"^(?!-- (?!SELECT)).+", re.MULTILINE)


def anatomy():
    allow = ("anatomy: presence is no secret here",)
    table = dbanon.TableName.parse("public.patients")
    return patients_policy(table, k=None, l=3, anatomy=True, allow=allow)


WAYS = {
    "a copy": {},
    "a copy whose assignment is kept": {"keep_assignment": True},
    "a live view": {"kind": "view"},
    "anatomy": {},
    "a dataset": {"k": 5},
}


def plan(database, folder, way, **options):
    """Return the plans of a way to publish, and what publishes by it."""
    if way == "a dataset":
        file, options = make_clinic(database, folder), {"settings": database.settings, **options}
        return dbanon.plan_dataset(file, **options), lambda **to: dbanon.publish_dataset(
            file, **options, **to
        )
    table = make_patients(database)
    policy = anatomy() if way == "anatomy" else patients_policy(table)
    dbanon.set_policy(table, policy, settings=database.settings)
    options |= {"settings": database.settings, "grants": [database.role("reader")]}
    return [dbanon.plan(table, **options)], lambda **to: dbanon.publish(table, **options, **to)


def outlines(statements):
    """Return how each statement begins, whatever the numbers of releases and roles are."""
    found = [OUTLINE.search(statement) for statement in statements]
    lines = (line.group() for line in found if line)
    return [NUMBERS.sub("", line)[:70].strip() for line in lines]


@pytest.mark.parametrize("way", WAYS)
def test_the_planned_statements_are_those_of_before(database, tmp_path, way):
    plans, _ = plan(database, tmp_path, way, **WAYS[way])
    text = "\n".join(outlines(statement for one in plans for statement in one.statements))
    kept = FILE.read_text() if FILE.exists() else ""
    parts = dict(part.split("\n", 1) for part in kept.split("# ")[1:])
    if os.environ.get("DBANON_WRITE"):
        parts[way] = f"{text}\n"
        FILE.write_text("\n".join(f"# {name}\n{body.strip()}\n" for name, body in parts.items()))
    assert parts[way].strip() == text


@pytest.mark.exhaustive
@pytest.mark.parametrize("way", WAYS)
def test_a_publication_runs_what_was_planned(database, tmp_path, monkeypatch, way):
    plans, publish = plan(database, tmp_path, way, **WAYS[way])
    sent = []

    def noted(send):
        def execute(cursor, statement, *arguments, **options):
            text = statement if isinstance(statement, str) else statement.as_string(cursor)
            sent.append(text)
            return send(cursor, statement, *arguments, **options)

        return execute

    for name in ("execute", "copy"):
        monkeypatch.setattr(psycopg.Cursor, name, noted(getattr(psycopg.Cursor, name)))
    publish(dry_run=True)
    ran = outlines(sent)
    for one in plans:
        rest = iter(ran)
        planned = [line for line in outlines(one.statements) if not line.startswith("-- ")]
        assert [line for line in planned if line.split(" (")[0] not in heads(rest, line)] == []
        assert {step.name for step in one.steps} == {
            "write",
            "publish",
            "check",
            "compare",
            "record",
        }


def heads(rest, line):
    """Go on until a statement begins as the line does, and return how all on the way began."""
    seen = []
    for one in rest:
        seen.append(one.split(" (")[0])
        if seen[-1] == line.split(" (")[0]:
            break
    return seen
