"""The taxonomies that everybody reads in the comment of a release."""

import numpy as np
import pyarrow as pa
from builders import leaf_tree, tree

from dbanon.db.models.functions import order_document, shown_trees, tree_document

DOCUMENT = tree_document(tree("d", leaf_tree(a=["flu", "gout"], b=["(2)", "secret", "((2))"])))


def shown(values, group):
    columns = pa.table({"disease": pa.array(values).dictionary_encode()})
    return shown_trees({"disease": DOCUMENT}, columns, group=np.array(group, np.int32))["disease"]


def test_only_values_of_published_rows_are_named():
    found = shown(["flu", "gout", "secret", None], [0, 0, -1, 0])
    assert {"flu", "gout"} == {label for label in found["leaves"] if label.isalpha()}


def test_every_leaf_stays_where_it_is():
    for group in ([0, 0], [0, -1], [-1, -1]):
        found = shown(["flu", "(2)"], group)
        assert DOCUMENT["parent"] == found["parent"]
        assert list(DOCUMENT["leaves"].values()) == list(found["leaves"].values())
        assert len(found["leaves"]) == 5


def test_an_order_lists_the_values_of_published_rows_alone():
    columns = pa.table({"disease": pa.array(["gout", "flu", "secret", None]).dictionary_encode()})
    document = {**DOCUMENT, **order_document(["secret", "flu", "never", "gout"])}
    group = np.array([0, 0, -1, 0], np.int32)
    found = shown_trees({"disease": document}, columns, group=group)["disease"]
    assert ["flu", "gout"] == found["order"]
    assert not {"secret", "never"} & {*found["leaves"]}
