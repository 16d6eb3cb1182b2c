"""List, show, compare and withdraw releases, and delete what withdrawn ones left behind."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbanon.db import catalog, identity
from dbanon.db.audit import Hidden, hidden
from dbanon.db.histories import memory
from dbanon.db.locks import LockNotGranted
from dbanon.db.metadata import ledger, migrate, store
from dbanon.db.metadata.migrate import current_session, require_current
from dbanon.db.releases import publication_lock, withdrawal
from dbanon.db.releases.relations import DependedOn
from dbanon.db.session import Session, connect
from dbanon.domain.errors import ConfigError, DatabaseError, NotPermitted, TableNotFound
from dbanon.domain.outcomes import Operation, Stages
from dbanon.domain.policy import least_deadline
from dbanon.domain.release import (
    Composition,
    Delta,
    Entry,
    Release,
    Retained,
    Verification,
    require_held,
)
from dbanon.domain.table import TableName
from dbanon.domain.text import command
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime


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
    live = [release for release in releases if release.served and release.kind.is_live]
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
        raise ConfigError(f"release {release_id} does not exist", hint=_LIST)
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
    """Drop the relations of a withdrawn release; remarks name transactions that prevent it."""
    again = f"dbanon release drop {release.id}"
    try:
        # The first connection may have been lost after its commit.
        with connect(settings, writes=True) as session:
            with session.transaction():
                known = withdrawal.left(session, release)
                withdrawal.drop(session, release)
                identity.require_nothing_else(session, known)
            withdrawal.tidy(session)
    except LockNotGranted as held:
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
        withdrawal.tidy(session)
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
    if not memory.may_forget(session):
        raise NotPermitted(
            "this role may not delete stored membership",
            hint="run it as the owner of the schema dbanon: publishers are not to have that right",
        )


def _require_idle(session: Session, release: Release, own: int) -> None:
    series = memory.series(session, release.table)
    served = ledger.served_entries(session, table=release.table)
    for one in served:
        if memory.series_of(series, one.id, own) == own:
            raise ConfigError(
                f"{one.relation} serves release {one.id} of that series, which the next one has to"
                " be compared with",
                hint=command("dbanon release drop", one.id),
            )


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One release of a table.

    published, left_out: rows of the table then, the latter suppressed; smallest_class: its number
    of rows; changed: rows that were new, deleted or in another class; series: the release that
    started its series, 0 for the first one; both are None if no membership is stored. growth: the
    counts of its last refresh, if it preserves classes.
    """

    release: int
    relation: TableName
    policy: str
    served: bool
    published: int
    left_out: int
    smallest_class: int
    ncp: float
    changed: int | None
    series: int | None
    created_at: datetime | None
    growth: Delta | None = None


@dataclass(frozen=True, slots=True)
class History:
    """The releases of a table, newest first, and the combined disclosure of each series.

    For a dataset, that of all its tables comes last. retained: of each served relation, the
    deleted persons that it still has since the last refresh.
    """

    entries: tuple[HistoryEntry, ...]
    compositions: tuple[Composition, ...]
    retained: tuple[Retained, ...] = ()


def history(table: str | TableName, *, settings: Settings | None = None) -> History:
    """Return all releases of a table and their combined disclosure.

    Needs SELECT on the stored membership, like the role that publishes. Raises ConfigError if the
    table was never published.
    """
    from dbanon.db.histories import overlay

    name = TableName.parse(table)
    with (
        connect(settings or Settings.load()) as session,
        # Membership is unpacked into temporary tables, which a read-only transaction cannot create.
        session.transaction(snapshot=True, keep=False),
    ):
        require_current(session)
        if name.schema is None:
            name = catalog.describe(session, name).name
        releases = ledger.releases(session, table=name)
        if not releases:
            raise ConfigError(
                f"nothing was ever published of {name}",
                hint=command("dbanon publish", name, options="--k 5"),
            )
        changed, series = memory.changes(session, name), memory.series(session, name)
        relations = _relations(session, releases)
        relations += _datasets(session, [one for one in releases if one.served])
        found = [overlay.recall(session, one) for one in relations]
        shown = tuple(retained(session, one) for one in releases if one.served)
    entries = (_history_entry(one, changed.get(one.id), series.get(one.id)) for one in releases)
    return History(tuple(entries), tuple(found), shown)


def retained(session: Session, release: Release) -> Retained:
    """Return the deleted persons that a served release still has, by the strictest policy."""
    together = [release]
    if release.dataset:
        served = ledger.releases(session, served=True)
        together = [one for one in served if one.dataset == release.dataset]
    policies = []
    for one in together:
        stored = store.load_stored(session, one.table, one.policy_name)
        policies.append(one.policy if stored is None else stored.policy)
    return memory.count_deleted(session, release.relation, deadline=least_deadline(policies))


def _relations(session: Session, entries: Sequence[Entry]) -> list[dict[TableName, TableName]]:
    """Return the table and newest relation of each series; entries: newest first."""
    series = {table: memory.series(session, table) for table in {one.table for one in entries}}
    newest: dict[tuple[TableName, TableName], int] = {}
    for one in entries:
        if one.id in series[one.table]:
            newest.setdefault((one.table, one.relation), series[one.table][one.id])
    found: dict[tuple[TableName, int | None], TableName] = {}
    for (table, relation), number in newest.items():
        found.setdefault((table, number), relation)
    for one in entries:  # live views are compared with the latest series
        if all(table != one.table for table, _ in found):
            found[one.table, None] = one.relation
    return [{table: relation} for (table, _), relation in found.items()]


def _history_entry(release: Release, changed: int | None, series: int | None) -> HistoryEntry:
    return HistoryEntry(
        release=release.id,
        relation=release.relation,
        policy=release.policy_name,
        served=release.served,
        published=release.loss.n_rows - release.loss.n_suppressed,
        left_out=release.loss.n_suppressed,
        smallest_class=release.loss.smallest_class,
        ncp=release.loss.ncp,
        changed=changed,
        series=series,
        created_at=release.created_at,
        growth=release.growth,
    )


def check_history(
    relation: str | TableName | None = None, *, settings: Settings | None = None
) -> list[Composition]:
    """Count the combined disclosure of a published relation's series, or of all served ones.

    Datasets are also checked as a whole. Raises CheckFailed if it breaks a promise or is unknown.
    Live views are not counted, but listed in the warnings of the result.
    """
    from dbanon.db.histories import overlay

    with (
        connect(settings or Settings.load()) as session,
        session.transaction(snapshot=True, keep=False),
    ):
        require_current(session)
        served = _served(session, relation)
        relations = [*_relations(session, served), *_datasets(session, served)]
        found = [overlay.recall(session, one) for one in relations]
    require_held(found)
    return found


def _datasets(session: Session, entries: Sequence[Entry]) -> list[dict[TableName, TableName]]:
    """Return the relation of each table of each dataset that is served, that of persons first."""
    wanted = {one.dataset for one in entries if one.dataset}
    relations: dict[tuple[str, ...], dict[str, TableName]] = {names: {} for names in wanted}
    for one in ledger.served_entries(session) if wanted else ():
        if one.dataset in wanted:
            relations[one.dataset][str(one.table)] = one.relation
    return [
        {TableName.parse(name): of[name] for name in names if name in of}
        for names, of in sorted(relations.items())
        if len(of) > 1  # a table that is left of a dataset is compared alone
    ]


def _served(session: Session, relation: str | TableName | None) -> Sequence[Entry]:
    if relation is None:
        return ledger.served_entries(session)
    name = TableName.parse(relation)
    served = ledger.served_release(session, catalog.describe(session, name).name)
    if served is None:
        raise ConfigError(f"{name} serves no release", hint="dbanon release list")
    return [served]
