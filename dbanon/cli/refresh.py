"""``dbanon refresh``, ``schedule`` and ``worker``."""

from __future__ import annotations

import signal
import sys
from contextlib import contextmanager
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

import dbanon
from dbanon.cli import options
from dbanon.cli.terminal import console
from dbanon.pages.figures import percent

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from dbanon.actions.jobs.schedules import Scheduled
    from dbanon.actions.jobs.worker import Worked
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


def _show_all(results: list[Refreshed], *, json: bool, quiet: bool) -> None:
    if json:
        console.document(results)
    for result in results:
        show(result, silent=json or quiet)
    console.warn_of(notice for result in results for notice in result.notices)
    if not results and not quiet:
        console.note("nothing is published, so there was nothing to refresh")
    codes = [result.error.exit_code for result in results if result.error is not None]
    if codes:
        raise typer.Exit(max(codes))


def show(result: Refreshed, *, silent: bool) -> None:
    """Report the outcome for a relation; silent: only problems."""
    if result.error is not None:
        console.problem(result.error, of=result.relation)
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


def losses(result: Refreshed) -> None:
    """Report the loss before, now and of a new search, and a remedy if they differ much."""
    now, new = percent(result.release.loss.ncp), result.new_ncp
    if result.former_ncp is not None and result.changed:
        now = f"{percent(result.former_ncp)} before, {now} after"
    if new is not None:
        now = f"{now}; about {percent(new)} by a new search"
    if new is not None or result.former_ncp is not None:
        console.say(f"  NCP {now}")
    advice = result.advice or (result.release.advice if result.changed else None)
    if advice is not None:
        console.say(f"  {advice}")


class _Tables(TyperGroup):
    """A group with ``set`` as default command: ``dbanon schedule patients --cron ...``."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - Typer's own Click
        given = args if not args or args[0] in self.commands else ["set", *args]
        return super().resolve_command(ctx, given)


app = typer.Typer(
    help="Manage refresh schedules; `dbanon worker` runs them.", no_args_is_help=True, cls=_Tables
)


@app.command("set")
def set_(
    table: options.Table,
    *,
    cron: Annotated[
        str,
        typer.Option(
            metavar="EXPRESSION",
            show_default=False,
            help="minute, hour, day of month, month, day of week: '15 3 * * *'",
        ),
    ],
    zone: Annotated[
        str, typer.Option(metavar="ZONE", help="the time zone, such as Europe/Berlin")
    ] = "UTC",
    dsn: options.Dsn = None,
    owner: options.Owner = None,
    allow_superuser: options.AllowSuperuser = False,
    json: options.Json = False,
) -> None:
    """Set the refresh schedule of a table.

    A job runs `dbanon refresh TABLE --if-changed`. The word `set` may be omitted.

    \b
    dbanon schedule set patients --cron '15 3 * * *'
    dbanon schedule set patients --cron '15 3 * * SUN' --zone Europe/Berlin
    """
    settings = options.settings(dsn, owner=owner, superuser=allow_superuser)
    stored = dbanon.set_schedule(table, cron, zone=zone, settings=settings)
    if json:
        console.document(stored)
        return
    console.say(f"{stored.table} is next due at {stored.next_due:%Y-%m-%d %H:%M %Z}")


@app.command("list")
def list_(
    *, dsn: options.Dsn = None, owner: options.Owner = None, json: options.Json = False
) -> None:
    """List the schedules, with the next due time and the result of the last job.

    \b
    dbanon schedule list
    dbanon schedule list --json
    """
    found = dbanon.list_schedules(settings=options.settings(dsn, owner=owner))
    if json:
        console.document(found)
        return
    headers = ("table", "cron", "zone", "next", "waiting", "succeeded", "last job", "because")
    console.table(headers, map(_row, found))


def _row(one: Scheduled) -> tuple[object, ...]:
    schedule, jobs = one.schedule, one.jobs
    return (
        one.table,
        schedule and schedule.cron,
        schedule and schedule.zone,
        one.next_due,
        jobs.waiting if jobs else 0,
        jobs and jobs.succeeded_at,
        jobs and (jobs.result or jobs.state),
        jobs and jobs.reason and "; ".join(map(str.strip, jobs.reason.splitlines())),
    )


@app.command()
def remove(
    table: options.Table,
    *,
    dsn: options.Dsn = None,
    owner: options.Owner = None,
    allow_superuser: options.AllowSuperuser = False,
) -> None:
    """Remove the refresh schedule of a table; its releases stay.

    \b
    dbanon schedule remove patients
    """
    settings = options.settings(dsn, owner=owner, superuser=allow_superuser)
    removed = dbanon.remove_schedule(table, settings=settings)
    console.say(f"{removed} is not scheduled any more")


MetricsPort = Annotated[
    int | None,
    typer.Option(
        metavar="PORT",
        min=1,
        max=65535,
        show_default=False,
        help="serve /metrics and /healthz on this port of 127.0.0.1",
    ),
]


def worker(
    *,
    once: Annotated[bool, typer.Option("--once", help="run due jobs, then exit")] = False,
    metrics_port: MetricsPort = None,
    dsn: options.Dsn = None,
    owner: options.Owner = None,
    allow_superuser: options.AllowSuperuser = False,
    json: Annotated[bool, typer.Option("--json", help="print one JSON document per job")] = False,
    quiet: options.Quiet = False,
) -> None:
    """Run scheduled refreshes until stopped.

    Any number of workers share the jobs. A worker may be killed at any time: no job is lost or
    done twice. SIGTERM and Ctrl-C end it
    with exit code 0, and its job waits for another worker. With --once it has the exit codes of
    `dbanon refresh`.

    \b
    dbanon worker --metrics-port 9465
    dbanon worker --once --json
    """
    codes = []

    def on_job(worked: Worked) -> None:
        if once and worked.outcome.error is not None:
            codes.append(worked.outcome.error.exit_code)
        _show_worked(worked, json=json, quiet=quiet)

    stop = Event()
    with _until(stop):
        dbanon.work(
            once=once,
            metrics_port=metrics_port,
            stop=stop,
            on_job=on_job,
            on_note=console.note,
            settings=options.settings(dsn, owner=owner, superuser=allow_superuser),
        )
    if codes:
        raise typer.Exit(max(codes))


@contextmanager
def _until(stop: Event) -> Iterator[None]:
    """Set ``stop`` at SIGTERM and Ctrl-C, and end the block without an error."""

    def handle(_number: int, _frame: FrameType | None) -> None:
        stop.set()
        raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    for number, action in before.items():
        if action is not signal.SIG_IGN:
            signal.signal(number, handle)
    try:
        yield
    except KeyboardInterrupt:
        if not stop.is_set():
            raise
    finally:
        for number, action in before.items():
            signal.signal(number, action)


def _show_worked(worked: Worked, *, json: bool, quiet: bool) -> None:
    outcome = worked.outcome
    if json:
        console.document(worked)
    if outcome.error is not None:
        console.problem(outcome.error, of=f"{worked.table}: {outcome.result}")
    elif not (json or quiet):
        console.say(f"{worked.table}: {outcome.result} in {worked.seconds:.1f} s")
    for one in outcome.refreshed:
        show(one, silent=json or quiet)
    console.warn_of(notice for one in outcome.refreshed for notice in one.notices)
    sys.stdout.flush()
