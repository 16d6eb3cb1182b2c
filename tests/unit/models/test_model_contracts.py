"""Every model with every algorithm: what is published holds, or it is said that it cannot."""

import math
from itertools import product

import naive
import pyarrow as pa
import pytest
from builders import LETTERS, encoded, policy_of
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import models as defined
from naive import population as by_hand
from selection import exhaustive_after

from dbanon.anonymization.encoding.population import encode_population
from dbanon.anonymization.problem import Problem, solve
from dbanon.anonymization.registry import ALGORITHMS
from dbanon.domain.errors import Unsatisfiable
from dbanon.domain.outcomes import Stages
from dbanon.domain.policy import ModelSpec
from dbanon.domain.table import ColumnKind
from dbanon.models.base import Scope
from dbanon.models.registry import MODELS

SIZES = [6, 7, 12, 21]
LETTER = st.sampled_from("aabbcdefg")
NUMBER = st.sampled_from(["1", "2", "2", "3", "10"])

# A model's parameters, the kind of its sensitive column, and whether a class of values meets it,
# given all values that are shown.
CASES = {
    "k-anonymity": ({"k": 4}, LETTER, lambda c, _: len(c) >= 4),
    "l-diversity": ({"l": 3, "columns": ("s",)}, LETTER, lambda c, _: len(set(c)) >= 3),
    "p-sensitivity": ({"p": 3}, LETTER, lambda c, _: len(set(c)) >= 3),
    "probabilistic-l-diversity": (
        {"l": 1.7},
        LETTER,
        lambda c, _: max(defined.shares(c).values()) <= 1 / 1.7 + 1e-9,
    ),
    "entropy-l-diversity": (
        {"l": 2.5},
        LETTER,
        lambda c, _: defined.effective_entropy(c) >= 2.5 - 1e-9,
    ),
    "recursive-l-diversity": (
        {"c": 1.5, "l": 2},
        LETTER,
        lambda c, _: defined.recursive(c, 2) < 1.5,
    ),
    "pd-recursive-l-diversity": (
        {"c": 1.5, "l": 2, "positive": ("a",)},
        LETTER,
        lambda c, _: defined.pd_recursive(c, 2, {"a"}) < 1.5,
    ),
    "npd-recursive-l-diversity": (
        {"c": 2, "l": 2, "positive": ("a",), "share": 0.1, "negative": ("b",)},
        LETTER,
        lambda c, _: defined.pd_recursive(c, 2, {"a"}) < 2 and c.count("b") >= 0.1 * len(c),
    ),
    "alpha-k-anonymity": (
        {"alpha": 0.6},
        LETTER,
        lambda c, _: max(defined.shares(c).values()) <= 0.6 + 1e-9,
    ),
    "listed-alpha-k-anonymity": (
        {"alpha": 0.3, "listed": ("a", "g")},
        LETTER,
        lambda c, _: max(defined.shares(c).get(one, 0) for one in "ag") <= 0.3 + 1e-9,
    ),
    "t-closeness": (
        {"t": 0.25},
        LETTER,
        lambda c, whole: defined.total_variation(c, whole) <= 0.25 + 1e-9,
    ),
    "n-t-closeness": (
        {"n": 3, "t": 0.25},
        LETTER,
        None,  # what it compares with is not told by the values alone
    ),
    "beta-likeness": (
        {"beta": 1, "kind": "enhanced"},
        LETTER,
        lambda c, whole: defined.beta(c, whole, 1) <= 1 + 1e-9,
    ),
    "delta-disclosure": (
        {"delta": 1.2},
        LETTER,
        lambda c, whole: defined.delta(c, whole) < 1.2,
    ),
    "k-e-anonymity": (
        {"k": 2, "e": 1},
        NUMBER,
        lambda c, _: len(set(c)) >= 2 and max(map(int, c)) - min(map(int, c)) >= 1,
    ),
    "m-uniqueness": (
        {"m": 2},
        LETTER,
        lambda c, _: len(set(c)) == len(c) >= 2,
    ),
    "x-y-anonymity": ({"k": 3, "y": ("s",)}, LETTER, lambda c, _: len(set(c)) >= 3),
    "k-map": ({"k": 5}, LETTER, None),  # what they count is tried by hand below
    "delta-presence": ({"dmax": 0.6}, LETTER, None),
}
# Every model by the algorithm that is used most, and each of the others by every twelfth model.
EVERY = list(enumerate(product(ALGORITHMS, MODELS)))
FIRST = [pair for i, pair in EVERY if pair[0] == "auto" or (i + i // len(MODELS)) % 12 == 0]
OTHERS = [pair for _, pair in EVERY if pair not in FIRST]
LEAVES = {
    label: set(LETTERS.leaf_labels[LETTERS.leaf_lo[node] : LETTERS.leaf_hi[node] + 1])
    for node, label in enumerate(LETTERS.labels)
}


def test_every_model_has_a_case():
    assert set(CASES) == set(MODELS)


def publish(table, policy, population):
    """Return the outcome, or why there is none."""
    try:
        return solve(Problem(table, policy, population=population), seed=0, stages=Stages())
    except Unsatisfiable as reason:
        return reason


def classes_of(outcome):
    """Return the rows of each published class."""
    shown = {}
    for group, rows in enumerate(naive.members(outcome.assignment)):
        labels = tuple(column.labels[column.index[group]] for column in outcome.values.columns)
        shown.setdefault(labels, []).extend(rows)
    return shown


def require_population(model, params, classes, people):
    """Assert what a model says of a population, by trying every person in every class."""
    regions = {labels: by_hand.region(labels, people, [None, LEAVES]) for labels in classes}
    if model == "k-map":
        assert all(len(region) >= params["k"] for region in regions.values())
    if model == "delta-presence":
        assert len(set().union(*regions.values())) == sum(map(len, regions.values()))
        assert all(len(classes[c]) <= params["dmax"] * len(regions[c]) for c in classes)


@pytest.mark.parametrize(("algorithm", "model"), exhaustive_after(len(FIRST), [*FIRST, *OTHERS]))
@settings(max_examples=3)
@given(data=st.data())
def test_a_published_class_meets_the_model(algorithm, model, data):
    params, values, holds = CASES[model]
    n = data.draw(st.sampled_from(SIZES))
    rows = data.draw(
        st.lists(
            st.tuples(st.integers(0, 9), st.none() | st.sampled_from("abcdefg"), values),
            min_size=n,
            max_size=n,
        )
    )
    table = encoded(
        {"x": [r[0] for r in rows], "y": [r[1] for r in rows]},
        {"s": [r[2] for r in rows]},
        kinds={"s": ColumnKind.INTEGER if values is NUMBER else ColumnKind.CATEGORY},
        rules={"y": {"taxonomy": "letters"}},
        taxonomies=[LETTERS],
    )
    k = min(2, getattr(ALGORITHMS[algorithm], "MAX_K", 2))
    share = data.draw(st.sampled_from([0.0, 0.3]))
    policy = policy_of(["x", "y"], ["s"], k=k, algorithm=algorithm, max_suppressed=share)
    spec = ModelSpec(model, params)
    others = [other for other in policy.models if other.name not in {model, "l-diversity"}]
    object.__setattr__(policy, "models", (*others, spec))
    person = st.tuples(st.integers(0, 9), st.none() | st.sampled_from("abcdefg"))
    people = [row[:2] for row in rows] + data.draw(st.lists(person, max_size=2 * n))
    source = pa.table({"x": [p[0] for p in people], "y": [p[1] for p in people]})
    counted = MODELS[model].scope is Scope.POPULATION
    outcome = publish(table, policy, encode_population(source, table) if counted else None)
    if isinstance(outcome, Unsatisfiable):
        assert "s" in str(outcome)
        assert outcome.hint
        return
    assert outcome.loss.n_suppressed <= share * n
    classes = classes_of(outcome)
    require_population(model, params, classes, people)
    whole = [rows[row][2] for members in classes.values() for row in members]
    for members in classes.values():
        assert len(members) >= k
        assert holds is None or holds([rows[row][2] for row in members], whole)
    assert not math.isnan(outcome.loss.ncp)
