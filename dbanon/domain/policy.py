"""What to publish of a table, and what must hold of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Annotated

from dbanon.domain.keys import Key
from dbanon.domain.table import ColumnKind, Structure, TableInfo, TableName


class Role(StrEnum):
    """What a column tells about a person (algorithm reference: attribute roles).

    A weight is the number of persons of a population that a row of a survey stands for.
    """

    IDENTIFIER = "identifier"
    QUASI = "quasi"
    SENSITIVE = "sensitive"
    INSENSITIVE = "insensitive"
    WEIGHT = "weight"

    @property
    def is_published(self) -> bool:
        """Whether readers get the column in some form."""
        return self not in {Role.IDENTIFIER, Role.WEIGHT}

    @property
    def stays(self) -> bool:
        """Whether a release of earlier classes shows the values that were published of a person."""
        return self in {Role.QUASI, Role.SENSITIVE}


STOP, OTHER, DERIVE = "stop", "other", "derive"
ON_NEW_VALUE = (STOP, OTHER, DERIVE)

PERIODS = ("day", "week", "month", "quarter", "year", "decade")
"""What ``at_least`` can be of dates and times."""

SUPPRESS = "suppress"
"""What ``rare`` can be."""

_OF_INTEGERS, _OF_FRACTIONS = 1, 3  # decimals of a mean
_quasi = partial(Key, roles=(Role.QUASI,))
_of_values = partial(Key, roles=(Role.QUASI, Role.SENSITIVE), shown=None)


@dataclass(frozen=True, slots=True)
class ColumnRule:
    """The role of one column, and for a quasi-identifier how it is published.

    role: `identifier`, `quasi`, `sensitive`, `insensitive`, or `weight` for one column of numbers
        with the [survey weights](../guides/report.md#survey-weights) of rows
    recoding: one of the [recodings](recodings.md) | `interval` for numbers and dates,
        `interval-text` for values in an order, else `label`
    taxonomy: the name of a stored taxonomy; of a sensitive column, for the hierarchical distance |
        values without order get a flat one
    weight: how much the loss of this column counts in the search, a number above 0. A weight far
        above all others together groups by the column first: classes mix its values only where
        fewer than *k* rows have one | 1
    snap: widens the bounds of `interval` to multiples of this: units of the column, days, or
        seconds | bounds are values of the class
    digits: decimals of a published `mean` | 1 for integers, 3 for other numbers
    order: a list of the values of a text column from the first to the last, as `order = ["low",
        "medium", "high"]`; also of a sensitive column, for the ordered distance | enums have the
        order of their labels, other texts none
    allow: a list of the [warnings](../guides/policies.md#warnings) about this column that are
        meant, each with its reason, as `allow = ["near-unique: numbers of forms, which nobody else
        has"]` | every warning is given
    at_least: the finest that is published: `"day"`, `"week"`, `"month"`, `"quarter"`, `"year"` or
        `"decade"` of dates and times; a number of leading characters of texts; with a taxonomy, a
        number of levels above its deepest leaves ([floors](#floors)) | exact values of the class
        may be published
    bands: the finest that is published of numbers: half-open bands of this width, which begin at
        its multiples | exact values of the class may be published
    top: numbers of at least this are one band, `[90,)` or `90+` | no such band
    bottom: numbers below this are one band, `(,18)` or `<18` | no such band
    keep: `true` publishes the values as they are: all rows of a class have the same one ([kept
        columns](#kept-columns)) | values may be coarsened
    pooled: texts of `at_least` characters, as `["036", "059"]`: all values that begin with one of
        them are one, `000*` | every beginning is its own
    on_new_value: what becomes of values that the taxonomy lacks: `"stop"`; `"other"`, which
        publishes them under a label of that name; `"derive"`, which places codes by how they begin
        ([new values](../guides/taxonomies.md#new-values)) | `stop`
    rare: `"suppress"` leaves rows out rather than coarsen them in this column, within
        `max_suppressed` ([rare values](#rare-values)) | a row is left out only where that saves
        more than all its columns
    restore_variance: `true` stretches the means of recoding `mean` so that the column has its old
        variance, too; they lie further apart than the means of their members, and may lie outside
        of the values. A refresh groups all rows anew | means keep the mean of the column, and lose
        the variance within classes
    """

    column: str
    role: Annotated[Role, Key("text", among=tuple(Role), shown=None)]
    recoding: Annotated[str | None, _quasi("text", names="recodings", shown=None)] = None
    taxonomy: Annotated[str | None, _of_values("text")] = None
    weight: Annotated[float, _quasi("number", above=0, shown=None)] = 1.0
    snap: Annotated[float | None, _quasi("number", above=0)] = None
    digits: Annotated[int | None, _quasi("count", least=0, shown=None)] = None
    order: Annotated[tuple[str, ...] | None, _of_values("texts", empty=True, unique=True)] = None
    allow: Annotated[tuple[str, ...], Key("own", shown=None)] = ()
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

    @property
    def published_as(self) -> tuple[str, ...]:
        """The columns that readers find it in, none for an identifier or a weight."""
        if not self.role.is_published:
            return ()
        ends = PAIRS.get(self.recoding or "") if self.role is Role.QUASI else None
        return (self.column,) if ends is None else tuple(f"{self.column}{end}" for end in ends)

    def decimals(self, kind: ColumnKind) -> int:
        """Return how many decimals the means of a column of numbers have."""
        if self.digits is not None:
            return max(self.digits, 0)
        return _OF_INTEGERS if kind is ColumnKind.INTEGER else _OF_FRACTIONS

    def structure(self, kind: ColumnKind) -> Structure:
        """Return what the values of the column are to each other; kind: that of its type."""
        if self.taxonomy is not None:
            return Structure.TREE
        if kind.is_ordered:
            return Structure.LINE
        of_type = kind is ColumnKind.ORDINAL and self.recoding != "label"
        return Structure.ORDER if of_type or self.order is not None else Structure.TREE


BOUNDS, CENTER = "bounds", "center"
PAIRS: Mapping[str, tuple[str, str]] = {
    BOUNDS: ("_min", "_max"),
    CENTER: ("_center", "_radius"),
}
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

SNAPPED = frozenset({*PAIRS, "interval", "interval-text", "suppress", GLOBAL})
"""The recodings that publish no bound finer than ``snap``."""

Value = int | float | str | tuple[str, ...]
"""A parameter of a privacy model."""


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A privacy model and its parameters, such as ``("k-anonymity", {"k": 5})``.

    ``dbanon.models`` has all names and parameters. A model about sensitive values is asked
    of each sensitive column, or of ``columns``; with ``multi = "strict"`` the other sensitive
    columns join the quasi-identifier.
    """

    name: str
    params: Mapping[str, Value] = field(default_factory=dict)


Scalar = int | float | str | bool
"""A value that a condition compares with; dates and times are text, as ISO 8601 has them."""


class Comparison(StrEnum):
    """How a condition compares a column with what it says."""

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
    """What must hold of a column in every row that is published; NULL meets only ``is null``.

    column: a column of the table, with any role
    is: `=`, `<>`, `<`, `<=`, `>`, `>=`, `in`, `between`, `is null` or `is not null`
    value: what it is compared with: a number, a text, true or false, a date or time; a list for
        `in`, two values for `between`, both included | needed by all but `is null` and
        `is not null`
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
    columns: a list of the columns that it masks
    within: a list of columns: rows with other values of them are masked apart | all rows are masked
        together
    """

    method: str
    columns: tuple[str, ...]
    params: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    within: tuple[str, ...] = ()


K_ANONYMITY = "k-anonymity"
L_DIVERSITY = "l-diversity"
PROBABILISTIC = "probabilistic-l-diversity"
BUCKET, COUNT = "bucket", "count"
"""The columns of anatomy: which bucket somebody is in, and how many in it have a value."""
DEFAULT_NAME = "default"
"""Of the policy of a table that is meant when none is named."""
DROP = "drop"
"""Of ``rest``: columns that a policy does not name are left out, as identifiers are."""
GROUP = "group"
"""Of ``rows_per_subject``: publish all rows, and group persons by how many each has."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The whole description of a publication.

    table: name or schema.name, quoted as in SQL where need be
    columns: a table `[columns.NAME]` for every column of the table, or, with `rest`, for those that
        matter
    models: the [privacy models](models.md): `k = 5` and `l = 3`, short for `k-anonymity` and
        `l-diversity`; in full `[models.k-anonymity]` with `k = 5` | `--k` is needed
    algorithm: the name of an [algorithm](algorithms.md) | `auto`
    params: a table `[params]` with [parameters](algorithms.md#parameters) of the algorithm | their
        defaults
    key: a list of the columns that tell rows apart, for a view, or a table without a primary key;
        proved of the rows that are read. A live view needs a primary key | the primary key
    subject: the column that tells persons apart who may have several rows: an identifier without
        NULLs in the rows that are read, and NOT NULL for a live view; `--subject` does the same |
        every row is taken for a person
    rows_per_subject: for a `subject` with several rows: `"group"` groups persons by how many rows
        each has, and leaves out the rows of those who are too few with as many; a number is also
        the most rows that are published of anyone, the others being left out. `--rows-per-subject`
        does the same | anyone who knows how many rows a person has may learn more
    population: schema.name of the table of everybody, of whom the persons of this one are a part,
        one row each; it has the same quasi-identifiers in the same types. `--population` does the
        same | [models](models.md#models-of-a-population) that count one are refused
    max_suppressed: share of rows that may be left out, from 0 to less than 1 | 0
    block: groups blocks of about so many rows apart, as `--block` does | the whole table at once
    class_label: the column, published as it is, by which the metric `cm` judges classes | the first
        sensitive column
    allow: a list of the [warnings](../guides/policies.md#warnings) about the whole policy that are
        meant, each with its reason, as `allow = ["no-diversity: every value is public"]` | every
        warning is given
    name: tells [several policies](../guides/policies.md#several-policies-of-one-table) of one table
        apart: up to 40 of a-z, 0-9, _ and -, the first a letter; `--policy` does the same |
        `default`
    rest: `"drop"` leaves out every column that is not named, as an identifier, also one that is
        new. There is no other: a column is published only when somebody gave it a role | every
        column needs a role
    where: [conditions](#keys-of-a-condition) on columns, all of which a row must meet to be
        published; the report says how many rows do not | all rows
    sample: a share of the persons who meet `where`, between 0 and 1, of whom [a sample](#sample) is
        drawn | all of them
    labels: `true` publishes a relation beside the release, such as `anon.patients_labels`, in which
        readers look up [what is above its labels](../guides/analyst.md#labels) | `false`
    anatomy: `true` publishes quasi-identifiers as they are and the sensitive values of buckets of
        persons in a relation beside the release, [by anatomy](../guides/anatomy.md) | `false`
    erase_within: how long a [refresh](../guides/refreshing.md#a-deadline-for-leavers) may go on
        showing whoever is gone from the table: a number of days, as in `"30d"` | until those who
        left a class may go by themselves
    masking: a list of tables `[[masking]]`, the [steps](#keys-of-a-masking-step) that change values
        before rows are grouped | values are published as they are, or recoded
    pseudonym: the name of a column in which readers find what stands for the person of a row, the
        same in all relations [published for the same
        readers](../guides/linked-tables.md#pseudonyms) | nothing tells which rows are of one person
    budget: what all [counts with noise](../guides/counts.md) of the table may spend together, the
        sum of their epsilons, above 0 | `dbanon count` is refused
    """

    table: Annotated[TableName, Key("relation", shown=None)]
    columns: Annotated[tuple[ColumnRule, ...], Key("own", shown=None)]
    models: Annotated[tuple[ModelSpec, ...], Key("own", shown=None)] = ()
    algorithm: Annotated[str, Key("text", names="algorithms", shown=None, is_always=True)] = "auto"
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
    allow: Annotated[tuple[str, ...], Key("own", shown=None)] = ()
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
        Key(
            "text",
            pattern="[1-9][0-9]{0,3}d",
            otherwise="is 1 to 9999 days, as in 30d",
            shown="taken out, once gone from the table, within: {}",
        ),
    ] = None
    masking: Annotated[tuple[MaskingStep, ...], Key("own", shown="masked: {}")] = ()
    pseudonym: Annotated[str | None, Key("text", shown="pseudonym of the person: {}")] = None
    budget: Annotated[float | None, Key("number", above=0, shown="budget of counts: {}")] = None

    def completed(self, info: TableInfo) -> "Policy":
        """Return the policy with a rule for every column that ``rest`` leaves out."""
        if self.rest != DROP:
            return self
        named = {rule.column for rule in self.columns}
        rest = [column.name for column in info.columns if column.name not in named]
        rules = (ColumnRule(name, Role.IDENTIFIER) for name in rest)
        return replace(self, columns=(*self.columns, *rules))

    def without_rest(self) -> "Policy":
        """Return the policy without the rules that ``rest`` makes anyway."""
        if self.rest != DROP:
            return self
        kept = tuple(rule for rule in self.columns if rule.role is not Role.IDENTIFIER)
        return replace(self, columns=kept)

    def with_role(self, role: Role) -> tuple[ColumnRule, ...]:
        """Return the rules of that role, in column order."""
        return tuple(rule for rule in self.columns if rule.role is role)

    @property
    def weight(self) -> str | None:
        """The column of survey weights, None if no column is one."""
        return next((rule.column for rule in self.with_role(Role.WEIGHT)), None)

    @property
    def published_quasi(self) -> tuple[str, ...]:
        """The columns that the quasi-identifiers are published as, in column order.

        By anatomy, the one that tells classes apart in their place.
        """
        if self.anatomy:
            return (BUCKET,)
        return tuple(name for rule in self.with_role(Role.QUASI) for name in rule.published_as)

    @property
    def means(self) -> tuple[ColumnRule, ...]:
        """The columns that are published as means or midpoints, which lie within their classes."""
        masked = {name for step in self.masking for name in step.columns}
        return tuple(
            rule
            for rule in self.with_role(Role.QUASI)
            if rule.recoding in MEANS
            and not (self.anatomy or rule.restore_variance or rule.column in masked)
        )

    def masked(self, column: str) -> tuple[MaskingStep, ...]:
        """Return the steps that change the values of a column."""
        return tuple(step for step in self.masking if column in step.columns)

    @property
    def taxonomies(self) -> frozenset[str]:
        """The names of the taxonomies that some column is published or judged by."""
        return frozenset(rule.taxonomy for rule in self.columns if rule.taxonomy is not None)

    def keyed(self, info: TableInfo) -> TableInfo:
        """Return a relation as one whose rows are told apart by the key of the policy."""
        return replace(info, primary_key=self.key, key_flaw=None) if self.key else info

    def with_orders(self, info: TableInfo) -> "Policy":
        """Return the policy with the order of the labels of an enum, where it lists no other."""
        labels = {column.name: column.labels for column in info.columns if column.labels}
        return replace(self, columns=tuple(_in_order(rule, labels) for rule in self.columns))

    def with_listed_orders(self, info: TableInfo) -> TableInfo:
        """Return a relation whose columns have the orders that the policy lists as labels."""
        orders = {rule.column: rule.order for rule in self.columns if rule.order}
        columns = (replace(c, labels=orders.get(c.name, c.labels)) for c in info.columns)
        return replace(info, columns=tuple(columns))

    @property
    def deadline(self) -> timedelta | None:
        """How long somebody may be shown who is gone, None if nothing says."""
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
        """The least number of rows in a class; 1 when the policy does not ask for k-anonymity."""
        return plain_count(self.model(K_ANONYMITY), "k")

    @property
    def l(self) -> int:
        """The least number of distinct values of every sensitive column; 1 when not asked for."""
        return plain_count(self.model(L_DIVERSITY), "l")


@dataclass(frozen=True, slots=True)
class StoredPolicy:
    """A stored policy: since when, and the relations that serve a release by it."""

    policy: Policy
    updated_at: datetime
    served_by: tuple[TableName, ...]


@dataclass(frozen=True, slots=True)
class Version:
    """A policy as it was stored at some time, as a document; None when it was dropped.

    ``version`` counts those of one table and name. ``stored_by`` is None for what was stored
    before there was a history.
    """

    name: str
    version: int
    document: Mapping[str, object] | None
    stored_at: datetime
    stored_by: str | None


@dataclass(frozen=True, slots=True)
class Difference:
    """A key that two policies do not share, with its value in each, None where there is none."""

    key: str
    before: object
    after: object


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened to a policy: it was stored, dropped, or published by.

    ``changes`` is what storing it changed. ``release`` and ``relation`` are those of a publication.
    """

    at: datetime
    by: str | None
    policy: str
    deed: str
    version: int | None = None
    changes: tuple[Difference, ...] = ()
    release: int | None = None
    relation: TableName | None = None


def policy_option(name: str) -> str:
    """Return the option by which a command means the policy of that name; none for the default."""
    return "" if name == DEFAULT_NAME else f"--policy {name}"


def _in_order(rule: ColumnRule, labels: Mapping[str, tuple[str, ...]]) -> ColumnRule:
    """Return the rule with the order of an enum; recoding ``label`` asks for none."""
    is_compared = rule.role in {Role.QUASI, Role.SENSITIVE} and rule.recoding != "label"
    if rule.order is None and is_compared and rule.column in labels:
        return replace(rule, order=labels[rule.column])
    return rule


def least_deadline(policies: Iterable[Policy]) -> timedelta | None:
    """Return how long somebody may be shown who is gone and whom several policies are about."""
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
    """Return the count that a model asks of all classes, 1 if there is none to ask it of all."""
    if model is None or set(model.params) != {parameter}:
        return 1
    count = model.params[parameter]
    return count if isinstance(count, int) else 1
