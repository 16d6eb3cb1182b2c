"""The arrays that algorithms, recodings and metrics hand to each other."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from dbanon.domain.table import ColumnKind, Structure

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from dbanon.domain.policy import ColumnRule
    from dbanon.domain.taxonomy import Taxonomy


@dataclass(frozen=True, eq=False, slots=True)
class Bands:
    """The cells of a line, of which the codes of a column are the ranks.

    A cell reaches from ``low`` up to ``high``, which belongs to it if ``closed``; these are texts,
    empty where a cell has no such end. names: of each cell for people, () where its ends are one;
    width: (size,) float64, what publishing a cell loses, as a share of the range of all cells;
    members: (size,) int64, how many distinct values of the table are in each.
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

    A code is the rank of the value: among the sorted distinct values of the table when they lie
    on a line, in the listed order when the kind is ordinal, in depth-first leaf order when there is
    a taxonomy. NULL is the code ``size``, past the last value. A set of rows is therefore described
    by its least and greatest code.

    codes: (n,) int32 in 0..size; values: (size,) the value of each code, sorted (int64, float64,
    datetime64[D] or datetime64[us]) on a line, else (size,) str; position: (size,) float64 in
    [0, 1], the value scaled by the range of the whole table, or its rank by that of the last value
    of an order; (0,) when there is a taxonomy.

    A column that has a floor knows no values, but cells. On a line ``bands`` describes them, and
    ``values`` and ``position`` are where they begin. In a taxonomy ``cells`` is (size,) int32, the
    node that is the cell of each leaf; all rows of a cell have the code of its first leaf, and
    ``values`` is the label of the cell of each leaf.

    greatest: the greatest integer of the type of a column of integers, None of others.
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

    @property
    def has_floor(self) -> bool:
        """Whether cells are published in place of values."""
        return self.bands is not None or self.cells is not None

    @property
    def name(self) -> str:
        """The column's name."""
        return self.rule.column

    @property
    def structure(self) -> Structure:
        """What its values are to each other."""
        if self.taxonomy is not None:
            return Structure.TREE
        return Structure.ORDER if self.kind is ColumnKind.ORDINAL else Structure.LINE


@dataclass(frozen=True, eq=False, slots=True)
class SensitiveDomain:
    """What the codes of a sensitive column stand for.

    labels: (m,) the text of each code, None for NULL, which is the last; numbers: (m,) float64,
    NaN where the value is no number; leaf: (m,) int64, the leaf of ``tree``, -1 for NULL, or (0,)
    without a tree; has_order: whether the order of the codes means something; counts: (m,) int64,
    how often each occurs in the whole relation, None where the rows at hand are all of it.
    """

    labels: tuple[str | None, ...]
    numbers: NDArray[np.float64]
    leaf: NDArray[np.int64]
    tree: Taxonomy | None = None
    has_order: bool = False
    counts: NDArray[np.int64] | None = None

    def codes_of(self, labels: Collection[str]) -> list[int]:
        """Return the codes of those of some values that the column has."""
        return [code for code, label in enumerate(self.labels) if label in labels]


@dataclass(frozen=True, eq=False, slots=True)
class Slice:
    """Some values of a quasi-identifier, as read: from ``least`` to ``most``, or ``among`` a list.

    With none of these it has no value; with ``nulls`` NULL is one of them.
    """

    column: str
    least: object = None
    most: object = None
    among: tuple[object, ...] = ()
    nulls: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class EncodedTable:
    """The rows of a table as algorithms see them.

    quasi: the quasi-identifiers; sensitive: (n, s) int32, one column of dense codes for each
    sensitive attribute, in the order of the values (NULL is a value and has the last code);
    sensitive_names: its s names; domains: what the codes of each stand for; label: (n,) int32, the
    class label of each row in dense codes, None where no column is one; weights: (n,) float64, the
    persons of a population that each row stands for, None if they were not read.
    """

    quasi: tuple[EncodedColumn, ...]
    sensitive: NDArray[np.int32]
    sensitive_names: tuple[str, ...]
    n_rows: int
    domains: tuple[SensitiveDomain, ...] = ()
    label: NDArray[np.int32] | None = None
    weights: NDArray[np.float64] | None = None

    @property
    def kept(self) -> tuple[EncodedColumn, ...]:
        """The quasi-identifiers that are published as they are."""
        return tuple(column for column in self.quasi if column.rule.keep)

    @property
    def codes(self) -> NDArray[np.int32]:
        """The codes of the quasi-identifiers side by side, (n, d), made anew."""
        import numpy as np

        codes = np.empty((self.n_rows, len(self.quasi)), np.int32)
        for i, column in enumerate(self.quasi):
            codes[:, i] = column.codes
        return codes

    @property
    def all_codes(self) -> NDArray[np.int32]:
        """The codes of quasi-identifiers and sensitive columns side by side, (n, d + s)."""
        import numpy as np

        return np.hstack([self.codes, self.sensitive])

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
    """A partition of the rows.

    group: (n,) int32, the group of each row, numbered 0..n_groups-1 without gaps; -1 for a
    suppressed row; final: whether what the algorithm promises holds of exactly these rows, so
    that no more may be left out.
    """

    group: NDArray[np.int32]
    n_groups: int
    final: bool = False

    @classmethod
    def of_parts(
        cls, n_rows: int, parts: Iterable[tuple[NDArray[np.int64], Assignment]]
    ) -> Assignment:
        """Return the groups of parts, numbered one part after the other.

        parts: some of the rows each, and their groups; rows of no part are suppressed.
        """
        import numpy as np

        group = np.full(n_rows, -1, np.int32)
        n_groups = 0
        for rows, found in parts:
            group[rows] = np.where(found.group < 0, -1, found.group + n_groups)
            n_groups += found.n_groups
        return cls(group, n_groups)

    @property
    def n_suppressed(self) -> int:
        """How many rows are left out."""
        return int((self.group < 0).sum())


class LabelNode(NamedTuple):
    """A label with the one above it, and its place among the others.

    parent: None for the root; level: how many steps below the root it is; listed: how many values
    of a stored taxonomy it stands for, itself if it is one; is_value: whether it is a value.
    """

    label: str
    parent: str | None
    level: int
    listed: int
    is_value: bool


class LabelRow(NamedTuple):
    """A row of the relation of labels.

    values_below: the values of the stored taxonomy below the label and those published that it
    lacks, 0 for a value. Without a stored taxonomy: the values published below the label, and one
    more for each published label at or below it that is no value, for whatever it hides.
    """

    label: str
    parent: str | None
    level: int
    values_below: int


@dataclass(frozen=True, eq=False, slots=True)
class ValueColumn:
    """The published value of one quasi-identifier for each group.

    index: (n_groups,) int32 into ``labels``; labels: the distinct published values in
    PostgreSQL's text input form of the published type, None for NULL; loss: (len(labels),)
    float64, the normalized certainty penalty of each label in [0, 1]; nodes: those labels and all
    above them, from the root on, where they are nodes of a tree.
    """

    name: str
    recoding: str
    kind: ColumnKind
    index: NDArray[np.int32]
    labels: tuple[str | None, ...]
    loss: NDArray[np.float64]
    nodes: tuple[LabelNode, ...] = ()

    def of_groups(self, groups: NDArray[np.int32]) -> ValueColumn:
        """Return what is published of some groups, in this order, and no other label."""
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
    """Return what readers look up of the published labels and of those above them.

    It follows from the published labels and from the stored taxonomy alone.
    """
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
    """What is published of every group, column by column."""

    columns: tuple[ValueColumn, ...]
    n_groups: int


_STANDS_OUT = 1.5


@dataclass(frozen=True, slots=True)
class LossReport:
    """What the publication cost, computed on the published values.

    ncp: mean normalized certainty penalty over rows and quasi-identifiers, in [0, 1], a
    suppressed row counting 1 in every column; columns: the same by column; metrics: every other
    registered metric by name; sensitive_aware: whether sensitive values had a say in which rows
    are grouped, so that who knows the method may reason back from the groups (the minimality
    attack, Wong et al., VLDB 2007). Releases older than this entry of the ledger count as aware;
    weighted_ncp: the same as ncp with each column times its weight, over the sum of the weights,
    None where all columns weigh the same; n_sampled: how many of the suppressed rows were left out
    because their persons have more than are published of anyone; no budget limits these;
    n_filtered: how many rows of the table are none of ``n_rows``, as the policy's conditions say;
    n_not_drawn: how many more are none of them, as their persons are not in the policy's sample;
    n_of_nobody: how many more, as their persons are none of those of the dataset.
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
        """Return the loss among all rows of a whole, of which the rows beyond these are left out.

        Metrics stay those of these rows.
        """
        beyond = whole.n_rows - self.n_rows
        if not beyond:
            return self

        def mean(loss: float) -> float:
            return (loss * self.n_rows + beyond) / whole.n_rows

        weighted = None if self.weighted_ncp is None else mean(self.weighted_ncp)
        return replace(
            self,
            n_rows=whole.n_rows,
            n_suppressed=self.n_suppressed + beyond,
            n_sampled=max(self.n_sampled, whole.n_sampled),
            ncp=mean(self.ncp),
            columns={name: mean(loss) for name, loss in self.columns.items()},
            weighted_ncp=weighted,
        )

    @property
    def asked(self) -> float:
        """The certainty penalty that a search was asked to keep low: weighted where weights are."""
        return self.ncp if self.weighted_ncp is None else self.weighted_ncp

    @property
    def costliest(self) -> tuple[str, float] | None:
        """The column that costs most, with its share of all loss; None where none stands out."""
        return costliest(self.columns)


def costliest(columns: Mapping[str, float]) -> tuple[str, float] | None:
    """Return the column that costs most, with its share of all loss; None where none stands out.

    One does with half as much again as each would have if all lost the same.
    """
    total = sum(columns.values())
    if not total:
        return None
    name = max(columns, key=lambda column: columns[column])
    share = columns[name] / total
    return (name, share) if share * len(columns) >= _STANDS_OUT else None
