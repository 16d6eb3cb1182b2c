"""Manage the embedded server, even if another server is configured; compile in advance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbanon.domain.errors import ConfigError
from dbanon.domain.policy import ModelSpec
from dbanon.server import EmbeddedServer, ServerStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import pyarrow as pa

    from dbanon.settings import Settings


def server_status(settings: Settings) -> ServerStatus:
    """Return state and location of the server, without starting it."""
    return EmbeddedServer(settings.home).status()


def server_stop(settings: Settings) -> None:
    """Stop the server and end open sessions; does nothing if it does not run."""
    EmbeddedServer(settings.home).stop()


def server_url(settings: Settings) -> str:
    """Start the server if needed and return its postgresql:// URI, which has no password."""
    server = EmbeddedServer(settings.home)
    server.start()
    return server.url()


def server_psql(settings: Settings, arguments: Sequence[str]) -> int:
    """Start the server if needed, run psql on the terminal and return its exit code."""
    server = EmbeddedServer(settings.home)
    server.start()
    return server.psql(arguments)


_ROWS = 240
_ALWAYS: dict[str, Any] = {"k": 5, "quasi": ("age", "place", "kind"), "sensitive": ("ill",)}
_ASKED: dict[str, dict[str, Any]] = {
    "k-anonymity": {},
    # Such groups are carved from boxes.
    "large k": {"k": 20},
    "l-diversity": {"l": 2, "recodings": {"kind": "set"}},
    "rows left out": {"max_suppressed": 0.1},
    "t-closeness": {"models": (ModelSpec("t-closeness", {"t": 0.4}),)},
    # Groups of neighbours do not keep this: the rows are cut by the shares of their values.
    "strict t-closeness": {"models": (ModelSpec("t-closeness", {"t": 0.05}),)},
    # The search knows no rule for this: groups are merged after it.
    "(k,e)-anonymity": {
        "models": (ModelSpec("k-e-anonymity", {"k": 3, "e": 80}),),
        "sensitive": ("cost",),
    },
}


@dataclass(frozen=True, slots=True)
class Compiled:
    """The cache folder of machine code, and the seconds of compilation."""

    cache: Path
    seconds: float


def warm(*, on_step: Callable[[str], None] = lambda _: None) -> Compiled:
    """Compile the functions of the algorithm ``auto``, unless they are cached.

    Searches small tables with policies of different models, which calls every kernel that larger
    tables call. Raises ConfigError if the result cannot be cached.
    """
    from dbanon.anonymization.data_frame import anonymize
    from dbanon.kernels.compilation import cache_base, cache_folder, on_compile, unkept

    if cache_folder("random") is None:
        raise _not_kept(cache_base())
    table, before = _table(), frozenset(unkept)
    with on_compile(lambda: None) as compiled:
        for title, asked in _ASKED.items():
            on_step(title)
            anonymize(table, **(_ALWAYS | asked))
    if unkept - before:
        raise _not_kept(cache_base())
    return Compiled(cache_base(), round(compiled.seconds, 3))


def prepare() -> None:
    """Load the compiled functions of a plain search into this process, where later ones find them.

    They are compiled unless they are cached.
    """
    from dbanon.anonymization.data_frame import anonymize

    anonymize(_table(), **(_ALWAYS | {"l": 2}))


def _not_kept(folder: Path) -> ConfigError:
    return ConfigError(
        f"compiled code cannot be kept in {folder}: it must be a folder that is yours, that"
        " nobody else can write, and that has room",
        hint="NUMBA_CACHE_DIR=FOLDER dbanon server warm",
    )


def _table() -> pa.Table:
    import numpy as np
    import pyarrow as pa

    random = np.random.default_rng(0)
    age, place, kind = (random.integers(0, most, _ROWS) for most in (12, 3, 3))
    age[0], place[0], kind[0] = 90, 12, 6
    return pa.table(
        {
            "age": pa.array(age, mask=random.random(_ROWS) < 1 / 40),
            "place": place / 4,
            "kind": [f"kind {number}" for number in kind],
            "ill": [f"ill {number}" for number in random.integers(0, 5, _ROWS)],
            "cost": random.integers(0, 100, _ROWS),
        }
    )
