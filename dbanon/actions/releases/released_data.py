"""Read the released data of a relation, and its source, on one snapshot."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbanon.actions.preparation.loading import find_source, looking, warnings_of_release
from dbanon.actions.preparation.prepare import subjects_of, with_subject
from dbanon.actions.releases.check import explain, kept_promise
from dbanon.anonymization.encoding.encode import distinct_values, encode
from dbanon.anonymization.registry import recoding_named
from dbanon.anonymization.released.reading import of_release, of_texts
from dbanon.anonymization.risk.assessment import PopulationCounts
from dbanon.anonymization.utility.label_loss import label_loss
from dbanon.db import catalog, identity, transfer
from dbanon.db.metadata import ledger, store
from dbanon.db.metadata.migrate import current_session
from dbanon.db.proofs import checks, subjects
from dbanon.db.queries import printed
from dbanon.db.releases import reading, relations
from dbanon.db.releases.companion_relations import BUCKETS
from dbanon.db.releases.publication import published_type
from dbanon.db.releases.reading import COUNTED, RANGES
from dbanon.db.session import Session, connect
from dbanon.domain.errors import (
    ConfigError,
    DriftError,
    PolicyError,
    TableNotFound,
    TaxonomyError,
    Unsatisfiable,
)
from dbanon.domain.policy import BUCKET, COUNT, Policy, Role
from dbanon.domain.release import CheckFailed, CheckReport, Release
from dbanon.domain.table import TableInfo, TableName, quote_identifier
from dbanon.domain.text import command
from dbanon.formats.support import Mode, require

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from dbanon.anonymization.released.cells import Released
    from dbanon.db.transfer import SourceRows
    from dbanon.domain.assignment import EncodedTable, Taxonomy
    from dbanon.domain.outcomes import Stages
    from dbanon.domain.policy_warning import PolicyWarning
    from dbanon.settings import Settings


_SAMPLE = "the table, of which a sample is published"


@dataclass(frozen=True, eq=False, slots=True)
class ReleasedData:
    """The released data with its source; sizes: of sets of equal rows other than the classes."""

    released: Released
    population_counts: PopulationCounts
    columns: dict[str, str]
    readers: tuple[str, ...]
    statements: tuple[str, ...]
    warnings: tuple[PolicyWarning, ...]
    sizes: NDArray[np.int64] | None = None


@dataclass(frozen=True, eq=False, slots=True)
class ReleasedAlone:
    """The released data with its checks, without the source; label_loss: by column.

    rows: their number; sizes: as for ``ReleasedData``.
    """

    checks: CheckReport
    released: Released
    rows: int
    sizes: NDArray[np.int64] | None
    label_loss: dict[str, float]
    columns: dict[str, str]
    readers: tuple[str, ...]
    statements: tuple[str, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Reconciliation:
    """The released data over the rows of its table; keys: of these."""

    release: Release
    policy: Policy
    released: Released
    keys: pa.Table


def served(relation: str | TableName, settings: Settings) -> Release:
    """Return the release that a relation serves; raises ConfigError, TableNotFound."""
    where = TableName.parse(relation)
    with current_session(settings) as session:
        try:
            name = catalog.describe(session, where).name
        except TableNotFound as error:
            published = [entry.relation for entry in ledger.served_entries(session)]
            hint = catalog.meant(where, published) or "dbanon release list"
            raise TableNotFound(str(error), hint=hint) from None
        found = ledger.served_release(session, name)
    if found is None:
        hint = "dbanon release list names those that are"
        raise ConfigError(f"{name} serves no release", hint=hint)
    return found


def read_released_data(
    release: Release, settings: Settings, stages: Stages, *, persons: int | None = None
) -> ReleasedData:
    """Read the released data, the source and its population on one snapshot."""
    with connect(settings) as session:
        found = partial(find_source, session, release.table)
        published = partial(catalog.describe, session, release.relation)
        with looking(session, found, published) as (info, view):
            session.allow_memory()
            identity.admit(session, info, view)
            identity.require_release(session, view, release.data_id)
            seen = _released_data(session, release, info, view, stages=stages, persons=persons)
    gc.collect()  # of what the connection held
    pa.default_memory_pool().release_unused()  # of the rows and texts that were read
    return seen


def _released_data(
    session: Session,
    release: Release,
    info: TableInfo,
    view: TableInfo,
    *,
    stages: Stages,
    persons: int | None,
) -> ReleasedData:
    policy = release.policy.completed(info).with_orders(info)
    trees = _taxonomies(session, release)
    with stages("read"):
        # Nothing is written back, so that no keys are needed.
        rows = read_source(session, keyless(info), policy, trees, weighted=True).encoded()
    with stages("see"):
        if not policy.anatomy:
            _require_types(info, view, rows.table)
        shown = _read(session, view, policy)
        released = shown.released(rows, policy)
        population_counts = _population(session, info, policy, shown, trees=trees, persons=persons)
        if (
            policy.sample is not None
            and population_counts.counted is None
            and policy.weight is None
        ):
            population_counts = replace(population_counts, counted=released, name=_SAMPLE)
    return ReleasedData(
        released=released,
        population_counts=population_counts,
        **_described(session, view),
        warnings=tuple(warnings_of_release(session, release)),
        sizes=shown.sizes,
    )


def read_released_alone(release: Release, settings: Settings, stages: Stages) -> ReleasedAlone:
    """Prove a release again and read it, on one snapshot, without any query about its source.

    Raises CheckFailed for an empty relation, and ConfigError for one that is not as published.
    """
    with (
        connect(settings) as session,
        looking(session, partial(catalog.describe, session, release.relation)) as (view,),
    ):
        session.allow_memory()
        identity.admit(session, view)
        policy, promise = release.policy, kept_promise(session, view, release)
        with stages("see"):
            shown = _read(session, view, policy)
        with stages("prove"):
            found = checks.prove(session, view, promise)
        if not any(result.n_rows for result in found.results):
            raise CheckFailed(explain(found), found, hint="dbanon release list")
        texts, counts, trees = shown.texts, _counts(shown.texts), _taxonomies(session, release)
        kinds = {c.name: RANGES.get(c.base_type, c.kind) for c in view.columns}
        ranges = {c.name for c in view.columns if c.base_type in RANGES}
        return ReleasedAlone(
            checks=found,
            released=of_release(texts, counts, policy, kinds=kinds, taxonomies=trees),
            rows=int(counts.sum()),
            sizes=shown.sizes,
            label_loss=label_loss(
                texts, counts, policy, kinds=kinds, ranges=ranges, taxonomies=trees
            ),
            **_described(session, view),
        )


def reconcile(
    releases: Sequence[Release], settings: Settings, stages: Stages
) -> list[Reconciliation]:
    """Read the released data and the tables with their keys, on one snapshot.

    Raises ConfigError for anatomy, and for tables of a dataset other than that of the persons.
    """
    with connect(settings) as session:
        finds = [partial(find_source, session, release.table) for release in releases]
        finds += [partial(catalog.describe, session, release.relation) for release in releases]
        with looking(session, *finds) as infos:
            session.allow_memory()
            identity.admit(session, *{info.oid: info for info in infos}.values())
            tables, views = infos[: len(releases)], infos[len(releases) :]
            found = zip(releases, tables, views, strict=True)
            return [_reconciled(session, *one, stages=stages) for one in found]


def _reconciled(
    session: Session, release: Release, info: TableInfo, view: TableInfo, *, stages: Stages
) -> Reconciliation:
    identity.require_release(session, view, release.data_id)
    policy = release.policy.completed(info).with_orders(info)
    require(Mode.ATTACK, release)
    with stages("read"):
        source = read_source(session, policy.keyed(info), policy, _taxonomies(session, release))
        rows = source.encoded()
    with stages("see"):
        _require_types(info, view, rows.table)
        released = _read(session, view, policy).released(rows, policy)
    return Reconciliation(release, policy, released, source.rows.keys)


def _taxonomies(session: Session, release: Release) -> dict[str, Taxonomy]:
    return store.load_taxonomies(session, release.taxonomies)


def _require_types(info: TableInfo, view: TableInfo, encoded: EncodedTable) -> None:
    """Raise DriftError for columns that would now be published in another type."""
    for column in encoded.quasi:
        expected = published_type(recoding_named(column), info.column(column.name))
        if expected.endswith("[]"):
            expected = f"_{expected.removesuffix('[]')}"
        if view.column(column.rule.published_as[0]).base_type != expected:
            raise DriftError(
                f"column {quote_identifier(column.name)} of {info.name} has another type than when"
                f" {view.name} was published",
                hint=command("dbanon refresh", info.name),
            )


def _read(session: Session, view: TableInfo, policy: Policy) -> _Shown:
    sensitive = [rule.column for rule in policy.with_role(Role.SENSITIVE)]
    sensitive = [name for name in sensitive if not policy.masked(name)]
    if not policy.anatomy:
        return _Shown(reading.texts(session, view.name, [*policy.published_quasi, *sensitive]))
    buckets = catalog.describe_published(session, BUCKETS.name(view.name))
    shown = reading.texts(session, buckets.name, [BUCKET, *sensitive], counted=COUNT)
    quasi = [rule.column for rule in policy.with_role(Role.QUASI)]
    return _Shown(shown, reading.texts(session, view.name, quasi))


@dataclass(frozen=True, eq=False, slots=True)
class _Shown:
    """The released data as texts; exact: for anatomy, the quasi-identifiers."""

    texts: pa.Table
    exact: pa.Table | None = None

    def released(self, rows: Rows, policy: Policy) -> Released:
        """Encode the released data over the codes of a table."""
        counts = _counts(self.texts)
        return of_texts(rows.table, self.texts, counts, policy=policy, persons=rows.persons)

    @property
    def sizes(self) -> NDArray[np.int64] | None:
        """The numbers of indistinguishable rows, None if these are the classes."""
        return None if self.exact is None else _counts(self.exact)


def _counts(shown: pa.Table) -> NDArray[np.int64]:
    return np.asarray(shown.column(COUNTED), np.int64)


def _population(
    session: Session,
    info: TableInfo,
    policy: Policy,
    shown: _Shown,
    *,
    trees: dict[str, Taxonomy],
    persons: int | None,
) -> PopulationCounts:
    """Return the known population; raises as reading its table does."""
    if policy.population is None or policy.anatomy:
        return PopulationCounts(size=persons)
    people = subjects.describe_population(session, info, policy, n_rows=0)
    rules = policy.with_role(Role.QUASI)
    quasi = replace(policy, columns=rules, where=(), subject=None, class_label=None)
    rows = read_source(session, keyless(people), quasi, trees).encoded()
    counted = shown.released(rows, quasi)
    return PopulationCounts(persons or rows.table.n_rows, counted, str(people.name))


def _described(session: Session, view: TableInfo) -> dict[str, Any]:
    """Return the columns, the readers, and the statement with which any of them proves it again."""
    return {
        "columns": {column.name: column.type for column in view.columns},
        "readers": relations.readers(session, view.name),
        "statements": (printed(checks.verification(checks.named(view.name))).strip(),),
    }


class Rows(NamedTuple):
    """The encoded rows of a table; persons: the person of each, with a subject."""

    table: EncodedTable
    persons: NDArray[np.int32] | None


@dataclass(frozen=True, eq=False, slots=True)
class Source:
    """The rows of a table, as read."""

    info: TableInfo
    policy: Policy
    trees: Mapping[str, Taxonomy]
    rows: SourceRows

    def encoded(self) -> Rows:
        """Encode all rows; raises DriftError for values without a code."""
        columns = self.rows.columns
        kinds = {column.name: column.kind for column in self.info.columns}
        with _as_drift(self.info):
            table = encode(columns, self.policy, kinds=kinds, taxonomies=self.trees)
            persons = None
            if self.policy.subject is not None:
                persons = subjects_of(columns, self.policy)[0]
        return Rows(replace(table, weights=_weights(columns, self.policy)), persons)


def keyless(info: TableInfo) -> TableInfo:
    """Return a table without its key, so that no keys are read."""
    return replace(info, primary_key=())


def read_source(
    session: Session,
    info: TableInfo,
    policy: Policy,
    trees: Mapping[str, Taxonomy],
    *,
    weighted: bool = False,
) -> Source:
    """Read the rows of a table, with weights if ``weighted``; raises DriftError if unfit."""
    with _as_drift(info):
        _require_columns(info, policy)
        transfer.require_fit(session, info, policy)
        # Masking is ignored: the true values are compared with the masked ones.
        asked = replace(with_subject(policy), masking=())
        if weighted:
            asked = _with_weights(asked)
        rows = transfer.read(session, info, asked)
    return Source(info, policy, trees, _in_order(rows, policy))


def _with_weights(policy: Policy) -> Policy:
    columns = (
        replace(rule, role=Role.SENSITIVE) if rule.role is Role.WEIGHT else rule
        for rule in policy.columns
    )
    return replace(policy, columns=tuple(columns))


def _weights(columns: pa.Table, policy: Policy) -> NDArray[np.float64] | None:
    """Return the persons per row, by weight and sampling fraction; raises ConfigError."""
    if policy.weight is None or policy.weight not in columns.column_names:
        return None
    place, distinct = distinct_values(columns.column(policy.weight))
    weights = np.array([*map(float, distinct.to_pylist()), np.nan])[place]
    wrong = np.count_nonzero(~(np.isfinite(weights) & (weights > 0.0)))
    if wrong:
        raise ConfigError(
            f"weight column {quote_identifier(policy.weight)} of {policy.table} is NULL, infinite"
            f" or not above 0 in {wrong:,} rows",
            hint="correct them, leave these rows out by where = [...], or give the column the role"
            " identifier",
        )
    return weights / (policy.sample or 1.0)


def _in_order(rows: SourceRows, policy: Policy) -> SourceRows:
    """Return rows sorted by content, because random draws use positions."""
    last = {policy.subject: 1, policy.weight: 2}
    names = sorted(rows.columns.column_names, key=lambda name: (last.get(name, 0), name))
    if not names:
        return rows
    ranks = []
    for name in names:
        place, distinct = distinct_values(rows.columns.column(name))
        rank = pc.rank(distinct, tiebreaker="dense").to_numpy()
        ranks.append(np.append(rank, 0)[place])  # 0 for NULL (place -1)
    return rows.take(np.lexsort(ranks[::-1]))


@contextmanager
def _as_drift(info: TableInfo) -> Iterator[None]:
    try:
        yield
    except (PolicyError, TaxonomyError, Unsatisfiable) as error:
        msg = f"{info.name} no longer has what the release was made of: {error}"
        raise DriftError(msg, hint=command("dbanon refresh", info.name)) from None


def _require_columns(info: TableInfo, policy: Policy) -> None:
    there = {column.name for column in info.columns}
    missing = [rule.column for rule in policy.columns if rule.column not in there]
    if missing:
        raise PolicyError(f"it has no column {', '.join(map(quote_identifier, missing))}")
