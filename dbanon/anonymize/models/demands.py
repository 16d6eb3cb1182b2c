"""What a policy asks of the sensitive columns of a table, and whether classes meet it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymize.interfaces import Demand
from dbanon.anonymize.models.closeness import NTCloseness
from dbanon.anonymize.models.tally import joint_codes, tally, whole_of
from dbanon.anonymize.registry import CLASS_MODELS
from dbanon.domain.errors import PolicyError
from dbanon.domain.models import (
    COLUMNS,
    HIERARCHICAL,
    MODEL_KINDS,
    MULTI,
    ORDERED,
    STRICT,
    arguments,
    require_valid,
    title,
)
from dbanon.domain.policy import K_ANONYMITY, L_DIVERSITY
from dbanon.domain.table import quote_identifier

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from dbanon.anonymize.models.tally import Whole
    from dbanon.domain.assignment import EncodedTable
    from dbanon.domain.policy import ModelSpec, Policy


def demands_of(table: EncodedTable, policy: Policy) -> tuple[Demand, ...]:
    """Return what is asked beyond k rows and l distinct values of all sensitive columns.

    Raises PolicyError for a model that does not fit the sensitive columns.
    """
    asked = all_demands(table, policy)
    return tuple(demand for demand in asked if not _is_plain(demand.spec))


def _is_plain(spec: ModelSpec) -> bool:
    return spec.name in {K_ANONYMITY, L_DIVERSITY} and len(spec.params) == 1


def all_demands(table: EncodedTable, policy: Policy) -> tuple[Demand, ...]:
    """Return everything that a class meets by its own values, k rows and l values included."""
    return tuple(demand for spec in policy.models for demand in _demands(table, spec))


def _demands(table: EncodedTable, spec: ModelSpec) -> Iterator[Demand]:
    require_valid(spec)
    if spec.name not in CLASS_MODELS:
        return
    model = CLASS_MODELS[spec.name](**arguments(spec))
    if not MODEL_KINDS[spec.name].per_sensitive:
        yield Demand(spec, model, None)
        return
    chosen = spec.params.get(COLUMNS, ())
    wanted = chosen if isinstance(chosen, tuple) and chosen else table.sensitive_names
    for name in wanted:
        if name not in table.sensitive_names:
            msg = f"{spec.name}: {quote_identifier(name)} is no sensitive column"
            raise PolicyError(msg, hint="give the column the role sensitive")
        column = table.sensitive_names.index(name)
        _require_fit(table, spec, column)
        others = tuple(i for i in range(len(table.sensitive_names)) if i != column)
        strict = spec.params.get(MULTI) == STRICT
        yield Demand(spec, model, column, others if strict else ())


def _require_fit(table: EncodedTable, spec: ModelSpec, column: int) -> None:
    domain, name = table.domains[column], quote_identifier(table.sensitive_names[column])
    if arguments(spec).get("distance") == HIERARCHICAL and domain.tree is None:
        msg = f"{title(spec)} needs a taxonomy of sensitive column {name}"
        raise PolicyError(msg, hint="give the column a taxonomy, or choose another distance")
    if arguments(spec).get("distance") == ORDERED and not domain.has_order:
        msg = f"{title(spec)} needs an order of sensitive column {name}, and nothing says which"
        raise PolicyError(msg, hint='list its values: order = ["low", "medium", "high"]')
    odd = [domain.labels[code] for code in np.flatnonzero(np.isnan(domain.numbers[:-1]))]
    if spec.name == "k-e-anonymity" and set(odd) - {"NaN"}:
        msg = f"{title(spec)} needs numbers, and sensitive column {name} holds others"
        raise PolicyError(msg, hint='name the columns it is about: columns = ["salary"]')


def achieved(
    table: EncodedTable,
    demand: Demand,
    rows: NDArray[np.int64],
    classes: NDArray[np.int32],
    *,
    whole: Whole,
) -> NDArray[np.float64]:
    """Return what each class achieves, the worst of its parts where values are judged among others.

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
    combine = np.fmin if demand.model.bound == "at least" else np.fmax
    combine.at(worst, parts[:, 0], found)
    return worst


def _parts(
    table: EncodedTable, demand: Demand, rows: NDArray[np.int64], classes: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the parts, (p, 1 + others) class and values, and the part of each row."""
    keys = np.column_stack([classes, table.sensitive[rows][:, list(demand.among)]])
    parts, part = np.unique(keys, axis=0, return_inverse=True)
    return parts, part.ravel().astype(np.int32)


def _refined(whole: Whole, parts: NDArray[np.int32]) -> Whole:
    """Return the sets around each part: those around its class, then by one more value a set."""
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
    """Return for each demand the relation of these rows that classes are compared with."""
    found = []
    for demand in demands:
        column = demand.column
        values = np.zeros(len(rows), np.int32) if column is None else table.sensitive[rows, column]
        whole = whole_of(values, table.domains[column or 0] if table.domains else None)
        near = coarser if isinstance(demand.model, NTCloseness) else ()
        found.append(whole._replace(coarser=near))
    return found
