"""Create the private tables of a release, or replace the rows of the previous ones.

Replaced tables keep their names and views, so no reader waits. Each snapshot sees the rows of
exactly one release; VACUUM removes the old rows when no snapshot needs them.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import psycopg
from psycopg import sql

from dbanon.db.queries import query, relation, template
from dbanon.db.releases import guards, immutability, relations
from dbanon.db.releases.publication import data_table
from dbanon.db.session import at_once

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session
    from dbanon.domain.release import Entry
    from dbanon.domain.table import TableName


def refilled(
    session: Session, publication: Publication, previous: Entry | None
) -> Publication | None:
    """Replace the rows of the previous tables if they are intact and have the same columns.

    Returns the publication with the number of these tables; None if new ones are needed.
    """
    if previous is not None and previous.served and previous.kind is publication.kind:
        former = replace(publication, former=previous.data_id)
        if publication.kind.is_live and _guarded(session, publication, former):
            _move(session, publication, former)
            return former
        if not publication.kind.is_live and is_sealed(session, publication, previous):
            _refill(session, former)
            return former
    return None


def is_closed(session: Session, previous: Entry) -> bool:
    """Return True if nobody could change the previous copy or its view."""
    published = relations.oid_of(session, previous.relation)
    if published is None or previous.content is None:
        return False
    return not any(immutability.broken_seals(session, published, previous.data_id))


def needs_repair(session: Session, served: Entry) -> bool:
    """Return True if publishing repairs a view that is gone or another, or a copy.

    The copy is open, or a row of it was written or removed.
    """
    published = relations.oid_of(session, served.relation)
    if published is None or served.content is None:
        return True
    if served.kind.is_live:
        return immutability.same_definition(session, published, served.content) is False
    seals = immutability.broken_seals(session, published, served.data_id)
    state = served.source_state
    return any(seal.remedy is None for seal in seals) or (
        state is not None
        and state.copy is not None
        and not immutability.is_as_written(session, served.data_id, state.copy)
    )


def is_sealed(session: Session, publication: Publication, previous: Entry) -> bool:
    """Return True if the previous copy is unchanged and has the columns of the new one."""
    return is_closed(session, previous) and _is_shaped(session, publication, previous)


def _is_shaped(session: Session, publication: Publication, previous: Entry) -> bool:
    served = relations.served_rows(publication)
    former = data_table("release", previous.data_id)
    with at_once(session.pg):
        session.pg.execute(
            template("releases.shape_release", release=publication.release, served=served)
        )
        same = _shapes(session, publication.release, former)
        session.pg.execute(sql.SQL("DROP TABLE {}").format(publication.release))
    return same.fetchone() == (True,)


def _shapes(session: Session, one: sql.Identifier, other: sql.Identifier) -> psycopg.Cursor:
    names = {"one": one.as_string(), "other": other.as_string()}
    return session.pg.execute(query("releases.same_shape"), names)


def same_shape(session: Session, one: sql.Identifier, other: sql.Identifier) -> bool:
    """Return True if two relations have the same columns."""
    return _shapes(session, one, other).fetchone() == (True,)


def _guarded(session: Session, new: Publication, former: Publication) -> bool:
    """Return True if the tables and guards of the previous live view fit the new membership."""
    tables = [former.rows, former.groups, data_table("marks", former.data_id)]
    names = {"tables": [table.as_string() for table in tables], "unkeyed": tables[-1].as_string()}
    return (
        not new.info.partitions
        and session.pg.execute(query("releases.plain_tables"), names).fetchone() == (True,)
        and same_shape(session, new.rows, former.rows)
        and same_shape(session, new.groups, former.groups)
        and guards.stand(session, former)
        # Under another view, readers would see new rows in old classes.
        and _is_like(session, former, former.view, relations.view_statement)
    )


def _is_like(
    session: Session, former: Publication, view: TableName, create: Callable[..., sql.Composed]
) -> bool:
    """Return True if a view equals the one that ``create`` composes now."""
    candidate = former.candidate
    session.pg.execute(create(former, candidate))
    same = relations.same(session, view, candidate)
    session.pg.execute(sql.SQL("DROP VIEW {}").format(relation(candidate)))
    return same


def _move(session: Session, new: Publication, former: Publication) -> None:
    """Replace the previous membership with the new one; writers of the source are locked out."""
    session.run(guards.class_statements(new))
    for source, target in ((new.groups, former.groups), (new.rows, former.rows)):
        session.emptied.append(target)
        session.pg.execute(sql.SQL("DELETE FROM ONLY {}").format(target))
        session.pg.execute(template("releases.move_rows", new=source, former=target))
        session.pg.execute(sql.SQL("DROP TABLE {}").format(source))
        session.pg.execute(sql.SQL("ANALYZE {}").format(target))
    if not _is_like(session, former, former.members, guards.members_statement):
        # Another policy: a running dump of the database waits for it, and misses it.
        session.pg.execute(sql.SQL("DROP VIEW IF EXISTS {}").format(relation(former.members)))
        session.run(guards.members_statements(former))
    for compose in (guards.function_statements, guards.mark_statements, relations.seen_statements):
        session.run(compose(former))


def _refill(session: Session, publication: Publication) -> None:
    with at_once(session.pg):
        empty(session, publication.release)
        session.run(relations.copy_statements(publication, "releases.refill_release"))
        session.run(immutability.close_statements(publication.release))


def empty(session: Session, release: sql.Identifier) -> None:
    """Unseal a copy and delete all of its rows."""
    session.writers.clear()
    session.emptied.append(release)
    session.run(immutability.open_statements(release))
    session.pg.execute(sql.SQL("DELETE FROM ONLY {}").format(release))


def vacuum(session: Session, tables: Iterable[sql.Identifier]) -> None:
    """VACUUM tables, except locked ones; truncation would lock out readers."""
    session.pg.rollback()
    session.pg.autocommit = True
    try:
        for table in tables:
            with suppress(psycopg.Error):
                statement = sql.SQL("VACUUM (SKIP_LOCKED, TRUNCATE false) {}")
                session.pg.execute(statement.format(table))
    finally:
        session.pg.autocommit = False
