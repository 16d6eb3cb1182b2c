"""What sensitive values must keep, in the numbers that kernels take."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.kernels.layout import DISTINCT
from dbanon.models.demands import wholes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import EncodedTable
    from dbanon.models.base import Demand, Rule

# Kinds, columns and limits of what sensitive values must keep (``dbanon.kernels.auto.diversity``).
Rules = tuple["NDArray[np.int64]", "NDArray[np.int64]", "NDArray[np.float64]"]


def make_rules(table: EncodedTable, requirement: Requirement) -> Rules:
    """Return what a search can keep of a requirement; merging sees to the rest."""
    found: list[tuple[int, int, list[float]]] = []
    if requirement.l > 1:
        columns = range(table.sensitive.shape[1])
        found += [(DISTINCT, column, [requirement.l, 0.0]) for column in columns]
    for demand in requirement.demands:
        if (rule := _rule(table, demand)) is not None:
            kind, numbers = rule
            found.append((kind, demand.column or 0, numbers))
    width = max([2, *(len(numbers) for _, _, numbers in found)])
    limits = np.zeros((len(found), width))
    for i, (_, _, numbers) in enumerate(found):
        limits[i, : len(numbers)] = numbers
    return (
        np.array([kind for kind, _, _ in found], np.int64),
        np.array([column for _, column, _ in found], np.int64),
        limits,
    )


def _rule(table: EncodedTable, demand: Demand) -> Rule | None:
    """Return the rule of a demand, None if the search has none."""
    if demand.column is None or demand.among or demand.jointly:
        return None
    (whole,) = wholes(table, [demand], np.arange(table.n_rows))
    return demand.model.search_rule(whole)
