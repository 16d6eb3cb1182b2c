"""The decorators that compile a kernel."""

from typing import NamedTuple

import numpy as np
import pytest
from compiled import called
from numba.core.codegen import JITCodeLibrary
from numba.core.errors import NumbaError

from dbanon.kernels.compilation import kernel, maker, step


class Inner(NamedTuple):
    counts: np.ndarray
    limit: int


class Outer(NamedTuple):
    inner: Inner
    seen: np.ndarray


@maker
def make_outer(n):
    return Outer(Inner(np.zeros(n, np.int64), n), np.zeros(n, np.bool_))


@step
def count(inner, place):
    if place < inner.limit:
        inner.counts[place] += 1


@step
def see(outer, place):
    outer.seen[place] = True
    for _ in range(2):
        count(outer.inner, place)


@pytest.mark.exhaustive
def test_a_step_reads_records_where_its_caller_has_them():
    @kernel
    def seen_and_counted(n):
        outer = make_outer(n)
        other = make_outer(n + 1)
        for place in range(0, n, 2):
            first = outer
            outer, other = other, outer
            see(first, place)
        count(Inner(outer.inner.counts, 0), 1)
        for last in range(n):
            see(make_outer(n), last)
        return outer.inner.counts, other.inner.counts, outer.seen, other.inner.limit

    counts, others, seen, limit = seen_and_counted(6)
    assert ([0, 0, 2, 0, 0, 0, 0], [2, 0, 0, 0, 2, 0]) == (counts.tolist(), others.tolist())
    assert ([2], 6) == (np.flatnonzero(seen).tolist(), limit)


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
