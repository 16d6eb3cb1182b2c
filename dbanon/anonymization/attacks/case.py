"""What an attack is: a release, the persons on whom it is tried, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from scipy.special import betaincinv

from dbanon.anonymization.attacks.bounds import below_one, limits
from dbanon.anonymization.released.covering import Coverage, covers
from dbanon.domain.report import Attack, Naming

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from dbanon.anonymization.attacks.bounds import Limits
    from dbanon.anonymization.released.cells import Released
    from dbanon.domain.assignment import SensitiveDomain
    from dbanon.domain.policy import Policy
    from dbanon.models.tally import Tally


COUNTED = 100_000  # rows at least among which is counted of how many a row may be
_HELD, _PILOT = 20_000_000, 20  # pairs of a row and its class at once; rows that tell how many
_TIMES = 10  # as many rows as are held at once are counted


class NotTried(Exception):
    """There is nothing that an attack could begin with; the message says what is missing."""


@dataclass(frozen=True, eq=False, slots=True)
class Target:
    """A sensitive column that an attacker wants to know of persons.

    tally: how often each value is in each class; truth: (m,) the code of each person tried; whole:
    (n_codes,) how often each value is in the relation; guess: its most frequent one.
    """

    name: str
    domain: SensitiveDomain
    tally: Tally
    truth: NDArray[np.int64]
    whole: NDArray[np.int64]
    limits: Limits

    @property
    def guess(self) -> int:
        """What somebody guesses of everybody who knows the whole relation, and no classes."""
        return int(self.whole.argmax())


@dataclass(frozen=True, eq=False, slots=True)
class Case:
    """A release, and the persons on whom attacks are tried.

    rows: (m,) their rows of the source, ascending; coverage: the classes that each may be in;
    crowd: (n_classes,) of how many rows of the source a row of each class may be; unseen: how many
    were drawn whom no class covers, so that they cannot be in it as they are.
    """

    released: Released
    policy: Policy
    rows: NDArray[np.int64]
    coverage: Coverage
    crowd: NDArray[np.float64]
    unseen: int = 0

    @property
    def tried(self) -> int:
        """How many persons there are."""
        return len(self.rows)

    @property
    def true_class(self) -> NDArray[np.int32] | None:
        """The class of each person, None where nobody remembers."""
        classes = self.released.classes
        return None if classes is None else classes[self.rows]

    @property
    def is_complete(self) -> bool:
        """Whether all these persons are known to be in the release."""
        published = int(self.released.size.sum())
        if self.released.classes is not None:
            return True
        return published == self.released.table.n_rows and not self.unseen

    @property
    def several(self) -> NDArray[np.bool_]:
        """Who may be in more classes than one, (m,)."""
        return np.asarray(np.diff(self.coverage.start) > 1, np.bool_)

    def admitted(self, share: float | None) -> float | None:
        """Return how often a guess is right of which a model lets a class have a share at most.

        Who may be in one class alone is guessed as all such are of that class. Who may be in
        several is guessed by these, which tells them apart from the others of their class: that
        bounds nothing of them. None where nothing is bounded.
        """
        if share is None or not self.is_complete or not self.tried:
            return None
        return below_one(share + float(self.several.mean()))

    def of(self, seen: NDArray[np.bool_]) -> Case:
        """Return the case of some persons, (m,); the others are thought to be in no class."""
        start, classes = self.coverage
        held = np.diff(start)
        coverage = Coverage(
            np.append(0, np.cumsum(held[seen])).astype(np.int64), classes[np.repeat(seen, held)]
        )
        unseen = self.unseen + int(len(seen) - seen.sum())
        return replace(self, rows=self.rows[seen], coverage=coverage, unseen=unseen)

    def coverage_of(self, some: slice) -> Coverage:
        """Return the classes of some persons, one after the other."""
        start = self.coverage.start[some.start : some.stop + 1]
        return Coverage(start - start[0], self.coverage.classes[start[0] : start[-1]])

    def targets(self) -> Iterator[Target]:
        """Yield the sensitive columns whose values readers see, but those of one value."""
        table = self.released.table
        for column in self.released.sensitive:
            place = table.sensitive_names.index(column.name)
            whole = np.bincount(column.codes, weights=column.rows, minlength=column.n_codes)
            if np.count_nonzero(whole) < 2:  # noqa: PLR2004 - who knows one value learns nothing
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
        """Yield the targets; raises NotTried when there is none."""
        found = list(self.targets())
        if not found:
            raise NotTried("no sensitive column of several values is published as it is")
        yield from found


class Tries(NamedTuple):
    """On whom an attack was tried, and with what chance it was right of each.

    chances: (t,) in [0, 1], 0 or 1 where it is known; baseline: the rate of who guesses without the
    release; candidates: the median number of rows that are left, None where it says nothing.
    """

    chances: NDArray[np.float64]
    baseline: float
    expected: float | None
    candidates: float | None
    words: str


def result(name: str, column: str | None, tries: Tries) -> Attack:
    """Return an attack with its rate and how sure that is; raises NotTried if it is of nobody."""
    tried = len(tries.chances)
    if not tried:
        raise NotTried("no such person was found")
    right = min(float(tries.chances.sum()), float(tried))
    low, high = interval(right, tried)
    return Attack(
        name=name,
        column=column,
        tried=tried,
        candidates=tries.candidates,
        rate=right / tried,
        low=low,
        high=high,
        baseline=tries.baseline,
        expected=tries.expected,
        words=tries.words,
    )


class Named(NamedTuple):
    """Of whom an attacker names a value as the only one possible, (m,), and of whom rightly.

    usual: whether the most frequent value of the relation would have been right.
    """

    persons: NDArray[np.bool_]
    right: NDArray[np.bool_]
    usual: NDArray[np.bool_]


def naming(name: str, column: str, found: Named, *, expected: float | None, left: float) -> Attack:
    """Return an attack that names values; its baseline guesses the persons of whom one is named."""
    right, usual = (found.persons & one for one in (found.right, found.usual))
    counts = Naming(int(found.persons.sum()), int(right.sum()), int(usual.sum()))
    words = "names a value where no other is left; candidates are values"
    tries = Tries(right.astype(np.float64), float(usual.mean()), expected, left, words)
    return replace(result(name, column, tries), named=counts)


class AttackOn(Protocol):
    """Tries an attack; yields one result, or one for each sensitive column."""

    def __call__(self, case: Case, generator: np.random.Generator) -> Iterator[Attack]:
        """Yield what came of it; raises NotTried when there is nothing to begin with."""
        ...


def draw(
    released: Released,
    policy: Policy,
    *,
    samples: int,
    generator: np.random.Generator,
) -> Case:
    """Draw persons who are in the release, as far as anybody knows, and find their classes."""
    rows = np.arange(released.table.n_rows)
    if released.classes is not None:
        rows = rows[released.classes >= 0]
    samples = min(samples, at_once(released, rows))
    if len(rows) > samples:
        rows = np.sort(generator.choice(rows, samples, replace=False))
    crowd = crowd_of(released, most=max(samples, COUNTED), generator=generator)
    case = Case(released, policy, rows, covers(released, rows), crowd)
    return case.of(np.diff(case.coverage.start) > 0)


def at_once(released: Released, rows: NDArray[np.int64]) -> int:
    """Return of how many rows all classes can be held, as some of them have so many.

    Where means are published a row may be in any class.
    """
    some = rows[:: max(len(rows) // _PILOT, 1)]
    pairs = len(covers(released, some).classes)
    return max(_HELD * len(some) // max(pairs, 1), 1) if pairs else _HELD


def crowd_of(
    released: Released, *, most: int, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Return of how many rows of the source a row of each class may be, (n_classes,).

    Counted among so many rows at most; of a class that covers some of these, one is taken for its
    own, and the others are scaled, so that it is rather too few than too many. A class covers its
    own rows at least.
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
    """Return the interval of 95 % of a rate (Clopper, Pearson, Biometrika 1934).

    right: of how many tried the attacker was right, or the sum of the probabilities of that. Such a
    sum varies no more than a count of the same mean does (Hoeffding 1956), so that the interval is
    too wide then rather than too narrow.
    """
    if not 0 <= right <= tried or tried < 1:
        msg = "nobody can be right more often than it is tried"
        raise ValueError(msg)
    wrong = tried - right
    low = float(betaincinv(right, wrong + 1, _MISSED / 2)) if right > 0 else 0.0
    high = float(betaincinv(right + 1, wrong, 1 - _MISSED / 2)) if wrong > 0 else 1.0
    return low, high
