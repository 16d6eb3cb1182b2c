"""Forget whom the releases of a series showed, once nobody is served any of them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbanon.domain.deeds import Deed
from dbanon.domain.errors import ConfigError, NotPermitted, TableNotFound
from dbanon.domain.text import command
from dbanon.settings import Settings

if TYPE_CHECKING:
    from dbanon.db.session import Session
    from dbanon.domain.release import Release
    from dbanon.domain.table import TableInfo, TableName

_LIST = "dbanon release list"


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The releases of a table of which nobody knows any more whom they showed."""

    table: TableName
    releases: tuple[int, ...]


def forget_series(release_id: int, *, settings: Settings | None = None) -> Forgotten:
    """Forget who was in the releases of the series that a release is of, and in which classes.

    The key of their hashes, the hashes and the values that were published are deleted; the ledger
    stays. From then on nothing can be compared with these releases, so the table is only published
    again, by these relations or others, as a series of its own. Raises NotPermitted for a role that
    may not delete what is remembered, as the owner of the metadata may, and ConfigError when a
    release of the series is served or when nothing is remembered of it.
    """
    from dbanon.db.histories import memory
    from dbanon.db.metadata import ledger
    from dbanon.db.metadata.migrate import require_current
    from dbanon.db.releases import turns
    from dbanon.db.session import connect

    with connect(settings or Settings.load(), writes=True) as session:
        with session.transaction(keep=False):
            require_current(session)
            _require_owner(session)
            release = ledger.release_by_id(session, release_id)
            if release is None:
                raise ConfigError(f"release {release_id} does not exist", hint=_LIST)
            sources = _source(session, release)
        deed = Deed(f"the series of release {release_id}", "forgotten", _LIST)
        with turns.alone(session, sources, exclude_writers=False, keep=True, deed=deed):
            own = memory.series(session, release.table).get(release_id)
            if own is None:
                raise ConfigError(f"release {release_id} left nothing behind", hint=_LIST)
            _require_idle(session, release, own)
            releases = memory.forget_series(session, release.table, own)
            if not releases:
                raise ConfigError(f"release {release_id} was forgotten before", hint=_LIST)
    return Forgotten(release.table, releases)


def _require_owner(session: Session) -> None:
    """Raise NotPermitted for a role that may not delete what is remembered, as publishers."""
    from dbanon.db.histories import memory

    if not memory.may_forget(session):
        raise NotPermitted(
            "this role may not delete what is remembered",
            hint="run it as the owner of the schema dbanon: publishers are not to have that right",
        )


def _source(session: Session, release: Release) -> list[TableInfo]:
    """Return the table of a release, unless it is gone: then nobody publishes it meanwhile."""
    from dbanon.db import catalog

    with suppress(TableNotFound):
        return [catalog.describe(session, release.table)]
    return []


def _require_idle(session: Session, release: Release, own: int) -> None:
    """Raise ConfigError when a release of a series is served, also a live one."""
    from dbanon.db.histories import memory
    from dbanon.db.metadata import ledger

    series = memory.series(session, release.table)
    served = ledger.served_entries(session, table=release.table)
    for one in served:
        if memory.series_of(series, one.id, own) == own:
            raise ConfigError(
                f"{one.relation} serves release {one.id} of that series, which the next one has to"
                " be compared with",
                hint=command("dbanon release drop", one.id),
            )
