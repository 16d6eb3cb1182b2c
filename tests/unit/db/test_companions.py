"""Who goes with those who left a class."""

from collections import Counter
from itertools import combinations
from time import process_time
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbanon.db.histories.companions import Candidate, draw

K = 3
KEY = b"a secret of 32 bytes, or of more"


def members(values, gone=1, start=0):
    """Return candidates with these values, of whom the first are gone."""
    return [
        Candidate(number < gone, UUID(int=start + number), (value,))
        for number, value in enumerate(values)
    ]


@given(st.lists(st.sampled_from("aab "), max_size=14), st.integers(1, 3), st.integers(0, 99))
def test_those_who_go_and_those_who_stay_are_valid_classes(values, gone, start):
    found = members([value.strip() or None for value in values], gone, start)
    drawn = draw(found, K, {"disease": 2}, key=KEY)
    if drawn:
        went = [one for one in found if one.is_gone or one in drawn]
        stay = [one for one in found if one not in went]
        for part in (went, stay):
            assert len(part) >= K
            assert len({one.values[0] for one in part} - {None}) >= 2
        assert not any(one.is_gone for one in drawn)


def test_as_few_go_as_make_a_valid_class():
    assert 2 == len(draw(members("abababab"), K, {"disease": 2}, key=KEY))
    assert 1 == len(draw(members("abababab", gone=3), K, {"disease": 2}, key=KEY))
    assert 2 == len(draw(members("aaaaaaaa"), K, {}, key=KEY))


def test_nobody_is_drawn_where_too_few_would_stay():
    assert [] == draw(members("ababa"), K, {"disease": 2}, key=KEY)
    assert [] == draw(members("aaaaaaab"), K, {"disease": 2}, key=KEY)


def test_whoever_stays_is_as_likely_to_go_as_any_other_of_the_same_value():
    went = Counter()
    for start in range(0, 40_000, 10):
        went.update(
            one.person.int - start for one in draw(members("abbbbbbb", 1, start), K, {}, key=KEY)
        )
    assert 0 not in went
    assert max(went.values()) < 1.2 * min(went.values())


@given(st.lists(st.sampled_from("abc "), max_size=8), st.integers(1, 3), st.integers(1, 3))
def test_nobody_is_drawn_only_where_nobody_can_be(values, gone, least):
    found = members([value.strip() or None for value in values], gone)
    others = [one for one in found if not one.is_gone]
    valid = [
        drawn
        for size in range(1, len(others) + 1)
        for drawn in combinations(others, size)
        for went in [[one for one in found if one.is_gone or one in drawn]]
        if all(
            len(part) >= K and len({one.values[0] for one in part} - {None}) >= least
            for part in (went, [one for one in found if one not in went])
        )
    ]
    assert bool(valid) == bool(draw(found, K, {"disease": least}, key=KEY))


@pytest.mark.parametrize("few", [["bbb"], ["bba", "bab", "abb"]])
def test_a_large_class_that_cannot_be_split_is_soon_known_to_be_one(few):
    rows = ["aaa"] * 997 + few
    found = [Candidate(i < 1, UUID(int=i), tuple(row)) for i, row in enumerate(rows)]
    began = process_time()
    assert [] == draw(found, K, dict.fromkeys(("disease", "drug", "ward"), 2), key=KEY)
    assert process_time() - began < 10


def test_who_goes_along_is_decided_by_the_secret_key():
    found = members("ab" * 20)
    drawn = [{one.person for one in draw(found, 9, {}, key=bytes([n]) * 32)} for n in range(9)]
    assert drawn[0] == {one.person for one in draw(found, 9, {}, key=bytes(32))}
    assert len({frozenset(persons) for persons in drawn}) > 5
