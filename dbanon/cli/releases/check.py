"""``dbanon check`` and ``dbanon describe``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

import dbanon
from dbanon.cli import options
from dbanon.cli.terminal import console, report
from dbanon.domain.table import quote_identifier
from dbanon.domain.text import command

if TYPE_CHECKING:
    from dbanon.actions.releases.check import Checked, Described


Relation = Annotated[
    str | None,
    typer.Argument(
        metavar="[RELATION]", show_default=False, help="such as anon.patients; or --all"
    ),
]
Published = Annotated[
    str, typer.Argument(metavar="RELATION", help="a published one, such as anon.patients")
]
All = Annotated[bool, typer.Option("--all", help="all served releases, compared with the ledger")]
Quasi = Annotated[
    list[str] | None,
    typer.Option("--quasi", metavar="COLUMN", show_default=False, help="a quasi-identifier"),
]
Sensitive = Annotated[
    list[str] | None,
    typer.Option("--sensitive", metavar="COLUMN", show_default=False, help="a sensitive column"),
]

History = Annotated[bool, typer.Option("--history", help="compare all releases of the table")]


def check(
    relation: Relation = None,
    *,
    all_: All = False,
    k: options.K = None,
    l: options.L = None,
    quasi: Quasi = None,
    sensitive: Sensitive = None,
    history: History = False,
    dsn: options.Dsn = None,
    owner: options.Owner = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Prove a published relation again, or all of them.

    The database counts; every reader of the relation can run this. Exit code 3 if a model fails, or
    if there is nothing to check. The result is recorded in the ledger if the role may write it.
    --history is for the role that publishes: exit code 3 also if all releases of the table together
    disclose more than each of them promises.

    \b
    dbanon check anon.patients
    dbanon check anon.patients --history
    dbanon check --all --quiet
    dbanon check some.table --quasi age --quasi sex --k 5 --sensitive disease --l 3
    """
    from dbanon.actions.releases.check import check_all, check_one

    settings = options.settings(dsn, owner=owner)
    if all_:
        if relation or k or l or quasi or sensitive:
            raise typer.BadParameter(
                "goes alone: the ledger says what to check", param_hint="--all"
            )
        _show_all(check_all(settings=settings), json=json, quiet=quiet)
    elif relation is None:
        raise typer.BadParameter("name a relation, or pass --all", param_hint="RELATION")
    else:
        asked = {"quasi": quasi or (), "sensitive": sensitive or ()}
        _show(check_one(relation, k=k, l=l, **asked, settings=settings), json=json, quiet=quiet)
    if history:
        for one in dbanon.check_history(relation, settings=settings):
            report.composition(one)


def _show(found: Checked, *, json: bool, quiet: bool) -> None:
    if json:
        console.document(found)
    elif not quiet or found.error is not None:
        report.checks(found.report)
        _tell(found)
    if found.error is not None:
        raise found.error


def _show_all(found: list[Checked], *, json: bool, quiet: bool) -> None:
    if json:
        console.document(found)
    elif not quiet or any(one.error is not None for one in found):
        rows = [(one.relation, one.release, one.verdict.value, one.recorded) for one in found]
        console.table(("relation", "release", "verdict", "recorded"), rows)
        for one in found:
            _tell(one)
            if one.error is not None:
                console.warn(console.with_hint(one.error))
    codes = [one.error.exit_code for one in found if one.error is not None]
    if codes:
        raise typer.Exit(max(codes))


def _tell(found: Checked) -> None:
    if found.remark is not None:
        console.say(found.remark)


def describe(relation: Published, *, dsn: options.Dsn = None, json: options.Json = False) -> None:
    """Describe the columns and the proved models of a relation.

    For every reader of the relation; needs no other right.

    \b
    dbanon describe anon.patients
    """
    found = dbanon.describe(relation, settings=options.settings(dsn))
    if json:
        console.document(found)
    else:
        _show_described(found)


def _show_described(found: Described) -> None:
    proved = "" if found.proved_at is None else f", proved at {found.proved_at:%Y-%m-%d %H:%M %Z}"
    rows = [(column.name, column.type, column.words) for column in found.columns]
    title = f"{found.relation}, release {found.release}{proved}"
    console.table(("column", "type", "what it holds"), rows, title=title)
    console.say(f"every class meets {report.models(found.models)}")
    for name, share in found.former.items():
        console.say(f"{quote_identifier(name)}: {share:.1%} of the rows show former values")
    console.say("a class is all rows that are alike in the quasi-identifiers")
    console.say(f"prove it again: {command('dbanon check', found.relation)}")
