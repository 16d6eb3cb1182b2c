"""Make the private copy that a table release is served from, or fill the former one anew.

A copy that is filled anew keeps its name, and the view of it stays as it is. Then nobody has to
wait: the old rows are deleted and new ones inserted in the one transaction of the publication, and
PostgreSQL shows every snapshot the rows of its own time, those of one release, until no snapshot
needs the old ones and VACUUM takes them.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import psycopg
from psycopg import sql

from dbanon.db import relations, seals, views
from dbanon.db.queries import query, template
from dbanon.domain.release import ReleaseKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dbanon.db.relations import Publication
    from dbanon.db.session import Session
    from dbanon.domain.release import Release


def make(session: Session, publication: Publication, previous: Release | None) -> Publication:
    """Fill the former copy if it is sealed and of the shape that is needed, else make a new one.

    Returns the publication with the number of its copy.
    """
    if previous is not None and _sealed(session, previous):
        refilled = replace(publication, former=previous.data_id)
        if _same_shape(session, publication, refilled):
            _refill(session, refilled)
            return refilled
    for statement in relations.serve_statements(publication):
        session.pg.execute(statement)
    return publication


def _sealed(session: Session, release: Release) -> bool:
    """Whether a release is served from a copy just as publishing left it."""
    if release.kind is not ReleaseKind.TABLE or not release.served or release.content is None:
        return False
    published = views.oid_of(session, release.relation)
    return published is not None and not any(
        seals.broken_seals(session, published, release.data_id)
    )


def _same_shape(session: Session, new: Publication, former: Publication) -> bool:
    served = relations.served_rows(new)
    session.pg.execute(template("shape_release", release=new.release, served=served))
    names = {"one": new.release.as_string(), "other": former.release.as_string()}
    row = session.pg.execute(query("same_shape"), names).fetchone()
    session.pg.execute(sql.SQL("DROP TABLE {}").format(new.release))
    return row is not None and bool(row[0])


def _refill(session: Session, publication: Publication) -> None:
    empty(session, publication.release)
    for statement in relations.copy_statements(publication, "refill_release"):
        session.pg.execute(statement)
    for statement in seals.close_statements(publication.release):
        session.pg.execute(statement)


def empty(session: Session, release: sql.Identifier) -> None:
    """Open a copy and delete all of its rows."""
    for statement in seals.open_statements(release):
        session.pg.execute(statement)
    session.pg.execute(sql.SQL("DELETE FROM ONLY {}").format(release))


def vacuum(session: Session, releases: Iterable[Release]) -> None:
    """Free the room of rows that no snapshot needs; what cannot be done now, the server does later.

    The file keeps its length: to cut it, nobody may read the table.
    """
    session.pg.rollback()
    session.pg.autocommit = True
    try:
        for release in releases:
            table = relations.data_table("release", release.data_id)
            with suppress(psycopg.Error):
                statement = sql.SQL("VACUUM (SKIP_LOCKED, TRUNCATE false) {}")
                session.pg.execute(statement.format(table))
    finally:
        session.pg.autocommit = False
