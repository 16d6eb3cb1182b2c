"""Earth mover's distances in [0, 1] between distributions of sensitive values, and search rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.kernels import layout
from dbanon.models.base import EQUAL, HIERARCHICAL, ORDERED, Rule
from dbanon.models.tally import Tally, Whole, steps_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.domain.assignment import SensitiveDomain


def distance_from(
    classes: Tally, whole: Whole, share: NDArray[np.float64], *, distance: str
) -> NDArray[np.float64]:
    """Return the distance of each class from a distribution over the values, (m,)."""
    if distance == ORDERED:
        return _ordered(classes, share, present=whole.share > 0)
    if distance == HIERARCHICAL:
        return _hierarchical(classes, whole, share)
    above = classes.shares() - share[classes.values]
    return classes.total(np.maximum(above, 0.0))


def _ordered(
    classes: Tally, share: NDArray[np.float64], *, present: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return the sum over ranks of the mass carried to the next, by prefix sums; O(c log m)."""
    rank = np.cumsum(present) - 1
    steps = np.cumsum(share[present])
    sums = np.append(0.0, np.cumsum(steps))
    begin = rank[classes.values]
    end = np.append(begin[1:], 0)
    last = np.append(classes.start[1:], len(begin)) - 1
    end[last] = len(steps)
    total = np.cumsum(classes.shares())
    before = np.append(0.0, total)[classes.start]
    level = total - before[classes.classes]
    split = np.clip(np.searchsorted(steps, level, side="right"), begin, end)
    short = level * (split - begin) - (sums[split] - sums[begin])
    long = (sums[end] - sums[split]) - level * (end - split)
    moved = classes.total(short + long) + sums[begin[classes.start]]
    emd: NDArray[np.float64] = moved / max(len(steps) - 1, 1)
    return emd


def _hierarchical(classes: Tally, whole: Whole, share: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sum over the edges of the tree of the mass that crosses them."""
    steps = steps_of(whole.domain)
    mass = np.bincount(steps.node, weights=share[steps.leaf], minlength=len(steps.weight))
    order = np.argsort(steps.leaf, kind="stable")
    ends = np.cumsum(np.bincount(steps.leaf, minlength=len(share)))
    begin = np.append(0, ends)[classes.values]
    lengths = ends[classes.values] - begin
    total = float((steps.weight * mass).sum())
    if not lengths.sum():
        return np.zeros(classes.n_classes)
    entry = np.repeat(np.arange(len(lengths)), lengths)
    place = np.repeat(begin - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())
    node = steps.node[order[place]]
    keys = classes.classes[entry] * len(mass) + node
    found, where = np.unique(keys, return_inverse=True)
    there = np.bincount(where, weights=classes.shares()[entry])
    node, of_class = found % len(mass), found // len(mass)
    extra = steps.weight[node] * (np.abs(there - mass[node]) - mass[node])
    sums = np.bincount(of_class, weights=extra, minlength=classes.n_classes)
    emd: NDArray[np.float64] = np.maximum(total + sums, 0.0)
    return emd


def between(whole: Whole, least: NDArray[np.float64], most: NDArray[np.float64]) -> Rule:
    """Return the rule that the share of each value is within bounds; least, most: (m,)."""
    share = whole.share
    return layout.BETWEEN, [0.0, len(share), *share, *most, *least]


def closeness_rule(t: float, whole: Whole, *, distance: str) -> Rule:
    """Return the rule that a class is within t of the whole relation."""
    share = whole.share
    start = [len(share), *share]
    if distance == EQUAL:
        return layout.EQUAL, [t, *start]
    if distance == ORDERED:
        limit = t * max(int((share > 0).sum()) - 1, 1)
        return layout.ORDERED, [limit, *start, *np.cumsum(share)]
    return layout.TREE, [t, *start, *_tree_numbers(share, whole.domain)]


def _tree_numbers(share: NDArray[np.float64], domain: SensitiveDomain) -> list[float]:
    """Return the place of each value among the leaves, and the nodes above some of them."""
    steps = steps_of(domain)
    leaf = np.where(domain.leaf < 0, np.iinfo(np.int64).max, domain.leaf)
    order = np.argsort(leaf, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    numbers: list[float] = [*place.tolist()]
    nodes = np.unique(steps.node)
    numbers.append(len(nodes))
    for node in nodes.tolist():
        below = steps.leaf[steps.node == node]
        numbers += [steps.weight[node], share[below].sum(), place[below].min(), place[below].max()]
    return numbers
