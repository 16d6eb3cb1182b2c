"""Stored comparison results, from which the next release starts.

A release affects the changed persons and all in their cells or classes. Their former counts are
subtracted and the new ones added. If a worst value may have disappeared, all is counted again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from psycopg.types.json import Jsonb

from dbanon.db.proofs.subjects import verdict
from dbanon.db.queries import query
from dbanon.domain.release import Against, CheckResult, Exposure, Verdict
from dbanon.models.base import Bound
from dbanon.models.registry import MODELS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dbanon.db.histories.memory import Memory
    from dbanon.db.session import Session

_TOLERANCE = 1e-9  # within which two sums of the same numbers may differ by their order


@dataclass(frozen=True, slots=True)
class Figures:
    """The result of comparing a release with earlier ones.

    releases: all compared, the newest last; persons: in all of them; numbers: numeric columns;
    results: model results of cells, by release; pairs: comparison with each release, itself
    included; changed: changed rows per release.
    """

    releases: tuple[int, ...]
    persons: int
    numbers: tuple[str, ...]
    results: Mapping[int, tuple[CheckResult, ...]]
    pairs: Mapping[int, Against]
    changed: Mapping[int, int]

    def agrees(self, other: Figures) -> bool:
        """Return True if both results are equal."""
        same = (self.releases, self.persons) == (other.releases, other.persons)
        pairs = all(other.pairs.get(number) == pair for number, pair in self.pairs.items())
        return (
            same
            and pairs
            and all(
                len(found) == len(other.results.get(number, ()))
                and all(map(_is_same, found, other.results[number]))
                for number, found in self.results.items()
            )
        )


def keep(session: Session, figures: Figures) -> None:
    """Store the figures of the newest release; delete those that the next one does not need."""
    results = {
        str(release): [_written(result) for result in found]
        for release, found in figures.results.items()
    }
    pairs = {
        str(release): [
            *(pair.persons, pair.in_both, pair.required, pair.smallest, pair.below),
            [[e.column, e.required, e.below, e.to_one] for e in pair.exposures],
        ]
        for release, pair in figures.pairs.items()
    }
    document = {
        "releases": figures.releases,
        "persons": figures.persons,
        "numbers": figures.numbers,
        "results": results,
        "pairs": pairs,
        "changed": {str(release): rows for release, rows in figures.changed.items()},
    }
    noted = {"release": figures.releases[-1], "figures": Jsonb(document)}
    session.pg.execute(query("histories.add_figures"), noted)
    session.pg.execute(query("histories.forget_figures"), {"releases": list(figures.releases)})


def kept(session: Session, known: Memory) -> dict[int, Figures]:
    """Return the readable stored figures of comparable releases."""
    asked = {"releases": list(known.relations)}
    found = {}
    for release, document in session.pg.execute(query("histories.figures"), asked):
        try:
            found[release] = _read(document, known)
        except (AttributeError, KeyError, TypeError, ValueError):
            continue  # it was damaged, and is counted anew
    return found


def _is_same(one: CheckResult, other: CheckResult) -> bool:
    """Compare two results; sums may differ by rounding."""
    same = replace(one, achieved=None) == replace(other, achieved=None)
    if one.achieved is None or other.achieved is None:
        return same and one.achieved is other.achieved
    return same and math.isclose(
        one.achieved, other.achieved, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE
    )


def _written(result: CheckResult) -> list[object]:
    values = (result.required, result.achieved)
    numbers = [repr(value) if isinstance(value, float) else value for value in values]
    counts = (result.classes, result.failing_classes, result.n_rows)
    return [result.model, result.column, *numbers, *counts, result.verdict]


def _read(document: dict[str, Any], known: Memory) -> Figures:
    return Figures(
        releases=tuple(document["releases"]),
        persons=document["persons"],
        numbers=tuple(document["numbers"]),
        results={
            int(release): tuple(map(_result, found))
            for release, found in document["results"].items()
        },
        pairs={
            int(release): _pair(int(release), known, pair)
            for release, pair in document["pairs"].items()
        },
        changed={int(release): rows for release, rows in document["changed"].items()},
    )


def _result(values: list[Any]) -> CheckResult:
    model, column, *numbers, classes, failing, n_rows, verdict = values
    required, achieved = (float(v) if isinstance(v, str) else v for v in numbers)
    return CheckResult(
        model, column, required, achieved, classes, failing, n_rows, Verdict(verdict)
    )


def _pair(release: int, known: Memory, values: list[Any]) -> Against:
    persons, in_both, required, smallest, below, exposures = values
    return Against(
        release=release,
        relation=known.relations[release],
        persons=persons,
        in_both=in_both,
        required=required,
        smallest=smallest,
        below=below,
        exposures=tuple(Exposure(*values) for values in exposures),
    )


def combined(parts: Sequence[CheckResult]) -> CheckResult:
    """Add the results of different classes; a value that is no number is above all others."""
    model = MODELS[parts[0].model]
    worst = min if model.bound is Bound.AT_LEAST else max
    values = [part.achieved for part in parts if part.achieved is not None]
    classes = sum(part.classes for part in parts)
    return replace(
        parts[0],
        achieved=worst(values, key=lambda value: (math.isnan(value), value), default=None),
        classes=classes,
        failing_classes=sum(part.failing_classes for part in parts),
        n_rows=sum(part.n_rows for part in parts),
        verdict=verdict(classes, sum(part.verdict is Verdict.FAILED for part in parts)),
    )


def carried(base: CheckResult, removed: CheckResult, added: CheckResult) -> CheckResult | None:
    """Subtract some classes from a result and add others; None if that is impossible."""
    model = MODELS[base.model]
    asked = {(one.model, one.column, one.required) for one in (base, removed, added)}
    classes = base.classes - removed.classes + added.classes
    failing = base.failing_classes - removed.failing_classes + added.failing_classes
    n_rows = base.n_rows - removed.n_rows + added.n_rows
    if len(asked) > 1 or model.floor is not None or min(classes, failing, n_rows) < 0:
        return None
    least = model.bound is Bound.AT_LEAST
    known, worst = _worst(base.achieved, removed.achieved, added.achieved, least=least)
    if not known or (worst is None) != (classes == 0):
        return None
    return replace(
        base,
        achieved=worst,
        classes=classes,
        failing_classes=failing,
        n_rows=n_rows,
        verdict=verdict(classes, failing),
    )


def carried_pair(base: Against, removed: Against, added: Against) -> Against | None:
    """Subtract some groups of persons from a pair and add others; None if that is impossible."""
    asked = {
        (pair.required, *((e.column, e.required) for e in pair.exposures))
        for pair in (base, removed, added)
    }
    sizes = [pair.smallest if pair.persons else None for pair in (base, removed, added)]
    known, smallest = _worst(*sizes, least=True)
    if len(asked) > 1 or not known:
        return None
    exposures = tuple(
        replace(e, below=e.below - r.below + a.below, to_one=e.to_one - r.to_one + a.to_one)
        for e, r, a in zip(base.exposures, removed.exposures, added.exposures, strict=True)
    )
    pair = replace(
        base,
        persons=base.persons - removed.persons + added.persons,
        in_both=base.in_both - removed.in_both + added.in_both,
        smallest=int(smallest or 0),
        below=base.below - removed.below + added.below,
        exposures=exposures,
    )
    counts = [pair.persons, pair.in_both, pair.below]
    counts += [n for e in exposures for n in (e.below, e.to_one)]
    if min(counts) < 0 or (smallest is None) != (pair.persons == 0):
        return None
    return pair


def _worst(
    base: float | None, removed: float | None, added: float | None, *, least: bool
) -> tuple[bool, float | None]:
    """Return (is known, worst value or None without classes); least: the smallest is worst."""
    if base is None or added is None:
        worst, known = (added if base is None else base), removed is None or base is None
    else:
        worst = min(base, added) if least else max(base, added)
        known = removed is None or worst == added
    if not known and base is not None and removed is not None:
        # What is left has the worst value still if those that went were better.
        known = removed > base + _TOLERANCE if least else removed < base - _TOLERANCE
    return known, worst
