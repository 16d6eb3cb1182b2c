"""Group reuse: build a release from unions of previously published classes.

Also of those that other relations of the table published first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from dbanon.actions.preparation.prepare import (
    LinkedSource,
    Prepared,
    Source,
    among,
    among_published,
    weighed,
)
from dbanon.actions.publication.pooling import (
    Pooled,
    hidden_columns,
    narrowed,
    parts_of,
    persons_of,
    policies_of_series,
    pooled,
    read_widened,
    requirements,
)
from dbanon.anonymization.adjusting.merging import numbered
from dbanon.anonymization.encoding.encode import with_sensitive
from dbanon.anonymization.estimate import parts
from dbanon.anonymization.outcome import Outcome, join, nobody
from dbanon.anonymization.problem import solve, unsafe
from dbanon.db.histories import atoms as remembered
from dbanon.db.histories import memory
from dbanon.domain.errors import Unsatisfiable
from dbanon.domain.policy import Policy, Role
from dbanon.domain.release import GroupReuse, Published
from dbanon.domain.table import TableName, quote_identifier
from dbanon.domain.text import command
from dbanon.formats.column_values import Frozen, as_published, columns_of, freeze

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from dbanon.actions.preparation.inputs import InputTable
    from dbanon.actions.preparation.loading import Loaded
    from dbanon.actions.publication.plan import PublicationPlan
    from dbanon.db.histories.atoms import Elsewhere, Remembered
    from dbanon.db.session import Session
    from dbanon.domain.outcomes import Stages
    from dbanon.formats.column_values import Shown


@dataclass(frozen=True, eq=False, slots=True)
class _Atoms:
    """The atom of each row.

    atom: (n,), below 0 for none; is_fresh: (n,) rows of persons never published; frozen: rows whose
    published values differ from the current ones.
    """

    atom: NDArray[np.int32]
    is_fresh: NDArray[np.bool_]
    frozen: NDArray[np.int64]


def reuse_groups(
    session: Session, plan: PublicationPlan, stages: Stages, *, weigh: bool = False
) -> Prepared | None:
    """Group the rows of a table into unions of atoms; writes nothing that lasts.

    An atom is a set of persons in the same classes of every remembered release. It is published
    whole, with its published sensitive values, or not at all. New persons form atoms of their own.
    Comparing the releases then discloses nothing new. weigh: as in ``prepare``.

    Returns None if no earlier release can be compared. Raises Unsatisfiable if no union of atoms
    meets the policy, or if a new column cannot be published for all atoms, and the errors of
    ``prepare``.
    """
    (member,), relation = plan.members, plan.places[0].joined
    if relation is None:
        return None
    policy = member.policy
    published = remembered.columns(session, member.info.name)
    quasi = [rule.column for rule in policy.with_role(Role.QUASI) if rule.column in published]
    read, wide = read_widened(session, plan, stages, quasi=quasi)
    (whole,), (source,) = wide.members, wide.sources

    def recall(source: Source) -> Remembered | None:
        persons: pa.Table = source.rows.keys
        if source.owners is not None:
            persons = pa.table([source.owners], names=[policy.subject])
        look = partial(remembered.recall, relation=relation, counts=whole is not member)
        with stages("compare"):
            return look(session, member.info.name, persons)

    known, found = recall(source), list[GroupReuse]()
    if known is None:
        return None

    def group(source: Source, *, again: bool) -> tuple[Source, Outcome]:
        now = (recall(source) if again else None) or known
        grouped, outcome, sharing = _grouped(session, plan, whole, source, now, stages=stages)
        found.append(sharing)
        return grouped, outcome

    grouped, outcome = among_published(session, whole, source, group, stages=stages)
    prepared = grouped.prepared(member, outcome, read.warnings[0])
    prepared = weighed(prepared, grouped) if weigh else prepared
    sharing = found[-1].of_all(found[0])
    sampled = parts(read.sources[0].problem(policy)) if plan.present else ()
    return replace(prepared, sharing=sharing, sampled=sampled)


def _grouped(
    session: Session,
    plan: PublicationPlan,
    whole: InputTable,
    source: Source,
    known: Remembered,
    *,
    stages: Stages,
) -> tuple[Source, Outcome, GroupReuse]:
    """Return the rows with their published values, and their groups; source: of ``whole``."""
    (member,) = plan.members
    policy = member.policy
    if source.unmasked is not None:
        fresh, rows = known.atom < 0, np.arange(source.encoded.n_rows)
        fresh = fresh if source.subjects is None else fresh[source.subjects]
        source = among(session, whole, source, rows, stages=stages, fresh=fresh)
    shown, atoms = _frozen(narrowed(source, policy), known, policy, member.loaded)
    published = list(_published(shown, atoms, known, whole.policy))
    pool = LinkedSource([whole], [source])
    places = np.flatnonzero(atoms.is_fresh)
    new = pooled(
        session,
        plan.view(member),
        pool,
        places,
        asked=requirements(session, [whole]),
        published=[published],
        seed=plan.request.seed,
        stages=stages,
    )
    groups = np.full(len(places), -1, np.int32)
    groups[np.searchsorted(places, new.places)] = new.outcomes[0].assignment.group
    return shown, *_merged(shown, atoms, groups, policy, stages=stages)


def frozen(
    source: Source,
    policy: Policy,
    loaded: Loaded,
    *,
    shown: NDArray[np.int32],
    values: Sequence[Shown],
) -> tuple[Source, Frozen]:
    """Return the source with the values that were published of its persons.

    shown: (p,) what was published of each, into ``values``, below 0 where nothing was.
    """
    info, rows = loaded.info, source.rows
    persons = source.subjects
    if persons is None:
        persons = np.arange(source.encoded.n_rows, dtype=np.int32)
    found = freeze(rows.columns, info, persons=persons, shown=shown, values=values)
    kinds = {column.name: column.kind for column in info.columns}
    encoded = with_sensitive(
        source.encoded,
        found.columns,
        policy.with_orders(info),
        kinds=kinds,
        taxonomies=loaded.taxonomies,
    )
    copied = rows.copied  # the published columns of rows that are read once
    for place, name in enumerate([] if copied is None else copied.column_names):
        if copied is not None and name in found.columns.column_names:
            copied = copied.set_column(place, name, found.columns.column(name))
    rows = replace(rows, columns=found.columns, copied=copied, frozen=found.changed)
    return replace(source, rows=rows, encoded=encoded), found


def _frozen(
    source: Source, known: Remembered, policy: Policy, loaded: Loaded
) -> tuple[Source, _Atoms]:
    """Return the source with the published values, and the atoms that may be published."""
    source, found = frozen(source, policy, loaded, shown=known.shown, values=known.values)
    persons = source.subjects
    if persons is None:
        persons = np.arange(source.encoded.n_rows, dtype=np.int32)
    unknown = found.unknown.copy()
    if source.quasi is not None:  # the bounds of a class would disclose another value by now
        look = partial(freeze, persons=persons, shown=known.shown, values=known.values)
        moved = look(as_published(source.quasi), loaded.info)
        unknown |= moved.unknown
        unknown[persons[moved.changed]] = True
    shown = known.is_whole.copy()
    broken = known.atom[unknown & (known.atom >= 0)]
    shown[broken] = False
    of_person = np.where(np.append(shown, False)[known.atom], known.atom, -1).astype(np.int32)
    atom = safe(source, of_person[persons], known, policy, persons)
    return source, _Atoms(atom, known.atom[persons] < 0, found.changed)


def safe(
    source: Source,
    atom: NDArray[np.int32],
    known: Remembered | Elsewhere,
    policy: Policy,
    persons: NDArray[np.int32],
) -> NDArray[np.int32]:
    """Return the atoms without those too small for columns that are new to them.

    Raises Unsatisfiable if the values of some are too much alike: withholding these would disclose
    that.
    """
    sensitive = frozenset(rule.column for rule in policy.with_role(Role.SENSITIVE))
    new_of = [sensitive - columns_of(shown) for shown in known.values]
    which = known.shown[persons]
    found = atom.copy()
    for new in {columns for columns in new_of if columns}:
        is_new = np.append([columns == new for columns in new_of], False)[which] & (atom >= 0)
        rows = np.flatnonzero(is_new)
        if not len(rows):
            continue
        numbers, dense = np.unique(atom[rows], return_inverse=True)
        small, alike = unsafe(
            source.encoded.take(rows),
            policy,
            dense.astype(np.int32),
            columns=new,
            least=policy.k,  # which this release promises of what it is the first to show
            subjects=None if source.subjects is None else source.subjects[rows],
        )
        if (alike & ~small).any():
            n_alike = len(np.unique(persons[rows[(alike & ~small)[dense]]]))
            raise _alike(policy, sorted(new), n_alike)
        found[np.isin(atom, numbers[small])] = -1
    return found


def _alike(policy: Policy, columns: Sequence[str], n_persons: int) -> Unsatisfiable:
    """Return the error of columns that cannot be added to published persons."""
    names = ", ".join(map(quote_identifier, columns))
    other = command("dbanon publish", policy.table, options="--new-series --recipients-changed")
    return Unsatisfiable(
        f"{names} was not published before, and {n_persons} of those published together with others"
        " are too much alike in it: a release without them would disclose that",
        hint=f"take the column out of the policy; or for other readers: {other}",
    )


def _merged(
    source: Source, atoms: _Atoms, groups: NDArray[np.int32], policy: Policy, *, stages: Stages
) -> tuple[Outcome, GroupReuse]:
    """Merge atoms and the groups of new persons until all meet the policy."""
    fresh = np.flatnonzero(atoms.is_fresh)
    group = numbered(atoms.atom)
    all_atoms = group.group.copy()
    all_atoms[fresh] = np.where(groups < 0, -1, groups + group.n_groups)
    try:
        outcome = solve(source.problem(policy, atoms=all_atoms), seed=0, stages=stages)
    except Unsatisfiable as error:
        options = "--new-series --recipients-changed"
        hint = f"for other readers: {command('dbanon publish', policy.table, options=options)}"
        raise Unsatisfiable(
            f"{error}, in classes that are unions of those published before",
            hint=f"{error.hint}; or {hint}" if error.hint else hint,
        ) from None
    shown = outcome.assignment.group >= 0
    reused = shown & ~atoms.is_fresh
    sharing = GroupReuse(
        atoms=len(np.unique(atoms.atom[reused])),
        kept=int(reused.sum()),
        inserted=int(shown[fresh].sum()),
        waiting=len(fresh) - int(shown[fresh].sum()),
        withheld=int((~shown & ~atoms.is_fresh).sum()),
        frozen=int(reused[atoms.frozen].sum()),
    )
    return outcome, sharing


def _published(
    source: Source, atoms: _Atoms, known: Remembered, policy: Policy
) -> Iterator[Published]:
    """Count the published values of the atoms by kept values; policy: with hidden columns."""
    columns = [rule.column for rule in policy.with_role(Role.SENSITIVE)]
    everywhere = {name: known.published.get(name, ()) for name in columns}
    rows_of_atoms = np.flatnonzero(atoms.atom >= 0)
    if not len(rows_of_atoms):  # all who were published have left
        yield Published({}, everywhere, 1)
        return
    part = LinkedSource([], [source.take(rows_of_atoms)])
    for rows, kept_values in parts_of(part):
        own = part.sources[0].take(rows)
        persons = np.arange(len(rows)) if own.subjects is None else own.subjects
        counts: dict[str, Sequence[int]] = {**everywhere}
        for name, codes in zip(own.encoded.sensitive_names, own.encoded.sensitive.T, strict=True):
            once = np.unique(np.stack([persons, codes]), axis=1)  # rows of one person count once
            counts[name] = np.bincount(once[1]).tolist()
        yield Published(kept_values, counts, persons_of(own))


def with_others(
    session: Session,
    read: LinkedSource,
    new: Pooled,
    others: Elsewhere | None,
    *,
    relation: TableName,
    stages: Stages,
) -> tuple[LinkedSource, list[Outcome]]:
    """Return the rows and groups of new persons, then those of persons of other relations.

    These are published in whole atoms, with the values from there.
    """
    rows = read.take(new.places)
    others = None if others is None else _covered(session, read.members[0], others, relation)
    if others is None:
        return rows, new.outcomes
    member, n_fresh = read.members[0], len(new.places)
    source = read.sources[0].take(np.concatenate([new.places, others.places]))
    shown = np.concatenate([np.full(n_fresh, -1, np.int32), others.shown])
    source, found = frozen(source, member.policy, member.loaded, shown=shown, values=others.values)
    if not len(found.changed):
        source = replace(source, rows=replace(source.rows, frozen=None))
    part = source.take(np.arange(n_fresh, len(shown)))
    part = replace(part, population=source.population)
    merged = _merged_others(part, others, member.policy, stages)
    return replace(read, sources=[source]), [join([*new.outcomes, merged])]


def _covered(
    session: Session, member: InputTable, others: Elsewhere, relation: TableName
) -> Elsewhere | None:
    """Return the persons whose classes were made safe for the columns that are new of them.

    Values do not decide which these are: all columns were published of them, or the relation
    existed when their classes were made.
    """
    policy, policies = member.policy, policies_of_series(session, member, relation)
    known = memory.of_series(session, member.loaded.info.name, relation).relations
    own = [n for n in policies if known[n] == relation]
    required = {n: _required(policies[n].refreshed_as(policy)) for n in own}
    since = min((n for n in own if required[n] == _required(policy)), default=None)
    sensitive = {rule.column for rule in policy.with_role(Role.SENSITIVE)}
    new_of = [sensitive - columns_of(shown) for shown in others.values]
    covered: dict[int, set[str]] = {}
    for first in {*others.born.tolist()} if since is not None else ():
        if first in policies and first > since:
            before = [one for number, one in policies.items() if number < first]
            covered[first] = {*hidden_columns(policies[first], before)}
    is_covered = [
        new_of[shown] <= covered.get(first, set())
        for shown, first in zip(others.shown.tolist(), others.born.tolist(), strict=True)
    ]
    rows = np.flatnonzero(is_covered)
    return others.take(rows) if len(rows) else None


def _required(policy: Policy) -> object:
    return policy.with_role(Role.SENSITIVE), policy.models


def _merged_others(source: Source, others: Elsewhere, policy: Policy, stages: Stages) -> Outcome:
    """Merge atoms until they meet the policy; nobody if a value that is new of them changed."""
    try:
        persons = np.arange(len(others.atom), dtype=np.int32)
        atom = safe(source, others.atom, others, policy, persons)
        problem = source.problem(policy, atoms=numbered(atom).group)
        return solve(problem, seed=0, stages=stages)
    except Unsatisfiable:
        return nobody(source.encoded)
