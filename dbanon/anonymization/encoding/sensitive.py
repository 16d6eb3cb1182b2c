"""From a sensitive column to integer codes in the order of its values."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbanon.domain.assignment import SensitiveDomain
from dbanon.domain.errors import PolicyError, TaxonomyError
from dbanon.domain.table import ColumnKind, quote_identifier
from dbanon.domain.text import command

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from dbanon.domain.policy import ColumnRule
    from dbanon.domain.taxonomy import Taxonomy

_NUMBERS = frozenset({ColumnKind.INTEGER, ColumnKind.DECIMAL, ColumnKind.FLOAT})


def encode_sensitive(
    place: NDArray[np.int32],
    distinct: pa.Array,
    rule: ColumnRule,
    *,
    kind: ColumnKind | None,
    taxonomies: Mapping[str, Taxonomy],
) -> tuple[NDArray[np.int32], SensitiveDomain]:
    """Return the code of each row's value and what the codes stand for.

    place: (n,) where the value of each row is among the distinct ones, -1 for NULL; distinct: their
    texts. The order that the rule lists comes first; numbers are ordered as such, all else by the
    bytes of its text, as PostgreSQL's collation C does, which means something for dates and
    booleans alone; NULL comes last. Raises PolicyError for a value that the order does not list,
    TaxonomyError for one that is no leaf of the rule's taxonomy.
    """
    texts: list[str] = distinct.cast(pa.string()).to_pylist()
    if rule.order is not None:
        code_of = np.argsort(np.argsort(ranks_of(texts, rule, place=place)))
        labels = [texts[i] for i in np.argsort(code_of)]
        numbers = np.full(len(labels), np.nan)
    elif kind in _NUMBERS:
        code_of, labels, numbers = _by_number(texts)
    else:
        order = np.asarray(pc.sort_indices(distinct), np.int64)
        code_of, labels = np.argsort(order), [texts[i] for i in order]
        numbers = np.full(len(labels), np.nan)
    codes = np.append(code_of, len(labels)).astype(np.int32)[place]
    tree = None if rule.taxonomy is None else taxonomies.get(rule.taxonomy)
    if rule.taxonomy is not None and tree is None:
        msg = f"column {quote_identifier(rule.column)}: there is no taxonomy {rule.taxonomy!r}"
        raise TaxonomyError(msg, hint="load the taxonomy, or take it out of the policy")
    leaf = np.zeros(0, np.int64) if tree is None else _leaves(labels, rule, tree)
    has_order = rule.order is not None or (kind is not None and kind.has_order)
    return codes, SensitiveDomain(
        (*labels, None), np.append(numbers, np.nan), leaf, tree, has_order=has_order
    )


def ranks_of(
    texts: Sequence[str], rule: ColumnRule, *, place: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Return the rank of each value in the order that the rule lists, from 0 on.

    place: (n,) as in ``encode_sensitive``. Raises PolicyError for values that it does not list.
    """
    rank_of = {text: rank for rank, text in enumerate(rule.order or ())}
    ranks = np.array([rank_of.get(text, -1) for text in texts], np.int64)
    missing = ranks < 0
    if missing.any():
        n_rows = int(np.append(missing, False)[place].sum())
        msg = (
            f"column {quote_identifier(rule.column)}: its order lacks {int(missing.sum())} of its"
            f" values, on {n_rows} rows"
        )
        raise PolicyError(msg, hint="list all its values, from the first to the last, as order")
    return ranks


def _by_number(texts: Sequence[str]) -> tuple[NDArray[np.int64], list[str], NDArray[np.float64]]:
    """Order texts of numbers; those of one number share a code, NaN is the greatest."""
    numbers = [Decimal(text) for text in texts]
    keys = [(number.is_nan(), Decimal(0) if number.is_nan() else number) for number in numbers]
    code_of_key = {key: code for code, key in enumerate(sorted(set(keys)))}
    code_of = np.array([code_of_key[key] for key in keys], np.int64)
    labels = [""] * len(code_of_key)
    values = np.full(len(labels), np.nan)
    for code, text, number in zip(code_of.tolist(), texts, numbers, strict=True):
        labels[code], values[code] = text, float(number)
    return code_of, labels, values


def _leaves(labels: Sequence[str], rule: ColumnRule, tree: Taxonomy) -> NDArray[np.int64]:
    leaf_of = {label: leaf for leaf, label in enumerate(tree.leaf_labels)}
    missing = sum(label not in leaf_of for label in labels)
    if missing:
        msg = (
            f"taxonomy {tree.name!r} has no leaf for {missing} distinct values"
            f" of column {quote_identifier(rule.column)}"
        )
        export = command("dbanon taxonomy export", tree.name)
        hint = f"{export}; add the values as leaves and import it"
        raise TaxonomyError(msg, hint=hint)
    return np.array([leaf_of[label] for label in labels] + [-1], np.int64)
