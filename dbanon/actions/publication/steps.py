"""The steps of a publication within its transaction: one list, which is run or printed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from dbanon.actions.distribution.dividing import prepare_in_blocks
from dbanon.actions.preparation.masking import mask_classes
from dbanon.actions.preparation.prepare import prepare
from dbanon.actions.publication.group_reuse import reuse_groups
from dbanon.actions.publication.series import (
    UNREAD,
    compare,
    compare_linked,
    difference,
    require_unread,
    state_after,
)
from dbanon.db import catalog, identity, rights, schemas
from dbanon.db.histories import memory, overlay, readers
from dbanon.db.locks import LockNotGranted
from dbanon.db.metadata import ledger, store
from dbanon.db.proofs import checks, subjects
from dbanon.db.proofs.subjects import prove_linked, prove_subjects
from dbanon.db.releases import (
    companion_relations,
    copies,
    immutability,
    relations,
    release_rows,
    replacements,
    withdrawal,
)
from dbanon.db.releases.companion_relations import BUCKETS
from dbanon.db.releases.publication import Publication
from dbanon.db.releases.relations import promise_of
from dbanon.domain.errors import DatabaseError
from dbanon.domain.messages import set_aside_in_words
from dbanon.domain.release import CheckFailed, Release, Sums
from dbanon.domain.text import command
from dbanon.formats.support import Mode
from dbanon.models import registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from uuid import UUID

    from dbanon.actions.preparation.inputs import InputTable
    from dbanon.actions.preparation.prepare import Prepared
    from dbanon.actions.publication.plan import PublicationPlan
    from dbanon.actions.publication.series import Difference, Placement
    from dbanon.db.person_hashes import Changes, Counted
    from dbanon.db.rights import Statement
    from dbanon.db.session import Session
    from dbanon.domain.assignment import LossReport
    from dbanon.domain.outcomes import Stages
    from dbanon.domain.release import CheckReport, Composition, Delta, Entry, SourceState
    from dbanon.domain.table import TableInfo, TableName

    Run = Callable[["Sender", PublicationPlan, Sequence["Work"]], list["Work"]]

Result = TypeVar("Result")


class Reading(NamedTuple):
    """How the rows of a table were read, from which the state of its source follows.

    counted: its state now, None if unknown; changes: the rows that changed, if only these were
    read; reason: otherwise, why a refresh read all; key: the hash key by which a refresh can store
    places, None if not; former: the number of the present table of places; places: that of the
    table that a grouping of all rows fills, None if not; ncp: of new groups of all rows.
    """

    counted: Counted | None = None
    changes: Changes | None = None
    reason: str | None = None
    key: UUID | None = None
    former: int | None = None
    places: int | None = None
    ncp: float | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Work:
    """A table of a publication between two steps.

    publication: the release as SQL names it; previous: the release that it replaces; delta:
    changes since that one, if this one is made of it; reading: of the source; fingerprint: of all
    inputs of the release; state: of the source; differs: the masked values to compare; candidate:
    the view to prove, not readable yet; report: of the models; composition: combined disclosure of
    all releases of the table; release: the ledger entry; notes: for the operator.
    """

    place: Placement
    publication: Publication
    prepared: Prepared
    previous: Entry | None
    delta: Delta | None = None
    reading: Reading = field(default_factory=Reading)
    fingerprint: str = ""
    state: SourceState | None = None
    differs: Difference | None = None
    candidate: TableInfo | None = None
    report: CheckReport | None = None
    composition: Composition | None = None
    release: Release | None = None
    notes: tuple[str, ...] = ()

    @property
    def is_new(self) -> bool:
        """True if it was built; an incremental refresh may have nothing to publish."""
        return self.report is not None

    @property
    def member(self) -> InputTable:
        """The table, with its policy in force."""
        return self.prepared.member


def group(
    session: Session, plan: PublicationPlan, stages: Stages, *, weigh: bool = False
) -> list[Prepared]:
    """Group all rows: linked persons, blocks, in earlier classes or in new ones.

    weigh: as in ``prepare``.
    """
    request = plan.request
    if plan.division is not None:
        (member,) = plan.members
        make = partial(prepare_in_blocks, division=plan.division, strict=request.strict)
        return [make(session, member, request, stages)]
    if reason := plan.obstacles.get(Mode.REUSE):
        name = plan.members[0].info.name
        stages.note(f"{name} is not made of the classes of earlier releases: {reason}")
    if plan.mode is Mode.REUSE and (found := reuse_groups(session, plan, stages, weigh=weigh)):
        return [found]
    return prepare(session, plan.members, request, stages, strict=request.strict, weigh=weigh)


class Sender:
    """Sends what the steps of a publication consist of to the database."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def send(self, statements: Iterable[Statement]) -> None:
        """Send statements in one message."""
        self.session.run(statements)

    def do(
        self,
        act: Callable[[], Result],
        *,
        printed: Iterable[Statement] = (),  # noqa: ARG002 - of a plan
    ) -> Result | None:
        """Do what depends on rows or on the state of the database.

        printed: its SQL, as far as a plan knows it.
        """
        return act()


class Printer(Sender):
    """Collects the statements of steps, and changes nothing."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.statements: list[Statement] = []

    def send(self, statements: Iterable[Statement]) -> None:
        """Collect statements."""
        self.statements += statements

    def do(self, _act: Callable[[], Result], *, printed: Iterable[Statement] = ()) -> Result | None:
        """Collect the known statements, and return None."""
        self.statements += printed
        return None


def _write(to: Sender, plan: PublicationPlan, work: Work) -> Work:
    """Create and fill the private tables, and pin the source as it was read."""
    session, source, outcome = to.session, work.prepared.source, work.prepared.outcome
    others = {one.info.name: one.policy for one in plan.members if one is not work.member}
    to.do(partial(replacements.require_words, session, work.publication, others))
    staged = to.do(partial(release_rows.staged, session, work.publication, source))
    publication = staged or work.publication
    to.send(relations.build_statements(publication))
    fill = partial(release_rows.fill, session, publication, source)
    to.do(
        partial(fill, assignment=outcome.assignment, values=outcome.values),
        printed=release_rows.copy_statements(publication),
    )
    if publication.places is None or publication.reading == publication.stage:
        # Otherwise a primary key of the source tells its rows apart.
        to.do(partial(subjects.require_unique, session, publication))
    to.do(partial(subjects.require_means_within, session, publication))
    return replace(work, publication=publication)


def _copy(to: Sender, _plan: PublicationPlan, work: Work) -> Work:
    """Create the copy or the guards, or refill those of the previous release."""
    session, publication = to.session, work.publication
    shared = work.prepared.source.frozen is not None
    differs = to.do(partial(difference, session, publication, shared=shared))
    refill = copies.refilled if publication.withdrawn is None else memory.extend
    reused = to.do(partial(refill, session, publication, work.previous))
    if reused is None:
        to.send(relations.serve_statements(publication))
    publication = reused or publication
    if publication.withdrawn is None or (work.prepared.outcome.assignment.group >= 0).any():
        to.do(partial(replacements.require_made_up, session, publication))
    view = publication.candidate
    seen = relations.view_statement(publication, view)
    comment = relations.comment_statement(publication, view)
    to.send([seen, comment, *companion_relations.bucket_statements(publication)])
    candidate = to.do(partial(catalog.describe_published, session, view))
    return replace(work, publication=publication, differs=differs, candidate=candidate)


def _check(to: Sender, plan: PublicationPlan, work: Work) -> Work:
    """Prove the candidate; raises CheckFailed."""
    proof = checks.proof(work.publication.view)
    is_new = work.publication.withdrawn is None
    former = None if is_new else plan.present[plan.members.index(work.member)].checks
    prove = partial(_prove, to.session, work, former=former)
    return replace(work, report=to.do(prove, printed=[proof]))


def _remember(to: Sender, plan: PublicationPlan, work: Work) -> Work:
    """Remember the persons; raises CheckFailed if all releases together would disclose more."""
    compared = partial(compare, to.session, work.publication, work.place, plan.request)
    found = to.do(partial(compared, previous=work.previous, difference=work.differs))
    return replace(work, composition=found)


def _compare_linked(to: Sender, plan: PublicationPlan, works: Sequence[Work]) -> list[Work]:
    """Compare all tables by person; raises CheckFailed if they would disclose more together."""
    publications, (first, *rest) = [one.publication for one in works], works
    found = to.do(partial(compare_linked, to.session, publications, strict=plan.request.strict))
    if found is not None and (found.warnings or found.note is not None):
        first = replace(first, composition=found)
    return [first, *rest]


def _record(to: Sender, plan: PublicationPlan, work: Work) -> Work:
    """Serve the release; raises NotPermitted if a reader has access to hidden data."""
    session, publication, request = to.session, work.publication, plan.request
    view = publication.view
    to.send(relations.forget_statements(publication) if request.forgets else ())
    entered = to.do(partial(_enter, session, plan, work))
    schema = session, view.schema or "public"  # which a dry run has not made before
    to.do(partial(schemas.ensure, *schema), printed=schemas.statements(*schema))
    written = relations.comments(session, view)
    create = relations.view_statement(publication)
    left = to.do(partial(_put_in_place, session, work, create), printed=[create])
    comments = relations.column_comments(publication, written)
    grant = rights.grant_statements(view, request.grants)
    to.send([relations.comment_statement(publication), *comments, *grant])
    columns = work.prepared.outcome.values.columns
    share = partial(companion_relations.publish_labels, session, publication, columns)
    to.do(share, printed=companion_relations.label_statements(publication))
    deal = partial(companion_relations.publish_buckets, session, publication)
    dealt = to.do(deal, printed=companion_relations.moved_bucket_statements(publication))
    dealt = dealt or companion_relations.PublishedBuckets()
    done = partial(_admitted, session, plan, work, entered=entered, left=left, dealt=dealt)
    return to.do(done) or work


def _each(run: Callable[[Sender, PublicationPlan, Work], Work]) -> Run:
    """Return what runs a step for each table."""
    return lambda to, plan, works: [run(to, plan, one) for one in works]


def _are_linked(works: Sequence[Work]) -> bool:
    return len(works) > 1


def _are_by_person(works: Sequence[Work]) -> bool:
    """Return True for a dataset, and if only stored membership links retained rows to persons."""
    one = works[0].publication
    return _are_linked(works) or (one.withdrawn is not None and not one.policy.is_one_row(one.info))


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a publication; name: in progress reports; purpose: in words.

    is_joint: it runs once all tables have gone through the steps before it; concerns: whether it
    has something to do.
    """

    name: str
    purpose: str
    run: Run
    is_joint: bool = False
    concerns: Callable[[Sequence[Work]], bool] = bool


STEPS: tuple[Step, ...] = (
    Step("write", "write which row is in which class, and the values of classes", _each(_write)),
    Step(
        "publish", "make the copy or the guards, and a view that nobody can read yet", _each(_copy)
    ),
    Step("check", "prove every model on exactly what readers will have", _each(_check)),
    Step("compare", "remember the published persons and compare all releases", _each(_remember)),
    Step(
        "check",
        "prove every model for the persons of all tables together",
        lambda to, _, works: to.do(partial(_proved_linked, to.session, works)) or [*works],
        is_joint=True,
        concerns=_are_by_person,
    ),
    Step(
        "compare",
        "compare all releases of all tables by person",
        _compare_linked,
        is_joint=True,
        concerns=_are_linked,
    ),
    Step(
        "record",
        "enter the release into the ledger and let readers have it",
        _each(_record),
        is_joint=True,
    ),
)


def build(
    session: Session,
    plan: PublicationPlan,
    prepared: Prepared,
    stages: Stages,
    *,
    part: int = 0,
    withdrawn: tuple[int, ...] | None = None,
    key: UUID | None = None,
    reading: Reading | None = None,
) -> Work:
    """Run the steps of a table that come before the joint ones; raises CheckFailed.

    part: number of the table in the plan; withdrawn: the classes that the previous copy loses, if
    it keeps all others; key: the key by which other tables remember the same persons; reading: how
    the rows were read.
    """
    work, reading = begun(session, plan, prepared, part=part), reading or Reading()
    publication = replace(work.publication, withdrawn=withdrawn, key=key, places=reading.places)
    if reading.places is not None and reading.counted is not None:
        of_source = reading.counted.state.rows, reading.counted.keys
        publication = replace(publication, of_source=of_source)
    publication = _numbered(session, publication, work.place)
    work = replace(work, publication=publication, reading=reading)
    return _run(session, plan, [work], stages)[0]


def begun(session: Session, plan: PublicationPlan, prepared: Prepared, *, part: int = 0) -> Work:
    """Return a table before its first step, with values masked within classes.

    Its release has the number 0.
    """
    info, policy = prepared.member.info, prepared.member.policy
    group = prepared.outcome.assignment.group
    source = mask_classes(session, prepared.source, policy, info, group=group)
    publication = Publication(
        id=0,
        info=info,
        policy=policy,
        kind=plan.request.relation_kind,
        view=plan.request.view(info.name),
        recodings=prepared.recodings,
        trees=prepared.trees,
    )
    delta = None if prepared.sharing is None else prepared.sharing.growth
    ready = replace(prepared, source=source)
    return Work(plan.places[part], publication, ready, plan.previous[part], delta)


def _run(
    session: Session,
    plan: PublicationPlan,
    works: Sequence[Work],
    stages: Stages,
    *,
    joint: bool = False,
) -> list[Work]:
    """Run the steps of one table, or those of all tables."""
    to, works = Sender(session), [*works]
    for step in STEPS:
        if step.is_joint is joint and step.concerns(works):
            with stages(step.name):
                works = step.run(to, plan, works)
    return works


def _numbered(session: Session, publication: Publication, place: Placement) -> Publication:
    """Return a release with its number, the key of its persons and its readable source."""
    number, pin = ledger.next_release_id(session), identity.readable(session, publication.info)
    publication = replace(publication, id=number, pin=pin)
    if publication.kind.is_live:
        return publication
    key = place.key_of_persons(session, own=publication.key)
    return replace(publication, key=key, former_key=place.former_key)


def serve(
    session: Session, plan: PublicationPlan, works: Sequence[Work], stages: Stages
) -> list[Work]:
    """Run the joint steps for all tables, each of which was built; raises CheckFailed."""
    served = _run(session, plan, works, stages, joint=True)
    for note in (note for one in served for note in one.notes):
        stages.note(note)
    return served


def _proved_linked(session: Session, works: Sequence[Work]) -> list[Work]:
    """Return the tables with the proofs of all of them together; raises CheckFailed."""
    publications = [one.publication for one in works]
    is_new = publications[0].withdrawn is None
    found = (prove_linked if is_new else overlay.prove)(session, publications)
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


class _Entered(NamedTuple):
    """A release in the ledger; elsewhere: relations of other series; others: who reads these."""

    release: Release
    elsewhere: list[int]
    others: set[str]


def _enter(session: Session, plan: PublicationPlan, work: Work) -> _Entered:
    """Enter a release into the ledger."""
    info, loaded = work.publication.info, work.member.loaded
    own = work.publication.view if plan.restart else None
    elsewhere = readers.elsewhere(session, info, release=work.publication.id, without=own)
    others = rights.readers(session, elsewhere, source=info.oid)
    release = ledger.add_release(session, _entry(session, plan, work))
    if loaded.now is not None:
        store.save_baseline(session, loaded.info.name, loaded.now, name=loaded.wanted)
    return _Entered(release, elsewhere, others)


def _admitted(
    session: Session,
    plan: PublicationPlan,
    work: Work,
    *,
    entered: _Entered | None,
    left: TableName | None,
    dealt: companion_relations.PublishedBuckets,
) -> Work:
    """Return a table whose readers have no access to hidden data, with its served release."""
    assert entered is not None  # noqa: S101 - it is served
    info, view = work.publication.info, work.publication.view
    served = partial(_require_separated, session, work, entered.release)
    notes = served(grants=plan.request.grants, is_copy=dealt.is_copy)
    readers.mark(session, view, release=entered.release.id)
    if plan.restart == UNREAD:  # GRANT waits from now on
        require_unread(session, work.publication)
    # Somebody may have been granted another series meanwhile, who could not see this one.
    others = entered.others | rights.readers(session, entered.elsewhere, source=info.oid)
    readers.require_others(session, others, table=info, relation=view)
    identity.require_admitted(session)
    if work.previous is not None:
        withdrawal.retire(session, work.previous, by=entered.release)
    notes += [set_aside_in_words(view, name) for name in (left, dealt.aside) if name]
    prepared, composition = work.prepared, work.composition
    found = replace(entered.release, warnings=prepared.warnings, sharing=prepared.sharing)
    return replace(work, release=replace(found, composition=composition), notes=tuple(notes))


def _entry(session: Session, plan: PublicationPlan, work: Work) -> Release:
    """Return the ledger entry of a release."""
    assert work.report is not None  # noqa: S101 - nothing is served that was not proved
    assert work.candidate is not None  # noqa: S101 - it was proved
    publication, prepared, request = work.publication, work.prepared, plan.request
    content, state = _content(session, work)
    approval = work.member.loaded.approval
    return Release(
        id=publication.id,
        table=publication.info.name,
        relation=publication.view,
        kind=publication.kind,
        policy=publication.policy,
        seed=request.seed,
        checks=work.report,
        loss=prepared.outcome.loss,
        fingerprint=work.fingerprint,
        growth=work.delta,
        source_state=state,
        overrides=request.to_ledger(),
        taxonomies=work.member.versions,
        policy_version=None if approval is None else approval.version,
        content=content,
        data_id=publication.data_id,
        policy_name=publication.policy.name,
        dataset=request.dataset,
    )


def _content(session: Session, work: Work) -> tuple[str, SourceState | None]:
    """Return the digest of a release, and the state of its source with the sums of its copy."""
    publication, published, state = work.publication, work.candidate, work.state
    assert published is not None  # noqa: S101 - it was proved
    if publication.kind.is_live:
        return immutability.definition(session, published.oid), state
    if publication.policy.anatomy:
        beside = catalog.describe(session, BUCKETS.name(published.name))
        session.admitted[beside.oid] = beside.name  # which this transaction made
        return immutability.content(session, published, beside), state
    found = _sums(session, work, published)
    state = state if state is None else replace(state, copy=found)
    return immutability.numbered_content(published, found), state


def _sums(session: Session, work: Work, published: TableInfo) -> Sums:
    """Add up the rows of a copy, or add what it gained to the sums of the former one."""
    gained, number = work.publication.gained, work.publication.data_id
    former = None if work.previous is None else immutability.known_sums(published, work.previous)
    if gained is None or former is None:
        return immutability.sums(session, published, number)
    return immutability.written(session, number, former.plus(gained))


def _require_separated(
    session: Session, work: Work, release: Release, *, grants: Sequence[str], is_copy: bool
) -> list[str]:
    """Raise NotPermitted if a reader of the published view could read its sources; return notes.

    is_copy: the buckets beside the view are a copy of the proved ones, so they are proved again.
    """
    assert work.candidate is not None  # noqa: S101 - it was proved
    publication, view = work.publication, work.publication.view
    companion_relations.keep_counts(session, view)
    for name in (view, work.candidate.name):
        identity.dismiss(session, name)
    published = catalog.describe_published(session, view)
    identity.require_release(session, published, publication.data_id)
    if is_copy:
        _prove(session, replace(work, candidate=published))
    rights.require_readable(session, grants, published=published.oid)
    sources = relations.oids_of(session, release.sources)
    signs = rights.require_separation(session, published=published.oid, sources=sources)
    return [f"{sign}: {sign.remedy}" for sign in signs]


def _put_in_place(session: Session, work: Work, create: Statement) -> TableName | None:
    """Replace the published view by the proved one; raises DatabaseError if readers lock it."""
    publication, view = work.publication, work.publication.view
    try:
        return relations.put_in_place(session, view, create, candidate=publication.candidate)
    except LockNotGranted as held:
        raise DatabaseError(
            f"{view} gets other columns or tables, and {held} is using it;"
            f" {state_after(work.previous)}",
            hint=f"{held.remedy}run the command again",
        ) from None


def _prove(session: Session, work: Work, *, former: CheckReport | None = None) -> CheckReport:
    """Prove the candidate view with the function that readers use, before it is served.

    former: the proof of the copy that it extends. Counts that need the source, of persons and of
    the population, are added.
    """
    assert work.candidate is not None  # noqa: S101 - a step before made it
    publication, published, prepared = work.publication, work.candidate, work.prepared
    report = _verify(session, publication, published, former)
    _require_same_classes(publication, report, prepared.outcome.loss)
    if publication.withdrawn is None and not publication.policy.anatomy:
        # else they are proved by what is remembered of all rows, or each has one row
        report = prove_subjects(session, publication, report, several=prepared.several)
    report = subjects.prove_population(
        session, published, publication.policy, report, versions=work.member.versions
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


def _verify(
    session: Session, publication: Publication, published: TableInfo, former: CheckReport | None
) -> CheckReport:
    """Prove the rows of a view by their classes, of an extended copy those that were written.

    The plan has found that nobody changed the rows of its other classes since they were proved. The
    next step refuses a copy in which a class has other rows, or a number is not that of its values.
    """
    gained, is_strict = publication.gained, any(map(registry.is_strict, publication.policy.models))
    if former is not None and gained is not None and not is_strict:
        with relations.numbering(session, publication) as oid:
            by_number = replace(published, oid=oid), relations.numbered_promise(publication)
            found = checks.prove(session, *by_number, own=False)
        of_all = checks.extended(former, found, rows=gained.rows, lost=publication.lost)
        if of_all is not None:
            return of_all
    return checks.prove(session, published, promise_of(publication))


def _require_same_classes(publication: Publication, report: CheckReport, loss: LossReport) -> None:
    """Raise DatabaseError if the database counts other classes than the loss was measured on.

    The loss of a release that keeps earlier classes has no number of its own.
    """
    if publication.withdrawn is not None or publication.policy.anatomy:
        return
    of_k = report.of_k
    found = 0 if of_k is None else of_k.classes
    if found != loss.n_classes:
        raise DatabaseError(
            f"{publication.view} has {found:,} classes in the database, and its loss is that of"
            f" {loss.n_classes:,}; nothing was published",
            hint="this is a defect of dbanon; other recodings of the columns may avoid it",
        )
