"""Mask values before rows are grouped, or within their classes."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbanon.anonymization.interfaces import NumberMasking, Rows, ValueMasking
from dbanon.anonymization.masking.categories import RareToOther
from dbanon.anonymization.registry import make_masking, masked_together, values_stay
from dbanon.db.metadata import store
from dbanon.domain.chance import keyed
from dbanon.domain.errors import PolicyError
from dbanon.domain.table import TableInfo, TableName, quote_identifier
from dbanon.formats.column_values import (
    codes_of,
    in_order,
    numbers_of,
    one_chunk,
    spelled,
    with_codes,
    with_columns,
    with_numbers,
    with_numbers_alone,
    with_own_values,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from dbanon.db.session import Session
    from dbanon.db.transfer import SourceRows
    from dbanon.domain.policy import Masking, MaskingStep, Policy

    Columns = Mapping[str, pa.DictionaryArray]
    from collections.abc import Iterable


_NUMBER = 8  # bytes of a hash that are compared with the fraction
OF_A_DEAL = 3  # numbers of a person, as ``dbanon.anonymization.buckets.deal`` needs


@dataclass(frozen=True, eq=False, slots=True)
class Persons:
    """The person of each row, (n,), and each person as JSON, of which -1 is the last."""

    number: NDArray[np.int64]
    spelled: Sequence[str]


def persons_of(rows: SourceRows, policy: Policy) -> Persons:
    """Return the persons of rows: by subject, or else by the key of each row."""
    if policy.subject is None:
        spelled = _spelled(rows.keys)
        return Persons(np.arange(len(spelled)), spelled)
    tables = [table for table in (rows.columns, rows.copied, rows.keys) if table is not None]
    found = next(t.column(policy.subject) for t in tables if policy.subject in t.column_names)
    column = one_chunk(found if pa.types.is_dictionary(found.type) else found.dictionary_encode())
    spelled = [json.dumps([str(value)]) for value in column.dictionary.to_pylist()]
    return Persons(codes_of(column).astype(np.int64), [*spelled, "[]"])


def draws(
    session: Session, rows: SourceRows, policy: Policy, subjects: NDArray[np.int32] | None
) -> NDArray[np.uint64] | None:
    """Return secret numbers of each row, (n, c), for dealing persons and choosing rows.

    subjects: (n,) the person of each row, if some have several. Numbers depend on the person or the
    key of the row alone, so other persons do not change them. Rows of persons with one row have
    zeros where rows are chosen. None if the policy needs no numbers. Raises DatabaseError if the
    secret key is missing.
    """
    of_table = [] if policy.subject is not None else [str(policy.table)]
    if policy.anatomy:
        persons = persons_of(rows, policy)
        key = store.secret_for(session, "anatomy")
        texts = (json.dumps([*of_table, text]) for text in persons.spelled)
        return keyed(texts, OF_A_DEAL, key=key)[persons.number]
    if policy.rows_per_subject is None or subjects is None:
        return None
    several = np.flatnonzero(np.bincount(subjects)[subjects] > 1)
    found = np.zeros((len(subjects), 1), np.uint64)
    key = store.secret_for(session, "rows of a person")
    texts = (json.dumps([str(policy.table), text]) for text in _spelled(rows.keys.take(several)))
    found[several] = keyed(texts, 1, key=key)
    return found


def _spelled(keys: pa.Table) -> list[str]:
    found = zip(*(column.to_pylist() for column in keys.columns), strict=True)
    return [json.dumps([*map(str, key)]) for key in found]


def draw(session: Session, rows: SourceRows, policy: Policy) -> tuple[SourceRows, int]:
    """Return the rows of the sampled persons, and the number of other rows.

    rows: with the subject, if the policy has one; otherwise each row is a person. Raises
    DatabaseError if the secret key of the sample is missing.
    """
    if policy.sample is None:
        return rows, 0
    key = store.sampling_key(session)
    if policy.subject is None:
        persons = zip(*(column.to_pylist() for column in rows.keys.columns), strict=True)
        drawn = pa.array(_are_drawn(persons, policy.sample, key=key, of=policy.table))
    else:
        drawn = _with_a_subject(rows.columns.column(policy.subject), policy.sample, key=key)
    copied = None if rows.copied is None else with_own_values(rows.copied.filter(drawn))
    found = replace(
        rows,
        keys=rows.keys.filter(drawn),
        columns=with_own_values(rows.columns.filter(drawn)),
        copied=copied,
        places=None if rows.places is None else rows.places.filter(drawn),
    )
    return found, len(rows.keys) - len(found.keys)


def _with_a_subject(subjects: pa.ChunkedArray, fraction: float, *, key: bytes) -> pa.Array:
    """Return a mask of the rows of sampled persons, and of rows without a person, refused later."""
    from pyarrow import compute

    column = one_chunk(subjects)
    persons = ((text,) for text in column.dictionary.to_pylist())
    drawn = pa.array(_are_drawn(persons, fraction, key=key, of=None), pa.bool_())
    return compute.fill_null(drawn.take(column.indices), True)  # noqa: FBT003 - a fill value


def _are_drawn(
    persons: Iterable[tuple[object, ...]], fraction: float, *, key: bytes, of: TableName | None
) -> list[bool]:
    """Return a mask of the sampled persons, or rows of a table.

    A larger sample contains every smaller one. The same subject is sampled alike in all tables;
    rows of two tables are independent.
    """
    threshold = int(fraction * 2 ** (8 * _NUMBER))
    prefix = [] if of is None else [str(of)]
    drawn = []
    for person in persons:
        message = json.dumps([*prefix, *map(str, person)]).encode()
        number = hmac.digest(key, message, "sha256")[:_NUMBER]
        drawn.append(int.from_bytes(number, "big") < threshold)
    return drawn


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
    session: Session, rows: SourceRows, policy: Policy, info: TableInfo, *, group: NDArray[np.int32]
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
    changed = {name: columns[name] for step, _ in methods for name in step.columns}
    copied = None if rows.copied is None else with_columns(rows.copied, changed)
    return replace(rows, columns=with_columns(rows.columns, changed), copied=copied)


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
            name: with_codes(
                after[:, j],
                pa.concat_arrays([column.dictionary, pa.array(label, column.dictionary.type)]),
            )
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
    if rows.copied is not None:
        copied = zip(rows.copied.column_names, rows.copied.columns, strict=True)
        yield from ((name, column) for name, column in copied if name not in read)


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
