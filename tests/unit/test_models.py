import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbanon.anonymize.registry import MODELS

NONE = np.zeros(0, np.int32)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1))
def test_achieved_is_what_counting_says(rows):
    ids = sorted({row[0] for row in rows})
    classes = np.array([ids.index(row[0]) for row in rows], np.int32)
    values = np.array([row[1] for row in rows], np.int32)
    members = [[value for c, value in rows if c == id_] for id_ in ids]
    assert [len(m) for m in members] == MODELS["k-anonymity"].achieved(classes, NONE).tolist()
    assert [len(set(m)) for m in members] == (
        MODELS["l-diversity"].achieved(classes, values).tolist()
    )


@pytest.mark.parametrize(
    ("conditions", "k", "l"),
    [
        (["hhvv", "vvch", "cccc"], 4, 1),
        (["hvcc", "chvv", "hvcc"], 4, 3),
    ],
)
def test_the_hospital_tables_achieve_what_their_authors_say(conditions, k, l):
    classes = np.repeat(np.arange(3, dtype=np.int32), 4)
    values = np.array([ord(c) - ord("a") for c in "".join(conditions)], np.int32)
    assert k == MODELS["k-anonymity"].achieved(classes, values).min()
    assert l == MODELS["l-diversity"].achieved(classes, values).min()
