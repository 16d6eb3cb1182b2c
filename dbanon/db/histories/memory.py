"""Store the class of each published person by keyed hash, and read it back.

A release stores the persons with another class or values than in the relation's previous release. A
person is the keyed SHA-256 of the subject or the primary key; no query returns the key. A class
is the hash of its published values: an unchanged class preserves its number.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from psycopg import sql

from dbanon.db import catalog
from dbanon.db.person_hashes import add_unpublished, fill_places, write_members
from dbanon.db.proofs import subjects
from dbanon.db.queries import identifiers, named, query, template
from dbanon.db.releases import copies, immutability, relations
from dbanon.db.session import at_once
from dbanon.domain.errors import DatabaseError
from dbanon.domain.release import Retained, Sums
from dbanon.domain.table import TableName
from dbanon.domain.text import command

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import timedelta
    from uuid import UUID

    import psycopg

    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session
    from dbanon.domain.release import Entry


ENTRIES = sql.Identifier("pg_temp", "history_entries")
_REST = sql.Identifier("pg_temp", "history_rest")
_PRESENT = sql.Identifier("pg_temp", "history_present")
_CHANGES = sql.Identifier("pg_temp", "history_changes")
COUNTED = sql.Identifier("pg_temp", "history_counted")
BEFORE = sql.Identifier("pg_temp", "history_before")
_FORMER = sql.Identifier("pg_temp", "history_former")
_FEW = 0.5  # of the persons of a first release: if more changed, all are unpacked


@dataclass(frozen=True, slots=True)
class Memory:
    """The comparable releases of a table, oldest first, each with its relation.

    series: its first release, 0 for the first series; person: identifying columns; key: hash key,
    None without stored membership; several: a person can have several rows; is_merged: persons
    alike are one entry.
    """

    table: TableName
    relations: dict[int, TableName]
    series: int = 0
    person: tuple[str, ...] = ()
    key: UUID | None = None
    several: bool = False
    is_merged: bool = False

    def first(self, relation: TableName) -> int | None:
        """Return the first release of a relation, which identifies the relation."""
        return min((n for n, name in self.relations.items() if name == relation), default=None)

    def firsts(self) -> dict[int, int]:
        """Return the first release of the relation of each release."""
        first: dict[TableName, int] = {}
        for number, relation in sorted(self.relations.items()):
            first.setdefault(relation, number)
        return {number: first[relation] for number, relation in self.relations.items()}

    def shown(self, number: int, *, entries: sql.Identifier = ENTRIES) -> sql.Composed:
        """Compose all rows of a release."""
        return rows_shown(sql.Literal(number), sql.Literal(self.firsts()[number]), entries=entries)


class Known(NamedTuple):
    """A release with the same hash key.

    person: identifying columns; pseudonym: published by pseudonym; is_earlier: not of this
    publication.
    """

    table: TableName
    person: Sequence[str]
    pseudonym: bool
    is_earlier: bool


def remember(
    session: Session,
    publication: Publication,
    *,
    starts_series: bool = False,
    series_of: TableName | None = None,
) -> Memory:
    """Store the membership of a table release; return it with its comparable releases.

    A release that starts a series has none, and uses another key: its own, if any. Others join the
    series of ``series_of`` (by default their own relation), or the latest if that has none. ENTRIES
    contains the membership of all releases until the end of the transaction or ``forget``; for a
    single release only person, class and value_id.
    """
    table, view = publication.info.name, publication.view
    person = [*publication.person]
    latest = None if starts_series else _latest(session, table, series_of or view)
    stored = latest["key"] if latest is not None and latest["exists"] else publication.key
    key = stored or new_key(session)
    series = publication.id if starts_series else latest["series"] if latest is not None else 0
    several = not publication.policy.is_one_row(publication.info)
    _present(session, publication, key)
    where = {**named(table), "person": person, "key": key, "series": series}
    known = _comparable(session, table, where)
    is_first = not known.relations
    of_view = {"view_schema": view.schema, "view_name": view.name}
    noted = {**where, **of_view, "release": publication.id, "several": several}
    known = replace(known, several=known.several or several)
    joined = replace(known, relations={**known.relations, publication.id: view})
    if publication.withdrawn is not None:
        require_same_members(session, publication, known.key)
    anew = publication.withdrawn is None  # else all was unpacked to find how persons stand
    near = anew and {*known.relations.values()} == {view} and _is_counted(session, known)
    with at_once(session.pg):
        if anew and not near and not is_first:
            _unpack(session, [known])
        _find_changes(session, publication, known, near=near)
        session.pg.execute(query("histories.add_history"), noted)
        session.pg.execute(query("histories.pack"), noted)
        _add_entries(session, joined, publication, is_first=is_first)
        for name in publication.noted_columns:
            drop_column = sql.SQL("ALTER TABLE {} DROP COLUMN {}")
            session.pg.execute(drop_column.format(publication.rows, sql.Identifier(name)))
    return joined


def _add_entries(
    session: Session, known: Memory, publication: Publication, *, is_first: bool
) -> None:
    """Add the changes of a release to ENTRIES, or create ENTRIES from them."""
    if is_first:
        session.pg.execute(sql.SQL("ALTER TABLE {} RENAME TO history_entries").format(_CHANGES))
        session.pg.execute(query("histories.create_rest"))
        return
    added = {"release": publication.id, "relation": known.first(publication.view)}
    session.pg.execute(query("histories.add_entries"), added)
    session.pg.execute(sql.SQL("ANALYZE {}").format(ENTRIES))
    if known.several:
        rewrite(session, "histories.number_sets")
    drop(session, _CHANGES)


def unpack_with_new(session: Session, known: Memory, publication: Publication) -> Memory:
    """Write the membership of another series to ENTRIES, with a release that starts one.

    ENTRIES contains that of the release alone, as ``remember`` left it.
    """
    joined = _joined(known, publication)
    if known.relations:
        session.pg.execute(sql.SQL("ALTER TABLE {} RENAME TO history_present").format(ENTRIES))
        drop(session, _REST)
        _unpack(session, [known])
        first = {"relation": joined.first(publication.view)}
        session.pg.execute(query("histories.find_former"), first)
        drop(session, _PRESENT)
        _add_entries(session, joined, publication, is_first=False)
    return joined


def _joined(known: Memory, publication: Publication) -> Memory:
    several = known.several or not publication.policy.is_one_row(publication.info)
    relations = {**known.relations, publication.id: publication.view}
    return replace(known, relations=relations, several=several)


def unpack_alike(session: Session, known: Memory, publication: Publication) -> Memory | None:
    """Do the same with persons alike as one entry, and count those of the release in COUNTED.

    Returns None, and does nothing, if there are none or if a person can have several rows.
    """
    joined = _joined(known, publication)
    if not known.relations or joined.several:
        return None
    alike = template(
        "histories.unpack_alike",
        **{"class": publication.number_of_group},
        groups=publication.groups,
        key=sql.Literal(known.key),
        oldest=sql.Literal(min(known.relations)),
        releases=sql.Literal([*known.relations]),
        first=sql.Literal([*known.firsts().values()]),
        relation=sql.Literal(joined.first(publication.view)),
        release=sql.Literal(publication.id),
    )
    with at_once(session.pg):
        session.pg.execute(sql.SQL("ALTER TABLE {} RENAME TO history_present").format(ENTRIES))
        for name in (
            "session.sample_little",
            "histories.create_entries",
            "histories.create_counted",
        ):
            session.pg.execute(query(name))
        session.pg.execute(alike)
        drop(session, _PRESENT)
        session.pg.execute(sql.SQL("ANALYZE {}, {}").format(ENTRIES, COUNTED))
    return replace(joined, is_merged=True)


def _find_changes(session: Session, publication: Publication, known: Memory, *, near: bool) -> None:
    """Write the rows of _PRESENT that differ from the relation's previous release to _CHANGES.

    near: unpack their persons, with all who were ever in the same classes.
    """
    first = known.first(publication.view)
    if first is None and publication.withdrawn is None:
        # Nobody was there, so that everybody is new.
        session.pg.execute(sql.SQL("ALTER TABLE {} RENAME TO history_changes").format(_PRESENT))
        return
    if publication.withdrawn is None and known.several:
        _rows(session, _FORMER, rows_shown(sql.Literal(max(known.relations)), sql.Literal(first)))
        session.pg.execute(query("histories.find_changed_rows"))
        drop(session, _FORMER, _PRESENT)
        return
    if publication.withdrawn is None:
        later = [n for n, name in known.relations.items() if name == publication.view][1:]
        slots = {"first": sql.Literal(first), "later": sql.Literal(later)}
        session.pg.execute(template("histories.find_changes", **slots))
        drop(session, _PRESENT)
        if near:
            changed = sql.SQL("SELECT c.person FROM {} AS c").format(_CHANGES)
            _unpack_touched(session, known, changed)
            classes = sql.SQL("SELECT c.class FROM {} AS c UNION SELECT e.class FROM {} AS e")
            widen(session, known, classes.format(_CHANGES, ENTRIES))
        return
    oldest = sql.Literal(min(known.relations))
    session.pg.execute(template("histories.widen_departed", first=oldest))
    widen(session, known, sql.SQL("SELECT n.class FROM {} AS n").format(_PRESENT))
    for name in ("histories.narrow", "histories.retain", "histories.find_changed_rows"):
        session.pg.execute(query(name))
    drop(session, BEFORE, _FORMER, _PRESENT)


def recall(
    session: Session,
    table: TableName,
    *,
    relation: TableName | None = None,
    until: int | None = None,
) -> Memory:
    """Read the stored membership of a table into ENTRIES, and store nothing.

    relation: selects its series, if any, otherwise the latest; until: exclude this release and
    later ones.
    """
    found = of_series(session, table, relation, until=until)
    unpack(session, [found])
    return found


def of_series(
    session: Session,
    table: TableName,
    relation: TableName | None,
    *,
    until: int | None = None,
    person: Sequence[str] | None = None,
) -> Memory:
    """Return the releases of ``recall`` without ENTRIES; no key if no membership is stored.

    person: the identifying columns, by default those of the latest release.
    """
    known = _latest(session, table, relation)
    if known is None or not known["exists"]:
        return Memory(table, {}, series=0 if known is None else known["series"])
    where = {**named(table), **known}
    if person is not None:
        where["person"] = [*person]
    return _comparable(session, table, where, until=until)


def unpack(session: Session, found: Sequence[Memory]) -> None:
    """Write the membership of tables to one ENTRIES; one key identifies the same persons in all."""
    with at_once(session.pg):
        _unpack(session, found)
        if any(known.several for known in found):
            rewrite(session, "histories.number_sets")


def unpack_shown(session: Session, publication: Publication, *, near: bool = False) -> Memory:
    """Write the membership of a table to ENTRIES, and the rows of one release to BEFORE.

    near: only of persons whom a refresh may concern, if these are few; unchanged members of the
    first release are then counted in ``history_rest`` until ``widen``.
    """
    known, view = of_series(session, publication.info.name, publication.view), publication.view
    near = near and _is_counted(session, known)
    with at_once(session.pg):
        if near:
            slots = {"view_schema": sql.Literal(view.schema), "view_name": sql.Literal(view.name)}
            _unpack_touched(session, known, template("histories.touched", **slots))
        else:
            unpack(session, [known])
        rows(session, known, publication.id, BEFORE)
    return known


def _is_counted(session: Session, known: Memory) -> bool:
    """Return True if the first release is counted by class and few rows changed since; count it."""
    if known.several:
        return False
    first = min(known.relations)
    asked = {"first": first, "releases": [*known.relations], "share": _FEW}
    is_little, is_usable = session.one(query("histories.later_changes"), asked)
    if is_little and is_usable is None:
        members_of = template("histories.members_of", release=sql.Literal(first))
        count_classes(session, sql.SQL("({})").format(members_of))
        keep_classes(session, first)
        drop(session, COUNTED)
    return bool(is_little) and is_usable is not False


def count_classes(session: Session, entries: sql.Composable = ENTRIES) -> None:
    """Count the persons of the first release of a series, in COUNTED; entries: their rows."""
    session.pg.execute(template("overlays.count_first", entries=entries))
    session.pg.execute(sql.SQL("ANALYZE {}").format(COUNTED))


def keep_classes(session: Session, release: int) -> None:
    """Store the counts of ``count_classes``."""
    session.pg.execute(query("histories.keep_classes"), {"release": release})


def _unpack_touched(session: Session, known: Memory, touched: sql.Composable) -> None:
    """Write ``touched`` and changed persons to ENTRIES, and the numbers of others to _REST."""
    first, *later = known.relations
    slots = {"first": sql.Literal(first), "later": sql.Literal(later), "touched": touched}
    session.pg.execute(query("session.sample_little"))
    session.pg.execute(query("histories.create_rest"))
    session.pg.execute(query("histories.create_entries"))
    session.pg.execute(template("histories.unpack_touched", **slots))
    session.pg.execute(query("histories.fill_rest"), {"first": first})
    for table in (ENTRIES, _REST):
        session.pg.execute(sql.SQL("ANALYZE {}").format(table))


def widen(session: Session, known: Memory, classes: sql.Composable | None = None) -> None:
    """Add the rest of some classes, by default of all, to ENTRIES: alike persons as one entry."""
    asked = sql.SQL("SELECT c.class FROM {} AS c").format(_REST) if classes is None else classes
    slots = {"first": sql.Literal(min(known.relations)), "classes": asked}
    session.pg.execute(template("histories.widen", **slots))


def rows(
    session: Session,
    known: Memory,
    number: int,
    name: sql.Identifier,
    *,
    entries: sql.Identifier = ENTRIES,
) -> None:
    """Write all rows of a release to a temporary table.

    shown: all classes of the person; place: number of the row within the person. entries: the
    membership of the required persons.
    """
    _rows(session, name, known.shown(number, entries=entries))


def _rows(session: Session, name: sql.Identifier, shown: sql.Composed) -> None:
    """Write selected rows to a temporary table."""
    with at_once(session.pg):
        session.pg.execute(template("histories.rows", rows=name, shown=shown))
        session.pg.execute(sql.SQL("ANALYZE {}").format(name))


def rows_shown(
    release: sql.Composable, relation: sql.Composable, *, entries: sql.Identifier = ENTRIES
) -> sql.Composed:
    """Compose the rows of a release; relation: the first release of its relation."""
    return template("histories.shown", entries=entries, release=release, relation=relation)


NEVER = sql.Literal(2**63 - 1)
"""A number after that of every release."""


def shown_by_each(entries: sql.Identifier = ENTRIES) -> sql.Composed:
    """Compose the rows of each release in ``listed``, by shown_id and relation."""
    release, relation = sql.Identifier("r", "shown_id"), sql.Identifier("r", "relation")
    return rows_shown(release, relation, entries=entries)


def listed(rows: Sequence[Sequence[object]], *names: str) -> sql.Composed:
    """Compose a relation ``r`` of releases with the named columns."""
    values = [sql.SQL("({})").format(sql.SQL(", ").join(map(sql.Literal, row))) for row in rows]
    columns = sql.SQL(", ").join(map(sql.Identifier, names))
    return sql.SQL("(VALUES {}) AS r ({})").format(sql.SQL(", ").join(values), columns)


def entries_of(first: Mapping[int, int]) -> sql.Composed:
    """Compose the membership of releases; first: the first release of each one's relation."""
    slots = {"releases": sql.Literal([*first]), "first": sql.Literal([*first.values()])}
    return template("histories.entries", **slots)


def cells(session: Session, name: sql.Identifier, *, entries: sql.Identifier = ENTRIES) -> None:
    """Write the cell of each person in ``entries`` to a temporary table."""
    with at_once(session.pg):
        session.pg.execute(template("overlays.cells", cells=name, entries=entries))
        session.pg.execute(sql.SQL("ANALYZE {}").format(name))


def key_of(session: Session, table: TableName, relation: TableName) -> UUID | None:
    """Return the hash key of a relation's persons; None if it was deleted."""
    known = _latest(session, table, relation)
    return known["key"] if known is not None and known["exists"] else None


def known_by_key(session: Session, publication: Publication) -> list[Known]:
    """Return the other releases, of any table, that use the hash key of a release."""
    key = key_of(session, publication.info.name, publication.view)
    asked = {"key": key, "release": publication.id}
    found = session.pg.execute(query("histories.known_by_key"), asked)
    return [Known(TableName(schema, name), *rest) for schema, name, *rest in found]


def may_forget(session: Session) -> bool:
    """Return True if the current role may delete membership."""
    return session.pg.execute(query("histories.may_forget")).fetchone() == (True,)


def forget_series(session: Session, table: TableName, number: int) -> tuple[int, ...]:
    """Delete the membership of a series, by number; return the affected releases."""
    found = session.pg.execute(query("histories.forget_series"), {**named(table), "series": number})
    return tuple(row[0] for row in found)


def series(session: Session, table: TableName) -> dict[int, int]:
    """Return the series of each stored release of a table, by number."""
    rows = session.pg.execute(query("histories.series"), named(table))
    return {number: own for number, own, *_ in rows}


class Placed(NamedTuple):
    """The series of a table and a relation's place in them.

    releases: series and relation of each; key: of the relation's persons, None if they are not
    stored; is_forgotten: their membership was deleted.
    """

    releases: Mapping[int, tuple[int, TableName]]
    key: UUID | None
    is_forgotten: bool


def placement(session: Session, table: TableName, relation: TableName) -> Placed:
    """Return the stored series of a table, and the key of a relation's persons."""
    with at_once(session.pg):
        rows = session.pg.execute(query("histories.series"), named(table))
        latest = _find_latest(session, table, relation)
    known = _read_latest(latest)
    places = {number: (own, TableName(*relation)) for number, own, *relation in rows}
    key = known["key"] if known is not None and known["exists"] else None
    return Placed(places, key, known is not None and known["is_forgotten"])


def series_of(known: Mapping[int, int], release: int, own: int) -> int | None:
    """Return the series of a release; None if it was published live before ``own`` started."""
    return known.get(release, own if release >= own else None)


def shows_several(session: Session, known: Memory) -> bool:
    """Return True if any release showed several rows of a person."""
    asked = (query("histories.shows_several"), {"releases": [*known.relations]})
    return known.several and bool(session.one(*asked)[0])


def changes(session: Session, table: TableName) -> dict[int, int]:
    """Return the number of changed rows of each stored release of a table."""
    return dict(session.pg.execute(query("histories.changes"), named(table)).fetchall())


def forget(session: Session, *tables: sql.Identifier) -> None:
    """Drop ENTRIES and other temporary tables."""
    drop(session, ENTRIES, _REST, *tables)


def drop(session: Session, *tables: sql.Identifier) -> None:
    """Drop temporary tables."""
    session.pg.execute(sql.SQL("DROP TABLE {}").format(sql.SQL(", ").join(tables)))


def _latest(
    session: Session, table: TableName, relation: TableName | None
) -> dict[str, Any] | None:
    """Return the latest series settings, of a relation if it was ever published."""
    return _read_latest(_find_latest(session, table, relation))


def _find_latest(session: Session, table: TableName, relation: TableName | None) -> psycopg.Cursor:
    asked = {
        **named(table),
        "view_schema": None if relation is None else relation.schema,
        "view_name": None if relation is None else relation.name,
    }
    return session.pg.execute(query("histories.latest_history"), asked)


def _read_latest(found: psycopg.Cursor) -> dict[str, Any] | None:
    row = found.fetchone()
    names = ("person", "key", "exists", "series", "is_forgotten")
    return None if row is None else dict(zip(names, row, strict=True))


def new_key(session: Session) -> UUID:
    """Return a hash key that no release uses yet."""
    key: UUID = session.one(query("histories.create_key"))[0]
    return key


def _comparable(
    session: Session, table: TableName, where: dict[str, Any], *, until: int | None = None
) -> Memory:
    """Return the releases that identify persons in the same way."""
    rows = session.pg.execute(query("histories.comparable"), where)
    found = [row for row in rows if until is None or row[0] < until]
    return Memory(
        table,
        {number: TableName(schema, name) for number, schema, name, _ in found},
        series=where["series"],
        person=tuple(where["person"]),
        key=where["key"],
        several=any(row[3] for row in found),
    )


def _unpack(session: Session, found: Sequence[Memory]) -> None:
    """Write the membership of releases to ENTRIES."""
    first = {number: one for known in found for number, one in known.firsts().items()}
    session.pg.execute(query("session.sample_little"))
    session.pg.execute(query("histories.create_rest"))
    session.pg.execute(template("histories.unpack", entries=entries_of(first)))
    session.pg.execute(sql.SQL("ANALYZE {}").format(ENTRIES))


def rewrite(session: Session, name: str) -> None:
    """Replace ENTRIES by the table that a statement makes of it."""
    session.pg.execute(query(name))
    drop(session, ENTRIES)
    session.pg.execute("ALTER TABLE pg_temp.history_rewritten RENAME TO history_entries")
    session.pg.execute(sql.SQL("ANALYZE {}").format(ENTRIES))


def _present(session: Session, publication: Publication, key: UUID) -> None:
    """Write the membership of the release to a temporary table, and the places of its source.

    Raises DatabaseError if a row is missing, PolicyError if two have the same key.
    """
    table = publication.info.name
    slots = {"table_schema": sql.Literal(table.schema), "table_name": sql.Literal(table.name)}
    present = {
        "class": sql.SQL("g.class") if key == publication.key else publication.number_of_group,
        "groups": publication.groups,
        "key": sql.Literal(key),
        "codes": publication.codes,
        **slots,
    }
    added = template("histories.add_values", codes=publication.codes, **slots)
    found, complete, shown, keys = write_members(session, publication, key, present, added)
    expected, others = publication.of_source or (found, keys), 0
    if found < expected[0]:
        others, keys_of_others = add_unpublished(session, publication, key)
        keys += keys_of_others
    if (found + others, keys) != expected or not found == complete == shown:
        subjects.require_unique(session, publication)
        raise DatabaseError(
            f"the membership of {publication.view} would be incomplete; nothing was published",
            hint="run the command again",
        )
    if publication.places is not None:
        fill_places(session, publication)
    if others:
        session.pg.execute(query("histories.discard_unpublished"))


_OF_SEVERAL_TEXTS = ("numeric", "numrange", "float8")  # 1.0 and 1.00, 0 and -0 are equal


def of_copy(publication: Publication) -> dict[str, sql.Composable]:
    """Compose the class number of a row ``s`` of the private copy, from its published values.

    alike: columns and texts that group rows of a class; class_column: the stored number.
    """
    quasi, alike = [name for name, _ in publication.recodings], list[sql.Composable]()
    for name, stored in zip(quasi, publication.stored_types, strict=True):
        column = sql.Identifier("s", name)
        alike.append(column)
        if stored.startswith(_OF_SEVERAL_TEXTS):
            alike.append(sql.SQL("{}::text").format(column))
    return {
        "class": publication.class_number("s", quasi),
        "quasi": identifiers(quasi, of="s"),
        "alike": sql.SQL(", ").join(alike),
        "class_column": publication.class_column,
        "release": publication.release,
    }


def require_same_members(session: Session, publication: Publication, key: UUID | None) -> None:
    """Raise DatabaseError if the classes of a copy differ from its stored membership.

    Also if a row has the number of another class. The seal of the former copy excludes both for
    classes that neither lost nor gained rows.
    """
    gone = sql.Literal([*(publication.withdrawn or ())])
    touched = sql.SQL("SELECT g.class FROM {} AS g UNION SELECT unnest({}::bigint[])")
    touched_classes = touched.format(publication.groups, gone)
    slots = {**of_copy(publication), "key": sql.Literal(key), "touched": touched_classes}
    slots["is_written"] = template("releases.is_written", first=sql.Literal(publication.first))
    slots["rows"] = sql.Literal(immutability.count_writers(session, publication.data_id)[0])
    same = template("histories.same_members", **slots)
    if session.pg.execute(same).fetchone() != (True,):
        raise DatabaseError(
            f"{publication.view} shows other classes than are remembered of it; nothing was"
            " published",
            hint=command("dbanon publish", publication.info.name),
        )


def extend(session: Session, publication: Publication, previous: Entry | None) -> Publication:
    """Withdraw classes from the former copy and add new ones; other classes stay untouched.

    All rows of a class that gains some are rewritten in random order. Return the publication with
    the number of the copy. Raise DatabaseError if that was altered or has other columns.
    """
    if previous is None or not copies.is_sealed(session, publication, previous):
        raise DatabaseError(
            f"{publication.view} is not as it was published, and cannot be extended",
            hint=command("dbanon refresh", publication.info.name, options="--new-series"),
        )
    publication = replace(publication, former=previous.data_id)
    published = catalog.describe_published(session, previous.relation)
    class_column = publication.class_column
    extended = template(
        "releases.extend_release",
        release=publication.release,
        served=relations.served_rows(publication),
        class_column=class_column,
        columns=sql.SQL("{}, {}").format(identifiers(publication.names), class_column),
        writer=immutability.class_column(publication.names, "written_by"),
        cells=catalog.cells_hash(published, [each.name for each in published.columns]),
        groups=publication.groups,
        withdrawn=sql.Literal([*(publication.withdrawn or ())]),
        order=template("releases.random_order"),
    )
    session.run(relations.number_statements(publication))
    with immutability.rewriting(session, previous.data_id) as of_writers:
        rows, cells, numbers, lost, found, first = session.one(extended)
        of_writers.update(found)
    if publication.withdrawn:
        session.emptied.append(publication.release)
    gained = Sums(int(rows), int(cells), int(numbers))
    return replace(publication, gained=gained, lost=lost, first=first)


# Deleted persons that are still published, and pools of new persons that failed the models.


def find_deleted(session: Session, relation: TableName, *, deadline: timedelta | None) -> None:
    """Write deleted persons to ``history_missed``: when first missed, and if overdue."""
    session.pg.execute(query("membership.find_leavers"), {**named(relation), "deadline": deadline})


def keep_deleted(session: Session, relation: TableName) -> None:
    """Store only the persons of ``history_missed`` that the next release retains."""
    for name in ("membership.discard_leavers", "membership.keep_leavers"):
        session.pg.execute(query(name), named(relation))


def forget_deleted(session: Session, relation: TableName) -> None:
    """Delete the times of deleted persons, for an empty relation or a new grouping."""
    session.pg.execute(query("membership.forget_leavers"), named(relation))


def failed_pools(session: Session, table: TableName) -> list[tuple[dict[str, str | None], int]]:
    """Return the kept values and persons of the last pools of a table that failed the models."""
    found = session.pg.execute(query("membership.failed_pools"), named(table))
    return [(json.loads(kept), persons) for kept, persons in found]


def keep_pool(
    session: Session, relation: TableName, kept: Mapping[str, str | None], persons: int
) -> None:
    """Store the size of a pool that failed the models, also if this transaction is rolled back."""
    asked = {**named(relation), "kept": _text(kept), "persons": persons}

    def keep(session: Session) -> None:
        forget_pools(session, relation, kept)
        session.pg.execute(query("membership.keep_pool"), asked)

    keep(session)
    session.lasting.append(keep)


def forget_pools(
    session: Session, relation: TableName, kept: Mapping[str, str | None] | None = None
) -> None:
    """Delete the failed pools of a relation, with some kept values or all."""
    asked = {**named(relation), "kept": None if kept is None else _text(kept)}
    session.pg.execute(query("membership.forget_pools"), asked)


def _text(kept: Mapping[str, str | None]) -> str:
    return json.dumps(kept, sort_keys=True)


def count_deleted(session: Session, relation: TableName, *, deadline: timedelta | None) -> Retained:
    """Count the retained deleted persons of a relation, at its last refresh."""
    asked = {**named(relation), "deadline": deadline}
    shown, overdue, since, failed = session.one(query("membership.count_leavers"), asked)
    due = since + deadline if since is not None and deadline is not None else None
    return Retained(relation, shown, overdue, since, due, failed)
