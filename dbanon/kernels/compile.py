"""The decorators that compile a kernel."""

from __future__ import annotations

from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

from dbanon.kernels.cache import cache_of  # first: it imports numba as it must be

from numba import njit  # isort: skip
from numba.core import event, types  # isort: skip

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

F = TypeVar("F", bound="Callable[..., object]")


_types: Any = types


@contextmanager
def on_compile(tell: Callable[[], None]) -> Iterator[Compilations]:
    """Call ``tell`` each time a kernel is compiled in the block, not when it is in the cache."""
    listener = Compilations(tell)
    with event.install_listener("numba:compile", listener):
        yield listener


@contextmanager
def compiling() -> Iterator[None]:
    """Have the time of the block count as compilation: another process compiles meanwhile."""
    with event.trigger_event("numba:compile"):
        yield


class Compilations(event.Listener):
    """What was compiled in a block; ``seconds`` is the wall time that it took, so far."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell
        self._ended = 0.0
        self._began: list[float] = []

    @property
    def seconds(self) -> float:
        """The wall time, with that of a kernel that is being compiled."""
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


def _called(compiled: object, within: object) -> None:
    """Have other kernels call ``within`` in place of a kernel, once for all integers.

    Numba compiles a function anew for each number that is written in a call, for each variable
    that begins as one, and for each width of integers.
    """
    outer: Any = compiled
    inner: Any = within
    template = inner.get_call_template

    def call(arguments: tuple[object, ...], named: dict[str, object]) -> object:
        return template(tuple(map(_plain, arguments)), named)

    outer.get_call_template = call
    outer.get_overload = inner.get_overload


def _within(function: object, **options: bool) -> object:
    """Compile a function for kernels only: what Python needs to call it takes time to compile."""
    compiler: Any = njit  # which does not tell of all its options
    alone = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled: object = compiler(nogil=True, **alone, **options)(function)
    return compiled


def _plain(argument: object) -> object:
    """Return the numba type of an argument, 64 bits wide if it is a signed integer."""
    plain: Any = _types.unliteral(argument)
    return _types.int64 if isinstance(plain, _types.Integer) and plain.signed else plain


def kernel(function: F) -> F:
    """Compile a function at its first call and keep the machine code in the cache folder.

    No fast-math: equal input gives equal groups on every machine. Compiled code runs without the
    interpreter's lock, so that threads share the cores.
    """
    compiled: Any = njit(nogil=True)(function)  # a dispatcher, which is called like its function
    cache = cache_of(function)
    if cache is not None:
        compiled._cache = cache  # noqa: SLF001 - as Dispatcher.enable_caching does
    is_private = function.__name__.startswith("_")
    _called(compiled, _within(function) if is_private else compiled)
    return compiled


def inlined(function: F) -> F:
    """Compile a function into each kernel that calls it.

    A call passes arrays with their reference counts, which costs more than a few lookups do: small
    functions of inner loops are written into the loop instead.
    """
    compiled: Any = njit(inline="always", nogil=True)(function)
    return compiled


def merged(function: F) -> F:
    """Compile a function of its own and merge its machine code into the kernels that call it.

    Faster to compile than what is inlined, nearly as fast to run where it is long.
    """
    compiled: Any = njit(forceinline=True, nogil=True)(function)
    _called(compiled, _within(function, forceinline=True))
    return compiled
