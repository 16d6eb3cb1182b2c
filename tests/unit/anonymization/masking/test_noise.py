import numpy as np
import pytest

from dbanon.anonymization.masking.interfaces import Rows
from dbanon.anonymization.masking.noise import CorrelatedNoise, Kim, Noise, Sullivan
from dbanon.domain.errors import PolicyError

SIGMA = np.array([[4.0, 1.2], [1.2, 1.0]])
N = 200_000
CLOSE = 0.03  # four standard errors of the covariances of 200,000 rows


def rows_of(n, *, seed=0):
    source = np.random.default_rng(seed)
    return Rows(np.arange(n), lambda count, _: source.uniform(1e-12, 1 - 1e-12, (n, count)))


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

    def draw(count, salt):
        asked.append(salt)
        return np.full((3, count), 0.5)

    values = np.array([[0.0], [10.0], [20.0]])
    Noise(0.3).mask(values, Rows(np.arange(3), draw))
    Noise(0.3).mask(values * 1.001, Rows(np.arange(3), draw))
    Noise(0.3).mask(values * 1.1, Rows(np.arange(3), draw))
    assert ["4.5", "4.5", "4.9"] == asked
