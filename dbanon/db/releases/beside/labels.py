"""The companion relation with the ancestors of published labels, which discloses nothing more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg import sql

from dbanon.db.queries import identifiers, relation, template
from dbanon.db.releases.beside.relations import LABELS
from dbanon.domain.assignment import LabelRow, label_rows

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session
    from dbanon.domain.assignment import ValueColumn
    from dbanon.domain.table import TableName

_COLUMNS = ("column_name", *LabelRow._fields)


def statements(publication: Publication) -> list[sql.Composed]:
    """Return the statements that create the empty relation, if the policy publishes labels."""
    if not publication.policy.labels:
        return []
    view = publication.view
    create = template("beside.create_labels", labels=relation(LABELS.name(view)))
    return LABELS.statements(view, create)


def publish(session: Session, publication: Publication, columns: Iterable[ValueColumn]) -> None:
    """Publish the ancestors of the labels, or retire the relation.

    Raises ConfigError if the name is taken.
    """
    view = publication.view
    if not publication.policy.labels:
        LABELS.retire(session, view)
        return
    name = LABELS.name(view)
    found = LABELS.require_free(session, view)
    session.run(statements(publication) if found.oid is None else ())
    LABELS.empty(session, view)
    _fill(session, name, columns)
    LABELS.share(session, view)


def _fill(session: Session, name: TableName, columns: Iterable[ValueColumn]) -> None:
    copy = sql.SQL("COPY {} ({}) FROM STDIN").format(relation(name), identifiers(_COLUMNS))
    with session.pg.cursor().copy(copy) as rows:
        for column in columns:
            for row in label_rows(column):
                rows.write_row((column.name, *row))
