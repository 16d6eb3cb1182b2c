"""Read the tables of a dataset and group its persons; a single table is a dataset of one."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbanon.actions.preparation.loading import (
    Loaded,
    notes,
    require_no_warnings,
    require_valid,
    warnings_of_rows,
)
from dbanon.actions.preparation.masking import draw, draws, mask
from dbanon.anonymization.encoding.encode import encode
from dbanon.anonymization.encoding.population import Population, encode_population
from dbanon.anonymization.linked import require_each, solve_linked
from dbanon.anonymization.linked import subjects_of as linked_subjects
from dbanon.anonymization.outcome import Outcome, losses_by_recoding
from dbanon.anonymization.problem import Problem
from dbanon.anonymization.registry import masks_among_rows, require_installed
from dbanon.db import catalog, queries, transfer
from dbanon.db.models.functions import TreeDocument, order_document, shown_trees, tree_document
from dbanon.db.person_hashes import columns_of_spread
from dbanon.db.proofs.subjects import describe_population
from dbanon.db.releases.publication import is_restored
from dbanon.domain.errors import DriftError, PolicyError, TaxonomyError, Unsatisfiable
from dbanon.domain.policy import Policy, Role
from dbanon.domain.release import ReleaseKind
from dbanon.domain.table import TableInfo, quote_identifier
from dbanon.formats.column_values import with_own_values
from dbanon.formats.finders import RowCounts
from dbanon.formats.policy_warnings import repeated
from dbanon.formats.support import Mode, require
from dbanon.models.base import HIERARCHICAL, ORDERED, Scope
from dbanon.models.registry import of_scope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from dbanon.actions.preparation.inputs import InputTable
    from dbanon.db.session import Session
    from dbanon.db.transfer import SourceRows, Within
    from dbanon.domain.assignment import EncodedTable, Taxonomy
    from dbanon.domain.outcomes import Stages
    from dbanon.domain.policy_warning import PolicyWarning
    from dbanon.domain.release import GroupReuse
    from dbanon.request import Request


@dataclass(frozen=True, eq=False, slots=True)
class Prepared:
    """A partition of the rows, with everything that is needed to publish it.

    ``source`` holds the keys and the sensitive columns.
    """

    member: InputTable
    source: SourceRows
    outcome: Outcome
    trees: Mapping[str, object]
    """The taxonomies and orders that the checks of sensitive columns need, by column."""
    several: bool = False
    """Whether some person has several rows."""
    warnings: tuple[PolicyWarning, ...] = ()
    """What to think about again."""
    losses: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """What each quasi-identifier would lose by every recoding, if that was asked for."""
    encoded: EncodedTable | None = None
    """The rows as algorithms see them, if what they lose by every recoding was asked for."""
    subjects: NDArray[np.int32] | None = None
    """With these, (n,) the person of each, if some have several."""
    sharing: GroupReuse | None = None
    """The reuse of earlier classes, None if all rows are in new ones."""
    sampled: Sequence[Problem] = ()
    """Rows of a table that keeps classes, for an estimate of what a new search would lose."""
    ends: tuple[NDArray[np.int64], int] | None = None
    """Rows that have all values on which scales or warnings depend, and the number of values."""

    @property
    def recodings(self) -> tuple[tuple[str, str], ...]:
        """(column, recoding) of every quasi-identifier, in policy order."""
        return tuple((column.name, column.recoding) for column in self.outcome.values.columns)


@dataclass(frozen=True, eq=False, slots=True)
class Source:
    """The encoded rows of a table, with their keys.

    trees: as in ``Prepared``; subjects: (n,) the person of each row, if some have several; owners:
    (p,) the value that identifies each person; population: for models that count one; n_filtered:
    rows outside of the policy's conditions; n_not_drawn: other rows outside of the sample;
    n_of_nobody: rows of persons outside of the dataset; quasi: requested quasi-identifiers as read;
    draws: (n, c) secret numbers of each row, if the policy deals persons or chooses rows; unmasked:
    the rows before masking, if masked values depend on other rows; n_unread: unchanged rows that
    were not read.
    """

    rows: SourceRows
    encoded: EncodedTable
    trees: Mapping[str, TreeDocument]
    subjects: NDArray[np.int32] | None
    owners: pa.Array | None = None
    population: Population | None = None
    n_filtered: int = 0
    n_not_drawn: int = 0
    n_of_nobody: int = 0
    quasi: pa.Table | None = None
    draws: NDArray[np.uint64] | None = None
    unmasked: SourceRows | None = None
    n_unread: int = 0

    def problem(self, policy: Policy, *, atoms: NDArray[np.int32] | None = None) -> Problem:
        """Return the rows as a problem to solve; atoms: as in ``Problem``."""
        return Problem(self.encoded, policy, self.subjects, self.draws, atoms, self.population)

    def prepared(
        self,
        member: InputTable,
        outcome: Outcome,
        warnings: tuple[PolicyWarning, ...],
        *,
        several: bool | None = None,
    ) -> Prepared:
        """Return the groups of the rows as they are published.

        several: whether persons have several rows; by default, whether ``subjects`` is set.
        """
        found = prepared(member, self.rows, self.counted(outcome), trees=self.trees)
        several = self.subjects is not None if several is None else several
        ends = self.encoded.ends(columns_of_spread(member.info, member.policy))
        return replace(found, several=several, warnings=warnings, ends=ends)

    def counted(self, outcome: Outcome) -> Outcome:
        """Return an outcome whose loss includes the numbers of unread rows."""
        loss = replace(
            outcome.loss,
            n_filtered=self.n_filtered,
            n_not_drawn=self.n_not_drawn,
            n_of_nobody=self.n_of_nobody,
        )
        return replace(outcome, loss=loss)

    def take(self, rows: NDArray[np.int64]) -> Source:
        """Return some rows, all of each person, on the scales of all rows."""
        subjects, owners = self.subjects, self.owners
        if subjects is not None and owners is not None:
            persons, dense = np.unique(subjects[rows], return_inverse=True)
            subjects, owners = dense.astype(np.int32), owners.take(pa.array(persons))
        return replace(
            self,
            rows=self.rows.take(rows),
            encoded=self.encoded.take(rows),
            subjects=subjects,
            owners=owners,
            quasi=None if self.quasi is None else self.quasi.take(pa.array(rows)),
            draws=None if self.draws is None else self.draws[rows],
            unmasked=None,
        )


def prepared(
    member: InputTable, rows: SourceRows, outcome: Outcome, *, trees: Mapping[str, TreeDocument]
) -> Prepared:
    """Return the groups of some rows as they are published; trees: of the sensitive columns."""
    return Prepared(
        member=member,
        source=rows,
        outcome=outcome,
        trees=shown_trees(trees, rows.columns, group=outcome.assignment.group),
    )


def weighed(found: Prepared, source: Source) -> Prepared:
    """Return the prepared rows with the loss of other recodings, and the encoded rows."""
    losses = losses_by_recoding(source.encoded, found.outcome.assignment)
    return replace(found, losses=losses, encoded=source.encoded, subjects=source.subjects)


def source_warnings(
    session: Session,
    member: InputTable,
    columns: pa.Table,
    *,
    strict: bool,
    others: Sequence[Policy] = (),
    filled: Mapping[str, int] | None = None,
) -> tuple[PolicyWarning, ...]:
    """Return the warnings of a table; others: the policies of the other tables of the dataset.

    filled: the numbers of values of sensitive columns, if not all rows were read. Raises
    PolicyError if there are some and ``strict``.
    """
    found = (
        *warnings_of_rows(session, member.own, member.loaded.info, columns, filled=filled),
        *repeated(member.own, others),
        *notes(member.loaded),
        *filter(None, [member.unapproved]),
    )
    require_no_warnings(found if strict else ())
    return found


def among_published(
    session: Session,
    member: InputTable,
    source: Source,
    group: Callable[..., tuple[Source, Outcome]],
    *,
    stages: Stages,
) -> tuple[Source, Outcome]:
    """Group rows; if masking depends on other rows, repeat without suppressed rows.

    Otherwise published values would depend on suppressed rows. It ends when no row is suppressed.
    group: groups a source, with ``again`` from the second time on.
    """
    read, (shown, outcome) = source, group(source, again=False)
    first = outcome.loss
    while source.unmasked is not None and outcome.assignment.n_suppressed:
        rows = np.flatnonzero(outcome.assignment.group >= 0)
        source = among(session, member, source, rows, stages=stages)
        shown, outcome = group(source, again=True)
    return shown, read.counted(replace(outcome, loss=outcome.loss.among(first)))


def read_source(
    session: Session,
    member: InputTable,
    stages: Stages,
    *,
    kind: ReleaseKind,
    linked: bool = False,
    quasi: Sequence[str] = (),
    within: Within | None = None,
) -> Source:
    """Read and encode the table on the open transaction's snapshot.

    linked: whether rows belong to persons of another table, any number each; quasi:
    quasi-identifiers that are also needed as read; within: a further condition of the rows to read.
    """
    loaded, policy = member.loaded, member.own
    info = loaded.info
    with as_drift(loaded):
        mode = Mode.VIEW if kind.is_live else None
        several = require_fitting(session, loaded, policy, mode=mode, linked=linked)
        with stages("read"), _loading_kernels() if within is None else nullcontext():
            owned = several or policy.sample is not None or bool(policy.masking) or policy.anatomy
            shown = with_subject(policy) if owned else policy
            unplaced = linked or kind.is_live or policy.anatomy
            placed = info.relkind == "r" and within is None and not unplaced
            read = transfer.read(session, info, shown, within=within or queries.ALL, placed=placed)
            rows, n_not_drawn = draw(session, read, policy)  # of the sample, and of the others
        source = _encoded(session, member, rows, stages, several=several, quasi=quasi)
    n_filtered = transfer.count_left_out(session, info, policy)
    return replace(source, n_filtered=n_filtered, n_not_drawn=n_not_drawn)


def _encoded(
    session: Session,
    member: InputTable,
    rows: SourceRows,
    stages: Stages,
    *,
    several: bool,
    quasi: Sequence[str],
    fresh: NDArray[np.bool_] | None = None,
) -> Source:
    """Mask and encode rows; fresh: as in ``mask``."""
    policy, info, taxonomies = member.own, member.loaded.info, member.loaded.taxonomies
    unmasked = rows if masks_among_rows(policy) else None
    with stages("encode"):
        rows = mask(session, rows, policy, info, fresh=fresh)
        kinds, ordered = {c.name: c.kind for c in info.columns}, policy.with_orders(info)
        encoded = encode(rows.columns, ordered, kinds=kinds, taxonomies=taxonomies)
        subjects, owners = subjects_of(rows.columns, policy) if several else (None, None)
        drawn = draws(session, rows, policy, subjects)
    return Source(
        rows=transfer.without_quasi(rows, policy, are_copied=is_restored(policy, info)),
        encoded=encoded,
        trees=trees_of(ordered, taxonomies),
        subjects=subjects,
        owners=owners,
        population=_read_population(session, info, policy, encoded, stages),
        quasi=rows.columns.select(quasi) if quasi else None,
        draws=drawn,
        unmasked=unmasked,
    )


def among(
    session: Session,
    member: InputTable,
    source: Source,
    places: NDArray[np.int64],
    *,
    stages: Stages,
    fresh: NDArray[np.bool_] | None = None,
) -> Source:
    """Return the rows at some places, masked again among themselves.

    fresh: as in ``mask``, of these rows. The source has its unmasked rows.
    """
    assert source.unmasked is not None  # noqa: S101 - as callers have asked
    rows = source.unmasked.take(places)
    copied = None if rows.copied is None else with_own_values(rows.copied)
    rows = replace(rows, columns=with_own_values(rows.columns), copied=copied)
    quasi = () if source.quasi is None else source.quasi.column_names
    several = source.subjects is not None
    found = _encoded(session, member, rows, stages, several=several, quasi=quasi, fresh=fresh)
    return replace(
        found,
        n_filtered=source.n_filtered,
        n_not_drawn=source.n_not_drawn,
        n_of_nobody=source.n_of_nobody,
    )


@contextmanager
def as_drift(loaded: Loaded) -> Iterator[None]:
    """Raise DriftError instead of PolicyError and TaxonomyError if a release is served."""
    try:
        yield
    except (PolicyError, TaxonomyError) as error:
        if loaded.served and not loaded.is_draft:
            raise DriftError(f"{error} (the served release stays)", hint=error.hint) from None
        raise


def _read_population(
    session: Session, info: TableInfo, policy: Policy, encoded: EncodedTable, stages: Stages
) -> Population | None:
    """Read the population if a model counts one; raises PolicyError if it does not fit."""
    if not of_scope(policy.models, Scope.POPULATION):
        return None
    everybody = describe_population(session, info, policy, n_rows=encoded.n_rows)
    quasi = replace(policy, columns=policy.with_role(Role.QUASI), where=())
    transfer.require_fit(session, everybody, quasi)
    with stages("read"):
        rows = transfer.read(session, replace(everybody, primary_key=()), quasi)
    with stages("encode"):
        return encode_population(rows.columns, encoded)


def _load_kernels() -> None:
    import_module("dbanon.kernels.compilation")
    pa.array([0])  # whose first use looks for pandas


@contextmanager
def _loading_kernels() -> Iterator[None]:
    """Import kernels during the block, which mostly waits for the server."""
    loading = Thread(target=_load_kernels)
    loading.start()
    try:
        yield
    finally:
        loading.join()


def trees_of(policy: Policy, taxonomies: Mapping[str, Taxonomy]) -> dict[str, TreeDocument]:
    """Return the taxonomies and orders for the checks of sensitive columns, by column."""
    asked = {spec.params.get("distance") for spec in policy.models}
    documents: dict[str, TreeDocument] = {}
    for rule in policy.with_role(Role.SENSITIVE):
        if HIERARCHICAL in asked and rule.taxonomy is not None:
            documents[rule.column] = tree_document(taxonomies[rule.taxonomy])
        if ORDERED in asked and rule.order is not None:
            documents.setdefault(rule.column, {}).update(order_document(rule.order))
    return documents


def require_fitting(
    session: Session, loaded: Loaded, policy: Policy, *, mode: Mode | None, linked: bool = False
) -> bool:
    """Return whether a person may have several rows of a table, or a row none, once it is read.

    linked: as in ``read_source``. Raises PolicyError for a table that does not fit its policy, and
    ConfigError for persons with several rows if the mode does not support them.
    """
    require_valid(policy, loaded.info, loaded.taxonomies)
    several = linked or _have_several(session, policy, loaded.info, mode=mode)
    transfer.require_fit(session, loaded.info, policy)
    transfer.require_one_text(session, loaded.info, policy)
    return several


def _have_several(session: Session, policy: Policy, info: TableInfo, *, mode: Mode | None) -> bool:
    if policy.is_one_row(info):
        return False
    if info.is_computed:
        return True  # it may be otherwise when it is read
    rows, persons = catalog.count_subjects(session, info, policy.subject or "")
    if mode is not None:
        require(mode, RowCounts(policy, rows, persons))
    return rows != persons


def with_subject(policy: Policy) -> Policy:
    """Return the policy with the subject read like a sensitive column."""
    columns = [
        replace(rule, role=Role.SENSITIVE) if rule.column == policy.subject else rule
        for rule in policy.columns
    ]
    return replace(policy, columns=tuple(columns))


def subjects_of(columns: pa.Table, policy: Policy) -> tuple[NDArray[np.int32], pa.Array]:
    """Return the number of the person of each row, and the identifying value of each person."""
    column = columns.column(policy.subject)
    if column.null_count:
        raise PolicyError(
            f"subject column {quote_identifier(policy.subject or '')} has {column.null_count:,}"
            " NULLs, and NULL counts as no person",
            hint="fill them, leave these rows out by where = [...], or name another subject",
        )
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    numbered = pa.chunked_array([column.combine_chunks()]).dictionary_encode().combine_chunks()
    return numbered.indices.to_numpy(), numbered.dictionary


@dataclass(frozen=True, eq=False, slots=True)
class LinkedSource:
    """The rows of a dataset, the table of the persons first.

    tables: the rows of all other tables, with their persons; warnings: of each table.
    """

    members: Sequence[InputTable]
    sources: Sequence[Source]
    tables: Sequence[Problem] = ()
    warnings: Sequence[tuple[PolicyWarning, ...]] = ()

    def take(self, persons: NDArray[np.int64]) -> LinkedSource:
        """Return rows of the first table, and the rows of these persons in their order."""
        place = np.full(self.sources[0].encoded.n_rows, -1, np.int32)
        place[persons] = np.arange(len(persons))
        sources, tables = [self.sources[0].take(persons)], []
        for source, table in zip(self.sources[1:], self.tables, strict=True):
            persons_of_rows = place[linked_subjects(table)]
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
    members: Sequence[InputTable],
    request: Request,
    stages: Stages,
    *,
    strict: bool = False,
    weigh: bool = False,
) -> list[Prepared]:
    """Read the tables, that of the persons first, and group the persons once; writes nothing.

    The snapshot is that of the open transaction. strict: refuse warnings before the search. weigh:
    measure the loss of other recodings of a single table.

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

    def group(source: Source, *, again: bool) -> tuple[Source, Outcome]:
        now = replace(read, sources=[source])
        return source, _all_of(now, policies, search) if again else search(now, policies)[0]

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
    members: Sequence[InputTable],
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
        look = partial(source_warnings, session, member, source.rows.columns)
        warnings.append(look(strict=False, others=others))
    require_no_warnings([one for found in warnings for one in found] if strict else [])
    tables = []
    for i, member in enumerate(members[1:], 1):
        sources[i], linked = _linked(session, sources[0], sources[i], member, stages)
        tables.append(linked)
    return LinkedSource(members, sources, tables, warnings)


def _linked(
    session: Session, persons: Source, source: Source, member: InputTable, stages: Stages
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
