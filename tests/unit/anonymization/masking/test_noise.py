import numpy as np
import pytest

from dbanon.anonymization.interfaces import Rows
from dbanon.anonymization.masking.noise import CorrelatedNoise, Kim, Noise, Sullivan
from dbanon.domain.errors import PolicyError

SIGMA = np.array([[4.0, 1.2], [1.2, 1.0]])
N = 200_000
CLOSE = 0.03  # four standard errors of the covariances of 200,000 rows


def rows_of(n, *, seed=0):
    source = np.random.default_rng(seed)
    return Rows(np.arange(n), lambda count, *_: source.uniform(1e-12, 1 - 1e-12, (n, count)), None)


@pytest.fixture(scope="module")
def values():
    return np.random.default_rng(5).multivariate_normal([50.0, -3.0], SIGMA, N)


def covariance(masked):
    return np.cov(masked, rowvar=False)


def test_uncorrelated_noise_leaves_covariances(values):
    parts = [Noise(0.3).mask(values[:, [j]], rows_of(N, seed=j)) for j in range(2)]
    masked = np.hstack(parts)
    assert covariance(masked) == pytest.approx(np.array([[5.2, 1.2], [1.2, 1.3]]), abs=CLOSE)
    assert np.corrcoef(masked.T)[0, 1] == pytest.approx(0.4615, abs=0.01)
    assert masked.mean(axis=0) == pytest.approx(values.mean(axis=0), abs=0.02)


def test_correlated_noise_leaves_correlations(values):
    masked = CorrelatedNoise(0.3).mask(values, rows_of(N))
    assert covariance(masked) == pytest.approx(1.3 * SIGMA, abs=2 * CLOSE)
    assert np.corrcoef(masked.T)[0, 1] == pytest.approx(0.6, abs=0.01)


def test_kim_leaves_covariances_and_means(values):
    masked = Kim(0.3).mask(values, rows_of(N))
    assert covariance(masked) == pytest.approx(SIGMA, abs=CLOSE)
    assert masked.mean(axis=0) == pytest.approx(values.mean(axis=0), abs=0.02)
    assert abs(np.corrcoef(masked[:, 0], values[:, 0])[0, 1]) < 0.95


def test_kim_leaves_those_of_the_rows_exactly():
    values = np.random.default_rng(1).multivariate_normal([1.0, 2.0], SIGMA, 50)
    masked = Kim(0.3, exact=True).mask(values, rows_of(50))
    assert covariance(masked) == pytest.approx(covariance(values))
    assert masked.mean(axis=0) == pytest.approx(values.mean(axis=0))


def test_sullivan_leaves_the_values_of_each_column(values):
    few = np.column_stack([np.rint(values[:5000, 0]), np.exp(values[:5000, 1])])
    masked = Sullivan(0.3).mask(few, rows_of(5000))
    assert np.sort(few, axis=0).tolist() == np.sort(masked, axis=0).tolist()
    before, after = (
        np.corrcoef(np.argsort(np.argsort(x, axis=0), axis=0).T) for x in (few, masked)
    )
    assert after[0, 1] == pytest.approx(before[0, 1], abs=0.05)
    assert 0.5 < np.corrcoef(few[:, 0], masked[:, 0])[0, 1] < 0.95


@pytest.mark.parametrize("method", [Noise, CorrelatedNoise, Kim, Sullivan])
def test_what_does_not_vary_stays(method):
    values = np.full((6, 1), 7.0)
    assert values.tolist() == method(0.5).mask(values, rows_of(6)).tolist()


@pytest.mark.parametrize("method", [CorrelatedNoise, Kim])
def test_noise_of_columns_that_are_one_is_one(method):
    column = np.random.default_rng(2).normal(size=400)
    masked = method(0.3).mask(np.column_stack([column, 2 * column + 1]), rows_of(400))
    assert np.corrcoef(masked.T)[0, 1] == pytest.approx(1.0)


@pytest.mark.parametrize("method", [Noise, CorrelatedNoise, Kim, Sullivan])
def test_no_noise_is_refused(method):
    with pytest.raises(PolicyError, match="more than 0"):
        method(0.0)


def test_the_scale_of_noise_is_part_of_what_it_is_drawn_by():
    asked = []

    def draw(count, salt, column=None):
        asked.append(salt)
        return np.full((3, count), 0.5)

    values = np.array([[0.0], [10.0], [20.0]])
    Noise(0.3).mask(values, Rows(np.arange(3), draw, None))
    Noise(0.3).mask(values * 1.001, Rows(np.arange(3), draw, None))
    Noise(0.3).mask(values * 1.1, Rows(np.arange(3), draw, None))
    assert ["4.5", "4.5", "4.9"] == asked


def keyed(values, asked=None):
    """Return rows whose chance belongs to their values and to what it is asked by."""

    def draw(count, salt, column=None):
        if asked is not None:
            asked.append(salt)
        kept = values if column is None else values[:, [column]]
        seeds = [hash((salt, column, *row)) % 2**32 for row in kept.tolist()]
        return np.array([np.random.default_rng(seed).uniform(size=count) for seed in seeds])

    return Rows(np.arange(len(values)), draw, None)


@pytest.mark.parametrize("method", [CorrelatedNoise, Kim])
def test_noise_that_stays_has_the_scale_that_it_had(method):
    """Else who knows one value of two releases solves for all of them."""
    values = np.random.default_rng(4).multivariate_normal([50.0, -3.0], SIGMA, 400)
    asked = []
    for factor in (1.0, 1.0001, 1.2):
        method(0.3).mask(values * factor, keyed(values * factor, asked))
    assert asked[:2] == asked[2:4]
    assert asked[2] != asked[4]
    one, other = (
        CorrelatedNoise(0.3).mask(v, keyed(values)) - v for v in (values, values * 1.0001)
    )
    assert one == pytest.approx(other, abs=1e-9)


def test_noise_of_a_value_stays_when_other_columns_change():
    values = np.random.default_rng(6).normal(size=(500, 2))
    masked = CorrelatedNoise(0.3).mask(values, keyed(values))
    values[:20, 1] += 0.01
    again = CorrelatedNoise(0.3).mask(values, keyed(values))
    assert masked[:, 0].tolist() == again[:, 0].tolist()
    assert (masked[:20, 1] != again[:20, 1]).all()


@pytest.mark.parametrize("unit", [2.54, 1 / 3, 1000.0])
def test_noise_of_columns_that_are_nearly_one_is_nearly_one(unit):
    """Else what they differ by, times what that is not, is the noise."""
    column = np.random.default_rng(2).normal(scale=170.0, size=4000)
    rounded = np.round(column * unit, 2)
    masked = CorrelatedNoise(0.3).mask(np.column_stack([column, rounded]), rows_of(4000))
    noise = masked - np.column_stack([column, rounded])
    left = masked[:, 1] - unit * masked[:, 0]
    assert left.std() < 3 * (rounded - unit * column).std()
    assert abs(np.corrcoef(left, noise[:, 0])[0, 1]) < 0.1


def test_noise_of_a_sum_is_the_sum():
    values = np.random.default_rng(3).normal(size=(300, 4)) * [1.0, 50.0, 1.0, 1.0]
    values[:, 1] += 3 * values[:, 0]
    values[:, 2] = values[:, 0] + values[:, 1] / 3
    masked = CorrelatedNoise(0.2).mask(values, rows_of(300))
    assert masked[:, 2] == pytest.approx(masked[:, 0] + masked[:, 1] / 3)
    assert np.corrcoef((masked - values).T)[3, 1] == pytest.approx(0.0, abs=0.25)
