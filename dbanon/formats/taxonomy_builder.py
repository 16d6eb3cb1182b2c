"""Build a taxonomy from levels or from edges, and tell everything that is wrong with it at once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from dbanon.domain.errors import TaxonomyError
from dbanon.domain.taxonomy import ROOT_LABEL, Taxonomy
from dbanon.domain.text import command

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_HEIGHT = 255  # a lowest common ancestor is found in O(height)
_MAX_SHOWN = 100
_ROOT = -1
_ALL = "{} (all)"  # of a node whose label is also that of a value below it


@dataclass(slots=True)
class Problems:
    """What is wrong with one taxonomy, by line; line 0 stands for the whole.

    Messages never hold a label: the leaves are the values of a column.
    """

    name: str
    unit: str = "line"
    found: list[tuple[int, str]] = field(default_factory=list)

    def add(self, line: int, text: str) -> None:
        """Note one problem."""
        self.found.append((line, text))

    def raise_if_any(self) -> None:
        """Raise one TaxonomyError that lists them in the order of their lines."""
        if not self.found:
            return
        found = sorted(self.found)
        count = "1 problem" if len(found) == 1 else f"{len(found)} problems"
        lines = [f"taxonomy {self.name!r} has {count}:"]
        lines += [
            f"  {self.unit} {line}: {text}" if line else f"  {text}"
            for line, text in found[:_MAX_SHOWN]
        ]
        if len(found) > _MAX_SHOWN:
            lines.append(f"  and {len(found) - _MAX_SHOWN} more")
        load = command("dbanon taxonomy import", self.name, options="FILE.csv")
        raise TaxonomyError("\n".join(lines), hint=f"correct the file, then: {load}")


@dataclass(slots=True)
class Nodes:
    """Nodes of one tree, siblings in order; ``parent`` is -1 for the root, ``line`` where named."""

    labels: list[str] = field(default_factory=list)
    parent: list[int] = field(default_factory=list)
    line: list[int] = field(default_factory=list)

    def add(self, label: str, parent: int, line: int) -> int:
        """Append a node and return its index."""
        self.labels.append(label)
        self.parent.append(parent)
        self.line.append(line)
        return len(self.labels) - 1


def from_levels(
    name: str,
    rows: Iterable[Sequence[str]],
    *,
    lines: Sequence[int] | None = None,
    inner_values: bool = False,
) -> Taxonomy:
    """Build from one row for each leaf: the leaf, then its ancestors up to the root.

    A root ``*`` is added when the last labels differ. A label may recur only for one and the same
    set of leaves, as in ``Asia;Asia;*``, which keeps the depth of leaves equal; where it stands
    for more above than below in a row, as New York, city and state, the upper one becomes ``New
    York (all)``. inner_values: every label below the root is a value, too. lines: the line number
    of each row, 1, 2, ... by default. O(cells).
    """
    records = list(rows)
    problems = Problems(name)
    numbers = lines if lines is not None else range(1, len(records) + 1)
    kept = _rows_of_one_length(records, numbers, problems)
    columns = list(zip(*(row for _, row in kept), strict=True))
    if not columns:
        problems.add(0, "there is no leaf")
        problems.raise_if_any()
    if len(set(columns[-1])) > 1:
        columns.append((ROOT_LABEL,) * len(kept))
    numbers = [line for line, _ in kept]
    if inner_values:
        columns, numbers = _with_inner_values(columns, numbers)
    nodes = _nodes_of_levels(_told_apart(columns), numbers, problems)
    return assemble(nodes, problems)


def from_edges(
    name: str,
    edges: Iterable[Sequence[str]],
    *,
    lines: Sequence[int] | None = None,
    inner_values: bool = False,
) -> Taxonomy:
    """Build from pairs of a parent's and a child's label; ``("", label)`` names the root.

    A label that is its own child, and has its place elsewhere, is a value that lies above others:
    the upper one becomes ``E11 (all)``. inner_values: so is every label below the root. lines: the
    line number of each edge, 1, 2, ... by default. O(edges).
    """
    records = list(edges)
    problems = Problems(name)
    numbers: Sequence[int] = lines if lines is not None else range(1, len(records) + 1)
    records, numbers = _own_children(records, numbers, inner_values=inner_values)
    nodes = _nodes_of_edges(records, numbers, problems)
    _check_roots(nodes, problems)
    _check_cycles(nodes, problems)
    problems.raise_if_any()
    return assemble(nodes, problems)


def assemble(nodes: Nodes, problems: Problems, *, version: int = 0) -> Taxonomy:
    """Build the tree, its nodes numbered in depth-first preorder.

    Raises everything in ``problems`` together with what the finished tree shows. O(nodes).
    """
    import numpy as np

    order, above, depth = _preorder(nodes.parent)
    labels = tuple(nodes.labels[node] for node in order)
    leaf_lo, leaf_hi, leaves = _leaf_intervals(above)
    taxonomy = Taxonomy(
        problems.name,
        labels,
        parent=np.array(above, dtype=np.int32),
        depth=np.array(depth, dtype=np.int32),
        leaf_lo=np.array(leaf_lo, dtype=np.int32),
        leaf_hi=np.array(leaf_hi, dtype=np.int32),
        leaves=np.array(leaves, dtype=np.int32),
        version=version,
    )
    _check_labels(labels, [nodes.line[node] for node in order], taxonomy, problems=problems)
    _check_shape(taxonomy, problems)
    problems.raise_if_any()
    return taxonomy


def check_labels_are_text(labels: Iterable[str]) -> dict[str, str]:
    """Return what is wrong with each label that cannot be stored, by label."""
    odd: dict[str, str] = {}
    for label in set(labels):
        if not label:
            odd[label] = "a label is empty"
        elif "\x00" in label or (not label.isascii() and _has_surrogate(label)):
            odd[label] = "a label holds a character that PostgreSQL cannot store"
    return odd


def _has_surrogate(label: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in label)


def _rows_of_one_length(
    records: list[Sequence[str]], numbers: Sequence[int], problems: Problems
) -> list[tuple[int, Sequence[str]]]:
    """Return the rows that further checks can look at, with their line numbers."""
    odd = check_labels_are_text(chain.from_iterable(records))
    width = len(records[0]) if records else 0
    kept = []
    for line, row in zip(numbers, records, strict=True):
        if len(row) != width:
            problems.add(line, f"{len(row)} columns, where line {numbers[0]} has {width}")
        elif odd and any(label in odd for label in row):
            for column, label in enumerate(row, start=1):
                if label in odd:
                    problems.add(line, f"column {column}: {odd[label]}")
        else:
            kept.append((line, row))
    return kept


def _nodes_of_levels(columns: list[tuple[str, ...]], lines: list[int], problems: Problems) -> Nodes:
    """Make a node of each label of each level, from the root down; the first parent stands."""
    nodes = Nodes()
    parents = [_ROOT] * len(lines)
    for level in range(len(columns) - 1, -1, -1):
        here: dict[str, int] = {}
        row_nodes = []
        for line, label, above in zip(lines, columns[level], parents, strict=True):
            node = here.get(label)
            if node is None:
                node = here[label] = nodes.add(label, above, line)
            elif level == 0:
                problems.add(line, f"the leaf of line {nodes.line[node]} again")
            elif nodes.parent[node] != above:
                first = nodes.line[node]
                problems.add(line, f"column {level + 1} has another parent than on line {first}")
            row_nodes.append(node)
        parents = row_nodes
    return nodes


def _told_apart(columns: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Mark labels that stand for more rows than the same label does further below in the row."""
    counts = [Counter(column) for column in columns]
    for level in range(1, len(columns)):
        wider = {
            label
            for row in zip(*columns[: level + 1], strict=True)
            for below, label in enumerate(row[:-1])
            if label == row[-1] and counts[below][label] < counts[level][label]
        }
        taken = {label for count in counts for label in count}
        if wider and not taken & {_ALL.format(label) for label in wider}:
            columns[level] = tuple(
                _ALL.format(label) if label in wider else label for label in columns[level]
            )
            counts[level] = Counter(columns[level])
    return columns


def _with_inner_values(
    columns: list[tuple[str, ...]], lines: list[int]
) -> tuple[list[tuple[str, ...]], list[int]]:
    """Add a row for each label between the leaves and the root that is no leaf itself."""
    rows, numbers = list(zip(*columns, strict=True)), [*lines]
    known = set(columns[0])
    for line, row in zip(lines, [*rows], strict=True):
        for level, label in enumerate(row[1:-1], start=1):
            if label not in known:
                known.add(label)
                rows.append((label,) * level + row[level:])
                numbers.append(line)
    return list(zip(*rows, strict=True)), numbers


def _own_children(
    edges: list[Sequence[str]], lines: Sequence[int], *, inner_values: bool
) -> tuple[list[Sequence[str]], Sequence[int]]:
    """Let a value lie below a node of its own, where its label is its own child."""
    pairs = [edge for edge in edges if len(edge) == 2]  # noqa: PLR2004 - the others are told later
    placed = {child for parent, child in pairs if parent and parent != child}
    own = {child for parent, child in pairs if parent == child} & placed
    if inner_values:
        own |= {parent for parent, _ in pairs} & placed
    labels = {label for edge in pairs for label in edge}
    own = {label for label in own if label and _ALL.format(label) not in labels}
    found: list[Sequence[str]] = []
    numbers: list[int] = []
    for edge, line in zip(edges, lines, strict=True):
        if len(edge) == 2 and edge[0] == edge[1] and edge[0] in own:  # noqa: PLR2004 - as above
            continue
        found.append([_ALL.format(label) if label in own else label for label in edge])
        numbers.append(line)
        if len(edge) == 2 and edge[1] in own:  # noqa: PLR2004 - as above
            found.append([_ALL.format(edge[1]), edge[1]])
            numbers.append(line)
    return found, numbers


def _nodes_of_edges(
    records: list[Sequence[str]], numbers: Sequence[int], problems: Problems
) -> Nodes:
    """Make a node of each label; the first parent of a child stands."""
    nodes = Nodes()
    ids: dict[str, int] = {}
    placed: dict[int, int] = {}
    odd = check_labels_are_text(chain.from_iterable(records))
    for line, edge in zip(numbers, records, strict=True):
        if len(edge) != 2:  # noqa: PLR2004 - a parent and a child
            problems.add(line, f"{len(edge)} columns, where parent and child are expected")
            continue
        wrong = odd.get(edge[1]) or (edge[0] and odd.get(edge[0]))
        if wrong:
            problems.add(line, wrong)
            continue
        for label in edge:
            if label and label not in ids:
                ids[label] = nodes.add(label, _ROOT, line)
        child = ids[edge[1]]
        if child in placed:
            problems.add(line, f"the child already has its place, on line {placed[child]}")
            continue
        placed[child] = line
        nodes.line[child] = line
        nodes.parent[child] = ids[edge[0]] if edge[0] else _ROOT
    return nodes


def _check_roots(nodes: Nodes, problems: Problems) -> None:
    roots = [node for node, above in enumerate(nodes.parent) if above == _ROOT]
    if not roots:
        problems.add(0, "there is no root" + (": every node has a parent" if nodes.labels else ""))
    for extra in roots[1:]:
        problems.add(
            nodes.line[extra], f"a second root; line {nodes.line[roots[0]]} has one already"
        )


def _check_cycles(nodes: Nodes, problems: Problems) -> None:
    """Report each cycle once, at its first line; walks every node once."""
    walk_of = [-1] * len(nodes.parent)
    for start in range(len(nodes.parent)):
        node = start
        while node != _ROOT and walk_of[node] < 0:
            walk_of[node] = start
            node = nodes.parent[node]
        if node == _ROOT or walk_of[node] != start:
            continue
        cycle = [node]
        while nodes.parent[cycle[-1]] != node:
            cycle.append(nodes.parent[cycle[-1]])
        first = min(nodes.line[member] for member in cycle)
        problems.add(first, f"part of a cycle of length {len(cycle)}")


def _preorder(parent: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
    """Return the nodes in depth-first preorder, and the parent and depth of each by new number."""
    children: list[list[int]] = [[] for _ in parent]
    for node, up in enumerate(parent):
        if up != _ROOT:
            children[up].append(node)
    order: list[int] = []
    above: list[int] = []
    depth: list[int] = []
    stack = [(parent.index(_ROOT), _ROOT)]
    while stack:
        node, up = stack.pop()
        number = len(order)
        order.append(node)
        above.append(up)
        depth.append(depth[up] + 1 if up != _ROOT else 0)
        stack.extend((child, number) for child in reversed(children[node]))
    return order, above, depth


def _leaf_intervals(above: list[int]) -> tuple[list[int], list[int], list[int]]:
    """Return leaf_lo and leaf_hi of each node and the node of each leaf, from preorder."""
    is_leaf = [True] * len(above)
    for up in above[1:]:
        is_leaf[up] = False
    leaves = [node for node, leaf in enumerate(is_leaf) if leaf]
    leaf_lo, seen = [], 0
    for leaf in is_leaf:
        leaf_lo.append(seen)
        seen += leaf
    leaf_hi = leaf_lo.copy()
    for node in range(len(above) - 1, 0, -1):
        leaf_hi[above[node]] = max(leaf_hi[above[node]], leaf_hi[node])
    return leaf_lo, leaf_hi, leaves


def _check_labels(
    labels: tuple[str, ...], lines: list[int], taxonomy: Taxonomy, *, problems: Problems
) -> None:
    """Report labels that name nodes with different leaves: readers could not tell which."""
    spans = list(zip(taxonomy.leaf_lo.tolist(), taxonomy.leaf_hi.tolist(), strict=True))
    first_node: dict[str, int] = {}
    for node, label in enumerate(labels):
        twin = first_node.setdefault(label, node)
        if spans[twin] != spans[node]:
            early, late = sorted((lines[twin], lines[node]))
            problems.add(late, f"a label that names another node on {problems.unit} {early}")


def _check_shape(taxonomy: Taxonomy, problems: Problems) -> None:
    if not taxonomy.name or "\x00" in taxonomy.name:
        problems.add(0, "the name of a taxonomy is not empty and holds no NUL character")
    if taxonomy.height > MAX_HEIGHT:
        problems.add(0, f"the tree is {taxonomy.height} levels high; the limit is {MAX_HEIGHT}")
    depths = Counter(taxonomy.depth[taxonomy.leaves].tolist())
    # Only the levels form can say that a label recurs, and it needs leaves of equal depth.
    recurs = len(set(taxonomy.labels)) < len(taxonomy.labels)
    if len(depths) > 1 and recurs:
        found = ", ".join(f"{count} at depth {depth}" for depth, count in sorted(depths.items()))
        problems.add(0, f"all leaves must have one depth, found {found}")
