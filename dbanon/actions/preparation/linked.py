"""From the tables of a dataset to one partition of the persons."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from dbanon.domain.errors import ConfigError, PolicyError, Unsatisfiable
from dbanon.domain.policy import Role
from dbanon.domain.release import ReleaseKind
from dbanon.domain.table import ColumnKind, quote_identifier
from dbanon.formats.support import Mode, require
from dbanon.models.base import Scope
from dbanon.models.registry import MODELS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from dbanon.actions.preparation.loading import Loaded
    from dbanon.actions.preparation.prepare import Prepared, Source
    from dbanon.anonymization.outcome import Outcome
    from dbanon.anonymization.problem import Problem
    from dbanon.db.session import Session
    from dbanon.domain.caution import Caution
    from dbanon.domain.policy import ColumnRule, Policy
    from dbanon.domain.progress import Stages
    from dbanon.domain.table import TableInfo, TableName
    from dbanon.request import Request


@dataclass(frozen=True, eq=False, slots=True)
class Member:
    """A table of the dataset as it is read, and as it is published beside the persons.

    ``own`` is its policy in force for what it holds itself; ``policy`` and ``info`` have the
    quasi-identifiers of the persons besides.
    """

    loaded: Loaded
    own: Policy
    policy: Policy
    info: TableInfo


@dataclass(frozen=True, eq=False, slots=True)
class LinkedSource:
    """The tables of a dataset as they were read, that of the persons first.

    tables: the rows of all but the first, with their persons; warnings: of each table.
    """

    members: Sequence[Member]
    sources: Sequence[Source]
    tables: Sequence[Problem]
    warnings: Sequence[tuple[Caution, ...]]

    def take(self, persons: NDArray[np.int64]) -> LinkedSource:
        """Return some persons with all of their rows, on the scales of the whole."""
        import numpy as np

        from dbanon.anonymization.linked import subjects_of

        place = np.full(self.sources[0].encoded.n_rows, -1, np.int32)
        place[persons] = np.arange(len(persons))
        sources, tables = [self.sources[0].take(persons)], []
        for source, table in zip(self.sources[1:], self.tables, strict=True):
            persons_of_rows = place[subjects_of(table)]
            rows = np.flatnonzero(persons_of_rows >= 0)
            sources.append(source.take(rows))
            tables.append(_problem(sources[-1], table.policy, persons_of_rows[rows]))
        return replace(self, sources=sources, tables=tables)

    def prepared(self, outcomes: Sequence[Outcome]) -> list[Prepared]:
        """Return what was found of each table as it is published."""
        versions, persons = self.sources[0].taxonomies, self.members[0].info.name
        found = zip(self.members, self.sources, outcomes, self.warnings, strict=True)
        return [
            _prepared(member, source, outcome, warnings, versions=versions, persons=persons)
            for member, source, outcome, warnings in found
        ]


def prepare_linked(
    session: Session,
    loaded: Sequence[Loaded],
    request: Request,
    stages: Stages,
    *,
    strict: bool = False,
) -> list[Prepared]:
    """Read the tables of a dataset, that of the persons first, and group the persons once.

    Raises what ``dbanon.actions.preparation.prepare.prepare`` raises, and ConfigError for tables
    that cannot be linked.
    """
    from dbanon.anonymization.linked import require_each, solve_linked
    from dbanon.anonymization.problem import Problem
    from dbanon.anonymization.registry import require_installed

    members = members_of(loaded, request)
    require_installed(members[0].policy)
    read = read_linked(session, members, stages, strict=strict)
    persons = Problem(read.sources[0].encoded, members[0].policy)
    outcomes = solve_linked(persons, read.tables, seed=request.seed, stages=stages)
    require_each(read.tables, outcomes[1:])
    require_masked_alone(read, outcomes)
    return read.prepared(outcomes)


def require_masked_alone(read: LinkedSource, outcomes: Sequence[Outcome]) -> None:
    """Raise Unsatisfiable where values of rows that are left out would decide masked ones."""
    for member, source, outcome in zip(read.members, read.sources, outcomes, strict=True):
        if source.unmasked is not None and outcome.assignment.n_suppressed:
            raise Unsatisfiable(
                f"{outcome.assignment.n_suppressed:,} rows of {member.info.name} would be left out,"
                " and values of other rows are masked by theirs",
                hint="--max-suppressed 0, or mask by rounding, which looks at no other row",
            )


def read_linked(
    session: Session,
    members: Sequence[Member],
    stages: Stages,
    *,
    strict: bool = False,
) -> LinkedSource:
    """Read the tables of a dataset, and find the person of each row."""
    from dbanon.actions.preparation.cautions import require_none
    from dbanon.actions.preparation.prepare import read_source

    sources = [
        read_source(session, m.loaded, m.own, stages, kind=ReleaseKind.TABLE, linked=True)
        for m in members
    ]
    warnings = [*map(partial(_warnings, session, members), members, sources)]
    if strict:
        require_none([caution for found in warnings for caution in found])
    tables = []
    for i, member in enumerate(members[1:], 1):
        sources[i], linked = _linked(session, sources[0], sources[i], member, stages)
        tables.append(linked)
    return LinkedSource(members, sources, tables, warnings)


def _warnings(
    session: Session, members: Sequence[Member], member: Member, source: Source
) -> tuple[Caution, ...]:
    """Return what to think about again of a table, by itself and beside the others."""
    from dbanon.actions.preparation.cautions import of_rows
    from dbanon.actions.preparation.loading import notes
    from dbanon.formats.cautions import repeated

    others = [one.own for one in members if one is not member]
    return (
        *of_rows(session, member.own, member.loaded.info, source.rows.columns),
        *repeated(member.own, others),
        *notes(member.loaded),
    )


def _prepared(
    member: Member,
    source: Source,
    outcome: Outcome,
    warnings: tuple[Caution, ...],
    *,
    versions: Mapping[str, int],
    persons: TableName,
) -> Prepared:
    from dbanon.actions.preparation.prepare import Prepared
    from dbanon.db.models.statements import shown_trees

    group = outcome.assignment.group
    loss = replace(
        outcome.loss,
        n_filtered=source.n_filtered,
        n_not_drawn=source.n_not_drawn,
        n_of_nobody=source.n_of_nobody,
    )
    return Prepared(
        info=member.info,
        policy=member.policy,
        taxonomies={**versions, **source.taxonomies},
        source=source.rows,
        outcome=replace(outcome, loss=loss),
        trees=shown_trees(source.trees, source.rows.columns, group=group),
        several=member.info.name != persons,
        warnings=warnings,
    )


def members_of(loaded: Sequence[Loaded], request: Request) -> list[Member]:
    """Return the tables with their policies in force, which ask for the same k."""
    policies = [_of_persons(loaded[0], request)]
    policies += [_of_table(one, loaded[0], request) for one in loaded[1:]]
    k = max(policy.k for policy in policies)
    policies = [policy.with_k(k) for policy in policies]
    persons, shared = loaded[0].info, policies[0].with_role(Role.QUASI)
    first = Member(loaded[0], policies[0], policies[0], persons)
    rest = []
    for one, own in zip(loaded[1:], policies[1:], strict=True):
        names = {name for rule in shared for name in (rule.column, *rule.published_as)}
        kept = _apart(own, one.info, persons, names=names)
        rules = {rule.column for rule in kept}
        columns = [persons.column(rule.column) for rule in shared]
        columns += [column for column in one.info.columns if column.name in rules]
        policy = replace(own, columns=(*shared, *kept))
        rest.append(Member(one, own, policy, replace(one.info, columns=tuple(columns))))
    return [first, *rest]


def _of_persons(loaded: Loaded, request: Request) -> Policy:
    """Return the policy of the persons, who are told apart by their key."""
    from dbanon.actions.preparation.prepare import in_force

    key = loaded.info.primary_key
    if len(key) != 1:
        raise ConfigError(
            f"{loaded.info.name} needs a key of one column, by which the other tables name persons",
            hint="name the table of the persons first, or a view of it with key = [...]",
        )
    policy = in_force(loaded, replace(_asked(request, loaded.policy), rows_per_subject=None))
    require(Mode.DATASET, request.asked(policy, loaded.info))
    if policy.subject not in {None, key[0]} or policy.rows_per_subject is not None:
        raise PolicyError(
            f"the policy of {loaded.info.name} has a subject of its own, and in a dataset each of"
            " its rows is a person",
            hint="publish a view with one row a person, whose key names the person",
        )
    return replace(policy, subject=key[0])


def _of_table(loaded: Loaded, persons: Loaded, request: Request) -> Policy:
    """Return the policy of a table whose subject is a person."""
    from dbanon.actions.preparation.prepare import in_force

    info = loaded.info
    policy = in_force(loaded, _asked(request, loaded.policy))
    require(Mode.DATASET, request.asked(policy, loaded.info))
    if policy.subject is None:
        raise PolicyError(
            f"the policy of {info.name} does not say which column names the person",
            hint='subject = "column" in its policy',
        )
    column = info.column(policy.subject)
    key = persons.info.column(persons.info.primary_key[0])
    integers = column.kind is key.kind is ColumnKind.INTEGER
    if not integers and (column.base_schema, column.base_type) != (key.base_schema, key.base_type):
        raise ConfigError(
            f"{info.name}.{quote_identifier(column.name)} is no {key.base_type}, as"
            f" {persons.info.name}.{quote_identifier(key.name)} is",
            hint="the subject of each table refers to the key of the persons",
        )
    return policy


def _asked(request: Request, policy: Policy) -> Request:
    """Return what is asked of one table: of sensitive values only if it has some."""
    if policy.with_role(Role.SENSITIVE):
        return request
    kept = tuple(m for m in request.specs if MODELS[m.name].scope is not Scope.SENSITIVE)
    return replace(request, l=None, models=kept)


def _apart(
    own: Policy, info: TableInfo, persons: TableInfo, *, names: set[str]
) -> tuple[ColumnRule, ...]:
    """Return the rules of a table without those of names that the persons' columns have."""
    for rule in own.columns:
        shown = rule.role.is_published or rule.column in {own.subject, *info.primary_key}
        if shown and names.intersection((rule.column, *rule.published_as)):
            raise PolicyError(
                f"{own.table} and {persons.name} both have a column"
                f" {quote_identifier(rule.column)} to publish",
                hint="give it the role identifier in the policy of the table, or another name in a"
                " view",
            )
    if own.pseudonym in names:
        raise PolicyError(
            f"the pseudonym {quote_identifier(own.pseudonym)} of {own.table} is a column of"
            f" {persons.name} to publish",
            hint="choose another name for the pseudonym",
        )
    return tuple(rule for rule in own.columns if rule.column not in names)


def _linked(
    session: Session, persons: Source, source: Source, member: Member, stages: Stages
) -> tuple[Source, Problem]:
    """Find the person of each row, and let go of rows whose persons are not published."""
    import numpy as np

    from dbanon.actions.preparation.prepare import among

    subjects = _places(source, persons)
    rows = np.flatnonzero(subjects >= 0)
    left_out = len(subjects) - len(rows)
    if not len(rows):
        raise PolicyError(
            f"no row of {member.loaded.info.name} belongs to a person of the dataset",
            hint="its subject refers to the key of the persons",
        )
    if left_out:
        if source.unmasked is None:
            source = source.take(rows)
        else:
            source = among(session, member.loaded, member.own, source, rows, stages=stages)
        source = replace(source, n_of_nobody=left_out)
        subjects = subjects[rows]
    return source, _problem(source, member.policy, subjects)


def _problem(source: Source, policy: Policy, subjects: NDArray[np.int32]) -> Problem:
    """Return the rows of a table, each of a person by its row in the table of the persons."""
    return replace(source.problem(policy), subjects=subjects)


def _places(source: Source, persons: Source) -> NDArray[np.int32]:
    """Return the person of each row, by its row in the table of the persons, -1 for nobody.

    Keys are read as they are written, and subjects as they compare, those of the persons, too.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    assert source.owners is not None  # noqa: S101 - they are read of all tables of a dataset
    assert persons.owners is not None  # noqa: S101
    if len(persons.owners) < persons.encoded.n_rows:
        raise PolicyError(
            "the key of the persons names some of them twice",
            hint="name a column that tells them apart: key = [...] in their policy",
        )
    rows = np.full(len(persons.owners) + 1, -1, np.int32)
    rows[persons.subjects] = np.arange(persons.encoded.n_rows)
    texts = [values.cast(pa.string()) for values in (source.owners, persons.owners)]
    found = pc.index_in(texts[0], value_set=texts[1]).fill_null(-1).to_numpy()
    places: NDArray[np.int32] = rows[found][source.subjects]
    return places
