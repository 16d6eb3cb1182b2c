import numpy as np
import pytest
from builders import tables_and_requirements
from hypothesis import given
from hypothesis import strategies as st

from dbanon.anonymization.adjusting.merging import Merging
from dbanon.anonymization.loss.costs import weighted_costs
from dbanon.domain.assignment import Assignment
from dbanon.kernels.boxes.costs import box_costs, group_boxes


@given(tables_and_requirements(), st.data())
def test_a_rise_is_what_the_union_costs_more_than_its_parts(drawn, data):
    table, _, _ = drawn
    drawn_groups = data.draw(
        st.lists(st.integers(0, 4), min_size=table.n_rows, max_size=table.n_rows)
    )
    group = np.unique(drawn_groups, return_inverse=True)[1].astype(np.int32)
    n_groups = int(group.max()) + 1
    codes = table.codes

    def total(of_rows):
        dense = np.unique(of_rows, return_inverse=True)[1].astype(np.int32)
        lo, hi, size = group_boxes(codes, dense, int(dense.max()) + 1)
        return float((box_costs(*weighted_costs(table), lo, hi).sum(axis=1) * size).sum())

    rises = Merging(table, Assignment(group, n_groups)).rises(0)
    for b in range(1, n_groups):
        expected = total(np.where(group == b, 0, group)) - total(group)
        assert expected == pytest.approx(rises[b])
