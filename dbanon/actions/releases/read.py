"""Read a published relation as a data frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.actions.releases.check import described
from dbanon.db.session import connect
from dbanon.domain import errors
from dbanon.domain.policy import Role
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    import pyarrow as pa

    from dbanon.domain.table import ColumnInfo, TableName


def read(
    relation: str | TableName,
    *,
    columns: Sequence[str] | None = None,
    settings: Settings | None = None,
) -> pd.DataFrame:
    """Read a published relation as a pandas frame with convenient types.

    Ranges are closed intervals, labels and texts of quasi-identifiers categories, sets tuples,
    numbers and times nullable types. columns: only these, in this order. ``attrs`` has
    ``relation``, ``release``, ``models``, ``roles`` and ``proved_at``. Needs SELECT on the
    relation. Raises ConfigError for a relation that dbanon did not publish, for a missing column,
    and without pandas.
    """
    errors.require_library("pandas", what="reading a data frame")
    import pandas as pd

    from dbanon.db.releases import reading

    with (
        connect(settings or Settings.load()) as session,
        session.transaction(read_only=True, keep=False),
    ):
        info, said = described(session, relation)
        roles = {column.name: column.role for column in said.columns}
        wanted = [info.column(name) for name in columns or roles]
        tables = reading.read(session, info.name, wanted)
    frame = pd.DataFrame(
        {
            column.name: _series(column, table, is_label=roles[column.name] is Role.QUASI)
            for column, table in zip(wanted, tables, strict=True)
        }
    )
    frame.attrs = {
        "relation": str(said.relation),
        "release": said.release,
        "models": {spec.name: dict(spec.params) for spec in said.models},
        "roles": {name: str(roles[name]) for name in frame},
        "proved_at": said.proved_at,
    }
    return frame


def _series(
    column: ColumnInfo, table: pa.Table, *, is_label: bool
) -> pd.Series | pd.arrays.IntervalArray:
    from dbanon.db.releases import reading
    from dbanon.formats import frames

    if column.base_type in reading.RANGES:
        return frames.intervals(table, reading.RANGES[column.base_type])
    if column.base_type.startswith("_"):
        return frames.sets(table["value"])
    return frames.scalars(table["value"], column.kind, is_label=is_label)
