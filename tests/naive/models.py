"""The privacy models, spelled as their definitions are.

A class is a list of values, ``whole`` the list of all values; each function returns what the class
achieves.
"""

import math
from collections import Counter

from naive import height, leaves_below


def worst(bound, achieved):
    """Return what the worst class achieves."""
    return min(achieved) if bound == "at least" else max(achieved)


def shares(values):
    return {value: count / len(values) for value, count in Counter(values).items()}


def effective_entropy(values):
    return math.exp(-sum(p * math.log(p) for p in shares(values).values()))


def sorted_counts(values):
    return sorted(Counter(values).values(), reverse=True)


def recursive(values, l):
    """Return the infimum c, which must be exceeded."""
    if l == 1:
        return 0.0
    counts = sorted_counts(values)
    tail = sum(counts[l - 1 :])
    return counts[0] / tail if tail else math.inf


def pd_recursive(values, l, positive):
    if l == 1 or set(values) <= set(positive):
        return 0.0
    ordered = Counter(values).most_common()
    y = next(i for i, (value, _) in enumerate(ordered, 1) if value not in positive)
    first = l if y <= l - 1 else l - 1
    tail = sum(count for j, (_, count) in enumerate(ordered, 1) if j >= first and j != y)
    tail = sum(count for j, (_, count) in enumerate(ordered, 1) if j >= l) if y <= l - 1 else tail
    return ordered[y - 1][1] / tail if tail else math.inf


def total_variation(values, whole):
    p, q = shares(values), shares(whole)
    return sum(abs(p.get(v, 0) - q.get(v, 0)) for v in {*p, *q}) / 2


def ordered_distance(values, whole, domain):
    """``domain``: the distinct values of the relation in order."""
    p, q = shares(values), shares(whole)
    carried, total = 0.0, 0.0
    for value in domain:
        carried += p.get(value, 0) - q.get(value, 0)
        total += abs(carried)
    return total / max(len(domain) - 1, 1)


def transport_by_rank(values, whole, domain):
    """Carry every row of a class to a row of the relation, the least first, each as often."""
    rank = {value: i for i, value in enumerate(domain)}
    here = sorted(rank[value] for value in values for _ in whole)
    there = sorted(rank[value] for value in whole for _ in values)
    steps = sum(abs(a - b) for a, b in zip(here, there, strict=True))
    return steps / len(here) / max(len(domain) - 1, 1)


def hierarchical_distance(values, whole, taxonomy):
    """What a subtree has too much or too little of pays half the rise of the edge above it."""
    p, q, top = shares(values), shares(whole), height(taxonomy, 0)
    total = 0.0
    for node in range(1, len(taxonomy.labels)):
        below = [taxonomy.labels[leaf] for leaf in leaves_below(taxonomy, node)]
        rise = height(taxonomy, taxonomy.parent[node]) - height(taxonomy, node)
        total += rise / top / 2 * abs(sum(p.get(v, 0) - q.get(v, 0) for v in below))
    return total


def beta(values, whole, limit=None):
    p, q = shares(values), shares(whole)
    gains = [0.0]
    for v in p:
        gain = (p[v] - q[v]) / q[v]
        if gain > 0:
            gains.append(gain if limit is None else gain * limit / min(limit, -math.log(q[v])))
    return max(gains)


def delta(values, whole):
    p, q = shares(values), shares(whole)
    return max(abs(math.log(p[v] / q[v])) if v in p else math.inf for v in q)


def posterior(counts, prior, published):
    """Return what an adversary believes of a person in a class (Machanavajjhala et al., TKDD 2007).

    counts: of the values in the class; prior: f(s|q); published: f(s|q*).
    """
    weights = {s: n * prior[s] / published[s] for s, n in counts.items()}
    total = sum(weights.values())
    return {s: weight / total for s, weight in weights.items()}
