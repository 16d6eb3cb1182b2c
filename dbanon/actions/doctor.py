"""What an auditor would look at: version, rights, leaks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from dbanon.domain.errors import (
    DbanonError,
    DriftError,
    NotPermitted,
    PolicyError,
    SchemaOutOfDate,
)
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dbanon.db.session import Session
    from dbanon.domain.release import Release


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
        current = _metadata(session)
        findings.append(current)
        if current.level is Level.OK:
            findings += _releases(session)
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


def _metadata(session: Session) -> Finding:
    from dbanon.db import migrate

    try:
        migrate.require_current(session)
    except (NotPermitted, SchemaOutOfDate) as error:
        return _failure("metadata", str(error), error.hint)
    return Finding(Level.OK, "metadata", "the metadata schema is current")


def _releases(session: Session) -> Iterator[Finding]:
    from dbanon.db import diagnosis, store

    served = store.releases(session, served=True)
    for release in served:
        yield from _release(session, release)
    orphans = diagnosis.orphans(session, [release.id for release in served])
    if orphans:
        message = f"{len(orphans)} relations in dbanon_data belong to no served release"
        yield Finding(Level.WARNING, "dbanon_data", message, f"DROP TABLE dbanon_data.{orphans[0]}")
    if not served:
        yield Finding(Level.OK, "releases", "nothing is published")


def _release(session: Session, release: Release) -> Iterator[Finding]:
    from dbanon.db import access, catalog, diagnosis

    subject = str(release.relation)
    try:
        published = catalog.describe(session, release.relation)
        source = catalog.describe(session, release.table)
    except DbanonError as error:
        yield _failure(subject, str(error), f"dbanon release drop {release.id}")
        return
    problems = [
        *diagnosis.view_problems(session, published, release=release, source=source),
        *(
            f"{role} may read it and can also read {name}"
            for role, name in access.private_readers(
                session, published=published.oid, source=source.oid
            )
        ),
    ]
    for problem in problems:
        yield _failure(subject, problem, f"dbanon publish {release.table}")
    drift = _drift(session, release)
    if drift is not None:
        yield drift
    elif not problems:
        yield Finding(Level.OK, subject, f"release {release.id} of {release.table}, nothing leaks")


def _drift(session: Session, release: Release) -> Finding | None:
    from dbanon.actions.policy import stored_policy, validate_policy
    from dbanon.db import catalog

    try:
        source = catalog.describe(session, release.table)
        validate_policy(session, stored_policy(session, source), source)
    except PolicyError as error:
        message = f"{release.table} no longer matches its policy: {error}"
        return Finding(
            Level.FAILURE, str(release.relation), message, error.hint, DriftError.exit_code
        )
    return None


def _failure(subject: str, message: str, hint: str | None) -> Finding:
    return Finding(Level.FAILURE, subject, message, hint, DbanonError.exit_code)
