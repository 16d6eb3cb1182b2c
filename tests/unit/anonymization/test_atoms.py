"""Groups of atoms: none is divided, and all meet the policy."""

from dataclasses import replace

import numpy as np
import pytest
from builders import encoded, policy_of, tables_and_requirements
from hypothesis import given
from hypothesis import strategies as st

from dbanon.anonymization.adjusting.merging import Merging, moved
from dbanon.anonymization.interfaces import Requirement
from dbanon.anonymization.problem import Problem, solve, unsafe
from dbanon.domain.assignment import Assignment
from dbanon.domain.errors import Unsatisfiable
from dbanon.domain.outcomes import Stages
from dbanon.domain.policy import ModelSpec
from dbanon.models.demands import all_demands


def numbers(values):
    return np.array(values, np.int32)


def grouped(table, atoms, *, subjects=None, models=(), rules=None, **asked):
    names = [column.name for column in table.quasi]
    policy = policy_of(names, table.sensitive_names, rules=rules, **asked)
    policy = replace(policy, models=(*policy.models, *models))
    owners = None if subjects is None else numbers(subjects)
    return solve(
        Problem(table, policy, atoms=numbers(atoms), subjects=owners), seed=0, stages=Stages()
    )


@given(tables_and_requirements(), st.data())
def test_no_atom_is_divided_and_every_class_meets_the_policy(drawn, data):
    table, k, l = drawn
    few = st.lists(st.integers(-1, 6), min_size=table.n_rows, max_size=table.n_rows)
    atoms = numbers(data.draw(few))
    try:
        found = grouped(table, atoms, k=k, l=l)
    except Unsatisfiable:
        kept = np.flatnonzero(atoms >= 0)
        values = [len(np.unique(column[kept])) for column in table.sensitive.T]
        assert len(kept) < k or min(values, default=l) < l
        return
    group = found.assignment.group
    assert ((group < 0) == (atoms < 0)).all()
    for atom in np.unique(atoms[atoms >= 0]):
        assert len(np.unique(group[atoms == atom])) == 1
    assert found.loss.smallest_class >= k


def test_the_nearest_atoms_are_merged():
    table = encoded({"age": [20, 21, 80, 81, 22, 23, 82, 83]})
    found = grouped(table, [0, 0, 1, 1, 2, 2, 3, 3], k=4)
    assert [0, 0, 1, 1, 0, 0, 1, 1] == found.assignment.group.tolist()


def test_atoms_that_meet_the_policy_stay_as_they_are():
    table = encoded({"age": [20, 90, 20, 90]})
    assert [0, 0, 1, 1] == grouped(table, [0, 0, 1, 1], k=2).assignment.group.tolist()


def test_all_rows_of_a_person_count_once():
    table = encoded({"age": [20, 20, 30, 40, 50, 60]})
    found = grouped(table, [0, 0, 0, 1, 1, 1], subjects=[0, 0, 1, 2, 3, 4], k=3, subject="who")
    assert 1 == found.assignment.n_groups


def test_values_that_are_kept_stay_apart():
    rules = {"sex": {"keep": True}}
    columns = {"sex": ["f", "f", "m", "m", "f", "m"], "age": [20, 30, 20, 30, 40, 40]}
    table = encoded(columns, rules=rules)
    found = grouped(table, [0, 0, 1, 1, 2, 2], k=2, rules=rules)
    assert [0, 0, 1, 1, -1, -1] == found.assignment.group.tolist()


def test_too_few_are_refused():
    table = encoded({"age": [20, 30, 40]})
    with pytest.raises(Unsatisfiable):
        grouped(table, [0, 0, -1], k=3)
    with pytest.raises(Unsatisfiable, match="nobody"):
        grouped(table, [-1, -1, -1], k=3)


def test_the_models_of_a_class_may_ask_for_more_than_atoms_have():
    table = encoded({"age": [1, 2, 3, 4, 5, 6]}, {"d": ["a", "a", "b", "b", "c", "c"]})
    models = [ModelSpec("entropy-l-diversity", {"l": 2})]
    found = grouped(table, [0, 0, 1, 1, 2, 2], k=2, models=models)
    assert found.loss.smallest_class >= 4


def test_an_atom_is_unsafe_by_a_new_column_that_it_has_too_few_values_of():
    values = {"new": ["a", "b", "a", "a", "a", "b"], "old": ["x"] * 6}
    table, atoms = encoded({"age": [1] * 6}, values), numbers([0, 0, 1, 1, 2, 2])
    policy = policy_of(["age"], values, k=2, l=2)

    def found(column, least):
        return [one.tolist() for one in unsafe(table, policy, atoms, columns={column}, least=least)]

    alike = [False, True, False]
    assert [[False] * 3, alike] == found("new", 2)
    assert [[True] * 3, alike] == found("new", 3)
    assert [[False] * 3, [True] * 3] == found("old", 2)


def test_rows_of_one_person_are_no_atom():
    table = encoded({"age": [1] * 4}, {"new": ["a", "b", "a", "b"]})
    policy = policy_of(["age"], ["new"], k=2, l=2)
    owners = numbers([0, 0, 1, 2])
    small, alike = unsafe(
        table, policy, numbers([0, 0, 1, 1]), columns={"new"}, least=2, subjects=owners
    )
    assert ([True, False], [True, False]) == (small.tolist(), alike.tolist())


@given(tables_and_requirements(), st.data())
def test_moving_costs_no_more_and_divides_nothing(drawn, data):
    table, k, l = drawn
    requirement = Requirement(
        k, demands=all_demands(table, policy_of([], table.sensitive_names, k=k, l=l))
    )
    of_row = data.draw(st.lists(st.integers(0, 9), min_size=table.n_rows, max_size=table.n_rows))
    units = numbers(np.unique(of_row, return_inverse=True)[1])
    one = Assignment(np.zeros(table.n_rows, np.int32), 1)
    before = Assignment(units, int(units.max()) + 1)
    after = moved(table, before, one, requirement, stages=Stages())
    assert Merging(table, after).loss() <= Merging(table, one).loss() + 1e-9
    for unit in range(before.n_groups):
        assert len(np.unique(after.group[units == unit])) == 1
    for group in range(after.n_groups):
        rows = np.flatnonzero(after.group == group)
        assert len(rows) >= k
        assert all(len(np.unique(column[rows])) >= l for column in table.sensitive.T)
