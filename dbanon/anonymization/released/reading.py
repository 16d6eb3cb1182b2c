"""Derive the released data from an outcome, or from the published relation."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import numpy as np

from dbanon.anonymization.encoding.encode import distinct_values, encode
from dbanon.anonymization.recodings.groups import literal_of
from dbanon.anonymization.registry import recoding_named
from dbanon.anonymization.released.cells import CellColumn, Released, SensitiveCounts
from dbanon.anonymization.released.labels import ends_of_pair, read_column
from dbanon.domain.policy import BUCKET, PAIRS, ModelSpec, Policy, Role
from dbanon.domain.release import CheckResult, Verdict
from dbanon.models.base import Bound, ClassModel, Scope
from dbanon.models.demands import achieved, all_demands, wholes
from dbanon.models.registry import model_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from dbanon.anonymization.outcome import Outcome
    from dbanon.domain.assignment import EncodedColumn, EncodedTable, SensitiveDomain, Taxonomy
    from dbanon.domain.table import ColumnKind


def of_outcome(
    encoded: EncodedTable,
    outcome: Outcome,
    policy: Policy,
    *,
    persons: NDArray[np.int32] | None = None,
) -> Released:
    """Return the released data of a publication; its rows are those of the table, in order.

    persons: of each row, if the policy has subjects. Masked values are omitted. O(n + g log g).
    """
    columns: list[CellColumn] = []
    seen = [(list(column.labels), column.index) for column in outcome.values.columns]
    of_group = _alike(seen, outcome.assignment.n_groups)
    _, first = np.unique(of_group, return_index=True)
    if not policy.anatomy:
        shown = zip(encoded.quasi, outcome.values.columns, seen, strict=True)
        columns = [
            read_column(column, value.recoding, labels=texts, index=index[first])
            for column, value, (texts, index) in shown
        ]
    classes = np.append(of_group, -1).astype(np.int32)[outcome.assignment.group]
    rows = np.flatnonzero(classes >= 0)
    ones = np.ones(len(rows), np.int64)
    sensitive = tuple(
        _counted(name, classes[rows], encoded.sensitive[rows, i], ones, len(domain.labels))
        for i, (name, domain) in enumerate(
            zip(encoded.sensitive_names, encoded.domains, strict=True)
        )
        if not policy.masked(name)
    )
    size = np.bincount(classes[rows], minlength=len(first))
    return Released(encoded, tuple(columns), size, sensitive, classes, persons)


def of_texts(
    encoded: EncodedTable,
    shown: pa.Table,
    counts: NDArray[np.int64],
    *,
    policy: Policy,
    persons: NDArray[np.int32] | None = None,
) -> Released:
    """Return the released data of published texts, given how often each row occurs.

    shown: the published quasi-identifiers (anatomy: the bucket) and sensitive columns, as texts in
    the session's settings; persons: as for ``of_outcome``. The table has codes of all published
    sensitive values, so nothing depends on deletions of their last row. O(m log m) for m rows, and
    one reading of each distinct text.
    """
    index_of: list[tuple[list[str | None], NDArray[np.int32]]] = []
    if policy.anatomy:
        index_of.append(texts_of(shown, BUCKET))
    else:
        index_of = [_published(shown, column) for column in encoded.quasi]
    of_row = _alike(index_of, shown.num_rows)
    _, first = np.unique(of_row, return_index=True)
    columns: tuple[CellColumn, ...] = ()
    if not policy.anatomy:
        columns = tuple(
            read_column(column, recoding_named(column), labels=texts, index=index[first])
            for column, (texts, index) in zip(encoded.quasi, index_of, strict=True)
        )
    listed = {rule.column: rule.order for rule in policy.columns}
    sensitive, domains, codes = [], [*encoded.domains], encoded.sensitive.copy()
    for place, name in enumerate(encoded.sensitive_names):
        if not policy.masked(name):
            texts, index = texts_of(shown, name)
            domain, code_of = _joined(domains[place], texts, listed.get(name) or ())
            domains[place], codes[:, place] = domain, code_of[codes[:, place]]
            of_text = _codes(domain, texts)[index]
            sensitive.append(_counted(name, of_row, of_text, counts, len(domain.labels)))
    encoded = replace(encoded, sensitive=codes, domains=tuple(domains))
    size = _sums(of_row, counts, len(first))
    return Released(encoded, columns, size, tuple(sensitive), None, persons)


def of_release(
    shown: pa.Table,
    counts: NDArray[np.int64],
    policy: Policy,
    *,
    kinds: Mapping[str, ColumnKind],
    taxonomies: Mapping[str, Taxonomy],
) -> Released:
    """Return the classes and sensitive values of a release alone, without quasi-identifiers.

    shown, counts: as in ``of_texts``; kinds: of the published columns; taxonomies: by name.
    """
    parts = [texts_of(shown, name) for name in policy.published_quasi]
    of_row = _alike(parts, shown.num_rows)
    rules = policy.with_role(Role.SENSITIVE)
    rules = tuple(rule for rule in rules if not policy.masked(rule.column))
    alone = replace(policy, columns=rules, class_label=None)
    table = encode(shown, alone, kinds=kinds, taxonomies=taxonomies)
    sensitive = tuple(
        _counted(rule.column, of_row, table.sensitive[:, i], counts, len(table.domains[i].labels))
        for i, rule in enumerate(rules)
    )
    return Released(table, (), _sums(of_row, counts, int(of_row.max(initial=-1)) + 1), sensitive)


def _alike(
    parts: Sequence[tuple[list[str | None], NDArray[np.int32]]], n_rows: int
) -> NDArray[np.int64]:
    """Return the class of each row: rows of one class have the same text in every column."""
    of_row = np.zeros(n_rows, np.int64)
    for texts, index in parts:
        of_row = np.unique(of_row * len(texts) + index, return_inverse=True)[1]
    return of_row


def _distinct(
    texts: Sequence[str | None], index: NDArray[np.int32]
) -> tuple[list[str | None], NDArray[np.int32]]:
    place_of = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    places = np.array([place_of[text] for text in texts], np.int32)
    return list(place_of), places[index]


def texts_of(shown: pa.Table, name: str) -> tuple[list[str | None], NDArray[np.int32]]:
    """Return the distinct texts of a column, NULL last if it occurs, and the index of each row."""
    place, distinct = distinct_values(shown.column(name))
    texts: list[str | None] = distinct.to_pylist()
    if (place < 0).any():
        texts.append(None)
    return texts, np.where(place < 0, np.int32(len(texts) - 1), place)


def _published(
    shown: pa.Table, column: EncodedColumn
) -> tuple[list[str | None], NDArray[np.int32]]:
    """Return the distinct labels of a quasi-identifier; a pair of columns is one label."""
    recoding = recoding_named(column)
    if recoding not in PAIRS:
        return texts_of(shown, column.name)
    parts = [texts_of(shown, name) for name in column.rule.published_as]
    (first, of_first), (second, of_second) = parts
    keys, index = np.unique(of_first * np.int64(len(second)) + of_second, return_inverse=True)
    pairs = [(first[key // len(second)], second[key % len(second)]) for key in keys.tolist()]
    kind: ColumnKind = column.kind
    literals = [literal_of(kind, ends_of_pair(kind, recoding, pair)) for pair in pairs]
    return _distinct(literals, index.astype(np.int32))


def _joined(
    domain: SensitiveDomain, texts: Sequence[str | None], listed: Sequence[str]
) -> tuple[SensitiveDomain, NDArray[np.int32]]:
    """Return a domain with the published values that the source lacks, in order, and new codes."""
    key = _key_of(domain)
    labels = {key(text): text for text in (*texts, *domain.labels) if text is not None}
    if len(labels) < len(domain.labels):
        return domain, np.arange(len(domain.labels), dtype=np.int32)
    rank = {text: place for place, text in enumerate(listed)}
    ranked = sorted(
        labels, key=lambda one: (rank.get(labels[one], len(rank)), isinstance(one, str), one)
    )
    code_of = {one: code for code, one in enumerate([*ranked, None])}
    numbers = [float(one) if isinstance(one, Decimal) else np.nan for one in code_of]
    leaf = np.zeros(0, np.int64)
    if domain.tree is not None:
        leaf_of = {key(text): leaf for leaf, text in enumerate(domain.tree.leaf_labels)}
        leaf = np.array([leaf_of.get(one, -1) for one in code_of], np.int64)
    found = replace(
        domain,
        labels=(*(labels[one] for one in ranked), None),
        numbers=np.array(numbers),
        leaf=leaf,
    )
    return found, np.array([code_of[key(label)] for label in domain.labels], np.int32)


def _codes(domain: SensitiveDomain, texts: Sequence[str | None]) -> NDArray[np.int32]:
    """Return the code of each text."""
    key = _key_of(domain)
    code_of = {key(label): code for code, label in enumerate(domain.labels)}
    return np.array([code_of[key(text)] for text in texts], np.int32)


def _key_of(domain: SensitiveDomain) -> Callable[[str | None], Any]:
    return _number if np.isfinite(domain.numbers).any() else _text


def _text(text: str | None) -> Any:  # noqa: ANN401 - equal if and only if values are
    return text


def _number(text: str | None) -> Any:  # noqa: ANN401
    try:
        number = None if text is None else Decimal(text)
    except InvalidOperation:
        return text
    return str(number) if number is not None and number.is_nan() else number


def _sums(of_row: NDArray[np.int64], counts: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    sums = np.zeros(size, np.int64)
    np.add.at(sums, of_row, counts)
    return sums


def _counted(
    name: str,
    classes: NDArray[Any],
    codes: NDArray[np.int32],
    rows: NDArray[np.int64],
    n_codes: int,
) -> SensitiveCounts:
    keys, place = np.unique(classes.astype(np.int64) * n_codes + codes, return_inverse=True)
    return SensitiveCounts(
        name=name,
        classes=(keys // n_codes).astype(np.int32),
        codes=(keys % n_codes).astype(np.int32),
        rows=_sums(place, rows, len(keys)),
        n_codes=n_codes,
    )


def certified(
    released: Released, policy: Policy, *, several: bool = False
) -> tuple[CheckResult, ...]:
    """Return the achievement of the worst class for each model of a search.

    None if only the database computes it: several rows of a person, sets of classes, populations.
    """
    table, classes = released.table, released.classes
    if classes is None:
        return ()
    rows = np.flatnonzero(classes >= 0)
    demands = all_demands(table, policy)
    answers = []
    for demand, whole in zip(demands, wholes(table, demands, rows), strict=True):
        column = None if demand.column is None else table.sensitive_names[demand.column]
        worst = None
        if not (several or demand.model.is_around):
            levels = achieved(table, demand, rows, classes[rows], whole=whole)
            is_least = demand.model.bound is Bound.AT_LEAST
            worst = float(levels.min() if is_least else levels.max())
        answers.append((demand.spec, column, worst))
    answers += [(spec, None, None) for spec in policy.models if not _of_classes(spec)]
    return tuple(_result(released, *answer) for answer in answers)


def _of_classes(spec: ModelSpec) -> bool:
    """Return True if a demand can be made of the model."""
    model = model_of(spec)
    return isinstance(model, ClassModel) and model.scope in {Scope.CLASSES, Scope.SENSITIVE}


def _result(
    released: Released, spec: ModelSpec, column: str | None, worst: float | None
) -> CheckResult:
    return CheckResult(
        model=spec.name,
        column=column,
        required=model_of(spec).required,
        achieved=worst,
        classes=released.n_classes,
        failing_classes=0,
        n_rows=int(released.size.sum()),
        verdict=Verdict.PASSED,
    )
