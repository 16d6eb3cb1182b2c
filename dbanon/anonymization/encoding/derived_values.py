"""Values that a taxonomy lacks, where the way they begin says where they belong.

Codes are often made so: the branch ``021**`` holds all that begins with 021, ``E11`` all that
begins with E11. A value is placed only where the taxonomy says so itself, and nothing speaks
against it; all others stay missing.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.encoding.tree_cells import numbered

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dbanon.domain.taxonomy import Taxonomy

_CODE = re.compile(r"[0-9A-Za-z.-]+")
_MASK = "*xX-. "  # what fills up the name of a branch behind its prefix
_SEPARATORS = ".-"
_DIGIT = re.compile(r"[0-9]")
_FEWEST_OF_BRANCH = 2  # characters that the values of a branch begin with
_FEWEST_OF_LEAF = 3
_AFTER_ALL = chr(0x10FFFF)


def with_derived(taxonomy: Taxonomy, texts: Sequence[str]) -> tuple[Taxonomy, list[str]]:
    """Return the tree with a leaf for each new value that has a place, and the leaf of each text.

    Where all leaves are codes of one length, a longer code is the leaf that it begins with, if a
    point or a hyphen follows, or the leaf is in a branch that is named by how it begins. Else its
    place is the lowest branch that is named so, without stars, if all leaves that begin so are in
    it, and it has no branches, and one of its leaves is written alike, digit for digit and letter
    for letter. O(nodes * height + m log nodes).
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
    grown = _grown(taxonomy, places) if places else taxonomy
    return grown, [shorter.get(text, text) for text in texts]


def _branches(taxonomy: Taxonomy) -> dict[str, int]:
    """Return by prefix the lowest branch that is named by it, and holds all that begin with it."""
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
    """Whether a text is a code below a leaf that it begins with, and no other number."""
    if len(leaf) < _FEWEST_OF_LEAF or not _DIGIT.search(leaf):
        return False
    return text[len(leaf)] in _SEPARATORS or any(leaf[:n] in branches for n in range(len(leaf)))


def _place(text: str, taxonomy: Taxonomy, branches: Mapping[str, int]) -> int | None:
    """Return the branch that a new value is a leaf of, None where nothing is sure."""
    prefixes = (text[:n] for n in range(len(text) - 1, 0, -1))
    node = next((branches[prefix] for prefix in prefixes if prefix in branches), None)
    if node is None or text in taxonomy.labels:
        return None
    below = taxonomy.leaves[taxonomy.leaf_lo[node] : taxonomy.leaf_hi[node] + 1]
    if (taxonomy.parent[below] != node).any():
        return None  # it would be finer than its neighbours under a floor
    return node if _shape(text) in {_shape(taxonomy.labels[leaf]) for leaf in below} else None


def _shape(text: str) -> str:
    """Return a text with all digits, and all letters, alike."""
    return re.sub(r"[A-Za-z]", "A", _DIGIT.sub("9", text))


def _grown(taxonomy: Taxonomy, places: Mapping[int, Sequence[str]]) -> Taxonomy:
    """Return the tree with more leaves, by the node that they are below, behind its own."""
    behind = {int(taxonomy.leaves[taxonomy.leaf_hi[node]]): node for node in places}
    leaves = set(taxonomy.leaves.tolist())
    labels: list[str] = []
    parent: list[int] = []
    depth: list[int] = []
    found: list[int] = []
    added: list[bool] = []
    place_of: dict[int, int] = {-1: -1}
    for node, label in enumerate(taxonomy.labels):
        place_of[node] = len(labels)
        above = place_of[int(taxonomy.parent[node])]
        more = [(label, above)]
        if node in behind:
            more += [(text, above) for text in places[behind[node]]]
        for text, upper in more:
            if node in leaves:
                found.append(len(labels))
                added.append(text is not label)
            labels.append(text)
            parent.append(upper)
            depth.append(int(taxonomy.depth[node]))
    grown = numbered(taxonomy.name, labels, parent=parent, depth=depth, leaves=found)
    return replace(grown, version=taxonomy.version, added=np.array(added, np.bool_))
