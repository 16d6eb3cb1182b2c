"""Find, share and drop the companion relations of a view.

Each is a table in the schema of the view: its rows can be replaced while others read it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from psycopg import sql

from dbanon.db import identity, rights
from dbanon.db.locks import Held, patiently
from dbanon.db.queries import query, relation
from dbanon.db.releases import aside, views
from dbanon.db.releases.publication import identity_statement
from dbanon.domain.errors import ConfigError, DatabaseError
from dbanon.domain.table import LONGEST_NAME, TableName

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dbanon.db.session import Session


class Found(NamedTuple):
    """The relation that has a name: its OID (None if there is none), and True if dbanon made it."""

    oid: int | None = None
    is_ours: bool = False


@dataclass(frozen=True, slots=True)
class Beside:
    """A kind of companion relation, identified by its comment.

    key: the policy key that turns it on; ending: the suffix of its name; sentence: its comment,
    with a slot for the view.
    """

    key: str
    ending: str
    sentence: str

    def name(self, view: TableName) -> TableName:
        """Return the name of the relation for a view; raises ConfigError if it is too long."""
        name = f"{view.name}{self.ending}"
        if len(name.encode()) > LONGEST_NAME:
            raise ConfigError(
                f"the {self.key} of {view} takes a name of more than {LONGEST_NAME} bytes",
                hint=f"publish under a shorter --name, or take {self.key} out of the policy",
            )
        return TableName(view.schema, name)

    def comment(self, view: TableName) -> str:
        """Return the comment of the relation for a view."""
        return self.sentence.format(view)

    @property
    def comment_pattern(self) -> str:
        """The LIKE pattern of its comment for any view."""
        return self.sentence.format("%")

    def looked_up(self, session: Session, view: TableName) -> Found:
        """Look up the relation by its name."""
        parameters = {
            "schema": view.schema,
            "name": f"{view.name}{self.ending}",
            "view": view.name,
            "comment": self.comment(view),
        }
        row = session.pg.execute(query("releases.relation_beside"), parameters).fetchone()
        return Found() if row is None else Found(row[0], bool(row[1]))

    def find(self, session: Session, view: TableName) -> int | None:
        """Return the OID of dbanon's relation for a view, None if there is none."""
        oid, is_ours = self.looked_up(session, view)
        return oid if is_ours else None

    def require_free(self, session: Session, view: TableName) -> Found:
        """Look up the relation by its name; raises ConfigError if it is not dbanon's."""
        found = self.looked_up(session, view)
        if found.oid is not None and not found.is_ours:
            raise ConfigError(
                f"{self.name(view)} exists, and is no relation of {self.key} that only this role"
                " can change",
                hint=f"publish under another --name, or take {self.key} out of the policy",
            )
        return found

    def statements(self, view: TableName, create: sql.Composed) -> list[sql.Composed]:
        """Return the statements that create it, empty and without rights; create: CREATE TABLE."""
        name = relation(self.name(view))
        comment = sql.Literal(self.comment(view))
        return [
            create,
            identity_statement(name),
            sql.SQL("COMMENT ON TABLE {} IS {}").format(name, comment),
            sql.SQL("REVOKE ALL ON {} FROM PUBLIC").format(name),
        ]

    def share(self, session: Session, view: TableName) -> None:
        """Grant SELECT to exactly the roles that may read the view, and admit the table."""
        name = self.name(view)
        wanted = {grant for grant in views.grants(session, view) if grant.privilege == "SELECT"}
        wanted = {grant for grant in wanted if grant.column is None}
        present = set(views.grants(session, name))
        for grant in present - wanted:
            session.pg.execute(rights.revoke_statement(name, grant.grantee or "public"))
        for grant in wanted - (present if present <= wanted else set()):
            session.pg.execute(grant.statement(name))
        made = self.find(session, view)
        if made is not None:
            session.admitted[made] = name

    def retire(self, session: Session, view: TableName) -> None:
        """Withdraw the relation, and drop it unless a lock or another object prevents that."""
        oid = self.find(session, view)
        if oid is None:
            return
        self.withdraw(session, view)
        session.admitted[oid] = self.name(view)
        with suppress(Held, views.DependedOn):
            patiently(session, partial(self.drop, session, view), on=[], budget=0)
            identity.dismiss(session, self.name(view))

    def withdraw(self, session: Session, view: TableName) -> None:
        """Revoke all rights and delete all rows; takes no lock that conflicts with readers."""
        if self.find(session, view) is not None:
            name = self.name(view)
            rights.take_from_all(session, name)
            self.empty(session, view)

    def empty(self, session: Session, view: TableName) -> None:
        """Delete all rows, without blocking readers."""
        session.pg.execute(sql.SQL("DELETE FROM ONLY {}").format(relation(self.name(view))))

    def set_aside(self, session: Session, view: TableName, *, oid: int) -> TableName | None:
        """Free the name for a table with other columns, in short lock attempts.

        Returns the new name of the previous table if others depend on it. Raises DatabaseError if a
        session does not release it.
        """
        name = self.name(view)
        left: list[TableName | None] = []

        def act() -> None:
            left[:] = [aside.set_aside(session, name, oid=oid)]

        try:
            patiently(session, act, on=[oid], budget=views.PATIENCE)
        except Held as held:
            raise DatabaseError(
                f"{name} gets other columns, and {held} is using it; nothing was published",
                hint=f"{held.remedy}run the command again",
            ) from None
        identity.dismiss(session, name)
        return left[0]

    def drop(self, session: Session, view: TableName) -> None:
        """Drop the relation if it exists; raises DependedOn if other objects depend on it."""
        if self.find(session, view) is not None:
            name = self.name(view)
            with views.dropping(name):
                session.pg.execute(sql.SQL("DROP TABLE {}").format(relation(name)))


LABELS = Beside("labels", "_labels", "what is above the labels of {}; made by dbanon")
BUCKETS = Beside(
    "anatomy", "_sensitive", "the sensitive values of the buckets of {}; made by dbanon"
)
COUNTS = Beside("counts", "_counts", "counts with noise, beside {}; made by dbanon")
KINDS = (LABELS, BUCKETS, COUNTS)


def comments_by_ending() -> dict[str, str | None]:
    """Return the LIKE patterns of comments by name suffix; the view may have any (None)."""
    return {"": None} | {kind.ending: kind.comment_pattern for kind in KINDS}


def present(session: Session, view: TableName) -> dict[Beside, int]:
    """Return the OID of each companion relation of a view."""
    found = {kind: kind.find(session, view) for kind in KINDS}
    return {kind: oid for kind, oid in found.items() if oid is not None}


def grant_statements(session: Session, view: TableName, roles: Sequence[str]) -> list[sql.Composed]:
    """Return the statements that grant SELECT on the companion relations to roles."""
    return [
        sql.SQL("GRANT SELECT ON {} TO {}").format(relation(kind.name(view)), sql.Identifier(role))
        for kind in present(session, view)
        for role in roles
    ]


def revoke_statements(
    session: Session, view: TableName, roles: Sequence[str]
) -> list[sql.Composed]:
    """Return the statements that revoke rights on the companion relations from roles."""
    return [
        rights.revoke_statement(kind.name(view), role)
        for kind in present(session, view)
        for role in roles
    ]
