"""Base classes of privacy models. Loads no numpy, because the command line reads every model."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, fields
from enum import StrEnum, auto
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from dbanon.kernels.layout import DISTINCT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from dbanon.domain.policy import ModelSpec, Value
    from dbanon.models.tally import Tally, Whole


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


Reason = tuple[str, str]
"""Obstacle to a model, and the possible parameters, empty if there are none."""


class Case(NamedTuple):
    """A table as one class, and the relation it is compared with.

    name: the quoted sensitive column; strictly: assessed by parts of equal values of the other
    sensitive columns.
    """

    name: str
    one: Tally
    whole: Whole
    strictly: bool = False

    @property
    def top(self) -> float:
        """Share of the most frequent value."""
        return float(self.one.shares().max())

    @property
    def distinct(self) -> int:
        """Number of distinct values."""
        return int(self.one.distinct()[0])

    @property
    def shared(self) -> str:
        """Share of the most frequent value as text."""
        return f"{100 * self.top:.0f} % of the rows share one value of {self.name}"

    @property
    def several(self) -> str:
        """Number of distinct values as text."""
        return f"{self.name} has {self.distinct:,} distinct values"


def too_few(case: Case, required: int, *, possible: str) -> Reason:
    """Return the number of values; possible: format of a model with that number."""
    if case.strictly:
        return case.shared, ""
    return case.several, possible.format(case.distinct) if case.distinct < required else ""


def rounded_down(number: float) -> str:
    """Round down to two places, tolerating float errors."""
    return f"{math.floor(100 * number + 1e-9) / 100:.2f}"


def rounded_up(number: float) -> str:
    """Round up to two places, tolerating float errors."""
    return f"{math.ceil(100 * number - 1e-9) / 100:.2f}"


Rule = tuple[int, list[float]]
"""A kind of ``dbanon.kernels.layout``, and its numbers."""

TOLERANCE = 1e-9
MARGIN = 1e-8  # within which a search takes a bound that must not be reached for reached


class Bound(StrEnum):
    """Comparison of the achieved with the required value."""

    AT_LEAST = "at least"
    AT_MOST = "at most"
    BELOW = "below"

    def holds(self, achieved: NDArray[np.float64], required: float) -> NDArray[np.bool_]:
        """Return a mask of the classes that meet it, with a tolerance; BELOW is strict."""
        if self is Bound.AT_LEAST:
            return achieved >= required - TOLERANCE
        if self is Bound.AT_MOST:
            return achieved <= required + TOLERANCE
        return achieved < required - TOLERANCE

    def gap(self, achieved: NDArray[np.float64], required: float) -> NDArray[np.float64]:
        """Return the relative distance of each class from the requirement, 0 if met."""
        import numpy as np

        over = required - achieved if self is Bound.AT_LEAST else achieved - required
        scale = max(abs(required), TOLERANCE)
        return np.where(self.holds(achieved, required), 0.0, np.maximum(over, TOLERANCE) / scale)


class Scope(StrEnum):
    """What a model applies to."""

    CLASSES = auto()
    """The rows of every class."""
    SENSITIVE = auto()
    """The values of a sensitive column in every class."""
    LINKS = auto()
    """The published values of columns ``x``, and those of columns ``y`` that occur with each."""
    POPULATION = auto()
    """The rows of a population, of which the published ones are a part, in every class."""


class Reads(StrEnum):
    """Property of sensitive values that a model uses in addition to their equality."""

    NOTHING = auto()
    LABELS = auto()
    NUMBERS = auto()


class OfPersons(StrEnum):
    """Achievement of a class if a person may have several rows and values.

    The frequency of a value is its share of the persons of the class. The number of distinct values
    is the least number left after removing all rows of one person, plus one.
    """

    TOP_SHARE = auto()
    INVERSE_TOP_SHARE = auto()
    DIFFERENT_VALUES = auto()


@dataclass(frozen=True, slots=True)
class Model:
    """A privacy model; its fields are its parameters.

    The achievement of a class is compared with the parameter ``limit``, and with ``floor`` if there
    is one. All properties of the model are declared here in Python; its computation in the database
    is in ``sql/models``.
    """

    title: ClassVar[str]
    """Format of its name and parameters."""
    limit: ClassVar[str]
    floor: ClassVar[str | None] = None
    bound: ClassVar[Bound]
    scope: ClassVar[Scope] = Scope.SENSITIVE
    reads: ClassVar[Reads] = Reads.NOTHING
    is_short: ClassVar[bool] = False
    """True if its limit alone names it in a policy file: ``alpha = 0.5``."""
    counts: ClassVar[bool] = False
    """True if its check in the database returns integers."""
    ascending: ClassVar[tuple[str, str] | None] = None
    """Two parameters, of which the first is not greater than the second."""
    apart: ClassVar[tuple[str, str] | None] = None
    """Two lists of columns that share none."""
    of_whole: ClassVar[bool] = False
    """True if a class depends on other rows, which no live view can guarantee."""
    of_persons: ClassVar[OfPersons | None] = None
    """Measure if persons have several values; None if undefined."""
    guards_persons: ClassVar[bool] = False
    """True if the guards of a live view enforce it for persons with several rows."""
    one_row: ClassVar[str | None] = None
    """Subject that is undefined if a person has several rows."""
    is_monotone: ClassVar[bool] = True
    """True if the union of two classes that meet it also meets it."""
    is_around: ClassVar[bool] = False
    """True if a class is compared with sets of classes around it."""

    @classmethod
    def parameters(cls) -> Mapping[str, Parameter]:
        """Return its own parameters by name."""
        return {field.name: field.metadata["parameter"] for field in fields(cls)}

    @classmethod
    def accepted(cls) -> Mapping[str, Parameter]:
        """Return all parameters: its own, and those of every model of sensitive columns."""
        own = cls.parameters()
        return {**own, **OF_SENSITIVE} if cls.scope is Scope.SENSITIVE else own

    @classmethod
    def contradictions(cls, params: Mapping[str, Value]) -> Iterator[tuple[str, str]]:
        """Yield (parameter, problem) for contradictions between the given parameters."""
        if cls.ascending is not None:
            least, most = (params.get(name) for name in cls.ascending)
            if isinstance(least, int | float) and isinstance(most, int | float) and least > most:
                yield cls.ascending[0], f"is greater than {cls.ascending[1]}"
        if cls.apart is not None:
            some, others = (params.get(name) for name in cls.apart)
            if isinstance(some, tuple) and isinstance(others, tuple) and set(some) & set(others):
                yield cls.apart[1], f"shares a column with {cls.apart[0]}"

    @property
    def required(self) -> float:
        """Value that every class must achieve."""
        return float(getattr(self, self.limit))

    def meets(self, achieved: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return a mask of the classes that meet it, given their achievement."""
        met = self.bound.holds(achieved, self.required)
        if self.floor is not None:
            met &= Bound.AT_LEAST.holds(achieved, getattr(self, self.floor))
        return met

    def __str__(self) -> str:
        """Spell the model, for example ``entropy 3-diversity``."""
        values = {name: getattr(self, name) for name in self.parameters()}
        return self.title.format(
            **{name: f"{v:g}" if isinstance(v, float) else v for name, v in values.items()}
        )


@dataclass(frozen=True, slots=True)
class ClassModel(Model):
    """A model of the frequencies of values in each class."""

    @abstractmethod
    def achieved(self, tally: Tally, whole: Whole) -> NDArray[np.float64]:
        """Return the achievement of each class, (n_classes,), in the unit of the SQL check."""

    @property
    def least_rows(self) -> int:
        """Least number of rows of a class that meets it."""
        return 1

    def search_rule(self, whole: Whole) -> Rule | None:  # noqa: ARG002 - of those that have one
        """Return the rule that a search keeps, None if only merging enforces the model."""
        return None

    def explain(self, case: Case) -> Reason:
        """Explain why all rows as one class fail."""
        return case.shared, f"probabilistic l <= {rounded_down(1 / case.top)}"


@dataclass(frozen=True, slots=True)
class DistinctModel(ClassModel):
    """A model of the number of distinct values of a class."""

    bound = Bound.AT_LEAST

    def achieved(self, tally: Tally, whole: Whole) -> NDArray[np.float64]:  # noqa: ARG002 - counts
        """Return the number of distinct values of each class."""
        return tally.distinct().astype(float)

    def search_rule(self, whole: Whole) -> Rule:  # noqa: ARG002 - counts
        """Return the number of values."""
        return DISTINCT, [self.required, 0.0]


@dataclass(frozen=True, slots=True)
class Demand:
    """A model applied to one sensitive column.

    column: its index, None for a model of rows; among: sensitive columns that join the
    quasi-identifiers, so that a group is assessed by parts of equal values in them; jointly:
    columns that form a value together with it.
    """

    spec: ModelSpec
    model: ClassModel
    column: int | None
    among: tuple[int, ...] = ()
    jointly: tuple[int, ...] = ()
