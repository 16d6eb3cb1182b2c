"""Why a table cannot meet a model, and what it can meet; in counts and shares, never in values."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.anonymize.models.demands import wholes
from dbanon.anonymize.models.l_diversity import PdRecursiveLDiversity
from dbanon.anonymize.models.tally import tally
from dbanon.domain.models import arguments
from dbanon.domain.table import quote_identifier

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dbanon.anonymize.interfaces import Demand
    from dbanon.anonymize.models.tally import Tally, Whole
    from dbanon.domain.assignment import EncodedTable
    from dbanon.domain.policy import Value


class _Case(NamedTuple):
    """A demand, the table as one class, and what it is compared with."""

    name: str
    demand: Demand
    asked: Mapping[str, Value]
    one: Tally
    whole: Whole

    @property
    def top(self) -> float:
        """The share of the most frequent value."""
        return float(self.one.shares().max())

    @property
    def shared(self) -> str:
        """How many rows share a value."""
        return f"{100 * self.top:.0f} % of the rows share one value of {self.name}"

    @property
    def several(self) -> str:
        """How many values there are."""
        return f"{self.name} has {int(self.one.distinct()[0]):,} distinct values"

    def number(self, parameter: str) -> float:
        """Return a parameter of the model."""
        return float(str(self.asked[parameter]))


Told = tuple[str, str]
"""What stands against a model, and what is possible, which may be nothing."""


def explained(table: EncodedTable, demand: Demand) -> Told:
    """Say what stands against a demand that the rows as one class do not meet."""
    column = demand.column or 0
    values = table.sensitive[:, column]
    case = _Case(
        quote_identifier(table.sensitive_names[column]),
        demand,
        arguments(demand.spec),
        tally(np.zeros(len(values), np.int32), values),
        wholes(table, [demand], np.arange(table.n_rows))[0],
    )
    return _TOLD.get(demand.spec.name, _told_share)(case)


def _told_distinct(case: _Case) -> Told:
    if case.demand.among:
        return case.shared, ""
    wanted, most = int(case.demand.model.required), int(case.one.distinct()[0])
    which = "distinct {}-diversity" if "l" in case.asked else "{}-sensitivity"
    return case.several, which.format(most) if most < wanted else ""


def _told_share(case: _Case) -> Told:
    return case.shared, f"probabilistic l <= {_floor(1 / case.top)}"


def _told_alpha(case: _Case) -> Told:
    return case.shared, f"alpha >= {_ceil(case.top)}"


def _told_entropy(case: _Case) -> Told:
    level = float(case.demand.model.achieved(case.one, case.whole)[0])
    distinct = min(int(case.one.distinct()[0]), max(int(case.number("l")), 1))
    entropy, probabilistic = _floor(level), _floor(1 / case.top)
    possible = f"entropy l <= {entropy}, distinct {distinct}-diversity"
    return case.shared, f"{possible}, or probabilistic l <= {probabilistic},"


def _told_recursive(case: _Case) -> Told:
    """Tell of the least c, and where there are too few values for any, of the values."""
    level = float(case.demand.model.achieved(case.one, case.whole)[0])
    if math.isfinite(level):
        return case.shared, f"l = {case.asked['l']} with c > {_ceil(level)}"
    most = int(case.one.distinct()[0])
    for l in range(min(int(case.number("l")), most), 1, -1):
        model = dataclasses.replace(case.demand.model, l=l)  # type: ignore[type-var]
        level = float(model.achieved(case.one, case.whole)[0])
        if math.isfinite(level):
            return case.several, f"l = {l} with c > {_ceil(level)}"
    return case.several, ""


def _told_npd(case: _Case) -> Told:
    """Tell of the negative value that is too rare, if there is one, else of c."""
    shares, labels = case.one.shares(), case.asked["negative"]
    found = [
        float(shares[np.isin(case.one.values, case.whole.domain.codes_of((label,)))].sum())
        for label in (labels if isinstance(labels, tuple) else ())
    ]
    if min(found, default=1.0) < case.number("share") - 1e-9:
        least = min(found)
        fact = f"{100 * least:.2g} % of the rows hold one of the negative values of {case.name}"
        return fact, f"share <= {_floor(least)}" if least >= 0.01 else ""  # noqa: PLR2004 - it is what is printed
    pd = PdRecursiveLDiversity(
        case.number("c"), int(case.number("l")), tuple(map(str, _texts(case.asked["positive"])))
    )
    demand = dataclasses.replace(case.demand, model=pd)
    return _told_recursive(case._replace(demand=demand))


def _texts(value: Value) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else ()


def _told_sets(case: _Case) -> Told:
    return f"the table has {case.whole.n_rows:,} rows", f"n <= {case.whole.n_rows}"


def _told_numbers(case: _Case) -> Told:
    numbers = case.whole.domain.numbers[case.one.values]
    distinct = int((~np.isnan(numbers)).sum())
    if distinct < case.number("k"):
        fact = f"{case.name} has {distinct:,} distinct numbers"
        return fact, f"k = {distinct} with a small enough e" if distinct else ""
    return f"the numbers of {case.name} lie less than {case.number('e'):g} apart", "a smaller e"


def _told_unique(case: _Case) -> Told:
    most = case.whole.n_rows // int(case.one.counts.max())
    return case.shared, f"m = {most} with k <= {most}" if most > 1 else ""


def _floor(number: float) -> str:
    """Round down to two places, what is a hair below a number of two places not at all."""
    return f"{math.floor(100 * number + 1e-9) / 100:.2f}"


def _ceil(number: float) -> str:
    """Round up to two places, what is a hair above a number of two places not at all."""
    return f"{math.ceil(100 * number - 1e-9) / 100:.2f}"


_TOLD: Mapping[str, Callable[[_Case], Told]] = {
    "l-diversity": _told_distinct,
    "p-sensitivity": _told_distinct,
    "alpha-k-anonymity": _told_alpha,
    "entropy-l-diversity": _told_entropy,
    "recursive-l-diversity": _told_recursive,
    "pd-recursive-l-diversity": _told_recursive,
    "npd-recursive-l-diversity": _told_npd,
    "n-t-closeness": _told_sets,
    "k-e-anonymity": _told_numbers,
    "m-uniqueness": _told_unique,
}
