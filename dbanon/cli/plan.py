"""``dbanon plan``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbanon.cli import comparison, options
from dbanon.cli.options import models
from dbanon.cli.terminal import console, report
from dbanon.cli.terminal.interrupts import OnInterrupt, interruptible

if TYPE_CHECKING:
    from dbanon.actions.plan import Plan


@models.with_models
def plan(
    table: options.Table,
    *,
    k: options.K = None,
    l: options.L = None,
    algorithm: options.Algorithm = None,
    effort: options.EffortOf = None,
    time_limit: options.TimeLimit = None,
    param: options.Params = None,
    block: options.Block = None,
    max_suppressed: options.MaxSuppressed = None,
    as_: options.As = "table",
    schema: options.Schema = "anon",
    name: options.Name = None,
    grant: options.Grants = None,
    seed: options.Seed = 0,
    on_interrupt: options.Interrupt = OnInterrupt.DISCARD,
    print_sql: options.PrintSql = False,
    compare: options.Compare = False,
    algorithms: options.Algorithms = None,
    ks: options.Ks = None,
    plot: options.Plot = None,
    dsn: options.Dsn = None,
    owner: options.Owner = None,
    json: options.Json = False,
    timings: options.Timings = False,
    models: models.Asked,
) -> None:
    """Show what publishing would cost; nothing is written.

    \b
    dbanon plan patients --k 5 --l 3
    dbanon plan patients --k 5 --print-sql
    dbanon plan patients --k 5 --compare
    dbanon plan patients --compare --algorithms auto,mondrian --plot loss.svg
    """
    given = locals()
    if compare or algorithms or ks or plot:
        comparison.compare(given)
    else:
        _plan(given)


def _plan(given: dict[str, Any]) -> None:
    from dbanon.actions.plan import plan as action

    asked = options.publication(given)
    with (
        console.watched(timings=given["timings"], steps=4) as stages,
        interruptible(stages, given["on_interrupt"]),
    ):
        found = action(
            given["table"],
            settings=options.settings(given["dsn"], owner=given["owner"]),
            stages=stages,
            **asked,
        )
    console.caution(found.warnings)
    if given["json"]:
        console.document(found)
    elif given["print_sql"]:
        console.verbatim(found.script)
    else:
        _show(found)


def _show(found: Plan) -> None:
    title = f"{found.policy.table} as {found.relation}, by {report.search(found.policy)}"
    rows = [(c.name, c.recoding, c.type) for c in found.columns]
    console.table(("quasi-identifier", "recoding", "published type"), rows, title=title)
    report.loss(found.loss)
