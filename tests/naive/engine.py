"""Twins of the kernels of the search `auto`, on sets of row numbers of a space."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from itertools import permutations, product
from math import inf, log

import naive

TIE = 1e-9


@lru_cache(maxsize=100_000)
def cost_of_codes(column, codes, loss):
    """Return the cost of a set of codes of a column, as the recoding publishes it."""
    if column.rule.recoding == "set" and loss == "ncp" and column.size < 62:
        n_values = column.size + (column.size in column.codes)
        return len(codes) / max(n_values, 1) * column.rule.weight if len(codes) > 1 else 0.0
    return naive.cost_of_codes(column, codes, by_height=loss == "il")


def cost(space, rows, loss):
    """Return the cost of one of the rows when they are together."""
    total = 0.0
    for j, column in enumerate(space.columns):
        total += cost_of_codes(column, frozenset(space.codes[rows, j].tolist()), loss)
    return total


def total(space, groups, loss):
    return sum(len(rows) * cost(space, rows, loss) for rows in groups if rows)


def members(label):
    groups = [[] for _ in range(max(label, default=-1) + 1)]
    for row, group in enumerate(label):
        groups[group].append(row)
    return groups


def bounds(codes, *, is_set):
    """Return the bounds and the second bounds of codes: LO, HI, LO2 and HI2."""
    if is_set:
        counts = Counter(codes)
        once, twice = (
            sum(1 << code for code, count in counts.items() if count >= least) for least in (1, 2)
        )
        half = (1 << 31) - 1
        return [once & half, once >> 31, twice & half, twice >> 31]
    lo, hi = [*sorted(codes), 2**31 - 1], [*sorted(codes, reverse=True), -1]
    return [lo[0], hi[0], lo[1], hi[1]]


def distinct(values):
    return len(set(values))


def share(values, most):
    return max(Counter(values).values()) <= most * len(values) + TIE


def entropy(values, least):
    shares = [count / len(values) for count in Counter(values).values()]
    return -sum(p * log(p) for p in shares) >= least - TIE


def recursive(values, c, l):
    counts = sorted(Counter(values).values(), reverse=True)
    return l == 1 or counts[0] < c * sum(counts[l - 1 :])


def holds(space, rows):
    """Whether the rows have the distinct sensitive values that the rules ask for."""
    kinds, columns, limits = space.rules
    return all(
        distinct(space.sensitive[rows, column].tolist()) >= limits[rule][0]
        for rule, column in enumerate(columns[: len(kinds)].tolist())
    )


def peel(space, levels, tuples, rows_of, classes_of):
    """Return the class of each tuple, -1 for what is left; the cheapest node first.

    rows_of: the rows of each tuple; classes_of: column, level and code to the generalized code.
    """
    label = [-1] * len(tuples)
    found = 0
    nodes = list(product(*(range(len(chain)) for chain in levels)))

    def cost_of_node(node):
        total = 0.0
        for j, level in enumerate(node):
            total += levels[j][level].cost
        return total

    for node in sorted(nodes, key=cost_of_node):
        classes = {}
        for t, codes in enumerate(tuples):
            if label[t] < 0:
                key = tuple(classes_of(j, node[j], code) for j, code in enumerate(codes))
                classes.setdefault(key, []).append(t)
        for chosen in classes.values():
            rows = [row for t in chosen for row in rows_of[t]]
            if len(rows) >= space.k and holds(space, rows):
                for t in chosen:
                    label[t] = found
                found += 1
    return label


def kept_classes(space, label, rows_of):
    """Count the classes that stay when the last ones go until what is left keeps the rules.

    label: of each tuple, -1 for what is left; rows_of: the rows of each tuple. At first as many
    rows go as are left, then half of the classes, again and again.
    """

    def left(kept):
        outside = [t for t, name in enumerate(label) if not 0 <= name < kept]
        return [row for t in outside for row in rows_of[t]]

    kept = max(label) + 1
    rest = len(left(kept))
    if rest == 0 or fits(space, left(kept)):
        return kept
    while kept > 0 and len(left(kept)) < 2 * rest:
        kept -= 1
    while kept > 0 and not fits(space, left(kept)):
        kept //= 2
    return kept


def fits(space, rows):
    """Whether rows can be a cluster."""
    return len(rows) >= space.k and holds(space, rows)


def cuts(space, rows, least, loss):
    """Yield the column, the rows up to a code, and the cost of every cut in two."""
    for j in range(len(space.columns)):
        for code in sorted(set(space.codes[rows, j].tolist()))[:-1]:
            low = [row for row in rows if space.codes[row, j] <= code]
            high = [row for row in rows if space.codes[row, j] > code]
            if min(len(low), len(high)) >= least:
                yield j, low, total(space, [low, high], loss)


def grow(space, rows, first, loss):
    """Return the groups of greedy k-member clustering whose seeds are far from the last row.

    first: the place of the row that the first seed is far from. Empty when there is none.
    """
    left, groups = list(range(len(rows))), []

    def far(row):
        costs = [cost(space, [row, rows[place]], loss) for place in left]
        return costs.index(max(costs))

    at = far(rows[first])
    while len(left) >= space.k:
        group = _grow(space, rows, left, at, loss)
        if not group:
            break
        groups.append(group)
        if len(left) >= space.k:
            at = far(group[-1])
    for place in left if groups else []:
        rises = [
            (len(group) + 1) * cost(space, [*group, rows[place]], loss)
            - len(group) * cost(space, group, loss)
            for group in groups
        ]
        groups[rises.index(min(rises))].append(rows[place])
    return groups


def _grow(space, rows, left, at, loss):
    """Take a group out of ``left``; none if the rules cannot be kept."""
    group, rest = [], list(left)
    while True:
        group.append(rows[rest.pop(at)])
        if len(group) >= space.k and holds(space, group):
            left[:] = rest
            return group
        pressing = _pressing(space, group)
        best, least = None, inf
        for i, place in enumerate(rest):
            row = rows[place]
            if pressing is not None and space.sensitive[row, pressing] in set(
                space.sensitive[group, pressing].tolist()
            ):
                continue
            price = cost(space, [*group, row], loss)
            if price < least:
                best, least = i, price
        if best is None:
            return []
        at = best


def _pressing(space, group):
    """Return a sensitive column of which the next row must have a new value."""
    _, columns, limits = space.rules
    for rule, column in enumerate(columns.tolist()):
        missing = limits[rule][0] - distinct(space.sensitive[group, column].tolist())
        if missing > 0 and space.k - len(group) <= missing:
            return column
    return None


def least_sum(price):
    """Return the least sum of an assignment of rows to clusters, each price by cluster and row."""
    m = len(price)
    return min(
        sum(price[c][row] for row, c in enumerate(order)) for order in permutations(range(m))
    )


def rotation(space, groups, out, loss):
    """Return what is saved at most when one row of each of some clusters changes places.

    out: by cluster, the row that leaves it.
    """
    clusters = [*out]

    def price(c, row):
        return total(space, [[*(r for r in groups[c] if r != out[c]), row]], loss)

    paid = total(space, [groups[c] for c in clusters], loss)
    return paid - least_sum([[price(c, out[other]) for other in clusters] for c in clusters])


def patience(columns, saved, paid, *, heat):
    """Return how many tries in a row may save nothing, -1 for any number."""
    return 50 if columns >= 12 and not (heat and saved <= 0.002 * paid) else -1
