"""The values in which all that judges a publication sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.models.tally import Tally

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.domain.assignment import EncodedTable
    from dbanon.domain.table import ColumnKind


class Members(NamedTuple):
    """The codes that each label covers, sorted: those of label i are codes[start[i]:start[i + 1]].

    start: (n_labels + 1,) int64; codes: int32.
    """

    start: NDArray[np.int64]
    codes: NDArray[np.int32]


@dataclass(frozen=True, eq=False, slots=True)
class CellColumn:
    """What readers see of one quasi-identifier, and which codes of the source it may stand for.

    labels: the distinct published texts, None for NULL; index: (n_classes,) int32 into them; lo,
    hi: (n_labels,) int32, the codes that each covers, both of them among these, hi < lo where there
    is none; nulls: (n_labels,) bool, whether NULL is covered; members: the codes, where they may
    not be neighbours, lo and hi are then the least and the greatest; low, high: (n_labels,)
    float64, its ends on the scale of ``EncodedColumn.position``, NaN where it has no place there.

    is_point: a label stands for its class, as a mean does, and rules out nobody. lo and hi are its
    code, if it is a value of the source.
    """

    name: str
    recoding: str
    kind: ColumnKind
    is_point: bool
    labels: tuple[str | None, ...]
    index: NDArray[np.int32]
    lo: NDArray[np.int32]
    hi: NDArray[np.int32]
    nulls: NDArray[np.bool_]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    members: Members | None = None


@dataclass(frozen=True, eq=False, slots=True)
class SensitiveCounts:
    """How often readers see each value of a sensitive column in each class.

    classes, codes: int32, rows: int64; by class, then by code, each pair once. Codes are those of
    the column's ``SensitiveDomain``, which has values of the source and of the release; n_codes:
    how many.
    """

    name: str
    classes: NDArray[np.int32]
    codes: NDArray[np.int32]
    rows: NDArray[np.int64]
    n_codes: int

    @property
    def tally(self) -> Tally:
        """The values of each class as models count them."""
        classes, values = self.classes.astype(np.int64), self.codes.astype(np.int64)
        start = np.flatnonzero(np.diff(classes, prepend=-1))
        size = np.add.reduceat(self.rows, start) if len(start) else np.zeros(0, np.int64)
        return Tally(classes, values, self.rows, start, size)


@dataclass(frozen=True, eq=False, slots=True)
class Released:
    """What readers see of a publication.

    A class is a distinct published tuple of quasi-identifiers. table: the rows of the source;
    columns: what is seen of each quasi-identifier, () by anatomy, whose classes are buckets; size:
    (n_classes,) int64, published rows; sensitive: of each sensitive column that is published as it
    is; classes: (table.n_rows,) int32, the class of each row, -1 where it is left out, None where
    nobody remembers; persons: (table.n_rows,) whose each row is, None where each is another's.
    """

    table: EncodedTable
    columns: tuple[CellColumn, ...]
    size: NDArray[np.int64]
    sensitive: tuple[SensitiveCounts, ...]
    classes: NDArray[np.int32] | None = None
    persons: NDArray[np.int32] | None = None

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return len(self.size)
