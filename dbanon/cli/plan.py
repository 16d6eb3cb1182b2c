"""``dbanon plan``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dbanon.cli import comparison, options
from dbanon.cli.options import publication
from dbanon.cli.terminal import console, report
from dbanon.cli.terminal.interrupts import OnInterrupt, interruptible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dbanon.actions.plan import Plan


@publication.asking(without={"keep_assignment"})
def plan(
    table: options.OneTable = None,
    *,
    asked: publication.Asked,
    dataset: options.DatasetFile = None,
    file: options.Draft = None,
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
    progress: options.Progress = False,
) -> None:
    """Show what publishing would cost; nothing is written.

    \b
    dbanon plan patients --k 5 --l 3
    dbanon plan patients --k 5 --print-sql
    dbanon plan patients --file draft.toml
    dbanon plan patients --k 5 --compare
    dbanon plan patients --compare --algorithms auto,mondrian --plot loss.svg
    dbanon plan --dataset clinic.toml --k 5 --l 3
    """
    what = options.one_of(table, dataset)
    if isinstance(what, Path) and (file or compare or algorithms or ks or plot):
        raise typer.BadParameter("goes with no other policy or search", param_hint="--dataset")
    wanted = None
    if compare or algorithms or ks or plot:
        _require_comparable(asked, print_sql=print_sql)
        wanted = comparison.wanted(str(what), algorithms, ks=ks, plot=plot)
    asked |= {"settings": options.settings(dsn, owner=owner)}
    with (
        console.watched(
            timings=timings, steps=wanted.steps if wanted else 4, progress=progress
        ) as stages,
        interruptible(stages, on_interrupt),
    ):
        if wanted is None:
            found = _planned(what, file, stages=stages, **asked)
        else:
            compared = wanted.run(draft=file, stages=stages, **asked)
    if wanted is None:
        _show(found, json=json, print_sql=print_sql)
    else:
        wanted.show(compared, json=json)


def _planned(
    what: str | Path,
    draft: Path | None,
    **asked: Any,  # noqa: ANN401 - whatever the options ask for
) -> list[Plan]:
    from dbanon.actions.plan import plan as of_table
    from dbanon.actions.plan import plan_dataset

    if isinstance(what, Path):
        return plan_dataset(what, **asked)
    return [of_table(what, draft=draft, **asked)]


def _require_comparable(asked: publication.Asked, *, print_sql: bool) -> None:
    if asked["algorithm"]:
        raise typer.BadParameter("name them with --algorithms A,B", param_hint="--algorithm")
    if print_sql:
        raise typer.BadParameter("a comparison has no statements", param_hint="--print-sql")


def _show(found: Sequence[Plan], *, json: bool, print_sql: bool) -> None:
    for one in found:
        console.caution(one.warnings)
    if json:
        console.document(found[0] if len(found) == 1 else found)
        return
    for one in found:
        if print_sql:
            console.verbatim(one.script)
        else:
            _draw(one)


def _draw(found: Plan) -> None:
    title = f"{found.policy.table} as {found.relation}, by {report.search(found.policy)}"
    rows = [(c.name, c.recoding, c.type) for c in found.columns]
    console.table(("quasi-identifier", "recoding", "published type"), rows, title=title)
    console.say(f"every class meets {report.models(found.policy.models)}")
    report.loss(found.loss)
