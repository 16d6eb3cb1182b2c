"""What an auditor would look at: version, rights, leaks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from dbanon.actions.drift import changes, gained_rights, gone, misfits, strays
from dbanon.domain.errors import (
    DbanonError,
    DriftError,
    NotPermitted,
    PolicyError,
    SchemaOutOfDate,
    TableNotFound,
)
from dbanon.domain.release import ReleaseKind
from dbanon.domain.table import TableName
from dbanon.domain.text import command
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dbanon.db.session import Session
    from dbanon.domain.release import Release
    from dbanon.domain.table import TableInfo


_RESTORE = "restore it from a backup: what it held is known to nobody"


class Level(StrEnum):
    """How bad a finding is."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; ``exit_code`` is what it would make the command return."""

    level: Level
    subject: str
    message: str
    hint: str | None = None
    exit_code: int = 0


def doctor(*, settings: Settings | None = None) -> list[Finding]:
    """Look at the server, the role, the metadata and every served release; change nothing."""
    from dbanon.db.session import connect

    with (
        connect(settings or Settings.load()) as session,
        session.transaction(snapshot=True, keep=False),
    ):
        findings = [*_server(session), *_role(session)]
        damaged = [*_metadata(session)]
        findings += damaged or [Finding(Level.OK, "metadata", "the metadata schema is current")]
        findings += _lost(session) if damaged else _releases(session)
    return findings


def _server(session: Session) -> Iterator[Finding]:
    from dbanon.db.diagnosis import OLDEST, server_version

    number, name = server_version(session)
    if number < OLDEST * 10_000:
        yield _failure("server", f"PostgreSQL {name} is older than {OLDEST}", "upgrade the server")
    else:
        yield Finding(Level.OK, "server", f"PostgreSQL {name}")


def _role(session: Session) -> Iterator[Finding]:
    from dbanon.db.diagnosis import role_facts

    role = role_facts(session)
    if role.superuser:
        yield Finding(
            Level.WARNING,
            "role",
            f"{role.name} is a superuser, which dbanon refuses to publish as",
            "CREATE ROLE publisher LOGIN",
        )
    else:
        yield Finding(Level.OK, "role", f"{role.name} is an ordinary role")
    if not role.can_create:
        hint = "GRANT CREATE ON DATABASE, or let a DBA run dbanon init --print-sql"
        message = f"{role.name} cannot create schemas in this database"
        yield Finding(Level.WARNING, "role", message, hint)


def _metadata(session: Session) -> Iterator[Finding]:
    """Yield what is wrong with the metadata schema."""
    from dbanon.db import damage, migrate

    try:
        migrate.require_current(session)
    except (NotPermitted, SchemaOutOfDate) as error:
        yield _failure("metadata", str(error), error.hint)
        return
    for part in damage.missing(session):
        yield _failure("metadata", str(part), "dbanon init" if part.mendable else _RESTORE)


def _lost(session: Session) -> Iterator[Finding]:
    """Yield what is served though the ledger is gone."""
    from dbanon.db import damage

    if damage.ledger_is_gone(session):
        hint = "DROP SCHEMA dbanon_data CASCADE drops it; then dbanon init, and publish again"
        for view in damage.unrecorded_views(session, ()):
            message = "it is served, and the ledger is gone: nobody checks what it shows"
            yield _failure(str(view), message, hint)


def _unrecorded(session: Session, served: Sequence[Release]) -> Iterator[Finding]:
    """Yield the views that serve what the ledger does not know."""
    from dbanon.db import damage

    for view in damage.unrecorded_views(session, [release.id for release in served]):
        message = "it is served, and the ledger says nothing of it: nobody checks what it shows"
        yield _failure(str(view), message, f"DROP VIEW {view}, then publish again")


def _policies(session: Session) -> Iterator[Finding]:
    """Yield the policies that cannot be read."""
    from dbanon.db import store

    found: list[PolicyError] = []
    store.list_policies(session, on_unreadable=found.append)
    for error in found:
        yield _failure("policies", str(error), error.hint)


def _releases(session: Session) -> Iterator[Finding]:
    from dbanon.db import diagnosis, store

    yield from _policies(session)
    served = store.releases(session, served=True)
    for release in served:
        yield from _release(session, release)
    yield from _unrecorded(session, served)
    orphans = diagnosis.orphans(session, [release.id for release in served])
    if orphans:
        orphan = TableName("dbanon_data", orphans[0])
        message = f"{len(orphans)} relations in dbanon_data belong to no served release"
        yield Finding(Level.WARNING, "dbanon_data", message, f"DROP TABLE {orphan}")
    if not served:
        yield Finding(Level.OK, "releases", "nothing is published")


def _release(session: Session, release: Release) -> Iterator[Finding]:
    from dbanon.db import catalog

    subject = str(release.relation)
    try:
        published = catalog.describe(session, release.relation)
    except DbanonError as error:
        yield _failure(subject, str(error), f"dbanon release drop {release.id}")
        return
    try:
        source = catalog.describe(session, release.table)
    except TableNotFound:
        drift = gone(release)
        yield Finding(Level.FAILURE, subject, str(drift), drift.hint, drift.exit_code)
        return
    findings = [
        *_served(session, release, published, source),
        *_drifted(session, release, source),
    ]
    yield from findings
    if not findings:
        yield Finding(Level.OK, subject, f"release {release.id} of {release.table}, nothing leaks")


def _served(
    session: Session, release: Release, published: TableInfo, source: TableInfo
) -> Iterator[Finding]:
    """Yield what is wrong with what readers see."""
    from dbanon.db import catalog, diagnosis, seals, views

    subject, repair = str(release.relation), command("dbanon refresh", release.table)
    if not views.serves(session, published.oid, release.id):
        publish = command("dbanon publish", release.table)
        repair = f"DROP VIEW {release.relation}, then {publish}"
    for problem in diagnosis.view_problems(session, published, release=release, source=source):
        yield _failure(subject, problem, repair)
    for function, owner in catalog.foreign_code(session, source):
        problem = f"reading {source.name} may run {function} of {owner}"
        yield _failure(subject, problem, "drop the index, statistics, policy or view that calls it")
    if release.kind is ReleaseKind.VIEW:
        return
    if release.content is None:
        message = "published by an older dbanon: nothing keeps its private copy from being changed"
        yield Finding(Level.WARNING, subject, message, repair)
        return
    for problem, remedy in seals.broken_seals(session, published, release.id):
        yield _failure(subject, problem, remedy or repair)
    if not diagnosis.can_read(session, published):
        yield _unread(release.relation, published.name)
    elif seals.content(session, published) != release.content:
        yield _failure(subject, "it shows other rows or columns than were published", repair)


def _drifted(session: Session, release: Release, source: TableInfo) -> Iterator[Finding]:
    """Yield what changed about the source, and would keep it from being published again."""
    from dbanon.actions.policy import stored_policy
    from dbanon.db import catalog, diagnosis

    subject = str(release.relation)
    try:
        policy = stored_policy(session, source)
    except PolicyError as error:
        yield Finding(Level.FAILURE, subject, str(error), error.hint, DriftError.exit_code)
        return
    found = changes(session, source) or [*misfits(session, source, policy)]
    if not found and diagnosis.can_read(session, source):
        safe = not catalog.foreign_code(session, source)
        found = [*strays(session, source, policy)] if safe else []
    elif not found:
        yield _unread(release.relation, source.name)
    for change in (*gained_rights(session, source, release), *found):
        message = f"{source.name} changed: {change}"
        yield Finding(Level.FAILURE, subject, message, change.hint, DriftError.exit_code)


def _unread(subject: TableName, name: TableName) -> Finding:
    message = f"this role may not read {name}: its rows were not looked at"
    return Finding(Level.WARNING, str(subject), message, f"GRANT SELECT ON {name}")


def _failure(subject: str, message: str, hint: str | None) -> Finding:
    return Finding(Level.FAILURE, subject, message, hint, DbanonError.exit_code)
