"""Processes in which blocks are grouped, and may be lost."""

from concurrent.futures import ThreadPoolExecutor

from dbanon.actions.distribution import executors


class Breaking:
    """A pool of which one process was killed while the next one began."""

    def submit(self, *_):
        raise OSError("handle is closed")

    def shutdown(self, **_):
        pass


def test_a_pool_that_breaks_while_it_begins_is_replaced(monkeypatch):
    pools = [Breaking(), ThreadPoolExecutor(1)]
    monkeypatch.setattr(executors, "_pool", lambda *_: pools.pop(0))
    monkeypatch.setattr(executors, "_perform_here", str.upper)
    with executors.Processes().opened(None, None, stopped=lambda: False) as run:
        assert [(0, "A"), (1, "B")] == sorted(run(["a", "b"]))
