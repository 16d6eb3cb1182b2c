"""A release that is being published, with the SQL names and expressions of its objects."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from psycopg import sql

from dbanon.db.queries import (
    Body,
    equal_text,
    key_values,
    keyed_hash,
    lasting_value,
    relation,
    template,
)
from dbanon.db.releases.immutability import class_column, seen
from dbanon.db.releases.replacements import made_up
from dbanon.db.schemas import DATA_SCHEMA
from dbanon.domain.policy import BOUNDS, BUCKET, CENTER, GLOBAL, PAIRS, Role
from dbanon.domain.table import ColumnKind, TableName

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from decimal import Decimal
    from uuid import UUID

    from dbanon.domain.policy import Policy
    from dbanon.domain.release import ReleaseKind, Sums
    from dbanon.domain.table import ColumnInfo, Partition, TableInfo


_POINTS = {
    ColumnKind.DECIMAL: "numeric",
    ColumnKind.FLOAT: "numeric",
    ColumnKind.DATE: "date",
    ColumnKind.TIMESTAMP: "timestamp",
    ColumnKind.TIMESTAMPTZ: "timestamptz",
}
_RANGES = {
    "int4": "int4range",
    "int8": "int8range",
    "numeric": "numrange",
    "date": "daterange",
    "timestamp": "tsrange",
    "timestamptz": "tstzrange",
}


def published_type(recoding: str, column: ColumnInfo) -> str:
    """Return the type of a published column (of two, the first); integers keep their width."""
    kind, whole = column.kind, "int8" if column.base_type == "int8" else "int4"
    if recoding == BOUNDS:
        return _POINTS.get(kind, whole)
    if recoding == "interval" or (recoding == GLOBAL and kind.is_ordered):
        return _RANGES[_POINTS.get(kind, whole)]
    if recoding in {"mean", "midpoint", CENTER}:
        return "numeric" if kind is ColumnKind.INTEGER else _POINTS[kind]
    if recoding in {"median", "mode", "set", "cell-suppression"}:
        exact = {ColumnKind.INTEGER: column.base_type, ColumnKind.FLOAT: "float8"}
        scalar = exact.get(kind) or _POINTS.get(kind, "text")
        return f"{scalar}[]" if recoding == "set" else scalar
    return "text"


@dataclass(frozen=True, slots=True)
class Publication:
    """One release that is being published; ``id`` names its private tables."""

    id: int
    info: TableInfo
    policy: Policy
    kind: ReleaseKind
    view: TableName
    recodings: tuple[tuple[str, str], ...]
    """(column, recoding) of every quasi-identifier, in policy order."""
    trees: Mapping[str, object] = field(default_factory=dict)
    """The taxonomies of sensitive columns that the promise needs, as its comment holds them."""
    former: int | None = None
    """The number of the private tables that are filled anew, None when new ones are served."""
    pin: sql.Identifier | None = None
    """The name by which publishing reads the source, if it is not its own."""

    withdrawn: tuple[int, ...] | None = None
    """The classes that the former copy loses, when it keeps all others; None when it is new."""
    key: UUID | None = None
    """The key by which its persons are remembered, if they are not by another one already, and by
    which their pseudonyms are made."""
    former_key: UUID | None = None
    """The key by which persons are remembered in the series with which it is compared alone."""
    places: int | None = None
    """The number of the table for the places of its rows, None if they are not stored."""
    of_source: tuple[int, Decimal] | None = None
    """The number of rows of the source and the sum of their keys, None if places are not stored."""
    gained: Sums | None = None
    """By how much the sums of the rows of the former copy have changed, None when it is new."""
    lost: int = 0
    """The number of classes of the former copy that are withdrawn, or written again with others."""
    first: str | None = "(0,0)"
    """The place of the first row of the copy that was written, None without one."""

    @property
    def data_id(self) -> int:
        """The number of the private tables that are served."""
        return self.id if self.former is None else self.former

    @property
    def membership_id(self) -> int:
        """The number of the membership tables; a table release needs them only while publishing."""
        return self.data_id if self.kind.is_live else self.id

    @property
    def rows(self) -> sql.Identifier:
        """The private membership table."""
        return data_table("rows", self.membership_id)

    @property
    def groups(self) -> sql.Identifier:
        """The private table of group values."""
        return data_table("groups", self.membership_id)

    @property
    def release(self) -> sql.Identifier:
        """The private copy of a table release."""
        return data_table("release", self.data_id)

    @property
    def seen(self) -> sql.Identifier:
        """The function that detects a snapshot older than the release."""
        return seen(self.data_id)

    @property
    def candidate(self) -> TableName:
        """The view that is proved before readers get an equal one; exists only while publishing."""
        return TableName(DATA_SCHEMA, f"candidate_{self.id}")

    @property
    def draft(self) -> sql.Identifier:
        """The copied values of each code of ``rows``; exists only while publishing."""
        return data_table("draft", self.id)

    @property
    def persons(self) -> sql.Identifier:
        """The table of persons for which models are proved; exists only while publishing."""
        return data_table("persons", self.id)

    @property
    def source(self) -> sql.Identifier:
        """The published table."""
        return relation(self.info.name)

    @property
    def stage(self) -> sql.Identifier:
        """The temporary copy of the needed source columns; exists only while publishing."""
        return sql.Identifier("pg_temp", f"stage_{self.id}")

    @property
    def frozen(self) -> sql.Identifier:
        """The temporary table of values that do not change; exists only while publishing."""
        return sql.Identifier("pg_temp", f"frozen_{self.id}")

    @property
    def codes(self) -> sql.Identifier:
        """The temporary table that maps codes to values; exists only while publishing."""
        return sql.Identifier("pg_temp", f"codes_{self.id}")

    @property
    def numbered(self) -> sql.Identifier:
        """The temporary view of class numbers and sensitive values; only while publishing."""
        return sql.Identifier("pg_temp", f"numbered_{self.id}")

    @property
    def reading(self) -> sql.Identifier:
        """The relation from which publishing reads the source."""
        return self.pin or self.source

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The key columns of ``rows``; renamed, so that they cannot collide with other columns."""
        return tuple(f"k{i}" for i in range(1, len(self.info.primary_key) + 1))

    @property
    def coded(self) -> Mapping[str, str]:
        """The columns that a draft has by code, each with its name there."""
        rules = self.policy.with_role(Role.SENSITIVE) if self.drafted else ()
        return {rule.column: f"v{i}" for i, rule in enumerate(rules, 1)}

    @property
    def written(self) -> Mapping[str, str]:
        """The columns that ``rows`` has until they are copied, each with its name there."""
        names = [name for name in self.copied if self.drafted and name not in self.coded]
        return {name: f"v{i}" for i, name in enumerate(names, 1)}

    @property
    def noted_columns(self) -> tuple[str, ...]:
        """The columns of ``rows`` that are dropped once the membership is stored in the history."""
        placed = () if self.places is None else ("place",)
        return () if self.kind.is_live else (*self.written.values(), "value", *placed)

    def keys(self, *, of: str) -> list[sql.Composed]:
        """Compose the primary key of the relation ``of`` in base types, without domain code."""
        return key_values(self.info, of=of)

    def named_keys(self, *, of: str) -> list[sql.Composed]:
        """Compose the primary key of the relation ``of`` under the names that ``rows`` has."""
        return self._with_keys("{1} AS {0}", of=of)

    def _with_keys(self, form: str, *, of: str) -> list[sql.Composed]:
        known = zip(self.key_columns, self.keys(of=of), strict=True)
        return [sql.SQL(form).format(sql.Identifier(name), key) for name, key in known]

    @property
    def join(self) -> sql.Composed:
        """The join of membership rows ``r`` with source rows ``s``."""
        return sql.SQL(" AND ").join(self._with_keys("r.{} = {}", of="s"))

    @property
    def joined(self) -> dict[str, sql.Composable]:
        """The slots of a statement that joins the source with the membership and the groups."""
        return {"source": self.reading, "rows": self.rows, "groups": self.groups, "join": self.join}

    @property
    def copied_from(self) -> dict[str, sql.Composable]:
        """The same slots for the copy and its companions, which may be made from a draft."""
        draft = {"source": self.draft, "join": sql.SQL("s.code = r.value")}
        return {**self.joined, **(draft if self.drafted else {})}

    @property
    def members(self) -> TableName:
        """The private view of ``live_members``, from which guards read the source."""
        return TableName(DATA_SCHEMA, f"members_{self.data_id}")

    def live_members(self, columns: Mapping[str, sql.Identifier]) -> sql.Composed:
        """Compose the query of the class and the given columns of each row of a live release."""
        selected = [
            sql.SQL(", s.{} AS {}").format(sql.Identifier(name), alias)
            for name, alias in columns.items()
        ]
        return self.live("live.live_members", columns=sql.SQL("").join(selected))

    def live(self, name: str, **slots: sql.Composable) -> sql.Composed:
        """Compose a template for the source, or for each of its leaf partitions.

        The view is bound to the present partitions: later ones are not released, detached ones
        stay.
        """
        parts = [(relation(leaf.name), self._join_leaf(i)) for i, leaf in self.numbered_leaves]
        return sql.SQL("\n UNION ALL\n").join(
            template(name, source=source, join=join, rows=self.rows, **slots)
            for source, join in parts or [(self.source, self.join)]
        )

    @property
    def numbered_leaves(self) -> list[tuple[int, Partition]]:
        """The leaf partitions, with the number that ``rows`` has for them."""
        return list(enumerate(self.info.leaves, 1))

    def _join_leaf(self, number: int) -> sql.Composed:
        return sql.SQL("{} AND r.leaf = {}").format(self.join, sql.Literal(number))

    @property
    def names(self) -> tuple[str, ...]:
        """The published columns in the order of the source; added columns come last."""
        rules = {rule.column: rule for rule in self.policy.columns}
        names = [name for column in self.info.columns for name in rules[column.name].published_as]
        if self.policy.anatomy:
            beside = {rule.column for rule in self.policy.with_role(Role.SENSITIVE)}
            names = [*(name for name in names if name not in beside), BUCKET]
        return (*names, *([] if self.policy.pseudonym is None else [self.policy.pseudonym]))

    @property
    def types(self) -> tuple[str, ...]:
        """The published type of every quasi-identifier, in policy order."""
        return self._typed(published_type)

    @property
    def stored_types(self) -> tuple[str, ...]:
        """The type of every quasi-identifier in the table of groups; a pair is one range."""
        return self._typed(
            lambda recoding, column: published_type(
                "interval" if recoding in PAIRS else recoding, column
            )
        )

    def _typed(self, type_of: Callable[[str, ColumnInfo], str]) -> tuple[str, ...]:
        if self.policy.anatomy:
            return ("int4",)  # of the number of a bucket
        return tuple(type_of(r, self.info.column(c)) for c, r in self.recodings)

    @property
    def copied(self) -> tuple[str, ...]:
        """The columns that are published unchanged, in the order of the source."""
        made = {*self.policy.published_quasi, *self.policy.linking}
        return tuple(name for name in self.names if name not in made)

    @property
    def drafted(self) -> bool:
        """True if the copy can be built from memory."""
        return not self.kind.is_live and is_restored(self.policy, self.info)

    @property
    def class_column(self) -> sql.Identifier:
        """The column of the private copy with the class number; readers do not see it."""
        return class_column(self.names)

    def class_number(self, of: str, columns: Sequence[str]) -> sql.Composed:
        """Compose the number of a class from the values of its columns in the relation ``of``."""
        values = [
            (sql.Literal(f"q{i}"), sql.Identifier(of, one)) for i, one in enumerate(columns, 1)
        ]
        pairs = [sql.SQL("{}, {}").format(*value) for value in values]
        parts = [sql.SQL(", ").join(pairs[i : i + _PAIRS]) for i in range(0, len(pairs), _PAIRS)]
        published = sql.SQL(" || ").join(map(sql.SQL("jsonb_build_object({})").format, parts))
        names = sql.Literal(repr([column for column, _ in self.recodings]))
        document = sql.SQL("{} || ({})::text").format(names, published)
        return template("histories.class_number", hash=keyed_hash(document, sql.Identifier("k")))

    @property
    def number_of_group(self) -> sql.Composed:
        """The class number of a group ``g``, by the key ``k``."""
        return self.class_number("g", [f"q{i}" for i, _ in enumerate(self.recodings, 1)])

    def columns(self) -> sql.Composed:
        """Compose the select list: recoded columns from the groups, all others from ``s``."""
        values = dict(self._recoded())
        if self.policy.pseudonym is not None:
            values[self.policy.pseudonym] = self._pseudonym
        for rule in self.policy.replaced:
            values[rule.column] = made_up(self.policy, rule, self.key)
        values |= {name: self.value(name) for name in self.copied}
        return sql.SQL(", ").join(
            sql.SQL("{} AS {}").format(values[name], sql.Identifier(name)) for name in self.names
        )

    def value(self, name: str) -> sql.Composable:
        """Compose the value of a column that is published unchanged."""
        if self.drafted:
            of, names = ("r", self.written) if name in self.written else ("s", self.coded)
            return sql.Identifier(of, names[name])
        return lasting_value(self.info.column(name), sql.Identifier("s", name))

    @property
    def person(self) -> tuple[str, ...]:
        """The columns that identify a person: the subject, or the key if each row is a person."""
        subject = self.policy.subject
        return self.info.primary_key if subject is None else (subject,)

    @property
    def made_up(self) -> sql.Composable:
        """The join with the hash from which replacements are made, if there are any."""
        if not self.policy.replaced:
            return sql.SQL("")
        slots = {"key": sql.Literal(self.key), "person": self._identity}
        return template("releases.replacement_hash", **slots)

    @property
    def _pseudonym(self) -> sql.Composed:
        document = sql.SQL("'pseudonym' || json_build_array({})::text").format(self._identity)
        key = template("releases.key_of_persons", key=sql.Literal(self.key))
        return template("releases.pseudonym", hash=keyed_hash(document, key))

    @property
    def _identity(self) -> sql.Composed:
        """The texts that identify the person of a row."""
        columns = [self.info.column(name) for name in self.person]
        of_rows = [sql.Identifier("r", name) for name in self.key_columns]
        of_source = [sql.Identifier("s", name) for name in self.person]
        values = of_rows if self.drafted else of_source
        return sql.SQL(", ").join(equal_text(*one) for one in zip(columns, values, strict=True))

    def _recoded(self) -> Iterator[tuple[str, sql.Composable]]:
        """Yield each published quasi-identifier with its value, or the bucket, from ``g``."""
        if self.policy.anatomy:
            yield BUCKET, sql.Identifier("g", "q1")
            return
        rules = self.policy.with_role(Role.QUASI)
        for i, (rule, stored) in enumerate(zip(rules, self.stored_types, strict=True), 1):
            value = sql.Identifier("g", f"q{i}")
            if rule.recoding is not None and rule.recoding in PAIRS:
                columns = pair(rule.recoding, stored, value)
                yield from zip(rule.published_as, columns, strict=True)
            else:
                yield rule.column, value


_PAIRS = 50  # that a function takes at most
# Types that texts restore: not numeric, read without trailing zeros, nor char, without blanks.
_EXACT_TEXTS = frozenset(
    {"bool", "int2", "int4", "int8", "float4", "float8", "text", "varchar", "name", "uuid"}
    | {"date", "timestamp", "timestamptz"}
)


def is_restored(policy: Policy, info: TableInfo) -> bool:
    """Return True if what is read restores the published values, by anatomy of integers or text."""
    quasi = [info.column(rule.column) for rule in policy.with_role(Role.QUASI) if policy.anatomy]
    is_rounded = any(c.kind.is_ordered and c.kind is not ColumnKind.INTEGER for c in quasi)
    is_linked = policy.linking and not policy.is_one_row(info)
    columns = [*quasi, *(info.column(rule.column) for rule in policy.with_role(Role.SENSITIVE))]
    return not (is_rounded or is_linked or policy.with_role(Role.INSENSITIVE)) and all(
        (column.base_schema, column.shown) == ("pg_catalog", None)
        and column.base_type in _EXACT_TEXTS
        and not column.foreign_collation
        for column in columns
    )


def private_statement(made: sql.Identifier) -> sql.Composed:
    """Compose what takes a new relation from all but its owner, and its replica identity."""
    quoted = sql.Literal(made.as_string())
    body = template("releases.make_private_body", relation=made, quoted=quoted)
    return template("releases.make_private", body=Body(body))


def data_table(prefix: str, release_id: int) -> sql.Identifier:
    """Name a private object of a release."""
    return sql.Identifier(DATA_SCHEMA, f"{prefix}_{release_id}")


_OF_STEPS = frozenset({"int4range", "int8range", "daterange"})
_PLUS = sql.SQL("({} OPERATOR(pg_catalog.+) {})")
_MINUS = sql.SQL("({} OPERATOR(pg_catalog.-) {})")
_HALF = sql.SQL("({} OPERATOR(pg_catalog./) 2)")


def pair(recoding: str, stored: str, value: sql.Composable) -> tuple[sql.Composed, sql.Composed]:
    """Compose the two columns of a range, bounds or center and radius; NULL if it is open."""
    least = sql.SQL("pg_catalog.lower({})").format(value)
    greatest = sql.SQL("pg_catalog.upper({})").format(value)
    if stored in _OF_STEPS:  # they end before their upper bound, however they began
        greatest = _MINUS.format(greatest, sql.Literal(1))
    return (least, greatest) if recoding != CENTER else _middle(stored, least, greatest)


def _middle(
    stored: str, least: sql.Composable, greatest: sql.Composable
) -> tuple[sql.Composed, sql.Composed]:
    """Compose the center and the radius of the range between two bounds."""
    length = _MINUS.format(greatest, least)
    half = _HALF.format(length)
    if stored == "daterange":  # a center between two days is the earlier, and the radius the larger
        return _PLUS.format(least, half), _MINUS.format(length, half)
    # Half of an odd number of microseconds is rounded: the radius is the larger half.
    radius = sql.SQL("GREATEST({}, {})").format(half, _MINUS.format(length, half))
    if stored == "tsrange":
        return _PLUS.format(least, half), radius
    in_utc = sql.SQL("pg_catalog.timezone('UTC', {})")
    if stored == "tstzrange":  # hours have the same length in every reader's time zone
        center = in_utc.format(_PLUS.format(in_utc.format(least), half))
        days = sql.SQL("pg_catalog.date_part('day', {})::pg_catalog.int4").format(radius)
        time = _MINUS.format(radius, sql.SQL("pg_catalog.make_interval(days => {})").format(days))
        hours = sql.SQL("pg_catalog.make_interval(hours => {} OPERATOR(pg_catalog.*) 24)").format(
            days
        )
        return center, _PLUS.format(time, hours)
    halved = sql.SQL("({} OPERATOR(pg_catalog.*) 0.5)")
    exact = sql.SQL("{}::pg_catalog.numeric")
    center = halved.format(_PLUS.format(exact.format(least), greatest))
    return center, halved.format(_MINUS.format(exact.format(greatest), least))
