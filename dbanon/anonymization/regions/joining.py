"""Joining what was grouped region by region into one publication, and measuring it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.loss.metrics import Publication
from dbanon.anonymization.outcome import outcome, publish
from dbanon.anonymization.registry import METRICS
from dbanon.domain.assignment import Assignment, GroupValues

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from dbanon.anonymization.interfaces import Requirement
    from dbanon.anonymization.outcome import Outcome
    from dbanon.anonymization.regions.domains import Domains
    from dbanon.anonymization.regions.grouping import Groups
    from dbanon.domain.assignment import ValueColumn
    from dbanon.domain.policy import Policy

# These compare each row with what is published of it, and nobody has all rows.
_OF_ROWS = frozenset(
    {"sse-ratio", "max-radius", "size-times-radius"}
    | {"il1", "il2", "il3", "il4", "il5", "il-overall", "il1s"}
)


@dataclass(frozen=True, eq=False)
class _Joined(Publication):
    """A publication of which the bounds of the groups are known, and not the codes of the rows."""

    lo: NDArray[np.int32]
    hi: NDArray[np.int32]

    @cached_property
    def boxes(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The least and the greatest code of each class, (n_classes, d) each."""
        shown = self.assignment.group >= 0
        class_of = np.zeros(len(self.lo), np.int32)
        class_of[self.assignment.group[shown]] = self.classes[shown]
        shape = (len(self.size), self.lo.shape[1])
        lo, hi = np.full(shape, np.iinfo(np.int32).max, np.int32), np.full(shape, -1, np.int32)
        np.minimum.at(lo, class_of, self.lo)
        np.maximum.at(hi, class_of, self.hi)
        return lo, hi


def join(
    parts: Sequence[Groups],
    moved: Sequence[tuple[NDArray[np.int64], Groups]],
    domains: Domains,
    sensitive: NDArray[np.int32],
    *,
    policy: Policy,
    requirement: Requirement,
) -> Outcome:
    """Return the outcome of all regions, their rows one region after the other.

    moved: rows that were grouped again, and their groups; sensitive: (n, s) the codes of all rows;
    requirement: of all of them. A group without rows is none. What takes a look at each row's own
    values is not measured.
    """
    tables = [*parts, *(groups for _, groups in moved)]
    group, kept = _numbered(parts, moved, tables)
    assignment = Assignment(group, sum(map(len, kept)))
    size = np.bincount(group[group >= 0], minlength=assignment.n_groups)
    values = GroupValues(_columns(tables, kept, size), assignment.n_groups)
    table = domains.table(domains.quasi, sensitive, class_label=policy.class_label)
    plain = publish(table, policy, assignment, values=values)
    joined = _Joined(
        plain.table,
        plain.assignment,
        plain.values,
        plain.k,
        plain.classes,
        plain.size,
        lo=np.concatenate([one.lo[of] for one, of in zip(tables, kept, strict=True)]),
        hi=np.concatenate([one.hi[of] for one, of in zip(tables, kept, strict=True)]),
    )
    metrics = {name: metric for name, metric in METRICS.items() if name not in _OF_ROWS}
    return outcome(joined, policy, requirement=requirement, metrics=metrics)


def _numbered(
    parts: Sequence[Groups],
    moved: Sequence[tuple[NDArray[np.int64], Groups]],
    tables: Sequence[Groups],
) -> tuple[NDArray[np.int32], list[NDArray[np.int32]]]:
    """Return the group of each row, numbered without gaps, and which groups of each table are."""
    ends = np.cumsum([len(one.lo) for one in tables])
    first = ends - [len(one.lo) for one in tables]
    group = np.concatenate(
        [np.where(one.group < 0, -1, one.group + at) for one, at in zip(parts, first, strict=False)]
    )
    for (rows, groups), at in zip(moved, first[len(parts) :], strict=True):
        group[rows] = groups.group + at
    is_used = np.zeros(int(ends[-1]), np.bool_)
    is_used[group[group >= 0]] = True
    number = np.append(np.cumsum(is_used) - 1, -1).astype(np.int32)
    kept = [np.flatnonzero(is_used[i:j]).astype(np.int32) for i, j in zip(first, ends, strict=True)]
    return number[group], kept


def _columns(
    tables: Sequence[Groups], kept: Sequence[NDArray[np.int32]], size: NDArray[np.int64]
) -> tuple[ValueColumn, ...]:
    return tuple(
        _column([one.values[i].of_groups(of) for one, of in zip(tables, kept, strict=True)], size)
        for i in range(len(tables[0].values))
    )


def _column(parts: Sequence[ValueColumn], size: NDArray[np.int64]) -> ValueColumn:
    """Return one column of several; the loss of a label is the mean over the rows that have it.

    size: the rows of each group, of all parts together.
    """
    index_of: dict[str | None, int] = {}
    nodes = dict.fromkeys(node for part in parts for node in part.nodes)
    index = np.concatenate(
        [
            np.array(
                [index_of.setdefault(label, len(index_of)) for label in part.labels], np.int32
            )[part.index]
            for part in parts
        ]
    )
    lost = np.concatenate([part.loss[part.index] for part in parts])
    rows = np.bincount(index, weights=size, minlength=len(index_of))
    total = np.bincount(index, weights=lost * size, minlength=len(index_of))
    return replace(
        parts[0],
        index=index,
        labels=tuple(index_of),
        loss=np.clip(total / rows, 0.0, 1.0),
        nodes=tuple(nodes),
    )
