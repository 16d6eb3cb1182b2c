"""Install the metadata schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbanon.db import rights
from dbanon.db.metadata import damage, migrate, store
from dbanon.db.session import connect
from dbanon.domain.outcomes import Operation
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping


_OPERATION = Operation("the metadata schema", "installed", "dbanon init")


def init(
    settings: Settings | None = None,
    *,
    role: str | None = None,
    schema: str = "anon",
    approver: str | None = None,
    require_approval: bool | None = None,
) -> Mapping[str, Any]:
    """Install, upgrade or repair the metadata schema and the check functions; idempotent.

    ``role`` is another role that will publish in ``schema``; it gets all rights except SELECT on
    the tables. ``approver`` is a role that may approve policies. With ``require_approval``,
    ``publish`` and ``refresh`` refuse a policy without an approval; False ends that, for the owner
    of the metadata alone.

    Returns ``changed``, ``revision``, ``former`` (the previous revision), ``lost`` (parts that
    cannot be repaired, as sentences) and ``lacking`` (grants that the owner of the database must
    still run for ``role``). Needs CREATE on the database the first time. Raises NotPermitted,
    DatabaseError, SchemaOutOfDate (if the schema is newer than this program, or too old to upgrade)
    and ConfigError if there is no such role.
    """
    with (
        connect(settings or Settings.load(), writes=True) as session,
        session.transaction(operation=_OPERATION),
    ):
        changed, former = migrate.install(session)
        lacking = []
        if role is not None:
            rights.require_roles(session, [role])
            migrate.grant_everyday(session, role, views=schema)
            if grant := rights.lacking_temporary(session, role):
                lacking = [grant]
        if approver is not None:
            rights.require_roles(session, [approver])
            migrate.grant_approval(session, approver)
        if require_approval is not None:
            store.demand_approval(session, demand=require_approval)
        lost = [str(part) for part in damage.missing(session)]
        if not lost:
            views = damage.unrecorded_views(session)
            lost = [f"{view} is served, but not in the ledger" for view in views]
            lost += damage.lost_accounts(session)
    return {
        "changed": changed,
        "revision": migrate.REVISION,
        "former": former,
        "lost": lost,
        "lacking": lacking,
    }


def init_sql(
    *,
    role: str | None = None,
    owner: str | None = None,
    schema: str = "anon",
    approver: str | None = None,
    require_approval: bool = False,
) -> str:
    """Return the SQL of ``init`` on an empty database, without connecting.

    For a superuser or the owner of the database. ``role`` is the ordinary role that will publish;
    it gets all rights except SELECT on the tables; ``owner`` will own the objects, by default the
    current role; ``schema`` is that of published views; the others are those of ``init``.
    """
    return migrate.script(
        role=role, owner=owner, views=schema, approver=approver, require_approval=require_approval
    )
