"""Publish again what is served, by the stored policy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, cast

from dbanon.actions.preparation.prepare import fingerprint
from dbanon.actions.preparation.request import Request
from dbanon.actions.publication.opening import publishing
from dbanon.actions.publish import publish_in
from dbanon.domain.errors import ConfigError, DbanonError
from dbanon.domain.progress import Stages
from dbanon.domain.table import TableName
from dbanon.domain.text import command
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from dbanon.actions.preparation.loading import Loaded
    from dbanon.actions.preparation.request import Options
    from dbanon.db.session import Session
    from dbanon.domain.release import Release


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What became of one relation: ``release`` is the one now served.

    ``changed`` tells whether it is a new one; ``error`` is why it could not be.
    """

    relation: TableName
    release: Release
    changed: bool
    error: DbanonError | None = None


def refresh(
    table: str | TableName | None = None,
    *,
    all_tables: bool = False,
    if_changed: bool = False,
    strict: bool = False,
    settings: Settings | None = None,
    stages: Stages | None = None,
) -> list[Refreshed]:
    """Publish every served relation of a table, or of all tables, as it was asked for last time.

    The stored policy as it stands now is used, under the same k, l and options that published
    the served release. With ``if_changed`` a relation whose rows, policy and taxonomies are the
    same is left alone. With ``all_tables`` one failure does not keep the others from being
    tried: it is reported in ``error``. With ``strict`` nothing is published that would be warned
    of. Raises ConfigError when nothing is served, and what
    ``publish`` raises.
    """
    if (table is None) != all_tables:
        raise ConfigError("name one table, or pass --all", hint="dbanon refresh --all")
    settings = settings or Settings.load()
    stages = stages or Stages()
    served = _served(table, settings)
    again = partial(_again, if_changed=if_changed, strict=strict, settings=settings, stages=stages)
    return [again(release) if table is not None else _attempt(release, again) for release in served]


def _served(table: str | TableName | None, settings: Settings) -> list[Release]:
    from dbanon.actions.preparation.loading import find_source
    from dbanon.db.metadata import ledger
    from dbanon.db.metadata.migrate import current_session

    with current_session(settings) as session:
        if table is None:
            return ledger.releases(session, served=True)
        name = table if isinstance(table, TableName) else TableName.parse(table)
        info = find_source(session, name)
        served = ledger.releases(session, table=info.name, served=True)
    if not served:
        hint = command("dbanon publish", info.name, options="--k 5")
        raise ConfigError(f"{info.name} is not published", hint=hint)
    return served


def _attempt(release: Release, again: Callable[[Release], Refreshed]) -> Refreshed:
    try:
        return again(release)
    except DbanonError as error:
        return Refreshed(release.relation, release, changed=False, error=error)


def _again(
    release: Release, *, if_changed: bool, strict: bool, settings: Settings, stages: Stages
) -> Refreshed:
    """Publish a release anew, or what has been published in its place since it was read."""
    from dbanon.db.metadata import ledger

    asked = Request.of(cast("Options", release.overrides))
    # The relation keeps its readers. Whom it was granted to with that release may have lost it.
    request = replace(asked, grants=())
    with publishing([(release.table, request)], settings, keep=True) as (session, (loaded,)):
        present = ledger.served_release(session, release.relation)
        if present is None or present.table != release.table:
            raise ConfigError(
                f"{release.relation} was withdrawn meanwhile", hint="dbanon release list"
            )
        if present.id == release.id:
            if if_changed and _is_same(session, loaded, release, asked, stages):
                session.deeds.withdraw()
                return Refreshed(release.relation, release, changed=False)
            new = publish_in(session, loaded, request, stages, strict=strict)
            return Refreshed(release.relation, new, changed=True)
        session.deeds.withdraw()
    return _again(present, if_changed=if_changed, strict=strict, settings=settings, stages=stages)


def _is_same(
    session: Session, loaded: Loaded, release: Release, asked: Request, stages: Stages
) -> bool:
    """Whether nothing changed that a release depends on, its guards included."""
    from dbanon.db import identity
    from dbanon.db.releases import marks

    with stages("compare"):
        policy = asked.over(loaded.policy)
        same = not marks.alterations(session, release) and (
            fingerprint(session, loaded, policy, asked) == release.fingerprint
        )
        identity.require_admitted(session)
    return same
