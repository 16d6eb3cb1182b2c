"""The decorators that compile a kernel."""

import numpy as np
import pytest
from compiled import called
from numba.core.errors import NumbaError

from dbanon.kernels.compile import maker, step


def test_a_step_that_makes_an_array_is_refused():
    @step
    def half(n):
        return np.empty(n).shape[0] // 2

    with pytest.raises(NumbaError):
        called(half)(2)


def test_what_a_step_calls_first_may_make_an_array():
    @maker
    def ones(n):
        return np.ones(n).sum()

    @step
    def twice(n):
        return 2 * ones(n)

    assert called(twice)(3) == 6
