from collections import Counter
from datetime import date
from itertools import pairwise

import naive
import numpy as np
import pytest
from builders import (
    LETTERS,
    encoded,
    leaf_tree,
    policy_of,
    read_numbers,
    tables_and_requirements,
    tree,
)
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from naive import lattice as twin
from selection import at_depth

from dbanon.anonymization.algorithms.lattice import full_domain
from dbanon.anonymization.algorithms.lattice.full_domain import (
    Datafly,
    FullDomain,
    Incognito,
    OptimalLattice,
    Samarati,
)
from dbanon.anonymization.algorithms.lattice.nodes import (
    Condition,
    column_levels,
    condition,
    lattice,
)
from dbanon.anonymization.interfaces import Requirement
from dbanon.anonymization.problem import Problem, solve
from dbanon.domain.errors import PolicyError, Unsatisfiable
from dbanon.domain.outcomes import Stages

SEARCHES = {
    "full-domain": FullDomain,
    "incognito": Incognito,
    "samarati": Samarati,
    "optimal-lattice": OptimalLattice,
}
METHODS = SEARCHES | {"datafly": Datafly}
EXHAUSTIVE = ["full-domain", "incognito", "samarati"]
ANY_T = st.sampled_from([1.0, 0.5, 0.3, 0.1, 0.0])
ANY_SHARE = st.sampled_from([0.0, 0.1, 0.25, 0.6])


def sets(rows_of_groups):
    return {frozenset(rows) for rows in rows_of_groups}


# Levels


def joined(column):
    """Return for each level the values that share a class, NULL as None."""
    values, levels = column_levels(column)
    present = [
        None if code == column.size else column.values[code] for code in np.unique(column.codes)
    ]
    assert values.tolist() == np.unique(column.codes, return_inverse=True)[1].tolist()
    return [
        [
            [v for v, c in zip(present, level, strict=True) if c == wanted]
            for wanted in range(max(level) + 1)
        ]
        for level in levels
    ]


def test_a_taxonomy_has_the_ancestors_of_each_height():
    column = encoded(
        {"x": list("abcdefg")}, rules={"x": {"taxonomy": "letters"}}, taxonomies=[LETTERS]
    ).quasi[0]
    assert [
        [["a"], ["b"], ["c"], ["d"], ["g"], ["e"], ["f"]],
        [["a"], ["b", "c"], ["d", "g"], ["e", "f"]],
        [["a"], ["b", "c"], ["d", "g", "e", "f"]],
        [["a", "b", "c", "d", "g", "e", "f"]],
    ] == joined(column)


def test_numbers_have_intervals_of_doubling_width_and_null_joins_last():
    assert [
        [[0], [1], [3], [4], [7], [8], [None]],
        [[0, 1], [3], [4], [7, 8], [None]],
        [[0, 1, 3], [4, 7, 8], [None]],
        [[0, 1, 3, 4, 7, 8], [None]],
        [[0, 1, 3, 4, 7, 8, None]],
    ] == joined(encoded({"x": [8, 0, 1, None, 3, 4, 7]}).quasi[0])


def test_dates_have_levels_and_a_constant_column_has_one():
    days = [date(2000, 1, 1), date(2000, 1, 2), date(2000, 1, 9)]
    assert [3, 2, 1] == [len(level) for level in joined(encoded({"x": days}).quasi[0])]
    assert [[[7]]] == joined(encoded({"x": [7, 7]}).quasi[0])
    assert [[[None]]] == joined(encoded({"x": [None, None]}).quasi[0])


def test_no_more_than_64_intervals_are_tried():
    sizes = [len(level) for level in joined(encoded({"x": list(range(1000))}).quasi[0])]
    assert [1000, 64, 32, 16, 8, 4, 2, 1] == sizes


@given(tables_and_requirements())
def test_levels_are_nested_and_equal_their_naive_twin(drawn):
    for column in drawn[0].quasi:
        _, levels = column_levels(column)
        expected = twin.levels(column)
        present = np.unique(column.codes).tolist()
        assert len(expected) == len(levels)
        for level, labels in zip(levels, expected, strict=True):
            pairs = {(labels[code], c) for code, c in zip(present, level.tolist(), strict=True)}
            assert len(pairs) == len(set(labels.values())) == level.max() + 1
        for finer, coarser in pairwise(levels):
            assert len(set(zip(finer.tolist(), coarser.tolist(), strict=True))) == finer.max() + 1


# Nodes


@given(tables_and_requirements(), st.data())
def test_rolling_up_counts_what_the_rows_say(drawn, data):
    table = drawn[0]
    found = lattice(table)
    columns = tuple(
        sorted(data.draw(st.sets(st.sampled_from(found.columns), min_size=1), label="columns"))
    )
    top = [found.top[j] for j in columns]
    low = tuple(data.draw(st.integers(0, level)) for level in top)
    high = tuple(data.draw(st.integers(a, b)) for a, b in zip(low, top, strict=True))
    keys = zip(
        *(
            found.levels[j][level][found.values[j]][found.distinct].tolist()
            for j, level in zip(columns, high, strict=True)
        ),
        strict=True,
    )
    between = found.roll_up(found.base, low, columns=columns)
    counts = found.roll_up(between, high, columns=columns)
    assert sorted(Counter(keys).values()) == sorted(counts.size.tolist())


def test_many_columns_of_many_values_do_not_overflow():
    random = np.random.default_rng(1)
    columns = {f"c{i}": random.integers(0, 900, 200).tolist() for i in range(9)}
    columns = {name: values[:100] * 2 for name, values in columns.items()}
    found = lattice(encoded(columns))
    counts = found.roll_up(found.base, (0,) * 9, columns=found.columns)
    assert [2] * 100 == counts.size.tolist()


# Searches


@settings(max_examples=at_depth(60))
@given(tables_and_requirements(weights=(1.0, 0.5)), ANY_T, ANY_SHARE)
def test_all_searches_agree_with_looking_at_every_node(drawn, t, share):
    table, k, l = drawn
    assume(np.prod([len(column_levels(column)[1]) for column in table.quasi]) <= 400)
    t = t if table.sensitive_names else 1.0
    requirement = Requirement(k, l, share)
    wanted = condition(table, requirement, t=t)
    found = lattice(table)
    passing = twin.passing(table, wanted)
    minimal = twin.minimal(passing)
    lowest = [node for node in sorted(passing) if sum(node) == min(map(sum, passing))]
    assert minimal == sorted(full_domain.minimal_nodes(found, condition=wanted))
    assert minimal == sorted(full_domain.minimal_nodes_by_subsets(found, condition=wanted))
    assert lowest == full_domain.lowest_nodes(found, condition=wanted)
    loss = {node: twin.loss(table, kept) for node, kept in passing.items()}
    chosen = {
        name: naive.members(search(t).assign(table, requirement, seed=0))
        for name, search in SEARCHES.items()
    }
    of_nodes = {node: sets(kept) for node, kept in passing.items()}
    cost = {name: twin.loss(table, groups) for name, groups in chosen.items()}
    assert sets(chosen["full-domain"]) in [of_nodes[node] for node in minimal]
    assert sets(chosen["samarati"]) in [of_nodes[node] for node in lowest]
    assert sets(chosen["optimal-lattice"]) in of_nodes.values()
    assert chosen["full-domain"] == chosen["incognito"]
    assert min(loss[node] for node in minimal) == pytest.approx(cost["full-domain"], abs=1e-8)
    assert min(loss[node] for node in lowest) == pytest.approx(cost["samarati"], abs=1e-8)
    assert min(loss.values()) == pytest.approx(cost["optimal-lattice"], abs=1e-8)


@given(tables_and_requirements(), ANY_T, ANY_SHARE)
def test_datafly_climbs_to_the_node_of_its_naive_twin(drawn, t, share):
    table, k, l = drawn
    t = t if table.sensitive_names else 1.0
    requirement = Requirement(k, l, share)
    wanted = condition(table, requirement, t=t)
    node, kept = twin.datafly(table, wanted)
    assert node == full_domain.reached_node(lattice(table), wanted)
    assert sets(kept) == sets(naive.members(Datafly(t).assign(table, requirement, seed=0)))


@pytest.mark.parametrize("name", METHODS)
@given(tables_and_requirements(min_sensitive=1, max_sensitive=1), ANY_T, ANY_SHARE)
def test_what_is_published_is_close_to_its_own_whole(name, drawn, t, share):
    table, k, l = drawn
    policy = policy_of(
        [column.name for column in table.quasi],
        table.sensitive_names,
        k=k,
        l=l,
        algorithm=name,
        params={"t": t},
        max_suppressed=share,
    )
    outcome = solve(Problem(table, policy), seed=0, stages=Stages())
    groups = naive.members(outcome.assignment)
    values = table.sensitive[:, 0]
    whole = values[outcome.assignment.group >= 0].tolist()
    assert outcome.assignment.n_suppressed <= share * table.n_rows
    assert all(twin.distance(values[rows].tolist(), whole) <= t + 1e-9 for rows in groups)


def test_the_searches_agree_on_measured_data():
    table = encoded(read_numbers("tarragona", ["fixed_assets", "treasury", "sales"]))
    requirement = Requirement(5, 1, 0.05)
    wanted, found = condition(table, requirement, t=1.0), lattice(table)
    minimal = full_domain.minimal_nodes(found, condition=wanted)
    assert sorted(minimal) == sorted(full_domain.minimal_nodes_by_subsets(found, condition=wanted))
    assert set(full_domain.lowest_nodes(found, condition=wanted)) <= set(minimal)


# The hospital tables of Machanavajjhala et al.

ROWS = """
13053 28 Russian heart | 13068 29 American heart | 13068 21 Japanese viral
13053 23 American viral | 14853 50 Indian cancer | 14853 55 Russian heart
14850 47 American viral | 14850 49 American viral | 13053 31 American cancer
13053 37 Indian cancer | 13068 36 Japanese cancer | 13068 35 American cancer
"""
ZIPS, AGES, LANDS, ILLS = zip(
    *(row.split() for row in ROWS.strip().replace("\n", "|").split("|")), strict=True
)
ZIP_TREE = tree(
    "zip",
    leaf_tree(
        **{
            "130**": {"1305*": ["13053"], "1306*": ["13068"]},
            "148**": {"1485*": ["14850", "14853"]},
        }
    ),
)
AGE_TREE = tree(
    "age",
    leaf_tree(
        **{
            "<=40": {"<30": map(str, range(20, 30)), "3*": map(str, range(30, 41))},
            ">40": {">=40": map(str, range(41, 60))},
        }
    ),
)
TABLE_A = (2, 1, 1), [{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}]
TABLE_B = (1, 2, 1), [{1, 4, 9, 10}, {5, 6, 7, 8}, {2, 3, 11, 12}]


def hospital():
    return encoded(
        {"zip": ZIPS, "age": list(map(int, AGES)), "nationality": LANDS},
        {"condition": ILLS},
        rules={"zip": {"taxonomy": "zip"}, "age": {"taxonomy": "age"}},
        taxonomies=[ZIP_TREE, AGE_TREE],
    )


@pytest.mark.parametrize(("node", "groups"), [TABLE_A, TABLE_B])
def test_the_hospital_tables_are_nodes(node, groups):
    found = lattice(hospital())
    classes = found.classes(node, columns=found.columns, condition=Condition(4, 1, 1.0, 0))
    rows = naive.members(found.assignment(classes, final=False))
    assert sets(groups) == sets([row + 1 for row in group] for group in rows)


@pytest.mark.parametrize(
    ("k", "l", "t", "a", "b"),
    [
        (4, 1, 1.0, True, True),
        (5, 1, 1.0, False, False),
        (4, 2, 1.0, False, True),
        (4, 3, 1.0, False, True),
        (4, 4, 1.0, False, False),
        (4, 1, 7 / 12, True, True),
        (4, 1, 0.583, False, True),
        (4, 1, 1 / 6, False, True),
        (4, 1, 0.166, False, False),
    ],
)
def test_the_hospital_tables_hold_what_they_promise(k, l, t, a, b):
    found = lattice(hospital())
    wanted = Condition(k, l, t, 0)
    for node, expected in ((TABLE_A[0], a), (TABLE_B[0], b)):
        counts = found.roll_up(found.base, node, columns=found.columns)
        assert expected is found.holds(counts, node, columns=found.columns, condition=wanted)


def test_the_diverse_hospital_table_is_found():
    assert TABLE_B[0] in full_domain.minimal_nodes(
        lattice(hospital()), condition=Condition(4, 3, 1 / 6, 0)
    )
    for search in SEARCHES.values():
        groups = naive.members(search(1 / 6).assign(hospital(), Requirement(4, 3), seed=0))
        assert sets(TABLE_B[1]) == sets([row + 1 for row in group] for group in groups)


# The patients of Sweeney (2002), figure 8

PATIENTS = """
black 9/20/1965 male 02141 | black 2/14/1965 male 02141 | black 10/23/1965 female 02138
black 8/24/1965 female 02138 | black 11/7/1964 female 02138 | black 12/1/1964 female 02138
white 10/23/1964 male 02138 | white 3/15/1965 female 02139 | white 8/13/1964 male 02139
white 5/5/1964 male 02139 | white 2/13/1967 male 02138 | white 3/21/1967 male 02138
"""


def test_datafly_takes_the_years_of_the_patients_and_leaves_two_out():
    rows = [row.split() for row in PATIENTS.strip().replace("\n", "|").split("|")]
    races, births, sexes, zips = zip(*rows, strict=True)
    years = {
        year: [day for day in births if day.endswith(year)] for year in ("1964", "1965", "1967")
    }
    table = encoded(
        {"race": races, "birth": births, "sex": sexes, "zip": zips},
        rules={"birth": {"taxonomy": "years"}},
        taxonomies=[tree("years", leaf_tree(**years))],
    )
    wanted = condition(table, Requirement(2, 1, 0.17), t=1.0)
    assert (0, 1, 0, 0) == full_domain.reached_node(lattice(table), wanted)
    kept = naive.members(Datafly().assign(table, Requirement(2, 1, 0.17), seed=0))
    assert [[0, 1], [2, 3], [4, 5], [8, 9], [10, 11]] == sorted(kept)


# Suppression, limits and parameters


def test_a_whole_class_may_go_when_that_keeps_the_rest_exact():
    table = encoded({"x": [1, 1, 1, 2, 2, 2, 9]})
    for search in METHODS.values():
        kept = search().assign(table, Requirement(3, 1, 0.15), seed=0)
        assert [[0, 1, 2], [3, 4, 5]] == naive.members(kept)
        assert -1 == kept.group[6]


def test_the_whole_that_distributions_are_compared_with_is_what_is_left():
    columns = {"x": [1, 1, 1, 1, 2, 2, 2, 2, 9]}
    ills = {"disease": ["flu", "flu", "cold", "cold"] * 2 + ["gout"]}
    for search in METHODS.values():
        kept = search(0.0).assign(encoded(columns, ills), Requirement(4, 2, 0.12), seed=0)
        assert [[0, 1, 2, 3], [4, 5, 6, 7]] == naive.members(kept)


def test_a_null_is_apart_from_values_until_nothing_else_helps():
    table = encoded({"x": [1, 2, None, None]})
    for search in METHODS.values():
        assert [[0, 1], [2, 3]] == naive.members(search().assign(table, Requirement(2), seed=0))


@pytest.mark.parametrize("name", EXHAUSTIVE)
def test_a_large_lattice_is_refused_with_another_choice(name):
    table = encoded({f"c{i}": list(range(70)) for i in range(6)})
    with pytest.raises(Unsatisfiable, match="the lattice has 262,144") as caught:
        SEARCHES[name]().assign(table, Requirement(3), seed=0)
    assert name in str(caught.value)
    assert "--algorithm optimal-lattice, or --algorithm auto" == caught.value.hint


def test_the_best_node_of_a_large_lattice_is_found():
    table = encoded({f"c{i}": list(range(70)) for i in range(6)})
    groups = naive.members(OptimalLattice().assign(table, Requirement(3), seed=0))
    assert 3 <= min(map(len, groups))
    assert len(groups) > 1


def test_a_search_without_end_is_given_up(monkeypatch):
    monkeypatch.setattr(OptimalLattice, "MAX_STEPS", 1)
    with pytest.raises(Unsatisfiable, match="in 1 steps") as caught:
        OptimalLattice().assign(hospital(), Requirement(2), seed=0)
    assert "--algorithm auto" == caught.value.hint


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("t", [-0.1, 1.5, float("nan")])
def test_a_t_that_is_no_distance_is_refused(name, t):
    with pytest.raises(PolicyError, match="is not a distance"):
        METHODS[name](t).assign(hospital(), Requirement(2), seed=0)


@pytest.mark.parametrize("name", METHODS)
def test_a_t_without_a_sensitive_column_is_refused(name):
    with pytest.raises(PolicyError, match="names no sensitive column"):
        METHODS[name](0.5).assign(encoded({"x": [1, 2]}), Requirement(2), seed=0)
