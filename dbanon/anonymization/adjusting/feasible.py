"""Check that the rows as a whole can meet the requirement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.domain.errors import Unsatisfiable
from dbanon.domain.table import quote_identifier
from dbanon.models.demands import explained, meets, rows_meet, wholes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import EncodedTable
    from dbanon.models.base import Demand

_CROWDED = 20  # times k rows in a class are worth a word


def rows_in_reach(table: EncodedTable, requirement: Requirement) -> NDArray[np.int64]:
    """Return all rows if they meet every demand as one group, otherwise the most that do.

    Suppresses the lowest rows of the most frequent value within the budget. Raises Unsatisfiable
    with the failing demand and a possible value.
    """
    left_out = np.zeros(table.n_rows, bool)
    budget = min(requirement.budget(table.n_rows), table.n_rows - requirement.k)
    for demand in requirement.demands:
        if not demand.model.is_monotone:
            _require_eligible(table, demand, requirement)
            continue
        enough = _thin(table, demand, left_out, most=budget)
        if not enough:
            raise _unsatisfiable(table, demand, requirement)
    rows = np.flatnonzero(~left_out)
    for demand in requirement.demands:
        if demand.model.is_monotone and not rows_meet(table, demand, rows):
            raise _unsatisfiable(table, demand, requirement)
    return rows


def _thin(table: EncodedTable, demand: Demand, left_out: NDArray[np.bool_], *, most: int) -> bool:
    """Suppress rows until the others meet a demand; return True if they do."""
    column = demand.column or 0
    while not rows_meet(table, demand, np.flatnonzero(~left_out)):
        spare = most - int(left_out.sum())
        if spare <= 0 or demand.among:
            return False
        values = table.sensitive[:, column]
        counts = np.bincount(values[~left_out])
        frequent = int(counts.argmax())
        second = int(np.partition(counts, -2)[-2]) if len(counts) > 1 else 0
        step = max(min((counts[frequent] - second) // 8, spare), 1)
        left_out[np.flatnonzero((values == frequent) & ~left_out)[:step]] = True
    return True


def _require_eligible(table: EncodedTable, demand: Demand, requirement: Requirement) -> None:
    least = max(demand.model.required, requirement.k)
    values = table.sensitive[:, demand.column or 0]
    if np.bincount(values).max() * least > table.n_rows:
        raise _unsatisfiable(table, demand, requirement)


def _unsatisfiable(table: EncodedTable, demand: Demand, requirement: Requirement) -> Unsatisfiable:
    fact, possible = explained(table, demand)
    msg = f"{fact}: {demand.model} is impossible"
    if demand.among:
        msg += " once the other sensitive columns are known"
    elif possible:
        msg += f"; {possible} is possible"
    budget = requirement.budget(table.n_rows)
    left = f"at most {budget:,} of {table.n_rows:,} rows may be left out"
    return Unsatisfiable(msg, hint=f"ask for less, or raise --max-suppressed: {left}")


def crowding(
    table: EncodedTable, rows: NDArray[np.int64], requirement: Requirement
) -> Iterator[str]:
    """Yield a note for each demand that needs large classes; O(n log n) for each demand."""
    for demand in requirement.demands:
        if demand.column is None or demand.among or not demand.model.is_monotone:
            continue
        size = _least_dealt(table, rows, demand, least=requirement.k)
        if size > _CROWDED * requirement.k:
            name = quote_identifier(table.sensitive_names[demand.column])
            yield (
                f"{demand.model} of {name} is nearly out of reach:"
                f" expect classes of about {size:,} of {len(rows):,} rows"
            )


def _least_dealt(
    table: EncodedTable, rows: NDArray[np.int64], demand: Demand, *, least: int
) -> int:
    order = rows[np.argsort(table.sensitive[rows, demand.column or 0], kind="stable")]
    (whole,) = wholes(table, [demand], rows)
    n_classes = len(rows) // max(least, 1)
    while n_classes > 1:
        classes = (np.arange(len(rows)) % n_classes).astype(np.int32)
        if meets(table, demand, order, classes, whole=whole).all():
            break
        n_classes //= 2
    return len(rows) // max(n_classes, 1)
