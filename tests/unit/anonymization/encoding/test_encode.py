from datetime import UTC, date, datetime

import numpy as np
import pyarrow as pa
import pytest
from builders import LETTERS, encoded, policy_of, tree

from dbanon.anonymization.encoding.encode import encode
from dbanon.domain.errors import PolicyError, TaxonomyError, Unsatisfiable
from dbanon.domain.table import ColumnKind

AGES = tree("ages", {"young": {"5": {}, "39": {}}, "old": {"80": {}}})


def only(columns, **options):
    return encoded(columns, **options).quasi[0]


def test_ordered_values_become_ranks_and_null_comes_last():
    column = only({"age": [40, 20, None, 40, 30]})
    assert [2, 0, 3, 2, 1] == column.codes.tolist()
    assert (3, [20, 30, 40], [0.0, 0.5, 1.0]) == (
        column.size,
        column.values.tolist(),
        column.position.tolist(),
    )
    assert np.int32 == column.codes.dtype


def test_negative_zero_is_zero():
    assert [0, 0, 1] == only({"x": [-0.0, 0.0, 1.5]}).codes.tolist()


def test_positions_of_extreme_values_are_finite():
    huge = only({"x": [-1.7e308, 0.0, 1.7e308]})
    tiny = only({"x": [0.0, 5e-324]})
    whole = only({"x": [-(2**63), 0, 2**63 - 1]})
    assert [0.0, 0.5, 1.0] == huge.position.tolist()
    assert [0.0, 1.0] == tiny.position.tolist()
    assert [0.0, 0.5, 1.0] == whole.position.tolist()


def test_dates_and_timestamps_keep_their_numpy_type():
    moment = datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)
    table = encoded(
        {"born": [date(2020, 1, 2), None], "seen": [moment, moment]},
        kinds={"seen": ColumnKind.TIMESTAMPTZ},
    )
    assert ["datetime64[D]", "datetime64[us]"] == [str(c.values.dtype) for c in table.quasi]


def test_a_category_without_taxonomy_gets_a_flat_one_over_its_sorted_values():
    column = only({"sex": ["m", "f", None, "m"]})
    assert ("*", "f", "m") == column.taxonomy.labels
    assert [1, 0, 2, 1] == column.codes.tolist()
    assert 1 == column.taxonomy.height


def test_a_column_of_nulls_alone_is_encoded():
    assert [1, 1] == only({"x": [None, None]}).codes.tolist()
    empty = only({"x": [None, None]}, kinds={"x": ColumnKind.INTEGER})
    assert (0, [0, 0]) == (empty.size, empty.codes.tolist())


def test_leaves_are_numbered_by_their_taxonomy():
    column = only(
        {"x": ["g", "a", None]}, rules={"x": {"taxonomy": "letters"}}, taxonomies=[LETTERS]
    )
    assert [4, 0, 7] == column.codes.tolist()
    assert list("abcdgef") == column.values.tolist()


def test_an_ordered_column_goes_through_its_taxonomy_by_text():
    column = only({"age": [80, 5, 39]}, rules={"age": {"taxonomy": "ages"}}, taxonomies=[AGES])
    assert [2, 0, 1] == column.codes.tolist()
    assert 0 == len(column.position)


def test_values_that_are_no_leaf_are_counted_but_never_told():
    with pytest.raises(TaxonomyError) as caught:
        only(
            {"age": [1234, 1234, 5678, 5]},
            rules={"age": {"taxonomy": "ages"}},
            taxonomies=[AGES],
        )
    message = str(caught.value)
    assert "'ages'" in message
    assert "age" in message
    assert "2 distinct values" in message
    assert "3 rows" in message
    assert "1234" not in message + caught.value.hint


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_have_no_place_in_an_order_are_refused(odd):
    with pytest.raises(Unsatisfiable, match="income: 2 rows"):
        encoded({"income": [1.0, odd, odd]})


def test_infinite_dates_are_refused():
    days = pa.array([2**31 - 1, 0, None], pa.int32()).cast(pa.date32())
    with pytest.raises(Unsatisfiable, match="born: 1 rows"):
        encode(
            pa.table({"born": days}),
            policy_of(["born"]),
            kinds={"born": ColumnKind.DATE},
            taxonomies={},
        )


@pytest.mark.parametrize("kinds", [{}, {"x": ColumnKind.OTHER}])
def test_a_column_that_cannot_be_generalized_is_refused(kinds):
    with pytest.raises(PolicyError, match="x has a type"):
        encode(pa.table({"x": ["a"]}), policy_of(["x"]), kinds=kinds, taxonomies={})


def test_a_missing_column_and_a_missing_taxonomy_are_named():
    source = pa.table({"x": ["a"]})
    with pytest.raises(PolicyError, match="no column y"):
        encode(source, policy_of(["y"]), kinds={"y": ColumnKind.CATEGORY}, taxonomies={})
    with pytest.raises(TaxonomyError, match="no taxonomy 'lost'"):
        encode(
            source,
            policy_of(["x"], rules={"x": {"taxonomy": "lost"}}),
            kinds={"x": ColumnKind.CATEGORY},
            taxonomies={},
        )


def test_sensitive_values_are_dense_codes_and_null_is_one_of_them():
    table = encoded({"x": [1, 2, 3, 4]}, {"disease": ["flu", None, "cold", "flu"]})
    assert [[1], [2], [0], [1]] == table.sensitive.tolist()
    assert ("disease",) == table.sensitive_names


def test_chunks_and_dictionaries_do_not_matter():
    chunked = pa.chunked_array([["b", None], ["a"], []], pa.string())
    dictionary = pa.chunked_array(
        [
            pa.DictionaryArray.from_arrays([0, None], ["b", "unused"]),
            pa.DictionaryArray.from_arrays([1], ["b", "a"]),
        ]
    )
    indices = pa.array([1, 0, 2], pa.int32())
    with_null = pa.chunked_array(
        [pa.DictionaryArray.from_arrays(indices, pa.array([None, "b", "a"]))]
    )
    twice = pa.DictionaryArray.from_arrays(pa.array([1, None, 2, 0], pa.int32()), ["b", "b", "a"])
    exact = chunked.dictionary_encode()
    for column in (chunked, dictionary, with_null, pa.chunked_array([twice[:3]]), exact):
        table = encode(
            pa.table({"x": column, "y": column}),
            policy_of(["x"], ["y"]),
            kinds={"x": ColumnKind.CATEGORY},
            taxonomies={},
        )
        assert [1, 2, 0] == table.quasi[0].codes.tolist()
        assert ("*", "a", "b") == table.quasi[0].taxonomy.labels
        assert [[1], [2], [0]] == table.sensitive.tolist()
