"""Locations of the SQL, the migrations and the demo data."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_NAME = re.compile(r"^\n?-- name: (\w+)\n", re.MULTILINE)


def _folder(name: str) -> Path:
    bundled = _PACKAGE / "_bundled" / name
    return bundled if bundled.is_dir() else _PACKAGE.parent / name


def migrations() -> Path:
    """Return the folder of the Alembic environment."""
    return _folder("migrations")


@cache
def sql(kind: str, name: str) -> str:
    """Return the text of ``sql/<kind>/<name>.sql``; kind: functions or models."""
    return (_folder("sql") / kind / f"{name}.sql").read_text(encoding="utf-8")


def statement(name: str) -> str:
    """Return the text of a statement, named with its family: ``publication_lock.take``."""
    family, _, own = name.partition(".")
    return _family(family)[own]


@cache
def _family(name: str) -> dict[str, str]:
    """Return the statements of ``sql/<name>.sql``, by the names above them."""
    text = (_folder("sql") / f"{name}.sql").read_text(encoding="utf-8")
    _, *parts = _NAME.split(text)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def sql_names(kind: str) -> tuple[str, ...]:
    """Return the names of the files of that kind, sorted."""
    folder = _folder("sql") / kind
    found = (path.relative_to(folder) for path in folder.rglob("*.sql"))
    return tuple(sorted(path.with_suffix("").as_posix() for path in found))


def commit() -> str | None:
    """Return the commit of a checkout from git's files; None if there is none, or it is unknown."""
    git = _PACKAGE.parent / ".git"
    try:
        if git.is_file():  # of a worktree: the place of its own folder
            git = git.parent / git.read_text(encoding="utf-8").removeprefix("gitdir: ").strip()
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
        branch = head.removeprefix("ref: ")
        if branch == head:
            return head
        shared = git / "commondir"
        common = git / shared.read_text(encoding="utf-8").strip() if shared.exists() else git
        if (common / branch).exists():
            return (common / branch).read_text(encoding="utf-8").strip()
        packed = (common / "packed-refs").read_text(encoding="utf-8").splitlines()
        return next((line.split()[0] for line in packed if line.endswith(f" {branch}")), None)
    except OSError:
        return None


def data(name: str) -> Path:
    """Return the path of a file of the demo data."""
    return _PACKAGE / "data" / name
