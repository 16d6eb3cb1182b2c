"""A command converts what is given to it, and loads pydantic only for that."""

import subprocess
import sys

import pytest

SCRIPT = """
import sys
from dbanon.__main__ import main
sys.argv = ["dbanon", *sys.argv[1:]]
try:
    main()
except SystemExit as ended:
    print(ended.code, "pydantic" in sys.modules)
"""


def run(*words):
    """Return the exit code of a command, whether pydantic was loaded, and the error."""
    command = [sys.executable, "-c", SCRIPT, *words]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    code, loaded = result.stdout.split()[-2:]
    return int(code), loaded == "True", result.stderr


@pytest.mark.exhaustive
@pytest.mark.parametrize("words", [("--if-changed",), ("--dsn", "host="), ("--quiet", "--json")])
def test_texts_and_flags_need_no_conversion(words):
    code, loaded, _ = run("refresh", "people", "--dsn", "postgresql://[", *words)
    assert (1, False) == (code, loaded)


def test_a_number_is_converted_and_refused_as_ever():
    code, _, error = run("publish", "people", "--k", "five")
    assert 2 == code
    assert "valid integer" in error
