"""The work of one process of several, which reaches no database, and its results as they come."""

from __future__ import annotations

import queue
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from dbanon.anonymization.interfaces import timed
from dbanon.anonymization.regions.grouping import Groups, border_of, group_rows, improve_border
from dbanon.domain.errors import DatabaseError, DbanonError
from dbanon.domain.outcomes import Stages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from dbanon.anonymization.regions.cutting import Domains, Places
    from dbanon.domain.assignment import EncodedTable
    from dbanon.domain.policy import Policy


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Job:
    """The shared data of all blocks of a publication.

    It holds values of the table, so it has no text representation that a log could contain, and no
    dsn.
    """

    policy: Policy
    domains: Domains
    seed: int

    def encoded(self, places: Places) -> EncodedTable:
        """Encode some rows on the scales of the whole table."""
        return self.domains.encoded(places, class_label=self.policy.class_label)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Grouped:
    """The groups of the rows of a block; border: the rows at its border, by index."""

    groups: Groups
    border: NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class GroupBlock:
    """Group the rows of a block."""

    places: Places

    def perform(self, job: Job) -> Grouped:
        """Return the groups; raises Unsatisfiable if the block does not meet the policy alone."""
        table = job.encoded(self.places)
        policy = timed(job.policy, share=table.n_rows / job.domains.n_rows)
        groups = group_rows(table, policy, seed=job.seed, stages=Stages())
        return Grouped(groups, border_of(table, groups, policy))


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class ImproveBorder:
    """Improve the groups at the borders of several regions; before: the present group of a row."""

    places: Places
    before: NDArray[np.int32]

    def perform(self, job: Job) -> Groups | None:
        """Return the new groups, None if they do not change."""
        return improve_border(job.encoded(self.places), self.before, job.policy, seed=job.seed)


if TYPE_CHECKING:
    Task = GroupBlock | ImproveBorder
    Make = Callable[[], Task]
    Result = Grouped | Groups | None | DbanonError
    Run = Callable[[Sequence[Make]], Iterator[tuple[int, Result]]]
    """Makes and performs tasks, and yields the number of each with its result as they come in."""

_LOOKS = 0.2  # seconds between two looks at whether to wait on


def perform(job: Job, task: Task) -> Result:
    """Perform a task, and return its error instead of raising it.

    A raised error would be logged with the arguments of the task, and errors of libraries may quote
    values.
    """
    try:
        return task.perform(job)
    except DbanonError as error:
        return error
    except MemoryError:
        return DbanonError(
            "a worker has too little memory for its block", hint="lower --rows-per-block"
        )
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told without its words
        return DatabaseError(f"a worker failed: {type(error).__name__}")


class Future(Protocol):
    """A future of the standard library or of Dask."""

    def add_done_callback(self, call: Callable[[Any], object], /) -> object:
        """Register a callback for completion."""
        ...

    def result(self) -> Any:  # noqa: ANN401 - whatever the task returns
        """Return the result, or raise its error."""
        ...


def completed(
    todo: Mapping[int, Make],
    submit: Callable[[Task], Future],
    *,
    room: Callable[[], int],
    stopped: Callable[[], bool],
) -> Iterator[tuple[int, Result]]:
    """Submit tasks, and yield results in order of completion; raises the error of a future.

    room: how many may be submitted and not completed; no others are made yet. No future or result
    is kept after it was yielded.
    """
    done: queue.SimpleQueue[Future] = queue.SimpleQueue()
    running: dict[Future, int] = {}
    waiting = iter([*todo.items()])
    while True:
        for number, make in islice(waiting, max(0, room() - len(running))):
            future = submit(make())
            running[future] = number
            future.add_done_callback(done.put)
        if not running:
            return
        while not stopped():
            with suppress(queue.Empty):
                future = done.get(timeout=_LOOKS)
                break
        else:
            raise KeyboardInterrupt
        yield running.pop(future), future.result()


def retry_limit_reached() -> DbanonError:
    """Return the error of a task whose workers were lost repeatedly."""
    return DbanonError(
        "workers were lost again and again, each time with the same block: they may have too"
        " little memory; nothing was published",
        hint="lower --rows-per-block, or give each worker more memory",
    )
