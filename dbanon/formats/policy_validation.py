"""Check that a policy fits a table."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING

from dbanon.domain.errors import PolicyError
from dbanon.domain.policy import (
    CENTER,
    DATE_PART,
    DERIVE,
    FLOOR,
    GLOBAL,
    MEANS,
    OF_CELLS,
    OF_STRUCTURE,
    OTHER,
    PERIODS,
    PREFIX,
    SNAPPED,
    ColumnRule,
    MaskingStep,
    Policy,
    Role,
)
from dbanon.domain.table import (
    LONGEST_NAME,
    SYSTEM_COLUMNS,
    ColumnInfo,
    ColumnKind,
    Structure,
    TableInfo,
    is_name,
    quote_identifier,
)
from dbanon.domain.text import command
from dbanon.formats import policies
from dbanon.formats.document_reader import did_you_mean
from dbanon.formats.policy_warnings import flaws
from dbanon.formats.support import Mode, reasons
from dbanon.models.base import HIERARCHICAL, ORDERED, Scope
from dbanon.models.registry import MODELS, of_scope, sensitive_of, texts

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from dbanon.domain.assignment import Recoding
    from dbanon.domain.policy import Masking

_AS_IT_IS = frozenset({Role.SENSITIVE, Role.INSENSITIVE})
_COUNTED = frozenset({Role.QUASI, Role.SENSITIVE})
_MAX_DIGITS = 15
_MAX_CHARACTERS = 100
_ROUNDED = {"snap": SNAPPED, "digits": MEANS}


def validate(
    policy: Policy,
    info: TableInfo,
    *,
    taxonomies: Collection[str],
    recodings: Mapping[str, Recoding],
    masking: Callable[[MaskingStep], Masking],
) -> None:
    """Raise one PolicyError with all reasons against publishing a table by a policy.

    taxonomies: stored names; recodings: by name; masking: returns the method of a step.
    """
    policy = policy.completed(info)
    problems = [
        *_of_relation(policy, info),
        *obstacles(info),
        *_of_key(policy, info),
        *_of_roles(policy, info),
        *_of_subject(policy, info),
        *_of_class_label(policy),
        *_of_weights(policy, info),
        *policies.condition_violations(policy, info),
        *policies.masking_violations(policy, info, make=masking),
        *_of_anatomy(policy),
        *_of_linking(policy, info),
        *(f"allow {flaw}" for flaw in flaws(policy.allow, of_column=False)),
    ]
    for rule in policy.columns:
        column = next((c for c in info.columns if c.name == rule.column), None)
        if column is not None:
            found = chain(
                _of_column(rule, column, policy, info),
                _of_recoding(rule, column, taxonomies, recodings),
                _of_order(rule, column),
                _of_new_values(rule, policy),
                (f"allow {flaw}" for flaw in flaws(rule.allow, of_column=True)),
                floor_problems(rule, column.kind, named=column.type),
            )
            problems += [f"column {quote_identifier(rule.column)}: {text}" for text in found]
    _refuse(problems, policy, info)


def _refuse(problems: Sequence[str], policy: Policy, info: TableInfo) -> None:
    if problems:
        msg = "\n".join(
            [f"{info.name} cannot be published by this policy:", *(f"  {p}" for p in problems)]
        )
        raise PolicyError(msg, hint=_hint(problems, policy, info))


def _hint(problems: Sequence[str], policy: Policy, info: TableInfo) -> str:
    if all(text in _without_population(policy) for text in problems):
        return "--population schema.table, or population in the policy"
    if any(text in problems for text in _of_anatomy(policy)):
        change = command("dbanon policy set", info.name, options="--file FILE")
        return f"take out of the policy what anatomy cannot keep, or anatomy; then {change}"
    return command("dbanon policy suggest", info.name)


def _of_anatomy(policy: Policy) -> list[str]:
    return [*reasons(Mode.BUCKETS, policy)] if policy.anatomy else []


def _of_relation(policy: Policy, info: TableInfo) -> Iterator[str]:
    same_schema = policy.table.schema in {None, info.name.schema}
    if policy.table.name != info.name.name or not same_schema:
        yield f"the policy is about {policy.table}"


def obstacles(info: TableInfo) -> Iterator[str]:
    """Yield reasons against a relation as a source, for any policy."""
    if info.row_security:
        yield "it has row-level security, which what its owner publishes would bypass"
    if info.relkind == "r" and info.has_children:
        yield "other tables inherit from it, and its primary key does not hold for their rows"
    for part in info.below:
        if part.row_security:
            yield f"it reads {part.name}, which has row-level security: which rows are its own?"
    for function in info.volatile:
        yield f"it calls {function}, which is VOLATILE: its rows are others at each reading"
    for name in sorted(SYSTEM_COLUMNS.intersection(column.name for column in info.columns)):
        yield f"PostgreSQL has a system column {name}: give the column of the view another name"


def _of_key(policy: Policy, info: TableInfo) -> Iterator[str]:
    names = [column.name for column in info.columns]
    if not info.primary_key:
        yield 'it has no primary key, so its rows cannot be told apart: key = ["column", ...]'
    if info.key_flaw:
        yield f"its primary key {info.key_flaw}"
    for name in policy.key:
        if name not in names:
            yield f"key column {quote_identifier(name)} does not exist{did_you_mean(name, names)}"
        elif not info.column(name).has_equality:
            yield f"key column {quote_identifier(name)} is of a type without equality"


def _of_roles(policy: Policy, info: TableInfo) -> Iterator[str]:
    described = [rule.column for rule in policy.columns]
    names = [column.name for column in info.columns]
    for name in names:
        if name not in described:
            yield f"column {quote_identifier(name)} has no role"
        elif described.count(name) > 1:
            yield f"column {quote_identifier(name)} has {described.count(name)} roles"
    for name in dict.fromkeys(described):
        if name not in names:
            near = did_you_mean(name, names)
            yield f"the policy names column {quote_identifier(name)}, which does not exist{near}"
    if not policy.with_role(Role.QUASI) and policy.subject is None:
        yield "no column is a quasi-identifier, so there is nothing to anonymize"
    shown = {rule.column for rule in policy.columns if rule.role in _AS_IT_IS}
    if info.primary_key and shown.issuperset(info.primary_key):
        yield "its key would be published as it is, and tells every row apart"
    yield from _of_names(policy)
    yield from _of_models(policy, info)


def _without_population(policy: Policy) -> list[str]:
    if policy.population is not None:
        return []
    return [
        f'{spec.name} needs a population: population = "schema.table"'
        for spec in of_scope(policy.models, Scope.POPULATION)
    ]


def _of_models(policy: Policy, info: TableInfo) -> Iterator[str]:
    for spec in policy.models:
        if spec.name not in MODELS:
            yield f"there is no privacy model {spec.name}{did_you_mean(spec.name, MODELS)}"
    yield from _without_population(policy)
    sensitive = {rule.column: rule for rule in policy.with_role(Role.SENSITIVE)}
    in_order = {column.name for column in info.columns if column.kind.has_order}
    yield from _of_rows(policy)
    for spec in of_scope(policy.models, Scope.SENSITIVE):
        if not sensitive:
            yield f"{spec.name} needs a sensitive column"
        for name in sensitive_of(spec, sensitive):
            if name not in sensitive:
                yield f"{spec.name} is about {quote_identifier(name)}, which is not sensitive"
            elif spec.params.get("distance") == HIERARCHICAL and not sensitive[name].taxonomy:
                yield f"{spec.name} needs a taxonomy of sensitive column {quote_identifier(name)}"
            elif spec.params.get("distance") == ORDERED and not (
                name in in_order or sensitive[name].order
            ):
                yield (
                    f"{spec.name} needs the order of sensitive column {quote_identifier(name)},"
                    ' whose type has none: order = ["low", "medium", "high"]'
                )


def _of_rows(policy: Policy) -> Iterator[str]:
    """Yield reasons against models that need no sensitive column."""
    known = {rule.column: rule for rule in policy.columns if rule.role in _COUNTED}
    for spec in of_scope(policy.models, Scope.LINKS):
        for name in (*texts(spec, "x"), *texts(spec, "y")):
            if name not in known:
                yield (
                    f"{spec.name} is about {quote_identifier(name)}, which is neither a"
                    " quasi-identifier nor sensitive"
                )
            elif len(known[name].published_as) > 1:
                yield (
                    f"{spec.name} is about {quote_identifier(name)}, which recoding"
                    f" {known[name].recoding} publishes as two columns: choose interval"
                )


def _of_subject(policy: Policy, info: TableInfo) -> Iterator[str]:
    if policy.rows_per_subject is not None:
        yield from _of_numbers(policy)
    if policy.subject is None:
        return
    named = f"subject column {quote_identifier(policy.subject)}"
    names = [column.name for column in info.columns]
    if policy.subject not in names:
        yield f"{named} does not exist{did_you_mean(policy.subject, names)}"
        return
    column = info.column(policy.subject)
    if not column.has_equality:
        yield f"{named} is of type {column.type}, which has no equality to count persons by"
    for rule in policy.columns:
        if rule.column == policy.subject and rule.role is not Role.IDENTIFIER:
            yield f"{named} would be published: give it the role identifier"


def _of_class_label(policy: Policy) -> Iterator[str]:
    if policy.class_label is None:
        return
    shown = [rule.column for rule in policy.columns if rule.role in _AS_IT_IS]
    if policy.class_label not in shown:
        yield (
            f"class label {quote_identifier(policy.class_label)} is no column that is published"
            f" as it is: give it the role insensitive{did_you_mean(policy.class_label, shown)}"
        )


def _of_weights(policy: Policy, info: TableInfo) -> Iterator[str]:
    rules = policy.with_role(Role.WEIGHT)
    if len(rules) > 1:
        names = ", ".join(quote_identifier(rule.column) for rule in rules)
        yield f"one column has the role weight, and not {len(rules)}: {names}"
    for column in info.columns:
        if column.name == policy.weight and not column.kind.is_number:
            yield (
                f"weight column {quote_identifier(column.name)} is of type {column.type}, which is"
                " no number: give it the role identifier"
            )


def _of_names(policy: Policy) -> Iterator[str]:
    shown = [(name, rule) for rule in policy.columns for name in rule.published_as]
    taken = Counter(name for name, _ in shown)
    for name, rule in shown:
        if name == rule.column:
            continue
        of_bounds = f"column {quote_identifier(rule.column)}: recoding {rule.recoding} publishes"
        if taken[name] > 1:
            yield f"{of_bounds} a column {quote_identifier(name)}, and there is another one"
        elif len(name.encode()) > LONGEST_NAME:
            yield f"{of_bounds} {quote_identifier(name)}, a name of more than {LONGEST_NAME} bytes"


def _of_numbers(policy: Policy) -> Iterator[str]:
    """Yield reasons against counting persons by their number of rows."""
    if policy.subject is None:
        yield 'rows_per_subject needs a subject: subject = "column"'
    if policy.rows_per_subject == 1:
        return
    for spec in policy.models:
        if spec.name in MODELS and MODELS[spec.name].of_whole:
            yield (
                f"{spec.name} cannot be proved of the persons of a class who have equally many"
                " rows: set rows_per_subject to 1, or leave one of them out"
            )


def _of_column(
    rule: ColumnRule, column: ColumnInfo, policy: Policy, info: TableInfo
) -> Iterator[str]:
    """Yield reasons against the role of a column; columns that are not read never fail."""
    is_key = rule.column == policy.subject or rule.column in info.primary_key
    is_read = is_key or rule.role is not Role.IDENTIFIER or rule.replace is not None
    if column.user_defined and is_read:
        yield (
            f"type {column.type} is user-defined, and reading it may run foreign code: "
            f"cast the column to a built-in type{'' if is_key else ' or make it an identifier'}"
        )
    elif rule.role is Role.QUASI and not column.kind.can_be_quasi:
        yield (
            f"type {column.type} cannot be generalized: make a generated column of the part that "
            "identifies, or give it the role identifier"
        )
    if rule.role is Role.SENSITIVE and not column.has_equality:
        yield f"type {column.type} has no equality, so its distinct values cannot be counted"


def _of_recoding(
    rule: ColumnRule,
    column: ColumnInfo,
    taxonomies: Collection[str],
    recodings: Mapping[str, Recoding],
) -> Iterator[str]:
    if rule.taxonomy is not None and rule.taxonomy not in taxonomies:
        yield f"there is no taxonomy {rule.taxonomy}{did_you_mean(rule.taxonomy, taxonomies)}"
    if rule.role is not Role.QUASI or not column.kind.can_be_quasi:
        return
    structure = rule.structure(column.kind)
    yield from recoding_problems(
        rule, column.kind, structure, recodings=recodings, named=column.type
    )
    if rule.restore_variance and rule.recoding != "mean":
        yield "restore_variance is of means: choose the recoding mean"
    if rule.digits is not None:
        yield from _of_rounding(rule, column.kind, "digits", named=column.type)
        if rule.digits > _MAX_DIGITS:
            yield f"digits is at most {_MAX_DIGITS}: a mean has no more"


def recoding_problems(
    rule: ColumnRule,
    kind: ColumnKind,
    structure: Structure,
    *,
    recodings: Mapping[str, Recoding],
    named: str,
) -> Iterator[str]:
    """Yield reasons why the rule's recoding cannot publish values; named: their type."""
    name = rule.recoding or OF_STRUCTURE[structure]
    if name in recodings and structure not in recodings[name].accepts:
        yield f"recoding {name} {_misfit(structure, rule, named)}"
    elif name == DATE_PART and not kind.is_moment:
        yield f"recoding {name} needs dates or times, {named} is none"
    elif name == CENTER and (rule.top, rule.bottom) != (None, None):
        yield f"recoding {name} has no place for top and bottom: choose bounds"
    elif name == PREFIX and rule.taxonomy is not None:
        yield f"recoding {name} makes a tree of its own: leave the taxonomy out"
    elif name == GLOBAL and rule.taxonomy is not None and kind.is_ordered:
        yield f"recoding {name} of {named} takes no taxonomy"
    if rule.snap is not None:
        yield from _of_rounding(rule, kind, "snap", named=named)
    if (floor := _floor(rule)) and name not in OF_CELLS and not rule.keep:
        fitting = ", ".join(sorted(OF_CELLS))
        yield f"recoding {name} knows no {floor[0]}: choose one of {fitting}"


def _of_rounding(rule: ColumnRule, kind: ColumnKind, key: str, *, named: str) -> Iterator[str]:
    """Yield reasons against rounding, because exact values would be published instead."""
    recoding = rule.recoding or OF_STRUCTURE[rule.structure(kind)]
    if not kind.is_ordered:
        yield f"{key} needs an ordered type, {named} is none"
    elif key == "digits" and kind.is_moment:
        yield "digits needs a numeric type"
    elif recoding not in _ROUNDED[key] and not rule.keep:
        choices = ", ".join(sorted(_ROUNDED[key]))
        yield f"recoding {recoding} knows no {key}: choose one of {choices}"


def _misfit(structure: Structure, rule: ColumnRule, named: str) -> str:
    if structure is Structure.LINE:
        return f"needs a taxonomy on type {named}"
    if structure is Structure.ORDER:
        return f"does not publish values in an order, as those of type {named} are here"
    if rule.taxonomy is not None:
        return "uses no taxonomy: leave one of them out"
    return f"needs an ordered type, {named} is none"


def _of_new_values(rule: ColumnRule, policy: Policy) -> Iterator[str]:
    if rule.on_new_value is not None and rule.taxonomy is None:
        yield "on_new_value needs a taxonomy, which new values could be missing from"
    if rule.on_new_value in {OTHER, DERIVE} and of_scope(policy.models, Scope.POPULATION):
        said = f'on_new_value = "{rule.on_new_value}"'
        yield f"{said} does not say what a class covers of a population"


def _of_order(rule: ColumnRule, column: ColumnInfo) -> Iterator[str]:
    if rule.order is None:
        return
    if column.kind not in {ColumnKind.CATEGORY, ColumnKind.ORDINAL}:
        yield f"order lists texts, and type {column.type} is none"
    elif rule.role is Role.QUASI and rule.taxonomy is not None:
        yield "a quasi-identifier has an order or a taxonomy: leave one of them out"


def _of_linking(policy: Policy, info: TableInfo) -> Iterator[str]:
    """Yield reasons against a pseudonym and against replaced columns."""
    name = policy.pseudonym
    taken = {column.name for column in info.columns}
    taken |= {shown for rule in policy.columns for shown in rule.published_as}
    if name is not None and name in taken:
        yield (
            f"pseudonym {quote_identifier(name)} is a column that there is already: choose another"
            " name"
        )
    elif name is not None and (not is_name(name) or name in SYSTEM_COLUMNS):
        yield (
            f"pseudonym {quote_identifier(name)} is no name for a column: 1 to {LONGEST_NAME} bytes"
            " of text"
        )
    if policy.linking and not policy.is_one_row(info) and policy.rows_per_subject is None:
        kind = "replaced column" if name is None else "pseudonym"
        yield (
            f"{kind} {quote_identifier(policy.linking[0])} shows how many rows a person has, and"
            ' whoever knows the number finds the person: rows_per_subject = "group", or the most'
            " rows to publish of each"
        )


def _floor(rule: ColumnRule) -> list[str]:
    return [key for key in FLOOR if _has(rule, key)]


def floor_problems(rule: ColumnRule, kind: ColumnKind, *, named: str) -> Iterator[str]:
    """Yield reasons against the floor of a column; named: its type."""
    given = _floor(rule)
    if rule.pooled is not None:
        yield from _of_pooled(rule)
    if rule.keep:
        for key in ("recoding", *given, "snap", "digits"):
            if _has(rule, key):
                yield f"keep publishes the values as they are: leave {key} out"
        return
    for key in given:
        of_key = _of_at_least if key == "at_least" else _of_number
        yield from of_key(rule, kind, key, named=named)
    if rule.top is not None and rule.bottom is not None and rule.top < rule.bottom:
        yield "bottom is at most top"
    if given and rule.snap is not None:
        yield f"{given[0]} publishes whole cells already: leave snap out"


def _of_pooled(rule: ColumnRule) -> Iterator[str]:
    length = rule.at_least
    if not isinstance(length, int) or rule.taxonomy is not None:
        yield "pooled goes with at_least, a number of leading characters"
    elif any(len(text) != length for text in rule.pooled or ()):
        yield f"pooled lists texts of {length} characters, as many as at_least"


def _has(rule: ColumnRule, key: str) -> bool:
    return getattr(rule, key) is not None


def _of_at_least(rule: ColumnRule, kind: ColumnKind, key: str, *, named: str) -> Iterator[str]:
    is_level = isinstance(rule.at_least, int)
    if rule.taxonomy is not None:
        if not is_level:
            yield f"{key} of a column with a taxonomy is a number of levels above its leaves"
    elif kind.is_moment:
        if rule.at_least not in PERIODS:
            yield f"{key} of type {named} is one of {', '.join(PERIODS)}"
    elif kind is not ColumnKind.CATEGORY or rule.order is not None:
        instead = "bands" if kind.is_number else "a taxonomy"
        yield f"{key} means nothing of type {named} here: use {instead}"
    elif not is_level:
        yield f"{key} of type {named} is a number of leading characters"
    elif int(rule.at_least or 0) > _MAX_CHARACTERS:
        yield f"{key} is at most {_MAX_CHARACTERS} characters"


def _of_number(rule: ColumnRule, kind: ColumnKind, key: str, *, named: str) -> Iterator[str]:
    number = getattr(rule, key)
    if not kind.is_number:
        instead = ": use at_least" if kind.is_moment else ""
        yield f"{key} needs a numeric type, {named} is none{instead}"
    elif rule.taxonomy is not None:
        yield f"{key} is for numbers on a line: leave it or the taxonomy out"
    elif kind is ColumnKind.INTEGER and not float(number).is_integer():
        yield f"{key} of type {named} is a whole number"
