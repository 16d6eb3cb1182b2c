"""``dbanon plan --refresh``: what a refresh would do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.cli.notation import percent
from dbanon.cli.terminal import console, report

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from dbanon.actions.refresh import Refreshed
    from dbanon.domain.progress import Stages
    from dbanon.domain.release import Leavers
    from dbanon.settings import Settings


def show(
    table: str,
    leavers: Leavers,
    *,
    settings: Settings,
    watched: Callable[..., AbstractContextManager[Stages]],
    json: bool,
) -> None:
    """Refresh a table, prove it, roll all of it back, and print what would have become of it."""
    from dbanon.actions.refresh import refresh

    with watched(steps=9) as stages:
        found = refresh(table, leavers=leavers, dry_run=True, settings=settings, stages=stages)
    for one in found:
        console.caution(one.release.warnings)
    if json:
        console.document(found)
        return
    for one in found:
        _draw(one)
    if sum(not one.release.dataset for one in found) > 1:
        console.say(
            "each is planned by itself: the relations of a table that are refreshed later show"
            " newcomers in the sets that the first one made of them"
        )


def _draw(found: Refreshed) -> None:
    state = "would be refreshed" if found.changed else "would stay as it is"
    console.say(f"{found.relation}: {state}")
    if found.growth is not None:
        console.say(f"  {found.growth}")
    if found.regrouped is not None:
        console.say(f"  grouped anew: {found.regrouped}")
    if found.former_ncp is not None:
        before, after = percent(found.former_ncp), percent(found.release.loss.ncp)
        console.say(f"  NCP {before} before, {after} after")
    if found.release.composition is not None:
        report.composition_in_full(found.release.composition)
