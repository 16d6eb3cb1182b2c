"""The decorators that compile a kernel."""

import sys
from typing import NamedTuple

import numpy as np
import pytest
from compiled import called
from numba import njit
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


LAYOUTS = {
    "rows first": np.ascontiguousarray,
    "columns first": np.asfortranarray,
    "a part": lambda table: np.repeat(np.repeat(table, 2, axis=0), 3, axis=1)[::2, ::3],
    "backwards": lambda table: np.ascontiguousarray(table[::-1, ::-1])[::-1, ::-1],
}


@kernel
def moved(table, i, j, value):
    """Exchange an item for a value by its row, its column and its place from the end."""
    before = table[i, j], table[i][j], table[i - len(table), j - table.shape[1]]
    table[i, j] = value
    table[i - len(table), -1] += value
    table[0, :] = table[len(table) - 1]
    return before, table[i, j]


@pytest.mark.exhaustive
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", [np.int32, np.int64, np.float32, np.float64, np.uint8])
def test_items_are_those_of_numpy(layout, kind):
    table = LAYOUTS[layout](np.arange(1, 13, dtype=kind).reshape(3, 4))
    expected = table.copy()
    seen, stored = moved(table, 1, 2, kind(5))
    assert {expected[1, 2]} == set(seen)
    expected[1, 2], expected[1, 3] = 5, expected[1, 3] + 5
    expected[0] = expected[2]
    assert (5, expected.tolist()) == (stored, table.tolist())


@pytest.mark.exhaustive
def test_truth_values_and_arrays_that_may_not_be_written_are_read():
    @kernel
    def either(flags, numbers):
        return flags[1], flags[-1], numbers[np.uint8(2)], len(numbers)

    numbers = np.array([4, 5, 6])
    numbers.flags.writeable = False
    assert (True, False, 6, 3) == either(np.array([False, True, False]), numbers)


@pytest.mark.exhaustive
def test_what_is_not_an_item_of_a_kernel_is_left_to_numba():
    @njit(boundscheck=True)
    def guarded(numbers, place):
        return numbers[place]

    @njit
    def only(number):
        number[()] += 1
        return number[()]

    with pytest.raises(IndexError):
        guarded(np.zeros(3), 5)
    assert 6 == only(np.array(5))


@pytest.mark.exhaustive
def test_an_array_lives_on_after_a_step_has_read_it():
    @step
    def size_of(numbers):
        return np.asarray(numbers).size

    @kernel
    def counted(n):
        numbers = np.arange(n)
        same = np.asarray(numbers)
        size_of(numbers)
        return same

    assert [499500] * 5 == [counted(1000).sum() for _ in range(5)]


@pytest.mark.exhaustive
def test_references_to_arrays_of_records_are_counted():
    @maker
    def hold(numbers):
        return Outer(Inner(numbers, len(numbers)), np.zeros(3, np.bool_))

    @kernel
    def passed(numbers):
        first = hold(numbers)
        second = hold(first.inner.counts)
        for _ in range(3):
            first, second = second, hold(np.flip(first.inner.counts).copy())
        return first.inner.counts, hold(numbers).inner.counts

    numbers = np.arange(1000)
    before = sys.getrefcount(numbers)
    made = [passed(numbers) for _ in range(5)]
    assert [(499500, 499500)] * 5 == [(first.sum(), second.sum()) for first, second in made]
    assert before < sys.getrefcount(numbers)
    del made
    assert before == sys.getrefcount(numbers)


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
    @kernel
    def whole(n):
        return np.empty(n).shape[0]

    @step
    def half(n):
        return np.empty(n).shape[0] // 2

    assert whole(2) == 2  # by now it is known what the same call of a kernel does
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
