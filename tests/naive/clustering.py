"""Twins of the general clustering methods, on sets of row numbers."""

from __future__ import annotations

from itertools import combinations
from math import dist, exp, fsum, inf
from operator import mul

TIE = 1e-9

LINKS = {"single": min, "complete": max, "average": lambda steps: sum(steps) / len(steps)}


def unions(apart, link):
    """Return the sets of rows that AGNES makes, the closest pair first; distances have no ties."""
    clusters = [frozenset([row]) for row in range(len(apart))]
    made = []
    while len(clusters) > 1:
        a, b = min(
            combinations(clusters, 2),
            key=lambda pair: LINKS[link]([apart[i][j] for i in pair[0] for j in pair[1]]),
        )
        clusters = [c for c in clusters if c not in {a, b}] + [a | b]
        made.append((a, b))
    return made


def smallest_unions(apart, link, k):
    """Return the unions of at least k rows whose two parts have fewer."""
    return {a | b for a, b in unions(apart, link) if max(len(a), len(b)) < k <= len(a | b)}


def mean(apart, row, others):
    return sum(apart[row][other] for other in others) / len(others) if others else 0.0


def splinter(apart, rows, k):
    """Return the rows that leave a cluster, in the order in which they do."""
    rest, gone = list(rows), []
    while len(rest) > k:
        gain = {
            row: mean(apart, row, [other for other in rest if other != row])
            - mean(apart, row, gone)
            for row in rest
        }
        row = max(rest, key=lambda row: (round(gain[row], 9), -row))
        if len(gone) >= k and gain[row] <= TIE:
            break
        rest.remove(row)
        gone.append(row)
    return gone


def deviation(apart, medoids):
    """Return the sum of the distances of the rows to their nearest medoids."""
    return sum(min(steps[medoid] for medoid in medoids) for steps in apart)


def wandering(apart, n_medoids, *, neighbours, random):
    """Return the medoids of CLARANS, which draws as the method does."""
    rows = random.permutation(len(apart)).tolist()
    medoids, others = rows[:n_medoids], rows[n_medoids:]
    failed = 0
    while others and failed < neighbours:
        place, i = random.integers(n_medoids), random.integers(len(others))
        swapped = [*medoids[:place], others[i], *medoids[place + 1 :]]
        failed += 1
        if deviation(apart, swapped) < deviation(apart, medoids) - TIE:
            medoids, others[i], failed = swapped, medoids[place], 0
    return medoids


def order_is_reachable(apart, order, reach, k):
    """Whether the order of OPTICS takes the row of least reachability each time."""
    core = [sorted(steps)[k - 1] for steps in apart]
    for at in range(1, len(order)):
        through = {
            row: min(max(core[done], apart[done][row]) for done in order[:at]) for row in order[at:]
        }
        if (through[order[at]], order[at]) != min((t, row) for row, t in through.items()):
            return False
        if through[order[at]] != reach[order[at]]:
            return False
    return sorted(order) == list(range(len(apart)))


def entries(points, radius):
    """Return the entry of BIRCH nearest to each point, when one node holds all entries."""
    made = []

    def mean(members):
        return [fsum(axis) / len(members) for axis in zip(*members, strict=True)]

    def nearest(point):
        return min(range(len(made)), key=lambda i: dist(mean(made[i]), point))

    for point in points:
        joined = [*made[nearest(point)], point] if made else []
        squares = [dist(mean(joined), other) ** 2 for other in joined]
        if joined and fsum(squares) / len(joined) <= radius**2:
            made[nearest(point)] = joined
        else:
            made.append([point])
    return [nearest(point) for point in points]


def links(neighbours):
    """Return how many neighbours each pair has in common; neighbours: a set for each."""
    return [[0 if a is b else len(a & b) for b in neighbours] for a in neighbours]


def linked_clusters(common, k, exponent):
    """Return the clusters of at least k rows that ROCK merges."""
    clusters = [[row] for row in range(len(common))]

    def goodness(a, b):
        expected = (len(a) + len(b)) ** exponent - (len(a) ** exponent + len(b) ** exponent)
        return sum(common[i][j] for i in a for j in b) / expected

    while True:
        pairs = [
            (-goodness(a, b), min(a), min(b))
            for a, b in combinations(sorted(clusters), 2)
            if max(len(a), len(b)) < k and goodness(a, b) > 0
        ]
        if not pairs:
            return [sorted(cluster) for cluster in clusters if len(cluster) >= k]
        _, first, second = min(pairs)
        (a,) = (cluster for cluster in clusters if min(cluster) == first)
        (b,) = (cluster for cluster in clusters if min(cluster) == second)
        clusters = [cluster for cluster in clusters if cluster not in (a, b)] + [sorted(a + b)]


def density(place, points, sigma):
    """Return the sum of the Gaussian influences of all points on a place."""
    return fsum(exp(-(dist(place, point) ** 2) / (2 * sigma**2)) for point in points)


def attractor(place, points, sigma):
    """Return where one gets from a place by going to the mean of what pulls, a hundred times."""
    for _ in range(100):
        pull = [density(place, [point], sigma) for point in points]
        before = place
        place = [fsum(map(mul, pull, axis)) / fsum(pull) for axis in zip(*points, strict=True)]
        if dist(before, place) <= sigma / 1000:
            break
    return place


def joined(places, reach):
    """Return the sets of places that are connected by steps within reach."""
    sets = [{i} for i in range(len(places))]
    for i, j in combinations(range(len(places)), 2):
        if dist(places[i], places[j]) <= reach:
            union = {k for part in sets if part & {i, j} for k in part}
            sets = [part for part in sets if not part & {i, j}] + [union]
    return sorted(map(sorted, sets))


def cut(weights, side, rest):
    """Return the weights of the edges between two sides."""
    return [weights[i][j] for i in side for j in rest if weights[i][j] > 0]


def bisected(weights, rows, least=1):
    """Return the side that few edges leave, grown row by row and then swapped."""
    least = max(least, len(rows) // 4)

    def others(side):
        return [row for row in rows if row not in side]

    def leaving(side):
        return fsum(cut(weights, side, others(side)))

    grown = [[min(rows, key=lambda row: (leaving([row]), row))]]
    while len(grown[-1]) < len(rows) - least:
        rest = others(grown[-1])
        grown.append(min(([*grown[-1], row] for row in rest), key=leaving))
    sides = [side for side in grown if least <= len(side) <= len(rows) - least]
    pairs = {len(side): len(side) * len(others(side)) for side in sides}
    side = min(sides, key=lambda side: leaving(side) / pairs[len(side)], default=[])
    while side:
        out = min(side, key=lambda row: (leaving([r for r in side if r != row]), row))
        swapped = [[row for row in side if row != out] + [into] for into in others(side)]
        best = min(swapped, key=leaving)
        if leaving(best) >= leaving(side) - TIE:
            break
        side = sorted(best)
    return sorted(side)


def divided(weights, rows, least):
    """Return the parts that cutting the rows in two makes, again and again."""
    if len(rows) < 2 * least:
        return [rows]
    side = bisected(weights, rows, least)
    rest = [row for row in rows if row not in side]
    return divided(weights, side, least) + divided(weights, rest, least)


def chameleon(weights, parts, k, power):
    """Return the clusters into which parts merge."""
    clusters = [list(rows) for rows in parts]

    def inner(rows):
        side = bisected(weights, rows)
        return cut(weights, side, [row for row in rows if row not in side])

    def mean(edges):
        return fsum(edges) / len(edges) if edges else 0

    def goodness(a, b):
        between = cut(weights, a, b)
        if max(len(a), len(b)) >= k or not between:
            return 0
        cuts = fsum(inner(a)) + fsum(inner(b))
        if cuts == 0:
            return inf
        within = len(a) * mean(inner(a)) + len(b) * mean(inner(b))
        closeness = mean(between) / (within / (len(a) + len(b)))
        return fsum(between) / (cuts / 2) * closeness**power

    while True:
        good, a, b = max(
            ((goodness(a, b), a, b) for a, b in combinations(sorted(clusters), 2)),
            key=lambda pair: pair[0],
            default=(0, [], []),
        )
        if good == 0:
            return sorted(clusters)
        clusters = [rows for rows in clusters if rows not in (a, b)] + [sorted(a + b)]
