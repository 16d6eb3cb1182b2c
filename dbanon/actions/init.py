"""Install the metadata schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.domain.deeds import Deed
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping


_DEED = Deed("the metadata schema", "installed", "dbanon init")


def init(settings: Settings | None = None, *, role: str | None = None) -> Mapping[str, str | bool]:
    """Install or upgrade the metadata schema and the check functions; idempotent.

    ``role`` is another one that will publish, and is given all that it needs but SELECT on the
    tables. Returns ``changed`` and ``revision``. Needs CREATE on the database the first time.
    Raises NotPermitted, DatabaseError, SchemaOutOfDate (when the schema is newer than this
    program), ConfigError when there is no such role.
    """
    from dbanon.db import access, metadata, migrate
    from dbanon.db.session import connect

    with (
        connect(settings or Settings.load(), writes=True) as session,
        session.transaction(deed=_DEED),
    ):
        changed = migrate.install(session)
        if role is not None:
            access.require_roles(session, [role])
            migrate.grant_everyday(session, role)
    return {"changed": changed, "revision": metadata.REVISION}


def init_sql(*, role: str | None = None, owner: str | None = None) -> str:
    """Return what ``init`` would run on an empty database, without connecting.

    For a superuser or the owner of the database to run. ``role`` is the ordinary role that will
    publish, which is given all that it needs but SELECT on the tables; ``owner`` is who shall own
    the objects, instead of whoever runs this.
    """
    from dbanon.db import migrate

    return migrate.script(role=role, owner=owner)
