"""Every policy that was ever stored, as rows of the metadata tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from dbanon.db.metadata import tables as m
from dbanon.db.metadata.store import of_table
from dbanon.domain.policy import Version
from dbanon.formats import policies

if TYPE_CHECKING:
    from dbanon.db.session import Session
    from dbanon.domain.policy import Policy
    from dbanon.domain.table import TableName


def note_stored(session: Session, policy: Policy) -> None:
    """Enter a policy as the next version of its name, unless it is the same as the newest."""
    document = policies.to_document(policy)
    newest = next(iter(versions(session, policy.table, name=policy.name)), None)
    if newest is None or newest.document != document:
        _note(session, policy.table, policy.name, document)


def note_dropped(session: Session, table: TableName, name: str) -> None:
    """Enter that there is no policy of that name any more."""
    _note(session, table, name, None)


def _note(
    session: Session, table: TableName, name: str, document: dict[str, object] | None
) -> None:
    c = m.policy_version.c
    newest = sa.select(sa.func.coalesce(sa.func.max(c.version), 0) + 1).where(
        *of_table(m.policy_version, table), c.name == name
    )
    session.sa.execute(
        sa.insert(m.policy_version).values(
            table_schema=table.schema,
            table_name=table.name,
            name=name,
            version=newest.scalar_subquery(),
            document=sa.null() if document is None else document,
        )
    )


def versions(session: Session, table: TableName, *, name: str | None = None) -> list[Version]:
    """Return what was stored of a table, newest first; under one name, if asked."""
    c = m.policy_version.c
    conditions = of_table(m.policy_version, table)
    if name is not None:
        conditions = [*conditions, c.name == name]
    columns = (c.name, c.version, c.document, c.stored_at, c.stored_by)
    order = (c.stored_at.desc(), c.name, c.version.desc())
    rows = session.sa.execute(sa.select(*columns).where(*conditions).order_by(*order))
    return [Version(**row) for row in rows.mappings()]
