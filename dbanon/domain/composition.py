"""Combined disclosure of the releases of a table, as counted by the database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbanon.domain.checks import CheckFailed, CheckReport, Verdict
from dbanon.domain.policy import K_ANONYMITY
from dbanon.domain.text import command

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dbanon.domain.checks import CheckResult
    from dbanon.domain.table import TableName


OTHER_READERS = "if the audience has never seen these releases: --new-series --recipients-changed"
"""The way on where releases may not be compared: a series of their own."""


@dataclass(frozen=True, slots=True)
class Exposure:
    """Persons with few possible values of a sensitive column, by the classes of two releases.

    ``below``: fewer than ``required`` values are in both classes; ``to_one``: just one.
    """

    column: str
    required: int
    below: int
    to_one: int


@dataclass(frozen=True, slots=True)
class Against:
    """A release compared with an earlier one.

    persons: of either; in_both: of both; smallest: least number of persons in the same classes of
    both, or in the same class of one but missing in the other; below: persons in sets of fewer than
    ``required``.
    """

    release: int
    relation: TableName
    persons: int
    in_both: int
    required: int
    smallest: int
    below: int
    exposures: tuple[Exposure, ...]

    @property
    def severity(self) -> tuple[int, int, int]:
        """Sort key: persons left with one value, with few values, among few persons."""
        to_one = max((found.to_one for found in self.exposures), default=0)
        return to_one, max((found.below for found in self.exposures), default=0), self.below

    def __str__(self) -> str:
        """Return the result in one clause."""
        small = (
            f"{self.below:,} of {self.persons:,} persons are in groups of fewer than"
            f" {self.required}, the smallest of {self.smallest:,}"
        )
        parts = [small] if self.below else []
        parts += [
            f"{found.below:,} of {self.in_both:,} have fewer than {found.required} possible"
            f" values of {found.column}, {found.to_one:,} only one"
            for found in self.exposures
            if found.below
        ]
        return f"compared with release {self.release}: {'; '.join(parts)}"


@dataclass(frozen=True, slots=True)
class CellResult:
    """A model on the cells (persons in the same classes of every release), by one's values."""

    release: int
    relation: TableName
    result: CheckResult

    @property
    def counted(self) -> tuple[int, str, str | None]:
        """Key of the result; k is counted for all releases together."""
        number = 0 if self.result.model == K_ANONYMITY else self.release
        return number, self.result.model, self.result.column


@dataclass(frozen=True, slots=True)
class Composition:
    """Combined disclosure of all releases of a table.

    ``releases`` were compared; ``unknown`` could not be: published live, by an older version or
    with other subject columns, or their membership is lost; ``live`` of these are live views.
    ``altered``: the stored membership has changed since the last of them was published.
    ``against``: the newest release compared with every earlier one of any relation. ``beside``:
    other tables of its dataset, if assessed together. ``small``: cells with fewer persons than the
    greatest k. A cell must meet the least k of the releases that show its persons, and no release
    may add to the disclosure of the others.
    """

    table: TableName
    persons: int
    releases: tuple[int, ...]
    unknown: tuple[int, ...]
    results: tuple[CellResult, ...]
    against: tuple[Against, ...]
    altered: tuple[int, ...] = ()
    live: tuple[int, ...] = ()
    beside: tuple[TableName, ...] = ()
    small: int = 0

    @property
    def failed(self) -> tuple[CellResult, ...]:
        """Failed models of cells."""
        return tuple(one for one in self.results if one.result.verdict is Verdict.FAILED)

    @property
    def holds(self) -> bool:
        """True if everything holds for all releases but live views, and none was altered."""
        return not (self.failed or self._lost or self.altered)

    @property
    def _lost(self) -> tuple[int, ...]:
        """Unknown releases that are not live views, so their membership should be stored."""
        return tuple(number for number in self.unknown if number not in self.live)

    def is_worse_than(self, before: Composition) -> bool:
        """Return True if more cells are small or fail a model than before, including new models."""
        former = {one.counted: one.result.failing_classes for one in before.results}
        return self.small > before.small or any(
            one.result.failing_classes > former.get(one.counted, 0) for one in self.results
        )

    def reasons_against(self, before: Composition) -> tuple[str, ...]:
        """Return why the newest release adds to the disclosure of the earlier ones, a line each."""
        more = self.small - before.small
        if more <= 0:
            return self.warnings
        line = (
            f"compared with the other releases of {self.table}, it would single out {more:,} more"
            f" {'group' if more == 1 else 'groups'} smaller than the greatest k of them"
        )
        return (line, *self.warnings)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Problems, a line each, the worst pair of releases first."""
        lines = []
        if self.failed:
            worst = max(self.against, key=lambda one: (one.severity, one.release), default=None)
            lines += [str(worst)] if worst is not None and any(worst.severity) else []
            lines.append(self._of_all)
        if self._lost:
            numbers = ", ".join(map(str, self._lost))
            lines.append(
                f"release {numbers} of {self.table} left nothing to compare with: comparing may"
                " reveal individuals"
            )
        if self.live:
            numbers = ", ".join(map(str, self.live))
            lines.append(
                f"release {numbers} of {self.table} is a live view, and whom it shows is not"
                " remembered: no release before or after is compared with it, as it would be"
                " --as table; comparing may reveal individuals"
            )
        if self.altered:
            numbers = ", ".join(map(str, self.altered))
            lines.append(
                f"what is remembered of release {numbers} of {self.table} was altered since:"
                " comparing may reveal individuals"
            )
        return tuple(lines)

    @property
    def note(self) -> str | None:
        """Limit of a larger k for recipients of releases with weaker guarantees, if any."""
        of_k = [one.result for one in self.results if one.result.model == K_ANONYMITY]
        if not self.small or any(result.failing_classes for result in of_k):
            return None
        least = min(result.achieved or 0 for result in of_k)
        return (
            f"releases of {self.table} promise different k: each by itself holds, and whoever has"
            f" several is left with the least of them ({self.small:,} cells are smaller than the"
            f" greatest, the smallest has {least:g} persons)"
        )

    @property
    def _of_all(self) -> str:
        found: dict[str, CheckResult] = {}
        for one in self.failed:
            result = one.result
            name = result.model if result.column is None else f"{result.model} of {result.column}"
            known = found.get(name, result)
            found[name] = max(known, result, key=lambda r: r.failing_classes)
        parts = (
            f"{name} requires {result.required:g}, the worst cell has {result.achieved:g}"
            f" ({result.failing_classes:,} of {result.classes:,} fail)"
            for name, result in found.items()
        )
        releases = ", ".join(map(str, self.releases))
        return (
            f"taken together, releases {releases} identify individuals: among persons in the same"
            f" classes of all of them, {'; '.join(parts)}"
        )


class RevealsMore(CheckFailed):
    """The newest release would add to the disclosure of the others."""


def require_safe(found: Iterable[Composition]) -> None:
    """Raise CheckFailed if releases together disclose more than each guarantees, or may do so."""
    for one in found:
        if one.warnings:
            raise _unsafe(one)


def require_held(found: Iterable[Composition]) -> None:
    """Raise CheckFailed if releases (but live views) break a guarantee, or cannot be counted."""
    for one in found:
        if not one.holds:
            raise _unsafe(one)


def _unsafe(found: Composition) -> CheckFailed:
    return CheckFailed(
        "\n  ".join(found.warnings),
        CheckReport(found.table, tuple(cell.result for cell in found.failed)),
        hint=command("dbanon history", found.table),
    )
