"""Ask, stop and use the embedded server, whatever other server is set, and compile ahead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbanon.domain.errors import ConfigError
from dbanon.domain.policy import ModelSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import pyarrow as pa

    from dbanon.server import ServerStatus
    from dbanon.settings import Settings


def server_status(settings: Settings) -> ServerStatus:
    """Return what the server is doing and where, starting nothing."""
    from dbanon.server import EmbeddedServer

    return EmbeddedServer(settings.home).status()


def server_stop(settings: Settings) -> None:
    """Stop the server, ending open sessions; do nothing if it does not run."""
    from dbanon.server import EmbeddedServer

    EmbeddedServer(settings.home).stop()


def server_url(settings: Settings) -> str:
    """Start the server if need be and return its postgresql:// URI, which holds no password."""
    from dbanon.server import EmbeddedServer

    server = EmbeddedServer(settings.home)
    server.start()
    return server.url()


def server_psql(settings: Settings, arguments: Sequence[str]) -> int:
    """Start the server if need be, run psql on the terminal and return its exit code."""
    from dbanon.server import EmbeddedServer

    server = EmbeddedServer(settings.home)
    server.start()
    return server.psql(arguments)


_ROWS = 240
_TABLES: dict[str, dict[str, Any]] = {
    "k-anonymity": {"k": 5},
    "l-diversity": {"k": 5, "l": 2, "recodings": {"kind": "set"}},
    "rows left out": {"k": 5, "max_suppressed": 0.1},
    "t-closeness": {"k": 5, "models": (ModelSpec("t-closeness", {"t": 0.4}),)},
}


@dataclass(frozen=True, slots=True)
class Compiled:
    """Where machine code is kept, how many functions were compiled for it now, and how long."""

    cache: Path
    functions: int
    seconds: float


def warm(*, on_step: Callable[[str], None] = lambda _: None) -> Compiled:
    """Compile what ``publish``, ``plan`` and ``refresh`` run by default, unless it is there.

    Small tables are made k-anonymous, l-diverse, t-close and with rows left out, which calls every
    kernel that larger ones call. Raises ConfigError when there is no folder to keep the result in.
    """
    from dbanon.anonymization.data_frame import anonymize
    from dbanon.kernels.cache import cache_base, cache_folder
    from dbanon.kernels.compile import on_compile

    if cache_folder("random") is None:
        raise ConfigError(
            f"compiled code cannot be kept in {cache_base()}: it must be a folder"
            " that this user, and nobody else, can write",
            hint="NUMBA_CACHE_DIR=FOLDER dbanon server warm",
        )
    functions: list[None] = []
    with on_compile(lambda: functions.append(None)) as compiled:
        for title, wanted in _TABLES.items():
            on_step(title)
            anonymize(_table(), quasi=("age", "place", "kind"), sensitive=("ill",), **wanted)
    return Compiled(cache_base(), len(functions), round(compiled.seconds, 3))


def _table() -> pa.Table:
    """Return rows of numbers and texts, a few of them missing or far from the others."""
    import numpy as np
    import pyarrow as pa

    random = np.random.default_rng(0)
    age = random.integers(0, 90, _ROWS)
    age[:3] = 5_000
    place, kind = random.integers(0, 12, _ROWS), random.integers(0, 6, _ROWS)
    return pa.table(
        {
            "age": pa.array(age, mask=random.random(_ROWS) < 1 / 40),
            "place": place / 4,
            "kind": [f"kind {number}" for number in kind],
            "ill": [f"ill {number}" for number in random.integers(0, 5, _ROWS)],
        }
    )
