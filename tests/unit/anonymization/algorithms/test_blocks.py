from dataclasses import dataclass, field
from typing import ClassVar

import naive
import numpy as np
import pytest
from builders import encoded, policy_of, tables_and_requirements
from hypothesis import given
from hypothesis import strategies as st

from dbanon.anonymization.algorithms.microaggregation.microaggregation import Mdav
from dbanon.anonymization.algorithms.partitioning.mondrian import Mondrian
from dbanon.anonymization.interfaces import Requirement, require_at_most
from dbanon.anonymization.problem import Problem, solve
from dbanon.anonymization.search import assign_in_blocks, part_of
from dbanon.domain.assignment import Assignment
from dbanon.domain.errors import Unsatisfiable
from dbanon.domain.outcomes import Stages


@dataclass
class Recorder:
    """Groups all rows of a block into one, and keeps the blocks."""

    MAX_ROWS: ClassVar[int] = 10
    limited: bool = False
    suppress: int = 0
    stages: Stages | None = None
    blocks: list = field(default_factory=list)

    def assign(self, table, requirement, *, seed):  # noqa: ARG002 - the interface's
        if self.limited:
            require_at_most(self.MAX_ROWS, table, algorithm="recorder")
        if self.stages is not None:
            self.stages.stopped = True
        self.blocks.append(table)
        group = np.zeros(table.n_rows, np.int32)
        group[: self.suppress] = -1
        return Assignment(group, 1)


def in_blocks(algorithm, table, k, l=1, *, block, stages=None):
    return assign_in_blocks(
        algorithm, table, Requirement(k, l), block=block, seed=0, stages=stages or Stages()
    )


@given(tables_and_requirements(weights=(1.0, 0.25)), st.integers(1, 40), st.booleans())
def test_blocks_joined_are_a_partition_that_meets_the_requirement(drawn, block, far):
    table, k, l = drawn
    found = in_blocks(Mdav() if far else Mondrian(), table, k, l, block=block)
    assert (table.n_rows, np.int32) == (len(found.group), found.group.dtype)
    assert list(range(found.n_groups)) == sorted(set(found.group.tolist()))
    for rows in naive.members(found):
        assert len(rows) >= k
        assert naive.is_diverse(table, rows, l)


@given(tables_and_requirements(), st.integers(1, 40))
def test_every_block_is_small_or_cannot_be_cut(drawn, block):
    table, k, _ = drawn
    recorder = Recorder()
    found = in_blocks(recorder, table, k, block=block)
    for part in recorder.blocks:
        assert k <= part.n_rows <= max(block, 2 * k - 1)
    handed = sum(part.n_rows for part in recorder.blocks)
    left = [rows for rows in naive.members(found) if len(rows) > max(block, 2 * k - 1)]
    assert all(naive.cost(table, rows) == 0 for rows in left)
    assert handed + sum(map(len, left)) <= table.n_rows


@given(tables_and_requirements(), st.data())
def test_a_part_keeps_the_scales_of_the_whole(drawn, data):
    table, _, _ = drawn
    rows = data.draw(st.lists(st.integers(0, table.n_rows - 1), min_size=1, unique=True))
    part = part_of(table, np.array(rows))
    assert len(rows) == part.n_rows
    for column, of_part in zip(table.quasi, part.quasi, strict=True):
        assert column.codes[rows].tolist() == of_part.codes.tolist()
        assert (column.size, column.position.tolist()) == (of_part.size, of_part.position.tolist())
        assert column.taxonomy is of_part.taxonomy
    for i, codes in enumerate(table.sensitive[rows].T):
        of_part = part.sensitive[:, i].tolist()
        assert sorted(set(of_part)) == list(range(len(set(codes.tolist()))))
        assert len(set(zip(codes.tolist(), of_part, strict=True))) == len(set(of_part))


def test_a_table_no_larger_than_a_block_is_grouped_as_a_whole():
    table = encoded({"x": list(range(8))})
    recorder = Recorder()
    in_blocks(recorder, table, 2, block=8)
    assert [table] == recorder.blocks


def test_rows_that_the_algorithm_leaves_out_stay_out():
    table = encoded({"x": list(range(32))})
    found = in_blocks(Recorder(suppress=1), table, 2, block=8)
    assert found.n_suppressed == found.n_groups >= 4
    assert list(range(found.n_groups)) == sorted(set(found.group.tolist()) - {-1})


def test_equal_rows_are_one_group_however_many_they_are():
    table = encoded({"x": [1] * 100 + [2] * 3 + [9] * 3, "y": ["a"] * 106})
    found = in_blocks(Recorder(limited=True), table, 3, block=6)
    assert 100 == np.bincount(found.group).max()


def test_a_block_that_diversity_keeps_together_is_refused_with_the_reason():
    diseases = ["flu"] * 59 + ["cold"]
    table = encoded({"x": list(range(60))}, {"disease": diseases})
    with pytest.raises(Unsatisfiable, match="l = 2 keeps 60 rows in one block") as caught:
        in_blocks(Recorder(limited=True), table, 3, 2, block=8)
    assert "--algorithm auto" == caught.value.hint


def test_a_block_larger_than_the_algorithm_takes_is_refused_as_the_algorithm_does():
    table = encoded({"x": list(range(60))})
    with pytest.raises(Unsatisfiable, match="at most 10 rows") as caught:
        in_blocks(Recorder(limited=True), table, 3, block=30)
    assert "--block 10" in caught.value.hint


def test_progress_is_told_with_the_loss_so_far():
    told = []
    stages = Stages(on_progress=lambda done, loss: told.append((done, loss)))
    table = encoded({"x": list(range(32)), "y": ["a"] * 32})
    found = in_blocks(Recorder(), table, 2, block=8, stages=stages)
    assert [(i + 1) / found.n_groups for i in range(found.n_groups)] == [done for done, _ in told]
    cost = sum(len(rows) * naive.cost(table, rows) for rows in naive.members(found))
    assert cost / (32 * 2) == pytest.approx(told[-1][1])


def test_who_asks_to_stop_gets_the_other_blocks_from_mondrian():
    stages = Stages()
    recorder = Recorder(stages=stages)
    table = encoded({"x": list(range(32))})
    found = in_blocks(recorder, table, 2, block=8, stages=stages)
    assert 1 == len(recorder.blocks)
    sizes = sorted(map(len, naive.members(found)))
    assert recorder.blocks[0].n_rows == sizes[-1]
    assert {2, 3} >= set(sizes[:-1])


def test_a_policy_with_blocks_is_published_in_blocks():
    table = encoded({"x": list(range(40))})
    policy = policy_of(["x"], k=2, algorithm="mdav", block=10)
    outcome = solve(Problem(table, policy), seed=0, stages=Stages())
    assert 2 <= outcome.loss.smallest_class <= 10
