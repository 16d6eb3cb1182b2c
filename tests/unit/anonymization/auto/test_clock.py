"""What a search makes of its time: how many rounds, and what is left when time is over."""

import numpy as np
import pytest
from builders import encoded
from naive import engine
from spaces import random_table

from dbanon.anonymization.algorithms.partitioning.mondrian import Mondrian
from dbanon.anonymization.auto import algorithm
from dbanon.anonymization.auto import start as starting
from dbanon.anonymization.auto.algorithm import Auto
from dbanon.anonymization.auto.plans import EFFORTS, Phase
from dbanon.anonymization.auto.rounds import (
    ANNEALED,
    LARGE,
    LIGHT,
    MOVES,
    PERSONS,
    TURNS,
    coordinates,
    improve,
)
from dbanon.anonymization.auto.space import freeze, make_space, total_cost
from dbanon.anonymization.auto.start import (
    BLOCKS,
    PEELING,
    Clock,
    affordable_lookups,
    lattice,
    start,
    start_in_blocks,
)
from dbanon.anonymization.interfaces import Requirement
from dbanon.anonymization.persons import profiles
from dbanon.domain.outcomes import Stages


def dense_table(n, *, columns=7, l=False):
    """Return rows of which hardly two are equal, of as many values in each column."""
    random = np.random.default_rng(0)
    usual = random.integers(0, 60, n)
    quasi = {f"q{i}": (usual + random.integers(0, 60, n)).tolist() for i in range(columns)}
    ill = [f"d{i}" for i in random.integers(0, 9, n)]
    return encoded(quasi, sensitive={"disease": ill} if l else {})


def dense_space(n, *, k=5, l=1):
    return freeze(make_space(dense_table(n, l=l > 1), Requirement(k, l), loss="ncp")).space


def at(monkeypatch, *moments):
    """Have the time go from one moment to the next at each look, and stay at the last."""
    left = list(moments)
    monkeypatch.setattr(starting, "monotonic", lambda: left.pop(0) if len(left) > 1 else left[0])


def large(n):
    """Return the space of n rows, all equal, that rounds are planned for."""
    rows = random_table(500, seed=0)
    return make_space(rows, Requirement(5), loss="ncp").take(np.zeros(n, np.int64))


def test_a_clock_without_a_limit_never_runs_out():
    endless = Clock()
    assert (0.0, np.inf, False) == (endless.share, endless.left, endless.over())
    assert not endless.overdue()


@pytest.mark.parametrize(
    ("used", "expected"),
    [(5, (0.5, 5.0, False, False)), (10, (1.0, 0.0, True, False)), (12, (1.0, 0.0, True, True))],
)
def test_a_clock_knows_what_is_left(used, expected, monkeypatch):
    at(monkeypatch, 100, 100 + used)
    limited = Clock(10.0)
    assert expected == (limited.share, limited.left, limited.over(), limited.overdue())


def test_what_is_compiled_does_not_count(monkeypatch):
    waited = [3.0, 9.0]
    at(monkeypatch, 100, 110)
    assert 4.0 == pytest.approx(10.0 - Clock(10.0, lambda: waited.pop(0)).left)


@pytest.mark.exhaustive
def test_dense_columns_are_not_peeled():
    space = dense_space(6_000)
    assert lattice(space) is not None
    assert BLOCKS == start(space, seed=0).name


def test_few_values_are_peeled():
    table = random_table(4_000, seed=3, names=("letter", "wide", "set"))
    space = freeze(make_space(table, Requirement(20), loss="ncp")).space
    assert PEELING == start(space, seed=0).name


def test_peeling_takes_a_third_of_the_time_at_most(monkeypatch):
    at(monkeypatch, 0.0)
    assert affordable_lookups(1_000, Clock()) == 200_020_000
    assert affordable_lookups(1_000, Clock(3.0)) == 4_000_000
    assert 0 == affordable_lookups(1_000, Clock(0.0))


def test_the_rows_that_rounds_look_at_grow_with_the_root_of_the_table():
    plan = EFFORTS["balanced"]
    rounds = {
        n: plan.phase(large(n), begun=BLOCKS).rounds for n in (10**5, 250_000, 10**6, 4 * 10**6)
    }
    assert [plan.after_blocks, 11, 5, plan.fewest] == [*rounds.values()]


def test_rounds_of_many_rows_mostly_move_rows_where_k_is_small():
    plan, many, usual = EFFORTS["balanced"], large(10**6), large(10**5)

    def efforts(space, begun):
        phase = plan.phase(space, begun=begun)
        return [phase.effort(i) for i in range(6)]

    assert [MOVES, MOVES, MOVES, LIGHT, MOVES, MOVES] == efforts(many, BLOCKS)
    assert [LIGHT] * 6 == efforts(many, PEELING) == efforts(usual, BLOCKS)
    assert [LIGHT] * 6 == efforts(many._replace(k=10), BLOCKS)
    assert [TURNS] * 6 == efforts(large(30_000), PEELING)
    assert 0.0 == EFFORTS["best"].long_phase(many).each.heat


def test_many_persons_of_several_rows_are_searched_hot_with_the_clusters_that_rows_fit():
    days = np.random.default_rng(0).integers(0, 99, 1_000).tolist()
    table = profiles(encoded({"day": days}), np.repeat(np.arange(500, dtype=np.int32), 2))
    persons = make_space(table, Requirement(5), loss="ncp")

    def phase(n, effort="balanced", k=5):
        space = persons._replace(k=k).take(np.zeros(n, np.int64))
        return EFFORTS[effort].phase(space, begun=BLOCKS)

    assert [PERSONS] * 2 == [phase(n).each for n in (11_000, 200_000)]
    assert [50, 48, 10] == [phase(n).rounds for n in (11_000, 50_000, 200_000)]
    assert [ANNEALED, LIGHT] == [phase(n).each for n in (10_000, 300_000)]
    assert [TURNS, LARGE] == [phase(50_000, "fast").each, phase(50_000, k=20).each]


def test_the_largest_clusters_have_fewer_hot_rounds():
    rows, plan = random_table(500, seed=0, names=("letter", "wide")), EFFORTS["balanced"]
    space = make_space(rows, Requirement(20), loss="ncp").take(np.zeros(60_000, np.int64))
    assert [19, 19, 18] == [plan.hot_rounds(space._replace(k=k)) for k in (20, 100, 1_000)]


def test_hot_rounds_cool_down_with_their_number_or_the_time():
    phase = Phase(10, LARGE)
    heats = [phase.effort(i).heat for i in range(12)]
    assert [LARGE.heat, 0.0, 0.0] == [heats[0], *heats[10:]]
    assert sorted(heats, reverse=True) == heats
    assert heats[5] == phase.effort(0, share=0.5).heat


def looks(n):
    """Return what says that time is over from the n-th look on."""
    seen = iter(range(10**6))
    return lambda: next(seen) >= n


@pytest.mark.parametrize("l", [1, 3])
def test_a_round_that_runs_out_of_time_keeps_what_its_blocks_have_gained(l):
    space = dense_space(9_000, l=l)
    label, points = start_in_blocks(space, seed=0), coordinates(space)

    def after(n):
        found = improve(space, label, points, effort=LIGHT, seed=0, number=0, over=looks(n))
        assert all(engine.holds(space, rows) for rows in engine.members(found.tolist()))
        return total_cost(space, found)

    nothing, some, all_blocks = after(0), after(3), after(10**5)
    assert total_cost(space, label) == pytest.approx(nothing)
    assert nothing > some > all_blocks


@pytest.mark.parametrize("l", [1, 3])
def test_a_start_that_runs_out_of_time_makes_the_rest_quickly(l):
    space = dense_space(16_000, l=l)

    def loss(n):
        label = start_in_blocks(space, seed=0, over=looks(n))
        assert [*range(label.max() + 1)] == np.unique(label).tolist()
        assert all(engine.holds(space, rows) for rows in engine.members(label.tolist()))
        return total_cost(space, label)

    assert loss(0) > loss(2) > loss(10**5)


def test_a_search_whose_time_is_over_at_once_still_keeps_its_promises():
    stages = Stages()
    group = Auto(time_limit=1e-9, stages=stages).assign(
        dense_table(9_000, l=True), Requirement(5, 3), seed=0
    )
    assert np.bincount(group.group).min() >= 5
    assert ["start: blocks, quick where time was out"] == stages.remarks


@pytest.mark.exhaustive
def test_the_start_alone_loses_less_of_dense_columns_than_mondrian(monkeypatch):
    # the start takes less time than Mondrian: with time for that, a limit never ends worse
    table = dense_table(20_000)
    monkeypatch.setattr(algorithm, "improve", lambda _, label, *__, **___: label)
    space = make_space(table, Requirement(5), loss="ncp")
    found = Auto(effort="fast").assign(table, Requirement(5), seed=0)
    mondrian = Mondrian().assign(table, Requirement(5), seed=0)
    assert total_cost(space, found.group) < total_cost(space, mondrian.group)
