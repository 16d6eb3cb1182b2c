"""Who reads the releases of one series of a table, and is to read those of no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.db import rights
from dbanon.db.histories import memory
from dbanon.db.metadata import ledger
from dbanon.db.releases import views
from dbanon.domain.errors import NotPermitted

if TYPE_CHECKING:
    from dbanon.db.session import Session
    from dbanon.domain.table import TableInfo, TableName


def of_others(session: Session, table: TableInfo, *, release: int) -> set[str]:
    """Return who can read what a table serves in other series than that of a release."""
    series = memory.series(session, table.name)
    own = series.get(release)
    if own is None:
        return set()
    served = ledger.served_entries(session, table=table.name)
    others = [one.relation for one in served if memory.series_of(series, one.id, own) != own]
    return rights.readers(session, views.oids_of(session, others), source=table.oid)


def require_others(
    session: Session, others: set[str], *, table: TableInfo, relation: TableName
) -> None:
    """Raise NotPermitted when a relation can be read by somebody who reads another series."""
    published = views.oids_of(session, [relation])
    both = sorted(others & rights.readers(session, published, source=table.oid))
    if both:
        more = f" and {len(both) - 5} more" if len(both) > 5 else ""  # noqa: PLR2004
        raise NotPermitted(
            f"{', '.join(both[:5])}{more} can read {relation} and another series of releases of"
            f" {table.name}, and could compare them: the recipients are not others",
            hint="publish it under another --name, and grant that to others",
        )
