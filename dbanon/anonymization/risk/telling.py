"""What a report may tell of counts of the source, so that nobody gets one of fewer than k by them.

Its readers have the release, and so know exactly how many rows are published. A count of the source
is told as a multiple of k, or of a thousandth of the rows where that is more, and shares are taken
of what is told: else a count, or a share whose denominator is found from its digits, would give
the few rows by which source and release differ. Rates of attacks are rounded up, but no further
than to the bound that they do not exceed, so that no risk is told to be less than it is.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING

from dbanon.anonymization.attacks.case import most_rows
from dbanon.anonymization.attacks.intervals import interval

if TYPE_CHECKING:
    from dbanon.anonymization.released.cells import Released
    from dbanon.domain.policy import Policy
    from dbanon.domain.report import Attack, Classification, Risk, Uniqueness, UniqueSet, Utility

_FINEST, _DIGITS = 0.001, 3
_SLACK = 1e-9


def least_rows(released: Released, policy: Policy) -> int:
    """Return how many rows it takes to be told: those of k persons, all and one if nobody knows.

    1 where nothing promises k, as by anatomy, which keeps it no secret who is in the table.
    """
    if policy.subject is not None and released.persons is None:
        return released.table.n_rows + 1
    return 1 if policy.k == 1 else policy.k * most_rows(released)


def told_risk(risk: Risk, *, n_rows: int, least: int) -> Risk:
    """Return the risk as it is told; n_rows: how many rows of the source were looked at."""
    if least <= 1:
        return risk
    return replace(
        risk,
        uniqueness=tuple(_uniqueness(one, least) for one in risk.uniqueness),
        unique_sets=tuple(_unique_set(one, _rounded(n_rows, least)) for one in risk.unique_sets),
        attacks=tuple(_attack(one, least) for one in risk.attacks),
    )


def told_utility(utility: Utility, *, least: int) -> Utility:
    """Return the use as it is told; distributions and associations are by themselves."""
    if least <= 1:
        return utility
    return replace(
        utility,
        queries=tuple(
            replace(one, median=round(one.median, _DIGITS), upper=round(one.upper, _DIGITS))
            for one in utility.queries
        ),
        classifications=tuple(_classification(one, least) for one in utility.classifications),
    )


def _rounded(count: int, least: int) -> int:
    """Return a count as a multiple of what it takes to be told, of a thousandth if that is more."""
    unit = max(least, round(count * _FINEST))
    return max(round(count / unit), 1) * unit


def _unit(rows: int, least: int) -> float:
    return max(least / rows, _FINEST)


def _nearest(share: float, unit: float) -> float:
    return min(round(round(share / unit) * unit, 6), 1.0)


def _attack(attack: Attack, least: int) -> Attack:
    tried = _rounded(attack.tried, least)
    unit = _unit(tried, least)
    rate = min(round(ceil(attack.rate / unit - _SLACK) * unit, 6), 1.0)
    if attack.expected is not None and attack.rate <= attack.expected:
        rate = min(rate, attack.expected)
    low, high = (round(end, 4) for end in interval(rate * tried, tried))
    baseline = _nearest(attack.baseline, unit)
    found = replace(attack, tried=tried, rate=rate, low=low, high=high, baseline=baseline)
    return replace(found, named=None)


def _unique_set(found: UniqueSet, n_rows: int) -> UniqueSet:
    return replace(found, share=min(found.rows / n_rows, 1.0))


def _uniqueness(found: Uniqueness, least: int) -> Uniqueness:
    rows = _rounded(round(found.sampled * found.population), least)
    return replace(found, sampled=rows / found.population, share=round(found.share, 4))


def _classification(found: Classification, least: int) -> Classification:
    rows, tested = (_rounded(count, least) for count in (found.rows, found.tested))
    source, release, guesser = (_nearest(one, _unit(tested, least)) for one in found.accuracy)
    return replace(found, accuracy=(source, release, guesser), rows=rows, tested=tested)
