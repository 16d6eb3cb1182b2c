"""The relation that has counts of the source with noise."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from psycopg import sql

from dbanon.db import identity
from dbanon.db.locks import patiently
from dbanon.db.queries import identifiers, relation, template
from dbanon.db.releases import views
from dbanon.db.releases.beside.relations import COUNTS
from dbanon.domain.wording import counted_by_in_words, noisy_in_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dbanon.db.session import Session
    from dbanon.domain.table import TableName

_PERSONS = "persons"


def publish(
    session: Session,
    view: TableName,
    by: Sequence[str],
    rows: Iterable[tuple[str | int | None, ...]],
    *,
    epsilon: float,
) -> None:
    """Let readers of the view read the rows, a label for each column and a count.

    Raises ConfigError when the name is that of something else.
    """
    name = COUNTS.name(view)
    oid = COUNTS.require_free(session, view).oid
    if oid is not None:
        patiently(session, partial(COUNTS.drop, session, view), on=[oid], budget=views.PATIENCE)
        identity.dismiss(session, name)
    for statement in _statements(view, by, epsilon=epsilon):
        session.pg.execute(statement)
    names = identifiers((*by, _PERSONS))
    copy = sql.SQL("COPY {} ({}) FROM STDIN").format(relation(name), names)
    with session.pg.cursor().copy(copy) as written:
        for row in rows:
            written.write_row(row)
    COUNTS.share(session, view)


def keep(session: Session, view: TableName) -> None:
    """Give those who may read a view the same right on counts beside it, if there are any."""
    if COUNTS.find(session, view) is not None:
        COUNTS.share(session, view)


def _statements(view: TableName, by: Sequence[str], *, epsilon: float) -> list[sql.Composed]:
    name = relation(COUNTS.name(view))
    columns = sql.SQL(", ").join(sql.SQL("{} text").format(sql.Identifier(one)) for one in by)
    words = {one: counted_by_in_words(one) for one in by}
    words[_PERSONS] = noisy_in_words(_PERSONS, epsilon=epsilon)
    comment = sql.SQL("COMMENT ON COLUMN {}.{} IS {}")
    create = template("beside/create_counts", counts=name, columns=columns)
    return [
        *COUNTS.statements(view, create),
        *(
            comment.format(name, sql.Identifier(column), sql.Literal(text))
            for column, text in words.items()
        ),
    ]
