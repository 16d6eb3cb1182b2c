"""The work of one process of several, which writes nothing, and its results as they come in."""

from __future__ import annotations

import queue
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow.compute as pc

from dbanon.anonymization.interfaces import timed
from dbanon.anonymization.regions.grouping import (
    Border,
    Groups,
    border_of,
    group_rows,
    improve_border,
)
from dbanon.db import transfer
from dbanon.db.session import connect
from dbanon.domain.errors import DatabaseError, DbanonError
from dbanon.domain.outcomes import Stages
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from dbanon.anonymization.regions.cutting import Domains
    from dbanon.db.transfer import Snapshot
    from dbanon.domain.assignment import Slice
    from dbanon.domain.policy import Policy
    from dbanon.domain.table import TableInfo


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Job:
    """The shared data of all blocks of a publication.

    It holds values of the table, so it has no text representation that a log could contain, and no
    dsn.
    """

    info: TableInfo
    policy: Policy
    domains: Domains
    snapshot: Snapshot
    seed: int


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Grouped:
    """Rows of a block, sorted by key, with their groups.

    places: (n, s) int32, index of each sensitive value among the values of its column.
    """

    keys: pa.Table
    places: NDArray[np.int32]
    groups: Groups
    border: Border


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class ReadBlock:
    """Read the rows of a block, and group them."""

    slices: tuple[Slice, ...]

    def perform(self, job: Job, settings: Settings) -> Grouped:
        """Return the groups; raises Unsatisfiable if the block does not meet the policy alone."""
        domains, names = job.domains, job.domains.sensitive_names
        with connect(settings) as session, transfer.sharing(session, job.snapshot, job.info):
            source = transfer.read_block(session, job.info, job.policy, self.slices)
        source = source.take(_in_order(source.keys))
        places = np.empty((source.keys.num_rows, len(names)), np.int32)
        for i, name in enumerate(names):
            places[:, i] = domains.values[name].places(source.columns[name])
        table = domains.encoded(source.columns, class_label=job.policy.class_label)
        keys = source.keys
        del source
        policy = timed(job.policy, share=table.n_rows / job.domains.n_rows)
        groups = group_rows(table, policy, seed=job.seed, stages=Stages())
        return Grouped(keys, places, groups, border_of(table, groups, policy))


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class ImproveBorder:
    """Improve the groups at the borders of several regions.

    codes: (n, d) int32; sensitive: (n, s) int32; before: (n,) the present group of each row.
    """

    codes: NDArray[np.int32]
    sensitive: NDArray[np.int32]
    before: NDArray[np.int32]

    def perform(self, job: Job, settings: Settings) -> Groups | None:  # noqa: ARG002 - as the others
        """Return the new groups, None if they do not change."""
        label = job.policy.class_label
        table = job.domains.coded(self.codes, self.sensitive, class_label=label)
        return improve_border(table, self.before, job.policy, seed=job.seed)


if TYPE_CHECKING:
    Task = ReadBlock | ImproveBorder
    Result = Grouped | Groups | None | DbanonError
    Run = Callable[[Sequence[Task]], Iterator[tuple[int, Result]]]
    """Performs tasks, and yields the number of each with its result as they come in."""

_LOOKS = 0.2  # seconds between two looks at whether to wait on


def perform(job: Job, task: Task, settings: Settings | None = None) -> Result:
    """Perform a task, and return its error instead of raising it.

    settings: by default those of the process. A raised error would be logged with the arguments of
    the task, and errors of libraries may quote values.
    """
    try:
        return task.perform(job, settings or Settings.load())
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


def _in_order(keys: pa.Table) -> NDArray[np.int64]:
    """Return the rows in the order of their keys, independent of the reading order."""
    names = [f"k{i}" for i in range(keys.num_columns)]
    numbered = keys.rename_columns(names)
    order = pc.sort_indices(numbered, [(name, "ascending") for name in names])
    return np.asarray(order, np.int64)
