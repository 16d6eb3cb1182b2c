"""List, show and withdraw releases."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from dbanon.db import catalog, identity
from dbanon.db.audit import Hidden, hidden
from dbanon.db.histories import retention
from dbanon.db.locks import Held
from dbanon.db.metadata import ledger, migrate
from dbanon.db.metadata.migrate import current_session
from dbanon.db.releases import withdrawal
from dbanon.db.releases.relations import DependedOn
from dbanon.db.session import connect
from dbanon.domain.errors import ConfigError, DatabaseError
from dbanon.domain.outcomes import Operation, Stages
from dbanon.domain.release import Release, ReleaseKind, Verification
from dbanon.domain.table import TableName
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable


_LIST = "dbanon release list"


def list_releases(
    table: str | TableName | None = None, *, settings: Settings | None = None
) -> list[Release]:
    """Return the ledger, newest first, of one table or of all."""
    with current_session(settings or Settings.load()) as session:
        if table is None:
            return ledger.releases(session)
        name = table if isinstance(table, TableName) else TableName.parse(table)
        return ledger.releases(session, table=catalog.describe(session, name).name)


def count_hidden(
    releases: Iterable[Release], *, settings: Settings | None = None
) -> dict[int, Hidden]:
    """Count the hidden rows of each served live view by release, if safe and permitted."""
    live = [release for release in releases if release.served and release.kind is ReleaseKind.VIEW]
    found: dict[int, Hidden] = {}
    if not live:
        return found
    with connect(settings or Settings.load()) as session:
        for release in live:
            with suppress(DatabaseError), session.transaction(read_only=True, keep=False):
                counted = hidden(session, release)
                identity.require_admitted(session)
                if counted is not None:
                    found[release.id] = counted
    return found


def load_release(release_id: int, *, settings: Settings | None = None) -> Release:
    """Return one release; raises ConfigError if the ledger has no such number."""
    with current_session(settings or Settings.load()) as session:
        release = ledger.release_by_id(session, release_id)
    if release is None:
        raise ConfigError(f"there is no release {release_id}", hint=_LIST)
    return release


def list_verifications(release_id: int, *, settings: Settings | None = None) -> list[Verification]:
    """Return the later checks of a release, newest first."""
    with current_session(settings or Settings.load()) as session:
        return ledger.verifications(session, release_id)


def drop_release(
    release_id: int, *, settings: Settings | None = None, stages: Stages | None = None
) -> Release:
    """Withdraw a served release: drop its relation and private tables, keep its ledger entry.

    Readers lose access at once. Objects that an open transaction or another object blocks are
    listed in the remarks of ``stages``; dropping the release again drops them. Returns the release
    as it was. Raises ConfigError if it is not served and nothing of it is left.
    """
    operation = Operation(f"release {release_id}", "withdrawn", _LIST)
    settings = settings or Settings.load()
    with connect(settings, writes=True) as session, session.transaction(operation=operation):
        migrate.require_current(session)
        release = ledger.release_by_id(session, release_id)
        known = () if release is None else withdrawal.left(session, release)
        if release is None or not (release.served or known):
            reason = "is not served any more" if release else "does not exist"
            raise ConfigError(f"release {release_id} {reason}", hint=_LIST)
        if release.served:
            if not withdrawal.withdraw(session, release):
                raise ConfigError(f"release {release_id} was replaced meanwhile", hint=_LIST)
            retention.forget_deleted(session, release.relation)
        identity.require_nothing_else(session, known)
    _drop_objects(settings, release, stages or Stages())
    return release


def _drop_objects(settings: Settings, release: Release, stages: Stages) -> None:
    """Drop what is left of a withdrawn release; remarks name what must end before that."""
    again = f"dbanon release drop {release.id}"
    try:
        # The first connection may have been lost after its commit.
        with connect(settings, writes=True) as session:
            with session.transaction():
                known = withdrawal.left(session, release)
                withdrawal.drop(session, release)
                identity.require_nothing_else(session, known)
            withdrawal.tidy(session, release.table)
    except Held as held:
        message = f"its relation and its tables cannot be dropped yet, because of {held}: {again}"
        stages.remark(f"{message} does so when that has ended")
    except DependedOn as depended:
        message = f"its relation stays, without rows, because {depended}: drop these, then {again}"
        stages.remark(message)
