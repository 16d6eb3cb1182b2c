"""Anatomy as its definition reads, on lists of values."""


def rounds(values, l):
    """Return the values of each bucket before anybody joins one, and those that are left."""
    left = sorted(values)
    buckets = []
    while len(set(left)) >= l:
        most = sorted(set(left), key=lambda value: (-left.count(value), value))[:l]
        for value in most:
            left.remove(value)
        buckets.append(most)
    return buckets, left


def estimate(persons, values, *, wanted, value):
    """Return how many persons are expected to be wanted and to have a value.

    persons: (row, bucket) each; values: {bucket: {value: count}}; wanted: a test of a row.
    """
    return sum(
        values[bucket].get(value, 0) / sum(values[bucket].values())
        for row, bucket in persons
        if wanted(row)
    )
