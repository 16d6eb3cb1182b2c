"""Compiling ahead: a command that calls every kernel that a publication calls."""

import json
import os
import subprocess
import sys

from builders import encoded

from dbanon.actions.server import warm
from dbanon.anonymization.auto.algorithm import Auto
from dbanon.anonymization.interfaces import Requirement
from dbanon.kernels.compile import on_compile


def dbanon(*arguments, **environment):
    command = [sys.executable, "-P", "-m", "dbanon", *arguments]
    environment = os.environ | environment
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_what_was_compiled_ahead_is_not_compiled_again():
    warm()
    result = dbanon("server", "warm", "--json")
    assert (result.returncode, 0) == (0, json.loads(result.stdout)["functions"])
    assert "compiling for t-closeness" in result.stderr
    told = []
    with on_compile(lambda: told.append(1)):
        columns = {"age": [*range(60)], "sex": ["f", "m", None] * 20}
        table = encoded(columns, sensitive={"ill": ["a", "b", "c", "d"] * 15})
        Auto().assign(table, Requirement(5, 3), seed=1)
    assert [] == told


def test_without_a_folder_to_keep_code_in_nothing_is_compiled(tmp_path):
    (tmp_path / "file").write_text("")
    result = dbanon("server", "warm", NUMBA_CACHE_DIR=str(tmp_path / "file"))
    assert (1, "") == (result.returncode, result.stdout)
    assert "error: " in result.stderr
    assert "NUMBA_CACHE_DIR=FOLDER dbanon server warm" in result.stderr
