"""Count the rows of a live view that its guards hide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbanon.db import catalog, identity
from dbanon.db.audit import can_read
from dbanon.db.metadata.tables import DATA_SCHEMA
from dbanon.db.queries import template
from dbanon.domain.errors import TableNotFound
from dbanon.domain.release import ReleaseKind
from dbanon.domain.table import TableName

if TYPE_CHECKING:
    from dbanon.db.session import Session
    from dbanon.domain.release import Release


@dataclass(frozen=True, slots=True)
class Hidden:
    """Hidden rows: ``rows`` in ``classes`` that failed, ``gone`` that changed or were deleted."""

    published: int
    rows: int
    classes: int
    gone: int

    @property
    def total(self) -> int:
        """The number of hidden rows."""
        return self.rows + self.gone

    def __str__(self) -> str:
        return (
            f"it hides {self.total:,} of the {self.published:,} rows that were published:"
            f" {self.rows:,} in {self.classes:,} classes that failed, {self.gone:,} that were"
            " changed or deleted"
        )


def hidden(session: Session, release: Release) -> Hidden | None:
    """Count the hidden rows of a live release; None for a copy, or without the rights to count."""
    if release.kind is not ReleaseKind.VIEW or not release.served:
        return None
    names = []
    for prefix in ("rows", "groups"):
        try:
            info = catalog.describe(session, TableName(DATA_SCHEMA, f"{prefix}_{release.data_id}"))
        except TableNotFound:
            return None
        if not can_read(session, info):
            return None
        identity.hold(session, info)
        identity.admit(session, info)
        names.append(identity.readable(session, info))
    statement = template("live.count_shown", rows=names[0], groups=names[1])
    shown, rows, classes = session.one(statement)
    published = release.loss.n_rows - release.loss.n_suppressed
    return Hidden(published, rows, classes, max(published - shown - rows, 0))
