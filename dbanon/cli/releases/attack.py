"""``dbanon attack``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

import dbanon
from dbanon.cli import options
from dbanon.cli.terminal import console, report
from dbanon.cli.terminal.console import interruptible
from dbanon.domain.report import SAMPLES, Attacker
from dbanon.request import LARGEST_COUNT, LARGEST_NUMBER

if TYPE_CHECKING:
    from dbanon.actions.releases.attack import Attempt

Published = Annotated[
    str, typer.Argument(metavar="RELATION", help="a published one, such as anon.patients")
]
As = Annotated[
    str | None,
    typer.Option(
        "--as",
        metavar="|".join(Attacker),
        show_default=False,
        help="knows that a person is in it (the default), seeks any person, or as many as possible",
    ),
]
Other = Annotated[
    str | None,
    typer.Option(
        "--with",
        metavar="OTHER",
        show_default=False,
        help="second relation of the same table that the attacker has",
    ),
]
Samples = Annotated[
    int,
    typer.Option("--samples", min=1, max=LARGEST_COUNT, help="number of persons to attack"),
]
Seed = Annotated[
    int,
    typer.Option("--seed", min=0, max=LARGEST_NUMBER, help="seed for drawing persons"),
]
TimeLimit = Annotated[
    float | None,
    typer.Option(
        "--time-limit",
        metavar="TIME",
        parser=options.duration,
        show_default=False,
        help="start no further attack after this time: 30s, 2m",
    ),
]


def attack(
    relation: Published,
    *,
    attacker: As = None,
    other: Other = None,
    samples: Samples = SAMPLES,
    seed: Seed = 0,
    time_limit: TimeLimit = None,
    dsn: options.Dsn = None,
    owner: options.Owner = None,
    json: options.Json = False,
    timings: options.Timings = False,
    quiet: options.NoProgress = False,
) -> None:
    """Simulate attacks on a published relation.

    For the role that publishes: reads the present table, and writes nothing. The success rates are
    exact figures of the source, and confidential.

    \b
    dbanon attack anon.patients
    dbanon attack anon.patients --as journalist
    dbanon attack anon.patients --with anon.patients_research
    """
    if attacker is not None and other is not None:
        raise typer.BadParameter(
            "goes without --as: who has both is one attacker", param_hint="--with"
        )
    settings = options.settings(dsn, owner=owner)
    with (
        console.watched(steps=4, timings=timings, quiet=quiet) as stages,
        interruptible(stages),
    ):
        shared: dict[str, Any] = {"settings": settings, "stages": stages, "time_limit": time_limit}
        if other is None:
            by = attacker or Attacker.PROSECUTOR
            found = dbanon.attack(relation, attacker=by, samples=samples, seed=seed, **shared)
        else:
            found = dbanon.attack_both(relation, other, samples=samples, seed=seed, **shared)
    if json:
        console.document(found)
    else:
        _show(found)


def _show(found: Attempt) -> None:
    console.say(found.confidential)
    title = f"{found.relation} (release {found.release}), attacked by a {found.attacker}"
    if found.attacker is None:
        title = (
            f"{found.relation} (release {found.release}) and {found.other} (release"
            f" {found.other_release}), attacked by somebody who has both"
        )
    report.attacks(found.attacks, title=title)
    if not found.attacks:
        console.say(title)
    for name, reason in found.not_tried.items():
        console.say(f"not tried: {name}, as {reason}")
