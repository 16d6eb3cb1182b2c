"""Make the copy of a release immutable, and detect changes of it."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, NamedTuple

from psycopg import sql

from dbanon.db.catalog import cells_hash, content_digest
from dbanon.db.queries import Body, query, template
from dbanon.db.schemas import DATA_SCHEMA
from dbanon.domain.errors import DatabaseError
from dbanon.domain.release import Sums

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from dbanon.db.session import Session
    from dbanon.domain.release import Entry
    from dbanon.domain.table import TableInfo

CLASS_COLUMN = "dbanon_class"
TRIGGER = "released_table_is_immutable"
"""The name of the trigger that refuses changes of a copy."""
_PRINTS_UNLOCKED = 160_000  # the first version that prints a view without locking it
_RIGHTS = sql.SQL("INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER")


class Broken(NamedTuple):
    """A broken seal and its remedy; None if publishing again repairs it."""

    problem: str
    remedy: str | None = None


_BROKEN = (
    Broken("its private copy is bound to no type: columns can be added to it"),
    Broken("the trigger that refuses changes of its private copy is missing or disabled"),
    Broken("its private copy has a rule or a trigger that is not dbanon's, or a check"),
    Broken("row-level security on its private copy hides rows"),
    Broken(
        "its private copy has children or a parent",
        "DROP TABLE the children, or ALTER TABLE ... NO INHERIT; then dbanon refresh",
    ),
    Broken("a role has the right to change its private copy"),
    Broken("its private copy has other columns than it shows"),
    Broken("its definition is not the one that was published"),
    Broken("the function that tells who can see it is not the one that was published"),
    Broken("it has a rule or a trigger that is not dbanon's", "DROP RULE, or DROP TRIGGER"),
    Broken("a role has a right on it other than to read it", "REVOKE all but SELECT from the role"),
)


def shape(release_id: int) -> sql.Identifier:
    """Name the composite type that fixes the columns of a released table."""
    return sql.Identifier(DATA_SCHEMA, f"shape_{release_id}")


def seen(number: int) -> sql.Identifier:
    """Name the function that checks if a snapshot sees the current release."""
    return sql.Identifier(DATA_SCHEMA, f"seen_{number}")


def seen_body(table: sql.Identifier) -> str:
    """Return the source of that function; ``table`` is the private copy."""
    return template("releases.seen_body", table=table).as_string()


def seal_statements(release: sql.Identifier, release_id: int) -> Iterator[sql.Composed]:
    """Yield the statements that make a filled copy immutable to all but superusers.

    Its type fixes the columns, a trigger refuses every statement, and even the owner loses the
    right to write. The owner can undo each of these, but no single statement both undoes one and
    changes a row. ``broken_seals`` and the digest of ``content`` detect it afterwards.
    """
    trigger, kind = sql.Identifier(TRIGGER), shape(release_id)
    body = template(
        "releases.bind_release_body",
        release=release,
        release_name=sql.Literal(release.as_string()),
        shape=kind,
        shape_name=sql.Literal(kind.as_string()),
    )
    yield template("releases.bind_release", body=Body(body))
    yield template("releases.create_seal", trigger=trigger, release=release)
    # ALWAYS: replicated changes fire no ordinary trigger.
    yield from close_statements(release)


def open_statements(release: sql.Identifier) -> Iterator[sql.Composed]:
    """Yield the statements that let the open transaction, and no other, replace the rows of a copy.

    DISABLE TRIGGER takes a lock that excludes all other writers until commit.
    """
    trigger = sql.Identifier(TRIGGER)
    yield sql.SQL("ALTER TABLE {} DISABLE TRIGGER {}").format(release, trigger)
    yield sql.SQL("GRANT INSERT, DELETE ON {} TO CURRENT_USER").format(release)


def close_statements(release: sql.Identifier) -> Iterator[sql.Composed]:
    """Yield the statements that make the copy immutable again."""
    trigger = sql.Identifier(TRIGGER)
    yield sql.SQL("ALTER TABLE {} ENABLE ALWAYS TRIGGER {}").format(release, trigger)
    yield sql.SQL("REVOKE {} ON {} FROM CURRENT_USER, PUBLIC").format(_RIGHTS, release)


def broken_seals(session: Session, published: int, data_id: int) -> Iterator[Broken]:
    """Yield the broken seals of the copy ``data_id`` and of its published view (an OID)."""
    copy = _copy(data_id)
    asked = {
        "trigger": TRIGGER,
        "view": published,
        "release": copy.as_string(),
        "seen": f"seen_{data_id}",
        "body": seen_body(copy),
    }
    with _unlocked(session):
        row = session.pg.execute(query("releases.broken_seals"), asked).fetchone()
    if row is None:
        yield Broken("its private copy is gone")
        return
    yield from (seal for seal, is_broken in zip(_BROKEN, row, strict=True) if is_broken)


@contextmanager
def _unlocked(session: Session) -> Iterator[None]:
    """Release the lock that printing a view takes before PostgreSQL 16: nothing was read."""
    is_unlocked = session.pg.read_only or session.pg.info.server_version >= _PRINTS_UNLOCKED
    with nullcontext() if is_unlocked else session.pg.transaction(force_rollback=True):
        yield


def definition(session: Session, published: int) -> str:
    """Return the server's major version, on which the text depends, and its digest (of an OID)."""
    with _unlocked(session):
        text: str = session.one(query("catalog.view_definition"), (published,))[0]
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"{session.pg.info.server_version // 10_000}:{digest}"


def same_definition(session: Session, published: int, digest: str) -> bool | None:
    """Return True if a view still has that definition, None if another version printed it."""
    now = definition(session, published)
    is_comparable = now.partition(":")[0] == digest.partition(":")[0]
    return now == digest if is_comparable else None


def content(session: Session, published: TableInfo, *beside: TableInfo) -> str:
    """Return a digest of the rows of some relations, in any order; scans each once."""
    document: list[object] = []
    for relation in (published, *beside):
        names = [column.name for column in relation.columns]
        document += [names, content_digest(session, relation, names)]
    return _sha256(document)


def class_column(names: Collection[str], name: str = CLASS_COLUMN) -> sql.Identifier:
    """Name a column beside the published ones, by default that of a copy with the class number."""
    while name in names:
        name = f"_{name}"
    return sql.Identifier(name)


def sums(session: Session, published: TableInfo, data_id: int) -> Sums:
    """Add up the rows of the copy ``data_id``."""
    names = [each.name for each in published.columns]
    slots = {"release": _copy(data_id), "class_column": class_column(names)}
    statement = template("releases.copy_sums", cells=cells_hash(published, names), **slots)
    found = session.pg.execute(statement).fetchall()
    rows, cells, numbers = (sum(int(one[i]) for one in found) for i in (1, 2, 3))
    return Sums(rows, cells, numbers, _digest({one[0]: one[1] for one in found}))


def written(session: Session, data_id: int, found: Sums) -> Sums:
    """Return sums with the present transactions."""
    return found._replace(writers=count_writers(session, data_id)[1])


def is_as_written(session: Session, data_id: int, found: Sums) -> bool:
    """Return True if no row of the copy was written or removed since its sums were taken.

    The numbers of transactions repeat after 2^32 others, and a dumped copy has others.
    """
    return (found.rows, found.writers) == count_writers(session, data_id)


def count_writers(session: Session, data_id: int) -> tuple[int, str]:
    """Return the rows of a copy, and a digest of who wrote them; counted unless known."""
    writers = _writers(session, data_id)
    return sum(writers.values()), _digest(writers)


def _writers(session: Session, data_id: int) -> dict[str, int]:
    """Return the rows of a copy by the transaction that wrote them.

    They are counted again if this transaction has changed more; raises DatabaseError for others.
    """
    known, changes = session.writers.get(data_id, (None, None))
    if known is None or changes != _changes(session, data_id):
        counted = template("releases.copy_writers", release=_copy(data_id))
        found: dict[str, int] = dict(session.pg.execute(counted).fetchall())
        if known is not None and found != known:
            message = f"other rows of the copy {data_id} were changed; nothing was published"
            raise DatabaseError(message, hint="dbanon refresh --new-series makes a new copy")
        known = found
        session.writers[data_id] = known, _changes(session, data_id)
    return known


def _changes(session: Session, data_id: int) -> tuple[int, int, int]:
    return session.one(query("releases.own_changes"), (_copy(data_id).as_string(),))


@contextmanager
def rewriting(session: Session, data_id: int) -> Iterator[Counter[str]]:
    """Open a copy in the block, which counts the rows that it loses by who wrote them."""
    writers, lost = Counter(_writers(session, data_id)), Counter[str]()
    inserted, updated, deleted = session.writers[data_id][1]
    session.run(open_statements(_copy(data_id)))
    yield lost
    session.run(close_statements(_copy(data_id)))
    writers.subtract(lost)
    changes = inserted + (-lost).total(), updated, deleted + (+lost).total()
    session.writers[data_id] = dict(+writers), changes


def known_sums(published: TableInfo, release: Entry) -> Sums | None:
    """Return the stored sums of the copy of a release, None if they are not those of its digest."""
    state = release.source_state
    found = None if state is None else state.copy
    is_of_digest = found is not None and numbered_content(published, found) == release.content
    return found if is_of_digest else None


def _copy(data_id: int) -> sql.Identifier:
    return sql.Identifier(DATA_SCHEMA, f"release_{data_id}")


def numbered_content(published: TableInfo, found: Sums) -> str:
    """Return the digest of ``content``, a colon, and one with the class numbers, from sums."""
    names = [each.name for each in published.columns]
    shown = _sha256([names, f"{found.rows}:{found.cells}"])
    of_numbers: list[object] = [
        names,
        class_column(names).as_string(),
        str(found.rows),
        str(found.numbers),
    ]
    return f"{shown}:{_sha256(of_numbers)}"


def shown_content(content: str) -> str:
    """Return the part of a digest that covers the published columns, without class numbers."""
    return content.partition(":")[0]


def _digest(writers: Mapping[str, int]) -> str:
    words = " ".join(f"{writer} {rows}" for writer, rows in sorted(writers.items()))
    return hashlib.sha256(words.encode()).hexdigest()


def _sha256(document: list[object]) -> str:
    return hashlib.sha256(json.dumps(document).encode()).hexdigest()
