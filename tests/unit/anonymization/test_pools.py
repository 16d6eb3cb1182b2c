"""A pool of new persons is large enough for its values, whichever they turn out to be."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbanon.anonymization.pools import draws_needed, pool_size, probability, with_effort
from dbanon.domain.policy import ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.table import TableName


def counted(shares, l, draws):
    """Return the probability by looking at every outcome of the draws; NULL is -1."""
    outcomes = [*enumerate(shares), (-1, 1 - sum(shares))]
    total = 0.0
    for drawn in product(outcomes, repeat=draws):
        values = {value for value, _ in drawn if value >= 0}
        total += np.prod([p for _, p in drawn]) if len(values) < l else 0.0
    return total


@given(
    counts=st.lists(st.integers(1, 9), min_size=3, max_size=4),
    without=st.sampled_from([0.0, 0.25, 0.5]),
    l=st.integers(2, 3),
    draws=st.integers(1, 4),
)
def test_the_probability_is_that_of_all_outcomes(counts, without, l, draws):
    shares = np.array(counts) / sum(counts) * (1 - without)
    assert counted(shares, l, draws) == pytest.approx(probability(shares, l, draws), abs=1e-12)


@given(counts=st.lists(st.integers(1, 9), min_size=4, max_size=4), draws=st.integers(4, 5))
def test_from_four_values_on_it_is_a_bound(counts, draws):
    shares = np.array(counts) / sum(counts)
    assert counted(shares, 4, draws) <= probability(shares, 4, draws) + 1e-12


@pytest.mark.parametrize(
    ("counts", "l", "wanted"),
    [
        ([1, 1], 2, 21),
        ([99, 1], 2, 1375),
        ([95, 3, 2], 2, 270),
        ([95, 3, 2], 3, 684),
        ([99, 1], 3, None),
        ([5, 5, 0], 3, None),
        ([], 1, 1),
    ],
)
def test_so_many_draws_have_too_few_values_once_in_a_million_times(counts, l, wanted):
    assert wanted == draws_needed(counts, l)


def policy(*models, **changes):
    rules = (ColumnRule("a", Role.SENSITIVE), ColumnRule("b", Role.SENSITIVE))
    specs = (ModelSpec("k-anonymity", {"k": 5}), *models)
    return Policy(TableName(None, "t"), rules, specs, **changes)


def test_a_pool_is_as_large_as_any_column_k_and_the_policy_need():
    published = {"a": [1, 1], "b": [95, 5]}
    assert 10 == pool_size(policy(), published, persons=90)
    assert 600 == pool_size(policy(pool_size=600), published, persons=90)
    two = ModelSpec("l-diversity", {"l": 2})
    assert draws_needed([95, 5], 2) == pool_size(policy(two), published, persons=90)
    of_one = ModelSpec("l-diversity", {"l": 2, "columns": ("a",)})
    assert 21 == pool_size(policy(of_one), published, persons=90)
    entropy = ModelSpec("entropy-l-diversity", {"l": 1.5, "columns": ("a",)})
    assert 210 == pool_size(policy(entropy), published, persons=90)
    assert pool_size(policy(ModelSpec("l-diversity", {"l": 3})), published, persons=90) is None
    assert 51 == pool_size(policy(of_one), published, persons=90, without=0.5)
    strict = ModelSpec("l-diversity", {"l": 2, "columns": ("a",), "multi": "strict"})
    assert 210 == pool_size(policy(strict), published, persons=90)
    alone = ModelSpec("l-diversity", {"l": 1})
    assert 10 == pool_size(policy(alone), {"a": [7], "b": [7]}, persons=90)


@pytest.mark.parametrize(
    ("persons", "wanted"), [(99, 10), (109, 10), (110, 11), (4_999, 499), (10**6, 500)]
)
def test_a_pool_has_classes_to_choose_from_if_the_table_is_large(persons, wanted):
    assert wanted == pool_size(policy(), {}, persons=persons)
    assert 7 + 10 == pool_size(policy(pool_size=17), {}, persons=persons)


def test_a_pool_beside_many_persons_is_searched_with_little_effort():
    assert {"effort": "fast"} == with_effort(policy(), 100_000).params
    assert policy() == with_effort(policy(), 99_999)


@pytest.mark.parametrize("effort", ["balanced", "best"])
def test_the_effort_that_a_policy_declares_is_also_that_of_its_pools(effort):
    declared = policy(params={"effort": effort})
    assert declared == with_effort(declared, 10_000_000)


def test_the_effort_of_pools_concerns_auto_alone():
    other = policy(algorithm="mondrian")
    assert other == with_effort(other, 10_000_000)
