"""What a report tells of the risk and the use, so that nobody gets a count of fewer than k by it.

Rates of attacks are rounded up, but no further than to the bound that they do not exceed, so that
no risk is told to be less than it is; so are those of guessers, with whom they are compared.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dbanon.anonymization.attacks.intervals import interval
from dbanon.anonymization.released.small_counts import told_above, told_rows
from dbanon.anonymization.utility.classifications import HELD_OUT
from dbanon.domain.report import Attacker
from dbanon.domain.report.losses import told_share, unit_of

if TYPE_CHECKING:
    from dbanon.domain.report import (
        Attack,
        Classification,
        QueryError,
        Risk,
        Uniqueness,
        UniqueSet,
        Utility,
    )

_DIGITS = 3
_IN_SOURCE = tuple(
    f"re-identification, {attacker}" for attacker in (Attacker.JOURNALIST, Attacker.MARKETER)
)
"""The attacks whose candidates are rows of the source."""


@dataclass(frozen=True, slots=True)
class Telling:
    """What readers know, and may not get by it.

    published: the rows that the release shows; least: how many rows it takes to be told.
    """

    published: int
    least: int

    def rows(self, count: int) -> int:
        """Return a count of rows of the source as it is told."""
        return told_rows(count, published=self.published, least=self.least)

    def sampled(self, rows: int, *, of: int) -> int | None:
        """Return how many rows were looked at, None where that is told as all there are."""
        looked = self.rows(rows)
        return looked if looked < self.rows(of) else None

    def risk(self, risk: Risk, *, n_rows: int) -> Risk:
        """Return the risk as it is told; n_rows: how many rows of the source were looked at."""
        if self.least <= 1:
            return risk
        return replace(
            risk,
            uniqueness=tuple(
                self._uniqueness(one)
                for one in risk.uniqueness
                if not 0 < one.population - self.published < self.least
            ),
            unique_sets=tuple(self._unique_set(one, n_rows) for one in risk.unique_sets),
            attacks=tuple(map(self._attack, risk.attacks)),
        )

    def utility(self, utility: Utility) -> Utility:
        """Return the use as it is told; distributions and associations are by themselves."""
        if self.least <= 1:
            return utility
        return replace(
            utility,
            queries=tuple(map(self._query, utility.queries)),
            classifications=tuple(map(self._classification, utility.classifications)),
        )

    def _query(self, found: QueryError) -> QueryError:
        unit = unit_of(self.least, self.published)

        def told(share: float) -> float:
            return round(round(share / unit) * unit, _DIGITS)

        return replace(
            found,
            median=told(found.median),
            upper=told(found.upper),
            imprecision=told(found.imprecision),
            imprecision_upper=told(found.imprecision_upper),
        )

    def _attack(self, found: Attack) -> Attack:
        tried = self.rows(found.tried)
        rate, baseline = (
            told_above(share, found.tried, of=tried, least=self.least)
            for share in (found.rate, found.baseline)
        )
        if found.expected is not None and found.rate <= found.expected:
            rate = min(rate, found.expected)
        low, high = (round(end, 4) for end in interval(rate * tried, tried))
        candidates = found.candidates
        if candidates is not None and found.name in _IN_SOURCE:
            candidates = candidates // self.least * self.least or None
        return replace(
            found,
            tried=tried,
            candidates=candidates,
            rate=rate,
            low=low,
            high=high,
            baseline=baseline,
            named=None,
        )

    def _unique_set(self, found: UniqueSet, n_rows: int) -> UniqueSet:
        of = self.rows(n_rows)
        share = told_above(found.rows / n_rows, n_rows, of=of, least=self.least)
        rows = min(round(share * of), of)
        return replace(found, rows=rows, share=rows / of)

    def _uniqueness(self, found: Uniqueness) -> Uniqueness:
        rows = self.rows(round(found.sampled * found.population))
        share = told_share(found.share, unit=unit_of(self.least, rows))
        return replace(found, sampled=rows / found.population, share=share)

    def _classification(self, found: Classification) -> Classification:
        """Tell of how many rows it learned and was tested together, which are all that are."""
        together = self.rows(found.rows + found.tested)
        tested = max(round(HELD_OUT * together), 1)
        unit = unit_of(self.least, tested)

        def figures(of: tuple[float, float, float]) -> tuple[float, float, float]:
            source, release, guesser = (told_share(one, unit=unit) for one in of)
            return source, release, guesser

        return replace(
            found,
            accuracy=figures(found.accuracy),
            auc=None if found.auc is None else figures(found.auc),
            rows=together - tested,
            tested=tested,
        )
