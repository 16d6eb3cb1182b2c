"""``dbanon inspect``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.cli import options
from dbanon.cli.terminal import console
from dbanon.domain.text import command

if TYPE_CHECKING:
    from dbanon.actions.inspect import InspectedColumn, Inspection


def inspect(
    table: options.Table,
    *,
    dsn: options.Dsn = None,
    json: options.Json = False,
) -> None:
    """Show columns, types, counts and suggested roles.

    \b
    dbanon inspect patients
    dbanon inspect 'clinic."Patient Visits"'
    """
    from dbanon.actions.inspect import inspect as action

    with console.watched(timings=False, steps=1) as stages:
        found = action(table, settings=options.settings(dsn), stages=stages)
    if json:
        console.document(found)
        return
    headers = ("column", "type", "nulls", "distinct", "unique", "role", "reason")
    rows = [_row(column, found) for column in found.columns]
    console.table(headers, rows, title=f"{found.info.name}: {found.n_rows:,} rows")
    key = ", ".join(found.info.primary_key) or "none: publishing needs one"
    console.say(f"primary key: {key}")
    if found.persons is not None:
        unless = "" if found.persons.is_sure else "if these are persons, "
        console.say(f"{found.persons.figure}: {unless}{found.persons.setting}")
    if found.info.row_security:
        console.warn("row-level security is on: publishing would bypass it, and is refused")
    console.say("next: " + command("dbanon policy suggest", found.info.name))


def _row(column: InspectedColumn, found: Inspection) -> tuple[object, ...]:
    stats = column.stats
    share = None
    if stats is not None and found.n_rows:
        share = f"{100 * stats.n_distinct / found.n_rows:.1f}%"
    return (
        column.info.name,
        column.info.type,
        stats.n_null if stats else None,
        stats.n_distinct if stats else None,
        share,
        column.suggestion.role.value,
        column.reason,
    )
