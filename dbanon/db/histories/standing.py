"""Who of a source is published already, and who never was."""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from psycopg import sql

from dbanon.db.histories import atoms, companions, copied, leavers, memory
from dbanon.db.person_hashes import write_persons
from dbanon.db.proofs import keys
from dbanon.db.queries import identifiers, query, template
from dbanon.db.session import at_once
from dbanon.db.transfer import write_codes
from dbanon.domain.policy import Role
from dbanon.domain.release import Growth
from dbanon.formats.values import coded

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from datetime import timedelta
    from uuid import UUID

    from numpy.typing import NDArray

    from dbanon.db.histories.memory import Memory
    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session
    from dbanon.db.transfer import SourceRows

_READ = sql.Identifier("pg_temp", "history_read")
_CODES = sql.Identifier("pg_temp", "history_codes")
_SOURCE = sql.Identifier("pg_temp", "history_source")
_MEMBERS = sql.Identifier("pg_temp", "history_members")
_OF_MEMBERS = sql.Identifier("pg_temp", "history_of_members")
_CELLS = sql.Identifier("pg_temp", "history_cells")
_STANDING = sql.Identifier("pg_temp", "history_standing")
_TOUCHED = sql.Identifier("pg_temp", "history_touched")
_MISSED = sql.Identifier("pg_temp", "history_missed")
_DEPARTED = sql.Identifier("pg_temp", "history_departed")


@dataclass(frozen=True, slots=True)
class Terms:
    """When those who left a class are not shown any more, and who goes with them.

    leavers: how many of it have to be gone for the class to go; k, required: what those who are
    gone have to be for the others to stay or come back, and what these have to be themselves: so
    many, with so many values of each sensitive column. Without ``required`` the class goes as a
    whole; with it and ``patient``, nobody goes before. Where somebody has been gone for longer than
    the ``deadline``, nothing is waited for. of_cells: how many persons a cell of all releases
    needs, the greatest k of these, where a class needs k.
    """

    leavers: int
    k: int
    of_cells: int
    required: Mapping[str, int] | None
    patient: bool = False
    deadline: timedelta | None = None

    def asked(self, k: int) -> dict[str, object]:
        """Return what a class or a cell of k persons has to be, as parameters of a query."""
        required = self.required or {}
        return {"k": k, "columns": list(required), "required": list(required.values())}


@dataclass(frozen=True, eq=False, slots=True)
class Standing:
    """How the rows of a source stand to what is published of them.

    pools: the places of those who may form classes, each pool by itself: first those who were never
    published, then those who stay of classes that go; withdrawn: the classes that go, by number;
    growth: the rows that stay, go and come, but for those of the pools; elsewhere: the places of
    those whom only other relations ever showed, and the atoms in which they did.
    """

    pools: tuple[NDArray[np.int64], ...]
    withdrawn: tuple[int, ...]
    growth: Growth
    elsewhere: tuple[NDArray[np.int64], NDArray[np.int32]] | None = None


class _Part(NamedTuple):
    """The persons of a class who are in one cell of all releases, of whom some may be gone."""

    part: int
    class_: int
    gone: int
    persons: int
    gone_are_safe: bool
    others_are_safe: bool
    is_overdue: bool

    @property
    def is_done(self) -> bool:
        """Whether those who are gone may go by themselves, or are all there are."""
        return self.gone_are_safe or self.gone == self.persons


@dataclass(slots=True)
class _Fate:
    """Parts of which all go, of which those who left do, and of which others then come back.

    split: those of which as many others go with those who left as it takes.
    """

    whole: list[int] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    returning: list[int] = field(default_factory=list)
    split: list[int] = field(default_factory=list)


def stand(
    session: Session,
    publication: Publication,
    rows: SourceRows,
    *,
    terms: Terms,
    persons: pa.Table | None = None,
) -> Standing:
    """Return how rows stand to a publication that is served.

    persons: the column that tells the person of each row, where it is not the key.
    Whom the next one shows no more is in the table ``history_departed`` until the transaction ends.
    What is remembered, and whom the publication shows, stays unpacked for whoever remembers it.

    Raises PolicyError when two rows have one key.
    """
    with standing(session, publication, rows, rows.keys if persons is None else persons) as known:
        if persons is None:
            columns = identifiers(publication.key_columns, of="r")
            keys.require_key(session, publication, _READ, columns)
        _find_members(session)
        found = _counted(session, publication, terms, key=known.key)
        if persons is None:
            others = atoms.elsewhere(session, known, publication.view)
            found = replace(found, elsewhere=others)
        else:
            growth = _of_rows(session, len(rows.keys), found)
            found = replace(found, growth=growth)
        memory.drop(session, _CELLS, _MEMBERS, _MISSED, _TOUCHED)
    return found


def _of_rows(session: Session, size: int, found: Standing) -> Growth:
    """Return what becomes of rows whose persons may have got or lost some; size: of all rows."""
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


def count_rows(session: Session, departed: sql.Identifier) -> tuple[Growth, int]:
    """Count the rows that stay and go, within ``standing``, and those of whom none were published.

    departed: whom the next release shows no more.
    """
    counted = template("standing.count_standing_of_members", departed=departed)
    *rows, of_nobody = session.one(counted)
    names = ("kept", "deferred", "left", "changed", "later")
    return Growth(**dict(zip(names, rows, strict=True))), of_nobody


@contextmanager
def standing(
    session: Session, publication: Publication, rows: SourceRows, persons: pa.Table
) -> Iterator[Memory]:
    """Hold rows against a publication that is served during the block; give what is remembered.

    persons: the columns that tell the person of each row.
    """
    known = memory.unpack_shown(session, publication)
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
    one_row = publication.policy.subject is None
    with at_once(session.pg):
        session.pg.execute(template("histories.source", **slots))
        session.pg.execute(sql.SQL("ANALYZE {} (person)").format(_SOURCE))
        session.pg.execute(query("standing.differing" if one_row else "standing.differing_persons"))
    yield known
    memory.drop(session, _READ, _CODES, _SOURCE, _STANDING)


def _find_members(session: Session) -> None:
    """Write who is in the classes that somebody has left, and in which cells of all releases."""
    slots = {"entries": _OF_MEMBERS, "among": memory.ENTRIES, "persons": _MEMBERS}
    condition = sql.SQL("true")
    with at_once(session.pg):
        session.pg.execute(query("standing.members"))
        session.pg.execute(template("overlays.entries_of", condition=condition, **slots))
        memory.cells(session, _CELLS, entries=_OF_MEMBERS)
        session.pg.execute(sql.SQL("ANALYZE {}").format(_MEMBERS))
        memory.drop(session, _OF_MEMBERS)


def _read(
    session: Session, publication: Publication, rows: SourceRows, persons: pa.Table
) -> sql.Composable:
    """Write persons and values, each with its place; return the hash of a row's person."""
    codes, objects = coded.number(rows.columns, publication.info)
    person = write_persons(session, _READ, persons, beside={"code": pa.array(codes)})
    write_codes(session, _CODES, objects)
    return person


def _counted(session: Session, publication: Publication, terms: Terms, *, key: object) -> Standing:
    leavers.find(session, publication.view, deadline=terms.deadline)
    session.pg.execute(query("standing.touched"), terms.asked(terms.of_cells))
    parts: dict[int, list[_Part]] = defaultdict(list)
    for row in session.pg.execute(query("standing.parts")):
        part = _Part(*row)
        parts[part.class_].append(part)
    mixed: Collection[int] = ()
    if parts and terms.required is not None:  # by pseudonyms all rows of a class differ
        told = publication.policy.pseudonym is not None
        mixed = parts.keys() if told else _mixed(session, publication, key=key)
    fate = _departed(session, parts, terms, mixed=mixed)
    withdrawn = [row[0] for row in session.pg.execute(query("standing.withdrawn"))]
    fresh = [row[0] for row in session.pg.execute(query("standing.fresh"))]
    returning = _left_behind(session, fate.returning)
    pools = [np.array(fresh, np.int64), *returning]
    asked = {"fresh": len(fresh)}
    counts = session.one(query("standing.count_standing"), asked)
    leavers.keep(session, publication.view)
    lingering = leavers.count(session, publication.view, deadline=terms.deadline)
    names = ("kept", "withheld", "deferred", "left", "changed", "overdue")
    growth = Growth(
        withdrawn=len(withdrawn), due=lingering.due, **dict(zip(names, counts, strict=True))
    )
    return Standing(tuple(pools), tuple(withdrawn), growth)


def _departed(
    session: Session,
    parts: Mapping[int, Sequence[_Part]],
    terms: Terms,
    *,
    mixed: Collection[int],
) -> _Fate:
    """Write whom the next release shows no more, by what becomes of the parts of each class.

    Parts that can go by themselves may leave a class with others who are none; then it stays as it
    is, or goes as a whole.
    """
    fate = _fate(parts, terms, mixed=mixed, undivided=())
    drawn = companions.find(session, fate.split, terms.of_cells, terms.required or {})
    _depart(session, fate, drawn)
    if terms.required is None:
        return fate
    found = session.pg.execute(query("standing.undivided"), terms.asked(terms.k))
    undivided = {row[0] for row in found}
    if undivided:
        fate = _fate(parts, terms, mixed=mixed, undivided=undivided)
        memory.drop(session, _DEPARTED)
        _depart(session, fate, drawn)
    return fate


def _depart(session: Session, fate: _Fate, drawn: Mapping[int, Sequence[UUID]]) -> None:
    """Write whom the next release shows no more; drawn: who goes with those who left a part."""
    split = [part for part in fate.split if part in drawn]
    asked = {
        "whole": [*fate.whole, *(part for part in fate.split if part not in drawn)],
        "left": [*fate.left, *split],
        "companions": [person for part in split for person in drawn[part]],
    }
    session.pg.execute(query("standing.departed"), asked)


def _fate(
    parts: Mapping[int, Sequence[_Part]],
    terms: Terms,
    *,
    mixed: Collection[int],
    undivided: Collection[int],
) -> _Fate:
    """Decide what becomes of all classes; undivided: those that go as a whole or not at all."""
    fate = _Fate()
    for class_, found in parts.items():
        if terms.required is None or class_ in undivided:
            _decide_undivided(fate, found, terms)
        elif class_ in mixed:
            _decide_mixed(fate, found, terms)
        else:
            _decide(fate, found, terms)
    return fate


def _mixed(session: Session, publication: Publication, *, key: object) -> set[int]:
    """Return the classes whose rows differ where their sensitive values do not.

    Which of such rows is that of somebody who left, nobody knows.
    """
    sensitive = [rule.column for rule in publication.policy.with_role(Role.SENSITIVE)]
    others = [name for name in publication.kept if name not in sensitive]
    if not others:
        return set()
    statement = template(
        "histories.mixed",
        **{"class": copied.number_in_copy(publication)},
        quasi=identifiers([name for name, _ in publication.recodings]),
        sensitive=identifiers(sensitive, of="r"),
        others=identifiers(others, of="r"),
        release=publication.release,
        key=sql.Literal(key),
    )
    return {row[0] for row in session.pg.execute(statement)}


def _decide_undivided(fate: _Fate, parts: Sequence[_Part], terms: Terms) -> None:
    """Decide what becomes of a class that goes as a whole or not at all."""
    gone = sum(part.gone for part in parts)
    if gone >= terms.leavers or any(part.is_overdue for part in parts):
        fate.whole += [part.part for part in parts]


def _decide_mixed(fate: _Fate, parts: Sequence[_Part], terms: Terms) -> None:
    """Decide what becomes of a class that goes as a whole, and of which others may come back."""
    touched = [part for part in parts if part.gone]
    gone = sum(part.gone for part in touched)
    is_patient = terms.patient and not any(part.is_overdue for part in touched)
    if is_patient and not (gone >= terms.k and all(part.is_done for part in touched)):
        return
    fate.whole += [part.part for part in parts]
    fate.returning += [part.part for part in touched if part.gone_are_safe]


def _decide(fate: _Fate, parts: Sequence[_Part], terms: Terms) -> None:
    """Decide what becomes of each part of a class by itself."""
    for part in parts:
        if not part.gone:
            continue
        if part.is_done and (part.others_are_safe or part.gone == part.persons):
            fate.left.append(part.part)
        elif part.is_done:
            fate.whole.append(part.part)
        elif part.is_overdue or not terms.patient:
            fate.split.append(part.part)


def _left_behind(session: Session, parts: Sequence[int]) -> list[NDArray[np.int64]]:
    """Return the places of those who stay of each part with the values that were published.

    Whose values changed is withheld: to be published with others would tell them apart, and those
    of before need not differ among them.
    """
    pools: dict[int, list[int]] = defaultdict(list)
    for part, place in session.pg.execute(query("standing.left_behind"), {"parts": list(parts)}):
        pools[part].append(place)
    return [np.array(places, np.int64) for places in pools.values()]
