"""How the benchmarks read what is published, and the queries that they ask."""

import importlib
from pathlib import Path

import naive
import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def part(monkeypatch):
    """Return how to import a part of the benchmarks, whose folder is that of their scripts."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module


def test_a_cell_is_read_as_all_values_that_its_class_may_have_in_equal_shares(part):
    table = part("samples.datasets").load("adult", rows=120)
    scored = part("samples.published").publish(table, k=5, algorithm="mondrian")
    release = part("analysts.releases").as_read(table, scored)
    assert release.size.sum() == 120
    for column in table.encoded.quasi:
        shares, values = release.shares[column.name], release.values[column.name]
        assert np.ones(len(shares)) == pytest.approx(shares.sum(axis=1))
        for number, rows in enumerate(naive.members(scored.outcome.assignment)):
            codes = column.codes[rows].tolist()
            if column.taxonomy is None:
                low, high = column.values[min(codes)], column.values[max(codes)]
                may_be = list(range(low, high + 1))
            else:
                node = naive.common_ancestor(column.taxonomy, codes)
                leaves = naive.leaves_below(column.taxonomy, node)
                may_be = sorted(column.taxonomy.labels[leaf] for leaf in leaves)
            assert may_be == [values[place] for place in np.flatnonzero(shares[number])]
            assert len(set(shares[number][shares[number] > 0])) == 1


def test_an_estimate_multiplies_the_shares_of_its_conditions(part):
    counts, releases = part("analysts.counts"), part("analysts.releases")
    release = releases.Release(
        ncp=0.0,
        group=np.array([0, 0, 1, 1, 1, -1]),
        size=np.array([2, 3]),
        values={"age": [20, 21, 22], "sex": ["f", "m"]},
        shares={
            "age": np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]),
            "sex": np.array([[0.5, 0.5], [0.0, 1.0]]),
        },
    )
    asked = [
        counts.Question("sex", [1], low=21, high=22, count=4),  # 2 / 4 + 3
        counts.Question("sex", [0], low=20, high=20, count=1),  # 2 / 4
        counts.Question("sex", [0, 1], low=20, high=22, count=5),
    ]
    assert [0.125, 0.5, 0.0] == pytest.approx(counts.errors(release, asked).tolist())


def test_queries_are_answered_by_about_the_share_of_rows_that_is_asked_for(part):
    table = part("samples.datasets").load("adult", rows=2_000)
    counts, releases = part("analysts.counts"), part("analysts.releases")
    questions = counts.draw(table, 0.05, 20)
    assert len({question.column for question in questions}) > 2
    rows = table.source.to_pylist()
    for asked in questions:
        values = releases.domain(table, asked.column)
        wanted = {values[place] for place in asked.wanted}
        among = [row for row in rows if row[asked.column] in wanted]
        assert asked.count == sum(asked.low <= row["age"] <= asked.high for row in among)
        assert 100 <= asked.count <= 110


def test_a_classifier_learns_from_the_middle_of_ages_and_the_shares_of_the_other_values(part):
    classifiers = part("analysts.classifiers")
    cells = {
        "sex": np.array([[0.5, 0.5], [0.0, 1.0]]),
        "age": np.array([[0.5, 0.0, 0.5], [1.0, 0.0, 0.0]]),
    }
    made = classifiers.features(cells, {"age": [20, 21, 22], "sex": ["f", "m"]})
    assert [[21.0, 0.5, 0.5], [20.0, 0.0, 1.0]] == made.tolist()
