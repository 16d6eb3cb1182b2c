"""Decorators that compile a kernel."""

from __future__ import annotations

from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dbanon.kernels.cache import cache_of  # first: it imports numba as it must be

from numba import njit  # isort: skip
from numba.core import event  # isort: skip
from numba.core.codegen import JITCodeLibrary  # isort: skip
from numba.core.compiler import Compiler  # isort: skip

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

F = TypeVar("F", bound="Callable[..., object]")

# Same type as array elements and counters: numba compiles a step again for each argument type,
# and literal numbers have a type of their own.
ZERO: Any = np.int64(0)


@contextmanager
def on_compile(tell: Callable[[], None]) -> Iterator[Compilations]:
    """Call ``tell`` each time a kernel is compiled in the block, unless it is cached."""
    listener = Compilations(tell)
    with event.install_listener("numba:compile", listener):
        yield listener


@contextmanager
def compiling() -> Iterator[None]:
    """Count the time of the block as compilation, because another process compiles meanwhile."""
    with event.trigger_event("numba:compile"):
        yield


class Compilations(event.Listener):
    """Compilations of a block; ``seconds`` is their wall time so far."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell
        self._ended = 0.0
        self._began: list[float] = []

    @property
    def seconds(self) -> float:
        """Wall time, including that of a compilation in progress."""
        began = self._began[:1]
        return self._ended + sum(perf_counter() - since for since in began)

    def on_start(self, event: object) -> None:  # noqa: ARG002 - numba's interface
        """Note when it began."""
        self._tell()
        self._began.append(perf_counter())

    def on_end(self, event: object) -> None:  # noqa: ARG002
        """Add up how long it took."""
        began = self._began.pop()
        if not self._began:  # a kernel is compiled within the one that calls it
            self._ended += perf_counter() - began


def kernel(function: F) -> F:
    """Compile a function at its first call and store the machine code in the cache folder.

    No fast-math: equal input gives equal groups on every machine. Compiled code releases the GIL,
    so that threads share the cores. A function with a leading underscore is for other kernels: it
    is cached with them, and Python cannot call it.
    """
    if function.__name__.startswith("_"):
        return maker(function)
    compiler: Any = njit  # not all options are typed
    # A dispatcher, called like its function; it counts references for any first caller.
    compiled: Any = compiler(nogil=True, _nrt=True)(function)
    cache = cache_of(function)
    if cache is not None:
        compiled._cache = cache  # noqa: SLF001 - as Dispatcher.enable_caching does
    return compiled


def maker(function: F) -> F:
    """Compile a function for kernels only, which may create arrays, without a Python wrapper."""
    return _part(function, _nrt=True)  # not as its first caller does, which may be a step


def step(function: F) -> F:
    """Compile a function for kernels only, which creates no array and returns numbers or nothing.

    It counts no references: its caller holds the arrays. Counting would dominate the compilation of
    a function of many arrays. A returned array would be freed while in use, and numba does not
    refuse that.
    """
    return _part(function, _nrt=False)


def inlined(function: F) -> F:
    """Compile a step into each calling kernel, for a few lines of an inner loop."""
    return _part(function, _nrt=False, forceinline=True)


def _part(function: F, **options: bool) -> F:
    compiler: Any = njit  # not all options are typed
    alone = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled: F = compiler(nogil=True, pipeline_class=_PartCompiler, **alone, **options)(function)
    return compiled


class _PartLibrary(JITCodeLibrary):
    """Code of a function that only kernels call, optimized with them and not alone."""

    def _optimize_final_module(self) -> None:
        """Leave optimization to the kernel."""

    def _finalize_final_module(self) -> None:
        """Mark it as final without changes."""
        self._finalized = True

    @property
    def codegen(self) -> _PartLibrary:
        """Return the object that receives the function's environment."""
        return self

    def set_env(self, name: str, env: object) -> None:
        """Ignore the environment: only machine code has a place for it."""


class _PartCompiler(Compiler):
    """Numba's compiler for a function that only kernels call."""

    def __init__(self, typing: object, target: object, _: None, *rest: object) -> None:
        context: Any = target
        make: Any = _PartLibrary
        numba: Any = super()
        library: Any = make(context.codegen(), "part")
        library.enable_object_caching()
        numba.__init__(typing, target, library, *rest)
