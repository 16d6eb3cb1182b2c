"""Roles that can read releases of one series, and must not read another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.db import rights
from dbanon.db.histories import memory
from dbanon.db.metadata import ledger
from dbanon.db.releases import views
from dbanon.domain.errors import NotPermitted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dbanon.db.session import Session
    from dbanon.domain.table import TableInfo, TableName


def of_others(session: Session, table: TableInfo, *, release: int) -> set[str]:
    """Return the readers of a table's served relations in other series than a release's."""
    others = elsewhere(session, table, release=release)
    return rights.readers(session, others, source=table.oid)


def elsewhere(session: Session, table: TableInfo, *, release: int) -> list[int]:
    """Return the OIDs of a table's served relations in other series than a release's."""
    series = memory.series(session, table.name)
    served = ledger.served_entries(session, table=table.name)
    others = [one.relation for one in served if not _are_of_one(series, one.id, release)]
    return views.oids_of(session, others)


def _are_of_one(series: Mapping[int, int], one: int, other: int) -> bool:
    """Return True if two releases share a series; a live one is in all started before."""
    own = series.get(one, series.get(other))
    return own is None or all(memory.series_of(series, each, own) == own for each in (one, other))


def in_common(
    session: Session, others: set[str], *, table: TableInfo, relation: TableName
) -> list[str]:
    """Return the given roles that can read a relation, sorted by name."""
    published = views.oids_of(session, [relation] if others else [])
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
