"""Fill the private tables of a release."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np
import psycopg
import pyarrow as pa
from psycopg import sql

from dbanon.db import identity
from dbanon.db.queries import template
from dbanon.db.transfer import ROWS_AT_ONCE, copy_statement, send, tids, write_codes, write_table
from dbanon.domain.chance import shuffled
from dbanon.domain.errors import PolicyError
from dbanon.domain.policy import Role
from dbanon.domain.table import quote_identifier
from dbanon.formats import column_values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session
    from dbanon.db.transfer import SourceRows
    from dbanon.domain.assignment import Assignment, GroupValues


def copy_statements(publication: Publication) -> Iterator[sql.Composed]:
    """Yield the COPY commands that fill the private tables."""
    yield copy_statement(publication.rows, _row_columns(publication))
    yield copy_statement(publication.groups, _group_columns(publication))
    if publication.drafted:
        yield copy_statement(publication.draft, ["code", *publication.coded.values()])


def _row_columns(publication: Publication) -> list[str]:
    given = [*publication.key_columns, *publication.written.values()]
    given += [] if publication.places is None else ["place"]
    return [*given, "group_id", *([] if publication.kind.is_live else ["value"])]


def _group_columns(publication: Publication) -> list[str]:
    return ["group_id", *(f"q{i}" for i in range(1, len(publication.recodings) + 1))]


def staged(session: Session, publication: Publication, source: SourceRows) -> Publication:
    """Copy the needed source columns to a temporary table, and read that from now on.

    Not for live views, which only an owner publishes, nor for a draft that is complete in memory.
    Means of a source with computed rows are proved from the rows that were read.
    """
    drafted = publication.drafted and publication.policy.is_one_row(publication.info)
    proved = publication.info.is_computed and bool(publication.policy.means)
    if publication.kind.is_live or (drafted and not proved):
        return publication
    create, fill_it = _stage_statements(publication)
    if source.copied is not None:
        session.pg.execute(create)
        names = [*source.keys.column_names, *source.copied.column_names]
        rows = pa.table([*source.keys.columns, *source.copied.columns], names=names)
        write_table(session, publication.stage, rows)
    else:
        identity.harmless(session, fill_it, keep=True, after=[create])
        if source.frozen is not None and len(source.frozen):
            _freeze(session, publication, source.take(source.frozen))
    session.pg.execute(sql.SQL("ANALYZE {}").format(publication.stage))
    return replace(publication, pin=publication.stage)


def _freeze(session: Session, publication: Publication, source: SourceRows) -> None:
    info, names = publication.info, source.columns.column_names
    numbered = [*zip(names, (f"v{i}" for i in range(1, len(names) + 1)), strict=True)]
    texts = [sql.SQL("NULL::text AS {}").format(sql.Identifier(value)) for _, value in numbered]
    slots = {"stage": publication.stage, "frozen": publication.frozen}
    columns = sql.SQL(", ").join([*publication.named_keys(of="s"), *texts])
    session.pg.execute(template("atoms.create_frozen", columns=columns, **slots))
    written = [*publication.key_columns, *(value for _, value in numbered)]
    rows = pa.table([*source.keys.columns, *source.columns.columns], names=written)
    write_table(session, publication.frozen, rows)
    values = sql.SQL(", ").join(
        sql.SQL("{} = r.{}::{}").format(
            sql.Identifier(name),
            sql.Identifier(value),
            sql.Identifier(info.column(name).base_schema, info.column(name).base_type),
        )
        for name, value in numbered
    )
    freeze = template("atoms.freeze_stage", values=values, join=publication.join, **slots)
    identity.harmless(session, freeze, keep=True)


def _stage_statements(publication: Publication) -> tuple[sql.Composed, sql.Composed]:
    """Compose the statements that create and fill the temporary copy, in base types."""
    info, subject = publication.info, publication.policy.subject
    names = {*info.primary_key, *publication.copied, *([] if subject is None else [subject])}
    if publication.policy.anatomy:
        names |= {rule.column for rule in publication.policy.with_role(Role.SENSITIVE)}
    names |= {rule.column for rule in publication.policy.replaced}
    if info.is_computed:
        names |= {rule.column for rule in publication.policy.means}
    columns = sql.SQL(", ").join(
        sql.SQL("s.{0}::{1} AS {0}").format(
            sql.Identifier(column.name), sql.Identifier(column.base_schema, column.base_type)
        )
        if column.is_domain
        else sql.Identifier("s", column.name)
        for column in info.columns
        if column.name in names
    )
    slots = {"stage": publication.stage, "columns": columns, "source": publication.reading}
    return template("releases.create_stage", **slots), template("releases.fill_stage", **slots)


def fill(
    session: Session,
    publication: Publication,
    source: SourceRows,
    *,
    assignment: Assignment,
    values: GroupValues,
) -> None:
    """COPY membership, group values and the draft, if any, without suppressed rows.

    source: keys and at least the sensitive columns. For a draft, the numbers of groups and codes
    and all rows are shuffled, so that the copy does not disclose the order of the source, whatever
    join PostgreSQL chooses.
    """
    drafted, shown = publication.drafted, np.flatnonzero(assignment.group >= 0)
    order = shuffled(values.n_groups) if drafted else np.arange(values.n_groups)
    numbers, drafts = [_inverse(order)[assignment.group]], list[pa.Table]()
    if not publication.kind.is_live:
        codes, first, objects = column_values.number(source.columns, publication.info)
        is_shown = np.bincount(codes[shown], minlength=len(objects)) > 0
        codes = (np.cumsum(is_shown, dtype=np.int32) - np.int32(1))[codes]
        first = first[is_shown]
        objects = [*compress(objects, is_shown)]
        if drafted:
            mixed = shuffled(len(objects))
            codes, objects = _inverse(mixed)[codes], [objects[i] for i in mixed]
            kept = source.columns.select([*publication.coded]).take(pa.array(first[mixed])).columns
            numbered = [pa.array(np.arange(len(mixed), dtype=np.int32)), *kept]
            drafts.append(pa.table(numbered, names=["code", *publication.coded.values()]))
            shown = shown[shuffled(len(shown))]
        write_codes(session, publication.codes, objects)
        numbers.append(codes)
    into_rows, into_groups, *into_draft = copy_statements(publication)
    copied = source.columns if source.copied is None else source.copied
    given = [*source.keys.columns, *(copied.column(name) for name in publication.written)]
    given += [] if publication.places is None else [tids(source.places)]
    columns = [*(column.combine_chunks() for column in given), *map(pa.array, numbers)]
    send(session, into_rows, _rows(columns, shown, _row_columns(publication)))
    try:
        send(session, into_groups, _groups(values, order, _group_columns(publication)))
    except psycopg.DataError as error:
        raise _misfit(publication, error) from None
    for statement, draft in zip(into_draft, drafts, strict=True):
        send(session, statement, [draft])


def _inverse(order: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return the place of each number in an order; -1, the last, stays."""
    found = np.full(len(order) + 1, -1, np.int32)
    found[order] = np.arange(len(order))
    return found


def _parts(size: int) -> Iterator[slice]:
    return (slice(i, min(i + ROWS_AT_ONCE, size)) for i in range(0, size, ROWS_AT_ONCE))


def _rows(
    columns: list[pa.Array], shown: NDArray[np.int64], names: list[str]
) -> Iterator[pa.Table]:
    """Yield the published rows in the given order."""
    for part in _parts(len(shown)):
        rows = pa.array(shown[part])
        yield pa.table([column.take(rows) for column in columns], names=names)


def _groups(values: GroupValues, order: NDArray[np.int64], names: list[str]) -> Iterator[pa.Table]:
    labels = [pa.array(column.labels, pa.string()) for column in values.columns]
    for part in _parts(len(order)):
        columns = [pa.array(np.arange(part.start, part.stop, dtype=np.int32))]
        for text, column in zip(labels, values.columns, strict=True):
            columns.append(text.take(pa.array(column.index[order[part]])))
        yield pa.table(columns, names=names)


def _misfit(publication: Publication, error: psycopg.DataError) -> PolicyError:
    """Name the column whose type cannot hold a value, without the error's context, which has it."""
    found = re.search(r"\bq(\d+)\b", error.diag.context or "")
    names = [column for column, _ in publication.recodings]
    name = quote_identifier(names[int(found[1]) - 1]) if found else ", ".join(names)
    return PolicyError(
        f"column {name}: a published value has no place in its type (is it the greatest there is,"
        " or widened too far by snap?)",
        hint='give the column the recoding "interval-text", or a smaller snap',
    )
