"""``dbanon init``."""

from typing import Annotated

import typer

from dbanon.cli import console, options


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
            help="give this role what it needs to publish",
        ),
    ] = None,
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
    """
    from dbanon.actions import init as action

    if print_sql:
        console.verbatim(action.init_sql(role=role, owner=owner))
        return
    settings = options.settings(dsn, owner=owner, superuser=allow_superuser)
    result = action.init(settings, role=role)
    if json:
        console.document(result)
    else:
        state = "installed" if result["changed"] else "was current already"
        console.say(f"metadata schema {state} (revision {result['revision']})")
    for sentence in result["lost"]:
        console.warn(f"{sentence}; next: dbanon doctor")
