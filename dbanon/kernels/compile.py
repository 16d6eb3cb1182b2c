"""The decorator that compiles a kernel, and the one place that knows where machine code is kept."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import tempfile
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

import platformdirs
from numba import njit
from numba.core import config, event, types

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

F = TypeVar("F", bound="Callable[..., object]")


_settings: Any = config  # numba makes its settings at import
_types: Any = types
_HERE = Path(__file__).parent
_IMPORT = re.compile(r"^\s*from dbanon\.kernels\.(\w+) import", re.MULTILINE)


def _sources(module: str, found: dict[str, bytes]) -> dict[str, bytes]:
    """Return the sources of a kernel module and of all kernel modules it calls into, by name."""
    if module not in found:
        found[module] = (_HERE / f"{module}.py").read_bytes()
        for name in _IMPORT.findall(found[module].decode()):
            _sources(name, found)
    return found


def _fingerprint(module: str) -> str:
    """Return a digest of a kernel module and of what it calls into.

    Numba notices a change of the file that holds a kernel, not of the files that the kernel calls
    into, so each state of those sources gets a folder of its own.
    """
    digest = hashlib.blake2b(digest_size=8)
    for _, source in sorted(_sources(module, {}).items()):
        digest.update(source)
    return f"{module}-{digest.hexdigest()}"


@functools.cache
def cache_folder(module: str) -> str | None:
    """Return the folder of a module's compiled code, None when there is none to trust.

    ``NUMBA_CACHE_DIR`` wins; the user's cache directory is next. Loading cached code runs it, so a
    folder that belongs to somebody else is not used, and a process that has no folder compiles
    anew.
    """
    if _settings.CACHE_DIR:
        return str(_settings.CACHE_DIR)
    folder = platformdirs.user_cache_path("dbanon") / "numba" / _fingerprint(module)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if hasattr(os, "geteuid") and folder.stat().st_uid != os.geteuid():
            return None
        with tempfile.TemporaryFile(dir=folder):
            return str(folder)
    except OSError:
        return None


def is_cached(module: str) -> bool:
    """Whether code of a module is in the cache, or there is no cache to put it in."""
    folder = cache_folder(module)
    return folder is None or any(Path(folder).rglob(f"{module}.*.nbc"))


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
    interpreter's lock, so that threads share the cores. Numba's setting is put back at once
    because it belongs to the whole process, which may hold other users of numba.
    """
    compiled: Any  # a dispatcher, which is called like its function
    is_private = function.__name__.startswith("_")
    folder = cache_folder(function.__module__.rpartition(".")[2])
    if folder is None:
        compiled = njit(nogil=True)(function)
        _called(compiled, _within(function) if is_private else compiled)
        return compiled
    before = _settings.CACHE_DIR
    _settings.CACHE_DIR = folder
    try:
        compiled = njit(cache=True, nogil=True)(function)
    finally:
        _settings.CACHE_DIR = before
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
