"""What an auditor would look at: version, rights, leaks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.actions.doctor.findings import Finding, Level, failure
from dbanon.actions.doctor.served import look_at
from dbanon.domain.errors import NotPermitted, SchemaOutOfDate
from dbanon.domain.table import TableName, quote_identifier
from dbanon.domain.text import command, visible
from dbanon.domain.wording import unaccounted_in_words, unaccounted_remedy
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dbanon.db.session import Session
    from dbanon.domain.errors import PolicyError
    from dbanon.domain.release import Release


_RESTORE = "restore it from a backup: what it held is known to nobody"


def doctor(*, schema: str = "anon", settings: Settings | None = None) -> list[Finding]:
    """Look at the server, the role, the metadata and every served release; change nothing.

    ``schema`` is where the role is to publish, as long as nothing is served yet.
    """
    from dbanon.db.metadata import ledger
    from dbanon.db.session import connect

    with connect(settings or Settings.load()) as session:
        with session.transaction(read_only=True, keep=False):
            damaged = [*_metadata(session)]
            served = [] if damaged else ledger.releases(session, served=True)
            schemas = {release.relation.schema or schema for release in served} or {schema}
            findings = [*_server(session), *_role(session, schemas), *_published(session)]
            findings += damaged or [Finding(Level.OK, "metadata", "the metadata schema is current")]
            if damaged:
                findings += _lost(session)
            else:
                findings += [*_policies(session), *_misused(session)]
                findings += _leftovers(session, served)
        for release in served:
            findings += look_at(session, release)
    return findings


def _server(session: Session) -> Iterator[Finding]:
    from dbanon.db.audit import OLDEST, server_version

    number, name = server_version(session)
    if number < OLDEST * 10_000:
        yield failure("server", f"PostgreSQL {name} is older than {OLDEST}", "upgrade the server")
    else:
        yield Finding(Level.OK, "server", f"PostgreSQL {name}")


def _role(session: Session, schemas: Iterable[str]) -> Iterator[Finding]:
    from dbanon.db import identity, rights
    from dbanon.db.audit import role_facts
    from dbanon.db.session import EVENT_TRIGGER_REMEDY, foreign_event_triggers

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
        yield failure("role", sentence, EVENT_TRIGGER_REMEDY)
    for trigger, function in identity.event_triggers(session):
        message = (
            f"event trigger {trigger} runs {function} at each change of definitions, also those of"
            " dbanon: what opens a table there, as a log does, lets every publication fail"
        )
        hint = f"if it does, ALTER EVENT TRIGGER {trigger} DISABLE while a release is published"
        yield Finding(Level.WARNING, "role", message, hint)


def _published(session: Session) -> Iterator[Finding]:
    """Yield the publications of logical replication that include private tables."""
    from dbanon.db.audit import private_publications

    for name, count in private_publications(session):
        tables = "1 private table" if count == 1 else f"{count} private tables"
        message = f"publication {visible(name)} sends {tables} to its subscribers"
        hint = "replace it by one FOR TABLE, with the tables that subscribers need"
        yield Finding(Level.WARNING, "publications", message, hint)


def _metadata(session: Session) -> Iterator[Finding]:
    """Yield what is wrong with the metadata schema."""
    from dbanon.db.metadata import damage, migrate

    try:
        migrate.require_current(session)
    except (NotPermitted, SchemaOutOfDate) as error:
        yield failure("metadata", str(error), error.hint)
        return
    for part in damage.missing(session):
        yield failure("metadata", str(part), "dbanon init" if part.mendable else _RESTORE)


def _misused(session: Session) -> Iterator[Finding]:
    """Yield the triggers of other tables that call functions of the metadata."""
    from dbanon.db.metadata import damage

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
    """Yield what is served though the ledger is gone."""
    from dbanon.db.metadata import damage

    if damage.ledger_is_gone(session):
        hint = "DROP SCHEMA dbanon_data CASCADE drops it; then dbanon init, and publish again"
        for view, _ in damage.views_of_data(session):
            message = "it is served, and the ledger is gone: nobody checks what it shows"
            yield failure(str(view), message, hint)


def _unrecorded(session: Session) -> Iterator[Finding]:
    """Yield the views that serve what the ledger does not know."""
    from dbanon.db.metadata import damage

    for view in damage.unrecorded_views(session):
        message = "it is served, and the ledger says nothing of it: nobody checks what it shows"
        yield failure(str(view), message, f"DROP VIEW {view}, then publish again")


def _accounts(session: Session) -> Iterator[Finding]:
    """Yield the tables whose account of counts is lost."""
    from dbanon.db.metadata import damage
    from dbanon.db.releases.beside import counts

    for sentence in damage.lost_accounts(session):
        yield failure("metadata", sentence, _RESTORE)
    for name in counts.unaccounted(session):
        yield failure("metadata", unaccounted_in_words(name), unaccounted_remedy(name))


def _policies(session: Session) -> Iterator[Finding]:
    """Yield the policies that cannot be read."""
    from dbanon.db.metadata import store

    found: list[PolicyError] = []
    store.list_policies(session, on_unreadable=found.append)
    for error in found:
        yield failure("policies", str(error), error.hint)


def _leftovers(session: Session, served: Sequence[Release]) -> Iterator[Finding]:
    from dbanon.db import audit

    yield from _unrecorded(session)
    yield from _accounts(session)
    orphans = audit.orphans(session, served)
    if orphans:
        message = f"{len(orphans)} relations in dbanon_data belong to no served release"
        yield Finding(Level.WARNING, "dbanon_data", message, _remedy(session, *orphans[0]))
    if not served:
        yield Finding(Level.OK, "releases", "nothing is published")


def _remedy(session: Session, name: str, kind: str) -> str:
    """Return what drops a relation that no served release needs."""
    from dbanon.db.metadata import ledger
    from dbanon.db.releases.aside import is_retired

    orphan, number = TableName("dbanon_data", name), name.rpartition("_")[2]
    if is_retired(name):
        return f"DROP {kind} {orphan} CASCADE, with what others made of it"
    known = number.isdecimal() and ledger.release_by_id(session, int(number))
    return f"dbanon release drop {number}" if known else f"DROP {kind} {orphan}"
