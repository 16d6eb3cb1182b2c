"""What a publication does, resolved once: its tables, their policies, and the series it joins."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dbanon.actions.distribution.dividing import Division, division_of
from dbanon.actions.preparation.members import members_of
from dbanon.actions.publication.series import placed, restarted
from dbanon.db import catalog, identity, rights
from dbanon.db.metadata import ledger
from dbanon.db.releases import relations
from dbanon.domain.errors import ConfigError
from dbanon.domain.table import TableName

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dbanon.actions.preparation.loading import Loaded
    from dbanon.actions.preparation.members import Member
    from dbanon.actions.publication.series import Placement
    from dbanon.anonymization.problem import Problem
    from dbanon.db.session import Session
    from dbanon.domain.release import Entry
    from dbanon.request import Request


@dataclass(frozen=True, eq=False, slots=True)
class PublicationPlan:
    """The decisions of a publication, made before any row is read.

    members: the tables, that of the persons first; request: with the names of all tables of a
    dataset; places: of the tables among their series; previous: the release that each table
    replaces, None for none; division: of the table into blocks, None for one piece; restart: why a
    series starts that was not requested; sampled: rows of a table that keeps earlier classes, for
    an estimate of what a new search would lose.
    """

    members: tuple[Member, ...]
    request: Request
    places: tuple[Placement, ...]
    previous: tuple[Entry | None, ...]
    division: Division | None
    restart: str | None = None
    sampled: list[Problem] = field(default_factory=list)

    def view(self, member: Member) -> TableName:
        """Return the published relation of a table."""
        return self.request.view(member.loaded.info.name)


def resolve(session: Session, loaded: Sequence[Loaded], request: Request) -> PublicationPlan:
    """Resolve the policies in force and the joined series; reads no row of a table.

    Raises PolicyError, ConfigError, and NotPermitted if a relation may not be replaced.
    """
    if len(loaded) > 1:
        request = replace(request, dataset=tuple(str(one.info.name) for one in loaded))
        _require_apart(loaded, request)
    previous = tuple(replaced(session, one, request) for one in loaded)
    members = tuple(members_of(loaded, request))
    restart = restarted(session, members, request)
    if restart is not None:
        request = replace(request, new_series=True, recipients_changed=True)
    places = tuple(
        replace(placed(session, one.info, request), is_compared=restart is None) for one in loaded
    )
    division = None
    if request.executor != "threads" or request.rows_per_block is not None:
        division = division_of(request.executor, request.rows_per_block)
    return PublicationPlan(members, request, places, previous, division, restart)


def _require_apart(loaded: Sequence[Loaded], request: Request) -> None:
    """Raise ConfigError if two tables have one published name, or are one table."""
    seen: dict[TableName, TableName] = {}
    for one in loaded:
        table, view = one.info.name, request.view(one.info.name)
        if view in seen:
            if seen[view] == table:
                raise ConfigError(f"the dataset names {table} twice", hint="each table once")
            raise ConfigError(
                f"{seen[view]} and {table} would both be published as {view}",
                hint="name a view of one of them in the dataset",
            )
        seen[view] = table


def replaced(session: Session, loaded: Loaded, request: Request) -> Entry | None:
    """Return the release to replace; raises ConfigError if its name belongs to another relation.

    It may be a withdrawn release whose view could not be dropped.
    """
    rights.require_roles(session, request.grants)
    info = loaded.info
    view = request.view(info.name)
    identity.require_own_schema(session, view)
    latest = ledger.latest_entry(session, view)
    if latest is not None and latest.served and latest.table != info.name:
        raise ConfigError(
            f"{view} serves release {latest.id} of {latest.table}",
            hint="publish under another --name or --schema",
        )
    _require_no_dataset(loaded, request)
    present = relations.oid_of(session, view)
    if present is not None and not (latest and identity.serves(session, present, latest.data_id)):
        raise ConfigError(
            f"{view} exists and was not published by dbanon",
            hint="publish under another --name or --schema",
        )
    if present is not None:
        # Nobody alters or drops it from now on, so that it is still the same when it is compared.
        catalog.describe_published(session, view)
    return latest


def _require_no_dataset(loaded: Loaded, request: Request) -> None:
    """Raise ConfigError if a table is served together with others that would keep their classes.

    The tables of a dataset are proved together. Other classes of its persons would disclose more.
    """
    info = loaded.info
    names = request.dataset or (str(info.name),)
    replaced = {request.view(TableName.parse(name)) for name in names}
    for entry in loaded.together:
        if entry.relation not in replaced:
            raise ConfigError(
                f"{entry.relation} was published together with {info.name} (release {entry.id}),"
                " and other classes of these persons would tell more of them",
                hint="dbanon publish --dataset with all of these tables, or first:"
                f" dbanon release drop {entry.id}",
            )
