"""Group parts of a table apart, for a release that keeps what it has and only adds classes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.loss.metrics import publication, report
from dbanon.anonymization.pipeline import Outcome, recoding_of
from dbanon.domain.assignment import Assignment, GroupValues, LossReport, ValueColumn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from dbanon.domain.assignment import EncodedTable


_COARSE = 2.0  # classes that lose so many times as much as others may wait


def wait(encoded: EncodedTable, outcome: Outcome, *, loss: float, room: float) -> Outcome:
    """Leave out the coarsest classes, whose rows lose less when they are searched among more.

    loss: what a row that is published already loses in the mean, columns by their weights; room:
    how many rows may be left out.
    """
    published = publication(encoded, outcome.assignment, outcome.values, k=1)
    group, classes = outcome.assignment.group, published.classes
    shown = np.flatnonzero(classes >= 0)
    weights = [column.rule.weight for column in encoded.quasi]
    columns = [column.loss[column.index] for column in outcome.values.columns]
    of_class = np.zeros(len(published.size))
    of_class[classes[shown]] = np.average(columns, axis=0, weights=weights)[group[shown]]
    room -= published.n_suppressed
    left_out = np.zeros(len(of_class) + 1, np.bool_)
    for number in np.argsort(-of_class, kind="stable"):
        if of_class[number] > _COARSE * loss and published.size[number] <= room:
            left_out[number] = True
            room -= int(published.size[number])
    if not left_out.any():
        return outcome
    if left_out[:-1].all():
        return nobody(encoded)
    return without(encoded, outcome, left_out[classes])


def without(encoded: EncodedTable, outcome: Outcome, rows: NDArray[np.bool_]) -> Outcome:
    """Return an outcome without some of its rows, all of whose groups are among them."""
    group = np.where(rows, -1, outcome.assignment.group)
    stay = np.unique(group[group >= 0])
    number = np.full(outcome.assignment.n_groups + 1, -1, np.int32)
    number[stay] = np.arange(len(stay))
    assignment = Assignment(number[group], len(stay))
    columns = tuple(column.of_groups(stay) for column in outcome.values.columns)
    values = GroupValues(columns, len(stay))
    loss = report(publication(encoded, assignment, values, k=1), {})
    return Outcome(assignment, values, replace(loss, sensitive_aware=outcome.loss.sensitive_aware))


def nobody(encoded: EncodedTable) -> Outcome:
    """Return the outcome of a search that leaves all rows out."""
    columns = tuple(
        ValueColumn(
            name=column.name,
            recoding=recoding_of(column),
            kind=column.kind,
            index=np.zeros(0, np.int32),
            labels=(),
            loss=np.zeros(0),
        )
        for column in encoded.quasi
    )
    size = encoded.n_rows
    lost = dict.fromkeys((column.name for column in columns), 1.0)
    return Outcome(
        Assignment(np.full(size, -1, np.int32), 0),
        GroupValues(columns, 0),
        LossReport(size, size, 0, 0, 1.0, lost, sensitive_aware=False),
    )


def join(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the outcome of all parts, their rows one after the other.

    The losses are the means over all rows; metrics, which are none, are left out.
    """
    groups, start = [], 0
    for one in outcomes:
        group = one.assignment.group
        groups.append(np.where(group < 0, group, group + start).astype(np.int32))
        start += one.assignment.n_groups
    values = tuple(
        _joined(columns) for columns in zip(*(o.values.columns for o in outcomes), strict=True)
    )
    losses = [one.loss for one in outcomes]
    total = sum(loss.n_rows for loss in losses)

    def mean(numbers: Sequence[float]) -> float:
        weighted = (n * loss.n_rows for n, loss in zip(numbers, losses, strict=True))
        return sum(weighted) / total if total else 0.0

    is_weighted = any(loss.weighted_ncp is not None for loss in losses)
    return Outcome(
        Assignment(np.concatenate(groups), start),
        GroupValues(values, start),
        LossReport(
            n_rows=total,
            n_suppressed=sum(loss.n_suppressed for loss in losses),
            n_classes=sum(loss.n_classes for loss in losses),
            smallest_class=min((o.smallest_class for o in losses if o.n_classes), default=0),
            ncp=mean([loss.ncp for loss in losses]),
            columns={name: mean([o.columns[name] for o in losses]) for name in losses[0].columns},
            sensitive_aware=any(loss.sensitive_aware for loss in losses),
            weighted_ncp=mean([loss.asked for loss in losses]) if is_weighted else None,
        ),
    )


def _joined(columns: Sequence[ValueColumn]) -> ValueColumn:
    """Return the published values of one column for the groups of all parts."""
    starts = np.cumsum([0, *(len(column.labels) for column in columns)])
    parts = zip(columns, starts[:-1], strict=True)
    return replace(
        columns[0],
        index=np.concatenate([column.index + start for column, start in parts]).astype(np.int32),
        labels=tuple(label for column in columns for label in column.labels),
        loss=np.concatenate([column.loss for column in columns]),
    )
