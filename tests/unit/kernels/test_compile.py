"""The decorators that compile a kernel."""

import numpy as np
import pytest
from compiled import called
from numba.core.codegen import JITCodeLibrary
from numba.core.errors import NumbaError

from dbanon.kernels.compilation import kernel, maker, step


def test_a_step_that_makes_an_array_is_refused():
    @step
    def half(n):
        return np.empty(n).shape[0] // 2

    with pytest.raises(NumbaError):
        called(half)(2)


@pytest.mark.exhaustive
def test_what_a_step_calls_first_may_make_an_array():
    @maker
    def ones(n):
        return np.ones(n).sum()

    @step
    def twice(n):
        return 2 * ones(n)

    assert called(twice)(3) == 6


def test_only_kernels_become_machine_code(monkeypatch):
    @step
    def third(n):
        return n // 3

    @step
    def ninth(n):
        return third(third(n))

    @kernel
    def both(n):
        return third(n) + ninth(n)

    made, make = [], JITCodeLibrary._finalize_specific  # noqa: SLF001

    def note(library):
        made.append(library.name)
        make(library)

    monkeypatch.setattr(JITCodeLibrary, "_finalize_specific", note)
    assert both(27) == 12
    assert ["both"] == [name.rpartition(".")[2] for name in made]


def test_what_fails_in_a_step_reaches_the_caller_of_the_kernel():
    @step
    def inverse(n):
        return 1 // n

    assert called(inverse)(1) == 1
    with pytest.raises(ZeroDivisionError):
        called(inverse)(0)
