"""Group reuse: build a release from unions of previously published classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from dbanon.actions.preparation.prepare import (
    among,
    among_published,
    cautions,
    read_source,
    weighed,
)
from dbanon.domain.errors import ConfigError, Unsatisfiable
from dbanon.domain.policy import K_ANONYMITY, L_DIVERSITY, ModelSpec, Role
from dbanon.domain.release import Sharing
from dbanon.domain.table import quote_identifier
from dbanon.domain.text import command
from dbanon.formats.support import Mode, reasons
from dbanon.models.parameters import COLUMNS
from dbanon.models.registry import MODELS
from dbanon.models.specs import is_plain, sensitive_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from dbanon.actions.preparation.loading import Loaded
    from dbanon.actions.preparation.members import Member
    from dbanon.actions.preparation.prepare import Prepared, Source
    from dbanon.actions.publication.plan import PublicationPlan
    from dbanon.anonymization.outcome import Outcome
    from dbanon.db.histories.atoms import Remembered
    from dbanon.db.session import Session
    from dbanon.domain.policy import Policy
    from dbanon.domain.progress import Stages
    from dbanon.domain.table import TableInfo, TableName
    from dbanon.formats.values.frozen import Frozen, Shown


@dataclass(frozen=True, eq=False, slots=True)
class _Atoms:
    """The atom of each row.

    atom: (n,), below 0 for none; is_fresh: (n,) rows of persons never published; frozen: rows whose
    published values differ from the current ones.
    """

    atom: NDArray[np.int32]
    is_fresh: NDArray[np.bool_]
    frozen: NDArray[np.int64]


def share(
    session: Session, plan: PublicationPlan, stages: Stages, *, weigh: bool = False
) -> tuple[Prepared, Sharing] | None:
    """Group the rows of a table into unions of atoms; writes nothing that lasts.

    An atom is a set of persons in the same classes of every remembered release. It is published
    whole, with its published sensitive values, or not at all. New persons form atoms of their own.
    Comparing the releases then discloses nothing new. weigh: as in ``prepare``.

    Returns None if no earlier release can be compared, if the release starts a new series, or if it
    cannot be made of atoms. Raises Unsatisfiable if no union of atoms meets the policy, or if a new
    column cannot be published for all atoms, and the errors of ``prepare``.
    """
    from dbanon.anonymization.estimate import parts
    from dbanon.db.histories import atoms as remembered

    (member,) = plan.members
    if not _is_remembered(session, plan):
        return None
    if reason := _obstacle(session, plan):
        stages.note(f"{member.info.name} is not made of the classes of earlier releases: {reason}")
        return None
    policy = member.policy
    published = remembered.columns(session, member.info.name)
    quasi = [rule.column for rule in policy.with_role(Role.QUASI) if rule.column in published]
    read = partial(read_source, kind=plan.request.relation_kind, linked=policy.subject is not None)
    source = read(session, member, stages, quasi=quasi)
    plan.sampled[:] = parts(source.problem(policy))
    warnings = cautions(session, member, source.rows.columns, strict=plan.gate.strict)
    recall = partial(_recalled, session, member=member, relation=plan.relation, stages=stages)
    known, found = recall(source), list[Sharing]()
    if known is None:
        return None

    def group(source: Source, *, again: bool) -> tuple[Source, Outcome]:
        now = (recall(source) if again else None) or known
        grouped, outcome, sharing = _grouped(session, plan, source, now, stages=stages)
        found.append(sharing)
        return grouped, outcome

    grouped, outcome = among_published(session, member, source, group, stages=stages)
    prepared = grouped.prepared(member, outcome, warnings)
    return weighed(prepared, grouped) if weigh else prepared, found[-1].of_all(found[0])


def _grouped(
    session: Session, plan: PublicationPlan, source: Source, known: Remembered, *, stages: Stages
) -> tuple[Source, Outcome, Sharing]:
    """Return the rows with their published values, and their groups."""
    import numpy as np

    (member,) = plan.members
    policy = member.policy
    if source.unmasked is not None:
        fresh, places = _fresh(source, known), np.arange(source.encoded.n_rows)
        source = among(session, member, source, places, stages=stages, fresh=fresh)
    shown, atoms = _frozen(source, known, policy, member.loaded)
    born = _born(session, plan, shown, atoms, known, stages=stages)
    return shown, *_merged(shown, atoms, born, policy, stages=stages)


def _fresh(source: Source, known: Remembered) -> NDArray[np.bool_]:
    """Return a mask of the rows of persons never published."""
    fresh: NDArray[np.bool_] = known.atom < 0
    return fresh if source.subjects is None else fresh[source.subjects]


def require_unshared(session: Session, plan: PublicationPlan) -> None:
    """Raise ConfigError if groups would be reused, which needs all rows at once."""
    if _is_remembered(session, plan) and _obstacle(session, plan) is None:
        raise ConfigError(
            f"whom a release of {plan.members[0].info.name} showed is remembered, and the next one"
            " is made of its classes, for which all rows are needed at once",
            hint="leave out --executor and --rows-per-block; or for readers who never had one of"
            " these: --new-series --recipients-changed",
        )


def _is_remembered(session: Session, plan: PublicationPlan) -> bool:
    """Whether persons of earlier releases are remembered and compared."""
    from dbanon.db.histories import memory

    table = plan.members[0].info.name
    return not plan.gate.new_series and memory.key_of(session, table, plan.relation) is not None


def _obstacle(session: Session, plan: PublicationPlan) -> str | None:
    """Return the reason why published values cannot be kept, None if they can."""
    (member,) = plan.members
    for reason in reasons(Mode.REUSE, plan.request.asked(member.policy, member.info)):
        return reason
    alike = _are_masked_alike(session, member.policy, member.info)
    return None if alike else "a sensitive column was masked in another way"


def _are_masked_alike(session: Session, policy: Policy, info: TableInfo) -> bool:
    """Whether every release with a sensitive column masked it as the policy does now.

    Otherwise kept values would contradict the policy.
    """
    from dbanon.db.metadata import ledger

    others = ledger.policies_by_release(session, info.name, known=[policy]).values()
    sensitive = [rule.column for rule in policy.with_role(Role.SENSITIVE)]
    return all(
        policy.masked(column) == other.masked(column)
        for other in others
        for column in sensitive
        if column in {rule.column for rule in other.with_role(Role.SENSITIVE)}
    )


def _recalled(
    session: Session, source: Source, *, member: Member, relation: TableName, stages: Stages
) -> Remembered | None:
    """Return the published data of the persons of some rows."""
    import pyarrow as pa

    from dbanon.db.histories import atoms

    policy, loaded = member.policy, member.loaded
    persons: pa.Table = source.rows.keys
    if policy.subject is not None:
        persons = pa.table([source.owners], names=[policy.subject])
    policies = [policy, *([] if loaded.stored is None else [loaded.stored.policy])]
    table = loaded.info.name
    with stages("compare"):
        return atoms.recall(session, table, persons, relation=relation, known_policies=policies)


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
    import numpy as np

    from dbanon.anonymization.encoding.encode import with_sensitive
    from dbanon.formats.values.frozen import freeze

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
    kept = None if rows.kept is None else _replaced(rows.kept, found.columns)
    rows = replace(rows, columns=found.columns, kept=kept, frozen=found.changed)
    return replace(source, rows=rows, encoded=encoded), found


def _frozen(
    source: Source, known: Remembered, policy: Policy, loaded: Loaded
) -> tuple[Source, _Atoms]:
    """Return the source with the published values, and the atoms that may be published."""
    import numpy as np

    source, found = frozen(source, policy, loaded, shown=known.shown, values=known.values)
    persons = source.subjects
    if persons is None:
        persons = np.arange(source.encoded.n_rows, dtype=np.int32)
    shown = known.is_whole.copy()
    unknown = found.unknown | _moved(source, known, loaded, persons)
    broken = known.atom[unknown & (known.atom >= 0)]
    shown[broken] = False
    of_person = np.where(np.append(shown, False)[known.atom], known.atom, -1).astype(np.int32)
    atom = _safe(source, of_person[persons], known, policy, persons)
    return source, _Atoms(atom, known.atom[persons] < 0, found.changed)


def _moved(
    source: Source, known: Remembered, loaded: Loaded, persons: NDArray[np.int32]
) -> NDArray[np.bool_]:
    """Return a mask of persons with another published value of a quasi-identifier.

    The bounds of their class would disclose the current value.
    """
    import numpy as np

    from dbanon.formats.values.frozen import as_published, freeze

    if source.quasi is None:
        return np.zeros(len(known.shown), bool)
    columns = as_published(source.quasi)
    found = freeze(columns, loaded.info, persons=persons, shown=known.shown, values=known.values)
    moved = found.unknown.copy()
    moved[persons[found.changed]] = True
    return moved


def _replaced(kept: pa.Table, columns: pa.Table) -> pa.Table:
    """Return the published columns of rows that are read once, with the given sensitive values."""
    for place, name in enumerate(kept.column_names):
        if name in columns.column_names:
            kept = kept.set_column(place, name, columns.column(name))
    return kept


def _safe(
    source: Source,
    atom: NDArray[np.int32],
    known: Remembered,
    policy: Policy,
    persons: NDArray[np.int32],
) -> NDArray[np.int32]:
    """Return the atoms without those too small for columns that are new to them.

    Raises Unsatisfiable if the values of some are too much alike: withholding these would disclose
    that.
    """
    import numpy as np

    from dbanon.anonymization.problem import unsafe
    from dbanon.formats.values.frozen import columns_of

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
    source: Source, atoms: _Atoms, born: NDArray[np.int32], policy: Policy, *, stages: Stages
) -> tuple[Outcome, Sharing]:
    """Merge old and new atoms until all meet the policy."""
    import numpy as np

    from dbanon.anonymization.adjusting.merging import numbered
    from dbanon.anonymization.problem import solve

    fresh = np.flatnonzero(atoms.is_fresh)
    group = numbered(atoms.atom)
    all_atoms = group.group.copy()
    all_atoms[fresh] = np.where(born < 0, -1, born + group.n_groups)
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
    kept = shown & ~atoms.is_fresh
    sharing = Sharing(
        atoms=len(np.unique(atoms.atom[kept])),
        kept=int(kept.sum()),
        births=int(shown[fresh].sum()),
        waiting=len(fresh) - int(shown[fresh].sum()),
        withheld=int((~shown & ~atoms.is_fresh).sum()),
        frozen=int(kept[atoms.frozen].sum()),
    )
    return outcome, sharing


def of_newcomers(policy: Policy, others: Iterable[Policy]) -> Policy:
    """Return a policy with the strictest requirements of all releases, for every cell of them.

    These are the greatest k, and every model of columns that the policy declares sensitive.
    """
    others, own = list(others), [rule.column for rule in policy.with_role(Role.SENSITIVE)]
    k, l = max(one.k for one in (policy, *others)), policy.l
    models = [spec for spec in policy.models if spec.name != K_ANONYMITY]
    for other in others:
        shown = [rule.column for rule in other.with_role(Role.SENSITIVE)]
        for spec in other.models:
            columns = [name for name in sensitive_of(spec, shown) if name in own]
            if not columns or MODELS[spec.name].of_whole or spec in models:
                continue
            if is_plain(spec) and columns == own:
                l = max(l, other.l)
            else:
                params = {**spec.params, COLUMNS: tuple(columns)}
                models.append(ModelSpec(spec.name, params))
    if l > policy.l:
        models = [spec for spec in models if spec.name != L_DIVERSITY or not is_plain(spec)]
        models.append(ModelSpec(L_DIVERSITY, {"l": l}))
    if k > 1:
        models.insert(0, ModelSpec(K_ANONYMITY, {"k": k}))
    return replace(policy, models=tuple(models))


def group_pool(
    source: Source,
    places: NDArray[np.int64],
    policy: Policy,
    *,
    least: int | None,
    seed: int,
    stages: Stages,
) -> tuple[NDArray[np.int64], Outcome, int, bool]:
    """Group all new persons, or none; return their places in another order, and their groups.

    least: minimum size of a pool; each combination of kept values is a pool of its own. Returns
    also the persons of the largest pool that was tried, and whether one failed the models, so that
    none is published.
    """
    import numpy as np

    from dbanon.anonymization.outcome import join, nobody
    from dbanon.anonymization.problem import solve
    from dbanon.anonymization.search import strata

    part, order = source.take(places), [np.arange(len(places))]
    if part.subjects is None and part.encoded.kept and len(places):
        order = [*strata(part.encoded)]
    pools = [part.take(rows) for rows in order]
    asked, nothing = replace(policy, max_suppressed=0.0), [nobody(pool.encoded) for pool in pools]
    places = places[np.concatenate(order)]
    sizes = [persons_of(pool) for pool in pools]
    large = [number for number, size in enumerate(sizes) if least is not None and size >= least]
    tried, outcomes = max((sizes[number] for number in large), default=0), [*nothing]
    for number in large:
        try:
            outcomes[number] = solve(pools[number].problem(asked), seed=seed, stages=stages)
        except Unsatisfiable:
            return places, join(nothing), tried, True
    return places, join(outcomes), tried, False


def persons_of(source: Source) -> int:
    """Count the persons of some rows."""
    if source.subjects is None:
        return source.encoded.n_rows
    return int(source.subjects.max(initial=-1)) + 1


def _born(
    session: Session,
    plan: PublicationPlan,
    source: Source,
    atoms: _Atoms,
    known: Remembered,
    *,
    stages: Stages,
) -> NDArray[np.int32]:
    """Group the rows of new persons by the strictest requirements of all releases."""
    import numpy as np

    from dbanon.anonymization.pools import pool_size
    from dbanon.db.histories import standing

    (member,) = plan.members

    fresh = np.flatnonzero(atoms.is_fresh)
    if not len(fresh):
        return np.full(0, -1, np.int32)
    asked = of_newcomers(member.policy, known.policies)
    # Where nobody was published before, nobody waits: it is a first publication.
    is_first = not (known.atom >= 0).any()
    former = 0 if is_first else standing.failed_pool(session, member.info.name)
    least = 1 if is_first else pool_size(asked, _published(source, atoms))
    required = None if least is None else least + former
    pool = partial(group_pool, source, fresh, asked, least=required, stages=stages)
    order, outcome, tried, failed = pool(seed=plan.request.seed)
    if tried and not is_first and (failed or former):
        standing.keep_pool(session, plan.view(member), tried if failed else 0)
    found = np.empty(len(fresh), np.int32)
    found[np.searchsorted(fresh, order)] = outcome.assignment.group
    return found


def _published(source: Source, atoms: _Atoms) -> dict[str, list[int]]:
    """Return how often each value of a sensitive column was published of the atoms."""
    import numpy as np

    codes = source.encoded.sensitive[atoms.atom >= 0]
    names = source.encoded.sensitive_names
    return {name: np.bincount(codes[:, i]).tolist() for i, name in enumerate(names)}
