"""Processes in which blocks are grouped, and may be lost."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from selection import exhaustive_after

from dbanon.actions.distribution import executors


class Breaking:
    """A pool of which one process was killed while the next one began."""

    def __init__(self, error):
        self.error = error

    def submit(self, *_):
        raise self.error

    def shutdown(self, **_):
        pass


@pytest.mark.parametrize(
    "error",
    exhaustive_after(1, [OSError("handle is closed"), ValueError("bad value(s) in fds_to_keep")]),
    ids=repr,
)
def test_a_pool_that_breaks_while_it_begins_is_replaced(error, monkeypatch):
    pools = [Breaking(error), ThreadPoolExecutor(1)]
    monkeypatch.setattr(executors, "_pool", lambda *_: pools.pop(0))
    monkeypatch.setattr(executors, "_perform_here", str.upper)
    with executors.Processes().opened(None, None, stopped=lambda: False) as run:
        assert [(0, "A"), (1, "B")] == sorted(run(["a", "b"]))
