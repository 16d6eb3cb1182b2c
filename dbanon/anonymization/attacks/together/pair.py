"""Two releases, and the persons of both on whom attacks are tried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from dbanon.anonymization.attacks.bounds import below_one, least_rows
from dbanon.anonymization.attacks.case import COUNTED, Case, NotTried, at_once, crowd_of
from dbanon.anonymization.released.covering import covers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from dbanon.anonymization.attacks.case import Target
    from dbanon.anonymization.released.cells import Released
    from dbanon.domain.policy import Policy
    from dbanon.domain.report import Attack


class Shown(NamedTuple):
    """A release, by which policy it was published, and its rows of the persons of both, (n,)."""

    released: Released
    policy: Policy
    rows: NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class Pair:
    """What an attacker has who has both releases; the persons of both cases are the same.

    same: of each release, its rows of all persons who may be in both, in the same order; is_judged:
    whether one was published only after both were compared, person by person, so that those who
    are in the same classes of both meet the models.
    """

    first: Case
    second: Case
    same: tuple[NDArray[np.int64], NDArray[np.int64]]
    is_judged: bool

    @property
    def least_rows(self) -> int:
        """How many rows those have at least who are in the same classes of both, if judged."""
        if not self.is_judged:
            return 1
        return min(least_rows(self.first.policy), least_rows(self.second.policy))

    @property
    def least(self) -> int:
        """How many rows k persons have at most, by the greater k of both."""
        return max(self.first.least, self.second.least)

    @property
    def is_bounded(self) -> bool:
        """Whether the models hold of both together, and of the table as it is now."""
        return self.is_judged and self.first.is_complete and self.second.is_complete

    def admitted(self, share: float | None) -> float | None:
        """Return how often a guess is right of which the same classes have a share at most.

        As of one release, this bounds nothing of who may be in several classes of either.
        """
        if share is None or not self.is_bounded or not self.first.tried:
            return None
        return below_one(share + float((self.first.several | self.second.several).mean()))

    def targets(self) -> list[tuple[Target, Target]]:
        """Return the sensitive columns that both show; raises NotTried when there is none."""
        others = {target.name: target for target in self.second.targets()}
        found = [(one, others[one.name]) for one in self.first.targets() if one.name in others]
        if not found:
            raise NotTried("no sensitive column of several values is published in both")
        return found


class AttackOnBoth(Protocol):
    """Tries an attack on two releases; yields one result, or one for each sensitive column."""

    def __call__(self, pair: Pair) -> Iterator[Attack]:
        """Yield what came of it; raises NotTried when there is nothing to begin with."""
        ...


def draw_both(
    first: Shown, second: Shown, *, is_judged: bool, samples: int, generator: np.random.Generator
) -> Pair:
    """Draw persons who are in both releases, as far as anybody knows, and find their classes."""
    places = np.arange(len(first.rows))
    for one in (first, second):
        classes = one.released.classes
        if classes is not None:
            places = places[classes[one.rows[places]] >= 0]
    samples = min(samples, *(at_once(one.released, one.rows[places]) for one in (first, second)))
    if len(places) > samples:
        places = np.sort(generator.choice(places, samples, replace=False))
    most = max(samples, COUNTED)
    cases = [_case(one, places, most, generator) for one in (first, second)]
    seen = np.logical_and.reduce([np.diff(case.coverage.start) > 0 for case in cases])
    mine, other = (case.of(seen) for case in cases)
    return Pair(mine, other, (first.rows, second.rows), is_judged)


def _case(
    shown: Shown, places: NDArray[np.int64], most: int, generator: np.random.Generator
) -> Case:
    released, rows = shown.released, shown.rows[places]
    crowd = crowd_of(released, most=most, generator=generator)
    return Case(released, shown.policy, rows, covers(released, rows), crowd)


def codes_in(target: Target, other: Target) -> NDArray[np.int64]:
    """Return the code in one column of each code of the other, -1 where that has no such value."""
    code_of = {label: code for code, label in enumerate(target.domain.labels)}
    found = [code_of.get(label, -1) for label in other.domain.labels]
    return np.array(found + [-1] * (len(other.whole) - len(found)), np.int64)
