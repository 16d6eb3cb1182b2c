import numpy as np
import pytest
from builders import encoded, policy_of
from hypothesis import given
from hypothesis import strategies as st

from dbanon.anonymize.subjects import run_by_subject
from dbanon.domain.errors import Unsatisfiable
from dbanon.domain.policy import ModelSpec
from dbanon.domain.stages import Stages


def outcome(table, subjects, *, models=(), **changes):
    policy = policy_of(["x"], table.sensitive_names, subject="person", **changes)
    object.__setattr__(policy, "models", (*policy.models, *models))
    found = np.unique(subjects, return_inverse=True)[1].astype(np.int32)
    return run_by_subject(table, policy, found, seed=0, stages=Stages())


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


def test_rows_of_a_person_that_differ_are_refused():
    table = encoded({"x": [1, 2, 3, 3]}, {"s": ["a", "a", "a", "b"]})
    with pytest.raises(Unsatisfiable, match="1 persons have rows that differ in x"):
        outcome(table, [0, 0, 1, 1])
    same = encoded({"x": [1, 1, 3, 3]}, {"s": ["a", "a", "a", "b"]})
    assert outcome(same, [0, 0, 1, 1]).loss.n_classes == 1
    with pytest.raises(Unsatisfiable, match="1 persons have rows that differ in s"):
        outcome(same, [0, 0, 1, 1], l=2)


def test_models_that_weigh_rows_are_refused():
    table = encoded({"x": [1, 1, 3]}, {"s": ["a", "a", "b"]})
    with pytest.raises(Unsatisfiable, match=r"0\.5-closeness \(equal\) weighs rows"):
        outcome(table, [0, 0, 1], models=[ModelSpec("t-closeness", {"t": 0.5})])


def test_persons_left_out_count_with_all_their_rows():
    rows = [0] * 9 + [1, 2, 3]
    x = [900] * 9 + [1, 1, 1]
    with pytest.raises(Unsatisfiable, match="have 9 rows, more than allowed"):
        outcome(encoded({"x": x}), rows, k=3, max_suppressed=0.25)
