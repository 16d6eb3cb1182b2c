import numpy as np
import pytest
from builders import encoded, policy_of

from dbanon.anonymization.problem import Problem, solve
from dbanon.domain.errors import PolicyError
from dbanon.domain.outcomes import Stages
from dbanon.domain.policy import of_buckets

TABLE = encoded({"age": list(range(9)), "sex": list("FMFMFMFMF")}, {"disease": list("aabbccdde")})


DRAWS = np.random.default_rng(0).integers(2**63, size=(9, 3)).astype(np.uint64)


def run(subjects=None):
    policy = of_buckets(policy_of(["age", "sex"], ["disease"], k=1, l=3, anatomy=True))
    return solve(Problem(TABLE, policy, subjects, DRAWS), seed=0, stages=Stages())


def test_a_bucket_publishes_its_number_and_nothing_is_lost():
    outcome = run()
    (number,) = outcome.values.columns
    assert ("bucket", ("1", "2", "3")) == (number.name, number.labels)
    assert [0, 1, 2] == number.index.tolist()
    loss = outcome.loss
    assert (9, 0, 3, 3) == (loss.n_rows, loss.n_suppressed, loss.n_classes, loss.smallest_class)
    assert ({"age": 0.0, "sex": 0.0}, 0.0) == (loss.columns, loss.ncp)
    for group in range(3):
        held = TABLE.sensitive[outcome.assignment.group == group, 0].tolist()
        assert len(held) == len(set(held)) == 3


def test_rows_are_dealt_only_if_each_is_of_a_person_of_its_own():
    alone = run(np.arange(9, dtype=np.int32))
    assert run().assignment.group.tolist() == alone.assignment.group.tolist()
    with pytest.raises(PolicyError, match="some person has several rows") as caught:
        run(np.array([0, 0, *range(1, 8)], np.int32))
    assert "one row a person" in caught.value.hint
