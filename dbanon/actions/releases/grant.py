"""Grant and revoke access to releases."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dbanon.db import catalog, identity, rights
from dbanon.db.metadata import ledger
from dbanon.db.metadata.migrate import current_session, require_current
from dbanon.db.queries import printed
from dbanon.db.releases import companion_relations, relations
from dbanon.db.releases.publication_lock import with_retry
from dbanon.db.schemas import SCHEMA
from dbanon.db.session import Session, connect
from dbanon.domain.errors import ConfigError, NotPermitted, TableNotFound
from dbanon.domain.notices import Notice, Topic
from dbanon.domain.outcomes import Operation
from dbanon.domain.table import TableName, quote_identifier
from dbanon.domain.text import command, visible
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dbanon.db.rights import Statement
    from dbanon.domain.release import Release


@dataclass(frozen=True, slots=True)
class Access:
    """The changed rights on one relation.

    ``statements`` were run; ``changed`` is True if any right differs now; ``remarks`` list
    remaining rights, and possible access paths to private data.
    """

    relation: TableName
    release: int
    roles: tuple[str, ...]
    statements: tuple[str, ...]
    changed: bool
    remarks: tuple[Notice, ...] = ()


def grant(
    relation: str | TableName,
    roles: Sequence[str],
    *,
    dry_run: bool = False,
    settings: Settings | None = None,
) -> list[Access]:
    """Grant roles access to a published relation, or to all served ones of a table; idempotent.

    Grants SELECT, and USAGE on the schema and on ``dbanon``, which has the check functions.
    Everything is rolled back if a reader could then also reach private data, or with ``dry_run``.
    Raises NotPermitted, ConfigError, DatabaseError.
    """

    def work(session: Session) -> list[Access]:
        rights.require_roles(session, roles)
        given = []
        served = list(_published(session, _served(session, relation)))
        for release, published in served:
            statements = list(rights.grant_statements(release.relation, roles))
            statements += companion_relations.grant_statements(session, release.relation, roles)
            done = _run(session, release, published, roles, statements=statements)
            sources = [catalog.describe(session, name).oid for name in release.sources]
            rights.require_readable(session, roles, published=published)
            signs = rights.require_separation(session, published=published, sources=sources)
            given.append(replace(done, remarks=tuple(sign.notice for sign in signs)))
            _require_one_series(session, release)
        _require_nothing_else(session, served)
        return given

    return _settled(_operation(relation, "granted"), work, settings, keep=not dry_run)


def revoke(
    relation: str | TableName,
    roles: Sequence[str],
    *,
    dry_run: bool = False,
    settings: Settings | None = None,
) -> list[Access]:
    """Revoke access to a published relation, or to all served ones of a table; idempotent.

    CASCADE includes rights that these roles granted. USAGE on a schema is revoked if nothing needs
    it; ``remarks`` lists what stays. Raises NotPermitted if a right by another grantor remains,
    ConfigError, DatabaseError.
    """

    def work(session: Session) -> list[Access]:
        rights.require_roles(session, roles)
        taken = []
        served = list(_published(session, _served(session, relation)))
        for release, published in served:
            statements = [rights.revoke_statement(release.relation, role) for role in roles]
            statements += companion_relations.revoke_statements(session, release.relation, roles)
            taken.append(_run(session, release, published, roles, statements=statements))
            _require_gone(session, release, roles, published=published)
        left = [_with_schemas(session, one) for one in taken]
        _require_nothing_else(session, served)
        return left

    return _settled(_operation(relation, "revoked"), work, settings, keep=not dry_run)


def readers_of(
    views: Sequence[TableName], *, settings: Settings | None = None
) -> list[tuple[str, ...]]:
    """Return the roles that were granted access to each published relation."""
    with current_session(settings or Settings.load()) as session:
        return [relations.readers(session, view) for view in views]


def _require_nothing_else(session: Session, served: Sequence[tuple[Release, int]]) -> None:
    """Raise DatabaseError if an event trigger opened a relation other than the releases."""
    oids = [published for _, published in served]
    for release, _ in served:
        oids += companion_relations.present(session, release.relation).values()
    identity.require_nothing_else(session, oids)


def _require_one_series(session: Session, release: Release) -> None:
    """Raise NotPermitted if a reader could compare releases that are for different audiences."""
    from dbanon.db.histories import readers

    table = catalog.describe(session, release.table)
    others = readers.of_others(session, table, release=release.id)
    readers.require_others(session, others, table=table, relation=release.relation)


def _operation(relation: str | TableName, done: str) -> Operation:
    return Operation(f"access to {relation}", done, "the same command again, which does no harm")


def _settled(
    operation: Operation,
    work: Callable[[Session], list[Access]],
    settings: Settings | None,
    *,
    keep: bool,
) -> list[Access]:
    """Run the work in one transaction, retried if a publication changed the same rights.

    It waits for no search, because publications lock rights only shortly before their commit.
    """
    with connect(settings or Settings.load(), writes=True) as session:
        require_current(session)
        return with_retry(session, operation, keep=keep, work=lambda: work(session))


def _served(session: Session, relation: str | TableName) -> list[Release]:
    """Return the release that a relation serves, or all of a table; raises ConfigError."""
    name = catalog.describe(session, TableName.parse(relation), hint="dbanon release list").name
    served = ledger.served_release(session, name)
    releases = [served] if served else ledger.releases(session, table=name, served=True)
    if not releases:
        hint = command("dbanon publish", name, options="--k 5")
        raise ConfigError(f"{name} is not published", hint=hint)
    return releases


def _published(session: Session, releases: Sequence[Release]) -> Iterator[tuple[Release, int]]:
    for release in releases:
        try:
            published = catalog.describe(session, release.relation)
        except TableNotFound as error:
            raise ConfigError(str(error), hint="dbanon doctor") from None
        identity.require_release(session, published, release.data_id)
        yield release, published.oid


def _schemas(relation: TableName) -> list[str]:
    return [relation.schema or "public", SCHEMA]


def _run(
    session: Session,
    release: Release,
    published: int,
    roles: Sequence[str],
    *,
    statements: list[Statement],
) -> Access:
    """Run the statements, and detect if the roles' direct rights changed."""
    schemas = _schemas(release.relation)
    before = rights.direct_grants(session, roles, published=published, schemas=schemas)
    for statement in statements:
        session.pg.execute(statement)
    after = rights.direct_grants(session, roles, published=published, schemas=schemas)
    texts = tuple(map(printed, statements))
    return Access(release.relation, release.id, tuple(roles), texts, changed=before != after)


def _require_gone(
    session: Session, release: Release, roles: Sequence[str], *, published: int
) -> None:
    """Raise NotPermitted for rights that REVOKE left, because another role granted them."""
    left = rights.direct_grants(session, roles, published=published, schemas=())
    if left:
        raise NotPermitted(
            f"{visible(left[0].role)} still has {left[0].privilege} on {release.relation},"
            f" given by {left[0].grantor}",
            hint=command("dbanon revoke", release.relation, left[0].grantor),
        )


def _with_schemas(session: Session, taken: Access) -> Access:
    """Revoke USAGE on schemas that are not needed any more, and list the remaining rights."""
    published = relations.oid_of(session, taken.relation) or 0
    schemas = [schema for schema in _schemas(taken.relation) if schema != "public"]
    has = rights.direct_grants(session, taken.roles, published=published, schemas=schemas)
    comments = {kind.ending: kind.comment_pattern for kind in companion_relations.KINDS}
    served = {"": None, **comments}  # a view may have any comment
    needed = rights.needed_schemas(session, taken.roles, schemas=schemas, served=served)
    statements, remarks = list(taken.statements), []
    for role, schema in sorted(
        {(g.role, g.schema) for g in has if g.schema is not None and g.privilege == "USAGE"}
    ):
        if (role, schema) in needed:
            use = f"USAGE on {quote_identifier(schema)}, for {visible(needed[role, schema])}"
            remarks.append(Notice(Topic.REMAINING_ACCESS, f"{visible(role)} keeps {use}"))
        else:
            statement = rights.schema_statement(schema, role)
            session.pg.execute(statement)
            statements.append(printed(statement))
    remarks += [
        Notice(Topic.REMAINING_ACCESS, f"{visible(role)} can still read {taken.relation}")
        for role in rights.still_readable_by(session, taken.roles, published=published)
    ]
    changed = taken.changed or len(statements) > len(taken.statements)
    return replace(taken, statements=tuple(statements), remarks=tuple(remarks), changed=changed)
