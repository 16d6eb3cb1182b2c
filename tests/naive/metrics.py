"""Slow and obvious twins of metrics, on lists."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import log2

import naive


def classification(classes, labels):
    """Return the share of rows that are not of the majority of their class; -1 is suppressed."""
    members = {}
    for c, label in zip(classes, labels, strict=True):
        if c >= 0:
            members.setdefault(c, []).append(label)
    agreeing = sum(Counter(of_class).most_common(1)[0][1] for of_class in members.values())
    return Fraction(len(classes) - agreeing, len(classes))


def minimal_distortion(table, classes, n_suppressed):
    """Return the cells that are not published as they are; no column has a floor."""
    distorted = n_suppressed * len(table.quasi)
    for rows in classes:
        for column in table.quasi:
            distorted += len(rows) if len(set(column.codes[rows].tolist())) > 1 else 0
    return distorted


def precision(table, classes, n_suppressed):
    """Return 1 less the mean share of the heights of cells, that of a suppressed row being 1."""
    climbed = n_suppressed * len(table.quasi)
    for rows in classes:
        for column in table.quasi:
            share = naive.cost_of_codes(column, column.codes[rows].tolist(), by_height=True)
            climbed += len(rows) * share
    return 1 - climbed / (table.n_rows * len(table.quasi))


def radii(table, classes):
    """Return for each class the distance of the farthest row from its most central row."""

    def apart(a, b):
        pairs = ((column, column.codes[[a, b]].tolist()) for column in table.quasi)
        return sum(naive.cost_of_codes(column, pair, by_height=True) for column, pair in pairs)

    return [min(max(apart(a, b) for b in rows) for a in rows) for rows in classes]


def entropy(labels):
    shares = [Fraction(count, len(labels)) for count in Counter(labels).values()]
    return -sum(float(share) * log2(share) for share in shares)


def gain_per_privacy_loss(labels_of_classes):
    """Return the gain of cutting all rows into classes, for each row that they are smaller."""
    labels = [label for of_class in labels_of_classes for label in of_class]
    left = sum(len(of_class) * entropy(of_class) for of_class in labels_of_classes) / len(labels)
    lost = len(labels) - min(map(len, labels_of_classes))
    return (entropy(labels) - left) / (lost + 1)
