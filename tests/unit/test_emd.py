from fractions import Fraction

import naive
import numpy as np
import pytest
from builders import LETTERS, leaf_tree, tree
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from dbanon.anonymize.emd import emd_equal, emd_hierarchical, emd_ordered

SALARY = [3, 4, 5, 6, 11, 8, 7, 9, 10]
DISEASE = ["gastric ulcer", "gastritis", "stomach cancer", "gastritis", "flu", "bronchitis"]
DISEASE += ["bronchitis", "pneumonia", "stomach cancer"]
DISEASES = tree(
    "diseases",
    leaf_tree(
        Respiratory={
            "RespInfection": ["flu", "pneumonia", "bronchitis"],
            "Vascular": ["pulmonary edema", "pulmonary embolism"],
        },
        Digestive={
            "Stomach": ["gastric ulcer", "stomach cancer", "gastritis"],
            "Colon": ["colitis", "colon cancer"],
        },
    ),
)


def counted(values, domain, ids):
    """Return how often each value of the domain occurs among the records of these numbers."""
    chosen = [values[i - 1] for i in ids]
    return np.array([chosen.count(value) for value in domain])


def least_work(p, q, apart):
    """Solve the transport problem as a linear program."""
    m = len(p)
    leaving, arriving = np.kron(np.eye(m), np.ones(m)), np.kron(np.ones(m), np.eye(m))
    solved = linprog(apart.ravel(), A_eq=np.vstack([leaving, arriving]), b_eq=np.append(p, q))
    return solved.fun


def leaf_distances(taxonomy):
    m = taxonomy.n_leaves
    ancestor = [[naive.common_ancestor(taxonomy, {a, b}) for a in range(m)] for b in range(m)]
    whole = naive.height(taxonomy, 0)
    return np.array([[naive.height(taxonomy, node) / whole for node in row] for row in ancestor])


@pytest.mark.parametrize(
    ("ids", "salary", "disease", "equal"),
    [
        ([1, 2, 3], Fraction(3, 8), Fraction(4, 9), Fraction(4, 9)),
        ([4, 5, 6], Fraction(1, 6), Fraction(8, 27), Fraction(4, 9)),
        ([7, 8, 9], Fraction(17, 72), Fraction(8, 27), Fraction(4, 9)),
        ([1, 3, 8], Fraction(1, 6), Fraction(7, 27), Fraction(5, 9)),
        ([2, 7, 9], Fraction(1, 12), Fraction(5, 27), Fraction(1, 3)),
    ],
)
def test_classes_of_li_et_al(ids, salary, disease, equal):
    everybody = range(1, 10)
    domain = range(1, 13)  # 1, 2 and 12 do not occur and have no rank
    whole = counted(SALARY, domain, everybody)
    found = emd_ordered(np.array([counted(SALARY, domain, ids)]), whole)
    assert [float(salary)] == pytest.approx(found.tolist(), abs=1e-12)
    leaves = DISEASES.leaf_labels
    counts = np.array([counted(DISEASE, leaves, ids)])
    whole = counted(DISEASE, leaves, everybody)
    found = emd_hierarchical(counts, whole, taxonomy=DISEASES)
    assert [float(disease)] == pytest.approx(found.tolist(), abs=1e-12)
    assert [float(equal)] == pytest.approx(emd_equal(counts, whole).tolist(), abs=1e-12)


def test_the_least_diverse_class_is_the_least_skewed():
    counts, whole = np.array([[0, 4], [2, 2], [3, 1]]), np.array([100, 9900])
    assert [0.01, 0.49, 0.74] == pytest.approx(emd_equal(counts, whole).tolist(), abs=1e-12)
    assert [1, 2, 2] == (counts > 0).sum(axis=1).tolist()
    ordered = emd_ordered(counts, whole).tolist()
    assert emd_equal(counts, whole).tolist() == pytest.approx(ordered, abs=1e-12)


def test_ground_distances_of_diseases():
    apart, leaves = leaf_distances(DISEASES), DISEASES.leaf_labels
    flu = apart[leaves.index("flu")]
    assert [1 / 3, 2 / 3, 1] == pytest.approx(
        [flu[leaves.index(name)] for name in ("bronchitis", "pulmonary embolism", "stomach cancer")]
    )


COUNTS = st.lists(st.integers(0, 4), min_size=7, max_size=7).filter(any)


@settings(max_examples=60)
@given(st.lists(COUNTS, min_size=2, max_size=3))
def test_it_is_the_least_work_that_a_linear_program_finds(drawn):
    counts = np.array(drawn)
    whole = counts.sum(axis=0)
    p, q = counts[0] / counts[0].sum(), whole / whole.sum()
    assert least_work(p, q, 1 - np.eye(7)) == pytest.approx(emd_equal(counts, whole)[0], abs=1e-9)
    there = np.flatnonzero(whole)
    rank = np.arange(len(there)) / max(len(there) - 1, 1)
    ordered = least_work(p[there], q[there], np.abs(rank[:, None] - rank))
    assert ordered == pytest.approx(emd_ordered(counts, whole)[0], abs=1e-9)
    found = emd_hierarchical(counts, whole, taxonomy=LETTERS)[0]
    assert least_work(p, q, leaf_distances(LETTERS)) == pytest.approx(found, abs=1e-9)


def test_a_table_of_one_value_is_0_from_itself():
    one = np.array([[3, 0]])
    assert [0.0] == emd_equal(one, one[0]).tolist() == emd_ordered(one, one[0]).tolist()
    only = tree("only", {"a": {}})
    assert [0.0] == emd_hierarchical(np.array([[3]]), np.array([3]), taxonomy=only).tolist()
