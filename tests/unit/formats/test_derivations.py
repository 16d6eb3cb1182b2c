from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbanon.domain.errors import TaxonomyError
from dbanon.formats.taxonomies import derive_dates, derive_flat, derive_intervals, derive_prefix


def path_of(taxonomy, leaf):
    node = int(taxonomy.leaves[taxonomy.leaf_labels.index(leaf)])
    path = []
    while node >= 0:
        path.append(taxonomy.labels[node])
        node = int(taxonomy.parent[node])
    return path


def test_20_is_in_the_interval_that_begins_at_20():
    ages = derive_intervals("age", range(17, 91), widths=[5, 10, 20])
    assert ["20", "[20, 25)", "[20, 30)", "[20, 40)", "*"] == path_of(ages, "20")
    assert ["19", "[15, 20)", "[10, 20)", "[0, 20)", "*"] == path_of(ages, "19")


@given(
    st.lists(st.decimals(allow_nan=False, allow_infinity=False, places=3), min_size=1),
    st.sampled_from([["0.25", "0.5"], [1, 7], ["0.003"], ["1e3", "1e6"], [0.1, 0.5]]),
)
def test_every_number_lies_in_each_of_its_intervals(numbers, widths):
    taxonomy = derive_intervals("n", numbers, widths=widths)
    for number in numbers:
        leaf, *intervals, root = path_of(taxonomy, str(number))
        assert "*" == root
        for interval, width in zip(intervals, widths, strict=True):
            low, high = (Fraction(bound) for bound in interval[1:-1].split(", "))
            assert low <= Fraction(leaf) < high
            assert Fraction(str(width)) == high - low
            assert 0 == low % Fraction(str(width))


def test_negative_numbers_round_down():
    taxonomy = derive_intervals("n", ["-0.5", "-1", "0.0", None], widths=[1])
    assert ["-0.5", "[-1, 0)", "*"] == path_of(taxonomy, "-0.5")
    assert ["-1", "[-1, 0)", "*"] == path_of(taxonomy, "-1")
    assert ["0.0", "[0, 1)", "*"] == path_of(taxonomy, "0.0")


def test_numbers_are_ordered_by_value_and_keep_their_spelling():
    taxonomy = derive_intervals("n", ["10", "9", "1.00", Decimal("1.0"), 9], widths=[100])
    assert ("1.0", "1.00", "9", "10") == taxonomy.leaf_labels


@pytest.mark.parametrize("widths", [[], [0], [-1], ["x"], ["inf"], [5, 7], [10, 5], [5, 5]])
def test_widths_that_do_not_nest_are_refused(widths):
    with pytest.raises(TaxonomyError, match="width"):
        derive_intervals("n", [1], widths=widths)


def test_what_is_no_number_is_counted_not_shown():
    with pytest.raises(TaxonomyError, match="4 of 5 values are not finite numbers") as caught:
        derive_intervals("n", ["1", "secret", "NaN", "Infinity", "1e999"], widths=[1])
    assert "secret" not in str(caught.value)


def test_days_lie_in_months_quarters_years_and_decades():
    taxonomy = derive_dates("d", [date(2020, 2, 29), "1999-12-31", None, "0009-01-01"])
    assert ["2020-02-29", "2020-02", "2020-Q1", "2020", "2020-2029", "*"] == path_of(
        taxonomy, "2020-02-29"
    )
    assert ["0009-01-01", "0009-01", "0009-Q1", "0009", "0000-0009", "*"] == path_of(
        taxonomy, "0009-01-01"
    )
    assert ("0009-01-01", "1999-12-31", "2020-02-29") == taxonomy.leaf_labels


@given(st.sets(st.dates(), min_size=1, max_size=20))
def test_every_day_lies_in_each_of_its_periods(days):
    taxonomy = derive_dates("d", days)
    assert [str(day) for day in sorted(days)] == list(taxonomy.leaf_labels)
    for day in days:
        _, month, quarter, year, decade, _ = path_of(taxonomy, str(day))
        assert (day.year, day.month) == (int(month[:4]), int(month[5:]))
        assert (day.year, (day.month - 1) // 3) == (int(quarter[:4]), int(quarter[6:]) - 1)
        assert day.year == int(year)
        assert int(decade[:4]) <= day.year <= int(decade[5:])


@pytest.mark.parametrize(
    "value",
    ["infinity", "0044-03-15 BC", "20200101", "2020-W01-1", datetime(2020, 1, 1, tzinfo=UTC)],
)
def test_what_is_no_day_is_refused(value):
    with pytest.raises(TaxonomyError, match="1 of 1 values are not days"):
        derive_dates("d", [value])


def test_codes_are_masked_from_the_right():
    codes = derive_prefix("zip", ["94305", "94301", "08201"])
    assert ["94305", "9430*", "943**", "94***", "9****", "*"] == path_of(codes, "94305")
    assert path_of(codes, "94305")[1:] == path_of(codes, "94301")[1:]


def test_codes_of_one_character_are_flat():
    assert ("*", "A", "B") == derive_prefix("code", ["B", "A"]).labels


def test_codes_of_unequal_length_are_refused_with_their_lengths():
    with pytest.raises(TaxonomyError, match="found 2 of 4, 1 of 5 characters"):
        derive_prefix("zip", ["1234", "12345", "4321"])


def test_a_flat_taxonomy_keeps_the_order_of_its_values():
    assert ("*", "low", "high", "middle") == derive_flat(
        "grade", ["low", "high", None, "middle", "low"]
    ).labels


@pytest.mark.parametrize(
    "derive",
    [
        lambda: derive_flat("t", ["*", "a"]),
        lambda: derive_flat("t", ["*"]),
        lambda: derive_prefix("t", ["9430*", "94305"]),
        lambda: derive_prefix("t", ["943*"]),
    ],
)
def test_a_value_that_reads_like_an_inner_label_is_refused(derive):
    with pytest.raises(TaxonomyError, match="1 values read like the label of an inner node"):
        derive()


@pytest.mark.parametrize("derive", [derive_flat, derive_dates, derive_prefix])
def test_no_values_make_no_taxonomy(derive):
    with pytest.raises(TaxonomyError, match="no leaf"):
        derive("t", [None])
