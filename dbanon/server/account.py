"""The operating system account that the server runs under."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from dbanon.domain.errors import ConfigError, DatabaseError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import IO

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
