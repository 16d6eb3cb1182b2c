"""Prepare a table in blocks: one process reads the rows once, and several group them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbanon.actions.distribution.executors import Executor, executor_named
from dbanon.actions.distribution.tasks import GroupBlock, Grouped, ImproveBorder, Job
from dbanon.actions.preparation.prepare import (
    Prepared,
    as_drift,
    prepared,
    require_fitting,
    source_warnings,
    trees_of,
)
from dbanon.anonymization.adjusting.repair import rows_in_reach
from dbanon.anonymization.outcome import Outcome, requirement_of
from dbanon.anonymization.regions.cutting import (
    Domains,
    Region,
    Values,
    cut_regions,
    domains_of,
    rows_within,
)
from dbanon.anonymization.regions.grouping import Groups, join
from dbanon.anonymization.registry import require_installed
from dbanon.anonymization.threads import GivenUp
from dbanon.db import transfer
from dbanon.db.queries import ALL
from dbanon.db.transfer import PLACE, SourceRows, Within
from dbanon.domain.errors import ConfigError, DatabaseError, DbanonError, Unsatisfiable
from dbanon.domain.policy import Policy, Role
from dbanon.formats.support import Mode, require

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from dbanon.actions.distribution.tasks import Run
    from dbanon.actions.preparation.inputs import InputTable
    from dbanon.actions.preparation.loading import Loaded
    from dbanon.anonymization.interfaces import Requirement
    from dbanon.anonymization.regions.cutting import Places
    from dbanon.db.session import Session
    from dbanon.domain.outcomes import Stages
    from dbanon.domain.table import TableInfo
    from dbanon.request import Request

    Blocks = list[tuple[Region, Grouped]]
    Moved = list[tuple[NDArray[np.int64], Groups]]


ROWS_PER_BLOCK = 1_000_000
_SAMPLE, _OF_A_BLOCK = 65_536, 256  # rows of the sample: at least, and for each block


@dataclass(frozen=True, slots=True)
class Division:
    """The rows of a block, and the executor of blocks."""

    executor: Executor
    rows_per_block: int


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Rows:
    """All rows: keys and places of values; of: the rows of each region that was a block.

    Of a table, the last key is the place of the row.
    Keys are of ``large_string``, because Arrow takes rows of a ``string`` of 2 GB at most.
    """

    keys: pa.Table
    places: Places
    of: dict[Region, NDArray[Any]]

    def block(self, region: Region) -> GroupBlock:
        """Return the task of a region, its rows in the order of their keys."""
        rows = np.concatenate([self.of[leaf] for leaf in region.leaves()])
        names = [f"k{i}" for i in range(self.keys.num_columns)]
        keys = self.keys.take(pa.array(rows)).rename_columns(names)
        order = pc.sort_indices(keys, [(name, "ascending") for name in names])
        self.of[region] = rows[np.asarray(order)]
        return GroupBlock(self.take(self.of[region]))

    def take(self, rows: NDArray[Any]) -> Places:
        """Return the places of some rows, in the order given."""
        return {name: places[rows] for name, places in self.places.items()}

    def published(self, blocks: Blocks, names: Sequence[str]) -> Rows:
        """Return all rows, block by block, with the named columns only."""
        rows = [self.of[region] for region, _ in blocks]
        keys = [_with_texts(self.keys.take(pa.array(one)), pa.string()) for one in rows]
        order = np.concatenate(rows)
        places = {name: self.places[name][order] for name in names}
        return Rows(pa.concat_tables(keys), places, {})


def division_of(executor: str, rows_per_block: int | None) -> Division:
    """Return the division of a table; raises ConfigError."""
    if rows_per_block is not None and rows_per_block < 1:
        raise ConfigError(f"a block cannot have {rows_per_block} rows", hint="leave the number out")
    return Division(executor_named(executor), rows_per_block or ROWS_PER_BLOCK)


def prepare_in_blocks(
    session: Session,
    member: InputTable,
    request: Request,
    stages: Stages,
    *,
    division: Division,
    strict: bool,
) -> Prepared:
    """Prepare a table without holding more of it here than keys, small codes and groups.

    The number of reads does not depend on the number of blocks. Other processes reach no database.
    Raises the errors of ``prepare``, and ConfigError for features that need all rows at once.
    """
    policy, info, loaded = member.policy, member.info, member.loaded
    require(Mode.BLOCKS, request.for_table(policy, info))
    require_installed(policy)  # what is missing is told before anything is read
    domains = _read(session, loaded, policy, stages=stages)
    warnings = source_warnings(session, member, counted_texts(domains), strict=strict)
    requirement = _require_feasible(domains, policy)
    ordered = policy.with_orders(info)
    job = Job(ordered, domains, request.seed)
    outcome, rows = _grouped(session, loaded.info, job, requirement, division, stages=stages)
    loss = replace(outcome.loss, n_filtered=transfer.count_left_out(session, info, policy))
    trees = trees_of(ordered, loaded.taxonomies)
    found = prepared(member, rows, replace(outcome, loss=loss), trees=trees)
    return replace(found, warnings=warnings)


def _read(session: Session, loaded: Loaded, policy: Policy, *, stages: Stages) -> Domains:
    """Return the values of all columns of a table that may be divided."""
    with as_drift(loaded):
        require_fitting(session, loaded, policy, mode=Mode.BLOCKS)
        with stages("read"):
            return _domains(session, loaded, policy)


def _grouped(
    session: Session,
    info: TableInfo,
    job: Job,
    requirement: Requirement,
    division: Division,
    *,
    stages: Stages,
) -> tuple[Outcome, SourceRows]:
    """Return all rows, without their quasi-identifiers, and their groups."""
    with stages("cut"):
        root = _cut(session, info, job, requirement, division, stages=stages)
        rows = _rows(session, info, job, root)
    with stages("cluster"), division.executor.opened(job, stopped=lambda: stages.stopped) as run:
        blocks = _blocks(rows, root, run, stages)
        moved = repaired(blocks, root, rows, run, most=division.rows_per_block, stages=stages)
    _require_shown(blocks, budget=requirement.budget(job.domains.n_rows))
    with stages("recode"):
        rows = rows.published(blocks, job.domains.sensitive_names)  # frees all other codes
        return joined(job, blocks, moved, rows)


def _domains(session: Session, loaded: Loaded, policy: Policy) -> Domains:
    """Return the values of all columns, by which any block is encoded."""
    info = loaded.info
    rules = (*policy.with_role(Role.QUASI), *policy.with_role(Role.SENSITIVE))
    counted = {rule.column: transfer.value_counts(session, info, policy, rule) for rule in rules}
    kinds = {column.name: column.kind for column in info.columns}
    ordered = policy.with_orders(info)
    return domains_of(counted, ordered, kinds=kinds, taxonomies=loaded.taxonomies)


def _require_feasible(domains: Domains, policy: Policy) -> Requirement:
    """Return the requirement of every group; raises Unsatisfiable if all rows as one group fail it.

    Combinations of values of several columns are unknown here; the blocks check these.
    """
    sensitive = np.empty((domains.n_rows, len(domains.sensitive_names)), np.int32)
    for i, name in enumerate(domains.sensitive_names):
        sensitive[:, i] = np.repeat(domains.values[name].codes, domains.values[name].rows)
    table = domains.table(domains.quasi, sensitive, class_label=policy.class_label)
    requirement = requirement_of(table, policy)
    known = tuple(one for one in requirement.demands if not (one.among or one.jointly))
    rows_in_reach(table, replace(requirement, demands=known))
    return requirement


def _coded(
    session: Session, info: TableInfo, job: Job, within: Within = ALL, *, placed: bool = False
) -> tuple[pa.Table, Places]:
    """Return the keys of rows, with their places if asked for, and the places of their values."""

    def code(name: str, column: pa.Array) -> pa.Array:
        return job.domains.values[name].places(column)

    policy = replace(job.policy, class_label=None)  # or it is read, too
    found = transfer.read(session, info, policy, within=within, placed=placed, code=code)
    columns = zip(found.columns.column_names, found.columns.columns, strict=True)
    keys = found.keys if found.places is None else found.keys.append_column(PLACE, found.places)
    return keys, {name: column.to_numpy() for name, column in columns}


def _rows(session: Session, info: TableInfo, job: Job, root: Region) -> Rows:
    """Return all rows, and those of each block."""
    keys, places = _coded(session, info, job, placed=info.relkind == "r")
    every = np.arange(keys.num_rows, dtype=np.min_scalar_type(keys.num_rows))
    within = dict(rows_within(root, job.domains, places, every))
    return Rows(_with_texts(keys, pa.large_string()).combine_chunks(), places, within)


def _with_texts(keys: pa.Table, kind: pa.DataType) -> pa.Table:
    """Return keys with their texts as another type."""
    fields = [one if pa.types.is_integer(one.type) else one.with_type(kind) for one in keys.schema]
    return keys.cast(pa.schema(fields))


def _cut(
    session: Session,
    info: TableInfo,
    job: Job,
    requirement: Requirement,
    division: Division,
    *,
    stages: Stages,
) -> Region:
    """Return the regions of the blocks, from a sample of the rows."""
    n_rows = job.domains.n_rows
    wanted = max(_SAMPLE, _OF_A_BLOCK * (n_rows // division.rows_per_block))
    share = min(1.0, wanted / max(n_rows, 1))
    if n_rows <= division.rows_per_block:
        share = 0.0  # nothing is cut
    drawn = transfer.drawn(info, share=share, seed=job.seed)
    _, places = _coded(session, info, job, drawn)
    try:
        return cut_regions(
            job.encoded(places),
            job.domains,
            requirement,
            rows_per_block=division.rows_per_block,
            seed=job.seed,
            until=lambda: stages.stopped,
        )
    except GivenUp:
        raise KeyboardInterrupt from None


def _blocks(rows: Rows, root: Region, run: Run, stages: Stages) -> Blocks:
    """Return the groups of all blocks, in the order of the regions.

    A block that does not meet the policy alone is replaced by the region that it was cut from,
    until all do.
    """
    done: dict[Region, Grouped] = {}
    todo = list(root.leaves())
    while todo:
        widened: list[Region] = []
        for number, result in run([partial(rows.block, one) for one in todo]):
            region = todo[number]
            if isinstance(result, Grouped):
                done[region] = result
            elif isinstance(result, Unsatisfiable) and region is not root:
                widened.append(region)
            else:
                raise result if isinstance(result, DbanonError) else DbanonError("a worker failed")
            _tell(done.values(), rows.keys.num_rows, stages)
        todo = _parents(root, widened, done)
        if todo:
            stages.remark(f"blocks that cannot stand alone: {len(widened)}, joined with others")
    blocks = sorted(done.items(), key=lambda one: tuple(one[0].lo.tolist()))
    _require_all(blocks, rows)
    largest = max(len(grouped.groups.group) for _, grouped in blocks)
    stages.remark(f"blocks: {len(blocks)}, the largest of {largest:,} rows")
    return blocks


def _tell(done: Iterable[Grouped], n_rows: int, stages: Stages) -> None:
    sizes = [(len(one.groups.group), one.groups.ncp) for one in done]
    rows = sum(size for size, _ in sizes)
    if rows:
        stages.progress(rows / n_rows, sum(size * ncp for size, ncp in sizes) / rows)


def _require_all(blocks: Blocks, rows: Rows) -> None:
    """Raise DatabaseError if a block has other rows than its groups."""
    if any(len(grouped.groups.group) != len(rows.of[region]) for region, grouped in blocks):
        raise DatabaseError(
            "a worker did not return the rows of its block; nothing was published",
            hint="install the same release on every worker as here",
        )


def _require_shown(blocks: Sequence[tuple[Region, Grouped]], *, budget: int) -> None:
    """Raise DatabaseError if the blocks suppress more rows than the policy allows."""
    n_rows = sum(len(grouped.groups.group) for _, grouped in blocks)
    left_out = sum(int((grouped.groups.group < 0).sum()) for _, grouped in blocks)
    if left_out > budget:
        raise DatabaseError(
            f"{left_out:,} are left out of {n_rows:,} rows, and {budget:,} may be; nothing was"
            " published",
            hint="install the same release on every worker as here",
        )


def _parents(root: Region, widened: Sequence[Region], done: dict[Region, Grouped]) -> list[Region]:
    """Return the parents of some regions, and discard the results below these."""
    parents = dict.fromkeys(root.parent_of(region) or root for region in widened)
    highest = [one for one in parents if not any(up.parent_of(one) for up in parents)]
    for region in [one for one in done if any(up.parent_of(one) for up in highest)]:
        del done[region]
    return highest


def repaired(
    blocks: Blocks, root: Region, rows: Rows, run: Run, *, most: int, stages: Stages
) -> Moved:
    """Improve the costliest groups of neighbouring blocks together; return the improvements.

    most: maximum rows of the blocks that are improved at once.
    """
    ends = np.cumsum([len(grouped.groups.group) for _, grouped in blocks])
    first = dict(zip((region for region, _ in blocks), [0, *ends.tolist()], strict=False))
    grouped_by = dict(blocks)
    tasks, borders = [], []
    for regions in _neighbours(root, [region for region, _ in blocks], grouped_by, most=most):
        found = [(one, grouped_by[one].groups, grouped_by[one].border) for one in regions]
        borders.append(np.concatenate([border + first[one] for one, _, border in found]))
        counts = np.cumsum([0, *(len(groups.lo) for _, groups, _ in found)]).astype(np.int32)
        before = [g.group[border] + at for (_, g, border), at in zip(found, counts, strict=False)]
        places = rows.take(np.concatenate([rows.of[one][border] for one, _, border in found]))
        tasks.append(partial(ImproveBorder, places, np.concatenate(before)))
    better: dict[int, Groups] = {}
    for number, result in run(tasks):
        if isinstance(result, DbanonError):
            raise result
        if result is not None:
            better[number] = result  # type: ignore[assignment] # of such a task
    stages.remark(f"borders: {sum(len(borders[i]) for i in better):,} rows looked at again")
    return [(borders[number], better[number]) for number in sorted(better)]


def _neighbours(
    region: Region, regions: Sequence[Region], grouped: dict[Region, Grouped], *, most: int
) -> Iterator[list[Region]]:
    """Yield the blocks below the highest regions with few enough border rows."""
    below = [one for one in regions if one is region or region.parent_of(one) is not None]
    sizes = [len(grouped[one].border) for one in below]
    if len(below) < 2 or not sum(sizes):  # noqa: PLR2004 - there is a border between two
        return
    if sum(sizes) <= most:
        yield below
        return
    for part in region.parts:
        yield from _neighbours(part, below, grouped, most=most)


def joined(job: Job, blocks: Blocks, moved: Moved, rows: Rows) -> tuple[Outcome, SourceRows]:
    """Return all rows, block by block, and their groups."""
    domains = job.domains
    sensitive = np.empty((rows.keys.num_rows, len(rows.places)), np.int32)
    keys, own = rows.keys, None
    if PLACE in keys.column_names:
        keys, own = keys.drop_columns([PLACE]), keys.column(PLACE)
    columns = keys.select([])
    for i, (name, places) in enumerate(rows.places.items()):
        values = domains.values[name]
        sensitive[:, i] = values.codes[places]
        columns = columns.append_column(name, _texts(values, places.astype(np.int32)))
    groups = [grouped.groups for _, grouped in blocks]
    outcome = join(groups, moved, domains, sensitive, policy=job.policy)
    return outcome, SourceRows(keys, columns, places=own)


def counted_texts(domains: Domains) -> pa.Table:
    """Return the sensitive columns of all rows, each in an order of its own."""
    known = [domains.values[name] for name in domains.sensitive_names]
    places = [np.repeat(np.arange(len(v.rows), dtype=np.int32), v.rows) for v in known]
    texts = [pa.chunked_array([_texts(v, at)]) for v, at in zip(known, places, strict=True)]
    return pa.table(texts, names=list(domains.sensitive_names))


def _texts(values: Values, places: NDArray[np.int32]) -> pa.DictionaryArray:
    index = pa.array(places, mask=places == len(values.distinct))
    return pa.DictionaryArray.from_arrays(index, values.distinct)
