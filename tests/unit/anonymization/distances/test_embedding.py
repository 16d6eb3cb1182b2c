import naive
import numpy as np
import pytest
from builders import encoded, tables
from hypothesis import given

from dbanon.anonymization.distances.rows import embed, pairwise


def squares(table):
    points = embed(table)
    return ((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=2)


@given(tables(names=("letter", "category"), max_sensitive=0, weights=(0.0, 1.0, 0.25)))
def test_squared_distances_of_categories_are_those_of_their_taxonomies(table):
    found = squares(table)
    for i in range(table.n_rows):
        for j in range(table.n_rows):
            expected = sum(
                naive.cost_of_codes(c, {c.codes[i], c.codes[j]}, by_height=True)
                for c in table.quasi
            )
            assert expected == pytest.approx(found[i, j])
    assert pairwise(table) == pytest.approx(found)


def test_ordered_columns_are_lines_and_null_lies_aside():
    table = encoded({"x": [0, 1, 4, None]}, rules={"x": {"weight": 4.0}})
    expected = [[0, 1 / 4, 4, 5], [1 / 4, 0, 9 / 4, 17 / 4]]
    assert expected == squares(table)[:2].tolist()
    assert (3, 1) == embed(encoded({"x": [0, 1, 4]})).shape


@pytest.mark.exhaustive
def test_rare_values_beyond_the_most_frequent_have_no_coordinate():
    values = [f"v{i:03}" for i in range(300)]
    table = encoded({"x": [*values, *values[100:]]})
    assert (500, 256) == embed(table).shape
    found = squares(table)
    assert [0.5, 1.0] == pytest.approx([found[98, 200], found[200, 201]])
    assert 0.0 == found[98, 99]
    assert np.allclose(found, found.T)
