"""The calls that prove privacy models in the database."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypedDict

from psycopg import sql
from psycopg.types.json import Jsonb

from dbanon.db.models.functions import TYPES, check_name, judgement
from dbanon.models.base import Scope
from dbanon.models.parameters import HIERARCHICAL, ORDERED
from dbanon.models.registry import MODELS
from dbanon.models.specs import arguments, is_strict, sensitive_of, texts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from dbanon.domain.policy import ModelSpec
    from dbanon.domain.taxonomy import Taxonomy


class Demand(NamedTuple):
    """A model to check on a sensitive column; quasi: the columns of its classes.

    For (X, Y)-anonymity, quasi is X and column lists Y. For a model of the rows of classes or of a
    population, column is empty.
    """

    spec: ModelSpec
    column: str
    quasi: tuple[str, ...]


def demands(
    models: Iterable[ModelSpec], *, quasi: Sequence[str], sensitive: Sequence[str]
) -> Iterator[Demand]:
    """Yield the checks of models, one for each sensitive column."""
    for spec in models:
        match MODELS[spec.name].scope:
            case Scope.SENSITIVE:
                for column in sensitive_of(spec, sensitive):
                    others = [name for name in sensitive if name != column]
                    yield Demand(spec, column, (*quasi, *(others if is_strict(spec) else ())))
            case Scope.LINKS:
                y = texts(spec, "y")
                x = texts(spec, "x") or tuple(name for name in quasi if name not in y)
                yield Demand(spec, ", ".join(y), x)
            case _:
                yield Demand(spec, "", tuple(quasi))


def model_statement(
    relation: sql.Composable,
    demand: Demand,
    *,
    trees: Mapping[str, object],
    population: sql.Composable | None = None,
) -> sql.Composed:
    """Compose the call of the check.

    relation, population: expressions of type regclass; trees: taxonomies or orders of sensitive
    columns, or for a population, labels of quasi-identifiers.
    """
    spec = demand.spec
    given: dict[str, object] = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in arguments(spec).items()
    }
    if given.get("distance") in {HIERARCHICAL, ORDERED} and demand.column in trees:
        given["tree"] = Jsonb(trees[demand.column])
    columns: list[sql.Composable] = [sql.Literal(list(demand.quasi))]
    match MODELS[spec.name].scope:
        case Scope.SENSITIVE:
            columns.append(sql.Literal(demand.column))
        case Scope.LINKS:
            columns, given["x"] = [], list(demand.quasi)
    if population is not None:
        columns.append(population)
        given["trees"] = Jsonb(trees)
    named = [
        sql.SQL("{} => {}").format(sql.Identifier(name), sql.Literal(value))
        for name, value in given.items()
    ]
    return sql.SQL("SELECT * FROM {}({})").format(
        sql.Identifier("dbanon", check_name(spec.name)),
        sql.SQL(", ").join([relation, *columns, *named]),
    )


def judged_inline(demand: Demand, *, given: sql.Composable) -> sql.Composed:
    """Compose the check of a sensitive column in a statement; given: ``cells`` and ``classes``."""
    known, values = MODELS[demand.spec.name].parameters(), {}
    for name, value in arguments(demand.spec).items():
        literal = sql.Literal(list(value) if isinstance(value, tuple) else value)
        values[name] = sql.SQL("{}::{}").format(literal, TYPES[known[name].kind])
    return judgement(demand.spec.name, values, given=given)


class TreeDocument(TypedDict, total=False):
    """A taxonomy, an order, or both, as the functions of the database take them."""

    parent: list[int]
    leaves: dict[str, int]
    order: list[str]


def tree_document(tree: Taxonomy) -> TreeDocument:
    """Return a taxonomy as ``dbanon.tree_edges`` takes it."""
    leaves = {tree.labels[node]: node for node in tree.leaves.tolist()}
    return {"parent": tree.parent.tolist(), "leaves": leaves}


def order_document(order: Sequence[str]) -> TreeDocument:
    """Return an order of values as ``dbanon.distances`` takes it."""
    return {"order": list(order)}


def shown_trees(
    trees: Mapping[str, TreeDocument], columns: pa.Table, *, group: NDArray[np.int32]
) -> dict[str, object]:
    """Return documents of taxonomies and orders without unpublished values.

    group: of each row, -1 if suppressed. The comment is public, and a tree may have labels of
    suppressed rows only. Leaves stay without names, because distances depend on them.
    """
    return {
        name: _named_only(
            tree, set(columns.column(name).take((group >= 0).nonzero()[0]).to_pylist())
        )
        for name, tree in trees.items()
    }


def _named_only(document: TreeDocument, shown: Collection[str]) -> TreeDocument:
    known = document.copy()
    if "order" in document:
        known["order"] = [label for label in document["order"] if label in shown]
    if "leaves" in document:
        known["leaves"] = {}
        for label, node in document["leaves"].items():
            name = label if label in shown else f"({node})"
            while name != label and name in document["leaves"]:
                name = f"({name})"
            known["leaves"][name] = node
    return known
