"""What the kernels of the search compute, against their slow twins."""

from itertools import pairwise

import numpy as np
import pytest
from compiled import called
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from naive import engine as naive
from selection import at_depth
from spaces import problems, random_table, spaces, tables

from dbanon.anonymization.auto.rounds import coordinates
from dbanon.anonymization.auto.space import freeze, make_space, total_cost
from dbanon.anonymization.auto.start import lattice, segments, start_by_peeling, start_in_blocks
from dbanon.anonymization.interfaces import Requirement
from dbanon.anonymization.loss.costs import column_costs, pack, set_costs
from dbanon.kernels import random as generator
from dbanon.kernels.auto import cuts, pools
from dbanon.kernels.auto.blocks import halve
from dbanon.kernels.auto.diversity import make_rules, rows_hold
from dbanon.kernels.auto.duplicates import distinct_rows, freeze_rows
from dbanon.kernels.boxes.costs import box_costs
from dbanon.kernels.layout import DISTINCT, ENTROPY, RECURSIVE, SHARE

SEED = 11

make_cutter, cut, cut_all = called(cuts.make_cutter), called(cuts.cut), called(cuts.cut_all)
make_pool, grow_groups = called(pools.make_pool), called(pools.grow_groups)
attach_rest = called(pools.attach_rest)
make_dice, roll = called(generator.make_dice), called(generator.roll)
shuffle, uniform = called(generator.shuffle), called(generator.uniform)


def rules_of(space):
    return make_rules(*space.rules, space.sensitive)


def label_of(groups, n):
    label = np.full(n, -1, np.int32)
    for g, rows in enumerate(groups):
        label[rows] = g
    return label


@given(spaces(), st.data())
def test_the_cost_of_clusters_is_that_of_the_sets_of_their_values(drawn, data):
    space, loss = drawn
    label = data.draw(st.lists(st.integers(0, 4), min_size=space.n_rows, max_size=space.n_rows))
    label = np.unique(label, return_inverse=True)[1].astype(np.int32)
    expected = naive.total(space, naive.members(label.tolist()), loss)
    assert expected == pytest.approx(total_cost(space, label))


@given(tables(rows=st.integers(1, 20), names=("halves", "set", "numbers")), st.data())
def test_the_cost_of_a_set_is_by_the_number_of_its_bits(table, data):
    for column in table.quasi:
        codes = set(column.codes[data.draw(st.lists(st.integers(0, table.n_rows - 1)))].tolist())
        lo, hi = (
            np.array([[bits]], np.int32) for bits in naive.bounds(list(codes), is_set=True)[:2]
        )
        costs = set_costs(column).times(column.rule.weight)
        expected = naive.cost_of_codes(column, frozenset(codes), "ncp")
        assert expected == pytest.approx(box_costs(*pack([costs]), lo, hi)[0, 0])


@pytest.mark.parametrize("size", [127, 128, 129, 130, 1000])
def test_a_table_of_pairs_and_range_maxima_tell_the_same(size):
    column = column_costs(random_table(3, seed=0, names=("wide",)).quasi[0])
    steps = np.random.default_rng(size).random(size - 1)
    sparse = pack([column._replace(size=size, steps=steps)])
    lo, hi = (np.sort(np.random.default_rng(1).integers(0, size + 1, (300, 2))).T).astype(np.int32)
    expected = [
        0.0 if a == b else 1.0 if b == size else steps[a:b].max()
        for a, b in zip(lo, hi, strict=True)
    ]
    assert expected == box_costs(*sparse, lo[:, None], hi[:, None])[:, 0].tolist()


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(-(2**31), 2**31 - 1)), min_size=1),
    st.integers(1, 400),
)
def test_distinct_rows_are_numbered_as_they_appear(rows, times):
    codes = np.array(rows * times, np.int32)[:5000]
    number, first = distinct_rows(codes)
    seen = {}
    expected = [seen.setdefault(row, len(seen)) for row in map(tuple, codes.tolist())]
    assert expected == number.tolist()
    assert [expected.index(u) for u in range(len(seen))] == first.tolist()


def test_many_distinct_rows_are_told_apart():
    codes = np.stack([np.arange(20_000) % 7919, np.arange(20_000)], axis=1).astype(np.int32)
    number, first = distinct_rows(np.concatenate([codes, codes]))
    assert [*range(20_000)] * 2 == number.tolist()
    assert [*range(20_000)] == first.tolist()


@given(problems(names=("numbers", "constant", "null"), most=60))
def test_surplus_rows_of_frequent_tuples_are_frozen_with_equals_that_keep_the_rules(problem):
    table, k, l = problem
    space = make_space(table, Requirement(k, l), loss="ncp")
    k = space.k
    frozen = freeze(space)
    ordered = np.concatenate([frozen.rows, frozen.frozen])
    assert [*range(table.n_rows)] == sorted(ordered.tolist())
    assert space.codes[frozen.rows].tolist() == frozen.space.codes.tolist()
    assert sorted(frozen.space.codes.tolist()) == frozen.space.codes.tolist()
    tuples = {}
    for row, codes in enumerate(map(tuple, space.codes.tolist())):
        tuples.setdefault(codes, []).append(row)
    gone = set(frozen.frozen.tolist())
    for rows in tuples.values():
        out = [row for row in rows if row in gone]
        kept = [row for row in rows if row not in gone]
        if out:
            assert len(out) % k == 0
            assert 2 * k <= len(kept) <= 3 * k - 1
            assert naive.holds(space, out)
            assert naive.holds(space, kept)
        elif len(rows) >= 3 * k:
            assert l > 1
    for name in set(frozen.tuple_of_frozen.tolist()):
        together = frozen.frozen[frozen.tuple_of_frozen == name]
        assert 1 == len(set(map(tuple, space.codes[together].tolist())))


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_fewer_than_3k_equal_rows_are_all_kept(k, extra):
    n = 3 * k + extra
    space = make_space(random_table(n, seed=0, names=("constant",)), Requirement(k), loss="ncp")
    expected = 0 if extra < 0 else (n - 2 * k) // k * k
    assert expected == freeze_rows(np.array([0, n]), rules_of(space), k).sum()


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=30),
    st.integers(1, 4),
    st.sampled_from([0.5, 1.0, 2.0, 3.5]),
)
def test_rules_hold_as_they_are_defined(values, l, c):
    counts = sorted((values.count(v) for v in set(values)), reverse=True)
    cases = [
        (DISTINCT, (l, 0.0), naive.distinct(values) >= l),
        (SHARE, (1 / l, 0.0), naive.share(values, 1 / l)),
        (ENTROPY, (np.log(l), 0.0), naive.entropy(values, np.log(l))),
        (RECURSIVE, (c, l), naive.recursive(values, c, l)),
    ]
    rows = np.arange(len(values))
    for kind, limits, expected in cases:
        rule = np.array([kind]), np.array([0]), np.array([limits], np.float64)
        rules = make_rules(*rule, np.array(values, np.int32)[:, None])
        assert expected == rows_hold(rules, rows), (kind, counts)
        assert 0 == rules.counts.sum()
    if len(counts) < l:
        assert not naive.recursive(values, c, l)


def test_a_rule_about_several_columns_looks_at_each():
    sensitive = np.array([[0, 0], [1, 0], [1, 1]], np.int32)
    limits = np.array([[2, 0], [2, 0]], np.float64)
    rules = make_rules(np.zeros(2, np.int64), np.array([0, 1]), limits, sensitive)
    rows = np.array([0, 1, 2])
    assert [False, True] == [rows_hold(rules, rows[:n]) for n in (2, 3)]


@given(problems(most=25, names=("letter", "set", "numbers", "wide", "float")), st.integers(0, 3))
def test_peeling_equals_its_twin_with_a_dictionary(problem, seed):
    table, k, l = problem
    space = freeze(make_space(table, Requirement(k, l), loss="ncp")).space
    levels = lattice(space)
    assume(levels is not None and np.prod([float(len(chain)) for chain in levels]) < 5000)
    codes = space.codes.tolist()
    tuples = [row for row, before in zip(codes, [None, *codes], strict=False) if row != before]
    rows_of = [[row for row, other in enumerate(codes) if other == mine] for mine in tuples]
    expected = naive.peel(
        space, levels, tuples, rows_of, lambda j, level, code: levels[j][level].classes[code]
    )
    label = start_by_peeling(space, levels, seed=seed)
    kept = naive.kept_classes(space, expected, rows_of)
    for t, name in enumerate(expected):
        if 0 <= name < kept:
            assert {name} == set(label[rows_of[t]].tolist())
    for rows in naive.members(label.tolist()):
        assert len(rows) >= k
        assert naive.holds(space, rows)


@given(spaces(names=("integer", "float", "letter", "set", "numbers", "null"), most=25), st.data())
def test_the_best_cut_is_the_cheapest_of_all(drawn, data):
    space, loss = drawn
    least = data.draw(st.integers(1, 6))
    rows = np.arange(space.n_rows)
    everything = [*naive.cuts(space, rows.tolist(), least, loss)]
    cutter = make_cutter(space.codes, *space.costs, space.n_rows)
    n_low = cut(cutter, rows, rules_of(space), least)
    assert sorted(rows.tolist()) == [*range(space.n_rows)]
    if n_low == 0:
        assert all(
            any(
                not (naive.holds(space, low) and naive.holds(space, sorted(set(rows) - set(low))))
                for j, low, _ in everything
                if j == column
            )
            for column in {j for j, _, _ in everything}
        )
        return
    low, high = rows[:n_low].tolist(), rows[n_low:].tolist()
    assert min(len(low), len(high)) >= least
    assert naive.holds(space, low)
    assert naive.holds(space, high)
    paid = naive.total(space, [low, high], loss)
    if not space.has_rules:
        assert min(price for _, _, price in everything) == pytest.approx(paid)
    by_column = {}
    for j, _, price in everything:
        by_column[j] = min(price, by_column.get(j, np.inf))
    assert any(price == pytest.approx(paid) for price in by_column.values())


@given(spaces(most=40), st.integers(0, 10))
def test_cutting_all_the_way_leaves_parts_that_keep_the_rules(drawn, most):
    space, _ = drawn
    rows = np.arange(space.n_rows)
    ends = np.empty(space.n_rows // space.k + 1, np.int64)
    cutter = make_cutter(space.codes, *space.costs, space.n_rows)
    parts = cut_all(cutter, rows, rules_of(space), space.k, most, ends)
    groups = [part.tolist() for part in np.split(rows, ends[: parts - 1])]
    assert space.n_rows == ends[parts - 1]
    assert [*range(space.n_rows)] == sorted(row for group in groups for row in group)
    assert all(len(group) >= min(space.k, space.n_rows) for group in groups)
    assert all(naive.holds(space, group) for group in groups)


@given(spaces(most=25), st.integers(0, 20))
def test_growing_groups_is_greedy_k_member_clustering(drawn, seed):
    space, loss = drawn
    n = space.n_rows
    pool = make_pool(space.codes, *space.costs, n, n // space.k + 2)
    pool.rows[:] = rows = np.random.default_rng(seed).permutation(n)
    expected = naive.grow(space, rows.tolist(), roll(make_dice(SEED, seed), n), loss)
    found = grow_groups(pool, n, rules_of(space), space.k, make_dice(SEED, seed), pools.FAR, n)
    attach_rest(pool, n, found)
    assert len(expected) == found
    if found:
        label = np.empty(n, np.int32)
        label[rows] = pool.label
        assert label_of(expected, n).tolist() == label.tolist()
        assert np.bincount(label).tolist() == pool.size[:found].tolist()


def test_a_pool_without_enough_values_grows_no_group_and_ends_soon():
    n = 20_000
    table = random_table(n, seed=0, names=("integer", "letter"), n_diseases=1)
    space = make_space(table, Requirement(5, 2), loss="ncp")
    pool = make_pool(space.codes, *space.costs, n, n)
    pool.rows[:] = np.arange(n)
    assert 0 == grow_groups(pool, n, rules_of(space), 5, make_dice(0, 0), pools.FAR, 9)


@given(
    st.lists(st.tuples(*[st.integers(0, 3)] * 2), min_size=1, max_size=60),
    st.integers(1, 30),
)
def test_halving_makes_parts_that_are_not_too_small_in_order(points, most):
    order, ends = halve(np.array(points, np.float32), most)
    assert [*range(len(points))] == sorted(order.tolist())
    sizes = np.diff(ends).tolist()
    assert (0, len(points)) == (ends[0], sum(sizes))
    assert max(sizes) <= most
    assert min(sizes) >= min(len(points), max(most // 8, 1))


def cost_of_parts(points, parts):
    return sum(len(part) * np.ptp(points[part], axis=0).sum() for part in parts)


@given(st.lists(st.tuples(*[st.integers(0, 40)] * 2), min_size=2, max_size=40, unique=True))
def test_halving_cuts_where_the_sides_are_narrowest(drawn):
    points = np.array(drawn, np.float32)
    n = len(points)
    order, ends = halve(points, n - 1)
    least = max((n - 1) // 8, 1)
    possible = [
        cost_of_parts(points, (low.nonzero()[0], (~low).nonzero()[0]))
        for column in points.T
        for low in (column <= value for value in column)
        if least <= low.sum() <= n - least
    ]
    if possible:
        assert min(possible) == cost_of_parts(points, np.split(order, ends[1:-1]))


def test_equal_points_are_halved_as_they_come():
    order, ends = halve(np.ones((9, 2), np.float32), 5)
    assert ([*range(9)], [0, 4, 9]) == (order.tolist(), ends.tolist())


def test_halving_looks_at_a_part_of_many_points():
    points = np.zeros((20_000, 2), np.float32)
    points[::2, 1], points[5::7, 0] = 1.0, 0.5
    order, ends = halve(points, 12_000)
    assert [10_000, 10_000] == np.diff(ends).tolist()
    assert [0.0] == np.unique(points[order[:10_000], 1]).tolist()


@settings(max_examples=at_depth(30))
@given(spaces(most=60), st.integers(1, 30))
def test_segments_keep_the_rules(drawn, most):
    space, _ = drawn
    order, ends = segments(space, coordinates(space), most=most)
    assert [*range(space.n_rows)] == sorted(order.tolist())
    assert (0, space.n_rows) == (ends[0], ends[-1])
    assert all(naive.holds(space, order[a:b].tolist()) for a, b in pairwise(ends))


@given(spaces(most=60), st.integers(0, 5))
def test_the_start_in_blocks_keeps_the_rules(drawn, seed):
    space, _ = drawn
    groups = naive.members(start_in_blocks(space, seed=seed).tolist())
    assert all(len(rows) >= space.k and naive.holds(space, rows) for rows in groups)


def test_dice_are_fair_enough_and_repeat():
    rolls = [roll(dice, 6) for dice in [make_dice(1, 2)] for _ in range(6000)]
    assert all(850 < rolls.count(face) < 1150 for face in range(6))
    assert rolls[:9] == [roll(dice, 6) for dice in [make_dice(1, 2)] for _ in range(9)]
    assert rolls[:9] != [roll(dice, 6) for dice in [make_dice(1, 3)] for _ in range(9)]
    drawn = [uniform(dice) for dice in [make_dice(0, 0)] for _ in range(1000)]
    assert 0 <= min(drawn) < 0.01
    assert 0.99 < max(drawn) < 1
    items = np.arange(50)
    shuffle(make_dice(3, 4), items, 40)
    assert [*range(40)] == sorted(items[:40].tolist()) != items[:40].tolist()
    assert [*range(40, 50)] == items[40:].tolist()
