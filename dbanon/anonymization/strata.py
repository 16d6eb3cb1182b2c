"""Grouping rows apart whose kept columns differ."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.adjusting.feasible import rows_in_reach
from dbanon.domain.assignment import Assignment
from dbanon.domain.errors import PolicyError, Unsatisfiable
from dbanon.domain.table import quote_identifier
from dbanon.models.base import Scope
from dbanon.models.registry import MODELS
from dbanon.models.specs import title

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import EncodedColumn, EncodedTable
    from dbanon.domain.policy import Policy

    Check = Callable[[EncodedTable, Policy], Requirement]
    Group = Callable[[EncodedTable, Policy], Assignment]


def kept_columns(table: EncodedTable) -> tuple[EncodedColumn, ...]:
    """Return the quasi-identifiers that are published as they are."""
    return tuple(column for column in table.quasi if column.rule.keep)


def require_apart(table: EncodedTable, policy: Policy) -> None:
    """Raise PolicyError for a model by which rows cannot be grouped apart.

    It compares each class with all rows, or counts others that it may stand for.
    """
    if not kept_columns(table):
        return
    for spec in policy.models:
        model = MODELS.get(spec.name)
        if model is not None and (model.of_whole or model.scope is Scope.POPULATION):
            name = quote_identifier(kept_columns(table)[0].name)
            msg = f"{title(spec)} looks beyond a class, and the rows of each value of {name} are"
            raise PolicyError(f"{msg} grouped apart", hint="leave keep or the model out")


def group_apart(table: EncodedTable, policy: Policy, *, check: Check, group: Group) -> Assignment:
    """Group the rows of each combination of kept values apart, within the policy's budget.

    check: returns what some rows must meet, or raises Unsatisfiable; group: groups rows that can
    meet it, under a policy whose budget is theirs. Rows that cannot are left out together; the
    others share what is left of the budget. Raises Unsatisfiable where it does not suffice.
    """
    possible, lost = [], 0
    whole = check(table, policy)
    for rows in strata(table):
        if _is_possible(table.take(rows), policy, check):
            possible.append(rows)
        else:
            lost += len(rows)
    left = whole.budget(table.n_rows) - lost
    if left < 0 or not possible:
        raise _too_few(table, lost)
    allowed = replace(policy, max_suppressed=left / (table.n_rows - lost))
    found = np.full(table.n_rows, -1, np.int32)
    n_groups = 0
    for rows in possible:
        assignment = group(table.take(rows), allowed)
        own = assignment.group
        found[rows] = np.where(own < 0, own, own + n_groups)
        n_groups += assignment.n_groups
    return Assignment(found, n_groups)


def require_kept(table: EncodedTable, classes: NDArray[np.int32]) -> None:
    """Raise Unsatisfiable unless all rows of each class agree in all kept columns.

    classes: (n,) the class of each row, below 0 for none.
    """
    shown = np.flatnonzero(classes >= 0)
    _, first, of_row = np.unique(classes[shown], return_index=True, return_inverse=True)
    for column in kept_columns(table):
        codes = column.codes[shown]
        if (codes != codes[first][of_row]).any():
            msg = f"no classes that meet the policy agree in {quote_identifier(column.name)}"
            raise Unsatisfiable(msg, hint="leave keep out, or ask for less")


def strata(table: EncodedTable) -> Iterator[NDArray[np.int64]]:
    """Yield the rows of each combination of kept values, in the order of these."""
    codes = np.column_stack([column.codes for column in kept_columns(table)])
    of_row = np.unique(codes, axis=0, return_inverse=True)[1].ravel()
    order = np.argsort(of_row, kind="stable")
    yield from np.split(order, np.cumsum(np.bincount(of_row))[:-1])


def _is_possible(part: EncodedTable, policy: Policy, check: Check) -> bool:
    """Whether some rows as one class meet the policy, none of them left out."""
    try:
        requirement = check(part, policy)
        rows_in_reach(part, replace(requirement, max_suppressed=0.0))
    except Unsatisfiable:
        return False
    return True


def _too_few(table: EncodedTable, lost: int) -> Unsatisfiable:
    names = ", ".join(quote_identifier(column.name) for column in kept_columns(table))
    msg = f"{lost:,} of {table.n_rows:,} rows cannot keep their values of {names}"
    return Unsatisfiable(
        f"{msg}: those that share them do not meet the policy",
        hint="raise --max-suppressed, or leave keep out of the policy",
    )
