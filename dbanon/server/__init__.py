"""A PostgreSQL server of dbanon's own, for those who name no other."""

from dbanon.server.server import EmbeddedServer, ServerStatus

__all__ = ["EmbeddedServer", "ServerStatus"]
