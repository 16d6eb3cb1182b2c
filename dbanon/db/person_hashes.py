"""Keyed hashes of persons, and the places of their rows, by which a refresh finds changed rows.

A place is a hint, never the proof: it is used only if the storage and the columns of the source are
unchanged, and numbers that must add up are checked.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

from psycopg import sql

from dbanon.db import identity
from dbanon.db.queries import equal_text, keyed_hash, query, selected, template
from dbanon.db.releases.publication import data_table, private_statement
from dbanon.db.session import at_once, only
from dbanon.domain.errors import DatabaseError
from dbanon.domain.policy import STOP, Role
from dbanon.domain.release import SourceState, Spread
from dbanon.domain.table import ColumnKind, Structure
from dbanon.domain.text import command

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from decimal import Decimal
    from uuid import UUID

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session, Statement
    from dbanon.domain.policy import ColumnRule, Policy
    from dbanon.domain.table import ColumnInfo, TableInfo

_HASHED = sql.Identifier("pg_temp", "history_hashed")
_CAME = sql.Identifier("pg_temp", "history_came")
_FOUND = [sql.Identifier("pg_temp", f"history_{name}") for name in ("came", "went", "spread")]


def write_members(
    session: Session,
    publication: Publication,
    key: UUID,
    slots: Mapping[str, sql.Composable],
    added: Statement,
) -> tuple[int, int, int, Decimal]:
    """Write the members of a release; return their counts, as in ``present_count``.

    added: the statement that numbers new values, sent in the same message.
    """
    info, policy = publication.info, publication.policy
    if policy.is_one_row(info):
        values = [sql.Identifier("r", name) for name in publication.key_columns]
        joined = sql.SQL("{} AS r").format(publication.rows)
    else:
        values = [sql.Identifier("s", name) for name in publication.person]
        of_rows = publication.reading, publication.rows, publication.join
        joined = sql.SQL("{} AS s JOIN {} AS r ON {}").format(*of_rows)
    columns = [*map(info.column, publication.person)]
    place = sql.SQL("NULL::tid" if publication.places is None else "r.place")
    hashed = _hashed(columns, values, key, publication.former_key)
    members = template("histories.members_of_rows", members=joined, place=place, **hashed)
    present = template("histories.present", members=members, **slots)
    key_of_row = _hash_of_key(info, [sql.Identifier("r", name) for name in publication.key_columns])
    counts = template("histories.present_count", rows=publication.rows, hash=key_of_row)
    with at_once(session.pg):
        session.run([added, present])
        counted = session.pg.execute(counts)
    return only(counted)


def add_unpublished(session: Session, publication: Publication, key: UUID) -> tuple[int, Decimal]:
    """Write the rows of the source that a release does not publish; return number and sum."""
    info = publication.info
    fill = template(
        "persons.fill_unpublished",
        person=hash_of(*_key_of_row(info)),
        hash=_hash_of_key(info, _key_of_row(info)[1]),
        source=identity.readable(session, info),
        selected=selected(publication.policy, info),
        rows=publication.rows,
        key=sql.Literal(key),
    )
    number, keys = only(identity.harmless(session, fill, keep=True))
    return number, keys


def _hash_of_key(info: TableInfo, values: Sequence[sql.Identifier]) -> sql.Composed:
    """Compose a hash of a key; the sum of all shows if rows have the keys of a table, each once."""
    columns, _ = _key_of_row(info)

    def hashed(seed: int, column: ColumnInfo, value: sql.Identifier) -> sql.Composed:
        if column.kind is ColumnKind.INTEGER:
            return sql.SQL("hashint8extended({}::int8, {})").format(value, seed)
        text = equal_text(column, value)
        return sql.SQL('hashtextextended({} COLLATE "C", {})').format(text, seed)

    return sql.SQL(" # ").join(map(hashed, range(len(columns)), columns, values))


def person_hash(texts: sql.Composable) -> sql.Composed:
    """Compose the hash of a person by the key ``k`` from the texts that identify the person."""
    hashed = keyed_hash(sql.SQL("json_build_array({})::text").format(texts), sql.Identifier("k"))
    return template("persons.person_hash", hash=hashed)


def hash_of(columns: Sequence[ColumnInfo], values: Sequence[sql.Composable]) -> sql.Composed:
    """Compose the hash of a person by the key ``k`` from the values that identify the person."""
    hashed = keyed_hash(_document(columns, values), sql.Identifier("k"))
    return template("persons.person_hash", hash=hashed)


def _document(columns: Sequence[ColumnInfo], values: Sequence[sql.Composable]) -> sql.Composed:
    """Compose the JSON array of the values that identify a person."""
    texts = [equal_text(*one) for one in zip(columns, values, strict=True)]
    if any(column.nullable or column.kind is not ColumnKind.INTEGER for column in columns):
        return sql.SQL("json_build_array({})::text").format(sql.SQL(", ").join(texts))
    # The same array; concatenating it takes a third of the time.
    return sql.SQL("""'["' || {} || '"]'""").format(sql.SQL(""" || '", "' || """).join(texts))


def _hashed(
    columns: Sequence[ColumnInfo], values: Sequence[sql.Composable], key: UUID, former: UUID | None
) -> dict[str, sql.Composable]:
    """Compose the hashes of a person by a key and by the one of a former series, if any."""
    found = {
        "person": hash_of(columns, values),
        "former": sql.SQL("NULL::bytea"),
        "key": sql.Literal(key),
        "former_of": sql.SQL(""),
    }
    if former is not None:
        found["former"] = keyed_hash(_document(columns, values), sql.Identifier("f"))
        found["former_of"] = template("histories.former_key", key=sql.Literal(former))
    return found


def _key_of_row(info: TableInfo) -> tuple[list[ColumnInfo], list[sql.Identifier]]:
    """Return the columns that identify a row ``s``, and their values."""
    key = [info.column(name) for name in info.primary_key]
    return key, [sql.Identifier("s", column.name) for column in key]


# The places of rows.

_FARTHEST = 10**9
"""Transactions since a snapshot at most: row versions have numbers modulo 2^32."""
_MOST_READ = 0.5
_MOST_CHANGED = 0.1
"""Shares of rows: of those to read, and of those that changed since all were read, at most."""
_READS_PAGES, _PARTS = 14_00_00, 20_000
"""First version that reads ranges of ``ctid``; parts of a table whose rows are counted, at most."""
_MOST_SPREAD = 1_000
"""Rows with all values of columns whose places are stored, at most."""
_AT = "at:"


class Counted(NamedTuple):
    """A source now.

    state: with the content of before if nothing changed; unchanged: rows since the state before;
    is_comparable: whether that can be known; values: their numbers by column; keys: a sum that
    depends on all keys, if there is no state before; parts: of the table that gained or lost a row:
    first pages, pages of each, rows before; None if unknown.
    """

    state: SourceState
    unchanged: int
    is_comparable: bool
    values: Mapping[str, int]
    keys: Decimal
    parts: tuple[list[int], int, int] | None = None


@dataclass(frozen=True, slots=True)
class Changes:
    """The rows of a source that changed since its last state, in temporary tables.

    within: the condition of the rows to read; published: unchanged rows that are published; came:
    changed rows; pending: unchanged rows that are not published; now: the state of the source;
    values: the numbers of its values by sensitive column.
    """

    within: sql.Composed
    published: int
    came: int
    pending: int
    now: SourceState
    values: Mapping[str, int]


def count(
    session: Session,
    info: TableInfo,
    policy: Policy,
    *,
    since: SourceState | None,
    columns: Sequence[str] = (),
    by_parts: bool = True,
) -> Counted | None:
    """Count rows, unchanged ones, those of parts, and values of columns; None if no plain table."""
    found = _facts(session, info, policy)
    if found is None:
        return None
    snapshot, facts, size = found
    same = _is_same(found, since)
    counted = map(sql.Identifier, columns)
    names = [sql.Identifier(f"v{i}") for i in range(1, len(columns) + 1)]
    asked = template(
        "persons.count_unchanged",
        source=identity.readable(session, info),
        selected=selected(policy, info),
        unchanged=_unchanged(since.snapshot) if since is not None and same else sql.SQL("false"),
        counts=sql.SQL("").join(map(sql.SQL(", count({}) AS {}").format, counted, names)),
        hash=_hash_of_key(info, _key_of_row(info)[1]) if since is None else sql.SQL("NULL::int8"),
    )
    former = since.pages if since is not None and same else None
    pages = 1 + size // _PARTS if former is None else int(former[1:].partition(",")[0])
    if by_parts and since is not None and session.pg.info.server_version >= _READS_PAGES:
        sums = sql.SQL("").join(map(sql.SQL(", sum(c.{})::int8").format, names))
        asked = _by_parts(asked, sums, pages=pages, size=size, former=former)
    rows, unchanged, *others = only(identity.harmless(session, asked))
    numbers = dict(zip(columns, others, strict=False))
    keys, of_parts, first, n_before = [*others[len(columns) :], None, None, 0][:4]
    if since is not None and same:
        state = replace(since, snapshot=snapshot, rows=rows, pages=of_parts)
        if unchanged != rows or rows != since.rows:
            state = replace(state, content=f"{_AT}{uuid4()}", spread=None)
        parts = (list(first or ()), pages, int(n_before)) if former and of_parts else None
        return Counted(state, unchanged, is_comparable=True, values=numbers, keys=keys, parts=parts)
    state = SourceState(facts, snapshot, rows, f"{_AT}{uuid4()}", pages=of_parts)
    return Counted(state, 0, is_comparable=False, values=numbers, keys=keys)


def pages_of(places: pa.ChunkedArray) -> str:
    """Return the pages of a part of a table, with the rows of each part."""
    import numpy as np

    page = places.to_numpy() >> 16
    each = 1 + int(page.max(initial=0)) // _PARTS
    return f"{{{each},{','.join(map(str, np.bincount(page // each, minlength=1)))}}}"


def _by_parts(counted: sql.Composed, sums: sql.Composed, **numbers: object) -> sql.Composed:
    """Compose the numbers of rows by parts of a table."""
    slots = {name: sql.Literal(number) for name, number in numbers.items()}
    return template("persons.count_parts", counted=counted, sums=sums, **slots)


def is_comparable(
    session: Session, info: TableInfo, policy: Policy, *, since: SourceState | None
) -> bool:
    """Return True if a row version that is older than a state still has the values of then."""
    found = None if since is None else _facts(session, info, policy)
    return found is not None and _is_same(found, since)


def content_since(
    session: Session, info: TableInfo, policy: Policy, since: SourceState | None
) -> str | None:
    """Return what stands for the rows if they can be compared with a state without reading them.

    It is the content of the state if nothing changed. Rows that were written again may still have
    the same values, which a digest shows.
    """
    now = None if since is None else count(session, info, policy, since=since, by_parts=False)
    if now is None or since is None or not now.is_comparable:
        return None
    is_known = now.state.content == since.content or since.content.startswith(_AT)
    return now.state.content if is_known else None


def _facts(session: Session, info: TableInfo, policy: Policy) -> tuple[str, str, int] | None:
    """Return the snapshot, a digest of what an unchanged row version means, and the pages.

    None if that is unknown: of what is no plain table, or has values that change otherwise.
    """
    names = policy.inputs | {*info.primary_key}
    columns = [column for column in info.columns if column.name in names]
    if info.relkind != "r" or not all(map(_is_lasting, columns)):
        return None
    row = session.pg.execute(query("persons.source_facts"), {"relation": info.oid}).fetchone()
    if row is None or not row[2]:
        return None
    (server,) = session.one("SELECT system_identifier::text FROM pg_control_system()")
    texts = [equal_text(column, sql.Identifier(column.name)).as_string() for column in columns]
    values = [astuple(replace(column, comment=None)) for column in columns]
    where = selected(policy, info).as_string(session.pg)
    document = json.dumps([server, row[1], values, texts, where], default=str)
    return row[0], hashlib.sha256(document.encode()).hexdigest(), row[3]


def _is_lasting(column: ColumnInfo) -> bool:
    """Return True if a value can only change with its row version, or with the catalog facts."""
    kind = column.base_type.removeprefix("_")
    built_in = column.base_schema == "pg_catalog" and not kind.startswith("reg")
    return not column.is_virtual and (bool(column.labels) or (built_in and kind != "aclitem"))


def _is_same(found: tuple[str, str, int], since: SourceState | None) -> bool:
    snapshot, facts, _ = found
    return since is not None and since.facts == facts and _is_near(since.snapshot, snapshot)


def _is_near(before: str, now: str) -> bool:
    """Return True if two snapshots are of one course of transactions, and not too far apart."""
    (former, *_), (oldest, newest, *_) = (map(int, s.split(":")[:2]) for s in (before, now))
    return former <= oldest and newest - former < _FARTHEST


def _unchanged(snapshot: str) -> sql.Composed:
    """Compose whether a row version ``s`` was there when a snapshot was taken.

    ``pg_visible_in_snapshot`` would also accept savepoints of transactions in progress.
    """
    oldest = int(snapshot.split(":", maxsplit=1)[0]) % 2**32
    return sql.SQL("age(s.xmin) > (SELECT age({}::xid))").format(sql.Literal(str(oldest)))


def places(number: int | None) -> sql.Identifier:
    """Name the table of places."""
    return data_table("places", number or 0)


def find_changes(
    session: Session, info: TableInfo, policy: Policy, now: Counted, since: SourceState
) -> Changes | str:
    """Find the rows that changed since a state; returns the reason if all are to be read.

    Raises DatabaseError if the stored places do not add up.
    """
    rows = now.state.rows
    changed = since.changed + rows - now.unchanged + since.rows - now.unchanged
    if changed > _MOST_CHANGED * rows:
        return "much has changed since all rows were read"
    table = places(since.places)
    if not session.one(query("persons.owns_places"), (table.as_string(),))[0]:
        return "the places of its rows are gone, altered, or another role's"
    slots = {
        "places": table,
        "source": identity.readable(session, info),
        "selected": selected(policy, info),
        "unchanged": _unchanged(since.snapshot),
        "key": sql.Literal(since.key),
        "person": hash_of(*_key_of_row(info)),
    }
    create = [template("persons.create_found", found=found) for found in _FOUND]
    slots |= {"rows": slots["source"], "in_parts": sql.SQL("true")}
    if now.parts is not None:
        slots |= {"parts": sql.Literal(now.parts[0]), "pages": sql.Literal(now.parts[1])}
        slots["rows"] = template("persons.rows", **slots)
        slots["in_parts"] = template("persons.in_parts", **slots)
    find = template("persons.find_changes", **slots)
    (n_places,) = identity.harmless(session, find, keep=True, after=create).fetchone() or (0,)
    of_values = _find_spread(session, info, policy, slots, since=since)
    analyze = (sql.SQL("ANALYZE {}").format(found) for found in _FOUND[:2])
    session.run([*analyze, template("persons.find_marked", places=table)])
    came, went, pending = session.one(query("persons.count_places"))
    before = since.rows if now.parts is None else now.parts[2]
    if (n_places, came, went) != (before, rows - now.unchanged, since.rows - now.unchanged):
        raise _faulty(info)
    places_to_read = template("persons.places_to_read", most=sql.Literal(_MOST_SPREAD))
    listed, n_read, spread = session.one(places_to_read)
    if n_read > _MOST_READ * rows:
        return "much of it is not published"
    within = sql.SQL("ctid = ANY ({}::tid[])").format(sql.Literal(listed or "{}"))
    state = replace(now.state, changed=changed, spread=spread and Spread(*of_values, spread))
    return Changes(within, since.rows - went - pending, came, pending, state, now.values)


def _find_spread(
    session: Session,
    info: TableInfo,
    policy: Policy,
    slots: Mapping[str, sql.Composable],
    *,
    since: SourceState,
) -> tuple[list[str], int]:
    """Find rows with all values of the columns of a spread.

    The places of a state are enough, with the rows that came, unless a value went with their rows.
    Returns the columns and the number of their values.
    """
    columns = columns_of_spread(info, policy)
    names = [sql.Identifier(f"v{i}") for i in range(1, len(columns) + 1)]
    values = map(_comparable, map(info.column, columns))
    listed = [sql.SQL("{} AS {}, ").format(*p) for p in zip(values, names, strict=True)]
    sets = [sql.SQL("({})").format(name) for name in names] or [sql.SQL("()").format()]
    parts = {"values": sql.SQL("").join(listed), "sets": sql.SQL(", ").join(sets)}

    def find(among: sql.Composable) -> tuple[int, int]:
        found = template("persons.find_spread", among=among, **parts, **slots)
        n, unchanged = identity.harmless(session, found, keep=True).fetchone() or (0, 0)
        return n, unchanged

    if since.spread is not None and since.spread.columns == columns:
        some = sql.Literal(since.spread.places)
        found, unchanged = find(template("persons.some_places", places=some))
        if unchanged == since.spread.values:
            return columns, found
        session.pg.execute(sql.SQL("DELETE FROM {}").format(_FOUND[2]))
    return columns, find(sql.SQL("true"))[0]


def columns_of_spread(info: TableInfo, policy: Policy) -> list[str]:
    """Return the columns on all of whose values scales or warnings depend."""
    quasi = [rule for rule in policy.with_role(Role.QUASI) if not _has_scale(rule, info)]
    return [rule.column for rule in (*quasi, *policy.with_role(Role.SENSITIVE))]


def spread_of(
    info: TableInfo, policy: Policy, places: pa.ChunkedArray, ends: tuple[NDArray[np.int64], int]
) -> Spread | None:
    """Return the spread of a table whose rows were all read; None if it has many values.

    ends: positions of its rows, and the number of values.
    """
    import pyarrow as pa

    from dbanon.db.transfer import tids

    rows, values = ends
    if len(rows) > _MOST_SPREAD:
        return None
    listed = ",".join(f'"{tid}"' for tid in tids(places.take(pa.array(rows))).to_pylist())
    return Spread(columns_of_spread(info, policy), values, f"{{{listed}}}")


def _comparable(column: ColumnInfo) -> sql.Composed:
    """Compose a value that is equal if it is read as equal; integers need no text for that."""
    name = sql.Identifier(column.name)
    if column.kind is ColumnKind.INTEGER and not column.is_domain:
        return sql.SQL("{}").format(name)
    return sql.SQL('({}) COLLATE "C"').format(equal_text(column, name))


def _has_scale(rule: ColumnRule, info: TableInfo) -> bool:
    """Return True if the taxonomy alone decides about the codes and the loss of a value."""
    is_tree = rule.structure(info.column(rule.column).kind) is Structure.TREE
    return is_tree and rule.taxonomy is not None and rule.on_new_value in {None, STOP}


def _faulty(info: TableInfo) -> DatabaseError:
    return DatabaseError(
        f"the stored places of rows do not fit {info.name}; nothing was published",
        hint=f"{command('dbanon publish', info.name)}, which reads all rows",
    )


def require_found(session: Session, info: TableInfo, changes: Changes) -> None:
    """Keep in ``history_source`` the rows that changed or are pending; raise if one is missing."""
    (found,) = session.one(query("membership.narrow_source"))
    if found != changes.came + changes.pending:
        raise _faulty(info)


def require_matched(session: Session, info: TableInfo, changes: Changes) -> None:
    """Raise DatabaseError unless each published row is unchanged, was read, or is gone."""
    before, read, gone = session.one(query("membership.count_found"))
    if before != changes.published + read + gone:
        raise _faulty(info)


def places_of_next(session: Session, former: int | None) -> int:
    """Return the number of the table of places of the next release.

    It is that of the previous release, which a dump may list, or an empty one.
    """
    table = places(former)
    is_own, number = session.one(query("persons.owns_places"), (table.as_string(),))
    if is_own and former is not None:
        return former
    table = places(number)
    session.run([template("persons.create_places", places=table), private_statement(table)])
    return int(number)


def fill_places(session: Session, publication: Publication) -> None:
    """Store the place of each row for a release that groups all rows, from its membership."""
    table = places(publication.places)
    empty = template("persons.empty_places", places=table)
    session.run([empty, template("persons.fill_places", places=table)])


def update_places(
    session: Session,
    info: TableInfo,
    policy: Policy,
    state: SourceState,
    *,
    release: int,
    key: UUID | None,
    former: int | None = None,
) -> SourceState:
    """Store what a refresh found, and which rows its release publishes (0 for none).

    key: of the hashes, if all rows were read, None if only changes were; former: as in
    ``places_of_next``. Returns the new state.
    """
    if key is None:
        table, found = places(state.places), _CAME
        make = template("persons.discard_went", places=table)
    else:
        slots = {"person": hash_of(*_key_of_row(info)), "key": sql.Literal(key)}
        slots |= {"source": identity.readable(session, info), "selected": selected(policy, info)}
        fill = template("persons.fill_hashed", hashed=_HASHED, **slots)
        create = template("persons.create_found", found=_HASHED)
        identity.harmless(session, fill, keep=True, after=[create])
        state = state.placed(places_of_next(session, former), key)
        table, found = places(state.places), _HASHED
        make = template("persons.empty_places", places=table)
    keep = template("persons.keep_places", places=table, found=found)
    marks = template("persons.mark_places", places=table, release=sql.Literal(release))
    session.run([make, keep, marks])
    return state
