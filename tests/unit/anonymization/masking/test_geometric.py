"""Noise for counts against its distribution."""

from collections import Counter
from fractions import Fraction
from math import exp

import pytest

from dbanon.anonymization.masking.noise import draw, probability, within


def test_the_reference_gives_these_probabilities():
    assert pytest.approx(0.462117, abs=1e-6) == probability(0, epsilon=1.0)
    assert pytest.approx(0.170003, abs=1e-6) == probability(1, epsilon=1.0)
    assert probability(-1, epsilon=1.0) == probability(1, epsilon=1.0)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0])
def test_probabilities_add_up_and_one_person_changes_them_by_the_factor(epsilon):
    sizes = range(-400, 401)
    assert pytest.approx(1.0) == sum(probability(z, epsilon=epsilon) for z in sizes)
    for z in range(-20, 20):
        ratio = probability(z, epsilon=epsilon) / probability(z + 1, epsilon=epsilon)
        assert exp(-epsilon) - 1e-9 <= ratio <= exp(epsilon) + 1e-9


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_a_share_of_the_noise_is_within_the_bound_and_not_within_less(epsilon):
    bound = within(0.95, epsilon=epsilon)
    inside = sum(probability(z, epsilon=epsilon) for z in range(-bound, bound + 1))
    less = sum(probability(z, epsilon=epsilon) for z in range(-bound + 1, bound))
    assert less < 0.95 <= inside


@pytest.mark.exhaustive
@pytest.mark.parametrize("epsilon", ["1", "0.5", "0.123", "3"])
def test_noise_is_drawn_as_often_as_its_probability_says(epsilon):
    fraction, n = Fraction(epsilon), 20_000
    found = Counter(draw(fraction) for _ in range(n))
    for z in (-2, -1, 0, 1, 2):
        share = probability(z, epsilon=float(fraction))
        deviation = (share * (1 - share) / n) ** 0.5
        assert abs(found[z] / n - share) < 6 * deviation  # fails once in a hundred million runs
    mean = sum(z * times for z, times in found.items()) / n
    g = exp(-float(fraction))
    assert abs(mean) < 6 * (2 * g / (1 - g) ** 2 / n) ** 0.5
