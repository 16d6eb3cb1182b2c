"""Intervals of ordered values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dbanon.anonymization.encoding.text import value_texts
from dbanon.anonymization.ranges import ends_of_literal, literal_of, seen_in_pairs
from dbanon.anonymization.recodings.cells import cells_literal, cells_text, range_literal
from dbanon.anonymization.recodings.groups import column_boxes, distinct_pairs, value_column
from dbanon.anonymization.recodings.snap import snap_bounds
from dbanon.domain.policy import PAIRS
from dbanon.domain.table import Structure

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from dbanon.domain.assignment import Assignment, EncodedColumn, ValueColumn


@dataclass(frozen=True, slots=True)
class Interval:
    """The least and the greatest value, as a literal of a PostgreSQL range type.

    Both bounds are inclusive; those of a column that has a floor are the ends of cells. A group of
    NULLs publishes NULL; one that mixes NULL and values publishes the range of everything, which
    says nothing of either. ``bounds`` is the same, of which readers are served the two bounds, and
    ``center``, of which they are served the middle and the radius: of these, ranges that readers
    cannot tell apart are one label, that of all of them.
    """

    recoding: str = "interval"
    accepts: ClassVar[frozenset[Structure]] = frozenset({Structure.LINE})

    def publish(self, column: EncodedColumn, assignment: Assignment) -> ValueColumn:
        """Return a range for every group; O(n) and one text for each distinct range."""

        def served(label: str | None) -> str | None:
            return _as_read(column, self.recoding, label) if self.recoding in PAIRS else label

        if column.bands is not None:
            return _publish_cells(
                column,
                assignment,
                recoding=self.recoding,
                literal=partial(cells_literal, column, column.bands),
                mixed="(,)",
                served=served,
            )
        return _publish(
            column,
            assignment,
            recoding=self.recoding,
            literal=partial(range_literal, column),
            mixed="(,)",
            served=served,
        )


def _as_read(column: EncodedColumn, recoding: str, label: str | None) -> str:
    """Return the literal that readers of two columns see in place of a label."""
    ends = ends_of_literal(column.kind, label or "(,)")
    seen = seen_in_pairs(column.kind, recoding, ends)
    if (seen.least, seen.most) == (None, None):
        return "(,)"
    if not column.kind.is_moment and label and (seen.least, seen.most) == (ends.least, ends.most):
        return label  # with all its digits
    return literal_of(column.kind, seen)


@dataclass(frozen=True, slots=True)
class IntervalText:
    """The same as text for people: ``[30, 39]``, ``30`` when all are equal, ``*`` when mixed."""

    accepts = frozenset({Structure.LINE, Structure.ORDER})

    def publish(self, column: EncodedColumn, assignment: Assignment) -> ValueColumn:
        """Return a text for every group; O(n) and one text for each distinct range."""
        if column.bands is not None:
            of_cells = partial(cells_text, column.bands)
            return _publish_cells(
                column, assignment, recoding="interval-text", literal=of_cells, mixed="*"
            )

        def literal(lo: str, hi: str) -> str:
            return lo if lo == hi else f"[{lo}, {hi}]"

        return _publish(column, assignment, recoding="interval-text", literal=literal, mixed="*")


def _same(label: str | None) -> str | None:
    return label


def _publish(
    column: EncodedColumn,
    assignment: Assignment,
    *,
    recoding: str,
    literal: Callable[[str, str], str],
    mixed: str,
    served: Callable[[str | None], str | None] = _same,
) -> ValueColumn:
    boxes = column_boxes(column, assignment)
    lo, hi, place = distinct_pairs(boxes, column.size)
    labels: list[str | None] = [None if low == column.size else mixed for low in lo]
    ranges = np.flatnonzero(hi < column.size)
    lows, highs, widths = _bounds(column, lo[ranges], hi[ranges])
    for i, low, high in zip(ranges.tolist(), lows, highs, strict=True):
        labels[i] = literal(low, high)
    labels = [*map(served, labels)]
    loss = boxes.loss
    if widths is not None:
        wider = np.where(lo < hi, 1.0, 0.0)
        wider[ranges] = widths
        loss = wider[place]
    return value_column(column, recoding, labels=labels, place=place, loss=loss, size=boxes.size)


def _publish_cells(
    column: EncodedColumn,
    assignment: Assignment,
    *,
    recoding: str,
    literal: Callable[[int, int], str],
    mixed: str,
    served: Callable[[str | None], str | None] = _same,
) -> ValueColumn:
    boxes = column_boxes(column, assignment)
    lo, hi, place = distinct_pairs(boxes, column.size)
    labels = [
        served(
            (None if low == column.size else mixed) if high == column.size else literal(low, high)
        )
        for low, high in zip(lo.tolist(), hi.tolist(), strict=True)
    ]
    return value_column(
        column, recoding, labels=labels, place=place, loss=boxes.loss, size=boxes.size
    )


def _bounds(
    column: EncodedColumn, lo: NDArray[np.int64], hi: NDArray[np.int64]
) -> tuple[list[str], list[str], list[float] | None]:
    """Return the texts of the bounds, and the loss of each range when a grid widened it."""
    codes, place = np.unique(np.concatenate([lo, hi]), return_inverse=True)
    low, high = place[: len(lo)].tolist(), place[len(lo) :].tolist()
    if column.rule.snap is None:
        texts = value_texts(column.kind, column.values[codes])
        return [texts[i] for i in low], [texts[i] for i in high], None
    snapped = snap_bounds(column, codes)
    widths = [snapped.high[j] - snapped.low[i] for i, j in zip(low, high, strict=True)]
    return (
        [snapped.low_texts[i] for i in low],
        [snapped.high_texts[i] for i in high],
        # compared first: a quotient of such integers may be too large for a float
        [float(bool(snapped.span)) if w >= snapped.span else w / snapped.span for w in widths],
    )
