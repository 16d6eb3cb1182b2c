"""Make the private tables that a release is served from, or fill the former ones anew.

Tables that are filled anew keep their names, and the view of them stays as it is. Then nobody has
to wait: the old rows are deleted and new ones inserted in the one transaction of the publication,
and PostgreSQL shows every snapshot the rows of its own time, those of one release, until no
snapshot needs the old ones and VACUUM takes them.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import psycopg
from psycopg import sql

from dbanon.db.queries import query, relation, template
from dbanon.db.releases import immutability, relations, views
from dbanon.db.releases.live import guards
from dbanon.db.releases.publication import data_table
from dbanon.db.session import at_once
from dbanon.domain.release import ReleaseKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session
    from dbanon.domain.release import Entry
    from dbanon.domain.table import TableName


def make(session: Session, publication: Publication, previous: Entry | None) -> Publication:
    """Fill the former tables if they are intact and of the right shape, else make new ones.

    Returns the publication with the number of its tables.
    """
    if previous is not None and previous.served and previous.kind is publication.kind:
        former = replace(publication, former=previous.data_id)
        if publication.kind is ReleaseKind.VIEW and _guarded(session, publication, former):
            _move(session, publication, former)
            return former
        if publication.kind is ReleaseKind.TABLE and is_sealed(session, publication, previous):
            _refill(session, former)
            return former
    session.run(relations.serve_statements(publication))
    return publication


def is_closed(session: Session, previous: Entry) -> bool:
    """Whether nobody could change the former copy, nor the view of it."""
    published = views.oid_of(session, previous.relation)
    if published is None or previous.content is None:
        return False
    return not any(immutability.broken_seals(session, published, previous.data_id))


def is_sealed(session: Session, publication: Publication, previous: Entry) -> bool:
    """Whether the former copy is as publishing left it, and has the columns that are needed."""
    if not is_closed(session, previous):
        return False
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
    """Ask whether two relations have the same columns."""
    names = {"one": one.as_string(), "other": other.as_string()}
    return session.pg.execute(query("releases.same_shape"), names)


def same_shape(session: Session, one: sql.Identifier, other: sql.Identifier) -> bool:
    """Whether two relations have the same columns."""
    return _shapes(session, one, other).fetchone() == (True,)


def _guarded(session: Session, new: Publication, former: Publication) -> bool:
    """Whether the former membership of a live view can hold the new one, under its guards.

    Of a partitioned source it cannot: which partitions there are, and where, may have changed.
    """
    tables = [former.rows, former.groups, data_table("marks", former.data_id)]
    names = {"tables": [table.as_string() for table in tables], "unkeyed": tables[-1].as_string()}
    return (
        not new.info.partitions
        and session.pg.execute(query("releases.plain_tables"), names).fetchone() == (True,)
        and same_shape(session, new.rows, former.rows)
        and same_shape(session, new.groups, former.groups)
        and guards.stand(session, former)
        # Under another view, readers would see in old classes what is new.
        and _is_like(session, former, former.view, relations.view_statement)
    )


def _is_like(
    session: Session, former: Publication, view: TableName, create: Callable[..., sql.Composed]
) -> bool:
    """Whether a view is as it would be made now; ``create`` composes it under a given name."""
    candidate = former.candidate
    session.pg.execute(create(former, candidate))
    like, present = views.oid_of(session, candidate) or 0, views.oid_of(session, view) or 0
    same = views.same(session, present, like)
    session.pg.execute(sql.SQL("DROP VIEW {}").format(relation(candidate)))
    return same


def _move(session: Session, new: Publication, former: Publication) -> None:
    """Put the new membership in the place of the former; nobody writes the source meanwhile."""
    session.run(guards.class_statements(new))
    for source, target in ((new.groups, former.groups), (new.rows, former.rows)):
        session.pg.execute(sql.SQL("DELETE FROM ONLY {}").format(target))
        session.pg.execute(template("releases.move_rows", new=source, former=target))
        session.pg.execute(sql.SQL("DROP TABLE {}").format(source))
        session.pg.execute(sql.SQL("ANALYZE {}").format(target))
    if not _is_like(session, former, former.members, guards.members_statement):
        # Another policy: a dump of the database that has begun waits for it, and misses it.
        session.pg.execute(sql.SQL("DROP VIEW IF EXISTS {}").format(relation(former.members)))
        session.pg.execute(guards.members_statement(former, former.members))
    for compose in (guards.function_statements, guards.mark_statements, relations.seen_statements):
        session.run(compose(former))


def _refill(session: Session, publication: Publication) -> None:
    with at_once(session.pg):
        empty(session, publication.release)
        session.run(relations.copy_statements(publication, "releases.refill_release"))
        session.run(immutability.close_statements(publication.release))


def unseal(session: Session, release: sql.Identifier) -> None:
    """Let the open transaction, and no other, change the rows of a copy."""
    session.run(immutability.open_statements(release))


def empty(session: Session, release: sql.Identifier) -> None:
    """Open a copy and delete all of its rows."""
    unseal(session, release)
    session.pg.execute(sql.SQL("DELETE FROM ONLY {}").format(release))


def vacuum(session: Session, releases: Iterable[Entry]) -> None:
    """Free the room of rows that no snapshot needs; what cannot be done now, the server does later.

    The file keeps its length: to cut it, nobody may read the table.
    """
    session.pg.rollback()
    session.pg.autocommit = True
    try:
        for release in releases:
            of_copy = release.kind is ReleaseKind.TABLE
            if of_copy and release.data_id == release.id:
                continue  # nothing was ever deleted from it
            for prefix in ("release",) if of_copy else ("rows", "groups"):
                table = data_table(prefix, release.data_id)
                statement = sql.SQL("VACUUM (SKIP_LOCKED, TRUNCATE false) {}")
                with suppress(psycopg.Error):
                    session.pg.execute(statement.format(table))
    finally:
        session.pg.autocommit = False
