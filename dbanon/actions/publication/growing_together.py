"""Refresh a dataset by whole classes of its persons, who keep theirs in all tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from dbanon.actions.preparation.linked import members_of, read_linked
from dbanon.actions.publication.growing import (
    WAITING,
    Unchanged,
    counted,
    loss_of,
    of_published,
    owners_of,
    served_as,
)
from dbanon.actions.publication.sharing import of_newcomers
from dbanon.actions.publication.steps import build, replaced
from dbanon.domain.errors import Unsatisfiable
from dbanon.domain.policy import least_deadline
from dbanon.domain.release import Leavers
from dbanon.domain.text import command

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from dbanon.actions.preparation.linked import LinkedSource
    from dbanon.actions.preparation.loading import Loaded
    from dbanon.actions.publication.steps import Built
    from dbanon.anonymization.outcome import Outcome
    from dbanon.db.histories.members import Member
    from dbanon.db.histories.standing import Standing
    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session
    from dbanon.domain.composition import Gate
    from dbanon.domain.progress import Stages
    from dbanon.domain.release import Growth, Release
    from dbanon.request import Request


@dataclass(frozen=True, eq=False, slots=True)
class _Stay:
    """What stays of each table: of the persons as a whole, of the others by theirs."""

    persons: Standing
    others: Sequence[Member]

    @property
    def withdrawn(self) -> list[tuple[int, ...]]:
        """The classes that go, of each table."""
        return [self.persons.withdrawn, *(one.withdrawn for one in self.others)]


def grow_together(
    session: Session,
    loaded: Sequence[Loaded],
    request: Request,
    stages: Stages,
    *,
    present: Sequence[Release],
    leavers: Leavers,
    gate: Gate,
) -> list[Built] | list[Unchanged]:
    """Build the next release of each table from those that are served; there is no obstacle.

    Raises CheckFailed when comparing would reveal more than before, Unsatisfiable when a table
    would show nobody.
    """
    from dbanon.db.histories import members, memory

    previous = [replaced(session, one.info, request) for one in loaded]
    of_tables = members_of(loaded, request)
    read = read_linked(session, of_tables, stages, strict=gate.strict)
    served = _served(read, present)
    with stages("compare"):
        stay = _stand(session, read, served, present, leavers=leavers)
    fresh = stay.persons.pools[0]
    pool, outcomes = _born(session, read, fresh, request, present=present, stages=stages)
    growths = _growths(read, stay, pool, outcomes, present)
    if all(growth.is_same for growth in growths):
        return [Unchanged(*found) for found in zip(growths, read.warnings, strict=True)]
    key = memory.key_of(session, present[0].table, present[0].relation)
    built = []
    for part, prepared in enumerate(pool.prepared(outcomes)):
        source, growth = read.sources[part], growths[part]
        loss = loss_of(present[part], outcomes[part].loss, growth, source)
        loss = replace(loss, n_of_nobody=source.n_of_nobody)
        ready = replace(prepared, outcome=replace(outcomes[part], loss=loss), trees={})
        withdrawn = stay.withdrawn[part]
        make = partial(build, previous=previous[part], gate=gate, withdrawn=withdrawn, key=key)
        with members.departing(session, served[part], part):
            found = make(session, ready, request, stages)
        built.append(replace(found, prepared=counted(ready, found.report), growth=growth))
    return built


def _stand(
    session: Session,
    read: LinkedSource,
    served: Sequence[Publication],
    present: Sequence[Release],
    *,
    leavers: Leavers,
) -> _Stay:
    """Return how the persons stand to what is served, and how the rows of the others do by that."""
    from dbanon.db.histories import members, standing

    k, patient = present[0].policy.k, leavers is Leavers.DEFER
    deadline = least_deadline(one.policy for one in read.members)
    terms = standing.Terms(k if patient else 1, k, k, None, patient=patient, deadline=deadline)
    persons = standing.stand(session, served[0], read.sources[0].rows, terms=terms)
    members.hand_over(session)
    others = []
    for part, one in enumerate(served[1:], 1):
        source = read.sources[part]
        owners = owners_of(source, one.policy)
        others.append(members.stand(session, one, source.rows, owners, part=part))
    return _Stay(persons, others)


def _served(read: LinkedSource, present: Sequence[Release]) -> list[Publication]:
    shared = read.sources[0].encoded.quasi
    found = [served_as(present[0], read.members[0].info, shared)]
    for member, source, release in zip(
        read.members[1:], read.sources[1:], present[1:], strict=True
    ):
        found.append(served_as(release, member.info, (*shared, *source.encoded.quasi)))
    return found


def _born(
    session: Session,
    read: LinkedSource,
    fresh: NDArray[np.int64],
    request: Request,
    *,
    present: Sequence[Release],
    stages: Stages,
) -> tuple[LinkedSource, list[Outcome]]:
    """Group those who were never published, as many together as any release ever promised.

    Classes wait that would be much coarser than those that are published.
    """
    from dbanon.anonymization.linked import beside, solve_linked, wait_linked
    from dbanon.anonymization.outcome import nobody
    from dbanon.anonymization.problem import Problem
    from dbanon.db.metadata import ledger

    released = [
        policy
        for one in present
        for policy in ledger.policies_by_release(session, one.table, known=[one.policy]).values()
    ]
    pool = read.take(fresh)
    persons = Problem(pool.sources[0].encoded, of_newcomers(present[0].policy, released))
    tables = [replace(t, policy=of_newcomers(t.policy, released)) for t in pool.tables]
    joined = [beside(table, persons.encoded) for table in tables]
    none = [nobody(encoded) for encoded in (persons.encoded, *joined)]
    if not len(fresh):
        return pool, none
    try:
        outcomes = solve_linked(persons, tables, seed=request.seed, stages=stages)
    except Unsatisfiable:  # they are too few, or too much alike
        return pool, none
    room = WAITING * read.sources[0].encoded.n_rows
    loss = of_published(present[0].loss, present[0].loss.asked)
    return pool, wait_linked(persons, tables, outcomes, loss=loss, room=room)


def _growths(
    read: LinkedSource,
    stay: _Stay,
    pool: LinkedSource,
    outcomes: Sequence[Outcome],
    present: Sequence[Release],
) -> list[Growth]:
    """Count what stays, comes and goes of each table; raises Unsatisfiable for an empty one."""
    found = []
    for part, outcome in enumerate(outcomes):
        births = int((outcome.assignment.group >= 0).sum())
        fresh = pool.sources[part].encoded.n_rows
        if part == 0:
            growth = stay.persons.growth
        else:
            member = stay.others[part - 1]
            later = member.growth.later + member.of_nobody - fresh
            rest = read.sources[part].encoded.n_rows - member.growth.kept - fresh - later
            growth = replace(member.growth, later=later, withheld=rest)
        growth = replace(growth, births=births, waiting=fresh - births)
        if not growth.shown:
            raise Unsatisfiable(
                f"{present[part].relation} would show nobody: too few of its classes stay",
                hint=command("dbanon refresh", present[part].table, options="--new-series"),
            )
        found.append(growth)
    return found
