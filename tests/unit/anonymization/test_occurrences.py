import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from builders import encoded, policy_of
from hypothesis import given, settings
from hypothesis import strategies as st
from selection import at_depth

from dbanon.anonymization.problem import Problem, solve
from dbanon.domain.errors import Unsatisfiable
from dbanon.domain.outcomes import Stages

PEOPLE = st.lists(
    st.tuples(st.integers(0, 9), st.lists(st.sampled_from("abc"), min_size=1, max_size=4)),
    min_size=6,
    max_size=24,
)


def rows_of(people):
    return [(i, x, s) for i, (x, values) in enumerate(people) for s in values]


def grouped(rows, most, *, draws=None, rules=None, **changes):
    """Return what is published of each (person, value), by class."""
    changes |= {"subject": "person", "rows_per_subject": most}
    policy = policy_of(["x"], ["s"], rules=rules, **changes)
    table = encoded({"x": [x for _, x, _ in rows]}, {"s": [s for *_, s in rows]}, rules=rules)
    persons = np.unique([i for i, *_ in rows], return_inverse=True)[1].astype(np.int32)
    drawn = np.arange(len(rows), dtype=np.uint64) if draws is None else draws
    problem = Problem(table, policy, persons, drawn[:, np.newaxis])
    found = solve(problem, seed=0, stages=Stages())
    labels = [
        tuple(column.labels[column.index[group]] for column in found.values.columns)
        for group in found.assignment.group.tolist()
    ]
    shown = [
        (label, i, s)
        for (i, _, s), label, group in zip(
            rows, labels, found.assignment.group.tolist(), strict=True
        )
        if group >= 0
    ]
    return shown, found


def cells(shown):
    """Return the (person, value) pairs of each class, apart by how many rows a person has."""
    times, parts = Counter(i for _, i, _ in shown), {}
    for label, i, s in shown:
        parts.setdefault((label, times[i]), []).append((i, s))
    return parts


def limit(share, n_rows):
    """Return how many of the rows may be left out: the share is a decimal number."""
    return math.floor(Fraction(str(share)) * n_rows)


@pytest.mark.exhaustive
@settings(max_examples=at_depth(25))
@given(
    PEOPLE,
    st.sampled_from(["group", 2, 3]),
    st.integers(1, 5),
    st.sampled_from([0.1, 0.29, 0.4]),
    st.sampled_from(["auto", "mondrian"]),
)
def test_persons_left_out_have_at_most_the_rows_of_the_budget(people, most, k, share, algorithm):
    rows = rows_of(people)
    asked = {"k": k, "max_suppressed": share, "algorithm": algorithm}
    try:
        shown, found = grouped(rows, most, **asked)
    except Unsatisfiable:
        return
    kept, size = Counter(i for _, i, _ in shown), Counter(i for i, *_ in rows)
    left_out = len(rows) - len(shown) - found.loss.n_sampled
    assert left_out <= limit(share, len(rows) - found.loss.n_sampled)
    cut = sum(size[i] - n for i, n in kept.items())
    gone = sum(n - 1 for i, n in size.items() if i not in kept)
    assert cut <= found.loss.n_sampled <= cut + gone


@pytest.mark.parametrize("algorithm", ["auto", "mondrian", "mdav"])
def test_what_persons_left_out_by_number_spend_is_not_spent_again(algorithm):
    far = [10**6 * (i + 1) for i in range(4)]
    people = [(x, ["a", "b", "a", "b"]) for x in [i % 7 for i in range(41)] + far]
    people += [(3, ["a", "b", "a"])] * 4
    rows = rows_of(people)
    assert len(rows) == 192
    asked = {"k": 5, "max_suppressed": 0.1, "rules": {"x": {"rare": "suppress"}}}
    shown, found = grouped(rows, "group", **asked, algorithm=algorithm)
    assert found.loss.n_sampled == 0
    assert 12 <= found.loss.n_suppressed == len(rows) - len(shown) <= 19


def test_rows_that_the_policy_allows_as_a_decimal_number_are_left_out():
    people = [(0, ["a"])] * 29 + [(0, ["a", "b"])] * 4 + [(0, ["a", "b", "a"])] * 21
    rows = rows_of(people)
    assert 29 > 0.29 * len(rows) > 28
    shown, found = grouped(rows, "group", k=4, l=2, max_suppressed=0.29)
    assert (len(shown), found.loss.n_suppressed, found.loss.n_sampled) == (71, 29, 0)


def test_all_rows_that_a_person_left_out_might_keep_count():
    people = [(0, ["a", "b"] * 10)] * 10 + [(0, ["a"] * 9), (0, ["b"] * 5)]
    rows = rows_of(people)  # both could be left out with 5 rows each
    _, found = grouped(rows, "group", k=3, max_suppressed=0.05)
    assert found.loss.n_suppressed == found.loss.n_sampled
    _, found = grouped(rows, 7, k=3, max_suppressed=0.15)
    assert (found.loss.n_suppressed, found.loss.n_sampled) == (10 * 13 + 2 + 5, 10 * 13 + 2)


@settings(max_examples=at_depth(60))
@given(PEOPLE, st.sampled_from(["group", 1, 2, 3]), st.integers(1, 3))
def test_persons_of_a_class_with_equally_many_rows_are_k_and_have_l_values(people, most, k):
    rows = rows_of(people)
    try:
        shown, found = grouped(rows, most, k=k, l=2)
    except Unsatisfiable:
        return
    assert {i for _, i, _ in shown} == set(range(len(people)))
    for part in cells(shown).values():
        persons = {i for i, _ in part}
        assert len(persons) >= k
        left = min(len({s for i, s in part if i != gone}) for gone in persons)
        assert min(len({s for _, s in part}), left + 1) >= 2
    if most != "group":
        assert max(Counter(i for _, i, _ in shown).values()) <= most
    assert found.loss.n_rows == len(rows)
    assert found.loss.n_suppressed == found.loss.n_sampled == len(rows) - len(shown)


def test_without_it_persons_are_told_apart_by_how_many_rows_they_have():
    rows = rows_of([(1, ["a"]), (1, ["b"]), (1, ["c"] * 3), (1, ["a"] * 3)])
    shown, _ = grouped(rows, None, k=4, l=2)
    assert {len({i for i, _ in part}) for part in cells(shown).values()} == {2}
    shown, found = grouped(rows, "group", k=4, l=2)
    assert {len({i for i, _ in part}) for part in cells(shown).values()} == {4}
    assert found.loss.n_sampled == 4


def test_numbers_that_enough_persons_share_lose_no_row():
    people = [(i % 3, ["abc"[j % 3]] * (1 + 2 * (j % 2))) for i in range(4) for j in range(6)]
    _, found = grouped(rows_of(people), "group", k=3, l=2)
    assert found.loss.n_sampled == 0
    _, found = grouped(rows_of(people), 2, k=3, l=2)
    assert found.loss.n_sampled == 12


def test_a_number_that_few_persons_share_is_cut_to_the_next_lower():
    people = [(0, ["abc"[i % 3]] * 2) for i in range(6)] + [(0, ["a"] * 5)]
    shown, found = grouped(rows_of(people), "group", k=3, l=2)
    assert set(Counter(i for _, i, _ in shown).values()) == {2}
    assert found.loss.n_sampled == 3


def test_where_few_persons_have_least_rows_the_others_join_them():
    people = [(0, ["abc"[i % 3]] * 4) for i in range(6)] + [(0, ["a"])]
    shown, _ = grouped(rows_of(people), "group", k=3, l=2)
    assert set(Counter(i for _, i, _ in shown).values()) == {1}


def test_the_rows_that_are_drawn_last_are_left_out():
    people = [(0, ["a", "b", "c"])] * 4
    rows = rows_of(people)
    draws = np.array([2, 1, 0] * 4, np.uint64)
    shown, _ = grouped(rows, 1, k=2, draws=draws)
    assert {s for *_, s in shown} == {"c"}


def test_one_row_a_person_may_differ_from_those_left_out():
    rows = [(0, 1, "a"), (0, 9, "b"), (1, 1, "b"), (2, 2, "a")]
    shown, _ = grouped(rows, "group", k=2)  # nobody else has two rows
    assert sorted(i for _, i, _ in shown) == [0, 1, 2]
    shown, _ = grouped(rows, 1, k=2)
    assert sorted(i for _, i, _ in shown) == [0, 1, 2]
