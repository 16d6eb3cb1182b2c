"""The two columns in which a recoding publishes the range of a class."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg import sql

from dbanon.domain.policy import CENTER

if TYPE_CHECKING:
    from collections.abc import Mapping

_OF_STEPS = frozenset({"int4range", "int8range", "daterange"})
_STEP = "({} OPERATOR(pg_catalog.-) 1)"
_NUMBERS = (
    "(({least}::pg_catalog.numeric OPERATOR(pg_catalog.+) {greatest}) OPERATOR(pg_catalog.*) 0.5)",
    "(({greatest}::pg_catalog.numeric OPERATOR(pg_catalog.-) {least}) OPERATOR(pg_catalog.*) 0.5)",
)
# Whole days: a middle between two of them is the earlier one, and the radius reaches to the later.
_HALF_OF_DAYS = "(({greatest} OPERATOR(pg_catalog.-) {least}) OPERATOR(pg_catalog./) 2)"
_DATES = (
    f"({{least}} OPERATOR(pg_catalog.+) {_HALF_OF_DAYS})",
    "({greatest} OPERATOR(pg_catalog.-) {least} OPERATOR(pg_catalog.-) " + _HALF_OF_DAYS + ")",
)
_LENGTH = "({greatest} OPERATOR(pg_catalog.-) {least})"
_HALF = f"({_LENGTH} OPERATOR(pg_catalog./) 2)"
# Half of an odd number of microseconds is rounded: the radius is the larger half.
_RADIUS = f"GREATEST({_HALF}, {_LENGTH} OPERATOR(pg_catalog.-) {_HALF})"
_TIMES = (f"({{least}} OPERATOR(pg_catalog.+) {_HALF})", _RADIUS)
# A day in which clocks change has no 24 hours: hours are as long in the zone of any reader.
_IN_UTC = f"(pg_catalog.timezone('UTC', {{least}}) OPERATOR(pg_catalog.+) {_HALF})"
_DAYS = f"pg_catalog.date_part('day', {_RADIUS})::pg_catalog.int4"
_TIME_OF_DAY = f"{_RADIUS} OPERATOR(pg_catalog.-) pg_catalog.make_interval(days => {_DAYS})"
_HOURS = f"pg_catalog.make_interval(hours => {_DAYS} OPERATOR(pg_catalog.*) 24)"
_MOMENTS = (
    f"pg_catalog.timezone('UTC', {_IN_UTC})",
    f"({_TIME_OF_DAY} OPERATOR(pg_catalog.+) {_HOURS})",
)
_CENTERS: Mapping[str, tuple[str, str]] = {
    "daterange": _DATES,
    "tsrange": _TIMES,
    "tstzrange": _MOMENTS,
}


def pair(recoding: str, stored: str, value: sql.Composable) -> tuple[sql.Composed, sql.Composed]:
    """Compose the two columns of a range: its ends, or its middle and how far these are from it.

    stored: the type of the range. NULL where the range is open.
    """
    least = sql.SQL("pg_catalog.lower({})").format(value)
    greatest = sql.SQL("pg_catalog.upper({})").format(value)
    if stored in _OF_STEPS:  # they end before their upper bound, however they began
        greatest = sql.SQL(_STEP).format(greatest)
    if recoding != CENTER:
        return least, greatest
    center, radius = _CENTERS.get(stored, _NUMBERS)
    ends = {"least": least, "greatest": greatest}
    return sql.SQL(center).format(**ends), sql.SQL(radius).format(**ends)
