"""Pools of new persons: when they are published, and in which classes.

Only numbers of persons, quasi-identifiers and published values decide when a pool is published.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dbanon.actions.preparation.prepare import LinkedSource, read_source, source_warnings
from dbanon.anonymization.linked import subjects_of, with_persons
from dbanon.anonymization.outcome import Outcome, join, nobody
from dbanon.anonymization.pools import least_size, with_effort
from dbanon.anonymization.registry import RECODINGS, recoding_of
from dbanon.db.histories import memory
from dbanon.db.metadata import ledger
from dbanon.domain.assignment import Assignment, EncodedColumn
from dbanon.domain.errors import Unsatisfiable
from dbanon.domain.policy import K_ANONYMITY, L_DIVERSITY, ColumnRule, ModelSpec, Policy, Role
from dbanon.models.base import COLUMNS
from dbanon.models.registry import MODELS, is_plain, is_strict, sensitive_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from dbanon.actions.preparation.inputs import InputTable
    from dbanon.actions.preparation.prepare import Source
    from dbanon.actions.publication.plan import PublicationPlan
    from dbanon.db.person_hashes import Changes
    from dbanon.db.session import Session
    from dbanon.domain.outcomes import Stages
    from dbanon.domain.release import Published
    from dbanon.domain.table import TableName

    KeptValues = Mapping[str, str | None]
    """The published values of kept columns that all persons of a pool share."""


@dataclass(frozen=True, eq=False, slots=True)
class Pooled:
    """New persons after each large enough pool was tried, or those of one pool.

    places: of their rows in the first table, by pool; outcomes: the groups of each table, in that
    order, empty unless published; pending, required: the persons of the pool that lacks
    fewest, and the number that it needs, None if no number suffices; failed: whether a pool failed
    the models.
    """

    places: NDArray[np.int64]
    outcomes: list[Outcome]
    pending: int
    required: int | None
    failed: bool


def pooled(
    session: Session,
    relation: TableName,
    read: LinkedSource,
    places: NDArray[np.int64],
    *,
    asked: Sequence[Policy],
    published: Sequence[Sequence[Published]],
    seed: int,
    stages: Stages,
) -> Pooled:
    """Group the new persons of each pool that is large enough; record pools that fail.

    Each combination of kept values is a pool of its own. places: rows of new persons in the first
    table; asked: the requirements of each table; published: values of each table.
    """
    whole = read.take(places)
    parts = list(parts_of(whole))
    failures = memory.failed_pools(session, read.members[0].info.name)
    attempt = partial(_tried, session, relation, asked=asked, published=published)
    found = []
    for rows, kept_values in parts:
        # A person may belong to both pools if no kept value contradicts.
        former = [
            n for other, n in failures if all(kept_values.get(k, v) == v for k, v in other.items())
        ]
        part, most = whole.take(rows), max(former, default=0)
        tried = attempt(part, kept_values, former=most, seed=seed, stages=stages)
        found.append(replace(tried, places=places[rows]))
    # The pool that lacks fewest persons.
    nearest = min(
        found, key=lambda o: (not o.pending, o.required is None, (o.required or 0) - o.pending)
    )
    return Pooled(
        places=np.concatenate([one.places for one in found]),
        outcomes=[join(of_table) for of_table in zip(*(o.outcomes for o in found), strict=True)],
        pending=nearest.pending,
        required=nearest.required,
        failed=any(one.failed for one in found),
    )


def _tried(
    session: Session,
    relation: TableName,
    part: LinkedSource,
    kept_values: KeptValues,
    *,
    asked: Sequence[Policy],
    published: Sequence[Sequence[Published]],
    former: int,
    seed: int,
    stages: Stages,
) -> Pooled:
    """Group a pool if it is large enough; former: the persons of a pool that failed before."""
    size, least = persons_of(part.sources[0]), least_size(asked, published, kept_values)
    encoded = part.sources[0].encoded
    nothing = [nobody(encoded), *(nobody(with_persons(table, encoded)) for table in part.tables)]
    required = None if least is None else least + former
    pending = Pooled(np.arange(encoded.n_rows), nothing, size, required, failed=False)
    if least is None or size < least + former:
        return pending
    try:
        shown = sum(one.persons for one in published[0])
        every = [replace(with_effort(one, shown), max_suppressed=0.0) for one in asked]
        outcomes = part.solve(every, least=least, seed=seed, stages=stages)
    except Unsatisfiable:
        memory.keep_pool(session, relation, kept_values, size)
        return replace(pending, required=least + size, failed=True)
    if former:
        memory.forget_pools(session, relation, kept_values)
    return replace(pending, outcomes=outcomes, pending=0, required=least)


def parts_of(whole: LinkedSource) -> Iterator[tuple[NDArray[np.int64], KeptValues]]:
    """Yield the rows of the first table for each combination of kept values, and these."""
    first = whole.sources[0]
    person = np.arange(first.encoded.n_rows, dtype=np.int32)
    if first.subjects is not None and not whole.tables:
        person = first.subjects
    columns = list(_kept_columns(whole, person))
    if not columns or not len(person):
        yield np.arange(len(person)), {}
        return
    codes = np.column_stack([ends for _, *both in columns for ends in both])
    values, of_person = np.unique(codes, axis=0, return_inverse=True)
    of_row = of_person.ravel()[person]
    rows = np.split(np.argsort(of_row, kind="stable"), np.cumsum(np.bincount(of_row))[:-1])
    for own, ends in zip(rows, values.reshape(len(values), -1, 2), strict=True):
        pairs = zip(columns, ends.tolist(), strict=True)
        yield own, {one.name: _labels(one, *pair) for (one, *_), pair in pairs if pair[0] >= 0}


def _kept_columns(
    whole: LinkedSource, person: NDArray[np.int32]
) -> Iterator[tuple[EncodedColumn, NDArray[np.int32], NDArray[np.int32]]]:
    """Yield each kept column, with the least and the greatest code of each person, -1 for none."""
    n_persons = int(person.max(initial=-1)) + 1
    tables = [(whole.sources[0].encoded, person)]
    tables += [(table.encoded, subjects_of(table)) for table in whole.tables]
    for encoded, subjects in tables:
        for column in encoded.kept_columns:
            greatest = np.full(n_persons, -1, np.int32)
            np.maximum.at(greatest, subjects, column.codes)
            least = greatest.copy()
            np.minimum.at(least, subjects, column.codes)
            yield column, least, greatest


def _labels(column: EncodedColumn, *codes: int) -> str | None:
    """Return the published value of a kept column; several if the rows of a person differ."""
    several = np.unique(codes).astype(np.int32)
    groups = Assignment(np.arange(len(several), dtype=np.int32), len(several))
    values = RECODINGS[recoding_of(column)].publish(replace(column, codes=several), groups)
    labels = [values.labels[i] for i in values.index]
    return labels[0] if len(labels) == 1 else str(labels)


def persons_of(source: Source) -> int:
    """Count the persons of some rows."""
    if source.subjects is None:
        return source.encoded.n_rows
    return int(source.subjects.max(initial=-1)) + 1


def hidden_columns(policy: Policy, others: Iterable[Policy]) -> tuple[str, ...]:
    """Return the hidden columns for which new classes are safe, as other relations publish them.

    Columns with a taxonomy, an order or a mask are not among them, and none are if a model compares
    several columns.
    """
    others = list(others)
    rules = [(other, rule) for other in others for rule in other.with_role(Role.SENSITIVE)]
    other_than = {
        rule.column
        for other, rule in rules
        if rule.taxonomy is not None or rule.order is not None or other.masked(rule.column)
    }
    if any(map(is_strict, (spec for one in (policy, *others) for spec in one.models))):
        return ()
    found = {rule.column for _, rule in rules} - other_than - {policy.subject, *policy.key}
    return tuple(r.column for r in policy.with_role(Role.IDENTIFIER) if r.column in found)


def policies_of_series(
    session: Session, member: InputTable, relation: TableName
) -> dict[int, Policy]:
    """Return the policy of each remembered release of the relation's series, by number."""
    table = member.loaded.info.name
    policies = ledger.policies_by_release(session, table, known=[member.policy])
    known = memory.of_series(session, table, relation).relations
    return {number: policies[number] for number in known if number in policies}


def widened(session: Session, member: InputTable, relation: TableName) -> InputTable:
    """Return a table with the hidden columns that new classes must be safe for, as sensitive ones.

    Otherwise another relation could not publish these classes, for the values of few persons.
    """
    policy = member.policy
    columns = hidden_columns(policy, policies_of_series(session, member, relation).values())
    if not columns:
        return member
    own = tuple(rule.column for rule in policy.with_role(Role.SENSITIVE))
    rules = [rule for rule in policy.columns if rule.column not in columns]
    rules += [ColumnRule(column, Role.SENSITIVE) for column in columns]
    models = [
        ModelSpec(spec.name, {COLUMNS: own, **spec.params}) if sensitive_of(spec, own) else spec
        for spec in policy.models
    ]
    wide = replace(policy, columns=tuple(rules), models=tuple(models))
    return replace(member, own=wide, policy=wide)


def read_widened(
    session: Session,
    plan: PublicationPlan,
    stages: Stages,
    *,
    quasi: Sequence[str] = (),
    changes: Changes | None = None,
) -> tuple[LinkedSource, LinkedSource]:
    """Read a table with its warnings, and the same with the hidden columns of ``widened``.

    quasi: as in ``read_source``; changes: the rows to read, if not all of them are.
    """
    (member,) = plan.members
    whole = widened(session, member, plan.places[0].joined or plan.view(member))
    within, filled = (None, None) if changes is None else (changes.within, changes.values)
    owned, kind = not member.policy.is_one_row(member.info), plan.request.relation_kind
    look = partial(read_source, kind=kind, linked=owned, quasi=quasi, within=within)
    found = look(session, whole, stages)
    if changes is not None:
        found = replace(found, n_unread=changes.now.rows - found.encoded.n_rows)
    source = narrowed(found, member.policy)
    warn = partial(source_warnings, session, member, source.rows.columns)
    warnings = [warn(strict=plan.request.strict, filled=filled)]
    read = LinkedSource([member], [source], warnings=warnings)
    return read, LinkedSource([whole], [found])


def narrowed(source: Source, policy: Policy) -> Source:
    """Return the source of a widened table as it is published."""
    columns = [rule.column for rule in policy.with_role(Role.SENSITIVE)]
    rows, encoded = source.rows, source.encoded
    extra = {*encoded.sensitive_names} - {*columns}
    if not extra:
        return source
    names = [name for name in rows.columns.column_names if name not in extra]
    copied = rows.copied
    if copied is not None:
        copied = copied.select([name for name in copied.column_names if name not in extra])
    places = [encoded.sensitive_names.index(name) for name in columns]
    return replace(
        source,
        rows=replace(rows, columns=rows.columns.select(names), copied=copied),
        encoded=replace(
            encoded,
            sensitive=encoded.sensitive[:, places],
            sensitive_names=tuple(columns),
            domains=tuple(encoded.domains[i] for i in places),
        ),
    )


def requirements(session: Session, members: Iterable[InputTable]) -> list[Policy]:
    """Return the requirements for new classes of each table: those of all its releases."""
    members = list(members)
    released = [
        policy
        for one in members
        for policy in ledger.policies_by_release(
            session, one.loaded.info.name, known=[one.policy]
        ).values()
    ]
    return [of_new_persons(member.policy, released) for member in members]


def of_new_persons(policy: Policy, others: Iterable[Policy]) -> Policy:
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
