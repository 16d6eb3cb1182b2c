"""``dbanon history``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dbanon.cli import options
from dbanon.cli.terminal import console, plot, report

if TYPE_CHECKING:
    from dbanon.actions.releases.history import History

Plot = Annotated[
    Path | None,
    typer.Option(
        "--plot",
        metavar="FILE",
        show_default=False,
        help="draw rows, smallest classes and loss over time: a .png, .svg or .pdf",
    ),
]


def history(
    table: options.Table,
    *,
    plot_: Plot = None,
    dsn: options.Dsn = None,
    owner: options.Owner = None,
    json: options.Json = False,
) -> None:
    """Show all releases of a table, and their combined disclosure.

    For the role that publishes: counts again from the stored membership. Anyone who kept several
    releases can compare them in the same way, for people they know.

    \b
    dbanon history patients
    dbanon history patients --json
    dbanon history patients --plot history.svg
    """
    from dbanon.actions.releases.history import history as action

    if plot_:
        plot.require(plot_, example="history.svg")
    found = action(table, settings=options.settings(dsn, owner=owner))
    if plot_:
        plot.draw_history(found, plot_)
    if json:
        console.document(found)
    else:
        _show(found)
    if plot_:
        console.err().print(f"{plot_} written")


def _show(found: History) -> None:
    headers = (
        "release",
        "relation",
        "policy",
        "served",
        "rows",
        "changed",
        "NCP",
        "series",
        "created",
    )
    rows = [
        (
            c.release,
            c.relation,
            c.policy,
            c.served,
            c.published,
            c.changed,
            c.ncp,
            c.series,
            c.created_at,
        )
        for c in found.chapters
    ]
    console.table(headers, rows)
    for gone in found.lingering:
        if gone.rows:
            console.say(f"{gone.relation}: {gone}")
    for one in found.compositions:
        report.composition_in_full(one)
        report.composition(one)
