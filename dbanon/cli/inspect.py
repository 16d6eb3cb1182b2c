"""``dbanon inspect``."""

from __future__ import annotations

from json import dumps
from typing import TYPE_CHECKING, Annotated

import typer

import dbanon
from dbanon.cli import options
from dbanon.cli.terminal import console
from dbanon.domain.table import quote_identifier
from dbanon.domain.text import command

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dbanon.actions.inspect import InspectedColumn, Inspection


_SHOWN = 5

Query = Annotated[
    str | None,
    typer.Option("--query", metavar="SQL", show_default=False, help="inspect a query instead"),
]
CreateView = Annotated[
    str | None,
    typer.Option(
        "--create-view", metavar="NAME", show_default=False, help="store the query as a view"
    ),
]


def inspect(
    table: Annotated[
        str | None, typer.Argument(metavar="TABLE", show_default=False, help="a table or a view")
    ] = None,
    *,
    query: Query = None,
    create_view: CreateView = None,
    dsn: options.Dsn = None,
    json: options.Json = False,
) -> None:
    """Show columns, types, counts, suggested roles and recodings.

    \b
    dbanon inspect patients
    dbanon inspect 'clinic."Patient Visits"'
    dbanon inspect --query 'SELECT * FROM rental JOIN customer USING (customer_id)'
    dbanon inspect --query 'SELECT ...' --create-view public.rentals
    """
    from dbanon.formats.policy_validation import obstacles

    if (table is None) == (query is None) or (create_view is not None and query is None):
        raise typer.BadParameter("name a table, or write --query (and --create-view)")
    settings = options.settings(dsn)
    with console.watched(timings=False, steps=2) as stages:
        if query is None:
            found = dbanon.inspect(table or "", settings=settings, stages=stages)
        else:
            found = dbanon.inspect_query(
                query, create_view=create_view, settings=settings, stages=stages
            )
    if json:
        console.document(found)
        return
    headers = ("column", "type", "nulls", "distinct", "unique", "role", "recoding", "reason")
    rows = [_row(column, found) for column in found.columns]
    name = "the query" if query is not None and create_view is None else str(found.info.name)
    console.table(headers, rows, title=f"{name}: {found.n_rows:,} rows")
    _unique_sets(found)
    console.say(_key(found))
    for line in _persons(found):
        console.say(line)
    for obstacle in obstacles(found.info):
        console.say(f"publishing is refused: {obstacle}")
    if query is not None and create_view is None:
        console.say("next: the same with --create-view NAME")
    else:
        console.say("next: " + command("dbanon policy suggest", found.info.name))


def _unique_sets(found: Inspection) -> None:
    """Print the suggested quasi-identifiers that make most rows unique."""
    sets = [
        (", ".join(map(quote_identifier, one.columns)), one.rows, f"{100 * one.share:.1f}%")
        for one in found.unique_sets[:_SHOWN]
    ]
    if sets:
        title = f"Smallest sets of columns that make rows unique, of {found.sampled:,} rows"
        console.table(("columns", "rows", "share"), sets, title=title)
    if found.finding is not None:
        console.say(found.finding)


def _key(found: Inspection) -> str:
    if found.info.primary_key:
        return f"primary key: {', '.join(found.info.primary_key)}"
    if found.key:
        return f"no primary key; unique so far: key = {dumps(found.key)}"
    return 'no primary key: name columns that identify a row, as in key = ["column", "column"]'


def _persons(found: Inspection) -> Iterator[str]:
    """Yield the column of persons with several rows, and the columns that vary between these."""
    if found.persons is not None:
        unless = "" if found.persons.is_sure else "if these are persons, "
        yield f"{found.persons.figure}: {unless}{found.persons.setting}"
    if found.differing:
        names = ", ".join(map(quote_identifier, found.differing))
        yield f"rows of a person differ in {names}: each class covers all their values"


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
        None if column.proposal is None else column.proposal.recoding,
        column.reason,
    )
