"""What the relations beside a release have in common: they are found, shared and dropped with it.

Each is an ordinary table in the schema of the view, so that it may be filled anew while others read
it, and nobody but the publisher may change it.
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
    """What has the name: its OID, None if nothing has it, and whether it is dbanon's."""

    oid: int | None = None
    is_ours: bool = False


@dataclass(frozen=True, slots=True)
class Beside:
    """A kind of relation beside a view.

    key: of the policy that asks for it; ending: what its name has after that of the view; sentence:
    its comment, by which it is known, with a place for the view.
    """

    key: str
    ending: str
    sentence: str

    def name(self, view: TableName) -> TableName:
        """Return its name beside a view; raises ConfigError if that is too long."""
        name = f"{view.name}{self.ending}"
        if len(name.encode()) > LONGEST_NAME:
            raise ConfigError(
                f"the {self.key} of {view} takes a name of more than {LONGEST_NAME} bytes",
                hint=f"publish under a shorter --name, or take {self.key} out of the policy",
            )
        return TableName(view.schema, name)

    def comment(self, view: TableName) -> str:
        """Return what it says of itself beside a view."""
        return self.sentence.format(view)

    @property
    def comment_pattern(self) -> str:
        """What its comment beside any view is like."""
        return self.sentence.format("%")

    def looked_up(self, session: Session, view: TableName) -> Found:
        """Return what has its name beside a view."""
        parameters = {
            "schema": view.schema,
            "name": f"{view.name}{self.ending}",
            "view": view.name,
            "comment": self.comment(view),
        }
        row = session.pg.execute(query("releases.relation_beside"), parameters).fetchone()
        return Found() if row is None else Found(row[0], bool(row[1]))

    def find(self, session: Session, view: TableName) -> int | None:
        """Return its OID beside a view, None if there is none of dbanon's."""
        oid, is_ours = self.looked_up(session, view)
        return oid if is_ours else None

    def require_free(self, session: Session, view: TableName) -> Found:
        """Return what has its name; raises ConfigError when that is something else."""
        found = self.looked_up(session, view)
        if found.oid is not None and not found.is_ours:
            raise ConfigError(
                f"{self.name(view)} exists, and is no relation of {self.key} that only this role"
                " can change",
                hint=f"publish under another --name, or take {self.key} out of the policy",
            )
        return found

    def statements(self, view: TableName, create: sql.Composed) -> list[sql.Composed]:
        """Return what makes it, empty and for nobody; create: what makes the table."""
        name = relation(self.name(view))
        comment = sql.Literal(self.comment(view))
        return [
            create,
            identity_statement(name),
            sql.SQL("COMMENT ON TABLE {} IS {}").format(name, comment),
            sql.SQL("REVOKE ALL ON {} FROM PUBLIC").format(name),
        ]

    def share(self, session: Session, view: TableName) -> None:
        """Give whoever may read the view the same right, take it from all others, and admit it."""
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
        """Take it away when the policy asks for it no more; who reads it keeps nobody waiting.

        One that cannot be dropped yet, or that a view of others needs, stays without rows or
        rights.
        """
        oid = self.find(session, view)
        if oid is None:
            return
        self.withdraw(session, view)
        session.admitted[oid] = self.name(view)
        with suppress(Held, views.DependedOn):
            patiently(session, partial(self.drop, session, view), on=[], budget=0)
            identity.dismiss(session, self.name(view))

    def withdraw(self, session: Session, view: TableName) -> None:
        """Take it away from everybody, without a lock that readers stand in."""
        if self.find(session, view) is not None:
            name = self.name(view)
            rights.take_from_all(session, name)
            self.empty(session, view)

    def empty(self, session: Session, view: TableName) -> None:
        """Delete all of its rows, while others may read it."""
        session.pg.execute(sql.SQL("DELETE FROM ONLY {}").format(relation(self.name(view))))

    def set_aside(self, session: Session, view: TableName, *, oid: int) -> TableName | None:
        """Free its name for one of other columns, in short attempts.

        Returns its new name if others depend on it. Raises DatabaseError when somebody would not
        stop reading it.
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
        """Drop it, if it is there; raises DependedOn when others need it."""
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
    """Return what ends the names of the relations of a release, with LIKE patterns of comments.

    The view itself has any comment.
    """
    return {"": None} | {kind.ending: kind.comment_pattern for kind in KINDS}


def present(session: Session, view: TableName) -> dict[Beside, int]:
    """Return the OID of each relation beside a view."""
    found = {kind: kind.find(session, view) for kind in KINDS}
    return {kind: oid for kind, oid in found.items() if oid is not None}


def grant_statements(session: Session, view: TableName, roles: Sequence[str]) -> list[sql.Composed]:
    """Return the grants that let roles read what is beside a view."""
    return [
        sql.SQL("GRANT SELECT ON {} TO {}").format(relation(kind.name(view)), sql.Identifier(role))
        for kind in present(session, view)
        for role in roles
    ]


def revoke_statements(
    session: Session, view: TableName, roles: Sequence[str]
) -> list[sql.Composed]:
    """Return what takes what is beside a view away from roles."""
    return [
        rights.revoke_statement(kind.name(view), role)
        for kind in present(session, view)
        for role in roles
    ]
