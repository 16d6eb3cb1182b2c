"""Processes of dbanon that begin at once: one that has imported all of it makes them of itself.

For tests of signals, which a process of its own must get. What is asked of imports, of closed
streams or of how Python ends belongs into a process that is really new.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# Waits for a request, and forks; the child goes on below the loop, and ends as Python does.
SERVER = """
import gc, importlib, json, os, pkgutil, signal, socket, sys
import dbanon
for module in pkgutil.walk_packages(dbanon.__path__, "dbanon."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
import pandas
table = pandas.DataFrame({"a": range(20), "b": list("xy") * 10})
dbanon.anonymize(table, quasi=["a", "b"], k=5, algorithm="mondrian")  # numba is slow to begin
signal.signal(signal.SIGINT, signal.SIG_IGN)
gc.collect()
gc.freeze()  # what all of them share is neither looked through nor taken apart by each
requests = socket.socket(fileno=int(sys.argv[1]))
while True:
    text, (answers, out, err), *_ = socket.recv_fds(requests, 1 << 20, 3)
    child = os.fork()
    if child == 0:
        break
    os.close(out)
    os.close(err)
    os.write(answers, b"%d " % child)
    os.write(answers, b"%d" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    os.close(answers)
requests.close()
os.close(answers)
os.dup2(out, 1)
os.dup2(err, 2)
os.close(out)
os.close(err)
sys.stdout = open(1, "w", closefd=False)
sys.stderr = open(2, "w", closefd=False, buffering=1, errors="backslashreplace")
signal.signal(signal.SIGINT, signal.default_int_handler)
wanted = json.loads(text)
os.environ.clear()
os.environ.update(wanted["environment"])
os.chdir(wanted["folder"])
sys.argv = ["-c", *wanted["words"]]
exec(wanted["code"], {"__name__": "__main__"})
"""


class Forked:
    """A process that runs code; its output can be read from ``stdout`` and ``stderr``."""

    def __init__(self, requests: socket.socket, code: str, words: tuple[str, ...]) -> None:
        self._answers, theirs = socket.socketpair()
        pipes = [os.pipe(), os.pipe()]
        wanted = {
            "code": code,
            "words": words,
            "environment": dict(os.environ),
            "folder": os.getcwd(),  # noqa: PTH109 - it goes into JSON
        }
        given = [theirs.fileno(), *(write for _, write in pipes)]
        socket.send_fds(requests, [json.dumps(wanted).encode()], given)
        theirs.close()
        for _, write in pipes:
            os.close(write)
        self.stdout, self.stderr = (os.fdopen(read, encoding="utf-8") for read, _ in pipes)
        self.pid = int(self._answer())
        self._code: int | None = None

    def _answer(self) -> bytes:
        """Read one number: what the server sends first is closed by a blank, then by the end."""
        found = b""
        while (byte := self._answers.recv(1)) not in {b" ", b""}:
            found += byte
        return found

    def send_signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def wait(self, *, timeout: float = 120) -> int:
        """Wait for the end and return the exit code, which is negative after a signal."""
        if self._code is None:
            self._answers.settimeout(timeout)
            self._code = int(self._answer())
        return self._code

    def ended(self, *, timeout: float = 120) -> tuple[int, str, str]:
        """Wait for the end and return the exit code, and what was printed that was not read."""
        code = self.wait(timeout=timeout)
        return code, self.stdout.read(), self.stderr.read()

    def close(self) -> None:
        """Make an end of it, as the next one waits for that."""
        if self._code is None:
            with suppress(ProcessLookupError):
                self.send_signal(signal.SIGKILL)
            self.wait()
        for held in (self._answers, self.stdout, self.stderr):
            held.close()


@contextmanager
def forking() -> Iterator[partial[Forked]]:
    """Yield what starts a process, one at a time, which runs code with some words as arguments."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        command = [sys.executable, "-c", SERVER, str(theirs.fileno())]
        quiet = {"stdout": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
        with subprocess.Popen(command, pass_fds=[theirs.fileno()], **quiet) as server:
            try:
                yield partial(_started, ours)
            finally:
                server.kill()


@contextmanager
def _started(requests: socket.socket, code: str, *words: str) -> Iterator[Forked]:
    process = Forked(requests, code, words)
    try:
        yield process
    finally:
        process.close()
