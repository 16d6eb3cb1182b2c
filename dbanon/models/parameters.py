"""Parameters of privacy models: types and bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dbanon.domain.policy import Value

COLUMNS, MULTI = "columns", "multi"
LISTED = "listed"
PER_ATTRIBUTE, STRICT = "per_attribute", "strict"
EQUAL, ORDERED, HIERARCHICAL = "equal", "ordered", "hierarchical"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter: its type, bounds and default.

    A number lies in [least, most], or above ``least`` if ``above``. A text is one of ``among``. A
    tuple holds texts.
    """

    kind: type[int | float | str | tuple[str, ...]]
    least: float = 1
    most: float = math.inf
    above: bool = False
    among: tuple[str, ...] = ()
    default: Value | None = None

    def field(self) -> dict[str, Parameter]:
        """Return the metadata of a dataclass field for this parameter."""
        return {"parameter": self}

    def spelled(self, name: str) -> str:
        """Describe its values: ``t in [0, 1]``."""
        if self.kind is tuple:
            return f"{name} with a text or more"
        if self.kind is str:
            return f"{name} among {', '.join(self.among)}"
        if self.kind is float and self.most < math.inf:
            return f"{name} in {'(' if self.above else '['}{self.least:g}, {self.most:g}]"
        return f"{name} {'>' if self.above else '>='} {self.least:g}"

    def problem(self, value: object) -> str | None:
        """Return the problem of a value, None if it is valid."""
        if self.kind is tuple:
            fine = isinstance(value, tuple) and all(isinstance(v, str) and v for v in value)
            return None if fine and value else "must be a list of texts"
        if self.kind is str:
            return None if value in self.among else f"is none of {', '.join(self.among)}"
        kinds = (int,) if self.kind is int else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds):
            return "must be an integer" if self.kind is int else "must be a number"
        low = value > self.least if self.above else value >= self.least
        if low and value <= self.most and math.isfinite(value):
            return None
        bound = f"{'greater than' if self.above else 'at least'} {self.least:g}"
        return f"must be {bound}" + (
            f" and at most {self.most:.10g}" if self.most < math.inf else ""
        )


COUNT = Parameter(int, most=2**31 - 1)  # the database's range of counts
LEVEL = Parameter(float)
SHARE = Parameter(float, least=0, most=1, above=True)
FACTOR = Parameter(float, least=0, above=True)
SPAN = Parameter(float, least=0)
CLOSENESS = Parameter(float, least=0, most=1)
DISTANCE = Parameter(str, among=(EQUAL, ORDERED, HIERARCHICAL), default=EQUAL)
TEXTS = Parameter(tuple)

OF_SENSITIVE = {
    COLUMNS: Parameter(tuple, default=()),
    MULTI: Parameter(str, among=(PER_ATTRIBUTE, STRICT), default=PER_ATTRIBUTE),
}
"""What every model about sensitive columns takes, besides its own."""
