"""How two reports that were held against each other look."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbanon.cli.terminal import console
from dbanon.cli.terminal.report import brief
from dbanon.domain.report import Change

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dbanon.actions.releases.differences import Compared
    from dbanon.domain.report import Difference, Report

_SHOWN = 22  # the greatest changes, as many of each kind


def show(now: Report, found: Compared, before: dict[str, Any]) -> None:
    """Print what got riskier, and less useful, and in one line each what else there is."""
    relation, release = before.get("relation"), before.get("release")
    title = f"{now.relation} (release {now.release}), against {relation} (release {release})"
    if not found.differences:
        console.say(f"{title}: no figure is different")
        return
    there = [c for c in Change if any(one.change is c for one in found.differences)]
    most = _SHOWN // max(len(there), 1)
    rows = [row for change in there for row in _rows(change, found.differences, most)]
    console.say(title)
    if Change.RISKIER not in there:
        console.say("nothing is riskier")
    if rows:
        console.table(("", "figure", "before", "now"), rows)
    alone = sum(None in (one.before, one.now) for one in found.differences)
    small = sum(one.change is None for one in found.differences) - alone
    console.say(
        f"{found.same:,} figures are the same, {small:,} differ by less than 1 %, by chance or with"
        f" the source, {alone:,} are in one report alone; --json names all"
    )


def _rows(change: Change, found: tuple[Difference, ...], most: int) -> Iterator[tuple[object, ...]]:
    """Yield the greatest of some changes, in the order of the report."""
    changed = [one for one in found if one.change is change]
    greatest = sorted(changed, key=_size, reverse=True)[:most]
    for place, one in enumerate(one for one in changed if one in greatest):
        figures = [brief(value) for value in (one.before, one.now) if value is not None]
        yield ("" if place else change.value, one.words, *figures)
    if len(changed) > most:
        yield "", f"and {len(changed) - most:,} more that changed less", "", ""


def _size(one: Difference) -> tuple[bool, float]:
    """Return whether it was proved, and how much it changed, as a share of the greater figure."""
    before, now = one.before or 0, one.now or 0
    apart = abs(now - before) / max(abs(before), abs(now), 1e-300)
    return one.figure.startswith("checks "), apart
