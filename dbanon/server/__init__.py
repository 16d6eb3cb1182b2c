"""An embedded PostgreSQL server, used if no other is named."""

from dbanon.server.server import EmbeddedServer, ServerStatus

__all__ = ["EmbeddedServer", "ServerStatus"]
