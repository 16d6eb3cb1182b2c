"""Two releases, the persons in both, and intersection and differencing attacks on them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.anonymization.attacks.beliefs import beliefs, guesses
from dbanon.anonymization.attacks.bounds import below_one, least_rows, of_cells, one_in
from dbanon.anonymization.attacks.registry import Attacked, in_turn
from dbanon.anonymization.attacks.scenario import (
    COUNTED,
    Case,
    Named,
    NotTried,
    Target,
    at_once,
    candidate_sets,
    naming,
    result,
)
from dbanon.anonymization.released.cells import Released, covers
from dbanon.domain.assignment import EncodedTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from dbanon.domain.outcomes import Stages
    from dbanon.domain.policy import Policy
    from dbanon.domain.report import Attack
    from dbanon.models.tally import Tally


_EVERYBODY = 1_000_000

_Part = tuple[slice, "NDArray[np.float64]", "NDArray[np.float64]"]


class Shown(NamedTuple):
    """A release, its policy, and its rows of the persons in both releases, (n,)."""

    released: Released
    policy: Policy
    rows: NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class Pair:
    """Both releases, as the attacker has them; the persons of both cases are the same.

    same: for each release, its rows of all persons who may be in both, in the same order;
    is_judged: the second was published after comparing both by person, so that persons in the same
    classes of both meet the models.
    """

    first: Case
    second: Case
    same: tuple[NDArray[np.int64], NDArray[np.int64]]
    is_judged: bool

    @property
    def least_rows(self) -> int:
        """Least number of rows in the same classes of both, 1 unless assessed."""
        if not self.is_judged:
            return 1
        return min(least_rows(self.first.policy), least_rows(self.second.policy))

    @property
    def is_bounded(self) -> bool:
        """True if the models hold for both together and for the table as it is now."""
        return self.is_judged and self.first.is_complete and self.second.is_complete

    def admitted(self, share: float | None) -> float | None:
        """Return the greatest rate of correct guesses in shared classes, as ``Case.admitted``."""
        if share is None or not self.is_bounded or not self.first.tried:
            return None
        return below_one(share + float((self.first.several | self.second.several).mean()))

    def targets(self) -> list[tuple[Target, Target]]:
        """Return the sensitive columns of both; raises NotTried if there is none."""
        others = {target.name: target for target in self.second.targets()}
        found = [(one, others[one.name]) for one in self.first.targets() if one.name in others]
        if not found:
            raise NotTried("no sensitive column of several values is published in both")
        return found


def draw_both(
    first: Shown, second: Shown, *, is_judged: bool, samples: int, generator: np.random.Generator
) -> Pair:
    """Draw persons who are in both releases, if membership is stored, and find their classes."""
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
    n_candidates = candidate_sets(released, most=most, generator=generator)
    return Case(released, shown.policy, rows, covers(released, rows), n_candidates)


def codes_in(target: Target, other: Target) -> NDArray[np.int64]:
    """Return the code in one column of each code of the other, -1 if the value does not occur."""
    code_of = {label: code for code, label in enumerate(target.domain.labels)}
    found = [code_of.get(label, -1) for label in other.domain.labels]
    return np.array(found + [-1] * (len(other.whole) - len(found)), np.int64)


def intersection(pair: Pair) -> Iterator[Attack]:
    """Guess, or name, a value by both classes; the baseline is the better guess by one relation."""
    for target, other in pair.targets():
        right, left = np.zeros((3, pair.first.tried), np.bool_), np.zeros(pair.first.tried)
        for some, first, second in _parts(pair, target, other):
            both = together(first, second, target.whole / target.whole.sum())
            left[some] = np.count_nonzero(both, axis=1)
            for i, belief in enumerate((both, first, second)):
                right[i, some] = guesses(belief) == target.truth[some]
        likeliest, distinct = of_cells(
            (pair.first.policy, pair.second.policy), target.name, target.whole
        )
        median = float(np.median(left))
        yield result(
            "intersection",
            target.name,
            chances=right[0].astype(np.float64),
            baseline=float(right[1:].mean(axis=1).max()),
            expected=pair.admitted(likeliest),
            candidates=median,
            words="guesses the likeliest value by both relations; the baseline has the better"
            " of both alone; candidates are values",
        )
        yield naming(
            "intersection to one value",
            target.name,
            Named(left == 1, right[0], target.truth == target.guess),
            expected=0.0 if pair.is_bounded and distinct > 1 else None,
            left=median,
        )


def together(
    first: NDArray[np.float64], second: NDArray[np.float64], share: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the combined probability (p, m) of each value by two independent beliefs.

    share: (m,) their common prior. If no value is in both, the first holds (the value changed).
    """
    both = np.divide(first * second, share, out=np.zeros(first.shape), where=share > 0)
    total = both.sum(axis=1, keepdims=True)
    return np.where(total > 0, both / np.where(total > 0, total, 1), first)


def _parts(pair: Pair, target: Target, other: Target) -> Iterator[_Part]:
    """Yield slices of persons, and the beliefs about them by each relation."""
    size, codes = len(target.whole), len(other.whole)
    code = codes_in(target, other)
    mine, theirs = 1 / pair.first.n_candidates, 1 / pair.second.n_candidates
    for some, first in beliefs(pair.first.coverage, target.tally, mine, n_codes=size):
        rest = pair.second.coverage_of(some)
        second = np.zeros((some.stop - some.start, size))
        for within, belief in beliefs(rest, other.tally, theirs, n_codes=codes):
            moved = np.zeros((len(belief), size))
            np.add.at(moved.T, code[code >= 0], belief.T[code >= 0])
            second[within] = moved
        yield some, first, second


def join(pair: Pair) -> Iterator[Attack]:
    """Pick a random person who may be in the same two classes as a person of both relations."""
    first, second = pair.first.released.classes, pair.second.released.classes
    known = first is not None and second is not None
    if first is not None and second is not None:
        same = [classes[rows] for classes, rows in zip((first, second), pair.same, strict=True)]
        mine = [_of(case) for case in (pair.first, pair.second)]
        rows = cell_sizes(same, mine).astype(np.float64)
        expected = one_in(pair.least_rows)
    else:
        rows, expected = in_both(pair), None
    words = "knows a person's rows in both relations, and takes anybody whose rows these may be"
    alone = [1 / case.coverage.sums(case.released.size) for case in (pair.first, pair.second)]
    yield result(
        "join",
        None,
        chances=1 / rows,
        baseline=max((float(one.mean()) for one in alone if len(one)), default=0.0),
        expected=expected,
        candidates=float(np.median(rows)) if len(rows) else None,
        words=words if known else f"{words}; upper bound (membership is not stored)",
    )


def _of(case: Case) -> NDArray[np.int32]:
    found = case.true_class
    assert found is not None  # noqa: S101 - asked for only where the classes are known
    return found


def cell_sizes(same: list[NDArray[np.int32]], mine: list[NDArray[np.int32]]) -> NDArray[np.int64]:
    """Count the persons in the same two classes, for each person; same, mine: -1 for none."""
    width = int(max((int(same[1].max(initial=-1)), int(mine[1].max(initial=-1))))) + 2
    cells, counts = np.unique(same[0] * np.int64(width) + same[1], return_counts=True)
    return np.asarray(counts[np.searchsorted(cells, mine[0] * np.int64(width) + mine[1])])


def in_both(pair: Pair) -> NDArray[np.float64]:
    """Return how many persons the smallest classes of each person cover in both, (m,).

    Estimated among at most a million of those who may be in both.
    """
    cases = (pair.first, pair.second)
    classes, place = np.unique(
        np.column_stack([_fewest(case) for case in cases]), axis=0, return_inverse=True
    )
    of_both = [
        (
            replace(cells, index=cells.index[classes[:, one]]),
            replace(quasi, codes=quasi.codes[rows]),
        )
        for one, (case, rows) in enumerate(zip(cases, pair.same, strict=True))
        for cells, quasi in zip(case.released.columns, case.released.table.quasi, strict=True)
    ]
    nothing = np.zeros((len(pair.same[0]), 0), np.int32)
    table = EncodedTable(tuple(quasi for _, quasi in of_both), nothing, (), len(nothing))
    cells = tuple(cells for cells, _ in of_both)
    joined = Released(table, cells, np.ones(len(classes), np.int64), ())
    n_candidates = candidate_sets(joined, most=_EVERYBODY, generator=np.random.default_rng(0))
    return n_candidates[place.ravel()]


def _fewest(case: Case) -> NDArray[np.int64]:
    """Return the class of each person that covers the fewest persons."""
    start, classes = case.coverage
    person = np.repeat(np.arange(case.tried), np.diff(start))
    order = np.lexsort((classes, case.n_candidates[classes], person))
    return classes[order][start[:-1]].astype(np.int64)


def differencing(pair: Pair) -> Iterator[Attack]:
    """Guess the values of fewer than k persons by whom a class of one relation exceeds the other's.

    Both publish the same quasi-identifiers, and the smaller class's values are among the larger's.
    """
    first, second = pair.first.released, pair.second.released
    mine, other = alike(first, second)
    k = max(min(pair.first.policy.k, pair.second.policy.k), 2)
    apart = np.abs(first.size[mine] - second.size[other])
    some = (apart > 0) & (apart < k)
    if not some.any():
        raise NotTried(
            f"no class is larger in one relation than in the other by fewer than {k} rows"
        )
    reasons, tried = [], 0
    for target, own in pair.targets():
        code = codes_in(target, own)
        lacking = np.flatnonzero(code < 0)  # values that only the other relation has
        code[lacking] = len(target.whole) + np.arange(len(lacking))
        size = len(target.whole) + len(lacking)
        before = _dense(target.tally, mine[some], np.arange(len(target.whole)), size)
        after = _dense(own.tally, other[some], code, size)
        try:
            found = _tried(target, before - after, np.maximum(before, after))
        except NotTried as error:  # of this column; classes may be nested by the next one
            reasons.append(error)
            continue
        tried += 1
        yield found
    if reasons and not tried:
        raise reasons[0]


def _tried(target: Target, change: NDArray[np.int64], larger: NDArray[np.int64]) -> Attack:
    """Return the result of guessing the values of persons in one class only; arguments (g, m)."""
    nested = (change >= 0).all(axis=1) | (change <= 0).all(axis=1)
    found = np.abs(change[nested])
    persons = found.sum(axis=1)
    chances = np.repeat(found.max(axis=1, initial=0) / np.maximum(persons, 1), persons)
    share = larger[nested].max(axis=1, initial=0) / np.maximum(larger[nested].sum(axis=1), 1)
    baseline = float(np.repeat(share, persons).mean()) if persons.sum() else 0.0
    return result(
        "differencing",
        target.name,
        chances=chances,
        baseline=baseline,
        candidates=float(np.median(np.repeat(persons, persons))) if persons.sum() else None,
        words="subtracts classes that both relations publish; the baseline guesses by the"
        " larger class",
    )


def alike(first: Released, second: Released) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the classes with the same published values in two releases, by index in each.

    Raises NotTried if the releases have different quasi-identifiers.
    """
    names = [column.name for column in first.columns]
    if not names or sorted(names) != sorted(column.name for column in second.columns):
        raise NotTried("the relations do not have the same quasi-identifiers")
    others = {column.name: column for column in second.columns}
    mine = np.zeros(first.n_classes, np.int64)
    other = np.zeros(second.n_classes, np.int64)
    for column in first.columns:
        pair = others[column.name]
        number = {label: i for i, label in enumerate(dict.fromkeys(column.labels + pair.labels))}
        of_mine = np.array([number[label] for label in column.labels], np.int64)[column.index]
        of_other = np.array([number[label] for label in pair.labels], np.int64)[pair.index]
        keys = np.concatenate([mine * len(number) + of_mine, other * len(number) + of_other])
        joint = np.unique(keys, return_inverse=True)[1]
        mine, other = joint[: len(mine)], joint[len(mine) :]
    _, at_first, at_second = np.intersect1d(mine, other, return_indices=True)
    return at_first.astype(np.int64), at_second.astype(np.int64)


def _dense(
    tally: Tally, classes: NDArray[np.int64], code: NDArray[np.int64], size: int
) -> NDArray[np.int64]:
    """Return the frequency of each value in some classes, (g, size); code: of each value."""
    part = tally.of(classes)
    key = part.classes * size + code[part.values]
    counts = np.bincount(key, part.counts, minlength=len(classes) * size)
    return counts.reshape(len(classes), size).astype(np.int64)


ATTACKS_ON_BOTH: Mapping[str, Callable[[Pair], Iterator[Attack]]] = {
    "join": join,
    "intersection": intersection,
    "differencing": differencing,
}


def attack_both(
    first: Shown,
    second: Shown,
    *,
    is_judged: bool = False,
    samples: int,
    seed: int,
    stages: Stages,
    until: float | None = None,
) -> Attacked:
    """Try attacks that combine two releases; is_judged: as in ``Pair``."""
    generator = np.random.default_rng(seed)
    pair = draw_both(first, second, is_judged=is_judged, samples=samples, generator=generator)
    names = tuple(ATTACKS_ON_BOTH)
    if not pair.first.tried:
        return Attacked((), dict.fromkeys(names, "no person of the table can be in both"))
    return in_turn(names, lambda name: ATTACKS_ON_BOTH[name](pair), stages=stages, until=until)
