"""The one reading of published labels: which codes of the source each may stand for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.ranges import ends_of_literal, number_of
from dbanon.anonymization.released.cells import CellColumn, Members
from dbanon.anonymization.released.line import NAN, Cell, Line, ends_of_text
from dbanon.domain.policy import DATE_PART, GLOBAL, PAIRS
from dbanon.domain.table import Structure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from dbanon.domain.assignment import EncodedColumn

    Reader = Callable[[str | None], Cell]

POINTS = frozenset({"mean", "midpoint", "median", "mode"})
"""The recodings whose labels stand for a class."""

_ELEMENT = re.compile(r'"((?:[^"\\]|\\.)*)"|([^,"]+)', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_OF_LINES = {
    "interval": ends_of_literal,
    **dict.fromkeys(("interval-text", DATE_PART), ends_of_text),
}
_OF_STRUCTURE = {
    Structure.LINE: "interval",
    Structure.ORDER: "interval-text",
    Structure.TREE: "label",
}


def read_column(
    column: EncodedColumn,
    recoding: str,
    *,
    labels: Sequence[str | None],
    index: NDArray[np.int32],
) -> CellColumn:
    """Return what readers see of a column; labels: its distinct texts, index: of each class."""
    members = None
    if recoding == "set":
        cells, members = _sets(column, labels)
    else:
        read = _reader(column, recoding)
        cells = [read(label) for label in labels]
    lo, hi, low, high, nulls = zip(*cells, strict=True) if cells else ((),) * 5
    return CellColumn(
        name=column.name,
        recoding=recoding,
        kind=column.kind,
        is_point=recoding in POINTS and not column.rule.keep,
        labels=tuple(labels),
        index=index,
        lo=np.array(lo, np.int32),
        hi=np.array(hi, np.int32),
        nulls=np.array(nulls, np.bool_),
        low=np.array(low, np.float64),
        high=np.array(high, np.float64),
        members=members,
    )


def _reader(column: EncodedColumn, recoding: str) -> Reader:
    """Return what reads a label; that of NULL alone covers NULL, unless the recoding says more."""
    if recoding == GLOBAL:
        recoding = _OF_STRUCTURE[column.structure]
    if recoding in PAIRS:  # whose ends were written as a literal
        recoding = "interval"
    everything = _everything(column)
    if recoding == "suppress":
        return lambda _: everything
    of_null = everything if recoding == "cell-suppression" else Cell(0, -1, nulls=True)
    read = _known(column, recoding)
    return lambda label: of_null if label is None else read(label)


def _known(column: EncodedColumn, recoding: str) -> Callable[[str], Cell]:
    """Return what reads the label of values."""
    if recoding in POINTS | {"cell-suppression"}:
        return _values(column)
    if column.structure is Structure.LINE:
        line, ends = Line(column), _OF_LINES[recoding]
        return lambda label: line.cell(ends(column.kind, label))
    if column.structure is Structure.ORDER:
        return _ranks(column)
    return _nodes(column)


def _everything(column: EncodedColumn) -> Cell:
    low, high = (NAN, NAN) if column.structure is Structure.TREE else (0.0, 1.0)
    return Cell(0, column.size - 1, low, high, nulls=True)


def _codes(column: EncodedColumn) -> Callable[[str], int | None]:
    """Return what finds the code of a value by its text, None where the source lacks it."""
    if column.structure is Structure.LINE:
        return Line(column).code
    kind = column.kind if column.kind.is_ordered else None

    def key(text: str) -> int | float | str:
        try:
            return text if kind is None else number_of(kind, text)
        except ValueError:
            return text

    found = {key(text): code for code, text in reversed(list(enumerate(column.values.tolist())))}
    return lambda text: found.get(key(text))


def _values(column: EncodedColumn) -> Callable[[str], Cell]:
    """Return what reads one value, or what stands for some, which need not be of the source."""
    code_of = _codes(column)
    line = Line(column) if column.structure is Structure.LINE else None

    def read(label: str) -> Cell:
        code = code_of(label)
        lo, hi = (0, -1) if code is None else (code, code)
        place = NAN
        if line is not None:
            place = line.place(number_of(column.kind, label))
        elif code is not None and column.structure is Structure.ORDER:
            place = float(column.position[code])
        return Cell(lo, hi, place, place)

    return read


def _ranks(column: EncodedColumn) -> Callable[[str], Cell]:
    """Return what reads the range of an order; of several readings it covers all."""
    rank_of = {text: rank for rank, text in enumerate(column.values.tolist())}
    everything = _everything(column)

    def read(label: str) -> Cell:
        if label == "*":
            return everything
        ends = [(label, label)]
        inside = label[1:-1]
        cuts = [at for at in range(len(inside)) if inside.startswith(", ", at)]
        ends += [(inside[:at], inside[at + 2 :]) for at in cuts]
        ranks = [(rank_of[a], rank_of[b]) for a, b in ends if a in rank_of and b in rank_of]
        if not ranks:
            return Cell(0, -1)
        lo, hi = min(a for a, _ in ranks), max(b for _, b in ranks)
        return Cell(lo, hi, float(column.position[lo]), float(column.position[hi]))

    return read


def _nodes(column: EncodedColumn) -> Callable[[str], Cell]:
    """Return what reads a node; the root, and nothing else, may stand for NULL, too."""
    tree = column.taxonomy
    assert tree is not None  # noqa: S101 - a column without an order has one
    found: dict[str, tuple[int, int]] = {}
    leaves = zip(tree.labels, tree.leaf_lo.tolist(), tree.leaf_hi.tolist(), strict=True)
    for label, lo, hi in leaves:  # of nodes of one name it covers all
        least, most = found.get(label, (lo, hi))
        found[label] = min(least, lo), max(most, hi)

    def read(label: str) -> Cell:
        lo, hi = found[label] if label in found else _begun(column, label)
        return Cell(lo, hi, nulls=label == tree.labels[0])

    return read


def _begun(column: EncodedColumn, label: str) -> tuple[int, int]:
    """Return the leaves that a label of first characters stands for, of a source that changed."""
    rule, prefix = column.rule, label.rstrip("*")
    tree = column.taxonomy
    if rule.taxonomy is not None or prefix == label or tree is None:
        return 0, -1
    begins = (prefix, *(rule.pooled or ())) if not prefix.strip("0") else (prefix,)
    leaves = [leaf for leaf, text in enumerate(tree.leaf_labels) if text.startswith(begins)]
    if column.cells is not None:  # whose rows have the code of its first leaf
        leaves = tree.leaf_lo[column.cells[leaves]].tolist()
    return (min(leaves), max(leaves)) if leaves else (0, -1)


def _sets(column: EncodedColumn, labels: Sequence[str | None]) -> tuple[list[Cell], Members]:
    """Read array literals."""
    code_of = _codes(column)
    cells, members = [], []
    for label in labels:
        texts = elements(label or "{}")
        found = {code_of(text) for text in texts if text is not None}
        codes = np.array(sorted(code for code in found if code is not None), np.int32)
        lo, hi = (int(codes[0]), int(codes[-1])) if len(codes) else (0, -1)
        low = high = NAN
        if len(codes) and column.structure is not Structure.TREE:
            low, high = float(column.position[lo]), float(column.position[hi])
        cells.append(Cell(lo, hi, low, high, nulls=label is None or None in texts))
        members.append(codes)
    start = np.cumsum([0, *map(len, members)], dtype=np.int64)
    return cells, Members(start, np.concatenate([np.zeros(0, np.int32), *members]))


def elements(literal: str) -> list[str | None]:
    """Return the elements of an array literal."""
    return [
        None if plain.upper() == "NULL" else (plain or _ESCAPED.sub(r"\1", quoted))
        for quoted, plain in _ELEMENT.findall(literal[1:-1])
    ]
