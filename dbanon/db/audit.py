"""Facts about a server, a role and a release that only an audit needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbanon.db import catalog, identity
from dbanon.db.queries import query, template
from dbanon.db.releases.guards import triggers
from dbanon.db.releases.relations import needed_tables, read_promise
from dbanon.db.schemas import DATA_SCHEMA
from dbanon.domain.errors import TableNotFound
from dbanon.domain.table import TableInfo, TableName, quote_identifier

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dbanon.db.session import Session
    from dbanon.domain.release import Entry, Release


OLDEST = 13


@dataclass(frozen=True, slots=True)
class RoleFacts:
    """The current role; ``can_create``: it may create the schemas it needs, or they exist."""

    name: str
    superuser: bool
    can_create: bool


def server_version(session: Session) -> tuple[int, str]:
    """Return the server's version as a number such as 150018, and as text."""
    name = session.pg.info.parameter_status("server_version") or "?"
    return session.pg.info.server_version, name.split()[0]


def role_facts(session: Session, schemas: Iterable[str]) -> RoleFacts:
    """Describe the current role, for publishing in these schemas."""
    named = {"schemas": [DATA_SCHEMA, *schemas]}
    row = session.one(query("session.role_facts"), named)
    return RoleFacts(*row)


def can_read(session: Session, info: TableInfo) -> bool:
    """Return True if the current role may read every column of a relation."""
    return session.pg.execute(query("rights.can_read"), (info.oid,)).fetchone() == (True,)


def orphans(session: Session, served: Iterable[Entry]) -> list[tuple[str, str]]:
    """Return name and kind of private relations that no served release needs."""
    needed = [name for release in served for name in needed_tables(release)]
    rows = session.pg.execute(query("releases.orphans"), (needed,)).fetchall()
    return [(name, kind) for name, kind in rows]


def private_publications(session: Session) -> list[tuple[str, int]]:
    """Return the logical publications that include private tables, with the number of these."""
    return session.pg.execute(query("releases.private_publications")).fetchall()


def private_readers(session: Session) -> list[tuple[str, str, list[str]]]:
    """Return the roles that were granted private relations, with the schema and the names."""
    return session.pg.execute(query("rights.private_readers")).fetchall()


def view_problems(
    session: Session, published: TableInfo, *, release: Release, source: TableInfo
) -> Iterator[str]:
    """Yield the defects of the relation that serves a release."""
    view, row = published.name, None
    if published.relkind == "v":
        row = session.pg.execute(query("catalog.view_options"), (view.schema, view.name)).fetchone()
    if row is None:
        yield "it is not a view any more"
        return
    if "security_barrier=true" not in (row[0] or ()):
        yield "security_barrier is off: a reader's function can see what the view hides"
    for column in published.columns:
        if column.shown is not None or column.foreign_collation:
            name = quote_identifier(column.name)
            yield f"the owner of the type of column {name} can change what it shows, or drop it"
    promise = read_promise(session, published)
    if promise is None or promise.release != release.id:
        yield "its comment is not that of the served release"
    elif not promise.is_of(release.policy):
        yield "its comment promises other models or columns than the ledger"
    if release.kind.is_live:
        needed = triggers(release.data_id, source)
        oids, _, names, modes = map(list, zip(*needed, strict=True))
        count = session.pg.execute(query("releases.armed_guards"), (oids, names, modes)).fetchone()
        if count is None or count[0] != len(needed):
            yield "a guard on the source is missing or disabled"


@dataclass(frozen=True, slots=True)
class Hidden:
    """Hidden rows: ``rows`` in ``classes`` that failed, ``gone`` that changed or were deleted."""

    published: int
    rows: int
    classes: int
    gone: int

    @property
    def total(self) -> int:
        """The number of hidden rows."""
        return self.rows + self.gone

    def __str__(self) -> str:
        return (
            f"it hides {self.total:,} of the {self.published:,} rows that were published:"
            f" {self.rows:,} in {self.classes:,} classes that failed, {self.gone:,} that were"
            " changed or deleted"
        )


def hidden(session: Session, release: Release) -> Hidden | None:
    """Count the hidden rows of a live release; None for a copy, or without the rights to count."""
    if not release.kind.is_live or not release.served:
        return None
    names = []
    for prefix in ("rows", "groups"):
        try:
            info = catalog.describe(session, TableName(DATA_SCHEMA, f"{prefix}_{release.data_id}"))
        except TableNotFound:
            return None
        if not can_read(session, info):
            return None
        identity.hold(session, info)
        identity.admit(session, info)
        names.append(identity.readable(session, info))
    statement = template("live.count_shown", rows=names[0], groups=names[1])
    shown, rows, classes = session.one(statement)
    published = release.loss.n_rows - release.loss.n_suppressed
    return Hidden(published, rows, classes, max(published - shown - rows, 0))
