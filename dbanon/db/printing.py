"""Statements as text that a person reads and psql runs."""

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
    """The text of a function as a literal: what is printed of its names is printed of it, too.

    Not dollar-quoted, for a column may be named like the closing tag.
    """

    def as_bytes(self, context: object = None) -> bytes:
        """Return the literal that PostgreSQL reads."""
        text: sql.Composable = self._obj
        return sql.Literal(text.as_string(context)).as_bytes(context)  # type: ignore[arg-type]

    def printed(self) -> str:
        """Return the literal that a person reads."""
        return sql.Literal(printed(self._obj)).as_string()


def printed(statement: sql.Composable) -> str:
    r"""Return the text of a statement, in which no name or value can pass for something else.

    To psql a line ``\.`` ends the data of a COPY wherever it stands, and the next one may be a
    command; a terminal obeys control characters. Names that hold such are spelled ``U&"..."`` and
    values ``E'...'``.
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
    """Return printed statements as psql runs them in one transaction; a COPY gets no rows."""
    lines = [
        f"{text};\n\\." if text.startswith("COPY ") else f"{text};"
        for text in ("BEGIN", *SETTINGS, *statements, end)
    ]
    return "\n\n".join([*lines, ""])


def _escaped(string: re.Match[str]) -> str:
    """Return a string of psycopg's, which holds a backslash only after an E."""
    return f"E'{visible(string[2])}'" if not all(map(is_seen, string[2])) else string[0]
