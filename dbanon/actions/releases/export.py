"""Export a published relation as a file, proved on the same snapshot."""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from dbanon.actions.releases.check import proved_relation
from dbanon.db.proofs import checks
from dbanon.db.queries import printed
from dbanon.db.releases import reading
from dbanon.db.session import connect
from dbanon.domain.release import CheckReport, ExportFormat
from dbanon.domain.table import UNPRINTED, ColumnKind
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dbanon.domain.table import ColumnInfo, TableName


@dataclass(frozen=True, slots=True)
class Export:
    """An exported relation with its proof on the same snapshot.

    columns: type of each in PostgreSQL; sha256: of ``content``, the bytes of the file; statement:
    proves the relation again in SQL.
    """

    relation: TableName
    release: int
    format: ExportFormat
    columns: Mapping[str, str]
    rows: int
    sha256: str
    checks: CheckReport
    statement: str
    content: bytes = field(repr=False, metadata=UNPRINTED)


def export(
    relation: str | TableName,
    *,
    format: ExportFormat | str = ExportFormat.PARQUET,  # noqa: A002 - the name of the option
    settings: Settings | None = None,
) -> Export:
    """Return a published relation as the bytes of a file, and its proof on the same snapshot.

    CSV has the texts of PostgreSQL. Parquet has a range as a struct of ``low`` and ``high`` (NULL
    if open) and ``closed`` (whether ``high`` is in it), a set as a list, and a number with decimals
    as a double. Needs SELECT on the relation. Raises ConfigError for a relation that dbanon did not
    publish, and CheckFailed if a model fails.
    """
    chosen = ExportFormat(format)
    with (
        connect(settings or Settings.load()) as session,
        proved_relation(session, relation) as (info, release, report),
    ):
        if chosen is ExportFormat.CSV:
            content = reading.as_csv(session, info.name)
        else:
            tables = reading.read(session, info.name, info.columns)
            content = _parquet(dict(zip(info.columns, tables, strict=True)))
    counted = report.of_k or next(iter(report.results))
    return Export(
        relation=info.name,
        release=release,
        format=chosen,
        columns={column.name: column.type for column in info.columns},
        rows=counted.n_rows,
        sha256=hashlib.sha256(content).hexdigest(),
        checks=report,
        statement=printed(checks.verification(checks.named(info.name))).strip(),
        content=content,
    )


def _parquet(columns: Mapping[ColumnInfo, pa.Table]) -> bytes:
    arrays = [_array(column, table.combine_chunks()) for column, table in columns.items()]
    out = io.BytesIO()
    parquet.write_table(pa.table(arrays, names=[column.name for column in columns]), out)
    return out.getvalue()


def _array(column: ColumnInfo, table: pa.Table) -> pa.ChunkedArray | pa.Array:
    if column.base_type in reading.RANGES:
        kind = reading.RANGES[column.base_type]
        ends = [_moments(table[name], kind).combine_chunks() for name in ("low", "high")]
        known = table["known"].combine_chunks()
        names = ["low", "high", "closed"]
        parts = [*ends, table["closed"].combine_chunks()]
        return pa.StructArray.from_arrays(parts, names=names, mask=pc.invert(known))
    if column.base_type.startswith("_"):
        texts = table["value"].to_pylist()
        return pa.array([None if text is None else json.loads(text) for text in texts])
    return _moments(table["value"], column.kind)


def _moments(values: pa.ChunkedArray, kind: ColumnKind) -> pa.ChunkedArray:
    """Return microseconds as times, and other values as they are."""
    if not kind.is_moment:
        return values
    times = values.cast(pa.timestamp("us", "UTC" if kind is ColumnKind.TIMESTAMPTZ else None))
    return times.cast(pa.date32()) if kind is ColumnKind.DATE else times
