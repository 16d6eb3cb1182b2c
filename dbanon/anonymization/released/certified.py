"""What the classes that readers would see achieve, before the database has counted them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.domain.checks import CheckResult, Verdict
from dbanon.models.base import Bound, ClassModel, Scope
from dbanon.models.demands import achieved, all_demands, wholes
from dbanon.models.specs import model_of

if TYPE_CHECKING:
    from dbanon.anonymization.released.cells import Released
    from dbanon.domain.policy import ModelSpec, Policy


def certified(
    released: Released, policy: Policy, *, several: bool = False
) -> tuple[CheckResult, ...]:
    """Return what the worst class achieves of each model that a search has met.

    several: whether some person has several rows. Of these, of sets of classes and of populations
    the database alone says how much is achieved; it is None here.
    """
    table, classes = released.table, released.classes
    if classes is None:
        return ()
    rows = np.flatnonzero(classes >= 0)
    demands = all_demands(table, policy)
    answers = []
    for demand, whole in zip(demands, wholes(table, demands, rows), strict=True):
        column = None if demand.column is None else table.sensitive_names[demand.column]
        worst = None
        if not (several or demand.model.is_around):
            levels = achieved(table, demand, rows, classes[rows], whole=whole)
            is_least = demand.model.bound is Bound.AT_LEAST
            worst = float(levels.min() if is_least else levels.max())
        answers.append((demand.spec, column, worst))
    answers += [(spec, None, None) for spec in policy.models if not _of_classes(spec)]
    return tuple(_result(released, *answer) for answer in answers)


def _of_classes(spec: ModelSpec) -> bool:
    """Whether a model is one of those that a demand is made of."""
    model = model_of(spec)
    return isinstance(model, ClassModel) and model.scope in {Scope.CLASSES, Scope.SENSITIVE}


def _result(
    released: Released, spec: ModelSpec, column: str | None, worst: float | None
) -> CheckResult:
    return CheckResult(
        model=spec.name,
        column=column,
        required=model_of(spec).required,
        achieved=worst,
        classes=released.n_classes,
        failing_classes=0,
        n_rows=int(released.size.sum()),
        verdict=Verdict.PASSED,
    )
