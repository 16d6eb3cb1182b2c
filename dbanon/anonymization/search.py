"""Search for groups of rows: several groupings are tried, the cheapest is returned."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.adjusting.merging import cover_or_coarsen, require_possible
from dbanon.anonymization.adjusting.repair import finish, outlier_advice, rows_in_reach
from dbanon.anonymization.adjusting.resize import cut
from dbanon.anonymization.algorithms.clustering.growth import KMember
from dbanon.anonymization.algorithms.lattice.full_domain import FullDomain
from dbanon.anonymization.algorithms.lattice.nodes import lattice
from dbanon.anonymization.algorithms.partitioning.mondrian import Mondrian
from dbanon.anonymization.auto.algorithm import Auto
from dbanon.anonymization.auto.plans import SMALL
from dbanon.anonymization.interfaces import Algorithm, Requirement, listens, timed
from dbanon.anonymization.loss.costs import column_costs, pack
from dbanon.anonymization.loss.metrics import information_loss, interval_loss, report
from dbanon.anonymization.outcome import certify, publish, published_values, requirement_of, rest_of
from dbanon.anonymization.registry import ALGORITHMS, algorithm_named, make_algorithm, recoding_of
from dbanon.anonymization.threads import GivenUp, aside
from dbanon.domain.assignment import Assignment, EncodedTable
from dbanon.domain.errors import DbanonError, Unsatisfiable
from dbanon.domain.outcomes import Stages
from dbanon.domain.table import quote_identifier
from dbanon.formats.support import Mode, require

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from dbanon.anonymization.auto.space import Loss
    from dbanon.anonymization.encoding.population import Population
    from dbanon.domain.policy import Policy
    from dbanon.kernels.layout import Int64s


_PAIRS = 200_000_000  # rows times rows times columns
_COUNTED = 1_000_000  # nodes times distinct rows, a node counting as this many rows
_OF_A_NODE = 100


def least(
    auto: Auto,
    table: EncodedTable,
    requirement: Requirement,
    *,
    price: Callable[[Assignment], tuple[bool, float]],
    budget: int,
    seed: int,
    stages: Stages,
) -> Assignment:
    """Return the groups with the least loss after recoding, among the proposals of ``auto``.

    For few rows, the candidates include the groups of simpler algorithms and, if rows may be
    suppressed, groups without suppression; not after a time limit or stop. price: returns if groups
    fail the policy when published, and their loss. Raises Unsatisfiable if no candidate works.
    """
    found, failed, heard, before = [], [], stages, len(stages.remarks)
    candidates = _candidates(auto, table, requirement, budget=budget, seed=seed, stages=stages)
    for assignment, allowed in candidates:
        try:
            groups = finish(table, assignment, requirement, budget=allowed, stages=heard)
            found.append((groups, heard.remarks))
        except Unsatisfiable as error:
            failed.append(error)
        heard = Stages(shared=stages.shared)  # other candidates report no progress
    if not found:
        raise failed[0]
    best, remarks = min(found, key=lambda one: price(one[0])) if len(found) > 1 else found[0]
    if remarks is not stages.remarks:
        stages.remarks[before:] = remarks
    return best


def _candidates(
    auto: Auto,
    table: EncodedTable,
    requirement: Requirement,
    *,
    budget: int,
    seed: int,
    stages: Stages,
) -> Iterator[tuple[Assignment, int]]:
    """Yield groups with their suppression budget, those of ``auto`` first."""
    own = auto.proposals(table, requirement, seed=seed)
    yield own[0], budget
    is_counted = table.n_rows > SMALL and not requirement.demands
    if is_counted or any(column.rule.rare is not None for column in table.quasi):
        return
    for assignment in own:
        if stages.stopped:
            return
        if assignment is not own[0]:
            yield assignment, budget
        if budget > 0 and assignment.n_suppressed == 0:
            yield assignment, 0
    if auto.time_limit is not None:
        return
    for peer in _peers(table):
        for allowed in {budget, 0}:
            asked = requirement if allowed else replace(requirement, max_suppressed=0.0)
            try:
                yield peer.assign(table, asked, seed=seed), allowed
            except Unsatisfiable:  # then it is none
                continue


def _peers(table: EncodedTable) -> Iterator[Algorithm]:
    """Yield the simpler algorithms that are fast on this table."""
    if table.n_rows > SMALL or table.n_rows**2 * len(table.quasi) > _PAIRS:
        return
    yield from (Mondrian(), KMember())
    levels = lattice(table)
    if levels.n_nodes * (levels.base.n_classes + _OF_A_NODE) <= _COUNTED:
        yield FullDomain()


def assign_in_blocks(
    algorithm: Algorithm,
    table: EncodedTable,
    requirement: Requirement,
    *,
    block: int | None,
    seed: int,
    stages: Stages,
) -> Assignment:
    """Group the rows of each block separately; block: approximate rows, None for one block.

    Blocks are the groups of relaxed Mondrian with k = max(block // 2, k). Each meets the
    requirement and has fewer than max(block, 2k) rows, unless its rows are equal or diversity
    forbids a cut. Scales and taxonomies are those of the whole table, except for algorithms that
    standardize. After a stop, Mondrian groups the remaining blocks. Blocks must meet k and l only,
    not models that compare with the whole table.
    """
    if block is None or table.n_rows <= max(block, 2 * requirement.k - 1):
        return algorithm.assign(table, requirement, seed=seed)
    requirement = replace(requirement, demands=())
    wide = Requirement(max(block // 2, requirement.k), requirement.l)
    blocks = cut(table, wide, relaxed=True).members
    group = np.empty(table.n_rows, np.int32)
    n_groups, cost, grouped = 0, 0.0, 0
    for done, rows in enumerate(blocks, 1):
        assign = (
            partial(cut, relaxed=True) if stages.stopped else partial(algorithm.assign, seed=seed)
        )
        part = part_of(table, rows)
        found = _assign(assign, part, requirement, block=block)
        group[rows] = np.where(found.group < 0, found.group, found.group + n_groups)
        n_groups += found.n_groups
        cost += _cost(part, found)
        grouped += len(rows)
        stages.progress(done / len(blocks), cost / grouped)
    return Assignment(group, n_groups)


def part_of(table: EncodedTable, rows: Int64s) -> EncodedTable:
    """Return some rows with dense sensitive codes: kernels allocate by the greatest code."""
    part = table.take(rows)
    for i, codes in enumerate(part.sensitive.T):
        part.sensitive[:, i] = np.unique(codes, return_inverse=True)[1]
    return replace(part, domains=())


def _assign(
    assign: Callable[[EncodedTable, Requirement], Assignment],
    part: EncodedTable,
    requirement: Requirement,
    *,
    block: int,
) -> Assignment:
    if all((column.codes == column.codes[0]).all() for column in part.quasi):
        return Assignment(np.zeros(part.n_rows, np.int32), 1)
    try:
        return assign(part, requirement)
    except Unsatisfiable as error:
        if part.n_rows <= max(block, 2 * requirement.k - 1):
            raise
        msg = f"{error}: l = {requirement.l} keeps {part.n_rows:,} rows in one block"
        raise Unsatisfiable(msg, hint="--algorithm auto") from None


def _cost(part: EncodedTable, found: Assignment) -> float:
    """Return the certainty penalty of a block: the sum over rows of the mean over columns."""
    from dbanon.kernels.boxes.costs import box_costs, group_boxes

    lo, hi, size = group_boxes(part.codes, found.group, found.n_groups)
    costs = box_costs(*pack([column_costs(column) for column in part.quasi]), lo, hi)
    return float((costs.mean(axis=1) * size).sum()) + found.n_suppressed


def search_rows(
    encoded: EncodedTable,
    policy: Policy,
    *,
    seed: int,
    stages: Stages,
    population: Population | None = None,
) -> Assignment:
    """Group rows, each a unit of its own; the result is not certified yet. Raises as ``solve``."""
    requirement = requirement_of(encoded, policy)
    if encoded.kept_columns:
        require(Mode.APART, policy)
    for column in encoded.quasi:
        recoding_of(column)
    require_possible(encoded, policy, population, publish=partial(published_values, encoded))
    with stages("cluster"):
        from dbanon.kernels.compilation import on_compile

        with on_compile(lambda: stages.note("compiling kernels (once)")) as compiled:
            task = partial(_searched, encoded, policy, requirement, population, seed=seed)
            assignment = _unless_stopped(task, policy, stages)
    if compiled.seconds:
        stages.seconds["cluster"] -= compiled.seconds
        stages.seconds["compile"] = stages.seconds.get("compile", 0.0) + compiled.seconds
    return assignment


def _unless_stopped(
    search: Callable[..., Assignment], policy: Policy, stages: Stages
) -> Assignment:
    """Return the result of a search; raise KeyboardInterrupt if it is stopped without one."""
    listening = listens(algorithm_named(policy.algorithm))
    try:
        return aside(partial(search, stages=stages), until=lambda: stages.stopped and not listening)
    except GivenUp:
        raise KeyboardInterrupt from None  # nothing was found so far


def _searched(
    encoded: EncodedTable,
    policy: Policy,
    requirement: Requirement,
    population: Population | None,
    *,
    seed: int,
    stages: Stages,
) -> Assignment:
    """Group the rows by the policy's algorithm, coarser if its population models require it."""
    if encoded.kept_columns:
        return _group_apart(encoded, policy, seed=seed, stages=stages)
    algorithm = make_algorithm(policy, stages=stages)
    grouped = partial(_grouped, encoded, policy=policy, seed=seed, stages=stages)
    assignment = grouped(requirement, algorithm)
    if population is None:
        return assignment
    levels = _of_levels(algorithm, policy)
    return cover_or_coarsen(
        encoded,
        assignment,
        policy,
        population,
        publish=partial(published_values, encoded),
        regroup=lambda k: grouped(replace(requirement, k=k), levels),
    )


def _of_levels(algorithm: Algorithm, policy: Policy) -> Algorithm:
    """Return an algorithm for regrouping into classes that share no persons."""
    free = listens(algorithm_named(policy.algorithm))
    return ALGORITHMS["full-domain"]() if free else algorithm


def _grouped(
    encoded: EncodedTable,
    requirement: Requirement,
    algorithm: Algorithm,
    *,
    policy: Policy,
    seed: int,
    stages: Stages,
) -> Assignment:
    """Group the rows that can meet every model; suppress and merge as the policy requires."""
    rows = rows_in_reach(encoded, requirement)
    for text in outlier_advice(encoded, rows, requirement):
        stages.note(text)
    if len(rows) == encoded.n_rows:
        part, left = encoded, requirement.budget(encoded.n_rows)
    else:
        part = encoded.take(rows)
        left = requirement.budget(encoded.n_rows) - (encoded.n_rows - len(rows))
        requirement = replace(requirement, max_suppressed=left / len(rows))
    if isinstance(algorithm, Auto):
        price = partial(_price, part, policy, budget=left, loss=algorithm.loss)
        assignment = least(
            algorithm, part, requirement, price=price, budget=left, seed=seed, stages=stages
        )
    else:
        assignment = assign_in_blocks(
            algorithm, part, requirement, block=policy.block, seed=seed, stages=stages
        )
        assignment = finish(part, assignment, requirement, budget=left, stages=stages)
    if part is encoded:
        return assignment
    return Assignment.of_parts(encoded.n_rows, [(rows, assignment)])


def _price(
    encoded: EncodedTable, policy: Policy, assignment: Assignment, *, budget: int, loss: Loss
) -> tuple[bool, float]:
    """Return if groups fail the policy when published, and their loss."""
    published = publish(encoded, policy, assignment)
    if any(column.end for column in encoded.quasi):
        lost = interval_loss(published, heights=loss == "il")
    else:
        lost = information_loss(published) if loss == "il" else report(published, {}).asked
    try:
        certify(published, policy, None, budget=budget)
    except DbanonError:
        return True, lost
    return False, lost


def _group_apart(table: EncodedTable, policy: Policy, *, seed: int, stages: Stages) -> Assignment:
    """Group the rows of each combination of kept values separately, within the policy's budget."""
    possible, lost = [], 0
    for rows in strata(table):
        if is_possible(table.take(rows), policy):
            possible.append(rows)
        else:
            lost += len(rows)
    allowed = rest_of(policy, table.n_rows, lost=lost)
    if allowed is None:
        raise _too_few(table, lost)
    parts = []
    for rows in possible:
        part = table.take(rows)
        own = timed(allowed, share=part.n_rows / table.n_rows)
        algorithm = make_algorithm(own, stages=stages)
        found = _grouped(
            part, requirement_of(part, own), algorithm, policy=own, seed=seed, stages=stages
        )
        parts.append((rows, found))
    return Assignment.of_parts(table.n_rows, parts)


def strata(table: EncodedTable) -> Iterator[NDArray[np.int64]]:
    """Yield the rows of each combination of kept values; all rows if no column is kept."""
    if not table.kept_columns:
        yield np.arange(table.n_rows)
        return
    codes = np.column_stack([column.codes for column in table.kept_columns])
    of_row = np.unique(codes, axis=0, return_inverse=True)[1].ravel().astype(np.int32)
    yield from Assignment(of_row, int(of_row.max(initial=-1)) + 1).members


def is_possible(part: EncodedTable, policy: Policy) -> bool:
    """Return True if these rows, as one class, meet the policy without suppression."""
    try:
        rows_in_reach(part, replace(requirement_of(part, policy), max_suppressed=0.0))
    except Unsatisfiable:
        return False
    return True


def _too_few(table: EncodedTable, lost: int) -> Unsatisfiable:
    names = ", ".join(quote_identifier(column.name) for column in table.kept_columns)
    msg = f"{lost:,} of {table.n_rows:,} rows cannot keep their values of {names}"
    return Unsatisfiable(
        f"{msg}: those that share them do not meet the policy",
        hint="raise --max-suppressed, or leave keep out of the policy",
    )
