"""Shared options of commands, and settings from them."""

from __future__ import annotations

import inspect
import math
import re
from contextlib import suppress
from dataclasses import Field, fields
from enum import StrEnum
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer

from dbanon.cli.terminal.console import OnInterrupt
from dbanon.domain.errors import PolicyError
from dbanon.domain.policy import GROUP, ModelSpec, Value, made
from dbanon.domain.release import ReleaseKind
from dbanon.formats.support import Mode, reasons
from dbanon.models.registry import MODELS, require_valid
from dbanon.request import OPTIONS, Panel, Request

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from dbanon.models.base import Parameter
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
        help="publish the linked tables that a TOML file lists",
    ),
]
Dsn = Annotated[
    str | None,
    _connection(
        "--dsn",
        metavar="URI",
        envvar="DBANON_DSN",
        show_default=False,
        help="URI or key=value pairs",
    ),
]
Owner = Annotated[
    str | None,
    _connection(
        "--owner",
        metavar="ROLE",
        envvar="DBANON_OWNER",
        show_default=False,
        help="role that owns new objects",
    ),
]
AllowSuperuser = Annotated[
    bool, _connection("--allow-superuser", help="allow a superuser to own new objects")
]
Json = Annotated[bool, _display("--json", help="print one JSON document")]
Timings = Annotated[bool, _display("--timings", help="print a timing breakdown to stderr")]
Verbose = Annotated[bool, _display("--verbose", "-v", help="print every measure")]
Quiet = Annotated[bool, _display("--quiet", "-q", help="print only problems")]
NoProgress = Annotated[bool, _display("--quiet", "-q", help="print no progress")]
Yes = Annotated[bool, _display("--yes", "-y", help="never prompt")]

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "": 1.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|)")


def duration(text: str) -> float:
    """Parse ``30s``, ``2m``, ``500ms``, ``1h`` or plain seconds."""
    match = _DURATION.fullmatch(text.strip().lower())
    seconds = float(match[1]) * _UNITS[match[2]] if match else 0.0
    if not 0.0 < seconds < math.inf:
        raise typer.BadParameter(f"{text!r} is no time above zero: write 30s, 2m or 500ms")
    return seconds


def complete_name(incomplete: str) -> list[str]:
    """Return the names for shell completion."""
    from dbanon.anonymization.registry import ALGORITHMS

    return [name for name in ALGORITHMS if name.startswith(incomplete)]


def complete_model(incomplete: str) -> list[str]:
    """Return the privacy models for shell completion."""
    return [name for name in MODELS if name.startswith(incomplete)]


def complete_names(incomplete: str) -> list[str]:
    """Complete the last name of a comma-separated list."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in complete_name(last)]


def number_or_word(text: str) -> int | str:
    """Parse a number of rows, or the word that groups persons by theirs."""
    if text == GROUP:
        return text
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise typer.BadParameter(f"a number of rows, or {GROUP}")
    return int(text)


def kind_of_relation(text: str) -> ReleaseKind:
    """Parse the kind of the published relation."""
    if text not in [*ReleaseKind]:
        raise typer.BadParameter("table or view")
    return ReleaseKind(text)


def pair(text: str) -> tuple[str, str]:
    """Parse a parameter of an algorithm."""
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise typer.BadParameter(f"{text!r} is not NAME=VALUE")
    return name, value


def model(text: str) -> ModelSpec:
    """Parse ``t-closeness:t=0.2,distance=ordered``; a list is a parameter that is repeated."""
    name, _, rest = text.partition(":")
    if name not in MODELS:
        message = f"{name!r} is no privacy model; choose one of {', '.join(MODELS)}"
        raise typer.BadParameter(message)
    words: dict[str, list[str]] = {}
    for pair in filter(None, rest.split(",")):
        key, equals, value = pair.partition("=")
        if not (key and equals and value):
            raise typer.BadParameter(f"{pair!r} is not PARAM=VALUE")
        words.setdefault(key, []).append(value)
    known = MODELS[name].accepted()
    spec = ModelSpec(name, {key: _value(known.get(key), given) for key, given in words.items()})
    try:
        require_valid(spec)
    except PolicyError as error:
        raise typer.BadParameter(str(error)) from None
    return spec


def _value(parameter: Parameter | None, words: Sequence[str]) -> Value:
    """Return the value of a parameter; words that cannot be its value are left as they are."""
    if parameter is None or parameter.kind is tuple or len(words) > 1:
        return tuple(words)
    with suppress(ValueError):
        return parameter.kind(words[0])
    return words[0]


_PARSERS: dict[str, Callable[[str], object]] = {
    "time_limit": duration,
    "rows_per_subject": number_or_word,
    "models": model,
    "kind": kind_of_relation,
    "params": pair,
}
_COMPLETIONS = {"algorithm": complete_name, "models": complete_model}


def of_request(name: str, *, show_default: bool = True) -> object:
    """Return a field of a request as an option."""
    known = OPTIONS[name]
    return typer.Option(
        known.flag,
        help=known.help,
        metavar=known.metavar,
        envvar=known.envvar,
        min=known.least,
        max=known.most,
        rich_help_panel=known.panel,
        parser=_PARSERS.get(name),
        autocompletion=_COMPLETIONS.get(name),
        show_default=show_default,
    )


K = Annotated[int | None, of_request("k", show_default=False)]
L = Annotated[int | None, of_request("l", show_default=False)]
NewSeries = Annotated[bool, of_request("new_series")]
PolicyName = Annotated[str, of_request("policy")]
RecipientsChanged = Annotated[bool, of_request("recipients_changed")]
Schema = Annotated[str, of_request("schema")]
Strict = Annotated[bool, of_request("strict")]


Interrupt = Annotated[
    OnInterrupt, _search("--on-interrupt", metavar="ACTION", help="at Ctrl-C: discard or publish")
]
OfRefresh = Annotated[bool, _output("--refresh", help="show the result of a refresh")]
Compare = Annotated[
    bool, _search("--compare", help="run several algorithms and show the cost of each")
]
Algorithms = Annotated[
    str | None,
    _search(
        "--algorithms",
        metavar="NAME,NAME",
        show_default=False,
        autocompletion=complete_names,
        help="algorithms to compare; fast ones by default",
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
        help="write risk, utility and their figures as a page",
    ),
]
Ks = Annotated[
    str | None,
    _search(
        "--ks",
        metavar="K,K",
        show_default=False,
        help="values of k to compare; with --plot or --html by default 2,5,10,25,50,100",
    ),
]
Draft = Annotated[
    Path | None,
    _privacy(
        "--file",
        "-f",
        show_default=False,
        help="policy file to use instead of the stored one; - is stdin",
    ),
]
PrintSql = Annotated[bool, _display("--print-sql", help="print the SQL statements of publish")]


def one_of(table: str | None, dataset: Path | None) -> str | Path:
    """Return the table, or the file of the dataset; raises BadParameter unless one is given."""
    if table is not None and dataset is None:
        return table
    if table is None and dataset is not None:
        return dataset
    raise typer.BadParameter("one table, or --dataset FILE", param_hint="TABLE")


def refuse(mode: Mode, given: frozenset[str], *, option: str) -> None:
    """Raise BadParameter of an option for the first other one that its mode refuses."""
    for reason in reasons(mode, given):
        raise typer.BadParameter(reason, param_hint=option)


def settings(dsn: str | None, *, owner: str | None = None, superuser: bool = False) -> Settings:
    """Combine the flags with the environment."""
    from dbanon.settings import Settings

    return Settings.load(dsn=dsn, owner=owner, allow_superuser=superuser)


Option = tuple[object, object]
"""An annotation as Typer reads it, and a default."""

_READ_AS: dict[str, object] = {
    "kind": str,
    "series": str | None,
    "rows_per_subject": str | None,
    "models": list[str] | None,
    "params": list[str] | None,
    "grants": list[str] | None,
}
"""The types of the words of fields that are read by a parser, or by the request itself."""

_LISTED = frozenset({"models", "params", "grants"})
"""Those that an option may give several times."""


def _of_field(one: Field[object]) -> Option:
    known, kind = OPTIONS[one.name], _READ_AS.get(one.name, get_args(one.type)[0])
    default = None if one.name in _LISTED else one.default
    if known.among:
        make = cast("Callable[[str, list[tuple[str, str]]], type[StrEnum]]", StrEnum)
        kind = make(one.name.title(), [(value.upper(), value) for value in known.among]) | None
    plain = default.value if isinstance(default, StrEnum) else default
    return Annotated[kind, of_request(one.name, show_default=default is not None)], plain


def asking(
    verb: str, *, without: Collection[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replace the argument ``request`` of a command by the options of the function ``verb``."""
    known = {
        one.name: _of_field(one)
        for one in fields(Request)
        if (option := OPTIONS[one.name]).panel and verb in option.scope and one.name not in without
    }

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def wrapper(**arguments: object) -> None:
            given = {name: arguments.pop(name) for name in known}
            command(**arguments, request=_request(given))

        every: list[inspect.Parameter] = []
        for parameter in inspect.signature(command, eval_str=True).parameters.values():
            if parameter.name == "request":
                every += (
                    inspect.Parameter(name, parameter.kind, default=default, annotation=annotation)
                    for name, (annotation, default) in known.items()
                )
            else:
                every.append(parameter)
        vars(wrapper)["__signature__"] = inspect.Signature(every)
        wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in every}
        return wrapper

    return decorate


def _request(given: Mapping[str, object]) -> Request:
    """Build a request from options."""
    asked: dict[str, object] = {name: _plain(value) for name, value in given.items()}
    lists = {name: asked[name] or () for name in ("models", "grants")}
    pairs = asked["params"]
    params = dict(pairs) if isinstance(pairs, tuple) else {}
    return made(Request, {**asked, **lists, "params": params})


def _plain(value: object) -> Value | None:
    """Return an option's value as in a policy, None if it was not given."""
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, list):
        return tuple(value) or None
    return value  # type: ignore[return-value] # a number
