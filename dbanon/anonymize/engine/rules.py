"""What sensitive values must keep, in the numbers that kernels take."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymize.models.tally import steps_of
from dbanon.domain.models import ENHANCED, X_Y_ANONYMITY, arguments
from dbanon.domain.models import EQUAL as EQUAL_DISTANCE
from dbanon.domain.models import ORDERED as ORDERED_DISTANCE
from dbanon.kernels.layout import (
    BETWEEN,
    DISTINCT,
    ENTROPY,
    EQUAL,
    ORDERED,
    RECURSIVE,
    SHARE,
    TREE,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from dbanon.anonymize.interfaces import Demand, Requirement
    from dbanon.domain.assignment import EncodedTable, SensitiveDomain
    from dbanon.domain.policy import Value

# Kinds, columns and limits of what sensitive values must keep (``dbanon.kernels.diversity``).
Rules = tuple["NDArray[np.int64]", "NDArray[np.int64]", "NDArray[np.float64]"]

_MARGIN = 1e-8  # within which a bound that must not be reached counts as reached


def make_rules(table: EncodedTable, requirement: Requirement) -> Rules:
    """Return what a search can keep of a requirement; merging sees to the rest."""
    found: list[tuple[int, int, list[float]]] = []
    if requirement.l > 1:
        columns = range(table.sensitive.shape[1])
        found += [(DISTINCT, column, [requirement.l, 0.0]) for column in columns]
    for demand in requirement.demands:
        if demand.column is not None and not demand.among:
            found += [(kind, demand.column, numbers) for kind, numbers in _numbers(table, demand)]
    width = max([2, *(len(numbers) for _, _, numbers in found)])
    limits = np.zeros((len(found), width))
    for i, (_, _, numbers) in enumerate(found):
        limits[i, : len(numbers)] = numbers
    return (
        np.array([kind for kind, _, _ in found], np.int64),
        np.array([column for _, column, _ in found], np.int64),
        limits,
    )


def _numbers(table: EncodedTable, demand: Demand) -> Iterator[tuple[int, list[float]]]:
    """Yield the kind and the numbers of a demand's rule, nothing if the engine has none."""
    given, name = arguments(demand.spec), demand.spec.name
    if name in {"l-diversity", "p-sensitivity", X_Y_ANONYMITY} and not demand.jointly:
        yield DISTINCT, [demand.model.required, 0.0]
    elif name == "alpha-k-anonymity":
        yield SHARE, [demand.model.required, 0.0]
    elif name == "probabilistic-l-diversity":
        yield SHARE, [1.0 / demand.model.required, 0.0]
    elif name == "entropy-l-diversity":
        yield ENTROPY, [math.log(demand.model.required), 0.0]
    elif name == "recursive-l-diversity" and demand.model.required and given["l"] != 1:
        yield RECURSIVE, [demand.model.required - _MARGIN, float(str(given["l"]))]
    elif name in {"t-closeness", "n-t-closeness", "beta-likeness", "delta-disclosure"}:
        column = demand.column or 0
        values = table.sensitive[:, column]
        domain = table.domains[column]
        share = np.bincount(values, minlength=len(domain.labels)) / len(values)
        if name in {"t-closeness", "n-t-closeness"}:  # the whole relation is one of the sets
            yield _closeness(demand.model.required, str(given["distance"]), share, domain)
        else:
            most, least = _bounds(name, given, share)
            yield BETWEEN, [0.0, len(share), *share, *most, *least]


def _bounds(
    name: str, given: Mapping[str, Value], share: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the greatest and the least share that each value may have in a class."""
    if name == "delta-disclosure":
        delta = float(str(given["delta"])) - _MARGIN
        return share * math.exp(delta), share * math.exp(-delta)
    gain = np.full(len(share), float(str(given["beta"])))
    if given["kind"] == ENHANCED:
        gain = np.minimum(gain, -np.log(np.maximum(share, 1e-300)))
    return share * (1 + gain) + 1e-12, np.zeros(len(share))


def _closeness(
    t: float, distance: str, share: NDArray[np.float64], domain: SensitiveDomain
) -> tuple[int, list[float]]:
    start = [len(share), *share]
    if distance == EQUAL_DISTANCE:
        return EQUAL, [t, *start]
    if distance == ORDERED_DISTANCE:
        limit = t * max(int((share > 0).sum()) - 1, 1)
        cumulated = np.cumsum(share)
        return ORDERED, [limit, *start, *cumulated]
    return TREE, [t, *start, *_tree_numbers(share, domain)]


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
        numbers += [
            steps.weight[node],
            share[below].sum(),
            place[below].min(),
            place[below].max(),
        ]
    return numbers
