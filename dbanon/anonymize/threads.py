"""Independent tasks on all processors that this process may use."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")
R = TypeVar("R")


def processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_threads(task: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Return a task's results in the order of the items; kernels run side by side."""
    with ThreadPoolExecutor(processors()) as threads:
        return list(threads.map(task, items))
