"""Policies as TOML for people and as documents for jsonb; the round trip is lossless.

In TOML, columns and models are tables by name, and ``k = 5`` is short for the model k-anonymity. In
a document they are lists, because jsonb does not preserve the order of keys.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from dbanon.domain.errors import ConfigError, PolicyError
from dbanon.domain.policy import (
    DROP,
    ColumnRule,
    Comparison,
    Condition,
    Difference,
    Key,
    Masking,
    MaskingStep,
    ModelSpec,
    Policy,
    Role,
    Scalar,
    Value,
    keys_of,
    made,
)
from dbanon.domain.table import (
    ColumnInfo,
    ColumnKind,
    Structure,
    TableInfo,
    TableName,
    quote_identifier,
)
from dbanon.formats.document_reader import Section, did_you_mean
from dbanon.formats.policy_warnings import flaws
from dbanon.models.base import Scope
from dbanon.models.registry import MODELS, SHORT, of_scope, problems

if TYPE_CHECKING:
    from dbanon.formats.suggestions import Persons, Proposal


_NULLS = frozenset({Comparison.IS_NULL, Comparison.IS_NOT_NULL})
_IN_ORDER = frozenset(
    {
        Comparison.BELOW,
        Comparison.AT_MOST,
        Comparison.ABOVE,
        Comparison.AT_LEAST,
        Comparison.BETWEEN,
    }
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_BOUNDS = 2


def read_conditions(top: Section) -> tuple[Condition, ...]:
    """Read the conditions of a policy, and report their problems."""
    found = [_condition(section) for section in top.sections("where")]
    if not found and top.values.get("where") == []:
        top.report("where", "is empty: leave it out")
    return tuple(condition for condition in found if condition is not None)


def _condition(section: Section) -> Condition | None:
    section.require("column")
    section.require("is")
    column = section.text("column")
    comparison = section.text("is", among=[word.value for word in Comparison])
    section.asked.add("value")
    value = None
    if comparison is not None:
        value = _value(section, Comparison(comparison))
    section.close()
    if column is None or comparison is None:
        return None
    return Condition(column, Comparison(comparison), value)


def _value(section: Section, comparison: Comparison) -> Scalar | tuple[Scalar, ...] | None:
    given = section.values.get("value")
    if comparison in _NULLS:
        if "value" in section.values:
            section.report("value", f"{comparison} takes none")
        return None
    if comparison not in {Comparison.IN, Comparison.BETWEEN}:
        return _scalar(section, "value", given)
    if not isinstance(given, list) or not given:
        section.report("value", f"{comparison} takes a list of values")
        return None
    if comparison is Comparison.BETWEEN and len(given) != _BOUNDS:
        section.report("value", "between takes two values, both included")
    values = [_scalar(section, "value", item) for item in given]
    return tuple(value for value in values if value is not None)


def _scalar(section: Section, key: str, given: object) -> Scalar | None:
    """Read one value; TOML dates and times become text, because JSON has neither."""
    if isinstance(given, (dt.datetime, dt.date)):
        return given.isoformat()
    if given is None:
        section.report(key, "is missing")
        return None
    if given == "":
        return ""
    return Section({key: given}, section.path, section.problems).scalar(key)


def condition_documents(policy: Policy) -> list[dict[str, object]]:
    """Return the conditions for JSON and TOML."""
    return [
        {"column": condition.column, "is": condition.comparison.value, **_held(condition)}
        for condition in policy.where
    ]


def _held(condition: Condition) -> Mapping[str, object]:
    value = condition.value
    if value is None:
        return {}
    return {"value": list(value) if isinstance(value, tuple) else value}


def condition_violations(policy: Policy, info: TableInfo) -> Iterator[str]:
    """Yield the conditions that do not fit the columns of a table; messages have no values."""
    columns = {column.name: column for column in info.columns}
    for condition in policy.where:
        named = f"where: column {quote_identifier(condition.column)}"
        column = columns.get(condition.column)
        if column is None:
            yield f"{named} does not exist{did_you_mean(condition.column, columns)}"
        elif column.user_defined:
            yield f"{named} is of type {column.type}, and reading it may run foreign code"
        elif condition.comparison not in _NULLS and not column.kind.can_be_quasi:
            yield f"{named} is of type {column.type}, of which only is null can be asked"
        elif condition.comparison in _IN_ORDER and not column.kind.is_ordered:
            yield f"{named} is of type {column.type}, which is compared by =, <> and in only"
        elif not all(map(_can_be_asked, condition.values)):
            yield f"{named} is compared with NaN, an infinite number or a text with a NUL character"
        elif condition.comparison not in _NULLS and not all(
            _fits(value, column) for value in condition.values
        ):
            yield f"{named} is of type {column.type}, and a value is none of it"


def _can_be_asked(value: Scalar) -> bool:
    """Return True if a column and a document can hold the value."""
    if isinstance(value, str):
        return "\x00" not in value
    return isinstance(value, int) or math.isfinite(value)


def _fits(value: Scalar, column: ColumnInfo) -> bool:
    if isinstance(value, bool) or column.kind is ColumnKind.BOOLEAN:
        return isinstance(value, bool) and column.kind is ColumnKind.BOOLEAN
    if isinstance(value, str):
        kind = column.kind
        return _is_moment(value, kind) if kind.is_moment else not kind.is_ordered
    return column.kind.is_number


def _is_moment(text: str, kind: ColumnKind) -> bool:
    """Return True for a date, or a time with a zone if the type has one."""
    read = dt.date.fromisoformat if kind is ColumnKind.DATE else dt.datetime.fromisoformat
    try:
        moment = read(text)
    except ValueError:
        return False
    zone = moment.tzinfo if isinstance(moment, dt.datetime) else None
    return bool(_DATE.match(text)) and (zone is not None) == (kind is ColumnKind.TIMESTAMPTZ)


_OWN = ("method", "columns", "within")
_ABOUT_NUMBERS = {"at": None, "shown": "threshold", "restore_variance": False}
_TEXTS = frozenset({"text", "varchar", "bpchar"})


def read_masking(top: Section, *, methods: Collection[str] | None) -> tuple[MaskingStep, ...]:
    """Read the steps of a policy, and report their problems."""
    found = [_step(section, methods) for section in top.sections("masking")]
    if not found and top.values.get("masking") == []:
        top.report("masking", "is empty: leave it out")
    return tuple(step for step in found if step is not None)


def _step(section: Section, methods: Collection[str] | None) -> MaskingStep | None:
    section.require("method")
    section.require("columns")
    method = section.text("method", among=methods)
    columns, within = section.texts("columns"), section.texts("within") or ()
    for name in {name for name in columns or () if (columns or ()).count(name) > 1}:
        section.report("columns", f"names {name} more than once")
    for name in {*(columns or ())} & {*within}:
        section.report("within", f"names {name}, which is masked")
    given = [key for key in section.values if key not in _OWN]
    params = {key: section.scalar(key) for key in given}
    section.close()
    if method is None or columns is None:
        return None
    known = {key: value for key, value in params.items() if value is not None}
    return MaskingStep(method, columns, known, within)


def masking_documents(policy: Policy) -> list[dict[str, object]]:
    """Return the steps for JSON and TOML."""
    return [
        {
            "method": step.method,
            "columns": list(step.columns),
            **({"within": list(step.within)} if step.within else {}),
            **step.params,
        }
        for step in policy.masking
    ]


def masking_violations(
    policy: Policy, info: TableInfo, *, make: Callable[[MaskingStep], Masking]
) -> Iterator[str]:
    """Yield reasons against the masking steps; make: returns the method of a step."""
    rules = {rule.column: rule for rule in policy.columns}
    present = {column.name for column in info.columns}
    shown = [name for name, rule in rules.items() if rule.role.is_published]
    for step in policy.masking:
        try:
            method = make(step)
        except PolicyError as error:
            yield f"{error}{f': {error.hint}' if error.hint else ''}"
            continue
        for name in (*step.columns, *step.within):
            of_step = f"masking by {step.method} of column {quote_identifier(name)}"
            if name not in present or name not in shown:
                yield f"{of_step}: it is not published{did_you_mean(name, shown)}"
            elif name in step.columns:
                found = _of_column(step, rules[name], info, method=method)
                yield from (f"{of_step}: {text}" for text in found)
        quasi = [name for name in step.columns if name in rules and _is_quasi(rules[name])]
        named = (name for name in (*step.columns, *step.within) if name in rules)
        if method.within_class and any(_is_quasi(rules[name]) for name in named):
            yield f"{step.method} is within classes, in which quasi-identifiers are alike"
        if quasi and of_scope(policy.models, Scope.POPULATION):
            yield f"masking by {step.method}: a population is compared with values as they are"


def _of_column(
    step: MaskingStep, rule: ColumnRule, info: TableInfo, *, method: Masking
) -> Iterator[str]:
    kind = info.column(rule.column).kind
    if rule.column in info.primary_key:
        yield "it is part of the key, by which rows are found again"
    if method.of_numbers and not kind.is_ordered:
        has_order = bool(rule.order or info.column(rule.column).labels)
        yield from _of_ranks(step, method, has_order=has_order)
    if "at" in step.params and kind.is_moment:
        yield "at is a number: leave it out for dates and times"
    if "label" in step.params or step.method == "rare-to-other":
        if kind is not ColumnKind.CATEGORY or info.column(rule.column).base_type not in _TEXTS:
            yield "it needs texts, which a label is one of"
        elif _is_quasi(rule) and rule.structure(kind) is Structure.TREE and rule.taxonomy:
            yield "its taxonomy has a place for each value: choose a recoding that is coarser"
        label = str(step.params.get("label", "other"))
        room = re.search(r"\((\d+)\)$", info.column(rule.column).type)
        if room is not None and len(label) > int(room[1]):
            yield f"its type has no room for the label {label!r}: give a shorter label"


def _of_ranks(step: MaskingStep, method: Masking, *, has_order: bool) -> Iterator[str]:
    if not method.of_ranks:
        yield "it needs numbers, dates or times"
    elif not has_order:
        yield "it needs numbers, dates, times or values in an order, such as those of an enum"
    else:
        given = [key for key, own in _ABOUT_NUMBERS.items() if step.params.get(key, own) != own]
        yield from (f"{key} is for numbers: leave it out for values in an order" for key in given)


def _is_quasi(rule: ColumnRule) -> bool:
    return rule.role is Role.QUASI


def read(
    section: Section, keys: Mapping[str, Key], names: Mapping[str, Collection[str] | None]
) -> dict[str, object]:
    """Read the keys of a section, except those with a form of their own; names: by registry."""
    found = dict[str, object]()
    for name, key in keys.items():
        if key.form != "own":
            among = names.get(key.names)
            known = replace(key, among=tuple(among)) if among else key
            found[name] = _READERS[key.form](section, name, known)
    return {name: value for name, value in found.items() if value is not None}


def document(described: Policy | ColumnRule, own: Mapping[str, object]) -> dict[str, object]:
    """Return the keys that differ from their defaults; own: those with a form of their own."""
    keys, written = keys_of(type(described)), dict[str, object]()
    for field in fields(described):
        key, value = keys.get(field.name), getattr(described, field.name)
        if key is not None and key.form == "own":
            written |= {field.name: _plain(own[field.name])} if own.get(field.name) else {}
        elif key is not None and (key.is_always or value != field.default):
            written[field.name] = _plain(value)
    return written


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, (str, TableName)) else value


def _text(section: Section, name: str, key: Key) -> str | None:
    text = section.text(name, among=key.among or None)
    if text is not None and key.pattern and not re.fullmatch(key.pattern, text):
        section.report(name, key.otherwise)
    return text


def _count(section: Section, name: str, key: Key) -> int | None:
    return section.integer(name, least=int(key.least))


def _number(section: Section, name: str, key: Key) -> float | None:
    number = section.number(name, above=key.above)
    if number is not None and not key.least <= number < key.below:
        section.report(name, key.otherwise)
    return number


def _texts(section: Section, name: str, key: Key) -> tuple[str, ...] | None:
    texts = section.texts(name, empty=key.empty)
    repeated = [text for text, n in Counter(texts or ()).items() if n > 1]
    if repeated and key.unique:
        section.report(name, f"lists {len(repeated)} of its values more than once")
    return texts


def _relation(section: Section, name: str, key: Key) -> TableName | None:
    text = section.text(name)
    try:
        found = None if text is None else TableName.parse(text)
    except ConfigError as error:
        section.report(name, str(error))
        return None
    if found is not None and found.schema is None and key.has_schema:
        section.report(name, "must name its schema, as in public.people")
    return found


def _word_or_count(section: Section, name: str, key: Key) -> str | int | None:
    is_word = isinstance(section.values.get(name), str)
    return section.text(name, among=key.among) if is_word else section.integer(name, least=1)


_READERS: Mapping[str, Callable[[Section, str, Key], object]] = {
    "text": _text,
    "count": _count,
    "number": _number,
    "flag": lambda section, name, _: section.boolean(name),
    "texts": _texts,
    "relation": _relation,
    "word or count": _word_or_count,
}


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


def digest(*given: Policy) -> str:
    """Return what identifies the texts of policies, to find whether one was changed meanwhile."""
    return sha256("\0".join(map(dump, given)).encode()).hexdigest()


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
    found = read(top, {name: _KEYS[name] for name in settings}, {})
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
        "where": condition_documents(policy),
        "masking": masking_documents(policy),
        "allow": policy.allow,
    }
    return document(policy, own)


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
    found = read(top, _KEYS, names)
    found |= {
        "where": read_conditions(top),
        "masking": read_masking(top, methods=known.maskings),
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
    found = read(section, _COLUMN_KEYS, names)
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
    written = document(rule, {"allow": rule.allow})
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


_MOST_COLUMNS = 25  # in a table of which one looks at each


def draft(
    info: TableInfo,
    suggested: Iterable[tuple[ColumnRule, str]],
    persons: Persons | None = None,
    *,
    proposals: Mapping[str, Proposal] | None = None,
    key: Sequence[str] = (),
    differing: Sequence[str] = (),
    finding: str | None = None,
) -> str:
    """Return a policy file to edit, with the reasons for roles and recodings as comments.

    proposals: by quasi-identifier; key: columns that distinguish rows, if known; differing:
    quasi-identifiers that vary between the rows of a person; finding: a comment at the beginning.
    """
    import tomli_w

    rules = list(suggested)
    models = {"k": 5}
    if any(rule.role is Role.SENSITIVE for rule, _ in rules):
        models["l"] = 2
    parts = [
        (f"# {finding}\n" if finding else "")
        + tomli_w.dumps({"table": str(info.name)})
        + _rest(len(rules))
        + _key(info, key)
        + _subject(persons, dict(map(_named, rules)), differing)
    ]
    parts.append(tomli_w.dumps({"models": models}))
    known = proposals or {}
    parts += [_column(rule, reason, known.get(rule.column)) for rule, reason in rules]
    return "\n".join(parts)


def _column(rule: ColumnRule, reason: str, proposal: Proposal | None) -> str:
    import tomli_w

    settings: dict[str, object] = {"role": rule.role.value}
    reasons, recoding = [reason], ""
    if proposal is not None:
        settings |= proposal.floor
        reasons += [proposal.why] if proposal.why else []
        recoding = f'recoding = "{proposal.recoding}"  # {proposal.reason}\n'
    column = tomli_w.dumps({"columns": {rule.column: settings}})
    return f"# {'; '.join(reasons)}\n{column}{recoding}"


def _rest(n_columns: int) -> str:
    import tomli_w

    if n_columns <= _MOST_COLUMNS:
        return ""
    why = f"# {n_columns} columns: what is not named is left out, such as new ones"
    return f"{why}\n{tomli_w.dumps({'rest': DROP})}"


def _key(info: TableInfo, key: Sequence[str]) -> str:
    import tomli_w

    if info.primary_key:
        return ""
    if not key:
        return '# no column alone tells the rows apart: name several\n# key = ["...", "..."]\n'
    return "# other values in every row\n" + tomli_w.dumps({"key": list(key)})


def _named(suggested: tuple[ColumnRule, str]) -> tuple[str, Role]:
    return suggested[0].column, suggested[0].role


def _subject(persons: Persons | None, roles: Mapping[str, Role], differing: Sequence[str]) -> str:
    """Return the line that names the subject, as a comment if it needs a decision."""
    import tomli_w

    if persons is None:
        return ""
    unless = []
    if not persons.is_sure:
        unless.append("if these are persons")
    if persons.n_null:
        unless.append(f"once its {persons.n_null:,} NULLs are filled or left out by where")
    if roles[persons.column] is not Role.IDENTIFIER:
        unless.append("with the role identifier")
    why = f"{persons.figure} ({persons.reason})" + ", " * bool(unless) + " and ".join(unless)
    setting = ("# " if unless else "") + tomli_w.dumps({"subject": persons.column})
    if differing:
        names = ", ".join(map(quote_identifier, differing))
        setting += (
            f"# rows of a person differ in {names}; each class covers all their values. Another\n"
            "# role, a floor or one row of each may cost less\n# rows_per_subject = 1\n"
        )
    return f"# {why}\n{setting}"
