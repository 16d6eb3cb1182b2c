"""Look for persons who have several rows."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from dbanon.domain.table import quote_identifier
from dbanon.formats.column_names import (
    DESCRIBES_A_PERSON,
    HARMS_A_PERSON,
    is_anybody,
    is_number,
    person_listed,
    person_numbered,
    words,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dbanon.domain.table import ColumnStats, ForeignKey, TableInfo

_FEWEST = 20  # values of a key that may stand for persons
_FEWEST_ROWS, _MOST_ROWS = 1.05, 20.0  # of one value, on average


@dataclass(frozen=True, slots=True)
class Persons:
    """A column that seems to tell persons apart who have several rows.

    reason: what makes it seem so; is_sure: whether that is a word for a person, else it is only
    like a key that several rows share; n_rows, n_values: how many rows and different values it
    has, None where the current role may not count them; n_null: rows of nobody.
    """

    column: str
    reason: str
    is_sure: bool
    n_rows: int | None = None
    n_values: int | None = None
    n_null: int = 0

    @property
    def figure(self) -> str:
        """How many rows there are, and how many persons."""
        column = quote_identifier(self.column)
        if self.n_rows is None:
            return f"column {column} seems to tell persons apart, and this role may not count them"
        if self.is_sure:
            return f"{self.n_rows:,} rows, {self.n_values:,} persons by column {column}"
        return f"{self.n_rows:,} rows, {self.n_values:,} values of column {column}"

    @property
    def setting(self) -> str:
        """The line of a policy that names the column."""
        return f"subject = {json.dumps(self.column, ensure_ascii=False)}"


class _Candidate(NamedTuple):
    column: str
    reason: str
    is_sure: bool


def candidates(info: TableInfo, keys: Sequence[ForeignKey], *, sure: bool = False) -> list[str]:
    """Return the columns that may tell persons apart, and are to be counted.

    sure: only those that have a word for a person.
    """
    found = _candidates(info, keys)
    return [candidate.column for candidate in found if candidate.is_sure or not sure]


def find(
    info: TableInfo, keys: Sequence[ForeignKey], stats: Mapping[str, ColumnStats]
) -> Persons | None:
    """Return the column that most seems to tell persons with several rows apart, None if none does.

    keys: the foreign keys of the table; stats: by column name, of those that could be counted.
    A word for a person is a sure sign, as soon as a value repeats. A key of something else may
    stand for persons when each of its values has a few rows.
    """
    found = [p for c in _candidates(info, keys) if (p := _counted(c, stats)) is not None]
    return max(found, key=lambda p: (p.is_sure, p.n_values or 0), default=None)


def _counted(candidate: _Candidate, stats: Mapping[str, ColumnStats]) -> Persons | None:
    """Return what the counts make of a candidate; what could not be counted is suspected."""
    known = stats.get(candidate.column)
    if known is None:
        return Persons(*candidate) if candidate.is_sure else None
    filled = known.n_rows - known.n_null
    if not 0 < known.n_distinct < filled:
        return None
    if not candidate.is_sure and not (
        known.n_distinct >= _FEWEST and _FEWEST_ROWS <= filled / known.n_distinct <= _MOST_ROWS
    ):
        return None
    return Persons(*candidate, known.n_rows, known.n_distinct, known.n_null)


def _candidates(info: TableInfo, keys: Sequence[ForeignKey]) -> Iterator[_Candidate]:
    own = _listed(info)
    referred = {key.columns[0]: key.table for key in keys if len(key.columns) == 1}
    for column in info.columns:
        if (column.name,) == info.primary_key or not column.has_equality:
            continue
        table = referred.get(column.name)
        person = person_listed(table.name) if table else person_numbered(column.name)
        reason = f"refers to {table}" if table else "named like the number of a person"
        if person is not None:
            if own is None or own == person or is_anybody(own) or is_anybody(person):
                yield _Candidate(column.name, reason, is_sure=True)
        elif own is None and (table is not None or _is_key(column.name)):
            reason = reason if table else "named like a key"
            yield _Candidate(column.name, reason, is_sure=False)


def _listed(info: TableInfo) -> str | None:
    """Return the word for a person if each row is one: other persons only have to do with them."""
    if len(info.primary_key) != 1:
        return None
    return person_numbered(info.primary_key[0]) or person_listed(info.name.name)


def _is_key(column: str) -> bool:
    return is_number(column) and not words(column) & (DESCRIBES_A_PERSON | HARMS_A_PERSON)
