"""The steps of a publication within its transaction: one list, which is run or printed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Protocol

from dbanon.actions.preparation.linked import prepare_linked
from dbanon.actions.preparation.prepare import prepare
from dbanon.actions.publication.series import (
    UNREAD,
    compare,
    compare_together,
    difference,
    require_judged,
    require_unread,
)
from dbanon.actions.publication.sharing import require_unshared, share
from dbanon.domain.checks import CheckFailed
from dbanon.domain.composition import require_safe
from dbanon.domain.errors import DatabaseError
from dbanon.domain.policy import K_ANONYMITY
from dbanon.domain.release import Release, ReleaseKind
from dbanon.domain.text import command
from dbanon.domain.wording import set_aside_in_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from uuid import UUID

    from dbanon.actions.preparation.members import Member
    from dbanon.actions.preparation.prepare import Prepared, Source
    from dbanon.actions.publication.plan import PublicationPlan
    from dbanon.actions.publication.series import Difference, Placement
    from dbanon.db.releases.publication import Publication
    from dbanon.db.rights import Statement
    from dbanon.db.session import Session
    from dbanon.domain.assignment import LossReport
    from dbanon.domain.checks import CheckReport
    from dbanon.domain.composition import Composition
    from dbanon.domain.progress import Stages
    from dbanon.domain.release import Entry, Growth, Sharing
    from dbanon.domain.table import TableInfo, TableName
    from dbanon.request import Request


@dataclass(frozen=True, eq=False, slots=True)
class Work:
    """A table of a publication between two steps.

    publication: the release as SQL names it; previous: the release that it replaces; growth:
    changes since that one, if this one is made of it; fingerprint: of all inputs of the release;
    differs: the masked values to compare; candidate: the view to prove, not readable yet; report:
    of the models; composition: combined disclosure of all releases of the table; release: the
    ledger entry; notes: for the operator.
    """

    member: Member
    place: Placement
    publication: Publication
    prepared: Prepared
    previous: Entry | None
    growth: Growth | None = None
    fingerprint: str = ""
    differs: Difference | None = None
    candidate: TableInfo | None = None
    report: CheckReport | None = None
    composition: Composition | None = None
    release: Release | None = None
    notes: tuple[str, ...] = ()


def group(
    session: Session,
    plan: PublicationPlan,
    stages: Stages,
    *,
    weigh: bool = False,
    meanwhile: Callable[[Source], AbstractContextManager[None]] | None = None,
) -> tuple[list[Prepared], Sharing | None]:
    """Group the rows in the way that fits: linked persons, blocks, earlier classes or new ones.

    weigh, meanwhile: as in ``prepare``. Returns each table, and how earlier classes were reused.
    """
    request, strict = plan.request, plan.request.strict
    if len(plan.members) > 1:
        return prepare_linked(session, plan.members, request, stages, strict=strict), None
    (member,) = plan.members
    if plan.division is not None:
        from dbanon.actions.distribution.dividing import prepare_in_blocks

        require_unshared(session, plan)
        make = partial(prepare_in_blocks, division=plan.division)
        return [make(session, member, request, stages, strict=strict)], None
    if shared := share(session, plan, stages, weigh=weigh):
        return [shared[0]], shared[1]
    made = partial(prepare, strict=strict, weigh=weigh, meanwhile=meanwhile)
    return [made(session, member, request, stages)], None


class Step(Protocol):
    """A step of a publication; name: in progress reports; purpose: in words."""

    name: ClassVar[str]
    purpose: ClassVar[str]

    def statements(
        self, session: Session, publication: Publication, request: Request, /
    ) -> Iterator[Statement]:
        """Yield its SQL, in order, as far as it is known without rows."""

    def run(self, session: Session, plan: PublicationPlan, work: Work, /) -> Work:
        """Run the step; raises DbanonError, and nothing is published."""


class Write:
    """Write the class of each row and the values of each class."""

    name: ClassVar[str] = "write"
    purpose: ClassVar[str] = "write which row is in which class, and the values of classes"

    def statements(
        self, _session: Session, publication: Publication, _request: Request
    ) -> Iterator[Statement]:
        """Yield the statements that create and fill the private tables."""
        from dbanon.db.releases import relations, release_rows

        yield from relations.build_statements(publication)
        yield from release_rows.copy_statements(publication)

    def run(self, session: Session, _plan: PublicationPlan, work: Work) -> Work:
        """Create and fill the private tables, and pin the source as it was read."""
        from dbanon.db.proofs import keys, means
        from dbanon.db.releases import relations, release_rows

        source, outcome = work.prepared.source, work.prepared.outcome
        publication = release_rows.staged(session, work.publication, source)
        session.run(relations.build_statements(publication))
        found, values = outcome.assignment, outcome.values
        release_rows.fill(session, publication, source, assignment=found, values=values)
        keys.require_unique(session, publication)
        means.require_within(session, publication)
        return replace(work, publication=publication)


class Copy:
    """Create the copy or the guards, and a view that no reader can reach yet."""

    name: ClassVar[str] = "publish"
    purpose: ClassVar[str] = "make the copy or the guards, and a view that nobody can read yet"

    def statements(
        self, _session: Session, publication: Publication, _request: Request
    ) -> Iterator[Statement]:
        """Yield the statements that create the copy or the guards, and the candidate."""
        from dbanon.db.releases import relations

        yield from relations.serve_statements(publication)
        yield from self._candidate(publication)

    def run(self, session: Session, _plan: PublicationPlan, work: Work) -> Work:
        """Create them, or refill those of the previous release."""
        from dbanon.db import catalog
        from dbanon.db.histories import memory
        from dbanon.db.releases import copies

        publication = work.publication
        shared = work.prepared.source.frozen is not None
        differs = difference(session, publication, shared=shared)
        if publication.withdrawn is None:
            publication = copies.make(session, publication, work.previous)
        else:
            publication = memory.extend(session, publication, work.previous)
        session.run(self._candidate(publication))
        candidate = catalog.describe_source(session, publication.candidate)
        return replace(work, publication=publication, differs=differs, candidate=candidate)

    def _candidate(self, publication: Publication) -> Iterator[Statement]:
        from dbanon.db.releases import relations
        from dbanon.db.releases.beside import buckets

        yield relations.view_statement(publication, publication.candidate)
        yield relations.comment_statement(publication, publication.candidate)
        yield from buckets.statements(publication)


class Prove:
    """Prove every model on the candidate view."""

    name: ClassVar[str] = "check"
    purpose: ClassVar[str] = "prove every model on exactly what readers will have"

    def statements(
        self, _session: Session, publication: Publication, _request: Request
    ) -> Iterator[Statement]:
        """Yield the proof as a comment, because a plan has no rows to prove."""
        from dbanon.db.proofs import checks

        yield checks.proof(publication.view)

    def run(self, session: Session, _plan: PublicationPlan, work: Work) -> Work:
        """Prove the candidate; raises CheckFailed."""
        assert work.candidate is not None  # noqa: S101 - the step before made it
        report = _prove(session, work.publication, work.candidate, work.prepared)
        return replace(work, report=report)


class Compare:
    """Remember the published persons, and compare with all releases of the series."""

    name: ClassVar[str] = "compare"
    purpose: ClassVar[str] = "remember the published persons and compare all releases"

    def statements(
        self, _session: Session, _publication: Publication, _request: Request
    ) -> Iterator[Statement]:
        """Yield nothing: the statements depend on the rows of all releases."""
        yield from ()

    def run(self, session: Session, plan: PublicationPlan, work: Work) -> Work:
        """Compare; raises CheckFailed if all releases together would disclose more."""
        assert work.differs is not None  # noqa: S101 - a step before found it
        publication = work.publication
        compared = partial(compare, session, publication, work.place, previous=work.previous)
        found = compared(difference=work.differs)
        require_safe([found] if plan.request.strict else [])
        if publication.kind is ReleaseKind.TABLE:
            require_judged(session, publication, dataset=plan.request.dataset)
        return replace(work, composition=found)


class Serve:
    """Enter the release into the ledger, and replace the published view."""

    name: ClassVar[str] = "record"
    purpose: ClassVar[str] = "enter the release into the ledger and let readers have it"

    def statements(
        self, session: Session, publication: Publication, request: Request
    ) -> Iterator[Statement]:
        """Yield the statements that drop the assignment, and create, comment and grant the view."""
        from dbanon.db import rights, schemas
        from dbanon.db.releases import relations
        from dbanon.db.releases.beside import buckets, labels

        yield from relations.forget_statements(publication) if request.forgets else ()
        yield from schemas.statements(session, publication.view.schema or "public")
        yield relations.view_statement(publication)
        yield relations.comment_statement(publication)
        yield from relations.wording_statements(publication)
        yield from rights.grant_statements(publication.view, request.grants)
        yield from labels.statements(publication)
        yield from buckets.served_statements(publication)
        yield from buckets.fill_statements(publication)

    def run(self, session: Session, plan: PublicationPlan, work: Work) -> Work:
        """Serve the release; raises NotPermitted if a reader has access to hidden data."""
        from dbanon.db import identity, rights
        from dbanon.db.histories import readers
        from dbanon.db.metadata import ledger, store
        from dbanon.db.releases import relations, withdrawal

        publication, loaded = work.publication, work.member.loaded
        session.run(relations.forget_statements(publication) if plan.request.forgets else ())
        source = publication.info.oid
        own = publication.view if plan.restart else None
        of_others = partial(readers.elsewhere, session, publication.info, without=own)
        elsewhere = of_others(release=publication.id)
        others = rights.readers(session, elsewhere, source=source)
        release = ledger.add_release(session, _entry(session, plan, work))
        if loaded.now is not None:
            store.save_baseline(session, loaded.info.name, loaded.now, name=loaded.wanted)
        notes = _serve(session, work, release, grants=plan.request.grants)
        readers.mark(session, publication.view, release=release.id)
        if plan.restart == UNREAD:  # GRANT waits from now on
            require_unread(session, publication)
        # Somebody may have been granted another series meanwhile, who could not see this one.
        others |= rights.readers(session, elsewhere, source=source)
        readers.require_others(session, others, table=publication.info, relation=publication.view)
        identity.require_admitted(session)
        if work.previous is not None:
            withdrawal.retire(session, work.previous, by=release)
        release = replace(release, warnings=work.prepared.warnings, composition=work.composition)
        return replace(work, release=release, notes=tuple(notes))


STEPS: tuple[Step, ...] = (Write(), Copy(), Prove(), Compare(), Serve())


def build(
    session: Session,
    plan: PublicationPlan,
    prepared: Prepared,
    stages: Stages,
    *,
    part: int = 0,
    withdrawn: tuple[int, ...] | None = None,
    key: UUID | None = None,
    hashed: UUID | None = None,
) -> Work:
    """Run all steps except the last for a table; raises CheckFailed.

    part: number of the table in the plan; withdrawn: the classes that the previous copy loses, if
    it keeps all others; key: the key by which other tables remember the same persons; hashed: the
    key by which the prepared rows are hashed already.
    """
    prepared = masked(session, prepared)
    publication = described(plan, prepared)
    publication = replace(publication, withdrawn=withdrawn, key=key or hashed, hashed=hashed)
    place = plan.places[part]
    publication = _numbered(session, publication, place)
    work = Work(plan.members[part], place, publication, prepared, plan.previous[part])
    for step in STEPS[:-1]:
        with stages(step.name):
            work = step.run(session, plan, work)
    return work


def described(plan: PublicationPlan, prepared: Prepared) -> Publication:
    """Return a release as SQL names it, with the number 0."""
    from dbanon.db.releases.publication import Publication

    return Publication(
        id=0,
        info=prepared.info,
        policy=prepared.policy,
        kind=plan.request.relation_kind,
        view=plan.request.view(prepared.info.name),
        recodings=prepared.recodings,
        trees=prepared.trees,
    )


def _numbered(session: Session, publication: Publication, place: Placement) -> Publication:
    """Return a release with its number, the key of its persons and its readable source."""
    from dbanon.db import identity
    from dbanon.db.metadata import ledger

    number, pin = ledger.next_release_id(session), identity.readable(session, publication.info)
    publication = replace(publication, id=number, pin=pin)
    if publication.kind is ReleaseKind.VIEW and publication.policy.pseudonym is None:
        return publication
    key = publication.hashed or place.key_of_persons(session, own=publication.key)
    return replace(publication, key=key)


def masked(session: Session, prepared: Prepared) -> Prepared:
    """Return the prepared rows with values masked within classes."""
    from dbanon.actions.preparation.masking import mask_classes

    group = prepared.outcome.assignment.group
    source = mask_classes(session, prepared.source, prepared.policy, prepared.info, group=group)
    return replace(prepared, source=source)


def serve(
    session: Session, plan: PublicationPlan, works: Sequence[Work], stages: Stages
) -> list[Release]:
    """Prove several tables together, and run the last step for each; raises CheckFailed."""
    composition = None
    if len(works) > 1:
        with stages("check"):
            works = proved_together(session, works)
        with stages("compare"):
            publications = [one.publication for one in works]
            composition = compare_together(session, publications)
            require_safe([composition] if plan.request.strict else [])
    last, releases = STEPS[-1], list[Release]()
    with stages(last.name):
        for one in works:
            done = last.run(session, plan, one)
            for note in done.notes:
                stages.note(note)
            releases += [done.release] if done.release is not None else []
    if composition is not None and (composition.warnings or composition.note is not None):
        releases[0] = replace(releases[0], composition=composition)
    return releases


def proved_together(session: Session, works: Sequence[Work]) -> list[Work]:
    """Return the tables with the proofs of all of them together; raises CheckFailed."""
    from dbanon.db.histories import joint
    from dbanon.db.proofs.subjects import prove_linked

    publications = [one.publication for one in works]
    is_new = publications[0].withdrawn is None
    found = (prove_linked if is_new else joint.prove)(session, publications)
    proved = []
    for one, results in zip(works, found, strict=True):
        assert one.report is not None  # noqa: S101 - each was proved alone
        report = replace(one.report, results=(*one.report.results, *results))
        if not report.passed:
            raise CheckFailed(
                f"{one.publication.view} did not hold of its persons:"
                f" {'; '.join(report.shortfalls)}; nothing was published",
                report,
                hint="dbanon publish --dry-run, asking for less",
            )
        proved.append(replace(one, report=report))
    return proved


def _entry(session: Session, plan: PublicationPlan, work: Work) -> Release:
    """Return the ledger entry of a release."""
    assert work.report is not None  # noqa: S101 - nothing is served that was not proved
    assert work.candidate is not None  # noqa: S101 - it was proved
    publication, prepared, request = work.publication, work.prepared, plan.request
    return Release(
        id=publication.id,
        table=publication.info.name,
        relation=publication.view,
        kind=publication.kind,
        policy=prepared.policy,
        seed=request.seed,
        checks=work.report,
        loss=prepared.outcome.loss,
        fingerprint=work.fingerprint,
        overrides=request.to_ledger(),
        taxonomies=prepared.taxonomies,
        content=_content(session, publication, work.candidate),
        data_id=publication.data_id,
        policy_name=prepared.policy.name,
        dataset=request.dataset,
    )


def _content(session: Session, publication: Publication, published: TableInfo) -> str:
    from dbanon.db import catalog
    from dbanon.db.releases import immutability
    from dbanon.db.releases.beside.relations import BUCKETS

    if publication.kind is ReleaseKind.VIEW:
        return immutability.definition(session, published)
    if not publication.policy.anatomy:
        return immutability.content(session, published)
    beside = catalog.describe(session, BUCKETS.name(published.name))
    session.admitted[beside.oid] = beside.name  # which this transaction made
    return immutability.content(session, published, beside)


def _serve(session: Session, work: Work, release: Release, *, grants: Sequence[str]) -> list[str]:
    """Replace the published view; last, because it may wait for readers. Returns notes."""
    from dbanon.db import catalog, identity, rights, schemas
    from dbanon.db.releases import relations, views
    from dbanon.db.releases.beside import buckets, counts, labels

    assert work.candidate is not None  # noqa: S101 - it was proved
    publication = work.publication
    view = publication.view
    schemas.ensure(session, view.schema or "public")  # of a dry run, which made none before
    written = views.comments(session, view)
    left = _put_in_place(session, work)
    comments = relations.wording_statements(publication, written)
    grant = rights.grant_statements(view, grants)
    session.run([relations.comment_statement(publication), *comments, *grant])
    labels.publish(session, publication, work.prepared.outcome.values.columns)
    aside = [left, buckets.publish(session, publication)]
    counts.keep(session, view)
    for name in (view, work.candidate.name):
        identity.dismiss(session, name)
    published = catalog.describe_source(session, view)
    identity.require_release(session, published, publication.data_id)
    if publication.policy.anatomy:  # what is beside the view is a copy of what was proved
        identity.admit(session, published)
        _prove(session, publication, published, work.prepared)
    rights.require_readable(session, grants, published=published.oid)
    sources = views.oids_of(session, release.sources)
    signs = rights.require_separation(session, published=published.oid, sources=sources)
    notes = [f"{sign}: {sign.remedy}" for sign in signs]
    return notes + [set_aside_in_words(view, name) for name in aside if name is not None]


def _put_in_place(session: Session, work: Work) -> TableName | None:
    """Replace the published view by the proved one; raises DatabaseError if readers lock it."""
    from dbanon.db.locks import Held
    from dbanon.db.releases import relations, views

    publication, previous = work.publication, work.previous
    view, create = publication.view, relations.view_statement(publication)
    try:
        return views.put_in_place(session, view, create, candidate=publication.candidate)
    except Held as held:
        state = "nothing was published"
        if previous is not None and previous.served:
            state = f"release {previous.id} is served on"
        raise DatabaseError(
            f"{view} gets other columns or tables, and {held} is using it; {state}",
            hint=f"{held.remedy}run the command again",
        ) from None


def _prove(
    session: Session, publication: Publication, published: TableInfo, prepared: Prepared
) -> CheckReport:
    """Prove the candidate view with the function that readers use, before it is served.

    Counts that need the source, of persons and of the population, are added.
    """
    from dbanon.db.proofs import checks, population
    from dbanon.db.proofs.subjects import prove_subjects
    from dbanon.db.releases.guarantee import promise_of

    report = checks.verify(session, published, promise_of(publication))
    _require_same_classes(publication, report, prepared.outcome.loss)
    if publication.withdrawn is None and not publication.policy.anatomy:
        # else they are proved by what is remembered of all rows, or each has one row
        report = prove_subjects(session, publication, report, several=prepared.several)
    report = population.prove(
        session, published, prepared.policy, report, versions=prepared.taxonomies
    )
    report = replace(report, relation=publication.view)
    if not report.passed:
        reasons = "; ".join(report.shortfalls) or "some models could not be checked"
        raise CheckFailed(
            f"{publication.view} did not hold in the database: {reasons}; nothing was published",
            report,
            hint=f"{command('dbanon doctor')}, whether the check functions are those of dbanon; if"
            " they are, the search and the database count differently, which is a defect of dbanon",
        )
    return report


def _require_same_classes(publication: Publication, report: CheckReport, loss: LossReport) -> None:
    """Raise DatabaseError if the database counts other classes than the loss was measured on.

    The loss of a release that keeps earlier classes has no number of its own.
    """
    if publication.withdrawn is not None or publication.policy.anatomy:
        return
    (found,) = [result.classes for result in report.results if result.model == K_ANONYMITY]
    if found != loss.n_classes:
        raise DatabaseError(
            f"{publication.view} has {found:,} classes in the database, and its loss is that of"
            f" {loss.n_classes:,}; nothing was published",
            hint="this is a defect of dbanon; other recodings of the columns may avoid it",
        )
