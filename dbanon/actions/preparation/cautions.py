"""Warnings about policies that are allowed and seldom intended."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from dbanon.domain.caution import Code, Contents
from dbanon.domain.errors import PolicyError, TableNotFound
from dbanon.domain.policy import Role
from dbanon.domain.table import ColumnKind

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import pyarrow as pa

    from dbanon.db.session import Session
    from dbanon.domain.caution import Caution
    from dbanon.domain.policy import Policy
    from dbanon.domain.release import Release
    from dbanon.domain.table import ColumnStats, ForeignKey, TableInfo

_TEXTS = frozenset({ColumnKind.CATEGORY, ColumnKind.ORDINAL})
_MOST_ROWS = 10_000  # are looked at for what values look like
_MOST_VALUES = 100_000  # of a column are read to see whether they are alike


class _Looked(NamedTuple):
    """Findings about a table: contents, counts and some rows by column, and its keys."""

    contents: Mapping[str, Contents]
    stats: Mapping[str, ColumnStats]
    keys: Sequence[ForeignKey]
    rows: Mapping[str, Sequence[str | None]]


def of_table(
    session: Session, policy: Policy, info: TableInfo, *, complete: bool = False
) -> list[Caution]:
    """Return the warnings of a policy, after a look at the columns that are published unchanged.

    Values are counted if the role may read them and reading runs no foreign code. complete: whether
    no command will add models to the policy.
    """
    from dbanon.db import catalog, identity
    from dbanon.formats.cautions import AS_IT_IS, alike
    from dbanon.formats.suggestions import candidates

    names = [rule.column for rule in policy.columns if rule.role in AS_IT_IS]
    keys = catalog.foreign_keys(session, info)
    stats: dict[str, ColumnStats] = {}
    rows: dict[str, list[str | None]] = {}
    if not identity.foreign_code(session, info):
        identity.admit(session, info)
        stats, rows = _seen(session, info, policy, {*names, *candidates(info, keys)})
    contents = {name: _filled(stats[name]) for name in names if name in stats}
    for rule in policy.with_role(Role.SENSITIVE):
        if rule.column in contents and info.column(rule.column).kind in _TEXTS:
            values = catalog.distinct_values(session, info, rule.column, _MOST_VALUES)
            known = contents[rule.column]
            contents[rule.column] = Contents(known.n_filled, known.n_distinct, alike(values))
    looked = _Looked(contents, stats, keys, rows)
    return _of(session, policy, info, looked, complete=complete)


def of_release(session: Session, release: Release) -> list[Caution]:
    """Return the warnings of a served release, if its source still has its columns."""
    from dbanon.db import catalog

    try:
        source = catalog.describe(session, release.table)
    except TableNotFound:
        return []
    there = {column.name for column in source.columns}
    own = tuple(rule for rule in release.policy.columns if rule.column in there)
    if len(own) < len(release.policy.columns) and not release.dataset:
        return []
    # In a dataset, the other columns are those of the persons.
    return of_table(session, replace(release.policy, columns=own), source, complete=True)


def of_rows(session: Session, policy: Policy, info: TableInfo, columns: pa.Table) -> list[Caution]:
    """Return the warnings before a publication, which has read the sensitive columns already."""
    from dbanon.db import catalog
    from dbanon.formats.cautions import unknown
    from dbanon.formats.suggestions import candidates

    insensitive = [rule.column for rule in policy.with_role(Role.INSENSITIVE)]
    keys = catalog.foreign_keys(session, info)
    stats, rows = _seen(session, info, policy, {*insensitive, *candidates(info, keys)})
    contents = {name: _filled(stats[name]) for name in insensitive if name in stats}
    for rule in policy.with_role(Role.SENSITIVE):
        is_text = info.column(rule.column).kind in _TEXTS
        contents[rule.column] = _contents(columns.column(rule.column), look=is_text)
    looked = _Looked(contents, stats, keys, rows)
    sensitive = [rule.column for rule in policy.with_role(Role.SENSITIVE)]
    values = {name: _values(columns.column(name)) for name in sensitive}
    return [*_of(session, policy, info, looked, complete=True), *unknown(policy, values)]


def _of(
    session: Session, policy: Policy, info: TableInfo, looked: _Looked, *, complete: bool
) -> list[Caution]:
    from dbanon.db import catalog
    from dbanon.formats.cautions import cautions
    from dbanon.formats.suggestions import find

    return cautions(
        policy,
        info,
        contents=looked.contents,
        unique=catalog.unique_columns(session, info),
        complete=complete,
        persons=find(info, looked.keys, looked.stats),
        rows=looked.rows,
    )


def require_none(found: Sequence[Caution]) -> None:
    """Raise PolicyError with every warning, if there is one; new columns stop nothing."""
    found = [one for one in found if one.code is not Code.NEW_COLUMN]
    if found:
        count = "a warning" if len(found) == 1 else f"{len(found)} warnings"
        lines = [f"the policy has {count}, and --strict refuses:", *(c.with_code for c in found)]
        allow = f'allow = ["{found[0].code}: why"]'
        raise PolicyError("\n  ".join(lines), hint=f"{found[0].hint}; or, if meant, {allow}")


def _seen(
    session: Session, info: TableInfo, policy: Policy, names: Collection[str]
) -> tuple[dict[str, ColumnStats], dict[str, list[str | None]]]:
    """Count the values of columns; return also some rows of the published ones.

    Empty if none is published unchanged, or if the role may not read them.
    """
    from dbanon.db import catalog
    from dbanon.formats.cautions import AS_IT_IS
    from dbanon.formats.values.patterns import LONGEST

    shown = [rule.column for rule in policy.columns if rule.role.is_published]
    if not any(rule.role in AS_IT_IS for rule in policy.columns):
        shown = []
    some = {name for name in shown if info.column(name).kind.can_be_quasi}
    readable = catalog.readable_columns(session, info, some.union(names))
    counted = readable.intersection(names)
    stats = catalog.statistics(session, info, counted)[1] if counted else {}
    names = sorted(some & readable)
    return stats, catalog.first_rows(session, info, names, limit=_MOST_ROWS, length=LONGEST)


def _filled(stats: ColumnStats) -> Contents:
    return Contents(stats.n_rows - stats.n_null, stats.n_distinct)


def _contents(column: pa.ChunkedArray, *, look: bool) -> Contents:
    from dbanon.formats.cautions import alike

    values = _values(column)
    n_alike = alike(values) if look else 0
    return Contents(len(column) - column.null_count, len(values), n_alike)


def _values(column: pa.ChunkedArray) -> list[str]:
    """Return the distinct values of a column as texts, without NULL."""
    values: list[str] = column.chunk(0).dictionary.to_pylist() if column.num_chunks else []
    return values
