"""What the kernels of the search judge, against the models that certify it."""

import numpy as np
import pytest
from builders import LETTERS, encoded, policy_of
from hypothesis import given, settings
from hypothesis import strategies as st

from dbanon.anonymization.auto.space import make_rules
from dbanon.anonymization.interfaces import Requirement
from dbanon.domain.policy import ModelSpec
from dbanon.models.demands import achieved, demands_of, wholes

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


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{spec.name}-{len(spec.params)}")
@settings(max_examples=60)
@given(data=st.data())
def test_a_kernel_judges_as_the_model_does(spec, data):
    from dbanon.kernels.auto.diversity import make_rules as make_kernel_rules
    from dbanon.kernels.auto.diversity import rows_hold

    values = data.draw(st.lists(st.none() | st.sampled_from("aabcdefg"), min_size=1, max_size=30))
    some = data.draw(st.lists(st.integers(0, len(values) - 1), min_size=1, unique=True))
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
    rows = np.array(sorted(some))
    level = achieved(table, demand, rows, np.zeros(len(rows), np.int32), whole=whole)
    expected = bool(demand.model.bound.holds(level, demand.model.required)[0])
    numbers = make_rules(table, Requirement(1, demands=(demand,)))
    rules = make_kernel_rules(*numbers, table.sensitive)
    assert expected == rows_hold(rules, rows)
    assert rules.counts.sum() == 0
