"""``dbanon grant`` and ``dbanon revoke``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

import dbanon
from dbanon.cli import options
from dbanon.cli.terminal import console

if TYPE_CHECKING:
    from dbanon.actions.releases.grant import Access

Relation = Annotated[
    str,
    typer.Argument(metavar="RELATION|TABLE", help="a published relation, or its source table"),
]
Roles = Annotated[list[str], typer.Argument(metavar="ROLE...", help="roles, or public")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="run and verify all, then roll back")]
PrintSql = Annotated[
    bool, typer.Option("--print-sql", help="like --dry-run, and print the statements")
]


def grant(
    relation: Relation,
    roles: Roles,
    *,
    dry_run: DryRun = False,
    print_sql: PrintSql = False,
    dsn: options.Dsn = None,
    owner: options.Owner = None,
    allow_superuser: options.AllowSuperuser = False,
    json: options.Json = False,
) -> None:
    """Grant roles read access to a published relation.

    Fails, and changes nothing, if one of its readers could then also read what it hides.

    \b
    dbanon grant anon.patients analysts
    dbanon grant patients analysts 'Research Group' --dry-run
    """
    settings = options.settings(dsn, owner=owner, superuser=allow_superuser)
    found = dbanon.grant(relation, roles, dry_run=dry_run or print_sql, settings=settings)
    _show(found, "can read it", json=json, print_sql=print_sql, dry_run=dry_run)


def revoke(
    relation: Relation,
    roles: Roles,
    *,
    dry_run: DryRun = False,
    print_sql: PrintSql = False,
    dsn: options.Dsn = None,
    owner: options.Owner = None,
    allow_superuser: options.AllowSuperuser = False,
    json: options.Json = False,
) -> None:
    """Revoke access to a published relation.

    \b
    dbanon revoke anon.patients analysts
    dbanon revoke patients public
    """
    settings = options.settings(dsn, owner=owner, superuser=allow_superuser)
    found = dbanon.revoke(relation, roles, dry_run=dry_run or print_sql, settings=settings)
    _show(found, "has no right on it", json=json, print_sql=print_sql, dry_run=dry_run)


def _show(found: list[Access], outcome: str, *, json: bool, print_sql: bool, dry_run: bool) -> None:
    if json:
        console.document(found)
        return
    for one in found:
        if print_sql:
            for statement in one.statements:
                console.verbatim(f"{statement};\n")
        else:
            already = "" if one.changed else " (it was so already)"
            console.say(f"{one.relation}: {', '.join(one.roles)} {outcome}{already}")
        for remark in one.remarks:
            console.warn(remark)
    if dry_run and not print_sql:
        console.say("dry run: all of it was verified, then rolled back")
