"""The calls that prove privacy models in the database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from psycopg import sql
from psycopg.types.json import Jsonb

from dbanon.domain.models import (
    COLUMNS,
    HIERARCHICAL,
    MODEL_KINDS,
    MULTI,
    ORDERED,
    STRICT,
    X_Y_ANONYMITY,
    arguments,
)
from dbanon.domain.policy import K_ANONYMITY, L_DIVERSITY

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from dbanon.domain.policy import ModelSpec
    from dbanon.domain.taxonomy import Taxonomy


class Asked(NamedTuple):
    """A model asked of one sensitive column; quasi: what makes the classes that are judged.

    Of (X, Y)-anonymity quasi is X, and column spells Y.
    """

    spec: ModelSpec
    column: str
    quasi: tuple[str, ...]


def is_plain(spec: ModelSpec) -> bool:
    """Whether a model asks for k rows, or for l distinct values of every sensitive column."""
    return spec.name in {K_ANONYMITY, L_DIVERSITY} and len(spec.params) == 1


def asked(
    models: Iterable[ModelSpec],
    *,
    quasi: Sequence[str],
    sensitive: Sequence[str],
    plain: bool = False,
) -> Iterator[Asked]:
    """Yield what is asked of columns, l distinct values of every sensitive one if ``plain``."""
    for spec in models:
        if spec.name == X_Y_ANONYMITY:
            y = _texts(spec, "y")
            x = _texts(spec, "x") or tuple(name for name in quasi if name not in y)
            yield Asked(spec, ", ".join(y), x)
        if (is_plain(spec) and not plain) or not MODEL_KINDS[spec.name].per_sensitive:
            continue
        for column in _texts(spec, COLUMNS) or sensitive:
            others = [name for name in sensitive if name != column]
            strict = spec.params.get(MULTI) == STRICT
            yield Asked(spec, column, (*quasi, *others) if strict else tuple(quasi))


def _texts(spec: ModelSpec, parameter: str) -> tuple[str, ...]:
    chosen = spec.params.get(parameter, ())
    return chosen if isinstance(chosen, tuple) else ()


def model_statement(
    relation: sql.Composable, question: Asked, *, trees: Mapping[str, object]
) -> sql.Composed:
    """Compose the call of the check; trees: of the sensitive columns that have one, or an order."""
    if question.spec.name == X_Y_ANONYMITY:
        return sql.SQL("SELECT * FROM dbanon.check_x_y_anonymity({}, {}, {}, {})").format(
            relation,
            sql.Literal(list(question.quasi)),
            sql.Literal(list(_texts(question.spec, "y"))),
            sql.Literal(question.spec.params["k"]),
        )
    given: dict[str, object] = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in arguments(question.spec).items()
    }
    if given.get("distance") in {HIERARCHICAL, ORDERED} and question.column in trees:
        given["tree"] = Jsonb(trees[question.column])
    named = [
        sql.SQL("{} => {}").format(sql.Identifier(name), sql.Literal(value))
        for name, value in given.items()
    ]
    return sql.SQL("SELECT * FROM {}({}, {}, {}, {})").format(
        sql.Identifier("dbanon", f"check_{question.spec.name.replace('-', '_')}"),
        relation,
        sql.Literal(list(question.quasi)),
        sql.Literal(question.column),
        sql.SQL(", ").join(named),
    )


def tree_document(tree: Taxonomy) -> dict[str, Any]:
    """Return a taxonomy as ``dbanon.tree_edges`` takes it."""
    leaves = {tree.labels[node]: node for node in tree.leaves.tolist()}
    return {"parent": tree.parent.tolist(), "leaves": leaves}


def order_document(order: Sequence[str]) -> dict[str, Any]:
    """Return an order of values as ``dbanon.distances`` takes it."""
    return {"order": list(order)}


def shown_trees(
    trees: Mapping[str, dict[str, Any]], columns: pa.Table, *, group: NDArray[np.int32]
) -> dict[str, object]:
    """Return documents of taxonomies and orders without the values that no published row has.

    columns: the sensitive ones; group: of each row, -1 where it is left out. A taxonomy or an order
    may hold the values of rows that are, and everybody reads the comment. The leaves themselves
    stay: distances are measured by them, and by the ranks among the values that are shown.
    """
    return {
        name: _named_only(
            tree, set(columns.column(name).take(np.flatnonzero(group >= 0)).to_pylist())
        )
        for name, tree in trees.items()
    }


def _named_only(document: Mapping[str, Any], shown: Collection[str]) -> dict[str, Any]:
    known = dict(document)
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
