"""``dbanon schedule``."""

from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from dbanon.cli import options
from dbanon.cli.terminal import console

if TYPE_CHECKING:
    from dbanon.actions.jobs.schedules import Scheduled


class _Tables(TyperGroup):
    """A group with ``set`` as default command: ``dbanon schedule patients --cron ...``."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - Typer's own Click
        given = args if not args or args[0] in self.commands else ["set", *args]
        return super().resolve_command(ctx, given)


app = typer.Typer(
    help="Manage refresh schedules; `dbanon worker` runs them.",
    no_args_is_help=True,
    cls=_Tables,
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
    from dbanon.actions.jobs import schedules

    settings = options.settings(dsn, owner=owner, superuser=allow_superuser)
    stored = schedules.set_schedule(table, cron, zone=zone, settings=settings)
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
    from dbanon.actions.jobs import schedules

    found = schedules.list_schedules(settings=options.settings(dsn, owner=owner))
    if json:
        console.document(found)
        return
    headers = ("table", "cron", "zone", "next", "waiting", "succeeded", "last job", "because")
    console.table(headers, map(_row, found))


def _row(one: "Scheduled") -> tuple[object, ...]:
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
    from dbanon.actions.jobs import schedules

    settings = options.settings(dsn, owner=owner, superuser=allow_superuser)
    removed = schedules.remove_schedule(table, settings=settings)
    console.say(f"{removed} is not scheduled any more")
