"""What a search compiles with an empty cache, counted in a process of its own."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]

NAMES = """
from numba.core import event

class Names(event.Listener):
    def on_start(self, event):
        function = event.data["dispatcher"].py_func
        print(function.__module__, function.__qualname__)
    def on_end(self, event):
        pass

event.register("numba:compile", Names())
"""
CUT = """
import numpy as np
from builders import encoded
from dbanon.anonymization.auto.distribution_cuts import cut_large
from dbanon.anonymization.auto.space import make_space
from dbanon.anonymization.interfaces import Requirement

table = encoded({"x": range(12)}, sensitive={"s": ["a", "b", "c"] * 4})
space = make_space(table, Requirement(2, 2), loss="ncp")
cut_large(space, np.zeros(12, np.int32))
"""
SEARCH = """
from builders import encoded
from dbanon.anonymization.auto.algorithm import Auto
from dbanon.anonymization.interfaces import Requirement

ages = [number * 7919 % 90 for number in range(60)]
table = encoded({"age": ages}, sensitive={"ill": ["a", "b", "c", "d"] * 15})
Auto().assign(table, Requirement(5, 3), seed=1)
"""


def compiled(program, folder):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": str(TESTS)}
    run = subprocess.run(
        [sys.executable, "-c", NAMES + program],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return [line.split() for line in run.stdout.splitlines()]


@pytest.mark.exhaustive
def test_cuts_compile_neither_numbas_sorting_nor_its_texts(tmp_path):
    modules = [module for module, _ in compiled(CUT, tmp_path)]
    assert [] == [name for name in modules if name.startswith(("numba.misc", "numba.cpython.uni"))]
    assert len(modules) < 60


@pytest.mark.exhaustive  # it compiles for longer than any other test of the suite lasts
def test_a_search_compiles_each_function_once_and_no_boxes_for_small_k(tmp_path):
    names = compiled(SEARCH, tmp_path)
    own = Counter(name for module, name in names if module.startswith("dbanon."))
    assert (0, 0) == (own["stand"], own["_carve_pool"])
    assert (1, 1, 1) == (own["cut_all"], own["grow_groups"], own["groups_hold"])
    assert 1 == own["roll"]  # of any number, literal or not
    assert len(names) - own.total() < 70  # arrays and numbers, once for all kernels and parts
