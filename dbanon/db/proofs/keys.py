"""Prove that what was read as a key is one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.db.queries import identifiers, template
from dbanon.domain.errors import PolicyError

if TYPE_CHECKING:
    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session


def require_unique(session: Session, publication: Publication) -> None:
    """Raise PolicyError when two of the rows to be published have one key, or one has none.

    A declared key is an index, and an index may be wrong: after an upgrade of the collations that
    it was sorted by, or by damage. Copies of a person would count as members of their class.
    """
    keys = identifiers(publication.key_columns, of="r")
    statement = template("proofs/prove_keys", rows=publication.rows, keys=keys)
    row = session.pg.execute(statement).fetchone()
    if row is None or not row[0]:
        raise PolicyError(
            f"the primary key of {publication.info.name} does not tell its rows apart: several rows"
            " have the same key, or one is NULL",
            hint=f"REINDEX TABLE {publication.info.name}, which names what is double",
        )
