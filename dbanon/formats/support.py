"""The features that each publication mode refuses, with reasons: the only table of its kind.

A feature without a row works in every mode. A row lists the modes that refuse its feature, with a
reason for each. ``Asked`` is searched for features: a policy, a table and the given options. Single
parts of it can be searched before the rest is known, and ``Counted`` afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from dbanon.domain.errors import ConfigError, DbanonError, PolicyError
from dbanon.domain.policy import (
    BUCKET,
    COUNT,
    FULL_DOMAIN,
    GLOBAL,
    K_ANONYMITY,
    PAIRS,
    ColumnRule,
    MaskingStep,
    ModelSpec,
    Policy,
    Role,
    diversity_level,
    of_buckets,
    unmoved,
)
from dbanon.domain.table import TableInfo, quote_identifier
from dbanon.domain.text import command
from dbanon.models.base import Scope
from dbanon.models.registry import MODELS, is_strict, title

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from dbanon.domain.policy import Masking

    Found = Mapping[str, object]
    """What fills the placeholders of a reason."""


MOST_STORED = 60
"""The number of sensitive columns of which a place stores if they changed, one bit each."""


class Mode(StrEnum):
    """A way to publish, or to search."""

    VIEW = "live view"
    BUCKETS = "anatomy"
    DATASET = "dataset"
    BLOCKS = "blocks"
    COMPARISON = "comparison"
    APART = "kept values"
    """Rows of each value that is kept are grouped apart."""
    REUSE = "reuse"
    """New classes are unions of those of earlier releases."""
    REFRESH = "refresh"
    """Classes stay, and new rows form classes of their own."""
    PLACES = "changed rows"
    """A refresh reads changed rows only, by the stored place of each row."""
    OVERLAP = "overlapped hashing"
    """Persons are hashed while their rows are grouped."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request for one table; given: names of options; make: returns the method of a step.

    No field has a default, because a missing part would count as supported.
    """

    policy: Policy
    info: TableInfo
    given: frozenset[str]
    make: Callable[[MaskingStep], Masking]

    def methods(self) -> Iterator[Masking]:
        """Yield the method of each masking step."""
        yield from map(self.make, self.policy.masking)


@dataclass(frozen=True, slots=True)
class Counted:
    """The numbers of rows and persons of a table."""

    policy: Policy
    info: TableInfo
    rows: int
    persons: int


Options: TypeAlias = frozenset[str]
Part = TypeVar("Part", Options, TableInfo, Policy, Asked, Counted)
Parts: TypeAlias = Options | TableInfo | Policy | Asked | Counted
"""All that is asked, or a part of it that is known before the rest or after."""


@dataclass(frozen=True, slots=True)
class Finder(Generic[Part]):
    """Finds a feature in one part of a request."""

    part: type[Part]
    find: Callable[[Part], Iterable[Found]]

    def __call__(self, asked: Parts) -> Iterator[Found]:
        """Yield the values for the placeholders of a reason, once per occurrence."""
        for part in _parts(asked):
            if isinstance(part, self.part):
                yield from self.find(part)


def _parts(asked: Parts) -> tuple[Parts, ...]:
    if isinstance(asked, Asked):
        return asked, asked.given, asked.info, asked.policy
    return (asked,)


@dataclass(frozen=True, slots=True)
class Reason:
    """The reason why a mode refuses a feature; hint and error replace those of the mode."""

    text: str
    hint: str | None = None
    error: type[DbanonError] = ConfigError


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature: how to find it in a request, and the modes that refuse it."""

    name: str
    find: Finder[Options] | Finder[TableInfo] | Finder[Policy] | Finder[Asked] | Finder[Counted]
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
_OF_A_RELEASE = "--{option} is about a release, and a comparison of algorithms makes none"
_AS_IT_IS = "column {column} is published as it is by anatomy: leave"
_BY_QUASI = (
    "{} groups persons by their quasi-identifiers, and the policy of {{table}} publishes these as"
    " they are, by anatomy"
)
_BEYOND = "{model} looks beyond a class, and the rows of each value of {kept} are grouped apart"
_NO_KEEP = "leave keep or the model out"
_NO_ANATOMY = "take anatomy out of the policy, or: {publish}"


def reasons(mode: Mode, asked: Parts) -> Iterator[str]:
    """Yield the reasons why a mode refuses a request."""
    for text, _, _ in _refusals(mode, asked):
        yield text


def require(mode: Mode, asked: Parts) -> None:
    """Raise the error of the first feature that a mode refuses."""
    for text, hint, error in _refusals(mode, asked):
        raise error(text, hint=hint)


def _refusals(mode: Mode, asked: Parts) -> Iterator[tuple[str, str | None, type[DbanonError]]]:
    known = _known(asked)
    for feature in FEATURES:
        reason = feature.refused.get(mode)
        if reason is None:
            continue
        hint = reason.hint or _HINTS.get(mode)
        for found in feature.find(asked):
            words = {**known, **found}
            text = _PREFIXES.get(mode, "") + reason.text.format(**words)
            yield text, None if hint is None else hint.format(**words), reason.error


def _known(asked: Parts) -> Found:
    """Return the values for placeholders of any reason, from the policy."""
    policies = [part for part in _parts(asked) if isinstance(part, Policy)]
    return {
        key: value
        for policy in policies
        for key, value in (
            ("table", policy.table),
            ("publish", command("dbanon publish", policy.table)),
            ("refresh", command("dbanon refresh", policy.table)),
            *(("kept", quote_identifier(rule.column)) for rule in policy.columns if rule.keep),
        )
    }


def _option(*names: str) -> Finder[Options]:
    flags = {name: {"grants": "grant"}.get(name, name.replace("_", "-")) for name in names}
    return Finder(
        frozenset, lambda given: ({"option": flag} for name, flag in flags.items() if name in given)
    )


def _if(part: type[Part], test: Callable[[Part], object]) -> Finder[Part]:
    """Return a finder of a feature that is present or not."""
    return Finder(part, lambda asked: ({} for _ in range(bool(test(asked)))))


def _of_policy(test: Callable[[Policy], object]) -> Finder[Policy]:
    return _if(Policy, test)


def _of_table(test: Callable[[TableInfo], object]) -> Finder[TableInfo]:
    return Finder(TableInfo, lambda info: ({"source": info.name} for _ in range(bool(test(info)))))


def _keys(*names: str) -> Finder[Policy]:
    """Return a finder of keys that differ from their defaults, one result each."""
    defaults = {one.name: one.default for one in fields(Policy) if one.name in names}

    def find(policy: Policy) -> Iterator[Found]:
        for name, default in defaults.items():
            if getattr(policy, name) and getattr(policy, name) != default:
                yield {"key": name}

    return Finder(Policy, find)


def _quasi(test: Callable[[ColumnRule, Policy], object]) -> Finder[Policy]:
    """Return a finder of quasi-identifiers, one result each."""

    def find(policy: Policy) -> Iterator[Found]:
        for rule in policy.with_role(Role.QUASI):
            if test(rule, policy):
                yield {"column": quote_identifier(rule.column), "recoding": rule.recoding}

    return Finder(Policy, find)


def _models(test: Callable[[ModelSpec, Policy], object]) -> Finder[Policy]:
    """Return a finder of models; unknown names are refused elsewhere."""

    def find(policy: Policy) -> Iterator[Found]:
        for spec in policy.models:
            if spec.name in MODELS and test(spec, policy):
                yield {"model": title(spec), "name": spec.name}

    return Finder(Policy, find)


def _of_scope(scope: Scope) -> Finder[Policy]:
    return _models(lambda spec, _: MODELS[spec.name].scope is scope)


def _beyond_blocks(spec: ModelSpec, policy: Policy) -> bool:
    """Return True if a model compares with all published rows, and some may be suppressed."""
    model = MODELS[spec.name]
    around = model.is_around or model.scope is not Scope.SENSITIVE
    return model.of_whole and not around and policy.max_suppressed > 0.0


def _of_persons(asked: Asked) -> Iterator[Found]:
    """Find the models that are proved for all rows of a person, if persons may have several."""
    for spec in () if asked.policy.is_one_row(asked.info) else asked.policy.models:
        is_of_rows = is_strict(spec) or not MODELS[spec.name].of_persons
        if spec.name != K_ANONYMITY and is_of_rows:
            yield {"name": spec.name}


def _foreign_leaf(info: TableInfo) -> Iterator[Found]:
    for part in info.leaves:
        if part.relkind != "r":
            yield {"part": part.name}


def _virtual(asked: Asked) -> Iterator[Found]:
    policy = asked.policy
    rules = (*policy.with_role(Role.QUASI), *policy.with_role(Role.SENSITIVE))
    watched = {*(rule.column for rule in rules), policy.subject}
    for column in asked.info.columns:
        if column.is_virtual and column.name in watched:
            yield {"column": quote_identifier(column.name)}


def _nullable_subject(asked: Asked) -> Iterator[Found]:
    for column in asked.info.columns:
        if column.name == asked.policy.subject and column.nullable:
            yield {"column": quote_identifier(column.name), "source": asked.info.name}


def _by_rows(counted: Counted) -> Iterator[Found]:
    """Find the models with guards that count rows, if a person has several."""
    policy = counted.policy
    if counted.rows == counted.persons or policy.rows_per_subject == 1:
        return
    for spec in policy.models:
        if not MODELS[spec.name].guards_persons:
            yield {
                "source": counted.info.name,
                "rows": f"{counted.rows:,}",
                "persons": f"{counted.persons:,}",
                "subject": quote_identifier(policy.subject or ""),
                "model": title(spec),
            }


def _more_than_l(policy: Policy) -> Iterator[Found]:
    for spec in of_buckets(policy).models:
        if diversity_level(spec) is None:
            yield {"name": spec.name}


def _taken(policy: Policy) -> Iterator[Found]:
    for rule in policy.columns:
        taken = {BUCKET, COUNT} if rule.role is Role.SENSITIVE else {BUCKET}
        if rule.role.is_published and rule.column in taken:
            yield {"column": quote_identifier(rule.column)}


def _coarser(rule: ColumnRule, _: Policy) -> bool:
    """Return True if a rule has more keys that move classes than role, weight and order."""
    exact = ColumnRule(rule.column, rule.role, weight=rule.weight, order=rule.order)
    return rule != unmoved(exact, rule)


def _n_sensitive(policy: Policy) -> Iterator[Found]:
    number = len(policy.with_role(Role.SENSITIVE))
    if number != 1:
        yield {"number": number}


def _pseudonym(policy: Policy) -> Iterator[Found]:
    for name in policy.linking:
        yield {"column": quote_identifier(name)}


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
            Mode.PLACES: Reason("it is live"),
            Mode.OVERLAP: Reason("it is live"),
        },
    ),
    Feature(
        "several tables (--dataset)",
        _option("dataset"),
        {
            Mode.REUSE: Reason("the persons of a dataset are grouped for all of its tables"),
            Mode.PLACES: Reason("the tables of a dataset are read together"),
        },
    ),
    Feature(
        "--name",
        _option("name"),
        {
            Mode.DATASET: Reason(_OF_ONE_TABLE, "--schema"),
            Mode.COMPARISON: Reason(_OF_A_RELEASE, "leave it out"),
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
        {
            Mode.VIEW: Reason("a live view is of no series", "--as table, or no --series"),
            Mode.DATASET: Reason(
                _OF_ONE_TABLE,
                "leave it out, or for other readers: --new-series --recipients-changed",
            ),
            Mode.COMPARISON: Reason(_OF_A_RELEASE, "leave it out"),
        },
    ),
    Feature(
        "--new-series, --recipients-changed, --strict, --schema, --grant, --print-sql",
        _option("new_series", "recipients_changed", "strict", "schema", "grants", "print_sql"),
        {Mode.COMPARISON: Reason(_OF_A_RELEASE, "leave it out")},
    ),
    Feature(
        "--algorithm",
        _option("algorithm"),
        {
            Mode.COMPARISON: Reason(
                "--algorithm names one search, and a comparison has several",
                "--algorithms NAME,NAME",
            )
        },
    ),
    Feature(
        "--executor, --rows-per-block",
        _option("executor", "rows_per_block"),
        {
            Mode.DATASET: Reason(
                "the tables of a dataset are grouped together, and not in blocks",
                "leave out --executor and --rows-per-block",
            )
        },
    ),
    Feature(
        "another policy or search of a plan",
        _option("file", "compare", "algorithms", "ks", "plot"),
        {
            Mode.DATASET: Reason(
                "--{option} is about one policy, and each table of a dataset has its own",
                "leave it out, or name one table",
            )
        },
    ),
    Feature(
        "--html of a plan",
        _option("html"),
        {Mode.DATASET: Reason(_OF_ONE_TABLE, "dbanon plan TABLE --html FILE")},
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
            Mode.PLACES: Reason("its buckets are dealt from all rows"),
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
            Mode.OVERLAP: Reason("{source} is no table, and its rows may be read in another order"),
        },
    ),
    Feature(
        "a source with foreign parts",
        _of_table(lambda info: info.foreign),
        {Mode.BLOCKS: Reason("{source} has foreign parts, which are not read on one snapshot")},
    ),
    Feature(
        "foreign partitions",
        Finder(TableInfo, _foreign_leaf),
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
            ),
            Mode.PLACES: Reason(
                "rows are identified by the key of the policy, and not by a primary key"
            ),
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
            Mode.PLACES: Reason("masked values are not those of the table"),
        },
    ),
    Feature(
        "masking that depends on other rows",
        _if(Asked, lambda asked: any(method.whole for method in asked.methods())),
        {Mode.REFRESH: Reason("what becomes of its masked values depends on all rows")},
    ),
    Feature(
        "masking within classes",
        _if(Asked, lambda asked: any(method.within_class for method in asked.methods())),
        {Mode.REUSE: Reason("its values are masked within the classes")},
    ),
    Feature(
        "masking of a quasi-identifier",
        _quasi(lambda rule, policy: policy.masked(rule.column)),
        {Mode.BUCKETS: Reason(f"{_AS_IT_IS} its masking out")},
    ),
    Feature(
        "pseudonym",
        Finder(Policy, _pseudonym),
        {
            Mode.BUCKETS: Reason(
                "pseudonym {column} would tell by two releases who was in which buckets: leave out"
                " anatomy"
            ),
            Mode.VIEW: Reason(
                "a live view cannot keep pseudonyms: whoever sees one go when somebody leaves knows"
                " whose it was"
            ),
            Mode.PLACES: Reason("pseudonyms are made of all rows"),
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
            Mode.PLACES: Reason("its sample is drawn of all persons"),
            Mode.OVERLAP: Reason("only the persons of its sample are hashed"),
        },
    ),
    Feature(
        "a subject that is not the key",
        _if(Asked, lambda asked: not asked.policy.is_one_row(asked.info)),
        {
            Mode.PLACES: Reason("its persons may have several rows"),
            Mode.OVERLAP: Reason("its persons may have several rows"),
        },
    ),
    Feature(
        "class_label, population",
        _keys("class_label", "population"),
        {Mode.PLACES: Reason("{key} needs all rows")},
    ),
    Feature(
        "a primary key that texts do not tell apart",
        _of_table(
            lambda info: not all(c.is_equal_by_text for c in map(info.column, info.primary_key))
        ),
        {Mode.PLACES: Reason("equal values of its primary key may have several texts")},
    ),
    Feature(
        "more sensitive columns than a place stores",
        _of_policy(lambda policy: len(policy.with_role(Role.SENSITIVE)) > MOST_STORED),
        {Mode.PLACES: Reason(f"it has more than {MOST_STORED} sensitive columns")},
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
        Finder(Asked, _nullable_subject),
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
        _if(Counted, lambda counted: counted.rows != counted.persons),
        {Mode.BLOCKS: Reason("some persons have several rows, which may lie in several blocks")},
    ),
    Feature(
        "persons with several rows, by a model that guards count by rows",
        Finder(Counted, _by_rows),
        {
            Mode.VIEW: Reason(
                "{source} has {rows} rows of {persons} subjects ({subject}), and a live view counts"
                " rows, not persons, for {model}"
            )
        },
    ),
    Feature(
        "another number of sensitive columns than one",
        Finder(Policy, _n_sensitive),
        {
            Mode.BUCKETS: Reason(
                "anatomy publishes the values of one sensitive column, and there are {number}:"
                " buckets that are diverse in each say nothing of two together"
            )
        },
    ),
    Feature(
        "other models than l-diversity",
        Finder(Policy, _more_than_l),
        {Mode.BUCKETS: Reason(f"{_NONE_TO_HIDE_AMONG}: it cannot promise {{name}}, but l alone")},
    ),
    Feature(
        "rows_per_subject, population",
        _keys("rows_per_subject", "population"),
        {Mode.BUCKETS: Reason(f"{_NONE_TO_HIDE_AMONG}: {{key}} has no meaning with it")},
    ),
    Feature(
        "algorithm, params, block, max_suppressed",
        _keys("algorithm", "params", "block", "max_suppressed"),
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
        Finder(Policy, _taken),
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
        {
            Mode.COMPARISON: Reason(_OF_A_RELEASE, "leave it out"),
            Mode.REFRESH: Reason("its assignment is kept, which is that of all rows"),
        },
    ),
    Feature(
        "keep",
        _quasi(lambda rule, _: rule.keep),
        {
            Mode.BLOCKS: Reason(
                "the rows of each value of {column} are grouped apart already (keep)"
            )
        },
    ),
    Feature(
        "recoding global or full-domain",
        _quasi(lambda rule, _: rule.recoding in {GLOBAL, FULL_DOMAIN}),
        {
            Mode.BLOCKS: Reason(
                "recoding {recoding!r} of {column} publishes one grid for all classes"
            ),
            Mode.REFRESH: Reason("the grid of {column} is that of all classes"),
        },
    ),
    Feature(
        "restore_variance",
        _quasi(lambda rule, _: rule.restore_variance),
        {
            Mode.BLOCKS: Reason("restore_variance of {column} takes the variance of all rows"),
            Mode.REFRESH: Reason("the variance of {column} is that of all classes"),
        },
    ),
    Feature(
        "a range in two columns",
        _quasi(lambda rule, _: rule.recoding in PAIRS),
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
        {
            Mode.BLOCKS: Reason("{model} counts a population"),
            Mode.APART: Reason(_BEYOND, _NO_KEEP, PolicyError),
        },
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
            Mode.APART: Reason(_BEYOND, _NO_KEEP, PolicyError),
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
        Finder(Asked, _of_persons),
        {Mode.REFRESH: Reason("{name} is proved of all rows of a person")},
    ),
    Feature(
        "a column that is generated on reading",
        Finder(Asked, _virtual),
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
