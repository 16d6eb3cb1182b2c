"""Tables as described by the catalog."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum

from dbanon.domain.errors import ConfigError, TableNotFound
from dbanon.domain.text import command, is_seen

LONGEST_NAME = 63
"""Maximum bytes of a name in PostgreSQL."""

UNPRINTED = {"is_printed": False}
"""The metadata of a field that no output has."""

SYSTEM_COLUMNS = frozenset({"tableoid", "ctid", "xmin", "cmin", "xmax", "cmax"})
"""The columns that every table has besides its own."""

# Of a quoted name that begins with U&: a backslash, or the number of a character.
_ESCAPE = re.compile(r"\\(?:(\\)|\+([0-9A-Fa-f]{6})|([0-9A-Fa-f]{4})|)")


def is_name(text: str) -> bool:
    """Return True if PostgreSQL accepts a text as a name."""
    size = len(text.encode(errors="replace"))
    surrogates = any("\ud800" <= character <= "\udfff" for character in text)
    return 0 < size <= LONGEST_NAME and "\x00" not in text and not surrogates


@dataclass(frozen=True, slots=True, order=True)
class TableName:
    """The name of a relation; ``schema`` is None until the catalog has resolved it."""

    schema: str | None
    name: str

    @classmethod
    def parse(cls, text: str | TableName) -> TableName:
        """Read ``name`` or ``schema.name`` as SQL does: quoted parts keep their case."""
        if isinstance(text, TableName):
            return text
        parts = _split_identifiers(text)
        if len(parts) == 1:
            return cls(None, parts[0])
        if len(parts) == 2:  # noqa: PLR2004 - a schema and a name
            return cls(parts[0], parts[1])
        msg = f"{text!r} is not a table name: write name or schema.name"
        raise ConfigError(msg, hint='quote odd names as SQL does: \'"My Schema"."my table"\'')

    def __str__(self) -> str:
        """Spell it so that ``parse`` reads it back."""
        name = quote_identifier(self.name)
        return name if self.schema is None else f"{quote_identifier(self.schema)}.{name}"


def quote_identifier(name: str) -> str:
    """Quote a name as SQL does, for display; one with invisible characters becomes ``U&"..."``."""
    if name.isascii() and name.isidentifier() and name == name.lower():
        return name
    doubled = name.replace('"', '""')
    if all(map(is_seen, name)):
        return f'"{doubled}"'
    escaped = doubled.replace("\\", "\\\\")
    return f'U&"{"".join(c if is_seen(c) else _unicode(c) for c in escaped)}"'


def _unicode(character: str) -> str:
    code = ord(character)
    return f"\\{code:04X}" if code < 1 << 16 else f"\\+{code:06X}"


def _split_identifiers(text: str) -> list[str]:
    parts, rest = [], text
    while True:
        if rest.startswith('"'):
            part, rest = _read_quoted(rest)
        elif rest[:3].upper() == 'U&"':
            part, rest = _read_quoted(rest[2:])
            part = _unescaped(part)
        else:
            part, dot, tail = rest.partition(".")
            part, rest = part.lower(), dot + tail
            if '"' in part:
                part = ""
        if not part or "\x00" in part or (rest and not rest.startswith(".")):
            msg = f"{text!r} is not a table name"
            raise ConfigError(msg, hint="quote odd names as SQL does: '\"odd name\"'")
        parts.append(part)
        if not rest:
            return parts
        rest = rest[1:]


def _read_quoted(text: str) -> tuple[str, str]:
    """Split off a leading quoted identifier; the name is empty if the quote never closes."""
    end = text.find('"', 1)
    while end >= 0 and text[end : end + 2] == '""':
        end = text.find('"', end + 2)
    return text[1 : max(end, 1)].replace('""', '"'), text[end + 1 :] if end > 0 else ""


def _unescaped(name: str) -> str:
    """Read the escapes of ``U&"..."``; the name is empty if one is invalid."""
    try:
        return _ESCAPE.sub(_character, name)
    except ValueError:
        return ""


def _character(escape: re.Match[str]) -> str:
    if escape[1]:
        return "\\"
    character = chr(int(escape[2] or escape[3] or "", 16))
    character.encode()  # refuses a surrogate
    return character


class ColumnKind(StrEnum):
    """How the values of a column compare, which determines its recodings."""

    INTEGER = "integer"
    DECIMAL = "decimal"
    FLOAT = "float"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMPTZ = "timestamptz"
    BOOLEAN = "boolean"
    ORDINAL = "ordinal"
    CATEGORY = "category"
    OTHER = "other"

    @property
    def is_ordered(self) -> bool:
        """True if values lie on a line with distances."""
        return self not in _OFF_THE_LINE

    @property
    def is_number(self) -> bool:
        """True for integers, decimals and floats."""
        return self in _NUMBERS

    @property
    def is_moment(self) -> bool:
        """True for dates and times."""
        return self in _MOMENTS

    @property
    def has_order(self) -> bool:
        """True if the type itself orders values."""
        return self.is_ordered or self in {ColumnKind.BOOLEAN, ColumnKind.ORDINAL}

    @property
    def can_be_quasi(self) -> bool:
        """True if the column can be a quasi-identifier."""
        return self is not ColumnKind.OTHER


_NUMBERS = frozenset({ColumnKind.INTEGER, ColumnKind.DECIMAL, ColumnKind.FLOAT})
_MOMENTS = frozenset({ColumnKind.DATE, ColumnKind.TIMESTAMP, ColumnKind.TIMESTAMPTZ})
_OFF_THE_LINE = frozenset(
    {ColumnKind.BOOLEAN, ColumnKind.ORDINAL, ColumnKind.CATEGORY, ColumnKind.OTHER}
)


class Structure(StrEnum):
    """Relation of the values of a quasi-identifier to each other.

    Places on a ``line``, as numbers and dates; ranks in a listed ``order``; or leaves of a
    ``tree``, with one level if nothing is known of the values.
    """

    LINE = "line"
    ORDER = "order"
    TREE = "tree"


# Types of PostgreSQL, and arrays of them. All others may write equal values in several ways, as
# interval does: '1 day' and '24:00:00'; or may begin to.
_EQUAL_BY_TEXT = frozenset(
    {"bool", "int2", "int4", "int8", "oid", "money", "bit", "varbit", "bytea", "uuid", "pg_lsn"}
    | {"text", "varchar", "bpchar", "char", "name", "inet", "cidr", "macaddr", "macaddr8"}
    | {"date", "time", "timetz", "timestamp", "timestamptz"}
    | {"int4range", "int8range", "daterange", "tsrange", "tstzrange"}
)
_SPELLED_ALIKE = frozenset({"numeric", "float4", "float8", "interval"})  # but in arrays


@dataclass(frozen=True, slots=True)
class ColumnInfo:
    """One column.

    ``type``: declared type as ``format_type`` prints it; ``base_type``: type below all domains, in
    ``base_schema``; ``labels``: of an enum in order; ``is_virtual``: generated on reading;
    ``shown``: built-in type of the published values, None for its own; ``foreign_collation``: not
    PostgreSQL's; ``loose_collation``: different texts may be equal.
    """

    name: str
    type: str
    base_type: str
    kind: ColumnKind
    base_schema: str = "pg_catalog"
    nullable: bool = True
    comment: str | None = None
    generated: bool = False
    identity: bool = False
    labels: tuple[str, ...] = ()
    user_defined: bool = False
    has_equality: bool = True
    is_domain: bool = False
    is_virtual: bool = False
    shown: str | None = None
    foreign_collation: bool = False
    loose_collation: bool = False

    @property
    def is_equal_by_text(self) -> bool:
        """True if published values are equal if and only if their texts are."""
        if self.loose_collation:
            return False
        published = self.base_type if self.base_schema == "pg_catalog" else self.shown or "text"
        name = published.removeprefix("_")
        return name in _EQUAL_BY_TEXT or published in _SPELLED_ALIKE


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """Columns that reference another table."""

    columns: tuple[str, ...]
    table: TableName


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition, a leaf unless of kind ``p``; ancestors: OIDs, from itself up to the root."""

    oid: int
    name: TableName
    relkind: str
    ancestors: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Below:
    """A relation that a view reads."""

    name: TableName
    relkind: str
    row_security: bool


@dataclass(frozen=True, slots=True)
class TableInfo:
    """One relation. ``oid`` addresses it; ``primary_key`` is () if it has none.

    A policy's key replaces ``primary_key`` and is proved on the rows read. ``key_flaw``: why the
    key does not always identify rows, None if it does.
    """

    oid: int
    name: TableName
    relkind: str
    columns: tuple[ColumnInfo, ...]
    primary_key: tuple[str, ...]
    key_flaw: str | None = None
    row_security: bool = False
    has_children: bool = False
    has_parents: bool = False
    comment: str | None = None
    partitions: tuple[Partition, ...] = ()
    """Of a partitioned table: itself and all below it."""
    below: tuple[Below, ...] = ()
    """Of a view or a materialized view: all that it is made of."""
    volatile: tuple[TableName, ...] = ()
    """The functions that a view calls and that may return something else at each reading."""
    sampled: float | None = field(default=None, metadata=UNPRINTED)
    """Share of the pages of a table that is read in place of all, for estimates."""

    @property
    def is_table(self) -> bool:
        """True for a table, whose key PostgreSQL enforces."""
        return self.relkind in {"r", "p"}

    @property
    def is_computed(self) -> bool:
        """True if rows are computed on reading, so that two readings may differ."""
        return self.relkind in {"v", "f"}

    @property
    def foreign(self) -> tuple[TableName, ...]:
        """The foreign tables that it reads."""
        parts: tuple[TableInfo | Below | Partition, ...] = (self, *self.below, *self.leaves)
        return tuple(part.name for part in parts if part.relkind == "f")

    @property
    def leaves(self) -> tuple[Partition, ...]:
        """The partitions that hold rows."""
        return tuple(part for part in self.partitions if part.relkind != "p")

    def column(self, name: str) -> ColumnInfo:
        """Return the column of that name."""
        for column in self.columns:
            if column.name == name:
                return column
        msg = f"{self.name} has no column {quote_identifier(name)}"
        raise TableNotFound(msg, hint=command("dbanon inspect", self.name))


@dataclass(frozen=True, slots=True)
class ColumnStats:
    """Rows of a table, and NULLs, distinct other values and interquartile range of a column."""

    n_rows: int
    n_null: int
    n_distinct: int
    spread: float | None = None
