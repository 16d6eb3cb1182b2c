"""Names and labels are anybody's text: how they are shown on a screen and in a shell."""

from __future__ import annotations

import re
import shlex

# What is drawn as nothing, or changes what stands before it, though it counts as printable.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)


def is_seen(character: str) -> bool:
    """Whether a terminal draws a character and nothing else.

    It obeys controls (Cc); what formats (Cf) reorders or hides other characters; lines and
    paragraphs (Zl, Zp) end a line; nobody knows what surrogates (Cs), private characters (Co) and
    those of a later Unicode (Cn) do. Spaces of other widths are harmless.
    """
    if character.isascii():
        return character.isprintable()
    seen = character.isprintable() or character.isspace()
    return seen and character not in "\x85\u2028\u2029" and not _UNSEEN.match(character)


def visible(text: str, *, keep: str = "") -> str:
    r"""Spell what is not seen as ``\u00ad`` or ``\U000e0041``, but for the characters to keep."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c in keep or is_seen(c) else spell(c) for c in text)


def spell(character: str) -> str:
    r"""Return the escape of a character, which E'' of PostgreSQL and $'' of a shell know."""
    code = ord(character)
    return f"\\u{code:04x}" if code < 1 << 16 else f"\\U{code:08x}"


def command(verb: str, *names: object, options: str = "") -> str:
    """Compose the command that a hint names: a shell reads each name as one word.

    verb: the command as it is typed, such as ``dbanon inspect``; options: after the names.
    """
    words = [_word(str(name)) for name in names]
    if any(str(name).startswith("-") for name in names):
        return " ".join([verb, *filter(None, [options]), "--", *words])
    return " ".join([verb, *words, *filter(None, [options])])


def _word(name: str) -> str:
    if all(map(is_seen, name)):
        return shlex.quote(name)
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"$'{visible(escaped)}'"


def unread(path: object, error: OSError | UnicodeDecodeError) -> str:
    """Say why a file of text cannot be read."""
    if isinstance(error, UnicodeDecodeError):
        if _is_utf_16(error):
            return f"{path} is UTF-16, and not UTF-8"
        return f"{path} is not UTF-8 (at byte {error.start})"
    return f"cannot read {path}: {error.strerror}"


def converted(path: object, error: OSError | UnicodeDecodeError) -> str | None:
    """Return the command that makes a file UTF-8; None if it could not be read at all."""
    if not isinstance(error, UnicodeDecodeError):
        return None
    encoding = "utf-16" if _is_utf_16(error) else "windows-1252"
    return command(f"iconv -f {encoding} -t utf-8", path, options="> converted")


def _is_utf_16(error: UnicodeDecodeError) -> bool:
    return error.object[:2] in {b"\xff\xfe", b"\xfe\xff"}
