"""``dbanon init``, ``doctor``, ``demo``, ``server`` and ``help``."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

import dbanon
from dbanon.cli import options
from dbanon.cli.terminal import console, report
from dbanon.cli.terminal.console import interruptible
from dbanon.domain.errors import ConfigError
from dbanon.domain.notices import NOTICES, Notice, Topic
from dbanon.domain.policy_warning import EXPLANATIONS, Code, Explanation
from dbanon.domain.text import command
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dbanon.actions.demo import Published


PrintInit = Annotated[
    bool, typer.Option("--print-sql", help="print the SQL for a DBA; do not connect")
]
Publisher = Annotated[
    str | None,
    typer.Option(
        "--role", metavar="ROLE", show_default=False, help="grant this role the rights to publish"
    ),
]
Approver = Annotated[
    str | None,
    typer.Option(
        "--approver",
        metavar="ROLE",
        show_default=False,
        help="grant this role the right to approve policies",
    ),
]
Demand = Annotated[
    bool | None,
    typer.Option(
        "--require-approval/--no-require-approval",
        show_default=False,
        help="publish approved policies only",
    ),
]


def init(
    *,
    print_sql: PrintInit = False,
    role: Publisher = None,
    schema: options.Schema = "anon",
    approver: Approver = None,
    require_approval: Demand = None,
    dsn: options.Dsn = None,
    owner: options.Owner = None,
    allow_superuser: options.AllowSuperuser = False,
    json: options.Json = False,
) -> None:
    """Install or upgrade the metadata schema.

    Run it as often as you like.

    \b
    dbanon init
    dbanon init --print-sql | less
    dbanon init --print-sql --role publisher > init.sql
    dbanon init --role publisher --schema published
    dbanon init --approver officer --require-approval
    """
    roles: dict[str, Any] = {"role": role, "schema": schema, "approver": approver}
    if print_sql:
        demand = bool(require_approval)
        console.verbatim(dbanon.init_sql(**roles, owner=owner, require_approval=demand))
        return
    settings = options.settings(dsn, owner=owner, superuser=allow_superuser)
    result = dbanon.init(settings, **roles, require_approval=require_approval)
    if json:
        console.document(result)
    else:
        console.say(f"metadata schema {_installed(result)}")
    console.warn_of([Notice(Topic.DAMAGED, sentence) for sentence in result["lost"]])
    console.warn_of([Notice(Topic.MISSING_RIGHT, sentence) for sentence in result["lacking"]])


def _installed(result: Mapping[str, Any]) -> str:
    former, revision = result["former"], result["revision"]
    if not result["changed"]:
        return f"was current already (revision {revision})"
    if former is None:
        return f"installed (revision {revision})"
    if former != revision:
        return f"upgraded from revision {former} to {revision}"
    return f"brought up to date (revision {revision})"


def doctor(
    *,
    schema: options.Schema = "anon",
    dsn: options.Dsn = None,
    owner: options.Owner = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Check versions, privileges and possible leaks.

    Changes nothing. Exit code 1 if a check fails, 4 if a table has drifted from its policy.
    """
    from dbanon.actions.doctor import Level

    findings = dbanon.doctor(schema=schema, settings=options.settings(dsn, owner=owner))
    told = [f for f in findings if not quiet or f.level is not Level.OK]
    if json:
        console.document(findings)
    elif told:
        rows = [(f.level.value, f.subject, f.message.splitlines(), f.hint) for f in told]
        console.table(("", "subject", "finding", "try"), rows)
    worst = max((finding.exit_code for finding in findings), default=0)
    if worst:
        raise typer.Exit(worst)


def demo(
    *,
    dataset: Annotated[
        str, typer.Option("--dataset", help="patients, adult or clinic (linked tables)")
    ] = "patients",
    dsn: options.Dsn = None,
    allow_superuser: options.AllowSuperuser = False,
    timings: options.Timings = False,
) -> None:
    """Publish real patients on an embedded PostgreSQL.

    The whole story in one command: load, publish, prove, query.
    """
    with console.watched(timings=timings, steps=11) as stages, interruptible(stages):
        shown = dbanon.demo(
            dataset, settings=options.settings(dsn, superuser=allow_superuser), stages=stages
        )
    console.say(f"Loaded {shown.sample.origin}.")
    for one in shown.published:
        _show_published(
            one, publish="dbanon publish --dataset clinic.toml" if shown.sample.tables else None
        )
    console.say("")
    console.say("What an analyst could run next (dbanon server psql, pgAdmin, pandas ...):")
    console.say("")
    for query in shown.sample.queries:
        console.verbatim(f"{query};\n\n")


def _show_published(one: Published, *, publish: str | None) -> None:
    table = one.release.table
    console.say(f"{table}:")
    console.table(one.source_columns, one.source_rows)
    publish = publish or command("dbanon publish", table, options="--k 5 --l 3")
    console.say(f"{publish} published it as {one.release.relation}:")
    console.table(one.columns, one.rows)
    report.checks(one.checks)
    report.loss(one.release.loss, one.release.policy, advice=one.release.advice)


app = typer.Typer(help="Manage the embedded server, and compile in advance.", no_args_is_help=True)


@app.command()
def status(*, json: Annotated[bool, typer.Option("--json", help="print JSON")] = False) -> None:
    """Show the state and the location of the embedded server."""
    found = dbanon.server_status(Settings.load())
    if json:
        console.document(found)
        return
    for name, value in console.plain(found).items():
        console.say(f"{name}: {value}")


@app.command()
def stop() -> None:
    """Stop the embedded server; the next command that needs it starts it again."""
    dbanon.server_stop(Settings.load())
    console.say("the embedded server is stopped")


@app.command()
def url() -> None:
    """Print the embedded server's URI, for psql, pgAdmin or pandas."""
    typer.echo(dbanon.server_url(Settings.load()))


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def psql(context: typer.Context) -> None:
    """Open psql on the embedded server; further arguments go to psql.

    \b
    dbanon server psql
    dbanon server psql -- -U analysts -c 'SELECT * FROM anon.patients LIMIT 5'
    """
    raise typer.Exit(dbanon.server_psql(Settings.load(), context.args))


@app.command()
def warm(*, json: options.Json = False) -> None:
    """Compile the search of the algorithm auto in advance.

    The first publish, plan or refresh on a machine compiles it to machine code, which is stored in
    the user's cache folder, or in the one that NUMBA_CACHE_DIR names. This command does so
    beforehand, for example when an image is built. It compiles only what is missing, and connects
    to no database.

    \b
    dbanon server warm
    NUMBA_CACHE_DIR=/var/cache/dbanon dbanon server warm --json
    """
    from dbanon.actions import server

    done = server.warm(on_step=lambda title: console.err().print(f"trying {title}"))
    if json:
        console.document(done)
    elif done.seconds:
        console.say(f"compiled in {done.seconds:.0f} s, and kept in {done.cache}")
    else:
        console.say(f"nothing to compile: all is in {done.cache}")


def _topics() -> list[str]:
    from dbanon.cli import COMMANDS

    return [*COMMANDS, *_CODES]


_EXPLAINED = (*EXPLANATIONS.items(), *NOTICES.items())
_CODES: Mapping[str, Explanation] = {str(code): one for code, one in _EXPLAINED}


def explain(
    topic: Annotated[
        str | None,
        typer.Argument(
            help="a command, or the code of a warning", show_default=False, autocompletion=_topics
        ),
    ] = None,
) -> None:
    """Explain a command, or a warning by its code.

    \b
    dbanon help publish
    dbanon help near-unique
    dbanon help             # the codes of all warnings
    """
    from dbanon.cli import COMMANDS, app

    if topic is None:
        console.table(("code", "finding"), [(code, one.finding) for code, one in _CODES.items()])
    elif topic in _CODES:
        _explain(topic)
    elif topic in COMMANDS:
        app([topic, "--help"])
    else:
        hint = "dbanon help, for the codes of warnings; dbanon --help, for the commands"
        raise ConfigError(f"{topic!r} is no command and no code of a warning", hint=hint)


def _explain(code: str) -> None:
    found = _CODES[code]
    for title, text in ((code, found.finding), ("risk", found.risk), ("remedy", found.remedy)):
        for line in wrap(f"{title}: {text}", 100, subsequent_indent="  "):
            console.say(line)
    if code not in {*Code}:
        return
    console.say("acknowledge it in the policy, with a reason:")
    if Code(code).of_column:
        console.say("  [columns.NAME]")
    console.say(f'  allow = ["{code}: REASON"]')
