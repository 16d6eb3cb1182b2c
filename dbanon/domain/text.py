"""Display of names and labels, which are arbitrary text, on a screen and in a shell."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# Invisible or modifying characters that count as printable.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)


def is_seen(character: str) -> bool:
    """Return True if a terminal draws a character and does nothing else.

    Unsafe: controls (Cc), formats (Cf), line and paragraph separators (Zl, Zp), surrogates (Cs),
    private (Co) and unassigned characters (Cn). Spaces of other widths are harmless.
    """
    if character.isascii():
        return character.isprintable()
    seen = character.isprintable() or character.isspace()
    return seen and character not in "\x85\u2028\u2029" and not _UNSEEN.match(character)


def visible(text: str, *, keep: str = "") -> str:
    r"""Spell invisible characters as ``\u00ad`` or ``\U000e0041``, except those to keep."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c in keep or is_seen(c) else spell(c) for c in text)


def spell(character: str) -> str:
    """Return the escape of a character, as in E'' of PostgreSQL and $'' of a shell."""
    code = ord(character)
    return f"\\u{code:04x}" if code < 1 << 16 else f"\\U{code:08x}"


def command(verb: str, *names: object, options: str = "") -> str:
    """Compose the command of a hint: ``verb``, names as shell words, then options."""
    words = [_word(str(name)) for name in names]
    if any(str(name).startswith("-") for name in names):
        return " ".join([verb, *filter(None, [options]), "--", *words])
    return " ".join([verb, *words, *filter(None, [options])])


def _word(name: str) -> str:
    if all(map(is_seen, name)):
        return shlex.quote(name)
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"$'{visible(escaped)}'"


_LISTED = 3


def listed(names: Iterable[str], *, room: int | None = None) -> str:
    """Return names with commas, after the first three only how many more there are.

    room: characters for the names; the first is given anyway.
    """
    first, *others = names
    shown, rest = [first, *others[: _LISTED - 1]], others[_LISTED - 1 :]
    while room is not None and len(shown) > 1 and len(", ".join(shown)) > room:
        rest.insert(0, shown.pop())
    return ", ".join(shown) + (f" and {len(rest):,} more" if rest else "")


def unread(path: object, error: OSError | UnicodeDecodeError) -> str:
    """Return why a text file cannot be read."""
    if isinstance(error, UnicodeDecodeError):
        if _is_utf_16(error):
            return f"{path} is UTF-16, and not UTF-8"
        return f"{path} is not UTF-8 (at byte {error.start})"
    return f"cannot read {path}: {error.strerror}"


def converted(path: object, error: OSError | UnicodeDecodeError) -> str | None:
    """Return the command that converts a file to UTF-8; None if it could not be read at all."""
    if not isinstance(error, UnicodeDecodeError):
        return None
    encoding = "utf-16" if _is_utf_16(error) else "windows-1252"
    return command(f"iconv -f {encoding} -t utf-8", path, options="> converted")


def _is_utf_16(error: UnicodeDecodeError) -> bool:
    return error.object[:2] in {b"\xff\xfe", b"\xfe\xff"}
