"""List, show and withdraw releases, and delete what withdrawn ones left behind."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbanon.db import catalog, identity
from dbanon.db.audit import Hidden, hidden
from dbanon.db.histories import memory
from dbanon.db.locks import Held
from dbanon.db.metadata import ledger, migrate
from dbanon.db.metadata.migrate import current_session, require_current
from dbanon.db.releases import publication_lock, withdrawal
from dbanon.db.releases.relations import DependedOn
from dbanon.db.session import Session, connect
from dbanon.domain.errors import ConfigError, DatabaseError, NotPermitted, TableNotFound
from dbanon.domain.outcomes import Operation, Stages
from dbanon.domain.release import Release, ReleaseKind, Verification
from dbanon.domain.table import TableName
from dbanon.domain.text import command
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
        return ledger.releases(
            session, table=catalog.describe(session, TableName.parse(table)).name
        )


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
            memory.forget_deleted(session, release.relation)
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


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The releases of a table that lost their stored membership."""

    table: TableName
    releases: tuple[int, ...]


def forget_series(release_id: int, *, settings: Settings | None = None) -> Forgotten:
    """Delete the stored membership of all releases in the series of a release.

    Deletes the key of the hashes, the hashes and the published values; the ledger stays. Nothing
    can be compared with these releases afterwards, so the table can only be published as a new
    series. Raises NotPermitted without the right to delete, which the owner of the metadata has,
    and ConfigError if a release of the series is served, if nothing is stored, or if a table of a
    withdrawn release could not be dropped yet.
    """
    from dbanon.db.histories import memory

    with connect(settings or Settings.load(), writes=True) as session:
        with session.transaction(keep=False):
            require_current(session)
            _require_owner(session)
            release = ledger.release_by_id(session, release_id)
            if release is None:
                raise ConfigError(f"release {release_id} does not exist", hint=_LIST)
            sources = []  # of a table that no longer exists, which cannot be published
            with suppress(TableNotFound):
                sources.append(catalog.describe(session, release.table))
        withdrawal.tidy(session, release.table)
        operation = Operation(f"the series of release {release_id}", "forgotten", _LIST)
        with publication_lock.alone(
            session, sources, exclude_writers=False, keep=True, operation=operation
        ):
            own = memory.series(session, release.table).get(release_id)
            if own is None:
                raise ConfigError(f"release {release_id} left nothing behind", hint=_LIST)
            _require_idle(session, release, own)
            withdrawal.require_dropped(session)
            releases = memory.forget_series(session, release.table, own)
            if not releases:
                raise ConfigError(f"release {release_id} was forgotten before", hint=_LIST)
    return Forgotten(release.table, releases)


def _require_owner(session: Session) -> None:
    """Raise NotPermitted without the right to delete membership, which publishers lack."""
    from dbanon.db.histories import memory

    if not memory.may_forget(session):
        raise NotPermitted(
            "this role may not delete what is remembered",
            hint="run it as the owner of the schema dbanon: publishers are not to have that right",
        )


def _require_idle(session: Session, release: Release, own: int) -> None:
    from dbanon.db.histories import memory

    series = memory.series(session, release.table)
    served = ledger.served_entries(session, table=release.table)
    for one in served:
        if memory.series_of(series, one.id, own) == own:
            raise ConfigError(
                f"{one.relation} serves release {one.id} of that series, which the next one has to"
                " be compared with",
                hint=command("dbanon release drop", one.id),
            )
