from collections import Counter

import naive
import numpy as np
import pytest
from goldens import ANATOMY, ANATOMY_BUCKETS, ANATOMY_COUNT
from hypothesis import given
from hypothesis import strategies as st
from naive import anatomy

from dbanon.anonymization.buckets import deal, greatest_level
from dbanon.domain.errors import Unsatisfiable

VALUES = st.lists(st.integers(0, 6), min_size=1, max_size=40)


@st.composite
def bucketed(draw):
    """Draw values that buckets of at least l different ones can hold, and l."""
    l = draw(st.integers(2, 5))
    different = st.lists(st.integers(0, 6), min_size=l, max_size=7, unique=True)
    buckets = draw(st.lists(different, min_size=1, max_size=8))
    return draw(st.permutations([value for bucket in buckets for value in bucket])), l


def codes(values):
    """Number values in their order."""
    return np.unique(values, return_inverse=True)[1].astype(np.int32)


def draws(size, seed=0):
    """Return what stands for secret numbers."""
    return np.random.default_rng(seed).integers(0, 2**64, (size, 3), np.uint64)


def buckets_of(values, l, seed=0):
    found = deal(np.array(values, np.int32), draws(len(values), seed), l=l)
    return found, [[values[row] for row in rows] for rows in naive.members(found)]


@given(bucketed(), st.integers(0, 3))
def test_every_bucket_has_at_least_l_persons_all_of_different_values(drawn, seed):
    values, l = drawn
    found, buckets = buckets_of(values, l, seed)
    assert (len(values), np.int32) == (len(found.group), found.group.dtype)
    assert sorted(values) == sorted(value for bucket in buckets for value in bucket)
    for bucket in buckets:
        assert l <= len(bucket) == len(set(bucket))


@given(bucketed(), st.integers(0, 3))
def test_buckets_are_those_of_the_definition_and_who_is_left_joins_one(drawn, seed):
    values, l = drawn
    expected, left = anatomy.rounds(values, l)
    assert len(left) == len(set(left)) < l
    found, buckets = buckets_of(values, l, seed)
    assert len(expected) == found.n_groups == len(values) // l
    joined = Counter(value for bucket in buckets for value in bucket)
    assert joined == Counter(left) + Counter(value for bucket in expected for value in bucket)
    without = Counter(tuple(sorted(bucket)) for bucket in expected)
    full = Counter(tuple(sorted(bucket)) for bucket in buckets if len(bucket) == l)
    assert full <= without
    assert len(left) == sum(len(bucket) - l for bucket in buckets)


@given(VALUES, st.integers(2, 5))
def test_a_value_on_more_than_one_in_l_is_refused_and_the_greatest_l_is_not(values, l):
    greatest = greatest_level(codes(values))
    assert max(greatest, 1) * max(Counter(values).values()) <= len(values)
    assert (greatest + 1) * max(Counter(values).values()) > len(values)
    if greatest >= 1:
        buckets_of(values, greatest)
    if l > greatest:
        with pytest.raises(Unsatisfiable, match=rf"more than one in l = {l}") as caught:
            buckets_of(values, l)
        assert (f"--l {greatest}" if greatest > 1 else "leave out anatomy") == caught.value.hint


def test_nobody_has_no_bucket():
    nobody = np.empty(0, np.int32)
    assert 0 == greatest_level(nobody)
    with pytest.raises(Unsatisfiable, match="0 of 0 persons"):
        deal(nobody, draws(0), l=2)


def test_the_numbers_of_persons_alone_say_who_shares_a_bucket():
    values = np.arange(60, dtype=np.int32) // 6
    one, same, other = (deal(values, draws(60, seed), l=3).group for seed in (1, 1, 2))
    assert one.tolist() == same.tolist() != other.tolist()
    order = np.random.default_rng(3).permutation(60)
    assert one[order].tolist() == deal(values[order], draws(60, 1)[order], l=3).group.tolist()


def test_numbers_of_buckets_do_not_tell_how_frequent_their_values_are():
    values = [0] * 40 + [1] * 40 + [2 + row // 4 for row in range(40)]
    frequent = [[0 in bucket for bucket in buckets_of(values, 2, seed)[1]] for seed in range(20)]
    first = sum(held[0] for held in frequent)
    assert 0 < first < 20
    assert not all(held == sorted(held, reverse=True) for held in frequent)


def test_the_diseases_of_the_paper_are_eligible_for_four():
    values = codes([disease for *_, disease in ANATOMY])
    assert 4 == greatest_level(values)
    found, buckets = buckets_of(values.tolist(), 4)
    assert (2, [4, 4]) == (found.n_groups, [len(set(bucket)) for bucket in buckets])
    with pytest.raises(Unsatisfiable, match="2 of 8 persons") as caught:
        buckets_of(values.tolist(), 5)
    assert "--l 4" == caught.value.hint


def test_a_count_over_the_buckets_of_the_paper_comes_out_as_it_is():
    wanted, value = ANATOMY_COUNT
    persons = [(row, bucket) for row, bucket in zip(ANATOMY, ANATOMY_BUCKETS, strict=True)]
    values = {
        bucket: Counter(row[-1] for row, other in persons if other == bucket)
        for bucket in ANATOMY_BUCKETS
    }
    assert 1 == sum(row[-1] == value and wanted(row) for row in ANATOMY)
    assert anatomy.estimate(persons, values, wanted=wanted, value=value) == pytest.approx(1)
    # Generalized to ages 21 to 60 and zip codes 10001 to 60000, of which 10 of 40 years and 10,000
    # of 50,000 codes are wanted, both persons with the disease count a quarter of a fifth.
    assert 2 * 10 / 40 * 10_000 / 50_000 == pytest.approx(0.1)
