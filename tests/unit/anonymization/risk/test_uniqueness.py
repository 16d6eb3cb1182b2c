"""Estimates of how many of a population are unique."""

import csv
import gzip
from collections import Counter
from math import exp, lgamma, log

import naive.risk
import numpy as np
import pytest

from dbanon import resources
from dbanon.anonymization.risk.uniqueness import (
    PITMAN,
    SNB,
    ZAYATZ,
    Sizes,
    _likeliest,
    pitman,
    shlosser,
    sizes_of,
    slide,
    slide_negative_binomial,
    uniqueness,
    zayatz,
)

HAND = Sizes(np.array([1.0, 2.0]), np.array([3.0, 1.0]))
"""Five rows in three classes of one and one of two, of ten persons."""


@pytest.fixture(scope="module")
def adult():
    """Return the sizes of the classes of all nine columns of Adult, 30,162 rows."""
    path = resources.data("adult.csv.gz")
    with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
        rows = [tuple(row) for row in csv.reader(lines, delimiter=";")][1:]
    return np.array([*Counter(rows).values()])


def shares(members, population):
    return {one.estimator: one.share for one in uniqueness(members, population)}


def test_zayatz_by_hand():
    """3 (3/4 1/2) / (3/4 1/2 + 1/4 5/9) / (1/2) of 10: one of a pair is drawn with 5/9."""
    assert zayatz(HAND, 10) == pytest.approx(81 / 185)


def test_zayatz_has_the_values_that_arx_tests_itself_by(adult):
    """TestRiskMetrics of ARX 3.9, on the same table: a tenth and a fifth of the population."""
    assert zayatz(sizes_of(adult), 301_620) == pytest.approx(0.3207402393466189, rel=1e-9)
    assert zayatz(sizes_of(adult), 150_810) == pytest.approx(0.3577099234829125, rel=1e-9)


@pytest.mark.parametrize(
    ("population", "expected"), [(301_620, 0.27684993883653597), (3_016_200, 0.1446083531167384)]
)
def test_pitman_is_as_likely_as_that_of_arx(adult, population, expected):
    """ARX takes the limit Gamma(theta + 1) / Gamma(theta + alpha) N^alpha for what is expected."""
    theta, alpha = _likeliest(sizes_of(adult))
    limit = exp(lgamma(theta + 1) - lgamma(theta + alpha) + alpha * log(population)) / population
    assert limit == pytest.approx(expected, rel=1e-6)
    assert pitman(sizes_of(adult), population) == pytest.approx(limit, rel=4e-3)


@pytest.mark.parametrize(("theta", "alpha"), [(3.0, 0.4), (40.0, 0.1), (0.5, 0.9)])
def test_pitman_expects_what_adding_persons_one_by_one_does(monkeypatch, theta, alpha):
    module = "dbanon.anonymization.risk.uniqueness._likeliest"
    monkeypatch.setattr(module, lambda _: (theta, alpha))
    expected = naive.risk.pitman_uniques(theta, alpha, 200) / 200
    assert pitman(HAND, 200) == pytest.approx(expected, rel=1e-9)


def test_no_parameters_near_by_are_likelier():
    sizes = sizes_of(np.array([1] * 40 + [2] * 12 + [3] * 5 + [9, 30]))

    def likelihood(theta, alpha):
        n, u = int(sizes.rows), int(sizes.classes)
        total = sum(log(theta + i * alpha) for i in range(1, u))
        total -= sum(log(theta + i) for i in range(1, n))
        return total + sum(
            count * log(i - alpha)
            for size, count in zip(sizes.size.astype(int), sizes.count, strict=True)
            for i in range(1, size)
        )

    theta, alpha = _likeliest(sizes)
    best = likelihood(theta, alpha)
    for more in (0.9, 0.99, 1.01, 1.1):
        assert likelihood(theta * more, alpha) < best
        assert likelihood(theta, alpha * more) < best


def test_shlosser_by_hand():
    """4 + 3 (1.125 / 1.0625) (1.75 / 2)^2."""
    assert shlosser(HAND, 0.5) == pytest.approx(4 + 3 * 1.125 / 1.0625 * 0.765625)


@pytest.mark.parametrize(
    ("alpha", "beta", "f"), [(0.5, 0.3, 0.1), (2.0, 0.6, 0.3), (0.05, 0.02, 0.2)]
)
def test_a_slide_negative_binomial_is_found_by_its_sample(alpha, beta, f):
    ones, twos = naive.risk.slide_shares(alpha, beta, f)
    found = slide(1000.0, f, unique=1000 * ones, pairs=1000 * twos)
    assert found == pytest.approx(beta**alpha, rel=1e-4)


@pytest.mark.exhaustive
def test_a_sample_that_no_slide_negative_binomial_explains_has_no_answer():
    assert slide(10.0, 0.5, unique=9.0, pairs=50.0) is None


@pytest.mark.parametrize("sampled", [0.1, 0.3])
def test_a_sample_tells_of_its_population(adult, sampled):
    """What is true of Adult is known: 51.4 % are unique. Half of it is not said to be unique."""
    truth = (adult == 1).sum() / adult.sum()
    person = np.repeat(np.arange(len(adult)), adult)
    drawn = np.random.default_rng(0).choice(person, int(sampled * len(person)), replace=False)
    found = shares(np.bincount(drawn), int(adult.sum()))
    assert {PITMAN, ZAYATZ, SNB} == set(found)
    assert found[PITMAN] == pytest.approx(truth, abs=0.03)
    assert found[SNB] <= found[ZAYATZ]
    assert truth - 0.05 < found[SNB] < truth + 0.2


def test_of_all_persons_nothing_is_estimated():
    members = np.array([1, 1, 2])
    assert dict.fromkeys((PITMAN, ZAYATZ, SNB), 0.5) == shares(members, 4)
    assert () == uniqueness(members, 3)  # smaller than its own sample
    assert () == uniqueness(np.zeros(0, np.int64), 100)


def test_extreme_samples_have_an_answer():
    assert 1.0 == shares(np.ones(50, np.int64), 1000)[PITMAN]
    assert {PITMAN: 0.0, ZAYATZ: 0.0, SNB: 0.0} == shares(np.array([50]), 1000)
    assert 0.0 == slide_negative_binomial(sizes_of(np.array([5, 5])), 100)
    for one in uniqueness(np.array([1] * 30 + [2] * 3), 10**9):
        assert 0 <= one.share <= 1
