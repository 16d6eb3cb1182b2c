"""Compare the source with the current release: published, new and deleted persons, and keys."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from psycopg import sql

from dbanon.db import catalog
from dbanon.db.histories import atoms, memory
from dbanon.db.metadata import ledger
from dbanon.db.person_hashes import hash_of, require_found, require_matched
from dbanon.db.proofs import subjects
from dbanon.db.queries import identifiers, query, template
from dbanon.db.releases import companion_relations, copies, relations
from dbanon.db.releases.publication import data_table
from dbanon.db.session import at_once
from dbanon.db.transfer import write_codes
from dbanon.domain.policy import Role
from dbanon.domain.release import CheckFailed, CheckReport, Delta, Published
from dbanon.domain.text import command
from dbanon.formats import column_values

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from datetime import timedelta
    from uuid import UUID

    from numpy.typing import NDArray

    from dbanon.db.histories.atoms import Elsewhere
    from dbanon.db.histories.memory import Memory
    from dbanon.db.person_hashes import Changes
    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session
    from dbanon.db.transfer import SourceRows
    from dbanon.domain.release import Entry


_READ = sql.Identifier("pg_temp", "history_read")
_CODES = sql.Identifier("pg_temp", "history_codes")
_SOURCE = sql.Identifier("pg_temp", "history_source")
_STANDING = sql.Identifier("pg_temp", "history_standing")
_MISSED = sql.Identifier("pg_temp", "history_missed")
_DEPARTED = sql.Identifier("pg_temp", "history_departed")


@dataclass(frozen=True, slots=True)
class RetentionRules:
    """Withdraw a class if ``share`` of its persons are deleted and fewer than ``k`` remain.

    Also if one has been deleted for longer than ``deadline``.
    """

    share: float
    k: int
    deadline: timedelta | None = None


@dataclass(frozen=True, eq=False, slots=True)
class MembershipDiff:
    """The differences between a source and its current release.

    fresh: positions of persons never published; withdrawn: class numbers; growth: row counts;
    published: sensitive values; elsewhere: persons published only in other relations. Of a table
    that shows persons of another one, of_nobody: source rows of persons never published in it.
    """

    fresh: NDArray[np.int64]
    withdrawn: tuple[int, ...]
    growth: Delta
    published: Sequence[Published]
    elsewhere: Elsewhere | None = None
    of_nobody: int = 0


def diff_rows(
    session: Session,
    publication: Publication,
    rows: SourceRows,
    *,
    terms: RetentionRules,
    kept: Collection[str] = (),
    persons: pa.Table | None = None,
    changes: Changes | None = None,
) -> MembershipDiff:
    """Compare rows with a served publication; raise PolicyError if two rows have the same key.

    kept: columns of kept values; persons: person column of each row, if it is not the key;
    changes: if only these rows were read. ``history_departed`` contains the withdrawn persons until
    the transaction ends, ``history_states`` the rows that are not as published, if each row is a
    person; ENTRIES and BEFORE stay unpacked.
    """
    of_rows = rows.keys if persons is None else persons
    near = changes is not None and not kept
    with comparing(session, publication, rows, of_rows, changes=changes, near=near) as known:
        if persons is None:
            columns = identifiers(publication.key_columns, of="r")
            subjects.require_key(session, publication, _READ, columns)
        found = _counted(session, publication, terms, first=min(known.relations))
        shown = published_values(session, publication, kept, key=known.key)
        found = replace(found, published=shown)
        if persons is None:
            others = atoms.elsewhere(session, known, publication.view)
            found = replace(found, elsewhere=others)
        else:
            growth = _of_rows(session, len(rows.keys), found)
            found = replace(found, growth=growth)
        memory.drop(session, _MISSED)
    return found


def diff_linked_rows(
    session: Session,
    publication: Publication,
    rows: SourceRows,
    persons: pa.Table,
    *,
    kept: Collection[str],
    part: int,
) -> MembershipDiff:
    """Compare rows of table number ``part`` of a dataset, after ``hand_over`` of its persons."""
    with comparing(session, publication, rows, persons) as known:
        departed = {"departed": _kept(part), "persons": _kept(0)}
        session.pg.execute(template("membership.departed_of_members", **departed))
        gone = withdrawn(session, _kept(part))
        growth, of_nobody = count_rows(session, _kept(part))
        shown = published_values(session, publication, kept, key=known.key)
    memory.forget(session, memory.BEFORE)
    growth = replace(growth, withdrawn=len(gone))
    return MembershipDiff(np.zeros(0, np.int64), gone, growth, shown, of_nobody=of_nobody)


def hand_over(session: Session) -> None:
    """Preserve the departed persons of the first table for all tables."""
    _rename(session, "history_departed", _name(0))
    memory.forget(session, memory.BEFORE)


@contextmanager
def departing(session: Session, publication: Publication, part: int) -> Iterator[None]:
    """Unpack a publication, and exclude departed persons from its next release, in the block."""
    _rename(session, _name(part), "history_departed")
    memory.unpack_shown(session, publication)
    yield
    memory.drop(session, _DEPARTED)


def _name(part: int) -> str:
    return f"history_departed_{part}"


def _kept(part: int) -> sql.Identifier:
    return sql.Identifier("pg_temp", _name(part))


def _rename(session: Session, former: str, name: str) -> None:
    rename = sql.SQL("ALTER TABLE {} RENAME TO {}")
    former_table = sql.Identifier("pg_temp", former)
    session.pg.execute(rename.format(former_table, sql.Identifier(name)))


def _of_rows(session: Session, size: int, found: MembershipDiff) -> Delta:
    """Count the changed rows of persons with several rows; size: number of all rows."""
    growth, fresh = count_rows(session, _DEPARTED)
    withheld = size - growth.kept - growth.later - fresh
    former = found.growth
    return replace(
        growth,
        withdrawn=former.withdrawn,
        withheld=withheld,
        overdue=former.overdue,
        due=former.due,
    )


def count_rows(session: Session, departed: sql.Identifier) -> tuple[Delta, int]:
    """Count retained, withdrawn (``departed``) and never published rows, within ``comparing``."""
    counted = template("membership.count_standing_of_members", departed=departed)
    *rows, of_nobody = session.one(counted)
    names = ("kept", "deferred", "left", "changed", "later")
    return Delta(**dict(zip(names, rows, strict=True))), of_nobody


@contextmanager
def comparing(
    session: Session,
    publication: Publication,
    rows: SourceRows,
    persons: pa.Table,
    *,
    changes: Changes | None = None,
    near: bool = False,
) -> Iterator[Memory]:
    """Compare rows, identified by ``persons``, with a served publication during the block.

    near: unpack only persons whom it may concern.
    """
    known = memory.unpack_shown(session, publication, near=near)
    person = _read(session, publication, rows, persons)
    table = publication.info.name
    slots = {
        "person": person,
        "read": _READ,
        "codes": _CODES,
        "key": sql.Literal(known.key),
        "table_schema": sql.Literal(table.schema),
        "table_name": sql.Literal(table.name),
    }
    one_row = publication.policy.is_one_row(publication.info)
    with at_once(session.pg):
        session.pg.execute(template("histories.source", **slots))
        session.pg.execute(sql.SQL("ANALYZE {} (person)").format(_SOURCE))
    if changes is None:
        session.pg.execute(
            query("membership.differing" if one_row else "membership.differing_persons")
        )
    else:
        require_found(session, publication.info, changes)
        view = publication.view
        slots = {"view_schema": sql.Literal(view.schema), "view_name": sql.Literal(view.name)}
        session.pg.execute(template("membership.differing_of_changes", **slots))
        require_matched(session, publication.info, changes)
    yield known
    memory.drop(session, _READ, _CODES, _SOURCE, _STANDING)


def _read(
    session: Session, publication: Publication, rows: SourceRows, persons: pa.Table
) -> sql.Composable:
    """Write persons and values with their positions; return the hash expression of a person."""
    codes, _, objects = column_values.number(rows.columns, publication.info)
    person = atoms.write_persons(session, _READ, persons, beside={"code": pa.array(codes)})
    write_codes(session, _CODES, objects)
    return person


def _counted(
    session: Session, publication: Publication, terms: RetentionRules, *, first: int
) -> MembershipDiff:
    memory.find_deleted(session, publication.view, deadline=terms.deadline)
    asked = {"share": terms.share, "k": terms.k, "first": first}
    session.pg.execute(query("membership.departed"), asked)
    gone = withdrawn(session, _DEPARTED)
    fresh = [row[0] for row in session.pg.execute(query("membership.fresh"))]
    counts = session.one(query("membership.count_standing"), {"fresh": len(fresh)})
    memory.keep_deleted(session, publication.view)
    retained = memory.count_deleted(session, publication.view, deadline=terms.deadline)
    names = ("kept", "withheld", "deferred", "left", "changed", "overdue")
    growth = Delta(withdrawn=len(gone), due=retained.due, **dict(zip(names, counts, strict=True)))
    if terms.deadline is not None:
        (bound,) = session.one(query("membership.bound_rows"))
        growth = replace(growth, bound=bound)
    growth = replace(growth, former=_former(session, publication, growth.shown))
    return MembershipDiff(np.array(fresh, np.int64), gone, growth, ())


def _former(session: Session, publication: Publication, shown: int) -> dict[str, float]:
    """Return the share of published rows with former values, by column; of one row a person."""
    if not publication.policy.is_one_row(publication.info):
        return {}
    columns = [rule.column for rule in publication.policy.with_role(Role.SENSITIVE)]
    found = template("membership.find_former_values", columns=sql.Literal(columns))
    session.run((found, query("membership.states")))
    counts = session.pg.execute(query("membership.former_values"))
    return {name: rows / max(shown, 1) for name, rows in counts}


def withdrawn(session: Session, departed: sql.Identifier) -> tuple[int, ...]:
    """Return the withdrawn classes, within ``comparing``."""
    found = session.pg.execute(template("membership.withdrawn", departed=departed))
    return tuple(row[0] for row in found)


def published_values(
    session: Session, publication: Publication, kept: Collection[str], *, key: UUID | None
) -> list[Published]:
    """Count each published sensitive value, within ``comparing``, by the values of kept columns."""
    columns = [rule.column for rule in publication.policy.with_role(Role.SENSITIVE)]
    own = [name for name, _ in publication.recodings if name in kept]
    # rows of one person count once
    one_row = publication.policy.is_one_row(publication.info)
    rows = sql.SQL("count(*)" if one_row else "count(DISTINCT b.person)")
    counted = template(
        "membership.published_values", rows=rows, **_of_kept(publication, own, key=key)
    )
    persons: dict[str, int] = {}
    counts: dict[str, dict[str, list[int]]] = {}
    for text, name, number in session.pg.execute(counted, {"columns": columns}):
        if name is None:
            persons[text] = number
        else:
            of_columns = counts.setdefault(text, {column: [] for column in columns})
            of_columns[name].append(number)
    nothing: dict[str, list[int]] = {column: [] for column in columns}
    return [
        Published(json.loads(text), counts.get(text, nothing), number)
        for text, number in persons.items()
    ] or [Published({}, nothing, 0)]


def _of_kept(
    publication: Publication, kept: Sequence[str], *, key: UUID | None
) -> dict[str, sql.Composable]:
    """Compose the published rows, their kept values, and what groups rows by these and by value."""
    before = sql.SQL("{} AS b").format(memory.BEFORE)
    if not kept:
        return {"kept": sql.SQL("'{}'::jsonb"), "members": before, "alike": sql.SQL("b.value_id")}
    pairs = [
        sql.SQL("{}, s.{}::text").format(sql.Literal(name), sql.Identifier(name)) for name in kept
    ]
    values = sql.SQL("jsonb_build_object({})").format(sql.SQL(", ").join(pairs))
    slots = {**memory.of_copy(publication), "key": sql.Literal(key), "kept": values}
    of_classes = template("membership.kept_values", **slots)
    members = sql.SQL("{} JOIN ({}) AS c USING (class)").format(before, of_classes)
    return {
        "kept": sql.Identifier("c", "kept"),
        "members": members,
        "alike": sql.SQL("c.kept, b.value_id"),
    }


_SHOWN = sql.Identifier("pg_temp", "history_shown")


def require_lasting_keys(session: Session, publication: Publication, known: Memory) -> None:
    """Raise CheckFailed if a release seems to have replaced its persons.

    It is compared with the relation's previous release, otherwise the newest of the series. If the
    source has less than half of its persons, and new persons number at least half, the keys were
    probably regenerated: each person would count twice, which hides the combined disclosure.
    """
    before = {n: name for n, name in known.relations.items() if n != publication.id}
    if not before:
        return
    own = [number for number, name in before.items() if name == publication.view]
    number = max(own or before)
    (fresh,) = session.one(query("membership.newcomers"), {"release": publication.id})
    if not fresh or 2 * fresh < _least(session, known, number):
        return
    memory.forget(session)
    memory.unpack(session, [known])
    found = shown = _count(session, known, number)
    if 2 * fresh >= shown:  # else nobody has to be looked up in the source
        memory.rows(session, known, number, _SHOWN)
        (counts,) = session.pg.execute(_present_in_source(publication, known))
        (found,) = counts
        memory.drop(session, _SHOWN)
    if 2 * found < shown:
        table = publication.info.name
        raise CheckFailed(
            f"of the {shown:,} persons of release {number}, {found:,} are found in {table}"
            f" by {', '.join(known.person)}, and {fresh:,} persons are new. If these are the same"
            " persons with other keys, a comparison of the releases may identify them;"
            " nothing was published",
            CheckReport(publication.view, ()),
            hint="name a key or a subject that lasts; or start a series of its own: "
            + command("dbanon publish", table, options="--new-series --recipients-changed"),
        )


def _count(session: Session, known: Memory, number: int) -> int:
    """Count the persons of a release."""
    counted = template("overlays.count_shown", shown=known.shown(number))
    persons: int = session.one(counted)[0]
    return persons


def _least(session: Session, known: Memory, number: int) -> int:
    """Return a lower bound on the persons of a release, from the changed rows."""
    if known.several:
        return 0
    relation, changed = known.relations[number], memory.changes(session, known.table)
    own = [n for n, name in known.relations.items() if name == relation and n <= number]
    return changed.get(own[0], 0) - sum(changed.get(n, 0) for n in own[1:])


def _present_in_source(publication: Publication, known: Memory) -> sql.Composed:
    """Count published persons in the source, also those that the policy filters out."""
    columns = [publication.info.column(name) for name in known.person]
    return template(
        "histories.present_in_source",
        person=hash_of(columns, [sql.Identifier("s", column.name) for column in columns]),
        source=publication.reading,
        key=sql.Literal(known.key),
    )


class Apart(NamedTuple):
    """The number of persons by which a release differs from an earlier one of its series.

    came: only in the new release; left: only in the earlier one; is_known: membership is stored.
    """

    number: int
    came: int = 0
    left: int = 0
    is_known: bool = True


def same_values(
    session: Session, publication: Publication, columns: Mapping[int, Collection[str]]
) -> set[int]:
    """Return the served copies with the same values and frequencies as a release.

    columns: to compare, by release number. The release has membership but no copy yet.
    """
    found = set()
    for entry in ledger.served_entries(session, table=publication.info.name):
        names = columns.get(entry.id)
        if not names or entry.kind.is_live or not copies.is_closed(session, entry):
            continue
        if _shows_same(session, publication, entry, names):
            found.add(entry.id)
    return found


def _shows_same(
    session: Session, publication: Publication, entry: Entry, names: Collection[str]
) -> bool:
    """Compare a served copy and its companion relations with the values of a release."""
    dealt = [name for name in names if name == companion_relations.bucket_column(publication)]
    of_rows = [name for name in names if name not in dealt]
    served, release = relations.served_rows(publication), data_table("release", entry.data_id)
    shown = {column.name for column in catalog.describe(session, entry.relation).columns}
    if not shown.issuperset(of_rows) or not _is_same(session, of_rows, served, release):
        return False
    if not dealt:
        return True
    former = companion_relations.values_of_buckets(session, publication, entry.relation)
    return former is not None and _is_same(
        session, dealt, companion_relations.bucket_values(publication), former
    )


def _is_same(
    session: Session, names: Sequence[str], served: sql.Composable, release: sql.Composable
) -> bool:
    """Return True if two relations have equal values in some columns, with equal frequencies."""
    values = [sql.SQL("format('%L', s.{})").format(sql.Identifier(name)) for name in names]
    slots = {"values": sql.SQL(", ").join(values), "served": served, "release": release}
    row = session.pg.execute(template("releases.shows_same_values", **slots)).fetchone()
    return row == (True,)


def persons_apart(
    session: Session, publication: Publication, numbers: Collection[int]
) -> list[Apart]:
    """Compare the persons of a stored release with those of earlier ones of its series."""
    table, view = publication.info.name, publication.view
    session.allow_memory()
    known = memory.recall(session, table, relation=view)
    series, live = memory.series(session, table), ledger.live_releases(session, table)
    own = [
        number
        for number in sorted(numbers)
        if number != publication.id
        and number not in live
        and memory.series_of(series, number, known.series) == known.series
    ]
    compared = [number for number in own if number in known.relations]
    found = [Apart(number, is_known=False) for number in own if number not in known.relations]
    if compared:
        first = known.firsts()
        counted = template(
            "histories.persons_apart",
            new=known.shown(publication.id),
            former=memory.shown_by_each(),
            releases=memory.listed([(n, first[n]) for n in compared], "shown_id", "relation"),
        )
        found += [Apart(*counts) for counts in session.pg.execute(counted)]
    memory.forget(session)
    return sorted(found)
