"""Install the metadata schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbanon.domain.deeds import Deed
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping


_DEED = Deed("the metadata schema", "installed", "dbanon init")


def init(
    settings: Settings | None = None, *, role: str | None = None, schema: str = "anon"
) -> Mapping[str, Any]:
    """Install, upgrade or mend the metadata schema and the check functions; idempotent.

    ``role`` is another one that will publish in ``schema``, and is given all that it needs but
    SELECT on the tables. Returns ``changed``, ``revision``, ``former``, the revision that was there
    before, ``lost``, what dbanon does not know how to mend, each part in a sentence, and
    ``lacking``, what the owner of the database still has to give ``role``. Needs CREATE on the
    database the first time.
    Raises NotPermitted, DatabaseError, SchemaOutOfDate (when the schema is newer than this
    program, or older than it can upgrade), ConfigError when there is no such role.
    """
    from dbanon.db import rights
    from dbanon.db.metadata import damage, migrate, tables
    from dbanon.db.session import connect

    with (
        connect(settings or Settings.load(), writes=True) as session,
        session.transaction(deed=_DEED),
    ):
        changed, former = migrate.install(session)
        lacking = []
        if role is not None:
            rights.require_roles(session, [role])
            migrate.grant_everyday(session, role, views=schema)
            if grant := rights.lacking_temporary(session, role):
                lacking = [f"{role} needs temporary tables to publish and to compare: {grant}"]
        lost = [str(part) for part in damage.missing(session)]
        if not lost:
            views = damage.unrecorded_views(session)
            lost = [f"{view} is served, and the ledger says nothing of it" for view in views]
            lost += damage.lost_accounts(session)
    return {
        "changed": changed,
        "revision": tables.REVISION,
        "former": former,
        "lost": lost,
        "lacking": lacking,
    }


def init_sql(*, role: str | None = None, owner: str | None = None, schema: str = "anon") -> str:
    """Return what ``init`` would run on an empty database, without connecting.

    For a superuser or the owner of the database to run. ``role`` is the ordinary role that will
    publish, which is given all that it needs but SELECT on the tables; ``owner`` is who shall own
    the objects, instead of whoever runs this; ``schema`` is where releases will be served.
    """
    from dbanon.db.metadata import migrate

    return migrate.script(role=role, owner=owner, views=schema)
