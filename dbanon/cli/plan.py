"""``dbanon plan``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dbanon.cli import console, models, options, report

if TYPE_CHECKING:
    from dbanon.actions.plan import Plan


@models.with_models
def plan(
    table: options.Table,
    *,
    k: options.K = None,
    l: options.L = None,
    algorithm: options.Algorithm = None,
    max_suppressed: options.MaxSuppressed = None,
    as_: options.As = "table",
    schema: options.Schema = "anon",
    name: options.Name = None,
    grant: options.Grants = None,
    seed: options.Seed = 0,
    print_sql: Annotated[
        bool, typer.Option("--print-sql", help="print the statements publish would run")
    ] = False,
    dsn: options.Dsn = None,
    owner: options.Owner = None,
    json: options.Json = False,
    timings: options.Timings = False,
    models: models.Asked = (),
) -> None:
    """Show what publishing would cost; nothing is written.

    \b
    dbanon plan patients --k 5 --l 3
    dbanon plan patients --k 5 --print-sql
    """
    from dbanon.actions.plan import plan as action

    asked = options.publication(locals())
    with console.watched(timings=timings, steps=4) as stages:
        found = action(
            table,
            settings=options.settings(dsn, owner=owner),
            stages=stages,
            **asked,
        )
    if json:
        console.document(found)
    elif print_sql:
        typer.echo(";\n\n".join(("BEGIN", *found.statements, "COMMIT;")))
    else:
        _show(found)


def _show(found: Plan) -> None:
    title = f"{found.policy.table} as {found.relation}, by {found.policy.algorithm}"
    rows = [(c.name, c.recoding, c.type) for c in found.columns]
    console.table(("quasi-identifier", "recoding", "published type"), rows, title=title)
    report.loss(found.loss)
