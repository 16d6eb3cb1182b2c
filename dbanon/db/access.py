"""Grant a published relation, and prove that its grantees can read nothing else of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg import sql

from dbanon.db.metadata import SCHEMA
from dbanon.db.queries import query, relation
from dbanon.domain.errors import ConfigError, NotPermitted
from dbanon.domain.table import TableName

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dbanon.db.session import Session


def require_roles(session: Session, roles: Sequence[str]) -> None:
    """Raise ConfigError when a grantee is no role of this server; PUBLIC always is one."""
    rows = session.pg.execute(query("existing_roles"), (list(roles),)).fetchall()
    known = {row[0] for row in rows} | {"public"}
    missing = [role for role in roles if role not in known]
    if missing:
        raise ConfigError(
            f"there is no role {', '.join(missing)}",
            hint='createuser, or CREATE ROLE "name" in psql',
        )


def grant_statements(view: TableName, roles: Sequence[str]) -> Iterator[sql.Composed]:
    """Yield the grants that let roles read a release, and check it for themselves."""
    for role in roles:
        grantee = sql.Identifier(role)
        for schema in (view.schema or "public", SCHEMA):
            yield sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(sql.Identifier(schema), grantee)
        yield sql.SQL("GRANT SELECT ON {} TO {}").format(relation(view), grantee)


def require_readable(session: Session, roles: Sequence[str], *, published: int) -> None:
    """Raise NotPermitted when a grant did not take: without grant option GRANT only warns."""
    rows = session.pg.execute(
        query("unreadable_by"), {"roles": list(roles), "published": published}
    ).fetchall()
    if rows:
        raise NotPermitted(
            f"{', '.join(row[0] for row in rows)} cannot read the release after the grant",
            hint="let the owner of the schema grant USAGE on it",
        )


def private_readers(
    session: Session, *, published: int, source: int
) -> list[tuple[str, TableName]]:
    """Return (grantee, relation) for every private relation that a grantee can read."""
    rows = session.pg.execute(
        query("readers_of_private"), {"published": published, "source": source}
    ).fetchall()
    return [(role, TableName(schema, name)) for role, schema, name in rows]


def require_separation(session: Session, *, published: int, source: int) -> None:
    """Raise NotPermitted naming the grantees who can read what the release hides."""
    readers = private_readers(session, published=published, source=source)
    if readers:
        found = "; ".join(f"{role} can read {name}" for role, name in readers[:5])
        more = f"; and {len(readers) - 5} more" if len(readers) > 5 else ""  # noqa: PLR2004
        raise NotPermitted(
            f"a role that may read the release can also read what it hides: {found}{more}",
            hint="revoke that right, or grant the release to another role",
        )
