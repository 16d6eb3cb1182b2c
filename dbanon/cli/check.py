"""``dbanon check``."""

from typing import Annotated

import typer

from dbanon.cli import console, options, report
from dbanon.domain.errors import CheckFailed


def check(
    relation: Annotated[str, typer.Argument(metavar="RELATION", help="such as anon.patients")],
    *,
    k: options.K = None,
    l: options.L = None,
    quasi: Annotated[
        list[str] | None,
        typer.Option("--quasi", metavar="COLUMN", show_default=False, help="a quasi-identifier"),
    ] = None,
    sensitive: Annotated[
        list[str] | None,
        typer.Option("--sensitive", metavar="COLUMN", show_default=False, help="a sensitive one"),
    ] = None,
    dsn: options.Dsn = None,
    json: options.Json = False,
) -> None:
    """Prove a published relation again.

    The database counts; whoever can read the relation can do this. Exit code 3 when it does not
    hold, or when there is nothing to check.

    \b
    dbanon check anon.patients
    dbanon check some.table --quasi age --quasi sex --k 5 --sensitive disease --l 3
    """
    from dbanon.actions.check import check as action

    try:
        found = action(
            relation,
            k=k,
            l=l,
            quasi=quasi or (),
            sensitive=sensitive or (),
            settings=options.settings(dsn),
        )
    except CheckFailed as failure:
        if json:
            console.document(failure.report)
        else:
            report.checks(failure.report)
        raise
    if json:
        console.document(found)
    else:
        report.checks(found)
