"""The decorator that compiles a kernel, and the one place that knows where machine code is kept."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import platformdirs
from numba import njit
from numba.core import config

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., object]")


_settings: Any = config  # numba makes its settings at import


def _fingerprint() -> str:
    """Return a digest of every kernel's source.

    Numba notices a change of the file that holds a kernel, not of the files that the kernel calls
    into, so each state of the sources gets a folder of its own.
    """
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def cache_folder() -> str | None:
    """Return the folder of the compiled code, None when there is none to trust.

    ``NUMBA_CACHE_DIR`` wins; the user's cache directory is next. Loading cached code runs it, so a
    folder that belongs to somebody else is not used, and a process that has no folder compiles
    anew.
    """
    if _settings.CACHE_DIR:
        return str(_settings.CACHE_DIR)
    folder = platformdirs.user_cache_path("dbanon") / "numba" / _fingerprint()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if hasattr(os, "geteuid") and folder.stat().st_uid != os.geteuid():
            return None
        with tempfile.TemporaryFile(dir=folder):
            return str(folder)
    except OSError:
        return None


_FOLDER = cache_folder()


def is_cold() -> bool:
    """Whether no kernel of these sources has been compiled and kept yet."""
    return _FOLDER is None or not any(Path(_FOLDER).rglob("*.nbi"))


def kernel(function: F) -> F:
    """Compile a function at its first call and keep the machine code in the cache folder.

    No fast-math: equal input gives equal groups on every machine. Numba's setting is put back at
    once because it belongs to the whole process, which may hold other users of numba.
    """
    compiled: Any  # a dispatcher, which is called like its function
    if _FOLDER is None:
        compiled = njit(function)
        return compiled
    before = _settings.CACHE_DIR
    _settings.CACHE_DIR = _FOLDER
    try:
        compiled = njit(cache=True)(function)
    finally:
        _settings.CACHE_DIR = before
    return compiled
