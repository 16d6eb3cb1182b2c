"""Merge classes until they meet the models of a population."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.adjusting.merging import merge_with_nearest
from dbanon.anonymization.encoding.population import missing_rows, presence_of, require_regions
from dbanon.anonymization.loss.metrics import publication, report
from dbanon.domain.assignment import Assignment, GroupValues
from dbanon.domain.errors import PolicyError, Unsatisfiable
from dbanon.models.anonymity.presence import PopulationModel
from dbanon.models.base import Scope
from dbanon.models.specs import model_of, of_scope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from dbanon.anonymization.encoding.population import Population
    from dbanon.anonymization.loss.metrics import Publication
    from dbanon.domain.assignment import EncodedTable
    from dbanon.domain.policy import Policy
    from dbanon.models.anonymity.presence import Presence

Publish = Callable[[Assignment], GroupValues]


def population_models(policy: Policy) -> tuple[PopulationModel, ...]:
    """Return the models of a policy that count a population."""
    models = map(model_of, of_scope(policy.models, Scope.POPULATION))
    return tuple(model for model in models if isinstance(model, PopulationModel))


def failing(
    published: Publication, models: Sequence[PopulationModel], population: Population
) -> tuple[NDArray[np.bool_], Presence]:
    """Return the classes that fail a model, and the presence of all classes."""
    presence = presence_of(published, population)
    bad = np.zeros(len(published.size), np.bool_)
    for model in models:
        bad |= model.failing(presence)
    return bad, presence


def require_possible(
    table: EncodedTable, policy: Policy, population: Population | None, *, publish: Publish
) -> None:
    """Raise PolicyError or Unsatisfiable if all rows as one class fail; no classes cover more."""
    models = population_models(policy)
    if not models:
        return
    if population is None:
        msg = f"{models[0]} counts the rows of a population, and the policy names none"
        raise PolicyError(msg, hint='population = "schema.table", or --population schema.table')
    everyone = Assignment(np.zeros(table.n_rows, np.int32), 1)
    values = publish(everyone)
    recodings = {column.name: column.recoding for column in values.columns}
    require_regions(recodings, model=str(models[0]))
    published = publication(table, everyone, values, k=policy.k)
    for model in models:
        missing = missing_rows(table, population) if model.is_part else 0
        if missing:
            msg = f"{missing:,} rows of the table have no row of their own in the population"
            raise Unsatisfiable(
                f"{msg}: {model} is about a part of it", hint="bring both up to date"
            )
        bad, presence = failing(published, [model], population)
        if bad.any():
            raise _unsatisfiable(model, presence)


def _unsatisfiable(model: PopulationModel, presence: Presence) -> Unsatisfiable:
    msg = (
        f"all rows as one class cover {int(presence.covered[0]):,} rows of the population with"
        f" {int(presence.rows[0]):,} and leave {presence.uncovered:,} uncovered:"
        f" {model} is impossible"
    )
    return Unsatisfiable(msg, hint="ask for less, or for a larger dmax and dmin = 0")


def cover(
    table: EncodedTable,
    assignment: Assignment,
    policy: Policy,
    population: Population,
    *,
    publish: Publish,
) -> Assignment:
    """Merge the classes that fail a model of the population, round by round.

    publish: returns the published values of an assignment. In each round a failing class joins the
    neighbour of least cost, preferably one that shares rows of the population. All rows as one
    class meet the models (``require_possible``); raises Unsatisfiable if suppressed rows prevent
    that. O(rounds * classes * population) at worst.
    """
    models = population_models(policy)
    while True:
        published = publication(table, assignment, publish(assignment), k=policy.k)
        bad, presence = failing(published, models, population)
        if not bad.any():
            return assignment
        if len(bad) == 1:
            raise _unsatisfiable(models[0], presence)
        classes = Assignment(published.classes, len(bad))
        assignment = merge_with_nearest(table, classes, bad, near=presence.near)


def cover_or_coarsen(
    table: EncodedTable,
    assignment: Assignment,
    policy: Policy,
    population: Population,
    *,
    publish: Publish,
    regroup: Callable[[int], Assignment],
) -> Assignment:
    """Return the cheaper of merged classes and of groups for a larger k that need no merging.

    Merged classes may overlap with all others, and delta-presence then leaves one class; levels do
    not.
    """
    merged = cover(table, assignment, policy, population, publish=publish)
    models = population_models(policy)
    if merged is assignment or not any(model.is_part for model in models):
        return merged
    k = policy.k
    while 2 * k <= table.n_rows:
        k *= 2
        try:
            coarser = regroup(k)
        except Unsatisfiable:
            return merged
        published = publication(table, coarser, publish(coarser), k=policy.k)
        if not failing(published, models, population)[0].any():
            rival = publication(table, merged, publish(merged), k=policy.k)
            cheaper = report(published, {}).asked < report(rival, {}).asked
            return coarser if cheaper else merged
    return merged
