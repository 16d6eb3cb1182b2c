"""Refresh a copy by whole classes: those of leavers go, newcomers form others, the rest stays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from dbanon.actions.preparation.prepare import Prepared, in_force, read_source, search
from dbanon.actions.publication.sharing import of_newcomers
from dbanon.actions.publication.steps import build, replaced
from dbanon.domain.errors import Unsatisfiable
from dbanon.domain.policy import BOUNDS, K_ANONYMITY, Role
from dbanon.domain.release import Leavers, ReleaseKind
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
    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session
    from dbanon.domain.assignment import LossReport
    from dbanon.domain.caution import Caution
    from dbanon.domain.checks import CheckReport
    from dbanon.domain.composition import Gate
    from dbanon.domain.policy import Policy
    from dbanon.domain.progress import Stages
    from dbanon.domain.release import Growth, Release
    from dbanon.domain.table import TableInfo


_WAITING = 0.02  # the share of the rows that may wait for others like them


@dataclass(frozen=True, slots=True)
class Unchanged:
    """A release of which no class goes, and beside which none can come yet.

    ``warnings`` is what to think about again.
    """

    growth: Growth
    warnings: tuple[Caution, ...]


def obstacle(session: Session, loaded: Loaded, request: Request, present: Release) -> str | None:
    """Return why a release can only be grouped anew, None if its classes can stay as they are."""
    from dbanon.db.histories import memory
    from dbanon.db.releases import copies

    policy = in_force(loaded, request)
    if request.kind is ReleaseKind.VIEW or request.dataset:
        return "it is live, or one of several tables"
    if policy != replace(present.policy, erase_within=policy.erase_within):
        return "the policy is another one by now"
    if loaded.versions != present.taxonomies:
        return "a taxonomy has another version"
    if not copies.is_closed(session, present) or _is_altered(session, present, loaded.info):
        return "it is not as it was published"
    key = loaded.info.primary_key
    if policy.subject is None and memory.persons_of(session, present) != key:
        return "who is in it is not remembered"
    return _of_policy(policy, request)


def _is_altered(session: Session, present: Release, source: TableInfo) -> bool:
    """Whether readers see other rows than were published, or see them in another way."""
    from dbanon.db import audit, catalog
    from dbanon.db.releases import immutability

    published = catalog.describe_source(session, present.relation)
    if any(audit.view_problems(session, published, release=present, source=source)):
        return True
    return immutability.content(session, published) != present.content


def _of_policy(policy: Policy, request: Request) -> str | None:
    if policy.subject is not None:
        return "its policy names a subject, whose rows are published together"
    if policy.labels:
        return "its labels are those of all classes"
    if not request.forgets:
        return "its assignment is kept, which is that of all rows"
    bounds = [rule.column for rule in policy.with_role(Role.QUASI) if rule.recoding == BOUNDS]
    if bounds:
        return f"{', '.join(bounds)} is published as bounds"
    for spec in policy.models:
        model = MODELS[spec.name]
        if model.of_whole or model.scope in {Scope.POPULATION, Scope.LINKS}:
            return f"{spec.name} compares classes with what lies outside of them"
    return None


def grow(
    session: Session,
    loaded: Loaded,
    request: Request,
    stages: Stages,
    *,
    present: Release,
    leavers: Leavers = Leavers.DEFER,
    gate: Gate,
) -> Built | Unchanged:
    """Build the next release of a relation from the one that it serves; there is no obstacle.

    Raises CheckFailed when comparing would reveal more than before.
    """
    from dbanon.db.histories import standing
    from dbanon.db.metadata import ledger

    policy, info = in_force(loaded, request), loaded.info
    previous = replaced(session, info, request)
    source, warnings = _read(session, loaded, request, stages, strict=gate.strict)
    with stages("compare"):
        terms = _terms(policy, defer=leavers is Leavers.DEFER)
        served = _served(present, info, source)
        found = standing.stand(session, served, source.rows, terms=terms)
    released = ledger.policies_by_release(session, present.table, known=[present.policy])
    asked = of_newcomers(present.policy, released.values())
    group = partial(_search, asked=asked, seed=request.seed, stages=stages)
    born, outcome = group(source, found.pools, present)
    growth = _growth(found, outcome, present)
    if growth.is_same:
        return Unchanged(growth, warnings)
    prepared = Prepared(
        info=info,
        policy=policy,
        taxonomies=source.taxonomies,
        source=born.rows,
        outcome=replace(outcome, loss=_loss(present, outcome.loss, growth, source)),
        trees={},
        warnings=warnings,
    )
    make = partial(build, previous=previous, gate=gate, withdrawn=found.withdrawn)
    built = make(session, prepared, request, stages)
    return replace(built, prepared=_counted(prepared, built.report), growth=growth)


def _read(
    session: Session, loaded: Loaded, request: Request, stages: Stages, *, strict: bool
) -> tuple[Source, tuple[Caution, ...]]:
    """Read the source, and what to warn of."""
    from dbanon.actions.preparation.cautions import of_rows, require_none
    from dbanon.actions.preparation.loading import notes

    policy = in_force(loaded, request)
    source = read_source(session, loaded, policy, stages, kind=request.kind)
    warnings = of_rows(session, policy, loaded.info, source.rows.columns)
    require_none(warnings if strict else [])
    return source, (*warnings, *notes(loaded))


def _terms(policy: Policy, *, defer: bool) -> Terms:
    """Return when those who left a class go, and when others of it may stay or come back."""
    from dbanon.db.histories.standing import Terms

    required: dict[str, int] | None = None
    if all(is_plain(spec) for spec in policy.models):
        required = {rule.column: policy.l for rule in policy.with_role(Role.SENSITIVE)}
    leavers = policy.k if defer else 1
    return Terms(leavers, policy.k, required, patient=defer, deadline=policy.deadline)


def _served(present: Release, info: TableInfo, source: Source) -> Publication:
    """Return what is served, as SQL names it."""
    from dbanon.anonymization.pipeline import recoding_of
    from dbanon.db.releases.publication import Publication

    return Publication(
        id=present.id,
        info=info,
        policy=present.policy,
        kind=present.kind,
        view=present.relation,
        recodings=tuple((column.name, recoding_of(column)) for column in source.encoded.quasi),
        former=present.data_id,
    )


def _search(
    source: Source,
    pools: Sequence[NDArray[np.int64]],
    present: Release,
    *,
    asked: Policy,
    seed: int,
    stages: Stages,
) -> tuple[Source, Outcome]:
    """Group the rows of each pool as is asked; return all of them, one pool after the other.

    Of the first pool, classes wait that would be much coarser than those that are published.
    """
    import numpy as np

    from dbanon.anonymization.refreshing import join, nobody, wait

    outcomes = []
    for places in pools:
        part = source.take(places)
        try:
            outcomes.append(search(part, asked, seed=seed, stages=stages))
        except Unsatisfiable:  # they are too few, or too much alike
            outcomes.append(nobody(part.encoded))
    room = _WAITING * source.encoded.n_rows
    loss = _of_published(present.loss, present.loss.asked)
    newcomers = source.encoded.take(pools[0])
    outcomes[0] = wait(newcomers, outcomes[0], loss=loss, room=room)
    return source.take(np.concatenate(pools)), join(outcomes)


def _growth(found: Standing, outcome: Outcome, present: Release) -> Growth:
    """Count what stays, comes and goes; raises Unsatisfiable when nobody would be left to prove."""
    shown = outcome.assignment.group >= 0
    fresh = shown[: len(found.pools[0])]
    moved = int(shown[len(fresh) :].sum())
    growth = replace(
        found.growth,
        births=int(fresh.sum()),
        waiting=len(fresh) - int(fresh.sum()),
        withheld=found.growth.withheld - moved,
        moved=moved,
    )
    if not growth.shown:
        raise Unsatisfiable(
            f"{present.relation} would show nobody: too few of its classes stay",
            hint=command("dbanon refresh", present.table, options="--new-series"),
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
    of_k = next(r for r in report.results if (r.model, r.column) == (K_ANONYMITY, None))
    loss = replace(
        prepared.outcome.loss, n_classes=of_k.classes, smallest_class=int(of_k.achieved or 0)
    )
    return replace(prepared, outcome=replace(prepared.outcome, loss=loss))
