import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbanon.anonymization.interfaces import Rows
from dbanon.anonymization.masking.categories import Permutation, RankSwapping, Swapping
from dbanon.domain.errors import PolicyError

CODES = st.lists(st.integers(-1, 6), min_size=1, max_size=60)


def rows_of(n, seed):
    source = np.random.default_rng(seed)
    return Rows(np.arange(n), lambda count, *_: source.uniform(1e-12, 1 - 1e-12, (n, count)), None)


def masked_by(method, codes, seed):
    column = np.array(codes, np.int32)[:, None]
    return method.mask(column, np.array([7]), rows_of(len(codes), seed))[:, 0]


@given(CODES, st.floats(0.1, 100), st.integers(0, 2**32))
def test_rank_swapping_keeps_values_and_moves_none_far(codes, percent, seed):
    found = masked_by(RankSwapping(percent), codes, seed)
    given_ = np.array(codes)
    assert sorted(codes) == sorted(found.tolist())
    assert (given_ == -1).tolist() == (found == -1).tolist()
    ranked = np.sort(given_[given_ >= 0])
    width = max(1, int(percent * len(ranked) / 100))
    for before, after in zip(codes, found.tolist(), strict=True):
        low, high = sorted((before, after))
        # the nearest ranks of two values are at most as far as those that were swapped
        gap = np.searchsorted(ranked, high, "left") - (np.searchsorted(ranked, low, "right") - 1)
        assert before == -1 or gap <= width


def test_rank_swapping_swaps_in_pairs_of_free_ranks():
    source = np.random.default_rng(3)
    n, width = 1000, 30
    drawn = source.uniform(size=n)
    rows = Rows(np.arange(n), lambda *_: drawn[:, None], None)
    codes = np.arange(n, dtype=np.int32)[:, None]
    found = RankSwapping(100 * width / n).mask(codes, np.array([n]), rows)[:, 0]
    assert np.arange(n).tolist() == found[found].tolist()
    assert 0 < np.abs(found - np.arange(n)).max() <= width
    assert (found == np.arange(n)).sum() <= width
    distances = np.abs(found - np.arange(n))[: n - 2 * width]
    assert distances.mean() == pytest.approx(width / 2, rel=0.2)  # uniform over the window


@given(CODES, st.integers(0, 2**32))
def test_swapping_keeps_values_and_swaps_all_but_one_if_asked(codes, seed):
    found = masked_by(Swapping(1.0), codes, seed)
    assert sorted(codes) == sorted(found.tolist())


def test_swapping_takes_a_share_of_the_rows_and_columns_together():
    codes = np.column_stack([np.arange(10_000), np.arange(10_000)]).astype(np.int32)
    found = Swapping(0.2).mask(codes, np.array([10_000, 10_000]), rows_of(10_000, 1))
    assert (found[:, 0] == found[:, 1]).all()
    moved = found[:, 0] != codes[:, 0]
    assert moved.mean() == pytest.approx(0.2, abs=0.02)
    where = np.flatnonzero(moved)
    assert where.tolist() == found[found[where, 0], 0].tolist()


@given(CODES, st.integers(0, 2**32))
def test_a_permutation_keeps_values(codes, seed):
    assert sorted(codes) == sorted(masked_by(Permutation(), codes, seed).tolist())


@pytest.mark.parametrize("percent", [0.0, -1.0, 100.1])
def test_no_percentage_is_refused(percent):
    with pytest.raises(PolicyError, match="percent"):
        RankSwapping(percent)


@pytest.mark.parametrize("share", [0.0, 1.1])
def test_no_share_is_refused(share):
    with pytest.raises(PolicyError, match="share"):
        Swapping(share)


def kept(drawn):
    return Rows(np.arange(len(drawn)), lambda *_: drawn, None)


def test_partners_mostly_stay_when_somebody_comes():
    """Else values of many releases have the true one in their middle, and pairs show themselves."""
    n = 4000
    drawn = np.random.default_rng(8).uniform(size=(n, 2))
    codes = np.arange(n, dtype=np.int32)[:, None]
    for method, column in ((Swapping(0.5), drawn), (RankSwapping(5), drawn[:, :1])):
        all_of_them = method.mask(codes, np.array([n]), kept(column))[:, 0]
        without = np.delete(np.arange(n), 17)
        others = method.mask(codes[:-1], np.array([n - 1]), kept(column[without]))[:, 0]
        changed = all_of_them[without] != without[others]
        assert 0 < changed.sum() < 0.1 * n


def test_rows_of_a_person_are_swapped_with_those_of_others():
    """Rows of one person and one value have one draw, and are worth nothing to each other."""
    drawn = np.random.default_rng(9).uniform(size=(500, 2)).repeat(3, axis=0)
    codes = np.arange(500, dtype=np.int32).repeat(3)[:, None]
    found = Swapping(1.0).mask(codes, np.array([500]), kept(drawn))
    assert (found == codes).sum() <= 3
    assert sorted(codes.tolist()) == sorted(found.tolist())
