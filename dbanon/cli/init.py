"""``dbanon init``."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dbanon.cli import options
from dbanon.cli.terminal import console

if TYPE_CHECKING:
    from collections.abc import Mapping


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
    from dbanon.actions import init as action

    if print_sql:
        console.verbatim(action.init_sql(role=role, owner=owner, schema=schema))
        return
    settings = options.settings(dsn, owner=owner, superuser=allow_superuser)
    result = action.init(settings, role=role, schema=schema)
    if json:
        console.document(result)
    else:
        console.say(f"metadata schema {_state(result)}")
    for sentence in result["lost"]:
        console.warn(f"{sentence}; next: dbanon doctor")
    for sentence in result["lacking"]:
        console.warn(sentence)


def _state(result: "Mapping[str, Any]") -> str:
    former, revision = result["former"], result["revision"]
    if not result["changed"]:
        return f"was current already (revision {revision})"
    if former is None:
        return f"installed (revision {revision})"
    if former != revision:
        return f"upgraded from revision {former} to {revision}"
    return f"brought up to date (revision {revision})"
