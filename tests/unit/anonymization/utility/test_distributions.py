"""Distributions over bins that the release shows."""

from datetime import UTC, date, datetime
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from builders import LETTERS, encoded, policy_of

from dbanon.anonymization.released.reading import of_texts
from dbanon.anonymization.utility.distributions import bins_of, categories_of, distribution
from dbanon.anonymization.utility.readings import readings_of
from dbanon.domain.table import ColumnKind


@pytest.mark.parametrize("kept", [1.0, 0.7])
def test_shares_that_stay_as_many_rows_are_left_out_are_not_apart(kept):
    letters, rows = "abcd", (40, 30, 20, 10)
    values = [letter for letter, count in zip(letters, rows, strict=True) for _ in range(count)]
    published = [round(kept * count) for count in rows]
    reading = reading_of(values, [*letters], kind=ColumnKind.CATEGORY, rows=published)
    found = distribution(reading, bins_of(reading))
    assert 0.0 == found.distance
    assert found.published == found.source


def reading_of(values, labels, *, kind, rows=None, **rule):
    """Return what readers make of labels of one column; values: those of the source."""
    table = encoded({"x": values}, kinds={"x": kind}, rules={"x": rule}, taxonomies=[LETTERS])
    shown = pa.table({"x": pa.array(labels, pa.string())})
    counts = np.array(rows or [1] * len(labels), np.int64)
    released = of_texts(table, shown, counts, policy=policy_of(["x"], rules={"x": rule}))
    return readings_of(released)[0]


def test_bins_of_a_tree_are_labels_and_what_is_above_them():
    reading = reading_of(
        [*"aabbccddggee"], ["P", "U"], kind=ColumnKind.CATEGORY, taxonomy="letters", rows=[6, 6]
    )
    found = distribution(reading, bins_of(reading))
    assert ("P", "U", "other values") == found.bins  # a, which no label shows, is another
    assert (0.333333, 0.5, 0.166667) == found.source
    assert (0.5, 0.5, 0.0) == found.published
    assert found.distance == pytest.approx(1 / 6, abs=1e-6)
    assert found.shift is None


def test_bins_are_at_the_level_of_most_published_rows():
    kind, letters = ColumnKind.CATEGORY, [*"abcdefg"]
    coarse = reading_of(letters, ["U", "P", "d"], kind=kind, taxonomy="letters", rows=[9, 9, 1])
    assert ("P", "U", "other values") == categories_of(coarse).names
    fine = reading_of(letters, ["b", "c", "d"], kind=kind, taxonomy="letters")
    assert ("b", "c", "d", "other values") == categories_of(fine).names
    nothing = reading_of(letters, ["*"], kind=kind, taxonomy="letters")
    assert bins_of(nothing) is None


def test_bins_of_sets_are_their_elements():
    letters, kind = [*"abcdefg", None], ColumnKind.CATEGORY
    reading = reading_of(
        letters, ["{b,d}", "{b,NULL}"], kind=kind, taxonomy="letters", recoding="set"
    )
    bins = categories_of(reading)
    assert ("b", "d", "NULL", "other values") == bins.names
    assert [1.0, 0.5, 0.5, 0.0] == bins.of_release(reading).tolist()
    assert [1.0, 1.0, 1.0, 5.0] == bins.of_source(reading).tolist()


def test_values_of_an_order_are_bins_where_they_end_a_published_range():
    order = ("tiny", "small", "middle", "large", "huge")
    reading = reading_of(
        [*order], ["[small, large]", "huge", "*"], kind=ColumnKind.CATEGORY, order=order,
        recoding="interval-text",
    )  # fmt: skip
    bins = categories_of(reading)
    assert ("small", "large", "huge", "other values") == bins.names
    # of the three between small and large, and of all five below the star
    expected = [1 / 3 + 1 / 5, 1 / 3 + 1 / 5, 1 + 1 / 5, 1 / 3 + 2 / 5]
    assert expected == pytest.approx(bins.of_release(reading).tolist())


def test_of_many_values_those_of_most_rows_have_bins():
    values = [f"v{i:03}" for i in range(60)]
    labels = values[:50]
    rows = [100 if i in {7, 41} else 1 for i in range(50)]
    reading = reading_of(values, labels, kind=ColumnKind.CATEGORY, rows=rows)
    names = categories_of(reading).names
    assert len(names) == 24
    assert {"v007", "v041", "other values"} < {*names}
    assert {*names} <= {*labels, "other values"}


def grid(values, labels, *, kind=ColumnKind.INTEGER, **rule):
    reading = reading_of(values, labels, kind=kind, recoding="interval", **rule)
    return reading, bins_of(reading)


def test_numbers_have_a_round_grid_over_what_is_published_and_not_over_the_source():
    values = [3, 21, 22, 38, 41, 997]
    reading, bins = grid(values, ["[21,22]", "[38,41]", "(,)"])
    edges = [float(name[1:-1].split(",")[0]) for name in bins.names]
    assert (21.0, 41.0) == (edges[0], edges[-1])
    assert {1.0} == {b - a for a, b in pairwise(edges)}
    source = bins.of_source(reading)
    assert (2.0, 6.0) == (source[0], source.sum())  # 3 is below the first, 997 above the last
    assert 2.0 == source[-1]
    published = bins.of_release(reading)
    assert pytest.approx(0.5 + 1 / 21) == published[0]  # so far reaches a range without an end
    assert pytest.approx(3.0) == published.sum()


def test_ends_that_a_label_leaves_open_are_not_shown():
    reading, bins = grid([17, 30, 40, 95, 99], ["[20,40)", "[40,60)", "[60,)"])
    assert not any("9" in name for name in bins.names)
    assert [bins.names[-1]] == [name for name in bins.names if name.endswith(") or more")]
    assert not bins.names[0].endswith("or less")
    assert 5.0 == bins.of_source(reading).sum()


def test_whole_numbers_are_spread_over_whole_numbers():
    reading, bins = grid([*range(10, 50)], ["[10,29]", "[30,49]"])
    assert "[10, 12)" == bins.names[0]
    assert [2.0] * 20 == bins.of_source(reading).tolist()
    assert [0.1] * 20 == [pytest.approx(mass) for mass in bins.of_release(reading)]
    reading, bins = grid([*range(10, 50)] * 8, ["[10,29]", "[30,49]"] * 150)
    found = distribution(reading, bins)
    assert (0.0, 0.0) == (found.distance, found.shift)


def test_a_shift_is_how_far_rows_move_over_all_bins():
    reading, bins = grid([10, 10, 10, 30], ["[10,10]", "[30,30]"])
    assert 0.25 == distribution(reading, bins).shift


def test_a_distance_is_half_the_sum_of_all_differences():
    reading, bins = grid([10, 10, 10, 30], ["[10,10]", "[30,30]"])
    found = distribution(reading, bins)
    assert (0.75, 0.25) == (found.source[0], found.source[-1])
    assert (0.5, 0.5) == (found.published[0], found.published[-1])
    assert 0.25 == found.distance


def test_dates_have_bins_of_periods():
    days = [date(2019, 1, 5), date(2019, 3, 9), date(2020, 2, 2), date(2021, 12, 24)]
    reading, bins = grid(
        days, ["[2019-01-05,2019-03-09]", "[2020-02-02,2021-12-24]"], kind=ColumnKind.DATE
    )
    assert ("2019-Q1", "2021-Q4") == (bins.names[0], bins.names[-1])
    assert [2.0, 1.0] == bins.of_source(reading)[[0, 4]].tolist()
    assert pytest.approx(1.0) == bins.of_release(reading)[0]


@pytest.mark.parametrize(
    ("kind", "values", "ends", "last"),
    [
        (ColumnKind.FLOAT, [0.5, 19.5], ("0", "10", "20"), "[19, 20)"),
        (
            ColumnKind.TIMESTAMPTZ,
            [datetime(2023, 1, 5, 8, tzinfo=UTC), datetime(2023, 12, 31, 23, tzinfo=UTC)],
            ("2023-01-01 00:00:00+00", "2023-06-01 00:00:00+00", "2024-01-01 00:00:00+00"),
            "2023-12",
        ),
    ],
)
def test_no_bin_begins_where_ranges_end_that_do_not_have_their_end(kind, values, ends, last):
    labels = [f'["{low}","{high}")' for low, high in pairwise(ends)]
    _, bins = grid(values, labels, kind=kind)
    assert last == bins.names[-1]
    _, bins = grid(values, [labels[0], labels[1].replace(")", "]")], kind=kind)
    assert last == bins.names[-2]


def test_centuries_of_dates_have_few_bins():
    days = [date(1, 1, 1), date(1500, 1, 1), date(9999, 12, 31)]
    _, bins = grid(
        days, ["[0001-01-01,1500-01-01]", "[9999-12-31,9999-12-31]"], kind=ColumnKind.DATE
    )
    assert len(bins.names) <= 24
    assert bins.names[0].startswith("000")


def test_nulls_have_a_bin_where_they_are_published():
    reading, bins = grid([1, 5, 9, None, None], ["[1,5]", "[9,9]", None])
    assert "NULL" == bins.names[-1]
    assert (2.0, 1.0) == (bins.of_source(reading)[-1], bins.of_release(reading)[-1])
    reading, bins = grid([1, 5, 9, None, None], ["[1,5]", "(,)"])
    assert "NULL" not in bins.names
    assert 3.0 == bins.of_source(reading).sum()


def test_sets_of_numbers_are_spread_over_their_elements():
    reading = reading_of(
        [10, 12, 30, None], ["{10,30}", "{12,NULL}"], kind=ColumnKind.INTEGER, recoding="set"
    )
    bins = bins_of(reading)
    assert [1, 1, 1, 1] == bins.of_source(reading)[[0, 2, -2, -1]].tolist()
    assert [0.5, 0.5, 0.5, 0.5] == bins.of_release(reading)[[0, 2, -2, -1]].tolist()
