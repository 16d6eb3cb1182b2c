"""Beliefs: the hospital of Machanawajjhala et al., golden 6.4, and its posteriors."""

from math import exp, log

import numpy as np
import pyarrow as pa
import pytest
from builders import encoded, policy_of

from dbanon.anonymization.released.reading import of_texts
from dbanon.anonymization.risk.assessment import disclosures, posterior

CONDITIONS = ["Cancer", "Heart Disease", "Viral Infection"]
HOSPITAL = [*"HHVVCHVVCCCC"]
A = [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]
B = [1, 3, 3, 1, 2, 2, 2, 2, 1, 1, 3, 3]


def released(classes, values, *, source=None):
    names = {name[0]: name for name in CONDITIONS} | {None: None}
    texts = [names.get(value, value) for value in values]
    source = texts if source is None else source
    table = encoded({"q": [*range(len(source))]}, {"condition": source})
    shown = pa.table(
        {
            "q": pa.array([f"[{c},{c}]" for c in classes], pa.string()),
            "condition": pa.array(texts, pa.string()),
        }
    )
    counts = np.ones(len(classes), np.int64)
    return of_texts(table, shown, counts, policy=policy_of(["q"], ["condition"]))


def test_who_has_cancer_alone_in_a_class_is_known_to_have_it():
    """Homogeneity: a 31-year-old American in 13053 is in class A3."""
    among = np.full(3, 1 / 3)
    assert [1, 0, 0] == posterior(np.array([4, 0, 0]), among, among).tolist()


def test_what_is_known_beforehand_leaves_one_value():
    """Background: of a 21-year-old Japanese in 13068, in class A1, a heart disease is ruled out."""
    found = posterior(np.array([0, 2, 2]), np.array([0, 0.0, 1.0]), np.array([0, 0.5, 0.5]))
    assert [0, 0, 1] == found.tolist()


def test_who_knows_nothing_believes_what_the_class_says():
    alike = np.array([0.2, 0.3, 0.5])
    assert [1 / 4, 1 / 4, 2 / 4] == posterior(np.array([1, 1, 2]), alike, alike).tolist()


def test_beliefs_are_weighed_by_what_is_known():
    """2 * (.8 / .5) : 2 * (.2 / .5) = 4 : 1."""
    found = posterior(np.array([2, 2]), np.array([0.8, 0.2]), np.array([0.5, 0.5]))
    assert [0.8, 0.2] == pytest.approx(found.tolist())


def test_of_what_no_class_can_hold_nothing_is_believed():
    assert [0.0] == posterior(np.array([3]), np.array([0.0]), np.array([0.5])).tolist()


def test_the_homogeneous_table_of_the_hospital():
    (found,) = disclosures(released(A, HOSPITAL))
    assert ("condition", 3) == (found.column, found.values)
    assert found.highest == 1.0
    assert found.lift == pytest.approx(12 / 5)  # cancer in A3
    assert found.guessed == pytest.approx((2 + 2 + 4) / 12)
    assert found.baseline == pytest.approx(5 / 12)
    assert found.positive == pytest.approx(4 / 12)  # A3
    assert found.negative == pytest.approx((4 + 4) / 12)  # no cancer in A1, nothing else in A3
    assert found.diversity == pytest.approx(1.0)
    assert found.closeness == pytest.approx(7 / 12)


def test_the_diverse_table_of_the_hospital():
    (found,) = disclosures(released(B, HOSPITAL))
    assert found.highest == 1 / 2
    assert found.lift == pytest.approx(1 / 2 * 12 / 4)  # viral infection in B2
    assert found.guessed == pytest.approx(1 / 2)
    assert (0.0, 0.0) == (found.positive, found.negative)
    assert found.diversity == pytest.approx(exp(1.5 * log(2))) == pytest.approx(2.828427)
    assert found.closeness == pytest.approx(1 / 6)


def test_values_that_the_source_lost_are_values_still():
    (found,) = disclosures(released([1, 1, 2, 2], ["H", "V", "H", "measles"], source=["x"] * 3))
    assert 3 == found.values
    assert found.baseline == pytest.approx(1 / 2)
    assert found.highest == pytest.approx(1 / 2)


def test_nothing_published_discloses_nothing():
    assert () == disclosures(released([], [], source=["x"]))
