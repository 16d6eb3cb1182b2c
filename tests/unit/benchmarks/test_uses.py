"""What the benchmarks of uses ask and learn: as reports do, of releases of the same rows."""

import importlib
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def part(monkeypatch):
    """Return how to import a part of the benchmarks, whose folder is that of their scripts."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module


def test_releases_are_of_the_rows_that_are_named(part, monkeypatch):
    releases = part("analysts.releases")
    monkeypatch.setattr(releases, "WAYS", [way for way in releases.WAYS if way.name == "mondrian"])
    rows = np.arange(0, 3_000, 10)
    (release,) = releases.releases(releases.Setting(5, 1), rows=rows, not_quasi=("salary-class",))
    assert ("mondrian", 300, 300) == (
        release.name,
        release.seen.table.n_rows,
        release.seen.size.sum(),
    )
    assert "salary-class" not in [column.name for column in release.seen.columns]


def test_a_classifier_learns_cells_of_quasi_identifiers_and_values_of_what_is_not_one(
    part, monkeypatch
):
    releases, classifiers = part("analysts.releases"), part("analysts.classifiers")
    monkeypatch.setattr(releases, "WAYS", [way for way in releases.WAYS if way.name == "mondrian"])
    rows = np.arange(300)
    (release,) = releases.releases(releases.Setting(5, 1), rows=rows, not_quasi=("salary-class",))
    exact, learned = classifiers.of_source(release.seen), classifiers.of_release(release.seen)
    assert exact.shape == learned.shape
    n_values = len(release.seen.table.domains[0].labels)
    assert exact[:, -n_values:].tolist() == learned[:, -n_values:].tolist()  # the occupation
    sums = np.array([exact.sum(), learned.sum()])
    assert sums[0] == pytest.approx(sums[1], rel=0.01)
    assert (exact != learned).any()
