"""Arrays exchanged by algorithms, recodings and metrics."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from dbanon.domain.table import ColumnKind, Structure

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from dbanon.domain.policy import ColumnRule


ROOT_LABEL = "*"


@dataclass(frozen=True, eq=False, slots=True)
class Taxonomy:
    """A rooted tree whose leaves are the values of a column.

    Nodes are numbered in depth-first preorder (root 0), leaves from left to right. So the leaves
    below a node are the interval ``leaf_lo[node]..leaf_hi[node]``, and the lowest common ancestor
    of a set of leaves is that of its least and greatest.

    labels: (n_nodes,) str; parent: (n_nodes,) int32, -1 for the root; depth: (n_nodes,) int32;
    leaf_lo, leaf_hi: (n_nodes,) int32, inclusive; leaves: (n_leaves,) int32, the node of each leaf;
    added: (n_leaves,) bool, leaves that a source has but not the stored taxonomy, None for none.
    """

    name: str
    labels: tuple[str, ...]
    parent: NDArray[np.int32]
    depth: NDArray[np.int32]
    leaf_lo: NDArray[np.int32]
    leaf_hi: NDArray[np.int32]
    leaves: NDArray[np.int32]
    version: int = 0
    added: NDArray[np.bool_] | None = None

    @classmethod
    def of_nodes(
        cls,
        name: str,
        labels: Sequence[str],
        *,
        parent: Sequence[int],
        leaves: Sequence[int],
        version: int = 0,
        added: NDArray[np.bool_] | None = None,
    ) -> Taxonomy:
        """Return the taxonomy of nodes in depth-first preorder. O(nodes)."""
        import numpy as np

        depth = [0]
        for above in parent[1:]:
            depth.append(depth[above] + 1)
        lo, hi = [len(leaves)] * len(labels), [-1] * len(labels)
        for number, leaf in enumerate(leaves):
            lo[leaf] = hi[leaf] = number
        for node in range(len(labels) - 1, 0, -1):
            above = parent[node]
            lo[above], hi[above] = min(lo[above], lo[node]), max(hi[above], hi[node])
        ups, depths, los, his, places = (
            np.array(numbers, np.int32) for numbers in (parent, depth, lo, hi, leaves)
        )
        return cls(name, tuple(labels), ups, depths, los, his, places, version, added)

    @property
    def n_leaves(self) -> int:
        """Size of the domain."""
        return len(self.leaves)

    @property
    def leaf_labels(self) -> tuple[str, ...]:
        """Values of the column, by leaf number."""
        return tuple(self.labels[node] for node in self.leaves)

    @property
    def height(self) -> int:
        """Length of the longest path from the root to a leaf."""
        return int(self.depth.max())

    def at_depth(self, depth: int) -> NDArray[np.int64]:
        """Return the ancestor of each leaf that many steps below the root, or the leaf."""
        import numpy as np

        nodes = self.leaves.astype(np.int64)
        while (deep := self.depth[nodes] > depth).any():
            nodes = np.where(deep, self.parent[nodes], nodes)
        return nodes


def height_shares(taxonomy: Taxonomy) -> NDArray[np.float64]:
    """Return the height of the subtree at each node over the height of the tree."""
    import numpy as np

    deepest = taxonomy.depth.copy()
    for depth in range(taxonomy.height, 0, -1):
        nodes = np.flatnonzero(taxonomy.depth == depth)
        np.maximum.at(deepest, taxonomy.parent[nodes], deepest[nodes])
    return (deepest - taxonomy.depth) / max(taxonomy.height, 1)


@dataclass(frozen=True, eq=False, slots=True)
class Bands:
    """Cells of a line; the codes of a column are their ranks.

    A cell is [low, high), or [low, high] if ``closed``; the ends are texts, empty if open. names:
    readable text of each cell, () if the ends suffice; width: (size,) float64, loss of a published
    cell as a share of the range of all cells; members: (size,) int64, distinct values of the table
    in each.
    """

    low: tuple[str, ...]
    high: tuple[str, ...]
    closed: bool
    names: tuple[str, ...]
    width: NDArray[np.float64]
    members: NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class EncodedColumn:
    """One quasi-identifier as integer codes.

    A code is the rank of the value: among the sorted distinct values of the table on a line, in the
    listed order if the kind is ordinal, in depth-first leaf order with a taxonomy. NULL is the code
    ``size``. So the least and the greatest code describe a set of rows.

    codes: (n,) int32 in 0..size; values: (size,) value of each code, sorted (int64, float64,
    datetime64[D] or datetime64[us]) on a line, otherwise str; position: (size,) float64 in [0, 1],
    the value scaled by the table's range, or the relative rank in an order; (0,) with a taxonomy.

    With a floor, cells take the place of values. On a line, ``bands`` describes them, and
    ``values`` and ``position`` are their starts. In a taxonomy, ``cells`` (size,) int32 is the
    cell's node for each leaf; all rows of a cell have the code of its first leaf, and ``values`` is
    the label of each leaf's cell.

    greatest: the greatest value of an integer column's type, None for other types. end: which end
    of the interval of each person's values the codes are, None if they are no ends.
    """

    rule: ColumnRule
    kind: ColumnKind
    codes: NDArray[np.int32]
    size: int
    values: NDArray[Any]
    position: NDArray[np.float64]
    taxonomy: Taxonomy | None = None
    bands: Bands | None = None
    cells: NDArray[np.int32] | None = None
    greatest: int | None = None
    end: Literal["least", "greatest"] | None = None

    @property
    def has_floor(self) -> bool:
        """True if cells are published instead of values."""
        return self.bands is not None or self.cells is not None

    @property
    def name(self) -> str:
        """The column's name."""
        return self.rule.column

    @property
    def structure(self) -> Structure:
        """Relation of its values to each other."""
        if self.taxonomy is not None:
            return Structure.TREE
        return Structure.ORDER if self.kind is ColumnKind.ORDINAL else Structure.LINE


@dataclass(frozen=True, eq=False, slots=True)
class SensitiveDomain:
    """The values of the codes of a sensitive column.

    labels: (m,) text of each code, None for NULL, the last; numbers: (m,) float64, NaN if not a
    number; leaf: (m,) int64, the leaf of ``tree``, -1 for NULL, or (0,) without a tree; has_order:
    codes are ordered; counts: (m,) int64, frequencies in the whole relation, None if the rows at
    hand are complete.
    """

    labels: tuple[str | None, ...]
    numbers: NDArray[np.float64]
    leaf: NDArray[np.int64]
    tree: Taxonomy | None = None
    has_order: bool = False
    counts: NDArray[np.int64] | None = None

    def codes_of(self, labels: Collection[str]) -> list[int]:
        """Return the codes of those values that the column has."""
        return [code for code, label in enumerate(self.labels) if label in labels]


@dataclass(frozen=True, eq=False, slots=True)
class EncodedTable:
    """The rows of a table in the form that algorithms take.

    sensitive: (n, s) int32, dense codes of each sensitive column in value order, NULL last;
    sensitive_names: its s names; domains: of their codes; label: (n,) int32, dense code of the
    class label, None without one; weights: (n,) float64, persons of a population that each row
    represents, None if they were not read.
    """

    quasi: tuple[EncodedColumn, ...]
    sensitive: NDArray[np.int32]
    sensitive_names: tuple[str, ...]
    n_rows: int
    domains: tuple[SensitiveDomain, ...] = ()
    label: NDArray[np.int32] | None = None
    weights: NDArray[np.float64] | None = None

    @property
    def kept_columns(self) -> tuple[EncodedColumn, ...]:
        """The quasi-identifiers that are published unchanged."""
        return tuple(column for column in self.quasi if column.rule.keep)

    @property
    def codes(self) -> NDArray[np.int32]:
        """The codes of the quasi-identifiers, (n, d), as a new array."""
        import numpy as np

        codes = np.empty((self.n_rows, len(self.quasi)), np.int32)
        for i, column in enumerate(self.quasi):
            codes[:, i] = column.codes
        return codes

    @property
    def all_codes(self) -> NDArray[np.int32]:
        """The codes of quasi-identifiers and sensitive columns, (n, d + s)."""
        import numpy as np

        return np.hstack([self.codes, self.sensitive])

    def ends(self, names: Iterable[str]) -> tuple[NDArray[np.int64], int]:
        """Return the first and last row of each value of some columns, and the number of values.

        Columns that only other tables of a dataset have are left out.
        """
        import numpy as np

        columns = {column.name: column.codes for column in self.quasi}
        columns.update(zip(self.sensitive_names, self.sensitive.T, strict=True))
        rows, found = np.arange(self.n_rows), [np.zeros(0, np.int64)]
        for codes in (columns[name] for name in names if name in columns):
            first, last = np.full((2, codes.max(initial=-1) + 1), -1)
            first[codes[::-1]], last[codes] = rows[::-1], rows
            found += [first[first >= 0], last[last >= 0]]
        return np.unique(np.concatenate(found)), sum(map(len, found)) // 2

    def take(self, rows: NDArray[np.int64]) -> EncodedTable:
        """Return some rows, in the order given, on the scales of the whole table."""
        return replace(
            self,
            quasi=tuple(replace(column, codes=column.codes[rows]) for column in self.quasi),
            sensitive=self.sensitive[rows],
            n_rows=len(rows),
            label=None if self.label is None else self.label[rows],
            weights=None if self.weights is None else self.weights[rows],
        )


@dataclass(frozen=True, eq=False, slots=True)
class Assignment:
    """A partition of the rows; group: (n,) int32, 0..n_groups-1 without gaps, -1 if suppressed.

    final: the algorithm's guarantee holds for exactly these rows, so no others may be suppressed.
    """

    group: NDArray[np.int32]
    n_groups: int
    final: bool = False

    @classmethod
    def of_parts(
        cls, n_rows: int, parts: Iterable[tuple[NDArray[np.int64], Assignment]]
    ) -> Assignment:
        """Concatenate the groups of parts (rows, groups); rows of no part are suppressed."""
        import numpy as np

        group = np.full(n_rows, -1, np.int32)
        n_groups = 0
        for rows, found in parts:
            group[rows] = np.where(found.group < 0, -1, found.group + n_groups)
            n_groups += found.n_groups
        return cls(group, n_groups)

    @property
    def n_suppressed(self) -> int:
        """Number of suppressed rows."""
        return int((self.group < 0).sum())

    @property
    def members(self) -> list[NDArray[np.int64]]:
        """The rows of each group, ascending."""
        import numpy as np

        order = np.argsort(self.group, kind="stable")[self.n_suppressed :]
        sizes = np.bincount(self.group[order], minlength=self.n_groups)
        return np.split(order, np.cumsum(sizes)[:-1])


class LabelNode(NamedTuple):
    """A label, its parent (None for the root) and its level, steps below the root.

    listed: number of values of a stored taxonomy at or below it; is_value: it is a value.
    """

    label: str
    parent: str | None
    level: int
    listed: int
    is_value: bool


class LabelRow(NamedTuple):
    """A row of the relation of labels.

    values_below: the values of the stored taxonomy below the label and the published ones it lacks,
    0 for a value. Without a stored taxonomy: the published values below, and one for each published
    label at or below it that is no value, for those it hides.
    """

    label: str
    parent: str | None
    level: int
    values_below: int


@dataclass(frozen=True, eq=False, slots=True)
class ValueColumn:
    """The published value of one quasi-identifier for each group.

    index: (n_groups,) int32 into ``labels``; labels: distinct published values in the text input
    form of the published type, None for NULL; loss: (len(labels),) float64, certainty penalty of
    each in [0, 1]; nodes: the labels and their ancestors, root first, if they are nodes of a tree.
    """

    name: str
    recoding: str
    kind: ColumnKind
    index: NDArray[np.int32]
    labels: tuple[str | None, ...]
    loss: NDArray[np.float64]
    nodes: tuple[LabelNode, ...] = ()

    def of_groups(self, groups: NDArray[np.int32]) -> ValueColumn:
        """Return the published values of some groups, in this order, without unused labels."""
        import numpy as np

        used, index = np.unique(self.index[groups], return_inverse=True)
        labels = tuple(self.labels[i] for i in used.tolist())
        parents = {node.label: node.parent for node in self.nodes}
        shown = set(labels)
        for label in labels:
            above = parents.get(label) if label is not None else None
            while above is not None and above not in shown:
                shown.add(above)
                above = parents[above]
        nodes = tuple(node for node in self.nodes if node.label in shown)
        return replace(
            self, index=index.astype(np.int32), labels=labels, loss=self.loss[used], nodes=nodes
        )


def label_rows(column: ValueColumn) -> list[LabelRow]:
    """Return published labels and their ancestors, by the stored taxonomy alone."""
    parents = {node.label: node.parent for node in column.nodes}
    is_stored = any(node.listed for node in column.nodes)
    below = {node.label: node.listed for node in column.nodes}
    published = frozenset(column.labels)
    for node in column.nodes:
        hides = not is_stored and not node.is_value and node.label in published
        if hides or (node.is_value and not node.listed):
            label: str | None = node.label
            while label is not None:
                below[label] += 1
                label = parents[label]
    return [
        LabelRow(node.label, node.parent, node.level, 0 if node.is_value else below[node.label])
        for node in column.nodes
    ]


@dataclass(frozen=True, eq=False, slots=True)
class GroupValues:
    """Published values of every group, by column."""

    columns: tuple[ValueColumn, ...]
    n_groups: int


class Recoding(Protocol):
    """A way to turn the values of a group into one published value."""

    @property
    def accepts(self) -> frozenset[Structure]:
        """Column structures that this recoding can publish."""
        ...

    def publish(self, column: EncodedColumn, assignment: Assignment) -> ValueColumn:
        """Return the published value of every group."""
        ...


_STANDS_OUT = 1.5


@dataclass(frozen=True, slots=True)
class LossReport:
    """The loss of the publication, computed on the published values.

    ncp: mean normalized certainty penalty over rows and quasi-identifiers, in [0, 1]; a suppressed
    row counts 1 in every column; columns: the same by column; metrics: all other registered
    metrics; sensitive_aware: sensitive values affected the grouping, which permits a minimality
    attack (Wong et al., VLDB 2007); True for releases older than this entry; weighted_ncp: ncp
    weighted by column, None for equal weights; n_sampled: suppressed rows beyond the rows per
    person, outside the budget. Rows of the table beyond ``n_rows``: n_filtered by the policy's
    conditions, n_not_drawn outside its sample, n_of_nobody without a person of the dataset.
    """

    n_rows: int
    n_suppressed: int
    n_classes: int
    smallest_class: int
    ncp: float
    columns: Mapping[str, float]
    metrics: Mapping[str, float] = field(default_factory=dict)
    sensitive_aware: bool = True
    weighted_ncp: float | None = None
    n_sampled: int = 0
    n_filtered: int = 0
    n_not_drawn: int = 0
    n_of_nobody: int = 0

    def among(self, whole: LossReport) -> LossReport:
        """Return the loss among all rows of a whole, the others suppressed; metrics stay.

        Within the budget, only the whole suppresses rows.
        """
        beyond = whole.n_rows - self.n_rows
        if not beyond:
            return self

        def mean(loss: float) -> float:
            return (loss * self.n_rows + beyond) / whole.n_rows

        weighted = None if self.weighted_ncp is None else mean(self.weighted_ncp)
        suppressed = self.n_suppressed + beyond
        return replace(
            self,
            n_rows=whole.n_rows,
            n_suppressed=suppressed,
            n_sampled=suppressed - (whole.n_suppressed - whole.n_sampled),
            ncp=mean(self.ncp),
            columns={name: mean(loss) for name, loss in self.columns.items()},
            weighted_ncp=weighted,
        )

    @property
    def asked(self) -> float:
        """Certainty penalty that the search minimizes: weighted if there are weights."""
        return self.ncp if self.weighted_ncp is None else self.weighted_ncp

    @property
    def costliest(self) -> tuple[str, float] | None:
        """The column with the greatest share of the loss, and its share, if it stands out."""
        return costliest(self.columns)


def costliest(columns: Mapping[str, float]) -> tuple[str, float] | None:
    """Return the column with at least 1.5 times the loss of equal shares, and its share."""
    total = sum(columns.values())
    if not total:
        return None
    name = max(columns, key=lambda column: columns[column])
    share = columns[name] / total
    return (name, share) if share * len(columns) >= _STANDS_OUT else None
