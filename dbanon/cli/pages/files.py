"""The file of a page: whether there can be one, and how it is written."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from dbanon.domain.errors import ConfigError
from dbanon.domain.text import command

if TYPE_CHECKING:
    from typing import NoReturn

_KINDS = (".html", ".htm")
_START = b"<!DOCTYPE html>"
_MARK, _HEAD = b'<meta name="generator" content="dbanon ', 1024  # bytes in which a page has it


def require(path: Path, *, example: str) -> None:
    """Raise ConfigError when no page could be written there, before anything is computed."""
    if path.suffix.lower() not in _KINDS:
        raise ConfigError(f"{path} is no page", hint=f"--html {example}")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder}", hint=command("mkdir -p", path.parent))
    _target(path)
    try:
        import jinja2  # noqa: F401 - only whether it is there
    except ModuleNotFoundError:
        raise ConfigError(
            "a page needs Jinja2, which is not installed", hint="pip install 'dbanon[report]'"
        ) from None


def _target(path: Path) -> Path:
    """Return where a page is written: by a link to a page too, but never over any other file."""
    if path.is_symlink() and not path.exists():
        raise _taken(path, "is a link to nothing")
    if path.exists() and not path.is_file():
        raise _taken(path, "is no file")
    try:
        is_other = path.exists() and not _is_page(path)
    except OSError as error:
        raise _taken(path, f"cannot be read ({error.strerror}), and stays as it is") from None
    if is_other:
        raise _taken(path, "is a file that is no page of dbanon, and stays as it is")
    return Path(os.path.realpath(path))


def _is_page(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(_HEAD)
    return head.startswith(_START) and _MARK in head


def _taken(path: Path, reason: str) -> ConfigError:
    return ConfigError(f"{path} {reason}", hint=f"--html another/{path.name}")


def write(text: str, path: Path) -> None:
    """Write a page, whole or not at all, in place of the one of that name and of nothing else."""
    target = _target(path)
    draft = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}")
    try:
        # With the rights of any new file: it holds what somebody may read who could run this.
        with draft.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        _place(draft, target)
    except OSError as error:
        _refuse(path, error)
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def _place(draft: Path, target: Path) -> None:
    """Rename a draft to a page, or to a name that nobody has; raises FileExistsError else."""
    is_new = not (target.exists() and _is_page(target))
    if is_new:
        target.touch(exist_ok=False)  # not by a link, which some file systems do not have
    try:
        draft.replace(target)
    except OSError:
        if is_new:
            target.unlink()
        raise


def _refuse(path: Path, error: OSError) -> NoReturn:
    raise ConfigError(
        f"cannot write {path}: {error.strerror}", hint=f"--html another/{path.name}"
    ) from None
