"""The one transaction of a publication, alone on all tables that are published."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from dbanon.domain.deeds import Deed
from dbanon.domain.release import ReleaseKind
from dbanon.domain.table import TableName
from dbanon.formats.support import Asked, Mode, require

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dbanon.actions.preparation.loading import Loaded
    from dbanon.db.session import Session
    from dbanon.domain.table import TableInfo
    from dbanon.request import Request
    from dbanon.settings import Settings

    Wanted = tuple[str | TableName, Request]
    """A table, and what is asked of its publication."""


@contextmanager
def publishing(
    wanted: Sequence[Wanted], settings: Settings, *, keep: bool
) -> Iterator[tuple[Session, list[Loaded]]]:
    """Open the one transaction of a publication, alone on its tables, each loaded in this order."""
    from dbanon.actions.preparation.loading import find_source
    from dbanon.db import identity
    from dbanon.db.metadata.migrate import require_current
    from dbanon.db.releases import turns, withdrawal
    from dbanon.db.releases.live import guards, marks
    from dbanon.db.session import connect

    requests = [request for _, request in wanted]
    with connect(settings, writes=True) as session:
        require_current(session)
        found = [find_source(session, _name(table)) for table, _ in wanted]
        asked = [*zip(found, requests, strict=True)]
        live = [info for info, request in asked if request.relation_kind is ReleaseKind.VIEW]
        for info in live:
            require(Mode.VIEW, Asked(info=info))
            guards.require_owner(session, info)
        views = [request.view(info.name) for info, request in asked]
        deed = Deed(", ".join(map(str, views)), "published")
        if keep:
            _make_schemas(session, found, views)
        with turns.alone(session, found, exclude_writers=bool(live), keep=keep, deed=deed):
            session.allow_memory()
            loaded = [_loaded(session, info, request) for info, request in asked]
            # All of them are open already, and none may be read before all are admitted.
            identity.admit(session, *(one.info for one in loaded))
            for one, request in zip(loaded, requests, strict=True):
                if not one.info.is_table:  # as admitting it did with a table
                    identity.pin(session, one.info)
                if request.relation_kind is ReleaseKind.VIEW:
                    marks.require_lasting(session, one.info)
            yield session, loaded
        if keep:
            for info in found:
                withdrawal.tidy(session, info.name)


def _make_schemas(session: Session, found: Sequence[TableInfo], views: Sequence[TableName]) -> None:
    """Make the schemas that views will be in, and commit: so publications into one do not wait.

    Raises NotPermitted when a source may not be read, of which nothing can be published.
    """
    from dbanon.db import catalog, schemas

    with session.transaction():
        names = sorted({view.schema or "public" for view in views})
        missing = [name for name in names if any(schemas.statements(session, name))]
        for info in found if missing else ():
            catalog.require_readable(session, info)
        for name in missing:
            schemas.ensure(session, name)


def _name(table: str | TableName) -> TableName:
    return table if isinstance(table, TableName) else TableName.parse(table)


def _loaded(session: Session, found: TableInfo, request: Request) -> Loaded:
    """Load a table that was found before the transaction began."""
    from dbanon.actions.preparation.loading import load, require_own_relation, require_unchanged
    from dbanon.db import catalog, identity

    info = catalog.describe(session, found.name)
    identity.require_same(found, info)
    loaded = load(session, info, request.policy)
    require_own_relation(loaded, request.view(info.name))
    require_unchanged(session, loaded, request.view(info.name))
    return loaded
