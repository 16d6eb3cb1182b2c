"""Datasets, tables that are published together, as a short TOML file."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbanon.domain.errors import ConfigError
from dbanon.domain.table import TableName
from dbanon.formats.document_reader import Section

if TYPE_CHECKING:
    from collections.abc import Iterable

_EXAMPLE = 'a dataset is two lines: persons = "persons" and tables = ["encounters", "conditions"]'


@dataclass(frozen=True, slots=True)
class Dataset:
    """A table with one row per person, and the tables with rows of these persons."""

    persons: TableName
    tables: tuple[TableName, ...]

    @property
    def names(self) -> tuple[TableName, ...]:
        """All tables, that of the persons first."""
        return (self.persons, *self.tables)


def parse(text: str) -> Dataset:
    """Read a file; raises one ConfigError with all problems and their keys."""
    try:
        document = tomllib.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        msg = f"the dataset is not valid TOML: {error}"
        raise ConfigError(msg, hint=_EXAMPLE) from None
    top = Section(document, "", [])
    for key in ("persons", "tables"):
        top.require(key)
    persons, tables = top.text("persons"), top.texts("tables")
    top.close()
    if top.problems:
        raise ConfigError("\n  ".join(["the dataset:", *top.problems]), hint=_EXAMPLE)
    return dataset_of([persons or "", *(tables or ())])


def dataset_of(names: Iterable[str | TableName]) -> Dataset:
    """Return a dataset of some tables, that of the persons first; raises ConfigError."""
    parsed = [TableName.parse(name) for name in names]
    twice = next((name for name in parsed if parsed.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"the dataset names {twice} twice", hint=_EXAMPLE)
    if len(parsed) < 2:  # noqa: PLR2004 - persons and one table
        raise ConfigError("the dataset names no table beside that of the persons", hint=_EXAMPLE)
    return Dataset(parsed[0], tuple(parsed[1:]))
