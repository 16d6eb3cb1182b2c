"""Publish persons again in classes that are unions of those they were always in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from dbanon.actions.preparation.prepare import Prepared, among, in_force, read_source
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
    from dbanon.actions.preparation.prepare import Source
    from dbanon.anonymization.outcome import Outcome
    from dbanon.db.histories.atoms import Remembered
    from dbanon.db.session import Session
    from dbanon.domain.composition import Gate
    from dbanon.domain.policy import Policy
    from dbanon.domain.progress import Stages
    from dbanon.domain.table import TableInfo, TableName
    from dbanon.request import Request


@dataclass(frozen=True, eq=False, slots=True)
class _Atoms:
    """Who may be published together with whom.

    atom: (n,) of each row, below 0 for none; is_fresh: (n,) the rows of those who were never
    published; frozen: rows whose values are others by now.
    """

    atom: NDArray[np.int32]
    is_fresh: NDArray[np.bool_]
    frozen: NDArray[np.int64]


def share(
    session: Session, loaded: Loaded, request: Request, stages: Stages, *, gate: Gate
) -> tuple[Prepared, Sharing] | None:
    """Group the rows of a table so that each class is a union of atoms; writes nothing that lasts.

    An atom is all who were in the same classes of every release that is remembered. It is shown
    whole, with the sensitive values that were published of it, or not at all; who was never
    published forms atoms with others like that. Nothing is then revealed by comparing releases that
    was not before.

    Returns None when nothing is remembered to compare with, when the release starts a series of its
    own, or when it cannot be made of atoms.
    Raises Unsatisfiable when no union of atoms meets the policy, or a new column cannot be shown of
    all atoms, and what ``prepare`` raises.
    """
    from dbanon.actions.preparation.cautions import of_rows, require_none
    from dbanon.actions.preparation.loading import notes
    from dbanon.db.histories import atoms as remembered
    from dbanon.db.histories import memory
    from dbanon.db.models.statements import shown_trees

    policy, info = in_force(loaded, request), loaded.info
    relation = gate.series or request.view(info.name)
    if gate.new_series or memory.key_of(session, info.name, relation) is None:
        return None
    if reason := _obstacle(session, policy, request=request, info=info):
        stages.note(f"{info.name} is not made of the classes of earlier releases: {reason}")
        return None
    shown = remembered.columns(session, info.name)
    quasi = [rule.column for rule in policy.with_role(Role.QUASI) if rule.column in shown]
    read = partial(read_source, kind=request.relation_kind, linked=policy.subject is not None)
    source = read(session, loaded, policy, stages, quasi=quasi)
    warnings = of_rows(session, policy, info, source.rows.columns)
    require_none(warnings if gate.strict else [])
    made = _made(session, loaded, request, source, relation=relation, stages=stages)
    if made is None:
        return None
    source, outcome, sharing = made
    prepared = Prepared(
        info=info,
        policy=policy,
        taxonomies=source.taxonomies,
        source=source.rows,
        outcome=outcome,
        trees=shown_trees(source.trees, source.rows.columns, group=outcome.assignment.group),
        several=source.subjects is not None,
        warnings=(*warnings, *notes(loaded)),
    )
    return prepared, sharing


def _made(
    session: Session,
    loaded: Loaded,
    request: Request,
    source: Source,
    *,
    relation: TableName,
    stages: Stages,
) -> tuple[Source, Outcome, Sharing] | None:
    """Group the rows of a source; where masking depends on other rows, only those published."""
    import numpy as np

    policy, first, read = in_force(loaded, request), None, source
    again = partial(among, session, loaded, policy, stages=stages)
    while True:
        with stages("compare"):
            known = _recalled(session, source, policy, loaded, relation)
        if known is None:
            return None
        if source.unmasked is not None:
            fresh, places = _fresh(source, known), np.arange(source.encoded.n_rows)
            source = again(source, places, fresh=fresh)
        shown, atoms = _frozen(source, known, policy, loaded)
        born = _born(shown, atoms, known, policy, seed=request.seed, stages=stages)
        outcome, sharing = _merged(shown, atoms, born, policy, stages=stages)
        first = first or (outcome.loss, sharing)
        if source.unmasked is None or not outcome.assignment.n_suppressed:
            loss = outcome.loss.among(first[0])
            loss = replace(loss, n_filtered=read.n_filtered, n_not_drawn=read.n_not_drawn)
            return shown, replace(outcome, loss=loss), sharing.of_all(first[1])
        rows = np.flatnonzero(outcome.assignment.group >= 0)
        source = again(source, rows)


def _fresh(source: Source, known: Remembered) -> NDArray[np.bool_]:
    """Return the rows of persons who were never published."""
    fresh: NDArray[np.bool_] = known.atom < 0
    return fresh if source.subjects is None else fresh[source.subjects]


def require_unshared(session: Session, loaded: Loaded, request: Request, *, gate: Gate) -> None:
    """Raise ConfigError if ``share`` would look for atoms: it needs all rows at once."""
    from dbanon.db.histories import memory

    policy, info = in_force(loaded, request), loaded.info
    if gate.new_series or _obstacle(session, policy, request=request, info=info):
        return
    relation = gate.series or request.view(info.name)
    if memory.key_of(session, info.name, relation) is not None:
        raise ConfigError(
            f"whom a release of {info.name} showed is remembered, and the next one is made of its"
            " classes, for which all rows are needed at once",
            hint="leave out --executor and --rows-per-block; or for readers who never had one of"
            " these: --new-series --recipients-changed",
        )


def _obstacle(session: Session, policy: Policy, *, request: Request, info: TableInfo) -> str | None:
    """Return why what is published of a person cannot be kept as it was, None if it can."""
    for reason in reasons(Mode.REUSE, request.asked(policy, info)):
        return reason
    alike = _are_masked_alike(session, policy, info)
    return None if alike else "a sensitive column was masked in another way"


def _are_masked_alike(session: Session, policy: Policy, info: TableInfo) -> bool:
    """Whether sensitive columns were masked as they are now, in every release that shows them.

    Else what was published of a person would be shown again, and not what the policy says.
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
    session: Session, source: Source, policy: Policy, loaded: Loaded, relation: TableName
) -> Remembered | None:
    import pyarrow as pa

    from dbanon.db.histories import atoms

    persons: pa.Table = source.rows.keys
    if policy.subject is not None:
        persons = pa.table([source.owners], names=[policy.subject])
    policies = [policy, *([] if loaded.stored is None else [loaded.stored.policy])]
    return atoms.recall(
        session, loaded.info.name, persons, relation=relation, known_policies=policies
    )


def _frozen(
    source: Source, known: Remembered, policy: Policy, loaded: Loaded
) -> tuple[Source, _Atoms]:
    """Return the source with the values that were published, and the atoms that may be shown."""
    import numpy as np

    from dbanon.anonymization.encoding.encode import with_sensitive
    from dbanon.formats.values.frozen import freeze

    info, rows = loaded.info, source.rows
    persons = source.subjects
    if persons is None:
        persons = np.arange(source.encoded.n_rows, dtype=np.int32)
    found = freeze(rows.columns, info, persons=persons, shown=known.shown, values=known.values)
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
    source = replace(source, rows=rows, encoded=encoded)
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
    """Return the persons of whom a quasi-identifier was published row by row, as another value.

    The bounds of their class would show what it is now, whoever else is in it.
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
    """Return what is published of rows that are read once, with the sensitive values given."""
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
    """Return the atoms without those too small to be shown with columns new to them.

    Raises Unsatisfiable when some do not meet the models in such a column: to withhold these would
    disclose to readers of the earlier releases whose values are alike.
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
    """Return the error of columns that cannot be added to what was published of some persons."""
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
    """Merge atoms, with those that were born among them, until all meet the policy."""
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
    """Return a policy that asks all that any of the releases does, as every cell of theirs will be.

    That is the greatest k, and every model of values that the policy knows as sensitive.
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


def search_newcomers(
    source: Source, places: NDArray[np.int64], policy: Policy, *, seed: int, stages: Stages
) -> tuple[NDArray[np.int64], Outcome]:
    """Group rows that may all wait; return their places in another order, and their groups.

    Where they cannot be grouped together, those of each combination of kept values are grouped
    alone, so that a value that too few have does not keep the others waiting.
    """
    import numpy as np

    from dbanon.anonymization.outcome import join, nobody
    from dbanon.anonymization.problem import solve
    from dbanon.anonymization.search import strata

    part = source.take(places)
    try:
        return places, solve(part.problem(policy), seed=seed, stages=stages)
    except Unsatisfiable:  # they are too few, or too much alike
        if not part.encoded.kept or part.subjects is not None:
            return places, nobody(part.encoded)
    order, outcomes = [*strata(part.encoded)], []
    for rows in order:
        alike = part.take(rows)
        try:
            outcomes.append(solve(alike.problem(policy), seed=seed, stages=stages))
        except Unsatisfiable:
            outcomes.append(nobody(alike.encoded))
    return places[np.concatenate(order)], join(outcomes)


def _born(
    source: Source,
    atoms: _Atoms,
    known: Remembered,
    policy: Policy,
    *,
    seed: int,
    stages: Stages,
) -> NDArray[np.int32]:
    """Group those who were never published, as many together as any release ever promised."""
    import numpy as np

    fresh = np.flatnonzero(atoms.is_fresh)
    if not len(fresh):
        return np.full(0, -1, np.int32)
    asked = of_newcomers(policy, known.policies)
    order, outcome = search_newcomers(source, fresh, asked, seed=seed, stages=stages)
    found = np.empty(len(fresh), np.int32)
    found[np.searchsorted(fresh, order)] = outcome.assignment.group
    return found
