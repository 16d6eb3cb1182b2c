"""Roles that can read releases of one series, and must not read another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.db import rights
from dbanon.db.histories import memory
from dbanon.db.metadata import ledger
from dbanon.db.queries import named, template
from dbanon.db.releases import relations
from dbanon.domain.errors import NotPermitted

if TYPE_CHECKING:
    from collections.abc import Mapping

    import psycopg

    from dbanon.db.session import Session
    from dbanon.domain.table import TableInfo, TableName


def of_others(session: Session, table: TableInfo, *, release: int) -> set[str]:
    """Return the readers of a table's served relations in other series than a release's."""
    others = elsewhere(session, table, release=release)
    return rights.readers(session, others, source=table.oid)


def is_unread(connection: psycopg.Connection, table: TableInfo, relation: TableName) -> bool:
    """Return True if no role but its owner was ever granted a release of a relation's series.

    Such releases bind nothing, if the table serves no other relation. False if unknown. Superusers
    and members of the owner's role who can read the table count as the owner.
    """
    statement = template("rights.is_unread", mark=template("rights.relation_mark"))
    asked = {"table_schema": table.name.schema, "table_name": table.name.name, "source": table.oid}
    return connection.execute(statement, {**named(relation), **asked}).fetchone() == (True,)


def mark(session: Session, relation: TableName, *, release: int) -> None:
    """Store what identifies the relation of a release, for ``is_unread``."""
    statement = template("rights.mark_relation", mark=template("rights.relation_mark"))
    session.pg.execute(statement, {**named(relation), "release": release})


def elsewhere(
    session: Session, table: TableInfo, *, release: int, without: TableName | None = None
) -> list[int]:
    """Return the OIDs of a table's served relations in other series than a release's.

    without: a relation whose readers may have both series.
    """
    series = memory.series(session, table.name)
    served = ledger.served_entries(session, table=table.name)
    others = [one.relation for one in served if not _are_of_one(series, one.id, release)]
    return relations.oids_of(session, [one for one in others if one != without])


def _are_of_one(series: Mapping[int, int], one: int, other: int) -> bool:
    """Return True if two releases share a series; a live one is in all started before."""
    own = series.get(one, series.get(other))
    return own is None or all(memory.series_of(series, each, own) == own for each in (one, other))


def in_common(
    session: Session, others: set[str], *, table: TableInfo, relation: TableName
) -> list[str]:
    """Return the given roles that can read a relation, sorted by name."""
    published = relations.oids_of(session, [relation] if others else [])
    return sorted(others & rights.readers(session, published, source=table.oid))


def require_others(
    session: Session, others: set[str], *, table: TableInfo, relation: TableName
) -> None:
    """Raise NotPermitted if a reader of another series can read a relation."""
    if both := in_common(session, others, table=table, relation=relation):
        more = f" and {len(both) - 5} more" if len(both) > 5 else ""  # noqa: PLR2004
        raise NotPermitted(
            f"{', '.join(both[:5])}{more} can read {relation} and another series of releases of"
            f" {table.name}, and could compare them: the recipients are not others",
            hint="publish it under another --name, and grant that to others",
        )
