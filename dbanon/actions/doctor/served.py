"""What is wrong with a release that is served: its definition, its rows, its source."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from dbanon.actions.doctor.findings import Finding, Level, failure
from dbanon.actions.preparation.fingerprint import is_dealt_by_seed
from dbanon.actions.preparation.loading import (
    changes,
    gained_rights,
    gone,
    load,
    misfits,
    notes,
    strays,
    targets_of,
)
from dbanon.domain.checks import Verdict
from dbanon.domain.errors import DbanonError, DriftError, PolicyError, TableNotFound
from dbanon.domain.release import ReleaseKind
from dbanon.domain.text import command

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dbanon.db.session import Session
    from dbanon.domain.drift import Change
    from dbanon.domain.release import Release
    from dbanon.domain.table import TableInfo, TableName


def look_at(session: Session, release: Release) -> list[Finding]:
    """Look at what the catalogs tell of a release, at rows that are safe to read, at its policy.

    Each in a transaction of its own: to print a definition opens what it is about, and what the
    others open is all that they were to read.
    """
    from dbanon.actions.preparation.cautions import of_release
    from dbanon.db import identity

    subject = str(release.relation)
    findings: list[Finding] = []
    try:
        with session.transaction(read_only=True, keep=False):
            findings += _described(session, release)
        with session.transaction(read_only=True, keep=False):
            findings += _rows(session, release)
            identity.require_admitted(session)
        with session.transaction(read_only=True, keep=False):
            findings += _strays(session, release)
        with session.transaction(read_only=True, keep=False):
            # A source that is no longer what the policy knew is read no further.
            is_whole = not any(finding.exit_code for finding in findings)
            for caution in of_release(session, release, look=True) if is_whole else ():
                findings.append(Finding(Level.WARNING, subject, caution.with_code, caution.hint))
            identity.require_admitted(session)
    except DbanonError as error:
        findings.append(failure(subject, str(error), error.hint))
    if all(finding.level is Level.OK for finding in findings):
        message = f"release {release.id} of {release.table}, nothing leaks"
        findings.append(Finding(Level.OK, subject, message))
    return findings


def _described(session: Session, release: Release) -> Iterator[Finding]:
    """Yield what the catalogs tell; reads no row."""
    from dbanon.db import catalog

    subject = str(release.relation)
    try:
        published = catalog.describe(session, release.relation)
    except DbanonError as error:
        yield failure(subject, str(error), f"dbanon release drop {release.id}")
        return
    try:
        source = catalog.describe(session, release.table)
    except TableNotFound:
        drift = gone(session, release)
        yield Finding(Level.FAILURE, subject, str(drift), drift.hint, drift.exit_code)
        return
    yield from _served(session, release, published, source)
    targets = targets_of(session, release)
    yield from _drifted(session, release, source, targets)
    yield from _suspected(session, release, targets)


def _served(
    session: Session, release: Release, published: TableInfo, source: TableInfo
) -> Iterator[Finding]:
    """Yield what is wrong with what readers see."""
    from dbanon.db import audit, identity
    from dbanon.db.releases.beside.relations import BUCKETS, LABELS

    subject, repair = str(release.relation), command("dbanon refresh", release.table)
    if not identity.serves(session, published.oid, release.data_id):
        publish = command("dbanon publish", release.table)
        repair = f"DROP VIEW {release.relation}, then {publish}"
    for problem in audit.view_problems(session, published, release=release, source=source):
        yield failure(subject, problem, repair)
    if release.policy.labels and LABELS.find(session, release.relation) is None:
        yield failure(subject, "its labels are gone, or others can change them", repair)
    if release.policy.anatomy and BUCKETS.find(session, release.relation) is None:
        problem = "its sensitive values are gone, or others can change them"
        yield failure(subject, problem, repair)
    if is_dealt_by_seed(release):
        problem = "its buckets were dealt by a seed: the order of the table reveals exact values"
        publish = command("dbanon publish", release.table, options="--new-series")
        yield failure(subject, problem, f"dbanon release drop {release.id}, then {publish}")
    for problem in identity.strangers(session, published, release.data_id):
        yield failure(subject, problem, "let this role or the owner of the database own it")
    for relation in (source, published):
        for function, owner in identity.foreign_code(session, relation):
            problem = f"reading {relation.name} may run {function} of {owner}"
            hint = "drop the index, statistics, policy or view that calls it"
            yield failure(subject, problem, hint)
    yield from _compared(session, release, source)
    yield from _lingering(session, release)
    yield from _defined(session, release, published, repair=repair)


def _compared(session: Session, release: Release, source: TableInfo) -> Iterator[Finding]:
    """Yield who reads another series, too: grants that were made by hand are not looked at then."""
    from dbanon.db.histories import readers

    others = readers.of_others(session, source, release=release.id)
    for role in readers.in_common(session, others, table=source, relation=release.relation):
        problem = f"{role} can read it and another series of releases of {release.table}"
        hint = "dbanon revoke one of them: whoever has both could compare them"
        yield failure(str(release.relation), problem, hint)


def _lingering(session: Session, release: Release) -> Iterator[Finding]:
    """Yield who is shown though gone, and whether for longer than the policy promises."""
    from dbanon.actions.releases.history import lingering

    try:
        subject, found = str(release.relation), lingering(session, release)
    except PolicyError:
        return  # which is reported where the policy is compared
    if found.overdue:
        yield failure(subject, str(found), command("dbanon refresh", release.table))
    elif found.rows:
        yield Finding(Level.OK, subject, str(found))


def _defined(
    session: Session, release: Release, published: TableInfo, *, repair: str
) -> Iterator[Finding]:
    """Yield how a release differs from what was published, as far as the catalogs tell."""
    from dbanon.db.releases import immutability
    from dbanon.db.releases.live import marks

    subject = str(release.relation)
    if release.content is None:
        message = "the digest of what was published is gone: a change would go unnoticed"
        yield failure(subject, message, repair)
    if release.kind is ReleaseKind.VIEW:
        for change in marks.alterations(session, release):
            yield failure(subject, change, repair)
        if release.content is None:
            return
        same = immutability.same_definition(session, published, release.content)
        if same is None:
            message = "published on another version of PostgreSQL: its definition was not compared"
            yield Finding(Level.WARNING, subject, message, repair)
        elif not same:
            yield failure(subject, "its definition is not the one that was published", repair)
    else:
        for broken in immutability.broken_seals(session, published.oid, release.data_id):
            yield failure(subject, broken.problem, broken.remedy or repair)


def _rows(session: Session, release: Release) -> Iterator[Finding]:
    """Yield what the rows tell that readers see, and those of the source."""
    from dbanon.db import audit, catalog, identity

    subject = str(release.relation)
    with suppress(TableNotFound):
        published = catalog.describe(session, release.relation)
        if not audit.can_read(session, published):
            yield _unread(release.relation, published.name)
        elif identity.is_release(session, published, release.data_id):
            identity.hold(session, published)
            identity.require_release(session, published, release.data_id)
            identity.admit(session, published)
            look = _copied if release.kind is ReleaseKind.TABLE else _live
            yield from look(session, release, published)
        else:
            message = "its rows were not looked at: it is not safe to read"
            yield Finding(Level.WARNING, subject, message, "dbanon release list")


def _copied(session: Session, release: Release, published: TableInfo) -> Iterator[Finding]:
    """Yield how what a table release shows differs from what was published."""
    from dbanon.db import catalog
    from dbanon.db.releases import immutability
    from dbanon.db.releases.beside.relations import BUCKETS

    if release.content is None:
        return
    beside = []
    if release.policy.anatomy:
        if BUCKETS.find(session, release.relation) is None:
            return  # which is reported already
        beside.append(catalog.describe_source(session, BUCKETS.name(release.relation)))
    if immutability.content(session, published, *beside) != release.content:
        message = "it shows other rows or columns than were published"
        yield failure(str(release.relation), message, command("dbanon refresh", release.table))


def _live(session: Session, release: Release, published: TableInfo) -> Iterator[Finding]:
    """Yield whether what a live view shows holds by now: all is counted."""
    from dbanon.actions.releases.check import explain
    from dbanon.db.hidden import hidden
    from dbanon.db.proofs import checks
    from dbanon.db.releases.guarantee import read_promise
    from dbanon.db.releases.live import marks

    subject, repair = str(release.relation), command("dbanon refresh", release.table)
    promise = read_promise(session, published)
    if promise is None:
        return  # which is reported already
    report = checks.prove(session, published, promise)
    if report.verdict is Verdict.FAILED:
        yield failure(subject, explain(report), repair)
    elif marks.alterations(session, release):
        return  # so it shows nothing, which is reported already
    elif not report.passed:
        message = "it shows nothing: every class of it failed since it was published"
        yield Finding(Level.WARNING, subject, message, repair)
    elif (found := hidden(session, release)) is not None and found.total:
        yield Finding(Level.WARNING, subject, str(found), repair)


def _strays(session: Session, release: Release) -> Iterator[Finding]:
    """Yield the values of the source that its policy has no place for, if it fits otherwise."""
    from dbanon.db import audit, catalog, identity

    try:
        source = catalog.describe(session, release.table)
        loaded = load(session, source, release.policy_name)
        if changes(loaded) or [*misfits(loaded)]:
            return
    except (PolicyError, TableNotFound):
        return
    if not audit.can_read(session, source):
        yield _unread(release.relation, source.name)
    elif not identity.foreign_code(session, source):
        identity.hold(session, source)
        identity.admit(session, source)
        yield from _as_drift(release, source, strays(session, loaded))
        identity.require_admitted(session)


def _drifted(
    session: Session, release: Release, source: TableInfo, targets: Sequence[Mapping[str, object]]
) -> Iterator[Finding]:
    """Yield what changed about the source, and would keep it from being published again."""
    subject = str(release.relation)
    yield from _as_drift(release, source, gained_rights(session, release, targets))
    try:
        loaded = load(session, source, release.policy_name)
        found = changes(loaded) or [*misfits(loaded)]
    except PolicyError as error:
        yield Finding(Level.FAILURE, subject, str(error), error.hint, DriftError.exit_code)
        return
    yield from _as_drift(release, source, found)
    for note in notes(loaded):
        yield Finding(Level.OK, subject, f"{source.name} changed: {note.message}", note.hint)


def _as_drift(release: Release, source: TableInfo, changes: Iterable[Change]) -> Iterator[Finding]:
    for change in changes:
        message = f"{source.name} changed: {change}"
        yield Finding(
            Level.FAILURE, str(release.relation), message, change.hint, DriftError.exit_code
        )


def _suspected(
    session: Session, release: Release, targets: Sequence[Mapping[str, object]]
) -> Iterator[Finding]:
    """Yield what may lead readers to what is hidden, for somebody to look at."""
    from dbanon.db import reach

    for sign in reach.signs_of(session, targets):
        yield Finding(Level.WARNING, str(release.relation), str(sign), sign.remedy)


def _unread(subject: TableName, name: TableName) -> Finding:
    message = f"this role may not read {name}: its rows were not looked at"
    return Finding(Level.WARNING, str(subject), message, f"GRANT SELECT ON {name} TO ...")
