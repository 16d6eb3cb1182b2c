import numpy as np
import pytest
from naive.microaggregation import error

from dbanon.kernels.points.microaggregation import build, measure, settle, union_of


@pytest.mark.parametrize("farthest", [False, True])
def test_the_error_of_a_union_is_that_of_its_groups(farthest):
    random, k, n, groups = np.random.default_rng(1), 3, 17, 5
    points = np.round(random.normal(size=(n, 2)) * 4)
    u = union_of(7, k)
    before = measure(points, n, np.array([3, 3, 3, 3, 5]), u)
    old = [[*range(i, i + 3)] for i in (0, 3, 6, 9)] + [[*range(12, 17)]]
    assert error(points.tolist(), old) == pytest.approx(before)
    build(n, groups, k, farthest, random.integers(100, size=8), u)
    after = settle(n, groups, k, u)
    found = [u.members[c, : u.size[c]].tolist() for c in range(groups)]
    assert list(range(n)) == sorted(i for members in found for i in members)
    assert k <= min(map(len, found)) <= max(map(len, found)) <= 2 * k - 1
    assert error(points.tolist(), found) == pytest.approx(after)
    assert after < before
