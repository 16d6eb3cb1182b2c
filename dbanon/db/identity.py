"""Read only the relation that was described, and only if that runs no foreign code.

A name is not enough: the owner of a schema can rename it and put another in its place at any
moment, because LOCK TABLE locks a table and not its name. So a relation is admitted before it is
read, and after reading, the locks of the transaction show which relations it opened. Locks last
until the end of the transaction, even if a name was exchanged only for a moment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import sql

from dbanon.db.failures import statement_failure
from dbanon.db.queries import query, relation, template
from dbanon.db.schemas import DATA_SCHEMA
from dbanon.db.session import at_once
from dbanon.domain.errors import ConfigError, DatabaseError, NotPermitted
from dbanon.domain.table import TableInfo, TableName, quote_identifier

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dbanon.db.session import Session, Statement

_AGAIN = "run the command again; if it fails again, find out who owns the schema"
# Relations that LOCK TABLE accepts; no single statement replaces one of another kind.
_LOCKED = frozenset({"r", "p", "v"})
_ACTING = "SELECT current_user, session_user, current_setting('search_path')"


def admit(session: Session, *relations: TableInfo) -> None:
    """Admit relations for reading in the open transaction.

    Raises NotPermitted if reading one would run another role's code, and DatabaseError if its name
    now refers to another relation.
    """
    for info in relations:
        _admit(session, info)
    for info in relations:
        if info.is_table:
            pin(session, info)


def _admit(session: Session, info: TableInfo) -> None:
    names = _names(info)
    try:
        with at_once(session.pg):
            if info.relkind == "v":  # with all that it is made of: one statement replaces views
                _lock(session, info)
            held = _moved(session, {info.oid: info.name})
            code = _code_of(session, info)
            moved = _moved(session, names)
    except psycopg.Error as error:
        raise statement_failure(error, session.operations) from None
    _require_none(held)
    if foreign := _functions(code):
        found = "; ".join(f"{function} of {owner}" for function, owner in foreign[:5])
        raise NotPermitted(
            f"reading {info.name} may run code of others with this role's rights: {found}",
            hint="drop the index, the statistics, the policy or the view that runs it,"
            " or let a superuser or this role own it",
        )
    _require_none(moved)
    session.admitted.update(names)


def dismiss(session: Session, name: TableName) -> None:
    """Remove a relation from the admitted ones, after the transaction dropped or replaced it."""
    for oid in [oid for oid, known in session.admitted.items() if known == name]:
        del session.admitted[oid]
    session.published.pop(name, None)


def _names(info: TableInfo) -> dict[int, TableName]:
    return {part.oid: part.name for part in info.partitions} | {info.oid: info.name}


def pin(session: Session, info: TableInfo) -> None:
    """Create a private view of an admitted relation, unless the transaction is read-only.

    Creating it runs no code, and its lock shows the relation that it is bound to, so a later
    exchange of names has no effect. For tables it has ``tableoid``, too, and for plain ones the
    place and the transaction of a row version.
    """
    if info.oid in session.pins or session.pg.read_only:
        return
    name = TableName(DATA_SCHEMA, f"pin_{session.pg.info.backend_pid}_{info.oid}")
    columns = "s.*, s.tableoid" if info.is_table else "s.*"
    columns += ", s.ctid, s.xmin" if info.relkind == "r" else ""
    statement = sql.SQL("CREATE VIEW {} AS SELECT {} FROM {} AS s")
    with at_once(session.pg):
        session.pg.execute(statement.format(relation(name), sql.SQL(columns), relation(info.name)))
        opened = _opened(session)
    _require_none_opened(session, opened)
    session.pins[info.oid] = name


def hold(session: Session, info: TableInfo) -> None:
    """Lock a relation against changes of its definition, without admitting it.

    As the first statement of a transaction it takes no snapshot, so a later description stays
    valid. Raises DatabaseError if the lock is not granted in time, or on another relation.
    """
    try:
        with at_once(session.pg):
            if info.relkind in _LOCKED:
                _lock(session, info)
            moved = _moved(session, {info.oid: info.name})
    except psycopg.Error as error:
        raise statement_failure(error) from None
    _require_none(moved)


def _lock(session: Session, info: TableInfo) -> None:
    lock = sql.SQL("LOCK TABLE {} IN ACCESS SHARE MODE")
    session.pg.execute(lock.format(relation(info.name)))


def require_same(before: TableInfo, now: TableInfo) -> None:
    """Raise DatabaseError if two descriptions are of different relations."""
    if before.oid != now.oid:
        _refuse_moved([str(before.name)])


def readable(session: Session, info: TableInfo) -> sql.Identifier:
    """Return the name from which to read a relation now: its pin, if there is one.

    Raises NotPermitted unless it was admitted, DatabaseError if its name refers to another
    relation.
    """
    if info.oid in session.pins:
        return relation(session.pins[info.oid])
    return readable_elsewhere(session, info)


def readable_elsewhere(session: Session, info: TableInfo) -> sql.Identifier:
    """Return the name for another session, which does not see pins; raises as ``readable``."""
    if session.admitted.get(info.oid) != info.name:
        raise NotPermitted(f"{info.name} is not known to be safe to read", hint="dbanon doctor")
    _require_none(_moved(session, {info.oid: info.name}))
    return relation(info.name)


def rows_of(info: TableInfo, name: sql.Identifier) -> sql.Composable:
    """Compose what a query reads of a relation: all rows, or those of the same sampled pages."""
    if info.sampled is None:
        return name
    part = sql.SQL("{} TABLESAMPLE system ({} * 100) REPEATABLE (0)")
    return part.format(name, sql.Literal(info.sampled))


def harmless(
    session: Session, statement: Statement, *, keep: bool = False, after: Iterable[Statement] = ()
) -> psycopg.Cursor[Any]:
    """Run a statement in a read-only subtransaction; with ``keep`` it may fill temporary tables.

    after: statements that create these tables, and read no relation of others.
    The owner of a table can add statistics at any moment, and planning a query evaluates constant
    expressions in them with the rights of the current role. No reader's lock prevents that.
    """
    if session.pg.read_only:
        return session.pg.execute(statement)
    with session.pg.transaction(force_rollback=not keep):
        with at_once(session.pg):
            session.run(after)
            before = session.pg.execute(_ACTING)
            session.pg.execute("SET TRANSACTION READ ONLY")
            found = session.pg.execute(statement)
            opened = _opened(session)
            still = session.pg.execute(_ACTING)
        _require_none_opened(session, opened)
        if before.fetchone() != still.fetchone():
            raise NotPermitted("reading the table changed what this session acts as")
    return found


def require_admitted(session: Session) -> None:
    """Raise DatabaseError if anything else was opened; call it after all reads, before COMMIT."""
    with at_once(session.pg):
        while session.pins:
            _, name = session.pins.popitem()
            session.pg.execute(sql.SQL("DROP VIEW {}").format(relation(name)))
        moved, opened = _moved(session, session.admitted), _opened(session)
    _require_none(moved)
    _require_none_opened(session, opened)


def require_nothing_else(session: Session, also: Iterable[int] = ()) -> None:
    """Raise DatabaseError if a relation other than the admitted and ``also`` was opened."""
    _require_none_opened(session, _opened(session, also))


def _opened(session: Session, also: Iterable[int] = ()) -> psycopg.Cursor[Any]:
    parameters = {"admitted": [*session.admitted, *also]}
    return session.pg.execute(query("identity.opened_relations"), parameters, prepare=False)


def _require_none_opened(session: Session, opened: psycopg.Cursor[Any]) -> None:
    if names := [name for (name,) in opened]:
        _refuse(names, [name for name, _ in event_triggers(session)])


def event_triggers(session: Session) -> list[tuple[str, TableName]]:
    """Return the event triggers on DDL, with their functions."""
    rows = session.pg.execute(query("identity.event_triggers")).fetchall()
    return [(quote_identifier(name), TableName(schema, code)) for name, schema, code in rows]


def questions(session: Session, info: TableInfo) -> tuple[str, str]:
    """Return queries to run before and after reading in another session (``require_nothing``)."""
    names = _names(info)
    cursor = psycopg.ClientCursor(session.pg)
    return (
        cursor.mogrify(query("identity.moved_names"), _by_name(names)),
        cursor.mogrify(query("identity.opened_relations"), {"admitted": list(names)}),
    )


def require_nothing(moved: Sequence[str], opened: Sequence[str]) -> None:
    """Raise DatabaseError if one of the ``questions`` returned a row."""
    _refuse_moved(moved)
    _refuse(opened)


def _moved(session: Session, names: Mapping[int, TableName]) -> psycopg.Cursor[Any]:
    return session.pg.execute(query("identity.moved_names"), _by_name(names), prepare=False)


def _require_none(moved: psycopg.Cursor[Any]) -> None:
    _refuse_moved([name for (name,) in moved])


def _by_name(names: Mapping[int, TableName]) -> dict[str, object]:
    return {"oids": list(names), "names": [relation(name).as_string() for name in names.values()]}


def _refuse_moved(names: Sequence[str]) -> None:
    if names:
        raise DatabaseError(
            f"{names[0]} is another relation by now: it, or its schema, was renamed and replaced"
            " meanwhile",
            hint=_AGAIN,
        )


def _refuse(names: Sequence[str], triggers: Sequence[str] = ()) -> None:
    """Raise DatabaseError for opened relations; triggers: possible causes."""
    if names:
        causes = f", or event trigger {' or '.join(triggers)} opened it" if triggers else ""
        disable = "".join(f"ALTER EVENT TRIGGER {name} DISABLE, then " for name in triggers)
        raise DatabaseError(
            f"{names[0]} was opened in place of what was to be read: names were exchanged, or"
            f" something was added to the table, while it was read{causes}",
            hint=disable + _AGAIN,
        )


def foreign_code(session: Session, info: TableInfo) -> list[tuple[TableName, str]]:
    """Return the functions and views of other roles that reading may run, with their owners."""
    return _functions(_code_of(session, info))


def _code_of(session: Session, info: TableInfo) -> psycopg.Cursor[Any]:
    statement = template("identity.foreign_code", parts=query("identity.parts_of_read"))
    return session.pg.execute(statement, {"relation": info.oid})


def _functions(code: psycopg.Cursor[Any]) -> list[tuple[TableName, str]]:
    return [(TableName(schema, name), quote_identifier(owner)) for schema, name, owner in code]


def serves(session: Session, view: int, data_id: int | None) -> bool:
    """Return True if a relation (an OID) is a view of the private tables of that number.

    Without a number, tables of any release count, because not every role may read the ledger.
    """
    parameters = {"view": view, "tables": _private_tables(data_id)}
    return session.pg.execute(query("identity.serves_release"), parameters).fetchone() == (True,)


def strangers(session: Session, published: TableInfo, data_id: int | None) -> Iterator[str]:
    """Yield what belongs to neither the publisher nor dbanon, of a view and its schema."""
    for name, owner in _owned_by_strangers(
        session, published.name.schema, view=published.oid, tables=_private_tables(data_id)
    ):
        yield f"{name} belongs to {owner}, who can put another relation in its place"


def is_release(session: Session, published: TableInfo, data_id: int) -> bool:
    """Return True if a relation is a view of that number's tables, without foreign code."""
    return (
        serves(session, published.oid, data_id)
        and not list(strangers(session, published, data_id))
        and not foreign_code(session, published)
    )


def require_release(session: Session, published: TableInfo, data_id: int | None) -> None:
    """Raise ConfigError unless a relation is a release of dbanon; data_id: as in ``serves``."""
    found = list(strangers(session, published, data_id))
    if not serves(session, published.oid, data_id):
        found.insert(0, f"{published.name} is not what was published")
    if found:
        raise ConfigError("; ".join(found), hint="dbanon doctor")


def require_own_schema(session: Session, view: TableName) -> None:
    """Raise NotPermitted if an untrusted role owns the schema to publish in."""
    for name, owner in _owned_by_strangers(session, view.schema, view=0, tables=_NO_TABLE):
        raise NotPermitted(
            f"{name} belongs to {owner}, who could show readers something else under the same name",
            hint="publish in another --schema, or let this role, the owner of the database or a"
            " superuser own it",
        )


def _owned_by_strangers(
    session: Session, schema: str | None, *, view: int, tables: str
) -> list[tuple[str, str]]:
    parameters = {"schema": schema, "view": view, "tables": tables}
    rows = session.pg.execute(query("identity.strangers_publication"), parameters).fetchall()
    return [(name, quote_identifier(owner)) for name, owner in rows]


_NO_TABLE = "^$"


def _private_tables(data_id: int | None) -> str:
    return f"^(release|rows)_{'[0-9]+' if data_id is None else data_id}$"
