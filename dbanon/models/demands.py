"""Requirements of a policy for the sensitive columns of a table, and their check by class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.domain.errors import PolicyError
from dbanon.domain.table import quote_identifier
from dbanon.models.anonymity.x_y_anonymity import XYAnonymity
from dbanon.models.base import (
    HIERARCHICAL,
    ORDERED,
    Bound,
    Case,
    ClassModel,
    Demand,
    OfPersons,
    Reads,
    Reason,
    Scope,
)
from dbanon.models.registry import (
    is_plain,
    is_strict,
    model_of,
    of_scope,
    require_valid,
    sensitive_of,
)
from dbanon.models.tally import Whole, joint_codes, tally, whole_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from dbanon.domain.assignment import EncodedTable, GroupValues
    from dbanon.domain.policy import ModelSpec, Policy


def demands_of(table: EncodedTable, policy: Policy) -> tuple[Demand, ...]:
    """Return the demands beyond k rows and l distinct values of all sensitive columns.

    Raises PolicyError for a model that does not fit the sensitive columns.
    """
    return tuple(demand for demand in all_demands(table, policy) if not is_plain(demand.spec))


def all_demands(table: EncodedTable, policy: Policy) -> tuple[Demand, ...]:
    """Return all demands on the values of a class, including k rows and l values."""
    return tuple(demand for spec in policy.models for demand in _demands(table, spec))


def _demands(table: EncodedTable, spec: ModelSpec) -> Iterator[Demand]:
    require_valid(spec)
    model = model_of(spec)
    if not isinstance(model, ClassModel) or model.scope is Scope.LINKS:
        return
    if model.scope is Scope.CLASSES:
        yield Demand(spec, model, None)
    for name in sensitive_of(spec, table.sensitive_names):
        if name not in table.sensitive_names:
            msg = f"{spec.name}: {quote_identifier(name)} is no sensitive column"
            raise PolicyError(msg, hint="give the column the role sensitive")
        column = table.sensitive_names.index(name)
        _require_fit(table, spec, column)
        others = tuple(i for i in range(len(table.sensitive_names)) if i != column)
        yield Demand(spec, model, column, others if is_strict(spec) else ())


def _require_fit(table: EncodedTable, spec: ModelSpec, column: int) -> None:
    domain, name = table.domains[column], quote_identifier(table.sensitive_names[column])
    model = model_of(spec)
    distance = getattr(model, "distance", None)
    if distance == HIERARCHICAL and domain.tree is None:
        msg = f"{model} needs a taxonomy of sensitive column {name}"
        raise PolicyError(msg, hint="give the column a taxonomy, or choose another distance")
    if distance == ORDERED and not domain.has_order:
        msg = f"{model} needs an order of sensitive column {name}, and nothing says which"
        raise PolicyError(msg, hint='list its values: order = ["low", "medium", "high"]')
    odd = [domain.labels[code] for code in np.flatnonzero(np.isnan(domain.numbers[:-1]))]
    if model.reads is Reads.NUMBERS and set(odd) - {"NaN"}:
        msg = f"{model} needs numbers, and sensitive column {name} holds others"
        raise PolicyError(msg, hint='name the columns it is about: columns = ["salary"]')


def linked_demands(table: EncodedTable, policy: Policy) -> tuple[Demand, ...]:
    """Return the demands for merging of models that link columns; Unsatisfiable if all fail."""
    return tuple(
        demand for spec, model in _linking(policy) for demand in model.demands(spec, table)
    )


def unlinked(
    table: EncodedTable, policy: Policy, *, group: NDArray[np.int32], values: GroupValues
) -> ModelSpec | None:
    """Return a model that links columns and that the published values fail, if any."""
    linking = _linking(policy)
    return next((spec for spec, model in linking if not model.holds(table, group, values)), None)


def _linking(policy: Policy) -> Iterator[tuple[ModelSpec, XYAnonymity]]:
    for spec in of_scope(policy.models, Scope.LINKS):
        model = model_of(spec)
        if isinstance(model, XYAnonymity):
            yield spec, model


def achieved(
    table: EncodedTable,
    demand: Demand,
    rows: NDArray[np.int64],
    classes: NDArray[np.int32],
    *,
    whole: Whole,
) -> NDArray[np.float64]:
    """Return the achievement of each class, that of its worst part if there are parts.

    rows: (m,) of the table; classes: (m,) the class of each, 0..g-1 without gaps.
    """
    if demand.column is None:
        return demand.model.achieved(tally(classes, np.zeros(len(rows), np.int32)), whole)
    values = table.sensitive[rows, demand.column]
    if demand.jointly:
        values = joint_codes(table.sensitive[rows][:, [demand.column, *demand.jointly]])
    if not demand.among:
        return demand.model.achieved(tally(classes, values), whole)
    parts, part = _parts(table, demand, rows, classes)
    found = demand.model.achieved(tally(part, values), _refined(whole, parts))
    worst = np.full(int(classes.max()) + 1, np.nan)
    combine = np.fmin if demand.model.bound is Bound.AT_LEAST else np.fmax
    combine.at(worst, parts[:, 0], found)
    return worst


def meets(
    table: EncodedTable,
    demand: Demand,
    rows: NDArray[np.int64],
    classes: NDArray[np.int32],
    *,
    whole: Whole,
) -> NDArray[np.bool_]:
    """Return a mask of the classes that meet a demand; rows, classes: as for ``achieved``."""
    return demand.model.meets(achieved(table, demand, rows, classes, whole=whole))


def rows_meet(table: EncodedTable, demand: Demand, rows: NDArray[np.int64]) -> bool:
    """Return True if these rows, as the whole relation and one class, meet a demand."""
    (whole,) = wholes(table, [demand], rows)
    return bool(meets(table, demand, rows, np.zeros(len(rows), np.int32), whole=whole).all())


def _parts(
    table: EncodedTable, demand: Demand, rows: NDArray[np.int64], classes: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the parts, (p, 1 + others) class and values, and the part of each row."""
    keys = np.column_stack([classes, table.sensitive[rows][:, list(demand.among)]])
    parts, part = np.unique(keys, axis=0, return_inverse=True)
    return parts, part.ravel().astype(np.int32)


def _refined(whole: Whole, parts: NDArray[np.int32]) -> Whole:
    """Return the sets around each part: those of its class, refined by one more value a set."""
    if not whole.coarser:
        return whole
    coarser = [joint[parts[:, 0]] for joint in whole.coarser]
    coarser += [
        np.unique(parts[:, :i], axis=0, return_inverse=True)[1].ravel()
        for i in range(2, parts.shape[1] + 1)
    ]
    return whole._replace(coarser=tuple(coarser))


def wholes(
    table: EncodedTable,
    demands: Sequence[Demand],
    rows: NDArray[np.int64],
    *,
    coarser: tuple[NDArray[np.int64], ...] = (),
) -> list[Whole]:
    """Return for each demand the relation of these rows, for comparison with classes."""
    found = []
    for demand in demands:
        column = demand.column
        values = np.zeros(len(rows), np.int32) if column is None else table.sensitive[rows, column]
        whole = whole_of(values, table.domains[column or 0] if table.domains else None)
        near = coarser if demand.model.is_around else ()
        found.append(whole._replace(coarser=near))
    return found


def explained(table: EncodedTable, demand: Demand) -> Reason:
    """Explain a demand that the rows as one class fail."""
    column = demand.column or 0
    values = table.sensitive[:, column]
    case = Case(
        quote_identifier(table.sensitive_names[column]),
        tally(np.zeros(len(values), np.int32), values),
        wholes(table, [demand], np.arange(table.n_rows))[0],
        strictly=bool(demand.among),
    )
    return demand.model.explain(case)


def persons_of(classes: NDArray[np.int32], subjects: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the number of distinct persons of each class; classes, subjects: (n,)."""
    persons: NDArray[np.int64] = tally(classes, joint_codes(subjects[:, None])).distinct()
    return persons


def achieved_by_persons(
    measure: OfPersons,
    classes: NDArray[np.int32],
    subjects: NDArray[np.int32],
    values: NDArray[np.int32],
) -> NDArray[np.float64]:
    """Return the achievement of each class by a measure of persons; all (n,).

    Models without a measure would count a person with several values several times, so that a value
    of all persons of a class could still seem rare.
    """
    rows = joint_codes(np.column_stack([classes, subjects, values]))
    first = np.unique(rows, return_index=True)[1]
    held = tally(classes[first], values[first])
    persons = persons_of(classes, subjects).astype(float)
    most = held.most(held.counts.astype(float))
    share: NDArray[np.float64] = most / persons
    if measure is OfPersons.TOP_SHARE:
        return share
    if measure is OfPersons.INVERSE_TOP_SHARE:
        return 1.0 / share
    sole = held.counts == 1
    by_value = np.zeros((len(held.size), int(values.max()) + 1), np.bool_)
    by_value[held.classes[sole], held.values[sole]] = True
    alone = by_value[classes[first], values[first]]
    owners = joint_codes(np.column_stack([classes[first], subjects[first]]))
    owned = np.bincount(owners, weights=alone)
    most_owned = np.zeros(len(held.size))
    np.maximum.at(most_owned, classes[first], owned[owners])
    left: NDArray[np.float64] = held.distinct().astype(float) - np.maximum(most_owned - 1, 0)
    return left
