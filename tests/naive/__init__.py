"""Slow and obvious twins of the kernels and the metrics, on sets of row numbers."""

from __future__ import annotations

from itertools import pairwise
from math import fsum, inf, isnan, nan, sqrt

TIE = 1e-9


def members(assignment):
    """Return the rows of each group."""
    groups = [[] for _ in range(assignment.n_groups)]
    for row, group in enumerate(assignment.group.tolist()):
        if group >= 0:
            groups[group].append(row)
    return groups


def ancestors(taxonomy, node):
    chain = [node]
    while taxonomy.parent[chain[-1]] >= 0:
        chain.append(int(taxonomy.parent[chain[-1]]))
    return chain


def common_ancestor(taxonomy, leaves):
    """Return the deepest node above all leaves, by intersecting their chains to the root."""
    chains = [ancestors(taxonomy, int(taxonomy.leaves[leaf])) for leaf in leaves]
    return next(node for node in chains[0] if all(node in chain for chain in chains))


def leaves_below(taxonomy, node):
    return [leaf for leaf in taxonomy.leaves.tolist() if node in ancestors(taxonomy, leaf)]


def height(taxonomy, node):
    return max(ancestors(taxonomy, leaf).index(node) for leaf in leaves_below(taxonomy, node))


def cost_of_codes(column, codes, *, by_height=False):
    """Return the certainty penalty of a set of codes, times the column's weight."""
    weight = column.rule.weight
    codes = set(codes)
    if len(codes) <= 1:
        return 0.0
    if column.size in codes:
        return weight
    if column.taxonomy is None:
        return column.position[max(codes)] * weight - column.position[min(codes)] * weight
    node = common_ancestor(column.taxonomy, codes)
    if by_height:
        return height(column.taxonomy, node) / height(column.taxonomy, 0) * weight
    return len(leaves_below(column.taxonomy, node)) / column.taxonomy.n_leaves * weight


def cost(table, rows):
    """Return the cost of the box of some rows, column by column."""
    total = 0.0
    for column in table.quasi:
        total += cost_of_codes(column, column.codes[rows].tolist())
    return total


def is_diverse(table, rows, l):
    return all(len(set(column[rows].tolist())) >= l for column in table.sensitive.T)


def sibling_ranks(column):
    """Return the place of each code when siblings come in falling number of rows."""
    taxonomy = column.taxonomy
    if taxonomy is None:
        return list(range(column.size + 1))
    codes = column.codes.tolist()
    leaf_of = {node: leaf for leaf, node in enumerate(taxonomy.leaves.tolist())}

    def rows_below(node):
        return sum(codes.count(leaf_of[leaf]) for leaf in leaves_below(taxonomy, node))

    def walk(node):
        if node in leaf_of:
            return [leaf_of[node]]
        children = [c for c in range(len(taxonomy.labels)) if taxonomy.parent[c] == node]
        children.sort(key=lambda child: (-rows_below(child), child))
        return [leaf for child in children for leaf in walk(child)]

    order = walk(0)
    return [order.index(code) for code in range(column.size)] + [column.size]


def split(rows, goes_left):
    """Partition a list in place as the kernel does, and return the number on the left."""
    left, right = 0, len(rows)
    while left < right:
        if goes_left(rows[left]):
            left += 1
        else:
            right -= 1
            rows[left], rows[right] = rows[right], rows[left]
    return left


def column_cuts(table, rows, j, ranks, *, k, l):
    """Yield the greatest rank left of each allowable cut of a column."""
    column = table.quasi[j]
    rank = {row: ranks[j][column.codes[row]] for row in rows}
    present = sorted(set(rank.values()))
    values = [column.codes[row] for row in rows if column.codes[row] != column.size]

    def allowable(at):
        sides = [r for r in rows if rank[r] <= at], [r for r in rows if rank[r] > at]
        return all(len(side) >= k and is_diverse(table, side, l) for side in sides)

    if present[-1] == column.size and len(present) > 1 and allowable(present[-2]):
        yield present[-2]
        return
    for at, following in pairwise(present):
        if not allowable(at) or following == column.size:
            continue
        if column.taxonomy is not None:
            codes = {column.codes[r] for r in rows if rank[r] in {at, following}}
            whole = common_ancestor(column.taxonomy, values)
            if common_ancestor(column.taxonomy, codes) != whole:
                continue
        yield at


def best_cut(table, rows, ranks, k, l):
    best, found = -1.0, None
    for j, column in enumerate(table.quasi):
        if len(set(column.codes[rows].tolist())) == 1:
            continue
        best_here, at_here = -1.0, None
        for at in column_cuts(table, rows, j, ranks, k=k, l=l):
            left = [row for row in rows if ranks[j][column.codes[row]] <= at]
            right = [row for row in rows if ranks[j][column.codes[row]] > at]
            before = cost(table, rows)
            drop = len(left) * (before - cost(table, left))
            drop += len(right) * (before - cost(table, right))
            score = drop / sqrt(len(left) * len(right))
            if score > best_here + TIE * abs(best_here):
                best_here, at_here = score, at
        if at_here is not None and best_here > best + TIE * abs(best):
            best, found = best_here, (j, at_here)
    return found


def split_at_half(rows, rank):
    """Put the lower half of the rows first, as many at the median as it takes."""
    half = len(rows) // 2
    median = sorted(map(rank, rows))[half - 1]
    ties = half - sum(rank(row) < median for row in rows)

    def goes_left(row):
        nonlocal ties
        if rank(row) == median and ties > 0:
            ties -= 1
            return True
        return rank(row) < median

    return split(rows, goes_left)


def halve(table, rows, ranks, l):
    """Divide the rows evenly at the median of the costliest column that allows it."""
    dear = [cost_of_codes(column, column.codes[rows].tolist()) for column in table.quasi]
    for j in sorted(range(len(dear)), key=lambda j: (-dear[j], j)):
        if dear[j] <= 0:
            continue
        half = split_at_half(rows, lambda row, j=j: ranks[j][table.quasi[j].codes[row]])
        if is_diverse(table, rows[:half], l) and is_diverse(table, rows[half:], l):
            return half
    return 0


def mondrian(table, k, l, *, relaxed=False):
    """Return the rows of each group; exact for boxes of at most 64 rows."""
    ranks = [sibling_ranks(column) for column in table.quasi]

    def cut(rows):
        left = 0
        if len(rows) >= 2 * k:
            found = best_cut(table, rows, ranks, k, l)
            if found:
                j, at = found
                left = split(rows, lambda row: ranks[j][table.quasi[j].codes[row]] <= at)
            elif relaxed:
                left = halve(table, rows, ranks, l)
        return cut(rows[:left]) + cut(rows[left:]) if left else [rows]

    return [sorted(rows) for rows in cut(list(range(table.n_rows)))]


def squared_distance(a, b, code_distance):
    """Return the squared distance of two records (numbers, codes); NaN is NULL."""
    total = 0.0
    for x, y in zip(a[0], b[0], strict=True):
        total += float(isnan(x) != isnan(y)) if isnan(x) or isnan(y) else (x - y) * (x - y)
    for j, (x, y) in enumerate(zip(a[1], b[1], strict=True)):
        total += code_distance(j, x, y) ** 2
    return total


def average_record(records):
    numbers = []
    for column in zip(*(record[0] for record in records), strict=True):
        present = [x for x in column if not isnan(x)]
        numbers.append(fsum(present) / len(present) if present else nan)
    codes = [
        min(set(column), key=lambda code: (-column.count(code), code))
        for column in zip(*(record[1] for record in records), strict=True)
    ]
    return numbers, codes


def mdav(records, k, code_distance):
    """Return the rows of each group in the order in which they are made."""
    rest, groups = list(range(len(records))), []

    def farthest(rows, record):
        return max(rows, key=lambda r: (squared_distance(records[r], record, code_distance), -r))

    def emit(seed, rows):
        near = sorted(
            rows, key=lambda r: (squared_distance(records[r], records[seed], code_distance), r)
        )
        group = [seed, *near[: k - 1]]
        groups.append(sorted(group))
        return [row for row in rest if row not in group]

    while len(rest) >= 3 * k:
        r = farthest(rest, average_record([records[row] for row in rest]))
        s = farthest([row for row in rest if row != r], records[r])
        rest = emit(r, [row for row in rest if row not in {r, s}])
        rest = emit(s, [row for row in rest if row != s])
    if len(rest) >= 2 * k:
        r = farthest(rest, average_record([records[row] for row in rest]))
        rest = emit(r, [row for row in rest if row != r])
    return [*groups, sorted(rest)] if rest else groups


def merge_groups(table, groups, l):
    """Return the groups after merging those that are not diverse, in order of their number."""

    def meets(rows):
        return is_diverse(table, rows, l)

    alive = dict(enumerate(map(list, groups)))
    for a in range(len(groups)):
        while a in alive and not meets(alive[a]) and len(alive) > 1:
            best, best_key = None, (True, inf)
            for b in sorted(alive):
                if b == a:
                    continue
                union = alive[a] + alive[b]
                rise = len(union) * cost(table, union) - len(alive[a]) * cost(table, alive[a])
                rise -= len(alive[b]) * cost(table, alive[b])
                key = (not meets(union), rise)
                if key < best_key:
                    best, best_key = b, key
            alive[a] += alive.pop(best)
    return [sorted(alive[a]) for a in sorted(alive)]


def trim(table, groups, k, l, budget):
    """Return the rows left out, in order."""
    groups = [list(rows) for rows in groups]
    everything = sum(column.rule.weight for column in table.quasi)
    gone = []
    while len(gone) < budget:
        best, chosen = 0.0, None
        for a, rows in enumerate(groups):
            for row in sorted(rows) if len(rows) > k else []:
                others = [other for other in rows if other != row]
                gain = len(rows) * cost(table, rows) - (len(rows) - 1) * cost(table, others)
                gain -= everything
                if gain > best and is_diverse(table, others, l):
                    best, chosen = gain, (a, row)
        if chosen is None:
            break
        groups[chosen[0]].remove(chosen[1])
        gone.append(chosen[1])
    return gone
