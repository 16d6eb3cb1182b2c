"""``dbanon demo``."""

from typing import TYPE_CHECKING, Annotated

import typer

from dbanon.cli import options
from dbanon.cli.terminal import console, report
from dbanon.cli.terminal.interrupts import interruptible
from dbanon.domain.text import command

if TYPE_CHECKING:
    from dbanon.actions.demo import Published


def demo(
    *,
    dataset: Annotated[
        str, typer.Option("--dataset", help="patients, adult or clinic (linked tables)")
    ] = "patients",
    dsn: options.Dsn = None,
    allow_superuser: options.AllowSuperuser = False,
    timings: options.Timings = False,
) -> None:
    """Publish real patients on an embedded PostgreSQL.

    The whole story in one command: load, publish, prove, query.
    """
    from dbanon.actions.demo import demo as action

    with console.watched(timings=timings, steps=11) as stages, interruptible(stages):
        shown = action(
            dataset, settings=options.settings(dsn, superuser=allow_superuser), stages=stages
        )
    console.say(f"Loaded {shown.sample.origin}.")
    for one in shown.published:
        _show(one, publish="dbanon publish --dataset clinic.toml" if shown.sample.tables else None)
    console.say("")
    console.say("What an analyst could run next (dbanon server psql, pgAdmin, pandas ...):")
    console.say("")
    for query in shown.sample.queries:
        console.verbatim(f"{query};\n\n")


def _show(one: "Published", *, publish: str | None) -> None:
    table = one.release.table
    console.say(f"{table}:")
    console.table(one.source_columns, one.source_rows)
    publish = publish or command("dbanon publish", table, options="--k 5 --l 3")
    console.say(f"{publish} published it as {one.release.relation}:")
    console.table(one.columns, one.rows)
    report.checks(one.checks)
    report.loss(one.release.loss, one.release.policy)
