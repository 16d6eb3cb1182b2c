"""Every header of a printed table is explained on one page."""

import sys

import pytest
from pages import page
from tables import make_patients, patients_policy

import dbanon
from dbanon.cli import main
from dbanon.cli.terminal import console

COMMANDS = (
    ("plan", "patients", "--verbose"),
    ("plan", "patients", "--compare", "--algorithms", "auto,mondrian"),
    ("publish", "patients", "--verbose"),
    ("refresh", "patients"),
    ("check", "anon.patients"),
    ("report", "anon.patients", "--population-size", "1000"),
    ("attack", "anon.patients"),
    ("publish", "patients", "--name", "larger", "--k", "10"),
    ("history", "patients"),
)


@pytest.fixture
def printed(database, monkeypatch):
    """The headers that the commands print, by command."""
    table = make_patients(database)
    dbanon.set_policy(table, patients_policy(table), settings=database.settings)
    found, draw = {}, console.table

    def record(headers, rows, *, title=""):
        found.setdefault(command[0], []).extend(headers)
        draw(headers, rows, title=title)

    monkeypatch.setattr(console, "table", record)
    for command in COMMANDS:
        monkeypatch.setattr(sys, "argv", ["dbanon", *command, "--dsn", database.dsn])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code in {0, None}, command
    return found


def test_each_header_is_explained(printed):
    lines = page("docs/reference/output.md").written.splitlines()
    cells = [line.split("|")[1:3] for line in lines if line.startswith("| `")]
    meanings = {header.strip().strip("`"): meaning.strip() for header, meaning in cells}
    assert all(meanings.values())
    assert set(printed) == {command[0] for command in COMMANDS} - {"refresh"}
    for command, headers in printed.items():
        assert [] == [header for header in headers if header not in meanings], command
