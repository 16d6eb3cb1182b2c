"""``dbanon worker``."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from dbanon.cli import options, refresh
from dbanon.cli.terminal import console

if TYPE_CHECKING:
    from dbanon.actions.jobs.worker import Worked

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
    """Run scheduled refreshes until stopped; any number of workers share the jobs.

    A worker may be killed at any time: no job is lost or done twice. SIGTERM and Ctrl-C end it
    with exit code 0, and its job waits for another worker. With --once it has the exit codes of
    `dbanon refresh`.

    \b
    dbanon worker --metrics-port 9465
    dbanon worker --once --json
    """
    from dbanon.actions.jobs.worker import work

    codes = []

    def on_job(worked: "Worked") -> None:
        if once and worked.outcome.error is not None:
            codes.append(worked.outcome.error.exit_code)
        _show(worked, json=json, quiet=quiet)

    stop = Event()
    with _until(stop):
        work(
            once=once,
            metrics_port=metrics_port,
            stop=stop,
            on_job=on_job,
            on_note=console.warn,
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


def _show(worked: "Worked", *, json: bool, quiet: bool) -> None:
    outcome = worked.outcome
    if json:
        console.document(worked)
    if outcome.error is not None:
        console.warn(f"{worked.table}: {outcome.result}: {console.with_hint(outcome.error)}")
    elif not (json or quiet):
        console.say(f"{worked.table}: {outcome.result} in {worked.seconds:.1f} s")
    for one in outcome.refreshed:
        refresh.show(one, silent=json or quiet)
    sys.stdout.flush()
