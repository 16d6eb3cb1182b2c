import json
import sys

import pytest

from dbanon.cli import main
from dbanon.domain.errors import ConfigError, PolicyError


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a command whose action raises an error, and return (exit code, stdout, stderr)."""

    def run(error, *words, printed=""):
        def action(*_, **__):
            sys.stdout.write(printed)
            raise error

        monkeypatch.setattr("dbanon.actions.releases.ledger.list_releases", action)
        monkeypatch.setattr(sys, "argv", ["dbanon", "release", "list", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, *capsys.readouterr()

    return run


def test_a_program_that_asks_for_json_gets_the_error_as_json(run):
    code, out, err = run(PolicyError("no role", hint="dbanon policy set"), "--json")
    assert "error: no role\n  try: dbanon policy set\n" == err
    assert json.loads(out) == {
        "error": {
            "kind": "PolicyError",
            "message": "no role",
            "hint": "dbanon policy set",
            "done": None,
            "exit_code": code,
        }
    }


def test_an_error_that_nobody_foresaw_says_its_kind_only(run):
    _, out, err = run(ZeroDivisionError("a value"), "--json")
    assert "ZeroDivisionError" == json.loads(out)["error"]["kind"]
    assert "a value" not in out + err


def test_people_get_no_json(run):
    assert "" == run(ConfigError("no role"))[1]


def test_a_command_that_printed_its_document_prints_no_second_one(run):
    assert "{}" == run(ConfigError("told"), "--json", printed="{}")[1]
