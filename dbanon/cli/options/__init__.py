"""The options that commands share, and the settings that come of them."""

from __future__ import annotations

import math
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dbanon.cli.terminal.interrupts import OnInterrupt
from dbanon.domain.release import Leavers
from dbanon.request import OPTIONS, Panel

if TYPE_CHECKING:
    from dbanon.settings import Settings

_connection = partial(typer.Option, rich_help_panel=Panel.CONNECTION)
_display = partial(typer.Option, rich_help_panel=Panel.DISPLAY)
_output = partial(typer.Option, rich_help_panel=Panel.OUTPUT)
_privacy = partial(typer.Option, rich_help_panel=Panel.PRIVACY)
_search = partial(typer.Option, rich_help_panel=Panel.SEARCH)

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
    _output(
        "--dataset",
        metavar="FILE",
        show_default=False,
        help="publish tables of the same persons together, as a TOML file names them",
    ),
]
Dsn = Annotated[
    str | None,
    _connection(
        "--dsn",
        envvar="DBANON_DSN",
        show_default=False,
        help="postgresql:// URI or key=value pairs; else libpq's variables, else the embedded"
        " server",
    ),
]
Owner = Annotated[
    str | None,
    _connection(
        "--owner",
        envvar="DBANON_OWNER",
        show_default=False,
        help="act as this role, which then owns what is created",
    ),
]
AllowSuperuser = Annotated[
    bool,
    _connection(
        "--allow-superuser", help="let a superuser own what is created (refused otherwise)"
    ),
]
Json = Annotated[bool, _display("--json", help="print one JSON document")]
Timings = Annotated[bool, _display("--timings", help="say on stderr where the time went")]
Progress = Annotated[
    bool, _display("--progress", help="say on stderr every 10 s where it is; a terminal has a bar")
]
Quiet = Annotated[bool, _display("--quiet", "-q", help="print only what is not well")]
Yes = Annotated[bool, _display("--yes", "-y", help="do not ask, on a terminal either")]

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


_MORE: dict[str, dict[str, Any]] = {
    "time_limit": {"parser": duration},
    "algorithm": {"autocompletion": complete_name},
}


def of_request(name: str, **more: Any) -> Any:  # noqa: ANN401 - whatever Typer makes of it
    """Return a field of a request as an option of the command line."""
    known = OPTIONS[name]
    return typer.Option(
        known.flag,
        help=known.help,
        metavar=known.metavar,
        envvar=known.envvar,
        min=known.least,
        max=known.most,
        rich_help_panel=known.panel,
        **_MORE.get(name, {}),
        **more,
    )


K = Annotated[int | None, of_request("k", show_default=False)]
L = Annotated[int | None, of_request("l", show_default=False)]
NewSeries = Annotated[bool, of_request("new_series")]
PolicyName = Annotated[str, of_request("policy")]
RecipientsChanged = Annotated[bool, of_request("recipients_changed")]
Schema = Annotated[str, of_request("schema")]
Strict = Annotated[bool, of_request("strict")]


Interrupt = Annotated[
    OnInterrupt, _search("--on-interrupt", help="at Ctrl-C: give up, or use what was found so far")
]
OfRefresh = Annotated[
    bool, _output("--refresh", help="show what refreshing what is served would do")
]
OfLeavers = Annotated[
    Leavers,
    _privacy("--leavers", help="whether a class goes when one row of it is gone, or when k are"),
]
Compare = Annotated[
    bool, _search("--compare", help="run several algorithms and show what each would cost")
]
Algorithms = Annotated[
    str | None,
    _search(
        "--algorithms",
        metavar="NAME,NAME",
        show_default=False,
        autocompletion=complete_names,
        help="which to compare; fast ones by default",
    ),
]
Plot = Annotated[
    Path | None,
    _display(
        "--plot",
        metavar="FILE",
        show_default=False,
        help="draw the loss against k: a .png, .svg or .pdf",
    ),
]
Page = Annotated[
    Path | None,
    _display(
        "--html",
        metavar="FILE",
        show_default=False,
        help="write risk, utility and all that speaks for them as a page",
    ),
]
Ks = Annotated[
    str | None,
    _search(
        "--ks",
        metavar="K,K",
        show_default=False,
        help="the k to compare at; with --plot or --html 2,5,10,25,50,100 by default",
    ),
]
Draft = Annotated[
    Path | None,
    _privacy("--file", "-f", show_default=False, help="a policy that is not stored; - is stdin"),
]
PrintSql = Annotated[bool, _display("--print-sql", help="print the statements publish would run")]


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
