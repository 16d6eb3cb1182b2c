"""Read the tables of a dataset and group its persons once; a single table is a dataset of one."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbanon.actions.preparation.loading import require_no_cautions
from dbanon.actions.preparation.prepare import (
    Prepared,
    Source,
    among,
    among_published,
    cautions,
    read_source,
    weighed,
)
from dbanon.anonymization.linked import require_each, solve_linked, subjects_of
from dbanon.anonymization.registry import require_installed
from dbanon.domain.errors import PolicyError, Unsatisfiable
from dbanon.domain.release import ReleaseKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from dbanon.actions.preparation.members import Member
    from dbanon.anonymization.outcome import Outcome
    from dbanon.anonymization.problem import Problem
    from dbanon.db.session import Session
    from dbanon.domain.outcomes import Stages
    from dbanon.domain.policy import Policy
    from dbanon.domain.policy_warning import PolicyWarning
    from dbanon.request import Request


@dataclass(frozen=True, eq=False, slots=True)
class LinkedSource:
    """The rows of a dataset, the table of the persons first.

    tables: the rows of all other tables, with their persons; warnings: of each table.
    """

    members: Sequence[Member]
    sources: Sequence[Source]
    tables: Sequence[Problem]
    warnings: Sequence[tuple[PolicyWarning, ...]]

    def take(self, persons: NDArray[np.int64]) -> LinkedSource:
        """Return rows of the first table, and the rows of these persons in their order."""
        place = np.full(self.sources[0].encoded.n_rows, -1, np.int32)
        place[persons] = np.arange(len(persons))
        sources, tables = [self.sources[0].take(persons)], []
        for source, table in zip(self.sources[1:], self.tables, strict=True):
            persons_of_rows = place[subjects_of(table)]
            rows = np.flatnonzero(persons_of_rows >= 0)
            rows = rows[np.argsort(persons_of_rows[rows], kind="stable")]
            sources.append(source.take(rows))
            tables.append(_problem(sources[-1], table.policy, persons_of_rows[rows]))
        return replace(self, sources=sources, tables=tables)

    def solve(
        self, policies: Sequence[Policy], *, seed: int, stages: Stages, least: int | None = None
    ) -> list[Outcome]:
        """Group the persons by a policy of each table; least: as in ``Problem``."""
        first = replace(self.sources[0].problem(policies[0]), least=least)
        asked = zip(self.tables, policies[1:], strict=True)
        tables = [replace(table, policy=policy) for table, policy in asked]
        return solve_linked(first, tables, seed=seed, stages=stages)

    def prepared(self, outcomes: Sequence[Outcome]) -> list[Prepared]:
        """Return each table as it is published."""
        found = zip(self.members, self.sources, outcomes, self.warnings, strict=True)
        return [
            source.prepared(member, outcome, warnings, several=member is not self.members[0])
            for member, source, outcome, warnings in found
        ]


def prepare(
    session: Session,
    members: Sequence[Member],
    request: Request,
    stages: Stages,
    *,
    strict: bool = False,
    weigh: bool = False,
    meanwhile: Callable[[], AbstractContextManager[None]] | None = None,
) -> list[Prepared]:
    """Read the tables, that of the persons first, and group the persons once; writes nothing.

    The snapshot is that of the open transaction. strict: refuse warnings before the search. Of a
    single table, weigh: measure the loss of other recodings; meanwhile: a context entered while
    rows are grouped, which does not use the session.

    Raises PolicyError, TaxonomyError, Unsatisfiable, and DriftError instead of the first two if a
    release of the table is served already; ConfigError for tables that cannot be linked.
    """
    require_installed(members[0].policy)  # what is missing is reported before anything is read
    read = read_linked(session, members, stages, kind=request.relation_kind, strict=strict)
    policies = [member.policy for member in members]
    search = partial(LinkedSource.solve, seed=request.seed, stages=stages)
    if read.tables:
        outcomes = search(read, policies)
        require_each(read.tables, outcomes[1:])
        require_masked_alone(read, outcomes)
        return read.prepared(outcomes)
    is_whole = read.sources[0].unmasked is None  # else rows may have other places later

    def group(source: Source, *, again: bool) -> tuple[Source, Outcome]:
        now = replace(read, sources=[source])
        if again:
            return source, _all_of(now, policies, search)
        with meanwhile() if meanwhile and is_whole else nullcontext():
            return source, search(now, policies)[0]

    source, outcome = among_published(session, members[0], read.sources[0], group, stages=stages)
    found = source.prepared(members[0], outcome, read.warnings[0])
    return [weighed(found, source) if weigh else found]


def _all_of(
    read: LinkedSource, policies: Sequence[Policy], search: Callable[..., list[Outcome]]
) -> Outcome:
    """Group the rows of a table without suppression; raises Unsatisfiable."""
    try:
        return search(read, [replace(policy, max_suppressed=0.0) for policy in policies])[0]
    except Unsatisfiable as error:
        raise Unsatisfiable(
            f"{error}, once values are masked without the rows that are left out",
            hint="--max-suppressed 0, or mask by rounding, which looks at no other row",
        ) from None


def require_masked_alone(read: LinkedSource, outcomes: Sequence[Outcome]) -> None:
    """Raise Unsatisfiable if suppressed rows would influence masked values of others."""
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
    kind: ReleaseKind = ReleaseKind.TABLE,
    strict: bool = False,
) -> LinkedSource:
    """Read the tables of a dataset, and find the person of each row."""
    read = partial(read_source, session, kind=kind, linked=len(members) > 1)
    sources = [read(member, stages) for member in members]
    warnings = []
    for member, source in zip(members, sources, strict=True):
        others = [one.own for one in members if one is not member]
        look = partial(cautions, session, member, source.rows.columns)
        warnings.append(look(strict=False, others=others))
    require_no_cautions([one for found in warnings for one in found] if strict else [])
    tables = []
    for i, member in enumerate(members[1:], 1):
        sources[i], linked = _linked(session, sources[0], sources[i], member, stages)
        tables.append(linked)
    return LinkedSource(members, sources, tables, warnings)


def _linked(
    session: Session, persons: Source, source: Source, member: Member, stages: Stages
) -> tuple[Source, Problem]:
    """Find the person of each row, and drop rows of persons that are not published."""
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
            source = among(session, member, source, rows, stages=stages)
        source = replace(source, n_of_nobody=left_out)
        subjects = subjects[rows]
    return source, _problem(source, member.policy, subjects)


def _problem(source: Source, policy: Policy, subjects: NDArray[np.int32]) -> Problem:
    """Return the rows of a table, with persons by their row in the table of the persons."""
    return replace(source.problem(policy), subjects=subjects)


def _places(source: Source, persons: Source) -> NDArray[np.int32]:
    """Return the person of each row, by its row in the table of the persons, -1 for none.

    Keys are read as written and subjects in their comparable form, so the persons are read in both.
    """
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
