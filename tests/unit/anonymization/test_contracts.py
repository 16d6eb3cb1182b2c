"""What every entry of the registry promises. Being listed is being tested."""

import naive
import numpy as np
import pytest
from builders import encoded, policy_of, tables_and_requirements
from hypothesis import given
from hypothesis import strategies as st
from selection import some

from dbanon.anonymization.interfaces import Requirement
from dbanon.anonymization.loss.costs import column_costs, height_costs, pack
from dbanon.anonymization.problem import Problem, solve
from dbanon.anonymization.registry import ALGORITHMS, MASKING, METRICS, RECODINGS
from dbanon.domain.errors import Unsatisfiable
from dbanon.domain.outcomes import Stages
from dbanon.kernels.boxes.costs import box_costs
from dbanon.models.registry import MODELS


def within_reach(name, k):
    """Return k, or the greatest k that an algorithm says it can take."""
    return min(k, getattr(ALGORITHMS[name], "MAX_K", k))


@pytest.mark.parametrize("name", ALGORITHMS)
@some()
@given(tables_and_requirements(), st.sampled_from([0.0, 0.1, 0.5]))
def test_an_algorithm_groups_the_rows_as_required_and_always_alike(name, drawn, share):
    table, k, l = drawn
    k = within_reach(name, k)
    before = [column.codes.copy() for column in table.quasi]
    assignment, again = (
        ALGORITHMS[name]().assign(table, Requirement(k, l, share), seed=3) for _ in range(2)
    )
    assert assignment.group.tolist() == again.group.tolist()
    for copy, column in zip(before, table.quasi, strict=True):
        assert copy.tolist() == column.codes.tolist()
    assert (table.n_rows, np.int32) == (len(assignment.group), assignment.group.dtype)
    assert list(range(assignment.n_groups)) == sorted(set(assignment.group.tolist()) - {-1})
    assert (assignment.group < 0).sum() == assignment.n_suppressed <= share * table.n_rows
    for rows in naive.members(assignment):
        assert len(rows) >= k
        assert naive.is_diverse(table, rows, l)


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("n", [3, 5, 6, 8, 9, 10])
def test_an_algorithm_takes_equal_rows(name, n):
    table = encoded({"x": [1] * n, "y": ["a"] * n, "z": [None] * n})
    k = within_reach(name, 3)
    assignment = ALGORITHMS[name]().assign(table, Requirement(k), seed=0)
    assert min(map(len, naive.members(assignment))) >= k


@pytest.mark.parametrize("name", [n for n in ALGORITHMS if hasattr(ALGORITHMS[n], "MAX_K")])
def test_an_algorithm_refuses_a_k_out_of_its_reach(name):
    k = ALGORITHMS[name].MAX_K + 1
    table = encoded({"x": list(range(3 * k))})
    with pytest.raises(Unsatisfiable, match=f"{name} .* k = {k}") as raised:
        ALGORITHMS[name]().assign(table, Requirement(k), seed=0)
    assert "forest" in raised.value.hint


@pytest.mark.parametrize("name", ALGORITHMS)
@some()
@given(tables_and_requirements(), st.sampled_from([0.0, 0.1, 0.5]))
def test_what_is_published_meets_the_policy(name, drawn, share):
    table, k, l = drawn
    k = within_reach(name, k)
    policy = policy_of(
        [column.name for column in table.quasi],
        table.sensitive_names,
        k=k,
        l=l,
        algorithm=name,
        max_suppressed=share,
    )
    outcome = solve(Problem(table, policy), seed=0, stages=Stages())
    assert outcome.loss.n_suppressed <= share * table.n_rows
    shown = {}
    for rows, group in zip(naive.members(outcome.assignment), range(table.n_rows), strict=False):
        labels = tuple(column.labels[column.index[group]] for column in outcome.values.columns)
        shown.setdefault(labels, []).extend(rows)
    assert outcome.loss.n_classes == len(shown)
    assert outcome.loss.smallest_class == min(map(len, shown.values())) >= k
    assert all(naive.is_diverse(table, rows, l) for rows in shown.values())
    assert 0 <= outcome.loss.ncp <= 1


@given(tables_and_requirements(weights=(1.0, 0.25)), st.data())
def test_the_cost_of_a_box_is_that_of_its_members(drawn, data):
    table, _, _ = drawn
    rows = data.draw(st.lists(st.integers(0, table.n_rows - 1), min_size=1))
    for column in table.quasi:
        codes = column.codes[rows]
        box = np.array([[codes.min()]], np.int32), np.array([[codes.max()]], np.int32)
        weight = column.rule.weight
        leaves = box_costs(*pack([column_costs(column).times(weight)]), *box)[0, 0]
        heights = box_costs(*pack([height_costs(column).times(weight)]), *box)[0, 0]
        assert naive.cost_of_codes(column, codes.tolist()) == pytest.approx(leaves)
        assert naive.cost_of_codes(column, codes.tolist(), by_height=True) == pytest.approx(heights)


def test_every_entry_has_a_documented_name():
    for registry in (ALGORITHMS, MODELS, RECODINGS, MASKING, METRICS):
        for name, entry in registry.items():
            assert name == name.lower()
            assert entry.__doc__
