"""The options that ask for privacy models."""

from __future__ import annotations

import functools
import inspect
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from dbanon.domain.policy import ModelSpec


class LKind(StrEnum):
    """The variants of l-diversity that ``--l`` can ask for."""

    DISTINCT = "distinct"
    PROBABILISTIC = "probabilistic"
    ENTROPY = "entropy"
    RECURSIVE = "recursive"


class Distance(StrEnum):
    """How far apart two sensitive values are."""

    EQUAL = "equal"
    ORDERED = "ordered"
    HIERARCHICAL = "hierarchical"


class BetaKind(StrEnum):
    """The variants of beta-likeness."""

    BASIC = "basic"
    ENHANCED = "enhanced"


LKindOf = Annotated[
    LKind, typer.Option("--l-kind", help="how --l counts; recursive needs --c as well")
]
C = Annotated[
    float | None,
    typer.Option("--c", show_default=False, help="c of recursive (c, l)-diversity"),
]
T = Annotated[
    float | None,
    typer.Option(
        "--t", show_default=False, help="t-closeness: largest distance from the whole table"
    ),
]
TDistance = Annotated[
    Distance,
    typer.Option("--t-distance", help="of values: equal, ordered, or by the column's taxonomy"),
]
Alpha = Annotated[
    float | None,
    typer.Option("--alpha", show_default=False, help="largest share of a sensitive value"),
]
P = Annotated[
    int | None,
    typer.Option("--p", show_default=False, help="p-sensitivity: least distinct sensitive values"),
]
Beta = Annotated[
    float | None,
    typer.Option("--beta", show_default=False, help="beta-likeness: largest relative gain"),
]
BetaKindOf = Annotated[BetaKind, typer.Option("--beta-kind", help="basic or enhanced")]
Delta = Annotated[
    float | None,
    typer.Option("--delta", show_default=False, help="delta-disclosure privacy: largest log ratio"),
]
M = Annotated[
    int | None,
    typer.Option("--m", show_default=False, help="m-uniqueness: least rows, of different values"),
]
XYK = Annotated[
    int | None,
    typer.Option("--xy-k", show_default=False, help="(X, Y)-anonymity: least --y values of an --x"),
]
X = Annotated[
    list[str] | None,
    typer.Option("--x", metavar="COLUMN", show_default=False, help="all quasi-identifiers if none"),
]
Y = Annotated[
    list[str] | None,
    typer.Option("--y", metavar="COLUMN", show_default=False, help="a column of Y; repeatable"),
]
KMapK = Annotated[
    int | None,
    typer.Option("--k-map", show_default=False, help="least rows of the population in a class"),
]
DMin = Annotated[
    float | None,
    typer.Option("--dmin", show_default=False, help="delta-presence: least share published; 0"),
]
DMax = Annotated[
    float | None,
    typer.Option("--dmax", show_default=False, help="delta-presence: largest share published"),
]
Population = Annotated[
    str | None,
    typer.Option(
        "--population",
        metavar="SCHEMA.TABLE",
        show_default=False,
        help="everybody, with the same quasi-identifiers; for --k-map and --dmax",
    ),
]
Subject = Annotated[
    str | None,
    typer.Option(
        "--subject", metavar="COLUMN", show_default=False, help="tells persons apart: k counts them"
    ),
]
RowsPerSubject = Annotated[
    str | None,
    typer.Option(
        "--rows-per-subject",
        metavar="[NUMBER|group]",
        show_default=False,
        help="most rows of a person that are published, or group persons by how many they have",
    ),
]


Asked = dict[str, Any]
"""What a command's options ask for, as ``dbanon.actions.request.Options`` spells it."""

_OPTIONS = {
    "l_kind": (LKindOf, LKind.DISTINCT),
    "c": (C, None),
    "t": (T, None),
    "t_distance": (TDistance, Distance.EQUAL),
    "alpha": (Alpha, None),
    "p": (P, None),
    "beta": (Beta, None),
    "beta_kind": (BetaKindOf, BetaKind.BASIC),
    "delta": (Delta, None),
    "m": (M, None),
    "xy_k": (XYK, None),
    "x": (X, None),
    "y": (Y, None),
    "k_map": (KMapK, None),
    "dmin": (DMin, None),
    "dmax": (DMax, None),
    "population": (Population, None),
    "subject": (Subject, None),
    "rows_per_subject": (RowsPerSubject, None),
}
_OF_TABLES = ("population", "subject", "rows_per_subject")


def with_models(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options above; it gets what they ask for as its argument ``models``.

    ``--l`` is taken from it when another kind than distinct diversity is meant.
    """

    @functools.wraps(command)
    def wrapper(**arguments: Any) -> None:  # noqa: ANN401 - whatever the command takes
        chosen = {name: arguments.pop(name) for name in _OPTIONS}
        chosen["rows_per_subject"] = _number_or_word(chosen["rows_per_subject"])
        models = asked({**chosen, "l": arguments["l"]})
        if chosen["l_kind"] is not LKind.DISTINCT:
            arguments["l"] = None
        command(**arguments, models={"models": models} | {n: chosen[n] for n in _OF_TABLES})

    known = inspect.signature(command, eval_str=True).parameters
    own = [parameter for name, parameter in known.items() if name != "models"]
    place = next(i for i, p in enumerate(own) if p.name == "l") + 1
    added = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
        )
        for name, (annotation, default) in _OPTIONS.items()
    ]
    every = [*own[:place], *added, *own[place:]]
    vars(wrapper)["__signature__"] = inspect.Signature(every)
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in every}
    return wrapper


def _number_or_word(text: str | None) -> int | str | None:
    """Read a number, or the one word that may stand in its place."""
    from dbanon.domain.policy import GROUP

    if text is None or text == GROUP:
        return text
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise typer.BadParameter(f"a number of rows, or {GROUP}", param_hint="--rows-per-subject")
    return int(text)


def asked(arguments: Mapping[str, Any]) -> tuple[ModelSpec, ...]:
    """Pick from a command's arguments the models that it asks for beyond k and distinct l."""
    from dbanon.domain.errors import PolicyError
    from dbanon.models.specs import require_valid

    specs = tuple(_specs(arguments))
    for spec in specs:
        try:
            require_valid(spec)
        except PolicyError as error:
            raise typer.BadParameter(str(error)) from None
    return specs


def _specs(arguments: Mapping[str, Any]) -> Iterator[ModelSpec]:
    from dbanon.domain.policy import ModelSpec

    kind, l, c = arguments["l_kind"], arguments["l"], arguments["c"]
    if kind is LKind.RECURSIVE and c is None:
        raise typer.BadParameter("recursive diversity needs c, such as --c 3", param_hint="--c")
    if kind is not LKind.RECURSIVE and c is not None:
        raise typer.BadParameter("belongs to --l-kind recursive", param_hint="--c")
    if kind is not LKind.DISTINCT:
        if l is None:
            raise typer.BadParameter(f"{kind} diversity needs l, such as --l 3", param_hint="--l")
        more = {"c": c} if kind is LKind.RECURSIVE else {}
        yield ModelSpec(f"{kind}-l-diversity", {**more, "l": l})
    for parameter, name, more in (
        ("t", "t-closeness", {"distance": arguments["t_distance"].value}),
        ("alpha", "alpha-k-anonymity", {}),
        ("p", "p-sensitivity", {}),
        ("beta", "beta-likeness", {"kind": arguments["beta_kind"].value}),
        ("delta", "delta-disclosure", {}),
        ("m", "m-uniqueness", {}),
    ):
        if arguments[parameter] is not None:
            yield ModelSpec(name, {parameter: arguments[parameter], **more})
    yield from _of_rows(arguments)


def _of_rows(arguments: Mapping[str, Any]) -> Iterator[ModelSpec]:
    from dbanon.domain.policy import ModelSpec

    given = {name: tuple(arguments[name] or ()) for name in ("x", "y")}
    columns = {name: value for name, value in given.items() if value}
    if arguments["xy_k"] is not None:
        yield ModelSpec("x-y-anonymity", {"k": arguments["xy_k"], **columns})
    elif columns:
        raise typer.BadParameter("belongs to --xy-k", param_hint=f"--{next(iter(columns))}")
    if arguments["k_map"] is not None:
        yield ModelSpec("k-map", {"k": arguments["k_map"]})
    least = {} if arguments["dmin"] is None else {"dmin": arguments["dmin"]}
    if arguments["dmax"] is not None:
        yield ModelSpec("delta-presence", {**least, "dmax": arguments["dmax"]})
    elif least:
        raise typer.BadParameter("belongs to --dmax", param_hint="--dmin")
