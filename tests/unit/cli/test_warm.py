"""Compiling ahead: a command that calls every kernel that ``auto`` calls."""

import importlib
import json
import os
import pkgutil
import subprocess
import sys

import pytest
from builders import encoded

from dbanon.actions.server import warm
from dbanon.anonymization.auto.algorithm import Auto
from dbanon.anonymization.interfaces import Requirement
from dbanon.kernels import auto
from dbanon.kernels.boxes.costs import box_costs, group_boxes
from dbanon.kernels.boxes.merges import union_rises
from dbanon.kernels.boxes.repair import trim
from dbanon.kernels.compilation import Cache, on_compile

# It publishes with a kernel that is compiled soon, in place of all that a publication calls.
FULL_DISK = """
import resource
import sys
import numpy as np
from dbanon.anonymization import data_frame
from dbanon.cli import main
from dbanon.kernels.boxes.costs import group_boxes
def publish(*_, **__):
    group_boxes(np.zeros((2, 1), np.int32), np.zeros(2, np.int32), 1)
data_frame.anonymize = publish
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
sys.argv = ["dbanon", "server", "warm"]
main()
"""


def run(*arguments, **environment):
    command = [sys.executable, "-P", *arguments]
    environment = os.environ | environment
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def called_from_python():
    """Return the kernels that are kept on their own, of the modules that ``auto`` is made of."""
    names = [f"{auto.__name__}.{module.name}" for module in pkgutil.iter_modules(auto.__path__)]
    values = [value for name in names for value in vars(importlib.import_module(name)).values()]
    kept = [value for value in values if isinstance(getattr(value, "_cache", None), Cache)]
    return [*kept, box_costs, group_boxes, trim, union_rises]


@pytest.mark.exhaustive
@pytest.mark.slow
def test_every_kernel_of_the_default_algorithm_is_compiled_ahead():
    warm()
    kernels = called_from_python()
    assert len(kernels) > 15
    assert [kernel.py_func for kernel in kernels if not kernel.signatures] == []


@pytest.mark.slow
def test_what_was_compiled_ahead_is_not_compiled_again():
    warm()
    result = run("-m", "dbanon", "server", "warm", "--json")
    assert (result.returncode, 0) == (0, json.loads(result.stdout)["seconds"])
    assert "trying t-closeness" in result.stderr
    told = []
    with on_compile(lambda: told.append(1)):
        columns = {"age": [*range(60)], "sex": ["f", "m", None] * 20}
        table = encoded(columns, sensitive={"ill": ["a", "b", "c", "d"] * 15})
        Auto().assign(table, Requirement(5, 3), seed=1)
    assert [] == told


@pytest.mark.exhaustive
def test_without_a_folder_to_keep_code_in_nothing_is_compiled(tmp_path):
    (tmp_path / "file").write_text("")
    result = run("-m", "dbanon", "server", "warm", NUMBA_CACHE_DIR=str(tmp_path / "file"))
    assert (1, "") == (result.returncode, result.stdout)
    assert "error: " in result.stderr
    assert "NUMBA_CACHE_DIR=FOLDER dbanon server warm" in result.stderr


@pytest.mark.exhaustive
def test_code_that_was_compiled_and_is_not_kept_is_an_error(tmp_path):
    result = run("-c", FULL_DISK, NUMBA_CACHE_DIR=str(tmp_path))
    assert (1, "") == (result.returncode, result.stdout)
    assert "compiled code cannot be kept in" in result.stderr
    assert "NUMBA_CACHE_DIR=FOLDER dbanon server warm" in result.stderr
    assert [] == [path for path in tmp_path.rglob("*") if path.is_file()]
