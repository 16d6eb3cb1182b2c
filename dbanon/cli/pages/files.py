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


def require(path: Path, *, example: str) -> None:
    """Raise ConfigError when no page could be written there, before anything is computed."""
    if path.suffix.lower() not in _KINDS:
        raise ConfigError(f"{path} is no page", hint=f"--html {example}")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder}", hint=command("mkdir -p", path.parent))
    if path.exists() and not path.is_file():
        raise ConfigError(f"{path} is no file", hint=f"--html another/{path.name}")
    try:
        import jinja2  # noqa: F401 - only whether it is there
    except ModuleNotFoundError:
        raise ConfigError(
            "a page needs Jinja2, which is not installed", hint="pip install 'dbanon[report]'"
        ) from None


def write(text: str, path: Path) -> None:
    """Write a page, whole or not at all, in place of a file of that name; follows links."""
    target = Path(os.path.realpath(path))
    draft = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}")
    try:
        # With the rights of any new file: it holds what somebody may read who could run this.
        with draft.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    except OSError as error:
        _refuse(path, error)
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def _refuse(path: Path, error: OSError) -> NoReturn:
    raise ConfigError(
        f"cannot write {path}: {error.strerror}", hint=f"--html another/{path.name}"
    ) from None
