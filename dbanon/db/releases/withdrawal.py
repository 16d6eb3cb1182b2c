"""Withdraw releases, and drop their objects when no session uses them any more.

Withdrawing takes no lock that conflicts with readers. Dropping does: objects that short attempts
cannot lock stay, out of reach, and are dropped later.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import psycopg
from psycopg import sql

from dbanon.db import identity, rights
from dbanon.db.locks import patiently, unless_held
from dbanon.db.metadata import ledger
from dbanon.db.queries import query, template
from dbanon.db.releases import aside, companion_relations, copies, guards, immutability, relations
from dbanon.db.releases.publication import data_table
from dbanon.db.schemas import DATA_SCHEMA
from dbanon.db.session import at_once
from dbanon.domain.errors import ConfigError, DbanonError

if TYPE_CHECKING:
    from collections.abc import Callable

    from dbanon.db.session import Session
    from dbanon.domain.release import Entry

# Seconds to wait for readers of a withdrawn release.
PATIENCE = 3.0


def retire(session: Session, previous: Entry, *, by: Entry) -> None:
    """Drop the objects of a replaced release, or disarm its guards if a session uses them."""

    def drop() -> None:
        with at_once(session.pg):
            if previous.membership_id != by.membership_id:
                relations.drop_membership(session, previous.membership_id)
            if previous.data_id != by.data_id:
                relations.drop_copy(session, previous.data_id)

    if not unless_held(session, drop) and previous.data_id != by.data_id:
        guards.disarm(session, previous.data_id)


def withdraw(session: Session, release: Entry) -> bool:
    """Revoke all access to a release and delete its rows, without waiting for readers.

    Open transactions that read it get an error from then on. Returns True if it was served until
    now.
    """
    view = relations.oid_of(session, release.relation)
    if view is not None and identity.serves(session, view, release.data_id):
        rights.take_from_all(session, release.relation)
        for kind in companion_relations.KINDS:
            kind.withdraw(session, release.relation)
    if not release.kind.is_live:
        state = release.source_state
        copy = data_table("release", release.data_id)
        places = data_table("places", (state and state.places) or 0)
        if _deletes_rows_alone(session, copy):
            copies.empty(session, copy)
            session.run(immutability.close_statements(copy))
        if _deletes_rows_alone(session, places):
            session.pg.execute(sql.SQL("DELETE FROM ONLY {}").format(places))
    else:
        _hide(session, release)
    return ledger.withdraw(session, release.id)


def _deletes_rows_alone(session: Session, table: sql.Identifier) -> bool:
    """Return True if a private table is there, and deleting its rows runs nothing of its owner's.

    What an owner adds would run with the rights of the current role, perhaps a superuser's. A table
    that has such a thing keeps its rows until it is dropped, which runs nothing.
    """
    if not _exists(session, table):
        return False
    # Conflicts with CREATE TRIGGER and CREATE RULE, not with readers; before PostgreSQL 17, only a
    # role that may write can take it, and a copy has lost that right.
    session.pg.execute(sql.SQL("GRANT DELETE ON {} TO CURRENT_USER").format(table))
    session.pg.execute(sql.SQL("LOCK TABLE ONLY {} IN ROW EXCLUSIVE MODE").format(table))
    asked = {"table": table.as_string(), "seal": immutability.TRIGGER}
    return session.one(query("releases.deletes_rows_alone"), asked) == (True,)


def _hide(session: Session, release: Entry) -> None:
    """Hide a live view without blocking writers; groups that they lock are skipped."""
    guards.disarm(session, release.data_id)
    groups = data_table("groups", release.data_id)
    if _exists(session, groups):
        session.pg.execute(
            template(
                "releases.create_seen",
                seen=immutability.seen(release.data_id),
                body=sql.Literal(template("releases.withdrawn_body").as_string()),
            )
        )
        if _deletes_rows_alone(session, groups):
            session.pg.execute(template("releases.delete_groups", groups=groups))


def drop(session: Session, release: Entry) -> None:
    """Drop all objects of a withdrawn release; raises LockNotGranted, DependedOn for the view."""
    shared = ledger.serves_data(session, release.data_id)

    def act() -> None:
        if not shared:
            if ledger.served_release(session, release.relation) is None:
                for kind in companion_relations.KINDS:
                    kind.drop(session, release.relation)
            relations.drop(session, release.relation, data_id=release.data_id)
            relations.drop_copy(session, release.data_id)
        if not shared and release.source_state is not None:
            _drop_table(session, data_table("places", release.source_state.places or 0))
        if not shared or not release.kind.is_live:
            relations.drop_membership(session, release.membership_id)

    patiently(session, act, on=left(session, release), budget=PATIENCE)


def left(session: Session, release: Entry) -> list[int]:
    """Return the OIDs of remaining objects of a release, and of the tables with its guards."""
    number = None if release.kind.is_live else release.id
    numbers: dict[str, int | None] = {"id": number, "data_id": None, "view": None}
    if not ledger.serves_data(session, release.data_id) or release.served:
        view = relations.oid_of(session, release.relation)
        of_release = view is not None and identity.serves(session, view, release.data_id)
        numbers["id"] = release.membership_id
        numbers |= {"data_id": release.data_id, "view": view if of_release else None}
    found = [row[0] for row in session.pg.execute(query("releases.left_of_release"), numbers)]
    of_view = (
        companion_relations.present(session, release.relation)
        if numbers["view"] is not None
        else {}
    )
    return [*found, *of_view.values()]


def _sweep(session: Session) -> None:
    """Drop leftovers of earlier releases if possible."""
    served = ledger.served_entries(session)
    kept = [name for release in served for name in relations.needed_tables(release)]
    for name, kind in session.pg.execute(query("releases.orphans"), (kept,)).fetchall():
        drop_it: Callable[[], object] | None = None
        found = re.fullmatch("(release|rows|groups)_([0-9]+)", name)
        if aside.is_retired(name):
            drop_it = partial(aside.drop, session, name, kind)
        elif re.fullmatch("places_[0-9]+", name):
            drop_it = partial(_drop_table, session, sql.Identifier(DATA_SCHEMA, name))
        elif found and ledger.release_by_id(session, int(found[2])):
            drop_one = relations.drop_copy if found[1] == "release" else relations.drop_membership
            drop_it = partial(drop_one, session, int(found[2]))
        with suppress(psycopg.Error):
            if drop_it is not None:
                unless_held(session, drop_it)


def tidy(session: Session) -> None:
    """Drop remaining objects, and VACUUM what lost rows in the last transaction; ignores errors.

    Rows that were only written again are left to autovacuum.
    """
    emptied = [*session.emptied]
    with suppress(psycopg.Error, DbanonError):
        # One snapshot: a release published between two queries would look like a leftover.
        with session.transaction(snapshot=True):
            _sweep(session)
        copies.vacuum(session, emptied)


def require_dropped(session: Session) -> None:
    """Raise ConfigError if a table of a withdrawn release remains that this role could drop."""
    kept = [n for one in ledger.served_entries(session) for n in relations.needed_tables(one)]
    for name, _ in session.pg.execute(query("releases.orphans"), (kept,)).fetchall():
        table = data_table(*name.rsplit("_", 1)).as_string()
        of_persons = re.fullmatch("(places|release|rows|groups)_[0-9]+", name)
        if of_persons and session.one(query("releases.may_drop"), (table,)) == (True,):
            raise ConfigError(
                f"{DATA_SCHEMA}.{name} of a withdrawn release could not be dropped yet, and may"
                " have persons or their hashes",
                hint="run the command again when no session uses it any more",
            )


def _drop_table(session: Session, table: sql.Identifier) -> None:
    session.pg.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(table))


def _exists(session: Session, table: sql.Identifier) -> bool:
    return session.one("SELECT to_regclass(%s)", (table.as_string(),)) != (None,)
