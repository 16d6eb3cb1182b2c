"""Refresh copies incrementally: by whole classes, and new persons in large pools.

Only the presence of persons decides which rows are withdrawn, published, pending or withheld, never
sensitive values: otherwise a reader could infer values of known persons from the timing.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from dbanon.actions.preparation.prepare import read_linked
from dbanon.actions.publication.group_reuse import with_others
from dbanon.actions.publication.pooling import pooled, read_widened, requirements, widened
from dbanon.actions.publication.steps import Reading, Work, build
from dbanon.anonymization.estimate import parts
from dbanon.anonymization.registry import recoding_of
from dbanon.db import person_hashes
from dbanon.db.histories import atoms, membership, memory
from dbanon.db.metadata import ledger
from dbanon.db.releases.publication import Publication
from dbanon.domain.errors import Unsatisfiable
from dbanon.domain.policy import WITHDRAW_SHARE, Role, least_deadline
from dbanon.domain.text import command
from dbanon.formats.support import Mode, reasons

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dbanon.actions.preparation.inputs import InputTable
    from dbanon.actions.preparation.prepare import LinkedSource, Prepared, Source
    from dbanon.actions.publication.plan import PublicationPlan
    from dbanon.actions.publication.pooling import Pooled
    from dbanon.anonymization.outcome import Outcome
    from dbanon.db.histories.membership import MembershipDiff
    from dbanon.db.person_hashes import Changes
    from dbanon.db.session import Session
    from dbanon.domain.assignment import LossReport
    from dbanon.domain.outcomes import Stages
    from dbanon.domain.policy import Policy
    from dbanon.domain.release import Delta, Release
    from dbanon.request import Request


def _readings(session: Session, plan: PublicationPlan, stages: Stages) -> list[Reading]:
    with stages("compare"):
        pairs = zip(plan.members, plan.present, strict=True)
        found = [_reading(session, plan, *pair) for pair in pairs]
    for reason in (one.reason for one in found):
        stages.remark(f"all rows were read: {reason}" if reason else "changed rows were read")
    return found


def _reading(
    session: Session, plan: PublicationPlan, member: InputTable, present: Release
) -> Reading:
    """Find what changed in a table since its release was last compared with it."""
    info, policy, since = member.loaded.info, member.own, present.source_state
    columns = [rule.column for rule in policy.with_role(Role.SENSITIVE)]
    now = person_hashes.count(session, info, policy, since=since, columns=columns)
    if now is None:
        return Reading(now, reason="the version of a row does not show if its values changed")
    known = memory.of_series(session, info.name, present.relation)
    alone = len(plan.members) == 1 and {*known.relations.values()} == {present.relation}
    alone = alone and widened(session, member, present.relation) is member
    if not alone:
        return Reading(now, reason="other releases need all rows")
    for reason in reasons(Mode.PLACES, plan.request.for_table(policy, info)):
        return Reading(now, reason=reason)
    all_read = partial(Reading, now, key=known.key, former=None if since is None else since.places)
    if since is None or since.places is None or since.key != str(known.key):
        return all_read(reason="the places of its rows are not stored")
    if not now.is_comparable:
        return all_read(reason="it was rewritten, or its columns changed")
    changes = person_hashes.find_changes(session, info, policy, now, since)
    return all_read(reason=changes) if isinstance(changes, str) else Reading(now, changes)


def build_next(session: Session, plan: PublicationPlan, stages: Stages) -> list[Work]:
    """Build the next release of each table incrementally, if any of them has one.

    Raise CheckFailed if the combined disclosure grows, Unsatisfiable if a table would be empty.
    """
    present, readings = plan.present, _readings(session, plan, stages)
    changes, linked = readings[0].changes, len(plan.members) > 1
    if linked:
        read = whole = read_linked(session, plan.members, stages, strict=plan.request.strict)
    else:
        read, whole = read_widened(session, plan, stages, changes=changes)
    served = _served(read, present)
    with stages("compare"):
        k = requirements(session, read.members)[0].k
        differences = _differences(session, read, served, k=k, changes=changes)
    new = _new_classes(session, whole, differences, plan.request, present=present, stages=stages)
    add = partial(with_others, session, read, new)
    others = None if linked else differences[0].elsewhere
    rows, outcomes = add(others, relation=present[0].relation, stages=stages)
    deltas = _deltas(session, read, differences, new, outcomes=outcomes, present=present)
    prepared = rows.prepared(outcomes)
    if changes is None and not linked:
        sampled = parts(read.sources[0].problem(plan.members[0].policy))
        prepared = [replace(prepared[0], sampled=sampled)]
    tables = zip(plan.places, served, prepared, plan.previous, strict=True)
    found = zip(tables, deltas, readings, strict=True)
    works = [Work(*table, delta, reading) for table, delta, reading in found]
    if all(delta.is_same for delta in deltas):
        return works
    return [
        _extended(session, plan, work, stages, diff=diff, source=source)
        for work, diff, source in zip(works, differences, read.sources, strict=True)
    ]


def _extended(
    session: Session,
    plan: PublicationPlan,
    work: Work,
    stages: Stages,
    *,
    diff: MembershipDiff,
    source: Source,
) -> Work:
    """Build the next release of a table, with the loss and the class counts of its whole copy."""
    part, linked = plan.members.index(work.member), len(plan.members) > 1
    delta, outcome = work.delta, work.prepared.outcome
    assert delta is not None  # noqa: S101 - it was counted
    lost = _loss_of_copy(plan.present[part], outcome.loss, delta, source)
    ready = replace(work.prepared, outcome=replace(outcome, loss=lost), trees={})
    make = partial(build, session, plan, ready, stages, part=part, withdrawn=diff.withdrawn)
    with membership.departing(session, work.publication, part) if linked else nullcontext():
        built = make(key=plan.places[0].key if linked else None)
    return replace(built, prepared=_counted(built), delta=delta, reading=work.reading)


def _served(read: LinkedSource, present: Sequence[Release]) -> list[Publication]:
    """Return the served publication of each table, with the quasi-identifiers of the persons."""
    own = [source.encoded.quasi for source in read.sources]
    columns = [own[0], *((*own[0], *others) for others in own[1:])]
    return [
        Publication(
            id=release.id,
            info=member.info,
            policy=release.policy,
            kind=release.kind,
            view=release.relation,
            recodings=tuple((column.name, recoding_of(column)) for column in quasi),
            former=release.data_id,
        )
        for member, quasi, release in zip(read.members, columns, present, strict=True)
    ]


def _differences(
    session: Session,
    read: LinkedSource,
    served: Sequence[Publication],
    *,
    k: int,
    changes: Changes | None,
) -> list[MembershipDiff]:
    """Compare the persons with the served release, then the rows of other tables."""
    policy, source = read.members[0].policy, read.sources[0]
    deadline = least_deadline(one.policy for one in read.members)
    share = max(one.policy.withdraw_share or WITHDRAW_SHARE for one in read.members)
    terms = membership.RetentionRules(share, k, deadline)
    owners = None if policy.is_one_row(read.members[0].info) else _owners_of(source, policy)
    columns = {rule.column for one in read.members for rule in one.policy.columns if rule.keep}
    diff = partial(membership.diff_rows, terms=terms, kept=columns, persons=owners, changes=changes)
    found = [diff(session, served[0], source.rows)]
    if len(served) > 1:
        membership.hand_over(session)
    for part, one in enumerate(served[1:], 1):
        source = read.sources[part]
        of_rows = _owners_of(source, one.policy)
        found.append(
            membership.diff_linked_rows(session, one, source.rows, of_rows, kept=columns, part=part)
        )
    return found


def _owners_of(source: Source, policy: Policy) -> pa.Table:
    """Return the person of each row, as in the source."""
    assert source.owners is not None  # noqa: S101 - they are read where a policy names them
    return pa.table([source.owners.take(pa.array(source.subjects))], [policy.subject])


def _new_classes(
    session: Session,
    read: LinkedSource,
    differences: Sequence[MembershipDiff],
    request: Request,
    *,
    present: Sequence[Release],
    stages: Stages,
) -> Pooled:
    """Group the new persons of each large enough pool; read: with hidden columns."""
    published = [one.published for one in differences]
    policy = read.members[0].policy
    columns = {rule.column for rule in policy.with_role(Role.SENSITIVE)}
    if columns - published[0][0].counts.keys():
        found = atoms.published(session)
        others = {name: found.get(name, ()) for name in columns}
        published[0] = [replace(p, counts={**others, **p.counts}) for p in published[0]]
    return pooled(
        session,
        present[0].relation,
        read,
        differences[0].fresh,
        asked=requirements(session, read.members),
        published=published,
        seed=request.seed,
        stages=stages,
    )


def _deltas(
    session: Session,
    read: LinkedSource,
    differences: Sequence[MembershipDiff],
    new: Pooled,
    *,
    outcomes: Sequence[Outcome],
    present: Sequence[Release],
) -> list[Delta]:
    """Count retained, new and withdrawn rows per table; raise Unsatisfiable if one is empty."""
    found = []
    for part, outcome in enumerate(outcomes):
        published = outcome.assignment.group >= 0
        if part == 0:
            delta, fresh = differences[0].growth, published[: len(new.places)]
            delta = replace(delta, withheld=delta.withheld - int(published[len(fresh) :].sum()))
        else:
            member, fresh = differences[part], published
            later = member.growth.later + member.of_nobody - len(fresh)
            rest = read.sources[part].encoded.n_rows - member.growth.kept - len(fresh) - later
            delta = replace(member.growth, later=later, withheld=rest)
        delta = replace(
            delta,
            inserted=int(published.sum()),
            waiting=len(fresh) - int(fresh.sum()),
            pending=new.pending,
            pool=new.required,
            failed=new.failed,
        )
        if not delta.shown:
            raise Unsatisfiable(
                f"{present[part].relation} would show nobody: none of its classes stays",
                hint=command("dbanon refresh", present[part].table, options="--new-series"),
            )
        found.append(delta.awaited(ledger.pool_since(session, present[part].relation)))
    return found


def _loss_of_copy(present: Release, of_new: LossReport, delta: Delta, source: Source) -> LossReport:
    """Return the loss of the whole copy, without metrics that need every row.

    Retained classes are assumed to have the mean loss of the previous release.
    """
    before, stays, added = present.loss, delta.kept + delta.deferred, delta.inserted
    total = source.encoded.n_rows + source.n_unread + delta.deferred
    left_out = total - stays - added

    def whole(former: float, new: float) -> float:
        """Return the mean over all rows, from those of both releases."""
        lost = stays * _of_published(before, former) + added * _of_published(of_new, new)
        return (lost + left_out) / max(total, 1)

    columns = {name: whole(lost, of_new.columns[name]) for name, lost in before.columns.items()}
    weighted = before.weighted_ncp
    return replace(
        before,
        n_rows=total,
        n_suppressed=left_out,
        ncp=sum(columns.values()) / max(len(columns), 1),
        columns=columns,
        metrics={},
        sensitive_aware=before.sensitive_aware or of_new.sensitive_aware,
        weighted_ncp=None if weighted is None else whole(weighted, of_new.asked),
        n_filtered=source.n_filtered,
        n_not_drawn=source.n_not_drawn,
        n_of_nobody=source.n_of_nobody,
    )


def _of_published(loss: LossReport, mean: float) -> float:
    """Return the mean over published rows, from a mean in which other rows count 1."""
    published = loss.n_rows - loss.n_suppressed
    return (mean * loss.n_rows - loss.n_suppressed) / published if published else 0.0


def _counted(work: Work) -> Prepared:
    """Return the prepared data with the class counts of the whole copy, from the database."""
    of_k = None if work.report is None else work.report.of_k
    assert of_k is not None  # noqa: S101 - it was proved
    outcome = work.prepared.outcome
    loss = replace(outcome.loss, n_classes=of_k.classes, smallest_class=int(of_k.achieved or 0))
    return replace(work.prepared, outcome=replace(outcome, loss=loss))
