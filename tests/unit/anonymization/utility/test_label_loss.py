"""The loss that labels say by themselves."""

import numpy as np
import pyarrow as pa
import pytest
from builders import LETTERS, policy_of

from dbanon.anonymization.utility.label_loss import label_loss
from dbanon.domain.table import ColumnKind

INTEGER, FLOAT, DATE, TEXT = (
    ColumnKind.INTEGER,
    ColumnKind.FLOAT,
    ColumnKind.DATE,
    ColumnKind.CATEGORY,
)


def lost(labels, *, kind=TEXT, rows=None, is_range=False, **rule):
    """Return the loss of a column by its labels, None if they do not say it."""
    policy = policy_of(["x"], rules={"x": rule})
    names = policy.published_quasi
    columns = [labels] if len(names) == 1 else [*zip(*labels, strict=True)]
    pairs = zip(names, columns, strict=True)
    found = label_loss(
        pa.table({name: pa.array([*column], pa.string()) for name, column in pairs}),
        np.array(rows or [1] * len(labels), np.int64),
        policy,
        kinds=dict.fromkeys(names, kind),
        ranges=set(names) if is_range else (),
        taxonomies={"letters": LETTERS},
    )
    return found.get("x")


def test_a_range_loses_its_share_of_all_that_labels_span():
    """Whole numbers from 10 to 20: the first label has 5 of 10 steps, the second none."""
    assert 0.25 == lost(["[10,16)", "[20,21)"], kind=INTEGER, is_range=True)
    assert 0.125 == lost(["[10,16)", "[20,21)"], kind=INTEGER, is_range=True, rows=[1, 3])
    assert 0.5 == lost(["[0,5)", "[5,10)"], kind=FLOAT, is_range=True)
    days = ["[2020-01-01,2020-01-12)", "[2020-01-21,2020-01-22)"]
    assert 0.25 == lost(days, kind=DATE, is_range=True)


def test_an_open_range_reaches_as_far_as_any_label_and_one_without_ends_loses_everything():
    assert 0.5 == lost(["(,15]", "[20,)", "[10,20]"], kind=FLOAT, is_range=True)
    assert 1.0 == lost(["(,)"], kind=FLOAT, is_range=True)
    assert 0.0 == lost(["[3,3]", None], kind=FLOAT, is_range=True)


def test_ranges_in_two_columns_and_as_texts_are_read_as_such():
    assert 0.5 == lost([("0", "10"), ("10", "10")], kind=INTEGER, recoding="bounds")
    assert 0.5 == lost([("5", "5"), ("10", "0")], kind=INTEGER, recoding="center")
    assert pytest.approx(0.5) == lost(["[0, 10]", "10"], recoding="interval-text")
    assert pytest.approx(5 / 6, abs=1e-6) == lost(["<10", "[0, 20]", "*"], recoding="interval-text")
    years = lost(["2020", "2021-2022"], recoding="date-part")
    assert pytest.approx(0.5, abs=1e-3) == years
    assert pytest.approx(0.5, abs=2e-3) == lost(["2020", "2021"], recoding="date-part")


def test_a_node_loses_the_share_of_its_leaves_and_a_leaf_nothing():
    leaves = dict(zip(LETTERS.labels, LETTERS.leaf_hi - LETTERS.leaf_lo + 1, strict=True))
    expected = {label: 0.0 if n == 1 else n / LETTERS.n_leaves for label, n in leaves.items()}
    for label, share in expected.items():
        assert pytest.approx(share, abs=1e-6) == lost([label], taxonomy="letters")


def test_sets_and_orders_lose_their_share_of_what_there_is():
    assert pytest.approx((2 / 3 + 0) / 2, abs=1e-6) == lost(["{a,b}", "{c}"], recoding="set")
    order = ("low", "middle", "high")
    assert pytest.approx((1 / 2 + 0 + 1) / 3, abs=1e-6) == lost(
        ["[low, middle]", "high", "*"], order=order
    )


def test_texts_lose_the_characters_that_are_hidden():
    assert 0.2 == lost(["130**", "14850"])
    assert 0.5 == lost(["*", "Ithaca"])


def test_labels_that_stand_for_a_class_and_orders_that_nobody_lists_do_not_say_it():
    assert lost(["12.5", "31"], kind=FLOAT, recoding="mean") is None
    assert lost(["[low, high]", "low"], recoding="interval-text") is None
    assert 0.0 == lost(["12.5", "31"], kind=FLOAT, keep=True)
    assert 1.0 == lost([None, None], recoding="suppress")
    assert 0.5 == lost(["a", None], recoding="cell-suppression")
