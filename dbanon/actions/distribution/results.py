"""Results of tasks in order of completion, for every executor."""

from __future__ import annotations

import queue
from typing import TYPE_CHECKING, Any, Protocol

from dbanon.domain.errors import DbanonError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dbanon.actions.distribution.tasks import Result, Task

    Run = Callable[[Sequence[Task]], Iterator[tuple[int, Result]]]
    """Performs tasks, and yields the number of each with its result as they come in."""

_LOOKS = 0.2  # seconds between two looks at whether to wait on


class Future(Protocol):
    """A future of the standard library or of Dask."""

    def add_done_callback(self, call: Callable[[Any], object], /) -> object:
        """Register a callback for completion."""
        ...

    def result(self) -> Any:  # noqa: ANN401 - whatever the task returns
        """Return the result, or raise its error."""
        ...


def completed(
    futures: dict[Future, int], *, stopped: Callable[[], bool]
) -> Iterator[tuple[int, Result]]:
    """Yield results in order of completion; raises the error of a future.

    No future or result is kept after it was yielded.
    """
    done: queue.SimpleQueue[Future] = queue.SimpleQueue()
    for future in futures:
        future.add_done_callback(done.put)
    while futures:
        if stopped():
            raise KeyboardInterrupt
        try:
            future = done.get(timeout=_LOOKS)
        except queue.Empty:
            continue
        yield futures.pop(future), future.result()


def retry_limit_reached() -> DbanonError:
    """Return the error of a task whose workers were lost repeatedly."""
    return DbanonError(
        "workers were lost again and again, each time with the same block: they may have too"
        " little memory; nothing was published",
        hint="lower --rows-per-block, or give each worker more memory",
    )
