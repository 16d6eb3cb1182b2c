"""Risks of tables that were counted by hand."""

from dataclasses import replace
from math import log

import naive.risk
import numpy as np
import pytest
from builders import encoded, grouped, policy_of
from hypothesis import given
from hypothesis import strategies as st

from dbanon.anonymization.risk.assessment import (
    BY_WEIGHTS,
    RELATION,
    UNKNOWN,
    PopulationCounts,
    of_counts,
    of_sample,
    of_weights,
    risk,
    risks,
    size_bands,
)
from dbanon.domain.report import Attacker, SizeBand


def of(sizes, *, threshold=0.2, **options):
    found = risks(np.array(sizes, np.int64), threshold=threshold, **options)
    return {one.attacker: (one.highest, one.average, one.above) for one in found}


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        # three classes of four: the hospital of golden 6.4
        ([4, 4, 4], (1 / 4, 3 / 12, 1.0)),
        # 10 records: one is alone, 2 share, 7 share; 1 + 2 of them are over 1/5
        ([1, 2, 7], (1.0, 3 / 10, 3 / 10)),
        # 20 records in 5 and 15: 1/5 is not over 0.2
        ([5, 15], (1 / 5, 2 / 20, 0.0)),
    ],
)
def test_risks_of_tables_counted_by_hand(sizes, expected):
    found = of(sizes)
    assert set(Attacker) == set(found)
    for figures in found.values():
        assert expected == pytest.approx(figures)


def test_a_population_lowers_what_the_journalist_finds():
    """Classes of 2 and 3 records, of whom the population has 10 and 3: (2/10 + 3/3) / 5."""
    sizes = np.array([2, 3])
    found = of(sizes, population=of_counts(np.array([10, 3]), sizes), basis="people")
    assert (1 / 2, 2 / 5, 1.0) == pytest.approx(found[Attacker.PROSECUTOR])
    assert (1 / 3, 6 / 25, 3 / 5) == pytest.approx(found[Attacker.JOURNALIST])
    assert found[Attacker.JOURNALIST] == found[Attacker.MARKETER]
    lacking = of_counts(np.array([1]), np.array([4]))
    assert [1 / 4] == lacking.tolist()  # a population that lacks some of the records


def test_what_a_risk_is_counted_among_is_said():
    assert [RELATION, UNKNOWN, UNKNOWN] == [
        one.basis for one in risks(np.array([3]), threshold=0.2)
    ]


def test_a_population_that_is_only_named_is_said_to_be_counted_later():
    assert UNKNOWN == PopulationCounts().uncounted
    assert "public.everybody is counted once" in PopulationCounts(name="public.everybody").uncounted


def test_nothing_published_has_no_risk():
    assert {(0.0, 0.0, 0.0)} == set(of([]).values())
    assert () == size_bands(np.array([], np.int64))


@pytest.mark.parametrize("p", [0.01, 0.1, 0.5, 0.9])
def test_the_estimate_of_a_sample_has_the_published_closed_forms(p):
    """Polettini, 2003, for one, two and three records."""
    q = 1 - p
    expected = [
        p / q * log(1 / p),
        p / q**2 * (p * log(p) + q),
        p / (2 * q**3) * (q * (3 * q - 2) - 2 * p**2 * log(p)),
    ]
    assert expected == pytest.approx(of_sample(np.array([1, 2, 3]), p).tolist(), rel=1e-9)


@given(st.integers(1, 40), st.floats(0.02, 0.95))
def test_the_estimate_of_a_sample_equals_its_twin(f, p):
    (found,) = of_sample(np.array([f]), p)
    assert naive.risk.expected_inverse(f, p) == pytest.approx(found, rel=1e-6)
    assert p / f <= found <= 1 / f + 1e-12


def test_a_sample_that_is_all_has_the_prosecutors_risk():
    assert [1 / 2, 1 / 7] == pytest.approx(of_sample(np.array([2, 7]), 1.0).tolist(), rel=1e-9)


@given(st.lists(st.integers(1, 2000)))
def test_bands_hold_every_class_once(sizes):
    bands = size_bands(np.array(sizes, np.int64))
    assert (len(sizes), sum(sizes)) == (
        sum(band.classes for band in bands),
        sum(band.rows for band in bands),
    )
    for band in bands:
        inside = [s for s in sizes if band.least <= s <= (band.most or s)]
        assert SizeBand(band.least, band.most, len(inside), sum(inside)) == band


def test_a_population_has_the_records_of_a_class_at_least():
    found = of_counts(np.array([5, 9, 7, 11, 4]), np.array([5, 5, 6, 6, 7]))
    assert [5, 9, 7, 11, 7] == pytest.approx((1 / found).tolist())


@pytest.mark.parametrize(("achieved", "highest"), [(None, 1 / 4), (2.0, 1 / 2), (4.0, 1 / 4)])
def test_no_class_is_taken_to_have_more_persons_than_were_counted_of_the_smallest(
    achieved, highest
):
    policy = policy_of(["sex"], [], k=2)
    released = grouped(encoded({"sex": ["f"] * 4 + ["m"] * 6}, {}), [0] * 4 + [1] * 6, policy)
    found = risk(released, PopulationCounts(), threshold=0.2, achieved=achieved).reidentification
    assert {highest} == {one.highest for one in found}


def weighted(sexes, weights):
    """Return a release with a class of each sex, of rows that stand for so many persons."""
    table = replace(encoded({"sex": [*sexes]}), weights=np.array(weights))
    return grouped(table, ["fm".index(sex) for sex in sexes], policy_of(["sex"], k=2))


def journalist(released, everybody=None, **options):
    found = risk(
        released, everybody or PopulationCounts(), threshold=0.2, **options
    ).reidentification
    assert [Attacker.JOURNALIST, Attacker.MARKETER] == [one.attacker for one in found[1:]]
    return found[1]


def test_a_class_stands_for_the_sum_of_the_weights_of_its_rows():
    found = journalist(weighted("fffmmmm", [1.5, 2.5, 4.0, 10.0, 10.0, 20.0, 40.0]))
    few, many = naive.risk.expected_inverse(3, 3 / 8), naive.risk.expected_inverse(4, 4 / 80)
    assert (few, (3 * few + 4 * many) / 7) == pytest.approx((found.highest, found.average))
    assert BY_WEIGHTS == found.basis


def test_weights_of_rows_that_stand_for_fewer_than_themselves_lower_no_risk():
    found = journalist(weighted("ffffmmmm", [0.5] * 8))
    assert (1 / 4, 1 / 4) == pytest.approx((found.highest, found.average))


def test_what_weights_estimate_is_exact():
    found = of_weights(np.array([54.0, 2.0]), np.array([5, 5]))
    assert [naive.risk.expected_inverse(5, 5 / 54), 0.2] == pytest.approx(found.tolist())


def test_a_population_that_is_counted_is_preferred_to_weights_and_weights_to_its_size():
    released = weighted("fffmmmm", [9.0] * 7)
    counted = PopulationCounts(counted=released, name="people")
    assert "people" == journalist(released, counted).basis
    assert BY_WEIGHTS == journalist(released, PopulationCounts(size=1_000)).basis


def test_weights_of_classes_whose_labels_rule_out_nobody_are_not_used():
    table = encoded({"age": [20, 21, 22, 40, 41, 42]}, rules={"age": {"recoding": "mean"}})
    table = replace(table, weights=np.full(6, 9.0))
    released = grouped(table, [0, 0, 0, 1, 1, 1], policy_of(["age"], k=3))
    assert UNKNOWN == journalist(released).basis
