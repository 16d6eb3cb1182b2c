from dataclasses import replace

import numpy as np
import pytest
from builders import encoded, policy_of

from dbanon.anonymization.estimate import ncp_of_search, neighbours, parts
from dbanon.anonymization.problem import Problem, solve
from dbanon.domain.outcomes import Stages


def problem(rows, **changes):
    chance = np.random.default_rng(3)
    columns = {name: chance.integers(0, 500, rows).tolist() for name in "ab"}
    values = {"s": chance.choice(list("uvwxyz"), rows).tolist()}
    policy = policy_of(columns, values, k=5, l=3, **changes)
    return Problem(encoded(columns, values), policy)


def test_neighbours_are_close_together():
    codes = np.random.default_rng(1).integers(0, 1000, (2, 5_000)).astype(np.int32)
    rows = neighbours(codes, 700, np.random.default_rng(0))
    assert 350 <= len(rows) <= 700
    assert np.ptp(codes[:, rows], axis=1).max() < 800
    assert len(rows) == len(np.unique(rows))


def test_equal_rows_are_halved_too():
    rows = neighbours([np.zeros(100, np.int32)], 10, np.random.default_rng(0))
    assert 5 <= len(rows) <= 10


def test_few_rows_are_one_part():
    few = problem(300)
    assert [few] == parts(few)


@pytest.mark.parametrize("algorithm", ["auto", "mondrian"])
def test_the_estimate_of_many_rows_is_about_their_loss(algorithm):
    many = problem(12_000, algorithm=algorithm)
    sampled = parts(many)
    assert sum(one.encoded.n_rows for one in sampled) <= 10_000
    plain = replace(many, policy=replace(many.policy, algorithm="mondrian"))
    assert pytest.approx(solve(plain, seed=0, stages=Stages()).loss.ncp, rel=0.2) == ncp_of_search(
        sampled
    )


def test_all_rows_of_a_person_are_in_a_part():
    many = problem(24_000)
    subjects = np.repeat(np.arange(12_000, dtype=np.int32), 2)
    for one in parts(replace(many, subjects=subjects)):
        assert {2} == set(np.bincount(one.subjects).tolist())


def test_what_cannot_be_met_has_no_estimate():
    few = problem(4)
    assert ncp_of_search(parts(few)) is None
    assert ncp_of_search([]) is None
