"""Anatomy: buckets of persons whose sensitive values all differ (Xiao and Tao, VLDB 2006).

Only secret random draws assign persons to buckets. A test checks that the module uses nothing else.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.outcome import Outcome, certify, publish
from dbanon.domain.assignment import Assignment, EncodedTable, GroupValues, LossReport, ValueColumn
from dbanon.domain.errors import Unsatisfiable
from dbanon.domain.policy import BUCKET, Policy, anatomy_level
from dbanon.domain.table import ColumnKind
from dbanon.formats.finders import RowCounts
from dbanon.formats.support import Mode, require

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.kernels.layout import Int32s, Int64s


def in_buckets(
    encoded: EncodedTable,
    policy: Policy,
    subjects: NDArray[np.int32] | None,
    draws: NDArray[np.uint64],
) -> Outcome:
    """Assign the persons of a table with one sensitive column to buckets of at least l values.

    draws: (n, 3). Raises PolicyError if a person has several rows, Unsatisfiable as ``deal``.
    """
    if subjects is not None:
        require(Mode.BUCKETS, RowCounts(policy, len(subjects), len(np.unique(subjects))))
    found = deal(encoded.sensitive[:, 0], draws, l=anatomy_level(policy) or 1)
    n_groups = found.n_groups
    number = ValueColumn(
        name=BUCKET,
        recoding=BUCKET,
        kind=ColumnKind.INTEGER,
        index=np.arange(n_groups, dtype=np.int32),
        labels=tuple(map(str, range(1, n_groups + 1))),
        loss=np.zeros(n_groups),
    )
    values = GroupValues((number,), n_groups)
    published = publish(encoded, policy, found, values=values)
    certify(published, policy, None, budget=0)
    loss = LossReport(
        n_rows=encoded.n_rows,
        n_suppressed=0,
        n_classes=n_groups,
        smallest_class=int(published.size.min()),
        ncp=0.0,
        columns={column.name: 0.0 for column in encoded.quasi},
    )
    return Outcome(found, values, loss)


def greatest_level(values: Int32s) -> int:
    """Return the greatest l for buckets of these codes, (n,), 0 for none.

    Eligibility condition of the paper: no value occurs more than n / l times.
    """
    return len(values) // int(np.bincount(values).max()) if len(values) else 0


def deal(values: Int32s, draws: NDArray[np.uint64], *, l: int) -> Assignment:
    """Return buckets of at least l persons, all with different values; all persons are assigned.

    values: (n,) sensitive codes; draws: (n, 3) secret, because draws and values determine the
    buckets. Raises Unsatisfiable if l is above ``greatest_level``.

    Algorithm Anatomize of the paper, O(n log n). While l values have persons left, a new bucket
    takes one random person of each of the l most frequent values (ties: lower code). The others,
    fewer than l, each join a random bucket without their value. Buckets are numbered by the least
    third draw of their persons, because the order of creation would reveal frequency.
    """
    greatest = greatest_level(values)
    if l > greatest:
        most = int(np.bincount(values).max(initial=0))
        msg = (
            f"a value is on {most:,} of {len(values):,} persons, more than one in l = {l},"
            " so some bucket would have it twice"
        )
        raise Unsatisfiable(msg, hint=f"--l {greatest}" if greatest > 1 else "leave out anatomy")
    order = np.lexsort((draws[:, 0], values))  # by value, at random within each
    group = np.empty(len(values), np.int32)
    dealt, left, n_groups = _rounds(np.bincount(values), l)
    group[order] = dealt
    for place in left:
        _join(group, values, order[place], n_groups=n_groups, draw=draws[order[place], 1])
    return Assignment(_numbered(group, draws[:, 2], n_groups), n_groups)


def _rounds(counts: Int64s, l: int) -> tuple[Int32s, list[int], int]:
    """Return the bucket of each person (-1 if left), the persons left, and how many buckets."""
    bucket = np.full(int(counts.sum()), -1, np.int32)
    place = (np.cumsum(counts) - counts).tolist()
    heap = [(-count, value) for value, count in enumerate(counts.tolist()) if count]
    heapify(heap)
    n_groups = 0
    while len(heap) >= l:
        for count, value in [heappop(heap) for _ in range(l)]:
            bucket[place[value]] = n_groups
            place[value] += 1
            if count < -1:
                heappush(heap, (count + 1, value))
        n_groups += 1
    return bucket, sorted(place[value] for _, value in heap), n_groups


def _join(group: Int32s, values: Int32s, person: int, *, n_groups: int, draw: np.uint64) -> None:
    """Put a remaining person into a random bucket without its value."""
    free = np.ones(n_groups, np.bool_)
    others = group[values == values[person]]
    free[others[others >= 0]] = False
    places = np.flatnonzero(free)
    group[person] = places[int(draw) % len(places)]


def _numbered(group: Int32s, draws: NDArray[np.uint64], n_groups: int) -> Int32s:
    """Renumber buckets by the least draw in each."""
    least = np.full(n_groups, np.iinfo(np.uint64).max)
    np.minimum.at(least, group, draws)
    number = np.empty(n_groups, np.int32)
    number[np.argsort(least, kind="stable")] = np.arange(n_groups, dtype=np.int32)
    return number[group]
