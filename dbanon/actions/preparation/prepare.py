"""From a table and its policy to groups: what plan, publish and refresh share."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING, Any

from dbanon.domain.errors import (
    ConfigError,
    DriftError,
    PolicyError,
    TaxonomyError,
    Unsatisfiable,
)
from dbanon.domain.policy import K_ANONYMITY, Role
from dbanon.domain.release import ReleaseKind
from dbanon.domain.table import quote_identifier
from dbanon.formats.policy.anatomy import level
from dbanon.formats.support import Counted, Mode, require
from dbanon.models.base import Scope
from dbanon.models.parameters import HIERARCHICAL, ORDERED
from dbanon.models.specs import of_scope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from dbanon.actions.preparation.loading import Loaded
    from dbanon.anonymization.encoding.population import Population
    from dbanon.anonymization.outcome import Outcome
    from dbanon.anonymization.problem import Problem
    from dbanon.db.session import Session
    from dbanon.db.transfer import SourceRows
    from dbanon.domain.assignment import EncodedTable
    from dbanon.domain.caution import Caution
    from dbanon.domain.policy import Policy
    from dbanon.domain.progress import Stages
    from dbanon.domain.table import TableInfo
    from dbanon.domain.taxonomy import Taxonomy
    from dbanon.request import Request


@dataclass(frozen=True, eq=False, slots=True)
class Prepared:
    """A partition of the table's rows, with what is needed to publish it.

    ``source`` holds the keys and the sensitive columns.
    """

    info: TableInfo
    policy: Policy
    taxonomies: Mapping[str, int]
    source: SourceRows
    outcome: Outcome
    trees: Mapping[str, object]
    """The taxonomies and orders that the checks of sensitive columns need, by column."""
    several: bool = False
    """Whether some person has several rows."""
    warnings: tuple[Caution, ...] = ()
    """What to think about again."""
    losses: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """What each quasi-identifier would lose by every recoding, if that was asked for."""
    encoded: EncodedTable | None = None
    """The rows as algorithms see them, if what they lose by every recoding was asked for."""
    subjects: NDArray[np.int32] | None = None
    """With these, (n,) the person of each, if some have several."""

    @property
    def recodings(self) -> tuple[tuple[str, str], ...]:
        """(column, recoding) of every quasi-identifier, in policy order."""
        return tuple((column.name, column.recoding) for column in self.outcome.values.columns)


@dataclass(frozen=True, eq=False, slots=True)
class Source:
    """The rows of a table as algorithms see them, and the keys to find each again.

    trees: as in ``Prepared``; subjects: (n,) the person of each row, if some have several, and
    owners: (p,) the value that names each of these;
    population: of the models that count one; n_filtered: rows that do not meet the policy's
    conditions; n_not_drawn: those that do, of persons who are not in its sample;
    n_of_nobody: those of persons who are not among those of the dataset; quasi: the
    quasi-identifiers that were asked for, as read; draws: (n, c) secret numbers of each row, if the
    policy deals persons or chooses rows by them; unmasked: the rows before they were masked, if
    that depends on which of them there are.
    """

    rows: SourceRows
    encoded: EncodedTable
    taxonomies: Mapping[str, int]
    trees: Mapping[str, dict[str, Any]]
    subjects: NDArray[np.int32] | None
    owners: pa.Array | None = None
    population: Population | None = None
    n_filtered: int = 0
    n_not_drawn: int = 0
    n_of_nobody: int = 0
    quasi: pa.Table | None = None
    draws: NDArray[np.uint64] | None = None
    unmasked: SourceRows | None = None

    def problem(self, policy: Policy, *, atoms: NDArray[np.int32] | None = None) -> Problem:
        """Return the rows as what is to be solved; atoms: as of a ``Problem``."""
        from dbanon.anonymization.problem import Problem

        return Problem(self.encoded, policy, self.subjects, self.draws, atoms, self.population)

    def take(self, rows: NDArray[np.int64]) -> Source:
        """Return some rows, all of each person, on the scales of the whole."""
        import numpy as np
        import pyarrow as pa

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


def prepare(
    session: Session,
    loaded: Loaded,
    request: Request,
    stages: Stages,
    *,
    strict: bool = False,
    weigh: bool = False,
    meanwhile: Callable[[Source], AbstractContextManager[None]] | None = None,
) -> Prepared:
    """Read the table on the open transaction's snapshot and group its rows; writes nothing.

    strict: refuse, before any search, what would be warned of; weigh: find what other recodings
    would lose, too; meanwhile: entered while the rows are grouped, which leaves the session alone.

    Raises PolicyError, TaxonomyError, Unsatisfiable, and DriftError instead of the first two
    when a release of the table is served already.
    """
    from dbanon.actions.preparation.cautions import of_rows, require_none
    from dbanon.actions.preparation.loading import notes
    from dbanon.anonymization.outcome import losses_by_recoding
    from dbanon.anonymization.problem import solve
    from dbanon.anonymization.registry import require_installed
    from dbanon.db.models.statements import shown_trees

    policy, info = in_force(loaded, request), loaded.info
    require_installed(policy)  # what is missing is told before anything is read
    source = read_source(session, loaded, policy, stages, kind=request.relation_kind)
    warnings = of_rows(session, policy, info, source.rows.columns)
    require_none(warnings if strict else [])
    is_whole = source.unmasked is None  # else rows may have other places later
    with meanwhile(source) if meanwhile and is_whole else nullcontext():
        outcome = solve(source.problem(policy), seed=request.seed, stages=stages)
    again = partial(_among_published, seed=request.seed, stages=stages)
    source, outcome = again(session, loaded, policy, source, outcome)
    return Prepared(
        info=info,
        policy=policy,
        taxonomies=source.taxonomies,
        source=source.rows,
        outcome=outcome,
        trees=shown_trees(source.trees, source.rows.columns, group=outcome.assignment.group),
        several=source.subjects is not None,
        warnings=(*warnings, *notes(loaded)),
        losses=losses_by_recoding(source.encoded, outcome.assignment) if weigh else {},
        encoded=source.encoded if weigh else None,
        subjects=source.subjects if weigh else None,
    )


def _among_published(
    session: Session,
    loaded: Loaded,
    policy: Policy,
    source: Source,
    outcome: Outcome,
    *,
    seed: int,
    stages: Stages,
) -> tuple[Source, Outcome]:
    """Mask and group again without the rows that are left out, until none is.

    Otherwise the values of rows that are published would tell of others. Raises Unsatisfiable when
    no partition of all rows that are left meets the policy.
    """
    import numpy as np

    from dbanon.anonymization.problem import solve

    first, asked = outcome.loss, replace(policy, max_suppressed=0.0)
    while source.unmasked is not None and outcome.assignment.n_suppressed:
        rows = np.flatnonzero(outcome.assignment.group >= 0)
        source = among(session, loaded, policy, source, rows, stages=stages)
        try:
            outcome = solve(source.problem(asked), seed=seed, stages=stages)
        except Unsatisfiable as error:
            raise Unsatisfiable(
                f"{error}, once values are masked without the rows that are left out",
                hint="--max-suppressed 0, or mask by rounding, which looks at no other row",
            ) from None
    loss = outcome.loss.among(first)
    loss = replace(loss, n_filtered=source.n_filtered, n_not_drawn=source.n_not_drawn)
    return source, replace(outcome, loss=loss)


def in_force(loaded: Loaded, request: Request) -> Policy:
    """Return the stored policy under the request.

    Raises PolicyError when nothing says k, or l of anatomy, ConfigError for a live view of what
    guards do not keep.
    """
    policy = request.over(loaded.policy)
    if policy.anatomy and (level(policy) or 1) == 1:
        raise PolicyError(
            "neither the command nor the policy says l, and nothing else is promised by anatomy",
            hint="pass --l 2, or more",
        )
    if not policy.anatomy and policy.model(K_ANONYMITY) is None:
        raise PolicyError("neither the command nor the policy says k", hint="pass --k 5")
    if loaded.info.foreign and not request.allow_foreign:
        raise ConfigError(
            f"{loaded.info.name} reads the foreign table {loaded.info.foreign[0]}: who reads it"
            " where it is, and whether it stays the same, is not known here",
            hint="--allow-foreign, if that is as it should be",
        )
    if request.relation_kind is ReleaseKind.VIEW:
        require(Mode.VIEW, request.asked(policy, loaded.info))
    return policy


def read_source(
    session: Session,
    loaded: Loaded,
    policy: Policy,
    stages: Stages,
    *,
    kind: ReleaseKind,
    linked: bool = False,
    quasi: Sequence[str] = (),
) -> Source:
    """Read and encode the table on the open transaction's snapshot.

    linked: whether its rows belong to persons of another table, however many each has; quasi: the
    quasi-identifiers that are needed as read, too.
    """
    from dbanon.db import transfer

    info = loaded.info
    with as_drift(loaded):
        require_valid(loaded, policy)
        mode = Mode.VIEW if kind is ReleaseKind.VIEW else None
        several = linked or several_a_person(session, policy, info, mode=mode)
        transfer.require_fit(session, info, policy)
        transfer.require_one_text(session, info, policy)
        with stages("read"), _loading_kernels():
            rows, n_not_drawn = _read(session, info, policy, several=several)
        source = _encoded(session, loaded, policy, rows, stages, several=several, quasi=quasi)
    n_filtered = transfer.count_left_out(session, info, policy)
    return replace(source, n_filtered=n_filtered, n_not_drawn=n_not_drawn)


def _encoded(
    session: Session,
    loaded: Loaded,
    policy: Policy,
    rows: SourceRows,
    stages: Stages,
    *,
    several: bool,
    quasi: Sequence[str],
    fresh: NDArray[np.bool_] | None = None,
) -> Source:
    """Mask rows and return them as algorithms see them; fresh: as ``mask`` takes it."""
    from dbanon.actions.preparation.chance import draws
    from dbanon.actions.preparation.masking import mask
    from dbanon.anonymization.encoding.encode import encode
    from dbanon.anonymization.registry import masks_among_rows
    from dbanon.db import transfer

    info, unmasked = loaded.info, rows if masks_among_rows(policy) else None
    with stages("encode"):
        rows = mask(session, rows, policy, info, fresh=fresh)
        kinds, ordered = {c.name: c.kind for c in info.columns}, policy.with_orders(info)
        encoded = encode(rows.columns, ordered, kinds=kinds, taxonomies=loaded.taxonomies)
        subjects, owners = subjects_of(rows.columns, policy) if several else (None, None)
        drawn = draws(session, rows, policy, subjects)
    return Source(
        rows=transfer.without_quasi(rows, policy),
        encoded=encoded,
        taxonomies={name: tree.version for name, tree in loaded.taxonomies.items()},
        trees=trees_of(ordered, loaded.taxonomies),
        subjects=subjects,
        owners=owners,
        population=_read_population(session, info, policy, encoded, stages),
        quasi=rows.columns.select(quasi) if quasi else None,
        draws=drawn,
        unmasked=unmasked,
    )


def among(
    session: Session,
    loaded: Loaded,
    policy: Policy,
    source: Source,
    places: NDArray[np.int64],
    *,
    stages: Stages,
    fresh: NDArray[np.bool_] | None = None,
) -> Source:
    """Return the rows at some places, masked again among themselves.

    fresh: as ``mask`` takes it, of these rows. The source has its unmasked rows.
    """
    from dbanon.formats.values.coded import with_own_values

    assert source.unmasked is not None  # noqa: S101 - as callers have asked
    rows = source.unmasked.take(places)
    kept = None if rows.kept is None else with_own_values(rows.kept)
    rows = replace(rows, columns=with_own_values(rows.columns), kept=kept)
    quasi = () if source.quasi is None else source.quasi.column_names
    several = source.subjects is not None
    found = _encoded(
        session, loaded, policy, rows, stages, several=several, quasi=quasi, fresh=fresh
    )
    return replace(
        found,
        n_filtered=source.n_filtered,
        n_not_drawn=source.n_not_drawn,
        n_of_nobody=source.n_of_nobody,
    )


@contextmanager
def as_drift(loaded: Loaded) -> Iterator[None]:
    """Raise DriftError for what a policy no longer fits, if a release is served by it."""
    try:
        yield
    except (PolicyError, TaxonomyError) as error:
        if loaded.served and not loaded.is_draft:
            raise DriftError(f"{error} (the served release stays)", hint=error.hint) from None
        raise


def require_valid(loaded: Loaded, policy: Policy) -> None:
    """Raise PolicyError with everything that does not fit the table."""
    from dbanon.anonymization.registry import RECODINGS, make_masking
    from dbanon.formats.policy_validation import validate

    validate(
        policy, loaded.info, taxonomies=loaded.taxonomies, recodings=RECODINGS, masking=make_masking
    )


def _read(
    session: Session, info: TableInfo, policy: Policy, *, several: bool
) -> tuple[SourceRows, int]:
    """Read the rows that are published, and count those of persons who are not drawn."""
    from dbanon.actions.preparation.chance import draw
    from dbanon.db import transfer

    owned = several or policy.sample is not None or bool(policy.masking) or policy.anatomy
    source = transfer.read(session, info, with_subject(policy) if owned else policy)
    return draw(session, source, policy)


def _read_population(
    session: Session, info: TableInfo, policy: Policy, encoded: EncodedTable, stages: Stages
) -> Population | None:
    """Read the population that models count; raises PolicyError when it is none of this table.

    None where no model counts one.
    """
    if not of_scope(policy.models, Scope.POPULATION):
        return None
    from dbanon.anonymization.encoding.population import encode_population
    from dbanon.db import transfer
    from dbanon.db.proofs import population

    everybody = population.describe(session, info, policy, n_rows=encoded.n_rows)
    quasi = replace(policy, columns=policy.with_role(Role.QUASI), where=())
    transfer.require_fit(session, everybody, quasi)
    with stages("read"):
        rows = transfer.read(session, replace(everybody, primary_key=()), quasi)
    with stages("encode"):
        return encode_population(rows.columns, encoded)


def _load_kernels() -> None:
    import pyarrow as pa

    import_module("dbanon.kernels.compile")
    pa.array([0])  # whose first use looks for pandas


@contextmanager
def _loading_kernels() -> Iterator[None]:
    """Import what comes next during the block, which mostly waits for the server."""
    loading = Thread(target=_load_kernels)
    loading.start()
    try:
        yield
    finally:
        loading.join()


def trees_of(policy: Policy, taxonomies: Mapping[str, Taxonomy]) -> dict[str, dict[str, Any]]:
    """Return the taxonomies and orders that the checks of sensitive columns need, by column."""
    from dbanon.db.models.statements import order_document, tree_document

    asked = {spec.params.get("distance") for spec in policy.models}
    documents: dict[str, dict[str, Any]] = {}
    for rule in policy.with_role(Role.SENSITIVE):
        if HIERARCHICAL in asked and rule.taxonomy is not None:
            documents[rule.column] = tree_document(taxonomies[rule.taxonomy])
        if ORDERED in asked and rule.order is not None:
            documents.setdefault(rule.column, {}).update(order_document(rule.order))
    return documents


def several_a_person(
    session: Session, policy: Policy, info: TableInfo, *, mode: Mode | None
) -> bool:
    """Whether some person owns several rows, or some row is nobody's, which its reader refuses.

    Raises ConfigError where the mode does not support that.
    """
    from dbanon.db import catalog

    if policy.subject is None:
        return False
    if info.is_computed:
        return True  # it may be otherwise when it is read
    rows, persons = catalog.count_subjects(session, info, policy.subject)
    if mode is not None:
        require(mode, Counted(policy, info, rows, persons))
    return rows != persons


def with_subject(policy: Policy) -> Policy:
    """Return the policy under which the subject is read along, as sensitive columns are."""
    columns = [
        replace(rule, role=Role.SENSITIVE) if rule.column == policy.subject else rule
        for rule in policy.columns
    ]
    return replace(policy, columns=tuple(columns))


def subjects_of(columns: pa.Table, policy: Policy) -> tuple[NDArray[np.int32], pa.Array]:
    """Return the person of each row, numbered, and the value that names each."""
    import pyarrow as pa

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
