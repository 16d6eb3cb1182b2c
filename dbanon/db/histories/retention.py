"""Deleted persons that are still published, and pools of new persons that failed the models."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from dbanon.db.queries import query
from dbanon.domain.release import Retained

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta

    from dbanon.db.session import Session
    from dbanon.domain.table import TableName


def find_deleted(session: Session, relation: TableName, *, deadline: timedelta | None) -> None:
    """Write deleted persons to ``history_missed``: when first missed, and if overdue."""
    session.pg.execute(query("membership.find_leavers"), {**_named(relation), "deadline": deadline})


def keep_deleted(session: Session, relation: TableName) -> None:
    """Store only the persons of ``history_missed`` that the next release retains."""
    for name in ("membership.discard_leavers", "membership.keep_leavers"):
        session.pg.execute(query(name), _named(relation))


def forget_deleted(session: Session, relation: TableName) -> None:
    """Delete the times of deleted persons, for an empty relation or a new grouping."""
    session.pg.execute(query("membership.forget_leavers"), _named(relation))


def failed_pools(session: Session, table: TableName) -> list[tuple[dict[str, str | None], int]]:
    """Return the kept values and persons of the last pools of a table that failed the models."""
    found = session.pg.execute(query("membership.failed_pools"), _named(table))
    return [(json.loads(kept), persons) for kept, persons in found]


def keep_pool(
    session: Session, relation: TableName, kept: Mapping[str, str | None], persons: int
) -> None:
    """Store the size of a pool that failed the models, also if this transaction is rolled back."""
    asked = {**_named(relation), "kept": _text(kept), "persons": persons}

    def keep(session: Session) -> None:
        forget_pools(session, relation, kept)
        session.pg.execute(query("membership.keep_pool"), asked)

    keep(session)
    session.lasting.append(keep)


def forget_pools(
    session: Session, relation: TableName, kept: Mapping[str, str | None] | None = None
) -> None:
    """Delete the failed pools of a relation, with some kept values or all."""
    asked = {**_named(relation), "kept": None if kept is None else _text(kept)}
    session.pg.execute(query("membership.forget_pools"), asked)


def _text(kept: Mapping[str, str | None]) -> str:
    return json.dumps(kept, sort_keys=True)


def count_deleted(session: Session, relation: TableName, *, deadline: timedelta | None) -> Retained:
    """Count the retained deleted persons of a relation, at its last refresh."""
    asked = {**_named(relation), "deadline": deadline}
    shown, overdue, since, failed = session.one(query("membership.count_leavers"), asked)
    due = since + deadline if since is not None and deadline is not None else None
    return Retained(relation, shown, overdue, since, due, failed)


def _named(relation: TableName) -> dict[str, str | None]:
    return {"schema": relation.schema, "name": relation.name}
