"""Interfaces of algorithms and recodings, and the handling of their parameters."""

from __future__ import annotations

import math
from dataclasses import MISSING, dataclass, fields, replace
from fractions import Fraction
from types import NoneType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Protocol,
    get_args,
    get_origin,
    get_type_hints,
)

from dbanon.domain.errors import PolicyError, Unsatisfiable
from dbanon.domain.policy import Masking

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from dbanon.domain.assignment import Assignment, EncodedTable
    from dbanon.domain.policy import Policy
    from dbanon.kernels.layout import Floats, Int32s, Int64s
    from dbanon.models.base import Demand


Scalar = str | int | float | bool

# An algorithm reports its progress to the field of this name, which is no parameter.
LISTENER = "stages"

_TIME_LIMIT = "time_limit"

_SPELLED = {bool: "true or false", int: "an integer", float: "a number", str: "text"}
_BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Requirement:
    """What a group must meet: at least k rows, and l distinct values of each sensitive column.

    max_suppressed: the largest fraction of rows, in [0, 1), that may be suppressed. demands:
    further models. Algorithms may search for them; merging enforces them afterwards
    (``dbanon.anonymization.adjusting.repair``).
    """

    k: int
    l: int = 1
    max_suppressed: float = 0.0
    demands: tuple[Demand, ...] = ()

    @property
    def sensitive_aware(self) -> bool:
        """True if sensitive values matter; otherwise no algorithm reads them."""
        return self.l > 1 or bool(self.demands)

    def budget(self, n_rows: int) -> int:
        """Return the number of rows that may be suppressed; the fraction is read as a decimal."""
        return math.floor(Fraction(repr(self.max_suppressed)) * n_rows)


class Algorithm(Protocol):
    """A way to group rows; a dataclass whose fields are its parameters."""

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Partition the rows into groups that meet the requirement.

        Rows may be suppressed within the budget; most algorithms suppress none. Deterministic for
        the same arguments and parameters. Raises Unsatisfiable if there is no partition, or if the
        table is too large for the algorithm; the message gives the limit and an alternative.
        """
        ...


def parameters(factory: Callable[..., object]) -> dict[str, Any]:
    """Return each parameter with its default, in field order; MISSING if it has none."""
    return {
        field.name: field.default
        for field in fields(factory)  # type: ignore[arg-type] # classes
        if field.name != LISTENER
    }


def listens(factory: Callable[..., Algorithm]) -> bool:
    """Return True if an algorithm reports progress and can be stopped."""
    return any(field.name == LISTENER for field in fields(factory))  # type: ignore[arg-type]


def typed(
    name: str, factory: Callable[..., object], given: Mapping[str, Scalar]
) -> dict[str, Scalar]:
    """Convert parameters to the types of their fields; text is parsed.

    Raises PolicyError for an unknown, invalid or missing parameter of ``name``.
    """
    known = parameters(factory)
    for parameter in given:
        if parameter not in known:
            raise _unknown(name, parameter, known)
    for parameter, default in known.items():
        if default is MISSING and parameter not in given:
            raise PolicyError(f"{name} needs {parameter}", hint=f"{parameter} = ...")
    hints = get_type_hints(factory)
    return {key: _typed(name, key, value, hints[key]) for key, value in given.items()}


def timed(policy: Policy, *, share: float) -> Policy:
    """Return the policy with its time limit scaled by ``share``."""
    limit = policy.params.get(_TIME_LIMIT)
    if not isinstance(limit, int | float):
        return policy
    return replace(policy, params={**policy.params, _TIME_LIMIT: limit * share})


def _unknown(name: str, parameter: str, known: Mapping[str, Any]) -> PolicyError:
    if parameter in {"effort", _TIME_LIMIT}:
        what = "time limit" if parameter == _TIME_LIMIT else "effort"
        return PolicyError(f"{name} takes no {what}", hint="--algorithm auto")
    listed = ", ".join(known)
    return PolicyError(
        f"there is no parameter of {name} {parameter!r}",
        hint=f"choose one of {listed}" if listed else "it has none",
    )


def _typed(name: str, parameter: str, value: Scalar, hint: Any) -> Scalar:  # noqa: ANN401 - a type
    kinds = [kind for kind in (get_args(hint) or (hint,)) if kind is not NoneType]
    if get_origin(hint) is Literal:
        wanted = f"one of {', '.join(map(str, kinds))}"
        found: Scalar | None = next((c for c in kinds if str(c) == str(value)), None)
    else:
        wanted = " or ".join(_SPELLED[kind] for kind in kinds)
        found = next((v for kind in kinds if (v := _read(value, kind)) is not None), None)
    if found is None:
        raise PolicyError(
            f"parameter {parameter} of {name} is {wanted}, not {value!r}",
            hint=f"leave {parameter} out to use what {name} chooses",
        )
    return found


def _read(value: Scalar, kind: type[Scalar]) -> Scalar | None:
    """Convert a value to a type; None if that is impossible."""
    if isinstance(value, str) and kind is not str:
        return _parse(value, kind)
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return value


def _parse(text: str, kind: type[Scalar]) -> Scalar | None:
    if kind is bool:
        return _BOOLEANS.get(text.lower())
    try:
        value = kind(text)
    except ValueError:
        return None
    return value if math.isfinite(float(value)) else None


def require_at_most(limit: int, table: EncodedTable, *, algorithm: str) -> None:
    """Raise Unsatisfiable if the table is too large for an algorithm that compares all pairs."""
    if table.n_rows > limit:
        msg = f"{algorithm} takes at most {limit:,} rows at once; the table has {table.n_rows:,}"
        raise Unsatisfiable(msg, hint=f"--algorithm auto, or --block {limit}")


def require_small_k(limit: int, requirement: Requirement, *, algorithm: str) -> None:
    """Raise Unsatisfiable if k exceeds the group size that an algorithm supports."""
    if requirement.k > limit:
        msg = f"{algorithm} makes {limit}-anonymous groups, and k = {requirement.k} asks for more"
        raise Unsatisfiable(msg, hint="--algorithm forest")


class Draw(Protocol):
    """Random numbers that belong to rows."""

    def __call__(self, count: int, salt: str, column: int | None = None) -> Floats:
        """Return (n, count) random numbers in (0, 1), the same for the next release.

        They depend only on the person, the values in all columns or in one, the salt and a secret
        key.
        """
        ...


@dataclass(frozen=True, eq=False, slots=True)
class Rows:
    """Persons whose values are masked, and their reproducible random numbers.

    person: (n,) numbers of the persons; values: returns a random number in (0, 1) of each value of
    a column that is masked alone, which depends on the value and a secret key; ranks: indices of
    the columns whose numbers are ranks of labels.
    """

    person: Int64s
    draw: Draw
    values: Callable[[], Floats]
    ranks: frozenset[int] = frozenset()


class Bounds(NamedTuple):
    """The bounds of a parameter that is a number; what: its name in a message."""

    what: str
    above: float = -math.inf
    least: float = -math.inf
    below: float = math.inf
    most: float = math.inf

    def field(self) -> dict[str, Bounds]:
        """Return the metadata of a dataclass field for these bounds."""
        return {"bounds": self}

    def require(self, value: float) -> None:
        """Raise PolicyError unless a number is within the bounds."""
        if not (self.above < value < self.below and self.least <= value <= self.most):
            words = ("more than", "at least", "less than", "at most")
            pairs = zip(words, self[1:], strict=True)
            listed = [f"{word} {bound:g}" for word, bound in pairs if math.isfinite(bound)]
            raise PolicyError(f"{self.what} is {' and '.join(listed)}")


class _Bounded(Masking, Protocol):
    """A masking method with bounds of parameters, as metadata of its fields."""

    def __post_init__(self) -> None:
        """Raise PolicyError for a parameter that is out of its bounds."""
        for field in fields(self):  # type: ignore[arg-type] # every method is a dataclass
            if "bounds" in field.metadata:
                field.metadata["bounds"].require(getattr(self, field.name))


class NumberMasking(_Bounded, Protocol):
    """A way to change numbers."""

    of_numbers: ClassVar[bool] = True

    @property
    def least(self) -> int:
        """Least number of persons whose values hide each other."""
        return 2

    def mask(self, values: Floats, rows: Rows) -> Floats:
        """Return other finite numbers, (n, p), n >= 1; PolicyError if that is impossible."""
        ...


class ValueMasking(_Bounded, Protocol):
    """A way to change values of any type."""

    of_numbers: ClassVar[bool] = False

    def mask(self, codes: Int32s, n_values: NDArray[np.int64], rows: Rows) -> Int32s:
        """Return other codes, (n, p); n >= 1.

        codes: -1 for NULL, otherwise 0 to n_values - 1 in value order; n_values is an added value.
        """
        ...
