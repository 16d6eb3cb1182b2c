"""Write the JSON schema of policy files, for editors: python docs/policy_schema.py.

Names, types, bounds and descriptions are those of the declared keys of policies, and of the
registries. Only ``dbanon policy set`` checks conditions on the table.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import MISSING, fields
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from dbanon.anonymization.interfaces import parameters
from dbanon.anonymization.registry import ALGORITHMS, MASKING, RECODINGS
from dbanon.domain.policy import (
    ColumnRule,
    Comparison,
    Condition,
    MaskingStep,
    Policy,
    Role,
    keys_of,
    meanings_of,
)
from dbanon.domain.policy_warning import Code
from dbanon.models.registry import MODELS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dbanon.domain.policy import Key
    from dbanon.models.base import Parameter

Schema = dict[str, Any]

REFERENCE = Path(__file__).parent / "reference"
FILE = REFERENCE / "policy.schema.json"
TYPES = {bool: "boolean", int: "integer", float: "number", str: "string"}
TEXT: Schema = {"type": "string", "minLength": 1}
COUNT: Schema = {"type": "integer", "minimum": 1}
REGISTRIES = {"algorithms": ALGORITHMS, "recodings": RECODINGS}


def text() -> str:
    """Return the schema as in the file."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def schema() -> Schema:
    """Return the schema of a whole policy."""
    own = {
        "where": {"type": "array", "minItems": 1, "items": _condition()},
        "masking": {"type": "array", "minItems": 1, "items": _masking()},
        "columns": {"type": "object", "minProperties": 1, "additionalProperties": _column()},
        "models": _models(),
        "params": {"type": "object"},
        "allow": _allow(of_column=False),
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A policy of dbanon",
        **_keys(Policy, own),
        "allOf": [_of_algorithm(name, factory) for name, factory in ALGORITHMS.items()],
    }


def _keys(described: type, own: Mapping[str, Schema]) -> Schema:
    """Return the schema of the keys that a policy, or the rule of a column, declares."""
    defaults = {
        field.name: () if callable(field.default_factory) else field.default
        for field in fields(described)
    }
    properties = {
        name: own[name] if name in own else _key(key, defaults[name])
        for name, key in keys_of(described).items()
    }
    required = [name for name in properties if defaults[name] is MISSING]
    return {**_table(properties, described=_meanings(described)), "required": required}


def _key(key: Key, default: object) -> Schema:
    """Return the schema of the values of a key."""
    found = _values(key)
    if key.absent is not None or (default is not MISSING and default not in {None, ()}):
        whole = isinstance(default, float) and default.is_integer()
        found["default"] = key.absent or (int(default) if whole else default)
    return found


def _values(key: Key) -> Schema:
    among = list(REGISTRIES.get(key.names, key.among))
    words = {"const": among[0]} if len(among) == 1 else {"enum": among}
    if key.form == "text" and not among:
        return {"type": "string", "pattern": f"^{key.pattern}$"} if key.pattern else {**TEXT}
    if key.form == "texts":
        found = {"type": "array", "minItems": 1, "items": {"type": "string"} if key.empty else TEXT}
        return {**found, "uniqueItems": True} if key.unique else found
    bounds = {
        "minimum": key.least,
        "exclusiveMinimum": key.above,
        "exclusiveMaximum": key.below,
    }
    finite = {name: bound for name, bound in bounds.items() if math.isfinite(bound)}
    given = {name: int(bound) if bound == int(bound) else bound for name, bound in finite.items()}
    forms: dict[str, Schema] = {
        "text": words,
        "relation": TEXT,
        "flag": {"type": "boolean"},
        "count": {"type": "integer", **given},
        "number": {"type": "number", **given},
        "word or count": {"anyOf": [words, COUNT]},
    }
    return {**forms[key.form]}


def _table(properties: Mapping[str, Schema], *, described: Mapping[str, str]) -> Schema:
    """Return the schema of a table that has only these keys."""
    keys = {
        key: {"description": described[key], **value} if key in described else value
        for key, value in properties.items()
    }
    return {"type": "object", "properties": keys, "additionalProperties": False}


def _column() -> Schema:
    return {
        **_keys(ColumnRule, {"allow": _allow(of_column=True)}),
        "allOf": [
            _where("role", role.value, _without(role)) for role in Role if role is not Role.QUASI
        ],
    }


def _without(role: Role) -> dict[str, bool]:
    """Return the keys that columns of a role may not have."""
    roles = {name: key.roles for name, key in keys_of(ColumnRule).items()}
    return {name: False for name, among in roles.items() if among and role not in among}


def _allow(*, of_column: bool) -> Schema:
    codes = "|".join(code for code in Code if code.of_column is of_column)
    return {
        "type": "array",
        "minItems": 1,
        "uniqueItems": True,
        "items": {"type": "string", "pattern": rf"^\s*({codes})\s*:\s*\S"},
    }


def _condition() -> Schema:
    scalar: Schema = {"type": ["string", "number", "boolean"]}
    values = {"type": "array", "minItems": 1, "items": scalar}
    properties = {
        "column": TEXT,
        "is": {"enum": [word.value for word in Comparison]},
        "value": {"anyOf": [scalar, values]},
    }
    bare = [Comparison.IS_NULL.value, Comparison.IS_NOT_NULL.value]
    kinds = {
        Comparison.IN: values,
        Comparison.BETWEEN: {**values, "minItems": 2, "maxItems": 2},
    }
    taking = {word: kinds.get(word, scalar) for word in Comparison if word not in bare}
    return {
        **_table(properties, described=_meanings(Condition)),
        "required": ["column", "is"],
        "allOf": [
            *(_where("is", word.value, {"value": False}) for word in map(Comparison, bare)),
            *(_taking(word.value, kind) for word, kind in taking.items()),
        ],
    }


def _masking() -> Schema:
    names = {"type": "array", "minItems": 1, "uniqueItems": True, "items": TEXT}
    own = {"method": {"enum": list(MASKING)}, "columns": names, "within": names}
    steps = []
    for name, factory in MASKING.items():
        hints, known = get_type_hints(factory), parameters(factory)
        properties = {**own, **{key: _typed(hints[key]) for key in known}}
        step = _where("method", name, {})
        required = [key for key, default in known.items() if default is MISSING]
        then = _table(properties, described=_meanings(MaskingStep))
        steps.append({**step, "then": {**then, "required": required}})
    return {"type": "object", "required": ["method", "columns"], "properties": own, "allOf": steps}


def _taking(word: str, value: Schema) -> Schema:
    """Return the schema of the value for a comparison."""
    found = _where("is", word, {"value": value})
    return {**found, "then": {**found["then"], "required": ["value"]}}


def _where(key: str, value: str, properties: Mapping[str, Any]) -> Schema:
    """Return the conditions on other keys if a key has this value."""
    given = {"required": [key], "properties": {key: {"const": value}}}
    return {"if": given, "then": {"properties": dict(properties)}}


def _models() -> Schema:
    short = {
        model.limit: {
            **_parameter(model.parameters()[model.limit]),
            "description": f"short for {name}",
        }
        for name, model in MODELS.items()
        if model.is_short
    }
    full = {name: _model(name) for name in MODELS}
    return _table({**short, **full}, described={})


def _model(name: str) -> Schema:
    accepted = MODELS[name].accepted()
    properties = {key: _parameter(parameter) for key, parameter in accepted.items()}
    required = [key for key, parameter in accepted.items() if parameter.default is None]
    return {**_table(properties, described={}), "required": required}


def _parameter(parameter: Parameter) -> Schema:
    """Return the schema of a parameter of a privacy model."""
    if parameter.kind is tuple:
        return {"type": "array", "minItems": 1, "items": TEXT}
    if parameter.kind is str:
        return {"enum": list(parameter.among), "default": parameter.default}
    found: Schema = {"type": TYPES[parameter.kind]}
    found["exclusiveMinimum" if parameter.above else "minimum"] = parameter.least
    if parameter.most < math.inf:
        found["maximum"] = parameter.most
    return found if parameter.default is None else {**found, "default": parameter.default}


def _of_algorithm(name: str, factory: Callable[..., Any]) -> Schema:
    """Return the schema of ``params`` for an algorithm."""
    hints = get_type_hints(factory)
    known = {key: _typed(hints[key]) for key in parameters(factory)}
    params = _where("algorithm", name, {"params": _table(known, described={})})
    if name == Policy(None, ()).algorithm:
        del params["if"]["required"]  # the default algorithm
    return params


def _typed(hint: object) -> Schema:
    """Return the schema of a parameter of an algorithm from its type."""
    if get_origin(hint) is Literal:
        return {"enum": list(get_args(hint))}
    kinds = [kind for kind in (get_args(hint) or (hint,)) if kind is not NoneType]
    return {"type": [TYPES[kind] for kind in kinds]}


def _meanings(described: type) -> dict[str, str]:
    """Return the meaning and the default of each key, without markup."""
    endings = {"required": " (required)"}
    return {
        key: _plain(meaning + endings.get(without, f". Without it: {without}"))
        for key, (meaning, without) in meanings_of(described).items()
    }


def _plain(markdown: str) -> str:
    return re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", markdown).replace("`", "")


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
