"""Means beside any other value of their column, held against exact fractions."""

from datetime import UTC, datetime
from fractions import Fraction

import numpy as np
import pytest
from builders import encoded
from hypothesis import assume, example, given
from hypothesis import strategies as st
from naive.means import exact, is_rounded, is_within, mean, stretched

import dbanon
from dbanon.anonymization.interfaces import Rows
from dbanon.anonymization.masking.microaggregation import aggregate, individual_ranking
from dbanon.anonymization.masking.noise import BottomCoding, TopCoding
from dbanon.anonymization.registry import RECODINGS
from dbanon.domain.assignment import Assignment
from dbanon.domain.table import ColumnKind

INTEGERS = [10**15, 2**53 + 1, 2**62, 2**63 - 1]
FLOATS = [1e15, 1e30, 3.4e38, 1e300]
OF_INTEGERS = st.sampled_from([*INTEGERS, *(-x for x in INTEGERS)]) | st.integers(-100, 100)
OF_FLOATS = (
    st.sampled_from([*FLOATS, *(-x for x in FLOATS)])
    | st.integers(-100, 100).map(float)
    | st.floats(-1e6, 1e6, allow_subnormal=False).map(lambda x: x + 0.0)
)
TABLES = {
    ColumnKind.INTEGER: st.lists(st.lists(OF_INTEGERS, min_size=1, max_size=6), min_size=1),
    ColumnKind.FLOAT: st.lists(st.lists(OF_FLOATS, min_size=1, max_size=6), min_size=1),
}
UNITS = {ColumnKind.INTEGER: Fraction(1, 10), ColumnKind.FLOAT: Fraction(1, 1000)}
BESIDE_A_SENTINEL = [[-1e30] * 3, [1.0, 2.0, 3.0], [10.0, 20.0, 30.0]]


def groups(*ids):
    return Assignment(np.array(ids, np.int32), max(ids) + 1)


def column_of(values, kind, **rule):
    return encoded({"x": values}, kinds={"x": kind}, rules={"x": rule}).quasi[0]


def error_of(classes, kind, own):
    """Return how far what a float64 holds may be from the truth in one class."""
    if kind is ColumnKind.INTEGER:
        return Fraction(0)
    return max(abs(exact(value)) for value in own) * Fraction(1, 2**50)


def published(recoding, classes, kind, **rule):
    """Return what is published of each class."""
    column = column_of([value for own in classes for value in own], kind, **rule)
    ids = [number for number, own in enumerate(classes) for _ in own]
    found = RECODINGS[recoding].publish(column, groups(*ids))
    return [found.labels[i] for i in found.index]


@pytest.mark.parametrize("kind", TABLES)
@given(st.data())
def test_a_mean_is_that_of_its_class_whatever_else_the_column_holds(kind, data):
    classes = data.draw(TABLES[kind])
    unit = UNITS[kind]
    for text, own in zip(published("mean", classes, kind), classes, strict=True):
        assert is_within(text, own, unit=unit)
        assert is_rounded(text, mean(own), unit=unit, error=error_of(classes, kind, own))


@pytest.mark.parametrize("kind", TABLES)
@given(st.data())
def test_a_midpoint_is_that_of_its_class_whatever_else_the_column_holds(kind, data):
    classes = data.draw(TABLES[kind])
    unit = UNITS[kind]
    for text, own in zip(published("midpoint", classes, kind), classes, strict=True):
        ends = [min(own), max(own)]
        assert is_within(text, ends, unit=unit)
        assert is_rounded(text, mean(ends), unit=unit, error=error_of(classes, kind, own))


@pytest.mark.parametrize("kind", TABLES)
@given(st.data())
def test_a_stretched_mean_is_what_the_variances_of_the_column_say(kind, data):
    classes = data.draw(TABLES[kind])
    unit, means = UNITS[kind], [mean(own) for own in classes]
    greatest = max(abs(exact(value)) for own in classes for value in own)
    # Means of which a float64 holds no difference have no distance that could be stretched.
    apart = max(means) - min(means)
    assume(kind is ColumnKind.INTEGER or apart in (0, max(apart, greatest / 2**20)))
    found = published("mean", classes, kind, restore_variance=True)
    truth = stretched(classes)
    for text, true, own in zip(found, truth, classes, strict=True):
        moved = abs(true - mean(own))
        error = error_of(classes, ColumnKind.FLOAT, own) + moved * Fraction(1, 2**25)
        assert is_rounded(text, true, unit=unit, error=error)


@pytest.mark.parametrize("sentinel", [-1e30, 1e30, -1e15, 1e300, 3.4e38])
def test_a_sentinel_does_not_move_the_means_of_others(sentinel):
    classes = [[sentinel] * 3, *BESIDE_A_SENTINEL[1:]]
    assert ["2.000", "20.000"] == published("mean", classes, ColumnKind.FLOAT)[1:]
    assert ["2.000", "20.000"] == published("midpoint", classes, ColumnKind.FLOAT)[1:]
    restored = published("mean", classes, ColumnKind.FLOAT, restore_variance=True)
    assert ["2.000", "20.000"] == restored[1:]
    values = {"x": [value for own in classes for value in own]}
    found = dbanon.anonymize(values, quasi=["x"], k=3, recodings={"x": "mean"}, algorithm="mdav")
    assert [2.0, 20.0, sentinel] == sorted({float(x) for x in found["x"].to_pylist()}, key=abs)


def test_a_moment_beside_the_first_year_is_that_of_its_class():
    moments = [datetime(1, 1, 1, tzinfo=UTC)] * 2 + [
        datetime(2024, 5, 17, 13, 45, second, tzinfo=UTC) for second in (1, 2, 3)
    ]
    column = column_of(moments, ColumnKind.TIMESTAMPTZ)
    found = RECODINGS["mean"].publish(column, groups(0, 0, 1, 1, 1))
    assert "2024-05-17 13:45:02+00" == found.labels[found.index[1]]


@given(TABLES[ColumnKind.FLOAT])
@example(BESIDE_A_SENTINEL)
def test_masked_means_lie_within_their_groups(classes):
    classes = [[x / 1e150 if abs(x) > 1e150 else x for x in own] for own in classes]
    values = np.array([value for own in classes for value in own])
    group = np.repeat(np.arange(len(classes)), [len(own) for own in classes]).astype(np.int32)
    found = aggregate(values[:, None], Assignment(group, len(classes)))[:, 0]
    for number, own in enumerate(classes):
        (masked,) = set(found[group == number].tolist())
        assert min(own) <= masked <= max(own)
        assert abs(exact(masked) - mean(own)) <= error_of(classes, ColumnKind.FLOAT, own)


@given(st.lists(OF_FLOATS, min_size=1, max_size=30), st.integers(1, 5))
def test_ranked_means_lie_within_their_blocks(values, k):
    found = individual_ranking(np.array(values)[:, None], k)[:, 0]
    for masked in set(found.tolist()):
        own = [value for value, of in zip(values, found.tolist(), strict=True) if of == masked]
        assert min(own) <= masked <= max(own)


@pytest.mark.parametrize("method", [TopCoding, BottomCoding])
@given(st.lists(OF_FLOATS, min_size=1, max_size=30), st.integers(1, 5))
def test_the_mean_of_a_tail_lies_within_it(method, values, persons):
    rows = Rows(np.arange(len(values)), None, None)
    found = method(persons, shown="mean").mask(np.array(values)[:, None], rows)[:, 0].tolist()
    ordered = sorted(values, reverse=method is TopCoding)
    end = ordered[min(persons, len(values)) - 1]
    tail = [x for x in values if (x >= end if method is TopCoding else x <= end)]
    coded = max(found) if method is TopCoding else min(found)
    assert min(tail) <= coded <= max(tail)
    assert abs(exact(coded) - mean(tail)) <= error_of([], ColumnKind.FLOAT, tail)
