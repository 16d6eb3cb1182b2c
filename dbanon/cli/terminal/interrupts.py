"""Ctrl-C during a publication."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager, suppress
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from dbanon.domain.progress import Stages

_STOPPING = "stopping: what was found so far is used (Ctrl-C again to give up)"
_TOO_LATE = "too late to stop: it is being committed (Ctrl-C again to give up)"
# The last stage of a publication; what follows it is the commit.
_LAST_STAGE = "record"
_STDERR = 2


class OnInterrupt(StrEnum):
    """The result of a search that Ctrl-C stops."""

    DISCARD = "discard"
    PUBLISH = "publish"


@contextmanager
def interruptible(
    stages: Stages, on_interrupt: OnInterrupt = OnInterrupt.DISCARD
) -> Iterator[None]:
    """End the block at Ctrl-C; with ``publish``, end only its search at the first one.

    During the commit the first Ctrl-C only warns: the outcome of an interrupted commit would have
    to be queried. A process that was started with SIGINT ignored keeps that.
    """
    warned = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal warned
        if _LAST_STAGE in stages.seconds and not warned:
            warned = True
            _tell(_TOO_LATE)
        elif on_interrupt is OnInterrupt.PUBLISH and not (stages.stopped or warned):
            stages.stopped = True
            _tell(_STOPPING)
        else:
            signal.default_int_handler(number, frame)

    before = signal.getsignal(signal.SIGINT)
    ours = before not in {signal.SIG_IGN, None}
    if ours:
        signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGINT, before)


def _tell(text: str) -> None:
    # A handler may run in the middle of a write to sys.stderr, which cannot be entered twice.
    with suppress(OSError):
        os.write(_STDERR, f"\n{text}\n".encode())
