"""Grant a published relation, and prove that its grantees can read nothing else of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

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


class Reach(NamedTuple):
    """A way by which a reader of a release, acting as some role, gets at what is private.

    kind: table, view, materialized view, function, default privileges, replication or files;
    schema and name say which.
    """

    reader: str
    acting: str
    kind: str
    schema: str
    name: str

    def __str__(self) -> str:
        """Say who reads what, and by which role if it is not the reader's own right."""
        what = TableName(self.schema, self.name)
        means = {
            "table": f"can read {what}",
            "view": f"can read {what}, a view of what is private",
            "materialized view": f"can read {what}, a materialized view of what is private",
            "function": f"can call {what}, which reads what is private as its owner",
            "default privileges": f"is given SELECT on new tables in {self.schema} by default",
            "replication": "can replicate what is private"
            + (f" (publication {self.name})" if self.name else ""),
            "files": "can read the files of the server",
        }
        role = "" if self.acting == self.reader else f" as {self.acting}"
        return f"{self.reader} {means[self.kind]}{role}"


def private_reach(session: Session, *, published: int, source: int) -> list[Reach]:
    """Return every way by which a reader of a release can also read what it hides."""
    rows = session.pg.execute(query("reach"), {"published": published, "source": source}).fetchall()
    return [Reach(*row) for row in rows]


def require_separation(session: Session, *, published: int, source: int) -> None:
    """Raise NotPermitted naming who can read what the release hides, and through what."""
    found = private_reach(session, published=published, source=source)
    if found:
        told = "; ".join(str(reach) for reach in found[:5])
        more = f"; and {len(found) - 5} more" if len(found) > 5 else ""  # noqa: PLR2004
        raise NotPermitted(
            f"a role that may read the release can also read what it hides: {told}{more}",
            hint="revoke that right, or grant the release to another role",
        )
