"""What the releases of a table together reveal, counted anew from what is remembered of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbanon.domain.checks import CheckFailed, CheckReport
from dbanon.domain.errors import ConfigError
from dbanon.domain.table import TableName
from dbanon.domain.text import command
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from dbanon.db.session import Session
    from dbanon.domain.composition import Composition
    from dbanon.domain.release import Release


@dataclass(frozen=True, slots=True)
class Chapter:
    """One release of a table; ``changed`` counts the rows that were new, gone or in another class.

    It is None where nothing is remembered.
    """

    release: int
    relation: TableName
    policy: str
    served: bool
    published: int
    ncp: float
    changed: int | None
    created_at: datetime | None


@dataclass(frozen=True, slots=True)
class History:
    """The releases of a table, newest first, and what comparing them reveals."""

    chapters: tuple[Chapter, ...]
    composition: Composition


def history(table: str | TableName, *, settings: Settings | None = None) -> History:
    """Return all releases of a table and what they reveal together.

    Needs SELECT on what is remembered, as the role that publishes has it. Raises ConfigError when
    nothing was ever published of the table.
    """
    from dbanon.db import catalog
    from dbanon.db.histories import memory, overlay
    from dbanon.db.metadata import ledger
    from dbanon.db.metadata.migrate import require_current
    from dbanon.db.session import connect

    name = table if isinstance(table, TableName) else TableName.parse(table)
    with (
        connect(settings or Settings.load()) as session,
        # What is remembered is unpacked into temporary tables, which a reading transaction has not.
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
        changed = memory.changes(session, name)
        found = overlay.recall(session, name)
    chapters = (_chapter(release, changed.get(release.id)) for release in releases)
    return History(tuple(chapters), found)


def _chapter(release: Release, changed: int | None) -> Chapter:
    return Chapter(
        release=release.id,
        relation=release.relation,
        policy=release.policy_name,
        served=release.served,
        published=release.loss.n_rows - release.loss.n_suppressed,
        ncp=release.loss.ncp,
        changed=changed,
        created_at=release.created_at,
    )


def check_history(
    relation: str | TableName | None = None, *, settings: Settings | None = None
) -> list[Composition]:
    """Count anew what the releases of the table of a published relation reveal, or of all tables.

    Raises CheckFailed when that is less than each of them promises, or is not known.
    """
    from dbanon.db.histories import overlay
    from dbanon.db.metadata.migrate import require_current
    from dbanon.db.session import connect

    with (
        connect(settings or Settings.load()) as session,
        session.transaction(snapshot=True, keep=False),
    ):
        require_current(session)
        tables = dict.fromkeys(_tables(session, relation))
        found = [overlay.recall(session, table) for table in tables]
    require_safe(found)
    return found


def _tables(session: Session, relation: str | TableName | None) -> Iterable[TableName]:
    """Return the tables of what is served, or of one relation."""
    from dbanon.db import catalog
    from dbanon.db.metadata import ledger

    if relation is None:
        return (entry.table for entry in ledger.served_entries(session))
    name = relation if isinstance(relation, TableName) else TableName.parse(relation)
    served = ledger.served_release(session, catalog.describe(session, name).name)
    if served is None:
        raise ConfigError(f"{name} serves no release", hint="dbanon release list")
    return [served.table]


def require_safe(found: Iterable[Composition]) -> None:
    """Raise CheckFailed when comparing releases reveals more than each promises, or may do so."""
    for one in found:
        if one.told:
            results = tuple(cell.result for cell in one.failed)
            raise CheckFailed(
                "\n  ".join(one.told),
                CheckReport(one.table, results),
                hint=command("dbanon history", one.table),
            )
