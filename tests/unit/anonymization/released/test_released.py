"""What readers see of a publication, over every recoding and kind of column."""

from datetime import UTC, date, datetime

import naive.released
import numpy as np
import pyarrow as pa
import pytest
from builders import LETTERS, encoded, grouped, policy_of
from hypothesis import given
from hypothesis import strategies as st
from selection import some

from dbanon.anonymization.outcome import Outcome
from dbanon.anonymization.recodings.groups import column_boxes
from dbanon.anonymization.registry import RECODINGS, misfit
from dbanon.anonymization.released.cells import covers
from dbanon.anonymization.released.labels import elements, period_days
from dbanon.anonymization.released.reading import of_outcome, of_texts
from dbanon.domain.assignment import Assignment, GroupValues
from dbanon.domain.errors import PolicyError
from dbanon.domain.policy import POINTS, MaskingStep
from dbanon.domain.table import ColumnKind, Structure

DAYS = [date(1999, 12, 28), date(2000, 1, 1), date(2000, 1, 3), date(2000, 3, 31), date(2012, 5, 6)]
MOMENTS = [
    datetime(day.year, day.month, day.day, hour, tzinfo=UTC) for day in DAYS for hour in (0, 7, 23)
]
CODES = ["13053", "13068", "14853", "14850", "02139", "02138"]
SIZES = ["small, or so", "small", "or so", "*", "[large]"]
COLUMNS = {
    "integer": ([*range(-3, 40, 6)], ColumnKind.INTEGER, [{}, {"snap": 5.0}]),
    "bands": ([*range(-3, 40, 6)], ColumnKind.INTEGER, [{"bands": 10.0, "top": 30.0, "bottom": 0}]),
    "tails": ([*range(-3, 40, 6)], ColumnKind.INTEGER, [{"top": 30.0}, {"bottom": 4.0}]),
    "float": ([-1.5, 0.0, 0.3, 0.1, 3.75, 1e6, 1e21], ColumnKind.FLOAT, [{}, {"snap": 0.1}]),
    "decimal": ([0.25, 0.5, 7.75], ColumnKind.DECIMAL, [{}, {"bands": 0.5}]),
    "huge": ([-1e308, 0.0, 1e308], ColumnKind.FLOAT, [{}]),
    "large": ([-(2**63), -1, 2**53 + 1, 2**63 - 1], ColumnKind.INTEGER, [{}]),
    "date": (DAYS, ColumnKind.DATE, [{}, *({"at_least": p} for p in ("week", "month", "year"))]),
    "timestamp": (MOMENTS, ColumnKind.TIMESTAMP, [{}, {"at_least": "day"}, {"at_least": "decade"}]),
    "timestamptz": (MOMENTS, ColumnKind.TIMESTAMPTZ, [{}, {"at_least": "quarter"}]),
    "boolean": (["true", "false"], ColumnKind.BOOLEAN, [{}]),
    "order": (SIZES, ColumnKind.CATEGORY, [{"order": tuple(SIZES)}]),
    "category": (["x", "", "NULL", 'quo"ted, {}\\', "*"], ColumnKind.CATEGORY, [{}]),
    "code": (CODES, ColumnKind.CATEGORY, [{"at_least": 3}, {"at_least": 3, "pooled": ("021",)}]),
    "letter": ([*"abcdefg"], ColumnKind.CATEGORY, [{"taxonomy": "letters"}]),
    "floor": ([*"abcdefg"], ColumnKind.CATEGORY, [{"taxonomy": "letters", "at_least": 1}]),
    "kept": ([*"ab"], ColumnKind.CATEGORY, [{"keep": True}]),
}
TIGHT = {"interval", "interval-text", "label", "prefix"}


def table_of(values, kind, rule, *, diseases=()):
    taxonomies = [LETTERS] if "taxonomy" in rule else []
    sensitive = {"disease": diseases} if diseases else {}
    return encoded(
        {"x": values}, sensitive, kinds={"x": kind}, rules={"x": rule}, taxonomies=taxonomies
    )


def outcome_of(table, recodings, groups):
    values = tuple(
        RECODINGS[recoding].publish(column, groups)
        for recoding, column in zip(recodings, table.quasi, strict=True)
    )
    return Outcome(groups, GroupValues(values, groups.n_groups), None)


def groups_of(ids):
    kept = sorted(set(ids) - {-1})
    numbers = {-1: -1} | {group: number for number, group in enumerate(kept)}
    return Assignment(np.array([numbers[i] for i in ids], np.int32), len(kept))


def fits(recoding, column):
    return misfit(recoding, column) is None and (not column.rule.keep or recoding == "mode")


@st.composite
def publications(draw, recoding):
    """Draw a table of one column that a recoding can publish, and groups."""
    name = draw(st.sampled_from([*COLUMNS]))
    values, kind, rules = COLUMNS[name]
    rule = draw(st.sampled_from(rules)) | {"recoding": recoding}
    n = draw(st.integers(1, 12))
    drawn = draw(st.lists(st.none() | st.sampled_from(values), min_size=n, max_size=n))
    ids = draw(st.lists(st.integers(-1, 3), min_size=n, max_size=n))
    if rule.get("keep"):
        ids = [("ab".find(value) if value else 2) for value in drawn]
    try:
        table = table_of(drawn, kind, rule)
    except PolicyError:
        return None
    ids = [0, *ids[1:]] if set(ids) == {-1} else ids
    if not fits(recoding, table.quasi[0]):
        return None
    return table, groups_of(ids)


def policy_for(table):
    return policy_of([c.name for c in table.quasi], table.sensitive_names)


@pytest.mark.parametrize("recoding", sorted(RECODINGS))
@some()
@given(data=st.data())
def test_the_class_of_a_row_covers_it(recoding, data):
    drawn = data.draw(publications(recoding))
    if drawn is None:
        return
    table, groups = drawn
    released = of_outcome(table, outcome_of(table, [recoding], groups), policy_for(table))
    (cells,) = released.columns
    column = table.quasi[0]
    shown = np.flatnonzero(groups.group >= 0)
    assert (released.classes >= 0).tolist() == (groups.group >= 0).tolist()
    assert np.bincount(released.classes[shown]).tolist() == released.size.tolist()
    found = covers(released, np.arange(table.n_rows))
    for row in shown.tolist():
        mine = found.classes[found.start[row] : found.start[row + 1]]
        assert released.classes[row] in mine
    assert [
        found.classes[a:b].tolist() for a, b in zip(found.start[:-1], found.start[1:], strict=True)
    ] == naive.released.covers(released, range(table.n_rows))
    if recoding in TIGHT and column.rule.snap is None and column.rule.bands is None:
        assert_tight(column, groups, cells, released)


def assert_tight(column, groups, cells, released):
    """A label covers nothing but what is between the values of its classes, or below them all."""
    boxes = column_boxes(column, groups)
    for group, (lo, hi) in enumerate(zip(boxes.lo, boxes.hi, strict=True)):
        row = np.flatnonzero(groups.group == group)[0]
        label = cells.index[released.classes[row]]
        if lo < hi == column.size or column.structure is Structure.TREE:
            continue
        if lo == column.size:
            assert (True, True) == (cells.nulls[label], cells.hi[label] < cells.lo[label])
        elif cells.labels[label] != "*" and column.structure is Structure.LINE:
            assert (lo, hi) == (cells.lo[label], cells.hi[label])
            assert not cells.nulls[label]
            if column.bands is None:
                ends = column.position[[lo, hi]].tolist()
                assert ends == pytest.approx([cells.low[label], cells.high[label]], abs=1e-12)


def test_the_open_range_of_the_only_value_is_a_point():
    """The greatest integer has no end that a range could exclude."""
    table = encoded({"x": [2**63 - 1, 2**63 - 1]})
    groups = Assignment(np.zeros(2, np.int32), 1)
    released = of_outcome(table, outcome_of(table, ["interval"], groups), policy_for(table))
    (cells,) = released.columns
    assert ([0.0], [0.0]) == (cells.low.tolist(), cells.high.tolist())


def test_a_range_of_days_ends_on_its_last_day():
    rules = {"x": {"recoding": "interval-text"}}
    table = encoded({"x": [date(1999, 12, 28), date(2000, 1, 1)]}, rules=rules)
    policy = policy_of(["x"], rules=rules)
    (cells,) = grouped(table, [0, 0], policy).columns
    assert [0.0, 1.0] == [*cells.low, *cells.high]


@given(st.data())
def test_covering_equals_its_twin_in_several_columns(data):
    n = data.draw(st.integers(1, 60))
    names = data.draw(st.lists(st.sampled_from(["integer", "letter", "date"]), unique=True))
    names = names or ["integer"]
    columns = {
        name: data.draw(
            st.lists(st.none() | st.sampled_from(COLUMNS[name][0]), min_size=n, max_size=n)
        )
        for name in names
    }
    table = encoded(
        columns,
        {},
        kinds={name: COLUMNS[name][1] for name in names},
        rules={"letter": {"taxonomy": "letters"}} if "letter" in names else {},
        taxonomies=[LETTERS],
    )
    ids = data.draw(st.lists(st.integers(0, 30), min_size=n, max_size=n))
    recodings = [
        data.draw(st.sampled_from([r for r in sorted(RECODINGS) if fits(r, column)]))
        for column in table.quasi
    ]
    released = of_outcome(table, outcome_of(table, recodings, groups_of(ids)), policy_for(table))
    found = covers(released, np.arange(n))
    expected = naive.released.covers(released, range(n))
    slices = zip(found.start[:-1], found.start[1:], strict=True)
    assert expected == [found.classes[a:b].tolist() for a, b in slices]
    sizes = [sum(released.size[one] for one in some) for some in expected]
    assert sizes == found.sums(released.size).tolist()


@pytest.mark.exhaustive
def test_classes_of_columns_with_many_values_are_found():
    n = 80_000
    values = np.random.default_rng(0).permutation(n)
    table = encoded({"x": values.tolist(), "y": [None, *[1] * (n - 1)]})
    outcome = outcome_of(table, ["interval", "interval"], groups_of((values // 2).tolist()))
    released = of_outcome(table, outcome, policy_for(table))
    rows = np.append(0, np.arange(1, n, 1_000))
    found = covers(released, rows)
    assert [1] * len(rows) == np.diff(found.start).tolist()
    assert outcome.assignment.group[rows].tolist() == released.classes[rows].tolist()
    assert released.classes[rows].tolist() == found.classes.tolist()


def shown_of(rows, **columns):
    table = pa.table({name: pa.array(texts, pa.string()) for name, texts in columns.items()})
    return table, np.array(rows, np.int64)


def cells_of(table, *, rows=None, **columns):
    n = len(next(iter(columns.values())))
    shown, counts = shown_of(rows or [1] * n, **columns)
    return of_texts(table, shown, counts, policy=policy_for_rules(table)).columns[0]


def policy_for_rules(table):
    rules = {c.name: {"recoding": c.rule.recoding} for c in table.quasi}
    return policy_of([c.name for c in table.quasi], table.sensitive_names, rules=rules)


def covered(cells):
    """Return by label the codes covered, with whether NULL is."""
    return {
        label: (int(cells.lo[i]), int(cells.hi[i]), bool(cells.nulls[i]))
        for i, label in enumerate(cells.labels)
    }


NONE = (0, -1)


@pytest.mark.parametrize(
    ("name", "recoding", "columns", "expected"),
    [
        ("integer", "interval", {"x": ["[-3,10)"]}, (0, 2, False)),
        ("integer", "interval", {"x": ["(,)"]}, (0, 7, True)),
        ("integer", "interval", {"x": [None]}, (*NONE, True)),
        ("integer", "interval", {"x": ["[4,9)"]}, (2, 1, False)),
        ("integer", "bounds", {"x_min": ["-3"], "x_max": ["9"]}, (0, 2, False)),
        ("integer", "bounds", {"x_min": [None], "x_max": ["9"]}, (0, 2, False)),
        ("integer", "bounds", {"x_min": [None], "x_max": [None]}, (0, 7, True)),
        ("integer", "center", {"x_center": ["3.0"], "x_radius": ["6.0"]}, (0, 2, False)),
        ("integer", "interval-text", {"x": ["[-3, 9]"]}, (0, 2, False)),
        ("integer", "interval-text", {"x": ["9"]}, (2, 2, False)),
        ("bands", "interval", {"x": ["[0,20)"]}, (1, 2, False)),
        ("bands", "interval", {"x": ["(,0)"]}, (0, 0, False)),
        ("bands", "interval", {"x": ["[30,)"]}, (4, 4, False)),
        ("bands", "interval-text", {"x": ["[0, 20)"]}, (1, 2, False)),
        ("bands", "interval-text", {"x": ["<0"]}, (0, 0, False)),
        ("bands", "interval-text", {"x": ["30+"]}, (4, 4, False)),
        ("float", "interval", {"x": ["[0.1,0.3]"]}, (2, 3, False)),
        ("float", "set", {"x": ["{0.1,1e+21,NULL}"]}, (2, 6, True)),
        ("date", "interval", {"x": ["[2000-01-01,2000-04-01)"]}, (1, 3, False)),
        ("date", "center", {"x_center": ["2000-01-02"], "x_radius": ["1"]}, (1, 2, False)),
        ("date", "date-part", {"x": ["2000-Q1"]}, (1, 3, False)),
        ("date", "date-part", {"x": ["1990-2009"]}, (0, 3, False)),
        ("date", "date-part", {"x": ["1999-W52"]}, (0, 1, False)),
        (
            "timestamptz",
            "interval",
            {"x": ['["2000-01-01 07:00:00+00","2000-01-03 00:00:00+00"]']},
            (4, 6, False),
        ),
        (
            "timestamptz",
            "center",
            {"x_center": ["2000-01-02 00:00:00+00"], "x_radius": ["24:00:00"]},
            (3, 6, False),
        ),
        (
            "timestamp",
            "center",
            {"x_center": ["2000-01-02 00:00:00"], "x_radius": ["1 day 00:00:00"]},
            (3, 6, False),
        ),
        ("order", "interval-text", {"x": ["[small, or so]"]}, (1, 2, False)),
        ("order", "interval-text", {"x": ["[small, or so, or so]"]}, (0, 2, False)),
        ("order", "interval-text", {"x": ["*"]}, (0, 4, True)),
        ("order", "median", {"x": ["or so"]}, (2, 2, False)),
        ("letter", "label", {"x": ["Y"]}, (5, 6, False)),
        ("letter", "label", {"x": ["*"]}, (0, 6, True)),
        ("letter", "label", {"x": ["nowhere"]}, (*NONE, False)),
        ("letter", "full-domain", {"x": ["U"]}, (3, 6, False)),
        ("letter", "cell-suppression", {"x": [None]}, (0, 6, True)),
        ("code", "label", {"x": ["130*"]}, (2, 3, False)),
        ("code", "label", {"x": ["14*"]}, (4, 5, False)),
        ("letter", "suppress", {"x": ["*"]}, (0, 6, True)),
    ],
)
def test_texts_of_the_database_are_read(name, recoding, columns, expected):
    values, kind, rules = COLUMNS[name]
    table = table_of(values, kind, rules[0] | {"recoding": recoding})
    cells = cells_of(table, **columns)
    assert [expected] == list(covered(cells).values())


def test_a_center_of_days_is_read_alike_from_ranges_and_from_columns():
    values = [date(2000, 1, 1), date(2000, 1, 4), date(2000, 1, 5)]
    table = table_of(values, ColumnKind.DATE, {"recoding": "center"})
    outcome = outcome_of(table, ["center"], groups_of([0, 0, -1]))
    (planned,) = of_outcome(table, outcome, policy_for(table)).columns
    served = cells_of(table, x_center=["2000-01-02"], x_radius=["2"])
    assert planned.labels == served.labels
    assert covered(planned) == covered(served) == {"[1999-12-31,2000-01-04]": (0, 1, False)}


def test_points_rule_out_nobody_and_have_a_place():
    table = table_of([0, 1, 10, None], ColumnKind.INTEGER, {"recoding": "mean"})
    cells = cells_of(table, x=["2.5", "10.0", None])
    assert cells.is_point
    assert [0.25, 1.0] == cells.low[:2].tolist() == cells.high[:2].tolist()
    assert np.isnan(cells.low[2])
    assert [(0, -1), (2, 2), (0, -1)] == list(zip(cells.lo, cells.hi, strict=True))
    assert POINTS == {"mean", "midpoint", "median", "mode"}


def test_a_kept_column_rules_out_others():
    table = table_of(["a", "b", None], ColumnKind.CATEGORY, {"keep": True})
    cells = cells_of(table, x=["b", None])
    assert not cells.is_point
    assert {"b": (1, 1, False), None: (*NONE, True)} == covered(cells)


def test_rows_that_look_alike_are_one_class():
    table = table_of([1, 2, 3, 4], ColumnKind.INTEGER, {}, diseases=["flu", "flu", None, "gout"])
    shown, counts = shown_of(
        [3, 1, 2], x=["[1,3)", "[3,5)", "[1,3)"], disease=["flu", "flu", "measles"]
    )
    released = of_texts(table, shown, counts, policy=policy_of(["x"], ["disease"]))
    assert [5, 1] == released.size.tolist()
    (disease,) = released.sensitive
    labels = released.table.domains[0].labels
    assert ("disease", ("flu", "gout", "measles", None)) == (disease.name, labels)
    assert [0, 0, 3, 1] == released.table.sensitive[:, 0].tolist()
    found = zip(disease.classes, disease.codes, disease.rows, strict=True)
    assert {(0, 0, 3), (0, 2, 2), (1, 0, 1)} == set(found)


def test_numbers_are_the_same_however_they_are_written():
    columns, kinds = {"x": [1, 1]}, {"s": ColumnKind.DECIMAL}
    table = encoded(columns, {"s": ["1.5", "2"]}, kinds=kinds)
    shown, counts = shown_of([1, 1, 1], x=["[1,2)"] * 3, s=["1.50", "2.0", None])
    (counted,) = of_texts(table, shown, counts, policy=policy_of(["x"], ["s"])).sensitive
    assert [0, 1, 2] == counted.codes.tolist()


def test_masked_values_are_absent():
    table = table_of([1, 2], ColumnKind.INTEGER, {}, diseases=["flu", "gout"])
    policy = policy_of(["x"], ["disease"], masking=(MaskingStep("pram", ("disease",)),))
    outcome = outcome_of(table, ["interval"], groups_of([0, 0]))
    assert () == of_outcome(table, outcome, policy).sensitive


def test_nothing_published_has_no_class():
    table = table_of([1, 2], ColumnKind.INTEGER, {}, diseases=["flu", "gout"])
    shown, counts = shown_of([], x=[], disease=[])
    released = of_texts(table, shown, counts, policy=policy_of(["x"], ["disease"]))
    assert 0 == released.n_classes
    assert [0, 0, 0] == covers(released, np.arange(2)).start.tolist()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("2019", ("2019-01-01", "2019-12-31")),
        ("2019-07", ("2019-07-01", "2019-07-31")),
        ("2019-Q4", ("2019-10-01", "2019-12-31")),
        ("2020-W53", ("2020-12-28", "2021-01-03")),
        ("2020-02-29", ("2020-02-29", "2020-02-29")),
        ("1980-1989", ("1980-01-01", "1989-12-31")),
        ("0000-0009", ("0000-01-01", "0009-12-31")),
    ],
)
def test_periods_have_days(name, expected):
    assert expected == tuple(map(str, period_days(name)))
    assert period_days("2019-07-01 12:00:00") is None


def test_elements_of_arrays_are_read():
    assert ["a b", None, "NULL", 'q"', "", "c"] == elements('{"a b",NULL,"NULL","q\\"","",c}')
