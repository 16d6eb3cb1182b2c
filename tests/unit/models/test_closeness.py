import goldens
import naive
import numpy as np
import pytest
from builders import LETTERS, tree
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from selection import at_depth

from dbanon.domain.assignment import SensitiveDomain
from dbanon.models.closeness.t_closeness import TCloseness
from dbanon.models.tally import Whole, tally_of_counts


def distances(counts, whole, distance, taxonomy=None):
    """Return how far classes are from a relation; both count the values, leaves in their order."""
    m = len(whole)
    domain = SensitiveDomain((), np.zeros(0), np.arange(m), tree=taxonomy)
    relation = Whole(whole / whole.sum(), int(whole.sum()), domain)
    return TCloseness(1.0, distance).achieved(tally_of_counts(counts), relation)


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


def test_ground_distances_of_diseases():
    diseases = goldens.DISEASE_TREE
    apart, leaves = leaf_distances(diseases), diseases.leaf_labels
    flu = apart[leaves.index("flu")]
    assert [1 / 3, 2 / 3, 1] == pytest.approx(
        [flu[leaves.index(name)] for name in ("bronchitis", "pulmonary embolism", "stomach cancer")]
    )


COUNTS = st.lists(st.integers(0, 4), min_size=7, max_size=7).filter(any)


@pytest.mark.exhaustive
@settings(max_examples=at_depth(60))
@given(st.lists(COUNTS, min_size=2, max_size=3))
def test_it_is_the_least_work_that_a_linear_program_finds(drawn):
    counts = np.array(drawn)
    whole = counts.sum(axis=0)
    p, q = counts[0] / counts[0].sum(), whole / whole.sum()
    equal = distances(counts, whole, "equal")[0]
    assert least_work(p, q, 1 - np.eye(7)) == pytest.approx(equal, abs=1e-9)
    there = np.flatnonzero(whole)
    rank = np.arange(len(there)) / max(len(there) - 1, 1)
    work = least_work(p[there], q[there], np.abs(rank[:, None] - rank))
    assert work == pytest.approx(distances(counts, whole, "ordered")[0], abs=1e-9)
    hierarchical = distances(counts, whole, "hierarchical", LETTERS)[0]
    assert least_work(p, q, leaf_distances(LETTERS)) == pytest.approx(hierarchical, abs=1e-9)


def test_values_that_the_relation_does_not_hold_have_no_rank():
    whole = np.array([0, 1, 0, 0, 1, 0])
    assert [1 / 2] == distances(np.array([[0, 1, 0, 0, 0, 0]]), whole, "ordered").tolist()


def test_a_relation_of_one_value_is_0_from_itself():
    one = np.array([[3, 0]])
    for distance in ("equal", "ordered"):
        assert [0.0] == distances(one, one[0], distance).tolist()
    only = tree("only", {"a": {}})
    assert [0.0] == distances(np.array([[3]]), np.array([3]), "hierarchical", only).tolist()
