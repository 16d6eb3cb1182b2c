"""Rows as points whose squared distances add up like those of MDAV-generic."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.anonymization.loss.scores import ordinal_places, standardized
from dbanon.domain.table import Structure
from dbanon.domain.taxonomy import height_shares

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dbanon.domain.assignment import EncodedColumn, EncodedTable
    from dbanon.kernels.arrays import Floats

MOST_NODES = 64


class _Node(NamedTuple):
    """A coordinate that is ``length`` for the codes lo..hi of a column and 0 for the others."""

    variance: float
    column: EncodedColumn
    lo: int
    hi: int
    length: float


def mdav_points(table: EncodedTable) -> Floats:
    """Return a point for every row, (n, d); O(n d).

    Numbers and dates are z-scores; an ordinal column has its ranks over the number of values. A
    taxonomy has a coordinate for each node, so that two leaves are the height of their common
    ancestor over the height of the tree apart; a column without taxonomy is a tree of height 1.
    Exact for at most 64 such coordinates, otherwise the 64 with the greatest variance are kept.
    NULL is 1 apart from taxonomy values; among numbers and ranks it is the mean, 1 apart in its own
    coordinate.
    """
    numbers = [column for column in table.quasi if column.taxonomy is None]
    trees = [column for column in table.quasi if column.taxonomy is not None]
    nodes = [node for column in trees for node in _tree_nodes(column) if node.variance > 0.0]
    nodes = sorted(nodes, key=lambda node: -node.variance)[:MOST_NODES]
    nodes += [node for column in numbers for node in _null(column, 1.0) if node.variance > 0.0]
    scores = [np.nan_to_num(_score(column)) for column in numbers]
    scores = [score for score in scores if score.any()]
    points = np.zeros((table.n_rows, max(len(scores) + len(nodes), 1)))
    for i, score in enumerate(scores):
        points[:, i] = score
    for i, node in enumerate(nodes, len(scores)):
        codes = node.column.codes
        points[(codes >= node.lo) & (codes <= node.hi), i] = node.length
    return points


def _score(column: EncodedColumn) -> Floats:
    """Return the centered values of the rows, (n,), NaN for NULL."""
    if column.structure is Structure.LINE:
        return standardized(column)
    places = np.append(ordinal_places(column), np.nan)[column.codes]
    present = places[~np.isnan(places)]
    scores: Floats = places - (present.mean() if present.size else 0.0)
    return scores


def _tree_nodes(column: EncodedColumn) -> Iterator[_Node]:
    """Yield the nodes below the root, each with the difference to its parent's squared height."""
    taxonomy = column.taxonomy
    if taxonomy is None:
        return
    squares = height_shares(taxonomy) ** 2
    for node in range(1, len(squares)):
        length = ((squares[taxonomy.parent[node]] - squares[node]) / 2 * column.rule.weight) ** 0.5
        lo, hi = int(taxonomy.leaf_lo[node]), int(taxonomy.leaf_hi[node])
        yield _Node(_variance(column, lo, hi, length=length), column, lo, hi, length)
    yield from _null(column, 1.0 - float(squares[0]) / 2)


def _null(column: EncodedColumn, square: float) -> Iterator[_Node]:
    null, length = column.size, (square * column.rule.weight) ** 0.5
    yield _Node(_variance(column, null, null, length=length), column, null, null, length)


def _variance(column: EncodedColumn, lo: int, hi: int, *, length: float) -> float:
    share = float(((column.codes >= lo) & (column.codes <= hi)).mean())
    return share * (1.0 - share) * length * length
