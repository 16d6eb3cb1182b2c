"""The options that commands share, and the settings that come of them."""

from __future__ import annotations

import math
import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dbanon.cli.terminal.interrupts import OnInterrupt
from dbanon.domain.policy import K_ANONYMITY, L_DIVERSITY
from dbanon.domain.release import Leavers
from dbanon.models.registry import MODELS

if TYPE_CHECKING:
    from dbanon.settings import Settings

Table = Annotated[
    str,
    typer.Argument(
        metavar="TABLE", help="name or schema.name; odd names quoted as in SQL: '\"My Table\"'"
    ),
]
OneTable = Annotated[
    str | None, typer.Argument(metavar="TABLE", show_default=False, help="or --dataset FILE")
]
DatasetFile = Annotated[
    Path | None,
    typer.Option(
        "--dataset",
        metavar="FILE",
        show_default=False,
        help="publish tables of the same persons together, as a TOML file names them",
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
Progress = Annotated[
    bool,
    typer.Option("--progress", help="say on stderr every 10 s where it is; a terminal has a bar"),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="print only what is not well")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="do not ask, on a terminal either")]
# What the database can count with: integer for k and l, bigint for seeds and releases.
LARGEST_COUNT = 2**31 - 1
LARGEST_NUMBER = 2**63 - 1


def _least(model: str, parameter: str) -> Any:  # noqa: ANN401 - whatever Typer makes of it
    """Return the option of a count that a model asks for."""
    declared = MODELS[model].parameters()[parameter]
    return typer.Option(
        declared.flag,
        min=int(declared.least),
        max=int(declared.most),
        show_default=False,
        help=declared.help,
    )


K = Annotated[int | None, _least(K_ANONYMITY, "k")]
L = Annotated[int | None, _least(L_DIVERSITY, "l")]


class Effort(StrEnum):
    """How hard a search that has the choice tries."""

    FAST = "fast"
    BALANCED = "balanced"
    BEST = "best"


_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "": 1.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|)")


def duration(text: str) -> float:
    """Read ``30s``, ``2m``, ``500ms``, ``1h`` or plain seconds."""
    match = _DURATION.fullmatch(text.strip().lower())
    seconds = float(match[1]) * _UNITS[match[2]] if match else 0.0
    if not 0.0 < seconds < math.inf:
        raise typer.BadParameter(f"{text!r} is no time above zero: write 30s, 2m or 500ms")
    return seconds


def complete_name(incomplete: str) -> list[str]:
    """Return the names that the shell can complete to."""
    from dbanon.anonymization.registry import ALGORITHMS

    return [name for name in ALGORITHMS if name.startswith(incomplete)]


def complete_names(incomplete: str) -> list[str]:
    """Complete the last name of a list with commas."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in complete_name(last)]


Algorithm = Annotated[
    str | None,
    typer.Option(
        "--algorithm",
        show_default=False,
        autocompletion=complete_name,
        help="auto, mondrian, mdav ...; a name that does not exist is answered with all that do",
    ),
]
EffortOf = Annotated[
    Effort | None,
    typer.Option("--effort", show_default=False, help="how hard auto searches"),
]
TimeLimit = Annotated[
    float | None,
    typer.Option(
        "--time-limit",
        metavar="TIME",
        parser=duration,
        show_default=False,
        help="how long auto may search: 30s, 2m, 500ms; groups then depend on the machine",
    ),
]
Params = Annotated[
    list[str] | None,
    typer.Option(
        "--param", metavar="NAME=VALUE", show_default=False, help="a parameter of the algorithm"
    ),
]
Block = Annotated[
    int | None,
    typer.Option(
        "--block",
        metavar="ROWS",
        min=1,
        max=LARGEST_COUNT,
        show_default=False,
        help="let a slow algorithm work on blocks of about so many rows",
    ),
]
Executor = Annotated[
    str,
    typer.Option(
        "--executor",
        metavar="NAME",
        help="where blocks of rows are grouped: threads, processes, dask://HOST:PORT",
    ),
]
RowsPerBlock = Annotated[
    int | None,
    typer.Option(
        "--rows-per-block",
        metavar="ROWS",
        min=1,
        max=LARGEST_COUNT,
        show_default=False,
        help="read and group the table in blocks of about so many rows; 1,000,000 by processes and"
        " Dask",
    ),
]
Interrupt = Annotated[
    OnInterrupt,
    typer.Option("--on-interrupt", help="at Ctrl-C: give up, or use what was found so far"),
]
OfRefresh = Annotated[
    bool, typer.Option("--refresh", help="show what refreshing what is served would do")
]
OfLeavers = Annotated[
    Leavers,
    typer.Option(
        "--leavers", help="whether a class goes when one row of it is gone, or when k are"
    ),
]
Compare = Annotated[
    bool, typer.Option("--compare", help="run several algorithms and show what each would cost")
]
Algorithms = Annotated[
    str | None,
    typer.Option(
        "--algorithms",
        metavar="NAME,NAME",
        show_default=False,
        autocompletion=complete_names,
        help="which to compare; fast ones by default",
    ),
]
Plot = Annotated[
    Path | None,
    typer.Option(
        "--plot",
        metavar="FILE",
        show_default=False,
        help="draw the loss against k: a .png, .svg or .pdf",
    ),
]
Page = Annotated[
    Path | None,
    typer.Option(
        "--html",
        metavar="FILE",
        show_default=False,
        help="write risk, utility and all that speaks for them as a page",
    ),
]
Ks = Annotated[
    str | None,
    typer.Option(
        "--ks",
        metavar="K,K",
        show_default=False,
        help="the k to compare at; with --plot or --html 2,5,10,25,50,100 by default",
    ),
]
PolicyName = Annotated[
    str, typer.Option("--policy", metavar="NAME", help="which of the policies of the table")
]
Draft = Annotated[
    Path | None,
    typer.Option(
        "--file", "-f", show_default=False, help="a policy that is not stored; - is stdin"
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="do and prove everything, then roll back")]
PrintSql = Annotated[
    bool, typer.Option("--print-sql", help="print the statements publish would run")
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
Schema = Annotated[
    str,
    typer.Option("--schema", envvar="DBANON_SCHEMA", help="schema of the published relation"),
]
Name = Annotated[
    str | None,
    typer.Option(
        "--name", show_default=False, help="its name; by default the table's, or TABLE_POLICY"
    ),
]
Grants = Annotated[
    list[str] | None,
    typer.Option("--grant", metavar="ROLE", show_default=False, help="let a role read it"),
]
Strict = Annotated[bool, typer.Option("--strict", help="refuse what would only be warned of")]
NewSeries = Annotated[
    bool,
    typer.Option("--new-series", help="group anew, even if it could be compared with what was"),
]
RecipientsChanged = Annotated[
    bool,
    typer.Option(
        "--recipients-changed", help="whoever will read it has read no release before: forget these"
    ),
]
Series = Annotated[
    str | None,
    typer.Option(
        "--series",
        metavar="RELATION",
        show_default=False,
        help="whose readers a new relation is for, if the table has several series",
    ),
]
KeepAssignment = Annotated[
    bool,
    typer.Option(
        "--keep-assignment",
        help="keep the private tables that tell which row is in which class of a copy",
    ),
]
AllowForeign = Annotated[
    bool,
    typer.Option("--allow-foreign", help="read foreign tables, whose readers are not known here"),
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed", min=0, max=LARGEST_NUMBER, help="same data, options and seed: same groups"
    ),
]


def one_of(table: str | None, dataset: Path | None) -> str | Path:
    """Return the table, or the file of the dataset; raises BadParameter unless one is named."""
    if table is not None and dataset is None:
        return table
    if table is None and dataset is not None:
        return dataset
    raise typer.BadParameter("one table, or --dataset FILE", param_hint="TABLE")


def settings(dsn: str | None, *, owner: str | None = None, superuser: bool = False) -> Settings:
    """Combine the flags with the environment."""
    from dbanon.settings import Settings

    return Settings.load(dsn=dsn, owner=owner, allow_superuser=superuser)
