"""The ledger: all releases, and the later verifications of each."""

from __future__ import annotations

import json
import math
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import psycopg
from psycopg.types.json import Json, Jsonb

from dbanon.db.queries import query, template
from dbanon.db.session import at_once, connect, only
from dbanon.domain.assignment import LossReport
from dbanon.domain.errors import DatabaseError, DbanonError, PolicyError
from dbanon.domain.outcomes import Operation
from dbanon.domain.release import (
    CheckReport,
    CheckResult,
    Delta,
    Entry,
    Release,
    ReleaseKind,
    SourceState,
    Spread,
    Sums,
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
    return int(session.one(query("metadata.next_release_id"))[0])


def add_release(session: Session, release: Release) -> Release:
    """Record a release as the one that its relation serves; returns it with its date."""
    document = policies.to_document(release.policy)
    session.policies.clear()
    row = {
        **_selection(number=release.id, table=release.table, relation=release.relation),
        "kind": release.kind.value,
        "policy": Jsonb(document),
        "overrides": Jsonb(dict(release.overrides)),
        "taxonomies": Jsonb(dict(release.taxonomies)),
        "seed": release.seed,
        "checks": Json(_documents(release.checks.results)),
        "loss": Json(asdict(release.loss)),
        "fingerprint": release.fingerprint,
        "growth": _counts(release.growth),
        "state": _state(release.source_state),
        "content": release.content,
        "data_id": release.data_id,
        "policy_version": release.policy_version,
    }
    with at_once(session.pg):
        session.pg.execute(query("metadata.withdraw_served"), row)
        found = session.pg.execute(query("metadata.add_release"), row)
    at, by, entered, earlier = only(found)
    same = entered == document  # 1e300 comes back as an integer of 301 digits
    if not same and policies.from_document(entered) != release.policy:
        msg = "the policy in force would not be read back as it is; nothing was published"
        raise PolicyError(msg, hint="write its numbers in fewer digits")
    return replace(release, earlier=earlier, created_at=at, created_by=by)


def served_release(session: Session, relation: TableName) -> Release | None:
    """Return the release that a relation serves, None if there is none."""
    return next(_releases(session, _selection(relation=relation, served=True)), None)


def latest_entry(session: Session, relation: TableName) -> Entry | None:
    """Return the newest release of a relation, served or not, None if there is none."""
    return next(_entries(session, _selection(relation=relation)), None)


def served_entries(session: Session, *, table: TableName | None = None) -> list[Entry]:
    """Return the served releases, newest first, of all tables or one; reads no policies."""
    return list(_entries(session, _selection(table=table, served=True)))


def withdraw(session: Session, release_id: int) -> bool:
    """Mark a release as no longer served; returns True if it was."""
    return session.pg.execute(query("metadata.withdraw"), (release_id,)).rowcount > 0


def note_compared(
    session: Session,
    release_id: int,
    fingerprint: str,
    *,
    growth: Delta | None,
    state: SourceState | None,
) -> None:
    """Record the source and the counts of a refresh that had nothing to publish."""
    noted = {"fingerprint": fingerprint, "growth": _counts(growth), "state": _state(state)}
    session.pg.execute(query("metadata.note_compared"), {"release": release_id, **noted})


def note_search(settings: Settings, release_id: int, state: SourceState) -> None:
    """Record a state with about what a new search would lose, unless it is another by now.

    It is for information: errors are ignored.
    """
    noted = {"release": release_id, "state": _state(state), "snapshot": state.snapshot}
    with (
        suppress(psycopg.Error, DbanonError),
        connect(settings, writes=True) as session,
        session.transaction(),
    ):
        session.pg.execute(query("metadata.note_search"), noted)


def pool_since(session: Session, relation: TableName) -> timedelta | None:
    """Return the time since a release of a relation last had new persons, None if unknown."""
    named = (relation.schema, relation.name)
    return cast("timedelta | None", session.one(query("metadata.pool_since"), named)[0])


def _state(state: SourceState | None) -> Jsonb:
    return Jsonb(None if state is None else asdict(state))


def _read_state(document: dict[str, Any]) -> SourceState:
    kinds = {"copy": Sums, "spread": Spread}
    parts = {name: kind(*document[name]) for name, kind in kinds.items() if document.get(name)}
    return SourceState(**{**document, **parts})


def _counts(growth: Delta | None) -> Json:
    """Convert counts to JSON; the deadline follows from when persons were first missed."""
    return Json(None if growth is None else asdict(replace(growth, due=None)))


def serves_data(session: Session, data_id: int) -> bool:
    """Return True if a served release uses the private tables of that number."""
    return session.one(query("metadata.serves_data"), (data_id,)) == (True,)


def releases(
    session: Session, *, table: TableName | None = None, served: bool = False
) -> list[Release]:
    """Return the releases, newest first; of one table, or only served ones, if requested."""
    return list(_releases(session, _selection(table=table, served=served)))


def policies_by_release(
    session: Session, table: TableName, *, known: Iterable[Policy] = ()
) -> dict[int, Policy]:
    """Return the policy of every release of a table by number; parses each one once."""
    if table not in session.policies:
        named = (table.schema, table.name)
        stored = session.pg.execute(query("metadata.policies_of_releases"), named)
        session.policies[table] = stored.fetchall()
    read = {_text(policies.to_document(policy)): policy for policy in known}
    texts = {number: _text(document) for number, document in session.policies[table]}
    return {number: read.get(text) or _read(text) for number, text in texts.items()}


def live_releases(session: Session, table: TableName) -> set[int]:
    """Return the numbers of all releases of a table that were live views."""
    rows = session.pg.execute(query("metadata.live_releases"), (table.schema, table.name))
    return {number for (number,) in rows}


def _text(document: Mapping[str, Any]) -> str:
    return json.dumps(document, sort_keys=True)


# A publication asks for the policies of former releases when it groups, compares and judges.
@lru_cache(maxsize=64)
def _read(text: str) -> Policy:
    return policies.from_document(json.loads(text))


def release_by_id(session: Session, release_id: int) -> Release | None:
    """Return one release, None if there is none."""
    return next(_releases(session, _selection(number=release_id)), None)


def _selection(
    *,
    number: int | None = None,
    table: TableName | None = None,
    relation: TableName | None = None,
    served: bool = False,
) -> dict[str, object]:
    """Return the parameters that select releases."""
    schema, name = (None, None) if table is None else (table.schema, table.name)
    selection = {"release": number, "schema": schema, "table": name, "served": served}
    schema, name = (None, None) if relation is None else (relation.schema, relation.name)
    return {**selection, "relation_schema": schema, "relation": name}


def _entries(session: Session, selection: Mapping[str, object]) -> Iterator[Entry]:
    statement = template("metadata.entries", selection=query("metadata.selection"))
    for row in session.records(statement, selection):
        with _whole(row):
            entry = Entry(**_place(row))
        yield entry


def _place(row: Mapping[str, Any]) -> dict[str, Any]:
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
        "source_state": None if state is None else _read_state(state),
    }


def _releases(session: Session, selection: Mapping[str, object]) -> Iterator[Release]:
    statement = template("metadata.releases", selection=query("metadata.selection"))
    for row in session.records(statement, selection):
        with _whole(row):
            release = _release(row)
        yield release


def _release(row: Mapping[str, Any]) -> Release:
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
        policy_version=row["policy_version"],
        earlier=row["earlier"],
        created_at=row["created_at"],
        created_by=row["created_by"],
    )


@contextmanager
def _whole(row: Mapping[str, Any]) -> Iterator[None]:
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
    row = {
        "release": release_id,
        "verdict": report.verdict.value,
        "results": Json(_documents(report.results)),
        "reason": reason,
    }
    session.pg.execute(query("metadata.add_verification"), row)


def verifications(session: Session, release_id: int) -> list[Verification]:
    """Return the checks of a release, newest first."""
    return [
        Verification(
            release=row["release_id"],
            verdict=Verdict(row["verdict"]),
            results=_results(row["results"]),
            reason=row["reason"],
            verified_at=row["verified_at"],
            verified_by=row["verified_by"],
        )
        for row in session.records(query("metadata.verifications"), (release_id,))
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
