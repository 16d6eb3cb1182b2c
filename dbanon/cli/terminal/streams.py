"""Standard streams that may be closed, full or broken: what was done stays done."""

from __future__ import annotations

import errno
import io
import os
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO


class Stream:
    """A text stream that goes on when its output is lost, and keeps the reason in ``lost``.

    is_unused: whether nothing was written to it yet.
    """

    def __init__(self, inner: TextIO) -> None:
        self._inner = inner
        self.is_unused = True
        self.lost: OSError | None = None

    def write(self, text: str) -> int:
        """Write a text; once one was lost, drop it."""
        self.is_unused = self.is_unused and not text
        if self.lost is None:
            try:
                return self._inner.write(text)
            except OSError as error:
                self._lose(error)
        return len(text)

    def flush(self) -> None:
        """Write out what is still held back."""
        if self.lost is None:
            try:
                self._inner.flush()
            except OSError as error:
                self._lose(error)

    def _lose(self, error: OSError) -> None:
        self.lost = error
        # Else Python would try again to write what is left as it ends, and exit with 120.
        with suppress(OSError):
            number, nowhere = self._inner.fileno(), os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, number)
            os.close(nowhere)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a stream has
        return getattr(self._inner, name)


@contextmanager
def lasting() -> Iterator[Stream]:
    """Let output be lost within the block without an error; yield what stands for stdout."""
    _occupy_descriptors()
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = out, _ = Stream(_opened(before[0], 1)), Stream(_opened(before[1], 2))
    try:
        yield out
    finally:
        out.flush()
        sys.stderr.flush()
        sys.stdout, sys.stderr = before


def _occupy_descriptors() -> None:
    """Keep a connection from getting the number of a stream that was closed.

    What is opened in its place cannot be written to, so that what is written is known to be lost.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError as error:
            if error.errno != errno.EBADF:
                raise
            os.open(os.devnull, os.O_RDONLY)  # gets the lowest number that is free


def _opened(stream: TextIO | None, number: int) -> TextIO:
    """Return a stream that writes UTF-8, as every file that dbanon reads is, in any locale."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    if stream is not None:
        return stream
    return open(number, "w", encoding="utf-8", closefd=False)
