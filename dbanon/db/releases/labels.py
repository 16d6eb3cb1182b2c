"""The relation in which readers of a release look up what is above its labels.

It is an ordinary table beside the view: what it holds, the view shows, or says no more than what it
shows. So there is nothing in it to guard, and it may be filled anew while others read it.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from psycopg import sql

from dbanon.db import identity, rights
from dbanon.db.locks import Held, patiently
from dbanon.db.queries import identifiers, query, relation, template
from dbanon.db.releases import views
from dbanon.domain.assignment import LabelNode
from dbanon.domain.errors import ConfigError
from dbanon.domain.table import LONGEST_NAME, TableName

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session
    from dbanon.domain.assignment import ValueColumn

_ENDING = "_labels"
_COLUMNS = ("column_name", *LabelNode._fields)


def name_beside(view: TableName) -> TableName:
    """Return the name of the relation of labels of a view; raises ConfigError if it is too long."""
    name = f"{view.name}{_ENDING}"
    if len(name.encode()) > LONGEST_NAME:
        raise ConfigError(
            f"the labels of {view} need a name of more than {LONGEST_NAME} bytes",
            hint="publish under a shorter --name, or take labels out of the policy",
        )
    return TableName(view.schema, name)


def find(session: Session, view: TableName) -> int | None:
    """Return the OID of the labels of a view, None if there are none of dbanon's."""
    oid, is_ours, _ = _looked_up(session, view)
    return oid if is_ours else None


def _looked_up(session: Session, view: TableName) -> tuple[int | None, bool, bool]:
    name = TableName(view.schema, f"{view.name}{_ENDING}")
    parameters = {
        "schema": name.schema,
        "name": name.name,
        "view": view.name,
        "comment": _comment(view),
    }
    row = session.pg.execute(query("releases/labels_relation"), parameters).fetchone()
    return (None, False, False) if row is None else (row[0], bool(row[1]), row[2])


def _comment(view: TableName) -> str:
    return f"what is above the labels of {view}; made by dbanon"


def statements(publication: Publication) -> Iterator[sql.Composed]:
    """Yield what makes the empty relation, if the policy asks for it."""
    if not publication.policy.labels:
        return
    labels = relation(name_beside(publication.view))
    yield template("releases/create_labels", labels=labels)
    yield sql.SQL("COMMENT ON TABLE {} IS {}").format(
        labels, sql.Literal(_comment(publication.view))
    )
    yield sql.SQL("REVOKE ALL ON {} FROM PUBLIC").format(labels)


def publish(session: Session, publication: Publication, columns: Iterable[ValueColumn]) -> None:
    """Let readers of the view read what is above its labels, or nothing of the kind.

    Raises ConfigError when the name is that of something else.
    """
    view = publication.view
    if not publication.policy.labels:
        _retire(session, view)
        return
    name = name_beside(view)
    oid, is_ours, is_narrow = _looked_up(session, view)
    if oid is not None and not is_ours:
        raise ConfigError(
            f"{name} exists, and is no relation of labels that only this role can change",
            hint="publish under another --name, or take labels out of the policy",
        )
    for statement in statements(publication) if oid is None else ():
        session.pg.execute(statement)
    if oid is not None and is_narrow:
        patiently(session, partial(_widen, session, name), on=[oid], budget=views.PATIENCE)
    _fill(session, name, columns)
    _share(session, view, name)
    made = find(session, view)
    if made is not None:
        session.admitted[made] = name


def _retire(session: Session, view: TableName) -> None:
    """Take labels away that the policy asks for no more; who reads them keeps nobody waiting.

    Those that cannot be dropped yet, or that a view of others needs, stay without rows or rights.
    """
    oid = find(session, view)
    if oid is None:
        return
    withdraw(session, view)
    session.admitted[oid] = name_beside(view)
    with suppress(Held, views.DependedOn):
        patiently(session, partial(drop, session, view), on=[], budget=0)
        identity.dismiss(session, name_beside(view))


def _widen(session: Session, name: TableName) -> None:
    session.pg.execute(template("releases/widen_labels", labels=relation(name)))


def _fill(session: Session, name: TableName, columns: Iterable[ValueColumn]) -> None:
    session.pg.execute(sql.SQL("DELETE FROM ONLY {}").format(relation(name)))
    copy = sql.SQL("COPY {} ({}) FROM STDIN").format(relation(name), identifiers(_COLUMNS))
    with session.pg.cursor().copy(copy) as rows:
        for column in columns:
            for node in column.nodes:
                rows.write_row((column.name, *node))


def _share(session: Session, view: TableName, name: TableName) -> None:
    """Give whoever may read the view the same right, and take it from all others."""
    wanted = {grant for grant in views.grants(session, view) if grant.privilege == "SELECT"}
    wanted = {grant for grant in wanted if grant.column is None}
    present = set(views.grants(session, name))
    for grant in present - wanted:
        session.pg.execute(rights.revoke_statement(name, grant.grantee or "public"))
    for grant in wanted - (present if present <= wanted else set()):
        session.pg.execute(grant.statement(name))


def grant_statements(session: Session, view: TableName, roles: Sequence[str]) -> list[sql.Composed]:
    """Return the grants that let roles read the labels of a view, if it has some."""
    if find(session, view) is None:
        return []
    labels = relation(name_beside(view))
    return [
        sql.SQL("GRANT SELECT ON {} TO {}").format(labels, sql.Identifier(role)) for role in roles
    ]


def revoke_statements(
    session: Session, view: TableName, roles: Sequence[str]
) -> list[sql.Composed]:
    """Return what takes the labels of a view away from roles, if it has some."""
    if find(session, view) is None:
        return []
    return [rights.revoke_statement(name_beside(view), role) for role in roles]


def withdraw(session: Session, view: TableName) -> None:
    """Take the labels of a view away from everybody, without a lock that readers stand in."""
    if find(session, view) is not None:
        name = name_beside(view)
        for role in {grant.grantee or "public" for grant in views.grants(session, name)}:
            session.pg.execute(rights.revoke_statement(name, role))
        session.pg.execute(sql.SQL("DELETE FROM ONLY {}").format(relation(name)))


def drop(session: Session, view: TableName) -> None:
    """Drop the labels of a view, if it has some; raises DependedOn when others need them."""
    if find(session, view) is not None:
        name = name_beside(view)
        with views.dropping(name):
            session.pg.execute(sql.SQL("DROP TABLE {}").format(relation(name)))
