"""Policies as TOML for people and as documents for jsonb; the round trip loses nothing.

In TOML columns and models are tables by name, and ``k = 5`` stands for the model k-anonymity, as
other parameters do for theirs (``dbanon.models``). In a document they are lists, because
jsonb does not keep the order of keys.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from dbanon.domain.errors import ConfigError, PolicyError
from dbanon.domain.policy import (
    DROP,
    GROUP,
    ModelSpec,
    Policy,
)
from dbanon.domain.table import TableName
from dbanon.formats.document_reader import Section, did_you_mean
from dbanon.formats.policy import column_rules, conditions, masking_steps
from dbanon.models.registry import MODELS
from dbanon.models.specs import SHORT, problems

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from dbanon.domain.policy import Value

NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
"""What a policy may be called; the name goes into that of its relation."""

DAYS = re.compile(r"[1-9][0-9]{0,3}d")
"""A number of days."""

_SHORT_OF = {model: parameter for parameter, model in SHORT.items()}
_DEFAULT = Policy(TableName(None, "t"), ())
_WITHOUT_DEFAULT = (
    *("subject", "rows_per_subject", "population", "block", "class_label", "rest"),
    *("erase_within", "pseudonym", "budget"),
)


class Known(NamedTuple):
    """The names that the registries hold; None is not checked."""

    algorithms: Collection[str] | None = None
    models: Collection[str] | None = None
    recodings: Collection[str] | None = None
    maskings: Collection[str] | None = None


_ANYTHING = Known()


def parse(text: str, known: Known = _ANYTHING) -> Policy:
    """Read a policy file; raises one PolicyError with every problem and the path of its key."""
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
    """Read a stored document, as suspiciously as a file; raises PolicyError."""
    top = Section(document, "", [])
    rules = [(section.text("column"), section) for section in top.sections("columns")]
    models = [_named(section) for section in top.sections("models")]
    return _policy(top, rules, models=models, known=_ANYTHING)


def to_document(policy: Policy) -> dict[str, object]:
    """Return the policy as what JSON can hold."""
    document = _scalars(policy)
    document["params"] = dict(policy.params)
    document["models"] = model_documents(policy.models)
    document["columns"] = [
        {"column": rule.column, **column_rules.document(rule)} for rule in policy.columns
    ]
    return document


def dump(policy: Policy) -> str:
    """Return the policy as TOML that ``parse`` reads back."""
    import tomli_w

    document = _scalars(policy)
    if all(set(m.params) == {_SHORT_OF.get(m.name)} for m in policy.models):
        models: dict[str, object] = {k: v for m in policy.models for k, v in m.params.items()}
    else:
        models = {m.name: _listed(m.params) for m in policy.models}
    if models:
        document["models"] = models
    if policy.params:
        document["params"] = dict(policy.params)
    document["columns"] = {rule.column: column_rules.document(rule) for rule in policy.columns}
    return tomli_w.dumps(document)


def model_documents(models: Iterable[ModelSpec]) -> list[dict[str, object]]:
    """Return models as what JSON can hold."""
    return [{"name": model.name, "params": _listed(model.params)} for model in models]


def models_of(documents: object) -> tuple[ModelSpec, ...]:
    """Read what ``model_documents`` made, as suspiciously as a file; raises PolicyError."""
    top = Section({"models": documents}, "", [])
    models = [_named(section) for section in top.sections("models")]
    specs = tuple(_model(name, section, Known(models=MODELS)) for name, section in models)
    _raise(top.problems)
    return specs


def settings_of(document: Mapping[str, object]) -> dict[str, Any]:
    """Read some settings of a policy, as suspiciously as a file; raises PolicyError."""
    top = Section(document, "", [])
    settings = _settings(top)
    top.close()
    _raise(top.problems)
    return {key: settings[key] for key in document}


def _listed(params: Mapping[str, Value]) -> dict[str, object]:
    return {key: list(v) if isinstance(v, tuple) else v for key, v in params.items()}


def _scalars(policy: Policy) -> dict[str, object]:
    document: dict[str, object] = {"table": str(policy.table), "algorithm": policy.algorithm}
    for key in ("name", "max_suppressed"):
        if (value := getattr(policy, key)) != getattr(_DEFAULT, key):
            document[key] = value
    listed = {
        "where": conditions.documents(policy),
        "masking": masking_steps.documents(policy),
        "key": list(policy.key),
    }
    document |= {key: value for key, value in listed.items() if value}
    if policy.sample is not None:
        document["sample"] = policy.sample
    document |= {key: True for key in ("labels", "anatomy") if getattr(policy, key)}
    for key in _WITHOUT_DEFAULT:
        if (value := getattr(policy, key)) is not None:
            document[key] = str(value) if key == "population" else value
    if policy.allow:
        document["allow"] = list(policy.allow)
    return document


def _named(model: Section) -> tuple[str | None, Section]:
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
    """Read what TOML and documents share, then raise or return."""
    for key in ("table", "columns"):
        top.require(key)
    table = _table(top, "table")
    algorithm = top.text("algorithm", among=known.algorithms)
    class_label = top.text("class_label")
    own = _own(top, known)
    settings = _settings(top)
    specs = [_model(name, section, known) for name, section in models]
    rules = [
        column_rules.read(name, section, recodings=known.recodings) for name, section in columns
    ]
    _check_repeats(top, "models", [name for spec in specs if (name := spec.name)])
    _check_repeats(top, "columns", [rule.column for rule in rules if rule])
    if not rules and "columns" in top.values:
        top.report("columns", "names no column")
    top.close()
    _raise(top.problems)
    return Policy(
        table=table or _DEFAULT.table,
        columns=tuple(rule for rule in rules if rule),
        models=tuple(specs),
        algorithm=algorithm or _DEFAULT.algorithm,
        class_label=class_label,
        **own,
        **settings,
    )


def _own(top: Section, known: Known) -> dict[str, Any]:
    """Read what a policy says beyond its columns and models, and nobody may say instead."""
    return {
        "where": conditions.read(top),
        "sample": _sample(top),
        "masking": masking_steps.read(top, methods=known.maskings),
        "labels": bool(top.boolean("labels")),
        "anatomy": bool(top.boolean("anatomy")),
        "key": top.texts("key") or (),
        "allow": column_rules.allowances(top, of_column=False),
        "rest": top.text("rest", among=[DROP]),
        "erase_within": _days(top, "erase_within"),
        "pseudonym": top.text("pseudonym"),
        "budget": top.number("budget", above=0),
    }


def _settings(top: Section) -> dict[str, Any]:
    """Read what a policy says beyond its columns and models, and a caller may say instead."""
    return {
        "name": _name(top),
        "subject": top.text("subject"),
        "rows_per_subject": _rows_per_subject(top),
        "population": _population(top),
        "max_suppressed": _fraction(top, "max_suppressed"),
        "block": top.integer("block", least=1),
        "params": _params(top.section("params")),
    }


def _name(top: Section) -> str:
    name = top.text("name")
    if name is not None and not NAME.fullmatch(name):
        top.report("name", "is 1 to 40 of a-z, 0-9, _ and -, the first of them a letter")
    return name or _DEFAULT.name


def _days(top: Section, key: str) -> str | None:
    value = top.text(key)
    if value is not None and not DAYS.fullmatch(value):
        top.report(key, "is 1 to 9999 days, as in 30d")
    return value


def _population(top: Section) -> TableName | None:
    name = _table(top, "population")
    if name is not None and name.schema is None:
        top.report("population", "must name its schema, as in public.people")
    return name


def _table(top: Section, key: str) -> TableName | None:
    text = top.text(key)
    try:
        return None if text is None else TableName.parse(text)
    except ConfigError as error:
        top.report(key, str(error))
        return None


def _rows_per_subject(top: Section) -> int | str | None:
    """Read a number of rows or the word for all of them."""
    key = "rows_per_subject"
    if isinstance(top.values.get(key), str):
        return top.text(key, among=[GROUP])
    return top.integer(key, least=1)


def _fraction(top: Section, key: str) -> float:
    """Read a number of [0, 1)."""
    if key not in top.values:
        return _DEFAULT.max_suppressed
    value = top.number(key, above=-1)
    if value is not None and not 0 <= value < 1:
        top.report(key, "must be at least 0 and less than 1")
    return value or 0.0


def _sample(top: Section) -> float | None:
    """Read a number of (0, 1)."""
    value = top.number("sample", above=0)
    if value is not None and value >= 1:
        top.report("sample", "must be less than 1: leave it out to publish all")
    return value


def _params(section: Section) -> dict[str, str | int | float | bool]:
    """Read the parameters of the algorithm, which only the algorithm can judge."""
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
