"""Several tables of the same persons, as somebody names them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dbanon.domain.errors import ConfigError
from dbanon.domain.text import converted, unread
from dbanon.formats.datasets import parse
from dbanon.formats.support import Mode, require

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dbanon.actions.preparation.loading import Loaded
    from dbanon.domain.table import TableName
    from dbanon.formats.datasets import Dataset
    from dbanon.request import Request


def read(path: str | Path) -> Dataset:
    """Read the file of a dataset; raises ConfigError."""
    try:
        return parse(Path(path).read_bytes().decode("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        hint = converted(path, error) or "--dataset FILE, of TOML"
        raise ConfigError(unread(path, error), hint=hint) from None


def asked(request: Request) -> Request:
    """Return what is asked of a dataset; raises ConfigError for what is asked of one table."""
    require(Mode.DATASET, request.asked())
    return request


def require_apart(loaded: Sequence[Loaded], request: Request) -> None:
    """Raise ConfigError if two tables would be served under one name, or are one table."""
    seen: dict[TableName, TableName] = {}
    for one in loaded:
        table, view = one.info.name, request.view(one.info.name)
        if view in seen:
            if seen[view] == table:
                raise ConfigError(f"the dataset names {table} twice", hint="each table once")
            raise ConfigError(
                f"{seen[view]} and {table} would both be published as {view}",
                hint="name a view of one of them in the dataset",
            )
        seen[view] = table
