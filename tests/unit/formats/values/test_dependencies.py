"""Whether one column follows from another, or only seems to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbanon.formats.policy_warnings import determines

AGES = [str(20 + i * 7 % 60) for i in range(1000)]
GROUPS = [f"{age[0]}0s" for age in AGES]
BORN = [str(2020 - int(age)) for age in AGES]


def test_an_age_determines_its_group_and_not_the_other_way_round():
    assert determines(AGES, GROUPS)
    assert not determines(GROUPS, AGES)


def test_an_age_and_a_year_of_birth_determine_each_other():
    assert determines(AGES, BORN)
    assert determines(BORN, AGES)


def test_one_row_speaks_against_it():
    assert not determines(AGES, [*GROUPS[:-1], "other"])


def test_what_nobody_shares_determines_nothing():
    numbers = [str(i) for i in range(1000)]
    assert not determines(numbers, GROUPS)
    assert not determines([*numbers[:700], *["x"] * 300], [*GROUPS[:700], *["y"] * 300])


def test_what_is_always_the_same_follows_from_nothing():
    assert not determines(AGES, ["x"] * 1000)
    assert not determines(["x"] * 1000, AGES)


def test_what_is_nearly_always_the_same_may_follow_by_chance():
    rare = ["y" if i == 5 else "x" for i in range(1000)]
    pairs = [str(i // 2) for i in range(1000)]
    assert not determines(pairs, ["y" if i // 2 == 5 else "x" for i in range(1000)])
    assert not determines(AGES, rare)


def test_few_rows_say_nothing_and_rows_without_a_value_are_left_out():
    assert not determines(AGES[:40], GROUPS[:40])
    holes = [None if i % 3 else age for i, age in enumerate(AGES)]
    assert determines(holes, GROUPS)
    assert determines(AGES, [None if i % 3 else group for i, group in enumerate(GROUPS)])
    assert not determines([None] * 1000, GROUPS)


@pytest.mark.exhaustive
@given(st.randoms(use_true_random=False), st.integers(2, 9), st.integers(2, 9))
def test_columns_that_have_nothing_to_do_with_each_other_do_not_follow(drawn, few, others):
    first = [str(drawn.randrange(few * 20)) for _ in range(300)]
    second = [str(drawn.randrange(others)) for _ in range(300)]
    assert not determines(first, second)
