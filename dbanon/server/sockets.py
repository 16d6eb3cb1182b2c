"""The private folder of the server's socket."""

from __future__ import annotations

import hashlib
import os
import re
import socket
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from dbanon.domain.errors import ConfigError

if TYPE_CHECKING:
    from dbanon.server.account import Account

PORT = 5432
_SOCKET = f".s.PGSQL.{PORT}"

# sun_path holds 107 bytes and a NUL on Linux, 103 and a NUL on macOS.
_LONGEST_SOCKET_PATH = 103

# libpq splits hosts at commas, and connection URIs, conninfo and server settings each quote in
# their own way. A folder of these characters needs no quoting anywhere.
_PLAIN = re.compile(r"[\w./+-]+", re.ASCII)


def socket_directory(home: Path) -> Path:
    """Return where the socket of this home belongs: in it, unless its path is long or unusual.

    The other place is named by uid and home, so that it is found again and never shared: the
    user's runtime folder if there is one, else /tmp. Root's server cannot enter root's runtime
    folder and uses /tmp.
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
    """Make the folder 0700 and the account's own, or prove that it is.

    Who can write to it could pose as the server, and who can enter it is let in without a
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
    """Remove what a killed server left; the caller knows that none is running.

    The folder serves one home, and PostgreSQL takes a lock file that names a zombie, or a
    stranger that got the number later, for a server in the way.
    """
    for name in (_SOCKET, f"{_SOCKET}.lock"):
        (directory / name).unlink(missing_ok=True)


def answers(directory: Path) -> bool:
    """Tell whether somebody listens on the socket in that folder."""
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
