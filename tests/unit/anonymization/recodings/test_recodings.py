import re
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial

import naive
import numpy as np
import pytest
from builders import LETTERS, encoded, tables, tree
from hypothesis import given
from hypothesis import strategies as st

from dbanon.anonymization.recodings.label import array_element
from dbanon.anonymization.registry import RECODINGS, misfit, recoding_named, recoding_of
from dbanon.domain.assignment import Assignment, label_rows
from dbanon.domain.errors import PolicyError
from dbanon.domain.table import ColumnKind
from dbanon.formats.taxonomies import from_levels

MOMENT = datetime(2020, 1, 1, tzinfo=UTC)


def groups(*ids):
    return Assignment(np.array(ids, np.int32), max(ids) + 1)


def column_of(values, kind=None, **rule):
    kinds = {"x": kind} if kind else {}
    taxonomies = [LETTERS] if "taxonomy" in rule else []
    return encoded({"x": values}, kinds=kinds, rules={"x": rule}, taxonomies=taxonomies).quasi[0]


def published(recoding, column, *ids):
    """Return (label, loss) of every group."""
    result = RECODINGS[recoding].publish(column, groups(*ids))
    return [(result.labels[i], round(float(result.loss[i]), 6)) for i in result.index]


def labels(recoding, column, *ids):
    return [label for label, _ in published(recoding, column, *ids)]


def test_an_interval_is_an_inclusive_range_literal():
    column = column_of([30, 39, 50, 130, None, None, 30, None])
    assert [("[30,39]", 0.09), ("[50,130]", 0.8), (None, 0), ("(,)", 1)] == published(
        "interval", column, 0, 0, 1, 1, 2, 2, 3, 3
    )


def test_interval_text_is_for_people():
    column = column_of([-5, 39, 50, 50, None, None, 30, None])
    assert ["[-5, 39]", "50", None, "*"] == labels("interval-text", column, 0, 0, 1, 1, 2, 2, 3, 3)


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([0.1, 1e21], ColumnKind.FLOAT, "[0.1,1000000000000000000000]"),
        ([-2.50, 1e-7], ColumnKind.DECIMAL, "[-2.5,0.0000001]"),
        ([date(1980, 2, 3), date(1999, 12, 31)], None, "[1980-02-03,1999-12-31]"),
        (
            [MOMENT, MOMENT.replace(microsecond=250_000)],
            ColumnKind.TIMESTAMPTZ,
            '["2020-01-01 00:00:00+00","2020-01-01 00:00:00.25+00"]',
        ),
        (
            [datetime(2020, 1, 1), datetime(2020, 1, 1, 12)],  # noqa: DTZ001 - the kind is naive
            None,
            '["2020-01-01 00:00:00","2020-01-01 12:00:00"]',
        ),
        ([-(2**63), 2**63 - 1], None, "[-9223372036854775808,)"),
    ],
)
def test_bounds_are_exact_in_every_kind(values, kind, expected):
    assert [expected] == labels("interval", column_of(values, kind), 0, 0)


@pytest.mark.parametrize(
    ("values", "kind", "snap", "expected"),
    [
        ([31, 38], None, 5.0, "[30,40]"),
        ([-3, -3], None, 5.0, "[-5,0]"),
        ([40, 40], None, 5.0, "[40,40]"),
        ([0.3, 0.7], ColumnKind.FLOAT, 0.1, "[0.3,0.7]"),
        ([0.31, 0.69], ColumnKind.DECIMAL, 0.1, "[0.3,0.7]"),
        ([-0.01, 1e22], ColumnKind.FLOAT, 2.5, "[-2.5,10000000000000000000000]"),
        ([date(1970, 1, 5), date(1970, 1, 9)], None, 7.0, "[1970-01-01,1970-01-15]"),
        (
            [MOMENT.replace(second=10), MOMENT.replace(second=50)],
            ColumnKind.TIMESTAMPTZ,
            60.0,
            '["2020-01-01 00:00:00+00","2020-01-01 00:01:00+00"]',
        ),
    ],
)
def test_snap_widens_bounds_outward_to_the_grid(values, kind, snap, expected):
    assert [expected] == labels("interval", column_of(values, kind, snap=snap), 0, 0)


def test_snapped_intervals_lose_what_they_publish():
    column = column_of([0, 1, 9, 10], snap=5.0)
    assert [("[0,5]", 0.5), ("[5,10]", 0.5)] == published("interval", column, 0, 0, 1, 1)
    assert [("[0,15]", 1.0)] == published("interval", column_of([1, 11], snap=15.0), 0, 0)
    assert [("[0,15]", 0.0)] == published("interval", column_of([7, 7], snap=15.0), 0, 0)


@pytest.mark.parametrize("snap", [0.0, -1.0, 0.5, float("inf")])
def test_a_grid_that_is_no_whole_step_is_refused(snap):
    with pytest.raises(PolicyError, match="x: snap must be"):
        labels("interval", column_of([1, 2], snap=snap), 0, 0)


@given(st.lists(st.floats(-1e9, 1e9), min_size=1), st.sampled_from([0.1, 0.25, 3.0, 1e6]))
def test_snapped_bounds_stay_true(values, snap):
    (label,) = labels(
        "interval", column_of(values, ColumnKind.FLOAT, snap=snap), *[0] * len(values)
    )
    low, high = map(Decimal, label[1:-1].split(","))
    exact = [Decimal(repr(value)) for value in values]
    step = Decimal(repr(snap))
    assert low <= min(exact) < low + step
    assert high - step < max(exact) <= high
    assert (0, 0) == (low % step, high % step)


def test_a_label_is_the_lowest_common_ancestor():
    column = column_of([*"bcefdeag", None, "a", None], taxonomy="letters")
    assert [
        ("P", round(2 / 7, 6)),
        ("Y", round(2 / 7, 6)),
        ("U", round(4 / 7, 6)),
        ("*", 1),
        (None, 0),
        ("*", 1),
    ] == published("label", column, 0, 0, 1, 1, 2, 2, 3, 3, 4, 5, 5)
    assert [("a", 0), ("*", 1)] == published("label", column_of(["a", "b", "c"]), 0, 1, 1)


def test_a_set_lists_the_distinct_values():
    column = column_of([3, 1, 3, 2, None, None])
    assert [
        ("{1,3}", 0.5),
        ("{2,NULL}", 0.5),
        ("{NULL}", 0),
    ] == published("set", column, 0, 0, 0, 1, 1, 2)


def read_array(literal):
    """Read a one-dimensional array literal the way PostgreSQL's manual describes it."""
    elements, i = [], 1
    while i < len(literal) - 1:
        text, quoted = "", literal[i] == '"'
        i += quoted
        while literal[i] != '"' if quoted else literal[i] not in ",}":
            i += quoted and literal[i] == "\\"
            text += literal[i]
            i += 1
        elements.append(None if not quoted and text.lower() == "null" else text)
        i += quoted + 1
    return elements


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0")), min_size=1))
def test_an_array_literal_reads_back(texts):
    literal = "{" + ",".join(map(array_element, texts)) + "}"
    assert texts == read_array(literal)
    bare = [element for element in map(array_element, texts) if not element.startswith('"')]
    assert all(set(element).isdisjoint('{}",\\ \t\n\r\v\f') for element in bare)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", '""'),
        ("NULL", '"NULL"'),
        ("null", '"null"'),
        ("nullable", "nullable"),
        ("a b", '"a b"'),
        ("a,b", '"a,b"'),
        ("{a}", '"{a}"'),
        ('say "hi"', '"say \\"hi\\""'),
        ("back\\slash", '"back\\\\slash"'),
        ("ok\n", '"ok\n"'),
    ],
)
def test_what_an_array_would_read_otherwise_is_quoted(text, expected):
    assert expected == array_element(text)


def test_a_mean_has_few_digits():
    assert ["1.3", "-2.0", None] == labels("mean", column_of([1, 1, 2, -2, None]), 0, 0, 0, 1, 2)
    assert ["0.667"] == labels("mean", column_of([0.0, 1.0, 1.0]), 0, 0, 0)
    assert ["1"] == labels("mean", column_of([1, 1, 2], digits=0), 0, 0, 0)
    assert ["0.0"] == labels("mean", column_of([-0.01, 0.0], digits=1), 0, 0)
    days = [date(2020, 1, 1), date(2020, 1, 2), date(2020, 1, 2)]
    assert ["2020-01-02"] == labels("mean", column_of(days), 0, 0, 0)
    moments = [MOMENT, MOMENT.replace(second=3)]
    column = column_of(moments, ColumnKind.TIMESTAMPTZ)
    assert ["2020-01-01 00:00:02+00"] == labels("mean", column, 0, 0)


def test_median_and_mode_are_values_of_members():
    column = column_of([5, 1, 9, 7, None, None, None, 7, 7])
    assert ["5", "7"] == labels("median", column, 0, 0, 0, 1, 1, 1, 1, 1, 1)
    assert ["1", "7"] == labels("mode", column, 0, 0, 0, 1, 1, 1, 1, 1, 1)
    assert [None] == labels("median", column_of([None, None], ColumnKind.INTEGER), 0, 0)
    assert [None, "a"] == labels("mode", column_of([None, None, "b", "a"]), 0, 0, 1, 1)
    assert ["1"] == labels("median", column_of([2, 1]), 0, 0)


def test_means_are_stretched_to_the_variance_of_the_values():
    """The first column of the nine points of golden 6.7."""
    values, ids = [1, 2, 1, 10, 11, 10, 5, 6, 5], (1, 1, 1, 0, 0, 0, 2, 2, 2)
    plain = column_of(values, digits=12)
    column = column_of(values, digits=12, restore_variance=True)
    means, stretched = (
        np.array([float(x) for x in labels("mean", one, *ids)])[list(ids)]
        for one in (plain, column)
    )
    assert means.mean() == pytest.approx(stretched.mean()) == pytest.approx(np.mean(values))
    assert stretched.std() == pytest.approx(np.std(values))
    assert means.std() < stretched.std()
    assert np.corrcoef(means, stretched)[0, 1] == pytest.approx(1)


@pytest.mark.parametrize("scale", [1e300, 1e-300, 1.0])
def test_means_of_any_size_are_stretched(scale):
    column = column_of([-1.5 * scale, 0.5 * scale, 1.5 * scale, None], restore_variance=True)
    found = RECODINGS["mean"].publish(column, groups(0, 0, 1, 1))
    assert all(np.isfinite(float(label)) for label in found.labels)
    whole = RECODINGS["mean"].publish(column, groups(0, 0, 0, 0))
    assert float(whole.labels[0]) == pytest.approx(scale / 6, rel=1e-3, abs=1e-3)


def test_groups_that_share_a_label_share_the_mean_of_their_losses():
    column = column_of([0, 100, 50, 50, 50, 50])
    result = RECODINGS["mean"].publish(column, groups(0, 0, 1, 1, 1, 1))
    assert (("50.0",), [0, 0]) == (result.labels, result.index.tolist())
    assert [1 / 3] == pytest.approx(result.loss.tolist())


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (ColumnKind.DECIMAL, 1.5),
        (ColumnKind.INTEGER, 7),
        (ColumnKind.DATE, date(2020, 1, 31)),
        (ColumnKind.TIMESTAMP, datetime(2020, 1, 31, 12)),  # noqa: DTZ001 - naive
    ],
)
def test_values_of_a_type_with_order_are_published_though_they_have_a_taxonomy(kind, value):
    leaf = str(value)
    taxonomy = tree("t", {leaf: {}, "other": {}})
    table = encoded(
        {"x": [value] * 2}, kinds={"x": kind}, rules={"x": {"taxonomy": "t"}}, taxonomies=[taxonomy]
    )
    assert [leaf] == labels("mode", table.quasi[0], 0, 0)
    assert [leaf] == [label.strip('{}"') for label in labels("set", table.quasi[0], 0, 0)]


def test_cells_in_which_a_class_differs_are_suppressed():
    """The seven patients of golden 6.8, in their optimal groups."""
    rows = [(31, "Cauc", "94305"), (34, "Cauc", "94307"), (27, "Cauc", "94301")]
    rows += [(41, "Afr-A", "94305"), (41, "Afr-A", "94059")]
    rows += [(65, "Hisp", "94042"), (46, "Hisp", "94042")]
    ids = (0, 0, 0, 1, 1, 2, 2)
    shown = [
        labels("cell-suppression", column_of(values), *ids) for values in zip(*rows, strict=True)
    ]
    assert [[None, "41", None], ["Cauc", "Afr-A", "Hisp"], [None, None, "94042"]] == shown
    assert [("1.5", 0), (None, 1), (None, 1)] == published(
        "cell-suppression", column_of([1.5, 1.5, 1.5, 2.5, None, 2.5]), 0, 0, 1, 1, 2, 2
    )


def test_suppress_publishes_a_star():
    assert [("*", 1), ("*", 1)] == published("suppress", column_of([1, 2]), 0, 1)


def test_a_label_comes_with_all_that_is_above_it_and_nothing_beside_or_below():
    column = column_of([*"bcef", None], taxonomy="letters")
    result = RECODINGS["label"].publish(column, groups(0, 0, 1, 1, 2))
    assert ("P", "Y", None) == result.labels
    assert [
        ("*", None, 0, 7),
        ("P", "*", 1, 2),
        ("U", "*", 1, 4),
        ("X", "U", 2, 2),
        ("Y", "X", 3, 2),
    ] == label_rows(result)
    assert () == RECODINGS["set"].publish(column, groups(0, 0, 1, 1, 2)).nodes


def test_bounds_are_grouped_as_intervals_are():
    column = column_of([3, 7, 9])
    assert published("interval", column, 0, 0, 1) == published("bounds", column, 0, 0, 1)
    assert "bounds" == RECODINGS["bounds"].publish(column, groups(0, 0, 1)).recoding


def test_a_midpoint_is_the_middle_of_the_least_and_the_greatest_value():
    column = column_of([1, 2, 9, None, None, 30, 30])
    assert [("5.0", round(8 / 29, 6)), (None, 0), ("30.0", 0)] == published(
        "midpoint", column, 0, 0, 0, 1, 1, 2, 2
    )
    assert ["2.5"] == labels("midpoint", column_of([1, None, 4]), 0, 0, 0)
    assert ["2"] == labels("midpoint", column_of([1, 4], digits=0), 0, 0)
    days = [date(2020, 1, 1), date(2020, 1, 9), date(2020, 1, 2)]
    assert ["2020-01-05"] == labels("midpoint", column_of(days), 0, 0, 0)
    assert ["-0.5"] == labels("midpoint", column_of([-(2**63), 2**63 - 1]), 0, 0)


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        ([date(2019, 7, 4)] * 2, "2019-07-04"),
        ([date(2019, 7, 4), date(2019, 7, 31)], "2019-07"),
        ([date(2019, 7, 4), date(2019, 9, 30)], "2019-Q3"),
        ([date(2019, 3, 31), date(2019, 4, 1)], "2019"),
        ([date(2010, 1, 1), date(2019, 12, 31)], "2010-2019"),
        ([date(2009, 12, 31), date(2010, 1, 1)], "2000-2019"),
        ([date(1899, 1, 1), date(2019, 1, 1)], "1890-2019"),
        ([date(1, 1, 1), date(9, 1, 1)], "0000-0009"),
        ([None, date(2010, 1, 1)], "*"),
        ([None, None], None),
    ],
)
def test_a_date_part_is_the_shortest_period_that_has_all_values(days, expected):
    column = column_of([*days, date(1800, 1, 1)], ColumnKind.DATE)
    assert [expected, "1800-01-01"] == labels("date-part", column, 0, 0, 1)


@pytest.mark.parametrize(
    ("floor", "expected"),
    [
        ("week", ["2024-W01", "2024-01"]),
        ("month", ["2024-01", "2024-01"]),
        ("quarter", ["2024-Q1", "2024-Q1"]),
        ("year", ["2024", "2024"]),
        ("decade", ["2020-2029", "2020-2029"]),
    ],
)
def test_a_date_part_is_no_shorter_than_the_floor(floor, expected):
    days = [date(2024, 1, 3), date(2024, 1, 3), date(2024, 1, 9), date(2024, 1, 16)]
    column = column_of(days, at_least=floor)
    assert expected == labels("date-part", column, 0, 0, 1, 1)
    moments = [datetime(day.year, day.month, day.day, 13) for day in days]  # noqa: DTZ001 - naive
    column = column_of(moments, ColumnKind.TIMESTAMP, at_least=floor)
    assert expected == labels("date-part", column, 0, 0, 1, 1)


def test_a_date_part_loses_the_days_it_stands_for():
    days = [date(2020, 1, 1), date(2020, 1, 11), date(2020, 12, 31), date(2020, 12, 31)]
    assert [("2020-01", round(30 / 365, 6)), ("2020-12-31", 0)] == published(
        "date-part", column_of(days), 0, 0, 1, 1
    )


def test_a_prefix_is_what_all_values_begin_with():
    places = ["13053", "13068", "13068", "13053", "14853", "14850", "02139"]
    column = column_of(places, recoding="prefix")
    assert ["130*", "1485*", "02139"] == labels("prefix", column, 0, 0, 0, 0, 1, 1, 2)
    assert ["1*", "*"] == labels("prefix", column, 0, 0, 0, 0, 0, 1, 1)
    codes = ["I10", "I10.1", "E11", None]
    column = column_of(codes, recoding="prefix")
    assert ["I10*", "E11", None] == labels("prefix", column, 0, 0, 1, 2)  # one begins the other
    longest = ["x" * 40 + "a", "x" * 40 + "b"]
    assert ["x" * 16 + "*"] == labels("prefix", column_of(longest, recoding="prefix"), 0, 0)


def test_a_prefix_with_a_taxonomy_is_refused():
    with pytest.raises(PolicyError, match="prefix makes a tree"):
        recoding_of(column_of([*"ab"], taxonomy="letters", recoding="prefix"))


def test_equal_values_are_published_alike_by_global_recoding():
    """The partition of golden 6.2 that local recoding publishes differently for R3 and R4."""
    ages, places = [24, 25, 30, 30, 32, 32], [53712, 53711, 53711, 53711, 53712, 53713]
    local = (0, 0, 0, 1, 1, 1)
    assert ["[24,30]", "[30,32]"] == labels("interval", column_of(ages), *local)
    assert ["[24,32]", "[24,32]"] == labels("global", column_of(ages), *local)
    assert ["[53711,53713]"] * 2 == labels("global", column_of(places), *local)
    regrouped = (0, 1, 1, 1, 0, 0)
    assert ["[53712,53713]", "[53711,53711]"] == labels("global", column_of(places), *regrouped)


def test_the_grid_of_a_tree_is_a_cut_through_it():
    column = column_of([*"abcdefg"], taxonomy="letters")
    found = labels("global", column, 0, 1, 1, 2, 3, 3, 4)
    nodes = [column.taxonomy.labels.index(label) for label in found]
    for one in nodes:
        for other in nodes:
            above = naive.ancestors(column.taxonomy, one)
            assert one == other or other not in above
    assert ["a", "P", "d", "Y", "g"] == found


def test_full_domain_recoding_publishes_one_level():
    letters = partial(column_of, [*"abcdefg"], taxonomy="letters")
    assert ["a", "P", "V", "Y", "V"] == labels("full-domain", letters(), 0, 1, 1, 2, 3, 3, 4)
    assert [*"abcdefg"] == labels("full-domain", letters(), *range(7))
    found = labels("full-domain", letters(), 0, 1, 1, 2, 3, 2, 3)  # X and U are above some
    assert ["a", "P", "U", "U"] == found
    assert ["*"] * 2 == labels("full-domain", letters(), 0, 0, 1, 1, 1, 1, 1)
    floored = letters(at_least=2)
    assert ["a", "P", "U", "U"] == labels("full-domain", floored, 0, 1, 1, 2, 3, 2, 2)


def test_a_level_of_nulls_and_values_is_the_root():
    column = column_of(["a", "b", "c", None, None], taxonomy="letters")
    assert ["a", "P", None] == labels("full-domain", column, 0, 1, 1, 2, 2)
    assert ["*", "*", None] == labels("full-domain", column, 0, 1, 1, 1, 2)


@given(st.lists(st.integers(0, 4), min_size=7, max_size=7))
def test_a_level_loses_at_least_what_ancestors_lose(groups):
    numbers = np.unique(groups, return_inverse=True)[1]
    column = column_of([*"abcdefg"], taxonomy="letters")
    assignment = Assignment(numbers.astype(np.int32), int(numbers.max()) + 1)
    level = RECODINGS["full-domain"].publish(column, assignment)
    local = RECODINGS["label"].publish(column, assignment)
    assert (level.loss[level.index] >= local.loss[local.index] - 1e-12).all()
    shown = [column.taxonomy.labels.index(level.labels[i]) for i in level.index]
    for node, label in zip(shown, local.index, strict=True):
        exact = column.taxonomy.labels.index(local.labels[label])
        assert node in naive.ancestors(column.taxonomy, exact)


def test_numbers_with_a_taxonomy_have_no_grid():
    table = encoded(
        {"x": [1, 2]}, rules={"x": {"taxonomy": "t"}}, taxonomies=[tree("t", {"1": {}, "2": {}})]
    )
    assert misfit("label", table.quasi[0]) is None
    assert "recoding global of integer takes no taxonomy" == misfit("global", table.quasi[0])


OF_A_TREE = [
    *("label", "prefix", "global", "full-domain", "set", "mode", "cell-suppression", "suppress"),
]


@pytest.mark.parametrize(
    ("column", "accepted"),
    [
        (
            column_of([1, 2]),
            [
                *("interval", "bounds", "center", "interval-text", "date-part", "global", "set"),
                *("mean", "midpoint", "median", "mode", "cell-suppression", "suppress"),
            ],
        ),
        (column_of(["a", "b"]), OF_A_TREE),
        (
            column_of(["b", "a"], order=("b", "a")),
            [
                *("interval-text", "global", "set", "median", "mode", "cell-suppression"),
                "suppress",
            ],
        ),
        (column_of(["true"], ColumnKind.BOOLEAN), OF_A_TREE),
        (column_of([*"ab"], taxonomy="letters"), OF_A_TREE),
    ],
)
def test_recodings_accept_what_they_can_publish(column, accepted):
    assert accepted == [
        name for name, recoding in RECODINGS.items() if column.structure in recoding.accepts
    ]
    assert recoding_named(column) in accepted


def read(label, kind):
    if kind is ColumnKind.DATE:
        return np.datetime64(label, "D")
    if kind is ColumnKind.TIMESTAMP:
        return np.datetime64(label.strip('"'), "us")
    return Decimal(label)


def _is_in_period(day, label):
    """Whether a day is in a period by its name."""
    year, month = int(day[:4]), int(day[5:7])
    if re.fullmatch(r"\d{4}-\d{4}", label):
        return int(label[:4]) <= year <= int(label[5:])
    if "Q" in label:
        return label == f"{year:04}-Q{(month + 2) // 3}"
    return day.startswith(label)


def is_true(column, recoding, label, codes):  # noqa: PLR0911 - one for each kind
    """Whether what is published of a group is true of each of its members."""
    values = [column.values[code] for code in codes if code < column.size]
    if recoding == "cell-suppression":
        return (label is None) == (not values or len(set(codes)) > 1)
    if label is None:
        return not values or recoding == "mode"
    if recoding in {"suppress", "mean", "midpoint"} or label in {"*", "(,)"}:
        return True
    if recoding == "date-part":
        return all(_is_in_period(str(value.astype("datetime64[D]")), label) for value in values)
    if recoding == "global":
        recoding = {"line": "interval", "order": "interval-text"}.get(column.structure, "label")
    if recoding in {"median", "mode"}:
        return label in map(str, values) or recoding == "median" or column.taxonomy is None
    if recoding in {"prefix", "full-domain"}:
        recoding = "label"
    if recoding in {"interval", "interval-text", "bounds", "center"}:
        low, _, high = label.strip("[]").partition(",")
        low, high = read(low, column.kind), read((high or label).strip(), column.kind)
        known = [Decimal(repr(v.item())) if isinstance(v, np.number) else v for v in values]
        return len(values) == len(codes) and all(low <= value <= high for value in known)
    assert recoding == "label", f"say here when {recoding} is true"
    nodes = [n for n, text in enumerate(column.taxonomy.labels) if text == label]
    return any(
        all(node in naive.ancestors(column.taxonomy, int(column.taxonomy.leaves[c])) for c in codes)
        for node in nodes
    )


@pytest.mark.parametrize("recoding", sorted(set(RECODINGS) - {"set"}))
@given(tables(max_sensitive=0), st.data())
def test_labels_are_distinct_and_true_of_every_member(recoding, table, data):
    ids = data.draw(st.lists(st.integers(-1, 3), min_size=table.n_rows, max_size=table.n_rows))
    kept = sorted(set(ids) - {-1})
    assignment = Assignment(
        np.array([kept.index(i) if i >= 0 else -1 for i in ids], np.int32), len(kept)
    )
    for column in table.quasi:
        if not kept or misfit(recoding, column):
            continue
        result = RECODINGS[recoding].publish(column, assignment)
        assert len(result.labels) == len(set(result.labels)) == len(result.loss)
        assert (len(kept), np.int32) == (len(result.index), result.index.dtype)
        assert 0 <= result.loss.min() <= result.loss.max() <= 1
        for rows, label in zip(naive.members(assignment), result.index.tolist(), strict=True):
            codes = column.codes[rows].tolist()
            assert is_true(column, recoding, result.labels[label], codes)


OF_ROWS = [
    ("flat", {}, ["heart", "heart", "lung", "lung"], "liver"),
    ("prefix", {"recoding": "prefix"}, ["02138", "02138", "02139", "02139"], "0213912"),
    ("prefix", {"recoding": "prefix"}, ["0213", "0213", "0214", "0215"], "02139"),
    ("floor", {"at_least": 3}, ["02138", "02139", "03601", "03601"], "021391"),
    ("other", {"taxonomy": "letters", "on_new_value": "other"}, ["b", "c", "b", "e"], "new"),
]


@pytest.mark.parametrize(("made_of", "rule", "values", "unpublished"), OF_ROWS)
def test_what_is_not_published_has_no_part_in_labels_or_in_what_is_above_them(
    made_of, rule, values, unpublished
):
    def shown(values, ids):
        column = column_of(values, **rule)
        recoding = rule.get("recoding", "label")
        result = RECODINGS[recoding].publish(column, groups(*ids))
        return [result.labels[i] for i in result.index], set(label_rows(result))

    assert shown(values, [0, 0, 1, 1]) == shown([*values, unpublished], [0, 0, 1, 1, -1]), made_of


def test_a_label_of_no_stored_taxonomy_counts_the_published_values_and_one_more_for_the_rest():
    column = column_of(["021", "022", "023", "03", "04"], recoding="prefix")
    result = RECODINGS["prefix"].publish(column, groups(0, 1, 1, 2, 2))
    assert ["021", "02*", "0*"] == [result.labels[i] for i in result.index]
    assert [("*", None, 0, 3), ("0*", "*", 1, 3), ("02*", "0*", 2, 2), ("021", "02*", 3, 0)] == (
        label_rows(result)
    )


def test_a_label_that_recurs_is_one_row():
    places = from_levels("places", [("Asia", "Asia", "*"), ("Rome", "Europe", "*")])
    rules = {"x": {"taxonomy": "places"}}
    column = encoded({"x": ["Asia", "Rome"]}, rules=rules, taxonomies=[places]).quasi[0]
    result = RECODINGS["label"].publish(column, groups(0, 1))
    assert [
        ("*", None, 0, 2),
        ("Asia", "*", 1, 0),
        ("Europe", "*", 1, 1),
        ("Rome", "Europe", 2, 0),
    ] == label_rows(result)
