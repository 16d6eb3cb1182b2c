"""The search as a whole: what `auto` promises of every table."""

import csv
import gzip
import io
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import naive
import numpy as np
import pytest
from builders import encoded, policy_of, tree
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import engine
from selection import at_depth, each_once
from spaces import problems, random_table, table_of, tables

from dbanon import resources
from dbanon.anonymization import threads
from dbanon.anonymization.algorithms.microaggregation.microaggregation import Mdav
from dbanon.anonymization.algorithms.partitioning.mondrian import RelaxedMondrian
from dbanon.anonymization.auto.algorithm import Auto
from dbanon.anonymization.auto.plans import EFFORTS
from dbanon.anonymization.auto.space import freeze, make_space, total_cost
from dbanon.anonymization.auto.start import (
    BLOCKS,
    MAX_NODES,
    PEELING,
    column_levels,
    lattice,
    start,
    start_by_peeling,
)
from dbanon.anonymization.encoding.encode import encode
from dbanon.anonymization.interfaces import Requirement
from dbanon.anonymization.problem import Problem, solve
from dbanon.domain.outcomes import Stages
from dbanon.domain.table import ColumnKind
from dbanon.formats import policies, taxonomies
from dbanon.kernels import compilation
from dbanon.kernels.compilation import on_compile


def assigned(table, k, l=1, *, seed=0, **options):
    """Group the rows with `auto`, and look at every group."""
    assignment = Auto(**options).assign(table, Requirement(k, l), seed=seed)
    group = assignment.group
    assert (np.int32, table.n_rows) == (group.dtype, len(group))
    assert [*range(assignment.n_groups)] == np.unique(group).tolist()
    assert max(k, l) <= np.bincount(group).min()
    for column in table.sensitive.T:
        pairs = np.unique(np.stack([group, column]), axis=1)[0]
        assert l <= np.bincount(pairs).min()
    return group


def loss_of(table, group, loss="ncp"):
    space = make_space(table, Requirement(1), loss=loss)
    return total_cost(space, group.astype(np.int32))


def contents(table, group, l):
    """Return the rows of each group as what matters of them, in no order."""
    codes = [column.codes.tolist() for column in table.quasi]
    rows = list(zip(*codes, *(table.sensitive.T.tolist() if l > 1 else []), strict=True))
    return sorted(
        sorted(rows[row] for row in rows_of) for rows_of in engine.members(group.tolist())
    )


def listening(*, stop_after=None):
    """Return a list that fills with the progress, and stages that stop when it is so long."""
    seen = []

    def listen(done, loss):
        seen.append((done, loss))
        stages.stopped = len(seen) == stop_after

    stages = Stages(on_progress=listen, stopped=stop_after == 0)
    return seen, stages


def shuffled(table, seed):
    order = np.random.default_rng(seed).permutation(table.n_rows)
    quasi = tuple(replace(column, codes=column.codes[order]) for column in table.quasi)
    return replace(table, quasi=quasi, sensitive=table.sensitive[order])


@pytest.mark.exhaustive
@given(
    problems(most=60),
    st.sampled_from(list(EFFORTS)),
    st.sampled_from(["ncp", "il"]),
    st.integers(0, 2**63 - 1),
)
def test_any_table_is_grouped_as_required(problem, effort, loss, seed):
    table, k, l = problem
    group = assigned(table, k, l, effort=effort, loss=loss, seed=seed)
    again = assigned(table, k, l, effort=effort, loss=loss, seed=seed)
    assert group.tolist() == again.tolist()


@pytest.mark.exhaustive
@given(problems(most=60), st.integers(0, 99))
def test_the_order_of_the_rows_does_not_matter(problem, seed):
    table, k, l = problem
    other = shuffled(table, seed)
    assert contents(table, assigned(table, k, l), l) == contents(other, assigned(other, k, l), l)


@pytest.mark.exhaustive
@pytest.mark.parametrize("l", [1, 3])
def test_neither_the_order_of_many_rows_nor_the_threads_matter(l, monkeypatch):
    table = random_table(5000, seed=1, n_diseases=9)
    groups = []
    for workers in (1, 2):
        monkeypatch.setattr(threads, "processors", lambda workers=workers: workers)
        groups.append(assigned(table, 5, l, effort="fast"))
    assert groups[0].tolist() == groups[1].tolist()
    other = shuffled(table, 3)
    assert contents(table, groups[0], l) == contents(other, assigned(other, 5, l, effort="fast"), l)


@pytest.mark.exhaustive
def test_another_seed_searches_elsewhere():
    table = random_table(600, seed=2)
    assert assigned(table, 5).tolist() != assigned(table, 5, seed=1).tolist()


@pytest.mark.parametrize(
    ("k", "l", "weight"),
    [*each_once([1, 2, 3, 5], [1, 2], [1.0]), *each_once([1, 2, 3, 5], [2, 1], [0.0])],
)
def test_sizes_around_multiples_of_k_are_grouped(k, l, weight):
    least = max(k, l)
    for n in (least, 2 * least - 1, 2 * least, 3 * least - 1, 3 * least, 3 * least + 1):
        values = {"integer": [i % 7 for i in range(n)], "letter": [*"abcdefg" * n][:n]}
        disease = {"disease": [("flu", "cold")[i % 2] for i in range(n)]}
        weights = {"integer": weight, "letter": weight}
        group = assigned(table_of(values, disease, weights=weights), k, l)
        if n < 2 * least:
            assert 0 == group.max()


@pytest.mark.parametrize(
    "columns",
    [
        {"constant": [7] * 30},
        {"null": [None] * 30},
        {"constant": [7] * 30, "null": [None] * 30, "set": ["p"] * 30},
    ],
)
@pytest.mark.parametrize(("k", "l"), [(1, 1), (5, 1), (4, 3), (30, 3)])
def test_equal_rows_lose_nothing(columns, k, l):
    table = table_of(columns, {"disease": ["flu", "cold", "gout"] * 10})
    assert 0 == loss_of(table, assigned(table, k, l))


def test_k_of_1_loses_nothing():
    table = random_table(300, seed=0)
    assert 0 == loss_of(table, assigned(table, 1))


def test_a_column_of_nulls_beside_values_is_not_mixed_with_them():
    values = [None] * 10 + [1, 2, 3, 4, 5, 6]
    table = table_of({"integer": values})
    group = assigned(table, 5)
    assert not set(group[:10].tolist()) & set(group[10:].tolist())


@given(tables(rows=st.integers(1, 40)), st.data())
def test_what_can_be_met_as_a_whole_is_met_by_every_group(table, data):
    distinct = len(np.unique(table.sensitive))
    k = data.draw(st.integers(1, table.n_rows))
    group = assigned(table, k, data.draw(st.integers(1, distinct)), effort="fast")
    assert table.n_rows == len(group)


def test_every_row_may_have_a_sensitive_value_of_its_own():
    n = 10_000
    table = random_table(n, seed=0, names=("integer", "letter"))
    table = replace(table, sensitive=np.arange(n, dtype=np.int32)[:, None])
    expected = loss_of(table, assigned(table, 5, effort="fast"))
    found = loss_of(table, assigned(table, 5, 5, effort="fast"))
    assert expected * 1.5 >= found


@pytest.mark.parametrize("rare", [1, 2, 40])
def test_one_sensitive_value_may_be_nearly_everywhere(rare):
    n = 20_000
    table = random_table(n, seed=0, names=("integer", "letter"))
    sensitive = np.zeros((n, 1), np.int32)
    sensitive[:: n // rare][:rare] = 1
    table = replace(table, sensitive=sensitive)
    group = assigned(table, 5, 2, effort="fast")
    assert group.max() < rare


@pytest.mark.parametrize("l", [1, 3])
def test_equal_rows_by_the_hundred_thousand_are_grouped(l):
    n = 100_000
    values = {"integer": [1] * (n - 1) + [2], "set": ["p"] * n}
    table = table_of(values, {"disease": [f"d{i % 9}" for i in range(n)]})
    group = assigned(table, 7, l)
    assert 7 == np.bincount(group)[group[-1]]


@pytest.mark.exhaustive
def test_k_may_be_a_large_share_of_the_rows():
    # a sample of 4,000 rows would be halved into samples of fewer than k
    group = assigned(random_table(8200, seed=0), 2500, effort="fast")
    assert 1 <= group.max() <= 2


@pytest.mark.exhaustive
def test_a_tree_of_a_hundred_thousand_leaves_is_grouped():
    postcodes = tree(
        "postcodes",
        {
            f"{a}": {
                f"{a:02}{b:02}": {f"{a:02}{b:02}{c:02}": {} for c in range(100)} for b in range(100)
            }
            for a in range(10)
        },
    )
    random = np.random.default_rng(0)
    leaves = random.choice(random.integers(0, 100_000, 2000), 4000)
    labels = postcodes.leaf_labels
    table = encoded(
        {"postcode": [labels[leaf] for leaf in leaves], "age": leaves.tolist()},
        rules={"postcode": {"taxonomy": "postcodes"}, "age": {"weight": 0.1}},
        taxonomies=[postcodes],
    )
    assert 20_000_000 > make_space(table, Requirement(5), loss="ncp").costs.flat.nbytes
    group = assigned(table, 5, effort="fast")
    region = leaves // 10_000
    mixed = sum(len(set(region[rows].tolist())) > 1 for rows in engine.members(group.tolist()))
    assert mixed <= 9


def test_thirty_quasi_identifiers_are_grouped():
    random = np.random.default_rng(0)
    names = [f"q{i}" for i in range(30)]
    columns = {name: random.integers(0, 2 + i, 500).tolist() for i, name in enumerate(names)}
    table = encoded(columns)
    space = make_space(table, Requirement(5), loss="ncp")
    assert lattice(space) is None
    assert "blocks" == start(space, seed=0).name
    group = assigned(table, 5, effort="fast")
    assert loss_of(table, group) < loss_of(table, np.random.default_rng(1).permutation(500) // 5)


def with_rare(n, rare):
    """Return a table of which every so many rows have the one rare sensitive value."""
    table = random_table(n, seed=2)
    sensitive = (np.arange(n) % rare == 0).astype(np.int32)[:, None]
    return replace(table, sensitive=sensitive)


def test_a_start_leaves_no_giant_class_where_a_sensitive_value_is_rare():
    space = make_space(with_rare(4_000, 100), Requirement(5, 2), loss="ncp")
    found = start(space, seed=0)
    assert "blocks" == found.name
    assert np.bincount(found.label).max() < 1_000


def test_peeling_gives_classes_up_where_one_giant_class_would_be_left():
    space = freeze(make_space(with_rare(4_000, 100), Requirement(5, 2), loss="ncp")).space
    label = start_by_peeling(space, lattice(space), seed=0)
    assert all(engine.holds(space, rows) for rows in engine.members(label.tolist()))
    assert np.bincount(label).max() < 1_000


def test_a_large_table_gets_more_rounds_after_blocks_than_after_peeling():
    rows = random_table(500, seed=0)
    space = make_space(rows, Requirement(5), loss="ncp").take(np.zeros(100_000, np.int64))
    plan = EFFORTS["balanced"]
    assert plan.fewest == plan.phase(space, begun=PEELING).rounds
    assert plan.after_blocks == plan.phase(space, begun=BLOCKS).rounds
    pairs = make_space(rows, Requirement(2), loss="ncp").take(np.zeros(100_000, np.int64))
    assert plan.after_blocks < plan.phase(pairs, begun=BLOCKS).rounds
    assert plan.fewest == plan.phase(pairs, begun=PEELING).rounds


def test_a_lattice_never_has_more_nodes_than_it_may():
    random = np.random.default_rng(0)
    columns = {f"q{i}": random.integers(0, 1000, 1000).tolist() for i in range(5)}
    space = make_space(encoded(columns), Requirement(5), loss="ncp")
    levels = lattice(space)
    full = [column_levels(column) for column in space.columns]
    assert np.prod([len(chain) for chain in levels]) <= MAX_NODES
    for thin, chain in zip(levels, full, strict=True):
        assert (0.0, 1.0) == (thin[0].cost, thin[-1].cost)
        assert len(np.unique(thin[0].classes)) == 1 + len(np.unique(chain[0].classes[:-1]))
        assert 1 == len(np.unique(thin[-1].classes))
        assert [level.cost for level in thin] == sorted(level.cost for level in thin)


@pytest.mark.exhaustive
@pytest.mark.parametrize("loss", ["ncp", "il"])
def test_rounds_lower_the_loss_that_is_asked_for(loss):
    table = random_table(2000, seed=4, names=("integer", "letter", "wide", "float"))
    seen, stages = listening()
    group = assigned(table, 5, loss=loss, stages=stages)
    done, losses = zip(*seen, strict=True)
    assert (0.0, 1.0) == (done[0], done[-1])
    assert sorted(done) == list(done)
    assert all(after <= before + 1e-12 for before, after in pairwise(losses))
    assert losses[0] > losses[-1]
    assert loss_of(table, group, loss) / (2000 * 4) == pytest.approx(losses[-1])


def test_the_loss_asked_for_is_the_one_that_is_low():
    table = random_table(1500, seed=5, names=("letter", "wide"))
    found = {loss: assigned(table, 5, loss=loss) for loss in ("ncp", "il")}
    for loss, group in found.items():
        losses = [loss_of(table, other, loss) for other in found.values()]
        assert min(losses) == loss_of(table, group, loss)


@pytest.mark.exhaustive
def test_more_effort_never_ends_worse_than_it_begins_or_less_effort_does():
    table = random_table(500, seed=6, n_diseases=6)
    losses = {effort: loss_of(table, assigned(table, 5, 2, effort=effort)) for effort in EFFORTS}
    seen, stages = listening()
    assigned(table, 5, 2, effort="fast", stages=stages)
    assert losses["best"] <= losses["balanced"] <= losses["fast"] <= seen[0][1] * 500 * 4


def test_columns_published_as_sets_are_grouped_by_their_sets():
    values = {
        "halves": random_values(1500),
        "integer": np.random.default_rng(3).integers(0, 9, 1500).tolist(),
    }
    as_sets = table_of(values)
    rules = [replace(column.rule, recoding=None) for column in as_sets.quasi]
    quasi = tuple(replace(c, rule=rule) for c, rule in zip(as_sets.quasi, rules, strict=True))
    as_labels = replace(as_sets, quasi=quasi)
    assert loss_of(as_sets, assigned(as_sets, 5)) < loss_of(as_sets, assigned(as_labels, 5))


def random_values(n):
    table = random_table(n, seed=9, names=("halves",))
    column = table.quasi[0]
    return [None if code == column.size else column.values[code] for code in column.codes.tolist()]


def test_a_time_limit_ends_the_search():
    seen, stages = listening()
    assigned(random_table(300, seed=0), 5, time_limit=0.05, effort="best", stages=stages)
    done = [share for share, _ in seen]
    assert 1.0 == done[-1]
    assert sorted(done) == done


@pytest.mark.parametrize("limit", [0.0, -1.0, 1e-9])
def test_no_time_at_all_leaves_the_start(limit):
    seen, stages = listening()
    assigned(random_table(300, seed=0), 5, time_limit=limit, stages=stages)
    assert [1.0] == [done for done, _ in seen]


@pytest.mark.parametrize("rounds_done", [0, 2])
def test_a_stopped_search_ends_with_what_it_has(rounds_done):
    seen, stages = listening(stop_after=rounds_done)
    assigned(random_table(500, seed=0), 5, 2, effort="best", time_limit=60, stages=stages)
    assert len(seen) == rounds_done


@pytest.mark.parametrize("seed", [0, 2**31, 2**62, 2**63 - 1])
def test_any_seed_is_taken(seed):
    table = encoded({"x": list(range(500)), "y": [i * 7919 % 500 for i in range(500)]})
    assert 500 == len(assigned(table, 5, effort="fast", seed=seed))


@pytest.mark.parametrize("weight", [1e-300, 1e-12, 1.0, 1e39, 1e300])
def test_only_the_ratio_of_weights_matters(weight):
    table = random_table(300, seed=0)
    rules = [replace(column.rule, weight=weight) for column in table.quasi]
    quasi = tuple(replace(c, rule=rule) for c, rule in zip(table.quasi, rules, strict=True))
    assert assigned(table, 5).tolist() == assigned(replace(table, quasi=quasi), 5).tolist()


def demo(name, n):
    """Return the first rows of a demonstration table as its policy encodes it, and the policy."""
    import pyarrow as pa

    text = gzip.decompress(resources.data(f"{name}.csv.gz").read_bytes()).decode("utf-8")
    rows = list(csv.DictReader(io.StringIO(text), delimiter=";" if name == "adult" else ","))[:n]
    policy = policies.parse(resources.data(f"{name}.toml").read_text(encoding="utf-8"))
    numbers = {"age", "sample_yr", "creatinine"}
    kinds, columns = {}, {}
    for rule in policy.columns:
        if rule.role.value not in {"quasi", "sensitive"}:
            continue
        texts = [row[rule.column] or None for row in rows]
        is_number = rule.column in numbers
        kinds[rule.column] = ColumnKind.FLOAT if is_number else ColumnKind.CATEGORY
        columns[rule.column] = pa.array(
            [None if text is None else float(text) for text in texts] if is_number else texts,
            pa.float64() if is_number else pa.string(),
        )
    found = {}
    for path in sorted(Path(resources.data("")).glob(f"{name}_*.csv")):
        column = path.stem.removeprefix(f"{name}_").partition("_")[2]
        stored = f"{name}_{column}"
        found[stored] = taxonomies.read_csv(path, name=stored)
    return encode(pa.table(columns), policy, kinds=kinds, taxonomies=found)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["patients", "adult"])
@pytest.mark.parametrize("l", [1, 3])
def test_real_rows_lose_less_than_by_mondrian_and_mdav(name, l):
    table = demo(name, 2000)
    found = loss_of(table, assigned(table, 5, l))
    for other in (RelaxedMondrian(), Mdav()):
        assert found < loss_of(table, other.assign(table, Requirement(5, l), seed=0).group)


@pytest.mark.exhaustive
@settings(max_examples=at_depth(20))
@given(problems(most=50), st.sampled_from(["fast", "balanced"]))
def test_what_is_published_keeps_the_policy(problem, effort):
    table, k, l = problem
    policy = policy_of(
        [column.name for column in table.quasi],
        table.sensitive_names,
        k=k,
        l=l,
        algorithm="auto",
        params={"effort": effort},
    )
    outcome = solve(Problem(table, policy), seed=0, stages=Stages())
    assert outcome.loss.smallest_class >= k
    for rows in naive.members(outcome.assignment):
        assert naive.is_diverse(table, rows, l)


def test_who_waits_for_a_compilation_is_told(monkeypatch):
    @contextmanager
    def compiling(tell):
        with on_compile(tell) as compiled:
            tell()
            yield compiled

    monkeypatch.setattr(compilation, "on_compile", compiling)
    told = []
    table = encoded({"age": range(60)})
    Auto(stages=Stages(on_step=told.append)).assign(table, Requirement(5), seed=1)
    assert "compile, once on a machine" == told[0]
