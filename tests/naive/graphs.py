"""Optima of small instances by trying everything, on sets of row numbers."""

from __future__ import annotations

from itertools import combinations


def partitions(rows, k):
    """Yield every partition of the rows into parts of k or more."""
    rows = list(rows)
    if not rows:
        yield []
        return
    first, rest = rows[0], rows[1:]
    for size in range(k - 1, len(rows)):
        for others in combinations(rest, size):
            left = [row for row in rest if row not in others]
            for parts in partitions(left, k) if not left or len(left) >= k else ():
                yield [[first, *others], *parts]


def stars(rows, part):
    """Return how many cells of a part are hidden; rows: tuples of values."""
    columns = zip(*(rows[row] for row in part), strict=True)
    return len(part) * sum(len(set(column)) > 1 for column in columns)


def fewest_stars(rows, k):
    return min(sum(stars(rows, part) for part in p) for p in partitions(range(len(rows)), k))


def radius(distances, part):
    """Return the distance of the farthest member from the best center, any row."""
    return min(max(from_center[row] for row in part) for from_center in distances)


def radii(distances, clusters):
    """Return the distance of each center to its farthest member."""
    group = clusters.group.tolist()
    return [
        max(apart for apart, g in zip(distances[center], group, strict=True) if g == number)
        for number, center in enumerate(clusters.center.tolist())
    ]


def gather_radius(distances, clusters):
    return max(radii(distances, clusters))


def cellular_cost(distances, clusters):
    group = clusters.group.tolist()
    return sum(group.count(g) * radius for g, radius in enumerate(radii(distances, clusters)))


def least_radius(distances, k, *, left_out=0):
    """Return the least greatest radius when some rows may be left out."""
    n = len(distances)
    return min(
        max(radius(distances, part) for part in p)
        for size in range(max(k, n - left_out), n + 1)
        for rows in combinations(range(n), size)
        for p in partitions(rows, k)
    )


def least_cellular_cost(distances, k):
    return min(
        sum(len(part) * radius(distances, part) for part in p)
        for p in partitions(range(len(distances)), k)
    )


def least_weight(weights, degrees):
    """Return the least weight of edges that give every row one of the degrees."""
    n = len(weights)
    edges = list(combinations(range(n), 2))
    least = None

    def extend(at, degree, total):
        nonlocal least
        if least is not None and total >= least:
            return
        if at == len(edges):
            if all(d in degrees for d in degree):
                least = total
            return
        a, b = edges[at]
        if any(degree[row] < min(degrees) for row in range(a)):
            return
        if degree[a] < max(degrees) and degree[b] < max(degrees):
            more = list(degree)
            more[a] += 1
            more[b] += 1
            extend(at + 1, more, total + weights[a][b])
        extend(at + 1, degree, total)

    extend(0, [0] * n, 0)
    return least
