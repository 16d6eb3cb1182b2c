"""What each way to publish supports: the one table of features and modes, with the reasons.

A feature that no row mentions works in every mode. A row names the modes that refuse its feature,
and why. ``Asked`` is what features are looked for in: a policy, a table and the options given.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING

from dbanon.domain.errors import ConfigError, PolicyError
from dbanon.domain.policy import (
    BUCKET,
    COUNT,
    FULL_DOMAIN,
    GLOBAL,
    K_ANONYMITY,
    PAIRS,
    ColumnRule,
    Policy,
    Role,
)
from dbanon.domain.table import TableName, quote_identifier
from dbanon.domain.text import command
from dbanon.formats.policy.anatomy import level_of, of_buckets
from dbanon.models.base import Scope
from dbanon.models.registry import MODELS
from dbanon.models.specs import is_strict, title

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from dbanon.domain.errors import DbanonError
    from dbanon.domain.policy import MaskingStep, ModelSpec
    from dbanon.domain.table import TableInfo
    from dbanon.formats.policy.masking_steps import Masking

    Found = Mapping[str, object]
    """What fills the placeholders of a reason."""


class Mode(StrEnum):
    """A way to publish, or to look for one."""

    VIEW = "live view"
    BUCKETS = "anatomy"
    DATASET = "dataset"
    BLOCKS = "blocks"
    COMPARISON = "comparison"
    REUSE = "reuse"
    """New classes are unions of those of earlier releases."""
    REFRESH = "refresh"
    """Classes stay, and new rows form classes of their own."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of one table.

    given: the options, by their names; counted: the rows and the persons, where they were counted;
    make: returns the method of a masking step.
    """

    policy: Policy = field(default_factory=lambda: Policy(TableName(None, ""), ()))
    info: TableInfo | None = None
    given: frozenset[str] = frozenset()
    counted: tuple[int, int] | None = None
    make: Callable[[MaskingStep], Masking] | None = None

    def methods(self) -> Iterator[Masking]:
        """Yield the method of each masking step."""
        if self.make is not None:
            yield from map(self.make, self.policy.masking)

    def quasi(self) -> tuple[ColumnRule, ...]:
        """Return the rules of the quasi-identifiers."""
        return self.policy.with_role(Role.QUASI)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a mode refuses a feature; hint and error: others than those of the mode."""

    text: str
    hint: str | None = None
    error: type[DbanonError] = ConfigError


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature: how it is found in what is asked, and which modes refuse it."""

    name: str
    find: Callable[[Asked], Iterable[Found]]
    refused: Mapping[Mode, Reason]


_HINTS = {
    Mode.VIEW: "publish it with --as table",
    Mode.BLOCKS: "leave out --executor and --rows-per-block, and it is grouped in one piece",
}
_PREFIXES = {Mode.BLOCKS: "blocks of rows cannot be grouped apart: "}
_NONE_TO_HIDE_AMONG = (
    "anatomy publishes quasi-identifiers as they are, and whoever knows them finds the row and"
    " knows that somebody is in the table"
)
_OF_ONE_TABLE = "--{option} is about one table, and a dataset has several"
_AS_IT_IS = "column {column} is published as it is by anatomy: leave"
_BY_QUASI = (
    "{} groups persons by their quasi-identifiers, and the policy of {{table}} publishes these as"
    " they are, by anatomy"
)
_NO_ANATOMY = "take anatomy out of the policy, or: {publish}"


def reasons(mode: Mode, asked: Asked) -> Iterator[str]:
    """Yield why a mode cannot do what is asked."""
    for text, _, _ in _refusals(mode, asked):
        yield text


def require(mode: Mode, asked: Asked) -> None:
    """Raise the error of the first feature that a mode refuses."""
    for text, hint, error in _refusals(mode, asked):
        raise error(text, hint=hint)


def _refusals(mode: Mode, asked: Asked) -> Iterator[tuple[str, str | None, type[DbanonError]]]:
    table = asked.policy.table
    known = {
        "table": table,
        "publish": command("dbanon publish", table),
        "refresh": command("dbanon refresh", table),
    }
    for feature in FEATURES:
        reason = feature.refused.get(mode)
        if reason is None:
            continue
        hint = reason.hint or _HINTS.get(mode)
        for found in feature.find(asked):
            words = {**known, **found}
            text = _PREFIXES.get(mode, "") + reason.text.format(**words)
            yield text, None if hint is None else hint.format(**words), reason.error


def _if(test: Callable[[Asked], object]) -> Callable[[Asked], Iterator[Found]]:
    """Return what finds a feature that is there or not."""

    def find(asked: Asked) -> Iterator[Found]:
        if test(asked):
            yield {}

    return find


def _of_policy(test: Callable[[Policy], object]) -> Callable[[Asked], Iterator[Found]]:
    return _if(lambda asked: test(asked.policy))


def _option(*names: str) -> Callable[[Asked], Iterator[Found]]:
    return lambda asked: ({"option": name} for name in names if name in asked.given)


def _of_table(test: Callable[[TableInfo], object]) -> Callable[[Asked], Iterator[Found]]:
    def find(asked: Asked) -> Iterator[Found]:
        if asked.info is not None and test(asked.info):
            yield {"source": asked.info.name}

    return find


def _quasi(test: Callable[[ColumnRule], object]) -> Callable[[Asked], Iterator[Found]]:
    """Return what finds quasi-identifiers, each by itself."""

    def find(asked: Asked) -> Iterator[Found]:
        for rule in asked.quasi():
            if test(rule):
                yield {"column": quote_identifier(rule.column), "recoding": rule.recoding}

    return find


def _models(test: Callable[[ModelSpec, Asked], object]) -> Callable[[Asked], Iterator[Found]]:
    """Return what finds models; one that does not exist is refused by its name elsewhere."""

    def find(asked: Asked) -> Iterator[Found]:
        for spec in asked.policy.models:
            if spec.name in MODELS and test(spec, asked):
                yield {"model": title(spec), "name": spec.name}

    return find


def _of_scope(scope: Scope) -> Callable[[Asked], Iterator[Found]]:
    return _models(lambda spec, _: MODELS[spec.name].scope is scope)


def _beyond_blocks(spec: ModelSpec, asked: Asked) -> bool:
    """Whether a model compares with all rows that are shown, and some may be left out."""
    model = MODELS[spec.name]
    around = model.is_around or model.scope is not Scope.SENSITIVE
    return model.of_whole and not around and asked.policy.max_suppressed > 0.0


def _of_persons(spec: ModelSpec, asked: Asked) -> bool:
    """Whether a model is proved of all rows of a person, and a person may have several."""
    if asked.policy.subject is None or spec.name == K_ANONYMITY:
        return False
    return is_strict(spec) or not MODELS[spec.name].of_persons


def _foreign(asked: Asked) -> Iterator[Found]:
    if asked.info is not None and asked.info.foreign:
        yield {"source": asked.info.name}


def _foreign_leaf(asked: Asked) -> Iterator[Found]:
    leaves = () if asked.info is None else asked.info.leaves
    for part in leaves:
        if part.relkind != "r":
            yield {"part": part.name}


def _virtual(asked: Asked) -> Iterator[Found]:
    policy, info = asked.policy, asked.info
    rules = (*policy.with_role(Role.QUASI), *policy.with_role(Role.SENSITIVE))
    watched = {*(rule.column for rule in rules), policy.subject}
    for column in () if info is None else info.columns:
        if column.is_virtual and column.name in watched:
            yield {"column": quote_identifier(column.name)}


def _nullable_subject(asked: Asked) -> Iterator[Found]:
    subject, info = asked.policy.subject, asked.info
    for column in () if info is None else info.columns:
        if column.name == subject and column.nullable:
            yield {"column": quote_identifier(column.name), "source": info and info.name}


def _by_rows(asked: Asked) -> Iterator[Found]:
    """Find the models whose guards count rows where some person has several."""
    policy = asked.policy
    if asked.counted is None or policy.rows_per_subject == 1:
        return
    rows, persons = asked.counted
    for spec in policy.models if rows != persons else ():
        if not MODELS[spec.name].guards_persons:
            yield {
                "source": asked.info and asked.info.name,
                "rows": f"{rows:,}",
                "persons": f"{persons:,}",
                "subject": quote_identifier(policy.subject or ""),
                "model": title(spec),
            }


def _more_than_l(asked: Asked) -> Iterator[Found]:
    for spec in of_buckets(asked.policy).models:
        if level_of(spec) is None:
            yield {"name": spec.name}


def _unused(asked: Asked, *, of_search: bool) -> Iterator[Found]:
    """Find the keys that mean nothing where buckets are dealt."""
    policy = asked.policy
    keys = {
        "rows_per_subject": policy.rows_per_subject is not None,
        "population": policy.population is not None,
    }
    if of_search:
        keys = {"block": policy.block is not None, "max_suppressed": policy.max_suppressed > 0}
    yield from ({"key": key} for key, is_given in keys.items() if is_given)


def _taken(asked: Asked) -> Iterator[Found]:
    for rule in asked.policy.columns:
        taken = {BUCKET, COUNT} if rule.role is Role.SENSITIVE else {BUCKET}
        if rule.role.is_published and rule.column in taken:
            yield {"column": quote_identifier(rule.column)}


def _coarser(rule: ColumnRule) -> bool:
    """Whether a rule says more of a column than its role, weight and order."""
    exact = ColumnRule(rule.column, rule.role, weight=rule.weight, order=rule.order)
    return replace(rule, allow=()) != exact


def _masked_quasi(asked: Asked) -> Iterator[Found]:
    yield from _quasi(lambda rule: asked.policy.masked(rule.column))(asked)


def _n_sensitive(asked: Asked) -> Iterator[Found]:
    number = len(asked.policy.with_role(Role.SENSITIVE))
    if number != 1:
        yield {"number": number}


FEATURES: tuple[Feature, ...] = (
    Feature(
        "a live view (--as view)",
        _option("view"),
        {
            Mode.DATASET: Reason(
                "a live view cannot keep persons alike in several tables",
                "publish the dataset with --as table",
            ),
            Mode.REUSE: Reason("a live view changes by itself"),
            Mode.REFRESH: Reason("it is live"),
        },
    ),
    Feature(
        "several tables (--dataset)",
        _option("dataset"),
        {Mode.REUSE: Reason("the persons of a dataset are grouped for all of its tables")},
    ),
    Feature(
        "--name",
        _option("name"),
        {
            Mode.DATASET: Reason(
                "--{option} is about one table, and a dataset has several", "--schema"
            )
        },
    ),
    Feature(
        "--subject, --population",
        _option("subject", "population"),
        {Mode.DATASET: Reason(_OF_ONE_TABLE, "write it into the policy of the table")},
    ),
    Feature(
        "--series",
        _option("series"),
        {Mode.VIEW: Reason("a live view is of no series", "--as table, or no --series")},
    ),
    Feature(
        "anatomy",
        _of_policy(lambda policy: policy.anatomy),
        {
            Mode.VIEW: Reason(
                "a live view cannot keep buckets: quasi-identifiers are published as they are, so"
                " that whoever sees one value go when one row goes knows whose it was"
            ),
            Mode.DATASET: Reason(_BY_QUASI.format("a dataset"), _NO_ANATOMY),
            Mode.BLOCKS: Reason("anatomy deals sensitive values to the buckets of the whole table"),
            Mode.COMPARISON: Reason(_BY_QUASI.format("every algorithm"), _NO_ANATOMY),
            Mode.REUSE: Reason("what is published of a class is who is in it"),
            Mode.REFRESH: Reason("its buckets are dealt from all rows"),
        },
    ),
    Feature(
        "a source that is no table",
        _of_table(lambda info: not info.is_table),
        {
            Mode.VIEW: Reason(
                "{source} is no table, and guards of a live view can only stand on one"
            ),
            Mode.BLOCKS: Reason(
                "{source} is no table, and may have other rows each time that it is read"
            ),
        },
    ),
    Feature(
        "a source with foreign parts",
        _foreign,
        {Mode.BLOCKS: Reason("{source} has foreign parts, which are not read on one snapshot")},
    ),
    Feature(
        "foreign partitions",
        _foreign_leaf,
        {
            Mode.VIEW: Reason(
                "{part} is a foreign partition, whose changes a live view would not see"
            )
        },
    ),
    Feature(
        "tables that inherit from the source",
        _of_table(lambda info: info.relkind != "p" and info.has_children),
        {Mode.VIEW: Reason("{source} has children, whose changes a live view would not see")},
    ),
    Feature(
        "a parent of the source",
        _of_table(lambda info: info.has_parents),
        {
            Mode.VIEW: Reason(
                "{source} has a parent, and a live view would not see what is changed through it",
                "publish the parent, or this with --as table",
            )
        },
    ),
    Feature(
        "key",
        _of_policy(lambda policy: policy.key),
        {
            Mode.VIEW: Reason(
                "a live view needs rows told apart at every moment, and the key of the policy is"
                " proved of those that were read",
                "leave key out of the policy if the table has a primary key, or publish with"
                " --as table",
            )
        },
    ),
    Feature(
        "where",
        _of_policy(lambda policy: policy.where),
        {
            Mode.VIEW: Reason(
                "a live view cannot keep where: a row that no longer meets a condition would stay"
            )
        },
    ),
    Feature(
        "masking",
        _of_policy(lambda policy: policy.masking),
        {
            Mode.VIEW: Reason("a live view shows values as they are, and the policy masks some"),
            Mode.BLOCKS: Reason("masking changes values by those of all rows"),
        },
    ),
    Feature(
        "masking that depends on other rows",
        _if(lambda asked: any(method.whole for method in asked.methods())),
        {Mode.REFRESH: Reason("what becomes of its masked values depends on all rows")},
    ),
    Feature(
        "masking within classes",
        _if(lambda asked: any(method.within_class for method in asked.methods())),
        {Mode.REUSE: Reason("its values are masked within the classes")},
    ),
    Feature(
        "masking of a quasi-identifier",
        _masked_quasi,
        {Mode.BUCKETS: Reason(f"{_AS_IT_IS} its masking out")},
    ),
    Feature(
        "pseudonym",
        _of_policy(lambda policy: policy.pseudonym is not None),
        {
            Mode.VIEW: Reason(
                "a live view cannot keep pseudonyms: whoever sees one go when somebody leaves knows"
                " whose it was"
            )
        },
    ),
    Feature(
        "sample",
        _of_policy(lambda policy: policy.sample is not None),
        {
            Mode.VIEW: Reason(
                "a live view cannot keep a sample: a row that is given to another person would stay"
            ),
            Mode.BLOCKS: Reason("a sample is drawn of all persons"),
        },
    ),
    Feature(
        "rows_per_subject other than 1",
        _of_policy(lambda policy: policy.rows_per_subject not in {None, 1}),
        {
            Mode.VIEW: Reason(
                "a live view cannot keep rows_per_subject: when a row of a person goes, the person"
                " is no longer like the others of its class, and no guard would see that",
                "publish one row of each (--rows-per-subject 1), or with --as table",
            )
        },
    ),
    Feature(
        "rows_per_subject",
        _of_policy(lambda policy: policy.rows_per_subject is not None),
        {
            Mode.BLOCKS: Reason("rows_per_subject looks at all rows of a person"),
            Mode.REUSE: Reason("which rows of a person are shown is drawn again"),
        },
    ),
    Feature(
        "a subject that may be NULL",
        _nullable_subject,
        {
            Mode.VIEW: Reason(
                "subject column {column} of {source} may become NULL while a live view shows it,"
                " and NULL counts as no person",
                "publish it with --as table, or make the column NOT NULL",
            )
        },
    ),
    Feature(
        "persons with several rows",
        _if(lambda asked: asked.counted is not None and len(set(asked.counted)) > 1),
        {Mode.BLOCKS: Reason("some persons have several rows, which may lie in several blocks")},
    ),
    Feature(
        "persons with several rows, by a model that guards count by rows",
        _by_rows,
        {
            Mode.VIEW: Reason(
                "{source} has {rows} rows of {persons} subjects ({subject}), and a live view counts"
                " rows, not persons, for {model}"
            )
        },
    ),
    Feature(
        "another number of sensitive columns than one",
        _n_sensitive,
        {
            Mode.BUCKETS: Reason(
                "anatomy publishes the values of one sensitive column, and there are {number}:"
                " buckets that are diverse in each say nothing of two together"
            )
        },
    ),
    Feature(
        "other models than l-diversity",
        _more_than_l,
        {Mode.BUCKETS: Reason(f"{_NONE_TO_HIDE_AMONG}: it cannot promise {{name}}, but l alone")},
    ),
    Feature(
        "rows_per_subject, population",
        partial(_unused, of_search=False),
        {Mode.BUCKETS: Reason(f"{_NONE_TO_HIDE_AMONG}: {{key}} has no meaning with it")},
    ),
    Feature(
        "block, max_suppressed",
        partial(_unused, of_search=True),
        {Mode.BUCKETS: Reason("anatomy deals all persons into buckets at random: leave {key} out")},
    ),
    Feature(
        "labels",
        _of_policy(lambda policy: policy.labels),
        {
            Mode.BUCKETS: Reason("anatomy publishes no labels: leave labels out"),
            Mode.REFRESH: Reason("its labels are those of all classes"),
        },
    ),
    Feature(
        "columns with the names that anatomy adds",
        _taken,
        {
            Mode.BUCKETS: Reason(
                "column {column} has the name of one that anatomy adds: rename it in a view"
            )
        },
    ),
    Feature(
        "any key of a quasi-identifier",
        _quasi(_coarser),
        {Mode.BUCKETS: Reason(f"{_AS_IT_IS} out all but its role")},
    ),
    Feature(
        "--keep-assignment",
        _option("keep_assignment"),
        {Mode.REFRESH: Reason("its assignment is kept, which is that of all rows")},
    ),
    Feature(
        "keep",
        _quasi(lambda rule: rule.keep),
        {
            Mode.BLOCKS: Reason(
                "the rows of each value of {column} are grouped apart already (keep)"
            )
        },
    ),
    Feature(
        "recoding global or full-domain",
        _quasi(lambda rule: rule.recoding in {GLOBAL, FULL_DOMAIN}),
        {
            Mode.BLOCKS: Reason(
                "recoding {recoding!r} of {column} publishes one grid for all classes"
            ),
            Mode.REFRESH: Reason("the grid of {column} is that of all classes"),
        },
    ),
    Feature(
        "restore_variance",
        _quasi(lambda rule: rule.restore_variance),
        {
            Mode.BLOCKS: Reason("restore_variance of {column} takes the variance of all rows"),
            Mode.REFRESH: Reason("the variance of {column} is that of all classes"),
        },
    ),
    Feature(
        "a range in two columns",
        _quasi(lambda rule: rule.recoding in PAIRS),
        {Mode.REFRESH: Reason("{column} is published in two columns")},
    ),
    Feature(
        "a model of how columns occur together",
        _of_scope(Scope.LINKS),
        {Mode.BLOCKS: Reason("{model} looks at how columns occur together in all rows")},
    ),
    Feature(
        "a model that counts a population",
        _of_scope(Scope.POPULATION),
        {Mode.BLOCKS: Reason("{model} counts a population")},
    ),
    Feature(
        "a model that looks at the classes around",
        _models(lambda spec, _: MODELS[spec.name].is_around),
        {Mode.BLOCKS: Reason("{model} compares a class with all classes around it")},
    ),
    Feature(
        "a model that a union of classes may fail",
        _models(lambda spec, _: not MODELS[spec.name].is_monotone),
        {Mode.BLOCKS: Reason("{model} may not hold of a class that has rows of several blocks")},
    ),
    Feature(
        "a model that compares with all rows",
        _models(lambda spec, _: MODELS[spec.name].of_whole),
        {
            Mode.VIEW: Reason(
                "a live view cannot keep {model}: any write changes the whole that its classes are"
                " compared with",
                "publish it with --as table, and again with: {refresh}",
            ),
            Mode.DATASET: Reason(
                "{model} looks beyond the classes of one table, and those of a dataset are grouped"
                " apart",
                "leave it out of the policy of {table}, or publish that alone",
                PolicyError,
            ),
            Mode.REFRESH: Reason("{name} compares classes with what lies outside of them"),
        },
    ),
    Feature(
        "a model that compares with all rows, with max_suppressed",
        _models(_beyond_blocks),
        {
            Mode.BLOCKS: Reason(
                "{model} compares with all rows that are shown, and with max_suppressed nobody"
                " knows them before the last block"
            )
        },
    ),
    Feature(
        "a model proved of all rows of a person, with a subject",
        _models(_of_persons),
        {Mode.REFRESH: Reason("{name} is proved of all rows of a person")},
    ),
    Feature(
        "a column that is generated on reading",
        _virtual,
        {
            Mode.VIEW: Reason(
                "column {column} is generated on reading, and the guards of a live view would not"
                " see it change",
                "make it STORED, or publish with --as table",
            )
        },
    ),
)
"""Every feature that some mode refuses, in the order in which it is looked for."""
