import numpy as np
import pytest
from builders import encoded, policy_of

from dbanon.anonymize.feasible import rows_in_reach
from dbanon.anonymize.interfaces import Requirement
from dbanon.anonymize.models.demands import demands_of
from dbanon.domain.errors import Unsatisfiable
from dbanon.domain.policy import ModelSpec

# 72 of 100 rows share a value; the others are of three more.
CHAPTERS = [None] * 72 + ["a"] * 12 + ["b"] * 10 + ["c"] * 6


def reached(values, name, params, *, k=2, share=0.0, others=None):
    sensitive = {"chapter": values, **(others or {})}
    table = encoded({"x": list(range(len(values)))}, sensitive)
    policy = policy_of(["x"], sensitive)
    object.__setattr__(policy, "models", (ModelSpec(name, params),))
    requirement = Requirement(k, 1, share, demands_of(table, policy))
    return rows_in_reach(table, requirement)


@pytest.mark.parametrize(
    ("name", "params", "told"),
    [
        (
            "entropy-l-diversity",
            {"l": 3},
            "entropy 3-diversity is impossible; distinct 3-diversity, or probabilistic l <= 1.38,",
        ),
        (
            "probabilistic-l-diversity",
            {"l": 2},
            "probabilistic 2-diversity is impossible; distinct 2-diversity, or probabilistic",
        ),
        (
            "recursive-l-diversity",
            {"c": 2, "l": 6},
            r"recursive \(2, 6\)-diversity is impossible; distinct 4-diversity",
        ),
        ("p-sensitivity", {"p": 5}, "5-sensitivity is impossible; distinct 4-diversity"),
        ("alpha-k-anonymity", {"alpha": 0.5}, "alpha = 0.5 is impossible; alpha >= 0.72 is"),
        ("m-uniqueness", {"m": 2}, "2-uniqueness is impossible"),
    ],
)
def test_what_is_impossible_is_told_with_what_is_possible(name, params, told):
    with pytest.raises(
        Unsatisfiable, match=f"^72 % of the rows share one value of chapter: .*{told}"
    ):
        reached(CHAPTERS, name, params)


def test_what_the_rows_as_a_whole_meet_is_in_reach():
    for name, params in (
        ("probabilistic-l-diversity", {"l": 1.38}),
        ("t-closeness", {"t": 0}),
        ("delta-disclosure", {"delta": 0.001}),
        ("beta-likeness", {"beta": 0.001}),
    ):
        assert list(range(100)) == reached(CHAPTERS, name, params).tolist()


def test_rows_of_the_most_frequent_value_are_left_out_within_the_budget():
    kept = reached(CHAPTERS, "alpha-k-anonymity", {"alpha": 0.5}, share=0.5)
    assert np.isin(np.arange(72, 100), kept).all()
    assert 50 <= len(kept) <= 56
    with pytest.raises(Unsatisfiable, match="impossible") as caught:
        reached(CHAPTERS, "alpha-k-anonymity", {"alpha": 0.5}, share=0.4)
    assert "at most 40 of 100 rows may be left out" in caught.value.hint


def test_a_strict_model_counts_each_value_of_the_other_columns_alone():
    others = {"salary": [str(i) for i in range(100)]}
    params = {"l": 2, "multi": "strict", "columns": ("chapter",)}
    with pytest.raises(Unsatisfiable, match="once the other sensitive columns are known"):
        reached(CHAPTERS, "l-diversity", params, others=others)
