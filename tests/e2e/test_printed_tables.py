"""Each header of a printed table is explained on one page."""

import re

import pytest
from builders import DATA
from rich.table import Table
from tables import make_patients

import dbanon
from dbanon.formats import policies

POLICY = """
table = "public.patients"
rest = "drop"
[models]
k = 5
[columns]
age.role = "quasi"
sex.role = "quasi"
disease.role = "sensitive"
"""
PAGE = (DATA.parents[1] / "docs" / "reference" / "output.md").read_text(encoding="utf-8")
COMMANDS = (
    "inspect patients",
    "policy show patients",
    "policy list",
    "policy history patients",
    "plan patients --k 5 --l 3",
    "plan patients --k 5 --verbose",
    "plan patients --compare --algorithms auto,mondrian --ks 5",
    "publish patients --k 5 --l 3",
    "publish patients --name others --k 5 --verbose",
    "refresh patients",
    "plan patients --refresh",
    "report anon.patients",
    "report anon.others",
    "attack anon.patients",
    "history patients",
    "release list",
    "release show 1",
    "check anon.patients",
    "check --all",
    "describe anon.patients",
    "schedule list",
    "taxonomy list",
    "doctor",
    "help",
)


def explained():
    """Return the headers that the page explains."""
    cells = re.findall(r"^\| (`.+?) \| \S", PAGE, re.MULTILINE)
    return {header for cell in cells for header in re.findall("`([^`]+)`", cell)}


@pytest.fixture
def printed(monkeypatch):
    """Collect the headers of all printed tables."""
    headers = set()
    add = Table.add_column

    def collect(table, header="", *words, **options):
        headers.add(str(header))
        return add(table, header, *words, **options)

    monkeypatch.setattr(Table, "add_column", collect)
    return headers


def test_each_header_is_explained(database, run, printed):
    table = make_patients(database)
    dbanon.set_policy(table, policies.parse(POLICY), settings=database.settings)
    for command in COMMANDS:
        run(*command.split())
    assert len(printed) > 100
    assert printed - explained() == {""}


def test_each_panel_of_the_help_is_explained(run):
    _, _, section = PAGE.partition("The panels of `--help`")
    panels = {*re.findall(r"^\| `([\w ]+)` \|", section, re.MULTILINE)}
    for command in ("plan", "publish", "report", "attack", "history"):
        printed = {*re.findall(r"^([A-Z][\w ]+):$", run(command, "--help").out, re.MULTILINE)}
        assert printed - panels <= {"Arguments", "Options"}
