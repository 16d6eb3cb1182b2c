"""Mask values before rows are grouped, or within their classes."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbanon.actions.preparation.chance import persons_of
from dbanon.anonymization.masking.categories import RareToOther
from dbanon.anonymization.masking.interfaces import Rows
from dbanon.anonymization.registry import make_masking, masked_together, values_stay
from dbanon.domain.errors import PolicyError
from dbanon.domain.table import quote_identifier
from dbanon.formats.values.coded import (
    codes_of,
    in_order,
    numbers_of,
    one_chunk,
    spelled,
    with_codes,
    with_columns,
    with_numbers,
    with_numbers_alone,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from dbanon.actions.preparation.chance import Persons
    from dbanon.anonymization.masking.interfaces import Masking, NumberMasking, ValueMasking
    from dbanon.db.session import Session
    from dbanon.db.transfer import SourceRows
    from dbanon.domain.policy import MaskingStep, Policy
    from dbanon.domain.table import TableInfo

    Columns = Mapping[str, pa.DictionaryArray]

_NUMBERS = 8  # that one hash gives
_BYTES = 8


def mask(
    session: Session,
    rows: SourceRows,
    policy: Policy,
    info: TableInfo,
    *,
    fresh: NDArray[np.bool_] | None = None,
) -> SourceRows:
    """Return the rows with the values that are masked before grouping.

    rows: with the subject, if the policy has one; fresh: (n,) rows of persons never published, if
    others were. The sensitive values of these, and columns masked together with them, are masked
    apart from the others, whose published values stay: otherwise they would depend on current
    values of the others.

    Raises PolicyError for values that a method cannot mask, and DatabaseError if the secret key is
    missing.
    """
    apart = np.zeros(len(rows.keys), np.int64) if fresh is None else fresh.astype(np.int64)
    return _masked(session, rows, policy, info, apart=apart, within_class=False)


def mask_classes(
    session: Session,
    rows: SourceRows,
    policy: Policy,
    info: TableInfo,
    *,
    group: NDArray[np.int32],
) -> SourceRows:
    """Return the rows with values masked within classes; group: (n,) class of each row."""
    return _masked(session, rows, policy, info, apart=group, within_class=True)


def _masked(
    session: Session,
    rows: SourceRows,
    policy: Policy,
    info: TableInfo,
    *,
    apart: NDArray[np.int32] | NDArray[np.int64],
    within_class: bool,
) -> SourceRows:
    """Apply the steps in order; apart: (n,) rows of equal numbers are masked apart.

    Within classes this holds for all columns, otherwise for those whose published values stay.
    """
    from dbanon.db.metadata import store

    methods = [(step, make_masking(step)) for step in policy.masking]
    methods = [(step, method) for step, method in methods if method.within_class is within_class]
    if not methods or not len(rows.keys):
        return rows
    key = store.secret_for(session, "masking")
    info = policy.with_listed_orders(info)
    columns = {name: one_chunk(column) for name, column in _named(rows)}
    persons, order = persons_of(rows, policy), _by_key(rows.keys)
    for step, method in methods:
        within = [codes_of(columns[name]) for name in step.within]
        for names in masked_together(step):
            own = apart if within_class or values_stay(policy, names) else np.zeros_like(apart)
            parts = _parts([own, *within], order)
            one = _Application(step, method, key, policy, persons, parts)
            columns |= one.of({name: columns[name] for name in names}, info)
    return _replaced(rows, columns, {name for step, _ in methods for name in step.columns})


@dataclass(frozen=True, eq=False, slots=True)
class _Application:
    """One step with its rows; parts: places of rows that are masked together."""

    step: MaskingStep
    method: Masking
    key: bytes
    policy: Policy
    persons: Persons
    parts: Sequence[NDArray[np.int64]]

    def of(self, columns: Columns, info: TableInfo) -> Columns:
        """Return the masked columns of the step."""
        if self.method.of_numbers:
            return self._of_numbers(cast("NumberMasking", self.method), columns, info)
        return self._of_values(cast("ValueMasking", self.method), columns, info)

    def _of_numbers(self, method: NumberMasking, columns: Columns, info: TableInfo) -> Columns:
        found = [numbers_of(column, info.column(name)) for name, column in columns.items()]
        before = np.column_stack(found)
        self._require_numbers(before, list(columns))
        after, present = before.copy(), np.isfinite(before.sum(axis=1))
        for part in self.parts:
            full = part[present[part]]
            if not len(full):
                continue
            rows = self._rows(full, columns, info)
            is_few = len(np.unique(rows.person)) < method.least
            after[full] = np.nan if is_few else method.mask(before[full], rows)
        if not method.whole:  # then neither does what is written depend on other rows
            return {
                name: with_numbers_alone(column, info.column(name), after[:, j])
                for j, (name, column) in enumerate(columns.items())
            }
        return {
            name: with_numbers(column, info.column(name), before=before[:, j], after=after[:, j])
            for j, (name, column) in enumerate(columns.items())
        }

    def _of_values(self, method: ValueMasking, columns: Columns, info: TableInfo) -> Columns:
        ordered = {name: in_order(column, info.column(name)) for name, column in columns.items()}
        before = np.column_stack([codes_of(column) for column in ordered.values()])
        sizes = np.array([len(column.dictionary) for column in ordered.values()], np.int64)
        after = before.copy()
        for part in self.parts:
            after[part] = method.mask(before[part], sizes, self._rows(part, ordered, info))
        label = [method.label] if isinstance(method, RareToOther) else []
        return {
            name: with_codes(after[:, j], _with(column.dictionary, label))
            for j, (name, column) in enumerate(ordered.items())
        }

    def _require_numbers(self, found: NDArray[np.float64], names: Sequence[str]) -> None:
        """Raise PolicyError for values that the method cannot mask."""
        hint = (
            "round or replace them in a generated column, list them in the order,"
            " or give the column another role"
        )
        for name, column in zip(names, found.T, strict=True):
            if count := int(np.isinf(column).sum()):
                raise PolicyError(
                    f"column {quote_identifier(name)} has {count:,} values that {self.step.method}"
                    " cannot mask: infinite, NaN, beyond 1e150, of more whole digits than a float"
                    " holds, outside of the years 1 to 9999, or missing from its order",
                    hint=hint,
                )
        missing = np.isnan(found)
        if count := int((missing.any(axis=1) & ~missing.all(axis=1)).sum()):
            raise PolicyError(
                f"{count:,} rows have NULL in some of {', '.join(map(quote_identifier, names))},"
                f" which {self.step.method} masks together",
                hint="mask each of them by a step of its own",
            )

    def _rows(self, places: NDArray[np.int64], columns: Columns, info: TableInfo) -> Rows:
        """Return the rows at some places, with chance that also depends on these columns."""
        names = list(columns)

        def texts(name: str) -> list[str]:
            values = spelled(columns[name], info.column(name))
            return [json.dumps([name, value]) for value in values]

        def draw(count: int, salt: str, column: int | None = None) -> NDArray[np.float64]:
            found = [self.persons.spelled[i] for i in self.persons.number[places].tolist()]
            for name in names if column is None else [names[column]]:
                values = [*texts(name), json.dumps([name])]  # of NULL, whose code is -1
                codes = codes_of(columns[name])[places].tolist()
                found = [f"{text}{values[code]}" for text, code in zip(found, codes, strict=True)]
            return self._uniform(names, found, count, salt)

        def values() -> NDArray[np.float64]:
            return self._uniform(names, texts(names[0]), 1, "value")[:, 0]

        ranks = frozenset(j for j, name in enumerate(names) if info.column(name).labels)
        return Rows(self.persons.number[places], draw, values, ranks)

    def _uniform(
        self, names: Sequence[str], texts: Sequence[str], count: int, salt: str
    ) -> NDArray[np.float64]:
        """Return numbers in [0, 1) from the hash of each text, (n, count).

        names: the columns that are masked together.
        """
        step, blocks = self.step, []
        of = [] if self.policy.subject is not None else [str(self.policy.table)]
        own = json.dumps([*of, step.method, names, step.within, sorted(step.params.items())])
        for start in range(0, count, _NUMBERS):
            size = min(_NUMBERS, count - start) * _BYTES
            begun = hashlib.blake2b(key=self.key, digest_size=size)
            begun.update(f"{own}{json.dumps([salt, start])}".encode())
            digests = bytearray()
            for text in texts:
                one = begun.copy()
                one.update(text.encode())
                digests += one.digest()
            blocks.append(np.frombuffer(bytes(digests), "<u8").reshape(len(texts), -1))
        drawn = np.hstack(blocks) >> np.uint64(11)
        return np.asarray((drawn.astype(np.float64) + 0.5) / 2.0**53)


def _named(rows: SourceRows) -> Iterator[tuple[str, pa.ChunkedArray]]:
    """Yield each column as read; in its measurable form if it was read twice."""
    read = set(rows.columns.column_names)
    yield from zip(rows.columns.column_names, rows.columns.columns, strict=True)
    if rows.kept is not None:
        kept = zip(rows.kept.column_names, rows.kept.columns, strict=True)
        yield from ((name, column) for name, column in kept if name not in read)


def _replaced(rows: SourceRows, columns: Columns, masked: Collection[str]) -> SourceRows:
    """Return the rows with these columns masked."""
    changed = {name: columns[name] for name in masked}
    kept = None if rows.kept is None else with_columns(rows.kept, changed)
    return replace(rows, columns=with_columns(rows.columns, changed), kept=kept)


def _by_key(keys: pa.Table) -> NDArray[np.int64]:
    """Return the places of the rows in the order of their keys, not in their physical order."""
    order = [(name, "ascending") for name in keys.column_names]
    found: NDArray[np.int64] = pc.sort_indices(keys, order).to_numpy().astype(np.int64)
    return found


def _parts(
    numbers: Sequence[NDArray[np.int32] | NDArray[np.int64]], order: NDArray[np.int64]
) -> list[NDArray[np.int64]]:
    """Return the places of rows of each number, in order, without those of -1."""
    joint = np.unique(np.column_stack(numbers)[order], axis=0, return_inverse=True)[1].ravel()
    sorted_ = order[np.argsort(joint, kind="stable")]
    ends = np.cumsum(np.bincount(joint))
    parts = np.split(sorted_, ends[:-1])
    return [part for part in parts if numbers[0][part[0]] >= 0]


def _with(values: pa.Array, labels: Sequence[str]) -> pa.Array:
    return pa.concat_arrays([values, pa.array(labels, values.type)]) if labels else values
