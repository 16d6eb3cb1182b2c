"""What the kernels of the search judge, against the models that certify it."""

import numpy as np
import pytest
from builders import LETTERS, encoded, policy_of
from compiled import called
from hypothesis import given, settings
from hypothesis import strategies as st
from selection import at_depth

from dbanon.anonymization.auto.space import make_rules, make_space
from dbanon.anonymization.interfaces import Requirement
from dbanon.domain.policy import ModelSpec
from dbanon.kernels.auto import clusters, diversity
from dbanon.kernels.auto.clusters import NONE
from dbanon.models.demands import achieved, demands_of, wholes

make_rules_of_slots = called(diversity.make_rules_of_slots)
make_clusters, cluster_holds = called(clusters.make_clusters), called(clusters.cluster_holds)
join, leave = called(clusters.join), called(clusters.leave)

SPECS = [
    ModelSpec("l-diversity", {"l": 2, "columns": ("s",)}),
    ModelSpec("p-sensitivity", {"p": 3}),
    ModelSpec("probabilistic-l-diversity", {"l": 1.7}),
    ModelSpec("entropy-l-diversity", {"l": 2.2}),
    ModelSpec("recursive-l-diversity", {"c": 1.5, "l": 2}),
    ModelSpec("alpha-k-anonymity", {"alpha": 0.6}),
    ModelSpec("listed-alpha-k-anonymity", {"alpha": 0.3, "listed": ("a", "g", "no value")}),
    ModelSpec("t-closeness", {"t": 0.3}),
    ModelSpec("t-closeness", {"t": 0.15, "distance": "ordered"}),
    ModelSpec("t-closeness", {"t": 0.2, "distance": "hierarchical"}),
    ModelSpec("beta-likeness", {"beta": 0.8}),
    ModelSpec("beta-likeness", {"beta": 0.8, "kind": "enhanced"}),
    ModelSpec("delta-disclosure", {"delta": 1.1}),
]


def asked_of(values, spec):
    """Return a table of these sensitive values, what is asked, and how rows meet it."""
    table = encoded(
        {"x": [0] * len(values)},
        {"s": values},
        rules={"s": {"taxonomy": "letters", "order": tuple("dgafbec")}},
        taxonomies=[LETTERS],
    )
    policy = policy_of(["x"], ["s"])
    object.__setattr__(policy, "models", (spec,))
    (demand,) = demands_of(table, policy)
    (whole,) = wholes(table, [demand], np.arange(len(values)))

    def met(rows):
        one = np.zeros(len(rows), np.int32)
        level = achieved(table, demand, np.array(rows), one, whole=whole)
        return bool(demand.model.bound.holds(level, demand.model.required)[0])

    return table, Requirement(1, demands=(demand,)), met


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{spec.name}-{len(spec.params)}")
@settings(max_examples=at_depth(60))
@given(data=st.data())
def test_a_kernel_judges_as_the_model_does(spec, data):
    from dbanon.kernels.auto.diversity import make_rules as make_kernel_rules
    from dbanon.kernels.auto.diversity import rows_hold

    values = data.draw(st.lists(st.none() | st.sampled_from("aabcdefg"), min_size=1, max_size=30))
    some = data.draw(st.lists(st.integers(0, len(values) - 1), min_size=1, unique=True))
    table, requirement, met = asked_of(values, spec)
    rows = np.array(sorted(some))
    rules = make_kernel_rules(*make_rules(table, requirement), table.sensitive)
    assert met(rows) == rows_hold(rules, rows)
    assert rules.counts.sum() == rules.sums.sum() == 0


@pytest.mark.parametrize("most", [1 << 22, 0], ids=["counted", "recounted"])
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{spec.name}-{len(spec.params)}")
@settings(max_examples=at_depth(25))
@given(data=st.data())
def test_counts_of_clusters_judge_as_the_model_does_while_rows_move(spec, most, data):
    values = data.draw(st.lists(st.none() | st.sampled_from("aabcdefg"), min_size=2, max_size=20))
    table, requirement, met = asked_of(values, spec)
    space, n = make_space(table, requirement, loss="ncp"), len(values)
    rules = make_rules_of_slots(*space.rules, table.sensitive, 3 if most else 0)
    numbers = st.integers(0, 2)
    owner = data.draw(st.lists(numbers, min_size=n, max_size=n))
    state = make_clusters(space.codes, *space.costs, np.array(owner, np.int32), 3, rules)
    rows = st.integers(0, n - 1)
    for row, into, c in data.draw(st.lists(st.tuples(rows, rows, numbers), max_size=12)):
        groups = [[i for i in range(n) if state.owner[i] == one] for one in range(3)]
        own = int(state.owner[row])
        if groups[own] != [row]:
            assert met([i for i in groups[own] if i != row]) == cluster_holds(state, own, row, NONE)
        if state.owner[into] != own:
            swapped = [i for i in groups[own] if i != row] + [into]
            assert met(swapped) == cluster_holds(state, own, row, into)
        assert met(groups[own]) == cluster_holds(state, own, NONE, NONE)
        leave(state, row)
        join(state, c, row)
    if most:
        counted = np.zeros((3, rules.counts.shape[2]), np.int32)
        np.add.at(counted, (state.owner, table.sensitive[:, 0]), 1)
        assert counted.tolist() == rules.counts[0, :3].tolist()
