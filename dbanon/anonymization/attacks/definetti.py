"""Learn from the published classes which values occur with which persons (Kifer, SIGMOD 2009)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_matrix

from dbanon.anonymization.attacks.beliefs import possible_values
from dbanon.anonymization.attacks.scenario import Case, NotTried, Target, result

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from dbanon.anonymization.released.cells import CellColumn
    from dbanon.domain.assignment import EncodedColumn
    from dbanon.domain.report import Attack
    from dbanon.models.tally import Tally

_ROUNDS = 5
_NOTHING = 1e-12
_VALUES = 1_000  # of more there is nothing to learn from classes


def definetti(case: Case, generator: np.random.Generator) -> Iterator[Attack]:  # noqa: ARG001 - it draws nothing
    """Guess the likeliest value by naive Bayes, trained on the publication.

    Quasi-identifiers of all persons are known; their distribution by value is estimated from the
    cells (Turnbull, JRSS B 1976).
    """
    if not case.released.columns:
        raise NotTried("the relation has no quasi-identifiers")
    found = False
    for target in case.some_target():
        if len(target.whole) > _VALUES:
            continue
        found = True
        yield _tried(case, target)
    if not found:
        raise NotTried(f"every sensitive column has more than {_VALUES:,} values")


def _tried(case: Case, target: Target) -> Attack:
    pairs = [
        (cells, column)
        for cells, column in zip(case.released.columns, case.released.table.quasi, strict=True)
        if not cells.is_point
    ]
    n_codes = len(target.whole)
    tables = [_learned(cells, column, target.tally, n_codes) for cells, column in pairs]
    right = np.zeros(case.tried)
    for some, score in _scores(case, pairs, tables, target):
        right[some] = score.argmax(axis=1) == target.truth[some]
    return result(
        "deFinetti",
        target.name,
        chances=right,
        baseline=target.baseline,
        candidates=case.candidates,
        words="learns from the relation which values occur with which quasi-identifiers;"
        " no model bounds this",
    )


def _learned(
    cells: CellColumn, column: EncodedColumn, tally: Tally, n_values: int
) -> NDArray[np.float64]:
    """Return the probability of each code by value, relative to its label's, (c, m)."""
    label = cells.index[tally.classes].astype(np.int64)
    key = label * n_values + tally.values
    rows = np.bincount(key, tally.counts, minlength=len(cells.labels) * n_values)
    register = np.bincount(column.codes, minlength=column.size + 1) / len(column.codes)
    by_label = rows.reshape(-1, n_values).astype(np.float64)
    return self_consistent(by_label, Cover(cells, column.size), register)


def self_consistent(
    rows: NDArray[np.float64], cover: Cover, register: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the distribution of the rows of each value over codes, (c, m), by iteration.

    rows: (labels, m) frequency of each label with each value; register: (c,) the share of each code
    in the population. The rows of a label are repeatedly spread over its codes like the rows of the
    same value. One pseudo-row per value follows the register, so that no code is ruled out.
    """
    anybody = register[:, None]
    found = np.repeat(anybody, rows.shape[1], axis=1)
    for _ in range(_ROUNDS):
        total = cover.sums(found)
        share = np.divide(rows, total, out=np.zeros(rows.shape), where=total > _NOTHING)
        spread = found * cover.stacked(share) + anybody
        found = spread / spread.sum(axis=0)
    return found


class Cover:
    """Codes covered by the labels of a column; the last is NULL."""

    def __init__(self, cells: CellColumn, size: int) -> None:
        self._nulls, self._size, self._sets = cells.nulls, size, None
        self._lo, self._end = cells.lo.astype(np.int64), cells.hi.astype(np.int64) + 1
        self._end = np.maximum(self._end, self._lo)
        if cells.members is not None:
            start, codes = cells.members
            shape = (len(cells.labels), size)
            self._sets = csr_matrix((np.ones(len(codes)), codes, start), shape)

    def sums(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum over the codes of each label of a table (c, m), as (labels, m)."""
        if self._sets is not None:
            found = self._sets @ table[: self._size]
        else:
            total = np.zeros((self._size + 1, table.shape[1]))
            np.cumsum(table[: self._size], axis=0, out=total[1:])
            found = total[self._end] - total[self._lo]
        return np.asarray(np.maximum(found, 0.0) + self._nulls[:, None] * table[self._size])

    def stacked(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum over the labels that cover each code of a table (labels, m), as (c, m)."""
        found = np.zeros((self._size + 1, table.shape[1]))
        if self._sets is not None:
            found[: self._size] = self._sets.T @ table
        else:
            np.add.at(found, self._lo, table)
            np.add.at(found, self._end, -table)
            found = np.maximum(np.cumsum(found, axis=0), 0.0)
        found[self._size] = table[self._nulls].sum(axis=0)
        return found


def _scores(
    case: Case,
    pairs: Sequence[tuple[CellColumn, EncodedColumn]],
    tables: Sequence[NDArray[np.float64]],
    target: Target,
) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Yield slices of persons, and the probability of each value relative to the cells' codes."""
    inside = [
        Cover(cells, column.size).sums(table)
        for (cells, column), table in zip(pairs, tables, strict=True)
    ]
    parts = possible_values(
        case.coverage, target.tally, 1 / case.n_candidates, n_codes=len(target.whole)
    )
    for entries in parts:
        mass = entries.mass
        for (cells, column), table, total in zip(pairs, tables, inside, strict=True):
            codes = column.codes[case.rows[entries.person]]
            below = total[cells.index[entries.classes], entries.value]
            share = np.ones(len(mass))
            np.divide(table[codes, entries.value], below, out=share, where=below > 0)
            mass *= share
        yield entries.some, entries.sums()
