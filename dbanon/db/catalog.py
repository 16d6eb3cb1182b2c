"""Read tables, columns, keys and statistics from PostgreSQL's catalogs."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
from psycopg import sql

from dbanon.db.identity import admit, harmless, readable, rows_of
from dbanon.db.queries import equal_text, identifiers, query, relation, template, text_of
from dbanon.db.session import only
from dbanon.domain.errors import ConfigError, NotPermitted, TableNotFound
from dbanon.domain.table import (
    Below,
    ColumnInfo,
    ColumnKind,
    ColumnStats,
    ForeignKey,
    Partition,
    TableInfo,
    TableName,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from dbanon.db.session import Session


_OF_PARTS = frozenset({"p", "v", "m"})  # partitioned tables and views
_MOST_NEAR = 3  # names that are offered for one that does not exist
_KINDS = {
    "int2": ColumnKind.INTEGER,
    "int4": ColumnKind.INTEGER,
    "int8": ColumnKind.INTEGER,
    "numeric": ColumnKind.DECIMAL,
    "float4": ColumnKind.FLOAT,
    "float8": ColumnKind.FLOAT,
    "date": ColumnKind.DATE,
    "timestamp": ColumnKind.TIMESTAMP,
    "timestamptz": ColumnKind.TIMESTAMPTZ,
    "bool": ColumnKind.BOOLEAN,
    "text": ColumnKind.CATEGORY,
    "varchar": ColumnKind.CATEGORY,
    "bpchar": ColumnKind.CATEGORY,
    "name": ColumnKind.CATEGORY,
    "uuid": ColumnKind.CATEGORY,
    "inet": ColumnKind.CATEGORY,
    "cidr": ColumnKind.CATEGORY,
    "macaddr": ColumnKind.CATEGORY,
}


def describe(
    session: Session, name: TableName, *, hint: str = "dbanon inspect schema.table"
) -> TableInfo:
    """Describe a relation; raises TableNotFound, with ``hint`` if no name is similar."""
    info = _alone(session, name, hint=hint)
    if info.relkind not in _OF_PARTS:
        return info
    statement = template(
        "catalog.parts",
        partitions=query("catalog.partitions"),
        below=query("catalog.below"),
        volatile=query("catalog.volatile_functions"),
    )
    found = session.one(statement, {"relation": info.oid, "kind": info.relkind})
    partitions, below, volatile = (part or () for part in found)
    return replace(
        info,
        partitions=tuple(
            Partition(p["oid"], _name(p), p["kind"], tuple(p["ancestors"])) for p in partitions
        ),
        below=tuple(Below(_name(p), p["relkind"], p["row_security"]) for p in below),
        volatile=tuple(map(_name, volatile)),
    )


def _alone(session: Session, name: TableName, *, hint: str) -> TableInfo:
    """Describe a relation without its partitions and what its view reads; raises TableNotFound."""
    schemas = list(session.search_path) if name.schema is None else [name.schema]
    columns = query("catalog.columns")
    statement = template("catalog.describe", names=identifiers(_COLUMN), columns=columns)
    found = session.pg.execute(statement, {"schemas": schemas, "name": name.name}).fetchone()
    if found is None:
        near = session.pg.execute(query("catalog.similar_relations"), {"name": name.name})
        similar = meant(name, [TableName(*row) for row in near])
        raise TableNotFound(_not_found(session, name), hint=similar or hint)
    oid, schema, relkind, row_security, has_children, has_parents, comment, key, flaw, own = found
    return TableInfo(
        oid=oid,
        name=TableName(schema, name.name),
        relkind=relkind,
        columns=tuple(map(_column, own or ())),
        primary_key=tuple(key or ()),
        key_flaw=flaw,
        row_security=row_security,
        has_children=has_children,
        has_parents=has_parents,
        comment=comment,
    )


def _name(part: Mapping[str, Any]) -> TableName:
    return TableName(part["schema"], part["name"])


def describe_source(session: Session, name: TableName) -> TableInfo:
    """Describe and admit a relation; raises TableNotFound and as ``identity.admit``."""
    info = describe(session, name)
    admit(session, info)
    return info


def describe_published(session: Session, name: TableName) -> TableInfo:
    """Describe and admit a published relation, once a transaction; raises as describe_source."""
    if (info := session.published.get(name)) is None:
        admit(session, info := _alone(session, name, hint="dbanon release list"))
        session.published[name] = info
    return info


def _not_found(session: Session, name: TableName) -> str:
    if name.schema is not None:
        return f"there is no table {name}"
    where = ", ".join(session.search_path) or "nothing"
    return f"there is no table {name} in the search path ({where})"


def meant(name: TableName, there: Sequence[TableName]) -> str | None:
    """Ask if one of some relations was meant: those of the same name, otherwise similar ones."""
    wanted = name.name.lower()
    found = [one for one in there if one.name.lower() == wanted]
    if not found:
        near = get_close_matches(wanted, {one.name.lower() for one in there}, n=_MOST_NEAR)
        found = [one for one in there if one.name.lower() in near]
    names = " or ".join(map(str, found[:_MOST_NEAR]))
    return f"did you mean {names}?" if names else None


_COLUMN = (
    *("name", "type", "base_type", "base_schema", "nullable", "comment", "generated", "identity"),
    *("labels", "user_defined", "has_equality", "is_domain", "is_virtual", "shown"),
    *("foreign_collation", "loose_collation"),
)  # the fields of a column, as the query returns them


def _column(own: dict[str, Any]) -> ColumnInfo:
    # a type of the user's may bear the name of a built-in one
    is_built_in = own["base_schema"] == "pg_catalog"
    kind = _KINDS.get(own["base_type"], ColumnKind.OTHER) if is_built_in else ColumnKind.OTHER
    kind = ColumnKind.ORDINAL if own["labels"] else kind
    return ColumnInfo(**own | {"labels": tuple(own["labels"] or ())}, kind=kind)


def readable_columns(session: Session, info: TableInfo, names: Collection[str]) -> set[str]:
    """Return the columns among ``names`` that the current role may read."""
    asked = {"relation": info.oid, "names": list(names)}
    return {name for (name,) in session.pg.execute(query("catalog.readable_columns"), asked)}


def require_readable(session: Session, info: TableInfo) -> None:
    """Raise NotPermitted unless the current role may read some column of a relation."""
    names = [column.name for column in info.columns]
    if names and not readable_columns(session, info, names):
        raise NotPermitted(
            f"a right is missing: permission denied for table {info.name.name}",
            hint="let the owner GRANT SELECT on it to this role, then: dbanon doctor",
        )


def unique_columns(session: Session, info: TableInfo) -> list[tuple[str, ...]]:
    """Return the columns of every UNIQUE index of a table, partial ones included."""
    rows = session.pg.execute(query("catalog.unique_columns"), {"relation": info.oid}).fetchall()
    return [tuple(columns) for (columns,) in rows]


def foreign_keys(session: Session, info: TableInfo) -> list[ForeignKey]:
    """Return the foreign keys of a table; of a view, those with columns of the same names."""
    rows = session.pg.execute(query("catalog.foreign_keys"), {"relation": info.oid}).fetchall()
    shown = {column.name for column in info.columns}
    keys = [ForeignKey(tuple(columns), TableName(*name)) for columns, *name in rows]
    return [key for key in keys if shown.issuperset(key.columns)]


def _rows(session: Session, info: TableInfo) -> sql.Composable:
    return rows_of(info, readable(session, info))


def statistics(
    session: Session, info: TableInfo, names: Collection[str] | None = None
) -> tuple[int, dict[str, ColumnStats]]:
    """Count rows, and NULLs and distinct values of columns with equality (in ``names``); exact."""
    n_rows, stats, _ = statistics_and_pairs(session, info, (), names=names)
    return n_rows, stats


def statistics_and_pairs(
    session: Session,
    info: TableInfo,
    paired: Sequence[str],
    *,
    names: Collection[str] | None = None,
) -> tuple[int, dict[str, ColumnStats], dict[str, dict[str, int]]]:
    """Count as ``statistics``, and the distinct pairs of ``paired`` columns with all others; exact.

    Computed relations are materialized, so that they run once. paired: columns with equality.
    """
    wanted = [column for column in info.columns if names is None or column.name in names]
    known = [column.name for column in wanted if column.has_equality]
    others = {name: [other for other in known if other != name] for name in paired}
    parts = [_counts(known)]
    parts += [_pairs(i, name, others[name]) for i, name in enumerate(paired) if others[name]]
    statement = sql.SQL("WITH seen AS {} (SELECT {} FROM {}) SELECT * FROM {}").format(
        sql.SQL("MATERIALIZED" if info.is_computed else "NOT MATERIALIZED"),
        identifiers(known),
        _rows(session, info),
        sql.SQL(" CROSS JOIN ").join(parts),
    )
    row = only(harmless(session, statement))
    n_rows, numbers = row[0], iter(row[1:])
    stats = {name: ColumnStats(n_rows, n_rows - next(numbers), next(numbers)) for name in known}
    pairs = {
        name: {other: int(next(numbers) or 0) for other in those} for name, those in others.items()
    }
    return n_rows, stats, pairs


def spreads(session: Session, info: TableInfo, names: Sequence[str]) -> dict[str, float]:
    """Return the interquartile range of each numeric column."""
    if not names:
        return {}
    quarters = sql.SQL(", ").join(
        sql.SQL("percentile_disc(ARRAY[0.25, 0.75]) WITHIN GROUP (ORDER BY {})::text[]").format(
            sql.Identifier(name)
        )
        for name in names
    )
    statement = sql.SQL("SELECT {} FROM {}").format(quarters, _rows(session, info))
    row = only(harmless(session, statement))
    known = zip(names, row, strict=True)
    # As texts: the greatest numbers of PostgreSQL are no float8.
    return {name: float(found[1]) - float(found[0]) for name, found in known if found is not None}


def _counts(names: Sequence[str]) -> sql.Composed:
    counts: list[sql.Composable] = [sql.SQL("count(*)")]
    counts += [
        sql.SQL("count({0}), count(DISTINCT {0})").format(sql.Identifier(name)) for name in names
    ]
    return sql.SQL("(SELECT {} FROM seen) AS counted").format(sql.SQL(", ").join(counts))


def _pairs(number: int, column: str, others: Sequence[str]) -> sql.Composed:
    # The values of one person are few, and faster to sort than all pairs.
    counts = [
        sql.SQL("count(DISTINCT {0}) + (count(*) > count({0}))::integer AS {0}").format(
            sql.Identifier(name)
        )
        for name in others
    ]
    return sql.SQL("(SELECT {} FROM (SELECT {} FROM seen GROUP BY {}) AS of_one) AS {}").format(
        sql.SQL(", ").join(sql.SQL("sum({})").format(sql.Identifier(name)) for name in others),
        sql.SQL(", ").join(counts),
        sql.Identifier(column),
        sql.Identifier(f"pairs_{number}"),
    )


def sampled_hashes(
    session: Session, info: TableInfo, names: Sequence[str], *, n_rows: int, most: int
) -> list[tuple[int, ...]]:
    """Return hashes of the values of some columns, for about ``most`` of ``n_rows`` rows.

    Equal values have equal hashes, NULL has its own, and values stay in the database. The sample of
    a table is the same each time.
    """
    texts = [equal_text(info.column(name), sql.Identifier(name)) for name in names]
    hashes = [sql.SQL("coalesce(hashtextextended({}, 0), 0)").format(text) for text in texts]
    source: sql.Composable = _rows(session, info)
    share = sql.Literal(min(most / max(n_rows, 1), 1.0))
    if n_rows > most and info.is_table:
        part = sql.SQL("{} TABLESAMPLE bernoulli ({} * 100) REPEATABLE (0)")
        source = part.format(source, share)
    elif n_rows > most:
        source = sql.SQL("{} WHERE random() < {}").format(source, share)
    statement = sql.SQL("SELECT {} FROM {}").format(sql.SQL(", ").join(hashes), source)
    return harmless(session, statement).fetchall()


def count_rows(session: Session, info: TableInfo) -> int:
    """Return the number of rows."""
    statement = sql.SQL("SELECT count(*) FROM {}").format(_rows(session, info))
    return int(harmless(session, statement).fetchall()[0][0])


def distinct_values(session: Session, info: TableInfo, column: str, limit: int) -> list[str]:
    """Return at most ``limit`` distinct values of a column as text, without NULL."""
    statement = sql.SQL(
        "SELECT {3} FROM (SELECT DISTINCT {0} AS v FROM {1} WHERE {0} IS NOT NULL) AS d"
        " ORDER BY v LIMIT {2}"
    ).format(
        sql.Identifier(column),
        readable(session, info),
        sql.Literal(limit),
        text_of(info.column(column), sql.Identifier("v")),
    )
    return [row[0] for row in harmless(session, statement)]


def first_rows(
    session: Session,
    info: TableInfo,
    names: Sequence[str],
    *,
    limit: int,
    length: int,
    filled: str | None = None,
) -> dict[str, list[str | None]]:
    """Return the first rows, in any order, as texts by column, cut off at ``length``.

    filled: a column; rows without a value of it are left out.
    """
    if not names:
        return {}
    texts = [
        sql.SQL("left({}, {})").format(
            text_of(info.column(name), sql.Identifier(name)), sql.Literal(length)
        )
        for name in names
    ]
    has_value = sql.SQL("true") if filled is None else sql.SQL("{} IS NOT NULL")
    statement = sql.SQL("SELECT {} FROM {} WHERE {} LIMIT {}").format(
        sql.SQL(", ").join(texts),
        _rows(session, info),
        has_value.format(sql.Identifier(filled or "")) if filled else has_value,
        sql.Literal(limit),
    )
    rows = harmless(session, statement).fetchall()
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def sampled(session: Session, info: TableInfo, *, most: int, above: int) -> tuple[int, TableInfo]:
    """Return about how many rows a table has, and above that many a sample of about ``most``.

    Views are not sampled, and their rows are not counted (0).
    """
    if not info.is_table:
        return 0, info
    row = session.one(query("catalog.estimated_rows"), {"relation": info.oid})
    n_rows = int(row[0])
    return n_rows, replace(info, sampled=most / n_rows) if n_rows > max(most, above) else info


class CountedValue(NamedTuple):
    """A value or a range of values of a column, with its number of rows."""

    label: str
    rows: int


def frequent_values(
    session: Session,
    info: TableInfo,
    widths: Mapping[str, float | None],
    *,
    persons: str | None,
    least: int,
    most: int,
) -> dict[str, list[CountedValue]]:
    """Return the values of columns that at least ``least`` rows have, at most ``most`` of each.

    widths: of the ranges into which the numbers of a column are put, None for values as they are;
    moments are put into years; persons: the column whose values are counted instead of rows, if
    any. The rows are read once.
    """
    if not widths:
        return {}
    columns = [info.column(name) for name in widths]
    values = [
        sql.SQL("{} AS {}").format(_ranged(column, widths[column.name]), sql.Identifier(f"v{i}"))
        for i, column in enumerate(columns)
    ]
    counting = sql.SQL("*")
    if persons is not None:
        values.append(sql.SQL("{}::text AS person").format(sql.Identifier(persons)))
        counting = sql.SQL("DISTINCT person")
    counted = [
        template(
            "catalog.frequent_values",
            number=sql.Literal(i),
            value=sql.Identifier(f"v{i}"),
            counted=counting,
            least=sql.Literal(least),
            most=sql.Literal(most),
        )
        for i in range(len(columns))
    ]
    statement = sql.SQL("WITH seen AS MATERIALIZED (SELECT {} FROM {}) {}").format(
        sql.SQL(", ").join(values), _rows(session, info), sql.SQL(" UNION ALL ").join(counted)
    )
    found: dict[str, list[CountedValue]] = {name: [] for name in widths}
    names = [*widths]
    for number, label, rows in harmless(session, statement):
        found[names[number]].append(CountedValue(label, rows))
    return found


def _ranged(column: ColumnInfo, width: float | None) -> sql.Composable:
    """Compose the text by which a value is counted."""
    name = sql.Identifier(column.name)
    if column.kind.is_moment:
        return sql.SQL("to_char({}, 'YYYY')").format(name)
    if width is None:
        return text_of(column, name)
    ranged = sql.SQL("CASE WHEN {0} BETWEEN -1e15 AND 1e15 THEN floor({0}::float8 / {1}) END::text")
    return ranged.format(name, sql.Literal(width))


def readable_tables(session: Session) -> list[tuple[TableName, str, int, int]]:
    """Return the relations that the role may read: name, kind, estimated rows, and bytes."""
    rows = session.pg.execute(query("catalog.readable_tables")).fetchall()
    return [(TableName(schema, name), kind, n, size) for schema, name, kind, n, size in rows]


def estimated_distinct(session: Session, info: TableInfo, column: str) -> float | None:
    """Return PostgreSQL's estimate: distinct values, or below 0 their share of rows, negated."""
    key = {"relation": info.oid, "column": column}
    row = session.pg.execute(query("catalog.estimated_distinct"), key).fetchone()
    return None if row is None else float(row[0])


def count_subjects(session: Session, info: TableInfo, column: str) -> tuple[int, int]:
    """Return the number of rows and of distinct subjects."""
    statement = sql.SQL("SELECT count(*), count(DISTINCT {}) FROM {}").format(
        sql.Identifier(column), readable(session, info)
    )
    row = only(harmless(session, statement))
    return row[0], row[1]


def content_digest(session: Session, info: TableInfo, columns: Sequence[str]) -> str:
    """Return a digest of the rows of some columns, independent of their order; scans once.

    The hash of a row's cells is hashed again, so that a value that moves to another row changes
    the sum.
    """
    statement = sql.SQL(
        "SELECT count(*), coalesce(sum(hashtextextended('' COLLATE \"C\", {})), 0) FROM {}"
    ).format(cells_hash(info, columns), readable(session, info))
    row = only(harmless(session, statement))
    return f"{row[0]}:{row[1]}"


def cells_hash(info: TableInfo, columns: Sequence[str]) -> sql.Composed:
    """Compose the exclusive or of the hashes of a row's cells, each with the seed of its column.

    NULL is nothing.
    """
    return sql.SQL(" # ").join(
        sql.SQL('coalesce(hashtextextended({} COLLATE "C", {}), 0)').format(
            text_of(info.column(name), sql.Identifier(name)), sql.Literal(seed)
        )
        for seed, name in enumerate(columns, 1)
    )


_TEMPORARY = TableName("pg_temp", "query")
_NO_PLACE = frozenset({"3F000", "42501"})
_MAKE_ELSEWHERE = (
    "name a schema in which this role may CREATE: --create-view SCHEMA.NAME;"
    " it also needs SELECT on all that the query reads"
)
_WRITE_ANOTHER = "write one SELECT, with a name of its own for every column"


def create(session: Session, query: str, name: TableName | None) -> TableName:
    """Create a view of a query in the open transaction and return its name; reads no rows.

    name: None for a temporary view. Names are resolved in the role's own search path. Raises
    ConfigError unless the query is exactly one query.
    """
    statement = sql.SQL("CREATE VIEW {} AS {}").format(
        relation(name or _TEMPORARY), sql.SQL(query.strip().rstrip(";"))
    )
    own = session.pg.execute("SELECT current_setting('search_path')").fetchone()
    path = sql.SQL(", ").join(map(sql.Identifier, session.search_path)).as_string()
    set_path = "SELECT set_config('search_path', %s, true)"
    try:
        session.pg.execute(set_path, (path,))
        session.pg.execute(statement, prepare=True)  # prepared, it cannot be several statements
    except (psycopg.ProgrammingError, psycopg.NotSupportedError, psycopg.DataError) as error:
        raise ConfigError(
            f"PostgreSQL makes no view of the query: {error.diag.message_primary or error}",
            hint=_MAKE_ELSEWHERE if error.sqlstate in _NO_PLACE else _WRITE_ANOTHER,
        ) from None
    session.pg.execute(set_path, own)
    if name is not None:
        return name
    own = session.one("SELECT pg_my_temp_schema()::regnamespace::text")
    return TableName(own[0], _TEMPORARY.name)
