"""Standard streams that survive closed or full outputs, so that completed work is reported."""

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
    """A text stream that continues after a write error, which it stores in ``lost``."""

    def __init__(self, inner: TextIO) -> None:
        self._inner = inner
        self.is_unused = True
        self.lost: OSError | None = None

    def write(self, text: str) -> int:
        """Write a text; after an error, drop it."""
        self.is_unused = self.is_unused and not text
        if self.lost is None:
            try:
                return self._inner.write(text)
            except OSError as error:
                self._lose(error)
        return len(text)

    def flush(self) -> None:
        """Write buffered text."""
        if self.lost is None:
            try:
                self._inner.flush()
            except OSError as error:
                self._lose(error)

    def _lose(self, error: OSError) -> None:
        self.lost = error
        # Otherwise Python would write the rest again at exit, and fail with exit code 120.
        with suppress(OSError):
            number, nowhere = self._inner.fileno(), os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, number)
            os.close(nowhere)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a stream has
        return getattr(self._inner, name)


@contextmanager
def lasting() -> Iterator[Stream]:
    """Suppress output errors within the block; yield the replacement of stdout."""
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
    """Occupy the descriptors of closed streams, read-only, so that lost output is detected."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError as error:
            if error.errno != errno.EBADF:
                raise
            os.open(os.devnull, os.O_RDONLY)  # gets the lowest number that is free


def _opened(stream: TextIO | None, number: int) -> TextIO:
    """Return a stream that writes UTF-8 in any locale, like all files that dbanon reads."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    if stream is not None:
        return stream
    return open(number, "w", encoding="utf-8", closefd=False)
