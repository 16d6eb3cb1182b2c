"""What clusters know of themselves while rows move between them, and what moves save."""

import numpy as np
import pytest
from builders import encoded
from compiled import called
from hypothesis import given
from hypothesis import strategies as st
from naive import engine as naive
from spaces import WIDE as WIDE_TREE
from spaces import random_table, spaces

from dbanon.anonymization.auto.rounds import LIGHT, TURNS, Effort, coordinates, improve
from dbanon.anonymization.auto.space import freeze, ladders, make_space, total_cost
from dbanon.anonymization.auto.start import start
from dbanon.anonymization.interfaces import Requirement
from dbanon.kernels import random as generator
from dbanon.kernels.auto import clusters, diversity, insertion_costs, moves
from dbanon.kernels.auto import improve as improving
from dbanon.kernels.auto.clusters import NONE
from dbanon.kernels.auto.insertion_costs import DIRECT, FLAT
from dbanon.kernels.auto.moves import CANDIDATES
from dbanon.kernels.boxes import shrinking
from dbanon.kernels.layout import ENTROPY, RECURSIVE, SET, SHARE, STRIDE, WIDE

SLOTS = 6

make_clusters = called(clusters.make_clusters)
join, leave, rescan = called(clusters.join), called(clusters.leave), called(clusters.rescan)
link, unlink = called(clusters.link), called(clusters.unlink)
cluster_holds = called(clusters.cluster_holds)
make_rules = called(diversity.make_rules_of_slots)
union_offers = called(insertion_costs.union_offers)
cost_without = called(insertion_costs.cost_without)
set_aside, may_cost = called(insertion_costs.set_aside), called(insertion_costs.may_cost)
best_exchange, find_cheapest = called(moves.best_exchange), called(moves.find_cheapest)
make_search, pass_rows = called(moves.make_search), called(moves.pass_rows)
dissolve_clusters = called(moves.dissolve_clusters)
make_rebuild = called(improving.make_rebuild)
make_carver = called(shrinking.make_carver)
rebuild_clusters = called(improving.rebuild_clusters)
choose_near, choose_fitting = called(improving.choose_near), called(improving.choose_fitting)
make_ring, rotate, assign = (
    called(function) for function in (improving.make_ring, improving.rotate, improving.assign)
)
find_patience = called(moves.patience)
make_dice = called(generator.make_dice)


def listed(state, c):
    """Walk the list of a cluster in both directions."""
    rows, row, before = [], state.head[c], NONE
    while row != NONE:
        assert (c, before) == (state.owner[row], state.previous[row])
        rows.append(int(row))
        row, before = state.following[row], row
    return rows


def check(state, space, loss):
    """Compare all that the clusters know with what their rows say; return the rows of each."""
    groups = [listed(state, c) for c in range(len(state.size))]
    assert [*range(space.n_rows)] == sorted(row for rows in groups for row in rows)
    for c, rows in enumerate(groups):
        assert len(rows) == state.size[c]
        if not rows:
            assert 0.0 == state.cost[c]
            continue
        assert naive.cost(space, rows, loss) == pytest.approx(state.cost[c])
        for j in range(len(space.columns)):
            is_set = bool(space.costs.layout[j, STRIDE] == SET)
            expected = naive.bounds(space.codes[rows, j].tolist(), is_set=is_set)
            assert expected == state.box[c, j].tolist()
    return groups


def clusters_of(space, owner, slots=SLOTS):
    rules = make_rules(*space.rules, space.sensitive, slots)
    return make_clusters(space.codes, *space.costs, np.array(owner, np.int32), slots, rules)


def search_of(space, label, *, seed=0):
    """Return a search over the clusters, with as many free slots as it has in earnest."""
    n_clusters = int(label.max()) + 1
    state = clusters_of(space, label, max(n_clusters + 4, space.n_rows // space.k + 1))
    return make_search(state, space.k, make_dice(seed, 0))


def drawn_owner(data, space):
    numbers = st.integers(0, SLOTS - 1)
    return data.draw(st.lists(numbers, min_size=space.n_rows, max_size=space.n_rows))


@given(spaces(most=20), st.data())
def test_clusters_know_their_rows_after_any_moves(drawn, data):
    space, loss = drawn
    state = clusters_of(space, drawn_owner(data, space))
    groups = check(state, space, loss)
    moves = st.tuples(
        st.integers(0, space.n_rows - 1), st.integers(0, SLOTS - 1), st.sampled_from("jl")
    )
    for row, c, how in data.draw(st.lists(moves, max_size=25)):
        before = int(state.owner[row])
        groups[before].remove(row)
        groups[c].insert(0, row)
        if how == "j":
            leave(state, row)
            join(state, c, row)
        else:
            unlink(state, row)
            link(state, row, c)
            rescan(state, before)
            rescan(state, c)
        assert groups == check(state, space, loss)


@given(spaces(most=20), st.data())
def test_the_cheapest_clusters_for_a_row_are_found(drawn, data):
    space, loss = drawn
    label = np.array(drawn_owner(data, space), np.int32)
    search = search_of(space, label)
    row = data.draw(st.integers(0, space.n_rows - 1))
    most = data.draw(st.sampled_from([1e-3, 1.0, 5.0, 1e6]))
    rises = {}
    for c, rows in enumerate(naive.members(label.tolist())):
        if rows and c != label[row]:
            after = naive.total(space, [[*rows, row]], loss)
            rises[c] = after - naive.total(space, [rows], loss)
    found = find_cheapest(search, row, int(label[row]), most)
    expected = sorted(rise for rise in rises.values() if rise < most)[:CANDIDATES]
    assert expected == pytest.approx(search.rise[:found].tolist())
    for c, rise in zip(search.best[:found].tolist(), search.rise[:found].tolist(), strict=True):
        assert rises[c] == pytest.approx(rise)


@given(spaces(most=20), st.data())
def test_prices_that_are_kept_are_those_that_are_computed_when_asked(drawn, data):
    space, _ = drawn
    search = search_of(space, np.array(drawn_owner(data, space), np.int32))
    row = data.draw(st.integers(0, space.n_rows - 1))
    own, used = int(search.s.owner[row]), search.s.size > 0
    union_offers(search.o, search.s, own)
    unions = search.o.total[used].tolist()
    found = find_cheapest(search, row, own, 1e6)
    expected = search.rise[:found].tolist()
    search.o.at[search.o.at >= 0] = DIRECT
    search.o.flat_cost[0] = max(search.o.flat_cost[0], 0.0)
    union_offers(search.o, search.s, own)
    assert unions == pytest.approx(search.o.total[used].tolist())
    assert found == find_cheapest(search, row, own, 1e6)
    assert expected == pytest.approx(search.rise[:found].tolist())


def test_values_that_are_equally_far_apart_cost_what_their_tree_says():
    random = np.random.default_rng(0)
    names = [f"v{i}" for i in range(200)]
    columns = {"drug": [None, *names, *random.choice(names[:20], 199).tolist()], "x": [1, 2] * 200}
    space = freeze(make_space(encoded(columns), Requirement(2), loss="ncp")).space
    label = random.integers(0, 40, space.n_rows).astype(np.int32)
    search = search_of(space, np.unique(label, return_inverse=True)[1].astype(np.int32))
    flat, cost = search.o.at == FLAT, float(search.o.flat_cost[0])
    assert flat[:, 0].all()
    for row in range(space.n_rows):
        own, totals = int(search.s.owner[row]), []
        used = search.s.size > 0
        for line, least in ((FLAT, cost), (DIRECT, 0.0)):
            search.o.at[flat], search.o.flat_cost[0] = line, least
            union_offers(search.o, search.s, own)
            unions = search.o.total[used].tolist()
            found = find_cheapest(search, row, own, 1e6)
            totals.append((unions, search.best[:found].tolist(), search.rise[:found].tolist()))
        assert totals[0] == totals[1]


def of_many_flat_columns(seed):
    """Return a search over 400 rows of 14 flat columns, one with too many codes, and a number."""
    random = np.random.default_rng(seed)
    drugs = np.array([None, "none", *(f"dose {i}" for i in range(9))], object)
    shares = np.array([0.02, 0.8, *[0.02] * 9])
    columns = {f"drug {i}": random.choice(drugs, 400, p=shares / shares.sum()) for i in range(14)}
    columns["wide"] = random.choice(WIDE_TREE.leaf_labels, 400)
    columns["x"] = random.integers(0, 9, 400)
    rules = {name: {"weight": random.choice([0.5, 1.0])} for name in columns}
    rules["wide"]["taxonomy"] = "wide"
    columns = {name: values.tolist() for name, values in columns.items()}
    table = encoded(columns, rules=rules, taxonomies=[WIDE_TREE])
    space = make_space(table, Requirement(3), loss="ncp")
    search = search_of(space, np.repeat(np.arange(100, dtype=np.int32), 4))
    forms = search.o.at[0].tolist()
    assert (14, 1) == (forms.count(FLAT), forms.count(DIRECT))
    return space, search


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(3))
def test_of_many_flat_columns_the_same_clusters_are_cheapest_while_rows_move(seed):
    space, search = of_many_flat_columns(seed)
    for turn in range(3):
        groups = [listed(search.s, c) for c in range(len(search.s.size))]
        paid = [naive.total(space, [rows], "ncp") if rows else 0.0 for rows in groups]
        for row in range(turn, space.n_rows, 97):
            own = int(search.s.owner[row])
            rises = [
                naive.total(space, [[*rows, row]], "ncp") - paid[c]
                for c, rows in enumerate(groups)
                if rows and c != own
            ]
            found = find_cheapest(search, row, own, 1e6)
            assert sorted(rises)[:CANDIDATES] == pytest.approx(search.rise[:found].tolist())
        assert pass_rows(search, np.arange(space.n_rows)) > 0.0


@pytest.mark.parametrize("seed", range(3))
def test_costs_without_a_row_are_those_of_its_cluster_as_it_is_now(seed):
    space, search = of_many_flat_columns(seed)
    for _ in range(3):
        for row in range(space.n_rows):
            rows = listed(search.s, int(search.s.owner[row]))
            if len(rows) > 1:
                rows.remove(row)
                expected = pytest.approx(naive.cost(space, rows, "ncp"))
                assert expected == cost_without(search.o, search.s, row)
        assert pass_rows(search, np.arange(space.n_rows)) > 0.0


@pytest.mark.parametrize("seed", range(3))
def test_no_exchange_is_dismissed_that_costs_less(seed):
    space, search = of_many_flat_columns(seed)
    dismissed = 0
    for out in range(0, space.n_rows, 29):
        set_aside(search.o, search.s, out)
        others = [row for row in listed(search.s, int(search.s.owner[out])) if row != out]
        for into in range(1, space.n_rows, 31):
            cost = naive.cost(space, [*others, into], "ncp")
            assert may_cost(search.o, search.s, out, into, cost)
            dismissed += not may_cost(search.o, search.s, out, into, cost / 2)
    assert dismissed > 100


@given(spaces(most=20), st.data())
def test_the_best_exchange_is_that_of_the_least_sum(drawn, data):
    space, loss = drawn
    label = np.array(drawn_owner(data, space), np.int32)
    state = clusters_of(space, label)
    row, other = (data.draw(st.integers(0, space.n_rows - 1)) for _ in range(2))
    groups = naive.members(label.tolist())
    c, d = label[row], label[other]
    most = 1e6
    if c == d or len(groups[c]) < 2 or len(groups[d]) < 2:
        return
    sums = {}
    for out in groups[d]:
        mine = [r for r in groups[c] if r != row] + [out]
        theirs = [r for r in groups[d] if r != out] + [row]
        if naive.holds(space, mine) and naive.holds(space, theirs):
            sums[out] = naive.total(space, [mine, theirs], loss)
    best, least = best_exchange(state, row, int(d), most)
    if not sums:
        assert (NONE, most) == (best, least)
        return
    assert sums[best] == pytest.approx(least)
    if space.has_rules or naive.cost(space, groups[d], loss) > 0:
        assert min(sums.values()) == pytest.approx(least)


@given(spaces(most=20), st.data())
def test_a_cluster_is_judged_without_one_row_and_with_another(drawn, data):
    space, _ = drawn
    label = np.array(drawn_owner(data, space), np.int32)
    search = search_of(space, label)
    row, into = (data.draw(st.integers(0, space.n_rows - 1)) for _ in range(2))
    groups = naive.members(label.tolist())
    c = int(label[row])
    rows = [r for r in groups[c] if r != row]
    assert naive.holds(space, rows) == cluster_holds(search.s, c, row, NONE)
    if label[into] != c:
        assert naive.holds(space, [*rows, into]) == cluster_holds(search.s, c, row, into)
        if naive.holds(space, groups[c]):
            assert cluster_holds(search.s, c, NONE, into)


@pytest.mark.parametrize("kind", [SHARE, ENTROPY, RECURSIVE])
def test_one_more_row_may_break_a_rule_about_shares(kind):
    limits = {SHARE: (0.5, 0), ENTROPY: (np.log(2), 0), RECURSIVE: (1.5, 2)}[kind]
    sensitive = np.array([0, 1, 0, 1], np.int32)[:, None]
    rules = (np.array([kind]), np.array([0]), np.array([limits], np.float64))
    space = make_space(random_table(4, seed=0), Requirement(2), loss="ncp")
    space = space._replace(rules=rules, sensitive=sensitive)
    state = clusters_of(space, [0, 0, 1, 1])
    assert cluster_holds(state, 0, NONE, NONE)
    assert not cluster_holds(state, 0, NONE, 2)


HEATS, SHARES = st.sampled_from([0.0, 0.5]), st.sampled_from([0.0, 0.5, 1.0])
WAYS = st.builds(improving.Ways, HEATS, SHARES, st.booleans())


@pytest.mark.exhaustive
@given(
    spaces(most=40),
    st.integers(0, 9),
    st.lists(st.sampled_from("mdrt"), max_size=6),
    st.sampled_from([NONE, 1]),
    st.tuples(WAYS, st.booleans()),
)
def test_a_search_saves_what_it_says_and_keeps_the_rules(drawn, seed, steps, patient, ways):
    (space, loss), (how, carved) = drawn, ways
    label = start(space, seed=seed).label
    search = search_of(space, label, seed=seed)
    most = min(4, int(label.max()) + 1)
    pools, carver = make_rebuild(search.s, space.k, most), None
    if carved and not (space.costs.layout[:, STRIDE] == SET).any():
        levels = shrinking.Ladders(*ladders(space))
        carver = make_carver(space.codes, *space.costs, levels, space.n_rows, 0)
    ring = make_ring(len(search.s.size), len(space.columns))
    paid = total_cost(space, label)
    order = np.arange(space.n_rows)
    for step in steps:
        if step == "m":
            saved = pass_rows(search, order)
        elif step == "d":
            saved = dissolve_clusters(search, order.copy(), patient)
        elif step == "t":
            saved = rotate(search, ring)
        else:
            saved = rebuild_clusters(search, pools, carver, 2, patient, how) if most > 1 else 0.0
        groups = [rows for rows in check(search.s, space, loss) if rows]
        assert saved >= 0 or (step == "r" and how.heat > 0)
        assert paid - saved == pytest.approx(naive.total(space, groups, loss), abs=1e-6)
        paid -= saved
        assert all(len(rows) >= space.k and naive.holds(space, rows) for rows in groups)


@pytest.mark.parametrize("fitting", [False, True])
def test_different_clusters_are_rebuilt_near_one_or_those_that_its_rows_fit_best(fitting):
    space, search = of_many_flat_columns(0)
    pools = make_rebuild(search.s, space.k, 4)
    for c in range(0, 100, 7):
        n = (choose_fitting if fitting else choose_near)(search, pools, c, 3)
        first, *others = pools.chosen[:n].tolist()
        assert c == first
        assert len({c, *others}) == n > 1
        assert search.s.size[others].all()
        best = set()
        for row in listed(search.s, c):
            assert find_cheapest(search, row, c, np.inf) > 0
            best.add(int(search.best[0]))
        assert not fitting or best >= {*others}


@given(st.integers(1, 6), st.integers(0, 2**32 - 1), st.sampled_from([3, 1_000_000]))
def test_places_are_changed_at_the_least_sum(m, seed, values):
    ring = make_ring(m, 0)
    price = np.random.default_rng(seed).integers(0, values, (m, m)).astype(float)
    ring.price[:] = price
    assign(ring, m)
    taken = ring.taken[1:] - 1
    assert [*range(m)] == sorted(taken.tolist())
    found = sum(price[cluster, row] for row, cluster in enumerate(taken.tolist()))
    assert naive.least_sum(price.tolist()) == found


@given(spaces(most=30), st.integers(0, 9))
def test_rows_that_change_places_save_as_much_as_they_can(drawn, seed):
    space, loss = drawn
    label = start(space, seed=seed).label
    search = search_of(space, label, seed=seed)
    groups = naive.members(label.tolist())
    paid = naive.total(space, groups, loss)
    ring = make_ring(len(search.s.size), len(space.columns))
    saved = rotate(search, ring)
    chosen = [c for c, rows in enumerate(groups) if naive.cost(space, rows, loss) > 0]
    chosen = [c for c in chosen if len(groups[c]) > 1]
    out = {int(label[row]): int(row) for row in ring.rows[: len(chosen)]}
    assert sorted(out) == chosen
    assert len(chosen) > 5 or saved <= naive.rotation(space, groups, out, loss) + 1e-6
    if not space.has_rules and len(chosen) <= 5:
        assert saved == pytest.approx(naive.rotation(space, groups, out, loss), abs=1e-6)
    assert paid - saved == pytest.approx(
        naive.total(space, naive.members(search.s.owner.tolist()), loss), abs=1e-6
    )


def test_a_rotation_prices_columns_of_every_form_as_they_cost():
    space, search = of_many_flat_columns(0)
    groups = [listed(search.s, c) for c in range(len(search.s.size))]
    ring = make_ring(len(groups), len(space.columns))
    assert rotate(search, ring) > 0.0
    m = sum(len(rows) > 1 and naive.cost(space, rows, "ncp") > 0 for rows in groups)
    leaving = ring.rows[:m].tolist()
    for i in range(0, m, 7):
        (rows,) = (rows for rows in groups if leaving[i] in rows)
        kept = [row for row in rows if row != leaving[i]]
        expected = [naive.total(space, [[*kept, row]], "ncp") for row in leaving]
        assert ring.price[i, :m].tolist() == pytest.approx(expected)


@given(
    st.sampled_from([2, WIDE]),
    st.integers(0, 9),
    st.floats(0, 0.01),
    st.sampled_from([0.0, 0.1]),
)
def test_only_of_many_columns_patience_ends_unless_a_hot_round_has_settled(d, seed, share, heat):
    random = np.random.default_rng(seed)
    columns = {f"q{j}": random.integers(0, 5, 12).tolist() for j in range(d)}
    space = make_space(encoded(columns), Requirement(2), loss="ncp")
    label = np.repeat(np.arange(4), 3).astype(np.int32)
    search = search_of(space, label)
    paid = naive.total(space, naive.members(label.tolist()), "ncp")
    expected = naive.patience(d, share * paid, paid, heat=heat)
    assert expected == find_patience(search.s, share * paid, heat)


@pytest.mark.parametrize("effort", [LIGHT, TURNS, Effort(passes=3, tries=0, pool=2)])
@given(drawn=spaces(most=60), seed=st.integers(0, 2**63 - 1))
def test_a_round_never_loses_more_and_keeps_every_row_and_rule(effort, drawn, seed):
    space, loss = drawn
    label, paid = start(space, seed=seed).label, np.inf
    points = coordinates(space)
    for number in range(3):
        groups = naive.members(label.tolist())
        assert all(len(rows) >= space.k and naive.holds(space, rows) for rows in groups)
        cost = total_cost(space, label)
        assert naive.total(space, groups, loss) == pytest.approx(cost)
        assert cost <= paid + 1e-9
        label, paid = (
            improve(space, label, points, effort=effort, seed=seed, number=number),
            cost,
        )


@pytest.mark.parametrize("k", [2, 7, 40])
@pytest.mark.parametrize("l", [1, 3])
@pytest.mark.parametrize("names", [("integer", "letter", "wide", "set"), ("halves", "float")])
def test_rounds_over_several_blocks_save_and_keep_the_rules(k, l, names):
    table = random_table(3000, seed=k, names=names, n_diseases=9)
    space = freeze(make_space(table, Requirement(k, l), loss="ncp")).space
    label = start(space, seed=1).label
    points, paid = coordinates(space), [total_cost(space, label)]
    for number in range(4):
        label = improve(space, label, points, effort=LIGHT, seed=1, number=number)
        paid.append(total_cost(space, label))
        assert space.k <= np.bincount(label).min()
    assert all(naive.holds(space, rows) for rows in naive.members(label.tolist()))
    assert sorted(paid, reverse=True) == paid
    assert paid[-1] < paid[0] or paid[0] == 0
