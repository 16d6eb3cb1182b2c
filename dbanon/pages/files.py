"""Write pages and drawings; each replaces only files of its own kind."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dbanon.domain.errors import ConfigError
from dbanon.domain.text import command

if TYPE_CHECKING:
    from collections.abc import Mapping


class Signature(NamedTuple):
    """The start of a file by dbanon, and a mark in its first ``within`` bytes."""

    start: bytes
    mark: bytes
    within: int


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of file, its option, and the signature of each suffix."""

    noun: str
    option: str
    signatures: Mapping[str, Signature]


_HTML = Signature(b"<!DOCTYPE html>", b'<meta name="generator" content="dbanon ', 1024)
PAGE = FileKind("page", "--html", {".html": _HTML, ".htm": _HTML})
DRAWING = FileKind(
    "drawing",
    "--plot",
    {
        ".svg": Signature(b"<?xml", b"<dc:title>dbanon ", 4096),
        ".png": Signature(b"\x89PNG", b"Software\0dbanon ", 1024),
        ".pdf": Signature(b"%PDF-", b"/Creator (dbanon ", 1 << 20),  # which PDF has at its end
    },
)
_OWNER_ONLY = 0o600  # a file may hold counts of the source


def require(path: Path, kind: FileKind, *, example: str) -> None:
    """Raise ConfigError if such a file cannot be written there, before any computation."""
    if path.suffix.lower() not in kind.signatures:
        suffixes = ", ".join(kind.signatures)
        raise ConfigError(
            f"{path} is no {kind.noun}, which ends in one of {suffixes}",
            hint=f"{kind.option} {example}",
        )
    folder = path.absolute().parent
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder}", hint=command("mkdir -p", path.parent))
    _target(path, kind)


def _target(path: Path, kind: FileKind) -> Path:
    """Return the file to write; follows links to its own kind, and never replaces another file."""
    if path.is_symlink() and not path.exists():
        raise _taken(path, kind, f"{path} is a link to nothing")
    if path.exists() and not path.is_file():
        raise _taken(path, kind, f"{path} is no file")
    try:
        is_other = path.exists() and not _is_own(path, kind)
    except OSError as error:
        problem = f"{path} cannot be read ({error.strerror}), and stays as it is"
        raise _taken(path, kind, problem) from None
    if is_other:
        problem = f"{path} is a file that is no {kind.noun} of dbanon, and stays as it is"
        raise _taken(path, kind, problem)
    return Path(os.path.realpath(path))


def _is_own(path: Path, kind: FileKind) -> bool:
    signature = kind.signatures[path.suffix.lower()]
    with path.open("rb") as file:
        head = file.read(signature.within)
    return head.startswith(signature.start) and signature.mark in head


def _taken(path: Path, kind: FileKind, problem: str) -> ConfigError:
    return ConfigError(problem, hint=f"{kind.option} another/{path.name}")


def write(content: bytes, path: Path, kind: FileKind) -> None:
    """Write a file atomically, in place of its own kind only, readable by its owner only."""
    target = _target(path, kind)
    is_new = not (target.exists() and _is_own(path, kind))
    try:
        _replace(content, target, is_new=is_new)
    except OSError as error:
        raise _taken(path, kind, f"cannot write {path}: {error.strerror}") from None


def require_new(path: Path, *, option: str) -> None:
    """Raise ConfigError if a file exists, or its folder does not, before any computation."""
    if os.path.lexists(path):
        raise ConfigError(f"{path} exists, and stays as it is", hint=f"{option} another name")
    if not path.absolute().parent.is_dir():
        raise ConfigError(
            f"there is no folder {path.parent}", hint=command("mkdir -p", path.parent)
        )


def write_new(content: bytes, path: Path, *, option: str) -> None:
    """Write a new file atomically, readable by its owner only; never replaces one."""
    require_new(path, option=option)
    try:
        _replace(content, path, is_new=True)
    except OSError as error:
        message = f"cannot write {path}: {error.strerror}"
        raise ConfigError(message, hint=f"{option} another name") from None


def _replace(content: bytes, target: Path, *, is_new: bool) -> None:
    """Write a draft next to a file, and rename it."""
    draft = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}")
    try:
        number = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
        with open(number, "wb") as file:  # noqa: PTH123 - of a file that is open
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        _place(draft, target, is_new=is_new)
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def _place(draft: Path, target: Path, *, is_new: bool) -> None:
    """Rename a draft to a file of its kind or a new name; raises FileExistsError for others."""
    if is_new:
        target.touch(_OWNER_ONLY, exist_ok=False)  # not by a link, which some file systems lack
    try:
        draft.replace(target)
    except OSError:
        if is_new:
            target.unlink()
        raise
