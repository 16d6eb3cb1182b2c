"""The companion relation with the sensitive values of an anatomy release, by bucket.

It is built and proved for the candidate view; readers get a copy, which is proved again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg import sql

from dbanon.db import catalog, identity
from dbanon.db.queries import lasting_value, relation, template
from dbanon.db.releases.beside.relations import BUCKETS
from dbanon.db.releases.copies import same_shape
from dbanon.domain.policy import BUCKET, COUNT, Role
from dbanon.domain.wording import OF_BUCKETS, in_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session
    from dbanon.domain.table import TableName


def statements(publication: Publication) -> Iterator[sql.Composed]:
    """Yield the statement that creates the candidate's relation, if the policy uses anatomy."""
    if not publication.policy.anatomy:
        return
    (rule,) = publication.policy.with_role(Role.SENSITIVE)
    yield template(
        "beside.create_buckets",
        buckets=relation(BUCKETS.name(publication.candidate)),
        value=lasting_value(publication.info.column(rule.column), sql.Identifier("s", rule.column)),
        sensitive=sql.Identifier(rule.column),
        source=publication.reading,
        rows=publication.rows,
        groups=publication.groups,
        join=publication.join,
    )


def column(publication: Publication) -> str | None:
    """Return the sensitive column of an anatomy release, None without anatomy."""
    if not publication.policy.anatomy:
        return None
    (rule,) = publication.policy.with_role(Role.SENSITIVE)
    return rule.column


def values(publication: Publication) -> sql.Composed:
    """Compose the query of the sensitive values that the relation will hold, one per row."""
    name = column(publication) or ""
    return template(
        "beside.values",
        value=lasting_value(publication.info.column(name), sql.Identifier("s", name)),
        sensitive=sql.Identifier(name),
        source=publication.reading,
        rows=publication.rows,
        join=publication.join,
    )


def values_beside(
    session: Session, publication: Publication, view: TableName
) -> sql.Composed | None:
    """Compose the query of a served relation's values; None if others could change it."""
    name, sensitive, found = (
        BUCKETS.name(view),
        column(publication),
        BUCKETS.looked_up(session, view),
    )
    if found.oid is None or not found.is_ours or sensitive is None:
        return None
    if sensitive not in {one.name for one in catalog.describe(session, name).columns}:
        return None
    session.admitted[found.oid] = name
    slots = {"buckets": relation(name), "sensitive": sql.Identifier(sensitive)}
    return template("beside.values_of_buckets", **slots)


def served_statements(publication: Publication) -> list[sql.Composed]:
    """Return the statements that create the view's empty relation, if the policy uses anatomy."""
    if not publication.policy.anatomy:
        return []
    view = publication.view
    name, candidate = (relation(BUCKETS.name(one)) for one in (view, publication.candidate))
    (rule,) = publication.policy.with_role(Role.SENSITIVE)
    create = sql.SQL("CREATE TABLE {} (LIKE {})").format(name, candidate)
    words = {**OF_BUCKETS, rule.column: in_words(rule.column, Role.SENSITIVE)}
    comment = sql.SQL("COMMENT ON COLUMN {}.{} IS {}")
    return [
        *BUCKETS.statements(view, create),
        *(
            comment.format(name, sql.Identifier(column), sql.Literal(words[column]))
            for column in (BUCKET, rule.column, COUNT)
        ),
    ]


def fill_statements(publication: Publication) -> list[sql.Composed]:
    """Return the statements that copy the proved values into the relation of the view."""
    if not publication.policy.anatomy:
        return []
    name, candidate = (
        relation(BUCKETS.name(one)) for one in (publication.view, publication.candidate)
    )
    return [
        sql.SQL("INSERT INTO {} TABLE {}").format(name, candidate),
        sql.SQL("DROP TABLE {}").format(candidate),
    ]


def publish(session: Session, publication: Publication) -> TableName | None:
    """Publish the values of the buckets, or retire the relation if the policy has no anatomy.

    Returns the new name of the previous relation if it had other columns and others depend on it.
    Raises ConfigError if the name is taken.
    """
    view = publication.view
    if not publication.policy.anatomy:
        BUCKETS.retire(session, view)
        return None
    name, left = BUCKETS.name(view), None
    oid = BUCKETS.require_free(session, view).oid
    candidate = BUCKETS.name(publication.candidate)
    if oid is not None and not same_shape(session, relation(name), relation(candidate)):
        left = BUCKETS.set_aside(session, view, oid=oid)
        oid = None
    session.run(served_statements(publication) if oid is None else ())
    BUCKETS.empty(session, view)
    session.run(fill_statements(publication))
    identity.dismiss(session, candidate)
    BUCKETS.share(session, view)
    return left
