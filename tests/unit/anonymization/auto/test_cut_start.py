"""The start that cuts as Mondrian does."""

import numpy as np
import pytest
from builders import encoded, tree
from naive import engine
from spaces import random_table, table_of

from dbanon.anonymization.auto.space import freeze, make_space, total_cost
from dbanon.anonymization.auto.start import (
    CUTS,
    PEELING,
    Carving,
    can_be_cut,
    start,
    start_in_blocks,
    start_in_cuts,
)
from dbanon.anonymization.interfaces import Requirement


def people(n, *, k, l=1):
    """Return a space of dense numbers and of a country that nearly all share, not the first."""
    random = np.random.default_rng(0)
    parts = {f"part {a}": {f"land {a}{b}": {} for b in range(5)} for a in range(6)}
    land = np.where(random.random(n) < 0.9, "land 23", [f"land {i:02}" for i in _places(random, n)])
    columns = {f"q{i}": random.integers(0, 900, n).tolist() for i in range(5)}
    columns |= {name: land.tolist() for name in ("born", "lives", "works")}
    rules = {name: {"taxonomy": "lands"} for name in ("born", "lives", "works")}
    ill = {"disease": [f"d{i}" for i in random.integers(0, 9, n)]}
    trees = [tree("lands", parts)]
    table = encoded(columns, rules=rules, taxonomies=trees, sensitive=ill)
    return freeze(make_space(table, Requirement(k, l), loss="ncp")).space


def _places(random, n):
    return 10 * random.integers(0, 6, n) + random.integers(0, 5, n)


@pytest.mark.parametrize(("k", "l"), [(5, 1), (5, 3), (40, 1)])
def test_cuts_keep_the_rules(k, l):
    space = people(3_000, k=k, l=l)
    label = start_in_cuts(space)
    assert [*range(label.max() + 1)] == np.unique(label).tolist()
    assert all(engine.holds(space, rows) for rows in engine.members(label.tolist()))
    assert label.max() > 3_000 // (4 * k)


@pytest.mark.exhaustive
def test_cuts_lose_less_where_k_is_large():
    space = people(6_000, k=60)
    assert total_cost(space, start_in_cuts(space)) < total_cost(
        space, start_in_blocks(space, seed=0)
    )
    assert CUTS == start(space, seed=0, carving=Carving(1, 0.0)).name
    assert CUTS == start(space, seed=0).name  # carving loses 5 % more, also after the rounds


def test_cuts_that_run_out_of_time_are_quick():
    space = people(3_000, k=5)
    label = start_in_cuts(space, over=lambda: True)
    assert all(engine.holds(space, rows) for rows in engine.members(label.tolist()))
    assert total_cost(space, label) > total_cost(space, start_in_cuts(space))


def test_what_is_peeled_is_not_cut():
    table = random_table(4_000, seed=3, names=("letter", "wide", "integer"))
    space = freeze(make_space(table, Requirement(20), loss="ncp")).space
    assert PEELING == start(space, seed=0).name


def test_sets_and_rules_that_cuts_do_not_know_are_left_to_blocks():
    values = {"set": ["a", "b", "c", "d"] * 20, "integer": [*range(40)] * 2}
    table = table_of(values, {"disease": ["flu", "cold"] * 40})
    assert not can_be_cut(make_space(table, Requirement(2), loss="ncp"))
    table = random_table(200, seed=0, names=("integer", "letter"))
    assert can_be_cut(make_space(table, Requirement(2, 2), loss="ncp"))
    space = make_space(table, Requirement(2, 2), loss="ncp")
    assert not can_be_cut(space._replace(rules=(space.rules[0] + 1, *space.rules[1:])))
