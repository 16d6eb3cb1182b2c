"""``dbanon count``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

import dbanon
from dbanon.cli import options
from dbanon.cli.terminal import console

if TYPE_CHECKING:
    from dbanon.domain.release import NoisyCounts

Published = Annotated[
    str, typer.Argument(metavar="RELATION", help="a published one, such as anon.patients")
]
By = Annotated[
    list[str], typer.Option("--by", metavar="COLUMN", help="a column to count by; once or more")
]
Epsilon = Annotated[
    float,
    typer.Option(
        "--epsilon",
        help="amount to spend of the policy's budget, 0.001 to 10; more means less noise",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="count nothing, and show the cost")]


def count(
    relation: Published,
    *,
    by: By,
    epsilon: Epsilon,
    dry_run: DryRun = False,
    dsn: options.Dsn = None,
    owner: options.Owner = None,
    allow_superuser: options.AllowSuperuser = False,
    json: options.Json = False,
) -> None:
    """Publish noisy counts of the source, within a privacy budget.

    The counts include rows that the release suppresses. Readers of the release can read them, in a
    relation with the suffix _counts. This does not make dbanon a product of differential privacy:
    the release itself has no noise.

    \b
    dbanon count anon.patients --by sex --by chapter --epsilon 0.1
    dbanon count anon.patients --by chapter --epsilon 0.5 --dry-run
    """
    settings = options.settings(dsn, owner=owner, superuser=allow_superuser)
    found = dbanon.count(relation, by=by, epsilon=epsilon, dry_run=dry_run, settings=settings)
    if json:
        console.document(found)
    else:
        _show(found, dry_run=dry_run)


def _show(found: NoisyCounts, *, dry_run: bool) -> None:
    if dry_run:
        console.say("dry run: nothing was counted, and nothing is spent")
    else:
        console.say(f"{found.cells:,} counts of {found.table} are served as {found.relation}")
    console.say(f"  95 % of the counts are within {found.within:,} of the truth")
    spends = "would bring" if dry_run else "brings"
    console.say(
        f"  epsilon {found.epsilon:g} {spends} what is spent to {found.spent:g} of {found.budget:g}"
    )
    for note in found.notes:
        console.warn(note)
