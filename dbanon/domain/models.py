"""The privacy models by name, and the parameters of each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbanon.domain.errors import PolicyError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dbanon.domain.policy import ModelSpec, Value

COLUMNS, MULTI = "columns", "multi"
X_Y_ANONYMITY, K_MAP, DELTA_PRESENCE = "x-y-anonymity", "k-map", "delta-presence"
PER_ATTRIBUTE, STRICT = "per_attribute", "strict"
EQUAL, ORDERED, HIERARCHICAL = "equal", "ordered", "hierarchical"
BASIC, ENHANCED = "basic", "enhanced"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: its type, its bounds, and the value it has when it is left out.

    A number lies in [least, most]; ``above`` leaves ``least`` itself out. A text is one of
    ``among``. A tuple holds texts.
    """

    kind: type[int | float | str | tuple[str, ...]]
    least: float = 1
    most: float = math.inf
    above: bool = False
    among: tuple[str, ...] = ()
    default: Value | None = None

    def problem(self, value: object) -> str | None:
        """Say what is wrong with a value, None if nothing is."""
        if self.kind is tuple:
            fine = isinstance(value, tuple) and all(isinstance(v, str) and v for v in value)
            return None if fine and value else "must be a list of texts"
        if self.kind is str:
            return None if value in self.among else f"is none of {', '.join(self.among)}"
        kinds = (int,) if self.kind is int else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds):
            return "must be an integer" if self.kind is int else "must be a number"
        low = value > self.least if self.above else value >= self.least
        if low and value <= self.most and math.isfinite(value):
            return None
        bound = f"{'greater than' if self.above else 'at least'} {self.least:g}"
        return f"must be {bound}" + (
            f" and at most {self.most:.10g}" if self.most < math.inf else ""
        )


@dataclass(frozen=True, slots=True)
class ModelKind:
    """A model: how it is spelled with its parameters, and which it takes.

    ``per_sensitive`` tells whether it is about each sensitive column or about the rows,
    ``of_population`` whether it counts the rows of another table, of which this one is a part, and
    ``of_whole`` whether a class is judged by more than its own rows.
    """

    title: str
    parameters: Mapping[str, Parameter]
    per_sensitive: bool = True
    of_population: bool = False
    of_whole: bool = False

    def accepted(self) -> Mapping[str, Parameter]:
        """Return all parameters: its own, and those of every model about sensitive columns."""
        return {**self.parameters, **_COMMON} if self.per_sensitive else self.parameters


_COMMON = {
    COLUMNS: Parameter(tuple, default=()),
    MULTI: Parameter(str, among=(PER_ATTRIBUTE, STRICT), default=PER_ATTRIBUTE),
}
_COUNT = Parameter(int, most=2**31 - 1)  # what the database counts with
_LEVEL = Parameter(float)
_SHARE = Parameter(float, least=0, most=1, above=True)
_FACTOR = Parameter(float, least=0, above=True)
_DISTANCE = {
    "t": Parameter(float, least=0, most=1),
    "distance": Parameter(str, among=(EQUAL, ORDERED, HIERARCHICAL), default=EQUAL),
}
_TEXTS = Parameter(tuple)

MODEL_KINDS: Mapping[str, ModelKind] = {
    "k-anonymity": ModelKind("{k}-anonymity", {"k": _COUNT}, per_sensitive=False),
    "l-diversity": ModelKind("distinct {l}-diversity", {"l": _COUNT}),
    "probabilistic-l-diversity": ModelKind("probabilistic {l}-diversity", {"l": _LEVEL}),
    "entropy-l-diversity": ModelKind("entropy {l}-diversity", {"l": _LEVEL}),
    "recursive-l-diversity": ModelKind(
        "recursive ({c}, {l})-diversity", {"c": _FACTOR, "l": _COUNT}
    ),
    "pd-recursive-l-diversity": ModelKind(
        "positive disclosure-recursive ({c}, {l})-diversity",
        {"c": _FACTOR, "l": _COUNT, "positive": _TEXTS},
    ),
    "npd-recursive-l-diversity": ModelKind(
        "negative/positive disclosure-recursive ({c}, {share}, {l})-diversity",
        {"c": _FACTOR, "l": _COUNT, "positive": _TEXTS, "share": _SHARE, "negative": _TEXTS},
    ),
    "alpha-k-anonymity": ModelKind("a share of at most alpha = {alpha}", {"alpha": _SHARE}),
    "p-sensitivity": ModelKind("{p}-sensitivity", {"p": _COUNT}),
    "t-closeness": ModelKind("{t}-closeness ({distance})", _DISTANCE, of_whole=True),
    "n-t-closeness": ModelKind(
        "({n}, {t})-closeness ({distance})", {"n": _COUNT, **_DISTANCE}, of_whole=True
    ),
    "beta-likeness": ModelKind(
        "{kind} {beta}-likeness",
        {"beta": _FACTOR, "kind": Parameter(str, among=(BASIC, ENHANCED), default=BASIC)},
        of_whole=True,
    ),
    "delta-disclosure": ModelKind("{delta}-disclosure privacy", {"delta": _FACTOR}, of_whole=True),
    "k-e-anonymity": ModelKind(
        "({k}, {e})-anonymity", {"k": _COUNT, "e": Parameter(float, least=0)}
    ),
    "m-uniqueness": ModelKind("{m}-uniqueness", {"m": _COUNT}),
    X_Y_ANONYMITY: ModelKind(
        "(X, Y)-anonymity with k = {k}",
        {"k": _COUNT, "x": Parameter(tuple, default=()), "y": _TEXTS},
        per_sensitive=False,
        of_whole=True,
    ),
    K_MAP: ModelKind(
        "{k}-map", {"k": _COUNT}, per_sensitive=False, of_population=True, of_whole=True
    ),
    DELTA_PRESENCE: ModelKind(
        "({dmin}, {dmax})-presence",
        {"dmin": Parameter(float, least=0, most=1, default=0.0), "dmax": _SHARE},
        per_sensitive=False,
        of_population=True,
        of_whole=True,
    ),
}

SHORT: Mapping[str, str] = {
    "k": "k-anonymity",
    "l": "l-diversity",
    "p": "p-sensitivity",
    "t": "t-closeness",
    "alpha": "alpha-k-anonymity",
    "beta": "beta-likeness",
    "delta": "delta-disclosure",
    "m": "m-uniqueness",
}
"""The parameters that stand for a model on their own."""


def arguments(spec: ModelSpec) -> dict[str, Value]:
    """Return a model's own parameters with the defaults filled in."""
    kind = MODEL_KINDS[spec.name]
    filled = {name: spec.params.get(name, p.default) for name, p in kind.parameters.items()}
    return {name: value for name, value in filled.items() if value is not None}


def title(spec: ModelSpec) -> str:
    """Spell a model as a person would, such as ``entropy 3-diversity``."""
    spelled = {
        name: f"{value:g}" if isinstance(value, float) else value
        for name, value in arguments(spec).items()
    }
    return MODEL_KINDS[spec.name].title.format(**spelled)


def problems(spec: ModelSpec) -> Iterator[tuple[str, str]]:
    """Yield (parameter, what is wrong with it) of a model that exists."""
    accepted = MODEL_KINDS[spec.name].accepted()
    for name, value in spec.params.items():
        if name not in accepted:
            yield name, f"unknown key; {spec.name} takes {', '.join(accepted)}"
        elif found := accepted[name].problem(value):
            yield name, found
    for name, parameter in accepted.items():
        if parameter.default is None and name not in spec.params:
            yield name, "is missing"
    yield from _contradictions(spec)


def _contradictions(spec: ModelSpec) -> Iterator[tuple[str, str]]:
    """Yield what is wrong between the parameters of a model."""
    if spec.name == DELTA_PRESENCE:
        least, most = spec.params.get("dmin", 0.0), spec.params.get("dmax", 1.0)
        if isinstance(least, int | float) and isinstance(most, int | float) and least > most:
            yield "dmin", "is greater than dmax"
    if spec.name == X_Y_ANONYMITY:
        x, y = spec.params.get("x", ()), spec.params.get("y", ())
        if isinstance(x, tuple) and isinstance(y, tuple) and set(x) & set(y):
            yield "y", "shares a column with x"


def require_valid(spec: ModelSpec) -> None:
    """Raise PolicyError for the first thing that is wrong with a model's parameters."""
    for name, text in problems(spec):
        msg = f"{spec.name}: {name} {text}"
        raise PolicyError(
            msg, hint=f"{spec.name} takes {', '.join(MODEL_KINDS[spec.name].accepted())}"
        )
