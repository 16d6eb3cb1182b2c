"""What the catalog says of a table."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from dbanon.domain.errors import ConfigError, TableNotFound
from dbanon.domain.text import command, is_seen

LONGEST_NAME = 63
"""How many bytes PostgreSQL keeps of a name."""

SYSTEM_COLUMNS = frozenset({"tableoid", "ctid", "xmin", "cmin", "xmax", "cmax"})
"""The columns that every table has besides its own."""

# Of a quoted name that begins with U&: a backslash, or the number of a character.
_ESCAPE = re.compile(r"\\(?:(\\)|\+([0-9A-Fa-f]{6})|([0-9A-Fa-f]{4})|)")


def is_name(text: str) -> bool:
    """Whether PostgreSQL takes a text for a name."""
    size = len(text.encode(errors="replace"))
    surrogates = any("\ud800" <= character <= "\udfff" for character in text)
    return 0 < size <= LONGEST_NAME and "\x00" not in text and not surrogates


@dataclass(frozen=True, slots=True, order=True)
class TableName:
    """The name of a relation; ``schema`` is None until the catalog has resolved it."""

    schema: str | None
    name: str

    @classmethod
    def parse(cls, text: str) -> TableName:
        """Read ``name`` or ``schema.name`` the way SQL does: quoted parts keep their case."""
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
    """Quote a name as SQL does; one that is not seen as it is becomes ``U&"..."``.

    For display and for ``TableName.parse``; what is run is composed with psycopg instead.
    """
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
    """Split off a leading quoted identifier; the name is empty when the quote never closes."""
    end = text.find('"', 1)
    while end >= 0 and text[end : end + 2] == '""':
        end = text.find('"', end + 2)
    return text[1 : max(end, 1)].replace('""', '"'), text[end + 1 :] if end > 0 else ""


def _unescaped(name: str) -> str:
    """Read the escapes of ``U&"..."``; the name is empty when one of them is wrong."""
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
    """How the values of a column compare, which decides how they can be recoded."""

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
        """Whether values lie on a line, each at a distance from the others."""
        return self not in _OFF_THE_LINE

    @property
    def is_moment(self) -> bool:
        """Whether values are dates or times."""
        return self in _MOMENTS

    @property
    def has_order(self) -> bool:
        """Whether the type itself says which of two values comes first."""
        return self.is_ordered or self in {ColumnKind.BOOLEAN, ColumnKind.ORDINAL}

    @property
    def can_be_quasi(self) -> bool:
        """Whether the column can be a quasi-identifier."""
        return self is not ColumnKind.OTHER


_MOMENTS = frozenset({ColumnKind.DATE, ColumnKind.TIMESTAMP, ColumnKind.TIMESTAMPTZ})
_OFF_THE_LINE = frozenset(
    {ColumnKind.BOOLEAN, ColumnKind.ORDINAL, ColumnKind.CATEGORY, ColumnKind.OTHER}
)


class Structure(StrEnum):
    """What the values of a quasi-identifier are to each other, as algorithms see them.

    Places on a ``line``, as numbers and dates are; ranks in an ``order`` that somebody listed; or
    leaves of a ``tree``, which has one level where nothing is known of the values.
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

    ``type`` is the declared type as ``format_type`` prints it; ``base_type`` the name of the
    type below all domains, ``base_schema`` its schema; ``labels`` the labels of an enum in order.
    ``is_virtual`` is a generated column that is computed on reading. ``shown`` is the built-in type
    in which its values are published, None for its own. ``foreign_collation``: it has one that is
    not PostgreSQL's. ``loose_collation``: texts that differ may be equal by its collation.
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
        """Whether values that are published are equal if and only if they are read as one text.

        Numbers and intervals are read as what equal ones share, and types of users are published as
        texts.
        """
        if self.loose_collation:
            return False
        published = self.base_type if self.base_schema == "pg_catalog" else self.shown or "text"
        name = published.removeprefix("_")
        return name in _EQUAL_BY_TEXT or published in _SPELLED_ALIKE


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """Columns of a table that refer to the rows of another."""

    columns: tuple[str, ...]
    table: TableName


@dataclass(frozen=True, slots=True)
class Partition:
    """A partitioned table or one below it; those of other kinds than ``p`` are leaves.

    ancestors: OIDs, from itself up to the root.
    """

    oid: int
    name: TableName
    relkind: str
    ancestors: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Below:
    """A relation that a view is made of."""

    name: TableName
    relkind: str
    row_security: bool


@dataclass(frozen=True, slots=True)
class TableInfo:
    """One relation. ``oid`` addresses it; ``primary_key`` is () when it has none.

    ``primary_key`` is the key that a policy names, if it names one: then it is proved of what is
    read. ``key_flaw`` is why the key does not tell rows apart at every moment, None if it does.
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

    @property
    def is_table(self) -> bool:
        """Whether it is a table, whose key PostgreSQL keeps."""
        return self.relkind in {"r", "p"}

    @property
    def is_computed(self) -> bool:
        """Whether its rows are made when it is read, so that two readings may differ."""
        return self.relkind in {"v", "f"}

    @property
    def foreign(self) -> tuple[TableName, ...]:
        """The foreign tables that its rows are read from."""
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
    """How many rows a table has, and how many NULLs and distinct other values a column has.

    spread: how far the first and the last quarter of its numbers are apart, None where not asked.
    """

    n_rows: int
    n_null: int
    n_distinct: int
    spread: float | None = None
