"""Policies as TOML for people and as documents for jsonb; the round trip is lossless.

In TOML, columns and models are tables by name, and ``k = 5`` is short for the model k-anonymity. In
a document they are lists, because jsonb does not preserve the order of keys.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from dbanon.domain.errors import PolicyError
from dbanon.domain.keys import keys_of, made
from dbanon.domain.policy import ColumnRule, Difference, ModelSpec, Policy, Role
from dbanon.formats.cautions import flaws
from dbanon.formats.document_reader import Section, did_you_mean
from dbanon.formats.policy import conditions, keys, masking_steps
from dbanon.models.registry import MODELS
from dbanon.models.specs import SHORT, problems

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from dbanon.domain.policy import Value

_KEYS, _COLUMN_KEYS = keys_of(Policy), keys_of(ColumnRule)
_MASKING = frozenset({"mask", "masked", "masking", "method", "noise"})
_NAMED = {"columns": "column", "models": "name"}
"""The lists of a document that a file has as tables, by what becomes the key of a table there."""
_OF_FILE = frozenset({"table", "name"})  # identify a policy and are not its contents
_SHORT_OF = {model: parameter for parameter, model in SHORT.items()}
_WHOLE_FLOAT = 2**53


class Known(NamedTuple):
    """The names in the registries; None is not checked."""

    algorithms: Collection[str] | None = None
    models: Collection[str] | None = None
    recodings: Collection[str] | None = None
    maskings: Collection[str] | None = None


_ANYTHING = Known()


def parse(text: str, known: Known = _ANYTHING) -> Policy:
    """Read a policy file; raises one PolicyError with all problems and their keys."""
    try:
        document = tomllib.loads(text.removeprefix("\ufeff"))
    except ValueError as error:  # TOMLDecodeError, or an integer of thousands of digits
        msg = f"the policy is not valid TOML: {error}"
        raise PolicyError(msg, hint="dbanon policy suggest TABLE prints a valid one") from None
    except RecursionError:
        raise PolicyError("the policy is nested too deeply") from None
    top = Section(document, "", [])
    columns = top.section("columns")
    rules = [(name, columns.section(name)) for name in columns.values]
    return _policy(top, rules, models=_models_by_name(top.section("models")), known=known)


def from_document(document: Mapping[str, object]) -> Policy:
    """Read a stored document with the checks of a file; raises PolicyError."""
    top = Section(document, "", [])
    rules = [(section.text("column"), section) for section in top.sections("columns")]
    models = [_model_section(section) for section in top.sections("models")]
    return _policy(top, rules, models=models, known=_ANYTHING)


def to_document(policy: Policy) -> dict[str, object]:
    """Return the policy as a JSON document."""
    document = _settings(policy)
    document["params"] = dict(policy.params)
    document["models"] = model_documents(policy.models)
    document["columns"] = [
        {"column": rule.column, **_rule_document(rule)} for rule in policy.columns
    ]
    return document


def dump(policy: Policy) -> str:
    """Return the policy as TOML for ``parse``."""
    import tomli_w

    document = _settings(policy)
    if all(set(m.params) == {_SHORT_OF.get(m.name)} for m in policy.models):
        models: dict[str, object] = {k: v for m in policy.models for k, v in m.params.items()}
    else:
        models = {m.name: _listed(m.params) for m in policy.models}
    if models:
        document["models"] = models
    if policy.params:
        document["params"] = dict(policy.params)
    document["columns"] = {rule.column: _rule_document(rule) for rule in policy.columns}
    return tomli_w.dumps(document)


def model_documents(models: Iterable[ModelSpec]) -> list[dict[str, object]]:
    """Return models as JSON documents."""
    return [{"name": model.name, "params": _listed(model.params)} for model in models]


def models_of(documents: object) -> tuple[ModelSpec, ...]:
    """Read ``model_documents`` with the checks of a file; raises PolicyError."""
    top = Section({"models": documents}, "", [])
    models = [_model_section(section) for section in top.sections("models")]
    specs = tuple(_model(name, section, Known(models=MODELS)) for name, section in models)
    _raise(top.problems)
    return specs


def changed(policy: Policy, settings: Mapping[str, object]) -> Policy:
    """Return a policy with other settings, checked like those of a file; raises PolicyError."""
    top = Section(settings, "", [])
    found = keys.read(top, {name: _KEYS[name] for name in settings}, {})
    if "params" in settings:
        found["params"] = _params(top.section("params"))
    top.close()
    _raise(top.problems)
    return made(partial(replace, policy), found)


def differences(
    before: Mapping[str, object], after: Mapping[str, object]
) -> tuple[Difference, ...]:
    """Return the keys with different values in two documents, in the order of the second."""
    old, new = dict(_flat(before, "")), dict(_flat(after, ""))
    keys = [*new, *(key for key in old if key not in new)]
    return tuple(
        Difference(key, old.get(key), new.get(key)) for key in keys if old.get(key) != new.get(key)
    )


def _listed(params: Mapping[str, Value]) -> dict[str, object]:
    return {key: list(v) if isinstance(v, tuple) else v for key, v in params.items()}


def _settings(policy: Policy) -> dict[str, object]:
    own = {
        "where": conditions.documents(policy),
        "masking": masking_steps.documents(policy),
        "allow": policy.allow,
    }
    return keys.document(policy, own)


def _model_section(model: Section) -> tuple[str | None, Section]:
    model.require("name")
    name, params = model.text("name"), model.section("params")
    model.close()
    return name, params


def _models_by_name(models: Section) -> list[tuple[str | None, Section]]:
    found: list[tuple[str | None, Section]] = []
    for key, value in models.values.items():
        if isinstance(value, Mapping):
            found.append((key, models.section(key)))
        elif key in SHORT:
            found.append((SHORT[key], Section({key: value}, models.path, models.problems)))
        else:
            models.report(key, f"unknown key{did_you_mean(key, SHORT)}")
    return found


def _policy(
    top: Section,
    columns: Iterable[tuple[str | None, Section]],
    *,
    models: Iterable[tuple[str | None, Section]],
    known: Known,
) -> Policy:
    """Read the common parts of TOML and documents; raises PolicyError."""
    for key in ("table", "columns"):
        top.require(key)
    names = known._asdict()
    found = keys.read(top, _KEYS, names)
    found |= {
        "where": conditions.read(top),
        "masking": masking_steps.read(top, methods=known.maskings),
        "allow": _allowances(top, of_column=False),
        "params": _params(top.section("params")),
    }
    specs = [_model(name, section, known) for name, section in models]
    rules = [_rule(name, section, names=names) for name, section in columns]
    _check_repeats(top, "models", [name for spec in specs if (name := spec.name)])
    _check_repeats(top, "columns", [rule.column for rule in rules if rule])
    if not rules and "columns" in top.values:
        top.report("columns", "names no column")
    top.close()
    _raise(top.problems)
    found |= {"columns": tuple(rule for rule in rules if rule), "models": tuple(specs)}
    return made(Policy, found)


def _params(section: Section) -> dict[str, str | int | float | bool]:
    values = {key: section.scalar(key) for key in section.values}
    return {key: value for key, value in values.items() if value is not None}


def _model(name: str | None, section: Section, known: Known) -> ModelSpec:
    if name is not None and known.models is not None and name not in known.models:
        section.problems.append(f"{section.path}: unknown model{did_you_mean(name, known.models)}")
    params: dict[str, Value] = {}
    for key, given in section.values.items():
        value = section.texts(key) if isinstance(given, list) else section.scalar(key)
        if value is not None:
            params[key] = value
    spec = ModelSpec(name or "", params)
    if spec.name in MODELS:
        for key, text in problems(spec):
            if key in params or key not in section.values:
                section.report(key, text)
    return spec


def _rule(
    name: str | None, section: Section, *, names: Mapping[str, Collection[str] | None]
) -> ColumnRule | None:
    """Read the rule of a column and report its problems; names: registries, None is not checked."""
    if name is None:
        section.require("column")
    elif not name or "\x00" in name:
        section.problems.append(f"{section.path}: not the name of a column")
    section.require("role")
    found = keys.read(section, _COLUMN_KEYS, names)
    found["allow"] = _allowances(section, of_column=True)
    role = Role(str(found.pop("role"))) if "role" in found else None
    for key in section.values:
        if role and key in _COLUMN_KEYS and role not in (_COLUMN_KEYS[key].roles or Role):
            section.report(key, "only a quasi-identifier is recoded")
    _close_rule(section)
    if name is None or role is None:
        return None
    return made(ColumnRule, {"column": name, "role": role, **found})


def _close_rule(section: Section) -> None:
    """Report unknown keys; for those of masking, name the right place."""
    for key in _MASKING.intersection(section.values):
        section.asked.add(key)
        section.report(key, "is no key of a column: a masking step is a table [[masking]]")
    section.close()


def _rule_document(rule: ColumnRule) -> dict[str, object]:
    written = keys.document(rule, {"allow": rule.allow})
    return {key: _shortest(value) for key, value in written.items()}


def _allowances(section: Section, *, of_column: bool) -> tuple[str, ...]:
    allow = section.texts("allow") or ()
    for flaw in flaws(allow, of_column=of_column):
        section.report("allow", flaw)
    return allow


def _shortest(value: object) -> object:
    """Write 5.0 as 5; it is read back as 5.0."""
    whole = isinstance(value, float) and value.is_integer() and abs(value) < _WHOLE_FLOAT
    return int(value) if whole and isinstance(value, float) else value


def _check_repeats(top: Section, key: str, names: list[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            inner = Section({}, top.path_of(key), top.problems)
            inner.report(name, f"is described {count} times")


def _raise(problems: list[str]) -> None:
    if problems:
        count = "a problem" if len(problems) == 1 else f"{len(problems)} problems"
        msg = "\n".join([f"the policy has {count}:", *(f"  {text}" for text in problems)])
        raise PolicyError(msg, hint="correct the file, then: dbanon policy set TABLE --file FILE")


def _flat(document: Mapping[str, object], path: str) -> Iterator[tuple[str, object]]:
    section = Section(document, path, [])
    for key, value in document.items():
        if not path and key in _OF_FILE:
            continue
        here = section.path_of(key)
        if not path and key in _NAMED and isinstance(value, list):
            yield from _by_name(value, here, _NAMED[key])
        elif isinstance(value, Mapping):
            yield from _flat(value, here)
        else:
            yield here, value


def _by_name(listed: list[object], path: str, key: str) -> Iterator[tuple[str, object]]:
    for item in listed:
        if isinstance(item, Mapping):
            fields = {name: value for name, value in item.items() if name != key}
            params = fields.pop("params", {})  # of a model
            fields |= params if isinstance(params, Mapping) else {}
            yield from _flat(fields, Section({}, path, []).path_of(str(item.get(key))))
