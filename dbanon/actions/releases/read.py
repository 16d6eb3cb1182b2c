"""Read a published relation as a data frame."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbanon.actions.releases.check import described
from dbanon.db.releases import reading
from dbanon.db.session import connect
from dbanon.domain import errors
from dbanon.domain.policy import Role
from dbanon.domain.table import ColumnKind
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from dbanon.domain.table import ColumnInfo, TableName

_FIRST, _LAST = np.datetime64("0001-01-01", "us"), np.datetime64("9999-12-31", "us")


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
    if column.base_type in reading.RANGES:
        return _intervals(table, reading.RANGES[column.base_type])
    if column.base_type.startswith("_"):
        return _sets(table["value"])
    return _scalars(table["value"], column.kind, is_label=is_label)


def _intervals(ends: pa.Table, kind: ColumnKind) -> pd.arrays.IntervalArray:
    """Return ranges as closed intervals; a NULL range is missing.

    ends: as ``db.releases.reading`` reads them; open ones become infinite numbers, or Python's
    first or last day.
    """
    import pandas as pd

    known = ends["known"].to_numpy()
    is_half_open = pc.and_(pc.invert(ends["closed"]), ends["high"].is_valid()).fill_null(False)  # noqa: FBT003 - of Arrow
    low, high = (_ends(ends[name], known, kind, is_low=name == "low") for name in ("low", "high"))
    before = np.flatnonzero(is_half_open.to_numpy())
    if kind.is_moment:
        high[before] -= np.timedelta64(1, "us")
    else:
        # a range of huge numbers may lie between two floats, and both of its ends be one of them
        high[before] = np.maximum(low[before], np.nextafter(high[before], -np.inf))
    left, right = _index(low, kind), _index(high, kind)
    return pd.arrays.IntervalArray.from_arrays(left, right, closed="both")


def _ends(
    values: pa.ChunkedArray, known: NDArray[np.bool_], kind: ColumnKind, *, is_low: bool
) -> NDArray[Any]:
    is_open = known & values.is_null().to_numpy()
    if kind.is_moment:
        times: NDArray[Any] = values.fill_null(0).to_numpy().astype("datetime64[us]")
        times[is_open] = _FIRST if is_low else _LAST
        times[~known] = np.datetime64("NaT")
        return times
    numbers: NDArray[Any] = values.fill_null(0).to_numpy().copy()
    if kind is ColumnKind.INTEGER and not values.null_count:
        return numbers
    numbers = numbers.astype(np.float64)
    numbers[is_open] = -np.inf if is_low else np.inf
    numbers[~known] = np.nan
    return numbers


def _index(ends: NDArray[Any], kind: ColumnKind) -> pd.Index:
    import pandas as pd

    index = pd.Index(ends)
    return index.tz_localize("UTC") if kind is ColumnKind.TIMESTAMPTZ else index


def _sets(values: pa.ChunkedArray) -> pd.Series:
    """Return sets as tuples, None for NULL; values: JSON."""
    import pandas as pd

    coded = pc.dictionary_encode(values.combine_chunks())
    tuples = [tuple(json.loads(text)) for text in coded.dictionary.to_pylist()]
    chosen = [None if i is None else tuples[i] for i in coded.indices.to_pylist()]
    return pd.Series(chosen, dtype=object)


def _scalars(values: pa.ChunkedArray, kind: ColumnKind, *, is_label: bool) -> pd.Series:
    """Return values in the narrowest type with NULL; is_label: make texts categorical."""
    import pandas as pd

    if kind.is_moment:
        zone = "UTC" if kind is ColumnKind.TIMESTAMPTZ else None
        return values.cast(pa.timestamp("us", zone)).to_pandas()
    if is_label and pa.types.is_string(values.type):
        return values.dictionary_encode().to_pandas()
    nullable = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    return values.to_pandas(types_mapper=nullable.get)
