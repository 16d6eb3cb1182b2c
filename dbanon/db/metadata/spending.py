"""What counts with noise have spent of the budget of a table."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import sqlalchemy as sa

from dbanon.db.metadata import tables as m
from dbanon.db.metadata.store import of_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dbanon.db.session import Session
    from dbanon.domain.table import TableInfo


def spent(session: Session, info: TableInfo) -> Decimal:
    """Return the sum of all that was ever spent on a table, by its name or by its OID."""
    named = sa.and_(*of_table(m.spending, info.name))
    of_it = sa.or_(m.spending.c.table_oid == info.oid, named)
    total = sa.select(sa.func.coalesce(sa.func.sum(m.spending.c.epsilon), 0)).where(of_it)
    return Decimal(session.sa.execute(total).scalar_one())


def spend(session: Session, info: TableInfo, *, epsilon: Decimal, columns: Sequence[str]) -> None:
    """Note what is spent, in the transaction that publishes what it is spent on."""
    noted = sa.insert(m.spending).values(
        table_oid=info.oid,
        table_schema=info.name.schema,
        table_name=info.name.name,
        epsilon=epsilon,
        columns=list(columns),
    )
    session.sa.execute(noted)
