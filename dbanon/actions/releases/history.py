"""The history of a table's releases, and their combined disclosure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbanon.db import catalog
from dbanon.db.histories import memory
from dbanon.db.metadata import ledger, store
from dbanon.db.metadata.migrate import require_current
from dbanon.db.session import Session, connect
from dbanon.domain.errors import ConfigError
from dbanon.domain.policy import least_deadline
from dbanon.domain.release import Composition, Delta, Entry, Release, Retained, require_held
from dbanon.domain.table import TableName
from dbanon.domain.text import command
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime


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

    chapters: tuple[HistoryEntry, ...]
    compositions: tuple[Composition, ...]
    retained: tuple[Retained, ...] = ()


def history(table: str | TableName, *, settings: Settings | None = None) -> History:
    """Return all releases of a table and their combined disclosure.

    Needs SELECT on the stored membership, like the role that publishes. Raises ConfigError if the
    table was never published.
    """
    from dbanon.db.histories import memory, overlay

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
    chapters = (_chapter(one, changed.get(one.id), series.get(one.id)) for one in releases)
    return History(tuple(chapters), tuple(found), shown)


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
    from dbanon.db.histories import memory

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


def _chapter(release: Release, changed: int | None, series: int | None) -> HistoryEntry:
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
