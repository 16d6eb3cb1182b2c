"""The start that carves boxes out."""

import numpy as np
import pytest
from builders import encoded
from naive import engine
from spaces import random_table, table_of

from dbanon.anonymization import threads
from dbanon.anonymization.algorithms.clustering.growth import KMember
from dbanon.anonymization.algorithms.partitioning.mondrian import Mondrian
from dbanon.anonymization.auto.algorithm import Auto
from dbanon.anonymization.auto.plans import EFFORTS
from dbanon.anonymization.auto.space import can_be_carved, freeze, make_space, total_cost
from dbanon.anonymization.auto.start import (
    CARVING,
    segment_for,
    start,
    start_by_carving,
    start_in_blocks,
    start_in_cuts,
)
from dbanon.anonymization.interfaces import Requirement


def distinct_table(n, *, l=1):
    """Return rows of which hardly two are equal, some columns skewed, some alike."""
    random = np.random.default_rng(0)
    usual = random.integers(0, 60, n)
    skewed = random.lognormal(3, 1, (3, n)).astype(int)
    quasi = {f"q{i}": (usual + random.integers(0, 30, n)).tolist() for i in range(3)}
    quasi |= {f"s{i}": skewed[i].tolist() for i in range(3)}
    ill = {"disease": [f"d{i}" for i in random.integers(0, 9, n)]}
    return encoded(quasi, sensitive=ill if l > 1 else {})


def distinct_space(n, *, k, l=1):
    return freeze(make_space(distinct_table(n, l=l), Requirement(k, l), loss="ncp")).space


def carved(space, **options):
    return start_by_carving(space, **{"seeds": 2, "segment": 1_000, "seed": 0} | options)


@pytest.mark.parametrize(("k", "l"), [(10, 1), (10, 4), (40, 1)])
def test_carving_keeps_the_rules(k, l):
    space = distinct_space(3_000, k=k, l=l)
    label = carved(space)
    assert [*range(label.max() + 1)] == np.unique(label).tolist()
    assert all(engine.holds(space, rows) for rows in engine.members(label.tolist()))
    assert label.max() > 3_000 // (2 * k)


@pytest.mark.exhaustive
def test_carving_costs_least_of_distinct_rows_where_k_is_large():
    space = distinct_space(4_000, k=50)
    cost = total_cost(space, carved(space, segment=4_000))
    assert cost < total_cost(space, start_in_blocks(space, seed=0))
    assert cost < total_cost(space, start_in_cuts(space))
    assert CARVING == start(space, seed=0).name


@pytest.mark.exhaustive
def test_fast_loses_less_of_distinct_rows_than_mondrian_and_k_member():
    table, required = distinct_table(4_000), Requirement(50)
    space = make_space(table, required, loss="ncp")
    found = total_cost(space, Auto(effort="fast").assign(table, required, seed=0).group)
    for other in (Mondrian(), KMember(cost="ncp")):
        assert found < total_cost(space, other.assign(table, required, seed=0).group)


def test_the_threads_do_not_matter(monkeypatch):
    space = distinct_space(4_000, k=20)
    labels = []
    for workers in (1, 2):
        monkeypatch.setattr(threads, "processors", lambda workers=workers: workers)
        labels.append(carved(space).tolist())
    assert labels[0] == labels[1]


@pytest.mark.exhaustive
def test_starts_are_compared_on_many_clusters():
    random = np.random.default_rng(2)
    size = random.lognormal(0, 1, 8_000)
    alike = (100 * size * random.lognormal(0, 0.6, (5, 8_000))).astype(int).clip(0, 4_000)
    table = encoded({f"q{i}": values.tolist() for i, values in enumerate(alike)})
    space = freeze(make_space(table, Requirement(100), loss="ncp")).space
    begun = start(space, seed=0)
    assert begun.name == CARVING
    assert total_cost(space, begun.label) < 0.95 * total_cost(space, start_in_cuts(space))


def test_carving_that_runs_out_of_time_is_quick():
    space = distinct_space(3_000, k=10)
    label = carved(space, over=lambda: True)
    assert all(engine.holds(space, rows) for rows in engine.members(label.tolist()))
    assert total_cost(space, label) > total_cost(space, carved(space))


@pytest.mark.exhaustive
def test_more_rows_are_carved_in_smaller_segments_until_it_does_not_pay():
    space = distinct_space(500, k=10)

    def segment(n, **options):
        rows = space.take(np.zeros(n, np.int64))
        return segment_for(rows, **{"seeds": 3, "work": EFFORTS["balanced"].carving.work} | options)

    assert 6_000 == segment(10_000)
    assert 6_000 > segment(200_000) > segment(500_000) > 1_000
    assert 0 == segment(10**7)
    assert 6_000 > segment(10_000, seconds=1.0) > 0
    assert 0 == segment(10_000, seconds=0.0)


def test_sets_and_small_clusters_are_not_carved():
    sets = table_of({"set": ["a", "b", "c", "d"] * 20, "integer": [*range(40)] * 2})
    assert not can_be_carved(make_space(sets, Requirement(20), loss="ncp"))
    table = random_table(200, seed=0, names=("integer", "letter"))
    assert can_be_carved(make_space(table, Requirement(20), loss="ncp"))
    assert not can_be_carved(make_space(table, Requirement(3), loss="ncp"))
