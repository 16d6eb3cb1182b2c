"""What whole commands are tried with."""

import sys

import documents
import pytest

from dbanon import cli
from dbanon.cli import main
from dbanon.cli.terminal import console


@pytest.fixture
def run(database, monkeypatch, capsys):
    """Run the command line on the test's database and return what it printed."""
    monkeypatch.setenv("DBANON_DSN", database.dsn)

    def command(*words, code=0):
        monkeypatch.setattr(sys, "argv", ["dbanon", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        finished = capsys.readouterr()
        assert (ended.value.code or 0) == code, finished
        return finished

    return command


@pytest.fixture(autouse=True)
def _documents_as_published():
    """Compare each document that a command prints in this process with its schema."""
    with pytest.MonkeyPatch.context() as patch:
        compared = documents.comparing(console.document, console.plain)
        patch.setattr(console, "document", compared)
        patch.setattr(cli, "document", compared)
        yield
