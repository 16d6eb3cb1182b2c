"""Compile the largest kernel in a process of its own, beside those that are needed first.

Numba compiles one kernel at a time in a process. On a machine that has not run ``auto`` yet, a
round of local search takes long to compile, and so does what comes before it: two processors can do
both at once.
"""

from __future__ import annotations

import gc
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.auto.rounds import LIGHT, coordinates, improve
from dbanon.anonymization.auto.space import make_space
from dbanon.anonymization.interfaces import Requirement
from dbanon.anonymization.threads import processors
from dbanon.domain.assignment import EncodedColumn, EncodedTable
from dbanon.domain.policy import ColumnRule, Role
from dbanon.domain.table import ColumnKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def rounds_made_ready() -> Iterator[Callable[[], None]]:
    """Compile a round in another process while the block runs, unless it is in the cache.

    Yield what waits until it is compiled, which the end of the block does as well: who runs a
    round before would compile it once more. If the other process fails, nothing is lost: this one
    compiles the kernel when it calls it.
    """
    from dbanon.kernels.cache import is_cached
    from dbanon.kernels.compile import compiling

    if processors() == 1 or not sys.executable or is_cached("auto.improve"):
        yield lambda: None
        return
    # -P: a module in the current folder is not to be run in place of an installed one.
    command = [sys.executable, "-P", "-m", "dbanon.anonymization.auto.precompile"]
    quiet = subprocess.DEVNULL
    beside = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet)  # noqa: S603

    def wait() -> None:
        with compiling():
            beside.wait()

    try:
        yield wait
        wait()
    finally:
        beside.kill()
        beside.wait()


def run_a_round() -> None:
    """Run one round on twelve rows, which takes every kernel that a round of any table takes."""
    codes = np.arange(12, dtype=np.int32)
    rule = ColumnRule("x", Role.QUASI)
    column = EncodedColumn(rule, ColumnKind.INTEGER, codes, 12, np.arange(12), codes / 11)
    table = EncodedTable((column,), np.zeros((12, 0), np.int32), (), 12)
    space = make_space(table, Requirement(2, 1), loss="ncp")
    label = (codes // 3).astype(np.int32)
    improve(space, label, coordinates(space), effort=LIGHT, seed=0, number=0)


if __name__ == "__main__":
    gc.disable()  # a seventh of the time, and what a compiler makes is kept anyway
    run_a_round()
