"""Write the JSON schemas of what ``--json`` prints: python docs/json_schemas.py.

The types are those of the values that commands print. A schema requires every key that a command
prints and allows more, as a later version may add keys.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cache
from importlib import import_module
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from dbanon.actions.compare import Comparison
from dbanon.actions.doctor import Finding
from dbanon.actions.inspect import Inspection
from dbanon.actions.jobs.schedules import Scheduled
from dbanon.actions.jobs.worker import Worked
from dbanon.actions.plan import Plan
from dbanon.actions.policy import Difference, Event, StoredPolicy
from dbanon.actions.refresh import Refreshed
from dbanon.actions.releases.attack import Attempt
from dbanon.actions.releases.check import Checked, Described
from dbanon.actions.releases.counting import NoisyCounts
from dbanon.actions.releases.export import Export
from dbanon.actions.releases.grant import Access
from dbanon.actions.releases.ledger import Forgotten, Hidden, History
from dbanon.actions.releases.report import DatasetReport, Report
from dbanon.actions.releases.report import Difference as FigureDifference
from dbanon.actions.server import Compiled, ServerStatus
from dbanon.domain.policy import Approval, Policy
from dbanon.domain.release import Release, Verification
from dbanon.domain.report import SignOff
from dbanon.domain.table import TableName

Schema = dict[str, Any]

FOLDER = Path(__file__).parent / "reference" / "json"
DRAFT = "https://json-schema.org/draft/2020-12/schema"
PLAIN = {bool: "boolean", int: "integer", str: "string", NoneType: "null"}
NUMBER: Schema = {"type": ["number", "string"], "pattern": "^(-?inf|nan)$"}
WIDTH = 100
CONCEALED = {"Condition": ["value"], "ColumnRule": ["order", "pooled"]}
"""Keys of the policy that a report leaves out, as they hold values of rows."""


@dataclass
class Failure:
    """What a command prints if it fails before its own document."""

    kind: str
    message: str
    hint: str | None
    done: str | None
    exit_code: int


@dataclass
class Installed:
    """What ``init`` prints."""

    changed: bool
    revision: str
    former: str | None
    lost: list[str]
    lacking: list[str]


@dataclass
class StoredTaxonomy:
    """A taxonomy that was stored."""

    name: str
    version: int
    n_leaves: int


@dataclass
class ListedTaxonomy(StoredTaxonomy):
    """A taxonomy of ``taxonomy list``."""

    height: int
    created_at: datetime


@dataclass
class ComparedReports:
    """What ``report --against`` prints."""

    confidential: str | None
    figures: tuple[FigureDifference, ...]


COMMANDS: dict[str, tuple[Any, ...]] = {
    "init": (Installed,),
    "inspect": (Inspection,),
    "taxonomy import": (StoredTaxonomy,),
    "taxonomy derive": (StoredTaxonomy,),
    "taxonomy builtin add": (StoredTaxonomy,),
    "taxonomy builtin list": (Mapping[str, str],),
    "taxonomy list": (list[ListedTaxonomy],),
    "policy show": (Policy,),
    "policy approve": (Approval,),
    "policy list": (list[StoredPolicy],),
    "policy diff": (list[Difference],),
    "policy history": (list[Event],),
    "plan": (Plan, list[Plan], list[Refreshed], Comparison),
    "publish": (Release, list[Release]),
    "grant": (list[Access],),
    "revoke": (list[Access],),
    "check": (Checked, list[Checked]),
    "describe": (Described,),
    "report": (Report, DatasetReport, ComparedReports, SignOff),
    "attack": (Attempt,),
    "count": (NoisyCounts,),
    "refresh": (list[Refreshed],),
    "schedule set": (Scheduled,),
    "schedule list": (list[Scheduled],),
    "worker": (Worked,),
    "history": (History,),
    "export": (Export,),
    "release list": (list[Release],),
    "release show": (Release,),
    "release forget": (Forgotten,),
    "doctor": (list[Finding],),
    "server status": (ServerStatus,),
    "server warm": (Compiled,),
}
"""The documents of each command; one about an error is possible for all of them."""

ADDED: dict[str, dict[str, Any]] = {
    "release list": {"hidden": Hidden | None},
    "release show": {"verifications": list[Verification]},
}
"""Keys that a command adds to a release."""


def schema(command: str) -> Schema:
    """Return the schema of a command's documents."""
    defined: dict[str, Schema] = {}
    kinds = [_of(kind, defined) for kind in COMMANDS[command]]
    failure = {"type": "object", "properties": {"error": _of(Failure, defined)}}
    for name, kind in ADDED.get(command, {}).items():
        defined["Release"]["properties"][name] = _of(kind, defined)
        defined["Release"]["required"].append(name)
    if command == "report":
        for name, keys in CONCEALED.items():
            for key in keys:
                del defined[name]["properties"][key]
                defined[name]["required"].remove(key)
    return {
        "$schema": DRAFT,
        "title": f"dbanon {command} --json",
        "anyOf": [*kinds, failure | {"required": ["error"]}],
        "$defs": dict(sorted(defined.items())),
    }


def files() -> dict[str, str]:
    """Return the text of each file, by its name."""
    return {
        f"{command.replace(' ', '-')}.schema.json": _text(schema(command)) + "\n"
        for command in COMMANDS
    }


def _text(value: Any, margin: int = 0) -> str:  # noqa: ANN401 - any JSON value
    """Return JSON in which whatever fits into a line is one."""
    line = json.dumps(value)
    if len(line) + margin < WIDTH or not isinstance(value, dict | list):
        return line
    deeper, edge = margin + 1, "\n" + " " * margin
    if isinstance(value, list):
        parts, (first, last) = [_text(one, deeper) for one in value], "[]"
    else:
        parts = [f"{json.dumps(key)}: {_text(one, deeper)}" for key, one in value.items()]
        first, last = "{}"
    return f"{first}{edge} {f',{edge} '.join(parts)}{edge}{last}"


def _of(kind: Any, defined: dict[str, Schema]) -> Schema:  # noqa: ANN401, PLR0911 - any type
    """Return the schema of a type, and add the classes in it to those defined."""
    if kind in PLAIN:
        return {"type": PLAIN[kind]}
    if kind is float:
        defined["Number"] = NUMBER
        return {"$ref": "#/$defs/Number"}
    if kind in {Any, object}:
        return {}
    origin, inner = get_origin(kind), get_args(kind)
    if origin in {Union, UnionType}:
        parts = [_of(one, defined) for one in inner]
        if all(part.keys() == {"type"} for part in parts):
            return {"type": [part["type"] for part in parts]}
        return {"anyOf": parts}
    if origin is Literal:
        return {"enum": list(inner)}
    if origin is None and is_dataclass(kind):
        return _object(kind, defined)
    container = origin or kind
    if issubclass(container, Mapping):
        return {"type": "object", "additionalProperties": _of((*inner, Any)[1], defined)}
    return _scalar(container) or _array(kind, defined)


def _scalar(kind: type) -> Schema:
    """Return the schema of a class that is printed as text; empty for a list."""
    if issubclass(kind, Enum):
        return {"enum": [one.value for one in kind]}
    return {"type": "string"} if issubclass(kind, (Path, datetime, Exception)) else {}


def _array(kind: Any, defined: dict[str, Schema]) -> Schema:  # noqa: ANN401 - any sequence
    inner = get_args(kind)
    if hasattr(kind, "_fields"):  # a named tuple is printed as a list
        inner = tuple(_hints(kind)[name] for name in kind._fields)
    elif len(inner) == 1 or inner[1:] == (...,):
        return {"type": "array", "items": _of(inner[0], defined)}
    parts = [_of(one, defined) for one in inner]
    return {"type": "array", "prefixItems": parts, "minItems": len(parts), "items": False}


def _object(kind: type, defined: dict[str, Schema]) -> Schema:
    if kind is TableName:
        return {"type": "string"}
    name = kind.__name__
    if name not in defined:
        defined[name] = {"type": "object"}
        hints = _hints(kind)
        printed = [one.name for one in fields(kind) if one.metadata.get("is_printed", True)]
        defined[name] |= {
            "properties": {key: _of(hints[key], defined) for key in printed},
            "required": printed,
        }
    return {"$ref": f"#/$defs/{name}"}


@cache
def _hints(kind: type) -> dict[str, Any]:
    """Return the types of a class's fields, with names that only type checkers import."""
    names: dict[str, Any] = {}
    for base in reversed(kind.__mro__[:-1]):
        module = sys.modules[base.__module__]
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.ImportFrom) and node.module and base.__module__ != __name__:
                source = import_module(node.module)
                names |= {one.asname or one.name: getattr(source, one.name) for one in node.names}
        names |= vars(module)
    return get_type_hints(kind, globalns=names)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in files().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
