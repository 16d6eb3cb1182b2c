"""``dbanon describe``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dbanon.cli import options
from dbanon.cli.terminal import console, report
from dbanon.domain.text import command

if TYPE_CHECKING:
    from dbanon.actions.describe import Described

Relation = Annotated[
    str, typer.Argument(metavar="RELATION", help="a published one, such as anon.patients")
]


def describe(relation: Relation, *, dsn: options.Dsn = None, json: options.Json = False) -> None:
    """Say what each column of a published relation is, and what was proved of it.

    For whoever may read the relation; it needs no other right.

    \b
    dbanon describe anon.patients
    """
    from dbanon.actions.describe import describe as action

    found = action(relation, settings=options.settings(dsn))
    if json:
        console.document(found)
    else:
        _show(found)


def _show(found: Described) -> None:
    proved = "" if found.proved_at is None else f", proved at {found.proved_at:%Y-%m-%d %H:%M %Z}"
    rows = [(column.name, column.type, column.words) for column in found.columns]
    title = f"{found.relation}, release {found.release}{proved}"
    console.table(("column", "type", "what it holds"), rows, title=title)
    console.say(f"every class meets {report.models(found.models)}")
    console.say("a class is all rows that are alike in the quasi-identifiers")
    console.say(f"prove it again: {command('dbanon check', found.relation)}")
