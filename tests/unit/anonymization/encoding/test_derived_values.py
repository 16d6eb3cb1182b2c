"""New values are placed where the taxonomy itself says that they belong, and nowhere else."""

import numpy as np
import pytest
from builders import encoded, tree
from hypothesis import given
from hypothesis import strategies as st

from dbanon.anonymization.encoding.encode import with_derived
from dbanon.domain.errors import TaxonomyError
from dbanon.formats.taxonomies import from_rows, rows


def below(*leaves):
    return {key: {} for key in leaves}


ZIP = tree(
    "zip",
    {
        "0****": {
            "02***": {
                "021**": below("02138", "02140"),
                "025**": below("02501"),
            },
            "03***": {"036**": below("03601")},
        }
    },
)
ZIP3 = tree("zip3", {"9**": {"94*": below("943", "944")}})
ICD = tree("icd", {"IV Endocrine": below("E10", "E11"), "V Mental": below("F10")})
CODES = tree("codes", {"IV": {"E10": below("E10.1", "E10.9"), "E11": below("E11.0", "E11.9")}})


def place(taxonomy, text):
    """Return the leaf that a text is, and what is above it; None where it stays missing."""
    grown, (leaf,) = with_derived(taxonomy, [text])
    assert rows(grown) == rows(from_rows(grown.name, rows(grown), version=0))
    if leaf not in grown.leaf_labels:
        assert grown is taxonomy
        return None
    node = grown.labels.index(leaf)
    return leaf, grown.labels[grown.parent[node]]


@pytest.mark.parametrize(
    ("taxonomy", "text", "expected"),
    [
        (ZIP, "02139", ("02139", "021**")),
        (ZIP, "02500", ("02500", "025**")),
        (ZIP, "02138", ("02138", "021**")),
        (CODES, "E11.5", ("E11.5", "E11")),
        (ZIP3, "94305", ("943", "94*")),
        (ZIP3, "94305-1234", ("943", "94*")),
        (ICD, "E11.9", ("E11", "IV Endocrine")),
    ],
)
def test_a_code_is_placed_where_its_beginning_says(taxonomy, text, expected):
    assert expected == place(taxonomy, text)


@pytest.mark.parametrize(
    ("taxonomy", "text"),
    [
        (ZIP, "02639"),  # its branch would be one of branches
        (ZIP, "10001"),
        (ZIP, "0213"),  # written otherwise
        (ZIP, "021395"),
        (ZIP, "02139 Cambridge"),
        (ZIP, "021**"),
        (CODES, "E11.51"),
        (CODES, "E11"),
        (CODES, "E12.0"),
        (ICD, "E12"),
        (ICD, "E119"),  # a code, or a number of one's own
        (tree("pay", {"low": below("1000", "1500"), "high": below("9000")}), "10000"),
        (tree("ages", {"120-124": below("120", "124"), "130-134": below("130")}), "127"),
        (tree("odd", {"12": below("121", "990"), "b": below("130")}), "127"),
        (tree("two", {"12": below("121"), "b": below("122")}), "127"),
        (tree("cities", {"Massachusetts": below("Boston"), "Ohio": below("Dayton")}), "Bostons"),
        (tree("flat", below("101", "102")), "103"),
    ],
)
def test_what_is_not_sure_stays_missing(taxonomy, text):
    assert place(taxonomy, text) is None


def column_of(values, taxonomy, **changes):
    rules = {"zip": {"taxonomy": taxonomy.name, "on_new_value": "derive", **changes}}
    return encoded({"zip": values}, rules=rules, taxonomies=[taxonomy]).quasi[0]


def test_the_floor_holds_of_what_was_placed():
    column = column_of(["02138", "02139", "02140", "02501"], ZIP, at_least=1)
    shown = {column.values[code] for code in column.codes}
    assert shown == {"021**", "025**"}


def test_what_stays_missing_is_counted_with_the_reason_and_not_shown():
    with pytest.raises(TaxonomyError) as caught:
        column_of(["02138", "02139", "77777"], ZIP)
    assert "has no leaf for 1 distinct values of column zip, on 1 rows" in str(caught.value)
    assert "names no branch that they surely belong to" in str(caught.value)
    assert "77777" not in f"{caught.value} {caught.value.hint}"


def test_a_tree_without_new_values_stays_as_it_is():
    assert column_of(["02138", None], ZIP).taxonomy is ZIP


@pytest.mark.exhaustive
@given(st.lists(st.from_regex(r"0[23][0-6][0-9]{2}", fullmatch=True), min_size=1))
def test_leaves_keep_their_place_and_new_ones_are_beside_their_like(values):
    grown, texts = with_derived(ZIP, values)
    assert texts == values
    assert rows(grown) == rows(from_rows("zip", rows(grown), version=0))
    assert set(np.unique(grown.depth[grown.leaves])) == {4}
    for text in set(values) & set(grown.leaf_labels):
        above = grown.labels[grown.parent[grown.labels.index(text)]]
        assert above == f"{text[:3]}**"
