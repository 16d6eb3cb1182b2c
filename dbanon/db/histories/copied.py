"""Compare a private copy with its stored membership, and extend it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from psycopg import sql

from dbanon.db.queries import identifiers, template
from dbanon.db.releases import copies, immutability, relations
from dbanon.domain.errors import DatabaseError
from dbanon.domain.text import command

if TYPE_CHECKING:
    from uuid import UUID

    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session
    from dbanon.domain.release import Entry

_OF_SEVERAL_TEXTS = ("numeric", "numrange", "float8")  # 1.0 and 1.00, 0 and -0 are equal


def class_number(publication: Publication, published: sql.Composable) -> sql.Composed:
    """Compose the number of a class from its values, a jsonb object of q1, q2 and so on."""
    columns = sql.Literal(repr([column for column, _ in publication.recodings]))
    return template("histories.class_number", columns=columns, published=published)


def of_copy(publication: Publication) -> dict[str, sql.Composable]:
    """Compose the published class of a row ``s`` of the private copy, and the class number.

    ``c.published`` is hashed once per class; alike: columns and texts that group rows of a class.
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
    """Compose the class values of a row ``s`` of the private copy, as a jsonb object."""
    values = [
        sql.SQL("{}, s.{}").format(sql.Literal(f"q{i}"), sql.Identifier(column))
        for i, (column, _) in enumerate(publication.recodings, 1)
    ]
    return sql.SQL("jsonb_build_object({})").format(sql.SQL(", ").join(values))


def require_same_members(session: Session, publication: Publication, key: UUID | None) -> None:
    """Raise DatabaseError if the classes of a copy differ from its stored membership."""
    slots = {**of_copy(publication), "key": sql.Literal(key)}
    same = template("histories.same_members", **slots)
    if session.pg.execute(same).fetchone() != (True,):
        raise DatabaseError(
            f"{publication.view} shows other classes than are remembered of it; nothing was"
            " published",
            hint=command("dbanon publish", publication.info.name),
        )


def extend(
    session: Session, publication: Publication, previous: Entry | None, *, key: UUID | None
) -> Publication:
    """Withdraw classes from the former copy and add new ones; other classes stay untouched.

    All rows of a class that gains some are rewritten in random order. key: hash key of the persons;
    ``history_departed`` has the withdrawn persons. Return the publication with the number of the
    copy. Raise DatabaseError if the former copy was altered or has other columns.
    """
    table = publication.info.name
    if previous is None or not copies.is_sealed(session, publication, previous):
        raise DatabaseError(
            f"{publication.view} is not as it was published, and cannot be extended",
            hint=command("dbanon refresh", table, options="--new-series"),
        )
    former = replace(publication, former=previous.data_id)
    copies.unseal(session, former.release)
    if publication.withdrawn:
        gone = sql.Literal(list(publication.withdrawn))
        shown = {**of_copy(former), "key": sql.Literal(key)}
        session.run((template("histories.withdraw", **shown, withdrawn=gone),))
    quasi = [sql.Identifier(name) for name, _ in former.recodings]
    slots = {
        "quasi": sql.SQL(", ").join(sql.SQL("s.{}").format(name) for name in quasi),
        "names": identifiers(f"q{i}" for i, _ in enumerate(quasi, 1)),
        "changed": _labels(former),
    }
    session.run(relations.copy_statements(former, "releases.extend_release", **slots))
    session.run(immutability.close_statements(former.release))
    return former


def _labels(publication: Publication) -> sql.Composable:
    """Select the published values of new groups, with NULL as their place."""
    columns = [sql.Identifier("s", f"q{i}") for i, _ in enumerate(publication.recodings, 1)]
    found = sql.SQL("SELECT {}, NULL::tid FROM {} AS s")
    return found.format(sql.SQL(", ").join(columns), publication.groups)
