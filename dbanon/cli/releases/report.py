"""``dbanon report``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dbanon.actions.releases.judging import SAMPLES, THRESHOLD
from dbanon.cli import options
from dbanon.cli.notation import counted
from dbanon.cli.pages import rendering
from dbanon.cli.pages import report as page
from dbanon.cli.releases import differences
from dbanon.cli.terminal import console
from dbanon.cli.terminal import report as shown
from dbanon.domain.checks import CheckFailed
from dbanon.domain.wording import alike_in_words
from dbanon.request import LARGEST_COUNT, LARGEST_NUMBER

if TYPE_CHECKING:
    from dbanon.domain.report import Report

Served = Annotated[
    str, typer.Argument(metavar="RELATION", help="a published one, such as anon.patients")
]
Against = Annotated[
    Path | None,
    typer.Option(
        "--against",
        metavar="FILE",
        show_default=False,
        help="an earlier report, as --json wrote it: show what is different",
    ),
]
Samples = Annotated[
    int,
    typer.Option(
        "--samples",
        metavar="ROWS",
        min=1,
        max=LARGEST_COUNT,
        help="the most rows of the source of which each is looked at",
    ),
]
Limit = Annotated[
    float | None,
    typer.Option(
        "--time-limit",
        metavar="TIME",
        parser=options.duration,
        show_default=False,
        help="after which no other part is begun: 30s, 2m; what is left out is named",
    ),
]
Threshold = Annotated[
    float, typer.Option("--threshold", help="the risk over which a record counts as at risk")
]
Population = Annotated[
    int | None,
    typer.Option(
        "--population-size",
        metavar="PERSONS",
        min=1,
        max=LARGEST_NUMBER,
        show_default=False,
        help="of how many persons those of the table are a part",
    ),
]


def report(
    relation: Served,
    *,
    against: Against = None,
    samples: Samples = SAMPLES,
    time_limit: Limit = None,
    threshold: Threshold = THRESHOLD,
    population_size: Population = None,
    html: options.Page = None,
    dsn: options.Dsn = None,
    owner: options.Owner = None,
    json: options.Json = False,
    progress: options.Progress = False,
) -> None:
    """Report what a published relation risks, and what it is worth.

    For the role that publishes: the checks are proved again, and what readers see is held against
    the source as it is now. It names nobody, and no value that the relation does not show. Exit
    code 3 when the relation does not hold what it promises.

    \b
    dbanon report anon.patients
    dbanon report anon.patients --json > before.json
    dbanon report anon.patients --against before.json
    dbanon report anon.patients --population-size 144000
    dbanon report anon.patients --html report.html
    """
    from dbanon.actions.releases.check import explain
    from dbanon.actions.releases.differences import read
    from dbanon.actions.releases.report import report as action

    if html:
        rendering.require(html, example="report.html")
    before = None if against is None else read(against)
    settings = options.settings(dsn, owner=owner)
    with console.watched(timings=False, steps=9, progress=progress) as stages:
        found = action(
            relation,
            samples=samples,
            time_limit=time_limit,
            threshold=threshold,
            population=population_size,
            settings=settings,
            stages=stages,
        )
    _tell(found, before, json=json, html=html)
    if not found.checks.passed:
        raise CheckFailed(explain(found.checks), found.checks, hint="dbanon release list")


def _tell(found: Report, before: dict[str, Any] | None, *, json: bool, html: Path | None) -> None:
    """Print a report, or what is different in it, and write its page."""
    from dbanon.actions.releases.differences import compare

    if before is not None:
        compared = compare(before, console.plain(found))
        if json:
            console.document(compared.different)
        else:
            differences.show(found, compared, before)
    elif json:
        console.document(_document(found))
    else:
        _show(found)
    if html:
        page.write(found, html)
        console.err().print(console.visible(f"{html} written"))


def _document(found: Report) -> dict[str, Any]:
    """Return a report as JSON has it, without the values that its policy names, as its page."""
    document: dict[str, Any] = console.plain(found)
    for condition in document["policy"]["where"]:
        del condition["value"]
    for rule in document["policy"]["columns"]:
        del rule["order"], rule["pooled"]
    return document


def _show(found: Report) -> None:
    from dbanon.cli.terminal import judgement

    shown.checks(found.checks)
    shown.loss(found.loss, found.policy)
    if found.hiding is not None:
        console.say(
            f"that was when it was published; {found.hiding.n_rows:,} rows in"
            f" {found.hiding.classes:,} {alike_in_words(found.policy)[1]} are shown now; hidden:"
            f" {counted(found.hidden)}"
        )
    if found.policy.anatomy:
        console.say(shown.anatomy(found.policy))
    judgement.risk(found.risk)
    judgement.uniqueness(found.risk, sampled=found.sampled)
    judgement.attacks(found.risk.attacks)
    for line in found.risk.not_tried_in_words:
        console.say(line)
    judgement.utility(found.utility)
    console.say(f"readers: {', '.join(found.readers) or 'nobody but its owner'}")
    for part in found.left_out:
        console.warn(f"{part}: left out for want of time")
    console.caution(found.warnings)
    console.say("repeat the checks in SQL: " + found.statements[0])
