"""The options that commands share, and the settings that come of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dbanon.actions.prepare import Options as PublishOptions
    from dbanon.settings import Settings

Table = Annotated[
    str,
    typer.Argument(
        metavar="TABLE", help="name or schema.name; odd names quoted as in SQL: '\"My Table\"'"
    ),
]
Dsn = Annotated[
    str | None,
    typer.Option(
        "--dsn",
        envvar="DBANON_DSN",
        show_default=False,
        help="postgresql:// URI or key=value pairs; else libpq's variables, else the embedded"
        " server",
    ),
]
Owner = Annotated[
    str | None,
    typer.Option(
        "--owner",
        envvar="DBANON_OWNER",
        show_default=False,
        help="act as this role, which then owns what is created",
    ),
]
AllowSuperuser = Annotated[
    bool,
    typer.Option(
        "--allow-superuser",
        help="let a superuser own what is created (refused otherwise)",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="print one JSON document")]
Timings = Annotated[bool, typer.Option("--timings", help="say on stderr where the time went")]
# What the database can count with: integer for k and l, bigint for seeds and releases.
LARGEST_COUNT = 2**31 - 1
LARGEST_NUMBER = 2**63 - 1

K = Annotated[
    int | None,
    typer.Option("--k", min=1, max=LARGEST_COUNT, show_default=False, help="least rows in a class"),
]
L = Annotated[
    int | None,
    typer.Option(
        "--l",
        min=1,
        max=LARGEST_COUNT,
        show_default=False,
        help="least distinct sensitive values in a class",
    ),
]
Algorithm = Annotated[
    str | None,
    typer.Option("--algorithm", show_default=False, help="mondrian, mondrian-relaxed or mdav"),
]
MaxSuppressed = Annotated[
    float | None,
    typer.Option(
        "--max-suppressed",
        min=0.0,
        max=1.0,
        show_default=False,
        help="largest fraction of rows that may be left out",
    ),
]
As = Annotated[
    str,
    typer.Option("--as", metavar="[table|view]", help="a private copy, or the live source"),
]
Schema = Annotated[str, typer.Option("--schema", help="schema of the published relation")]
Name = Annotated[
    str | None,
    typer.Option("--name", show_default=False, help="its name; the table's own by default"),
]
Grants = Annotated[
    list[str] | None,
    typer.Option("--grant", metavar="ROLE", show_default=False, help="let a role read it"),
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed", min=0, max=LARGEST_NUMBER, help="same data, options and seed: same groups"
    ),
]


def settings(dsn: str | None, *, owner: str | None = None, superuser: bool = False) -> Settings:
    """Combine the flags with the environment."""
    from dbanon.settings import Settings

    return Settings.load(dsn=dsn, owner=owner, allow_superuser=superuser)


def publication(arguments: Mapping[str, Any]) -> PublishOptions:
    """Pick from a command's arguments what it asks of a publication."""
    if arguments["as_"] not in {"table", "view"}:
        raise typer.BadParameter("table or view", param_hint="--as")
    return {
        "k": arguments["k"],
        "l": arguments["l"],
        "models": arguments["models"],
        "algorithm": arguments["algorithm"],
        "max_suppressed": arguments["max_suppressed"],
        "kind": arguments["as_"],
        "schema": arguments["schema"],
        "name": arguments["name"],
        "grants": arguments["grant"] or (),
        "seed": arguments["seed"],
    }
