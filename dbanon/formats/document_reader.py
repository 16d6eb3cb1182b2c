"""Read a document and collect every problem with the path of its key."""

from __future__ import annotations

import difflib
import json
import math
import re
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_MAX_INTEGER = 2**63  # what TOML promises and bigint holds
_MAX_FLOAT = int(sys.float_info.max)
_TYPES = (
    (bool, "a boolean"),
    (int, "an integer"),
    (float, "a number"),
    (str, "a string"),
    (Mapping, "a table"),
    (list, "a list"),
    (type(None), "null"),
)


@dataclass(slots=True)
class Section:
    """One table of a document; readers return None for absent or wrong keys, and report these."""

    values: Mapping[str, object]
    path: str
    problems: list[str]
    asked: set[str] = field(default_factory=set)

    def path_of(self, key: str) -> str:
        """Return the path of a key in TOML notation."""
        spelled = key if _BARE_KEY.fullmatch(key) else json.dumps(key, ensure_ascii=False)
        return f"{self.path}.{spelled}" if self.path else spelled

    def report(self, key: str, text: str) -> None:
        """Record a problem of a key."""
        self.problems.append(f"{self.path_of(key)}: {text}")

    def text(self, key: str, *, among: Collection[str] | None = None) -> str | None:
        """Read a non-empty string, one of ``among`` if given."""
        value = self._value(key)
        if value is None:
            return None
        if not isinstance(value, str):
            self._report_type(key, value, "a string")
        elif not value or "\x00" in value:
            self.report(key, "is empty or holds a NUL character")
        elif among is not None and value not in among:
            self.report(key, f"is none of {', '.join(sorted(among))}{did_you_mean(value, among)}")
        else:
            return value
        return None

    def integer(self, key: str, *, least: int) -> int | None:
        """Read an integer of at least ``least``."""
        value = self._value(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            self._report_type(key, value, "an integer")
        elif not least <= value < _MAX_INTEGER:
            self.report(key, f"must be at least {least}, and less than 2^63")
        else:
            return value
        return None

    def number(self, key: str, *, above: float) -> float | None:
        """Read a finite number greater than ``above``."""
        value = self._value(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._report_type(key, value, "a number")
        elif isinstance(value, int) and abs(value) >= _MAX_FLOAT:
            self.report(key, "is too large")
        elif not math.isfinite(value) or value <= above:
            bound = "" if above == -math.inf else f" greater than {above:g}"
            self.report(key, f"must be a finite number{bound}")
        else:
            return float(value)  # jsonb gives 1e300 back as an integer
        return None

    def boolean(self, key: str) -> bool | None:
        """Read true or false."""
        value = self._value(key)
        if value is not None and not isinstance(value, bool):
            self._report_type(key, value, "true or false")
            return None
        return value

    def scalar(self, key: str) -> str | int | float | bool | None:
        """Read a string, a number or a boolean."""
        value = self.values.get(key)
        if isinstance(value, bool):
            self.asked.add(key)
            return value
        if isinstance(value, int) and abs(value) < _MAX_INTEGER:
            return self.integer(key, least=1 - _MAX_INTEGER)
        if isinstance(value, (int, float)):
            return self.number(key, above=-math.inf)
        return self.text(key)

    def texts(self, key: str, *, empty: bool = False) -> tuple[str, ...] | None:
        """Read a list of strings, which may be empty if ``empty``."""
        value = self._value(key)
        texts = value if isinstance(value, list) else []
        if texts and all(isinstance(v, str) and (v or empty) and "\x00" not in v for v in texts):
            return tuple(texts)
        if value is not None:
            self.report(key, "must be a list of strings")
        return None

    def section(self, key: str) -> Section:
        """Read a table; an absent or wrong one reads as empty."""
        value = self._value(key)
        if value is not None and not isinstance(value, Mapping):
            self._report_type(key, value, "a table")
        inner = value if isinstance(value, Mapping) else {}
        return Section(inner, self.path_of(key), self.problems)

    def sections(self, key: str) -> list[Section]:
        """Read a list of tables."""
        value = self._value(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
            self.report(key, "must be a list of tables")
            return []
        path = self.path_of(key)
        return [Section(item, f"{path}[{i}]", self.problems) for i, item in enumerate(value)]

    def require(self, key: str) -> None:
        """Report an absent key."""
        if key not in self.values:
            self.report(key, "is missing")

    def close(self) -> None:
        """Report the keys that were not read."""
        for key in self.values:
            if key not in self.asked:
                self.report(key, f"unknown key{did_you_mean(key, self.asked)}")

    def _value(self, key: str) -> object:
        self.asked.add(key)
        value = self.values.get(key)
        if value is None and key in self.values:
            self.report(key, "must not be null")
        return value

    def _report_type(self, key: str, value: object, expected: str) -> None:
        found = next((name for kind, name in _TYPES if isinstance(value, kind)), "a date or time")
        self.report(key, f"must be {expected}, found {found}")


def did_you_mean(word: str, among: Collection[str]) -> str:
    """Return ``; did you mean x?`` for the nearest word, or an empty string."""
    near = difflib.get_close_matches(word.lower(), sorted(among), n=1)
    return f"; did you mean {near[0]}?" if near else ""
