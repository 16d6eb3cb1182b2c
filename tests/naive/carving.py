"""A twin of the boxes that are carved out: levels as sets of codes, rows as lists."""

from __future__ import annotations

from math import inf, log

from naive import engine


def sides(space, seed, steps):
    """Return for each column the levels of its two sides: lists of sets of codes, smallest first.

    A taxonomy has one side. Every level takes in more codes than the one below it.
    """
    found = []
    for j, column in enumerate(space.columns):
        code, codes = int(space.codes[seed, j]), range(column.size)
        everything = {*codes, column.size}
        if code == column.size:
            found += [[{code}, everything], [{code}]]
        elif column.taxonomy is None:
            above = [_reached(column, code, step, up=True) for step in steps]
            below = [_reached(column, code, step, up=False) for step in steps]
            null = {other for other in everything if other >= code}
            found += [_growing([{code}, *above, null]), _growing([{code}, *below])]
        else:
            found += [[*_ancestors(column.taxonomy, code), everything], [{code}]]
    return found


def _reached(column, code, step, *, up):
    here = column.position[code]
    return {
        other
        for other, place in enumerate(column.position)
        if abs(place - here) <= step and (other >= code if up else other <= code)
    }


def _growing(levels):
    return [level for i, level in enumerate(levels) if i == 0 or len(level) > len(levels[i - 1])]


def _ancestors(taxonomy, code):
    """Return the leaves below each ancestor, without the root."""
    node, levels = int(taxonomy.leaves[code]), []
    for _ in range(max(taxonomy.height, 1)):
        levels.append({*range(int(taxonomy.leaf_lo[node]), int(taxonomy.leaf_hi[node]) + 1)})
        node = max(int(taxonomy.parent[node]), 0)
    return levels


def price(space, side, codes):
    return engine.cost_of_codes(space.columns[side // 2], frozenset(codes), "ncp")


def box_around(space, seed, k, *, steps):
    """Return the cost of the box around a seed, and its rows."""
    levels = sides(space, seed, steps)
    at = [len(ladder) - 1 for ladder in levels]

    def rows_of(at):
        return [
            row
            for row in range(space.n_rows)
            if all(
                int(space.codes[row, j])
                in levels[2 * j][at[2 * j]] | levels[2 * j + 1][at[2 * j + 1]]
                for j in range(len(space.columns))
            )
        ]

    while True:
        n, best, chosen = len(rows_of(at)), -1.0, None
        for side, ladder in enumerate(levels):
            for to in range(at[side] - 1, -1, -1):
                left = len(rows_of([*at[:side], to, *at[side + 1 :]]))
                if left < k:
                    break
                gain = price(space, side, ladder[at[side]]) - price(space, side, ladder[to])
                gain = gain / -log(left / n) if left < n else 1e9 + gain
                if gain > best:
                    best, chosen = gain, (side, to)
        if chosen is None:
            break
        at[chosen[0]] = chosen[1]
    total = sum(price(space, side, ladder[at[side]]) for side, ladder in enumerate(levels))
    return total if n >= k else inf, rows_of(at)
