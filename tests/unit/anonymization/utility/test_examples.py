"""What an analyst would count in the source, and in a release."""

import numpy as np
import pytest
from builders import encoded, policy_of

from dbanon.anonymization.problem import Problem, solve
from dbanon.anonymization.released.reading import of_outcome
from dbanon.anonymization.utility.examples import answer, questions
from dbanon.anonymization.utility.readings import readings_of
from dbanon.domain.outcomes import Stages


def readings(k):
    """Return the columns of 60 rows that are published with a k."""
    table = encoded(
        {"sex": ["F"] * 40 + ["M"] * 20, "age": [*range(20, 60), *range(20, 40)]},
        {"ill": ["flu"] * 35 + ["cold"] * 25},
    )
    policy = policy_of(["sex", "age"], sensitive=["ill"], k=k, algorithm="mondrian")
    outcome = solve(Problem(table, policy), seed=0, stages=Stages())
    return readings_of(of_outcome(table, outcome, policy))


def test_the_counts_are_those_of_the_rows():
    found = readings(5)
    asked = questions(found)
    first = {one.query: one for one in (answer(each, found, least=5) for each in asked)}
    assert 40 == first["rows with sex = F"].source
    assert first["rows with sex = F"].published == pytest.approx(40.0)
    both = first["rows with sex = F and ill = flu"]
    assert 35 == both.source
    assert both.published == pytest.approx(35.0)
    assert 3 == len(asked)


def test_a_question_of_one_candidate_can_be_put_to_another():
    fine, coarse = readings(5), readings(20)
    for each in questions(fine):
        one, other = (answer(each, found, least=0) for found in (fine, coarse))
        assert (one.query, one.source) == (other.query, other.source)
        assert np.isfinite(other.published)


def test_counts_below_the_least_one_are_not_returned():
    found = readings(5)
    hidden = [answer(each, found, least=50) for each in questions(found)]
    assert {(None, None)} == {(one.source, one.published) for one in hidden}
