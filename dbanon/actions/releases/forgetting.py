"""Delete the stored membership of a series after its last release was withdrawn."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbanon.db import catalog
from dbanon.db.metadata import ledger
from dbanon.db.metadata.migrate import require_current
from dbanon.db.releases import publication_lock
from dbanon.db.session import Session, connect
from dbanon.domain.errors import ConfigError, NotPermitted, TableNotFound
from dbanon.domain.outcomes import Operation
from dbanon.domain.text import command
from dbanon.settings import Settings

if TYPE_CHECKING:
    from dbanon.domain.release import Release
    from dbanon.domain.table import TableInfo, TableName

_LIST = "dbanon release list"


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
    and ConfigError if a release of the series is served or if nothing is stored.
    """
    from dbanon.db.histories import memory

    with connect(settings or Settings.load(), writes=True) as session:
        with session.transaction(keep=False):
            require_current(session)
            _require_owner(session)
            release = ledger.release_by_id(session, release_id)
            if release is None:
                raise ConfigError(f"release {release_id} does not exist", hint=_LIST)
            sources = _source(session, release)
        operation = Operation(f"the series of release {release_id}", "forgotten", _LIST)
        with publication_lock.alone(
            session, sources, exclude_writers=False, keep=True, operation=operation
        ):
            own = memory.series(session, release.table).get(release_id)
            if own is None:
                raise ConfigError(f"release {release_id} left nothing behind", hint=_LIST)
            _require_idle(session, release, own)
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


def _source(session: Session, release: Release) -> list[TableInfo]:
    """Return the table of a release; empty if it no longer exists, and so cannot be published."""
    with suppress(TableNotFound):
        return [catalog.describe(session, release.table)]
    return []


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
