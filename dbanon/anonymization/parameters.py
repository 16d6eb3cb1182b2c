"""The parameters of an algorithm or a masking method: which it has, and values of their types."""

from __future__ import annotations

import dataclasses
import math
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from dbanon.domain.errors import PolicyError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dbanon.anonymization.interfaces import Algorithm
    from dbanon.domain.policy import Policy

Scalar = str | int | float | bool

# A field of this name is how an algorithm tells of its progress; nobody chooses it.
LISTENER = "stages"

_TIME_LIMIT = "time_limit"

_SPELLED = {bool: "true or false", int: "an integer", float: "a number", str: "text"}
_BOOLEANS = {"true": True, "false": False}


def parameters(factory: Callable[..., object]) -> dict[str, Any]:
    """Return the default of each parameter, in the order of its fields; MISSING if it has none."""
    return {
        field.name: field.default
        for field in dataclasses.fields(factory)  # type: ignore[arg-type] # classes
        if field.name != LISTENER
    }


def listens(factory: Callable[..., Algorithm]) -> bool:
    """Tell whether an algorithm reports its progress and can be asked to stop."""
    return any(field.name == LISTENER for field in dataclasses.fields(factory))  # type: ignore[arg-type]


def typed(
    name: str, factory: Callable[..., object], given: Mapping[str, Scalar]
) -> dict[str, Scalar]:
    """Return the given parameters in the types of their fields; text is read as the type asks.

    Raises PolicyError for a parameter that what is called ``name`` does not have, for a value that
    its type does not, and for one that has no default and is not given.
    """
    known = parameters(factory)
    for parameter in given:
        if parameter not in known:
            raise _unknown(name, parameter, known)
    for parameter, default in known.items():
        if default is dataclasses.MISSING and parameter not in given:
            raise PolicyError(f"{name} needs {parameter}", hint=f"{parameter} = ...")
    hints = get_type_hints(factory)
    return {key: _typed(name, key, value, hints[key]) for key, value in given.items()}


def timed(policy: Policy, *, share: float) -> Policy:
    """Return the policy of some rows, which have this share of the time that all have."""
    limit = policy.params.get(_TIME_LIMIT)
    if not isinstance(limit, int | float):
        return policy
    return dataclasses.replace(policy, params={**policy.params, _TIME_LIMIT: limit * share})


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
        wanted, found = f"one of {', '.join(map(str, kinds))}", _among(value, kinds)
    else:
        wanted = " or ".join(_SPELLED[kind] for kind in kinds)
        found = next((v for kind in kinds if (v := _read(value, kind)) is not None), None)
    if found is None:
        raise PolicyError(
            f"parameter {parameter} of {name} is {wanted}, not {value!r}",
            hint=f"leave {parameter} out to use what {name} chooses",
        )
    return found


def _among(value: Scalar, choices: list[Any]) -> Scalar | None:
    return next((choice for choice in choices if str(choice) == str(value)), None)


def _read(value: Scalar, kind: type[Scalar]) -> Scalar | None:
    """Return a value as a type has it, None when it cannot."""
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
