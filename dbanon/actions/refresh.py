"""Publish served relations again, by the stored policy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from dbanon.actions.preparation.inputs import fingerprint, input_tables, last_of_classes, of_classes
from dbanon.actions.preparation.loading import Loaded, find_source
from dbanon.actions.publish import carry_out, keep, publishing, withdraw
from dbanon.db.metadata import ledger
from dbanon.db.metadata.migrate import current_session
from dbanon.db.releases import copies, guards
from dbanon.domain.errors import ConfigError, DbanonError
from dbanon.domain.notices import Notice, Topic
from dbanon.domain.outcomes import Stages
from dbanon.domain.policy import least_deadline
from dbanon.domain.release import CheckFailed, Delta, Mark, Release
from dbanon.domain.table import TableName
from dbanon.domain.text import command
from dbanon.formats.support import Mode
from dbanon.request import Request
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dbanon.actions.publication.plan import PublicationPlan
    from dbanon.actions.publication.steps import Work
    from dbanon.anonymization.problem import Problem
    from dbanon.db.session import Session
    from dbanon.domain.policy_warning import PolicyWarning


_MUCH = 0.25
"""The share by which preserved classes lose more than new ones before a remedy is named."""


@dataclass(frozen=True, slots=True)
class Refreshed:
    """The result for one relation: ``release`` is the one now served, or with a dry run the next.

    ``changed``: it is new; ``error``: reason of a failure; ``growth``: row counts of an incremental
    refresh; ``regrouped``: reason of a new grouping; ``former_ncp``: previous loss
    (``LossReport``); ``new_ncp``: about what a new search would lose, if classes were preserved;
    ``advice``: a remedy if it would lose much less; ``stale``: a warning if more rows show former
    values than the policy's ``max_stale``; ``all_read``: why all rows were read, None if
    only changed ones were.
    """

    relation: TableName
    release: Release
    changed: bool
    error: DbanonError | None = None
    growth: Delta | None = None
    regrouped: str | None = None
    former_ncp: float | None = None
    new_ncp: float | None = None
    advice: str | None = None
    stale: str | None = None
    all_read: str | None = None

    @property
    def notices(self) -> tuple[PolicyWarning | Notice, ...]:
        """All warnings about the relation."""
        found = self.release.notices if self.changed else self.release.warnings
        if self.stale is None:
            return found
        return (Notice(Topic.STALE_VALUES, f"{self.relation}: {self.stale}"), *found)


def refresh(
    table: str | TableName | None = None,
    *,
    all_tables: bool = False,
    if_changed: bool = False,
    unless_since: Mark | None = None,
    strict: bool = False,
    new_series: bool = False,
    recipients_changed: bool = False,
    dry_run: bool = False,
    settings: Settings | None = None,
    stages: Stages | None = None,
) -> list[Refreshed]:
    """Publish every served relation of a table, or of all tables, with its last options.

    Use the current stored policy, with the k, l and options of the served release. With
    ``if_changed`` skip a relation if its rows, policy and taxonomies are unchanged. Skip one
    published after ``unless_since``, by any session, which is checked under the publication lock.

    Preserve classes and their values until too many persons of a class are deleted, or one for
    longer than ``erase_within``; then withdraw the class. New persons form classes once there are
    enough for a pool. Group all rows from scratch if classes cannot be preserved, or with
    ``new_series``. This and ``recipients_changed`` are those of ``publish``.

    ``all_tables`` reports failures in ``error`` and continues. ``strict`` refuses releases with
    warnings. ``dry_run`` builds and proves, then rolls back. Raise ConfigError if no relation is
    served, and the errors of ``publish``.
    """
    if (table is None) != all_tables:
        raise ConfigError("name one table, or pass --all", hint="dbanon refresh --all")
    settings = settings or Settings.load()
    now = Request(
        strict=strict,
        new_series=new_series,
        recipients_changed=recipients_changed,
        dry_run=dry_run,
        settings=settings,
        stages=stages,
    )
    served = _served(table, settings)
    results: list[Refreshed] = []
    for releases in _together(served):
        again = partial(_again, releases, now, if_changed=if_changed, unless_since=unless_since)
        results += again() if table is not None else _attempt(releases, again)
    return results


def _served(table: str | TableName | None, settings: Settings) -> list[Release]:
    with current_session(settings) as session:
        if table is None:
            return ledger.releases(session, served=True)
        name = table if isinstance(table, TableName) else TableName.parse(table)
        info = find_source(session, name)
        served = ledger.releases(session, table=info.name, served=True)
        whole = {release.dataset for release in served if release.dataset}
        if whole:
            others = ledger.releases(session, served=True)
            served += [r for r in others if r.dataset in whole and r.table != info.name]
    if not served:
        hint = command("dbanon publish", info.name, options="--k 5")
        raise ConfigError(f"{info.name} is not published", hint=hint)
    return served


def _together(served: Sequence[Release]) -> list[list[Release]]:
    """Group the releases that are published together, a dataset in its order."""
    datasets = {release.dataset for release in served if release.dataset}
    alone = [[release] for release in served if not release.dataset]
    joint = [
        sorted((r for r in served if r.dataset == names), key=lambda r: names.index(str(r.table)))
        for names in sorted(datasets)
    ]
    return [*alone, *joint]


def _attempt(releases: Sequence[Release], again: Callable[[], list[Refreshed]]) -> list[Refreshed]:
    try:
        return again()
    except DbanonError as error:
        return [Refreshed(one.relation, one, changed=False, error=error) for one in releases]


def _again(
    releases: Sequence[Release], now: Request, *, if_changed: bool, unless_since: Mark | None
) -> list[Refreshed]:
    """Publish a release or dataset again, with its options and those of this refresh."""
    asked = Request.from_ledger(releases[0].overrides)
    request = replace(
        asked,
        grants=(),  # readers stay; those granted with that release may have lost it
        strict=now.strict,
        new_series=now.new_series,
        recipients_changed=now.recipients_changed,
        dry_run=now.dry_run,
        settings=now.settings,
    )
    stages, found = now.stages or Stages(), None
    with publishing([one.table for one in releases], request) as (session, loaded):
        present = _all_present(session, releases, of=len(asked.dataset))
        if [one.id for one in present] == [one.id for one in releases]:
            is_same = partial(_is_same, session, loaded, present, stages, scratch=now.new_series)
            if unless_since is not None and all(map(unless_since.precedes, present)):
                return _kept(session, loaded, present)
            if if_changed and is_same():
                return _kept(session, loaded, present)
            # What has not changed is known without arrays.
            from dbanon.actions.publication.plan import resolve

            plan = resolve(session, loaded, request, present=present)
            if plan.restart is not None and not if_changed and is_same():
                return _kept(session, loaded, present)
            found = _renewed(session, plan, stages)
        else:
            withdraw(session)
    if found is not None:  # after the commit, as how long the estimate takes depends on values
        sampled = found[0].prepared.sampled
        return _with_stale(_estimated(_refreshed(plan, found), sampled, request), loaded)
    return _again(present, now, if_changed=if_changed, unless_since=unless_since)


def _kept(
    session: Session, loaded: Sequence[Loaded], present: Sequence[Release]
) -> list[Refreshed]:
    """Preserve the served releases."""
    keep(session, loaded, present)
    same = [Refreshed(one.relation, one, changed=False) for one in present]
    return _with_stale(same, loaded)


def _with_stale(found: Sequence[Refreshed], loaded: Sequence[Loaded]) -> list[Refreshed]:
    """Return results with warnings about former values, as the policies limit them."""
    return [
        replace(one, stale=one.release.stale_beyond(table.policy.max_stale))
        for one, table in zip(found, loaded, strict=True)
    ]


def _estimated(
    found: list[Refreshed], sampled: Sequence[Problem], request: Request
) -> list[Refreshed]:
    """Return the result for a table that keeps classes with the loss of a new search.

    If only changed rows were read, it is that of the last time that all were.
    """
    one, *others = found
    state = one.release.source_state
    if others:
        return found
    if sampled:
        ncp = _of_search(one.release, sampled, request)
    else:
        ncp = None if state is None or one.growth is None else state.ncp
    if ncp is None:
        return found
    advice, now = None, one.release.loss.ncp
    if now > (1 + _MUCH) * ncp:
        options = "--name NAME --new-series --recipients-changed"
        new = command("dbanon publish", one.release.table, options=options)
        advice = f"a new search would lose less, for an audience without these releases: {new}"
    return [replace(one, new_ncp=ncp, advice=advice)]


def _of_search(release: Release, sampled: Sequence[Problem], request: Request) -> float | None:
    """Return about the loss of a new search of the rows that were read, and store it.

    The estimate is an upper bound; one above the loss of the present classes says less than that.
    """
    from dbanon.anonymization.estimate import ncp_of_search

    ncp, state = ncp_of_search(sampled), release.source_state
    ncp = None if ncp is None else min(ncp, release.loss.ncp)
    if ncp is not None and state is not None and state.places is not None and not request.dry_run:
        ledger.note_search(request.settings or Settings.load(), release.id, replace(state, ncp=ncp))
    return ncp


def _renewed(session: Session, plan: PublicationPlan, stages: Stages) -> list[Work]:
    """Carry out a plan; raise CheckFailed with the reason if its classes could not stay."""
    try:
        return carry_out(session, plan, stages)
    except CheckFailed as error:
        reason, name = _regrouped(plan), plan.present[0].relation
        if reason is None:
            raise
        message = f"{name} can only be grouped from scratch, as {reason}\n  {error}"
        raise CheckFailed(message, error.report, hint=error.hint) from None


def _regrouped(plan: PublicationPlan) -> str | None:
    """Return why releases are grouped from scratch that nobody asked for."""
    return plan.restart or plan.obstacles.get(Mode.REFRESH)


def _refreshed(plan: PublicationPlan, works: Sequence[Work]) -> list[Refreshed]:
    """Return the result for each relation of a plan."""
    former = {one.relation: one.loss.ncp for one in plan.present}
    return [
        Refreshed(
            release.relation,
            release,
            changed=one.is_new,
            growth=one.delta if plan.mode is Mode.REFRESH else None,
            regrouped=None if release.sharing else _regrouped(plan),
            former_ncp=former.get(release.relation),
            all_read=one.reading.reason,
        )
        for one in works
        if (release := one.release) is not None
    ]


def _all_present(session: Session, releases: Sequence[Release], *, of: int) -> list[Release]:
    """Return the served releases; raise ConfigError unless all tables of the dataset have one."""
    if len(releases) < of:
        raise ConfigError(
            f"of what was published together with {releases[0].relation}, not all is served",
            hint="dbanon publish --dataset FILE",
        )
    found = []
    for one in releases:
        present = ledger.served_release(session, one.relation)
        if present is None or (present.table, present.dataset) != (one.table, one.dataset):
            raise ConfigError(f"{one.relation} was withdrawn meanwhile", hint="dbanon release list")
        found.append(present)
    return found


def _is_same(
    session: Session,
    loaded: Sequence[Loaded],
    releases: Sequence[Release],
    stages: Stages,
    *,
    scratch: bool,
) -> bool:
    """Return True if nothing changed that the releases depend on, their guards included.

    The last refresh already compared pending and deleted rows. scratch: group all rows again.
    """
    from dbanon.db.histories.memory import count_deleted
    from dbanon.db.person_hashes import content_since

    deadline = least_deadline(one.policy for one in loaded)
    with stages("compare"):
        same = not any(guards.alterations(session, one) for one in releases)
        same = same and not any(copies.needs_repair(session, one) for one in releases)
        deleted = partial(count_deleted, session, deadline=deadline)
        same = same and not any(deleted(one.relation).overdue for one in releases)
        if same:
            asked = Request.from_ledger(releases[0].overrides)
            members = input_tables(loaded, asked)
            rows = [
                content_since(session, member.loaded.info, member.own, one.source_state)
                for member, one in zip(members, releases, strict=True)
            ]
            found = fingerprint(session, members, asked, of_rows=rows)
            # What another relation published since comes here, too.
            known = {found} if last_of_classes(session, releases) < releases[0].id else set()
            known |= set() if scratch else {of_classes(session, found, releases)}
            same = all({one.fingerprint, one.compared} & known for one in releases)
    return same
