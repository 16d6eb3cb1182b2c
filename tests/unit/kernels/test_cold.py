"""What a search compiles with an empty cache, counted in a process of its own."""

import os
import subprocess
import sys

PROGRAM = """
import sys
import numpy as np
from numba.core import event
from dbanon.anonymization.auto.distribution_cuts import cut_large
from dbanon.anonymization.auto.space import make_space
from dbanon.anonymization.interfaces import Requirement
from dbanon.domain.assignment import EncodedColumn, EncodedTable
from dbanon.domain.policy import ColumnRule, Role
from dbanon.domain.table import ColumnKind

class Names(event.Listener):
    def on_start(self, event):
        function = event.data["dispatcher"].py_func
        print(function.__module__, function.__qualname__)
    def on_end(self, event):
        pass

event.register("numba:compile", Names())
codes = np.arange(12, dtype=np.int32)
rule = ColumnRule("x", Role.QUASI)
column = EncodedColumn(rule, ColumnKind.INTEGER, codes, 12, np.arange(12), codes / 11)
table = EncodedTable((column,), codes[:, None] % 3, ("s",), 12)
space = make_space(table, Requirement(2, 2), loss="ncp")
cut_large(space, np.zeros(12, np.int32))
"""


def compiled(program, folder):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    run = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    return [line.split() for line in run.stdout.splitlines()]


def test_cuts_compile_neither_numbas_sorting_nor_its_texts(tmp_path):
    modules = [module for module, _ in compiled(PROGRAM, tmp_path)]
    assert [] == [name for name in modules if name.startswith(("numba.misc", "numba.cpython.uni"))]
    assert len(modules) < 60
