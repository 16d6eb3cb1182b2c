"""Slow and obvious twins of metrics, on lists."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction


def classification(classes, labels):
    """Return the share of rows that are not of the majority of their class; -1 is suppressed."""
    members = {}
    for c, label in zip(classes, labels, strict=True):
        if c >= 0:
            members.setdefault(c, []).append(label)
    agreeing = sum(Counter(of_class).most_common(1)[0][1] for of_class in members.values())
    return Fraction(len(classes) - agreeing, len(classes))
