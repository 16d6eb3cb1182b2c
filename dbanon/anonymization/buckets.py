"""From an encoded table to the buckets of anatomy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.algorithms.anatomy import deal
from dbanon.anonymization.pipeline import Outcome
from dbanon.domain.assignment import GroupValues, LossReport, ValueColumn
from dbanon.domain.errors import PolicyError
from dbanon.domain.policy import BUCKET
from dbanon.domain.table import ColumnKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.domain.assignment import EncodedTable
    from dbanon.domain.progress import Stages


def run_in_buckets(
    encoded: EncodedTable,
    subjects: NDArray[np.int32] | None,
    *,
    l: int,
    draws: NDArray[np.uint64],
    stages: Stages,
) -> Outcome:
    """Deal the persons of a table with one sensitive column into buckets of l values at least.

    subjects: (n,) the person of each row, None where each row is one; draws: as ``deal`` takes
    them. A bucket publishes its number and nothing else, and no quasi-identifier loses anything.

    Raises PolicyError when a person has several rows, Unsatisfiable as ``deal`` does.
    """
    if subjects is not None and np.bincount(subjects).max(initial=0) > 1:
        msg = (
            "some person has several rows, and anatomy publishes the quasi-identifiers of each as"
            " they are: whoever knows them finds all buckets of the person, and what these share"
        )
        raise PolicyError(msg, hint="publish a view with one row a person, or leave anatomy out")
    with stages("cluster"):
        assignment = deal(encoded.sensitive[:, 0], draws, l=l)
    n_groups = assignment.n_groups
    number = ValueColumn(
        name=BUCKET,
        recoding=BUCKET,
        kind=ColumnKind.INTEGER,
        index=np.arange(n_groups, dtype=np.int32),
        labels=tuple(map(str, range(1, n_groups + 1))),
        loss=np.zeros(n_groups),
    )
    loss = LossReport(
        n_rows=encoded.n_rows,
        n_suppressed=0,
        n_classes=n_groups,
        smallest_class=int(np.bincount(assignment.group).min()),
        ncp=0.0,
        columns={column.name: 0.0 for column in encoded.quasi},
    )
    return Outcome(assignment, GroupValues((number,), n_groups), loss)
