"""Fill a database with one of the schemas of this folder."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from psycopg import sql

if TYPE_CHECKING:
    from types import ModuleType

    from servers import Database


def load(database: Database, schema: ModuleType, *, seed: int = 11) -> None:
    """Create the tables of a schema and fill them, the same for the same seed."""
    database.execute(schema.DDL)
    source = random.Random(seed)  # noqa: S311 - people, not secrets
    with database.connect() as connection:
        for table, rows in schema.tables(source).items():
            copy_in = sql.SQL("COPY {} FROM STDIN").format(sql.Identifier("public", table))
            with connection.cursor().copy(copy_in) as copy:
                for row in rows:
                    copy.write_row(row)
