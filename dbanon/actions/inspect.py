"""Inspect a table: columns, counts, roles and recodings."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from dbanon.actions.preparation.loading import looking
from dbanon.db import catalog, identity
from dbanon.db.catalog import CountedValue
from dbanon.db.session import Session, connect
from dbanon.domain.outcomes import Operation, Stages
from dbanon.domain.policy import ColumnRule, Role
from dbanon.domain.table import (
    ColumnInfo,
    ColumnKind,
    ColumnStats,
    TableInfo,
    TableName,
    quote_identifier,
)
from dbanon.formats.policy_warnings import LONGEST, looks
from dbanon.formats.suggestions import (
    Persons,
    Proposal,
    candidates,
    differing,
    find,
    is_fine,
    key_of,
    propose,
    suggest,
    with_uniqueness,
)
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dbanon.domain.policy_warning import Match
    from dbanon.domain.report import UniqueSet

MOST_ROWS = 50_000
"""Of how many rows it is found what makes rows unique."""
_MANY = 15  # quasi-identifiers, from which a small set is proposed
_SAMPLED = 2_000  # rows of which texts are compared with patterns
_SPARSE = 0.9  # of the rows without a value
PROFILED, WHOLE = 5_000, 30_000
"""About how many rows of a table describe its columns, if it has more than so many."""
_MOST_BARS = 16  # values of a column in a profile
_LEAST = 5  # rows or persons of such a value
_FIRST = 10  # rows of a source that are shown
_RANGES = 4  # into which the middle half of the numbers is divided


@dataclass(frozen=True, slots=True)
class InspectedColumn:
    """A column, its counts (None without equality), a suggested role, and a recoding if quasi."""

    info: ColumnInfo
    stats: ColumnStats | None
    suggestion: ColumnRule
    reason: str
    proposal: Proposal | None = None


@dataclass(frozen=True, slots=True)
class Inspection:
    """A relation, its exact number of rows, its columns, and a column of persons, if any.

    ``key`` is the primary key, or columns that are unique now. ``differing`` are the suggested
    quasi-identifiers that vary between rows of a person. ``unique_sets`` are the sets of suggested
    quasi-identifiers that make rows unique, of the ``sampled`` ones. ``explaining``, of many
    quasi-identifiers: a small set that makes nearly as many rows unique as all of them, and all.
    """

    info: TableInfo
    n_rows: int
    columns: tuple[InspectedColumn, ...]
    key: tuple[str, ...] = ()
    persons: Persons | None = None
    differing: tuple[str, ...] = ()
    unique_sets: tuple[UniqueSet, ...] = ()
    sampled: int = 0
    explaining: tuple[UniqueSet, UniqueSet] | None = None

    @property
    def finding(self) -> str | None:
        """Sentence on the few of many quasi-identifiers that make most rows unique."""
        if self.explaining is None:
            return None
        few, every = self.explaining
        names = ", ".join(map(quote_identifier, few.columns))
        return (
            f"{len(every.columns)} quasi-identifiers: {names} make {few.share:.0%} of rows unique,"
            f" all together {every.share:.0%}; decide which others can be known, or are needed"
        )


def inspect(
    table: str | TableName, *, settings: Settings | None = None, stages: Stages | None = None
) -> Inspection:
    """Count and describe every column of a table or view and suggest its role; needs SELECT only.

    Raises TableNotFound, NotPermitted, DatabaseError.
    """
    with (
        connect(settings or Settings.load()) as session,
        looking(session, partial(catalog.describe, session, TableName.parse(table))) as (info,),
    ):
        return _inspected(session, info, stages or Stages())


@dataclass(frozen=True, slots=True)
class Profile:
    """The columns of a relation, described by some of its rows.

    inspection: of these rows; n_rows: of all, about, if ``is_sample``; values: by column, those
    that at least ``least`` rows, or persons of several rows, have, numbers in ranges and moments in
    years.
    """

    inspection: Inspection
    n_rows: int
    is_sample: bool
    least: int
    values: Mapping[str, Sequence[CountedValue]]


def profile(table: str | TableName, *, settings: Settings | None = None) -> Profile:
    """Describe the columns of a table by a sample of its pages; needs SELECT only.

    No value of fewer than five rows, or persons of several rows, is returned, and none of a
    column that seems to identify persons. Views are read whole. Raises as ``inspect``.
    """
    with (
        connect(settings or Settings.load()) as session,
        looking(session, partial(catalog.describe, session, TableName.parse(table))) as (info,),
    ):
        identity.admit(session, info)
        n_rows, rows = catalog.sampled(session, info, most=PROFILED, above=WHOLE)
        found = _inspected(session, rows, Stages())
        shown = [c for c in found.columns if c.stats and c.suggestion.role is not Role.IDENTIFIER]
        widths = {column.info.name: _width(column) for column in shown}
        named = catalog.spreads(session, rows, [n for n, width in widths.items() if width])
        widths = {name: _step(named.get(name)) if widths[name] else None for name in widths}
        persons = None if found.persons is None else found.persons.column
        values = catalog.frequent_values(
            session, rows, widths, persons=persons, least=_LEAST, most=_MOST_BARS
        )
        values = {name: _in_ranges(those, widths[name]) for name, those in values.items()}
    is_sample = rows.sampled is not None
    return Profile(found, n_rows if is_sample else found.n_rows, is_sample, _LEAST, values)


@dataclass(frozen=True, slots=True)
class Outline:
    """What is known of a table without reading it; n_rows: about how many, 0 if unknown."""

    info: TableInfo
    n_rows: int


def outline(table: str | TableName, *, settings: Settings | None = None) -> Outline:
    """Describe a table by the catalog alone. Raises as ``inspect``."""
    with (
        connect(settings or Settings.load()) as session,
        looking(session, partial(catalog.describe, session, TableName.parse(table))) as (info,),
    ):
        identity.admit(session, info)
        n_rows, _ = catalog.sampled(session, info, most=PROFILED, above=WHOLE)
    return Outline(info, n_rows)


def source_rows(
    table: str | TableName, *, settings: Settings | None = None
) -> dict[str, list[str | None]]:
    """Return the first rows of a table as they are, by column, cut off after some characters."""
    with (
        connect(settings or Settings.load()) as session,
        looking(session, partial(catalog.describe, session, TableName.parse(table))) as (info,),
    ):
        identity.admit(session, info)
        names = [column.name for column in info.columns]
        return catalog.first_rows(session, info, names, limit=_FIRST, length=LONGEST)


def _width(column: InspectedColumn) -> float | None:
    """Return 1.0 for numbers of so many values that they are shown in ranges."""
    many = column.stats is not None and column.stats.n_distinct > _MOST_BARS
    return 1.0 if column.info.kind.is_number and many else None


def _step(spread: float | None) -> float:
    """Return a round width that divides the middle half of the rows into about four ranges."""
    wanted = (spread or 0.0) / _RANGES
    if not 0.0 < wanted < math.inf:
        return 1.0
    power = 10.0 ** math.floor(math.log10(wanted))
    return next(step * power for step in (1.0, 2.0, 5.0, 10.0) if step * power >= wanted)


def _in_ranges(found: Sequence[CountedValue], width: float | None) -> list[CountedValue]:
    if width is None:
        return [*found]
    places = sorted((float(one.label), one.rows) for one in found)
    return [
        CountedValue(f"{place * width:,.6g} to {(place + 1) * width:,.6g}", rows)
        for place, rows in places
    ]


def inspect_query(
    query: str,
    *,
    create_view: str | TableName | None = None,
    settings: Settings | None = None,
    stages: Stages | None = None,
) -> Inspection:
    """Inspect a query, and store it as a view if a name is given.

    Raises ConfigError for an invalid query, or a name that is taken.
    """
    name = TableName.parse(create_view) if isinstance(create_view, str) else create_view
    operation = None if name is None else Operation(f"the view {name}", "created", "dbanon inspect")
    settings = settings or Settings.load()
    with (
        connect(settings, writes=name is not None) as session,
        session.transaction(keep=name is not None, operation=operation),
    ):
        if name is not None and name.schema is None:
            name = TableName(session.search_path[0] if session.search_path else "public", name.name)
        view = catalog.create(session, query, name)
        found = _inspected(session, catalog.describe(session, view), stages or Stages())
        identity.require_admitted(session)
    return found


def _inspected(session: Session, info: TableInfo, stages: Stages) -> Inspection:
    identity.admit(session, info)
    with stages("count"):
        keys = catalog.foreign_keys(session, info)
        paired = candidates(info, keys, sure=True)
        n_rows, stats, pairs_of = catalog.statistics_and_pairs(session, info, paired)
    persons = find(info, keys, stats)
    pairs = {} if persons is None else pairs_of.get(persons.column, {})
    key = info.primary_key
    # A key of this moment, or of a sample, would not last.
    if not key and not info.volatile and info.sampled is None:
        key = key_of(info, stats, persons, pairs=pairs)
    matches = _matches(session, info, stats)
    suggested = suggest(replace(info, primary_key=key), stats, persons, keys=keys, matches=matches)
    with stages("unique sets"):
        sampled, sets, explaining = _unique_sets(session, info, suggested, stats, n_rows=n_rows)
    stats |= _with_spreads(session, info, suggested, stats)
    quasi = [info.column(rule.column) for rule, _ in suggested if rule.role is Role.QUASI]
    proposed = {column.name: propose(column, stats.get(column.name), keys) for column in quasi}
    columns = tuple(
        InspectedColumn(
            info.column(rule.column),
            stats.get(rule.column),
            rule,
            with_uniqueness(reason, rule, sets),
            proposed.get(rule.column),
        )
        for rule, reason in suggested
    )
    return Inspection(
        info=info,
        n_rows=n_rows,
        columns=columns,
        key=key,
        persons=persons,
        differing=differing(suggested, persons, pairs),
        unique_sets=sets,
        sampled=sampled,
        explaining=explaining,
    )


def _with_spreads(
    session: Session,
    info: TableInfo,
    suggested: Sequence[tuple[ColumnRule, str]],
    stats: Mapping[str, ColumnStats],
) -> dict[str, ColumnStats]:
    quasi = [rule.column for rule, _ in suggested if rule.role is Role.QUASI]
    fine = [name for name in quasi if is_fine(info.column(name), stats.get(name))]
    spreads = catalog.spreads(session, info, fine)
    return {name: replace(stats[name], spread=spread) for name, spread in spreads.items()}


def _unique_sets(
    session: Session,
    info: TableInfo,
    suggested: Sequence[tuple[ColumnRule, str]],
    stats: Mapping[str, ColumnStats],
    *,
    n_rows: int,
) -> tuple[int, tuple[UniqueSet, ...], tuple[UniqueSet, UniqueSet] | None]:
    """Return the number of sampled rows, the sets that make them unique, and what explains many."""
    import numpy as np

    from dbanon.anonymization.risk.uniqueness import MOST_COLUMNS, explaining, unique_sets

    quasi = [r.column for r, _ in suggested if r.role is Role.QUASI and r.column in stats]
    if not quasi or not n_rows:
        return 0, (), None
    rows = catalog.sampled_hashes(session, info, quasi, n_rows=n_rows, most=MOST_ROWS)
    hashes = np.array(rows, np.int64).reshape(len(rows), len(quasi))
    codes = [np.unique(column, return_inverse=True)[1] for column in hashes.T]
    columns = list(zip(quasi, codes, strict=True))
    most = sorted(quasi, key=lambda name: -stats[name].n_distinct)[:MOST_COLUMNS]
    sets = unique_sets([column for column in columns if column[0] in most])
    return len(rows), sets, explaining(columns) if rows and len(quasi) > _MANY else None


def _matches(
    session: Session, info: TableInfo, stats: Mapping[str, ColumnStats]
) -> dict[str, Match]:
    """Return what the texts of some rows look like, by column; of sparse ones, of filled rows."""
    names = [c.name for c in info.columns if c.name in stats and c.kind is ColumnKind.CATEGORY]
    rows = catalog.first_rows(session, info, names, limit=_SAMPLED, length=LONGEST)
    for name in names:
        if stats[name].n_rows > _SAMPLED and stats[name].n_null > _SPARSE * stats[name].n_rows:
            rows |= catalog.first_rows(
                session, info, [name], limit=_SAMPLED, length=LONGEST, filled=name
            )
    return looks(info, rows)
