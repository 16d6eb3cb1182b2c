"""Which tests run first, and which process runs them where there are several."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest
    from xdist.scheduler import Scheduling

# Where kernels are compiled, what publications need before the others.
COMPILING = (
    "tests/unit/anonymization/auto/",
    "tests/unit/kernels/",
    "tests/unit/anonymization/",
    "tests/unit/models/",
    "tests/unit/cli/test_warm.py",
)
# What searches at length or draws.
LENGTHY = ("tests/unit/benchmarks/", "tests/unit/cli/terminal/test_plot.py")


def processes(named: Iterable[str]) -> int:
    """Return the processes of a run of some files or folders, 0 for this one alone.

    A run of folders takes one more than there are cores, as each of them waits now and then, for
    locks, other processes and deadlines. Tests of a file are done sooner here than others start.
    """
    is_small = any(".py" in name for name in named)
    return 0 if is_small else len(os.sched_getaffinity(0)) + 1


def turn(nodeid: str) -> int:
    """Return the turn of a test: first those that compile, then all others."""
    places = [i for i, folder in enumerate(COMPILING) if nodeid.startswith(folder)]
    return places[0] if places else len(COMPILING)


def is_fast(item: pytest.Item) -> bool:
    """Whether a test needs no server or browser, compiles no kernel and is not slow otherwise."""
    if not item.nodeid.startswith("tests/unit/") or item.nodeid.startswith((*COMPILING, *LENGTHY)):
        return False
    needs_neither = {"server", "browser"}.isdisjoint(item.fixturenames)
    return needs_neither and not item.get_closest_marker("slow")


def one_compiler(config: object, log: object) -> Scheduling:
    """Distribute files, but have one process run all those that compile.

    Compiled kernels are kept on disk. Two processes that need the same one at the same time both
    compile it; so the others begin with tests of the database.
    """
    from xdist.scheduler import LoadFileScheduling

    class OneCompiler(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return file if turn(nodeid) == len(COMPILING) else COMPILING[-1]

    return OneCompiler(config, log)
