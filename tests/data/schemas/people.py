"""Names and days of people who do not exist."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

FIRST = "Ada Ben Cleo Dora Emil Fay Gus Hana Ivo Jon Kira Leo Mina Nils Olga Pia Ravi Sue Tom Una"
LAST = "Abel Bauer Cruz Dahl Evans Falk Gomez Hahn Ito Jones Klein Lund Moss Nagy Okoro Perez Roy"


def first_name(source: Random) -> str:
    return source.choice(FIRST.split())


def last_name(source: Random) -> str:
    return source.choice(LAST.split())


def day(source: Random, first: int, last: int) -> date:
    """Return a day of the years from first to last."""
    start = date(first, 1, 1)
    return start + timedelta(source.randrange((date(last + 1, 1, 1) - start).days))


def ssn(source: Random) -> str:
    numbers = source.randint(1, 665), source.randint(1, 99), source.randint(1, 9999)
    return "{:03}-{:02}-{:04}".format(*numbers)


def phone(source: Random) -> str:
    return f"{source.randint(200, 989)}-555-{source.randrange(10**4):04}"
