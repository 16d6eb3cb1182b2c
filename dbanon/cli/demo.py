"""``dbanon demo``."""

from typing import Annotated

import typer

from dbanon.cli import options
from dbanon.cli.terminal import console, report
from dbanon.cli.terminal.interrupts import interruptible
from dbanon.domain.text import command


def demo(
    *,
    dataset: Annotated[str, typer.Option("--dataset", help="patients or adult")] = "patients",
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
    table, relation = shown.release.table, shown.release.relation
    console.say(f"Loaded {shown.dataset.origin} as {table}:")
    console.table(shown.source_columns, shown.source_rows)
    publish = command("dbanon publish", table, options="--k 5 --l 3")
    console.say(f"{publish} published it as {relation}:")
    console.table(shown.columns, shown.rows)
    report.checks(shown.checks)
    report.loss(shown.release.loss)
    console.say("")
    console.say("What an analyst could run next (dbanon server psql, pgAdmin, pandas ...):")
    console.say("")
    for query in shown.dataset.queries:
        console.verbatim(f"{query};\n\n")
