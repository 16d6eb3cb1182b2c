"""Refresh a copy by whole classes: those of leavers go, newcomers form others, the rest stays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from dbanon.actions.preparation.linked import read_linked
from dbanon.actions.preparation.prepare import cautions, read_source
from dbanon.actions.publication.sharing import of_newcomers, search_newcomers
from dbanon.actions.publication.steps import build, proved_together
from dbanon.domain.composition import RevealsMore
from dbanon.domain.errors import Unsatisfiable
from dbanon.domain.policy import K_ANONYMITY, Role, least_deadline
from dbanon.domain.release import Leavers
from dbanon.domain.text import command
from dbanon.formats.support import Mode, reasons
from dbanon.models.specs import is_plain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from dbanon.actions.preparation.linked import LinkedSource
    from dbanon.actions.preparation.prepare import Prepared, Source
    from dbanon.actions.publication.plan import PublicationPlan
    from dbanon.actions.publication.steps import Work
    from dbanon.anonymization.outcome import Outcome
    from dbanon.db.histories.members import Member
    from dbanon.db.histories.standing import Standing, Terms
    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session
    from dbanon.domain.assignment import EncodedColumn, LossReport
    from dbanon.domain.caution import Caution
    from dbanon.domain.policy import Policy
    from dbanon.domain.progress import Stages
    from dbanon.domain.release import Growth, Release
    from dbanon.domain.table import TableInfo
    from dbanon.request import Request


WAITING = 0.02  # the share of the rows that may wait for others like them


@dataclass(frozen=True, slots=True)
class Unchanged:
    """A release of which no class goes, and beside which none can come yet.

    ``warnings`` is what to think about again.
    """

    growth: Growth
    warnings: tuple[Caution, ...]


def obstacle(session: Session, plan: PublicationPlan, present: Sequence[Release]) -> str | None:
    """Return why releases can only be grouped anew, None if their classes can stay as they are."""
    from dbanon.db.histories import joint

    together = len(plan.members) > 1
    for member, release in zip(plan.members, present, strict=True):
        policy, info = member.policy, member.loaded.info
        # Each row of the first table of a dataset is a person.
        of_rows = together and member is plan.members[0]
        asked = plan.request.asked(replace(policy, subject=None) if of_rows else policy, info)
        reason = next(reasons(Mode.REFRESH, asked), None)
        reason = reason or changed(session, info, release, policy=policy, versions=member.versions)
        if reason is not None:
            return f"of {release.relation}, {reason}" if together else reason
    if together and not joint.is_linked(session, {one.table: one.relation for one in present}):
        return "its tables do not remember their persons alike"
    return None


def changed(
    session: Session,
    info: TableInfo,
    present: Release,
    *,
    policy: Policy,
    versions: Mapping[str, int],
) -> str | None:
    """Return what is not as it was when a release was published, of all that its classes need."""
    from dbanon.db.histories import memory
    from dbanon.db.releases import copies

    if policy != replace(present.policy, erase_within=policy.erase_within):
        return "the policy is another one by now"
    if versions != present.taxonomies:
        return "a taxonomy has another version"
    if not copies.is_closed(session, present) or _is_altered(session, present, info):
        return "it is not as it was published"
    person = info.primary_key if policy.subject is None else (policy.subject,)
    if memory.persons_of(session, present) != person:
        return "who is in it is not remembered"
    return None


def _is_altered(session: Session, present: Release, source: TableInfo) -> bool:
    """Whether readers see other rows than were published, or see them in another way."""
    from dbanon.db import audit, catalog
    from dbanon.db.releases import immutability

    published = catalog.describe_source(session, present.relation)
    if any(audit.view_problems(session, published, release=present, source=source)):
        return True
    return immutability.content(session, published) != present.content


def grow(
    session: Session,
    plan: PublicationPlan,
    stages: Stages,
    *,
    present: Release,
    leavers: Leavers = Leavers.DEFER,
) -> Work | Unchanged:
    """Build the next release of a relation from the one that it serves; there is no obstacle.

    Raises CheckFailed when comparing would reveal more than before.
    """
    from dbanon.db.metadata import ledger

    (member,) = plan.members
    policy, owned = member.policy, member.policy.subject is not None
    source = read_source(session, member, stages, kind=plan.request.relation_kind, linked=owned)
    warnings = cautions(session, member, source.rows.columns, strict=plan.gate.strict)
    released = ledger.policies_by_release(session, present.table, known=[present.policy])
    asked = of_newcomers(present.policy, released.values())
    terms = _terms(policy, asked, defer=leavers is Leavers.DEFER)
    part = _Growing(session, plan, stages, present, source=source, warnings=warnings)
    try:
        with session.pg.transaction():
            return part.built(asked, terms)
    except RevealsMore:
        # Whole classes that go, and persons whom no release shows, divide no cell of any.
        with session.pg.transaction():
            return part.built(asked, replace(terms, required=None), is_cautious=True)


@dataclass(frozen=True, eq=False, slots=True)
class _Growing:
    """A refresh whose source is read, so that it can be tried on several terms."""

    session: Session
    plan: PublicationPlan
    stages: Stages
    present: Release
    source: Source
    warnings: tuple[Caution, ...]

    def built(self, asked: Policy, terms: Terms, *, is_cautious: bool = False) -> Work | Unchanged:
        """Build the next release on some terms; raises RevealsMore.

        is_cautious: leave out those whom only other relations show.
        """
        source, present, (member,) = self.source, self.present, self.plan.members
        with self.stages("compare"):
            found = _stand(self.session, source, present, member.info, terms=terms)
        if is_cautious:
            found = replace(found, elsewhere=None)
        group = partial(_search, asked=asked, seed=self.plan.request.seed, stages=self.stages)
        born, outcome = group(source, found, present)
        growth = _growth(found, outcome, present)
        if growth.is_same:
            return Unchanged(growth, self.warnings)
        loss = loss_of(present, outcome.loss, growth, source)
        prepared = born.prepared(member, replace(outcome, loss=loss), self.warnings, several=False)
        prepared = replace(prepared, outcome=replace(outcome, loss=loss), trees={})
        make = partial(build, self.session, self.plan, prepared, self.stages)
        work = make(withdrawn=found.withdrawn)
        if member.policy.subject is not None:
            (work,) = proved_together(self.session, [work])
        return replace(work, prepared=counted(work), growth=growth)


def _stand(
    session: Session, source: Source, present: Release, info: TableInfo, *, terms: Terms
) -> Standing:
    """Return how the source stands to what is served."""
    from dbanon.db.histories import standing

    policy = present.policy
    served = served_as(present, info, source.encoded.quasi)
    persons = None if policy.subject is None else owners_of(source, policy)
    return standing.stand(session, served, source.rows, terms=terms, persons=persons)


def owners_of(source: Source, policy: Policy) -> pa.Table:
    """Return the person of each row, as it is written there."""
    import pyarrow as pa

    assert source.owners is not None  # noqa: S101 - they are read where a policy names them
    return pa.table([source.owners.take(pa.array(source.subjects))], [policy.subject])


def _terms(policy: Policy, asked: Policy, *, defer: bool) -> Terms:
    """Return when those who left a class go, and when others of it may stay or come back.

    asked: the policy with all that any release asks, which a cell of all of them has to meet.
    """
    from dbanon.db.histories.standing import Terms

    required: dict[str, int] | None = None
    if policy.subject is None and all(is_plain(spec) for spec in asked.models):
        required = {rule.column: asked.l for rule in policy.with_role(Role.SENSITIVE)}
    leavers = policy.k if defer else 1
    return Terms(leavers, policy.k, asked.k, required, patient=defer, deadline=policy.deadline)


def served_as(present: Release, info: TableInfo, quasi: Sequence[EncodedColumn]) -> Publication:
    """Return what is served, as SQL names it."""
    from dbanon.anonymization.registry import recoding_of
    from dbanon.db.releases.publication import Publication

    return Publication(
        id=present.id,
        info=info,
        policy=present.policy,
        kind=present.kind,
        view=present.relation,
        recodings=tuple((column.name, recoding_of(column)) for column in quasi),
        former=present.data_id,
    )


def _search(
    source: Source,
    found: Standing,
    present: Release,
    *,
    asked: Policy,
    seed: int,
    stages: Stages,
) -> tuple[Source, Outcome]:
    """Group the rows of each pool as is asked; return all of them, one pool after the other.

    Of the first pool, classes wait that would be much coarser than those that are published. Those
    whom other relations show come last, in their atoms.
    """
    import numpy as np

    from dbanon.anonymization.outcome import join, wait

    grouped = partial(search_newcomers, source, policy=asked, seed=seed, stages=stages)
    found_of = [grouped(places) for places in found.pools]
    pools, outcomes = [order for order, _ in found_of], [outcome for _, outcome in found_of]
    room = WAITING * source.encoded.n_rows
    loss = of_published(present.loss, present.loss.asked)
    newcomers = source.encoded.take(pools[0])
    outcomes[0] = wait(newcomers, asked, outcomes[0], loss=loss, room=room)
    if found.elsewhere is not None and len(found.elsewhere[0]) and source.population is None:
        pools.append(found.elsewhere[0])
        outcomes.append(_by_atoms(source, *found.elsewhere, present.policy, stages))
    return source.take(np.concatenate(pools)), join(outcomes)


def _by_atoms(
    source: Source,
    places: NDArray[np.int64],
    atoms: NDArray[np.int32],
    policy: Policy,
    stages: Stages,
) -> Outcome:
    """Make classes of whole atoms, each of which was shown as one by other relations."""
    from dbanon.anonymization.outcome import nobody
    from dbanon.anonymization.problem import Problem, solve

    encoded = source.encoded.take(places)
    try:
        return solve(Problem(encoded, policy, atoms=atoms), seed=0, stages=stages)
    except Unsatisfiable:  # all of them together are too few, or too much alike
        return nobody(encoded)


def _growth(found: Standing, outcome: Outcome, present: Release) -> Growth:
    """Count what stays, comes and goes; raises Unsatisfiable when nobody would be left to prove."""
    import numpy as np

    shown = outcome.assignment.group >= 0
    fresh, known = np.split(shown, [len(found.pools[0])])
    moved, late = np.split(known, [sum(map(len, found.pools[1:]))])
    growth = replace(
        found.growth,
        births=int(fresh.sum() + late.sum()),
        waiting=len(fresh) - int(fresh.sum()),
        withheld=found.growth.withheld - int(known.sum()),
        moved=int(moved.sum()),
    )
    if not growth.shown:
        raise Unsatisfiable(
            f"{present.relation} would show nobody: too few of its classes stay",
            hint=command("dbanon refresh", present.table, options="--new-series"),
        )
    return growth


def loss_of(present: Release, of_born: LossReport, growth: Growth, source: Source) -> LossReport:
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
        kept = of_published(before, before.columns[name])
        columns[name] = whole(kept, of_published(of_born, of_born.columns[name]))
    weighted = None
    if before.weighted_ncp is not None:
        kept = of_published(before, before.weighted_ncp)
        weighted = whole(kept, of_published(of_born, of_born.asked))
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


def of_published(loss: LossReport, mean: float) -> float:
    """Return the mean of what is published, of a mean in which each other row counts 1."""
    published = loss.n_rows - loss.n_suppressed
    return (mean * loss.n_rows - loss.n_suppressed) / published if published else 0.0


def counted(work: Work) -> Prepared:
    """Return what was prepared with the classes of the whole copy, as the database counted them."""
    assert work.report is not None  # noqa: S101 - it was proved
    of_k = next(r for r in work.report.results if (r.model, r.column) == (K_ANONYMITY, None))
    outcome = work.prepared.outcome
    loss = replace(outcome.loss, n_classes=of_k.classes, smallest_class=int(of_k.achieved or 0))
    return replace(work.prepared, outcome=replace(outcome, loss=loss))


@dataclass(frozen=True, eq=False, slots=True)
class _Stay:
    """What stays of each table: of the persons as a whole, of the others by theirs."""

    persons: Standing
    others: Sequence[Member]

    @property
    def withdrawn(self) -> list[tuple[int, ...]]:
        """The classes that go, of each table."""
        return [self.persons.withdrawn, *(one.withdrawn for one in self.others)]


def grow_together(
    session: Session,
    plan: PublicationPlan,
    stages: Stages,
    *,
    present: Sequence[Release],
    leavers: Leavers,
) -> list[Work] | list[Unchanged]:
    """Build the next release of each table from those that are served; there is no obstacle.

    Raises CheckFailed when comparing would reveal more than before, Unsatisfiable when a table
    would show nobody.
    """
    from dbanon.db.histories import members, memory

    read = read_linked(session, plan.members, stages, strict=plan.gate.strict)
    served = _served(read, present)
    with stages("compare"):
        stay = _stand_together(session, read, served, present, leavers=leavers)
    fresh = stay.persons.pools[0]
    pool, outcomes = _born(session, read, fresh, plan.request, present=present, stages=stages)
    growths = _growths(read, stay, pool, outcomes, present)
    if all(growth.is_same for growth in growths):
        return [Unchanged(*found) for found in zip(growths, read.warnings, strict=True)]
    key = memory.key_of(session, present[0].table, present[0].relation)
    works = []
    for part, prepared in enumerate(pool.prepared(outcomes)):
        source, growth = read.sources[part], growths[part]
        loss = loss_of(present[part], outcomes[part].loss, growth, source)
        loss = replace(loss, n_of_nobody=source.n_of_nobody)
        ready = replace(prepared, outcome=replace(outcomes[part], loss=loss), trees={})
        make = partial(build, session, plan, ready, stages, part=part, key=key)
        with members.departing(session, served[part], part):
            work = make(withdrawn=stay.withdrawn[part])
        works.append(replace(work, prepared=counted(work), growth=growth))
    return works


def _stand_together(
    session: Session,
    read: LinkedSource,
    served: Sequence[Publication],
    present: Sequence[Release],
    *,
    leavers: Leavers,
) -> _Stay:
    """Return how the persons stand to what is served, and how the rows of the others do by that."""
    from dbanon.db.histories import members, standing

    k, patient = present[0].policy.k, leavers is Leavers.DEFER
    deadline = least_deadline(one.policy for one in read.members)
    terms = standing.Terms(k if patient else 1, k, k, None, patient=patient, deadline=deadline)
    persons = standing.stand(session, served[0], read.sources[0].rows, terms=terms)
    members.hand_over(session)
    others = []
    for part, one in enumerate(served[1:], 1):
        source = read.sources[part]
        owners = owners_of(source, one.policy)
        others.append(members.stand(session, one, source.rows, owners, part=part))
    return _Stay(persons, others)


def _served(read: LinkedSource, present: Sequence[Release]) -> list[Publication]:
    shared = read.sources[0].encoded.quasi
    found = [served_as(present[0], read.members[0].info, shared)]
    for member, source, release in zip(
        read.members[1:], read.sources[1:], present[1:], strict=True
    ):
        found.append(served_as(release, member.info, (*shared, *source.encoded.quasi)))
    return found


def _born(
    session: Session,
    read: LinkedSource,
    fresh: NDArray[np.int64],
    request: Request,
    *,
    present: Sequence[Release],
    stages: Stages,
) -> tuple[LinkedSource, list[Outcome]]:
    """Group those who were never published, as many together as any release ever promised.

    Classes wait that would be much coarser than those that are published.
    """
    from dbanon.anonymization.linked import beside, solve_linked, wait_linked
    from dbanon.anonymization.outcome import nobody
    from dbanon.anonymization.problem import Problem
    from dbanon.db.metadata import ledger

    released = [
        policy
        for one in present
        for policy in ledger.policies_by_release(session, one.table, known=[one.policy]).values()
    ]
    pool = read.take(fresh)
    persons = Problem(pool.sources[0].encoded, of_newcomers(present[0].policy, released))
    tables = [replace(t, policy=of_newcomers(t.policy, released)) for t in pool.tables]
    joined = [beside(table, persons.encoded) for table in tables]
    none = [nobody(encoded) for encoded in (persons.encoded, *joined)]
    if not len(fresh):
        return pool, none
    try:
        outcomes = solve_linked(persons, tables, seed=request.seed, stages=stages)
    except Unsatisfiable:  # they are too few, or too much alike
        return pool, none
    room = WAITING * read.sources[0].encoded.n_rows
    loss = of_published(present[0].loss, present[0].loss.asked)
    return pool, wait_linked(persons, tables, outcomes, loss=loss, room=room)


def _growths(
    read: LinkedSource,
    stay: _Stay,
    pool: LinkedSource,
    outcomes: Sequence[Outcome],
    present: Sequence[Release],
) -> list[Growth]:
    """Count what stays, comes and goes of each table; raises Unsatisfiable for an empty one."""
    found = []
    for part, outcome in enumerate(outcomes):
        births = int((outcome.assignment.group >= 0).sum())
        fresh = pool.sources[part].encoded.n_rows
        if part == 0:
            growth = stay.persons.growth
        else:
            member = stay.others[part - 1]
            later = member.growth.later + member.of_nobody - fresh
            rest = read.sources[part].encoded.n_rows - member.growth.kept - fresh - later
            growth = replace(member.growth, later=later, withheld=rest)
        growth = replace(growth, births=births, waiting=fresh - births)
        if not growth.shown:
            raise Unsatisfiable(
                f"{present[part].relation} would show nobody: too few of its classes stay",
                hint=command("dbanon refresh", present[part].table, options="--new-series"),
            )
        found.append(growth)
    return found
