"""Persons who have several rows of a table."""

from __future__ import annotations

import json
from dataclasses import dataclass

from dbanon.domain.table import quote_identifier


@dataclass(frozen=True, slots=True)
class Persons:
    """A column that seems to tell persons apart who have several rows.

    reason: what makes it seem so; is_sure: whether that is a word for a person, else it is only
    like a key that several rows share; n_rows, n_values: how many rows and different values it
    has, None where the current role may not count them; nullable: whether it may be NULL.
    """

    column: str
    reason: str
    is_sure: bool
    nullable: bool
    n_rows: int | None = None
    n_values: int | None = None

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
