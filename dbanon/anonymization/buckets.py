"""Anatomy: buckets of persons whose sensitive values all differ (Xiao and Tao, VLDB 2006).

Secret draws alone decide who is in which bucket. This module stands alone so that a test can see
that it takes no other number.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.outcome import Outcome, certify, publish
from dbanon.domain.assignment import Assignment, GroupValues, LossReport, ValueColumn
from dbanon.domain.errors import PolicyError, Unsatisfiable
from dbanon.domain.policy import BUCKET
from dbanon.domain.table import ColumnKind
from dbanon.formats.policy.anatomy import level

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.domain.assignment import EncodedTable
    from dbanon.domain.policy import Policy
    from dbanon.kernels.arrays import Int32s, Int64s


def in_buckets(
    encoded: EncodedTable,
    policy: Policy,
    subjects: NDArray[np.int32] | None,
    draws: NDArray[np.uint64],
) -> Outcome:
    """Deal the persons of a table with one sensitive column into buckets of l values at least.

    subjects, draws: as of a ``Problem``, three draws a row, with which ``deal`` works.
    A bucket publishes its number and nothing else, and no quasi-identifier loses anything.

    Raises PolicyError when a person has several rows, Unsatisfiable as ``deal`` does.
    """
    if subjects is not None and np.bincount(subjects).max(initial=0) > 1:
        msg = (
            "some person has several rows, and anatomy publishes the quasi-identifiers of each as"
            " they are: whoever knows them finds all buckets of the person, and what these share"
        )
        raise PolicyError(msg, hint="publish a view with one row a person, or leave anatomy out")
    found = deal(encoded.sensitive[:, 0], draws, l=level(policy) or 1)
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
    """Return the greatest l that buckets of these values can have, 0 of none.

    values: (n,) the sensitive value of each person in codes. No value may be on more than n / l of
    them: the paper's eligibility condition.
    """
    return len(values) // int(np.bincount(values).max()) if len(values) else 0


def deal(values: Int32s, draws: NDArray[np.uint64], *, l: int) -> Assignment:
    """Return buckets of at least l persons, all of different values; nobody is left out.

    values: as in ``greatest_level``; draws: (n, 3) random numbers of the persons. They are secret:
    with them and the values, anybody could repeat the deal. While l values have persons left, one
    random person of each of the l most frequent values is a new bucket, ties going to the lower
    code. Then fewer than l persons are left, no two of one value, and each joins a random bucket
    without this value. Buckets are numbered by the least third number of their persons, or they
    would be in falling order of how frequent their values are. Algorithm Anatomize of the paper;
    O(n log n).

    Raises Unsatisfiable when l is above ``greatest_level``.
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
    """Deal persons who are sorted by value; counts: (m,) how many have each.

    Returns the bucket of each, -1 for who is left, the places of those, and how many buckets.
    """
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
    """Put somebody who is left into a random bucket without the value."""
    free = np.ones(n_groups, np.bool_)
    others = group[values == values[person]]
    free[others[others >= 0]] = False
    places = np.flatnonzero(free)
    group[person] = places[int(draw) % len(places)]


def _numbered(group: Int32s, draws: NDArray[np.uint64], n_groups: int) -> Int32s:
    """Return the buckets in the order of the least of these numbers in each."""
    least = np.full(n_groups, np.iinfo(np.uint64).max)
    np.minimum.at(least, group, draws)
    number = np.empty(n_groups, np.int32)
    number[np.argsort(least, kind="stable")] = np.arange(n_groups, dtype=np.int32)
    return number[group]
