"""Slow and obvious twins of the greedy clustering algorithms, on sets of row numbers."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

from naive import common_ancestor, cost_of_codes, leaves_below


def box_cost(table, rows, *, by_height=False):
    total = 0.0
    for column in table.quasi:
        total += cost_of_codes(column, column.codes[list(rows)].tolist(), by_height=by_height)
    return total


def costs(table, *, by_height=False):
    """Return a function of rows that remembers what it has been asked."""
    known = {}

    def cost(rows):
        key = frozenset(rows)
        if key not in known:
            known[key] = box_cost(table, sorted(key), by_height=by_height)
        return known[key]

    return cost


def missing(table, rows, l):
    """Return how many distinct values each sensitive column of the rows lacks."""
    return [max(l - len(set(column[rows].tolist())), 0) for column in table.sensitive.T]


def candidates(table, group, rest, k, l):
    """Return the rows that may join: late on, only those with a value that the group lacks."""
    lacking = missing(table, group, l)
    need = max(lacking, default=0)
    if need == 0 or need < k - len(group):
        return rest
    return [
        row
        for row in rest
        if any(
            lacks == need and column[row] not in column[group]
            for lacks, column in zip(lacking, table.sensitive.T, strict=True)
        )
    ]


def growth(table, order, k, l, rule, *, by_height=True):
    """Return the groups in the order in which they are made."""
    cost = costs(table, by_height=by_height)
    rest, groups, origin = list(range(table.n_rows)), [], order[0]
    while len(rest) >= k and not any(missing(table, rest, l)):
        if rule == "neighbours":
            seed = next(row for row in order if row in rest)
        else:
            seed = max(rest, key=lambda row: (cost([origin, row]), -row))
        group = [seed]
        rest.remove(seed)
        while len(group) < k or any(missing(table, group, l)):
            box = [seed] if rule == "neighbours" else group
            allowed = candidates(table, group, rest, k, l)
            row = min(allowed, key=lambda row: (cost([*box, row]), row))
            rest.remove(row)
            group.append(row)
        origin = group[-1] if rule == "far from last" else group[0]
        groups.append(group)
    if not groups:
        return [rest]
    for row in (row for row in order if row in rest):
        rises = [(len(g) + 1) * cost([*g, row]) - len(g) * cost(g) for g in groups]
        groups[rises.index(min(rises))].append(row)
    return [sorted(group) for group in groups]


def split(table, rows, k):
    """Return parts of k to 2k - 1 of the rows."""
    count = len(rows) // k
    if count <= 1:
        return [sorted(rows)]
    dear = [cost_of_codes(column, column.codes[rows].tolist()) for column in table.quasi]
    codes = table.quasi[dear.index(max(dear))].codes
    ordered = sorted(rows, key=lambda row: (codes[row], row))
    cut = len(rows) * (count // 2) // count
    return split(table, ordered[:cut], k) + split(table, ordered[cut:], k)


def split_all(table, groups, k):
    parts = [part for group in groups for part in split(table, group, k)]
    return sorted(parts)


def nearest(groups, a, cost):
    """Return the number of the group whose union with a group costs least."""
    others = [b for b in range(len(groups)) if b != a and groups[b]]

    def union(b):
        return (len(groups[a]) + len(groups[b])) * cost([*groups[a], *groups[b]])

    return min(others, key=lambda b: (union(b), b), default=None)


def merge(groups, a, b):
    keep, gone = min(a, b), max(a, b)
    groups[keep], groups[gone] = sorted(groups[keep] + groups[gone]), []


def bottom_up(table, k):
    """Return the groups by first row, and how many rounds it took."""
    cost = costs(table)
    groups, rounds = [[row] for row in range(table.n_rows)], 0
    while len(groups) > 1 and min(map(len, groups)) < k:
        for a in range(len(groups)):
            if 0 < len(groups[a]) < k:
                b = nearest(groups, a, cost)
                if b is not None:
                    merge(groups, a, b)
        groups = split_all(table, [group for group in groups if group], k)
        rounds += 1
    return groups, rounds


def divide(table, order, k, rounds):
    """Return groups, some of them of fewer than k rows, in the order of the recursion."""
    cost = costs(table)
    if len(order) <= k:
        return [order]
    path = [order[0]]
    for _ in range(rounds):
        others = [row for row in order if row != path[-1]]
        path.append(max(others, key=lambda row: (cost([path[-1], row]), -row)))
    rising = list(pairwise(path))[:1]
    for pair in pairwise(path[1:]):
        if cost(pair) <= cost(rising[-1]):
            break
        rising.append(pair)
    u, v = rising[-1]
    sides, total = ([u], [v]), [0.0, 0.0]
    for row in order:
        if row in (u, v):
            continue
        with_row = [(len(side) + 1) * cost([*side, row]) for side in sides]
        rise = [after - before for after, before in zip(with_row, total, strict=True)]
        side = min((0, 1), key=lambda side: (rise[side], len(sides[side]), side))
        sides[side].append(row)
        total[side] = with_row[side]
    if max(map(len, sides)) < k:
        return [order]
    halves = [[row for row in order if row in side] for side in sides]
    return [group for half in halves for group in divide(table, half, k, rounds)]


def borrow(a, b, k, cost):
    """Return the rows of group b that bring group a to k, the nearest first."""
    taken = []
    while len(a) + len(taken) < k:
        rest = [row for row in b if row not in taken]
        taken.append(min(rest, key=lambda row: (cost([*a, *taken, row]), row)))
    return taken


def make_up(table, groups, k):
    """Return groups of at least k rows, by borrowing or merging."""
    cost = costs(table)
    groups = list(map(list, groups))
    for a in range(len(groups)):
        while 0 < len(groups[a]) < k and len([g for g in groups if g]) > 1:
            small, b = groups[a], nearest(groups, a, cost)
            near = groups[b]
            best = (len(small) + len(near)) * cost(small + near) - len(small) * cost(small)
            best -= len(near) * cost(near)
            chosen = None
            for h, other in enumerate(groups):
                if h == a or len(other) < 2 * k - len(small):
                    continue
                taken = borrow(small, other, k, cost)
                kept = [row for row in other if row not in taken]
                rise = k * cost(small + taken) + len(kept) * cost(kept)
                rise = rise - len(small) * cost(small) - len(other) * cost(other)
                if rise < best:
                    best, chosen = rise, (h, taken, kept)
            if chosen is None:
                merge(groups, a, b)
            else:
                h, taken, kept = chosen
                groups[a], groups[h] = small + taken, kept
    return [group for group in groups if group]


def top_down(table, order, k, rounds):
    return split_all(table, make_up(table, divide(table, list(order), k, rounds), k), k)


def center(table, rows):
    """Return the mean position or the most frequent code of each column, None for no value."""
    found = []
    for column in table.quasi:
        codes = column.codes[rows].tolist()
        if column.taxonomy is not None:
            found.append(min(set(codes), key=lambda code: (-codes.count(code), code)))
            continue
        total, values = 0.0, [code for code in codes if code != column.size]
        for code in values:
            total += column.position[code] * column.rule.weight
        found.append(total / len(values) if values else None)
    return found


def distance(table, row, middle):
    total = 0.0
    for column, at in zip(table.quasi, middle, strict=True):
        code = int(column.codes[row])
        if column.taxonomy is not None:
            total += cost_of_codes(column, {code, at}, by_height=True)
        elif (code == column.size) != (at is None):
            total += column.rule.weight
        elif at is not None:
            total += abs(column.position[code] * column.rule.weight - at)
    return total


def one_pass(table, seeds, order, k):
    """Return the clusters in the order of their seeds."""
    clusters = [[seed] for seed in seeds]
    centers = [center(table, [seed]) for seed in seeds]

    def nearest_of(row, choices):
        return min(choices, key=lambda a: (distance(table, row, centers[a]), a))

    def key(row):
        return [column.codes[row] for column in table.quasi]

    for row in sorted(range(table.n_rows), key=key):
        if row not in seeds:
            a = nearest_of(row, range(len(clusters)))
            clusters[a].append(row)
            centers[a] = center(table, clusters[a])
    for a, cluster in enumerate(clusters):
        far = partial(distance, table, middle=centers[a])
        clusters[a] = sorted(cluster, key=lambda row, far=far: (far(row), row))[:k]
    kept = {row for cluster in clusters for row in cluster}
    for row in order:
        if row not in kept:
            short = [a for a, cluster in enumerate(clusters) if len(cluster) < k]
            clusters[nearest_of(row, short or range(len(clusters)))].append(row)
    return [sorted(cluster) for cluster in clusters]


def iloss(table, groups, n_suppressed):
    """Return how many values each published one stands for, but one, over the domain's."""
    total = 0.0
    for column in table.quasi:
        nulls = column.size in column.codes.tolist()
        domain = column.size + nulls
        for rows in groups:
            codes = set(column.codes[rows].tolist())
            if column.size in codes and len(codes) > 1:
                stands_for = domain
            elif len(codes) == 1:
                stands_for = 1
            elif column.taxonomy is None:
                stands_for = max(codes) - min(codes) + 1
            else:
                stands_for = len(
                    leaves_below(column.taxonomy, common_ancestor(column.taxonomy, codes))
                )
            total += len(rows) * (stands_for - 1) / domain * column.rule.weight
        total += n_suppressed * (domain - 1) / domain * column.rule.weight
    return total


def partitions(rows, least):
    """Yield every partition of the rows into groups of at least so many."""
    if not rows:
        yield []
        return
    first, *others = rows
    for mask in range(1 << len(others)):
        inside = [row for i, row in enumerate(others) if mask >> i & 1]
        outside = [row for i, row in enumerate(others) if not mask >> i & 1]
        if len(inside) + 1 >= least:
            for rest in partitions(outside, least):
                yield [[first, *inside], *rest]
