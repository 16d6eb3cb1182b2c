"""Find and repair missing parts of the metadata schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dbanon.db.metadata import ledger, spending
from dbanon.db.metadata import tables as m
from dbanon.db.metadata.tables import DATA_SCHEMA, SCHEMA, metadata
from dbanon.db.models import functions
from dbanon.db.queries import query
from dbanon.domain.table import TableName

if TYPE_CHECKING:
    from collections.abc import Iterator

    import sqlalchemy as sa

    from dbanon.db.session import Session


class Missing(NamedTuple):
    """A missing part; not mendable if its contents are lost."""

    kind: str
    name: str
    mendable: bool = True

    def __str__(self) -> str:
        """Describe the missing part."""
        where = "" if self.kind == "schema" else f"{SCHEMA}."
        return f"the {self.kind} {where}{self.name} is gone"


def missing(session: Session) -> list[Missing]:
    """Return the missing schemas, tables, columns and functions."""
    found = set(map(tuple, session.pg.execute(query("metadata.parts")).fetchall()))
    return [part for part in _parts(found) if (part.kind, part.name) not in found]


def _parts(found: set[tuple[str, ...]]) -> Iterator[Missing]:
    for schema in (SCHEMA, DATA_SCHEMA):
        yield Missing("schema", schema)
    for table in metadata.sorted_tables:
        yield Missing("table", table.name)
        if ("table", table.name) in found:
            for column in table.columns:
                yield Missing("column", f"{table.name}.{column.name}", _can_be_added(column))
    for name in functions.names():
        yield Missing("function", name)


def _can_be_added(column: sa.Column[object]) -> bool:
    return not column.primary_key and (column.nullable or column.server_default is not None)


def mend_tables(session: Session) -> list[str]:
    """Create missing tables and columns; returns the tables, which have no grants yet."""
    from alembic.ddl.base import AddColumn

    lost = missing(session)
    tables = [metadata.tables[f"{SCHEMA}.{part.name}"] for part in lost if part.kind == "table"]
    if tables:
        metadata.create_all(session.sa, tables=tables)
    if m.spending in tables:
        spending.note_loss(session)
    if m.account in tables:
        spending.open_accounts(session)
    if m.policy_version in tables:
        session.pg.execute(query("metadata.first_versions"))
    for part in lost:
        if part.kind == "column" and part.mendable:
            table, _, column = part.name.partition(".")
            described = metadata.tables[f"{SCHEMA}.{table}"].columns[column]
            session.sa.execute(AddColumn(table, described, schema=SCHEMA))
    session.pg.execute(query("metadata.number_on"))
    return [table.name for table in tables]


def lost_accounts(session: Session) -> list[str]:
    """Describe the tables with unknown spending of their privacy budget."""
    return [
        f"what counts of {table} have spent is gone, and they are refused until {SCHEMA}.spending"
        " is restored"
        for table in spending.unknown(session)
    ]


def foreign_triggers(session: Session) -> list[tuple[str, TableName, TableName]]:
    """Return name, table and function of other roles' triggers that call dbanon's functions."""
    rows = session.pg.execute(query("metadata.foreign_triggers")).fetchall()
    return [
        (trigger, TableName(schema, table), TableName(SCHEMA, function))
        for trigger, schema, table, function in rows
    ]


def ledger_is_gone(session: Session) -> bool:
    """Return True if the table of releases is missing."""
    return any((part.kind, part.name) == ("table", "release") for part in missing(session))


def views_of_data(session: Session) -> list[tuple[TableName, int]]:
    """Return the views of release data, each with the number of the data."""
    rows = session.pg.execute(query("metadata.views_of_data")).fetchall()
    return [(TableName(schema, name), data_id) for schema, name, data_id in rows]


def unrecorded_views(session: Session) -> list[TableName]:
    """Return the views of release data that the ledger does not have."""
    found = views_of_data(session)
    return [view for view, data_id in found if ledger.release_by_id(session, data_id) is None]
