"""Slow twins of V-MDAV and of the squared error that microaggregation minimizes."""

from __future__ import annotations

from math import fsum, inf


def squared(a, b):
    return sum((x - y) ** 2 for x, y in zip(a, b, strict=True))


def centroid(points):
    return [fsum(axis) / len(points) for axis in zip(*points, strict=True)]


def error(points, groups):
    total = 0.0
    for rows in groups:
        chosen = [points[row] for row in rows]
        total += sum(squared(point, centroid(chosen)) for point in chosen)
    return total


def v_mdav(points, k, gamma):
    """Return the rows of each group in the order in which they are made."""
    rest, groups, middle = set(range(len(points))), [], centroid(points)

    def nearest(rows, members):
        return min(
            (min(squared(points[row], points[m]) for m in members), row) for row in sorted(rows)
        )

    while len(rest) >= k:
        seed = max(sorted(rest), key=lambda row: (squared(points[row], middle), -row))
        rest.remove(seed)
        near = sorted(rest, key=lambda row: (squared(points[row], points[seed]), row))[: k - 1]
        group = [seed, *near]
        rest -= set(near)
        while rest and len(group) < 2 * k - 1:
            inside, row = nearest(rest, group)
            others = rest - {row}
            outside = nearest(others, [row])[0] if others else inf
            if inside >= gamma * gamma * outside:
                break
            group.append(row)
            rest.remove(row)
        groups.append(group)
    means = [centroid([points[row] for row in group]) for group in groups]
    for row in sorted(rest):
        closest = min(range(len(means)), key=lambda g: (squared(points[row], means[g]), g))
        groups[closest].append(row)
    return [sorted(group) for group in groups]
