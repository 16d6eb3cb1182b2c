"""What a report says is lost does not depend on how far values reach that nobody sees."""

import numpy as np
import pytest
from builders import encoded, grouped, policy_of

from dbanon.anonymization.loss.metrics import publication, report
from dbanon.anonymization.pipeline import published_values
from dbanon.anonymization.utility.losses import on_shown_scale
from dbanon.domain.assignment import Assignment

AGES = [20, 21, 23, 24, 30, 34, 36, 39, 40, 41, 45, 48]
GROUPS = [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]
LAST = [48, 49, 60, 117]
CASES = {
    "who is left out": ({}, -1),
    "who is left out of sets": ({"recoding": "set"}, -1),
    "who is in an open band": ({"top": 40.0}, 2),
    "who is in an open band of others": ({"top": 40.0, "bands": 5.0}, 2),
}


def losses(rule, ages, groups, *, least):
    """Return what was lost as it was searched, and as it is told."""
    columns = {"age": ages, "zip": [i % 3 for i in range(len(ages))]}
    rules = {"age": rule, "zip": {"weight": 2.0}}
    table, policy = encoded(columns, rules=rules), policy_of(columns, rules=rules)
    assignment = Assignment(np.array(groups, np.int32), max(groups) + 1)
    found = report(publication(table, assignment, published_values(table, assignment), k=2), {})
    return found, on_shown_scale(found, grouped(table, groups, policy), least=least)


@pytest.mark.parametrize("case", CASES)
def test_a_loss_does_not_tell_the_value_of_one(case):
    rule, group = CASES[case]
    found = [losses(rule, [*AGES, last], [*GROUPS, group], least=4) for last in LAST]
    searched, told = ([one.columns["age"] for one in each] for each in zip(*found, strict=True))
    assert len({*searched}) > 1
    assert [told[0]] * len(told) == pytest.approx(told)


def test_of_means_a_loss_is_told_in_steps_of_k_rows():
    _, told = losses({"recoding": "mean"}, AGES, GROUPS, least=5)
    assert pytest.approx(round(told.columns["age"] * 12 / 5) * 5 / 12) == told.columns["age"]


@pytest.mark.parametrize("rule", [{}, {"recoding": "set"}, {"recoding": "mean"}, {"bands": 5.0}])
def test_where_all_ends_are_shown_a_loss_is_told_as_it_is(rule):
    searched, told = losses(rule, AGES, GROUPS, least=1)
    assert searched.columns == pytest.approx(told.columns)
    assert (searched.ncp, searched.weighted_ncp) == pytest.approx((told.ncp, told.weighted_ncp))
