"""No command imports pandas, which takes longer than a command to start, nor coverage."""

import subprocess
import sys

import pytest

SCRIPT = """
import sys
from dbanon.__main__ import main
sys.argv = ["dbanon", "--version"]
try:
    main()
except SystemExit as ended:
    assert not ended.code
import pyarrow
assert pyarrow.array([1]).to_pylist() == [1]
import numba
assert not sys.modules.keys() & {"pandas", "coverage"}
try:
    import pandas
except ModuleNotFoundError:
    print("hidden")
"""


def test_unused_packages_are_hidden_from_commands_where_they_are_installed():
    pytest.importorskip("pandas")
    pytest.importorskip("coverage")
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False
    )
    assert result.stderr == ""
    assert result.stdout.splitlines()[-1] == "hidden"


@pytest.mark.exhaustive
def test_pandas_is_not_hidden_from_programs_that_import_dbanon():
    pytest.importorskip("pandas")
    code = "import dbanon, dbanon.actions.publish, pandas"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
