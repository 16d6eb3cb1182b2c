"""Grant and revoke access to a release, and prove that its readers cannot read the source."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from psycopg import sql

from dbanon.db.metadata.tables import SCHEMA
from dbanon.db.queries import query, relation
from dbanon.db.reach import reach_of, signs_of, targets_of
from dbanon.domain.errors import ConfigError, NotPermitted
from dbanon.domain.table import quote_identifier

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dbanon.db.reach import Reach
    from dbanon.db.session import Session
    from dbanon.domain.table import TableName

Statement = sql.Composed


def require_roles(session: Session, roles: Sequence[str]) -> None:
    """Raise ConfigError if a grantee is not a role of this server; PUBLIC always is."""
    asked = [role for role in roles if role != "public"]
    known = session.pg.execute(query("rights.existing_roles"), (asked,)).fetchall() if asked else ()
    if missing := [role for role in asked if (role,) not in known]:
        raise ConfigError(
            f"there is no role {', '.join(missing)}",
            hint='createuser, or CREATE ROLE "name" in psql',
        )


def has_ledger(session: Session) -> bool:
    """Return True if the current role may read the ledger."""
    return session.one(query("rights.has_ledger")) == (True,)


def lacking_temporary(session: Session, role: str) -> str | None:
    """Return the GRANT that a role needs to create temporary tables, None if it may."""
    row = session.pg.execute(query("rights.temporary"), (role,)).fetchone()
    if row is None or row[0]:
        return None
    database, grantee = quote_identifier(row[1]), quote_identifier(role)
    return f"GRANT TEMPORARY ON DATABASE {database} TO {grantee}"


def grant_statements(view: TableName, roles: Sequence[str]) -> Iterator[sql.Composed]:
    """Yield the grants that let roles read a release and check it."""
    for role in roles:
        grantee = sql.Identifier(role)
        for schema in (view.schema or "public", SCHEMA):
            yield sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(sql.Identifier(schema), grantee)
        yield sql.SQL("GRANT SELECT ON {} TO {}").format(relation(view), grantee)


def revoke_statement(view: TableName, role: str) -> sql.Composed:
    """Compose the REVOKE of a release from a role, and from its own grantees."""
    return sql.SQL("REVOKE ALL ON {} FROM {} CASCADE").format(relation(view), sql.Identifier(role))


def take_from_all(session: Session, name: TableName) -> None:
    """Revoke a relation from all but its owner; takes no lock that conflicts with readers."""
    grants = session.pg.execute(query("rights.grants"), (name.schema, name.name)).fetchall()
    for role in {grantee or "public" for grantee, *_ in grants}:
        session.pg.execute(revoke_statement(name, role))


def schema_statement(schema: str, role: str) -> sql.Composed:
    """Compose the REVOKE of USAGE on a schema."""
    return sql.SQL("REVOKE USAGE ON SCHEMA {} FROM {}").format(
        sql.Identifier(schema), sql.Identifier(role)
    )


class Direct(NamedTuple):
    """A right granted to a role directly; schema is None for a right on the relation."""

    role: str
    schema: str | None
    privilege: str
    grantor: str


def direct_grants(
    session: Session, roles: Sequence[str], *, published: int, schemas: Sequence[str]
) -> list[Direct]:
    """Return the rights that roles were granted directly, on a relation and on schemas."""
    parameters = {"roles": list(roles), "published": published, "schemas": list(schemas)}
    return [Direct(*row) for row in session.pg.execute(query("rights.direct_grants"), parameters)]


def needed_schemas(
    session: Session,
    roles: Sequence[str],
    *,
    schemas: Sequence[str],
    served: Mapping[str, str | None],
) -> dict[tuple[str, str], str]:
    """Return by role and schema an object for which the role needs USAGE; served: name patterns."""
    parameters = {
        "roles": list(roles),
        "schemas": list(schemas),
        "endings": list(served),
        "comments": list(served.values()),
    }
    rows = session.pg.execute(query("rights.needed_schemas"), parameters).fetchall()
    return {(role, schema): name for role, schema, name in rows}


def still_readable_by(session: Session, roles: Sequence[str], *, published: int) -> list[str]:
    """Return the roles that can read a relation, by any right."""
    parameters = {"roles": list(roles), "published": published}
    return [row[0] for row in session.pg.execute(query("rights.still_readable_by"), parameters)]


def readers(session: Session, relations: Sequence[int], *, source: int) -> set[str]:
    """Return the roles that can read some relations, but not the source, and are not owners."""
    if not relations:
        return set()
    parameters = {"relations": list(relations), "source": source}
    return {row[0] for row in session.pg.execute(query("rights.readers"), parameters)}


def require_readable(session: Session, roles: Sequence[str], *, published: int) -> None:
    """Raise NotPermitted if a grant had no effect: without grant option GRANT only warns."""
    asked = {"roles": list(roles), "published": published}
    rows = session.pg.execute(query("rights.unreadable_by"), asked).fetchall() if roles else ()
    if rows:
        raise NotPermitted(
            f"{', '.join(row[0] for row in rows)} cannot read the release after the grant",
            hint="let the owner of the schema grant USAGE on it",
        )


def require_separation(session: Session, *, published: int, sources: Sequence[int]) -> list[Reach]:
    """Raise NotPermitted for access paths to private data; returns possible ones, for review."""
    targets = targets_of(session, published=published, sources=sources)
    ways = reach_of(session, targets)
    if ways:
        told = "; ".join(str(way) for way in ways[:5])
        more = f"; and {len(ways) - 5} more" if len(ways) > 5 else ""  # noqa: PLR2004
        raise NotPermitted(
            f"a role that may read the release also gets at what it hides: {told}{more}",
            hint=f"{ways[0].remedy}, or grant the release to another role",
        )
    return signs_of(session, targets)
