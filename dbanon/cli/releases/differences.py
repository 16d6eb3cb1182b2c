"""How two reports that were held against each other look."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbanon.cli.notation import number, percent
from dbanon.cli.terminal import console
from dbanon.domain.report import Change

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dbanon.actions.releases.differences import Differences
    from dbanon.domain.report import Difference, Report

_SHOWN = 22  # the greatest changes, as many of each kind
_RISKS = ("checks ", "risk ")  # of which all are named that one report alone has


def show(now: Report, found: Differences, before: dict[str, Any]) -> None:
    """Print what got riskier, and less useful, and in one line each what else there is."""
    relation, release = before.get("relation"), before.get("release")
    title = f"{now.relation} (release {now.release}), against {relation} (release {release})"
    if not found.different:
        console.say(f"{title}: no figure is different")
        return
    there = [c for c in Change if any(one.change is c for one in found.different)]
    most = _SHOWN // max(len(there), 1)
    rows = [row for change in there for row in _changed(change, found.different, most)]
    rows += _alone(found.different)
    console.say(title)
    if Change.RISKIER not in there:
        console.say("nothing that both reports have is riskier")
    if rows:
        console.table(("", "figure", "before", "now"), rows)
    alone = sum(None in (one.before, one.now) for one in found.different)
    small = sum(one.change is None for one in found.different) - alone
    console.say(
        f"{found.same:,} figures are the same, {small:,} differ by less than 1 %, by chance or with"
        f" the source, {alone:,} are in one report alone; --json names all"
    )


def _changed(
    change: Change, found: Sequence[Difference], most: int
) -> Iterator[tuple[object, ...]]:
    """Yield the greatest of some changes, in the order of the report."""
    changed = [one for one in found if one.change is change]
    greatest = sorted(changed, key=_size, reverse=True)[:most]
    yield from _rows(change.value, [one for one in changed if one in greatest])
    if len(changed) > most:
        yield "", f"and {len(changed) - most:,} more that changed less", "", ""


def _size(one: Difference) -> tuple[bool, float]:
    """Return whether it was proved, and how much it changed, as a share of the greater figure."""
    return one.figure.startswith("checks "), one.apart


def _alone(found: Sequence[Difference]) -> Iterator[tuple[object, ...]]:
    """Yield what was proved, or risked, by one report alone."""
    risks = [one for one in found if one.words and one.figure.startswith(_RISKS)]
    yield from _rows("only before", [one for one in risks if one.now is None])
    yield from _rows("only now", [one for one in risks if one.before is None])


def _rows(kind: str, some: Sequence[Difference]) -> Iterator[tuple[object, ...]]:
    for place, one in enumerate(some):
        yield "" if place else kind, one.words, *(_told(one, v) for v in (one.before, one.now))


def _told(one: Difference, value: float | None) -> str:
    return percent(value) if one.is_share and value is not None else number(value)
