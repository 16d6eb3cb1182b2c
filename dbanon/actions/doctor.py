"""Check versions, privileges, possible leaks and the state of all releases."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from dbanon.actions.preparation.inputs import is_dealt_by_seed
from dbanon.actions.preparation.loading import (
    changes,
    gained_rights,
    gone,
    load,
    notes,
    out_of_domain,
    targets_of,
    violations,
    warnings_of_release,
)
from dbanon.actions.releases.check import explain
from dbanon.actions.releases.ledger import retained
from dbanon.db import audit, catalog, identity, rights
from dbanon.db.audit import OLDEST, hidden, private_publications, role_facts, server_version
from dbanon.db.metadata import damage, ledger, migrate, store
from dbanon.db.proofs import checks
from dbanon.db.releases import companion_relations, guards, immutability
from dbanon.db.releases.aside import is_retired
from dbanon.db.releases.companion_relations import BUCKETS, LABELS
from dbanon.db.releases.relations import read_promise
from dbanon.db.schemas import DATA_SCHEMA
from dbanon.db.session import EVENT_TRIGGER_REMEDY, Session, connect, foreign_event_triggers
from dbanon.domain.errors import (
    DatabaseError,
    DbanonError,
    DriftError,
    NotPermitted,
    PolicyError,
    SchemaOutOfDate,
    TableNotFound,
)
from dbanon.domain.messages import unaccounted_in_words, unaccounted_remedy
from dbanon.domain.policy import policy_option
from dbanon.domain.release import Release, Verdict
from dbanon.domain.table import TableInfo, TableName, quote_identifier
from dbanon.domain.text import command, visible
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dbanon.domain.drift import Change
_RESTORE = "restore it from a backup: what it held is known to nobody"


class Level(StrEnum):
    """The severity of a finding."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True)
class Finding:
    """One checked fact; ``exit_code`` is its exit code for the command."""

    level: Level
    subject: str
    message: str
    hint: str | None = None
    exit_code: int = 0


def _failure(subject: str, message: str, hint: str | None) -> Finding:
    return Finding(Level.FAILURE, subject, message, hint, DbanonError.exit_code)


def doctor(*, schema: str = "anon", settings: Settings | None = None) -> list[Finding]:
    """Check server, role, metadata and releases; ``schema`` is the one for first releases."""
    with connect(settings or Settings.load()) as session:
        with session.transaction(read_only=True, keep=False):
            damaged, served = [*_metadata(session)], []
            try:
                served = [] if damaged else ledger.releases(session, served=True)
            except DatabaseError as error:
                damaged = [_failure("ledger", str(error), error.hint)]
            schemas = {release.relation.schema or schema for release in served} or {schema}
            findings = [*_server(session), *_role(session, schemas), *_published(session)]
            findings += damaged or [Finding(Level.OK, "metadata", "the metadata schema is current")]
            if damaged:
                findings += _lost(session)
            else:
                findings += [*_policies(session), *_misused(session)]
                findings += _leftovers(session, served)
        for release in served:
            findings += _look_at(session, release)
    return findings


def _server(session: Session) -> Iterator[Finding]:
    number, name = server_version(session)
    if number < OLDEST * 10_000:
        yield _failure("server", f"PostgreSQL {name} is older than {OLDEST}", "upgrade the server")
    else:
        yield Finding(Level.OK, "server", f"PostgreSQL {name}")


def _role(session: Session, schemas: Iterable[str]) -> Iterator[Finding]:
    role = role_facts(session, schemas)
    if role.superuser:
        message = f"{role.name} is a superuser, which dbanon refuses to publish as"
        yield Finding(Level.WARNING, "role", message, "CREATE ROLE publisher LOGIN")
    else:
        yield Finding(Level.OK, "role", f"{role.name} is an ordinary role")
    if not role.can_create:
        hint = f"let a DBA run: {command('dbanon init --role', role.name)}"
        message = f"{role.name} cannot create schemas in this database"
        yield Finding(Level.WARNING, "role", message, hint)
    if grant := rights.lacking_temporary(session, role.name):
        message = f"{role.name} cannot make temporary tables, which publish and history need"
        yield Finding(Level.WARNING, "role", message, grant)
    for sentence in foreign_event_triggers(session.pg):
        yield _failure("role", sentence, EVENT_TRIGGER_REMEDY)
    for trigger, function in identity.event_triggers(session):
        message = (
            f"event trigger {trigger} runs {function} at each change of definitions, also those of"
            " dbanon: what opens a table there, as a log does, lets every publication fail"
        )
        hint = f"if it does, ALTER EVENT TRIGGER {trigger} DISABLE while a release is published"
        yield Finding(Level.WARNING, "role", message, hint)


def _published(session: Session) -> Iterator[Finding]:
    """Yield the logical publications and the roles that have private tables."""
    tables = "{} private table{}"
    for name, count in private_publications(session):
        private = tables.format(count, "" if count == 1 else "s")
        message = f"publication {visible(name)} sends {private} to its subscribers"
        hint = "replace it by one FOR TABLE, with the tables that subscribers need"
        yield Finding(Level.WARNING, "publications", message, hint)
    for name, schema, found in audit.private_readers(session):
        grantee = quote_identifier(name) if name else "PUBLIC"
        private = tables.format(len(found), "" if len(found) == 1 else "s")
        of, named = "keys and hashes of persons", ", ".join(found)
        if schema == DATA_SCHEMA:
            of, named = "classes of source rows", f"ALL TABLES IN SCHEMA {schema}"
        message = f"{grantee} has the right to read {private} with the {of}"
        hint = f"REVOKE ALL ON {named} FROM {grantee}"
        yield Finding(Level.WARNING, schema, message, hint)


def _metadata(session: Session) -> Iterator[Finding]:
    try:
        migrate.require_current(session)
    except (NotPermitted, SchemaOutOfDate) as error:
        yield _failure("metadata", str(error), error.hint)
        return
    for part in damage.missing(session):
        yield _failure("metadata", str(part), "dbanon init" if part.mendable else _RESTORE)


def _misused(session: Session) -> Iterator[Finding]:
    """Yield triggers of other tables that call functions of the metadata."""
    for trigger, table, function in damage.foreign_triggers(session):
        name = quote_identifier(trigger)
        yield Finding(
            Level.WARNING,
            "metadata",
            f"trigger {name} of {table} runs {function}, which refuses it now; before an upgrade"
            " its owner may have used the rights of the owner of the metadata",
            f"DROP TRIGGER {name} ON {table}; then look at what roles may do and who may read",
        )


def _lost(session: Session) -> Iterator[Finding]:
    """Yield the served relations if the ledger is missing."""
    if any((part.kind, part.name) == ("table", "release") for part in damage.missing(session)):
        hint = "DROP SCHEMA dbanon_data CASCADE drops it; then dbanon init, and publish again"
        for view, _ in damage.views_of_data(session):
            message = "it is served, and the ledger is gone: nobody checks what it shows"
            yield _failure(str(view), message, hint)


def _accounts(session: Session) -> Iterator[Finding]:
    """Yield the tables with lost accounts of noisy counts."""
    for sentence in damage.lost_accounts(session):
        yield _failure("metadata", sentence, _RESTORE)
    for name in companion_relations.unaccounted_counts(session):
        yield _failure("metadata", unaccounted_in_words(name), unaccounted_remedy(name))


def _policies(session: Session) -> Iterator[Finding]:
    found: list[PolicyError] = []
    store.list_policies(session, on_unreadable=found.append)
    for error in found:
        yield _failure("policies", str(error), error.hint)
    for table, approval in store.approvals(session):
        if approval.is_open:
            message = f"version {approval.version} of policy {approval.policy} of {table} is"
            message += " not approved: it publishes nothing"
            hint = command("dbanon policy approve", table, options=policy_option(approval.policy))
            yield Finding(Level.WARNING, "policies", message, hint)
    if store.demands_approval(session):
        yield Finding(Level.OK, "policies", "only approved policies are published")


def _leftovers(session: Session, served: Sequence[Release]) -> Iterator[Finding]:
    for view in damage.unrecorded_views(session):
        message = "it is served, but not in the ledger, so that no command checks it"
        yield _failure(str(view), message, f"DROP VIEW {view}, then publish again")
    yield from _accounts(session)
    orphans = audit.orphans(session, served)
    if orphans:
        message = f"{len(orphans)} relations in dbanon_data belong to no served release"
        yield Finding(Level.WARNING, "dbanon_data", message, _remedy(session, *orphans[0]))
    if not served:
        yield Finding(Level.OK, "releases", "nothing is published")


def _remedy(session: Session, name: str, kind: str) -> str:
    orphan, number = TableName("dbanon_data", name), name.rpartition("_")[2]
    if is_retired(name):
        return f"DROP {kind} {orphan} CASCADE, with what others made of it"
    of_release = number.isdecimal() and not name.startswith("places_")
    known = of_release and ledger.release_by_id(session, int(number))
    return f"dbanon release drop {number}" if known else f"DROP {kind} {orphan}"


def _look_at(session: Session, release: Release) -> list[Finding]:
    """Check the catalogs, the safely readable rows and the policy of a release.

    Each in its own transaction: printing a definition opens its relations, while the other steps
    may open only admitted ones.
    """
    subject = str(release.relation)
    findings: list[Finding] = []
    try:
        with session.transaction(read_only=True, keep=False):
            findings += _described(session, release)
        with session.transaction(read_only=True, keep=False):
            findings += _rows(session, release)
            identity.require_admitted(session)
        with session.transaction(read_only=True, keep=False):
            findings += _out_of_domain(session, release)
        with session.transaction(read_only=True, keep=False):
            # A source that has drifted from its policy is not read further.
            is_whole = not any(finding.exit_code for finding in findings)
            for warning in warnings_of_release(session, release) if is_whole else ():
                findings.append(Finding(Level.WARNING, subject, str(warning), warning.hint))
            identity.require_admitted(session)
    except DbanonError as error:
        findings.append(_failure(subject, str(error), error.hint))
    if all(finding.level is Level.OK for finding in findings):
        message = f"release {release.id} of {release.table}, no leak found"
        findings.append(Finding(Level.OK, subject, message))
    return findings


def _described(session: Session, release: Release) -> Iterator[Finding]:
    """Yield findings from the catalogs; reads no rows."""
    subject = str(release.relation)
    try:
        published = catalog.describe(session, release.relation)
    except DbanonError as error:
        yield _failure(subject, str(error), f"dbanon release drop {release.id}")
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
    for sign in rights.signs_of(session, targets):  # possible access paths, for review
        yield Finding(Level.WARNING, subject, str(sign), sign.remedy)


def _served(
    session: Session, release: Release, published: TableInfo, source: TableInfo
) -> Iterator[Finding]:
    """Yield defects of the served relation."""
    subject, repair = str(release.relation), command("dbanon refresh", release.table)
    if not identity.serves(session, published.oid, release.data_id):
        publish = command("dbanon publish", release.table)
        repair = f"DROP VIEW {release.relation}, then {publish}"
    for problem in audit.view_problems(session, published, release=release, source=source):
        yield _failure(subject, problem, repair)
    if release.policy.labels and LABELS.find(session, release.relation) is None:
        yield _failure(subject, "its labels are gone, or others can change them", repair)
    if release.policy.anatomy and BUCKETS.find(session, release.relation) is None:
        problem = "its sensitive values are gone, or others can change them"
        yield _failure(subject, problem, repair)
    if is_dealt_by_seed(release):
        problem = "its buckets were dealt by a seed: the order of the table reveals exact values"
        publish = command("dbanon publish", release.table, options="--new-series")
        yield _failure(subject, problem, f"dbanon release drop {release.id}, then {publish}")
    for problem in identity.strangers(session, published, release.data_id):
        yield _failure(subject, problem, "let this role or the owner of the database own it")
    for relation in (source, published):
        for function, owner in identity.foreign_code(session, relation):
            problem = f"reading {relation.name} may run {function} of {owner}"
            hint = "drop the index, statistics, policy or view that calls it"
            yield _failure(subject, problem, hint)
    yield from _compared(session, release, source)
    yield from _retained(session, release)
    yield from _stale(session, release)
    yield from _defined(session, release, published, repair=repair)


def _compared(session: Session, release: Release, source: TableInfo) -> Iterator[Finding]:
    """Yield readers with access to another series, which manual grants may have caused."""
    from dbanon.db.histories import readers

    others = readers.of_others(session, source, release=release.id)
    for role in readers.in_common(session, others, table=source, relation=release.relation):
        problem = f"{role} can read it and another series of releases of {release.table}"
        hint = "dbanon revoke one of them: whoever has both could compare them"
        yield _failure(str(release.relation), problem, hint)


def _retained(session: Session, release: Release) -> Iterator[Finding]:
    """Yield the deleted persons that are still published; overdue ones are a failure."""
    try:
        subject, found = str(release.relation), retained(session, release)
    except PolicyError:
        return  # reported with the comparison of the policy
    if found.overdue:
        yield _failure(subject, str(found), command("dbanon refresh", release.table))
    elif found.rows:
        yield Finding(Level.OK, subject, str(found))


def _stale(session: Session, release: Release) -> Iterator[Finding]:
    """Yield a warning if more rows show former values than the policy allows."""
    try:
        stored = store.load_stored(session, release.table, release.policy_name)
    except PolicyError:
        return  # reported with the comparison of the policy
    policy = release.policy if stored is None else stored.policy
    found = release.stale_beyond(policy.max_stale)
    if found is not None:
        options = "--name NAME --new-series --recipients-changed"
        repair = command("dbanon publish", release.table, options=options)
        yield Finding(Level.WARNING, str(release.relation), found, repair)


def _defined(
    session: Session, release: Release, published: TableInfo, *, repair: str
) -> Iterator[Finding]:
    """Yield differences between a release and its published definition, from the catalogs."""
    subject = str(release.relation)
    if release.content is None:
        message = "the digest of what was published is gone: a change would go unnoticed"
        yield _failure(subject, message, repair)
    if release.kind.is_live:
        for change in guards.alterations(session, release):
            yield _failure(subject, change, repair)
        if release.content is None:
            return
        same = immutability.same_definition(session, published.oid, release.content)
        if same is None:
            message = "published on another version of PostgreSQL: its definition was not compared"
            yield Finding(Level.WARNING, subject, message, repair)
        elif not same:
            yield _failure(subject, "its definition is not the one that was published", repair)
    else:
        for broken in immutability.broken_seals(session, published.oid, release.data_id):
            yield _failure(subject, broken.problem, broken.remedy or repair)


def _rows(session: Session, release: Release) -> Iterator[Finding]:
    subject = str(release.relation)
    with suppress(TableNotFound):
        published = catalog.describe(session, release.relation)
        if not audit.can_read(session, published):
            yield _unread(release.relation, published.name)
        elif identity.is_release(session, published, release.data_id):
            identity.hold(session, published)
            identity.require_release(session, published, release.data_id)
            identity.admit(session, published)
            look = _live if release.kind.is_live else _copied
            yield from look(session, release, published)
        else:
            message = "its rows were not looked at: it is not safe to read"
            yield Finding(Level.WARNING, subject, message, "dbanon release list")


def _copied(session: Session, release: Release, published: TableInfo) -> Iterator[Finding]:
    """Yield differences between the rows of a table release and the published ones."""
    if release.content is None:
        return
    beside = []
    if release.policy.anatomy:
        if BUCKETS.find(session, release.relation) is None:
            return  # which is reported already
        beside.append(catalog.describe_source(session, BUCKETS.name(release.relation)))
    shown = immutability.content(session, published, *beside)
    if shown != immutability.shown_content(release.content):
        message = "it shows other rows or columns than were published"
        yield _failure(str(release.relation), message, command("dbanon refresh", release.table))


def _live(session: Session, release: Release, published: TableInfo) -> Iterator[Finding]:
    """Yield classes of a live view that fail now; counts all rows."""
    subject, repair = str(release.relation), command("dbanon refresh", release.table)
    promise = read_promise(session, published)
    if promise is None:
        return  # which is reported already
    report = checks.prove(session, published, promise)
    if report.verdict is Verdict.FAILED:
        yield _failure(subject, explain(report), repair)
    elif guards.alterations(session, release):
        return  # so it shows nothing, which is reported already
    elif not report.passed:
        message = "it shows nothing: every class of it failed since it was published"
        yield Finding(Level.WARNING, subject, message, repair)
    elif (found := hidden(session, release)) is not None and found.total:
        yield Finding(Level.WARNING, subject, str(found), repair)


def _out_of_domain(session: Session, release: Release) -> Iterator[Finding]:
    """Yield out-of-domain values of the source, if its policy fits otherwise."""
    try:
        source = catalog.describe(session, release.table)
        loaded = load(session, source, release.policy_name)
        if changes(loaded) or [*violations(loaded)]:
            return
    except (PolicyError, TableNotFound):
        return
    if not audit.can_read(session, source):
        yield _unread(release.relation, source.name)
    elif not identity.foreign_code(session, source):
        identity.hold(session, source)
        identity.admit(session, source)
        yield from _as_drift(release, source, out_of_domain(session, loaded))
        identity.require_admitted(session)


def _drifted(
    session: Session, release: Release, source: TableInfo, targets: Sequence[Mapping[str, object]]
) -> Iterator[Finding]:
    """Yield changes of the source that prevent publishing it again."""
    subject = str(release.relation)
    yield from _as_drift(release, source, gained_rights(session, release, targets))
    try:
        loaded = load(session, source, release.policy_name)
        found = changes(loaded) or [*violations(loaded)]
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


def _unread(subject: TableName, name: TableName) -> Finding:
    message = f"this role may not read {name}: its rows were not looked at"
    return Finding(Level.WARNING, str(subject), message, f"GRANT SELECT ON {name} TO ...")
