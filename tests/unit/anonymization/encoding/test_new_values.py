import numpy as np
import pytest
from builders import LETTERS, encoded, policy_of, tree
from hypothesis import given
from hypothesis import strategies as st

from dbanon.anonymization.encoding.encode import with_other
from dbanon.anonymization.problem import Problem, solve
from dbanon.domain.errors import TaxonomyError
from dbanon.domain.outcomes import Stages
from dbanon.formats.taxonomies import from_rows, rows

RULES = {"letter": {"taxonomy": "letters", "on_new_value": "other"}}


def encoded_letters(values, rules=RULES, taxonomy=LETTERS):
    return encoded({"letter": values}, rules=rules, taxonomies=[taxonomy])


def test_a_new_value_stops_unless_the_policy_lets_it_be():
    for stop in ({"taxonomy": "letters"}, {"taxonomy": "letters", "on_new_value": "stop"}):
        with pytest.raises(TaxonomyError) as caught:
            encoded_letters(["a", "secret"], rules={"letter": stop})
        assert "secret" not in f"{caught.value} {caught.value.hint}"
        assert "dbanon taxonomy missing letters TABLE letter" in caught.value.hint


def test_new_values_are_one_leaf_below_the_root():
    (column,) = encoded_letters(["a", "new", None, "newer", "b"]).quasi
    shown = [None if code == column.size else column.values[code] for code in column.codes]
    assert ["a", "other", None, "other", "b"] == shown


def test_leaves_of_one_depth_stay_so():
    even = tree("letters", {"P": {"a": {}, "b": {}}, "Q": {"c": {}}})
    grown, _ = with_other(even, ["new"])
    assert {2} == set(grown.depth[grown.leaves].tolist())
    assert rows(grown) == rows(from_rows("letters", rows(grown), version=0))


def test_a_taxonomy_without_new_values_stays_as_it_is():
    (column,) = encoded_letters(["a", "b"]).quasi
    assert column.taxonomy is LETTERS


def test_a_leaf_of_that_name_takes_new_values():
    taxonomy = tree("letters", {"P": {"a": {}, "other": {}}, "b": {}})
    (column,) = encoded_letters(["a", "new"], taxonomy=taxonomy).quasi
    assert column.taxonomy is taxonomy
    assert "other" == column.values[column.codes[1]]


def test_other_above_others_is_refused_with_what_to_do():
    taxonomy = tree("letters", {"other": {"a": {}}, "b": {}})
    with pytest.raises(TaxonomyError, match="above other labels"):
        encoded_letters(["new"], taxonomy=taxonomy)


@given(st.lists(st.sampled_from(["a", "b", "e", "new", "newer"]), min_size=1))
def test_the_grown_tree_is_a_taxonomy(values):
    grown, texts = with_other(LETTERS, values)
    assert rows(grown) == rows(from_rows("letters", rows(grown), version=0))
    assert set(texts) <= set(grown.leaf_labels)
    assert [text for text in values if text in LETTERS.leaf_labels] == [
        text for text in texts if text != "other"
    ]


def test_classes_of_new_values_are_published_as_other_and_as_large_as_all():
    values = ["new", "newer", "newest", "a", "a", "a"]
    table = encoded_letters(values)
    policy = policy_of(["letter"], k=3, rules=RULES, algorithm="mondrian")
    outcome = solve(Problem(table, policy), seed=1, stages=Stages())
    (column,) = outcome.values.columns
    shown = [column.labels[i] for i in column.index[outcome.assignment.group]]
    assert ["other"] * 3 + ["a"] * 3 == shown
    assert [3, 3] == np.bincount(outcome.assignment.group).tolist()
