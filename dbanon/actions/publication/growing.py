"""Refresh a copy by whole classes: those of leavers go, newcomers form others, the rest stays."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from dbanon.actions.preparation.prepare import Prepared, in_force, read_source, search
from dbanon.actions.publication.steps import build, replaced
from dbanon.domain.errors import ConfigError, Unsatisfiable
from dbanon.domain.policy import BOUNDS, K_ANONYMITY, Role
from dbanon.domain.release import Growth, ReleaseKind
from dbanon.domain.text import command
from dbanon.models.base import Scope
from dbanon.models.registry import MODELS
from dbanon.models.specs import is_plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from dbanon.actions.preparation.loading import Loaded
    from dbanon.actions.preparation.prepare import Source
    from dbanon.actions.preparation.request import Request
    from dbanon.actions.publication.steps import Built
    from dbanon.anonymization.pipeline import Outcome
    from dbanon.db.histories.standing import Standing, Terms
    from dbanon.db.session import Session
    from dbanon.domain.assignment import LossReport
    from dbanon.domain.checks import CheckReport
    from dbanon.domain.composition import Gate
    from dbanon.domain.policy import Policy
    from dbanon.domain.progress import Stages
    from dbanon.domain.release import Release
    from dbanon.domain.table import TableInfo


def grow(
    session: Session,
    loaded: Loaded,
    request: Request,
    stages: Stages,
    *,
    present: Release,
    defer: bool = False,
    gate: Gate,
) -> Built | Growth:
    """Build the next release of a relation from the one that it serves.

    defer: keep the rows of leavers until those of a class are a valid class themselves.

    Returns what there is to wait for when no class comes or goes. Raises ConfigError when the
    release can only be grouped anew, CheckFailed when comparing would reveal more than before.
    """
    from dbanon.actions.preparation.cautions import of_rows, require_none
    from dbanon.actions.preparation.loading import notes

    policy, info = in_force(loaded, request), loaded.info
    _require_growing(policy, request, present)
    previous = replaced(session, info, request)
    source = read_source(session, loaded, policy, stages, kind=request.kind)
    warnings = of_rows(session, policy, info, source.rows.columns)
    require_none(warnings if gate.strict else [])
    with stages("compare"):
        found = _standing(session, present, source, info, terms=_terms(policy, defer=defer))
    born, outcome = _search(source, found.pools, policy, seed=request.seed, stages=stages)
    growth = _growth(found, outcome, present)
    if not growth.births and not found.withdrawn:
        return growth
    prepared = Prepared(
        info=info,
        policy=policy,
        taxonomies=source.taxonomies,
        source=born.rows,
        outcome=replace(outcome, loss=_loss(present, outcome.loss, growth, source)),
        trees={},
        warnings=(*warnings, *notes(loaded)),
    )
    make = partial(build, previous=previous, gate=gate, withdrawn=found.withdrawn)
    built = make(session, prepared, request, stages)
    return replace(built, prepared=_counted(prepared, built.report), growth=growth)


def _terms(policy: Policy, *, defer: bool) -> Terms:
    """Return when a class goes, and when those who stay of it may come back."""
    from dbanon.db.histories.standing import Terms

    required: dict[str, int] | None = None
    if all(is_plain(spec) for spec in policy.models):
        required = {rule.column: policy.l for rule in policy.with_role(Role.SENSITIVE)}
    return Terms(policy.k if defer else 1, policy.k, required, patient=defer)


def _standing(
    session: Session, present: Release, source: Source, info: TableInfo, *, terms: Terms
) -> Standing:
    """Tell how the rows of a source stand to a release; raises ConfigError if that is not known."""
    from dbanon.db.histories import standing

    if source.taxonomies != dict(present.taxonomies):
        raise _anew(present, "a taxonomy has another version")
    found = standing.stand(session, present, source.rows, info, terms=terms)
    if found is None:
        raise _anew(present, "who is in it is not remembered")
    return found


def _require_growing(policy: Policy, request: Request, present: Release) -> None:
    """Raise ConfigError for what keeps the classes of a release from staying as they are."""
    if request.kind is ReleaseKind.VIEW or request.dataset:
        raise _anew(present, "it is live, or one of several tables")
    if policy != present.policy:
        raise _anew(present, "the policy is another one by now")
    if policy.subject is not None:
        raise _anew(present, "its policy names a subject, whose rows are published together")
    if policy.labels:
        raise _anew(present, "its labels are those of all classes")
    if not request.forgets:
        raise _anew(present, "its assignment is kept, which is that of all rows")
    bounds = [rule.column for rule in policy.with_role(Role.QUASI) if rule.recoding == BOUNDS]
    if bounds:
        raise _anew(present, f"{', '.join(bounds)} is published as bounds")
    for spec in policy.models:
        model = MODELS[spec.name]
        if model.of_whole or model.scope in {Scope.POPULATION, Scope.LINKS}:
            raise _anew(present, f"{spec.name} compares classes with what lies outside of them")


def _anew(present: Release, reason: str) -> ConfigError:
    return ConfigError(
        f"{present.relation} cannot be refreshed class by class: {reason}",
        hint=command("dbanon refresh", present.table),
    )


def _taken(source: Source, places: NDArray[np.int64]) -> Source:
    """Return some rows of a source, on the scales of the whole."""
    return replace(source, rows=source.rows.take(places), encoded=source.encoded.take(places))


def _search(
    source: Source, pools: Sequence[NDArray[np.int64]], policy: Policy, *, seed: int, stages: Stages
) -> tuple[Source, Outcome]:
    """Group the rows of each pool; return all of them, one pool after the other."""
    import numpy as np

    from dbanon.anonymization.refreshing import join, nobody

    outcomes = []
    for places in pools:
        part = _taken(source, places)
        try:
            outcomes.append(search(part, policy, seed=seed, stages=stages))
        except Unsatisfiable:  # they are too few, or too much alike
            outcomes.append(nobody(part.encoded))
    return _taken(source, np.concatenate(pools)), join(outcomes)


def _growth(found: Standing, outcome: Outcome, present: Release) -> Growth:
    """Count what stays, comes and goes; raises Unsatisfiable when nobody would be left to prove."""
    shown = outcome.assignment.group >= 0
    fresh = shown[: len(found.pools[0])]
    moved = int(shown[len(fresh) :].sum())
    growth = Growth(
        kept=found.kept,
        births=int(fresh.sum()),
        withdrawn=len(found.withdrawn),
        waiting=len(fresh) - int(fresh.sum()),
        withheld=found.withheld - moved,
        deferred=found.deferred,
        moved=moved,
    )
    if not growth.shown:
        raise Unsatisfiable(
            f"{present.relation} would show nobody: too few of its classes stay",
            hint=command("dbanon publish", present.table, options="--dry-run"),
        )
    return growth


def _loss(present: Release, of_born: LossReport, growth: Growth, source: Source) -> LossReport:
    """Return the loss of the whole copy.

    The classes that stay are taken to lose as much in the mean as all of the release before: which
    of them went is not in its report. Metrics that need every row are left out.
    """
    stays = growth.kept + growth.deferred
    total = source.encoded.n_rows + growth.deferred
    added = growth.births + growth.moved
    left_out = total - stays - added

    def whole(kept: float, born: float) -> float:
        return (stays * kept + added * born + left_out) / max(total, 1)

    before, columns = present.loss, {}
    for name in before.columns:
        kept = _of_published(before, before.columns[name])
        columns[name] = whole(kept, _of_published(of_born, of_born.columns[name]))
    weighted = None
    if before.weighted_ncp is not None:
        kept = _of_published(before, before.weighted_ncp)
        weighted = whole(kept, _of_published(of_born, of_born.asked))
    return replace(
        before,
        n_rows=total,
        n_suppressed=left_out,
        ncp=sum(columns.values()) / max(len(columns), 1),
        columns=columns,
        metrics={},
        sensitive_aware=before.sensitive_aware or of_born.sensitive_aware,
        weighted_ncp=weighted,
        n_filtered=source.n_filtered,
        n_not_drawn=source.n_not_drawn,
    )


def _of_published(loss: LossReport, mean: float) -> float:
    """Return the mean of what is published, of a mean in which each other row counts 1."""
    published = loss.n_rows - loss.n_suppressed
    return (mean * loss.n_rows - loss.n_suppressed) / published if published else 0.0


def _counted(prepared: Prepared, report: CheckReport) -> Prepared:
    """Return what was prepared with the classes of the whole copy, as the database counted them."""
    (of_k,) = (result for result in report.results if result.model == K_ANONYMITY)
    loss = replace(
        prepared.outcome.loss, n_classes=of_k.classes, smallest_class=int(of_k.achieved or 0)
    )
    return replace(prepared, outcome=replace(prepared.outcome, loss=loss))
