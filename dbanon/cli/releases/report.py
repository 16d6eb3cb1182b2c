"""``dbanon report``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dbanon.cli import options
from dbanon.cli.terminal import console
from dbanon.cli.terminal import report as shown
from dbanon.domain.messages import alike_in_words
from dbanon.domain.notices import Notice, Topic
from dbanon.domain.release import CheckFailed, CheckReport
from dbanon.domain.report import SAMPLES, THRESHOLD, Change, Difference, Report, SignOff
from dbanon.formats.finders import given
from dbanon.formats.support import Mode
from dbanon.pages import figures, rendering
from dbanon.pages import report as page
from dbanon.pages.figures import number, percent
from dbanon.request import LARGEST_COUNT, LARGEST_NUMBER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from dbanon.actions.releases.report import Differences
    from dbanon.domain.outcomes import Stages
    from dbanon.settings import Settings


Served = Annotated[
    str | None,
    typer.Argument(
        metavar="RELATION",
        show_default=False,
        help="a published one, such as anon.patients; or --dataset FILE",
    ),
]
DatasetFile = Annotated[
    Path | None,
    typer.Option(
        "--dataset",
        metavar="FILE",
        show_default=False,
        help="report on the linked tables that a TOML file lists",
    ),
]
Public = Annotated[
    bool, typer.Option("--public", help="use the release, its policy and the ledger alone")
]
Against = Annotated[
    Path | None,
    typer.Option(
        "--against",
        metavar="FILE",
        show_default=False,
        help="compare with an earlier report, written by --json",
    ),
]
Samples = Annotated[
    int,
    typer.Option(
        "--samples",
        metavar="ROWS",
        min=1,
        max=LARGEST_COUNT,
        help="sample at most this many source rows",
    ),
]
Limit = Annotated[
    float | None,
    typer.Option(
        "--time-limit",
        metavar="TIME",
        parser=options.duration,
        show_default=False,
        help="time budget: 30s, 2m; sections that do not fit are skipped and listed",
    ),
]
Threshold = Annotated[
    float, typer.Option("--threshold", help="risk above which a record counts as at risk")
]
Population = Annotated[
    int | None,
    typer.Option(
        "--population-size",
        metavar="PERSONS",
        min=1,
        max=LARGEST_NUMBER,
        show_default=False,
        help="size of the population the table was drawn from",
    ),
]


SigningOff = Annotated[
    bool, typer.Option("--sign-off", help="one page to sign: contents, approval, proof, readers")
]


def report(
    relation: Served = None,
    *,
    dataset: DatasetFile = None,
    public: Public = False,
    sign_off: SigningOff = False,
    against: Against = None,
    samples: Samples = SAMPLES,
    time_limit: Limit = None,
    threshold: Threshold = THRESHOLD,
    population_size: Population = None,
    html: options.Page = None,
    dsn: options.Dsn = None,
    owner: options.Owner = None,
    json: options.Json = False,
    quiet: options.NoProgress = False,
) -> None:
    """Report the risk and the utility of a published relation.

    For the role that publishes. Proves the models again, and compares the release with its source:
    the report has exact figures of the source and is confidential. A --public report reads no row
    of the source, and can be shared. Exit code 3 if a promised model fails.

    \b
    dbanon report anon.patients
    dbanon report anon.patients --public --html public.html
    dbanon report anon.patients --against before.json
    dbanon report --dataset clinic.toml
    dbanon report anon.patients --sign-off --html sign-off.html
    """
    from dbanon.actions.releases import report as reports

    settings = options.settings(dsn, owner=owner)
    watched = partial(console.watched, timings=False, quiet=quiet)
    if sign_off:
        alone = None if dataset or against or public else relation
        _sign_off(alone, settings=settings, watched=watched, json=json, html=html)
        return
    if dataset is not None:
        others = given(relation=relation, against=against, html=html)
        options.refuse(Mode.REPORT_TOGETHER, others, option="--dataset")
        _report_dataset(dataset, public=public, settings=settings, watched=watched, json=json)
        return
    if relation is None:
        raise typer.BadParameter("name a relation, or --dataset FILE", param_hint="RELATION")
    _require_page(html, example="report.html")
    before = None if against is None else reports.read(against, public=public)
    asked: dict[str, Any] = {"samples": samples, "time_limit": time_limit, "threshold": threshold}
    asked |= {"population": population_size, "public": public}
    with watched(steps=4 if public else 9) as stages:
        found = reports.report(relation, **asked, settings=settings, stages=stages)
    _tell(found, before, json=json, html=html)
    _require_passed(found.checks)


def _require_page(html: Path | None, *, example: str) -> None:
    """Refuse a page that cannot be written, before any computation."""
    if html is not None:
        rendering.require(html, example=example)


def _sign_off(
    relation: str | None,
    *,
    settings: Settings,
    watched: Callable[..., AbstractContextManager[Stages]],
    json: bool,
    html: Path | None,
) -> None:
    from dbanon.actions.releases.sign_off import sign_off
    from dbanon.pages import sign_off as signed

    if relation is None:
        raise typer.BadParameter("takes a relation, --html and --json", param_hint="--sign-off")
    _require_page(html, example="sign-off.html")
    with watched(steps=4) as stages:
        found = sign_off(relation, settings=settings, stages=stages)
    if json:
        console.document(_document(found))
    else:
        for title, text in signed.facts(found):
            console.say(f"{title}: {text}")
        for risk in found.risks:
            console.say(f"- {risk}")
    if html:
        signed.write(found, html)
        console.err().print(console.visible(f"{html} written"))
    _require_passed(found.checks)


def _require_passed(checks: CheckReport) -> None:
    from dbanon.actions.releases.check import explain

    if not checks.passed:
        raise CheckFailed(explain(checks), checks, hint="dbanon release list")


def _report_dataset(
    dataset: Path,
    *,
    public: bool,
    settings: Settings,
    watched: Callable[..., AbstractContextManager[Stages]],
    json: bool,
) -> None:
    from dbanon.actions.releases.report import report_dataset

    with watched(steps=4) as stages:
        found = report_dataset(dataset, public=public, settings=settings, stages=stages)
    if json:
        console.document(found)
    else:
        _head(found.confidential)
        for one in found.tables:
            console.say(f"{one.table} as {one.relation} (release {one.release})")
            shown.checks(one.checks)
            _say_proofs(one.proofs)
            if one.loss is not None:
                console.say(f"loss (NCP): {percent(one.loss.ncp)} of all {one.loss.n_rows:,} rows")
            shown.label_loss(one.label_loss)
    for one in found.tables:
        _require_passed(one.checks)


def _tell(found: Report, before: dict[str, Any] | None, *, json: bool, html: Path | None) -> None:
    """Print a report, or its differences from another, and write its page."""
    from dbanon.actions.releases.report import compare

    if before is not None:
        compared = compare(before, console.plain(found))
        if json:
            console.document({"confidential": found.confidential, "figures": compared.different})
        else:
            _head(found.confidential)
            show(found, compared, before)
    elif json:
        console.document(_document(found))
    else:
        _head(found.confidential)
        _show(found)
    if html:
        page.write(found, html)
        console.err().print(console.visible(f"{html} written"))


def _head(confidential: str | None) -> None:
    if confidential is not None:
        console.say(confidential)


def _say_proofs(proofs: Sequence[str]) -> None:
    for line in proofs:
        console.say(line)


def _document(found: Report | SignOff) -> dict[str, Any]:
    """Return a report as JSON, without values that its policy names, like its page."""
    document: dict[str, Any] = console.plain(found)
    for condition in document["policy"]["where"]:
        del condition["value"]
    for rule in document["policy"]["columns"]:
        del rule["order"], rule["pooled"]
    return document


def _show(found: Report) -> None:
    shown.checks(found.checks)
    _say_proofs(found.proofs)
    if found.loss is not None:
        shown.loss(found.loss, found.policy)
    shown.label_loss(found.label_loss)
    shown.independence(found.policy)
    if found.hiding is not None:
        console.say(
            f"that was when it was published; {found.hiding.n_rows:,} rows in"
            f" {found.hiding.classes:,} {alike_in_words(found.policy)[1]} are shown now; hidden:"
            f" {found.hidden:,}"
        )
    if found.policy.anatomy:
        console.say(figures.anatomy(found.policy))
    shown.risk(found.risk)
    shown.uniqueness(found.risk, sampled=found.sampled)
    shown.attacks(found.risk.attacks)
    for line in found.risk.not_tried_in_words:
        console.say(line)
    if found.utility is not None:
        shown.utility(found.utility)
    console.say(f"readers: {', '.join(found.readers) or 'only its owner'}")
    skipped = (Notice(Topic.TIME_LIMIT, f"{part}: left out") for part in found.left_out)
    console.warn_of([*skipped, *found.warnings])
    console.say("repeat the checks in SQL: " + found.statements[0])


_SHOWN = 22  # the largest changes, per kind
_RISKS = ("checks ", "risk ")  # of which all are named that one report alone has


def show(now: Report, found: Differences, before: dict[str, Any]) -> None:
    """Print increases of risk and losses of utility, and summarize other changes."""
    relation, release = before.get("relation"), before.get("release")
    title = f"{now.relation} (release {now.release}), against {relation} (release {release})"
    if not found.different:
        console.say(f"{title}: no figure is different")
        return
    there = [c for c in Change if any(one.change is c for one in found.different)]
    most = _SHOWN // max(len(there), 1)
    rows = [row for change in there for row in _changed(change, found.different, most)]
    rows += _alone(found.different)
    console.say(title)
    if Change.RISKIER not in there:
        console.say("nothing that both reports have is riskier")
    if rows:
        console.table(("", "figure", "before", "now"), rows)
    alone = sum(None in (one.before, one.now) for one in found.different)
    small = sum(one.change is None for one in found.different) - alone
    console.say(
        f"{found.same:,} figures are the same, {small:,} differ by less than 1 %, by chance or with"
        f" the source, {alone:,} are in one report alone; --json names all"
    )


def _changed(
    change: Change, found: Sequence[Difference], most: int
) -> Iterator[tuple[object, ...]]:
    changed = [one for one in found if one.change is change]
    proofs_first = sorted(
        changed, key=lambda one: (one.figure.startswith("checks "), one.apart), reverse=True
    )
    greatest = proofs_first[:most]
    yield from _rows(change.value, [one for one in changed if one in greatest])
    if len(changed) > most:
        yield "", f"and {len(changed) - most:,} more that changed less", "", ""


def _alone(found: Sequence[Difference]) -> Iterator[tuple[object, ...]]:
    risks = [one for one in found if one.words and one.figure.startswith(_RISKS)]
    yield from _rows("only before", [one for one in risks if one.now is None])
    yield from _rows("only now", [one for one in risks if one.before is None])


def _rows(kind: str, some: Sequence[Difference]) -> Iterator[tuple[object, ...]]:
    for place, one in enumerate(some):
        yield (
            "" if place else kind,
            one.words,
            *(_in_figures(one, v) for v in (one.before, one.now)),
        )


def _in_figures(one: Difference, value: float | None) -> str:
    return percent(value) if one.is_share and value is not None else number(value)
