"""What a publication does, resolved once: its tables, policies, series and mode."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dbanon.actions.distribution.dividing import Division, division_of
from dbanon.actions.preparation.inputs import input_tables
from dbanon.actions.publication.series import placed, restarted
from dbanon.db import audit, catalog, identity, person_hashes, rights
from dbanon.db.histories import memory, overlay
from dbanon.db.metadata import ledger
from dbanon.db.releases import copies, immutability, relations
from dbanon.domain.errors import ConfigError
from dbanon.domain.policy import Policy, Role
from dbanon.domain.table import TableInfo, TableName
from dbanon.formats.support import Mode, reasons, require

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dbanon.actions.preparation.inputs import InputTable
    from dbanon.actions.preparation.loading import Loaded
    from dbanon.actions.publication.series import Placement
    from dbanon.db.session import Session
    from dbanon.domain.release import Entry, Release
    from dbanon.request import Request


@dataclass(frozen=True, eq=False, slots=True)
class PublicationPlan:
    """The decisions of a publication, made before any row is read.

    members: the tables, that of the persons first; request: with the names of all tables of a
    dataset; places: of the tables among their series; previous: the release that each table
    replaces, None for none; division: of the table into blocks, None for one piece; restart: why a
    series starts that was not requested; present: the served releases that a refresh replaces, ()
    for a publication; mode: how rows are grouped: REFRESH (incrementally), REUSE of earlier
    classes, or None (all of them into new groups); obstacles: why a mode is impossible.
    """

    members: tuple[InputTable, ...]
    request: Request
    places: tuple[Placement, ...]
    previous: tuple[Entry | None, ...]
    division: Division | None
    restart: str | None = None
    present: tuple[Release, ...] = ()
    mode: Mode | None = None
    obstacles: Mapping[Mode, str] = field(default_factory=dict)

    def view(self, member: InputTable) -> TableName:
        """Return the published relation of a table."""
        return self.request.view(member.loaded.info.name)


def resolve(
    session: Session, loaded: Sequence[Loaded], request: Request, *, present: Sequence[Release] = ()
) -> PublicationPlan:
    """Resolve the policies in force, the joined series and the mode; reads no source row.

    present: the served releases that a refresh replaces. Raises PolicyError, ConfigError, and
    NotPermitted if a relation may not be replaced.
    """
    if len(loaded) > 1:
        request = replace(request, dataset=tuple(str(one.info.name) for one in loaded))
        _require_apart(loaded, request)
    previous = tuple(replaced(session, one, request) for one in loaded)
    members = tuple(input_tables(loaded, request))
    restart = restarted(session, members, request)
    if restart is not None:
        request = replace(request, new_series=True, recipients_changed=True)
    places = tuple(placed(session, one.info, request) for one in loaded)
    if restart is not None:
        places = tuple(replace(one, is_compared=False, former_key=None) for one in places)
    division = None
    if request.executor != "threads" or request.rows_per_block is not None:
        division = division_of(request.executor, request.rows_per_block)
    plan = PublicationPlan(members, request, places, previous, division, restart, tuple(present))
    plan = _with_mode(session, plan)
    if plan.mode is Mode.REUSE:
        require(Mode.REUSE, request.for_table(members[0].policy, members[0].info))
    return plan


def _with_mode(session: Session, plan: PublicationPlan) -> PublicationPlan:
    """Return a plan with the first possible mode, and the reasons against those before it."""
    obstacles: dict[Mode, str] = {}
    is_remembered = len(plan.members) == 1 and plan.places[0].key is not None
    candidates = (
        (Mode.REFRESH, bool(plan.present), _obstacle_to_refresh),
        (Mode.REUSE, is_remembered, _obstacle_to_reuse),
    )
    for mode, is_candidate, find in candidates:
        if not is_candidate or plan.request.new_series:
            continue
        reason = find(session, plan)
        if reason is None:
            return replace(plan, mode=mode, obstacles=obstacles)
        obstacles[mode] = reason
    return replace(plan, obstacles=obstacles)


def _obstacle_to_refresh(session: Session, plan: PublicationPlan) -> str | None:
    """Return why releases cannot be refreshed incrementally; None if their classes can stay."""
    together = len(plan.members) > 1
    for member, release in zip(plan.members, plan.present, strict=True):
        policy, info = member.policy, member.loaded.info
        reason = next(reasons(Mode.REFRESH, plan.request.for_table(policy, info)), None)
        reason = reason or _changed(session, info, release, policy=policy, versions=member.versions)
        if reason is not None:
            return f"of {release.relation}, {reason}" if together else reason
    relations_by_table = {one.table: one.relation for one in plan.present}
    if together and not overlay.is_linked(session, relations_by_table):
        return "its tables do not remember their persons alike"
    return None


def _changed(
    session: Session,
    info: TableInfo,
    present: Release,
    *,
    policy: Policy,
    versions: Mapping[str, int],
) -> str | None:
    """Return the first change since publication that prevents an incremental refresh."""
    if policy != present.policy.refreshed_as(policy):
        return "the policy has changed"
    if versions != present.taxonomies:
        return "a taxonomy has another version"
    if not copies.is_closed(session, present) or _is_altered(session, present, info, policy):
        return "it was changed after publication"
    person = info.primary_key if policy.subject is None else (policy.subject,)
    known = memory.of_series(session, present.table, present.relation)
    if present.id not in known.relations or known.person != person:
        return "its membership is not stored"
    if policy.is_one_row(info) and memory.shows_several(session, known):
        return "its series shows several rows of a person, who has one by the present key"
    return None


def _is_altered(session: Session, present: Release, source: TableInfo, policy: Policy) -> bool:
    """Return True if the relation's view or rows differ from those published.

    The transactions that wrote its rows show that, unless values may have changed otherwise.
    """
    published = catalog.describe_published(session, present.relation)
    # Early versions wrote digests without the class numbers.
    seals = present.content is not None and ":" in present.content
    if not seals or any(audit.view_problems(session, published, release=present, source=source)):
        return True
    known, since = immutability.known_sums(published, present), present.source_state
    if (
        known is not None
        and person_hashes.is_comparable(session, source, policy, since=since)
        and immutability.is_as_written(session, present.data_id, known)
    ):
        return False
    now = immutability.sums(session, published, present.data_id)
    return immutability.numbered_content(published, now) != present.content


def _obstacle_to_reuse(session: Session, plan: PublicationPlan) -> str | None:
    """Return why published values cannot be kept; None if they can.

    They would contradict the policy if a release masked a sensitive column in another way.
    """
    (member,) = plan.members
    policy, info = member.policy, member.info
    # Blocks are refused, as classes that are grouped anew for their sake would tell more.
    request = replace(plan.request, executor="threads", rows_per_block=None)
    for reason in reasons(Mode.REUSE, request.for_table(policy, info)):
        return reason
    others = ledger.policies_by_release(session, info.name, known=[policy]).values()
    sensitive = {rule.column for rule in policy.with_role(Role.SENSITIVE)}
    alike = all(
        policy.masked(rule.column) == other.masked(rule.column)
        for other in others
        for rule in other.with_role(Role.SENSITIVE)
        if rule.column in sensitive
    )
    return None if alike else "a sensitive column was masked in another way"


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
    served = (one for one in loaded.served if one.relation == view)
    latest = next(served, None) or ledger.latest_entry(session, view)
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
