"""Shared options of commands, and settings from them."""

from __future__ import annotations

import inspect
import math
import re
from dataclasses import fields
from enum import StrEnum
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from dbanon.cli.terminal.console import OnInterrupt
from dbanon.domain.errors import PolicyError
from dbanon.domain.policy import GROUP, K_ANONYMITY, L_DIVERSITY, ModelSpec
from dbanon.models.registry import MODELS
from dbanon.models.specs import require_valid
from dbanon.request import OPTIONS, Panel, Request

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from dataclasses import Field

    from dbanon.domain.policy import Value
    from dbanon.models.parameters import Parameter
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
        help="publish the linked tables that a TOML file lists together",
    ),
]
Dsn = Annotated[
    str | None,
    _connection(
        "--dsn",
        envvar="DBANON_DSN",
        show_default=False,
        help="postgresql:// URI or key=value pairs; default: libpq's variables, then the embedded"
        " server",
    ),
]
Owner = Annotated[
    str | None,
    _connection(
        "--owner",
        envvar="DBANON_OWNER",
        show_default=False,
        help="act as this role, and let it own new objects",
    ),
]
AllowSuperuser = Annotated[
    bool,
    _connection("--allow-superuser", help="allow a superuser to own new objects"),
]
Json = Annotated[bool, _display("--json", help="print one JSON document")]
Timings = Annotated[bool, _display("--timings", help="print a timing breakdown to stderr")]
Progress = Annotated[
    bool, _display("--progress", help="print progress to stderr every 10 s; a bar on a terminal")
]
Quiet = Annotated[bool, _display("--quiet", "-q", help="print only problems")]
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


def complete_names(incomplete: str) -> list[str]:
    """Complete the last name of a comma-separated list."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in complete_name(last)]


_MORE: dict[str, dict[str, Any]] = {
    "time_limit": {"parser": duration},
    "algorithm": {"autocompletion": complete_name},
}


def of_request(name: str, **more: Any) -> Any:  # noqa: ANN401 - whatever Typer makes of it
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
    OnInterrupt,
    _search("--on-interrupt", help="at Ctrl-C: discard the search, or publish its best result"),
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


def settings(dsn: str | None, *, owner: str | None = None, superuser: bool = False) -> Settings:
    """Combine the flags with the environment."""
    from dbanon.settings import Settings

    return Settings.load(dsn=dsn, owner=owner, allow_superuser=superuser)


Option = tuple[object, object]
"""An annotation as Typer reads it, and a default."""

_OF_COMMANDS = frozenset({"k", "l"})  # which commands without further models take, too
_BY_ARGUMENTS = frozenset({K_ANONYMITY, L_DIVERSITY})  # models that these two ask for
_READ_AS: dict[str, object] = {
    "kind": str,
    "series": str | None,
    "rows_per_subject": str | None,
    "params": list[str] | None,
    "grants": list[str] | None,
}
"""The fields of a request whose words are read here, and not by Typer."""


def _argument(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")


def _choices(name: str, values: Iterable[str]) -> Any:  # noqa: ANN401 - a class for Typer
    return StrEnum(name.title(), [(value.upper(), value) for value in values])


def _choice(flag: str, values: tuple[str, ...], default: str, *, help_: str) -> Option:
    choices = _choices(_argument(flag), values)
    said = typer.Option(flag, help=help_, rich_help_panel=Panel.PRIVACY)
    return Annotated[choices, said], choices(default)


def _option(parameter: Parameter, flag: str) -> Option:
    if parameter.among:
        default = str(parameter.default or parameter.among[0])
        return _choice(flag, parameter.among, default, help_=parameter.help)
    many = parameter.kind is tuple
    said = typer.Option(
        flag,
        metavar="COLUMN" if many else None,
        show_default=False,
        help=parameter.help,
        rich_help_panel=Panel.PRIVACY,
    )
    return Annotated[(list[str] if many else parameter.kind) | None, said], None


def _options() -> dict[str, Option]:
    variants = [model.variant for model in MODELS.values() if model.variant is not None]
    found: dict[str, Option] = {}
    for model in MODELS.values():
        if (variant := model.variant) is not None and _argument(variant.flag) not in found:
            values = tuple(v.value for v in variants if v.flag == variant.flag)
            found[_argument(variant.flag)] = _choice(
                variant.flag, values, variant.value, help_=variant.help
            )
        for parameter in model.parameters().values():
            if parameter.flag is not None:
                found.setdefault(_argument(parameter.flag), _option(parameter, parameter.flag))
    return {name: option for name, option in found.items() if name not in _OF_COMMANDS}


def _of_field(one: Field[Any]) -> Option:
    known, kind = OPTIONS[one.name], _READ_AS.get(one.name, get_args(one.type)[0])
    default = None if one.name in {"params", "grants"} else one.default
    if known.among:
        kind = _choices(one.name, known.among) | None
    plain = default.value if isinstance(default, StrEnum) else default
    return Annotated[kind, of_request(one.name, show_default=default is not None)], plain


_OF_MODELS = _options()


def asking(
    verb: str, *, without: Collection[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replace the argument ``request`` of a command by the options of the function ``verb``."""
    of_fields: dict[str, Option] = {}
    known: dict[str, Option] = {}
    for one in fields(Request):
        if one.name == "models":
            known |= _OF_MODELS
        elif (
            (option := OPTIONS[one.name]).panel and verb in option.scope and one.name not in without
        ):
            of_fields[one.name] = known[one.name] = _of_field(one)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def wrapper(**arguments: Any) -> None:  # noqa: ANN401 - whatever the command takes
            given = {name: arguments.pop(name) for name in known}
            command(**arguments, request=_request(given, of_fields))

        every: list[inspect.Parameter] = []
        for parameter in inspect.signature(command, eval_str=True).parameters.values():
            if parameter.name == "request":
                every += (_parameter(name, *option) for name, option in known.items())
            else:
                every.append(parameter)
        vars(wrapper)["__signature__"] = inspect.Signature(every)
        wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in every}
        return wrapper

    return decorate


def _parameter(name: str, annotation: object, default: object) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def _request(given: dict[str, Any], names: Collection[str]) -> Request:
    """Build a request from options; ``--l`` may set a kind other than distinct diversity."""
    if given["kind"] not in {"table", "view"}:
        raise typer.BadParameter("table or view", param_hint="--as")
    models = _models(given)
    asked: dict[str, Any] = {
        **{name: _plain(given[name]) for name in names},
        "rows_per_subject": _number_or_word(given["rows_per_subject"]),
        "params": _pairs(given["params"] or ()),
        "grants": tuple(given["grants"] or ()),
        "l": given["l"] if _is_chosen(L_DIVERSITY, given) else None,
    }
    return Request(models=models, **asked)


def _pairs(texts: Iterable[str]) -> dict[str, str | int | float | bool]:
    found: dict[str, str | int | float | bool] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise typer.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--param")
        found[name] = value
    return found


def _number_or_word(text: str | None) -> int | str | None:
    if text is None or text == GROUP:
        return text
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise typer.BadParameter(f"a number of rows, or {GROUP}", param_hint="--rows-per-subject")
    return int(text)


def _models(arguments: Mapping[str, Any]) -> tuple[ModelSpec, ...]:
    """Return the models from a command's arguments, except k and distinct l."""
    found = (_spec(name, arguments) for name in MODELS if name not in _BY_ARGUMENTS)
    specs = tuple(spec for spec in found if spec is not None)
    for spec in specs:
        try:
            require_valid(spec)
        except PolicyError as error:
            raise typer.BadParameter(str(error)) from None
    return specs


def _spec(name: str, arguments: Mapping[str, Any]) -> ModelSpec | None:
    """Return a model with its given parameters, None if it is not requested.

    Its first option without a default requests it, or the kind option of another model.
    """
    known = {p: declared for p, declared in MODELS[name].parameters().items() if declared.flag}
    flags = {parameter: str(declared.flag) for parameter, declared in known.items()}
    values = {p: _plain(arguments[_argument(flag)]) for p, flag in flags.items()}
    given = {p: value for p, value in values.items() if value is not None}
    needed = [p for p, declared in known.items() if declared.default is None]
    if not needed:
        return None
    variant = MODELS[name].variant
    asking = f"{variant.flag} {variant.value}" if variant else flags[needed[0]]
    if _is_chosen(name, arguments) if variant else needed[0] in given:
        if missing := next((p for p in needed if p not in given), None):
            example = "COLUMN" if known[missing].kind is tuple else "3"
            message = f"needed by {asking}, such as {flags[missing]} {example}"
            raise typer.BadParameter(message, param_hint=flags[missing])
        return ModelSpec(name, given)
    for parameter in given:
        if not known[parameter].among and _argument(flags[parameter]) not in _OF_COMMANDS:
            raise typer.BadParameter(f"belongs to {asking}", param_hint=flags[parameter])
    return None


def _is_chosen(name: str, arguments: Mapping[str, Any]) -> bool:
    variant = MODELS[name].variant
    return variant is not None and arguments[_argument(variant.flag)] == variant.value


def _plain(value: object) -> Value | None:
    """Return an option's value as in a policy, None if it was not given."""
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, list):
        return tuple(value) or None
    return value  # type: ignore[return-value] # a number
