"""What the searches of minimal nodes share: when to refuse, and which node to take."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.algorithms.lattice.nodes import condition, lattice
from dbanon.domain.errors import Unsatisfiable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from dbanon.anonymization.algorithms.lattice.nodes import Condition, Lattice, Node
    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import Assignment, EncodedTable
    from dbanon.kernels.arrays import Bools

MAX_NODES = 50_000
MAX_COUNTED = 10**9  # nodes times distinct rows


def search(
    table: EncodedTable,
    requirement: Requirement,
    *,
    t: float,
    nodes: Callable[[Lattice, Condition], Iterable[Node]],
    algorithm: str,
) -> Assignment:
    """Return the classes of the node that costs least; ties: lowest node in lexical order.

    nodes: finds those to choose from. Raises Unsatisfiable when the lattice has too many nodes to
    look at them one by one.
    """
    wanted, found = condition(table, requirement, t=t), lattice(table)
    n_rows = found.base.n_classes
    limit = min(MAX_NODES, MAX_COUNTED // n_rows)
    if found.n_nodes > limit:
        msg = (
            f"{algorithm} takes at most {limit:,} nodes for {n_rows:,} distinct rows;"
            f" the lattice has {found.n_nodes:,}"
        )
        raise Unsatisfiable(msg, hint="--algorithm optimal-lattice, or --algorithm auto")
    best = np.inf
    for node in sorted(nodes(found, wanted)):
        classes = found.classes(node, columns=found.columns, condition=wanted)
        cost = found.cost(classes)
        if cost < best:
            best, chosen = cost, classes
    return found.assignment(chosen, final=wanted.t < 1)


def above(nodes: Sequence[Node], others: Sequence[Node]) -> Bools:
    """Return for each node whether it is one of the others or above one of them."""
    marked = np.zeros(len(nodes), np.bool_)
    levels = np.array(nodes)
    for other in others:
        marked |= (levels >= other).all(axis=1)
    return marked
