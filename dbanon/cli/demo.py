"""``dbanon demo``."""

from typing import Annotated

import typer

from dbanon.cli import console, options, report
from dbanon.cli.interrupts import interruptible


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
    console.say(f"dbanon publish {table} --k 5 --l 3 published it as {relation}:")
    console.table(shown.columns, shown.rows)
    report.checks(shown.checks)
    report.loss(shown.release.loss)
    console.say("\nWhat an analyst could run next (dbanon server psql, pgAdmin, pandas ...):\n")
    for query in shown.dataset.queries:
        console.say(f"{query};\n")
