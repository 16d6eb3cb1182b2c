"""What a privacy model is. Nothing here loads numpy, for the command line reads every model."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, fields
from enum import StrEnum, auto
from typing import TYPE_CHECKING, ClassVar

from dbanon.kernels.layout import DISTINCT
from dbanon.models.explanation import shared_value
from dbanon.models.parameters import OF_SENSITIVE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from dbanon.domain.policy import ModelSpec, Value
    from dbanon.models.explanation import Case, Told
    from dbanon.models.parameters import Parameter
    from dbanon.models.tally import Tally, Whole

Rule = tuple[int, list[float]]
"""A kind of ``dbanon.kernels.layout``, and its numbers."""

TOLERANCE = 1e-9
MARGIN = 1e-8  # within which a search takes a bound that must not be reached for reached


class Bound(StrEnum):
    """How what a class achieves must lie to what is required."""

    AT_LEAST = "at least"
    AT_MOST = "at most"
    BELOW = "below"

    def holds(self, achieved: NDArray[np.float64], required: float) -> NDArray[np.bool_]:
        """Tell which classes meet it; numbers are compared with a tolerance, BELOW strictly."""
        if self is Bound.AT_LEAST:
            return achieved >= required - TOLERANCE
        if self is Bound.AT_MOST:
            return achieved <= required + TOLERANCE
        return achieved < required - TOLERANCE

    def gap(self, achieved: NDArray[np.float64], required: float) -> NDArray[np.float64]:
        """Return how far each class is from what is required, relatively; 0 when it is there."""
        import numpy as np

        over = required - achieved if self is Bound.AT_LEAST else achieved - required
        scale = max(abs(required), TOLERANCE)
        return np.where(self.holds(achieved, required), 0.0, np.maximum(over, TOLERANCE) / scale)


class Scope(StrEnum):
    """What a model is asked of."""

    CLASSES = auto()
    """The rows of every class."""
    SENSITIVE = auto()
    """The values of a sensitive column in every class."""
    LINKS = auto()
    """The published values of columns ``x``, and those of columns ``y`` that occur with each."""
    POPULATION = auto()
    """The rows of a population, of which the published ones are a part, in every class."""


class Reads(StrEnum):
    """What a model looks at of sensitive values, besides which of them are equal."""

    NOTHING = auto()
    LABELS = auto()
    NUMBERS = auto()


class OfPersons(StrEnum):
    """What a class achieves where a person may have several rows, and several values among them.

    A value is as frequent as the persons who have it are among the persons of the class. Of
    different values there are as many as are left, and one, when any one person's rows go.
    """

    TOP_SHARE = auto()
    INVERSE_TOP_SHARE = auto()
    DIFFERENT_VALUES = auto()


@dataclass(frozen=True, slots=True)
class Variant:
    """The value of another option that has an option of several models mean this one."""

    flag: str
    value: str
    help: str = ""


@dataclass(frozen=True, slots=True)
class Model:
    """A privacy model, its fields being its parameters.

    What a class achieves is compared with the parameter ``limit``, and must not lie below ``floor``
    if there is one. Whatever depends on the model is declared here, in Python; how the database
    computes what a class achieves is in ``sql/models``.
    """

    title: ClassVar[str]
    """How it is spelled with its parameters."""
    limit: ClassVar[str]
    floor: ClassVar[str | None] = None
    bound: ClassVar[Bound]
    scope: ClassVar[Scope] = Scope.SENSITIVE
    reads: ClassVar[Reads] = Reads.NOTHING
    is_short: ClassVar[bool] = False
    """Whether its limit stands for it on its own in a policy file: ``alpha = 0.5``."""
    counts: ClassVar[bool] = False
    """Whether its check in the database returns integers."""
    variant: ClassVar[Variant | None] = None
    ascending: ClassVar[tuple[str, str] | None] = None
    """Two parameters, of which the first is not greater than the second."""
    apart: ClassVar[tuple[str, str] | None] = None
    """Two lists of columns that share none."""
    of_whole: ClassVar[bool] = False
    """Whether a class is judged by more than its own rows, which no live view can keep."""
    of_persons: ClassVar[OfPersons | None] = None
    """What it means where persons have several values; None where it says nothing then."""
    guards_persons: ClassVar[bool] = False
    """Whether the guards of a live view keep it of persons who have several rows."""
    one_row: ClassVar[str | None] = None
    """What it is about that makes no sense once a person has several rows."""
    is_monotone: ClassVar[bool] = True
    """Whether the union of two classes that meet it does, too."""
    is_around: ClassVar[bool] = False
    """Whether a class is compared with sets of classes around it."""

    @classmethod
    def parameters(cls) -> Mapping[str, Parameter]:
        """Return its own parameters by name."""
        return {field.name: field.metadata["parameter"] for field in fields(cls)}

    @classmethod
    def accepted(cls) -> Mapping[str, Parameter]:
        """Return all parameters: its own, and those of every model about sensitive columns."""
        own = cls.parameters()
        return {**own, **OF_SENSITIVE} if cls.scope is Scope.SENSITIVE else own

    @classmethod
    def contradictions(cls, params: Mapping[str, Value]) -> Iterator[tuple[str, str]]:
        """Yield (parameter, what is wrong) between the parameters that are given."""
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
        """What every class must achieve."""
        return float(getattr(self, self.limit))

    def meets(self, achieved: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Tell which classes meet it by what they achieve."""
        met = self.bound.holds(achieved, self.required)
        if self.floor is not None:
            met &= Bound.AT_LEAST.holds(achieved, getattr(self, self.floor))
        return met

    def __str__(self) -> str:
        """Spell the model as a person would, such as ``entropy 3-diversity``."""
        values = {name: getattr(self, name) for name in self.parameters()}
        return self.title.format(
            **{name: f"{v:g}" if isinstance(v, float) else v for name, v in values.items()}
        )


@dataclass(frozen=True, slots=True)
class ClassModel(Model):
    """A model that a class meets, or not, by how often each value occurs in it."""

    @abstractmethod
    def achieved(self, tally: Tally, whole: Whole) -> NDArray[np.float64]:
        """Return what each class achieves, (n_classes,), in the numbers of the SQL check."""

    @property
    def least_rows(self) -> int:
        """The fewest rows that a class which meets it can have."""
        return 1

    def search_rule(self, whole: Whole) -> Rule | None:  # noqa: ARG002 - of those that have one
        """Return what a search can keep of it, None if merging must see to all of it."""
        return None

    def explain(self, case: Case) -> Told:
        """Say what stands against it when all rows as one class do not meet it."""
        return shared_value(case)


@dataclass(frozen=True, slots=True)
class DistinctModel(ClassModel):
    """A model of how many different values a class has."""

    bound = Bound.AT_LEAST

    def achieved(self, tally: Tally, whole: Whole) -> NDArray[np.float64]:  # noqa: ARG002 - counts
        """Return the number of distinct values of each class."""
        return tally.distinct().astype(float)

    def search_rule(self, whole: Whole) -> Rule:  # noqa: ARG002 - counts
        """Return the number of values."""
        return DISTINCT, [self.required, 0.0]


@dataclass(frozen=True, slots=True)
class Demand:
    """A model asked of one sensitive column.

    column: its number, None for a model about rows; among: the sensitive columns that join the
    quasi-identifier, so that a group is judged in parts of equal values in them; jointly: those
    that make up a value together with it.
    """

    spec: ModelSpec
    model: ClassModel
    column: int | None
    among: tuple[int, ...] = ()
    jointly: tuple[int, ...] = ()
