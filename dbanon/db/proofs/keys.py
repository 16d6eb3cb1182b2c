"""Prove that the key of a source is unique."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg import sql

from dbanon.db import identity, transfer
from dbanon.db.queries import identifiers, template
from dbanon.db.session import at_once
from dbanon.domain.errors import PolicyError
from dbanon.domain.table import ColumnKind, quote_identifier

if TYPE_CHECKING:
    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session
    from dbanon.domain.policy import Policy
    from dbanon.domain.table import TableInfo


def require_unique(session: Session, publication: Publication) -> None:
    """Raise PolicyError if two rows that were read have the same key, or one has none.

    An index may be corrupt, for example after a collation upgrade. Copies of a person would count
    as several, and a suppressed row could be published in the place of one with the same key.
    """
    asked = [(_by_key(publication), identifiers(publication.key_columns, of="r"))]
    if publication.reading == publication.stage:
        asked.append((publication.stage, sql.SQL(", ").join(publication.keys(of="r"))))
    with at_once(session.pg):
        found = [session.pg.execute(_proof(rows, keys)) for rows, keys in asked]
    if any(proof.fetchone() != (True,) for proof in found):
        raise _no_key(publication.info, publication.policy)


def _by_key(publication: Publication) -> sql.Composable:
    """Return the membership, sorted by integer keys, which makes the proof faster."""
    names = publication.info.primary_key
    if any(publication.info.column(name).kind is not ColumnKind.INTEGER for name in names):
        return publication.rows
    keys = identifiers(publication.key_columns, of="o")
    return template("proofs.sorted_by_keys", rows=publication.rows, keys=keys)


def require_key(
    session: Session, publication: Publication, rows: sql.Composable, keys: sql.Composable
) -> None:
    """Raise PolicyError if two rows ``r`` of a relation have the same key, or one has none."""
    if session.pg.execute(_proof(rows, keys)).fetchone() != (True,):
        raise _no_key(publication.info, publication.policy)


def require_distinct(session: Session, info: TableInfo, policy: Policy) -> None:
    """Raise PolicyError if two rows that meet the policy's conditions have the same key."""
    rows = sql.SQL("(SELECT * FROM {} WHERE {})").format(
        identity.readable(session, info), transfer.selected(policy, info)
    )
    proof = _proof(rows, identifiers(info.primary_key, of="r"))
    if identity.harmless(session, proof).fetchone() != (True,):
        raise _no_key(info, policy)


def _no_key(info: TableInfo, policy: Policy) -> PolicyError:
    columns = ", ".join(map(quote_identifier, info.primary_key))
    hint = f"REINDEX TABLE {info.name}, which names what is double"
    if policy.key:
        hint = "name more columns, or others, in key of the policy"
    return PolicyError(
        f"the key of {info.name} ({columns}) does not tell its rows apart: several rows have the"
        " same key, or one is NULL",
        hint=hint,
    )


def _proof(rows: sql.Composable, keys: sql.Composable) -> sql.Composed:
    return template("proofs.prove_keys", rows=rows, keys=keys)
