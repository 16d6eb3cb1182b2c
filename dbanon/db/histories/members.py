"""Compare the tables of a dataset with their releases, by person."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from psycopg import sql

from dbanon.db.histories import memory
from dbanon.db.histories.membership import count_rows, published_values, standing, withdrawn
from dbanon.db.queries import template

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    import pyarrow as pa

    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session
    from dbanon.db.transfer import SourceRows
    from dbanon.domain.release import Delta, Published

_DEPARTED = sql.Identifier("pg_temp", "history_departed")


@dataclass(frozen=True, slots=True)
class Member:
    """Changes to a table of a dataset when some of its persons are withdrawn.

    withdrawn: class numbers; growth: row counts; published: as in ``Standing``; of_nobody: source
    rows of persons never published in this table.
    """

    withdrawn: tuple[int, ...]
    growth: Delta
    published: Sequence[Published]
    of_nobody: int


def stand(
    session: Session,
    publication: Publication,
    rows: SourceRows,
    persons: pa.Table,
    *,
    kept: Collection[str],
    part: int,
) -> Member:
    """Compare rows of table number ``part`` with its publication, after ``hand_over``."""
    with standing(session, publication, rows, persons) as known:
        departed = {"departed": _kept(part), "persons": _kept(0)}
        session.pg.execute(template("membership.departed_of_members", **departed))
        gone = withdrawn(session, _kept(part))
        growth, of_nobody = count_rows(session, _kept(part))
        shown = published_values(session, publication, kept, key=known.key)
    memory.forget(session, memory.BEFORE)
    growth = replace(growth, withdrawn=len(gone))
    return Member(gone, growth, shown, of_nobody)


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
