"""What postmaster.pid says about a server, and whether it is still true."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_LINES = 8  # pid, data, start time, port, socket folder, address, shared memory, state


@dataclass(frozen=True, slots=True)
class Postmaster:
    """A server process that exists."""

    pid: int
    socket_directory: Path
    state: str

    @property
    def ready(self) -> bool:
        """Tell whether it has announced that it takes connections."""
        return self.state == "ready"

    @property
    def starting(self) -> bool:
        """Tell whether it is on the way there; the last lines come last."""
        return self.state in {"", "starting"}


def running_postmaster(data: Path) -> Postmaster | None:
    """Return the server of this data folder, or None; spawn nothing.

    Raises PermissionError for another account's data.
    """
    try:
        lines = (data / "postmaster.pid").read_text(encoding="utf-8", errors="surrogateescape")
    except (FileNotFoundError, NotADirectoryError):
        return None
    fields = [*lines.splitlines(), *[""] * _LINES]
    pid = fields[0].strip()
    if not pid.isdecimal() or not _serves(int(pid), data):
        return None
    return Postmaster(int(pid), Path(fields[4].strip()), fields[7].strip())


def remove_stale_pid(data: Path) -> None:
    """Remove a postmaster.pid whose number now belongs to a stranger, or to a zombie.

    PostgreSQL survives a dead number by itself, but takes any living process of its account for
    the server. It finds sessions that outlived their server by the data folder's shared memory,
    so it refuses to start beside them with or without this file.
    """
    if running_postmaster(data) is None:
        (data / "postmaster.pid").unlink(missing_ok=True)


def _serves(pid: int, data: Path) -> bool:
    """Tell whether this process is the server, not a stranger that got its number later."""
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return not Path("/proc/self").exists() and _exists(pid)
    return os.fsencode(data) in arguments


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
