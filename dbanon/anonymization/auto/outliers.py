"""Leaving out the rows that cost the others most."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.auto.rounds import LIGHT, coordinates, improve
from dbanon.anonymization.auto.space import total_cost

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.anonymization.auto.space import Space

_STEPS = 4
_ROUNDS = 3


def leave_out(
    space: Space, label: NDArray[np.int32], *, budget: int, seed: int
) -> NDArray[np.int32]:
    """Return the labels with at most ``budget`` rows at -1, if that lowers the total cost.

    A row that is left out costs the sum of all weights. In each of a few steps one row leaves
    every cluster where it saves more than that, and the others are searched again; a step that
    does not lower the total, or breaks a group, is taken back and is the last.
    """
    price = sum(column.rule.weight for column in space.columns)
    rows, kept = np.arange(space.n_rows), label
    best = total_cost(space, label)
    for step in range(_STEPS):
        share = -(-(budget - (space.n_rows - len(rows))) // (1 if step == _STEPS - 1 else 2))
        part = space.take(rows)
        out = _dearest(part, kept, price=price)[:share]
        if len(out) == 0:
            break
        stay = np.setdiff1d(np.arange(len(rows)), out)
        smaller = part.take(stay)
        found = np.unique(kept[stay], return_inverse=True)[1].astype(np.int32)
        points = coordinates(smaller)
        for number in range(_ROUNDS):
            found = improve(
                smaller, found, points, effort=LIGHT, seed=seed, number=(step + 1) * 1000 + number
            )
        total = total_cost(smaller, found) + price * (space.n_rows - len(stay))
        if total >= best or not _holds(smaller, found):
            break
        rows, kept, best = rows[stay], found, total
    result = np.full(space.n_rows, -1, np.int32)
    result[rows] = kept
    return result


def _dearest(space: Space, label: NDArray[np.int32], *, price: float) -> NDArray[np.int64]:
    """Return one row of each cluster where leaving saves more than the price, best first."""
    from dbanon.kernels.auto.clusters import leaving_gains

    gains = leaving_gains(space.codes, *space.costs, label.copy(), int(label.max()) + 1)
    order = np.argsort(-gains, kind="stable")
    order = order[gains[order] > price]
    _, first = np.unique(label[order], return_index=True)
    return order[np.sort(first)]


def _holds(space: Space, label: NDArray[np.int32]) -> bool:
    from dbanon.kernels.auto.diversity import labels_hold, make_rules

    rules = make_rules(*space.rules, space.sensitive)
    sizes = np.bincount(label)
    return bool(sizes.min() >= space.k and labels_hold(rules, label, len(sizes)))
