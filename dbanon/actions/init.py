"""Install the metadata schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping


def init(settings: Settings | None = None) -> Mapping[str, str | bool]:
    """Install or upgrade the metadata schema and the check functions; idempotent.

    Returns ``changed`` and ``revision``. Needs CREATE on the database the first time. Raises
    NotPermitted, DatabaseError, SchemaOutOfDate (when the schema is newer than this program).
    """
    from dbanon.db import metadata, migrate
    from dbanon.db.session import connect

    with connect(settings or Settings.load(), writes=True) as session, session.transaction():
        changed = migrate.install(session)
    return {"changed": changed, "revision": metadata.REVISION}


def init_sql() -> str:
    """Return what ``init`` would run on an empty database, without connecting."""
    from dbanon.db import migrate

    return migrate.script()
