"""The scenario of an attack: a release, the targeted persons, and the result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import betaincinv

from dbanon.anonymization.attacks.bounds import Limits, below_one, limits
from dbanon.anonymization.released.cells import Coverage, Released, covers
from dbanon.domain.report import Attack, Naming

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from dbanon.domain.assignment import SensitiveDomain
    from dbanon.domain.policy import Policy
    from dbanon.models.tally import Tally


COUNTED = 100_000  # rows at least among which is counted of how many a row may be
_HELD, _PILOT = 20_000_000, 20  # pairs of a row and its class at once; rows of the estimate
_TIMES = 10  # times the rows held at once are counted


class NotTried(Exception):
    """The prerequisites of an attack are missing; the message names them."""


@dataclass(frozen=True, eq=False, slots=True)
class Target:
    """A sensitive column that is the target of an attack.

    tally: values by class; truth: (m,) code of each person; whole: (n_codes,) values of the
    relation.
    """

    name: str
    domain: SensitiveDomain
    tally: Tally
    truth: NDArray[np.int64]
    whole: NDArray[np.int64]
    limits: Limits

    @property
    def guess(self) -> int:
        """Most frequent value of the relation, the guess without classes."""
        return int(self.whole.argmax())

    @property
    def baseline(self) -> float:
        """Share of the persons with that value."""
        return float((self.truth == self.guess).mean())


@dataclass(frozen=True, eq=False, slots=True)
class Case:
    """A release, and the persons targeted by attacks.

    rows: (m,) their rows of the source, ascending; coverage: the classes that may contain each;
    n_candidates: (n_classes,) number of source rows that a row of each class may be; unseen: number
    of drawn persons that no class covers.
    """

    released: Released
    policy: Policy
    rows: NDArray[np.int64]
    coverage: Coverage
    n_candidates: NDArray[np.float64]
    unseen: int = 0

    @property
    def tried(self) -> int:
        """Number of persons."""
        return len(self.rows)

    @property
    def true_class(self) -> NDArray[np.int32] | None:
        """The class of each person, None if membership is not stored."""
        classes = self.released.classes
        return None if classes is None else classes[self.rows]

    @property
    def candidates(self) -> float:
        """Median number of published rows that may be a person's."""
        return float(np.median(self.coverage.sums(self.released.size)))

    @property
    def is_complete(self) -> bool:
        """True if all these persons are known to be in the release."""
        published = int(self.released.size.sum())
        if self.released.classes is not None:
            return True
        return published == self.released.table.n_rows and not self.unseen

    @property
    def several(self) -> NDArray[np.bool_]:
        """Mask of the persons that may be in several classes, (m,)."""
        return np.asarray(np.diff(self.coverage.start) > 1, np.bool_)

    def admitted(self, share: float | None) -> float | None:
        """Return the greatest rate of correct guesses if a model bounds the share in a class.

        Persons who may be in one class only are guessed at this rate. For others the bound does not
        hold, because the set of possible classes distinguishes them within a class. None if
        unbounded.
        """
        if share is None or not self.is_complete or not self.tried:
            return None
        return below_one(share + float(self.several.mean()))

    def of(self, seen: NDArray[np.bool_]) -> Case:
        """Return the case with some persons, (m,); the others are in no class."""
        start, classes = self.coverage
        held = np.diff(start)
        coverage = Coverage(
            np.append(0, np.cumsum(held[seen])).astype(np.int64), classes[np.repeat(seen, held)]
        )
        unseen = self.unseen + int(len(seen) - seen.sum())
        return replace(self, rows=self.rows[seen], coverage=coverage, unseen=unseen)

    def coverage_of(self, some: slice) -> Coverage:
        """Return the classes of some persons."""
        start = self.coverage.start[some.start : some.stop + 1]
        return Coverage(start - start[0], self.coverage.classes[start[0] : start[-1]])

    def targets(self) -> Iterator[Target]:
        """Yield the published sensitive columns with at least two values."""
        table = self.released.table
        for column in self.released.sensitive:
            place = table.sensitive_names.index(column.name)
            whole = np.bincount(column.codes, weights=column.rows, minlength=column.n_codes)
            if np.count_nonzero(whole) < 2:  # noqa: PLR2004 - a single value discloses nothing
                continue
            domain = table.domains[place]
            share = whole / max(whole.sum(), 1)
            yield Target(
                column.name,
                domain,
                column.tally,
                table.sensitive[self.rows, place].astype(np.int64),
                whole.astype(np.int64),
                limits(self.policy, column.name, share, domain),
            )

    def some_target(self) -> Iterator[Target]:
        """Yield the targets; raises NotTried if there is none."""
        found = list(self.targets())
        if not found:
            raise NotTried("no sensitive column of several values is published as it is")
        yield from found


def result(
    name: str,
    column: str | None,
    *,
    chances: NDArray[np.float64],
    baseline: float,
    candidates: float | None,
    words: str,
    expected: float | None = None,
) -> Attack:
    """Return an attack with its rate and confidence interval; raises NotTried without trials.

    chances: (t,) in [0, 1], of the trials; baseline: rate without the release; candidates: median
    number of remaining rows, None if meaningless.
    """
    tried = len(chances)
    if not tried:
        raise NotTried("no such person was found")
    right = min(float(chances.sum()), float(tried))
    low, high = interval(right, tried)
    return Attack(
        name, column, tried, candidates, right / tried, low, high, baseline, expected, words
    )


class Named(NamedTuple):
    """Persons with one possible value, (m,); right, usual: if it, or the most frequent, is true."""

    persons: NDArray[np.bool_]
    right: NDArray[np.bool_]
    usual: NDArray[np.bool_]


def naming(name: str, column: str, found: Named, *, expected: float | None, left: float) -> Attack:
    """Return an attack that names values; its baseline guesses the same persons."""
    right, usual = (found.persons & one for one in (found.right, found.usual))
    counts = Naming(int(found.persons.sum()), int(right.sum()), int(usual.sum()))
    attack = result(
        name,
        column,
        chances=right.astype(np.float64),
        baseline=float(usual.mean()),
        expected=expected,
        candidates=left,
        words="guesses the value if all candidate rows share one; candidates are values",
    )
    return replace(attack, named=counts)


def draw(
    released: Released, policy: Policy, *, samples: int, generator: np.random.Generator
) -> Case:
    """Draw persons who are in the release, if membership is stored, and find their classes."""
    rows = np.arange(released.table.n_rows)
    if released.classes is not None:
        rows = rows[released.classes >= 0]
    samples = min(samples, at_once(released, rows))
    if len(rows) > samples:
        rows = np.sort(generator.choice(rows, samples, replace=False))
    n_candidates = candidate_sets(released, most=max(samples, COUNTED), generator=generator)
    case = Case(released, policy, rows, covers(released, rows), n_candidates)
    return case.of(np.diff(case.coverage.start) > 0)


def at_once(released: Released, rows: NDArray[np.int64]) -> int:
    """Return for how many rows the possible classes fit in memory."""
    some = rows[:: max(len(rows) // _PILOT, 1)]
    pairs = len(covers(released, some).classes)
    return max(_HELD * len(some) // max(pairs, 1), 1) if pairs else _HELD


def candidate_sets(
    released: Released, *, most: int, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Return the number of source rows that a row of each class may be, (n_classes,).

    Estimated from at most ``most`` rows, rather too low than too high.
    """
    n_rows = released.table.n_rows
    rows = np.arange(n_rows)
    step = at_once(released, rows)
    most = min(most, _TIMES * step)
    if n_rows > most:
        rows = np.sort(generator.choice(n_rows, most, replace=False))
    found = np.zeros(released.n_classes, np.int64)
    for first in range(0, len(rows), step):
        classes = covers(released, rows[first : first + step]).classes
        found += np.bincount(classes, minlength=released.n_classes)
    others = np.maximum(found - 1, 0) * (n_rows / max(len(rows), 1))
    return np.asarray(np.maximum(1 + others, released.size), np.float64)


_MISSED = 0.05


def interval(right: float, tried: int) -> tuple[float, float]:
    """Return the 95 % interval of a rate (Clopper, Pearson, Biometrika 1934).

    right: successes, or the sum of their probabilities (conservative; Hoeffding 1956).
    """
    if not 0 <= right <= tried or tried < 1:
        msg = "nobody can be right more often than it is tried"
        raise ValueError(msg)
    wrong = tried - right
    low = float(betaincinv(right, wrong + 1, _MISSED / 2)) if right > 0 else 0.0
    high = float(betaincinv(right + 1, wrong, 1 - _MISSED / 2)) if wrong > 0 else 1.0
    return low, high
