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
    from uuid import UUID

    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session
    from dbanon.domain.release import Entry

ENTRIES = sql.Identifier("pg_temp", "history_entries")
_PRESENT = sql.Identifier("pg_temp", "history_present")
_CHANGES = sql.Identifier("pg_temp", "history_changes")
BEFORE = sql.Identifier("pg_temp", "history_before")
_FORMER = sql.Identifier("pg_temp", "history_former")
_OF_SEVERAL_TEXTS = ("numeric", "numrange", "float8")  # 1.0 and 1.00, 0 and -0 are equal


@dataclass(frozen=True, slots=True)
class Memory:
    """The releases of a table that can be compared, oldest first, each with its relation.

    series: the release that started theirs, 0 for the first one; person: the columns that tell
    their persons; key: by which these are remembered, None where nobody is; several: whether a
    person may have several rows.
    """

    table: TableName
    relations: dict[int, TableName]
    series: int = 0
    person: tuple[str, ...] = ()
    key: UUID | None = None
    several: bool = False

    def first(self, relation: TableName) -> int | None:
        """Return the first release of a relation, by which its releases are known together."""
        return min((n for n, name in self.relations.items() if name == relation), default=None)


def remember(
    session: Session,
    publication: Publication,
    *,
    starts_series: bool = False,
    series_of: TableName | None = None,
) -> Memory:
    """Note whom a table release shows, in which class; return it with what it can be compared with.

    That is nothing when it starts a series, whose persons are told by another key. It joins that
    of the relation ``series_of``, by default its own, or the latest one if it has none yet.
    What is remembered of all of them is in ENTRIES until the transaction ends or it is forgotten.
    """
    table, view = publication.info.name, publication.view
    person = _person(publication)
    latest = None if starts_series else _latest(session, table, series_of or view)
    key = latest["key"] if latest is not None and latest["exists"] else _new_key(session)
    series = publication.id if starts_series else latest["series"] if latest is not None else 0
    several = publication.policy.subject is not None
    _present(session, publication, key)
    where = {"schema": table.schema, "name": table.name, "person": person, "key": key}
    where["series"] = series
    # Of what is extended, all was unpacked when it was found how its persons stand.
    find = _unpacked if publication.withdrawn is None else _known
    known = find(session, table, where)
    _find_changes(session, publication, known)
    noted = {
        **where,
        "release": publication.id,
        "view_schema": view.schema,
        "view_name": view.name,
        "several": several,
    }
    session.pg.execute(query("histories/add_history"), noted)
    session.pg.execute(query("histories/pack"), noted)
    relations = {**known.relations, publication.id: view}
    known = replace(known, relations=relations, several=known.several or several)
    added = {"release": publication.id, "relation": known.first(view)}
    session.pg.execute(query("histories/add_entries"), added)
    session.pg.execute(sql.SQL("ANALYZE {}").format(ENTRIES))
    _number_sets(session, known)
    _drop(session, _CHANGES)
    session.pg.execute(sql.SQL("ALTER TABLE {} DROP COLUMN value").format(publication.rows))
    return known


def _find_changes(session: Session, publication: Publication, known: Memory) -> None:
    """Write whose rows are not those of the relation's release before, of _PRESENT, to _CHANGES."""
    first = known.first(publication.view)
    if first is None and publication.withdrawn is None:
        # Nobody was there, so that everybody is new.
        session.pg.execute(sql.SQL("ALTER TABLE {} RENAME TO history_changes").format(_PRESENT))
        return
    if publication.withdrawn is None:
        _rows(session, _FORMER, shown(max(known.relations), first=first))
        session.pg.execute(query("histories/find_changes"))
    else:
        _require_same_members(session, publication, known.key)
        for name in ("histories/narrow", "histories/retain", "histories/find_changes"):
            session.pg.execute(query(name))
        _drop(session, BEFORE)
    for table in (_FORMER, _PRESENT):
        _drop(session, table)


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
    found = _unpacked(session, table, where, until=until)
    _number_sets(session, found)
    return found


def rows(
    session: Session,
    known: Memory,
    number: int,
    name: sql.Identifier,
    *,
    entries: sql.Identifier = ENTRIES,
) -> None:
    """Write the rows of everybody whom a release showed into a temporary table of that name.

    shown: what tells the classes of all rows of the person; place: which row of the person it is.
    entries: all that is remembered of the persons who are asked for.
    """
    first = known.first(known.relations[number])
    _rows(session, name, shown(number, first=first, entries=entries))


def _rows(session: Session, name: sql.Identifier, shown: sql.Composed) -> None:
    """Write the rows of a selection into a temporary table."""
    session.pg.execute(template("histories/rows", rows=name, shown=shown))
    session.pg.execute(sql.SQL("ANALYZE {}").format(name))


def shown(number: int, *, first: int | None, entries: sql.Identifier = ENTRIES) -> sql.Composed:
    """Compose the rows that a release, of those of a relation since the first, shows."""
    slots = {"release": sql.Literal(number), "relation": sql.Literal(first)}
    return template("histories/shown", entries=entries, **slots)


def class_number(publication: Publication, published: sql.Composable) -> sql.Composed:
    """Compose the number of a class by its values, a jsonb object of q1, q2 and so on."""
    columns = sql.Literal(repr([column for column, _ in publication.recodings]))
    return template("histories/class_number", columns=columns, published=published)


def cells(session: Session, name: sql.Identifier, *, entries: sql.Identifier = ENTRIES) -> None:
    """Write the cell of everybody who was ever published into a temporary table of that name.

    entries: what is remembered of the persons who are asked for.
    """
    session.pg.execute(template("overlays/cells", cells=name, entries=entries))
    session.pg.execute(sql.SQL("ANALYZE {}").format(name))


def number_in_copy(publication: Publication) -> sql.Composed:
    """Compose the number of the class of a row ``s`` of the private copy."""
    return class_number(publication, _published_in_copy(publication))


def of_copy(publication: Publication) -> dict[str, sql.Composable]:
    """Compose what a row ``s`` of the private copy shows of its class, and the number of that.

    The number is that of ``c.published``, so that it is worked out once of each class; alike: by
    what to group rows of one class, which are equal and have the same text.
    """
    published, quasi = sql.Identifier("c", "published"), []
    alike: list[sql.Composable] = []
    for (name, _), stored in zip(publication.recodings, publication.stored_types, strict=True):
        column = sql.Identifier("s", name)
        quasi.append(column)
        alike.append(column)
        if stored.startswith(_OF_SEVERAL_TEXTS):
            alike.append(sql.SQL("{}::text").format(column))
    return {
        "published": _published_in_copy(publication),
        "class": class_number(publication, published),
        "quasi": sql.SQL(", ").join(quasi),
        "alike": sql.SQL(", ").join(alike),
        "release": publication.release,
    }


def _published_in_copy(publication: Publication) -> sql.Composed:
    """Compose the values of the class of a row ``s`` of the private copy, as a jsonb object."""
    values = [
        sql.SQL("{}, s.{}").format(sql.Literal(f"q{i}"), sql.Identifier(column))
        for i, (column, _) in enumerate(publication.recodings, 1)
    ]
    return sql.SQL("jsonb_build_object({})").format(sql.SQL(", ").join(values))


def _require_same_members(session: Session, publication: Publication, key: UUID | None) -> None:
    """Raise DatabaseError when a copy shows other classes than are remembered of it."""
    slots = {**of_copy(publication), "key": sql.Literal(key)}
    same = template("histories/same_members", **slots)
    if session.pg.execute(same).fetchone() != (True,):
        raise DatabaseError(
            f"{publication.view} shows other classes than are remembered of it; nothing was"
            " published",
            hint=command("dbanon publish", publication.info.name),
        )


def key_of(session: Session, table: TableName, relation: TableName) -> UUID | None:
    """Return the key by which the persons of a relation are remembered, None if it is gone."""
    known = _latest(session, table, relation)
    return known["key"] if known is not None and known["exists"] else None


def is_forgotten(session: Session, table: TableName, relation: TableName) -> bool:
    """Whether nobody is to know whom the series showed that a relation would go on with."""
    known = _latest(session, table, relation)
    return known is not None and known["is_forgotten"]


def forget_series(session: Session, table: TableName, number: int) -> tuple[int, ...]:
    """Delete whom a series showed, by number; return the releases of which that is forgotten."""
    named = {"schema": table.schema, "name": table.name, "series": number}
    return tuple(row[0] for row in session.pg.execute(query("forgetting/series"), named))


def series(session: Session, table: TableName) -> dict[int, int]:
    """Return the series of each remembered release of a table, by number."""
    return {number: own for number, (own, _) in places(session, table).items()}


def places(session: Session, table: TableName) -> dict[int, tuple[int, TableName]]:
    """Return series and relation of each remembered release of a table, by number, in order."""
    named = {"schema": table.schema, "name": table.name}
    rows = session.pg.execute(query("histories/series"), named)
    return {number: (own, TableName(*relation)) for number, own, *relation in rows}


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
    _drop(session, ENTRIES)


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
    names = ("person", "key", "exists", "series", "is_forgotten")
    return None if row is None else dict(zip(names, row, strict=True))


def _new_key(session: Session) -> UUID:
    row = session.pg.execute(query("histories/create_key")).fetchone()
    assert row is not None  # noqa: S101 - an INSERT of one row returns it
    key: UUID = row[0]
    return key


def _unpacked(
    session: Session,
    table: TableName,
    where: dict[str, Any] | None,
    *,
    until: int | None = None,
) -> Memory:
    known = Memory(table, {}) if where is None else _known(session, table, where, until=until)
    releases = list(known.relations)
    first = [known.first(name) for name in known.relations.values()]
    session.pg.execute(query("session/sample_little"))
    session.pg.execute(query("histories/unpack"), {"releases": releases, "first": first})
    session.pg.execute(sql.SQL("ANALYZE {}").format(ENTRIES))
    return known


def _known(
    session: Session, table: TableName, where: dict[str, Any], *, until: int | None = None
) -> Memory:
    """Return the releases that can be compared, without whom they show."""
    found = session.pg.execute(query("histories/comparable"), where).fetchall()
    found = [row for row in found if until is None or row[0] < until]
    return Memory(
        table,
        {number: TableName(schema, name) for number, schema, name, _ in found},
        series=where["series"],
        person=tuple(where["person"]),
        key=where["key"],
        several=any(row[3] for row in found),
    )


def _number_sets(session: Session, known: Memory) -> None:
    """Tell persons of several rows in ENTRIES by all of these, where there may be such."""
    if known.several:
        session.pg.execute(query("histories/number_sets"))
        _drop(session, ENTRIES)
        session.pg.execute("ALTER TABLE pg_temp.history_numbered RENAME TO history_entries")
        session.pg.execute(sql.SQL("ANALYZE {}").format(ENTRIES))


def _drop(session: Session, table: sql.Identifier) -> None:
    session.pg.execute(sql.SQL("DROP TABLE {}").format(table))


def _present(session: Session, publication: Publication, key: UUID | None) -> None:
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
    _drop(session, publication.codes)
