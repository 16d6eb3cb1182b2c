"""The driver that reads tables, kept for all databases of a process.

What it opens queries all types first, over a connection of its own: a seventh of the time of a
publication. Columns are read as built-in types, which are the same everywhere.
"""

from __future__ import annotations

from threading import local
from typing import TYPE_CHECKING

import adbc_driver_postgresql
from adbc_driver_manager import AdbcDatabase

if TYPE_CHECKING:
    from collections.abc import Callable

really_connect = adbc_driver_postgresql.connect


class _Kept(AdbcDatabase):
    def close(self) -> None:
        """Do nothing: it holds no connection, and another test connects with it."""

    def __exit__(self, *_: object) -> None:
        self.close()


def connecting() -> Callable[[str], AdbcDatabase]:
    """Return a function that takes the place of the driver's ``connect``: one database a thread."""
    kept = local()

    def connect(uri: str) -> AdbcDatabase:
        if not hasattr(kept, "database"):
            kept.database = _Kept(driver=adbc_driver_postgresql._driver_path(), uri=uri)  # noqa: SLF001
        kept.database.set_options(uri=uri)
        return kept.database

    return connect
