"""Cutting the space of a table into regions of about so many rows, by a sample of these.

As a k-d tree does (Bentley, CACM 1975), but where the fewest groups of the sample would be cut,
rather than at the median: rows of different regions are never in one group.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.auto.algorithm import Auto
from dbanon.anonymization.interfaces import Requirement
from dbanon.anonymization.threads import aside
from dbanon.domain.assignment import Slice
from dbanon.domain.table import Structure
from dbanon.models.demands import meets, wholes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from dbanon.anonymization.regions.domains import Domains
    from dbanon.domain.assignment import EncodedTable

_LEAST_SHARE = 0.25  # of the rows are on either side of a cut
_UNEVEN = 0.02  # of the rows may rather be cut off their groups than all be on one side
_MOST_LISTED = 10_000  # values that a condition lists


@dataclass(frozen=True, eq=False, slots=True)
class Region:
    """The rows whose codes are within bounds; what it was cut into, if it was.

    lo, hi: (d,) int32, codes, both inclusive; share: of the sample's rows.
    """

    lo: NDArray[np.int32]
    hi: NDArray[np.int32]
    share: float
    parts: tuple[Region, ...] = ()

    def leaves(self) -> Iterator[Region]:
        """Yield the regions that were not cut, in the order of the tree."""
        if not self.parts:
            yield self
        for part in self.parts:
            yield from part.leaves()

    def parent_of(self, region: Region) -> Region | None:
        """Return what a region below this one was cut from, None if it is not below."""
        if region in self.parts:
            return self
        found = (part.parent_of(region) for part in self.parts)
        return next((one for one in found if one is not None), None)


def cut_regions(
    sample: EncodedTable,
    domains: Domains,
    requirement: Requirement,
    *,
    rows_per_block: int,
    seed: int,
    until: Callable[[], bool],
) -> Region:
    """Return a tree of regions, of which the lowest have about so many rows of the table.

    A region stays whole, however many rows it has, where no cut leaves both sides a quarter of the
    sample's rows, or what the requirement asks of all rows as one group. The same rows, parameters
    and seed give the same regions. until: raises GivenUp as soon as it says so.
    """
    everything = Region(
        np.zeros(len(domains.quasi), np.int32),
        np.array([column.size for column in domains.quasi], np.int32),
        share=1.0,
    )
    if domains.n_rows <= rows_per_block or sample.n_rows < 2 * requirement.k:
        return everything
    plain = Requirement(requirement.k, requirement.l)
    groups = aside(lambda: Auto(effort="fast").assign(sample, plain, seed=seed), until=until)
    cutting = _Cutting(sample, domains, requirement, groups.group, rows_per_block)
    return cutting.cut(everything, np.arange(sample.n_rows))


@dataclass(frozen=True, eq=False, slots=True)
class _Cut:
    """Up to which code of which column; straddling: the share of rows in groups that it cuts."""

    column: int
    code: int
    straddling: float


@dataclass(frozen=True, eq=False, slots=True)
class _Cutting:
    sample: EncodedTable
    domains: Domains
    requirement: Requirement
    group: NDArray[np.int32]
    rows_per_block: int

    def cut(self, region: Region, rows: NDArray[np.int64]) -> Region:
        """Return the region with what it is cut into; rows: of the sample."""
        share = len(rows) / self.sample.n_rows
        region = replace(region, share=share)
        if ceil(share * self.domains.n_rows / self.rows_per_block) <= 1:
            return region
        for cut in sorted(self._cuts(rows), key=lambda one: (one.straddling, one.column)):
            below = self.sample.quasi[cut.column].codes[rows] <= cut.code
            sides = (rows[below], rows[~below])
            if all(self._holds(side) for side in sides):
                lo, hi = region.lo.copy(), region.hi.copy()
                hi[cut.column], lo[cut.column] = cut.code, cut.code + 1
                halves = (replace(region, hi=hi), replace(region, lo=lo))
                parts = tuple(self.cut(*one) for one in zip(halves, sides, strict=True))
                return replace(region, parts=parts)
        return region

    def _cuts(self, rows: NDArray[np.int64]) -> Iterator[_Cut]:
        """Yield the best cut through each column."""
        groups, label = np.unique(self.group[rows], return_inverse=True)
        size = np.bincount(label, minlength=len(groups))
        for i, column in enumerate(self.sample.quasi):
            is_listed = column.structure is not Structure.LINE
            values = self.domains.values[column.name]
            if is_listed and len(values.distinct) > _MOST_LISTED:
                continue
            codes = column.codes[rows]
            lo = np.full(len(groups), np.iinfo(np.int32).max, np.int32)
            hi = np.full(len(groups), -1, np.int32)
            np.minimum.at(lo, label, codes)
            np.maximum.at(hi, label, codes)
            straddles = np.bincount(lo, weights=size, minlength=column.size + 1)
            straddles -= np.bincount(hi, weights=size, minlength=column.size + 1)
            straddling = np.cumsum(straddles) / len(rows)
            below = np.cumsum(np.bincount(codes, minlength=column.size + 1)) / len(rows)
            fair = np.flatnonzero((below >= _LEAST_SHARE) & (below <= 1.0 - _LEAST_SHARE))
            if len(fair):
                cost = straddling[fair] + _UNEVEN * np.abs(2.0 * below[fair] - 1.0)
                best = int(cost.argmin())
                yield _Cut(i, int(fair[best]), float(cost[best]))

    def _holds(self, rows: NDArray[np.int64]) -> bool:
        """Whether some rows of the sample meet as one group what every group is to meet."""
        sensitive = self.sample.sensitive[rows]
        if any(len(np.unique(values)) < self.requirement.l for values in sensitive.T):
            return False
        demands = self.requirement.demands
        whole = wholes(self.sample, demands, rows)
        one = np.zeros(len(rows), np.int32)
        return len(rows) >= self.requirement.k and all(
            meets(self.sample, demand, rows, one, whole=of).all()
            for demand, of in zip(demands, whole, strict=True)
        )


def slices_of(region: Region, domains: Domains) -> tuple[Slice, ...]:
    """Return which values a region has of the columns that it does not have all values of."""
    slices = []
    for lo, hi, column in zip(region.lo.tolist(), region.hi.tolist(), domains.quasi, strict=True):
        if lo == 0 and hi == column.size:
            continue
        values = domains.values[column.name]
        codes = values.codes[:-1]
        within = values.distinct.take(np.flatnonzero((lo <= codes) & (codes <= hi)))
        nulls = hi == column.size
        if column.structure is Structure.LINE:
            least, most = (within[i].as_py() if len(within) else None for i in (0, -1))
            slices.append(Slice(column.name, least, most, nulls=nulls))
        else:
            slices.append(Slice(column.name, among=tuple(within.to_pylist()), nulls=nulls))
    return tuple(slices)
