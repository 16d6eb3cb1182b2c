"""Loss of quasi-identifiers computed from published labels alone.

A range loses its share of the span of the column's labels, a set its share of the published
elements, a node of a taxonomy or values of an order their share of that, and a text the share of
hidden characters; ``*`` loses everything and a single value nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.loss.costs import leaf_shares
from dbanon.anonymization.recodings.groups import DAY, Ends, ends_of_literal
from dbanon.anonymization.released.labels import elements, ends_of_pair, ends_of_text
from dbanon.anonymization.released.reading import texts_of
from dbanon.domain.policy import DATE_PART, PAIRS, POINTS, ColumnRule, Policy, Role
from dbanon.domain.table import ColumnKind

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from dbanon.domain.assignment import Taxonomy

    Floats = NDArray[np.float64]
    Label = tuple[str | None, ...]

_STEPS = {ColumnKind.INTEGER: 1, ColumnKind.DATE: DAY}
_DIGITS = 6
_NUMBERS = (ColumnKind.FLOAT, ColumnKind.TIMESTAMP)
_PERIODS = _NUMBERS[::-1]


def label_loss(
    shown: pa.Table,
    counts: NDArray[np.int64],
    policy: Policy,
    *,
    kinds: Mapping[str, ColumnKind],
    ranges: Collection[str],
    taxonomies: Mapping[str, Taxonomy],
) -> dict[str, float]:
    """Return the mean loss of the rows by column, without columns such as means that define none.

    shown, counts: as in ``of_release``; kinds: of columns, or of the ends of those in ``ranges``.
    """
    found = {}
    for rule in () if policy.anatomy or not shown.num_rows else policy.with_role(Role.QUASI):
        parts = [texts_of(shown, name) for name in rule.published_as]
        keys, place = np.unique(np.stack([i for _, i in parts]), axis=1, return_inverse=True)
        labels = [
            tuple(texts[i] for (texts, _), i in zip(parts, key, strict=True))
            for key in keys.T.tolist()
        ]
        name = rule.published_as[0]
        lost = _lost(rule, labels, kinds[name], name in ranges, taxonomies)
        if lost is not None:
            rows = np.bincount(place.reshape(-1), counts, len(labels))
            found[rule.column] = round(float(rows @ lost / rows.sum()), _DIGITS)
    return found


def _lost(  # noqa: PLR0911 - one line for each kind of label
    rule: ColumnRule,
    labels: Sequence[Label],
    kind: ColumnKind,
    is_range: bool,  # noqa: FBT001
    taxonomies: Mapping[str, Taxonomy],
) -> Floats | None:
    """Return the loss of each label, in [0, 1]; None if the labels of a column do not define it."""
    recoding, texts = rule.recoding or "", [label[0] for label in labels]
    if rule.keep:
        return np.zeros(len(labels))
    if recoding in {"suppress", "cell-suppression"}:
        return np.array([text is None or recoding == "suppress" for text in texts], np.float64)
    if recoding in PAIRS:
        pairs = [(first, second) for first, second in labels]
        return _of_ranges(kind, [ends_of_pair(kind, recoding, pair) for pair in pairs])
    if is_range:
        return _of_ranges(kind, [t if t is None else ends_of_literal(kind, t) for t in texts])
    if recoding == "set":
        sets = [set(elements(text or "{}")) for text in texts]
        size = max(len(set().union(*sets)), 1)
        return np.array([len(one) / size if len(one) > 1 else 0.0 for one in sets])
    if recoding in POINTS or (kind.is_ordered and rule.taxonomy is None):
        return None
    if rule.taxonomy is not None:
        return _of_nodes(taxonomies[rule.taxonomy], texts)
    if rule.order is not None:
        return _of_order(rule.order, texts)
    is_period = recoding == DATE_PART or isinstance(rule.at_least, str)
    return _of_texts(texts, _PERIODS if is_period else _NUMBERS)


def _of_ranges(kind: ColumnKind, ends: Sequence[Ends | None]) -> Floats:
    """Return the loss of ranges; None, a NULL published alone, loses nothing."""
    step = _STEPS.get(kind, 0)
    low, high = np.full((2, len(ends)), np.nan)
    for i, one in enumerate(ends):
        if one is not None and one.least is not None:
            low[i] = one.least
        if one is not None and one.most is not None:
            high[i] = one.most - (0 if one.closed else step)
    known = np.concatenate([low, high])
    known = known[np.isfinite(known)]
    reach = float(np.ptp(known)) if len(known) else 0.0
    least, most = (known.min(), known.max()) if len(known) else (0.0, 0.0)
    width = np.where(np.isnan(high), most, high) - np.where(np.isnan(low), least, low)
    lost = np.clip(width / reach, 0.0, 1.0) if reach > 0.0 else np.zeros(len(ends))
    is_open = [one is not None and one.least is None and one.most is None for one in ends]
    lost[is_open] = 1.0
    return np.where([one is None for one in ends], 0.0, lost)


def _of_nodes(tree: Taxonomy, texts: Sequence[str | None]) -> Floats:
    """Return the share of the leaves below each node, 0 for a leaf."""
    shares = np.where(tree.leaf_hi > tree.leaf_lo, leaf_shares(tree), 0.0)
    of_label = dict(zip(reversed(tree.labels), reversed(shares.tolist()), strict=True))
    return np.array([of_label.get(text or "", 0.0) for text in texts])


def _of_order(order: Sequence[str], texts: Sequence[str | None]) -> Floats:
    """Return the share of an order's steps from the first to the last value of each label."""
    rank = {text: place for place, text in enumerate(order)}

    def lost(text: str) -> float:
        if text == "*":
            return 1.0
        inside = text[1:-1]
        cuts = [at for at in range(len(inside)) if inside.startswith(", ", at)]
        ends = [(inside[:at], inside[at + 2 :]) for at in cuts]
        steps = [rank[b] - rank[a] for a, b in ends if a in rank and b in rank]
        return max(steps, default=0) / max(len(order) - 1, 1)

    return np.array([0.0 if text is None or text in rank else lost(text) for text in texts])


def _of_texts(texts: Sequence[str | None], kinds: Sequence[ColumnKind]) -> Floats | None:
    """Return the loss of labels that are texts: ranges of one kind, or truncated values."""
    for kind in kinds:
        try:
            return _of_ranges(kind, [t if t is None else ends_of_text(kind, t) for t in texts])
        except ValueError:
            continue
    if any(text is not None and text.startswith("[") for text in texts):
        return None  # a range of values, in the order of the source's type
    return np.array([text.count("*") / len(text) if text else 0.0 for text in texts])
