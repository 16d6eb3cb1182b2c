from collections import Counter

import numpy as np
from builders import encoded, policy_of
from hypothesis import given, settings
from hypothesis import strategies as st

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


def grouped(rows, most, *, draws=None, **changes):
    """Return what is published of each (person, value), by class."""
    policy = policy_of(["x"], ["s"], subject="person", rows_per_subject=most, **changes)
    table = encoded({"x": [x for _, x, _ in rows]}, {"s": [s for *_, s in rows]})
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


@settings(max_examples=60)
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
