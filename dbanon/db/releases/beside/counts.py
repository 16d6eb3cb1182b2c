"""The companion relation with noisy counts of the source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg import sql

from dbanon.db.metadata import ledger, spending
from dbanon.db.queries import identifiers, query, relation, template
from dbanon.db.releases.beside.relations import COUNTS
from dbanon.domain.table import TableName
from dbanon.domain.wording import counted_by_in_words, noisy_in_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dbanon.db.session import Session

_PERSONS = "persons"


def publish(
    session: Session,
    view: TableName,
    by: Sequence[str],
    rows: Iterable[tuple[str | int | None, ...]],
    *,
    epsilon: float,
) -> TableName | None:
    """Publish rows of labels, one per column of ``by``, each with its noisy count.

    Counts by the same columns are replaced in place. Counts by other columns are set aside; returns
    their new name if others depend on them. Raises ConfigError if the name is taken.
    """
    name, left = COUNTS.name(view), None
    oid = COUNTS.require_free(session, view).oid
    columns = (*by, _PERSONS)
    if oid is not None and _columns(session, oid) != columns:
        left, oid = COUNTS.set_aside(session, view, oid=oid), None
    create = [] if oid is not None else _create_statements(view, by)
    session.run([*create, *_word_statements(view, by, epsilon=epsilon)])
    session.pg.execute(sql.SQL("DELETE FROM ONLY {}").format(relation(name)))
    copy = sql.SQL("COPY {} ({}) FROM STDIN").format(relation(name), identifiers(columns))
    with session.pg.cursor().copy(copy) as written:
        for row in rows:
            written.write_row(row)
    COUNTS.share(session, view)
    return left


def keep(session: Session, view: TableName) -> None:
    """Grant SELECT on existing counts to the roles that may read the view."""
    if COUNTS.find(session, view) is not None:
        COUNTS.share(session, view)


def unaccounted(session: Session) -> list[TableName]:
    """Return the counts without a record of the spent budget, as after a partial backup."""
    names = session.pg.execute(
        query("releases.relations_like"), {"comment": COUNTS.comment_pattern}
    ).fetchall()
    found = []
    for schema, name in names:
        view = TableName(schema, name.removesuffix(COUNTS.ending))
        entry = ledger.latest_entry(session, view)
        if entry is None or not spending.has_account(session, entry.table):
            found.append(TableName(schema, name))
    return found


def _columns(session: Session, oid: int) -> tuple[str, ...]:
    values = {"relation": oid}
    rows = session.pg.execute(query("releases.columns_of_relation"), values).fetchall()
    return tuple(name for name, _ in rows)


def _create_statements(view: TableName, by: Sequence[str]) -> list[sql.Composed]:
    name = relation(COUNTS.name(view))
    columns = sql.SQL(", ").join(sql.SQL("{} text").format(sql.Identifier(one)) for one in by)
    return COUNTS.statements(view, template("beside.create_counts", counts=name, columns=columns))


def _word_statements(view: TableName, by: Sequence[str], *, epsilon: float) -> list[sql.Composed]:
    words = {one: counted_by_in_words(one) for one in by}
    words[_PERSONS] = noisy_in_words(_PERSONS, epsilon=epsilon)
    name, comment = relation(COUNTS.name(view)), sql.SQL("COMMENT ON COLUMN {}.{} IS {}")
    return [
        comment.format(name, sql.Identifier(column), sql.Literal(text))
        for column, text in words.items()
    ]
