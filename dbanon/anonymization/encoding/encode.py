"""Encode the columns of a table as integer codes.

Codes often have meaningful prefixes: the branch ``021**`` contains all that begin with 021, ``E11``
all that begin with E11. A value that a taxonomy lacks is placed only if the taxonomy's labels imply
a place and nothing contradicts it; otherwise it stays missing.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbanon.anonymization.encoding.bands import (
    cells_of_level,
    has_bands,
    prefix_tree,
    to_bands,
    value_texts,
)
from dbanon.domain.assignment import (
    ROOT_LABEL,
    EncodedColumn,
    EncodedTable,
    SensitiveDomain,
    Taxonomy,
)
from dbanon.domain.errors import PolicyError, TaxonomyError, Unsatisfiable
from dbanon.domain.policy import DERIVE, OTHER, PREFIX, ColumnRule, Policy, Role
from dbanon.domain.table import ColumnKind, Structure, quote_identifier
from dbanon.domain.text import command
from dbanon.formats.policy_validation import floor_problems
from dbanon.formats.taxonomies import Nodes, in_preorder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray


_LONGEST_PREFIX = 16
_FIRST_DAY, _LAST_DAY = np.datetime64("0001-01-01"), np.datetime64("9999-12-31")


def encode(
    source: pa.Table,
    policy: Policy,
    *,
    kinds: Mapping[str, ColumnKind],
    taxonomies: Mapping[str, Taxonomy],
) -> EncodedTable:
    """Encode the quasi-identifiers and the sensitive columns of the policy.

    source: ordered columns as int32, int64, float64, date32 or timestamp[us], all others as
    strings, or dictionaries of these; kinds: by column; taxonomies: by name. Raises PolicyError for
    a missing column, an unsupported kind or values that its order does not list, Unsatisfiable for
    values without a place on a line, TaxonomyError for values that are no leaf. O(n) a column, O(m
    log m) for m values.
    """
    sensitive = policy.with_role(Role.SENSITIVE)
    codes, domains = _encode_all_sensitive(source, sensitive, kinds=kinds, taxonomies=taxonomies)
    return EncodedTable(
        quasi=tuple(
            _encode_column(column_of(source, rule), rule, kinds=kinds, taxonomies=taxonomies)
            for rule in policy.with_role(Role.QUASI)
        ),
        sensitive=codes,
        sensitive_names=tuple(rule.column for rule in sensitive),
        n_rows=source.num_rows,
        domains=domains,
        label=_class_labels(source, policy, codes),
    )


def with_sensitive(
    encoded: EncodedTable,
    source: pa.Table,
    policy: Policy,
    *,
    kinds: Mapping[str, ColumnKind],
    taxonomies: Mapping[str, Taxonomy],
) -> EncodedTable:
    """Return a table with other sensitive values; arguments and errors as in ``encode``."""
    sensitive = policy.with_role(Role.SENSITIVE)
    codes, domains = _encode_all_sensitive(source, sensitive, kinds=kinds, taxonomies=taxonomies)
    label = encoded.label
    if policy.class_label is None or policy.class_label in encoded.sensitive_names:
        label = _class_labels(source, policy, codes)
    return replace(encoded, sensitive=codes, domains=domains, label=label)


def _encode_all_sensitive(
    source: pa.Table,
    sensitive: Sequence[ColumnRule],
    *,
    kinds: Mapping[str, ColumnKind],
    taxonomies: Mapping[str, Taxonomy],
) -> tuple[NDArray[np.int32], tuple[SensitiveDomain, ...]]:
    codes = np.empty((source.num_rows, len(sensitive)), np.int32)
    domains = []
    for i, rule in enumerate(sensitive):
        codes[:, i], domain = _encode_sensitive(
            column_of(source, rule), rule, kind=kinds.get(rule.column), taxonomies=taxonomies
        )
        domains.append(domain)
    return codes, tuple(domains)


def _class_labels(
    source: pa.Table, policy: Policy, sensitive: NDArray[np.int32]
) -> NDArray[np.int32] | None:
    """Return the coded class label of each row, by default the first sensitive value."""
    names = [rule.column for rule in policy.with_role(Role.SENSITIVE)]
    if policy.class_label is None or policy.class_label in names:
        return sensitive[:, names.index(policy.class_label or names[0])] if names else None
    (rule,) = [rule for rule in policy.columns if rule.column == policy.class_label]
    place, values = distinct_values(column_of(source, rule))
    return np.where(place < 0, np.int32(len(values)), place)


def column_of(source: pa.Table, rule: ColumnRule) -> pa.ChunkedArray:
    """Return the column of a rule; raises PolicyError if it is missing."""
    if rule.column not in source.column_names:
        msg = f"the table has no column {quote_identifier(rule.column)}"
        raise PolicyError(msg, hint="dbanon inspect TABLE, which lists its columns")
    return source.column(rule.column)


def distinct_values(column: pa.ChunkedArray) -> tuple[NDArray[np.int32], pa.Array]:
    """Return for each row the index of its value among the distinct ones, -1 for NULL."""
    if not pa.types.is_dictionary(column.type):
        return _places(column.dictionary_encode())
    if column.type.index_type == pa.int32():
        place, values = _places(column.unify_dictionaries())
        present = np.append(np.zeros(len(values), bool), True)
        present[place] = True
        if present.all() and not values.null_count and len(values.unique()) == len(values):
            return place, values
    return _places(column.cast(column.type.value_type).dictionary_encode())


def _places(column: pa.ChunkedArray) -> tuple[NDArray[np.int32], pa.Array]:
    if not column.chunks:
        return np.empty(0, np.int32), pa.array([], column.type.value_type)
    places = [chunk.indices.fill_null(-1).to_numpy() for chunk in column.chunks]
    return np.concatenate(places), column.chunks[0].dictionary


def _codes(place: NDArray[np.int32], code_of: NDArray[np.int64], null: int) -> NDArray[np.int32]:
    """Return the code of each row's value, ``null`` for place -1."""
    return np.append(code_of, null).astype(np.int32)[place]


def _encode_column(
    column: pa.ChunkedArray,
    rule: ColumnRule,
    *,
    kinds: Mapping[str, ColumnKind],
    taxonomies: Mapping[str, Taxonomy],
) -> EncodedColumn:
    kind = kinds.get(rule.column)
    if kind is None or not kind.can_be_quasi:
        msg = f"column {quote_identifier(rule.column)} has a type that cannot be generalized"
        raise PolicyError(msg, hint="give it another role, or publish a view that casts it to text")
    for problem in floor_problems(rule, kind, named=kind):
        msg = f"column {quote_identifier(rule.column)}: {problem}"
        raise PolicyError(msg, hint="leave it out, or: dbanon policy suggest TABLE")
    place, distinct = distinct_values(column)
    structure = rule.structure(kind)
    if structure is Structure.TREE:
        texts = leaf_texts(place, distinct, rule, kind=kind)
        return _encode_tree(place, texts, rule, kind=kind, taxonomy=_taxonomy_of(rule, taxonomies))
    values: NDArray[Any]
    bands = None
    if structure is Structure.ORDER:
        kind, values = ColumnKind.ORDINAL, np.array(rule.order or (), object)
        code_of = _ranks(distinct.cast(pa.string()).to_pylist(), rule, place=place)
        position = _positions(np.arange(len(values)))
    elif has_bands(rule):
        known = ordered_values(place, distinct, rule)
        code_of, values, position, bands = to_bands(known, rule, kind)
    else:
        values, code_of = np.unique(ordered_values(place, distinct, rule), return_inverse=True)
        position = _positions(values)
    codes = _codes(place, code_of, len(values))
    greatest = None
    if pa.types.is_integer(distinct.type):
        greatest = 2 ** (distinct.type.bit_width - 1) - 1
    return EncodedColumn(
        rule, kind, codes, len(values), values, position, bands=bands, greatest=greatest
    )


def _encode_tree(
    place: NDArray[np.int32],
    texts: list[str],
    rule: ColumnRule,
    *,
    kind: ColumnKind,
    taxonomy: Taxonomy | None,
) -> EncodedColumn:
    cells = None
    if taxonomy is not None and rule.on_new_value == OTHER:
        taxonomy, texts = with_other(taxonomy, texts)
    elif taxonomy is not None and rule.on_new_value == DERIVE:
        taxonomy, texts = with_derived(taxonomy, texts)
    if taxonomy is not None and rule.at_least is not None:
        cells = cells_of_level(taxonomy, rule)
    elif isinstance(rule.at_least, int) and texts:
        taxonomy, cells = prefix_tree(
            rule.column, texts, length=rule.at_least, pooled=rule.pooled or ()
        )
    elif rule.recoding == PREFIX and texts:
        length = min(max(map(len, texts)), _LONGEST_PREFIX)
        taxonomy, _ = prefix_tree(rule.column, texts, length=length, joined=True)
    taxonomy = taxonomy or _flat_taxonomy(rule.column, texts)
    values = np.array(taxonomy.leaf_labels, object)
    code_of = _leaves(texts, rule, taxonomy, place=place)
    if cells is not None:
        code_of = taxonomy.leaf_lo[cells].astype(np.int64)[code_of]
        values = np.array([taxonomy.labels[node] for node in cells], object)
    codes = _codes(place, code_of, len(values))
    return EncodedColumn(rule, kind, codes, len(values), values, np.empty(0), taxonomy, cells=cells)


def leaf_texts(
    place: NDArray[np.int32], distinct: pa.Array, rule: ColumnRule, *, kind: ColumnKind
) -> list[str]:
    """Return the distinct values as the leaves of a taxonomy spell them."""
    if kind.is_ordered:
        return value_texts(kind, ordered_values(place, distinct, rule))
    texts: list[str] = distinct.cast(pa.string()).to_pylist()
    return texts


def ordered_values(place: NDArray[np.int32], distinct: pa.Array, rule: ColumnRule) -> NDArray[Any]:
    """Return the distinct values as numpy; refuse values without a place on a line."""
    values: NDArray[Any] = distinct.to_numpy(zero_copy_only=False)
    if values.dtype.kind == "i":
        values = values.astype(np.int64)
    if values.dtype.kind == "M":
        days = values.astype("datetime64[D]")
        odd = np.isnat(values) | (days < _FIRST_DAY) | (days > _LAST_DAY)
        what = "infinite or outside the years 1 to 9999"
    else:
        odd = ~np.isfinite(values)
        what = "NaN or infinite"
        values = values + values.dtype.type(0)  # -0.0 is 0.0
    if odd.any():
        n_rows = int(np.append(odd, False)[place].sum())
        msg = f"column {quote_identifier(rule.column)}: {n_rows} rows hold a value that is {what}"
        raise Unsatisfiable(msg, hint="make these values NULL, or give the column another role")
    return values


def _positions(values: NDArray[Any]) -> NDArray[np.float64]:
    """Scale sorted distinct values to [0, 1]."""
    if len(values) < 2:  # noqa: PLR2004 - a range needs two values
        return np.zeros(len(values))
    if values.dtype.kind == "f":
        # a power of two changes no digit and keeps the range of huge floats finite
        small = np.ldexp(values, -np.frexp(np.abs(values).max())[1])
        return np.asarray((small - small[0]) / (small[-1] - small[0]), np.float64)
    numbers = values.view(np.int64)
    # unsigned differences of int64 do not overflow
    steps = numbers.view(np.uint64) - numbers[:1].view(np.uint64)
    return np.asarray(steps / float(steps[-1]), np.float64)


def _encode_sensitive(
    column: pa.ChunkedArray,
    rule: ColumnRule,
    *,
    kind: ColumnKind | None,
    taxonomies: Mapping[str, Taxonomy],
) -> tuple[NDArray[np.int32], SensitiveDomain]:
    """Return the code of each row's value, and the domain; NULL comes last.

    Without an order of the rule, numbers are ordered numerically, others by bytes (collation C),
    which is meaningful for dates and booleans only.
    """
    place, distinct = distinct_values(column)
    texts: list[str] = distinct.cast(pa.string()).to_pylist()
    numbers = np.full(len(texts), np.nan)
    if rule.order is None and kind and kind.is_number:
        code_of, labels, numbers = _by_number(texts)
    else:
        order = (
            np.asarray(pc.sort_indices(distinct), np.int64)
            if rule.order is None
            else np.argsort(_ranks(texts, rule, place=place))
        )
        code_of, labels = np.argsort(order), [texts[i] for i in order]
    codes = _codes(place, code_of, len(labels))
    tree = _taxonomy_of(rule, taxonomies)
    leaf = np.zeros(0, np.int64)
    if tree is not None:
        leaf = np.append(_leaves(labels, rule, tree, place=codes), -1)
    has_order = rule.order is not None or (kind is not None and kind.has_order)
    return codes, SensitiveDomain(
        (*labels, None), np.append(numbers, np.nan), leaf, tree, has_order=has_order
    )


def _by_number(texts: Sequence[str]) -> tuple[NDArray[np.int64], list[str], NDArray[np.float64]]:
    """Order texts of numbers; equal numbers share a code, NaN is the greatest."""
    numbers = [Decimal(text) for text in texts]
    keys = [(number.is_nan(), Decimal(0) if number.is_nan() else number) for number in numbers]
    code_of_key = {key: code for code, key in enumerate(sorted(set(keys)))}
    code_of = np.array([code_of_key[key] for key in keys], np.int64)
    labels = [""] * len(code_of_key)
    values = np.full(len(labels), np.nan)
    for code, text, number in zip(code_of.tolist(), texts, numbers, strict=True):
        labels[code], values[code] = text, float(number)
    return code_of, labels, values


def _taxonomy_of(rule: ColumnRule, taxonomies: Mapping[str, Taxonomy]) -> Taxonomy | None:
    """Return the taxonomy that a rule names, if any."""
    if rule.taxonomy is not None and rule.taxonomy not in taxonomies:
        msg = f"column {quote_identifier(rule.column)}: there is no taxonomy {rule.taxonomy!r}"
        load = command("dbanon taxonomy import", rule.taxonomy, options="FILE.csv")
        raise TaxonomyError(msg, hint=f"{load}, or take it out of the policy")
    return None if rule.taxonomy is None else taxonomies[rule.taxonomy]


def _ranks(
    texts: Sequence[str], rule: ColumnRule, *, place: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Return the rank of each value in the order that the rule lists, from 0."""
    ranks, missing, n_rows = _found(texts, rule.order or (), place=place)
    if missing:
        msg = (
            f"column {quote_identifier(rule.column)}: its order lacks {missing} of its"
            f" values, on {n_rows} rows"
        )
        raise PolicyError(msg, hint="list all its values, from the first to the last, as order")
    return ranks


def _leaves(
    texts: Sequence[str], rule: ColumnRule, taxonomy: Taxonomy, *, place: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Return the leaf of each value."""
    leaves, missing, n_rows = _found(texts, taxonomy.leaf_labels, place=place)
    if missing:
        msg = (
            f"taxonomy {taxonomy.name!r} has no leaf for {missing} distinct values"
            f" of column {quote_identifier(rule.column)}, on {n_rows} rows"
        )
        if rule.on_new_value == DERIVE:
            msg += ", and how they begin names no branch that they surely belong to"
        missing_values = command("dbanon taxonomy missing", taxonomy.name, "TABLE", rule.column)
        hint = f"{missing_values} prints the query that lists them"
        if rule.role is Role.QUASI:
            hint += f'; on_new_value = "{OTHER}" lets them be'
        raise TaxonomyError(msg, hint=hint)
    return leaves


def _found(
    texts: Sequence[str], listed: Sequence[str], *, place: NDArray[np.int32]
) -> tuple[NDArray[np.int64], int, int]:
    """Return the index of each text in a list, and the texts and rows that are missing."""
    place_of = {label: i for i, label in enumerate(listed)}
    found = np.array([place_of.get(text, -1) for text in texts], np.int64)
    missing = found < 0
    return found, int(missing.sum()), int(np.append(missing, False)[place].sum())


def _flat_taxonomy(name: str, texts: Sequence[str]) -> Taxonomy:
    """Return the tree of the sorted values below one root; all-NULL columns get one leaf."""
    labels = (ROOT_LABEL, *(sorted(texts) or [ROOT_LABEL]))
    n_leaves = len(labels) - 1
    leaf = np.arange(n_leaves, dtype=np.int32)
    return Taxonomy(
        name=name,
        labels=labels,
        parent=np.append(np.int32(-1), np.zeros(n_leaves, np.int32)),
        depth=np.append(np.int32(0), np.ones(n_leaves, np.int32)),
        leaf_lo=np.append(np.int32(0), leaf),
        leaf_hi=np.append(np.int32(n_leaves - 1), leaf),
        leaves=leaf + np.int32(1),
        added=np.ones(n_leaves, np.bool_),
    )


def with_other(taxonomy: Taxonomy, texts: Sequence[str]) -> tuple[Taxonomy, list[str]]:
    """Map values that are no leaf to one leaf ``other``, below the root if it is new; O(nodes).

    Raises TaxonomyError if ``other`` is an inner node.
    """
    leaves = set(taxonomy.leaf_labels)
    if leaves.issuperset(texts):
        return taxonomy, list(texts)
    if OTHER not in leaves:
        if OTHER in taxonomy.labels:
            raise TaxonomyError(
                f"taxonomy {taxonomy.name!r} has {OTHER!r} above other labels, and new values need"
                " it as a leaf",
                hint=command("dbanon taxonomy export", taxonomy.name) + "; call the node otherwise",
            )
        taxonomy = _grown(taxonomy)
    return taxonomy, [text if text in leaves else OTHER for text in texts]


def _grown(taxonomy: Taxonomy) -> Taxonomy:
    """Return the tree with a branch of the one leaf ``other``, as deep as a uniform tree."""
    depths = set(taxonomy.depth[taxonomy.leaves].tolist())
    first, height = len(taxonomy.labels), max(depths.pop(), 1) if len(depths) == 1 else 1
    last_leaf = taxonomy.n_leaves
    leaf_hi = taxonomy.leaf_hi.copy()
    leaf_hi[0] = last_leaf
    return replace(
        taxonomy,
        labels=(*taxonomy.labels, *[OTHER] * height),
        parent=_longer(taxonomy.parent, [0, *range(first, first + height - 1)]),
        depth=_longer(taxonomy.depth, range(1, height + 1)),
        leaf_lo=_longer(taxonomy.leaf_lo, [last_leaf] * height),
        leaf_hi=_longer(leaf_hi, [last_leaf] * height),
        leaves=_longer(taxonomy.leaves, [first + height - 1]),
        added=np.append(np.zeros(last_leaf, np.bool_), True),
    )


def _longer(numbers: NDArray[np.int32], more: Sequence[int]) -> NDArray[np.int32]:
    return np.concatenate([numbers, np.array(more, np.int32)])


_CODE = re.compile(r"[0-9A-Za-z.-]+")
_MASK = "*xX-. "  # what fills up the name of a branch behind its prefix
_SEPARATORS = ".-"
_DIGIT = re.compile(r"[0-9]")
_FEWEST_OF_BRANCH = 2  # characters that the values of a branch begin with
_FEWEST_OF_LEAF = 3
_AFTER_ALL = chr(0x10FFFF)


def with_derived(taxonomy: Taxonomy, texts: Sequence[str]) -> tuple[Taxonomy, list[str]]:
    """Return the tree with a leaf for each new value that has a place, and the leaf of each text.

    If all leaves are codes of one length, a longer code maps to the leaf that it begins with, if a
    point or a hyphen follows or a branch is a prefix of that leaf. Otherwise its place is the
    lowest branch named by a prefix (without stars), if all leaves with this prefix are in it, it
    has no branches, and one of its leaves has the same pattern of digits and letters. O(nodes *
    height + m log nodes).
    """
    leaves = set(taxonomy.leaf_labels)
    new = sorted({text for text in texts if text not in leaves and _CODE.fullmatch(text)})
    if not new:
        return taxonomy, list(texts)
    lengths = {len(leaf) for leaf in leaves}
    width = lengths.pop() if len(lengths) == 1 else 0
    branches = _branches(taxonomy)
    shorter: dict[str, str] = {}
    places: dict[int, list[str]] = {}
    for text in new:
        begins = text[:width]
        if begins in leaves and _is_longer(text, begins, branches):
            shorter[text] = begins
        elif (node := _place(text, taxonomy, branches)) is not None:
            places.setdefault(node, []).append(text)
    grown = _with_places(taxonomy, places) if places else taxonomy
    return grown, [shorter.get(text, text) for text in texts]


def _branches(taxonomy: Taxonomy) -> dict[str, int]:
    """Return the lowest branch named by each prefix that holds all leaves with this prefix."""
    labels = taxonomy.leaf_labels
    in_order = sorted(labels)
    found = {}
    for node, name in enumerate(taxonomy.labels):
        prefix = name.rstrip(_MASK)
        below = labels[taxonomy.leaf_lo[node] : taxonomy.leaf_hi[node] + 1]
        if len(prefix) < _FEWEST_OF_BRANCH or not _DIGIT.search(prefix) or below == (name,):
            continue
        first = bisect_left(in_order, prefix)
        n_begin_so = bisect_left(in_order, prefix + _AFTER_ALL) - first
        if n_begin_so == len(below) and all(leaf.startswith(prefix) for leaf in below):
            found[prefix] = node
    return found


def _is_longer(text: str, leaf: str, branches: Mapping[str, int]) -> bool:
    """Return True if a text is a subcode of the leaf that it begins with."""
    if len(leaf) < _FEWEST_OF_LEAF or not _DIGIT.search(leaf):
        return False
    return text[len(leaf)] in _SEPARATORS or any(leaf[:n] in branches for n in range(len(leaf)))


def _place(text: str, taxonomy: Taxonomy, branches: Mapping[str, int]) -> int | None:
    """Return the branch for a new leaf, None if that is uncertain."""
    prefixes = (text[:n] for n in range(len(text) - 1, 0, -1))
    node = next((branches[prefix] for prefix in prefixes if prefix in branches), None)
    if node is None or text in taxonomy.labels:
        return None
    below = taxonomy.leaves[taxonomy.leaf_lo[node] : taxonomy.leaf_hi[node] + 1]
    if (taxonomy.parent[below] != node).any():
        return None  # it would be finer than its neighbours under a floor
    return node if _shape(text) in {_shape(taxonomy.labels[leaf]) for leaf in below} else None


def _shape(text: str) -> str:
    """Return a text with all digits alike, and all letters alike."""
    return re.sub(r"[A-Za-z]", "A", _DIGIT.sub("9", text))


def _with_places(taxonomy: Taxonomy, places: Mapping[int, Sequence[str]]) -> Taxonomy:
    """Return the tree with new leaves, by parent, after its own."""
    n_nodes = len(taxonomy.labels)
    nodes = Nodes([*taxonomy.labels], taxonomy.parent.tolist(), [0] * n_nodes)
    for node, texts in places.items():
        for text in texts:
            nodes.add(text, node, 0)
    grown, order = in_preorder(nodes, taxonomy.name, version=taxonomy.version)
    return replace(grown, added=np.array(order)[grown.leaves] >= n_nodes)
