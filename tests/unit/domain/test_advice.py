"""Advice follows from the loss by column, without another search."""

from dataclasses import replace

import pytest
from builders import policy_of

from dbanon.domain.assignment import LossReport
from dbanon.domain.messages import advice_on

LOSS = LossReport(n_rows=3000, n_suppressed=0, n_classes=9, smallest_class=10, ncp=0.1, columns={})


def advice(columns, **rule):
    """Return the advice for a loss by column; rule: keys of the column zip."""
    policy = policy_of(list(columns), ["pay"])
    rules = (replace(one, **rule) if one.column == "zip" else one for one in policy.columns)
    loss = replace(LOSS, columns=columns, ncp=sum(columns.values()) / max(len(columns), 1))
    return advice_on(loss, replace(policy, columns=tuple(rules)))


def test_two_columns_that_cost_much_are_named_with_the_loss_without_them():
    columns = {"a": 0.5, "zip": 0.9, "c": 0.7, "d": 0.1, "e": 0.2}
    words = "5 quasi-identifiers for 3,000 rows: without zip, c the NCP is 27%"
    assert words == advice(columns)


def test_a_column_that_costs_most_is_named_with_its_share_and_the_loss_without_it():
    words = "zip costs 70% of the loss: without it the NCP is 4.5%"
    assert words == advice({"age": 0.03, "zip": 0.21, "sex": 0.06})


@pytest.mark.parametrize(
    ("rule", "remedy"),
    [
        ({"at_least": 3}, "a finer floor loses less"),
        ({"bands": 10.0}, "a finer floor loses less"),
        ({"taxonomy": "places"}, "a taxonomy with more levels loses less"),
    ],
)
def test_a_floor_or_a_taxonomy_is_named_before_the_column_is_left_out(rule, remedy):
    columns = {"age": 0.03, "zip": 0.21, "sex": 0.06}
    assert f"zip costs 70% of the loss: {remedy}" == advice(columns, **rule)


@pytest.mark.parametrize(
    "columns",
    [
        {},
        {"age": 0.9},
        {"age": 0.3, "sex": 0.2},
        {"age": 0.0, "sex": 0.0},
        {"age": 0.001, "sex": 0.0, "zip": 0.009},
    ],
)
def test_there_is_none_for_a_small_loss_or_if_no_column_stands_out(columns):
    assert advice(columns) is None


def test_a_name_that_needs_quotes_has_them():
    columns = {"age": 0.1, "Post Code": 0.7, "sex": 0.1}
    assert advice(columns).startswith('"Post Code" costs 78% of the loss')
