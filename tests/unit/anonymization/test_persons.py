import re
from collections import Counter

import numpy as np
import pytest
from builders import encoded, policy_of
from hypothesis import given, settings
from hypothesis import strategies as st
from selection import at_depth

from dbanon.anonymization.auto.space import make_space, total_cost
from dbanon.anonymization.interfaces import Requirement
from dbanon.anonymization.persons import profiles
from dbanon.anonymization.problem import Problem, solve
from dbanon.domain.errors import Unsatisfiable
from dbanon.domain.outcomes import Stages
from dbanon.domain.policy import ModelSpec
from dbanon.models.demands import achieved_by_persons
from dbanon.models.registry import MODELS


def outcome(table, subjects, *, models=(), **changes):
    policy = policy_of(["x"], table.sensitive_names, subject="person", **changes)
    object.__setattr__(policy, "models", (*policy.models, *models))
    found = np.unique(subjects, return_inverse=True)[1].astype(np.int32)
    return solve(Problem(table, policy, found), seed=0, stages=Stages())


@pytest.mark.exhaustive
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 4)), min_size=3, max_size=20))
def test_a_class_has_k_persons_and_every_person_one_class(persons):
    rows = [(i, x) for i, (x, visits) in enumerate(persons) for _ in range(visits)]
    table = encoded({"x": [x for _, x in rows]})
    found = outcome(table, [i for i, _ in rows], k=3)
    assert found.loss.n_rows == len(rows)
    groups = {}
    for (person, _), group in zip(rows, found.assignment.group.tolist(), strict=True):
        groups.setdefault(group, set()).add(person)
    assert all(len(members) >= 3 for members in groups.values())
    assert sum(map(len, groups.values())) == len(persons)


def test_k_rows_of_fewer_persons_are_too_few():
    table = encoded({"x": [1, 1, 1, 2, 2, 2]})
    with pytest.raises(Unsatisfiable, match="2 rows, fewer than k = 3"):
        outcome(table, [0, 0, 0, 1, 1, 1], k=3)


@pytest.mark.exhaustive
@settings(max_examples=at_depth(60))
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 30), st.sampled_from("abcd")), min_size=1, max_size=4),
        min_size=4,
        max_size=16,
    ),
    st.sampled_from(["auto", "mondrian", "k-member", "optimal-lattice"]),
    st.integers(2, 4),
)
def test_all_values_of_a_person_count_as_known(people, algorithm, k):
    """Whoever knows every row of a person still has k persons, of whom all of it may be true."""
    rows = [(i, x, y) for i, visits in enumerate(people) for x, y in visits]
    table = encoded({"x": [x for _, x, _ in rows], "y": [y for *_, y in rows]})
    policy = policy_of(["x", "y"], (), k=k, subject="person", algorithm=algorithm)
    subjects = np.array([i for i, *_ in rows], np.int32)
    found = solve(Problem(table, policy, subjects), seed=0, stages=Stages())
    shown = [column.labels for column in found.values.columns]
    index = [column.index for column in found.values.columns]
    seen = {}
    for (person, x, y), group in zip(rows, found.assignment.group.tolist(), strict=True):
        ranged, label = (shown[c][index[c][group]] for c in (0, 1))
        low, high = map(int, re.fullmatch(r"\[(\d+),(\d+)\]", ranged).groups())
        assert low <= x <= high
        assert label in (y, "*")
        seen.setdefault(person, set()).add((ranged, label))
    assert {len(labels) for labels in seen.values()} == {1}
    alike = Counter(label for labels in seen.values() for label in labels)
    assert min(alike.values()) >= k


@given(
    st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=4), min_size=2, max_size=12),
    st.randoms(use_true_random=False),
)
def test_a_search_pays_for_the_intervals_of_persons_what_is_published(people, random):
    """A person whose values lie within those of others of a group costs nothing more."""
    rows = [(i, x) for i, visits in enumerate(people) for x in visits]
    subjects = np.array([i for i, _ in rows], np.int32)
    columns = {"x": [x for _, x in rows], "y": [0] * len(rows)}  # weights relate to that of y
    table = profiles(encoded(columns), subjects)
    label = np.array([random.randrange(2) for _ in people[1:]] + [0], np.int32)
    label = np.unique(label, return_inverse=True)[1].astype(np.int32)
    span = max(x for _, x in rows) - min(x for _, x in rows)
    expected = 0.0
    for group in range(label.max() + 1):
        known = [x for i, x in rows if label[i] == group]
        expected += (label == group).sum() * (max(known) - min(known)) / max(span, 1)
    space = make_space(table, Requirement(1), loss="ncp")
    assert expected == pytest.approx(total_cost(space, label))


def test_intervals_with_missing_values_are_searched_by_both_ends():
    table = encoded({"x": [1, None, 2, 4, 5, 5]})
    ends = profiles(table, np.array([0, 0, 1, 1, 2, 2], np.int32)).quasi
    assert [None, None] == [column.end for column in ends]
    assert [[0, 1, 3], [4, 2, 3]] == [column.codes.tolist() for column in ends]


def test_persons_whose_rows_span_the_same_are_alike():
    rows = [(i, x) for i, span in enumerate([(1, 2), (8, 9)] * 3) for x in span]
    table = encoded({"x": [x for _, x in rows]})
    found = outcome(table, [i for i, _ in rows], k=3)
    assert sorted(found.values.columns[0].labels) == ["[1,2]", "[8,9]"]


def test_rows_of_a_person_may_differ_in_a_sensitive_column():
    same = encoded({"x": [1, 1, 3, 3]}, {"s": ["a", "a", "a", "b"]})
    assert outcome(same, [0, 0, 1, 1]).loss.n_classes == 1
    assert outcome(same, [0, 0, 1, 1], l=2).loss.n_classes == 1
    with pytest.raises(Unsatisfiable, match="1 persons have rows that differ in s: entropy"):
        outcome(same, [0, 0, 1, 1], models=[ModelSpec("entropy-l-diversity", {"l": 1.5})])


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        (ModelSpec("m-uniqueness", {"m": 2}), "is about rows that all differ"),
        (ModelSpec("k-map", {"k": 2}), "is about a population of one row a person"),
        (ModelSpec("t-closeness", {"t": 0.5}), "persons have rows that differ in s"),
        (ModelSpec("l-diversity", {"l": 2, "multi": "strict"}), "rows that differ in s"),
    ],
)
def test_models_that_say_nothing_of_persons_of_several_rows_are_refused(spec, reason):
    table = encoded({"x": [1, 1, 3]}, {"s": ["a", "b", "b"]})
    with pytest.raises(Unsatisfiable, match=reason):
        outcome(table, [0, 0, 1], models=[spec])


def by_hand(name, rows):
    """Return what a class achieves, given its (person, value) pairs."""
    persons = {p for p, _ in rows}
    frequency = max(len({p for p, v in rows if v == s}) for _, s in rows) / len(persons)
    if name == "alpha-k-anonymity":
        return frequency
    if name == "probabilistic-l-diversity":
        return 1 / frequency
    left = min(len({v for p, v in rows if p != gone}) for gone in persons)
    return min(len({v for _, v in rows}), left + 1)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4), st.sampled_from("abcd")), min_size=1),
    st.sampled_from([name for name, model in MODELS.items() if model.of_persons]),
)
def test_persons_of_several_values_count_as_the_reference_says(rows, name):
    classes, persons, values = (
        np.unique(x, return_inverse=True)[1] for x in zip(*rows, strict=True)
    )
    found = achieved_by_persons(
        MODELS[name].of_persons,
        classes.astype(np.int32),
        persons.astype(np.int32),
        values.astype(np.int32),
    )
    groups = sorted({c for c, _, _ in rows})
    expected = [by_hand(name, [row[1:] for row in rows if row[0] == c]) for c in groups]
    assert expected == pytest.approx(found.tolist())


@settings(max_examples=at_depth(60))
@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.lists(st.sampled_from("abc"), min_size=1, max_size=3)),
        min_size=2,
        max_size=16,
    ),
    st.sampled_from(
        [
            ModelSpec("alpha-k-anonymity", {"alpha": 0.6}),
            ModelSpec("probabilistic-l-diversity", {"l": 1.8}),
            ModelSpec("p-sensitivity", {"p": 2}),
            ModelSpec("l-diversity", {"l": 2, "columns": ("s",)}),
        ]
    ),
)
def test_what_is_published_holds_of_rows_and_of_persons(people, spec):
    rows = [(i, x, v) for i, (x, values) in enumerate(people) for v in values]
    table = encoded({"x": [x for _, x, _ in rows]}, {"s": [v for _, _, v in rows]})
    try:
        found = outcome(table, [i for i, _, _ in rows], models=[spec])
    except Unsatisfiable:
        with pytest.raises(Unsatisfiable):
            outcome(table, [i for i, _, _ in rows], models=[spec], algorithm="full-domain")
        return
    least = spec.name != "alpha-k-anonymity"
    required = next(v for v in spec.params.values() if not isinstance(v, tuple))
    for group in range(found.assignment.n_groups):
        members = [row for row, g in zip(rows, found.assignment.group, strict=True) if g == group]
        assert len({i for i, _, _ in members}) >= 2
        for pairs in ([(i, v) for i, _, v in members], [(j, m[2]) for j, m in enumerate(members)]):
            achieved = by_hand(spec.name, pairs)
            assert achieved >= required - 1e-9 if least else achieved <= required + 1e-9


def test_persons_left_out_count_with_all_their_rows():
    rows = [0] * 9 + [1, 2, 3]
    x = [900] * 9 + [1, 1, 1]
    with pytest.raises(Unsatisfiable, match="have 9 rows, more than allowed"):
        outcome(encoded({"x": x}), rows, k=3, max_suppressed=0.25)
