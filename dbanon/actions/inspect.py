"""Look at a table the way a policy will."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from dbanon.domain.progress import Stages
from dbanon.domain.table import TableName
from dbanon.settings import Settings

if TYPE_CHECKING:
    from dbanon.domain.policy import ColumnRule
    from dbanon.domain.table import ColumnInfo, ColumnStats, TableInfo
    from dbanon.formats.persons import Persons


@dataclass(frozen=True, slots=True)
class InspectedColumn:
    """A column, its counts (None when its values cannot be compared) and a suggested role."""

    info: ColumnInfo
    stats: ColumnStats | None
    suggestion: ColumnRule
    reason: str


@dataclass(frozen=True, slots=True)
class Inspection:
    """A table, its exact number of rows, its columns, and who seems to have several rows."""

    info: TableInfo
    n_rows: int
    columns: tuple[InspectedColumn, ...]
    persons: Persons | None = None


def inspect(
    table: str | TableName, *, settings: Settings | None = None, stages: Stages | None = None
) -> Inspection:
    """Count and describe every column of a table and suggest its role; needs SELECT only.

    Raises TableNotFound, NotPermitted, DatabaseError.
    """
    from dbanon.actions.preparation.loading import looking
    from dbanon.db import catalog, identity
    from dbanon.db.session import connect
    from dbanon.formats.persons import find
    from dbanon.formats.suggestions import suggest

    stages = stages or Stages()
    name = table if isinstance(table, TableName) else TableName.parse(table)
    with (
        connect(settings or Settings.load()) as session,
        looking(session, partial(catalog.describe, session, name)) as info,
    ):
        identity.admit(session, info)
        with stages("count"):
            n_rows, stats = catalog.statistics(session, info)
        persons = find(info, catalog.foreign_keys(session, info), stats)
    columns = tuple(
        InspectedColumn(info.column(rule.column), stats.get(rule.column), rule, reason)
        for rule, reason in suggest(info, stats, persons)
    )
    return Inspection(info, n_rows, columns, persons)
