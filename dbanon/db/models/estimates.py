"""The SQL functions that estimate values from ranges, one set per range type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg import sql

from dbanon.db.queries import template

if TYPE_CHECKING:
    from collections.abc import Iterator

_NUMBERS = {"int4range": 1, "int8range": 1, "numrange": 0}
"""Between which values of a range there is nothing, 0 where there always is something."""
_TIMES = {
    "daterange": ("date", "1"),
    "tsrange": ("timestamp", "'0'::pg_catalog.interval"),
    "tstzrange": ("timestamptz", "'0'::pg_catalog.interval"),
}
"""The types of the values of a range, and the same of them."""


def statements() -> Iterator[sql.Composed]:
    """Yield the statements that create the functions."""
    for name, step in _NUMBERS.items():
        yield _create_share(name, number="pg_catalog.float8", unit="", volatility="IMMUTABLE")
        slots = {"range": sql.SQL(name), "step": sql.Literal(step)}
        yield template("estimates.create_middle_of_numbers", **slots)
    for name, (value, gap) in _TIMES.items():
        # PostgreSQL declares time zone functions STABLE, and inlines nothing less strict.
        volatility = "STABLE" if value == "timestamptz" else "IMMUTABLE"
        part, epoch = "pg_catalog.date_part", "'epoch', "
        yield _create_share(name, number=part, unit=epoch, volatility=volatility)
        yield template(
            "estimates.create_middle_of_times",
            range=sql.SQL(name),
            value=sql.SQL(value),
            step=sql.SQL(gap),
            volatility=sql.SQL(volatility),
        )


def _create_share(name: str, *, number: str, unit: str, volatility: str) -> sql.Composed:
    return template(
        "estimates.create_share",
        range=sql.SQL(name),
        number=sql.SQL(number),
        unit=sql.SQL(unit),
        volatility=sql.SQL(volatility),
    )
