"""Parts of a table that are grouped apart are one release."""

import numpy as np
import pytest
from builders import encoded, policy_of

from dbanon.anonymization.outcome import join, nobody
from dbanon.anonymization.problem import Problem, solve
from dbanon.domain.outcomes import Stages

PEOPLE = {"age": [20, 21, 22, 23, 60, 61, 62, 63], "sex": ["f", "f", "m", "m", "m", "m", "f", "f"]}
HALVES = (np.arange(4), np.arange(4, 8))
POLICY = policy_of(PEOPLE, ["disease"], k=2, algorithm="mdav")


@pytest.fixture
def table():
    return encoded(PEOPLE, {"disease": ["flu", "cold"] * 4})


def grouped(table, rows):
    return solve(Problem(table.take(rows), POLICY), seed=1, stages=Stages())


def shown(outcome):
    """Return what is published of each row, None of those that are left out."""
    columns = outcome.values.columns
    return [
        None if group < 0 else tuple(column.labels[column.index[group]] for column in columns)
        for group in outcome.assignment.group
    ]


def test_every_row_is_published_as_in_its_part(table):
    parts = [grouped(table, rows) for rows in HALVES]
    joined = join(parts)
    assert [label for part in parts for label in shown(part)] == shown(joined)
    assert sum(part.values.n_groups for part in parts) == joined.values.n_groups
    assert set(range(joined.assignment.n_groups)) == set(joined.assignment.group.tolist())


def test_the_loss_is_that_of_all_rows(table):
    parts = [grouped(table, rows).loss for rows in HALVES]
    found = join([grouped(table, rows) for rows in HALVES]).loss
    assert (8, 0) == (found.n_rows, found.n_suppressed)
    assert sum(part.n_classes for part in parts) == found.n_classes
    assert pytest.approx(sum(part.ncp for part in parts) / 2) == found.ncp
    assert pytest.approx({n: sum(p.columns[n] for p in parts) / 2 for n in PEOPLE}) == found.columns


def test_whom_nobody_could_group_is_left_out(table):
    few = table.take(np.arange(3))
    found = join([grouped(table, HALVES[0]), nobody(few)])
    assert shown(grouped(table, HALVES[0])) + [None] * 3 == shown(found)
    assert (7, 3) == (found.loss.n_rows, found.loss.n_suppressed)
    assert found.loss.ncp > 3 / 7


def test_without_a_class_there_is_nothing_to_publish(table):
    found = join([nobody(table)])
    assert (0, 8, 1.0) == (found.values.n_groups, found.loss.n_suppressed, found.loss.ncp)
    assert [None] * 8 == shown(found)
