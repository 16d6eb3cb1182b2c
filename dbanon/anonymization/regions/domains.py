"""What is known of the columns of a whole table, by which any part of it is encoded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbanon.anonymization.encoding.encode import column_of, distinct_values, encode
from dbanon.domain.assignment import EncodedTable
from dbanon.domain.errors import DatabaseError
from dbanon.domain.policy import Role

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from dbanon.domain.assignment import EncodedColumn, SensitiveDomain
    from dbanon.domain.policy import ColumnRule, Policy
    from dbanon.domain.table import ColumnKind
    from dbanon.domain.taxonomy import Taxonomy


@dataclass(frozen=True, eq=False, slots=True)
class Values:
    """The values of a column, as read: ``distinct`` without NULL, and the code of each.

    codes: (m + 1,) int32, the last that of NULL; rows: (m + 1,) int64, how many rows have each.
    """

    distinct: pa.Array
    codes: NDArray[np.int32]
    rows: NDArray[np.int64]

    def places(self, column: pa.ChunkedArray) -> NDArray[np.int32]:
        """Return which value each row of a part of the table has, m for NULL.

        Raises DatabaseError for a value that the whole has not: it is a part of other rows.
        """
        place, distinct = distinct_values(column)
        found = pc.index_in(_exact(distinct), value_set=self.distinct)
        if found.null_count:
            raise DatabaseError("a block has values that the table has not, on one snapshot")
        known = found.to_numpy(zero_copy_only=False).astype(np.int32)
        return np.append(known, np.int32(len(self.distinct)))[place]


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Domains:
    """The columns of a whole table.

    quasi: with the codes of the distinct values in place of the rows'; sensitive: with how often
    each value occurs; values: of all of them, by name.
    """

    quasi: tuple[EncodedColumn, ...]
    sensitive: tuple[SensitiveDomain, ...]
    sensitive_names: tuple[str, ...]
    values: Mapping[str, Values]
    n_rows: int

    def encoded(self, columns: pa.Table, *, class_label: str | None) -> EncodedTable:
        """Encode some rows on the scales of the whole; O(n) a column."""
        quasi = tuple(
            replace(column, codes=self._codes(columns, column.rule)) for column in self.quasi
        )
        sensitive = np.empty((columns.num_rows, len(self.sensitive_names)), np.int32)
        for i, name in enumerate(self.sensitive_names):
            sensitive[:, i] = self.values[name].codes[self.values[name].places(columns[name])]
        return self.table(quasi, sensitive, class_label=class_label)

    def table(
        self,
        quasi: tuple[EncodedColumn, ...],
        sensitive: NDArray[np.int32],
        *,
        class_label: str | None,
    ) -> EncodedTable:
        """Return rows that are encoded already; a class label that is not sensitive is left out."""
        names = self.sensitive_names
        label = None
        if names and (class_label is None or class_label in names):
            label = sensitive[:, names.index(class_label or names[0])]
        return EncodedTable(quasi, sensitive, names, len(sensitive), self.sensitive, label)

    def coded(
        self,
        codes: NDArray[np.int32],
        sensitive: NDArray[np.int32],
        *,
        class_label: str | None,
    ) -> EncodedTable:
        """Return rows of which only the codes are left, (n, d) and (n, s)."""
        quasi = tuple(
            replace(column, codes=np.ascontiguousarray(codes[:, i]))
            for i, column in enumerate(self.quasi)
        )
        return self.table(quasi, sensitive, class_label=class_label)

    def _codes(self, columns: pa.Table, rule: ColumnRule) -> NDArray[np.int32]:
        values = self.values[rule.column]
        return values.codes[values.places(column_of(columns, rule))]


def domains_of(
    counted: Mapping[str, pa.Table],
    policy: Policy,
    *,
    kinds: Mapping[str, ColumnKind],
    taxonomies: Mapping[str, Taxonomy],
) -> Domains:
    """Encode the distinct values of every column, as encoding all rows would.

    counted: ``value`` and ``rows`` of each column. Raises what ``encode`` raises, which counts
    distinct values then, and not rows.
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
    """Put the values in the order of their codes, the one that is NULL last."""
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
    """Return values of which no two are equal and differ in their bits: zero has one sign."""
    return pc.add(values, 0.0) if pa.types.is_floating(values.type) else values
