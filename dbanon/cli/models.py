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


Asked = tuple[Any, ...]
"""The models that a command's options ask for (``dbanon.domain.policy.ModelSpec``)."""

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
}


def with_models(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options above; it gets what they ask for as its argument ``models``.

    ``--l`` is taken from it when another kind than distinct diversity is meant.
    """

    @functools.wraps(command)
    def wrapper(**arguments: Any) -> None:  # noqa: ANN401 - whatever the command takes
        chosen = {name: arguments.pop(name) for name in _OPTIONS}
        models = asked({**chosen, "l": arguments["l"]})
        if chosen["l_kind"] is not LKind.DISTINCT:
            arguments["l"] = None
        command(**arguments, models=models)

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


def asked(arguments: Mapping[str, Any]) -> tuple[ModelSpec, ...]:
    """Pick from a command's arguments the models that it asks for beyond k and distinct l."""
    from dbanon.domain.errors import PolicyError
    from dbanon.domain.models import require_valid

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
    ):
        if arguments[parameter] is not None:
            yield ModelSpec(name, {parameter: arguments[parameter], **more})
