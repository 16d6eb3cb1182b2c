"""Attacks, person by person and world by world."""

from __future__ import annotations

import math
from itertools import combinations

import naive.released


def rows_by_class(released, column):
    """Return the values of each class, as a list of codes for every class."""
    found = [[] for _ in range(released.n_classes)]
    counts = next(one for one in released.sensitive if one.name == column)
    for one, code, rows in zip(counts.classes, counts.codes, counts.rows, strict=True):
        found[one] += [int(code)] * int(rows)
    return found


def beliefs(released, rows, column, *, weight):
    """Return how likely each value is of each row, by the classes that cover it."""
    values = rows_by_class(released, column)
    n_codes = next(one.n_codes for one in released.sensitive if one.name == column)
    found = []
    for classes in naive.released.covers(released, rows):
        mass = [0.0] * n_codes
        for one in classes:
            for code in values[one]:
                mass[code] += weight[one]
        total = sum(mass)
        found.append([one / total for one in mass])
    return found


def binomial_interval(right, tried):
    """Return the rates at which so few, and so many, are right with 2.5 %; by bisection."""

    def at_least(rate):
        return sum(
            math.comb(tried, i) * rate**i * (1 - rate) ** (tried - i)
            for i in range(right, tried + 1)
        )

    def at_most(rate):
        return sum(
            math.comb(tried, i) * rate**i * (1 - rate) ** (tried - i) for i in range(right + 1)
        )

    low = _crossing(lambda rate: at_least(rate) >= 0.025) if right else 0.0
    high = _crossing(lambda rate: at_most(rate) <= 0.025) if right < tried else 1.0
    return low, high


def _crossing(holds):
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low


def suspicion(values, alike, *, too_frequent):
    """Return how likely each value is of the first of some rows of a class, world by world.

    In a world, any ``alike`` rows of the class are theirs. One in which no value is too frequent
    among them would have been published otherwise; in the others a value counts as often as it is
    theirs and too frequent.
    """
    found = dict.fromkeys(values, 0.0)
    for rows in combinations(range(len(values)), alike):
        theirs = [values[row] for row in rows]
        for value in set(theirs):
            if too_frequent(theirs.count(value), alike):
                found[value] += theirs.count(value)
    total = sum(found.values())
    return {value: one / total for value, one in found.items()} if total else None


def self_consistent(published, covered, register, *, rounds):
    """Return how likely each code is of a row of a value; published: the label of each such row."""
    share = dict(register)
    for _ in range(rounds):
        spread = dict(register)
        for label in published:
            inside = sum(share[code] for code in covered[label])
            for code in covered[label]:
                spread[code] += share[code] / inside if inside else 0.0
        total = sum(spread.values())
        share = {code: one / total for code, one in spread.items()}
    return share


def label_distance(cells, label, code, position, *, size, has_scale):
    """Return how far a person's value is from a label of a column."""
    if code == size:
        return 0.0 if cells.nulls[label] else 1.0
    if not has_scale:
        lo, hi = int(cells.lo[label]), int(cells.hi[label])
        return 1 - 1 / (hi - lo + 1) if lo <= code <= hi else 1.0
    middle = (cells.low[label] + cells.high[label]) / 2
    return 1.0 if math.isnan(middle) else min(abs(position - middle), 1.0)
