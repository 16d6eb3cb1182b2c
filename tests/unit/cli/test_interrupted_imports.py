"""Ctrl-C at any moment of the start is one line, not a traceback."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

PYPROJECT = tomllib.loads(
    (Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8")
)
# What the installed script does.
CODE = """
import importlib, os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever the parent ignores
module, _, function = sys.argv.pop(1).partition(":")
moment = sys.argv.pop(1)

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == moment:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
getattr(importlib.import_module(module), function)()
"""


@pytest.mark.parametrize(
    "module", ["dbanon.cli", "typer", "dbanon.cli.releases.relations", "psycopg"]
)
def test_an_interrupted_import_prints_no_traceback(module):
    script = PYPROJECT["project"]["scripts"]["dbanon"]
    words = [script, module, "check", "people", "--dsn", "host=/nowhere"]
    answer = subprocess.run(
        [sys.executable, "-c", CODE, *words], capture_output=True, text=True, check=False
    )
    assert (130, "", "interrupted; nothing was changed\n") == (
        answer.returncode,
        answer.stdout,
        answer.stderr.removeprefix("Aborted!\n").lstrip("\n"),
    )
