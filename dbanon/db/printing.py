"""Print statements for people to read and psql to run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from psycopg import sql

from dbanon.domain.table import quote_identifier
from dbanon.domain.text import is_seen, visible

if TYPE_CHECKING:
    from collections.abc import Iterable

# Names are written as U&"...", which these settings make mean what dbanon means by them.
SETTINGS = (
    "SET LOCAL standard_conforming_strings = on",
    "SET LOCAL search_path = pg_catalog, pg_temp",
)
_STRING = re.compile(r"(E?)'((?:[^']|'')*)'")


class Body(sql.Composable):
    """The text of a function as a literal; dollar-quoting could clash with a column's name."""

    def as_bytes(self, context: object = None) -> bytes:
        """Return the literal for PostgreSQL."""
        text: sql.Composable = self._obj
        return sql.Literal(text.as_string(context)).as_bytes(context)  # type: ignore[arg-type]

    def printed(self) -> str:
        """Return the literal for people."""
        return sql.Literal(printed(self._obj)).as_string()


def printed(statement: sql.Composable) -> str:
    r"""Return the text of a statement, with names and values that psql cannot misread.

    psql ends the data of a COPY at a line ``\.``, after which a command may follow; a terminal
    obeys control characters. Such names are printed as ``U&"..."`` and values as ``E'...'``.
    """
    if isinstance(statement, sql.Composed):
        return "".join(map(printed, statement))
    if isinstance(statement, Body):
        return statement.printed()
    text = statement.as_string()
    if isinstance(statement, sql.Identifier) and not all(map(is_seen, text)):
        return ".".join(map(quote_identifier, statement._obj))  # noqa: SLF001 - its parts
    if isinstance(statement, sql.Literal) and not all(map(is_seen, text)):
        return _STRING.sub(_escaped, text)
    return text


def script(statements: Iterable[str], *, end: str) -> str:
    """Return printed statements as a psql script with one transaction; a COPY gets no rows."""
    lines = [
        f"{text};\n\\." if text.startswith("COPY ") else f"{text};"
        for text in ("BEGIN", *SETTINGS, *statements, end)
    ]
    return "\n\n".join([*lines, ""])


def _escaped(string: re.Match[str]) -> str:
    """Escape a string literal of psycopg, which has a backslash only after an E."""
    return f"E'{visible(string[2])}'" if not all(map(is_seen, string[2])) else string[0]
