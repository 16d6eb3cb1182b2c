"""The ledger: all releases, and the later verifications of each."""

from __future__ import annotations

import json
import math
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import psycopg
import sqlalchemy as sa

from dbanon.db.metadata import tables as m
from dbanon.db.metadata.store import of_table
from dbanon.db.queries import query
from dbanon.db.session import connect
from dbanon.domain.assignment import LossReport
from dbanon.domain.errors import DatabaseError, DbanonError, PolicyError
from dbanon.domain.outcomes import Operation
from dbanon.domain.policy import DEFAULT_NAME
from dbanon.domain.release import (
    CheckReport,
    CheckResult,
    Delta,
    Entry,
    Release,
    ReleaseKind,
    SourceState,
    Verdict,
    Verification,
)
from dbanon.domain.table import TableName
from dbanon.formats import policies

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import timedelta

    from dbanon.db.session import Session
    from dbanon.domain.policy import Policy
    from dbanon.settings import Settings


def next_release_id(session: Session) -> int:
    """Take the next release number; failed publications leave gaps."""
    sequence = sa.text("SELECT nextval(pg_get_serial_sequence('dbanon.release', 'release_id'))")
    return int(session.sa.execute(sequence).scalar_one())


_KNOWN_LATER = (m.release.c.created_at, m.release.c.created_by, m.release.c.policy)


def add_release(session: Session, release: Release) -> Release:
    """Record a release as the one that its relation serves; returns it with its date."""
    document = policies.to_document(release.policy)
    session.policies.clear()
    before = (*_of_relation(release.relation), m.release.c.served)
    session.sa.execute(sa.update(m.release).where(*before).values(served=False))
    earlier = sa.select(sa.func.count()).where(
        *of_table(m.release, release.table), m.release.c.release_id < release.id
    )
    entered = session.sa.execute(
        sa.insert(m.release)
        .values(
            release_id=release.id,
            table_schema=release.table.schema,
            table_name=release.table.name,
            relation_schema=release.relation.schema,
            relation_name=release.relation.name,
            kind=release.kind.value,
            policy=document,
            overrides=dict(release.overrides),
            taxonomies=dict(release.taxonomies),
            seed=release.seed,
            checks=_documents(release.checks.results),
            loss=asdict(release.loss),
            fingerprint=release.fingerprint,
            growth=_counts(release.growth),
            source_state=_state(release.source_state),
            content=release.content,
            data_id=release.data_id,
            served=True,
        )
        .returning(*_KNOWN_LATER, earlier.scalar_subquery().label("earlier"))
    ).one()
    same = entered.policy == document  # 1e300 comes back as an integer of 301 digits
    if not same and policies.from_document(entered.policy) != release.policy:
        msg = "the policy in force would not be read back as it is; nothing was published"
        raise PolicyError(msg, hint="write its numbers in fewer digits")
    at, by = entered.created_at, entered.created_by
    return replace(release, earlier=entered.earlier, created_at=at, created_by=by)


def served_release(session: Session, relation: TableName) -> Release | None:
    """Return the release that a relation serves, None if there is none."""
    found = list(_releases(session, *_of_relation(relation), m.release.c.served))
    return found[0] if found else None


def latest_entry(session: Session, relation: TableName) -> Entry | None:
    """Return the newest release of a relation, served or not, None if there is none."""
    return next(_entries(session, *_of_relation(relation)), None)


def served_entries(session: Session, *, table: TableName | None = None) -> list[Entry]:
    """Return the served releases, newest first, of all tables or one; reads no policies."""
    conditions = [] if table is None else of_table(m.release, table)
    return list(_entries(session, *conditions, m.release.c.served))


def withdraw(session: Session, release_id: int) -> bool:
    """Mark a release as no longer served; returns True if it was."""
    table = m.release
    found = session.sa.execute(
        sa.update(table)
        .where(table.c.release_id == release_id, table.c.served)
        .values(served=False)
    )
    return found.rowcount > 0


def note_compared(
    session: Session,
    release_id: int,
    fingerprint: str,
    *,
    growth: Delta,
    state: SourceState | None,
) -> None:
    """Record the source and the counts of a refresh that had nothing to publish."""
    table = m.release
    session.sa.execute(
        sa.update(table)
        .where(table.c.release_id == release_id)
        .values(compared=fingerprint, growth=_counts(growth), source_state=_state(state))
    )


def note_search(settings: Settings, release_id: int, state: SourceState) -> None:
    """Record a state with about what a new search would lose, unless it is another by now.

    It is for information: errors are ignored.
    """
    c = m.release.c
    same = c.source_state["snapshot"].astext == state.snapshot
    statement = sa.update(m.release).where(c.release_id == release_id, same)
    with (
        suppress(psycopg.Error, sa.exc.DBAPIError, DbanonError),
        connect(settings, writes=True) as session,
        session.transaction(),
    ):
        session.sa.execute(statement.values(source_state=_state(state)))


def pool_since(session: Session, relation: TableName) -> timedelta | None:
    """Return the time since a release of a relation last had new persons, None if unknown."""
    c = m.release.c
    births = sa.func.coalesce(c.growth["births"].as_integer(), 1)
    newest = sa.select(sa.func.max(c.created_at)).where(*_of_relation(relation), births > 0)
    past = sa.select(sa.func.now() - newest.scalar_subquery())
    return cast("timedelta | None", session.sa.execute(past).scalar_one())


def _state(state: SourceState | None) -> dict[str, Any] | None:
    return None if state is None else asdict(state)


def _counts(growth: Delta | None) -> dict[str, Any] | None:
    """Convert counts to JSON; the deadline follows from when persons were first missed."""
    return None if growth is None else asdict(replace(growth, due=None))


def serves_data(session: Session, data_id: int) -> bool:
    """Return True if a served release uses the private tables of that number."""
    table = m.release
    found = session.sa.execute(
        sa.select(table.c.release_id).where(table.c.data_id == data_id, table.c.served)
    )
    return found.first() is not None


def releases(
    session: Session, *, table: TableName | None = None, served: bool = False
) -> list[Release]:
    """Return the releases, newest first; of one table, or only served ones, if requested."""
    conditions = [] if table is None else of_table(m.release, table)
    if served:
        conditions = [*conditions, m.release.c.served]
    return list(_releases(session, *conditions))


def policies_by_release(
    session: Session, table: TableName, *, known: Iterable[Policy] = ()
) -> dict[int, Policy]:
    """Return the policy of every release of a table by number; parses each one once."""
    c = m.release.c
    if table not in session.policies:
        select = sa.select(c.release_id, c.policy).where(*of_table(m.release, table))
        session.policies[table] = session.sa.execute(select).all()
    read = {_text(policies.to_document(policy)): policy for policy in known}
    texts = {number: _text(document) for number, document in session.policies[table]}
    return {number: read.get(text) or _read(text) for number, text in texts.items()}


def live_releases(session: Session, table: TableName) -> set[int]:
    """Return the numbers of all releases of a table that were live views."""
    c = m.release.c
    is_live = c.kind == ReleaseKind.VIEW
    rows = session.sa.execute(sa.select(c.release_id).where(*of_table(m.release, table), is_live))
    return {number for (number,) in rows}


def _text(document: Mapping[str, Any]) -> str:
    return json.dumps(document, sort_keys=True)


# A publication asks for the policies of former releases when it groups, compares and judges.
@lru_cache(maxsize=64)
def _read(text: str) -> Policy:
    return policies.from_document(json.loads(text))


def release_by_id(session: Session, release_id: int) -> Release | None:
    """Return one release, None if there is none."""
    found = list(_releases(session, m.release.c.release_id == release_id))
    return found[0] if found else None


def _of_relation(name: TableName) -> list[sa.ColumnElement[bool]]:
    columns = m.release.c
    return [columns.relation_schema == name.schema, columns.relation_name == name.name]


def _entries(session: Session, *conditions: sa.ColumnElement[bool]) -> Iterator[Entry]:
    c = m.release.c
    names = (c.table_schema, c.table_name, c.relation_schema, c.relation_name)
    columns = (
        *names,
        c.release_id,
        c.kind,
        c.served,
        c.content,
        c.data_id,
        c.source_state,
        _policy_name(),
        c.overrides,
    )
    statement = sa.select(*columns).where(*conditions).order_by(c.release_id.desc())
    for row in session.sa.execute(statement).mappings():
        with _whole(row):
            entry = Entry(**_place(row))
        yield entry


def _policy_name() -> sa.Label[str]:
    name = m.release.c.policy["name"].astext
    return sa.func.coalesce(name, DEFAULT_NAME).label("policy_name")


def _place(row: sa.RowMapping) -> dict[str, Any]:
    """Return the fields of an entry; raises ValueError for a dataset without its own table."""
    table = TableName(row["table_schema"], row["table_name"])
    dataset, state = row["overrides"].get("dataset", []), row["source_state"]
    if dataset and (not isinstance(dataset, list) or str(table) not in dataset):
        raise ValueError(dataset)
    return {
        "id": row["release_id"],
        "table": table,
        "relation": TableName(row["relation_schema"], row["relation_name"]),
        "kind": ReleaseKind(row["kind"]),
        "served": row["served"],
        "content": row["content"],
        "data_id": row["data_id"],
        "policy_name": row["policy_name"],
        "dataset": tuple(dataset),
        "source_state": None if state is None else SourceState(**state),
    }


def _releases(session: Session, *conditions: sa.ColumnElement[bool]) -> Iterator[Release]:
    older = m.release.alias()
    earlier = (
        sa.select(sa.func.count())
        .where(
            older.c.table_schema == m.release.c.table_schema,
            older.c.table_name == m.release.c.table_name,
            older.c.release_id < m.release.c.release_id,
        )
        .scalar_subquery()
    )
    statement = (
        sa.select(m.release, _policy_name(), earlier.label("earlier"))
        .where(*conditions)
        .order_by(m.release.c.release_id.desc())
    )
    for row in session.sa.execute(statement).mappings():
        with _whole(row):
            release = _release(row)
        yield release


def _release(row: sa.RowMapping) -> Release:
    place = _place(row)
    return Release(
        **place,
        policy=policies.from_document(row["policy"]),
        seed=row["seed"],
        checks=CheckReport(place["relation"], _results(row["checks"])),
        loss=LossReport(**row["loss"]),
        overrides=row["overrides"],
        taxonomies=row["taxonomies"],
        fingerprint=row["fingerprint"],
        compared=row["compared"],
        growth=None if row["growth"] is None else Delta(**row["growth"]),
        earlier=row["earlier"],
        created_at=row["created_at"],
        created_by=row["created_by"],
    )


@contextmanager
def _whole(row: sa.RowMapping) -> Iterator[None]:
    try:
        yield
    except (TypeError, ValueError, KeyError, AttributeError, PolicyError):
        raise DatabaseError(
            f"release {row['release_id']} is damaged in the ledger",
            hint="restore its row of dbanon.release from a backup",
        ) from None


def _documents(results: Iterable[CheckResult]) -> list[dict[str, Any]]:
    """Convert results to JSON, with infinite numbers as strings."""
    return [
        {
            name: str(value) if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in asdict(result).items()
        }
        for result in results
    ]


def _results(documents: Iterable[dict[str, Any]]) -> tuple[CheckResult, ...]:
    return tuple(
        CheckResult(
            **{
                **document,
                **{
                    name: float(document[name])
                    for name in ("required", "achieved")
                    if isinstance(document[name], str)
                },
                "verdict": Verdict(document["verdict"]),
            }
        )
        for document in documents
    )


# Verifications: later checks of a release.


def add_verification(
    session: Session, release_id: int, report: CheckReport, *, reason: str | None
) -> None:
    """Record a check of a release in the ledger."""
    session.sa.execute(
        sa.insert(m.verification).values(
            release_id=release_id,
            verdict=report.verdict.value,
            results=_documents(report.results),
            reason=reason,
        )
    )


def verifications(session: Session, release_id: int) -> list[Verification]:
    """Return the checks of a release, newest first."""
    table = m.verification
    rows = session.sa.execute(
        sa.select(table)
        .where(table.c.release_id == release_id)
        .order_by(table.c.verification_id.desc())
    )
    return [
        Verification(
            release=row["release_id"],
            verdict=Verdict(row["verdict"]),
            results=_results(row["results"]),
            reason=row["reason"],
            verified_at=row["verified_at"],
            verified_by=row["verified_by"],
        )
        for row in rows.mappings()
    ]


def record(
    session: Session, report: CheckReport, *, release: int, reason: str | None
) -> str | None:
    """Record a check of a release; returns the reason if that is impossible, otherwise None."""
    operation = Operation(
        f"the check of {report.relation}", "recorded", f"dbanon release show {release}"
    )
    with session.transaction(operation=operation):
        is_whole, may_write = session.pg.execute(query("rights.can_record")).fetchone() or (0, 0)
        if not is_whole:
            return "not recorded: the ledger has lost a table; dbanon doctor names it"
        if not may_write:
            return "not recorded: this role cannot write the ledger"
        served = served_release(session, report.relation)
        if served is None or served.id != release:
            return f"not recorded: in the ledger, {report.relation} does not serve {release}"
        add_verification(session, release, report, reason=reason)
    return None
