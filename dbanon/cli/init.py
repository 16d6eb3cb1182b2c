"""``dbanon init``, ``dbanon doctor`` and ``dbanon demo``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

import dbanon
from dbanon.cli import options
from dbanon.cli.terminal import console, report
from dbanon.cli.terminal.console import interruptible
from dbanon.domain.text import command

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dbanon.actions.demo import Published


def init(
    *,
    print_sql: Annotated[
        bool, typer.Option("--print-sql", help="print the SQL for a DBA; do not connect")
    ] = False,
    role: Annotated[
        str | None,
        typer.Option(
            "--role",
            metavar="ROLE",
            show_default=False,
            help="grant this role the rights to publish",
        ),
    ] = None,
    schema: options.Schema = "anon",
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
    """
    if print_sql:
        console.verbatim(dbanon.init_sql(role=role, owner=owner, schema=schema))
        return
    settings = options.settings(dsn, owner=owner, superuser=allow_superuser)
    result = dbanon.init(settings, role=role, schema=schema)
    if json:
        console.document(result)
    else:
        console.say(f"metadata schema {_state(result)}")
    for sentence in result["lost"]:
        console.warn(f"{sentence}; next: dbanon doctor")
    for sentence in result["lacking"]:
        console.warn(sentence)


def _state(result: Mapping[str, Any]) -> str:
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
        _show(one, publish="dbanon publish --dataset clinic.toml" if shown.sample.tables else None)
    console.say("")
    console.say("What an analyst could run next (dbanon server psql, pgAdmin, pandas ...):")
    console.say("")
    for query in shown.sample.queries:
        console.verbatim(f"{query};\n\n")


def _show(one: Published, *, publish: str | None) -> None:
    table = one.release.table
    console.say(f"{table}:")
    console.table(one.source_columns, one.source_rows)
    publish = publish or command("dbanon publish", table, options="--k 5 --l 3")
    console.say(f"{publish} published it as {one.release.relation}:")
    console.table(one.columns, one.rows)
    report.checks(one.checks)
    report.loss(one.release.loss, one.release.policy)
