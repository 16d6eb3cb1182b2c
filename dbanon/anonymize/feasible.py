"""Whether the rows as a whole can meet what is asked, and why not."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymize.enforce import is_monotone, rows_hold
from dbanon.anonymize.models.tally import tally
from dbanon.domain.errors import Unsatisfiable
from dbanon.domain.models import title
from dbanon.domain.table import quote_identifier

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.anonymize.interfaces import Demand, Requirement
    from dbanon.domain.assignment import EncodedTable


def rows_in_reach(table: EncodedTable, requirement: Requirement) -> NDArray[np.int64]:
    """Return the rows that as one group meet every demand; all of them, if they do.

    Otherwise the lowest rows of the most frequent value are left out, within the budget, until the
    rest does. Raises Unsatisfiable with what stands against it and what is possible instead.
    """
    left_out = np.zeros(table.n_rows, bool)
    budget = min(requirement.budget(table.n_rows), table.n_rows - requirement.k)
    for demand in requirement.demands:
        if not is_monotone(demand):
            _require_eligible(table, demand, requirement)
            continue
        enough = _thin(table, demand, left_out, most=budget)
        if not enough:
            raise _unsatisfiable(table, demand, requirement)
    rows = np.flatnonzero(~left_out)
    for demand in requirement.demands:
        if is_monotone(demand) and not rows_hold(table, rows, demand):
            raise _unsatisfiable(table, demand, requirement)
    return rows


def _thin(table: EncodedTable, demand: Demand, left_out: NDArray[np.bool_], *, most: int) -> bool:
    """Leave out rows until the others meet a demand; return whether they do."""
    column = demand.column or 0
    while not rows_hold(table, np.flatnonzero(~left_out), demand):
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
    column = demand.column or 0
    name = quote_identifier(table.sensitive_names[column])
    values = table.sensitive[:, column]
    counts = tally(np.zeros(len(values), np.int32), values)
    top = counts.counts.max() / len(values)
    among = " once the other sensitive columns are known" if demand.among else ""
    msg = (
        f"{100 * top:.0f} % of the rows share one value of {name}:"
        f" {title(demand.spec)} is impossible{among}"
    )
    if not demand.among:
        msg += f"; {_possible(demand, counts.shares())} is possible"
    budget = requirement.budget(table.n_rows)
    left = f"at most {budget:,} of {table.n_rows:,} rows may be left out"
    return Unsatisfiable(msg, hint=f"ask for less, or raise --max-suppressed: {left}")


def _possible(demand: Demand, shares: NDArray[np.float64]) -> str:
    """Say what the whole relation does meet, rounded to the safe side."""
    wanted = demand.spec.params.get("l", demand.spec.params.get("p", len(shares)))
    values = min(len(shares), max(int(wanted), 1) if isinstance(wanted, int | float) else 1)
    if demand.spec.name == "alpha-k-anonymity":
        return f"alpha >= {math.ceil(100 * shares.max()) / 100:.2f}"
    probabilistic = f"probabilistic l <= {math.floor(100 / shares.max()) / 100:.2f}"
    return f"distinct {values}-diversity, or {probabilistic},"
