"""Find the row of a person, or the person of a row (El Emam, Dankar, JAMIA 2008).

Also by the nearest row (Domingo-Ferrer, Torra 2003), and membership of a person in the release.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from dbanon.anonymization.attacks.bounds import found_among
from dbanon.anonymization.attacks.scenario import Case, NotTried, Target, result
from dbanon.anonymization.released.cells import CellColumn, covers
from dbanon.domain.report import Attack, Attacker

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from dbanon.domain.assignment import EncodedColumn


_DISTANCES = 30_000_000  # between persons and classes, no more of which are measured
_CELLS = 1_000_000  # numbers that are held at once
_ERROR, _MISTAKEN = 0.05, 0.1
_TIE = 1e-9

_EVEN = 0.5
_NONE = "no rows were left out"


def prosecutor(case: Case, generator: np.random.Generator) -> Iterator[Attack]:  # noqa: ARG001 - the chances are known
    """Pick a random row that matches the quasi-identifiers of a person."""
    rows = case.coverage.sums(case.released.size)
    persons = case.released.persons
    own = 1 if persons is None else np.bincount(persons)[persons[case.rows]]
    yield result(
        f"re-identification, {Attacker.PROSECUTOR}",
        None,
        chances=np.minimum(own / rows, 1),  # any row of theirs will do
        baseline=_anybody(int(case.released.size.sum())),
        expected=found_among(case.policy, case.released.persons),
        candidates=float(np.median(rows)),
        words="knows that the person is in the relation, and picks one of the candidate rows",
    )


def journalist(case: Case, generator: np.random.Generator) -> Iterator[Attack]:  # noqa: ARG001 - as above
    """Pick a row of greatest risk, and a random person that it matches."""
    n_candidates, size = case.n_candidates, case.released.size
    if not len(size):
        raise NotTried("the relation is empty")
    least = float(n_candidates.min())
    rows = int(size[n_candidates == least].sum())
    yield result(
        f"re-identification, {Attacker.JOURNALIST}",
        None,
        chances=np.full(rows, 1 / least),
        baseline=_anybody(case.released.table.n_rows),
        expected=found_among(case.policy, case.released.persons),
        candidates=least,
        words="picks the rows of the relation with the fewest candidate persons in the table",
    )


def marketer(case: Case, generator: np.random.Generator) -> Iterator[Attack]:
    """Pick a random matching person for each row."""
    n_candidates = _of_rows(case, generator)
    yield result(
        f"re-identification, {Attacker.MARKETER}",
        None,
        chances=1 / n_candidates,
        baseline=_anybody(case.released.table.n_rows),
        expected=found_among(case.policy, case.released.persons),
        candidates=float(np.median(n_candidates)) if len(n_candidates) else None,
        words="links each row of the relation with one of its candidate persons in the table",
    )


def _of_rows(case: Case, generator: np.random.Generator) -> NDArray[np.float64]:
    """Return the number of persons that match each of some published rows."""
    size = case.released.size
    ends = np.cumsum(size)
    total = int(ends[-1]) if len(ends) else 0
    rows = np.arange(total)
    if total > case.tried:
        rows = np.sort(generator.choice(total, case.tried, replace=False))
    return case.n_candidates[np.searchsorted(ends, rows, side="right")]


def _anybody(rows: int) -> float:
    """Return the probability of picking the right row at random."""
    return 1 / max(rows, 1)


def membership(case: Case, generator: np.random.Generator) -> Iterator[Attack]:
    """Distinguish published persons from as many suppressed ones.

    The guess is "published" if the covering classes have more rows per matching person than
    overall.
    """
    classes = case.released.classes
    if classes is None:
        raise NotTried(_NONE if case.is_complete else "suppressed persons are not stored")
    left_out, shown = np.flatnonzero(classes < 0), np.flatnonzero(classes >= 0)
    if not len(left_out) or not len(shown):
        raise NotTried(_NONE)
    size = min(len(left_out), len(shown), case.tried)
    rows = np.concatenate(
        [np.sort(generator.choice(some, size, replace=False)) for some in (left_out, shown)]
    )
    coverage = covers(case.released, rows)
    # The persons covered by a class are counted among those drawn, including suppressed ones.
    everybody = covers(case.released, np.sort(generator.permutation(len(classes))[: 2 * size]))
    found = np.bincount(everybody.classes, minlength=case.released.n_classes)
    n_candidates = np.maximum(found * (len(classes) / max(len(everybody.start) - 1, 1)), 1)
    density = case.released.size / np.maximum(n_candidates, case.released.size)
    total = np.append(0, np.cumsum(density[coverage.classes]))[coverage.start]
    is_shown = np.append(np.zeros(size, np.bool_), np.ones(size, np.bool_))
    share = len(shown) / len(classes)
    right = (np.diff(total) > share) == is_shown
    yield result(
        "membership",
        None,
        chances=right.astype(np.float64),
        baseline=_EVEN,
        candidates=None,
        words="distinguishes published persons from an equal number of others",
    )


class _Linked(NamedTuple):
    """Linkage of some persons: chances of the right row (p,); number of equally near rows (p,)."""

    chances: NDArray[np.float64]
    rows: NDArray[np.float64]

    @property
    def candidates(self) -> float | None:
        """Median number of equally near rows."""
        return float(np.median(self.rows)) if len(self.rows) else None


def linkage(case: Case, generator: np.random.Generator) -> Iterator[Attack]:
    """Pick one of the nearest rows, by exact and by imprecise knowledge.

    Imprecise numbers are wrong by 5 % of the column's range; one in ten other values is replaced.
    """
    if not case.released.columns:
        raise NotTried("the relation has no quasi-identifiers")
    expected = found_among(case.policy, case.released.persons)
    of_rows = partial(result, baseline=_anybody(int(case.released.size.sum())))
    persons = _some(case, generator)
    unsure = "" if case.true_class is not None else "; upper bound (membership is not stored)"
    for name, is_fuzzy in (("linkage by distance", False), ("fuzzy linkage by distance", True)):
        known = f", with a mistake in what is known{unsure}" if is_fuzzy else unsure
        places = _places(case, persons, generator if is_fuzzy else None)
        words = "takes any of the rows that are nearest" + known
        targets = list(case.targets())
        found, *with_values = nearest(case, persons, places, (None, *targets))
        tried = partial(of_rows, chances=found.chances, candidates=found.candidates)
        yield tried(name, None, expected=expected, words=words)
        for target, found in zip(targets, with_values, strict=True):
            words = f"takes any of the nearest rows that have the person's value{known}"
            title = f"{name}, with a sensitive value"
            tried = partial(of_rows, chances=found.chances, candidates=found.candidates)
            yield tried(title, target.name, words=words)


def _some(case: Case, generator: np.random.Generator) -> NDArray[np.int64]:
    """Return as many persons as can be compared with all classes."""
    most = max(_DISTANCES // max(case.released.n_classes, 1), 1)
    if case.tried <= most:
        return np.arange(case.tried)
    return np.sort(generator.choice(case.tried, most, replace=False))


_Place = tuple["NDArray[np.int64]", "NDArray[np.float64]"]
"""The code of each person in a column, and where it lies on the column's scale."""


def _places(
    case: Case, persons: NDArray[np.int64], generator: np.random.Generator | None
) -> list[_Place]:
    """Return the known values of persons, with errors if a generator is given."""
    found = []
    for column in case.released.table.quasi:
        codes = column.codes[case.rows[persons]].astype(np.int64)
        if len(column.position) == 0:
            if generator is not None and column.size:
                wrong = (generator.random(len(codes)) < _MISTAKEN) & (codes < column.size)
                codes = np.where(wrong, generator.integers(column.size, size=len(codes)), codes)
            found.append((codes, np.zeros(len(codes))))
            continue
        place = np.append(column.position, np.nan)[codes]
        if generator is not None:
            place = place + generator.normal(0, _ERROR, len(place))
        found.append((codes, place))
    return found


def nearest(
    case: Case,
    persons: NDArray[np.int64],
    places: list[_Place],
    targets: Sequence[Target | None] = (None,),
) -> list[_Linked]:
    """Return the results of picking one of the nearest rows; persons: (p,) indices of trials.

    targets: columns of which the value is known as well, None for no value. If membership is not
    stored, each person counts as in one of the nearest classes that cover it.
    """
    released = case.released
    held = [None if target is None else _rows_with(case, target) for target in targets]
    links = [_Linked(np.zeros(len(persons)), np.zeros(len(persons))) for _ in targets]
    labels = _labels_of_classes(case)
    step = max(_CELLS // max(*labels.shape, 1), 1)
    for first in range(0, len(persons), step):
        some = slice(first, first + step)
        distance = _distances(case, labels, [(codes[some], place[some]) for codes, place in places])
        for target, rows, link in zip(targets, held, links, strict=True):
            counts, apart = released.size[:, None].astype(np.float64), distance
            if rows is not None and target is not None:
                counts = rows[target.truth[persons[some]]].T.toarray()
                apart = np.where(counts == 0, np.inf, distance)
            near = apart <= apart.min(axis=0, keepdims=True) + _TIE
            near &= np.isfinite(apart)
            link.rows[some] = (near * counts).sum(axis=0)
            is_there = _is_among(case, persons[some], near.T)
            link.chances[some] = is_there / np.maximum(link.rows[some], 1)
    return links


def _is_among(case: Case, persons: NDArray[np.int64], near: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return a mask of the persons whose class is, or may be, among the nearest."""
    true = case.true_class
    if true is not None:
        return np.asarray(near[np.arange(len(persons)), true[persons]], np.bool_)
    start, classes = case.coverage
    covering = [classes[start[one] : start[one + 1]] for one in persons.tolist()]
    return np.array([near[i, own].any() for i, own in enumerate(covering)], np.bool_)


def _labels_of_classes(case: Case) -> csr_matrix:
    """Return a 1 for each label of a class, divided by their number; (n_classes, labels)."""
    columns = case.released.columns
    before = np.cumsum([0, *(len(cells.labels) for cells in columns)])
    index = [cells.index + np.int32(at) for cells, at in zip(columns, before, strict=False)]
    places, d = np.column_stack(index).ravel(), len(columns)
    start = np.arange(0, len(places) + 1, d)
    shape = case.released.n_classes, int(before[-1])
    return csr_matrix((np.full(len(places), 1 / d), places, start), shape)


def _distances(case: Case, labels: csr_matrix, places: list[_Place]) -> NDArray[np.float64]:
    """Return the distance of each class from each person, the mean over columns; (n_classes, p)."""
    columns = zip(case.released.columns, case.released.table.quasi, places, strict=True)
    found = np.concatenate([of_labels(*column).T for column in columns])
    return np.asarray(labels @ found, np.float64)


def of_labels(cells: CellColumn, column: EncodedColumn, place: _Place) -> NDArray[np.float64]:
    """Return the distance of each person from each label of a column, (p, labels)."""
    codes, position = place
    is_null = codes == column.size
    if len(column.position) == 0:
        lo, hi = cells.lo[None, :], cells.hi[None, :]
        inside = (codes[:, None] >= lo) & (codes[:, None] <= hi)
        width = np.maximum(hi - lo + 1, 1)
        found = np.where(inside, 1 - 1 / width, 1.0)
    else:
        middle = (cells.low + cells.high) / 2
        found = np.minimum(np.abs(position[:, None] - middle[None, :]), 1.0)
        found = np.where(np.isnan(found), 1.0, found)
    found[is_null] = np.where(cells.nulls, 0.0, 1.0)
    return found


def _rows_with(case: Case, target: Target) -> csr_matrix:
    """Return the number of rows of each class with each value, (codes, n_classes)."""
    tally = target.tally
    counts = (tally.counts.astype(np.float64), (tally.values, tally.classes))
    return csr_matrix(counts, (len(target.whole), case.released.n_classes))
