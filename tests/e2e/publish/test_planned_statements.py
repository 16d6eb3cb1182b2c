"""The statements that ``plan --print-sql`` prints are those of a publication, in outline.

A change that is meant: DBANON_WRITE=1 pytest tests/e2e/publish/test_planned_statements.py
"""

import os
import re
from pathlib import Path

import pytest
from data.schemas.clinic import make_clinic
from tables import make_patients, patients_policy

import dbanon

pytestmark = pytest.mark.one_server

FILE = Path(__file__).with_name("planned_statements.txt")
OUTLINE = re.compile(r"^(?!-- (?!SELECT)).+", re.MULTILINE)


def planned(database, policy=None, **options):
    table = make_patients(database)
    dbanon.set_policy(table, policy or patients_policy(table), settings=database.settings)
    return [dbanon.plan(table, settings=database.settings, **options)]


def anatomy():
    allow = ("anatomy: presence is no secret here",)
    table = dbanon.TableName.parse("public.patients")
    return patients_policy(table, k=None, l=3, anatomy=True, allow=allow)


WAYS = {
    "a copy": lambda database, _: planned(database, grants=["analyst"]),
    "a copy whose assignment is kept": lambda database, _: planned(database, keep_assignment=True),
    "a live view": lambda database, _: planned(database, kind="view"),
    "anatomy": lambda database, _: planned(database, anatomy()),
    "a dataset": lambda database, folder: dbanon.plan_dataset(
        make_clinic(database, folder), k=5, settings=database.settings
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_planned_statements_are_those_of_before(database, tmp_path, way):
    found = [
        OUTLINE.search(statement)
        for one in WAYS[way](database, tmp_path)
        for statement in one.statements
    ]
    text = "\n".join(line.group()[:70].strip() for line in found)
    kept = FILE.read_text() if FILE.exists() else ""
    parts = dict(part.split("\n", 1) for part in kept.split("# ")[1:])
    if os.environ.get("DBANON_WRITE"):
        parts[way] = f"{text}\n"
        FILE.write_text("\n".join(f"# {name}\n{body.strip()}\n" for name, body in parts.items()))
    assert parts[way].strip() == text
