"""``dbanon history``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.cli import options
from dbanon.cli.terminal import console, report

if TYPE_CHECKING:
    from dbanon.actions.releases.history import History


def history(
    table: options.Table,
    *,
    dsn: options.Dsn = None,
    owner: options.Owner = None,
    json: options.Json = False,
) -> None:
    """Show all releases of a table, and what comparing them reveals.

    For the role that publishes: it counts anew from what releases left behind. Anyone who kept
    several releases can do the same with the people they know.

    \b
    dbanon history patients
    dbanon history patients --json
    """
    from dbanon.actions.releases.history import history as action

    found = action(table, settings=options.settings(dsn, owner=owner))
    if json:
        console.document(found)
    else:
        _show(found)


def _show(found: History) -> None:
    headers = ("release", "relation", "policy", "served", "rows", "changed", "NCP", "created")
    rows = [
        (c.release, c.relation, c.policy, c.served, c.published, c.changed, c.ncp, c.created_at)
        for c in found.chapters
    ]
    console.table(headers, rows)
    report.composition_in_full(found.composition)
    report.composition(found.composition)
