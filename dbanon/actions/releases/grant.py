"""Let roles read what is published, and take it away again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dbanon.domain.deeds import Deed
from dbanon.domain.errors import ConfigError, NotPermitted, TableNotFound
from dbanon.domain.table import TableName, quote_identifier
from dbanon.domain.text import command, visible
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dbanon.db.rights import Statement
    from dbanon.db.session import Session
    from dbanon.domain.release import Release


@dataclass(frozen=True, slots=True)
class Access:
    """What became of the rights on one relation.

    ``statements`` is what was run; ``changed`` whether any right is another now; ``remarks`` say
    what a role still has, and what may lead readers to what is hidden.
    """

    relation: TableName
    release: int
    roles: tuple[str, ...]
    statements: tuple[str, ...]
    changed: bool
    remarks: tuple[str, ...] = ()


def grant(
    relation: str | TableName,
    roles: Sequence[str],
    *,
    dry_run: bool = False,
    settings: Settings | None = None,
) -> list[Access]:
    """Let roles read a published relation, or every one that is served of a table; idempotent.

    Gives SELECT, and USAGE on the schema and on ``dbanon``, whose functions readers check with.
    One transaction: when a reader could then also read what a release hides, all of it is undone.
    With ``dry_run`` it is undone in any case. Raises NotPermitted, ConfigError, DatabaseError.
    """
    from dbanon.db import catalog, rights
    from dbanon.db.releases.beside import relations as beside

    def work(session: Session) -> list[Access]:
        rights.require_roles(session, roles)
        given = []
        served = list(_published(session, _served(session, relation)))
        for release, published in served:
            statements = list(rights.grant_statements(release.relation, roles))
            statements += beside.grant_statements(session, release.relation, roles)
            done = _run(session, release, published, roles, statements=statements)
            sources = [catalog.describe(session, name).oid for name in release.sources]
            rights.require_readable(session, roles, published=published)
            signs = rights.require_separation(session, published=published, sources=sources)
            remarks = tuple(f"{sign}: {sign.remedy}" for sign in signs)
            given.append(replace(done, remarks=remarks))
            _require_one_series(session, release)
        _require_nothing_else(session, served)
        return given

    return _settled(_deed(relation, "granted"), work, settings, keep=not dry_run)


def revoke(
    relation: str | TableName,
    roles: Sequence[str],
    *,
    dry_run: bool = False,
    settings: Settings | None = None,
) -> list[Access]:
    """Take a published relation, or all that are served of a table, away from roles; idempotent.

    Whom such a role gave it to loses it too. The use of a schema goes when nothing there needs
    it; what stays is told in ``remarks``. Raises NotPermitted when a right remains that somebody
    else gave, ConfigError, DatabaseError.
    """
    from dbanon.db import rights
    from dbanon.db.releases.beside import relations as beside

    def work(session: Session) -> list[Access]:
        rights.require_roles(session, roles)
        taken = []
        served = list(_published(session, _served(session, relation)))
        for release, published in served:
            statements = [rights.revoke_statement(release.relation, role) for role in roles]
            statements += beside.revoke_statements(session, release.relation, roles)
            taken.append(_run(session, release, published, roles, statements=statements))
            _require_gone(session, release, roles, published=published)
        left = [_with_schemas(session, one) for one in taken]
        _require_nothing_else(session, served)
        return left

    return _settled(_deed(relation, "revoked"), work, settings, keep=not dry_run)


def _require_nothing_else(session: Session, served: Sequence[tuple[Release, int]]) -> None:
    """Raise DatabaseError if an event trigger opened anything but what the releases show."""
    from dbanon.db import identity
    from dbanon.db.releases.beside import relations as beside

    oids = [published for _, published in served]
    for release, _ in served:
        oids += beside.present(session, release.relation).values()
    identity.require_nothing_else(session, oids)


def _require_one_series(session: Session, release: Release) -> None:
    """Raise NotPermitted when somebody could compare releases that are said to be for others."""
    from dbanon.db import catalog
    from dbanon.db.histories import readers

    table = catalog.describe(session, release.table)
    others = readers.of_others(session, table, release=release.id)
    readers.require_others(session, others, table=table, relation=release.relation)


def _deed(relation: str | TableName, done: str) -> Deed:
    return Deed(f"access to {relation}", done, "the same command again, which does no harm")


def _settled(
    deed: Deed,
    work: Callable[[Session], list[Access]],
    settings: Settings | None,
    *,
    keep: bool,
) -> list[Access]:
    """Do the work in one transaction, whatever is being published meanwhile.

    It waits for no search: rights on the view are locked only while a publication that is about
    to be committed puts the view in its place, and such a publication keeps what was changed
    before.
    """
    from dbanon.db.metadata.migrate import require_current
    from dbanon.db.releases.turns import settled
    from dbanon.db.session import connect

    with connect(settings or Settings.load(), writes=True) as session:
        require_current(session)
        return settled(session, deed, keep=keep, work=lambda: work(session))


def _served(session: Session, relation: str | TableName) -> list[Release]:
    """Return the release that a relation serves, or all of a table; raises ConfigError."""
    from dbanon.db import catalog
    from dbanon.db.metadata import ledger

    where = relation if isinstance(relation, TableName) else TableName.parse(relation)
    name = catalog.describe(session, where, hint="dbanon release list").name
    served = ledger.served_release(session, name)
    releases = [served] if served else ledger.releases(session, table=name, served=True)
    if not releases:
        hint = command("dbanon publish", name, options="--k 5")
        raise ConfigError(f"{name} is not published", hint=hint)
    return releases


def _published(session: Session, releases: Sequence[Release]) -> Iterator[tuple[Release, int]]:
    """Yield each release with the OID of the view that serves it; raises ConfigError."""
    from dbanon.db import catalog, identity

    for release in releases:
        try:
            published = catalog.describe(session, release.relation)
        except TableNotFound as error:
            raise ConfigError(str(error), hint="dbanon doctor") from None
        identity.require_release(session, published, release.data_id)
        yield release, published.oid


def _schemas(relation: TableName) -> list[str]:
    """Return the schemas that a reader of a relation uses."""
    from dbanon.db.metadata.tables import SCHEMA

    return [relation.schema or "public", SCHEMA]


def _run(
    session: Session,
    release: Release,
    published: int,
    roles: Sequence[str],
    *,
    statements: list[Statement],
) -> Access:
    """Run the statements and tell whether they changed what the roles were given."""
    from dbanon.db import rights

    schemas = _schemas(release.relation)
    before = rights.direct_grants(session, roles, published=published, schemas=schemas)
    for statement in statements:
        session.pg.execute(statement)
    after = rights.direct_grants(session, roles, published=published, schemas=schemas)
    from dbanon.db.printing import printed

    texts = tuple(map(printed, statements))
    return Access(release.relation, release.id, tuple(roles), texts, changed=before != after)


def _require_gone(
    session: Session, release: Release, roles: Sequence[str], *, published: int
) -> None:
    """Raise NotPermitted for a right that REVOKE left, as it does for what others gave."""
    from dbanon.db import rights

    left = rights.direct_grants(session, roles, published=published, schemas=())
    if left:
        raise NotPermitted(
            f"{visible(left[0].role)} still has {left[0].privilege} on {release.relation},"
            f" given by {left[0].grantor}",
            hint=command("dbanon revoke", release.relation, left[0].grantor),
        )


def _with_schemas(session: Session, taken: Access) -> Access:
    """Take the use of schemas that are needed no more, and say what the roles still have."""
    from dbanon.db import rights
    from dbanon.db.printing import printed
    from dbanon.db.releases import views
    from dbanon.db.releases.beside import relations as beside

    published = views.oid_of(session, taken.relation) or 0
    schemas = [schema for schema in _schemas(taken.relation) if schema != "public"]
    has = rights.direct_grants(session, taken.roles, published=published, schemas=schemas)
    needed = rights.needed_schemas(
        session, taken.roles, schemas=schemas, served=beside.comments_by_ending()
    )
    statements, remarks = list(taken.statements), []
    for role, schema in sorted(
        {(g.role, g.schema) for g in has if g.schema is not None and g.privilege == "USAGE"}
    ):
        if (role, schema) in needed:
            use = f"USAGE on {quote_identifier(schema)}, for {visible(needed[role, schema])}"
            remarks.append(f"{visible(role)} keeps {use}")
        else:
            statement = rights.schema_statement(schema, role)
            session.pg.execute(statement)
            statements.append(printed(statement))
    remarks += [
        f"{visible(role)} can still read {taken.relation}:"
        " as a member of another role, or like everybody"
        for role in rights.still_readable_by(session, taken.roles, published=published)
    ]
    changed = taken.changed or len(statements) > len(taken.statements)
    return replace(taken, statements=tuple(statements), remarks=tuple(remarks), changed=changed)
