"""``dbanon release`` and ``dbanon history``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import dbanon
from dbanon.cli import options
from dbanon.cli.terminal import console, plot, report
from dbanon.domain.errors import ConfigError
from dbanon.domain.outcomes import Stages
from dbanon.pages import figures
from dbanon.request import LARGEST_NUMBER

if TYPE_CHECKING:
    from dbanon.actions.releases.ledger import History


app = typer.Typer(help="Read the ledger of releases.", no_args_is_help=True)

Number = Annotated[
    int, typer.Argument(metavar="N", min=1, max=LARGEST_NUMBER, help="number of the release")
]


@app.command("list")
def list_(
    table: Annotated[
        str | None, typer.Argument(metavar="[TABLE]", show_default=False, help="of one table")
    ] = None,
    *,
    dsn: options.Dsn = None,
    json: options.Json = False,
) -> None:
    """List all releases, newest first, with the rows that live views hide now."""
    from dbanon.actions.releases import ledger

    found = ledger.list_releases(table, settings=options.settings(dsn))
    hidden = ledger.count_hidden(found, settings=options.settings(dsn))
    if json:
        console.document([{**console.plain(r), "hidden": hidden.get(r.id)} for r in found])
        return
    headers = (
        *("release", "table", "policy", "relation", "as", "k", "l", "NCP"),
        *("served", "hidden", "created"),
    )
    rows = [
        (
            r.id,
            r.table,
            r.policy_name,
            r.relation,
            r.kind.value,
            r.policy.k,
            figures.diversity(r.policy),
            r.loss.ncp,
            r.served,
            hidden[r.id].total if r.id in hidden else None,
            r.created_at,
        )
        for r in found
    ]
    console.table(headers, rows)


@app.command()
def show(number: Number, *, dsn: options.Dsn = None, json: options.Json = False) -> None:
    """Show one release: its proofs, later checks and information loss."""
    found = dbanon.load_release(number, settings=options.settings(dsn))
    later = dbanon.list_verifications(number, settings=options.settings(dsn))
    if json:
        console.document({**console.plain(found), "verifications": later})
        return
    console.say(
        f"release {found.id}: {found.table} as {found.relation} ({found.kind.value}), by policy"
        f" {found.policy_name},"
        f" {'served' if found.served else 'not served'}, by {found.created_by}"
        f" at {found.created_at:%Y-%m-%d %H:%M:%S %Z}"
    )
    if found.dataset:
        console.say(f"published together: {', '.join(found.dataset)}")
    report.independence(found.policy)
    report.checks(found.checks)
    report.loss(found.loss, found.policy, verbose=True)
    if later:
        rows = [(one.verified_at, one.verified_by, one.verdict.value, one.reason) for one in later]
        console.table(("checked", "by", "verdict", "reason"), rows)


@app.command()
def drop(
    number: Number,
    *,
    yes: options.Yes = False,
    dsn: options.Dsn = None,
    owner: options.Owner = None,
    allow_superuser: options.AllowSuperuser = False,
) -> None:
    """Withdraw a served release: drop its relation, and keep its ledger entry.

    Asks for confirmation on a terminal.

    \b
    dbanon release drop 3
    dbanon release drop 3 --yes
    """
    settings = options.settings(dsn, owner=owner, superuser=allow_superuser)
    if not yes and console.can_ask():
        found = dbanon.load_release(number, settings=settings)
        question = f"Withdraw {found.relation}, release {number} of {found.table}?"
        if not typer.confirm(console.visible(question), err=True):
            raise ConfigError("nothing was withdrawn", hint=f"dbanon release drop {number} --yes")
    stages = Stages()
    dropped = dbanon.drop_release(number, settings=settings, stages=stages)
    console.say(f"{dropped.relation} is withdrawn; what was copied from it cannot be called back")
    for remark in stages.remarks:
        console.say(remark)


@app.command()
def forget(
    number: Number,
    *,
    yes: options.Yes = False,
    dsn: options.Dsn = None,
    owner: options.Owner = None,
    allow_superuser: options.AllowSuperuser = False,
    json: options.Json = False,
) -> None:
    """Delete the stored membership of a release's series, once none of it is served.

    Deletes keys, hashes and values permanently, and keeps the ledger. Afterwards the table can only
    be published with --new-series. Asks for confirmation on a terminal.

    \b
    dbanon release forget 3
    dbanon release forget 3 --yes
    """
    settings = options.settings(dsn, owner=owner, superuser=allow_superuser)
    if not yes and console.can_ask():
        question = f"Permanently delete the membership of release {number} and of its whole series?"
        if not typer.confirm(question, err=True):
            raise ConfigError("nothing was forgotten", hint=f"dbanon release forget {number} --yes")
    found = dbanon.forget_series(number, settings=settings)
    if json:
        console.document(found)
        return
    numbers = ", ".join(map(str, found.releases))
    console.say(f"membership deleted: releases {numbers} of {found.table}")
    console.say(
        "  what they reveal together, to whoever kept several, can no longer be counted, and"
        " nothing can be compared with them: publish with --new-series"
    )


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
    if plot_:
        plot.require(plot_, example="history.svg")
    found = dbanon.history(table, settings=options.settings(dsn, owner=owner))
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
        for c in found.entries
    ]
    console.table(headers, rows)
    for one in found.entries:
        if one.served and one.growth is not None and one.growth.staleness is not None:
            console.say(f"{one.relation}: {one.growth.staleness}")
    for gone in found.retained:
        if gone.rows or gone.failed:
            console.say(f"{gone.relation}: {gone}")
    for cells in found.compositions:
        report.composition_in_full(cells)
    console.warn_of(notice for cells in found.compositions for notice in cells.notices)
