"""Refresh copies incrementally: by whole classes, and new persons in large pools.

Only the presence of persons decides which rows are withdrawn, published, pending or withheld, never
sensitive values: otherwise a reader could infer values of known persons from the timing.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from dbanon.actions.preparation.members import digest_of_rows
from dbanon.actions.preparation.prepare import LinkedSource, cautions, read_linked, read_source
from dbanon.actions.publication.group_reuse import with_late
from dbanon.actions.publication.pooling import narrowed, pooled, requirements, widened
from dbanon.actions.publication.steps import build
from dbanon.anonymization.estimate import parts
from dbanon.anonymization.registry import recoding_of
from dbanon.db import audit, catalog, person_hashes
from dbanon.db.histories import atoms, membership, memory, overlay
from dbanon.db.releases import copies, immutability
from dbanon.db.releases.publication import Publication
from dbanon.domain.errors import Unsatisfiable
from dbanon.domain.policy import WITHDRAW_SHARE, Role, least_deadline
from dbanon.domain.text import command
from dbanon.formats.support import Mode, reasons

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from dbanon.actions.preparation.members import Member
    from dbanon.actions.preparation.prepare import Prepared, Source
    from dbanon.actions.publication.plan import PublicationPlan
    from dbanon.actions.publication.pooling import Pooled
    from dbanon.actions.publication.steps import Work
    from dbanon.anonymization.outcome import Outcome
    from dbanon.db.histories.membership import Standing
    from dbanon.db.person_hashes import Changes, Counted
    from dbanon.db.session import Session
    from dbanon.domain.assignment import EncodedColumn, LossReport
    from dbanon.domain.outcomes import Stages
    from dbanon.domain.policy import Policy
    from dbanon.domain.policy_warning import PolicyWarning
    from dbanon.domain.release import Delta, Release, SourceState
    from dbanon.domain.table import TableInfo
    from dbanon.request import Request


@dataclass(frozen=True, slots=True)
class Unchanged:
    """A release without withdrawn or new classes, and its repeated ``warnings``."""

    growth: Delta
    warnings: tuple[PolicyWarning, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """How a refresh finds what changed in a table.

    counted: its state now, None if unknown; changes: the rows that changed, if only these are read;
    reason: otherwise, why all are; key: the hash key by which places can be stored, None if not;
    former: the number of the present table of places.
    """

    counted: Counted | None
    changes: Changes | None = None
    reason: str | None = None
    key: UUID | None = None
    former: int | None = None


def reading(session: Session, plan: PublicationPlan, member: Member, present: Release) -> Reading:
    """Find what changed in a table since its release was last compared with it."""
    info, policy, since = member.loaded.info, member.own, present.source_state
    now = person_hashes.count(session, info, policy, since=since)
    if now is None:
        return Reading(now, reason="the version of a row does not show if its values changed")
    known = memory.of_series(session, info.name, present.relation)
    alone = len(plan.members) == 1 and {*known.relations.values()} == {present.relation}
    alone = alone and widened(session, member, present.relation) is member
    if not alone:
        return Reading(now, reason="other releases need all rows")
    for reason in reasons(Mode.PLACES, plan.request.asked(policy, info)):
        return Reading(now, reason=reason)
    anew = partial(Reading, now, key=known.key, former=None if since is None else since.places)
    if since is None or since.places is None or since.key != str(known.key):
        return anew(reason="the places of its rows are not stored")
    if not now.is_comparable:
        return anew(reason="it was rewritten, or its columns changed")
    changes = person_hashes.find_changes(session, info, policy, now, since)
    return anew(reason=changes) if isinstance(changes, str) else Reading(now, changes)


def state_after(
    session: Session, member: Member, reading: Reading, *, release: int
) -> SourceState | None:
    """Store the places of a table after its refresh, and return its state.

    release: the new one, 0 for none.
    """
    info, policy = member.loaded.info, member.own
    if reading.counted is None:
        return None
    update = partial(person_hashes.update_places, session, info, policy, release=release)
    if reading.changes is not None:
        return update(reading.changes.now, key=None)
    content = digest_of_rows(session, info, policy)
    state = replace(reading.counted.state, content=content, places=None, key=None, ncp=None)
    return state if reading.key is None else update(state, key=reading.key, former=reading.former)


def obstacle(session: Session, plan: PublicationPlan, present: Sequence[Release]) -> str | None:
    """Return why releases must be grouped from scratch; None if their classes can stay."""
    together = len(plan.members) > 1
    for member, release in zip(plan.members, present, strict=True):
        policy, info = member.policy, member.loaded.info
        # Each row of the first table of a dataset is a person.
        of_rows = together and member is plan.members[0]
        asked = plan.request.asked(replace(policy, subject=None) if of_rows else policy, info)
        reason = next(reasons(Mode.REFRESH, asked), None)
        reason = reason or changed(session, info, release, policy=policy, versions=member.versions)
        if reason is not None:
            return f"of {release.relation}, {reason}" if together else reason
    if together and not overlay.is_linked(session, {one.table: one.relation for one in present}):
        return "its tables do not remember their persons alike"
    return None


def changed(
    session: Session,
    info: TableInfo,
    present: Release,
    *,
    policy: Policy,
    versions: Mapping[str, int],
) -> str | None:
    """Return the first change since publication that prevents an incremental refresh."""
    if policy != present.policy.refreshed_as(policy):
        return "the policy is another one by now"
    if versions != present.taxonomies:
        return "a taxonomy has another version"
    if not copies.is_closed(session, present) or _is_altered(session, present, info):
        return "it is not as it was published"
    person = info.primary_key if policy.subject is None else (policy.subject,)
    if memory.persons_of(session, present) != person:
        return "who is in it is not remembered"
    return None


def _is_altered(session: Session, present: Release, source: TableInfo) -> bool:
    """Return True if the relation's view or rows differ from those published."""
    published = catalog.describe_published(session, present.relation)
    if any(audit.view_problems(session, published, release=present, source=source)):
        return True
    now = immutability.numbered_content(session, published, present.data_id)
    if immutability.seals_numbers(present.content):
        return now != present.content
    return immutability.shown_content(now) != present.content


def grow(
    session: Session,
    plan: PublicationPlan,
    stages: Stages,
    *,
    present: Sequence[Release],
    changes: Changes | None = None,
) -> list[Work] | list[Unchanged]:
    """Build the next release of each table incrementally; ``obstacle`` must return None.

    changes: the rows to read, if not all of them are. Raise CheckFailed if the combined disclosure
    grows, Unsatisfiable if a table would be empty.
    """
    read, whole = _read(session, plan, stages, changes)
    served = _served(read, present)
    with stages("compare"):
        k = requirements(session, read.members)[0].k
        stay = _stand(session, read, served, k=k, changes=changes)
    new = _born(session, whole, stay, plan.request, present=present, stages=stages)
    add, late = partial(with_late, session, read, new), stay[0].elsewhere
    rows, outcomes = add(late, relation=present[0].relation, stages=stages)
    growths = _growths(read, stay, new, outcomes, present)
    if all(growth.is_same for growth in growths):
        return [Unchanged(*found) for found in zip(growths, read.warnings, strict=True)]
    together = len(plan.members) > 1
    key = plan.places[0].key if together else None
    works = []
    for part, prepared in enumerate(rows.prepared(outcomes)):
        lost = prepared.outcome.loss
        lost = loss_of(present[part], lost, growths[part], read.sources[part])
        ready = replace(prepared, outcome=replace(prepared.outcome, loss=lost), trees={})
        make = partial(build, session, plan, ready, stages, part=part, key=key)
        departing = membership.departing(session, served[part], part) if together else nullcontext()
        with departing:
            work = make(withdrawn=stay[part].withdrawn)
        works.append(replace(work, prepared=counted(work), growth=growths[part]))
    return works


def _read(
    session: Session, plan: PublicationPlan, stages: Stages, changes: Changes | None
) -> tuple[LinkedSource, LinkedSource]:
    """Read the source and its warnings, and the same with hidden columns that pools need.

    A single table is a dataset of one. changes: the rows to read, if not all of them are.
    """
    if len(plan.members) > 1:
        read = read_linked(session, plan.members, stages, strict=plan.request.strict)
        return read, read
    (member,) = plan.members
    owned, whole = member.policy.subject is not None, widened(session, member, plan.view(member))
    within, filled = (None, None) if changes is None else (changes.within, changes.values)
    kind = plan.request.relation_kind
    found = read_source(session, whole, stages, kind=kind, linked=owned, within=within)
    if changes is not None:
        found = replace(found, n_unread=changes.now.rows - found.encoded.n_rows)
    source = narrowed(found, member.policy)
    if changes is None:
        plan.sampled[:] = parts(source.problem(member.policy))
    columns, strict = source.rows.columns, plan.request.strict
    warnings = cautions(session, member, columns, strict=strict, filled=filled)
    read = LinkedSource([member], [source], [], [warnings])
    return read, LinkedSource([whole], [found], [], [warnings])


def _served(read: LinkedSource, present: Sequence[Release]) -> list[Publication]:
    """Return the served publication of each table."""
    shared = read.sources[0].encoded.quasi
    found = [served_as(present[0], read.members[0].info, shared)]
    rest = zip(read.members[1:], read.sources[1:], present[1:], strict=True)
    for member, source, release in rest:
        found.append(served_as(release, member.info, (*shared, *source.encoded.quasi)))
    return found


def _stand(
    session: Session,
    read: LinkedSource,
    served: Sequence[Publication],
    *,
    k: int,
    changes: Changes | None,
) -> list[Standing]:
    """Compare the persons with the served release, then the rows of other tables."""
    policy, source = read.members[0].policy, read.sources[0]
    deadline = least_deadline(one.policy for one in read.members)
    share = max(one.policy.withdraw_share or WITHDRAW_SHARE for one in read.members)
    terms = membership.RetentionRules(share, k, deadline)
    is_row = policy.subject is None or len(served) > 1
    owners = None if is_row else owners_of(source, policy)
    kept = {rule.column for one in read.members for rule in one.policy.columns if rule.keep}
    stand = partial(membership.stand, terms=terms, kept=kept, persons=owners, changes=changes)
    found = [stand(session, served[0], source.rows)]
    if len(served) > 1:
        membership.hand_over(session)
    for part, one in enumerate(served[1:], 1):
        source = read.sources[part]
        of_rows = owners_of(source, one.policy)
        found.append(
            membership.stand_linked(session, one, source.rows, of_rows, kept=kept, part=part)
        )
    return found


def owners_of(source: Source, policy: Policy) -> pa.Table:
    """Return the person of each row, as in the source."""
    assert source.owners is not None  # noqa: S101 - they are read where a policy names them
    return pa.table([source.owners.take(pa.array(source.subjects))], [policy.subject])


def served_as(present: Release, info: TableInfo, quasi: Sequence[EncodedColumn]) -> Publication:
    """Return the served release as a publication."""
    return Publication(
        id=present.id,
        info=info,
        policy=present.policy,
        kind=present.kind,
        view=present.relation,
        recodings=tuple((column.name, recoding_of(column)) for column in quasi),
        former=present.data_id,
    )


def _born(
    session: Session,
    read: LinkedSource,
    stay: Sequence[Standing],
    request: Request,
    *,
    present: Sequence[Release],
    stages: Stages,
) -> Pooled:
    """Group the new persons of each large enough pool; read: with hidden columns."""
    published = [one.published for one in stay]
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
        stay[0].fresh,
        asked=requirements(session, read.members),
        published=published,
        seed=request.seed,
        stages=stages,
    )


def _growths(
    read: LinkedSource,
    stay: Sequence[Standing],
    new: Pooled,
    outcomes: Sequence[Outcome],
    present: Sequence[Release],
) -> list[Delta]:
    """Count retained, new and withdrawn rows per table; raise Unsatisfiable if one is empty."""
    found = []
    for part, outcome in enumerate(outcomes):
        shown = outcome.assignment.group >= 0
        if part == 0:
            growth, fresh = stay[0].growth, shown[: len(new.places)]
            growth = replace(growth, withheld=growth.withheld - int(shown[len(fresh) :].sum()))
        else:
            member, fresh = stay[part], shown
            later = member.growth.later + member.of_nobody - len(fresh)
            rest = read.sources[part].encoded.n_rows - member.growth.kept - len(fresh) - later
            growth = replace(member.growth, later=later, withheld=rest)
        growth = replace(
            growth,
            births=int(shown.sum()),
            waiting=len(fresh) - int(fresh.sum()),
            pending=new.pending,
            pool=new.required,
            failed=new.failed,
        )
        if not growth.shown:
            raise Unsatisfiable(
                f"{present[part].relation} would show nobody: none of its classes stays",
                hint=command("dbanon refresh", present[part].table, options="--new-series"),
            )
        found.append(growth)
    return found


def loss_of(present: Release, of_born: LossReport, growth: Delta, source: Source) -> LossReport:
    """Return the loss of the whole copy, without metrics that need every row.

    Retained classes are assumed to have the mean loss of the previous release.
    """
    stays = growth.kept + growth.deferred
    total = source.encoded.n_rows + source.n_unread + growth.deferred
    added = growth.births
    left_out = total - stays - added

    def whole(kept: float, born: float) -> float:
        return (stays * kept + added * born + left_out) / max(total, 1)

    before, columns = present.loss, {}
    for name in before.columns:
        kept = of_published(before, before.columns[name])
        columns[name] = whole(kept, of_published(of_born, of_born.columns[name]))
    weighted = None
    if before.weighted_ncp is not None:
        kept = of_published(before, before.weighted_ncp)
        weighted = whole(kept, of_published(of_born, of_born.asked))
    return replace(
        before,
        n_rows=total,
        n_suppressed=left_out,
        ncp=sum(columns.values()) / max(len(columns), 1),
        columns=columns,
        metrics={},
        sensitive_aware=before.sensitive_aware or of_born.sensitive_aware,
        weighted_ncp=weighted,
        n_filtered=source.n_filtered,
        n_not_drawn=source.n_not_drawn,
        n_of_nobody=source.n_of_nobody,
    )


def of_published(loss: LossReport, mean: float) -> float:
    """Return the mean over published rows, from a mean in which other rows count 1."""
    published = loss.n_rows - loss.n_suppressed
    return (mean * loss.n_rows - loss.n_suppressed) / published if published else 0.0


def counted(work: Work) -> Prepared:
    """Return the prepared data with the class counts of the whole copy, from the database."""
    of_k = None if work.report is None else work.report.of_k
    assert of_k is not None  # noqa: S101 - it was proved
    outcome = work.prepared.outcome
    loss = replace(outcome.loss, n_classes=of_k.classes, smallest_class=int(of_k.achieved or 0))
    return replace(work.prepared, outcome=replace(outcome, loss=loss))
