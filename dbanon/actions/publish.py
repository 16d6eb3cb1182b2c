"""Publish an anonymized relation of a table, proved by the database before anyone sees it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Unpack

from dbanon.actions.prepare import Request, fingerprint, prepare
from dbanon.domain.errors import CheckFailed, ConfigError
from dbanon.domain.release import Release, ReleaseKind
from dbanon.domain.stages import Stages
from dbanon.domain.table import TableName
from dbanon.domain.text import command
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dbanon.actions.prepare import Options, Prepared
    from dbanon.db.relations import Publication
    from dbanon.db.session import Session
    from dbanon.domain.release import CheckReport
    from dbanon.domain.table import TableInfo


def publish(
    table: str | TableName,
    *,
    dry_run: bool = False,
    settings: Settings | None = None,
    stages: Stages | None = None,
    **options: Unpack[Options],
) -> Release:
    """Publish a table by its stored policy and return the release; one transaction.

    ``options`` go over the policy: k, l, algorithm, max_suppressed, kind, schema, name, grants
    and seed, as ``dbanon.actions.prepare.Options`` describes them. A release already there is
    replaced atomically; if anything fails, it stays. With ``dry_run`` all is done and proved,
    then rolled back.

    Raises Unsatisfiable, PolicyError, TaxonomyError, DriftError, CheckFailed, NotPermitted,
    ConfigError, DatabaseError.
    """
    request = Request.of(options)
    stages = stages or Stages()
    settings = settings or Settings.load()
    with publishing(table, request, settings, keep=not dry_run) as (session, info):
        return publish_in(session, info, request, stages)


@contextmanager
def publishing(
    table: str | TableName, request: Request, settings: Settings, *, keep: bool = True
) -> Iterator[tuple[Session, TableInfo]]:
    """Open the one transaction of a publication, alone on its table."""
    from dbanon.actions.drift import find_source, require_unchanged
    from dbanon.db import catalog, guards
    from dbanon.db.migrate import require_current
    from dbanon.db.session import connect

    where = table if isinstance(table, TableName) else TableName.parse(table)
    with connect(settings, writes=True) as session:
        require_current(session)
        found = find_source(session, where)
        if request.kind is ReleaseKind.VIEW:
            guards.require_owner(session, found)
        with session.exclusive(found.oid), session.transaction(snapshot=True, keep=keep):
            guards.lock_source(session, found, exclude_writers=request.kind is ReleaseKind.VIEW)
            session.allow_memory()
            info = catalog.describe(session, found.name)
            require_unchanged(session, info, request.view(info.name))
            catalog.require_own_code(session, info)
            if request.kind is ReleaseKind.VIEW:
                _require_guardable(info)
            yield session, info


def publish_in(session: Session, info: TableInfo, request: Request, stages: Stages) -> Release:
    """Do all of a publication inside the open transaction of ``publishing``."""
    from dbanon.db import access, relations, store
    from dbanon.db.baselines import baseline

    view = request.view(info.name)
    previous = _previous(session, info, view)
    access.require_roles(session, request.grants)
    prepared = prepare(session, info, request, stages)
    publication = _publication(session, prepared, request)
    with stages("write"):
        _write(session, publication, prepared)
    with stages("publish"):
        _serve(session, publication, request.grants)
    with stages("check"):
        report = _prove(session, publication, prepared, request.grants)
    with stages("record"):
        release = Release(
            id=publication.id,
            table=info.name,
            relation=view,
            kind=request.kind,
            policy=prepared.policy,
            seed=request.seed,
            checks=report,
            loss=prepared.outcome.loss,
            fingerprint=fingerprint(session, info, prepared.policy, request),
            overrides=request.options(),
            taxonomies=prepared.taxonomies,
            content=_content(session, publication),
        )
        release = store.add_release(session, release)
        store.save_baseline(session, info.name, baseline(session, info, prepared.policy))
        if previous is not None:
            relations.drop_private(session, previous)
    return release


def _previous(session: Session, info: TableInfo, view: TableName) -> int | None:
    """Return the release to replace; raises ConfigError when the name is somebody else's."""
    from dbanon.db import store, views

    served = store.served_release(session, view)
    if served is not None and served.table != info.name:
        raise ConfigError(
            f"{view} serves release {served.id} of {served.table}",
            hint="publish under another --name or --schema",
        )
    present = views.oid_of(session, view)
    if present is not None and not (served and views.serves(session, present, served.id)):
        raise ConfigError(
            f"{view} exists and was not published by dbanon",
            hint="publish under another --name or --schema",
        )
    return None if served is None else served.id


def _require_guardable(info: TableInfo) -> None:
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


def _publication(session: Session, prepared: Prepared, request: Request) -> Publication:
    from dbanon.db import store
    from dbanon.db.relations import Publication

    return Publication(
        id=store.next_release_id(session),
        info=prepared.info,
        policy=prepared.policy,
        kind=request.kind,
        view=request.view(prepared.info.name),
        recodings=prepared.recodings,
        trees=prepared.trees,
    )


def _write(session: Session, publication: Publication, prepared: Prepared) -> None:
    from dbanon.db import contents, relations

    for statement in relations.build_statements(publication):
        session.pg.execute(statement)
    contents.fill(
        session,
        publication,
        prepared.source,
        assignment=prepared.outcome.assignment,
        values=prepared.outcome.values,
    )


def _content(session: Session, publication: Publication) -> str | None:
    from dbanon.db import catalog, seals

    if publication.kind is ReleaseKind.VIEW:
        return None
    return seals.content(session, catalog.describe(session, publication.view))


def _serve(session: Session, publication: Publication, grants: Sequence[str]) -> None:
    from dbanon.db import access, relations, views

    for statement in relations.serve_statements(publication):
        session.pg.execute(statement)
    views.ensure_schema(session, publication.view)
    views.replace(session, publication.view, relations.view_statement(publication))
    session.pg.execute(relations.comment_statement(publication))
    for statement in access.grant_statements(publication.view, grants):
        session.pg.execute(statement)


def _prove(
    session: Session, publication: Publication, prepared: Prepared, grants: Sequence[str]
) -> CheckReport:
    from dbanon.db import access, catalog, checks, population
    from dbanon.db.promise import promise_of
    from dbanon.db.subjects import prove_subjects

    published = catalog.describe(session, publication.view)
    report = checks.prove(session, published, promise_of(publication))
    report = prove_subjects(session, publication, report, several=prepared.several)
    report = population.prove(
        session, published, prepared.policy, report, versions=prepared.taxonomies
    )
    if not report.passed:
        raise CheckFailed(
            f"{publication.view} did not hold in the database; nothing was published",
            report,
            hint=command("dbanon plan", publication.info.name),
        )
    access.require_readable(session, grants, published=published.oid)
    access.require_separation(session, published=published.oid, source=publication.info.oid)
    return report
