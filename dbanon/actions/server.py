"""Ask, stop and use the embedded server, whatever other server the settings name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

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
