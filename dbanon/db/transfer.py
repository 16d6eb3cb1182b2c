"""Read rows through Arrow, all or some of them, and write rows through COPY."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import adbc_driver_manager
import adbc_driver_postgresql
import numpy as np
import pyarrow as pa
from adbc_driver_manager import AdbcConnection, AdbcStatement
from adbc_driver_manager._reader import AdbcRecordBatchReader  # dbapi would import pandas
from psycopg import sql
from psycopg.conninfo import make_conninfo
from pyarrow import csv

from dbanon.db import identity
from dbanon.db.failures import reading_failure
from dbanon.db.queries import ALL, equal_text, identifiers, selected, template, text_of
from dbanon.db.session import Session, settings_statements
from dbanon.domain.errors import PolicyError
from dbanon.domain.policy import ColumnRule, Policy, Role
from dbanon.domain.table import ColumnInfo, ColumnKind, TableInfo, quote_identifier

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray


# Casts for reading a quasi-identifier. real goes through text: its shortest decimal is the value
# people mean, while a plain cast would publish the digits of the binary fraction.
_QUASI_CASTS = {
    ColumnKind.DECIMAL: "{}::float8",
    ColumnKind.FLOAT: "{}::text::float8",
    ColumnKind.DATE: "{}::date",
    ColumnKind.TIMESTAMP: "{}::timestamp",
    ColumnKind.TIMESTAMPTZ: "{}::timestamptz",
}

# Rows with a value that has no exact code for clustering. float8 holds every
# decimal of 15 digits, and PostgreSQL's cast back gives just those, so a round trip proves it.
_UNFIT = {
    ColumnKind.DECIMAL: (
        "CASE WHEN abs({0}) < 1e300 AND scale({0}) < 300"
        " THEN {0}::float8::numeric IS DISTINCT FROM {0} ELSE {0} IS NOT NULL END"
    ),
    ColumnKind.FLOAT: "{0} IN ('NaN', 'Infinity', '-Infinity')",
    ColumnKind.DATE: "NOT isfinite({0})",
    ColumnKind.TIMESTAMP: "NOT isfinite({0})",
    ColumnKind.TIMESTAMPTZ: "NOT isfinite({0})",
}

_REMEDIES = {
    ColumnKind.DECIMAL: "numbers that are not finite or have more than 15 significant digits",
    ColumnKind.FLOAT: "values that are NaN or infinite",
}


_WRITTEN_DIFFERENTLY = """\
SELECT count(*)
  FROM (SELECT
          FROM {source}
         WHERE {selected}
         GROUP BY {value}
        HAVING count(DISTINCT ({text}) COLLATE pg_catalog."C") > 1) AS v"""


ROWS_AT_ONCE = 250_000
PLACE = "ctid"  # no column of a table has this name
Within = sql.Composable  # what rows must meet besides the conditions of a policy
_BEFORE_ALL = "-c search_path=pg_catalog,pg_temp -c quote_all_identifiers=off"


@dataclass(frozen=True, eq=False, slots=True)
class SourceRows:
    """The rows of one snapshot: ``keys`` as COPY takes them, ``columns`` as encode does.

    ``copied``: columns published unchanged and the subject, as COPY takes them, by anatomy, or of a
    source that is read only once or masked; otherwise None. All but keys are dictionary-encoded,
    one dictionary per column. ``frozen``: positions of rows with ``columns`` of an earlier release
    instead of the source. ``places``: of the rows of a table, int64, if asked for: page and number.
    """

    keys: pa.Table
    columns: pa.Table
    copied: pa.Table | None = None
    frozen: NDArray[np.int64] | None = None
    places: pa.ChunkedArray | None = None

    def take(self, rows: NDArray[np.int64]) -> SourceRows:
        """Return some rows, in the order given."""
        copied = None if self.copied is None else _taken(self.copied, rows)
        frozen = None if self.frozen is None else np.flatnonzero(np.isin(rows, self.frozen))
        places = None if self.places is None else self.places.take(pa.array(rows))
        columns = _taken(self.columns, rows)
        return SourceRows(_taken(self.keys, rows), columns, copied, frozen, places)


def _taken(table: pa.Table, rows: NDArray[np.int64]) -> pa.Table:
    """Return some rows of a table; without columns, Arrow's take would lose their number."""
    return table.take(pa.array(rows)) if table.num_columns else table.slice(0, len(rows))


def require_fit(session: Session, info: TableInfo, policy: Policy) -> None:
    """Raise PolicyError for quasi-identifiers with values that have no exact code."""
    columns = [info.column(rule.column) for rule in policy.with_role(Role.QUASI)]
    columns = [column for column in columns if column.kind in _UNFIT]
    if not columns:
        return
    counts = [
        sql.SQL("count(*) FILTER (WHERE {})").format(
            sql.SQL(_UNFIT[column.kind]).format(sql.Identifier(column.name))
        )
        for column in columns
    ]
    statement = sql.SQL("SELECT {} FROM {} WHERE {}").format(
        sql.SQL(", ").join(counts), identity.readable(session, info), selected(policy, info)
    )
    row = identity.harmless(session, statement).fetchone() or ()
    problems = [
        f"column {quote_identifier(column.name)} has {count:,} "
        + _REMEDIES.get(column.kind, "values that are infinite")
        for column, count in zip(columns, row, strict=True)
        if count
    ]
    if problems:
        raise PolicyError(
            "; ".join(problems),
            hint="round or replace them in a generated column, or give the column another role",
        )


def require_one_text(session: Session, info: TableInfo, policy: Policy) -> None:
    """Raise PolicyError for columns with equal values or persons that differ as texts.

    The search counts them by text, the database by equality: it would count fewer.
    """
    problems = []
    names = {rule.column for rule in policy.with_role(Role.SENSITIVE)} | {policy.subject}
    for column in info.columns:
        if column.name not in names or column.is_equal_by_text or not column.has_equality:
            continue
        name = sql.Identifier(column.name)
        statement = sql.SQL(_WRITTEN_DIFFERENTLY).format(
            source=identity.readable(session, info),
            selected=selected(policy, info),
            value=name,
            text=equal_text(column, name),
        )
        (count,) = identity.harmless(session, statement).fetchone() or (0,)
        if count:
            problems.append(
                f"column {quote_identifier(column.name)} ({column.type}) has {count:,} values that"
                " are written in several ways and equal all the same"
            )
    if problems:
        raise PolicyError(
            "; ".join(problems),
            hint="publish a generated column that writes each in one way, as lower() does,"
            " or give the column another role",
        )


def _dictionary(_name: str, column: pa.Array) -> pa.Array:
    return column.dictionary_encode()


def read(
    session: Session,
    info: TableInfo,
    policy: Policy,
    *,
    within: Within = ALL,
    placed: bool = False,
    code: Callable[[str, pa.Array], pa.Array] = _dictionary,
) -> SourceRows:
    """Read the keys and the columns to group and measure, on the transaction's snapshot.

    within: a further condition. Rows outside of the policy's conditions are excluded here, and
    thereby everywhere: later steps use only the keys that were read. placed: with the places of
    the rows of a table. code: replaces the values of a column, some rows at a time.
    """
    keys = [info.column(name) for name in info.primary_key]
    rules = (*policy.with_role(Role.QUASI), *policy.with_role(Role.SENSITIVE))
    rules += tuple(r for r in policy.with_role(Role.INSENSITIVE) if r.column == policy.class_label)
    parts = [*map(_key, keys), *([sql.SQL("tidsend(ctid)")] if placed else [])]
    parts += [value_of(info.column(rule.column), rule.role) for rule in rules]
    quasi = {rule.column for rule in policy.with_role(Role.QUASI)}
    is_masked = any(not quasi.issuperset(step.columns) for step in policy.masking)
    copied = _copied(info, policy) if info.is_computed or is_masked else []
    spelled = {name: equal_text if name == policy.subject else text_of for name in copied}
    parts += [spelled[name](info.column(name), sql.Identifier(name)) for name in copied]
    statement = sql.SQL("SELECT {} FROM {} WHERE {} AND {}").format(
        sql.SQL(", ").join(parts),
        identity.rows_of(info, identity.readable_elsewhere(session, info)),
        selected(policy, info),
        within,
    )
    identifying = [*(column.name for column in keys), *([PLACE] if placed else [])]
    names, first = [*identifying, *(rule.column for rule in rules), *copied], len(identifying)
    read = fetch(session, info, statement, names=names, keys=first, code=code)
    last = first + len(rules)
    return SourceRows(
        read.select(range(len(keys))),
        read.select(range(first, last)),
        read.select(range(last, len(names))) if copied or info.is_computed else None,
        places=_places(read.column(len(keys))) if placed else None,
    )


def _places(sent: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return places from their six bytes, of which the last two are the number in the page."""
    padded = np.zeros((len(sent), 8), np.uint8)
    data = sent.cast(pa.binary(6)).combine_chunks().buffers()[1]
    padded[:, 2:] = np.frombuffer(data, np.uint8).reshape(-1, 6)
    return pa.chunked_array([padded.view(">i8")[:, 0].astype(np.int64)])


def tids(places: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return places as PostgreSQL writes them."""
    import pyarrow.compute as pc

    parts = pc.shift_right(places, 16), pc.bit_wise_and(places, 0xFFFF)
    page, number = (part.cast(pa.string()) for part in parts)
    return pc.binary_join_element_wise("(", page, ",", number, ")", "")


def fetch(
    session: Session,
    info: TableInfo,
    statement: sql.Composable,
    *,
    names: Sequence[str],
    keys: int,
    code: Callable[[str, pa.Array], pa.Array] = _dictionary,
) -> pa.Table:
    """Run a query of one relation on the transaction's snapshot, over another connection.

    names: its columns; all but the first ``keys`` are encoded by ``code``.
    """
    row = session.one("SELECT pg_export_snapshot()")
    moved, opened = identity.questions(session, info)
    with _reader(session, row[0]) as connection:
        identity.require_nothing(_texts(connection, moved), [])
        with AdbcStatement(connection) as query:
            query.set_sql_query(statement.as_string(session.pg))
            found = _fetch(query, names, keys=keys, code=code)
        identity.require_nothing(_texts(connection, moved), _texts(connection, opened))
    return found


def count_left_out(session: Session, info: TableInfo, policy: Policy) -> int:
    """Count the rows outside of the policy's conditions."""
    if not policy.where:
        return 0
    statement = sql.SQL("SELECT count(*) FROM {} WHERE ({}) IS NOT TRUE").format(
        identity.readable(session, info), selected(policy, info)
    )
    row = identity.harmless(session, statement).fetchone()
    return int(row[0]) if row else 0


def _copied(info: TableInfo, policy: Policy) -> list[str]:
    """Return the unchanged columns and the subject, and means to prove, without the key."""
    shown = {Role.SENSITIVE, Role.INSENSITIVE, *([Role.QUASI] if policy.anatomy else [])}
    copied = {rule.column for rule in policy.columns if rule.role in shown} | {policy.subject}
    copied |= {rule.column for rule in policy.replaced}
    if info.is_computed:
        copied |= {rule.column for rule in policy.means}
    return [c.name for c in info.columns if c.name in copied and c.name not in info.primary_key]


def without_quasi(source: SourceRows, policy: Policy, *, are_copied: bool) -> SourceRows:
    """Drop the quasi-identifiers, which only the search needs unless all columns are copied."""
    sensitive = [rule.column for rule in policy.with_role(Role.SENSITIVE)]
    copied = source.columns if policy.anatomy and are_copied else source.copied
    return replace(source, columns=source.columns.select(sensitive), copied=copied)


def _fetch(
    query: AdbcStatement,
    names: Sequence[str],
    *,
    keys: int,
    code: Callable[[str, pa.Array], pa.Array] = _dictionary,
) -> pa.Table:
    """Run a query in a thread: in the main thread the driver would catch Ctrl-C."""

    def run() -> pa.Table:
        stream, _ = query.execute_query()
        batches = AdbcRecordBatchReader._import_from_c(stream.address)  # noqa: SLF001
        return _shrink(batches, names, keys=keys, code=code)

    with ThreadPoolExecutor(max_workers=1) as pool:
        try:
            return pool.submit(run).result()
        except KeyboardInterrupt:
            query.cancel()
            raise


def _shrink(
    batches: pa.RecordBatchReader,
    names: Sequence[str],
    *,
    keys: int,
    code: Callable[[str, pa.Array], pa.Array],
) -> pa.Table:
    """Copy keys and encode the rest per batch, because the driver frees batches."""

    def shrink(batch: pa.RecordBatch) -> pa.Table:
        copied = [pa.concat_arrays([column]) for column in batch.columns[:keys]]
        coded = map(code, names[keys:], batch.columns[keys:])
        return pa.Table.from_arrays([*copied, *coded], names=list(names))

    none = pa.RecordBatch.from_pylist([], schema=batches.schema)
    return pa.concat_tables([*map(shrink, batches)] or [shrink(none)]).unify_dictionaries()


def _key(column: ColumnInfo) -> sql.Composed:
    name = sql.Identifier(column.name)
    if column.kind is ColumnKind.INTEGER:
        return _integer(column, name)
    return equal_text(column, name)


def _integer(column: ColumnInfo, name: sql.Identifier) -> sql.Composed:
    width = "int8" if column.base_type == "int8" else "int4"
    return sql.SQL("{}::{}").format(name, sql.SQL(width))


def value_of(column: ColumnInfo, role: Role) -> sql.Composed:
    """Compose the expression that reads a column of that role."""
    name = sql.Identifier(column.name)
    if role is Role.QUASI and column.kind is ColumnKind.INTEGER:
        return _integer(column, name)
    if role is Role.QUASI and column.kind in _QUASI_CASTS:
        return sql.SQL(_QUASI_CASTS[column.kind]).format(name)
    return equal_text(column, name)


def _texts(connection: AdbcConnection, statement: str) -> list[str]:
    with AdbcStatement(connection) as query:
        query.set_sql_query(statement)
        stream, _ = query.execute_query()
        answer = AdbcRecordBatchReader._import_from_c(stream.address).read_all()  # noqa: SLF001
    return [str(value) for value in answer.column(0).to_pylist()]


@contextmanager
def _reader(session: Session, snapshot: str) -> Iterator[AdbcConnection]:
    """Open a read-only driver connection on a snapshot of the session.

    Its server alone knows the snapshot. The driver queries types on connecting, before any SET. It
    would resolve operators in the role's search path, and it expects unquoted names.
    """
    options = f"{session.pg.info.options} {_BEFORE_ALL}"
    try:
        with (
            adbc_driver_postgresql.connect(
                make_conninfo(session.server, options=options)
            ) as database,
            AdbcConnection(database) as connection,
        ):
            connection.set_autocommit(False)
            for setting in _reader_settings(session, snapshot):
                with AdbcStatement(connection) as change:
                    change.set_sql_query(setting)
                    change.execute_update()
            yield connection
            connection.rollback()
    except adbc_driver_manager.Error as error:
        raise reading_failure(getattr(error, "sqlstate", None), str(error)) from None


def _reader_settings(session: Session, snapshot: str) -> Iterator[str]:
    yield "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
    yield sql.SQL("SET TRANSACTION SNAPSHOT {}").format(snapshot).as_string(session.pg)
    if session.settings.owner is not None:
        role = sql.Identifier(session.settings.owner)
        yield sql.SQL("SET LOCAL ROLE {}").format(role).as_string(session.pg)
    for statement in settings_statements():
        yield statement.as_string(session.pg)
    yield "SET max_parallel_workers_per_gather = 0"  # workers would mix their rows


def copy_statement(table: sql.Composable, columns: Sequence[str]) -> sql.Composed:
    """Compose the COPY that takes CSV rows of the named columns."""
    return sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(table, identifiers(columns))


def write_table(session: Session, table: sql.Composable, rows: pa.Table) -> None:
    """COPY one Arrow table into the columns of its names, as ``write`` does."""
    parts = (rows.slice(i, ROWS_AT_ONCE) for i in range(0, len(rows), ROWS_AT_ONCE))
    write(session, table, parts, columns=rows.column_names)


def write_codes(session: Session, codes: sql.Identifier, objects: list[str]) -> None:
    """Write the values of codes to a temporary table."""
    session.pg.execute(template("histories.codes", codes=codes))
    columns = [pa.array(np.arange(len(objects), dtype=np.int32)), pa.array(objects, pa.string())]
    write_table(session, codes, pa.table(columns, ["code", "value"]))
    # Without statistics PostgreSQL expects a thousand codes, and sorts all rows to join.
    session.pg.execute(sql.SQL("ANALYZE {}").format(codes))


def write(
    session: Session, table: sql.Composable, parts: Iterable[pa.Table], *, columns: Sequence[str]
) -> None:
    """COPY Arrow tables into the named columns in the open transaction.

    CSV has the text form of every type. Strings are always quoted, so that an empty string is not
    NULL, and an end-of-data mark in a string is only text.
    """
    send(session, copy_statement(table, columns), parts)


def send(session: Session, statement: sql.Composed, parts: Iterable[pa.Table]) -> None:
    """Send Arrow tables through the COPY of a ``copy_statement``."""
    with session.pg.cursor().copy(statement) as copy:
        for buffer in _ahead(parts):
            copy.write(memoryview(buffer))


def _ahead(parts: Iterable[pa.Table]) -> Iterator[pa.Buffer]:
    """Yield tables as CSV; the next is converted while one is sent."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        coming = None
        for part in parts:
            made, coming = coming, pool.submit(_csv, part)
            if made is not None:
                yield made.result()
        if coming is not None:
            yield coming.result()


def _csv(part: pa.Table) -> pa.Buffer:
    buffer = pa.BufferOutputStream()
    options = csv.WriteOptions(include_header=False, quoting_style="needed")
    csv.write_csv(part, buffer, options)
    return buffer.getvalue()


_MASK = (1 << 30) - 1


def value_counts(session: Session, info: TableInfo, policy: Policy, rule: ColumnRule) -> pa.Table:
    """Return the distinct values of a column, ``value``, with their numbers of rows, ``rows``."""
    statement = template(
        "persons.count_values",
        value=_exact(info.column(rule.column), rule.role),
        source=identity.readable_elsewhere(session, info),
        selected=selected(policy, info),
    )
    return fetch(session, info, statement, names=("rows", "value"), keys=1)


def drawn(info: TableInfo, *, share: float, seed: int) -> Within:
    """Compose the condition of a share of the rows, by a hash of seed and keys."""
    hashed: sql.Composable = sql.Literal(seed)
    for name in info.primary_key:
        key = text_of(info.column(name), sql.Identifier(name))
        exact = sql.SQL('({}) COLLATE pg_catalog."C"').format(key)
        hashed = sql.SQL("hashtextextended({}, {})").format(exact, hashed)
    most = sql.Literal(round(share * (_MASK + 1)))
    return template("persons.is_drawn", hash=hashed, mask=sql.Literal(_MASK), most=most)


def _exact(column: ColumnInfo, role: Role) -> sql.Composed:
    """Compose the expression that is read, so that values are equal only if read as equal."""
    value = value_of(column, role)
    if role is Role.QUASI and column.kind.is_ordered:
        return value
    return sql.SQL('({})::text COLLATE pg_catalog."C"').format(value)
