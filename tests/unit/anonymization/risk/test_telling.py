"""What reports tell of counts: as an attacker, who has the release, subtracts and divides."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbanon.anonymization.risk.telling import told_risk, told_utility
from dbanon.domain.assignment import LossReport
from dbanon.domain.report import Attack, Classification, Risk, Uniqueness, UniqueSet, Utility
from dbanon.domain.report.losses import told_loss

K = 5


def loss(published, left_out, **counts):
    metrics = {"suppressed": left_out / (published + left_out), "c-avg": published / 4}
    return LossReport(published + left_out, left_out, 4, 5, 0.1, {"age": 0.1}, metrics, **counts)


@given(st.integers(20, 200), st.integers(0, 12), st.integers(0, 12), st.integers(0, 12))
def test_no_two_counts_of_a_loss_differ_by_fewer_persons_than_k(published, left_out, part, change):
    counts = {"n_sampled": min(part, left_out), "n_filtered": part}
    told = told_loss(loss(published, left_out, **counts), least=K, shown=published - change)
    known = [published - change, told.n_rows, told.n_published]
    numbers = [one for one in known if isinstance(one, int)]
    if isinstance(told.n_rows, int) and isinstance(told.n_suppressed, int):
        numbers.append(told.n_rows - told.n_suppressed)
    apart = {abs(a - b) for a in numbers for b in numbers}
    assert apart.isdisjoint(range(1, K))
    parts = [told.n_suppressed, told.n_sampled, told.n_filtered]
    assert {one for one in parts if isinstance(one, int)}.isdisjoint(range(1, K))
    if isinstance(told.n_suppressed, int) and isinstance(told.n_sampled, int):
        assert told.n_suppressed - told.n_sampled not in range(1, K)


def test_few_rows_left_out_are_told_by_no_other_figure():
    few = told_loss(loss(100, 3, n_sampled=2, n_filtered=4), least=K)
    assert ("fewer than 5", "fewer than 5 besides those published") == (
        few.n_suppressed,
        few.n_rows,
    )
    assert ("all but fewer than 5", "fewer than 5", {}) == (
        few.n_sampled,
        few.n_filtered,
        few.metrics,
    )
    lost = (replace(loss(100, n), ncp=(9.7 + n) / (100 + n)) for n in (1, 2))
    assert [0.097, 0.097] == pytest.approx([told_loss(one, least=K).ncp for one in lost])
    many = told_loss(loss(100, 7), least=K)
    assert (107, 100, 7) == (many.n_rows, many.n_published, many.n_suppressed)
    assert many.metrics


def test_few_rows_that_a_live_view_hides_are_told_by_no_other_figure():
    told = told_loss(loss(100, 0), least=K, shown=98)
    figures = (told.n_rows, told.n_published)
    assert [str, str] == [type(one) for one in figures]
    assert {} == told.metrics


def attack(tried, right, **changes):
    of = {"baseline": 1 / tried, "expected": None, **changes}
    return Attack("a", None, tried, 3, right / tried, 0.0, 1.0, words="", **of)


@pytest.mark.parametrize(("tried", "right"), [(7_874, 2), (7_874, 7_872), (103, 1), (6, 1)])
def test_of_an_attack_nobody_gets_how_few_it_is_right_or_wrong_of(tried, right):
    (told,) = told_risk(Risk((), (), attacks=(attack(tried, right),)), n_rows=1, least=K).attacks
    assert told.rate >= right / tried
    found = told.rate * told.tried
    assert found > K - 1e-3
    assert told.tried - found < 1e-3 or told.tried - found > K - 1e-3
    neighbours = attack(tried + 1, right)
    (other,) = told_risk(Risk((), (), attacks=(neighbours,)), n_rows=1, least=K).attacks
    assert (told.tried, told.baseline) == (other.tried, other.baseline) or tried == 6


def test_a_rate_is_not_rounded_beyond_its_bound():
    risk = Risk((), (), attacks=(attack(70, 14, expected=0.2), attack(70, 15, expected=0.2)))
    within, beyond = told_risk(risk, n_rows=1, least=K).attacks
    assert 0.2 == within.rate
    assert beyond.rate > 0.2


def test_shares_have_no_denominator_but_what_is_told():
    risk = Risk(
        *((), ()),
        uniqueness=(Uniqueness("zayatz", 20_000, 203 / 20_000, 0.5),),
        unique_sets=(UniqueSet(("age",), 57, 57 / 203),),
    )
    told = told_risk(risk, n_rows=203, least=K)
    assert (57 / 205, 205 / 20_000) == (told.unique_sets[0].share, told.uniqueness[0].sampled)
    used = Utility(
        classifications=(Classification("a", "b", (2 / 67, 66 / 67, 0.5), None, 134, 67),)
    )
    (found,) = told_utility(used, least=K).classifications
    assert (135, 65) == (found.rows, found.tested)
    assert (0.0, 1.0) == found.accuracy[:2]


def test_where_nothing_promises_k_all_is_told():
    risk = Risk((), (), attacks=(attack(70, 2),))
    assert risk == told_risk(risk, n_rows=70, least=1)
    assert 3 == told_loss(loss(100, 3), least=1).n_suppressed
