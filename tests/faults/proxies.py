"""A wire to a PostgreSQL server that can be cut at a chosen moment."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from psycopg.conninfo import conninfo_to_dict, make_conninfo

if TYPE_CHECKING:
    from collections.abc import Iterator

    from servers import Database

_AT_ONCE = 65536


@dataclass
class Wire:
    """Passes connections on to a server; cut at the first COMMIT after a message with ``word``.

    passes: whether the server still gets the COMMIT; reopens: whether connections are taken after
    it. ``dsn`` reaches the database through the wire.
    """

    database: Database
    word: bytes
    passes: bool
    reopens: bool
    armed: bool = False
    cut: bool = False
    listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))
    sockets: list[socket.socket] = field(default_factory=list)
    threads: list[threading.Thread] = field(default_factory=list)

    @property
    def dsn(self) -> str:
        host, port = self.listener.getsockname()
        return make_conninfo(self.database.dsn, host=host, port=port, requirepeer="")

    def start(self, work, *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments)
        self.threads.append(thread)
        thread.start()

    def accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                self.sockets.append(client)
                if self.cut and not self.reopens:
                    client.shutdown(socket.SHUT_RDWR)
                    continue
                server = self.reach_server()
                self.sockets.append(server)
                self.start(self.ask, client, server)
                self.start(self.answer, server, client)

    def reach_server(self) -> socket.socket:
        target = conninfo_to_dict(self.database.dsn)
        host, port = str(target["host"]), int(target["port"])
        if not host.startswith("/"):
            return socket.create_connection((host, port))
        server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        server.connect(f"{host}/.s.PGSQL.{port}")
        return server

    def ask(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(_AT_ONCE):
                if self.armed and not self.cut and b"COMMIT" in data:
                    self.cut = True
                    client.shutdown(socket.SHUT_RDWR)
                    if self.passes:
                        server.sendall(data)
                    break
                self.armed = self.armed or self.word in data
                server.sendall(data)
        with suppress(OSError):
            server.shutdown(socket.SHUT_WR)

    def answer(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(_AT_ONCE):
                with suppress(OSError):
                    client.sendall(data)
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)


@contextmanager
def wire(database: Database, word: bytes, *, passes: bool, reopens: bool) -> Iterator[Wire]:
    """Open a wire; at the end all that goes over it is over, too."""
    opened = Wire(database, word, passes, reopens)
    opened.start(opened.accept)
    try:
        yield opened
    finally:
        for end in (opened.listener, *opened.sockets):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in opened.threads:
            thread.join()
        for end in (opened.listener, *opened.sockets):
            end.close()
