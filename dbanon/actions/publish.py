"""Publish an anonymized relation of a table, proved by the database before anyone sees it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from dbanon.actions.preparation.prepare import fingerprint, prepare
from dbanon.actions.preparation.request import Request
from dbanon.domain.checks import CheckFailed
from dbanon.domain.deeds import Deed
from dbanon.domain.errors import ConfigError, DatabaseError
from dbanon.domain.progress import Stages
from dbanon.domain.release import Release, ReleaseKind
from dbanon.domain.table import TableName
from dbanon.domain.text import command
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dbanon.actions.preparation.loading import Loaded
    from dbanon.actions.preparation.prepare import Prepared
    from dbanon.actions.preparation.request import Options
    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session
    from dbanon.domain.checks import CheckReport
    from dbanon.domain.release import Entry
    from dbanon.domain.table import TableInfo


def publish(
    table: str | TableName,
    *,
    dry_run: bool = False,
    strict: bool = False,
    settings: Settings | None = None,
    stages: Stages | None = None,
    **options: Unpack[Options],
) -> Release:
    """Publish a table by its stored policy and return the release; one transaction.

    ``options`` go over the policy: k, l, algorithm, max_suppressed, kind, schema, name, grants
    and seed, as ``dbanon.actions.preparation.request.Options`` describes them. A release already
    there is replaced atomically; if anything fails, it stays. With ``dry_run`` all is done and
    proved, then rolled back. With ``strict`` nothing is published that would be warned of.

    Raises Unsatisfiable, PolicyError, TaxonomyError, DriftError, CheckFailed, NotPermitted,
    ConfigError, DatabaseError.
    """
    request = Request.of(options)
    stages = stages or Stages()
    settings = settings or Settings.load()
    with publishing(table, request, settings, keep=not dry_run) as (session, loaded):
        return publish_in(session, loaded, request, stages, strict=strict)


@contextmanager
def publishing(
    table: str | TableName, request: Request, settings: Settings, *, keep: bool
) -> Iterator[tuple[Session, Loaded]]:
    """Open the one transaction of a publication, alone on its table."""
    from dbanon.actions.preparation.loading import (
        find_source,
        load,
        require_own_relation,
        require_unchanged,
    )
    from dbanon.db import catalog, identity
    from dbanon.db.metadata.migrate import require_current
    from dbanon.db.releases import guards, turns, withdrawal
    from dbanon.db.session import connect

    where = table if isinstance(table, TableName) else TableName.parse(table)
    with connect(settings, writes=True) as session:
        require_current(session)
        found = find_source(session, where)
        if request.kind is ReleaseKind.VIEW:
            guards.require_owner(session, found)
        live, deed = (
            request.kind is ReleaseKind.VIEW,
            Deed(str(request.view(found.name)), "published"),
        )
        with turns.alone(session, found, exclude_writers=live, keep=keep, deed=deed):
            session.allow_memory()
            info = catalog.describe(session, found.name)
            identity.require_same(found, info)
            loaded = load(session, info, request.policy)
            require_own_relation(loaded, request.view(info.name))
            require_unchanged(session, loaded, request.view(info.name))
            identity.admit(session, info)
            identity.pin(session, info)
            if request.kind is ReleaseKind.VIEW:
                _require_guardable(session, info)
            yield session, loaded
        if keep:
            withdrawal.tidy(session, info.name)


def publish_in(
    session: Session, loaded: Loaded, request: Request, stages: Stages, *, strict: bool = False
) -> Release:
    """Do all of a publication inside the open transaction of ``publishing``."""
    from dbanon.db import identity, rights
    from dbanon.db.metadata import ledger, store
    from dbanon.db.releases import relations, withdrawal

    info = loaded.info
    view = request.view(info.name)
    previous = _previous(session, info, view)
    rights.require_roles(session, request.grants)
    prepared = prepare(session, loaded, request, stages, strict=strict)
    publication = _publication(session, prepared, request)
    with stages("write"):
        publication = _write(session, publication, prepared)
    with stages("publish"):
        publication, candidate = _build(session, publication, previous)
    with stages("check"):
        report = _prove(session, publication, candidate, prepared)
        for statement in relations.forget_statements(publication) if request.forgets else ():
            session.pg.execute(statement)
    with stages("record"):
        release = _release(
            publication,
            prepared,
            request=request,
            report=report,
            fingerprint=fingerprint(session, loaded, prepared.policy, request),
            content=_content(session, publication, candidate),
        )
        release = ledger.add_release(session, release)
        if loaded.now is not None:
            store.save_baseline(session, info.name, loaded.now, name=loaded.wanted)
        _serve(session, publication, candidate, grants=request.grants, previous=previous)
        identity.require_admitted(session)
        if previous is not None:
            withdrawal.retire(session, previous, by=release)
    return replace(release, warnings=prepared.warnings)


def _release(
    publication: Publication,
    prepared: Prepared,
    *,
    request: Request,
    report: CheckReport,
    fingerprint: str,
    content: str,
) -> Release:
    """Describe a release as the ledger keeps it."""
    return Release(
        id=publication.id,
        table=publication.info.name,
        relation=publication.view,
        kind=publication.kind,
        policy=prepared.policy,
        seed=request.seed,
        checks=report,
        loss=prepared.outcome.loss,
        fingerprint=fingerprint,
        overrides=request.options(),
        taxonomies=prepared.taxonomies,
        content=content,
        data_id=publication.data_id,
        policy_name=prepared.policy.name,
    )


def _previous(session: Session, info: TableInfo, view: TableName) -> Entry | None:
    """Return the release to replace; raises ConfigError when the name is somebody else's.

    It may be one that was withdrawn, when somebody has kept its view from being dropped.
    """
    from dbanon.db import catalog, identity
    from dbanon.db.metadata import ledger
    from dbanon.db.releases import views

    identity.require_own_schema(session, view)
    latest = ledger.latest_entry(session, view)
    if latest is not None and latest.served and latest.table != info.name:
        raise ConfigError(
            f"{view} serves release {latest.id} of {latest.table}",
            hint="publish under another --name or --schema",
        )
    present = views.oid_of(session, view)
    if present is not None and not (latest and identity.serves(session, present, latest.data_id)):
        raise ConfigError(
            f"{view} exists and was not published by dbanon",
            hint="publish under another --name or --schema",
        )
    if present is not None:
        # Nobody alters or drops it from now on, so that it is still the same when it is compared.
        held = catalog.describe(session, view)
        identity.hold(session, held)
        identity.admit(session, held)
    return latest


def _require_guardable(session: Session, info: TableInfo) -> None:
    from dbanon.db.releases import marks

    foreign = [part.name for part in info.leaves if part.relkind != "r"]
    if foreign:
        raise ConfigError(
            f"{foreign[0]} is a foreign partition, whose changes a live view would not see",
            hint="publish it with --as table",
        )
    if info.relkind != "p" and info.has_children:
        raise ConfigError(
            f"{info.name} has children, whose changes a live view would not see",
            hint="publish it with --as table",
        )
    if info.has_parents:
        raise ConfigError(
            f"{info.name} has a parent, and a live view would not see what is changed through it",
            hint="publish the parent, or this with --as table",
        )
    marks.require_lasting(session, info)


def _publication(session: Session, prepared: Prepared, request: Request) -> Publication:
    from dbanon.db import identity
    from dbanon.db.metadata import ledger
    from dbanon.db.releases.publication import Publication

    return Publication(
        id=ledger.next_release_id(session),
        info=prepared.info,
        policy=prepared.policy,
        kind=request.kind,
        view=request.view(prepared.info.name),
        recodings=prepared.recodings,
        trees=prepared.trees,
        pin=identity.readable(session, prepared.info),
    )


def _write(session: Session, publication: Publication, prepared: Prepared) -> Publication:
    """Write the groups, and return the publication as the source is read from now on."""
    from dbanon.db.proofs import keys
    from dbanon.db.releases import relations, release_rows

    publication = release_rows.staged(session, publication, prepared.source)
    for statement in relations.build_statements(publication):
        session.pg.execute(statement)
    release_rows.fill(
        session,
        publication,
        prepared.source,
        assignment=prepared.outcome.assignment,
        values=prepared.outcome.values,
    )
    keys.require_unique(session, publication)
    return publication


def _content(session: Session, publication: Publication, published: TableInfo) -> str:
    from dbanon.db.releases import immutability

    if publication.kind is ReleaseKind.VIEW:
        return immutability.definition(session, published)
    return immutability.content(session, published)


def _build(
    session: Session, publication: Publication, previous: Entry | None
) -> tuple[Publication, TableInfo]:
    """Make all that readers are to be served from, and a view of it that they cannot reach yet."""
    from dbanon.db import catalog
    from dbanon.db.releases import copies, relations

    publication = copies.make(session, publication, previous)
    session.pg.execute(relations.view_statement(publication, publication.candidate))
    session.pg.execute(relations.comment_statement(publication, publication.candidate))
    return publication, catalog.describe_source(session, publication.candidate)


def _serve(
    session: Session,
    publication: Publication,
    candidate: TableInfo,
    *,
    grants: Sequence[str],
    previous: Entry | None,
) -> None:
    """Let readers have what was proved. It comes last: they may have to wait until the end."""
    from dbanon.db import catalog, identity, rights
    from dbanon.db.locks import Held
    from dbanon.db.releases import relations, views

    view = publication.view
    views.ensure_schema(session, view)
    create = relations.view_statement(publication)
    try:
        views.put_in_place(session, view, create, candidate=publication.candidate)
    except Held as held:
        state = "nothing was published"
        if previous is not None and previous.served:
            state = f"release {previous.id} is served on"
        raise DatabaseError(
            f"{view} gets other columns or tables, and {held} is using it; {state}",
            hint=f"{held.remedy}run the command again",
        ) from None
    session.pg.execute(relations.comment_statement(publication))
    for statement in relations.wording_statements(publication):
        session.pg.execute(statement)
    for statement in rights.grant_statements(view, grants):
        session.pg.execute(statement)
    for name in (view, candidate.name):
        identity.dismiss(session, name)
    published = catalog.describe_source(session, view)
    identity.require_release(session, published, publication.data_id)
    rights.require_readable(session, grants, published=published.oid)
    rights.require_separation(session, published=published.oid, source=publication.info.oid)


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
    report = prove_subjects(session, publication, report, several=prepared.several)
    report = population.prove(
        session, published, prepared.policy, report, versions=prepared.taxonomies
    )
    report = replace(report, relation=publication.view)
    if not report.passed:
        raise CheckFailed(
            f"{publication.view} did not hold in the database; nothing was published",
            report,
            hint=command("dbanon plan", publication.info.name),
        )
    return report
