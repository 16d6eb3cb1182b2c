"""Refresh state of a relation: retained deleted persons, and failed pools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.db.queries import query
from dbanon.domain.release import Lingering

if TYPE_CHECKING:
    from datetime import timedelta

    from dbanon.db.session import Session
    from dbanon.domain.table import TableName


def find(session: Session, relation: TableName, *, deadline: timedelta | None) -> None:
    """Write deleted persons to ``history_missed``: when first missed, and if overdue."""
    session.pg.execute(query("standing.find_leavers"), {**_named(relation), "deadline": deadline})


def keep(session: Session, relation: TableName) -> None:
    """Store only the persons of ``history_missed`` that the next release retains."""
    for name in ("standing.discard_leavers", "standing.keep_leavers"):
        session.pg.execute(query(name), _named(relation))


def forget(session: Session, relation: TableName) -> None:
    """Delete the refresh state of a relation, for an empty relation or a new grouping."""
    session.pg.execute(query("standing.forget_leavers"), _named(relation))


def keep_pool(session: Session, relation: TableName, persons: int) -> None:
    """Store the size of a pool that failed the models, in persons; 0 clears it."""
    session.pg.execute(query("standing.forget_pool"), _named(relation))
    if persons:
        session.pg.execute(query("standing.keep_pool"), {**_named(relation), "persons": persons})


def count(session: Session, relation: TableName, *, deadline: timedelta | None) -> Lingering:
    """Count the retained deleted persons of a relation, at its last refresh."""
    asked = {**_named(relation), "deadline": deadline}
    shown, overdue, since, failed = session.one(query("standing.count_leavers"), asked)
    due = since + deadline if since is not None and deadline is not None else None
    return Lingering(relation, shown, overdue, since, due, failed)


def _named(relation: TableName) -> dict[str, str | None]:
    return {"schema": relation.schema, "name": relation.name}
