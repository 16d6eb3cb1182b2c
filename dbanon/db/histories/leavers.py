"""What refreshes remember of a relation: who is shown though gone, and pools that failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.db.queries import query
from dbanon.domain.release import Lingering

if TYPE_CHECKING:
    from datetime import timedelta

    from dbanon.db.session import Session
    from dbanon.domain.table import TableName


def find(session: Session, relation: TableName, *, deadline: timedelta | None) -> None:
    """Write who is gone, since when, and whether for too long, into ``history_missed``."""
    session.pg.execute(query("standing.find_leavers"), {**_named(relation), "deadline": deadline})


def keep(session: Session, relation: TableName) -> None:
    """Remember those of ``history_missed`` whom the next release shows on, and nobody else."""
    for name in ("standing.discard_leavers", "standing.keep_leavers"):
        session.pg.execute(query(name), _named(relation))


def forget(session: Session, relation: TableName) -> None:
    """Forget both of a relation that shows nobody, or that was grouped from scratch."""
    session.pg.execute(query("standing.forget_leavers"), _named(relation))


def keep_pool(session: Session, relation: TableName, persons: int) -> None:
    """Remember how many new persons were in a pool that did not meet the models, 0 if it did.

    It takes the place of an earlier one.
    """
    session.pg.execute(query("standing.forget_pool"), _named(relation))
    if persons:
        session.pg.execute(query("standing.keep_pool"), {**_named(relation), "persons": persons})


def count(session: Session, relation: TableName, *, deadline: timedelta | None) -> Lingering:
    """Return how many a relation shows who are gone, as its last refresh has found."""
    asked = {**_named(relation), "deadline": deadline}
    shown, overdue, since, failed = session.one(query("standing.count_leavers"), asked)
    due = since + deadline if since is not None and deadline is not None else None
    return Lingering(relation, shown, overdue, since, due, failed)


def _named(relation: TableName) -> dict[str, str | None]:
    return {"schema": relation.schema, "name": relation.name}
