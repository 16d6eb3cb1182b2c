"""List the tables of a database with the state of their policies and releases."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from dbanon.actions.policy import is_outdated
from dbanon.actions.preparation.loading import changes, load
from dbanon.db import catalog, identity
from dbanon.db.metadata import ledger, store
from dbanon.db.metadata.migrate import require_current
from dbanon.db.releases.companion_relations import KINDS
from dbanon.db.session import Session, connect
from dbanon.domain.errors import DbanonError
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dbanon.domain.policy import Policy
    from dbanon.domain.release import Release
    from dbanon.domain.table import TableName

_COUNTED = 16 << 20  # bytes of a table without statistics whose rows are counted


class State(StrEnum):
    """How far a table is: drifted comes before stale, and stale before published."""

    NO_POLICY = "no policy"
    STORED = "policy stored"
    PUBLISHED = "published"
    STALE = "stale"
    DRIFTED = "drifted"


@dataclass(frozen=True, slots=True)
class TableState:
    """A readable relation: about how many rows and persons it has (None: unknown), and its state.

    policies: names of the stored ones; served: relations with a release of it; reason: of a drift
    or a stale release.
    """

    table: TableName
    n_rows: int | None
    n_persons: int | None
    state: State
    policies: tuple[str, ...] = ()
    served: tuple[TableName, ...] = ()
    reason: str = ""


def list_tables(*, settings: Settings | None = None) -> list[TableState]:
    """Return the relations that the role may read, without published ones, by name.

    A release is stale if the stored policy would group its rows otherwise; a table has drifted if
    its shape no longer fits its policy. No row is read, but for counting small tables.
    """
    with (
        connect(settings or Settings.load()) as session,
        session.transaction(read_only=True, keep=False),
    ):
        require_current(session)
        found = catalog.readable_tables(session)
        stored = [p for p, _ in store.list_policies(session, on_unreadable=lambda _: None)]
        served = ledger.releases(session, served=True)
        relations = {release.relation for release in served}
        relations |= {kind.name(view) for view in relations for kind in KINDS}
        tables = [one for one in found if one[0] not in relations]
        states = [
            _state(
                session,
                (name, _rows(session, name, kind, n_rows=n_rows, size=size)),
                [policy for policy in stored if policy.table == name],
                [release for release in served if release.table == name],
            )
            for name, kind, n_rows, size in tables
        ]
        identity.require_admitted(session)
    return states


def _rows(session: Session, name: TableName, kind: str, *, n_rows: int, size: int) -> int | None:
    """Return the number of rows of a small table without statistics, otherwise the estimate."""
    if n_rows > 0:
        return n_rows
    if kind == "r" and size < _COUNTED:
        with suppress(DbanonError):  # of code of others, which counting would run
            return catalog.count_rows(session, catalog.describe_source(session, name))
    return None


def _state(
    session: Session,
    sized: tuple[TableName, int | None],
    policies: Sequence[Policy],
    served: Sequence[Release],
) -> TableState:
    (name, n_rows), state, reason = sized, State.NO_POLICY, ""
    if policies:
        state = State.PUBLISHED if served else State.STORED
    for policy in policies:
        outdated = [r for r in served if r.policy_name == policy.name and is_outdated(r, policy)]
        if outdated:
            state = State.STALE
            reason = f"{outdated[0].relation} is served by an older policy"
    for policy in policies:
        drift = _drift(session, policy)
        if drift is not None:
            state, reason = State.DRIFTED, drift
    return TableState(
        name,
        n_rows,
        _persons(session, policies, n_rows),
        state,
        tuple(policy.name for policy in policies),
        tuple(release.relation for release in served),
        reason,
    )


def _drift(session: Session, policy: Policy) -> str | None:
    """Return the first change of a table that prevents a publication, None without one."""
    try:
        info = catalog.describe(session, policy.table)
        found = changes(load(session, info, policy.name))
    except DbanonError as error:
        return str(error)
    return str(found[0]) if found else None


def _persons(session: Session, policies: Sequence[Policy], n_rows: int | None) -> int | None:
    """Return about how many persons a table has by its first policy, None if it is unknown."""
    if not policies or n_rows is None:
        return None
    subject = policies[0].subject
    if subject is None:
        return n_rows
    info = catalog.describe(session, policies[0].table)
    distinct = catalog.estimated_distinct(session, info, subject)
    if distinct is None:
        return None
    return round(-distinct * n_rows if distinct < 0 else distinct)
