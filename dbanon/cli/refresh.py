"""``dbanon refresh``."""

from typing import TYPE_CHECKING, Annotated

import typer

import dbanon
from dbanon.cli import options
from dbanon.cli.terminal import console, report
from dbanon.cli.terminal.report import percent

if TYPE_CHECKING:
    from dbanon.actions.refresh import Refreshed


All = Annotated[bool, typer.Option("--all", help="all published tables")]
IfChanged = Annotated[
    bool, typer.Option("--if-changed", help="skip releases that would not change")
]


def refresh(
    table: Annotated[
        str | None, typer.Argument(metavar="TABLE", show_default=False, help="or --all")
    ] = None,
    *,
    all_: All = False,
    if_changed: IfChanged = False,
    strict: options.Strict = False,
    new_series: options.NewSeries = False,
    recipients_changed: options.RecipientsChanged = False,
    dsn: options.Dsn = None,
    owner: options.Owner = None,
    allow_superuser: options.AllowSuperuser = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    timings: options.Timings = False,
) -> None:
    """Refresh served releases: keep classes, add new persons.

    Uses the stored policy and the options of the last publication. For cron: --quiet prints only
    problems, and the exit code is 0 (done), 1 (error), 3 (check failed) or 4 (drift).

    \b
    dbanon refresh patients
    dbanon refresh --all --if-changed --quiet
    """
    with console.watched(timings=timings, steps=9, quiet=quiet) as stages:
        results = dbanon.refresh(
            table,
            all_tables=all_,
            if_changed=if_changed,
            strict=strict,
            new_series=new_series,
            recipients_changed=recipients_changed,
            settings=options.settings(dsn, owner=owner, superuser=allow_superuser),
            stages=stages,
        )
    _show_all(results, json=json, quiet=quiet)


def _show_all(results: "list[Refreshed]", *, json: bool, quiet: bool) -> None:
    if json:
        console.document(results)
    for result in results:
        show(result, silent=json or quiet)
    console.caution(warning for result in results for warning in result.release.warnings)
    if not results and not quiet:
        console.warn("nothing is published, so there was nothing to refresh")
    codes = [result.error.exit_code for result in results if result.error is not None]
    if codes:
        raise typer.Exit(max(codes))


def show(result: "Refreshed", *, silent: bool) -> None:
    """Report the outcome for a relation; silent: only problems."""
    if result.error is not None:
        console.warn(f"{result.relation}: {console.with_hint(result.error)}")
    elif not silent:
        state = "refreshed" if result.changed else "unchanged"
        console.say(f"{result.relation}: {state}, release {result.release.id}")
        if result.growth is not None:
            console.say(f"  {result.growth}")
        if result.changed and result.release.sharing is not None:
            console.say(f"  {result.release.sharing}")
        if result.regrouped is not None:
            console.say(f"  grouped from scratch: {result.regrouped}")
        losses(result)
    if result.stale is not None:
        console.warn(f"{result.relation}: {result.stale}")
    if result.changed:
        report.composition(result.release.composition)


def losses(result: "Refreshed") -> None:
    """Report the loss before, now and of a new search, and a remedy if they differ much."""
    now, new = percent(result.release.loss.ncp), result.new_ncp
    if result.former_ncp is not None and result.changed:
        now = f"{percent(result.former_ncp)} before, {now} after"
    if new is not None:
        now = f"{now}; about {percent(new)} by a new search"
    if new is not None or result.former_ncp is not None:
        console.say(f"  NCP {now}")
    if result.advice is not None:
        console.say(f"  {result.advice}")
