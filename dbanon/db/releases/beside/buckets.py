"""The relation that has the sensitive values of a release by anatomy, bucket by bucket.

It is made beside the candidate for the view first, and proved with it. Readers get a copy of what
was proved, and that is proved again.
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
    """Yield what makes the relation beside the candidate, if the policy asks for it."""
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
    """Return the sensitive column whose values are beside the release, if there is one."""
    if not publication.policy.anatomy:
        return None
    (rule,) = publication.policy.with_role(Role.SENSITIVE)
    return rule.column


def values(publication: Publication) -> sql.Composed:
    """Compose the query of the sensitive values that will be beside the release, one a row."""
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
    """Compose those that are beside a served release, in parentheses; None if they are not there.

    They are read from what nobody else can change.
    """
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
    """Return what makes the empty relation beside the view, if the policy asks for it."""
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
    """Return the statements that fill the empty relation beside the view with what was proved."""
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
    """Let readers of the view read the values of its buckets, or nothing of the kind.

    Returns the new name of what was there, if it had other columns and others depend on it. Raises
    ConfigError when the name is that of something else.
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
