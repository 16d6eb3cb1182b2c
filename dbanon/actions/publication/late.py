"""Persons that other relations of the table published first."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dbanon.actions.publication.group_reuse import frozen, safe
from dbanon.actions.publication.pooling import Pooled, hidden_columns, policies_of_series
from dbanon.anonymization.adjusting.merging import numbered
from dbanon.anonymization.outcome import Outcome, join, nobody
from dbanon.anonymization.problem import solve
from dbanon.db.histories import memory
from dbanon.domain.errors import Unsatisfiable
from dbanon.domain.policy import Policy, Role
from dbanon.formats.column_values import columns_of

if TYPE_CHECKING:
    from dbanon.actions.preparation.linked import LinkedSource
    from dbanon.actions.preparation.members import Member
    from dbanon.actions.preparation.prepare import Source
    from dbanon.db.histories.atoms import Elsewhere
    from dbanon.db.session import Session
    from dbanon.domain.outcomes import Stages
    from dbanon.domain.table import TableName


def with_late(
    session: Session,
    read: LinkedSource,
    new: Pooled,
    late: Elsewhere | None,
    *,
    relation: TableName,
    stages: Stages,
) -> tuple[LinkedSource, list[Outcome]]:
    """Return the rows and groups of new persons, then those of persons of other relations.

    These are published in whole atoms, with the values from there.
    """
    rows = read.take(new.places)
    late = None if late is None else _covered(session, read.members[0], late, relation)
    if late is None:
        return rows, new.outcomes
    member, n_fresh = read.members[0], len(new.places)
    source = read.sources[0].take(np.concatenate([new.places, late.places]))
    shown = np.concatenate([np.full(n_fresh, -1, np.int32), late.shown])
    source, found = frozen(source, member.policy, member.loaded, shown=shown, values=late.values)
    if not len(found.changed):
        source = replace(source, rows=replace(source.rows, frozen=None))
    part = source.take(np.arange(n_fresh, len(shown)))
    merged = _merged(replace(part, population=source.population), late, member.policy, stages)
    return replace(read, sources=[source]), [join([*new.outcomes, merged])]


def _covered(
    session: Session, member: Member, late: Elsewhere, relation: TableName
) -> Elsewhere | None:
    """Return the persons whose classes were made safe for the columns that are new of them.

    Values do not decide which these are: all columns were published of them, or the relation
    existed when their classes were made.
    """
    policy, policies = member.policy, policies_of_series(session, member, relation)
    known = memory.of_series(session, member.loaded.info.name, relation).relations
    own = [n for n in policies if known[n] == relation]
    since = min((n for n in own if _required(policies[n]) == _required(policy)), default=None)
    sensitive = {rule.column for rule in policy.with_role(Role.SENSITIVE)}
    new_of = [sensitive - columns_of(shown) for shown in late.values]
    covered: dict[int, set[str]] = {}
    for born in {*late.born.tolist()} if since is not None else ():
        if born in policies and born > since:
            before = [one for number, one in policies.items() if number < born]
            covered[born] = {*hidden_columns(policies[born], before)}
    is_covered = [
        new_of[shown] <= covered.get(born, set())
        for shown, born in zip(late.shown.tolist(), late.born.tolist(), strict=True)
    ]
    rows = np.flatnonzero(is_covered)
    return late.take(rows) if len(rows) else None


def _required(policy: Policy) -> object:
    return policy.with_role(Role.SENSITIVE), policy.models


def _merged(source: Source, late: Elsewhere, policy: Policy, stages: Stages) -> Outcome:
    """Merge atoms until they meet the policy; nobody if a value that is new of them changed."""
    try:
        atom = safe(source, late.atom, late, policy, np.arange(len(late.atom), dtype=np.int32))
        problem = source.problem(policy, atoms=numbered(atom).group)
        return solve(problem, seed=0, stages=stages)
    except Unsatisfiable:
        return nobody(source.encoded)
