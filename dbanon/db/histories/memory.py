"""Remember who was published in which class, by keyed hashes, and read it back.

A release leaves what it changed: the persons whose class or values are not those of the relation's
release before. A person is an HMAC-SHA256 of the subject, else of the key, whose own key no query
returns; a class is the hash of what is published of it, so one that stays keeps its number.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from psycopg import sql

from dbanon.db.queries import query, template, text_of
from dbanon.domain.errors import DatabaseError
from dbanon.domain.table import TableName
from dbanon.domain.text import command

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session
    from dbanon.domain.release import Entry

ENTRIES = sql.Identifier("pg_temp", "history_entries")
_PRESENT = sql.Identifier("pg_temp", "history_present")


@dataclass(frozen=True, slots=True)
class Memory:
    """The releases of a table that can be compared, oldest first, each with its relation.

    series: the release that started theirs, 0 for the first one; person: the columns that tell
    their persons; key: by which these are remembered, None where nobody is.
    """

    table: TableName
    relations: dict[int, TableName]
    series: int = 0
    person: tuple[str, ...] = ()
    key: object = None


def remember(session: Session, publication: Publication, *, starts_series: bool = False) -> Memory:
    """Note whom a table release shows, in which class; return it with what it can be compared with.

    That is nothing when it starts a series, whose persons are told by another key.
    What is remembered of all of them is in ENTRIES until the transaction ends or it is forgotten.
    """
    table, view = publication.info.name, publication.view
    person = _person(publication)
    latest = None if starts_series else _latest(session, table, view)
    key = latest["key"] if latest is not None and latest["exists"] else _new_key(session)
    series = publication.id if starts_series else latest["series"] if latest is not None else 0
    _present(session, publication, key)
    where = {
        "schema": table.schema,
        "name": table.name,
        "person": person,
        "key": key,
        "series": series,
    }
    memory = _unpacked(session, table, where)
    noted = {
        **where,
        "release": publication.id,
        "view_schema": view.schema,
        "view_name": view.name,
    }
    if publication.withdrawn is not None:
        session.pg.execute(query("histories/retain"), noted)
        _require_same_members(session, publication, key)
    for name in ("histories/add_entries", "histories/add_history", "histories/pack"):
        session.pg.execute(query(name), noted)
    session.pg.execute(sql.SQL("DROP TABLE {}").format(_PRESENT))
    session.pg.execute(sql.SQL("ALTER TABLE {} DROP COLUMN value").format(publication.rows))
    return replace(memory, relations={**memory.relations, publication.id: view})


def recall(
    session: Session,
    table: TableName,
    *,
    relation: TableName | None = None,
    until: int | None = None,
) -> Memory:
    """Return what is remembered of a table, as ``remember`` does, and note nothing.

    relation: of the series of this one, if it is known, else of the latest one; until: leave out
    this release, and what came after it.
    """
    known = _latest(session, table, relation)
    if known is None or not known["exists"]:
        forgotten = _unpacked(session, table, None)
        return forgotten if known is None else replace(forgotten, series=known["series"])
    where = {"schema": table.schema, "name": table.name, **known}
    return _unpacked(session, table, where, until=until)


def state(session: Session, known: Memory, number: int, name: sql.Identifier) -> None:
    """Write who was shown in a release, and how, into a temporary table of that name."""
    view = known.relations[number]
    session.pg.execute(
        template(
            "histories/state",
            state=name,
            relation_schema=sql.Literal(view.schema),
            relation_name=sql.Literal(view.name),
            release=sql.Literal(number),
        )
    )
    session.pg.execute(sql.SQL("ANALYZE {}").format(name))


def class_number(publication: Publication, published: sql.Composable) -> sql.Composed:
    """Compose the number of a class by its values, a jsonb object of q1, q2 and so on."""
    columns = sql.Literal(repr([column for column, _ in publication.recodings]))
    return template("histories/class_number", columns=columns, published=published)


def number_in_copy(publication: Publication) -> sql.Composed:
    """Compose the number of the class of a row ``s`` of the private copy."""
    values = [
        sql.SQL("{}, s.{}").format(sql.Literal(f"q{i}"), sql.Identifier(column))
        for i, (column, _) in enumerate(publication.recodings, 1)
    ]
    built = sql.SQL("jsonb_build_object({})").format(sql.SQL(", ").join(values))
    return class_number(publication, built)


def _require_same_members(session: Session, publication: Publication, key: object) -> None:
    """Raise DatabaseError when a copy shows other classes than are remembered of it."""
    same = template(
        "histories/same_members",
        **{"class": number_in_copy(publication)},
        release=publication.release,
        key=sql.Literal(key),
    )
    if session.pg.execute(same).fetchone() != (True,):
        raise DatabaseError(
            f"{publication.view} shows other classes than are remembered of it; nothing was"
            " published",
            hint=command("dbanon publish", publication.info.name),
        )


def key_of(session: Session, table: TableName, relation: TableName) -> object:
    """Return the key by which the persons of a relation are remembered, None if it is gone."""
    known = _latest(session, table, relation)
    return known["key"] if known is not None and known["exists"] else None


def series(session: Session, table: TableName) -> dict[int, int]:
    """Return the series of each remembered release of a table, by number."""
    named = {"schema": table.schema, "name": table.name}
    return dict(session.pg.execute(query("histories/series"), named).fetchall())


def series_of(known: Mapping[int, int], release: int, own: int) -> int | None:
    """Return the series of a release, None for what was published live before ``own`` started."""
    return known.get(release, own if release >= own else None)


def persons_of(session: Session, release: Entry) -> tuple[str, ...] | None:
    """Return the columns that tell the persons of a release, None if it cannot be compared."""
    table, known = release.table, _latest(session, release.table, release.relation)
    if known is None or not known["exists"]:
        return None
    where = {"schema": table.schema, "name": table.name, **known}
    found = session.pg.execute(query("histories/comparable"), where).fetchall()
    return tuple(known["person"]) if release.id in {row[0] for row in found} else None


def changes(session: Session, table: TableName) -> dict[int, int]:
    """Return how many rows each remembered release of a table changed."""
    named = {"schema": table.schema, "name": table.name}
    return dict(session.pg.execute(query("histories/changes"), named).fetchall())


def forget(session: Session) -> None:
    """Drop what ``remember`` or ``recall`` unpacked."""
    session.pg.execute(sql.SQL("DROP TABLE {}").format(ENTRIES))


def _person(publication: Publication) -> list[str]:
    """Return the columns that tell a person."""
    subject = publication.policy.subject
    return [*publication.info.primary_key] if subject is None else [subject]


def _latest(
    session: Session, table: TableName, relation: TableName | None
) -> dict[str, Any] | None:
    """Return how persons were remembered last, of a relation if it was ever published."""
    named = {
        "schema": table.schema,
        "name": table.name,
        "view_schema": None if relation is None else relation.schema,
        "view_name": None if relation is None else relation.name,
    }
    row = session.pg.execute(query("histories/latest_history"), named).fetchone()
    names = ("person", "key", "exists", "series")
    return None if row is None else dict(zip(names, row, strict=True))


def _new_key(session: Session) -> object:
    row = session.pg.execute(query("histories/create_key")).fetchone()
    assert row is not None  # noqa: S101 - an INSERT of one row returns it
    return row[0]


def _unpacked(
    session: Session,
    table: TableName,
    where: dict[str, Any] | None,
    *,
    until: int | None = None,
) -> Memory:
    found = []
    if where is not None:
        found = session.pg.execute(query("histories/comparable"), where).fetchall()
    relations = {
        number: TableName(schema, name)
        for number, schema, name in found
        if until is None or number < until
    }
    session.pg.execute(query("histories/unpack"), {"releases": list(relations)})
    if where is None:
        return Memory(table, relations)
    return Memory(table, relations, where["series"], tuple(where["person"]), where["key"])


def _present(session: Session, publication: Publication, key: object) -> None:
    """Write whom the release shows into a temporary table."""
    table = publication.info.name
    slots = {"table_schema": sql.Literal(table.schema), "table_name": sql.Literal(table.name)}
    read = {"codes": publication.codes, "rows": publication.rows}
    session.pg.execute(template("histories/add_values", **read, **slots))
    subject = publication.policy.subject
    members = sql.SQL("{} AS r").format(publication.rows)
    if subject is not None:
        persons = [text_of(publication.info.column(subject), sql.Identifier("s", subject))]
        members = sql.SQL("{} AS s JOIN {} ON {}").format(
            publication.reading, members, publication.join
        )
    else:
        columns = zip(publication.key_columns, publication.info.primary_key, strict=True)
        persons = [
            text_of(publication.info.column(column), sql.Identifier("r", name))
            for name, column in columns
        ]
    published = sql.SQL("to_jsonb(g) - '{group_id,shown,version,release}'::text[]")
    session.pg.execute(
        template(
            "histories/present",
            **{"class": class_number(publication, published)},
            groups=publication.groups,
            key=sql.Literal(key),
            person=template("histories/person_hash", person=sql.SQL(", ").join(persons)),
            members=members,
            codes=publication.codes,
            **slots,
        )
    )
    session.pg.execute(sql.SQL("DROP TABLE {}").format(publication.codes))
