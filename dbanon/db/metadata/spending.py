"""The spent privacy budget of tables with noisy counts."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from dbanon.db.queries import query
from dbanon.domain.table import TableInfo, TableName

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dbanon.db.session import Session


class _Entry(NamedTuple):
    """One count with noise; ``number``: its place among those of its table, None if lost."""

    schema: str
    name: str
    oid: int
    epsilon: Decimal
    number: int | None

    @property
    def known(self) -> set[object]:
        """The identities of its table."""
        return _known_by(self.oid, self.schema, self.name)


def spent(session: Session, info: TableInfo) -> Decimal:
    """Return the total epsilon spent on a table, infinite if unknown.

    Entries count by OID and name, and transitively by those that share one: copies have the same
    persons.
    """
    stored = _stored(session)
    entries = [(entry.known, entry.epsilon) for entry in stored]
    entries += [(known, Decimal("NaN")) for known in _incomplete(session, stored).values()]
    known = _known_by(info.oid, info.name.schema, info.name.name)
    while more := set().union(*(by for by, _ in entries if by & known)) - known:
        known |= more
    total = sum((epsilon for by, epsilon in entries if by & known), Decimal(0))
    return Decimal("Infinity") if total.is_nan() else total


def has_account(session: Session, table: TableName) -> bool:
    """Return True if any budget was spent on a table of that name."""
    named = {"schema": table.schema, "table": table.name}
    return session.one(query("metadata.has_account"), named) == (True,)


def _stored(session: Session) -> list[_Entry]:
    return [_Entry(*row) for row in session.pg.execute(query("metadata.spending"))]


def _incomplete(session: Session, stored: Iterable[_Entry]) -> dict[TableName, set[object]]:
    """Return the tables with gaps in their numbered entries, with all their names and OIDs."""
    found: dict[TableName, list[int | None]] = defaultdict(list)
    known: dict[TableName, set[object]] = defaultdict(set)
    for entry in stored:
        if entry.number != 0:
            found[TableName(entry.schema, entry.name)].append(entry.number)
            known[TableName(entry.schema, entry.name)] |= entry.known
    entries = {}
    for schema, name, oid, n in session.pg.execute(query("metadata.accounts")):
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


def unknown(session: Session) -> list[TableName]:
    """Return the tables with unknown spending."""
    stored = _stored(session)
    lost = {TableName(entry.schema, entry.name) for entry in stored if entry.epsilon.is_nan()}
    return sorted(lost | set(_incomplete(session, stored)), key=str)


def spend(session: Session, info: TableInfo, *, epsilon: Decimal, columns: Sequence[str]) -> None:
    """Record spent budget, in the transaction that publishes the counts."""
    entry = {
        "oid": info.oid,
        "schema": info.name.schema,
        "table": info.name.name,
        "epsilon": epsilon,
        "columns": list(columns),
    }
    session.pg.execute(query("metadata.add_spending"), entry)
