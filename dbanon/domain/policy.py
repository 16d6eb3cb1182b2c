"""Policies: what to publish of a table, and the models it must meet."""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from inspect import cleandoc
from typing import Annotated, ClassVar, Literal, Protocol, TypeVar, get_args

from dbanon.domain.table import ColumnKind, Structure, TableInfo, TableName

Made = TypeVar("Made")
Form = Literal["text", "count", "number", "flag", "texts", "relation", "word or count", "own"]
"""The forms of values; those of their own are read and written by a module that knows them."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a policy file, or of one of its columns.

    among: allowed texts; names: registry with the allowed texts; pattern: of a text; least
    (inclusive), above, below (exclusive): bounds of a number; otherwise: message for other values;
    empty, unique: of the texts of a list; has_schema: a relation must name its schema; absent:
    value of an omitted key; roles: of columns that may have it, empty for any; shown: format in
    ``policy show`` and reports, name and value if empty, omitted if None; is_always: written even
    with its default; moves_classes: False if published classes can stay when it changes.
    """

    form: Form
    among: tuple[str, ...] = ()
    names: str = ""
    pattern: str = ""
    least: float = -math.inf
    above: float = -math.inf
    below: float = math.inf
    otherwise: str = ""
    empty: bool = False
    unique: bool = False
    has_schema: bool = False
    absent: str | None = None
    roles: tuple[str, ...] = ()
    shown: str | None = ""
    is_always: bool = False
    moves_classes: bool = True


def made(make: Callable[..., Made], values: Mapping[str, object]) -> Made:
    """Make a value of fields by name, each of which was read in the form that its key asks for."""
    return make(**values)


def keys_of(described: type) -> Mapping[str, Key]:
    """Return the keys of a policy, or of a column, by name."""
    found = {field.name: (get_args(field.type) or (None,))[-1] for field in fields(described)}
    return {name: key for name, key in found.items() if isinstance(key, Key)}


Described = TypeVar("Described", "Policy", "ColumnRule")


def unmoved(one: Described, other: Described) -> Described:
    """Return a policy or rule with the keys of another one that move no class."""
    names = (name for name, key in keys_of(type(one)).items() if not key.moves_classes)
    return replace(one, **{name: getattr(other, name) for name in names})


def meanings_of(described: type) -> Mapping[str, tuple[str, str]]:
    """Return the meaning of each key, and its default, as Markdown."""
    entries = re.findall(
        r"^(\w+): (.*(?:\n    .*)*)", cleandoc(described.__doc__ or ""), re.MULTILINE
    )
    said = {name: re.sub(r"\s+", " ", text).partition(" | ") for name, text in entries}
    return {name: (meaning, without or "required") for name, (meaning, _, without) in said.items()}


class Role(StrEnum):
    """What a column discloses about a person (algorithm reference: attribute roles).

    Weight: the persons of a population that a row of a survey represents.
    """

    IDENTIFIER = "identifier"
    QUASI = "quasi"
    SENSITIVE = "sensitive"
    INSENSITIVE = "insensitive"
    WEIGHT = "weight"

    @property
    def is_published(self) -> bool:
        """True if the column is published in some form."""
        return self not in {Role.IDENTIFIER, Role.WEIGHT}

    @property
    def stays(self) -> bool:
        """True if a release that reuses classes keeps the published values of the column."""
        return self in {Role.QUASI, Role.SENSITIVE}


REPLACEMENT = (
    "name|first_name|last_name|city|street|company|user_name|email|phone|iban"
    "|code:[!-~]([ -~]{0,26}[!-~])?"
)
"""Values of ``replace``; each character of a pattern takes one byte of a hash."""

STOP, OTHER, DERIVE = "stop", "other", "derive"
ON_NEW_VALUE = (STOP, OTHER, DERIVE)

PERIODS = ("day", "week", "month", "quarter", "year", "decade")
"""Values of ``at_least`` for dates and times."""

SUPPRESS = "suppress"
"""Values of ``rare``."""
FLOOR = ("at_least", "bands", "top", "bottom")
"""The keys that limit how fine published values are."""

_OF_INTEGERS, _OF_FRACTIONS = 1, 3  # decimals of a mean
_quasi = partial(Key, roles=(Role.QUASI,))
_of_values = partial(Key, roles=(Role.QUASI, Role.SENSITIVE), shown=None)
_of_refresh = partial(Key, moves_classes=False)


@dataclass(frozen=True, slots=True)
class ColumnRule:
    """Role of one column, and publication of a quasi-identifier.

    role: `identifier`, `quasi`, `sensitive`, `insensitive`, or `weight` for one numeric column with
        the [survey weights](../guides/report.md#survey-weights) of rows
    recoding: one of the [recodings](recodings.md) | `interval` for numbers and dates,
        `interval-text` for ordered values, otherwise `label`
    taxonomy: name of a stored taxonomy; of a sensitive column, for the hierarchical distance |
        values without order get a flat one
    weight: weight of this column's loss in the search, a number above 0. A weight far above the sum
        of all others groups by the column first: classes mix its values only if fewer than *k* rows
        have one | 1
    snap: widens the bounds of `interval` to multiples of this, in units of the column, days, or
        seconds | bounds are values of the class
    digits: decimals of a published `mean` | 1 for integers, 3 for other numbers
    order: list of the values of a text column from first to last, such as `order = ["low",
        "medium", "high"]`; also of a sensitive column, for the ordered distance | enums have the
        order of their labels, other texts none
    allow: list of acknowledged [warnings](../guides/policies.md#warnings) about this column, each
        with a reason, such as `allow = ["near-unique: form numbers, unknown to others"]` | every
        warning is reported
    at_least: finest published unit: `"day"`, `"week"`, `"month"`, `"quarter"`, `"year"` or
        `"decade"` of dates and times; number of leading characters of texts; with a taxonomy,
        number of levels above its deepest leaves ([floors](#floors)) | exact values of the class
        may be published
    bands: finest published unit of numbers: half-open bands of this width, starting at its
        multiples | exact values of the class may be published
    top: numbers of at least this are one band, `[90,)` or `90+` | no such band
    bottom: numbers below this are one band, `(,18)` or `<18` | no such band
    keep: `true` publishes exact values, and all rows of a class share one ([kept
        columns](#kept-columns)) | values may be coarsened
    pooled: texts of `at_least` characters, such as `["036", "059"]`: all values with one of these
        prefixes are published as one, `000*` | every prefix is separate
    on_new_value: treatment of values that the taxonomy lacks: `"stop"`; `"other"`, publishes them
        under a label of that name; `"derive"`, places codes by their prefixes ([new
        values](../guides/taxonomies.md#new-values)) | `stop`
    rare: `"suppress"` suppresses rows instead of coarsening this column, within `max_suppressed`
        ([rare values](#rare-values)) | a row is suppressed only if that saves more than the loss of
        all its columns
    restore_variance: `true` stretches the means of recoding `mean` to the variance of the values;
        they may lie outside of the range of their class. A refresh starts from scratch | means keep
        the mean of the column, and lose the variance within classes
    replace: publishes [made-up values](../guides/realistic-copy.md) instead of the column, the same
        for all rows of a person: `"name"`, `"first_name"`, `"last_name"`, `"city"`, `"street"`,
        `"company"`, `"user_name"`, `"email"`, `"phone"`, `"iban"`, or `"code:"` and a pattern, in
        which `?` is a letter and `#` a digit, such as `"code:??-####"` | the column is not
        published
    """

    column: str
    role: Annotated[Role, Key("text", among=tuple(Role), shown=None)]
    recoding: Annotated[str | None, _quasi("text", names="recodings", shown=None)] = None
    taxonomy: Annotated[str | None, _of_values("text")] = None
    weight: Annotated[float, _quasi("number", above=0, shown=None)] = 1.0
    snap: Annotated[float | None, _quasi("number", above=0)] = None
    digits: Annotated[int | None, _quasi("count", least=0, shown=None)] = None
    order: Annotated[tuple[str, ...] | None, _of_values("texts", empty=True, unique=True)] = None
    allow: Annotated[tuple[str, ...], Key("own", shown=None, moves_classes=False)] = ()
    at_least: Annotated[str | int | None, _quasi("word or count", among=PERIODS)] = None
    bands: Annotated[float | None, _quasi("number", above=0)] = None
    top: Annotated[float | None, _quasi("number")] = None
    bottom: Annotated[float | None, _quasi("number")] = None
    keep: Annotated[bool, _quasi("flag")] = False
    pooled: Annotated[tuple[str, ...] | None, _quasi("texts")] = None
    on_new_value: Annotated[
        str | None, _quasi("text", among=ON_NEW_VALUE, absent=STOP, shown=None)
    ] = None
    rare: Annotated[str | None, _quasi("text", among=(SUPPRESS,))] = None
    restore_variance: Annotated[bool, _quasi("flag", shown=None)] = False
    replace: Annotated[
        str | None,
        Key(
            "text",
            pattern=REPLACEMENT,
            otherwise='is name, email or another kind, or "code:" and a pattern such as ??-####',
            roles=(Role.IDENTIFIER,),
        ),
    ] = None

    @property
    def published_as(self) -> tuple[str, ...]:
        """The published columns, none for a weight or an identifier without replacement."""
        if not self.role.is_published:
            return () if self.replace is None else (self.column,)
        ends = PAIRS.get(self.recoding or "") if self.role is Role.QUASI else None
        return (self.column,) if ends is None else tuple(f"{self.column}{end}" for end in ends)

    def decimals(self, kind: ColumnKind) -> int:
        """Return the number of decimals of means."""
        if self.digits is not None:
            return max(self.digits, 0)
        return _OF_INTEGERS if kind is ColumnKind.INTEGER else _OF_FRACTIONS

    def structure(self, kind: ColumnKind) -> Structure:
        """Return the structure of the column's values; kind: of its type."""
        if self.taxonomy is not None:
            return Structure.TREE
        if kind.is_ordered:
            return Structure.LINE
        of_type = kind is ColumnKind.ORDINAL and self.recoding != "label"
        return Structure.ORDER if of_type or self.order is not None else Structure.TREE


BOUNDS, CENTER = "bounds", "center"
PAIRS: Mapping[str, tuple[str, str]] = {BOUNDS: ("_min", "_max"), CENTER: ("_center", "_radius")}
"""The recodings that publish two columns, and what their names end with."""

MEANS = frozenset({"mean", "midpoint"})
"""The recodings that compute a number or a moment from the values of a class."""

PREFIX, GLOBAL, FULL_DOMAIN, DATE_PART = "prefix", "global", "full-domain", "date-part"
"""Recodings that more than their own room knows of."""

OF_CELLS = frozenset(
    {*PAIRS, "interval", "interval-text", "label", "suppress"}
    | {PREFIX, GLOBAL, FULL_DOMAIN, DATE_PART}
)
"""The recodings that never publish anything finer than a floor."""

OF_STRUCTURE: Mapping[Structure, str] = {
    Structure.LINE: "interval",
    Structure.ORDER: "interval-text",
    Structure.TREE: "label",
}
"""The recoding of a column whose rule names none."""

POINTS = frozenset({"mean", "midpoint", "median", "mode"})
"""The recodings whose labels stand for a class."""

SNAPPED = frozenset({*PAIRS, "interval", "interval-text", "suppress", GLOBAL})
"""The recodings that publish no bound finer than ``snap``."""

Value = int | float | str | tuple[str, ...]
"""A parameter of a privacy model."""


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A privacy model and its parameters, such as ``("k-anonymity", {"k": 5})``.

    Names and parameters are in ``dbanon.models``. A model of sensitive values applies to each
    sensitive column, or to ``columns``; with ``multi = "strict"`` the others join the
    quasi-identifiers.
    """

    name: str
    params: Mapping[str, Value] = field(default_factory=dict)


Scalar = int | float | str | bool
"""A value that a condition compares with; dates and times are text, as ISO 8601 has them."""


class Comparison(StrEnum):
    """Comparison of a condition."""

    EQUAL = "="
    DIFFERENT = "<>"
    BELOW = "<"
    AT_MOST = "<="
    ABOVE = ">"
    AT_LEAST = ">="
    IN = "in"
    BETWEEN = "between"
    IS_NULL = "is null"
    IS_NOT_NULL = "is not null"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a column that every published row meets; NULL meets only ``is null``.

    column: a column of the table, with any role
    is: `=`, `<>`, `<`, `<=`, `>`, `>=`, `in`, `between`, `is null` or `is not null`
    value: value to compare with: a number, a text, true or false, a date or time; a list for `in`,
        two inclusive bounds for `between` | required except by `is null` and `is not null`
    """

    column: str
    comparison: Comparison
    value: Scalar | tuple[Scalar, ...] | None = None

    @property
    def values(self) -> tuple[Scalar, ...]:
        """All values that it compares with."""
        if self.value is None:
            return ()
        return self.value if isinstance(self.value, tuple) else (self.value,)


@dataclass(frozen=True, slots=True)
class MaskingStep:
    """A masking method, its parameters, and the columns whose values it changes.

    method: a [masking method](masking.md)
    columns: list of the masked columns
    within: list of columns: rows are masked separately for each combination of their values | all
        rows are masked together
    """

    method: str
    columns: tuple[str, ...]
    params: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    within: tuple[str, ...] = ()


class Masking(Protocol):
    """A way to change the values of columns; its fields are its parameters.

    of_numbers: changes numbers, otherwise values of any type; of_ranks: the numbers may be ranks of
    labels; joint: columns named together are masked together; whole: the result depends on other
    rows; solvable: values of one row can be computed from two masked tables that differ in that
    row; within_class: rows are masked within their classes.
    """

    of_numbers: ClassVar[bool]
    of_ranks: ClassVar[bool] = False
    joint: ClassVar[bool] = False
    whole: ClassVar[bool] = True
    solvable: ClassVar[bool] = True
    within_class: ClassVar[bool] = False


K_ANONYMITY = "k-anonymity"
L_DIVERSITY = "l-diversity"
PROBABILISTIC = "probabilistic-l-diversity"
BUCKET, COUNT = "bucket", "count"
"""The columns of anatomy: which bucket somebody is in, and how many in it have a value."""
DEFAULT_NAME = "default"
"""Of the policy of a table that is meant when none is named."""
AUTO = "auto"
WITHDRAW_SHARE = 0.6
"""The share of a class that is gone when a refresh withdraws it, if the policy names none."""
COMPATIBLE, INDEPENDENT = "compatible", "independent"
REFRESHES = (COMPATIBLE, INDEPENDENT)
"""Values of ``refresh``: classes are preserved, or no person may have two releases."""
VOUCHED = "its policy makes releases independent: no person may have two of them"
"""What the steward vouches for with independent releases."""
DROP = "drop"
"""Of ``rest``: columns that a policy does not name are left out, as identifiers are."""
GROUP = "group"
"""Of ``rows_per_subject``: publish all rows, and group persons by how many each has."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy: the complete description of a publication.

    table: name or schema.name, quoted as in SQL if necessary
    columns: a table `[columns.NAME]` for every column of the table, or, with `rest`, for the
        relevant ones
    models: the [privacy models](models.md): `k = 5` and `l = 3`, short for `k-anonymity` and
        `l-diversity`; in full `[models.k-anonymity]` with `k = 5` | `--k` is needed
    algorithm: name of an [algorithm](algorithms.md) | `auto`
    params: a table `[params]` with [parameters](algorithms.md#parameters) of the algorithm | their
        defaults
    key: list of columns that identify rows, for a view or a table without primary key; verified on
        the rows that are read. A live view needs a primary key | the primary key
    subject: column that identifies the person, if persons may have several rows: an identifier
        without NULLs in the rows that are read, and NOT NULL for a live view; `--subject` does the
        same | every row is a person
    rows_per_subject: for a `subject` with several rows: `"group"` groups persons with the same
        number of rows, and suppresses rows if such persons are too few; a number also limits the
        published rows per person. `--rows-per-subject` does the same | knowing a person's number of
        rows may disclose more
    population: schema.name of the table of the population that contains the persons of this one,
        one row each; it has the same quasi-identifiers in the same types. `--population` does the
        same | [models](models.md#models-of-a-population) of a population are refused
    max_suppressed: share of rows that may be suppressed, from 0 to less than 1 | 0
    block: groups blocks of about this many rows separately, as `--block` does | the whole table at
        once
    class_label: published column by which the metric `cm` assesses classes | the first sensitive
        column
    allow: list of acknowledged [warnings](../guides/policies.md#warnings) about the whole policy,
        each with a reason, such as `allow = ["no-diversity: every value is public"]` | every
        warning is reported
    name: distinguishes [several policies](../guides/policies.md#several-policies-of-one-table) of
        one table: up to 40 of a-z, 0-9, _ and -, the first a letter; `--policy` does the same |
        `default`
    rest: `"drop"` treats every unnamed column, even a new one, as an identifier. There is no other
        value: a column is published only if the policy gives it a role | every column needs a role
    where: [conditions](#keys-of-a-condition) on columns; a row must meet all of them to be
        published; the report counts rows that do not | all rows
    sample: share of the persons who meet `where`, between 0 and 1, for [a sample](#sample) | all of
        them
    labels: `true` publishes a relation next to the release, such as `anon.patients_labels`, to look
        up [the ancestors of its labels](../guides/analyst.md#labels) | `false`
    anatomy: `true` publishes exact quasi-identifiers, and the sensitive values of buckets of
        persons in a relation next to the release, [by anatomy](../guides/anatomy.md) | `false`
    erase_within: how long a [refresh](../guides/refreshing.md#a-deadline) may keep publishing
        deleted persons: a number of days, as in `"30d"`; their class is then withdrawn | until most
        of the class is deleted
    withdraw_share: share of a class that must be deleted before a
        [refresh](../how-refresh-works.md#what-becomes-of-a-class) withdraws it | 0.6
    pool_size: minimum number of new persons that a
        [refresh](../how-refresh-works.md#new-persons) publishes together; more if the sensitive
        values need them | 100 k, or a tenth of the published persons if that is less
    max_stale: a [refresh](../guides/refreshing.md#former-values) and `dbanon doctor` warn if a
        larger share of the published rows shows former values | no warning
    refresh: `"compatible"` preserves published classes; with `"independent"` a refresh groups all
        rows from scratch, for [an audience](../guides/refreshing.md#a-series) of which nobody ever
        has two releases | `compatible`
    masking: list of tables `[[masking]]`, the [steps](#keys-of-a-masking-step) that change values
        before grouping | values are not masked
    pseudonym: name of a published column with a pseudonym of the person, the same in all relations
        [published for the same readers](../guides/linked-tables.md#pseudonyms) | rows of one person
        are not linked
    locale: language and country of [replacements](../guides/realistic-copy.md), such as `de_DE` |
        `en_US`
    budget: limit of the sum of the epsilons of all [noisy counts](../guides/counts.md) of the
        table, above 0 | `dbanon count` is refused
    """

    table: Annotated[TableName, Key("relation", shown=None)]
    columns: Annotated[tuple[ColumnRule, ...], Key("own", shown=None)]
    models: Annotated[tuple[ModelSpec, ...], Key("own", shown=None)] = ()
    algorithm: Annotated[str, Key("text", names="algorithms", shown=None, is_always=True)] = AUTO
    params: Annotated[Mapping[str, Scalar], Key("own", shown=None)] = field(default_factory=dict)
    key: Annotated[tuple[str, ...], Key("texts", shown=None)] = ()
    subject: Annotated[str | None, Key("text", shown="persons are told apart by: {}")] = None
    rows_per_subject: Annotated[
        int | str | None, Key("word or count", among=(GROUP,), shown="rows of a person: {}")
    ] = None
    population: Annotated[TableName | None, Key("relation", has_schema=True)] = None
    max_suppressed: Annotated[
        float,
        Key(
            "number",
            least=0,
            below=1,
            otherwise="must be at least 0 and less than 1",
            shown="may be left out: {:.2%} of the rows",
        ),
    ] = 0.0
    block: Annotated[int | None, Key("count", least=1, shown=None)] = None
    class_label: Annotated[str | None, Key("text", shown="judged by: {}")] = None
    allow: Annotated[tuple[str, ...], Key("own", shown=None, moves_classes=False)] = ()
    name: Annotated[
        str,
        Key(
            "text",
            pattern="[a-z][a-z0-9_-]{0,39}",
            otherwise="is 1 to 40 of a-z, 0-9, _ and -, the first of them a letter",
            shown=None,
        ),
    ] = DEFAULT_NAME
    rest: Annotated[str | None, Key("text", among=(DROP,), shown="other columns: {}")] = None
    where: Annotated[tuple[Condition, ...], Key("own", shown="rows: {}")] = ()
    sample: Annotated[
        float | None,
        Key(
            "number",
            above=0,
            below=1,
            otherwise="must be less than 1: leave it out to publish all",
            shown="sample: {:.4g} of the persons",
        ),
    ] = None
    labels: Annotated[bool, Key("flag", shown="labels: published beside the release")] = False
    anatomy: Annotated[
        bool, Key("flag", shown="anatomy: sensitive values are published by bucket")
    ] = False
    erase_within: Annotated[
        str | None,
        _of_refresh(
            "text",
            pattern="[1-9][0-9]{0,3}d",
            otherwise="is 1 to 9999 days, as in 30d",
            shown="taken out, once gone from the table, within: {}",
        ),
    ] = None
    withdraw_share: Annotated[
        float | None,
        _of_refresh(
            "number",
            least=0.5,
            below=1,
            otherwise="must be at least 0.5 and less than 1",
            shown="a class is withdrawn when so much of it is gone: {:.0%}",
        ),
    ] = None
    pool_size: Annotated[
        int | None, _of_refresh("count", least=1, shown="new persons are published by at least: {}")
    ] = None
    max_stale: Annotated[
        float | None,
        _of_refresh(
            "number",
            least=0,
            below=1,
            otherwise="must be at least 0 and less than 1",
            shown="warned of, if shown with former values: more than {:.0%} of the rows",
        ),
    ] = None
    refresh: Annotated[
        str | None, _of_refresh("text", among=REFRESHES, absent=REFRESHES[0], shown="releases: {}")
    ] = None
    masking: Annotated[tuple[MaskingStep, ...], Key("own", shown="masked: {}")] = ()
    pseudonym: Annotated[str | None, Key("text", shown="pseudonym of the person: {}")] = None
    locale: Annotated[
        str,
        Key(
            "text",
            pattern="[a-z]{2,3}_[A-Z]{2}",
            otherwise="is a language and a country, as in de_DE",
            shown=None,
        ),
    ] = "en_US"
    budget: Annotated[
        float | None, Key("number", above=0, shown="budget of counts: {}", moves_classes=False)
    ] = None

    def completed(self, info: TableInfo) -> "Policy":
        """Return the policy with a rule for every column that ``rest`` drops."""
        if self.rest != DROP:
            return self
        named = {rule.column for rule in self.columns}
        rest = [column.name for column in info.columns if column.name not in named]
        rules = (ColumnRule(name, Role.IDENTIFIER) for name in rest)
        return replace(self, columns=(*self.columns, *rules))

    def without_rest(self) -> "Policy":
        """Return the policy without the rules that ``rest`` implies."""
        if self.rest != DROP:
            return self
        unnamed = [rule for rule in self.with_role(Role.IDENTIFIER) if rule.replace is None]
        return replace(self, columns=tuple(rule for rule in self.columns if rule not in unnamed))

    def with_role(self, role: Role) -> tuple[ColumnRule, ...]:
        """Return the rules of that role, in column order."""
        return tuple(rule for rule in self.columns if rule.role is role)

    @property
    def weight(self) -> str | None:
        """The column of survey weights, if any."""
        return next((rule.column for rule in self.with_role(Role.WEIGHT)), None)

    @property
    def published_quasi(self) -> tuple[str, ...]:
        """The published columns of the quasi-identifiers in column order, or the bucket."""
        if self.anatomy:
            return (BUCKET,)
        return tuple(name for rule in self.with_role(Role.QUASI) for name in rule.published_as)

    @property
    def inputs(self) -> frozenset[str]:
        """The columns, besides the key, on whose values a release depends.

        Made-up values depend on the key or the subject alone.
        """
        masked = {name for step in self.masking for name in (*step.columns, *step.within)}
        published = {rule.column for rule in self.columns if rule.role.is_published}
        named = {name for name in (self.subject, self.class_label) if name is not None}
        return frozenset(masked | published | named | {one.column for one in self.where})

    @property
    def replaced(self) -> tuple[ColumnRule, ...]:
        """The rules of identifiers that are published as made-up values."""
        return tuple(rule for rule in self.columns if rule.replace is not None)

    @property
    def linking(self) -> tuple[str, ...]:
        """The published columns that link the rows of a person."""
        pseudonyms = () if self.pseudonym is None else (self.pseudonym,)
        return (*pseudonyms, *(rule.column for rule in self.replaced))

    @property
    def means(self) -> tuple[ColumnRule, ...]:
        """The columns published as means or midpoints, which lie within their classes."""
        masked = {name for step in self.masking for name in step.columns}
        return tuple(
            rule
            for rule in self.with_role(Role.QUASI)
            if rule.recoding in MEANS
            and not (self.anatomy or rule.restore_variance or rule.column in masked)
        )

    def masked(self, column: str) -> tuple[MaskingStep, ...]:
        """Return the steps that mask a column."""
        return tuple(step for step in self.masking if column in step.columns)

    @property
    def taxonomies(self) -> frozenset[str]:
        """Names of the taxonomies of all columns."""
        return frozenset(rule.taxonomy for rule in self.columns if rule.taxonomy is not None)

    def keyed(self, info: TableInfo) -> TableInfo:
        """Return a relation with the key of the policy."""
        return replace(info, primary_key=self.key, key_flaw=None) if self.key else info

    def is_one_row(self, info: TableInfo) -> bool:
        """Return True if a person has one row of a table at most: no subject, or it is the key."""
        return self.subject is None or (self.subject,) == info.primary_key

    def with_orders(self, info: TableInfo) -> "Policy":
        """Return the policy with the order of an enum's labels, unless it lists another."""
        labels = {column.name: column.labels for column in info.columns if column.labels}
        return replace(self, columns=tuple(_in_order(rule, labels) for rule in self.columns))

    def with_listed_orders(self, info: TableInfo) -> TableInfo:
        """Return a relation with the orders that the policy lists as labels."""
        orders = {rule.column: rule.order for rule in self.columns if rule.order}
        columns = (replace(c, labels=orders.get(c.name, c.labels)) for c in info.columns)
        return replace(info, columns=tuple(columns))

    def refreshed_as(self, other: "Policy") -> "Policy":
        """Return the policy with what another one says otherwise that moves no class."""
        rules = {rule.column: rule for rule in other.columns}
        columns = (unmoved(rule, rules.get(rule.column, rule)) for rule in self.columns)
        return replace(unmoved(self, other), columns=tuple(columns))

    @property
    def deadline(self) -> timedelta | None:
        """How long deleted persons may stay published, None if unlimited."""
        return None if self.erase_within is None else timedelta(days=int(self.erase_within[:-1]))

    def with_models(self, *given: ModelSpec) -> "Policy":
        """Return the policy with models, each in place of its own of that name."""
        return replace(self, models=replaced(self.models, *given))

    def with_k(self, k: int) -> "Policy":
        """Return the policy with another k."""
        return self.with_models(ModelSpec(K_ANONYMITY, {"k": k}))

    def model(self, name: str) -> ModelSpec | None:
        """Return the model of that name, or None."""
        return next((model for model in self.models if model.name == name), None)

    @property
    def k(self) -> int:
        """Least number of rows in a class; 1 without k-anonymity."""
        return plain_count(self.model(K_ANONYMITY), "k")

    @property
    def l(self) -> int:
        """Least number of distinct values of every sensitive column; 1 without l-diversity."""
        return plain_count(self.model(L_DIVERSITY), "l")


@dataclass(frozen=True, slots=True)
class StoredPolicy:
    """A stored policy: its time, and the relations that serve a release by it."""

    policy: Policy
    updated_at: datetime
    served_by: tuple[TableName, ...]


@dataclass(frozen=True, slots=True)
class Version:
    """A stored version of a policy as a document, None if dropped, numbered by table and name."""

    name: str
    version: int
    document: Mapping[str, object] | None
    stored_at: datetime
    stored_by: str | None


@dataclass(frozen=True, slots=True)
class Approval:
    """The stored version of a policy, and the role that approved it, None if nobody did.

    digest: of version and taxonomies, None if not computed; is_demanded: the database refuses to
    publish a version without approval.
    """

    policy: str
    version: int | None
    author: str | None
    digest: str | None
    by: str | None = None
    at: datetime | None = None
    is_demanded: bool = False

    @property
    def is_open(self) -> bool:
        """True if an approval is demanded and missing."""
        return self.is_demanded and self.by is None


@dataclass(frozen=True, slots=True)
class Difference:
    """A key with different values in two policies, None if missing."""

    key: str
    before: object
    after: object


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a policy: stored, with ``changes``, approved, dropped, or published."""

    at: datetime
    by: str | None
    policy: str
    operation: str
    version: int | None = None
    changes: tuple[Difference, ...] = ()
    release: int | None = None
    relation: TableName | None = None


def policy_option(name: str) -> str:
    """Return the option that selects the policy of that name; empty for the default."""
    return "" if name == DEFAULT_NAME else f"--policy {name}"


def _in_order(rule: ColumnRule, labels: Mapping[str, tuple[str, ...]]) -> ColumnRule:
    """Return the rule with the order of an enum; recoding ``label`` needs none."""
    is_compared = rule.role in {Role.QUASI, Role.SENSITIVE} and rule.recoding != "label"
    if rule.order is None and is_compared and rule.column in labels:
        return replace(rule, order=labels[rule.column])
    return rule


def least_deadline(policies: Iterable[Policy]) -> timedelta | None:
    """Return how long deleted persons may stay published under several policies."""
    deadlines = (policy.deadline for policy in policies)
    return min((one for one in deadlines if one is not None), default=None)


def replaced(models: Iterable[ModelSpec], *given: ModelSpec) -> tuple[ModelSpec, ...]:
    """Return models, each or the given one of its name; others that are given come last."""
    models, new = tuple(models), {spec.name: spec for spec in given}
    own = {spec.name for spec in models}
    return (
        *(new.get(spec.name, spec) for spec in models),
        *(spec for spec in given if spec.name not in own),
    )


def plain_count(model: ModelSpec | None, parameter: str) -> int:
    """Return the count that a model requires of all classes, 1 without it."""
    if model is None or set(model.params) != {parameter}:
        return 1
    count = model.params[parameter]
    return count if isinstance(count, int) else 1


def of_buckets(policy: Policy) -> Policy:
    """Return a policy with distinct l-diversity replaced by that of buckets, and without k = 1.

    In each bucket, at most one person in l has the same sensitive value. Quasi-identifiers are
    published unchanged, so membership and row of a person are not hidden.
    """
    if not policy.anatomy:
        return policy
    levels = [n for spec in policy.models if (n := diversity_level(spec)) is not None]
    asked = [ModelSpec(PROBABILISTIC, {"l": max(levels)})] if levels else []
    others = [
        spec
        for spec in policy.models
        if diversity_level(spec) is None
        and not (spec.name == K_ANONYMITY and spec.params.get("k") == 1)
    ]
    return replace(policy, models=(*asked, *others))


def anatomy_level(policy: Policy) -> int | None:
    """Return the l of a policy from ``of_buckets``, None if it has none."""
    spec = policy.model(PROBABILISTIC)
    return None if spec is None else diversity_level(spec)


def diversity_level(spec: ModelSpec) -> int | None:
    """Return the l of a plain model of distinct or probabilistic diversity, None for others."""
    if spec.name not in {L_DIVERSITY, PROBABILISTIC} or set(spec.params) != {"l"}:
        return None
    asked = spec.params["l"]
    return int(asked) if isinstance(asked, int | float) and asked == int(asked) else None
