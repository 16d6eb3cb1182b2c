"""Made-up tables in which no two rows are equal, each of eight quasi-identifiers.

``register``: residents, of whom the postcode is one of 100,000 leaves of a tree, 1 of 10 at each
of five levels; income, wealth and age are skewed. ``visits``: of patients, with postcode, day, a
diagnosis of 1,250 in three levels, charges and days. ``meters``: five skewed numbers that depend on
one size, and three small taxonomies. ``survey``: answers of few values, whose combinations are
rare; the rows are those that are left when equal ones are dropped. The same number of rows and the
same seed give the same table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from samples.datasets import encode_made
from samples.people import skewed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from samples.datasets import Dataset

SEED = 23
DIGITS = 5  # of a postcode
MOST = 5_000  # of what is skewed without end

Columns = dict[str, np.ndarray]
Random = np.random.Generator


def tree(prefix: str, *branches: int) -> list[tuple[str, ...]]:
    """Return the path of each leaf to the root, given how many children nodes of each level have.

    Leaves are numbered from 0 in depth-first order.
    """
    size = int(np.prod(branches))
    below = [size // int(np.prod(branches[: level + 1])) for level in range(len(branches))]
    return [
        (
            f"{prefix} {leaf}",
            *(f"{prefix} {leaf // width} by {width}" for width in reversed(below[:-1])),
            "*",
        )
        for leaf in range(size)
    ]


POSTCODE = tree("code", *[10] * DIGITS)


def _postcodes(rows: int, random: Random) -> np.ndarray:
    """Draw postcodes: a few digits are frequent at each level, others are rare."""
    found = np.zeros(rows, np.int64)
    for _ in range(DIGITS):
        digit = np.minimum(random.geometric(0.25, rows) - 1, random.integers(0, 10, rows) + 3) % 10
        found = 10 * found + (digit + 7 * found) % 10
    return found


def _log_normal(middle, spread: float, rows: int, random: Random, *, most: int = MOST):
    return np.minimum(middle * random.lognormal(0, spread, rows), most).astype(np.int64)


def _register(rows: int, random: Random) -> Columns:
    age = np.minimum(100 * random.beta(1.4, 2.2, rows), 99).astype(np.int64)
    schooled = np.clip(age / 8 + 2 * random.standard_normal(rows), 0, 11).astype(np.int64)
    income = _log_normal(150 * (1 + 0.2 * schooled), 0.6, rows, random)
    return {
        "postcode": _postcodes(rows, random),
        "age": age,
        "income": income,
        "wealth": _log_normal(income * age / 60, 1.0, rows, random, most=50_000),
        "school": schooled,
        "work": (schooled * 4 + random.geometric(0.15, rows)) % 48,
        "born": np.where(random.random(rows) < 0.85, 7, skewed(80, rows, random)),
        "sex": random.integers(0, 2, rows),
    }


def _visits(rows: int, random: Random) -> Columns:
    age = np.minimum(100 * random.beta(2.0, 1.6, rows), 104).astype(np.int64)
    illness = (skewed(1_250, rows, random) + 5 * (age // 10) * 25) % 1_250
    days = np.minimum(random.geometric(0.2, rows), 90)
    return {
        "postcode": _postcodes(rows, random),
        "age": age,
        "day": random.integers(0, 730, rows),
        "charge": _log_normal(40 * (1 + days), 0.7, rows, random, most=20_000),
        "days": days,
        "illness": illness,
        "ward": (illness // 50 + random.poisson(0.4, rows)) % 25,
        "sex": random.integers(0, 2, rows),
    }


def _meters(rows: int, random: Random) -> Columns:
    size = random.lognormal(0, 0.8, rows)
    return {
        "use": _log_normal(300 * size, 0.4, rows, random),
        "peak": _log_normal(40 * size, 0.5, rows, random, most=900),
        "area": _log_normal(90 * size**0.7, 0.3, rows, random, most=2_000),
        "built": 2026 - np.minimum(random.exponential(35, rows), 200).astype(np.int64),
        "persons": np.minimum(1 + random.poisson(1.2 * size**0.5, rows), 12),
        "kind": skewed(12, rows, random),
        "heating": skewed(9, rows, random),
        "region": skewed(64, rows, random, exponent=0.6),
    }


def _survey(rows: int, random: Random) -> Columns:
    age = random.integers(15, 95, rows)
    trust = np.clip(random.normal(5, 2.2, rows), 0, 10).astype(np.int64)
    return {
        "age": age,
        "hours": np.where(random.random(rows) < 0.4, 40, random.integers(0, 80, rows)),
        "trust": trust,
        "health": np.clip(10 - age / 15 + random.normal(0, 2, rows), 0, 10).astype(np.int64),
        "school": np.clip(trust + random.normal(3, 3, rows), 0, 15).astype(np.int64),
        "work": skewed(60, rows, random, exponent=0.8),
        "party": skewed(9, rows, random),
        "born": np.where(random.random(rows) < 0.8, 3, skewed(45, rows, random)),
    }


TABLES: dict[str, Callable[[int, Random], Columns]] = {
    "register": _register,
    "visits": _visits,
    "meters": _meters,
    "survey": _survey,
}
TREES = {
    "register": {
        "postcode": POSTCODE,
        "school": tree("school", 3, 4),
        "work": tree("work", 4, 3, 4),
        "born": tree("land", 5, 4, 4),
        "sex": tree("sex", 2),
    },
    "visits": {
        "postcode": POSTCODE,
        "illness": tree("illness", 25, 10, 5),
        "ward": tree("ward", 5, 5),
        "sex": tree("sex", 2),
    },
    "meters": {
        "kind": tree("kind", 3, 4),
        "heating": tree("heating", 3, 3),
        "region": tree("region", 4, 4, 4),
    },
    "survey": {
        "school": tree("school", 4, 4),
        "work": tree("work", 5, 4, 3),
        "party": tree("party", 3, 3),
        "born": tree("land", 3, 5, 3),
    },
}


def make(name: str, rows: int, *, seed: int = SEED) -> Columns:
    """Draw a table of so many rows by name; values with a taxonomy are numbers of leaves."""
    random = np.random.default_rng((seed, rows))
    drawn = TABLES[name](2 * rows, random)
    _, first = np.unique(np.column_stack([*drawn.values()]), axis=0, return_index=True)
    if len(first) < rows:
        msg = f"{name} has {len(first)} different rows, of {rows}"
        raise ValueError(msg)
    kept = np.sort(first)[:rows]
    return {column: values[kept] for column, values in drawn.items()}


def encoded_distinct(name: str, rows: int, folder: Path) -> Dataset:
    """Make a table and encode it as a publication does, with tight intervals."""
    import pyarrow as pa

    made, trees = make(name, rows), TREES[name]
    columns = {
        column: np.array([path[0] for path in trees[column]])[values] if column in trees else values
        for column, values in made.items()
    }
    lines = [f'table = "public.{name}"', "[models]", "k = 2", "[columns]"]
    for column in columns:
        shown = 'recoding = "interval"'
        if column in trees:
            shown = f'recoding = "label", taxonomy = "{name}_{column}"'
        lines.append(f'{column} = {{role = "quasi", {shown}}}')
    return encode_made(pa.table(columns), "\n".join(lines) + "\n", trees, folder=folder)
