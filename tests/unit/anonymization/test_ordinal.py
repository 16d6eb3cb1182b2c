"""Columns whose values come in an order that somebody listed."""

from collections import Counter
from dataclasses import replace

import naive
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from builders import encoded, policy_of
from hypothesis import given
from hypothesis import strategies as st
from naive import models

from dbanon.anonymization.algorithms.microaggregation.microaggregation import Mdav, mdav_points
from dbanon.anonymization.data_frame import anonymize
from dbanon.anonymization.distances import rows as value_distances
from dbanon.anonymization.distances.rows import pairwise
from dbanon.anonymization.interfaces import Requirement
from dbanon.anonymization.problem import Problem, solve
from dbanon.anonymization.registry import ALGORITHMS, RECODINGS, recoding_named
from dbanon.domain.assignment import Assignment
from dbanon.domain.errors import PolicyError
from dbanon.domain.outcomes import Stages
from dbanon.domain.policy import ColumnRule, ModelSpec, Role
from dbanon.domain.table import ColumnKind, Structure
from dbanon.models.demands import all_demands

ORDER = ("low", "medium", "high", "grave", "fatal")
VALUES = st.none() | st.sampled_from(ORDER)


def column_of(values, **rule):
    table = encoded({"x": values}, rules={"x": {"order": ORDER, **rule}})
    return table.quasi[0]


def published(recoding, column, *group):
    assignment = Assignment(np.array(group, np.int32), max(group) + 1)
    shown = RECODINGS[recoding].publish(column, assignment)
    return [(shown.labels[i], float(shown.loss[i])) for i in shown.index.tolist()]


def test_ranks_and_steps_are_what_the_definition_says():
    column = column_of([*ORDER, None])
    first, third = (np.array([code], np.int32) for code in (0, 2))
    assert [2 / 4] == value_distances.rank(column, first, third).tolist()
    assert [2 / 5] == value_distances.ord(column, first, third).tolist()
    assert (ColumnKind.ORDINAL, Structure.ORDER) == (column.kind, column.structure)


@given(st.lists(VALUES, min_size=1, max_size=8))
def test_distances_of_rows_go_by_the_order(values):
    table = encoded({"x": values}, rules={"x": {"order": ORDER}})
    for name, divisor, power in (("manhattan", 4, 1), ("squared-euclidean", 5, 2)):
        expected = [
            [
                float(a != b) if None in {a, b} else abs(ORDER.index(a) - ORDER.index(b)) / divisor
                for b in values
            ]
            for a in values
        ]
        assert np.allclose(np.array(expected) ** power, pairwise(table, name))


def test_recodings_go_by_the_order():
    column = column_of(["grave", "low", "high", "medium", "medium", None, None, "high"])
    groups = (0, 0, 0, 1, 1, 2, 3, 3)
    assert "interval-text" == recoding_named(column)
    assert [("[low, grave]", 0.75), ("medium", 0), (None, 0), ("*", 1)] == published(
        "interval-text", column, *groups
    )
    assert ["high", "medium", None, "high"] == [
        label for label, _ in published("median", column, *groups)
    ]
    assert "{low,high,grave}" == published("set", column, *groups)[0][0]


@pytest.mark.parametrize(
    ("rule", "kind", "structure"),
    [
        ({}, ColumnKind.ORDINAL, Structure.ORDER),
        ({"recoding": "label"}, ColumnKind.ORDINAL, Structure.TREE),
        ({"taxonomy": "t"}, ColumnKind.ORDINAL, Structure.TREE),
        ({"order": ORDER}, ColumnKind.CATEGORY, Structure.ORDER),
        ({}, ColumnKind.CATEGORY, Structure.TREE),
        ({}, ColumnKind.BOOLEAN, Structure.TREE),
        ({}, ColumnKind.DATE, Structure.LINE),
    ],
)
def test_what_values_are_to_each_other_follows_from_type_and_rule(rule, kind, structure):
    assert structure is ColumnRule("x", Role.QUASI, **rule).structure(kind)


def median(codes, size):
    present = sorted(code for code in codes if code != size)
    return present[(len(present) - 1) // 2] if present else size


def ordinal_mdav(values, k):
    """MDAV of one ordinal column: the average is the lower median, the distance is ``ord``."""
    size = len(ORDER)
    codes = [size if value is None else ORDER.index(value) for value in values]

    def apart(a, b):
        return float(a != b) if size in {a, b} else (abs(a - b) / size) ** 2

    def nearest(rows, seed):
        return sorted(rows, key=lambda row: (row != seed, apart(codes[row], codes[seed]), row))[:k]

    rows, groups = list(range(len(codes))), []
    while len(rows) >= 2 * k:
        average = median([codes[row] for row in rows], size)
        first = max(rows, key=lambda row: (apart(codes[row], average), -row))
        others = [row for row in rows if row != first]
        second = max(others, key=lambda row: (apart(codes[row], codes[first]), -row))
        two = len(rows) >= 3 * k
        groups.append(nearest([r for r in rows if not two or r != second], first))
        rows = [row for row in rows if row not in groups[-1]]
        if two:
            groups.append(nearest(rows, second))
            rows = [row for row in rows if row not in groups[-1]]
    return [sorted(group) for group in [*groups, rows] if group]


@given(st.integers(2, 4), st.lists(VALUES, min_size=4, max_size=20))
def test_ordinal_mdav_equals_its_naive_twin(k, values):
    table = encoded({"x": values}, rules={"x": {"order": ORDER}})
    found = naive.members(Mdav().assign(table, Requirement(k), seed=0))
    assert sorted(ordinal_mdav(values, k)) == sorted(map(sorted, found))


@given(st.lists(VALUES, min_size=1, max_size=8), st.sampled_from([1.0, 4.0]))
def test_points_are_as_far_apart_as_mdav_has_the_values(values, weight):
    table = encoded({"x": values}, rules={"x": {"order": ORDER, "weight": weight}})
    points = mdav_points(table)
    for i, a in enumerate(values):
        for j, b in enumerate(values):
            if None not in {a, b}:
                steps = abs(ORDER.index(a) - ORDER.index(b)) / len(ORDER)
                assert np.sum((points[i] - points[j]) ** 2) == pytest.approx(weight * steps**2)


def test_values_that_the_order_lacks_are_counted_and_not_shown():
    for part in ("quasi", "sensitive"):
        data = {"x": ["low", "secret", None, "secret"]}
        given = ({"y": [1] * 4}, data) if part == "sensitive" else (data, {})
        with pytest.raises(PolicyError, match="lacks 1 of its values, on 2 rows") as caught:
            encoded(*given, rules={"x": {"order": ORDER}})
        assert "secret" not in f"{caught.value}{caught.value.hint}"


@pytest.mark.parametrize(
    ("kind", "order", "fine"),
    [
        (None, None, False),
        (ColumnKind.CATEGORY, None, False),
        (ColumnKind.OTHER, None, False),
        (None, ("a", "b"), True),
        (ColumnKind.BOOLEAN, None, True),
        (ColumnKind.DATE, None, True),
        (ColumnKind.INTEGER, None, True),
    ],
)
@pytest.mark.parametrize("name", ["t-closeness", "n-t-closeness"])
def test_closeness_by_order_needs_one(name, kind, order, fine):
    values = ["1", "2"] if order is None else ["a", "b"]
    kinds = {"s": kind} if kind else {}
    table = encoded({"x": [0, 0]}, {"s": values}, kinds=kinds, rules={"s": {"order": order}})
    spec = ModelSpec(name, {"t": 0.5, "distance": "ordered"} | ({"n": 2} if name[0] == "n" else {}))
    policy = policy_of(["x"], ["s"])
    object.__setattr__(policy, "models", (spec,))
    if fine:
        assert 1 == len(all_demands(table, policy))
    else:
        with pytest.raises(PolicyError, match="needs an order of sensitive column s"):
            all_demands(table, policy)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_groups_values_in_an_order(algorithm):
    random = np.random.default_rng(1)
    grades = [ORDER[i] if i < 4 else None for i in random.integers(0, 5, 40)]  # none is fatal
    ages = random.integers(20, 60, 40).tolist()
    table = encoded(
        {"grade": grades, "age": ages},
        rules={"grade": {"order": ORDER, "weight": 2.0}},
    )
    k = getattr(ALGORITHMS[algorithm], "MAX_K", 3)
    policy = replace(policy_of(["grade", "age"], k=k), algorithm=algorithm)
    outcome = solve(Problem(table, policy), seed=0, stages=Stages())
    shown, _ = outcome.values.columns  # noqa: PD011 - no data frame
    assert "interval-text" == shown.recoding
    for rows, place in zip(naive.members(outcome.assignment), shown.index.tolist(), strict=True):
        values = {grades[row] for row in rows}
        ranks = sorted(ORDER.index(value) for value in values - {None})
        if None in values:
            expected = "*" if ranks else None
        elif len(ranks) == 1:
            expected = ORDER[ranks[0]]
        else:
            expected = f"[{ORDER[ranks[0]]}, {ORDER[ranks[-1]]}]"
        assert expected == shown.labels[place]
    assert outcome.assignment.n_suppressed == 0


def frame(kind):
    age = [1] * 51 + [2] * 51
    level = ["low"] * 50 + ["medium"] + ["high"] * 50 + ["medium"]
    if kind == "pandas":
        order = ["low", "medium", "high"]
        return pd.DataFrame({"age": age, "level": pd.Categorical(level, order, ordered=True)})
    codes = [["low", "medium", "high"].index(value) for value in level]
    order = pa.array(["low", "medium", "high"])
    listed = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), order, ordered=True)
    return pa.table({"age": age, "level": listed})


@pytest.mark.parametrize("kind", ["pandas", "arrow"])
def test_the_order_of_categories_of_a_frame_is_taken(kind):
    close = ModelSpec("t-closeness", {"t": 0.3, "distance": "ordered"})
    asked = {"k": 5, "models": [close], "quasi": ["age"], "sensitive": ["level"]}
    found = anonymize(frame(kind), **asked)
    rows = found.to_dict("records") if kind == "pandas" else found.to_pylist()
    classes = {row["age"]: [r["level"] for r in rows if r["age"] == row["age"]] for row in rows}
    whole = [row["level"] for row in rows]
    domain = ["low", "medium", "high"]
    assert all(models.transport_by_rank(c, whole, domain) <= 0.3 for c in classes.values())
    found = anonymize(frame(kind), k=50, quasi=["level"])
    rows = found.to_dict("records") if kind == "pandas" else found.to_pylist()
    assert Counter(row["level"] for row in rows) in (
        {"[low, medium]": 52, "high": 50},
        {"low": 50, "[medium, high]": 52},
    )


def test_the_parts_of_a_frame_have_one_order():
    codes = pa.array([0, 1], pa.int8())
    chunks = [
        pa.DictionaryArray.from_arrays(codes, pa.array(order), ordered=True)
        for order in (["a", "b"], ["b", "a"])
    ]
    data = pa.table({"x": pa.chunked_array(chunks)})
    with pytest.raises(PolicyError, match="column x has 2 orders"):
        anonymize(data, k=2, quasi=["x"])
