"""Cut the space of a table into regions of a given number of rows, by a sample.

Works like a k-d tree (Bentley, CACM 1975), but cuts through the fewest groups of the sample instead
of the median, because rows of different regions never share a group. Any part of the table is
encoded by the columns of the whole (``Domains``): rows are the places of their values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbanon.anonymization.auto.algorithm import Auto
from dbanon.anonymization.encoding.encode import distinct_values, encode
from dbanon.anonymization.interfaces import Requirement
from dbanon.anonymization.threads import aside
from dbanon.domain.assignment import EncodedColumn, EncodedTable, SensitiveDomain, Taxonomy
from dbanon.domain.errors import DatabaseError
from dbanon.domain.policy import Policy, Role
from dbanon.models.demands import rows_meet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from dbanon.domain.table import ColumnKind

    Places = Mapping[str, NDArray[Any]]  # of each column, (n,), indices of Values


@dataclass(frozen=True, eq=False, slots=True)
class Values:
    """Distinct values of a column, without NULL; codes, rows: (m + 1,) of each, NULL last."""

    distinct: pa.Array
    codes: NDArray[np.int32]
    rows: NDArray[np.int64]

    def places(self, column: pa.Array) -> pa.Array:
        """Return the index of each row's value, m for NULL, in the smallest type.

        Raises DatabaseError for an unknown value.
        """
        place, distinct = distinct_values(pa.chunked_array([column]))
        found = pc.index_in(_exact(distinct), value_set=self.distinct)
        if found.null_count:
            raise DatabaseError("a row has a value that the table has not, on one snapshot")
        m = len(self.distinct)
        known = np.append(found.to_numpy(zero_copy_only=False), m)
        return pa.array(known.astype(np.min_scalar_type(m))[place])


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Domains:
    """The columns of a whole table; quasi: with the codes of the distinct values, not of rows."""

    quasi: tuple[EncodedColumn, ...]
    sensitive: tuple[SensitiveDomain, ...]
    sensitive_names: tuple[str, ...]
    values: Mapping[str, Values]
    n_rows: int

    def encoded(self, places: Places, *, class_label: str | None) -> EncodedTable:
        """Encode some rows on the scales of the whole; O(n) a column."""
        codes = {name: self.values[name].codes[place] for name, place in places.items()}
        quasi = tuple(replace(column, codes=codes[column.name]) for column in self.quasi)
        sensitive = np.empty((len(quasi[0].codes), len(self.sensitive_names)), np.int32)
        for i, name in enumerate(self.sensitive_names):
            sensitive[:, i] = codes[name]
        return self.table(quasi, sensitive, class_label=class_label)

    def table(
        self,
        quasi: tuple[EncodedColumn, ...],
        sensitive: NDArray[np.int32],
        *,
        class_label: str | None,
    ) -> EncodedTable:
        """Return rows that are encoded already; a class label that is not sensitive is omitted."""
        names = self.sensitive_names
        label = None
        if names and (class_label is None or class_label in names):
            label = sensitive[:, names.index(class_label or names[0])]
        return EncodedTable(quasi, sensitive, names, len(sensitive), self.sensitive, label)


def domains_of(
    counted: Mapping[str, pa.Table],
    policy: Policy,
    *,
    kinds: Mapping[str, ColumnKind],
    taxonomies: Mapping[str, Taxonomy],
) -> Domains:
    """Encode the distinct values of every column, as encoding all rows would.

    counted: ``value`` and ``rows`` of each column. Raises as ``encode``, counting distinct values.
    """
    quasi, sensitive, values = [], [], {}
    for rule in (*policy.with_role(Role.QUASI), *policy.with_role(Role.SENSITIVE)):
        column = counted[rule.column].column("value")
        alone = replace(policy, columns=(rule,), models=(), class_label=None)
        table = pa.table({rule.column: column})
        encoded = encode(table, alone, kinds=kinds, taxonomies=taxonomies)
        is_quasi = rule.role is Role.QUASI
        codes = encoded.quasi[0].codes if is_quasi else encoded.sensitive[:, 0]
        rows = counted[rule.column].column("rows").to_numpy()
        null = encoded.quasi[0].size if is_quasi else len(encoded.domains[0].labels) - 1
        found = _values(column, codes, rows, null=null)
        values[rule.column] = found
        if is_quasi:
            quasi.append(encoded.quasi[0])
        else:
            domain = encoded.domains[0]
            counts = np.bincount(found.codes, weights=found.rows, minlength=len(domain.labels))
            sensitive.append(replace(domain, counts=counts.astype(np.int64)))
    names = tuple(rule.column for rule in policy.with_role(Role.SENSITIVE))
    n_rows = int(next(iter(values.values())).rows.sum()) if values else 0
    return Domains(tuple(quasi), tuple(sensitive), names, values, n_rows)


def _values(
    column: pa.ChunkedArray, codes: NDArray[np.int32], rows: NDArray[np.int64], *, null: int
) -> Values:
    """Sort the values by code, NULL last."""
    plain = column.cast(column.type.value_type).combine_chunks()
    if isinstance(plain, pa.ChunkedArray):
        plain = plain.chunk(0) if plain.num_chunks else pa.array([], column.type.value_type)
    there = np.asarray(pc.is_valid(plain))
    order = np.flatnonzero(there)
    order = order[np.lexsort((np.asarray(pc.rank(_exact(plain.take(order)))), codes[order]))]
    return Values(
        distinct=_exact(plain.take(pa.array(order))),
        codes=np.append(codes[order], null).astype(np.int32),
        rows=np.append(rows[order], rows[~there].sum()).astype(np.int64),
    )


def _exact(values: pa.Array) -> pa.Array:
    """Return values with one sign of zero, so that equal values have equal bits."""
    return pc.add(values, 0.0) if pa.types.is_floating(values.type) else values


_LEAST_SHARE = 0.25  # of the rows are on either side of a cut
_UNEVEN = 0.02  # of the rows may rather be cut off their groups than all be on one side


@dataclass(frozen=True, eq=False, slots=True)
class Region:
    """Rows with codes within lo, hi (d,), inclusive; share of the sample; parts it was cut into."""

    lo: NDArray[np.int32]
    hi: NDArray[np.int32]
    share: float
    parts: tuple[Region, ...] = ()

    def leaves(self) -> Iterator[Region]:
        """Yield the regions that were not cut, in tree order."""
        if not self.parts:
            yield self
        for part in self.parts:
            yield from part.leaves()

    def parent_of(self, region: Region) -> Region | None:
        """Return the parent of a region below this one, None if it is not below."""
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
    """Return a tree of regions whose leaves have about ``rows_per_block`` rows of the table.

    A region stays whole if every cut leaves a side with less than a quarter of the sample's rows or
    one that fails the requirement as one group. Deterministic for the same arguments. until: raises
    GivenUp as soon as it returns True.
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
    """The last code of the lower side; straddling: the share of rows in divided groups."""

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
        """Return the region with its parts; rows: of the sample."""
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
        """Return True if some rows of the sample meet the requirement as one group."""
        sensitive = self.sample.sensitive[rows]
        if any(len(np.unique(values)) < self.requirement.l for values in sensitive.T):
            return False
        return len(rows) >= self.requirement.k and all(
            rows_meet(self.sample, demand, rows) for demand in self.requirement.demands
        )


def rows_within(
    region: Region, domains: Domains, places: Places, rows: NDArray[Any]
) -> Iterator[tuple[Region, NDArray[Any]]]:
    """Yield the leaves of a region with their rows, of some rows of the region."""
    if not region.parts:
        yield region, rows
        return
    below, above = region.parts
    (i,) = np.flatnonzero(below.hi < region.hi)
    name = domains.quasi[i].name
    is_below = (domains.values[name].codes <= below.hi[i])[places[name][rows]]
    yield from rows_within(below, domains, places, rows[is_below])
    yield from rows_within(above, domains, places, rows[~is_below])
