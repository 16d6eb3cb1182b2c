"""How far apart two values of a column are, for arrays of codes.

A value distance takes a column and two arrays of its codes that broadcast against each other, and
returns the distances in the broadcast shape. NULL and NULL are 0 apart, NULL and a value 1, which
is the maximum of every distance here but those that divide by a deviation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dbanon.anonymization.loss.costs import height_costs, pack
from dbanon.domain.assignment import EncodedColumn
from dbanon.domain.errors import PolicyError
from dbanon.domain.table import ColumnKind, Structure, quote_identifier

if TYPE_CHECKING:
    from numpy.typing import NDArray

Codes: TypeAlias = "NDArray[np.int32]"
Distances: TypeAlias = "NDArray[np.float64]"
_NUMBERS = {ColumnKind.INTEGER, ColumnKind.DECIMAL, ColumnKind.FLOAT}
ValueDistance = Callable[[EncodedColumn, Codes, Codes], Distances]


def num(column: EncodedColumn, a: Codes, b: Codes) -> Distances:
    """Return the difference over the range of the whole column; columns on a line only."""
    return _apart(column.position, a, b)


def z(column: EncodedColumn, a: Codes, b: Codes) -> Distances:
    """Return the difference over the standard deviation of the column's rows, 0 if that is 0."""
    present = column.position[column.codes[column.codes < column.size]]
    spread = present.std() if present.size else 0.0
    scores = column.position / spread if spread > 0.0 else np.zeros(column.size)
    return _apart(scores, a, b)


def log(column: EncodedColumn, a: Codes, b: Codes) -> Distances:
    """Return the difference of the logarithms over their range; for growth on a ratio scale.

    Columns of numbers only; raises PolicyError for a value that has no logarithm.
    """
    if (column.values <= 0).any():
        msg = f"column {quote_identifier(column.name)} holds values that are no positive numbers"
        raise PolicyError(msg, hint="choose another distance, such as manhattan")
    logs = np.log(column.values.astype(np.float64))
    width = float(np.ptp(logs)) if logs.size else 0.0
    return _apart(logs / width if width > 0.0 else np.zeros(column.size), a, b)


def rank(column: EncodedColumn, a: Codes, b: Codes) -> Distances:
    """Return the steps between the values over the steps from the first value to the last."""
    return _apart(np.arange(column.size) / max(column.size - 1, 1), a, b)


def ord(column: EncodedColumn, a: Codes, b: Codes) -> Distances:  # noqa: A001 - the paper's name
    """Return the steps between the values over the number of values (DMKD 2005)."""
    return _apart(np.arange(column.size) / max(column.size, 1), a, b)


def eq(
    column: EncodedColumn,  # noqa: ARG001 - the type's; codes tell
    a: Codes,
    b: Codes,
) -> Distances:
    """Return 0 where the values are equal and 1 elsewhere."""
    differs: Distances = (a != b).astype(np.float64)
    return differs


def tax(column: EncodedColumn, a: Codes, b: Codes) -> Distances:
    """Return the height of the lowest common ancestor over that of the tree (DASFAA 2007).

    An ultrametric, 0 or 1 in a tree of height 1. Columns with a taxonomy only. O(pairs of
    distinct codes) besides the lookup.
    """
    from dbanon.kernels.boxes.costs import box_costs

    # each pair of distinct codes once
    (rows, row), (columns, place) = (np.unique(codes, return_inverse=True) for codes in (a, b))
    lo, hi = np.minimum.outer(rows, columns), np.maximum.outer(rows, columns)
    costs = box_costs(*pack([height_costs(column)]), lo.reshape(-1, 1), hi.reshape(-1, 1))
    shares: Distances = costs.reshape(lo.shape)[row.reshape(a.shape), place.reshape(b.shape)]
    return shares


def edit(column: EncodedColumn, a: Codes, b: Codes) -> Distances:
    """Return the least number of edits between two texts over the length of the longest one.

    An edit inserts, deletes or replaces one character (Levenshtein). Columns of texts only.
    O(length^2) for each pair of distinct codes.
    """
    texts = column.values.astype(np.str_)
    lengths = np.char.str_len(texts)
    longest = max(int(lengths.max(initial=0)), 1)
    letters = texts.astype(f"U{longest}").view(np.uint32).reshape(len(texts), longest).T
    (rows, row), (columns, place) = (np.unique(codes, return_inverse=True) for codes in (a, b))
    apart = (rows[:, None] != columns).astype(np.float64)  # as NULL and a value are
    some = columns[columns < column.size]
    for i, code in enumerate(rows[rows < column.size].tolist()):
        text = letters[: lengths[code], code]
        edits = _edits(text, letters[:, some], lengths[some])
        apart[i, : len(some)] = edits / longest
    found: NDArray[np.float64] = apart[row.reshape(a.shape), place.reshape(b.shape)]
    return found


def _edits(
    text: NDArray[np.uint32], others: NDArray[np.uint32], lengths: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the edits from one text to each of others, (m,); others: (longest, m), 0 past ends."""
    steps = np.arange(len(others) + 1)[:, None]
    edits = np.broadcast_to(steps, (len(steps), len(lengths)))
    for i, letter in enumerate(text.tolist(), 1):
        found = np.empty(edits.shape, np.int64)
        found[0] = i
        np.minimum(edits[1:] + 1, edits[:-1] + (others != letter), out=found[1:])
        # and what is inserted after it: one edit for each step down
        edits = np.minimum.accumulate(found - steps, axis=0) + steps
    return edits[lengths, np.arange(len(lengths))]


def num_or_tax(column: EncodedColumn, a: Codes, b: Codes) -> Distances:
    """Return ``num`` of a column on a line, ``rank`` of one in order and ``tax`` of any other."""
    chosen = {Structure.LINE: num, Structure.ORDER: rank, Structure.TREE: tax}
    return chosen[column.structure](column, a, b)


def z_or_tax(column: EncodedColumn, a: Codes, b: Codes) -> Distances:
    """Return ``z`` of a column on a line, ``ord`` of one in order and ``tax`` of any other."""
    chosen = {Structure.LINE: z, Structure.ORDER: ord, Structure.TREE: tax}
    return chosen[column.structure](column, a, b)


def log_or_tax(column: EncodedColumn, a: Codes, b: Codes) -> Distances:
    """Return ``log`` of a column of numbers, and of any other what ``num_or_tax`` does."""
    chosen = log if column.kind in _NUMBERS else num_or_tax
    return chosen(column, a, b)


def num_or_edit(column: EncodedColumn, a: Codes, b: Codes) -> Distances:
    """Return ``edit`` of texts that no taxonomy groups, and of others what ``num_or_tax`` does."""
    is_flat = column.taxonomy is not None and column.taxonomy.height <= 1
    chosen = edit if is_flat else num_or_tax
    return chosen(column, a, b)


def _apart(place: Distances, a: Codes, b: Codes) -> Distances:
    """Return the absolute differences of the codes' places; NULL has none."""
    places = np.append(place, np.nan)
    apart: Distances = np.abs(places[a] - places[b])
    missing = np.isnan(apart)
    apart[missing] = (a != b)[missing]
    return apart
