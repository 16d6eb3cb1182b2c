"""Full-domain generalization by looking at every node, and blocks by looking at every cut."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from itertools import product

import naive

CLOSE = 1e-9


def levels(column):
    """Return for each level what a code becomes, as functions of the code."""

    def interval(n):
        return lambda code: ("interval", min(int(column.position[code] * n), n - 1))

    def ancestor(limit):
        def climb(code):
            chain = naive.ancestors(column.taxonomy, int(column.taxonomy.leaves[code]))
            return [node for node in chain if naive.height(column.taxonomy, node) <= limit][-1]

        return climb

    if column.taxonomy is not None:
        steps = [ancestor(limit) for limit in range(1, naive.height(column.taxonomy, 0) + 1)]
    else:
        steps = [interval(n) for n in (64, 32, 16, 8, 4, 2, 1) if n < column.size]
    present = sorted(set(column.codes.tolist()))
    maps = [{code: code for code in present}]
    maps += [
        {code: "NULL" if code == column.size else step(code) for code in present} for step in steps
    ]
    maps += [dict.fromkeys(present, "*")]
    kept = maps[:1]
    for level in maps[1:]:
        if len(set(level.values())) < len(set(kept[-1].values())):
            kept.append(level)
    return kept


def classes(table, node, ladders):
    """Return the rows of each class."""
    found = defaultdict(list)
    for row in range(table.n_rows):
        key = tuple(
            ladder[level][int(column.codes[row])]
            for column, ladder, level in zip(table.quasi, ladders, node, strict=True)
        )
        found[key].append(row)
    return list(found.values())


def distance(values, whole):
    """Return half the sum of the differences of two distributions."""
    here, there = Counter(values), Counter(whole)
    shares = [Fraction(here[v], len(values)) - Fraction(there[v], len(whole)) for v in there]
    return sum(map(abs, shares)) / 2


def survivors(table, groups, wanted):
    """Return the classes that may stay, or None when more rows have to go than may."""
    groups = [
        rows for rows in groups if len(rows) >= wanted.k and naive.is_diverse(table, rows, wanted.l)
    ]
    while groups:
        shown = [row for rows in groups for row in rows]
        if table.n_rows - len(shown) > wanted.budget:
            return None
        near = [
            rows
            for rows in groups
            if all(
                distance(values[rows].tolist(), values[shown].tolist()) <= wanted.t + CLOSE
                for values in table.sensitive.T
            )
        ]
        if len(near) == len(groups):
            return groups
        groups = near
    return None


def passing(table, wanted):
    """Return what remains at every node that meets the condition."""
    ladders = [levels(column) for column in table.quasi]
    found = {}
    for node in product(*(range(len(ladder)) for ladder in ladders)):
        kept = survivors(table, classes(table, node, ladders), wanted)
        if kept is not None:
            found[node] = kept
    return found


def minimal(nodes):
    """Return the nodes that have no other of them below."""

    def below(a, b):
        return a != b and all(x <= y for x, y in zip(a, b, strict=True))

    return sorted(node for node in nodes if not any(below(other, node) for other in nodes))


def datafly(table, wanted):
    """Return the node that Datafly reaches, and what remains of it."""
    ladders = [levels(column) for column in table.quasi]
    node = [0] * len(ladders)
    while (kept := survivors(table, classes(table, node, ladders), wanted)) is None:
        values = [
            len(set(ladder[level].values())) for ladder, level in zip(ladders, node, strict=True)
        ]
        node[values.index(max(values))] += 1
    return tuple(node), kept


def loss(table, groups):
    """Return the penalty of all rows, those in no group losing everything."""
    lost = table.n_rows - sum(map(len, groups))
    everything = sum(column.rule.weight for column in table.quasi)
    return lost * everything + sum(len(rows) * naive.cost(table, rows) for rows in groups)


def error(values):
    mean = Fraction(sum(values), len(values))
    return sum((value - mean) ** 2 for value in values)


def cuts(n, k):
    """Yield the ends of the blocks of every partition into runs of at least k, in lexical order."""
    if n >= 2 * k:
        for first in range(k, n - k + 1):
            for rest in cuts(n - first, k):
                yield (first, *(first + end for end in rest))
    yield (n,)


def least_error_cut(values, k):
    """Return the first of the cuts of sorted exact numbers that have the least error."""

    def total(ends):
        return sum(error(values[a:b]) for a, b in zip((0, *ends), ends, strict=False))

    return min(sorted(cuts(len(values), k)), key=total)
