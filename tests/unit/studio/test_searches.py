import pytest

from dbanon.domain.report import Distribution
from dbanon.studio.searches import frequent


def shown(*rows, least):
    """Return what is shown of values and their rows, of which as many are published."""
    shares = tuple(n / sum(rows) for n in rows)
    found = Distribution("illness", tuple("abcdef"[: len(rows)]), shares, shares, distance=0.0)
    kept = frequent(found, n_rows=sum(rows), least=least)
    assert kept.source == kept.published
    return dict(zip(kept.bins, [round(share * sum(rows)) for share in kept.source], strict=True))


def test_rare_values_are_not_shown():
    assert {"a": 50, "b": 5} == shown(50, 5, least=5)
    assert {"a": 50} == shown(50, 4, 2, least=5)
    assert {"a": 50, "c": 0} == shown(50, 4, 0, least=5)
    assert {} == shown(3, least=5)


@pytest.mark.parametrize("least", [2, 3, 10])
def test_no_number_is_below_the_least(least):
    found = shown(1, 2, 3, 40, 9, 1, least=least)
    assert all(n >= least for n in found.values())


def test_nothing_is_shown_if_the_rows_are_unknown():
    found = Distribution("illness", ("a", "b"), (0.7, 0.3), (0.7, 0.3), distance=0.0)
    assert () == frequent(found, n_rows=1, least=5).source
