"""The minimality attack (Wong et al., VLDB 2007): to reason back from why groups were merged."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from builders import encoded, policy_of, tables
from hypothesis import given, settings
from hypothesis import strategies as st

from dbanon.anonymization.interfaces import Requirement
from dbanon.anonymization.problem import Problem, solve
from dbanon.anonymization.registry import ALGORITHMS
from dbanon.domain.outcomes import Stages
from dbanon.domain.policy import ModelSpec

# Two persons of one quasi-identifier and five of another, of whom any two have the disease. What
# the others have differs, so that two values in a class mean that not both are ill.
PLACES = ["q1"] * 2 + ["q2"] * 5
WORLDS = [set(ill) for ill in combinations(range(7), 2)]
BOTH = {0, 1}


def classes(groups, ill):
    """Return what readers see of groups: the places in each, its rows, and how many are ill."""
    return Counter(
        (tuple(sorted({PLACES[row] for row in rows})), len(rows), len(ill & set(rows)))
        for rows in groups
    )


def suspicion(publish):
    """Return how sure the attacker is that the first person is ill, and what the class alone says.

    The attacker knows every quasi-identifier, the method, and what it published when both persons
    of the first place were ill; every world that would look the same is as likely as another.
    """
    seen = classes(publish(BOTH), BOTH)
    alike = [ill for ill in WORLDS if classes(publish(ill), ill) == seen]
    (mine,) = (rows for rows in publish(BOTH) if 0 in rows)
    told = Fraction(len(BOTH & set(mine)), len(mine))
    return Fraction(sum(0 in ill for ill in alike), len(alike)), told


def merged_only_when_forced(ill):
    """Publish each place by itself, unless more than half of a class would be ill."""
    first, second = [0, 1], [2, 3, 4, 5, 6]
    if not ill >= set(first):
        return [first, second]
    return [[*first, *second[:2]], second[2:]]


def outcome_of(ill, *, k, l):
    table = encoded(
        {"place": PLACES},
        {"disease": ["ill" if row in ill else f"other {row}" for row in range(7)]},
    )
    policy = policy_of(["place"], ["disease"], k=k, l=l, algorithm="mdav")
    return solve(Problem(table, policy), seed=0, stages=Stages())


def ours(**asked):
    """Return how the program makes groups."""

    def publish(ill):
        assignment = outcome_of(ill, **asked).assignment
        return [np.flatnonzero(assignment.group == g).tolist() for g in range(assignment.n_groups)]

    return publish


def test_merging_only_when_forced_tells_who_is_ill():
    assert (Fraction(1), Fraction(1, 2)) == suspicion(merged_only_when_forced)


@pytest.mark.parametrize("k", [2, 3, 7])
def test_groups_that_ask_for_k_alone_tell_no_more_than_their_values(k):
    sure, told = suspicion(ours(k=k, l=1))
    assert told == sure
    assert not outcome_of(BOTH, k=k, l=1).loss.sensitive_aware


def test_groups_that_ask_for_diversity_tell_more_and_say_so():
    assert (Fraction(1), Fraction(1, 2)) == suspicion(ours(k=2, l=2))
    # Nothing was merged here, and that tells something, too.
    for ill in (BOTH, {0, 6}):
        assert outcome_of(ill, k=2, l=2).loss.sensitive_aware


FOUR = encoded({"age": [1, 2, 3, 4] * 4}, {"disease": list("abcd") * 4})


@pytest.mark.parametrize(
    ("model", "aware"),
    [
        (ModelSpec("t-closeness", {"t": 0.9}), True),
        (ModelSpec("l-diversity", {"l": 1}), False),
        (ModelSpec("entropy-l-diversity", {"l": 1.5}), True),
    ],
)
def test_every_model_of_sensitive_values_is_told(model, aware):
    policy = policy_of(["age"], ["disease"])
    policy = replace(policy, models=(policy.models[0], model))
    assert aware is solve(Problem(FOUR, policy), seed=0, stages=Stages()).loss.sensitive_aware


@pytest.mark.parametrize("l", [1, 2])
def test_it_is_told_of_persons_with_several_rows(l):
    policy, persons = policy_of(["age"], ["disease"], l=l), np.arange(16, dtype=np.int32) % 4
    outcome = solve(Problem(FOUR, policy, persons), seed=0, stages=Stages())
    assert (l > 1) is outcome.loss.sensitive_aware


@pytest.mark.parametrize("name", ALGORITHMS)
@settings(max_examples=5)
@given(data=st.data())
def test_no_algorithm_looks_at_sensitive_values_that_nothing_is_asked_of(name, data):
    table = data.draw(tables(rows=st.integers(6, 20)))
    order = data.draw(st.permutations(range(table.n_rows)))
    other = replace(table, sensitive=table.sensitive[list(order)])
    algorithm, requirement = ALGORITHMS[name](), Requirement(2, 1, 0.1)
    before = algorithm.assign(table, requirement, seed=5)
    after = algorithm.assign(other, requirement, seed=5)
    assert before.group.tolist() == after.group.tolist()
