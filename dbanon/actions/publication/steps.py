"""The steps of a publication within its transaction: build, prove, serve."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dbanon.actions.publication.series import (
    compare,
    compare_together,
    difference,
    key_of_persons,
    require_judged,
)
from dbanon.domain.checks import CheckFailed
from dbanon.domain.errors import ConfigError, DatabaseError
from dbanon.domain.policy import K_ANONYMITY
from dbanon.domain.release import Release, ReleaseKind
from dbanon.domain.table import TableName
from dbanon.domain.text import command
from dbanon.domain.wording import set_aside_in_words

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from dbanon.actions.preparation.loading import Loaded
    from dbanon.actions.preparation.prepare import Prepared
    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session
    from dbanon.domain.assignment import LossReport
    from dbanon.domain.checks import CheckReport
    from dbanon.domain.composition import Composition, Gate
    from dbanon.domain.progress import Stages
    from dbanon.domain.release import Entry, Growth
    from dbanon.domain.table import TableInfo
    from dbanon.request import Request


@dataclass(frozen=True, eq=False, slots=True)
class Built:
    """A release that is written and proved, and that no reader can reach yet.

    ``candidate`` is the view that was proved; ``previous`` is the release to replace, if any;
    ``composition`` is what all releases of the table reveal with this one; ``growth`` what became
    of the release before, if this one is made of it.
    """

    publication: Publication
    prepared: Prepared
    candidate: TableInfo
    previous: Entry | None
    report: CheckReport
    composition: Composition
    growth: Growth | None = None


def build(
    session: Session,
    prepared: Prepared,
    request: Request,
    stages: Stages,
    *,
    previous: Entry | None,
    gate: Gate,
    withdrawn: tuple[int, ...] | None = None,
    key: UUID | None = None,
    hashed: UUID | None = None,
) -> Built:
    """Write what was prepared and have the database prove it; raises CheckFailed.

    gate: what is refused besides, as is what makes it worse to compare releases;
    withdrawn: the classes that the copy of the release before loses, when it keeps all others; key:
    by which other tables remember the same persons; hashed: by which those of the rows that were
    prepared are hashed already.
    """
    prepared = masked(session, prepared)
    publication = _publication(session, prepared, request)
    publication = replace(publication, withdrawn=withdrawn, key=key or hashed, hashed=hashed)
    if prepared.policy.pseudonym is not None:
        names = publication.info.name, publication.view
        key = key_of_persons(session, *names, gate, own=publication.key)
        publication = replace(publication, key=key)
    with stages("write"):
        publication = _write(session, publication, prepared)
    with stages("publish"):
        shared = prepared.source.frozen is not None
        differs = difference(session, publication, shared=shared)
        publication, candidate = _build(session, publication, previous)
    with stages("check"):
        report = _prove(session, publication, candidate, prepared)
    with stages("compare"):
        composition = compare(session, publication, gate, previous=previous, difference=differs)
        if publication.kind is ReleaseKind.TABLE:
            require_judged(session, publication, dataset=request.dataset)
    return Built(publication, prepared, candidate, previous, report, composition)


def masked(session: Session, prepared: Prepared) -> Prepared:
    """Return what was prepared with the values that are masked within classes."""
    from dbanon.actions.preparation.masking import mask_classes

    group = prepared.outcome.assignment.group
    source = mask_classes(session, prepared.source, prepared.policy, prepared.info, group=group)
    return replace(prepared, source=source)


def serve(
    session: Session,
    loaded: Sequence[Loaded],
    built: Sequence[Built],
    request: Request,
    stages: Stages,
    *,
    gate: Gate,
    fingerprint: str,
) -> list[Release]:
    """Prove several tables together, and let readers have what was built; raises CheckFailed.

    fingerprint: of all that the releases depend on.
    """
    composition = None
    if len(built) > 1:
        with stages("check"):
            built = proved_together(session, built)
        with stages("compare"):
            composition = compare_together(session, [one.publication for one in built], gate)
    with stages("record"):
        first, *rest = (
            _entered(session, one, done, request, stages, fingerprint=fingerprint)
            for one, done in zip(loaded, built, strict=True)
        )
    if composition is not None and (composition.warnings or composition.note is not None):
        first = replace(first, composition=composition)
    return [first, *rest]


def proved_together(session: Session, built: Sequence[Built]) -> list[Built]:
    """Return what was built with what holds of all of it together; raises CheckFailed."""
    from dbanon.db.histories import joint
    from dbanon.db.proofs.linked import prove_linked

    publications = [one.publication for one in built]
    is_new = publications[0].withdrawn is None
    found = (prove_linked if is_new else joint.prove)(session, publications)
    proved = [
        replace(one, report=replace(one.report, results=(*one.report.results, *results)))
        for one, results in zip(built, found, strict=True)
    ]
    for one in proved:
        if not one.report.passed:
            raise CheckFailed(
                f"{one.publication.view} did not hold of its persons:"
                f" {'; '.join(one.report.shortfalls)}; nothing was published",
                one.report,
                hint="dbanon publish --dry-run, asking for less",
            )
    return proved


def _entered(
    session: Session,
    loaded: Loaded,
    built: Built,
    request: Request,
    stages: Stages,
    *,
    fingerprint: str,
) -> Release:
    """Enter a release into the ledger and let readers have it.

    fingerprint: of all that it depends on.
    """
    from dbanon.db import identity, rights
    from dbanon.db.histories import readers
    from dbanon.db.metadata import ledger, store
    from dbanon.db.releases import relations, withdrawal

    publication = built.publication
    session.run(relations.forget_statements(publication) if request.forgets else ())
    source = publication.info.oid
    elsewhere = readers.elsewhere(session, publication.info, release=publication.id)
    others = rights.readers(session, elsewhere, source=source)
    entry = _entry(session, built, request, fingerprint=fingerprint)
    release = ledger.add_release(session, entry)
    if loaded.now is not None:
        store.save_baseline(session, loaded.info.name, loaded.now, name=loaded.wanted)
    for note in _serve(session, built, release, grants=request.grants):
        stages.note(note)
    # Somebody may have been granted another series meanwhile, who could not see this one.
    others |= rights.readers(session, elsewhere, source=source)
    readers.require_others(session, others, table=publication.info, relation=publication.view)
    identity.require_admitted(session)
    if built.previous is not None:
        withdrawal.retire(session, built.previous, by=release)
    return replace(release, warnings=built.prepared.warnings, composition=built.composition)


def _entry(session: Session, built: Built, request: Request, *, fingerprint: str) -> Release:
    """Return what the ledger is to say of a release."""
    publication, prepared = built.publication, built.prepared
    return Release(
        id=publication.id,
        table=publication.info.name,
        relation=publication.view,
        kind=publication.kind,
        policy=prepared.policy,
        seed=request.seed,
        checks=built.report,
        loss=prepared.outcome.loss,
        fingerprint=fingerprint,
        overrides=request.to_ledger(),
        taxonomies=prepared.taxonomies,
        content=_content(session, publication, built.candidate),
        data_id=publication.data_id,
        policy_name=prepared.policy.name,
        dataset=request.dataset,
    )


def replaced(session: Session, info: TableInfo, request: Request) -> Entry | None:
    """Return the release that is to be replaced; raises ConfigError for a name of somebody else's.

    It may be one that was withdrawn, when somebody has kept its view from being dropped.
    """
    from dbanon.db import catalog, identity, rights
    from dbanon.db.metadata import ledger
    from dbanon.db.releases import views

    rights.require_roles(session, request.grants)
    view = request.view(info.name)
    identity.require_own_schema(session, view)
    latest = ledger.latest_entry(session, view)
    if latest is not None and latest.served and latest.table != info.name:
        raise ConfigError(
            f"{view} serves release {latest.id} of {latest.table}",
            hint="publish under another --name or --schema",
        )
    _require_no_dataset(session, info, request)
    present = views.oid_of(session, view)
    if present is not None and not (latest and identity.serves(session, present, latest.data_id)):
        raise ConfigError(
            f"{view} exists and was not published by dbanon",
            hint="publish under another --name or --schema",
        )
    if present is not None:
        # Nobody alters or drops it from now on, so that it is still the same when it is compared.
        identity.admit(session, catalog.describe(session, view))
    return latest


def _require_no_dataset(session: Session, info: TableInfo, request: Request) -> None:
    """Raise ConfigError if a table is served beside others that would keep their classes.

    Those of a dataset are proved together. Other classes of its persons would tell more of them.
    """
    from dbanon.db.metadata import ledger

    names = request.dataset or (str(info.name),)
    replaced = {request.view(TableName.parse(name)) for name in names}
    for entry in ledger.served_entries(session):
        if str(info.name) in entry.dataset and entry.relation not in replaced:
            raise ConfigError(
                f"{entry.relation} was published together with {info.name} (release {entry.id}),"
                " and other classes of these persons would tell more of them",
                hint="dbanon publish --dataset with all of these tables, or first:"
                f" dbanon release drop {entry.id}",
            )


def _publication(session: Session, prepared: Prepared, request: Request) -> Publication:
    from dbanon.db import identity
    from dbanon.db.metadata import ledger
    from dbanon.db.releases.publication import Publication

    return Publication(
        id=ledger.next_release_id(session),
        info=prepared.info,
        policy=prepared.policy,
        kind=request.relation_kind,
        view=request.view(prepared.info.name),
        recodings=prepared.recodings,
        trees=prepared.trees,
        pin=identity.readable(session, prepared.info),
    )


def _write(session: Session, publication: Publication, prepared: Prepared) -> Publication:
    """Write the groups, and return the publication as the source is read from now on."""
    from dbanon.db.proofs import keys, means
    from dbanon.db.releases import relations, release_rows

    publication = release_rows.staged(session, publication, prepared.source)
    session.run(relations.build_statements(publication))
    release_rows.fill(
        session,
        publication,
        prepared.source,
        assignment=prepared.outcome.assignment,
        values=prepared.outcome.values,
    )
    keys.require_unique(session, publication)
    means.require_within(session, publication)
    return publication


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


def _build(
    session: Session, publication: Publication, previous: Entry | None
) -> tuple[Publication, TableInfo]:
    """Make all that readers are to be served from, and a view of it that they cannot reach yet."""
    from dbanon.db import catalog
    from dbanon.db.histories import copied, memory
    from dbanon.db.releases import copies, relations
    from dbanon.db.releases.beside import buckets

    if publication.withdrawn is None:
        publication = copies.make(session, publication, previous)
    else:
        key = memory.key_of(session, publication.info.name, publication.view)
        publication = copied.extend(session, publication, previous, key=key)
    view = relations.view_statement(publication, publication.candidate)
    comment = relations.comment_statement(publication, publication.candidate)
    session.run([view, comment, *buckets.statements(publication)])
    return publication, catalog.describe_source(session, publication.candidate)


def _serve(session: Session, built: Built, release: Release, *, grants: Sequence[str]) -> list[str]:
    """Let readers have what was proved. It comes last: they may have to wait until the end.

    Returns what somebody should look at.
    """
    from dbanon.db import catalog, identity, rights, schemas
    from dbanon.db.releases import relations, views
    from dbanon.db.releases.beside import buckets, counts, labels

    publication = built.publication
    view = publication.view
    schemas.ensure(session, view.schema or "public")  # of a dry run, which made none before
    written = views.comments(session, view)
    left = _put_in_place(session, built)
    comments = relations.wording_statements(publication, written)
    grant = rights.grant_statements(view, grants)
    session.run([relations.comment_statement(publication), *comments, *grant])
    labels.publish(session, publication, built.prepared.outcome.values.columns)
    aside = [left, buckets.publish(session, publication)]
    counts.keep(session, view)
    for name in (view, built.candidate.name):
        identity.dismiss(session, name)
    published = catalog.describe_source(session, view)
    identity.require_release(session, published, publication.data_id)
    if publication.policy.anatomy:  # what is beside the view is a copy of what was proved
        identity.admit(session, published)
        _prove(session, publication, published, built.prepared)
    rights.require_readable(session, grants, published=published.oid)
    sources = views.oids_of(session, release.sources)
    signs = rights.require_separation(session, published=published.oid, sources=sources)
    notes = [f"{sign}: {sign.remedy}" for sign in signs]
    return notes + [set_aside_in_words(view, name) for name in aside if name is not None]


def _put_in_place(session: Session, built: Built) -> TableName | None:
    """Let readers have the view that was proved; raises DatabaseError if others do not stop."""
    from dbanon.db.locks import Held
    from dbanon.db.releases import relations, views

    publication, previous = built.publication, built.previous
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
    """Prove the view that readers will have, before they have it, by what they prove it with.

    What only those who read the source can count, persons and the population, comes beside it.
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
    """Raise DatabaseError if the database counts other classes than the loss was measured of.

    The loss of a release that keeps classes of the one before has none of its own.
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
