"""``dbanon plan``: predict the cost of a publication or refresh, or compare algorithms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, TypeVar

import typer

from dbanon.cli import options
from dbanon.cli.refresh import losses
from dbanon.cli.terminal import console, report
from dbanon.cli.terminal import plot as drawing
from dbanon.cli.terminal.console import OnInterrupt, interruptible
from dbanon.domain.text import command
from dbanon.formats.support import Mode, require
from dbanon.pages import comparison, figures, rendering
from dbanon.pages import report as page
from dbanon.pages.figures import percent
from dbanon.request import LARGEST_COUNT, Request

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from dbanon.actions.compare import Compared, Comparison
    from dbanon.actions.plan import Plan
    from dbanon.actions.refresh import Refreshed
    from dbanon.domain.outcomes import Stages
    from dbanon.settings import Settings

Found = TypeVar("Found")
_USUAL_KS = (2, 5, 10, 25, 50, 100)
_MEASURES = ("IL", "C_DM", "C_AVG/k", "CM", "suppressed", "seconds")
_PLANNING, _JUDGING = 4, 11  # stages of a plan, and of one with its report


@options.asking("plan", without={"keep_assignment"})
def plan(
    context: typer.Context,
    table: options.OneTable = None,
    *,
    request: Request,
    dataset: options.DatasetFile = None,
    file: options.Draft = None,
    on_interrupt: options.Interrupt = OnInterrupt.DISCARD,
    print_sql: options.PrintSql = False,
    refresh: options.OfRefresh = False,
    compare: options.Compare = False,
    algorithms: options.Algorithms = None,
    ks: options.Ks = None,
    plot: options.Plot = None,
    html: options.Page = None,
    dsn: options.Dsn = None,
    owner: options.Owner = None,
    allow_superuser: options.AllowSuperuser = False,
    json: options.Json = False,
    verbose: options.Verbose = False,
    timings: options.Timings = False,
    quiet: options.NoProgress = False,
) -> None:
    """Predict the cost of a publication or refresh; store nothing.

    \b
    dbanon plan patients --k 5 --l 3
    dbanon plan patients --k 5 --print-sql
    dbanon plan patients --file draft.toml
    dbanon plan patients --k 5 --compare
    dbanon plan patients --compare --algorithms auto,mondrian --plot loss.svg
    dbanon plan patients --k 5 --html plan.html
    dbanon plan --dataset clinic.toml --k 5 --l 3
    dbanon plan patients --refresh
    """
    watched = partial(console.watched, timings=timings, quiet=quiet)
    settings = options.settings(dsn, owner=owner, superuser=allow_superuser)
    if refresh:
        options.refuse(Mode.FORECAST, _given(context), option="--refresh")
        _forecast(table or "", settings=settings, watched=watched, json=json)
        return
    comparing = bool(compare or algorithms or ks or plot)
    what = _what(table, dataset, given=_given(context), html=html, comparing=comparing)
    request = replace(request, draft=file, settings=settings)
    run = partial(_run, request, watched=watched, on_interrupt=on_interrupt)
    if comparing:
        tried = _tried(str(what), algorithms, ks=ks, plot=plot, page=html)
        tried.show(run(tried.run, steps=tried.steps), json=json)
    else:
        found = run(partial(_planned, what, html=html), steps=_JUDGING if html else _PLANNING)
        _show(found, (dataset, file), json=json, print_sql=print_sql, verbose=verbose)
        _tell_of(html)


def _run(
    request: Request,
    action: Callable[[Request], Found],
    *,
    steps: int,
    watched: Callable[..., AbstractContextManager[Stages]],
    on_interrupt: OnInterrupt,
) -> Found:
    with watched(steps=steps) as stages, interruptible(stages, on_interrupt):
        return action(replace(request, stages=stages))


def _planned(what: str | Path, request: Request, *, html: Path | None) -> list[Plan]:
    """Plan a table or a dataset; writes a page for a table if requested."""
    from dbanon.actions.plan import plan_dataset_request, plan_report_request, plan_request

    if isinstance(what, Path):
        return plan_dataset_request(what, request)
    if html is None:
        return [plan_request(what, request)]
    found, judged = plan_report_request(what, request)
    page.write(judged, html)
    return [found]


def _what(
    table: str | None,
    dataset: Path | None,
    *,
    given: frozenset[str],
    html: Path | None,
    comparing: bool,
) -> str | Path:
    """Return what to plan; refuses options that it excludes, and a page that is not writable."""
    options.refuse(Mode.PLAN, given, option="--allow-superuser")
    what = options.one_of(table, dataset)
    if dataset is not None:
        require(Mode.DATASET, given)
    if comparing:
        require(Mode.COMPARISON, given)
    if html:
        rendering.require(html, example="plan.html")
    return what


def _given(context: typer.Context) -> frozenset[str]:
    """Return the names of the options on the command line."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return frozenset(
        name for name, source in sources.items() if source and source.name == "COMMANDLINE"
    )


def _tell_of(html: Path | None) -> None:
    if html:
        console.err().print(f"{html} written")


def _show(
    found: Sequence[Plan],
    files: tuple[Path | None, Path | None],
    *,
    json: bool,
    print_sql: bool,
    verbose: bool,
) -> None:
    """Print plans; files: a dataset and a draft of a policy, if given."""
    console.warn_of(warning for one in found for warning in one.warnings)
    if json:
        console.document(found[0] if len(found) == 1 else found)
        return
    for one in found:
        if print_sql:
            console.verbatim(one.script)
        else:
            _draw(one, verbose=verbose)
    if not print_sql:
        console.say(f"next: {_next(found[0], *files)}")


def _draw(found: Plan, *, verbose: bool) -> None:
    console.say(f"{found.policy.table} as {found.relation}, by {figures.search(found.policy)}")
    published = {c.name: (c.recoding, c.type) for c in found.columns}
    report.loss(found.loss, found.policy, verbose=verbose, published=published, advice=found.advice)
    others = [(c.name, _spelled(c.others)) for c in found.columns if c.others]
    if verbose and others:
        console.table(("quasi-identifier", "loss by recoding, in these classes"), others)
    console.say(f"every class meets {figures.models(found.policy.models)}")
    if found.sharing is not None:
        console.say(f"  {found.sharing}")
    console.say(f"publish then runs: {', '.join(step.name for step in found.steps)}")


def _next(found: Plan, dataset: Path | None, draft: Path | None) -> str:
    """Return the command that follows a plan: store the draft, or publish."""
    if dataset is not None:
        return f"dbanon publish --dataset {quote(str(dataset))}, with the same options"
    if draft is not None:
        options = f"--file {quote(str(draft))}"
        return command("dbanon policy set", found.policy.table, options=options)
    return f"{command('dbanon publish', found.policy.table)}, with the same options"


def _spelled(losses: Mapping[str, float]) -> str:
    alike: dict[str, list[str]] = {}
    for name, loss in losses.items():
        alike.setdefault(percent(loss), []).append(name)
    return "; ".join(f"{loss} {', '.join(names)}" for loss, names in alike.items())


def _forecast(
    table: str,
    *,
    settings: Settings,
    watched: Callable[..., AbstractContextManager[Stages]],
    json: bool,
) -> None:
    """Refresh a table, prove it, roll it back, and print the result."""
    from dbanon.actions.refresh import refresh

    with watched(steps=9) as stages:
        found = refresh(table, dry_run=True, settings=settings, stages=stages)
    console.warn_of(notice for one in found for notice in one.notices)
    if json:
        console.document(found)
        return
    for one in found:
        _draw_forecast(one)
    if found:
        console.say(f"next: {command('dbanon refresh', found[0].release.table)}")
    if sum(not one.release.dataset for one in found) > 1:
        console.say(
            "each relation is planned alone: in a refresh, the later ones publish new persons in"
            " the classes of the first one"
        )


def _draw_forecast(found: Refreshed) -> None:
    state = "would be refreshed" if found.changed else "would stay as it is"
    console.say(f"{found.relation}: {state}")
    if found.growth is not None:
        console.say(f"  {found.growth}")
    if found.regrouped is not None:
        console.say(f"  grouped from scratch: {found.regrouped}")
    losses(found)
    if found.release.composition is not None:
        report.composition_in_full(found.release.composition)


@dataclass(frozen=True, slots=True)
class _Tried:
    """The options of a comparison, empty for defaults, and its output files."""

    table: str
    names: tuple[str, ...]
    ks: tuple[int, ...]
    plot: Path | None
    page: Path | None

    @property
    def steps(self) -> int:
        """The number of stages."""
        from dbanon.actions.compare import USUAL

        return 2 + 2 * len(self.names or USUAL) * max(len(self.ks), 1)

    def run(self, request: Request) -> Comparison:
        """Compare; reads the table once."""
        from dbanon.actions.compare import compare_request

        return compare_request(self.table, replace(request, algorithms=self.names, ks=self.ks))

    def show(self, found: Comparison, *, json: bool) -> None:
        """Draw the comparison, print it, and write its page."""
        if self.plot:
            drawing.draw_comparison(found, self.plot)
        if self.page:
            comparison.write(found, self.page)
        if json:
            console.document(found)
        else:
            _show_comparison(found)
        for path in filter(None, (self.plot, self.page)):
            console.err().print(f"{path} written")


def _tried(
    table: str, algorithms: str | None, *, ks: str | None, plot: Path | None, page: Path | None
) -> _Tried:
    """Parse the options of a comparison; refuses a file that cannot be drawn."""
    names = tuple(name for part in (algorithms or "").split(",") if (name := part.strip()))
    tried = _numbers(ks) or (_USUAL_KS if plot or page else ())
    if plot:
        drawing.require(plot, example="loss.svg")
    return _Tried(table, names, tried, plot, page)


def _numbers(text: str | None) -> tuple[int, ...]:
    parts = [part.strip() for part in (text or "").split(",") if part.strip()]
    numbers = {int(part) for part in parts if part.isdecimal()}
    if len(numbers) < len(set(parts)) or not all(0 < k <= LARGEST_COUNT for k in numbers):
        raise typer.BadParameter(
            f"{text!r} is no list of numbers such as 2,5,10", param_hint="--ks"
        )
    return tuple(sorted(numbers))


def _show_comparison(found: Comparison) -> None:
    ks = ", ".join(map(str, found.ks))
    penalties = ("weighted NCP", "NCP") if found.is_weighted else ("NCP",)
    console.table(
        ("algorithm", "k", *penalties, *_MEASURES),
        [_row(result) for result in found.results if result.loss is not None],
        title=f"{found.table}: {found.n_rows:,} rows, k = {ks}{found.diversity}",
    )
    for result in found.results:
        if result.reason is not None:
            console.say(f"{result.algorithm}, k = {result.k}: {result.reason}")


def _row(result: Compared) -> tuple[object, ...]:
    loss = result.loss
    if loss is None or result.seconds is None:  # a refusal has no row
        return ()
    penalties = [loss.ncp] if loss.weighted_ncp is None else [loss.weighted_ncp, loss.ncp]
    return (
        result.title,
        result.k,
        *map(percent, penalties),
        f"{loss.metrics['il']:,.0f}",
        f"{loss.metrics['discernibility']:,.0f}",
        f"{loss.metrics['c-avg-normalized']:.2f}",
        None if "cm" not in loss.metrics else f"{loss.metrics['cm']:.3f}",
        loss.n_suppressed,
        f"{result.seconds:.2f}",
    )
