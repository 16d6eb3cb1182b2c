"""Processes in which blocks are grouped, and may be lost."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

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
    with executors.Processes().opened(None, stopped=lambda: False) as run:
        assert [(0, "A"), (1, "B")] == sorted(run([lambda: "a", lambda: "b"]))


def test_no_more_blocks_are_made_than_are_performed_or_the_next(monkeypatch):
    made, done = [], []
    monkeypatch.setattr(executors, "_room", lambda: 3)
    monkeypatch.setattr(executors, "_pool", lambda *_: ThreadPoolExecutor(2))
    monkeypatch.setattr(executors, "_perform_here", str)
    with executors.Processes().opened(None, stopped=lambda: False) as run:
        for number, _ in run([lambda i=i: made.append(i) or i for i in range(20)]):
            done.append(number)
            assert len(made) <= len(done) + 2
    assert sorted(done) == made == list(range(20))


# Performs one task by processes, and waits to be killed while they have no other.
KILLED = """
import functools, multiprocessing, os, time, types
from dbanon.actions.distribution.executors import Processes
task = types.SimpleNamespace(perform=functools.partial(os.write, 1))
with Processes().opened(b"performed ", stopped=lambda: False) as run:
    list(run([lambda: task]))
    print(*[child.pid for child in multiprocessing.active_children()], flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_processes_end_with_a_command_that_is_killed(number):
    command = [sys.executable, "-c", KILLED]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        performed, *others = process.stdout.readline().split()
        process.send_signal(number)
        try:
            assert ("", None) == process.communicate(timeout=20)  # all have closed it
        finally:
            for other in others:
                with suppress(ProcessLookupError):
                    os.kill(int(other), signal.SIGKILL)
    assert performed == "performed"
    assert others
