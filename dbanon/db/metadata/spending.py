"""The spent privacy budget of tables with noisy counts."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal
from typing import TYPE_CHECKING

import sqlalchemy as sa

from dbanon.db.metadata import tables as m
from dbanon.domain.table import TableInfo, TableName

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dbanon.db.session import Session


def spent(session: Session, info: TableInfo) -> Decimal:
    """Return the total epsilon spent on a table, infinite if unknown.

    Entries count by OID and name, and transitively by those that share one: copies have the same
    persons.
    """
    c = m.spending.c
    columns = (c.table_oid, c.table_schema, c.table_name, c.epsilon)
    entries = [
        (_known_by(oid, schema, name), epsilon)
        for oid, schema, name, epsilon in session.sa.execute(sa.select(*columns))
    ]
    entries += [(known, Decimal("NaN")) for known in _incomplete(session).values()]
    known = _known_by(info.oid, info.name.schema, info.name.name)
    while more := set().union(*(by for by, _ in entries if by & known)) - known:
        known |= more
    total = sum((epsilon for by, epsilon in entries if by & known), Decimal(0))
    return Decimal("Infinity") if total.is_nan() else total


def has_account(session: Session, table: TableName) -> bool:
    """Return True if any budget was spent on a table of that name."""
    found = [
        sa.exists().where(one.c.table_schema == table.schema, one.c.table_name == table.name)
        for one in (m.spending, m.account)
    ]
    return bool(session.sa.execute(sa.select(sa.or_(*found))).scalar_one())


def _incomplete(session: Session) -> dict[TableName, set[object]]:
    """Return the tables with gaps in their numbered entries, with all their names and OIDs."""
    c = m.spending.c
    numbers = sa.select(c.table_schema, c.table_name, c.table_oid, c.number).where(
        sa.or_(c.number.is_(None), c.number != 0)
    )
    found: dict[TableName, list[int | None]] = defaultdict(list)
    known: dict[TableName, set[object]] = defaultdict(set)
    for schema, name, oid, number in session.sa.execute(numbers):
        found[TableName(schema, name)].append(number)
        known[TableName(schema, name)] |= _known_by(oid, schema, name)
    a = m.account.c
    entries = {}
    for schema, name, oid, n in session.sa.execute(
        sa.select(a.table_schema, a.table_name, a.table_oid, a.entries)
    ):
        entries[TableName(schema, name)] = n
        known[TableName(schema, name)] |= _known_by(oid, schema, name)
    return {
        table: known[table]
        for table in {*found, *entries}
        if None in found[table]
        or len(found[table]) != entries.get(table, 0)
        or set(found[table]) != set(range(1, len(found[table]) + 1))
    }


def _known_by(oid: int, schema: str | None, name: str) -> set[object]:
    return {(schema, name), oid} if oid else {(schema, name)}


def note_loss(session: Session) -> None:
    """Record an unknown spending for each table that ever had a policy with a budget."""
    tables = sa.union(
        *(
            sa.select(table.c.table_schema, table.c.table_name).where(document.has_key("budget"))
            for table, document in (
                (m.policy, m.policy.c.document),
                (m.policy_version, m.policy_version.c.document),
            )
        )
    )
    for schema, name in session.sa.execute(tables).all():
        noted = sa.insert(m.spending).values(
            table_oid=0, table_schema=schema, table_name=name, epsilon=Decimal("NaN"), columns=[]
        )
        session.sa.execute(noted)


def unknown(session: Session) -> list[TableName]:
    """Return the tables with unknown spending."""
    c = m.spending.c
    names = sa.select(c.table_schema, c.table_name).where(c.epsilon == Decimal("NaN")).distinct()
    lost = {TableName(*name) for name in session.sa.execute(names)} | set(_incomplete(session))
    return sorted(lost, key=str)


def open_accounts(session: Session) -> None:
    """Restore lost entry counts from the numbers of the entries."""
    c = m.spending.c
    counted = sa.select(
        c.table_schema, c.table_name, sa.func.max(c.table_oid), sa.func.max(c.number)
    ).where(c.number > 0)
    columns = ["table_schema", "table_name", "table_oid", "entries"]
    grouped = counted.group_by(c.table_schema, c.table_name)
    session.sa.execute(sa.insert(m.account).from_select(columns, grouped))


def spend(session: Session, info: TableInfo, *, epsilon: Decimal, columns: Sequence[str]) -> None:
    """Record spent budget, in the transaction that publishes the counts."""
    noted = sa.insert(m.spending).values(
        table_oid=info.oid,
        table_schema=info.name.schema,
        table_name=info.name.name,
        epsilon=epsilon,
        columns=list(columns),
    )
    session.sa.execute(noted)
