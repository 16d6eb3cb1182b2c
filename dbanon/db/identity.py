"""What may be read: the relation that was meant, and only if it runs no foreign code.

A name is no relation. Whoever owns a schema can rename it and put another in its place, at any
moment and under any lock: LOCK TABLE holds a table, not its name. So whatever is read is admitted
first, and when a transaction has read, it is asked what it has opened. Its locks tell: they stay
until the end, and so does that of a relation whose name meant another one for a moment only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import sql

from dbanon.db.failures import statement_failure
from dbanon.db.metadata.tables import DATA_SCHEMA
from dbanon.db.queries import query, relation, template
from dbanon.db.session import at_once
from dbanon.domain.errors import ConfigError, DatabaseError, NotPermitted
from dbanon.domain.table import TableName, quote_identifier

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dbanon.db.session import Session
    from dbanon.domain.table import TableInfo

_AGAIN = "run the command again; if it fails again, find out who owns the schema"
# Relations that LOCK TABLE takes; what has another kind cannot be replaced by one statement.
_LOCKED = frozenset({"r", "p", "v"})
_ACTING = "SELECT current_user, session_user, current_setting('search_path')"


def admit(session: Session, *relations: TableInfo) -> None:
    """Let the open transaction read some relations, as long as nothing changes about them.

    Raises NotPermitted when to read one would run code of somebody else's, and DatabaseError when
    its name means another relation by now.
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
        raise statement_failure(error, session.deeds) from None
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
    """Forget what had a name, which the open transaction itself has dropped or made anew."""
    for oid in [oid for oid, known in session.admitted.items() if known == name]:
        del session.admitted[oid]


def _names(info: TableInfo) -> dict[int, TableName]:
    return {part.oid: part.name for part in info.partitions} | {info.oid: info.name}


def pin(session: Session, info: TableInfo) -> None:
    """Make a private view of a relation that was admitted, where foreign code could write.

    A view finds its relation once. To make it runs nothing, and the lock that it leaves tells which
    one it found: then no exchange of names can lead to another one. Of a table it shows which
    partition a row lies in, too.
    """
    if info.oid in session.pins or session.pg.read_only:
        return
    name = TableName(DATA_SCHEMA, f"pin_{session.pg.info.backend_pid}_{info.oid}")
    columns = "s.*, s.tableoid" if info.is_table else "s.*"
    statement = sql.SQL("CREATE VIEW {} AS SELECT {} FROM {} AS s")
    with at_once(session.pg):
        session.pg.execute(statement.format(relation(name), sql.SQL(columns), relation(info.name)))
        opened = _opened(session)
    _require_none_opened(session, opened)
    session.pins[info.oid] = name


def hold(session: Session, info: TableInfo) -> None:
    """Lock a relation against changes of its definition, and admit nothing yet.

    As the first statement of a transaction it takes no snapshot: what is described after it is
    described as it stays. Raises DatabaseError when the lock is not granted in time, or was
    granted on another relation.
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
    """Raise DatabaseError when a relation was described twice, and is two."""
    if before.oid != now.oid:
        _refuse_moved([str(before.name)])


def readable(session: Session, info: TableInfo) -> sql.Identifier:
    """Return the name by which a relation is read at once, that of its pin if there is one.

    Raises NotPermitted unless it was admitted, DatabaseError when its name means another by now.
    """
    if info.oid in session.pins:
        return relation(session.pins[info.oid])
    return readable_elsewhere(session, info)


def readable_elsewhere(session: Session, info: TableInfo) -> sql.Identifier:
    """Return the name by which another session on the same snapshot reads a relation.

    Raises what ``readable`` does. What is not committed, as pins are, does not exist there.
    """
    if session.admitted.get(info.oid) != info.name:
        raise NotPermitted(f"{info.name} is not known to be safe to read", hint="dbanon doctor")
    _require_none(_moved(session, {info.oid: info.name}))
    return relation(info.name)


def harmless(
    session: Session, statement: sql.SQL | sql.Composed, *, keep: bool = False
) -> psycopg.Cursor[Any]:
    """Run a statement that may write nothing, unless into temporary tables if it is to be kept.

    The owner of a table can make statistics of it at any moment, and PostgreSQL computes what is
    constant in them with the rights of whoever plans a query next. No lock of a reader prevents it.
    """
    if session.pg.read_only:
        return session.pg.execute(statement)
    with session.pg.transaction(force_rollback=not keep):
        with at_once(session.pg):
            before = session.pg.execute(_ACTING)
            session.pg.execute("SET TRANSACTION READ ONLY")
            found = session.pg.execute(statement)
            opened = _opened(session)
            after = session.pg.execute(_ACTING)
        _require_none_opened(session, opened)
        if before.fetchone() != after.fetchone():
            raise NotPermitted("reading the table changed what this session acts as")
    return found


def require_admitted(session: Session) -> None:
    """Raise DatabaseError if the open transaction has read anything that it was not to read.

    To be asked after the last reading, and before COMMIT.
    """
    with at_once(session.pg):
        while session.pins:
            _, name = session.pins.popitem()
            session.pg.execute(sql.SQL("DROP VIEW {}").format(relation(name)))
        moved, opened = _moved(session, session.admitted), _opened(session)
    _require_none(moved)
    _require_none_opened(session, opened)


def require_nothing_else(session: Session, also: Iterable[int] = ()) -> None:
    """Raise DatabaseError if what is neither admitted nor in ``also``, by OID, was opened."""
    _require_none_opened(session, _opened(session, also))


def _opened(session: Session, also: Iterable[int] = ()) -> psycopg.Cursor[Any]:
    parameters = {"admitted": [*session.admitted, *also]}
    return session.pg.execute(query("identity.opened_relations"), parameters, prepare=False)


def _require_none_opened(session: Session, opened: psycopg.Cursor[Any]) -> None:
    if names := [name for (name,) in opened]:
        _refuse(names, [name for name, _ in event_triggers(session)])


def event_triggers(session: Session) -> list[tuple[str, TableName]]:
    """Return the event triggers that run at changes of definitions, with their functions."""
    rows = session.pg.execute(query("identity.event_triggers")).fetchall()
    return [(quote_identifier(name), TableName(schema, code)) for name, schema, code in rows]


def questions(session: Session, info: TableInfo) -> tuple[str, str]:
    """Return what another session asks before and after it reads a relation, as SQL.

    Each returns the names of what is not as it was; ``require_nothing`` judges the answers.
    """
    names = _names(info)
    cursor = psycopg.ClientCursor(session.pg)
    return (
        cursor.mogrify(query("identity.moved_names"), _by_name(names)),
        cursor.mogrify(query("identity.opened_relations"), {"admitted": list(names)}),
    )


def require_nothing(moved: Sequence[str], opened: Sequence[str]) -> None:
    """Raise DatabaseError if one of the ``questions`` had an answer."""
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
    """Raise DatabaseError for what was opened; triggers: event triggers that may have opened it."""
    if names:
        causes = f", or event trigger {' or '.join(triggers)} opened it" if triggers else ""
        disable = "".join(f"ALTER EVENT TRIGGER {name} DISABLE, then " for name in triggers)
        raise DatabaseError(
            f"{names[0]} was opened in place of what was to be read: names were exchanged, or"
            f" something was added to the table, while it was read{causes}",
            hint=disable + _AGAIN,
        )


def foreign_code(session: Session, info: TableInfo) -> list[tuple[TableName, str]]:
    """Return the functions and views of others that reading may run, with their owners."""
    return _functions(_code_of(session, info))


def _code_of(session: Session, info: TableInfo) -> psycopg.Cursor[Any]:
    statement = template("identity.foreign_code", parts=query("identity.parts_of_read"))
    return session.pg.execute(statement, {"relation": info.oid})


def _functions(code: psycopg.Cursor[Any]) -> list[tuple[TableName, str]]:
    return [(TableName(schema, name), quote_identifier(owner)) for schema, name, owner in code]


def serves(session: Session, view: int, data_id: int | None) -> bool:
    """Whether a relation, given by OID, is a view of the private tables of that number.

    Without a number those of any release will do: only the ledger knows which they are, and not
    everybody may read it.
    """
    parameters = {"view": view, "tables": _private_tables(data_id)}
    return session.pg.execute(query("identity.serves_release"), parameters).fetchone() == (True,)


def strangers(session: Session, published: TableInfo, data_id: int | None) -> Iterator[str]:
    """Yield what of a published view and its schema belongs to neither its publisher nor to us."""
    for name, owner in _owned_by_strangers(
        session, published.name.schema, view=published.oid, tables=_private_tables(data_id)
    ):
        yield f"{name} belongs to {owner}, who can put another relation in its place"


def is_release(session: Session, published: TableInfo, data_id: int) -> bool:
    """Whether a relation shows the private tables of that number, and runs no foreign code."""
    return (
        serves(session, published.oid, data_id)
        and not list(strangers(session, published, data_id))
        and not foreign_code(session, published)
    )


def require_release(session: Session, published: TableInfo, data_id: int | None) -> None:
    """Raise ConfigError unless a relation is what dbanon published, and nobody else's.

    data_id: the number of the private tables that it is to show, as in ``serves``.
    """
    found = list(strangers(session, published, data_id))
    if not serves(session, published.oid, data_id):
        found.insert(0, f"{published.name} is not what was published")
    if found:
        raise ConfigError("; ".join(found), hint="dbanon doctor")


def require_own_schema(session: Session, view: TableName) -> None:
    """Raise NotPermitted when a stranger owns the schema that is to be published in."""
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
    """Return a pattern of the names of the tables that a published view reads."""
    return f"^(release|rows)_{'[0-9]+' if data_id is None else data_id}$"
