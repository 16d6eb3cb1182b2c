"""What whole commands are tried with."""

import sys

import pytest

from dbanon.cli import main


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
