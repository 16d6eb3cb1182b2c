"""What to publish of a table, and what must hold of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from dbanon.domain.table import ColumnKind, Structure

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from dbanon.domain.table import TableInfo, TableName


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


_OF_INTEGERS, _OF_FRACTIONS = 1, 3  # decimals of a mean


@dataclass(frozen=True, slots=True)
class ColumnRule:
    """The role of one column, and for a quasi-identifier how it is published.

    ``recoding`` names an entry of the recoding registry, None picks the default of the column's
    kind; ``taxonomy`` names a stored taxonomy; ``order`` lists the values of a column of texts
    from the first to the last, and may do so for a sensitive column, too; ``weight`` scales the
    column's loss; ``snap`` widens interval bounds to multiples of it (days for dates, seconds for
    timestamps); ``digits`` is the number of decimals of a published mean or midpoint; with
    ``restore_variance`` means are stretched to the variance of the column; ``allow`` lists the
    cautions about the column that are meant, each as ``code: why``.

    Nothing finer is published than what these say: ``at_least`` is a period of PERIODS for dates
    and times, a number of leading characters for texts, a number of levels above the deepest leaves
    for a taxonomy; ``bands`` is the width of half-open bands of numbers, which begin at multiples
    of it; numbers of at least ``top``, and below ``bottom``, are one band each; texts that begin
    with one of ``pooled`` are one cell. With ``keep`` the column is published as it is, and all
    rows of a class have the same value of it. ``rare`` is ``"suppress"`` where rows are left out
    rather than coarsened in this column, as far as the policy allows.

    ``on_new_value`` is one of ON_NEW_VALUE: whether a value that the taxonomy lacks stops the
    publication, which is the default, or is published as OTHER, or is derived: placed where the
    way it begins says, and else stops it.
    """

    column: str
    role: Role
    recoding: str | None = None
    taxonomy: str | None = None
    weight: float = 1.0
    snap: float | None = None
    digits: int | None = None
    order: tuple[str, ...] | None = None
    allow: tuple[str, ...] = ()
    at_least: str | int | None = None
    bands: float | None = None
    top: float | None = None
    bottom: float | None = None
    keep: bool = False
    pooled: tuple[str, ...] | None = None
    on_new_value: str | None = None
    rare: str | None = None
    restore_variance: bool = False

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


STOP, OTHER, DERIVE = "stop", "other", "derive"
ON_NEW_VALUE = (STOP, OTHER, DERIVE)

PERIODS = ("day", "week", "month", "quarter", "year", "decade")
"""What ``at_least`` can be of dates and times."""

SUPPRESS = "suppress"
"""What ``rare`` can be."""

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

    ``value`` is a tuple for ``in`` and ``between``, None where nothing is compared.
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

    ``dbanon.anonymization.registry`` has all methods. With ``within`` rows are masked apart that
    have other values of those columns.
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

    ``name`` tells the policies of one table apart; ``rest`` says what becomes of columns that are
    not named, which must not be without it; ``where`` lists what rows must meet to be read at all;
    ``sample`` is the share of the persons in these rows, in (0, 1), that is drawn, None for all;
    ``masking`` lists what is done to values before rows are grouped, one step after the other;
    with ``labels`` readers get what is above each published label in a relation of its own;
    with ``anatomy`` quasi-identifiers are published as they are, and the sensitive values of
    buckets of persons in a relation of their own.
    ``max_suppressed`` is the largest fraction of rows, in [0, 1), that may be left out;
    ``key`` names the columns that tell rows apart in place of a primary key, which is proved of the
    rows that are read;
    ``subject`` names the column that identifies a person, when a person may own several rows;
    ``rows_per_subject`` keeps who knows how many they are from knowing more: a number is the most
    rows of a person that are published, and persons are grouped by how many each has left;
    ``population`` names the table of everybody, of whom the persons of this one are a part;
    ``block`` has the algorithm group blocks of about so many rows apart; ``class_label`` names the
    published column by which the classification metric judges, by default the first sensitive one;
    ``allow`` lists the cautions about all of it that are meant, each as ``code: why``;
    ``erase_within`` is how long somebody may be shown who is gone from the table, as in ``30d``;
    ``pseudonym`` names the column in which readers find what stands for the person of a row, the
    same in all relations that are judged together, None where nothing does; ``budget`` is what all
    counts with noise may spend (epsilon), None where there are to be none.
    """

    table: TableName
    columns: tuple[ColumnRule, ...]
    models: tuple[ModelSpec, ...] = ()
    algorithm: str = "auto"
    params: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    key: tuple[str, ...] = ()
    subject: str | None = None
    rows_per_subject: int | str | None = None
    population: TableName | None = None
    max_suppressed: float = 0.0
    block: int | None = None
    class_label: str | None = None
    allow: tuple[str, ...] = ()
    name: str = DEFAULT_NAME
    rest: str | None = None
    where: tuple[Condition, ...] = ()
    sample: float | None = None
    labels: bool = False
    anatomy: bool = False
    erase_within: str | None = None
    masking: tuple[MaskingStep, ...] = ()
    pseudonym: str | None = None
    budget: float | None = None

    def completed(self, info: TableInfo) -> Policy:
        """Return the policy with a rule for every column that ``rest`` leaves out."""
        if self.rest != DROP:
            return self
        named = {rule.column for rule in self.columns}
        rest = [column.name for column in info.columns if column.name not in named]
        rules = (ColumnRule(name, Role.IDENTIFIER) for name in rest)
        return replace(self, columns=(*self.columns, *rules))

    def without_rest(self) -> Policy:
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

    def with_orders(self, info: TableInfo) -> Policy:
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


def plain_count(model: ModelSpec | None, parameter: str) -> int:
    """Return the count that a model asks of all classes, 1 if there is none to ask it of all."""
    if model is None or set(model.params) != {parameter}:
        return 1
    count = model.params[parameter]
    return count if isinstance(count, int) else 1
