"""Cells in place of values, against what each floor is defined to be."""

import math
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, localcontext

import numpy as np
import pytest
from builders import LETTERS, encoded, policy_of, tree
from hypothesis import given
from hypothesis import strategies as st

from dbanon.anonymization.encoding.population import encode_population
from dbanon.anonymization.loss.metrics import (
    iloss,
    information_loss,
    publication,
)
from dbanon.anonymization.outcome import published_values
from dbanon.anonymization.problem import Problem, solve
from dbanon.anonymization.registry import ALGORITHMS, RECODINGS
from dbanon.domain.assignment import Assignment, GroupValues
from dbanon.domain.errors import PolicyError
from dbanon.domain.outcomes import Stages
from dbanon.domain.policy import PERIODS
from dbanon.domain.table import ColumnKind

UNBALANCED = tree("unbalanced", {"a": {}, "P": {"b": {}, "c": {}}, "U": {"V": {"d": {}, "e": {}}}})


def column_of(values, kind=None, **rule):
    kinds = {"x": kind} if kind else {}
    trees = [LETTERS, UNBALANCED]
    return encoded({"x": values}, kinds=kinds, rules={"x": rule}, taxonomies=trees).quasi[0]


def published(recoding, column, ids):
    """Return (label, loss) of every group."""
    assignment = Assignment(np.array(ids, np.int32), max(ids) + 1)
    result = RECODINGS[recoding].publish(column, assignment)
    return [(result.labels[i], round(float(result.loss[i]), 6)) for i in result.index]


def labels(recoding, column, ids):
    return [label for label, _ in published(recoding, column, ids)]


def dealt(draw, n):
    """Draw a group for each of n rows, every group having one."""
    ids = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    return np.unique(ids, return_inverse=True)[1].tolist()


@st.composite
def numbers(draw):
    values = draw(st.lists(st.integers(-40, 40), min_size=1, max_size=12))
    ends = sorted(draw(st.lists(st.integers(-40, 40), min_size=2, max_size=2)))
    floor = {
        "bands": draw(st.none() | st.sampled_from([1, 3, 10, 100])),
        "bottom": draw(st.none() | st.just(ends[0])),
        "top": draw(st.none() | st.just(ends[1])),
    }
    if set(floor.values()) == {None}:
        floor["bands"] = 7
    return values, dealt(draw, len(values)), floor


def cell(value, bands, bottom, top):
    """Return where the cell of a number begins, where it ends, and whether its end belongs to it.

    The definition: open cells first, then bands as far as these reach, else the number itself.
    """
    if bottom is not None and value < bottom:
        return -math.inf, bottom, ")"
    if top is not None and value >= top:
        return top, math.inf, ")"
    if bands is None:
        return value, value, "]"
    low = math.floor(Decimal(value) / bands) * bands
    ends = -math.inf if bottom is None else bottom, math.inf if top is None else top
    return max(low, ends[0]), min(low + bands, ends[1]), ")"


def literal(low, high, closing):
    begin = "(" if low == -math.inf else f"[{low}"
    return f"{begin}," + (")" if high == math.inf else f"{high}{closing}")


@given(numbers())
def test_every_range_is_the_union_of_the_cells_of_its_values(drawn):
    values, ids, floor = drawn
    found = labels("interval", column_of(values, **floor), ids)
    for group, label in enumerate(found):
        cells = [cell(value, **floor) for value, g in zip(values, ids, strict=True) if g == group]
        low, (_, high, closing) = min(low for low, _, _ in cells), max(cells, key=lambda c: c[:2])
        assert literal(low, high, closing) == label


@given(numbers())
def test_no_bound_of_bands_follows_the_extremes(drawn):
    """Other values in the same cells are published as the same ranges."""
    values, ids, floor = drawn
    floor["bands"] = floor["bands"] or 10
    others = []
    for value in values:
        low, high, _ = cell(value, **floor)
        others.append(max(low, -45) if high == math.inf or low > -math.inf else high - 1)
    found = [labels("interval", column_of(some, **floor), ids) for some in (values, others)]
    assert found[0] == found[1]


@given(numbers())
def test_a_range_loses_its_width(drawn):
    values, ids, floor = drawn

    def ends(value):
        """Return the ends of a cell, an open one reaching as far as the values in it do."""
        low, high, _ = cell(value, **floor)
        bands = floor["bands"] or 1
        step = bool(floor["bands"])
        if low == -math.inf:
            low = min(values) // bands * bands if step else min(values)
        if high == math.inf:
            high = max(values) // bands * bands + bands if step else max(values)
        return low, high

    cells = [ends(value) for value in values]
    whole = max(high for _, high in cells) - min(low for low, _ in cells)
    for group, (_, loss) in enumerate(published("interval", column_of(values, **floor), ids)):
        mine = [c for c, g in zip(cells, ids, strict=True) if g == group]
        width = max(high for _, high in mine) - min(low for low, _ in mine)
        assert loss >= 0
        # labels that are the same share their losses, which are the same as well
        assert pytest.approx(width / (whole or 1), abs=1e-5) == loss


def first_and_next(day, period):
    """Return the first day of a period and of the next one, without array arithmetic."""
    first = {
        "day": day,
        "week": date.fromordinal((day.toordinal() - 1) // 7 * 7 + 1),
        "month": day.replace(day=1),
        "quarter": day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1),
        "year": day.replace(month=1, day=1),
        "decade": day.replace(year=max(day.year // 10 * 10, 1), month=1, day=1),
    }[period]
    days = {"day": 1, "week": 7, "month": 31, "quarter": 92, "year": 366, "decade": 3653}[period]
    if period in {"day", "week"}:
        return first, first + timedelta(days)
    after = first + timedelta(days)  # a day of the next period, or its first one
    if period == "decade":
        return first, date((day.year // 10 + 1) * 10, 1, 1)
    months = {"month": 1, "quarter": 3, "year": 12}[period]
    return first, after.replace(month=(after.month - 1) // months * months + 1, day=1)


@given(
    st.lists(st.dates(date(1, 1, 1), date(9980, 12, 31)), min_size=1, max_size=6),
    st.sampled_from(PERIODS),
)
def test_dates_are_published_as_whole_periods(days, period):
    cells = [first_and_next(day, period) for day in days]
    low, high = min(first for first, _ in cells), max(after for _, after in cells)
    column = column_of(days, at_least=period)
    assert [f"[{low},{high})"] == labels("interval", column, [0] * len(days))
    assert [(f"[{low},{high})", 1.0)] == published("interval", column, [0] * len(days))
    moments = [datetime(d.year, d.month, d.day, 23, 59, 59, 999_999) for d in days]  # noqa: DTZ001
    assert [f'["{low} 00:00:00","{high} 00:00:00")'] == labels(
        "interval", column_of(moments, at_least=period), [0] * len(days)
    )


def test_the_last_period_ends_past_the_last_date():
    column = column_of([date(9999, 12, 31)], at_least="decade")
    assert ["[9990-01-01,10000-01-01)"] == labels("interval", column, [0])


def test_moments_with_a_zone_are_cut_in_utc():
    moment = datetime(2020, 1, 1, tzinfo=UTC)
    column = column_of([moment], ColumnKind.TIMESTAMPTZ, at_least="month")
    expected = '["2020-01-01 00:00:00+00","2020-02-01 00:00:00+00")'
    assert [expected] == labels("interval", column, [0])


@pytest.mark.parametrize(
    ("period", "one", "two"),
    [
        ("day", "1984-12-31", "[1984-12-31, 1987-05-03]"),
        ("week", "1985-W01", "[1985-W01, 1987-W18]"),
        ("month", "1984-12", "[1984-12, 1987-05]"),
        ("quarter", "1984-Q4", "[1984-Q4, 1987-Q2]"),
        ("year", "1984", "[1984, 1987]"),
        ("decade", "1980-1989", "1980-1989"),
    ],
)
def test_people_read_the_names_of_periods(period, one, two):
    column = column_of([date(1984, 12, 31), date(1987, 5, 3), None], at_least=period)
    assert [one, two] == [
        labels("interval-text", column, [0, 1, 2])[0],
        labels("interval-text", column, [0, 0, 1])[0],
    ]
    assert ["*"] == labels("interval-text", column, [0, 0, 0])


def test_people_read_bands():
    column = column_of([17, 18, 35, 89, 97, None, None], bands=10, top=90, bottom=18)
    found = labels("interval-text", column, [0, 1, 1, 2, 3, 4, 4])
    assert ["<18", "[18, 40)", "[80, 90)", "90+", None] == found
    assert ["*", "80+", "<40"] == [
        labels("interval-text", column, [0, 0, 0, 0, 0, 1, 1])[0],
        labels("interval-text", column, [0, 0, 0, 1, 1, 0, 0])[1],
        labels("interval-text", column, [0, 0, 0, 1, 1, 1, 1])[0],
    ]


def test_without_bands_what_lies_between_is_published_as_ever():
    column = column_of([5, 17, 18, 20, 89, 90, 95], top=90, bottom=18)
    assert ["<18", "18", "[20, 89]", "90+"] == labels(
        "interval-text", column, [0, 0, 1, 2, 2, 3, 3]
    )
    assert ["<=18", "20+"] == labels("interval-text", column, [0, 0, 0, 1, 1, 1, 1])
    assert ["(,18]", "[20,)"] == labels("interval", column, [0, 0, 0, 1, 1, 1, 1])


def test_bands_of_fractions_are_exact():
    column = column_of([0.3, 0.7, 1e22], ColumnKind.DECIMAL, bands=0.1)
    assert ["[0.3,0.4)", "[0.7,0.8)", "[10000000000000000000000,10000000000000000000000.1)"] == (
        labels("interval", column, [0, 1, 2])
    )


@given(
    st.lists(
        st.floats(-1e4, 1e4)
        | st.sampled_from([0.1, 0.30000000000000004, -2.5, 1e-25, 5e-324, 7e18, 1e300]),
        min_size=1,
        max_size=5,
    ),
    st.sampled_from([0.1, 0.25, 3, 1e6]),
)
def test_bands_of_any_fractions_are_exact(values, bands):
    (label,) = labels(
        "interval", column_of(values, ColumnKind.FLOAT, bands=bands), [0] * len(values)
    )
    low, high = map(Decimal, label[1:-1].split(","))
    step, exact = Decimal(repr(bands)), [Decimal(repr(value)) for value in values]
    with localcontext(prec=2000):
        assert (0, 0) == (low % step, high % step)
        assert low <= min(exact) < low + step
        assert high - step <= max(exact) < high


@given(
    st.lists(st.text("012", max_size=5) | st.none(), min_size=1, max_size=8),
    st.integers(1, 4),
    st.data(),
)
def test_no_text_is_published_beyond_its_first_characters(texts, length, data):
    ids = dealt(data.draw, len(texts))

    def path(text):
        """Return the labels from the coarsest to the finest that may stand for a text."""
        above = [text[:n] for n in range(1, min(length, len(text) - 1) + 1)]
        cuts = [f"{cut}*" for cut in above]
        return ["*", *cuts, *([text] if len(text) <= length else [])]

    column = column_of(texts, ColumnKind.CATEGORY, at_least=length)
    for group, label in enumerate(labels("label", column, ids)):
        mine = {text for text, g in zip(texts, ids, strict=True) if g == group}
        if None in mine:
            assert label == (None if mine == {None} else "*")
            continue
        shared = [level[0] for level in zip(*map(path, mine), strict=False) if len({*level}) == 1]
        assert shared[-1] == label


def test_how_long_a_text_is_stays_unknown():
    column = column_of(["02139", "02139-4307", "02", "021"], at_least=3)
    assert ["021*", "02", "021"] == labels("label", column, [0, 0, 1, 2])
    assert ["02*", "02"] == labels("label", column, [0, 0, 1, 0])
    assert ["0*"] == labels("label", column, [0, 0, 0, 0])


def test_texts_that_begin_alike_are_pooled_if_asked():
    column = column_of(["03601", "05901", "03701", "00012"], at_least=3, pooled=("036", "059"))
    assert ["000*", "037*", "000*"] == labels("label", column, [0, 0, 1, 2])
    assert [("000*", 0.5), ("0*", 0.5)] == published("label", column, [0, 0, 1, 1])
    assert ["*", "*"] == labels("label", column, [0, 1, 0, 1])
    mixed = column_of(["036", "03", "05901-1234", "02139"], at_least=3, pooled=("036", "059"))
    assert ["000*", "03", "021*"] == labels("label", mixed, [0, 1, 0, 2])
    three = column_of(["036", "059", "021"], at_least=3, pooled=("036", "059"))
    assert ["000*", "021"] == labels("label", three, [0, 0, 1])


def test_prefixes_lose_the_share_of_the_values_below():
    column = column_of(["02139", "02138", "02215", "94305"], at_least=3)
    assert [("021*", 0.5), ("022*", 0.25), ("943*", 0.25)] == published(
        "label", column, [0, 0, 1, 2]
    )
    assert [("02*", 0.75), ("943*", 0.25)] == published("label", column, [0, 0, 0, 1])


@pytest.mark.parametrize(
    ("level", "expected"),
    [(1, ["a", "b", "c", "V", "V"]), (2, ["a", "P", "P", "U", "U"])],
)
def test_levels_count_from_the_deepest_leaves(level, expected):
    column = column_of(list("abcde"), taxonomy="unbalanced", at_least=level)
    assert expected == labels("label", column, range(5))


@given(st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=9), st.integers(1, 3), st.data())
def test_no_label_lies_deeper_than_the_level(leaves, level, data):
    ids = dealt(data.draw, len(leaves))
    column = column_of(leaves, taxonomy="letters", at_least=level)
    exact = column_of(leaves, taxonomy="letters")
    depth = dict(zip(LETTERS.labels, LETTERS.depth.tolist(), strict=True))
    for label, finer in zip(labels("label", column, ids), labels("label", exact, ids), strict=True):
        if depth[finer] <= LETTERS.height - level:
            assert finer == label
        else:
            node = LETTERS.labels.index(finer)
            while LETTERS.depth[node] > LETTERS.height - level:
                node = LETTERS.parent[node]
            assert LETTERS.labels[node] == label


@pytest.mark.parametrize("name", ALGORITHMS)
def test_no_algorithm_publishes_below_a_floor(name):
    columns = {
        "age": [17, 18, 20, 21, 35, 36, 52, 58, 91, 99, 40, 41],
        "born": [date(1950 + n, 1 + n, 1 + n) for n in range(12)],
        "zip": [f"{n:05}" for n in (*range(2139, 2145), *range(94305, 94311))],
        "letter": [*"abcdefgbcdef"],
    }
    rules = {
        "age": {"bands": 10, "top": 90, "bottom": 18},
        "born": {"at_least": "year"},
        "zip": {"at_least": 3},
        "letter": {"taxonomy": "letters", "at_least": 2},
    }
    table = encoded(columns, rules=rules, taxonomies=[LETTERS])
    policy = policy_of(columns, k=2, rules=rules, algorithm=name)
    age, born, places, letters = solve(
        Problem(table, policy), seed=0, stages=Stages()
    ).values.columns
    ends = r"[1-8]0|18|90"
    assert all(re.fullmatch(rf"(\(|\[({ends})),(({ends})?\))", x) for x in age.labels)
    assert all(re.fullmatch(r"\[\d{4}-01-01,\d{4}-01-01\)", x) for x in born.labels)
    assert set(places.labels) <= {"021*", "02*", "0*", "943*", "94*", "9*", "*"}
    assert set(letters.labels) <= {"a", "P", "V", "X", "U", "*"}


def test_metrics_count_what_cells_lose():
    table = encoded({"x": [0, 1, 2, 10, 19, None]}, rules={"x": {"bands": 10}})
    assignment = Assignment(np.array([0, 0, 0, 1, 1, 2], np.int32), 3)
    values = published_values(table, assignment)
    assert isinstance(values, GroupValues)
    found = publication(table, assignment, values, k=1)
    assert information_loss(found) == pytest.approx(5 * 0.5)
    assert iloss(found) == pytest.approx((3 * 2 + 2 * 1) / 6)
    letters = encoded(
        {"x": list("defg")},
        rules={"x": {"taxonomy": "letters", "at_least": 2}},
        taxonomies=[LETTERS],
    )
    assignment = Assignment(np.array([0, 1, 1, 0], np.int32), 2)
    found = publication(letters, assignment, published_values(letters, assignment), k=1)
    assert information_loss(found) == pytest.approx(2 * 1 / 4 + 2 * 2 / 4)
    assert iloss(found) == pytest.approx(4 * 1 / 7)


@pytest.mark.parametrize("recoding", ["mean", "median", "mode", "set"])
def test_single_values_of_a_column_with_a_floor_are_refused(recoding):
    table = encoded({"x": [1, 2]}, rules={"x": {"bands": 10, "recoding": recoding}})
    with pytest.raises(PolicyError, match=f"x: recoding {recoding} knows no bands"):
        solve(Problem(table, policy_of(["x"])), seed=0, stages=Stages())


@pytest.mark.parametrize(
    ("values", "rule", "problem"),
    [
        ([1, 2], {"at_least": "year"}, "at_least means nothing of type integer"),
        ([1, 2], {"at_least": 3}, "at_least means nothing of type integer"),
        ([1, 2], {"bands": 0.5}, "bands of type integer is a whole number"),
        ([1, 2], {"top": 1, "bottom": 2}, "bottom is at most top"),
        ([date(2000, 1, 1)], {"at_least": 3}, "at_least of type date is one of day"),
        ([date(2000, 1, 1)], {"at_least": "age"}, "at_least of type date is one of day"),
        ([date(2000, 1, 1)], {"bands": 3}, "bands needs a numeric type"),
        (["a"], {"at_least": "year"}, "at_least of type category is a number of leading"),
        (["a"], {"bands": 1}, "bands needs a numeric type"),
        (["a"], {"order": ("a",), "at_least": 1}, "at_least means nothing of type category"),
        (["a"], {"taxonomy": "letters", "top": 1}, "top needs a numeric type"),
        (["a"], {"taxonomy": "letters", "at_least": 1, "pooled": ("a",)}, "pooled goes with"),
        (["a"], {"pooled": ("a",)}, "pooled goes with"),
        (["a"], {"at_least": 2, "pooled": ("a",)}, "pooled lists texts of 2 characters"),
    ],
)
def test_a_floor_that_means_nothing_is_refused(values, rule, problem):
    with pytest.raises(PolicyError, match=f"x: {problem}"):
        column_of(values, **rule)


@pytest.mark.parametrize("level", ["year", 4, 9])
def test_a_level_that_leaves_nothing_is_refused(level):
    with pytest.raises(PolicyError, match="x: "):
        column_of(["a"], taxonomy="letters", at_least=level)


def test_a_population_is_not_counted_by_cells():
    import pyarrow as pa

    table = encoded({"x": [1, 2]}, rules={"x": {"bands": 10}})
    with pytest.raises(PolicyError, match="x has a floor"):
        encode_population(pa.table({"x": [1, 2]}), table)
    table = encoded({"x": ["aa", "ab"]}, rules={"x": {"at_least": 1}})
    with pytest.raises(PolicyError, match="x has a floor"):
        encode_population(pa.table({"x": ["aa"]}), table)


@pytest.mark.parametrize("rule", [{"bands": 1}, {"at_least": 2}])
def test_a_column_of_nulls_has_no_cell(rule):
    kind = ColumnKind.INTEGER if "bands" in rule else ColumnKind.CATEGORY
    column = column_of([None, None], kind, **rule)
    recoding = "interval" if "bands" in rule else "label"
    assert [(None, 0.0)] == published(recoding, column, [0, 0])
