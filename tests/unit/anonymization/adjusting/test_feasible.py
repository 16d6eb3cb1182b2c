from dataclasses import replace

import numpy as np
import pytest
from builders import encoded, policy_of

from dbanon.anonymization.adjusting.repair import outlier_advice, rows_in_reach
from dbanon.anonymization.interfaces import Requirement
from dbanon.domain.errors import Unsatisfiable
from dbanon.domain.policy import ModelSpec
from dbanon.models.demands import demands_of

# 72 of 100 rows share a value; the others are of three more.
CHAPTERS = [None] * 72 + ["a"] * 12 + ["b"] * 10 + ["c"] * 6


def reached(values, name, params, *, k=2, share=0.0, others=None):
    sensitive = {"chapter": values, **(others or {})}
    table = encoded({"x": list(range(len(values)))}, sensitive)
    policy = policy_of(["x"], sensitive)
    object.__setattr__(policy, "models", (ModelSpec(name, params),))
    requirement = Requirement(k, 1, share, demands_of(table, policy))
    return rows_in_reach(table, requirement)


SHARED = "72 % of the rows share one value of chapter"
FEW = "chapter has 4 distinct values"
# The name of a model, what the rows just meet, the next they do not, and what is told.
BOUNDARIES = [
    (
        "l-diversity",
        {"l": 4, "columns": ("chapter",)},
        {"l": 5, "columns": ("chapter",)},
        f"{FEW}: distinct 5-diversity is impossible; distinct 4-diversity is possible",
    ),
    (
        "p-sensitivity",
        {"p": 4},
        {"p": 5},
        f"{FEW}: 5-sensitivity is impossible; 4-sensitivity is possible",
    ),
    (
        "probabilistic-l-diversity",
        {"l": 1.38},
        {"l": 1.39},
        (
            f"{SHARED}: probabilistic 1.39-diversity is impossible;"
            " probabilistic l <= 1.38 is possible"
        ),
    ),
    (
        "entropy-l-diversity",
        {"l": 2.43},
        {"l": 2.44},
        (
            f"{SHARED}: entropy 2.44-diversity is impossible; entropy l <= 2.43,"
            " distinct 2-diversity, or probabilistic l <= 1.38, is possible"
        ),
    ),
    (
        "recursive-l-diversity",
        {"c": 4.51, "l": 3},
        {"c": 4.5, "l": 3},
        f"{SHARED}: recursive (4.5, 3)-diversity is impossible; l = 3 with c > 4.50 is possible",
    ),
    (
        "recursive-l-diversity",
        {"c": 12.1, "l": 4},
        {"c": 99.0, "l": 6},
        f"{FEW}: recursive (99, 6)-diversity is impossible; l = 4 with c > 12.00 is possible",
    ),
    (
        "pd-recursive-l-diversity",
        {"c": 4.51, "l": 3, "positive": ("a",)},
        {"c": 4.5, "l": 3, "positive": ("a",)},
        (
            f"{SHARED}: positive disclosure-recursive (4.5, 3)-diversity is impossible;"
            " l = 3 with c > 4.50 is possible"
        ),
    ),
    (
        "npd-recursive-l-diversity",
        {"c": 5.0, "l": 3, "positive": ("a",), "share": 0.06, "negative": ("b", "c")},
        {"c": 5.0, "l": 3, "positive": ("a",), "share": 0.07, "negative": ("b", "c")},
        (
            "6 % of the rows hold one of the negative values of chapter: negative/positive"
            " disclosure-recursive (5, 0.07, 3)-diversity is impossible; share <= 0.06 is possible"
        ),
    ),
    (
        "npd-recursive-l-diversity",
        {"c": 4.51, "l": 3, "positive": ("a",), "share": 0.06, "negative": ("c",)},
        {"c": 4.5, "l": 3, "positive": ("a",), "share": 0.06, "negative": ("c",)},
        (
            f"{SHARED}: negative/positive disclosure-recursive (4.5, 0.06, 3)-diversity is"
            " impossible; l = 3 with c > 4.50 is possible"
        ),
    ),
    (
        "alpha-k-anonymity",
        {"alpha": 0.72},
        {"alpha": 0.71},
        f"{SHARED}: a share of at most alpha = 0.71 is impossible; alpha >= 0.72 is possible",
    ),
    (
        "listed-alpha-k-anonymity",
        {"alpha": 0.1, "listed": ("b", "c")},
        {"alpha": 0.09, "listed": ("b", "c")},
        (
            "10 % of the rows share one of the listed values of chapter: a share of at most alpha ="
            " 0.09 of each listed value is impossible; alpha >= 0.10 is possible"
        ),
    ),
    (
        "n-t-closeness",
        {"n": 100, "t": 0.1},
        {"n": 101, "t": 0.1},
        "the table has 100 rows: (101, 0.1)-closeness (equal) is impossible; n <= 100 is possible",
    ),
]


@pytest.mark.parametrize(("name", "met", "missed", "told"), BOUNDARIES)
def test_what_is_impossible_is_told_with_what_is_possible(name, met, missed, told):
    assert list(range(100)) == reached(CHAPTERS, name, met).tolist()
    with pytest.raises(Unsatisfiable) as caught:
        reached(CHAPTERS, name, missed)
    assert told == str(caught.value)


def test_values_that_all_differ_take_rows_enough_for_the_most_frequent():
    values = ["a", "a", "b", "b", "c", "d"]
    assert list(range(6)) == reached(values, "m-uniqueness", {"m": 3}).tolist()
    with pytest.raises(Unsatisfiable) as caught:
        reached(values, "m-uniqueness", {"m": 4})
    told = "33 % of the rows share one value of chapter: 4-uniqueness is impossible"
    assert f"{told}; m = 3 with k <= 3 is possible" == str(caught.value)
    with pytest.raises(Unsatisfiable, match=r"2-uniqueness is impossible$"):
        reached(CHAPTERS, "m-uniqueness", {"m": 2})


def test_numbers_must_be_enough_and_far_enough_apart():
    assert list(range(4)) == ranged([1, 2, 2, 9], {"k": 3, "e": 8}).tolist()
    with pytest.raises(Unsatisfiable) as caught:
        ranged([1, 2, 2, 9], {"k": 4, "e": 8})
    told = "chapter has 3 distinct numbers: (4, 8)-anonymity is impossible"
    assert f"{told}; k = 3 with a small enough e is possible" == str(caught.value)
    with pytest.raises(Unsatisfiable) as caught:
        ranged([1, 2, 2, 9], {"k": 3, "e": 8.5})
    told = "the numbers of chapter lie less than 8.5 apart: (3, 8.5)-anonymity is impossible"
    assert f"{told}; a smaller e is possible" == str(caught.value)


def ranged(numbers, params):
    table = encoded({"x": list(range(len(numbers)))}, {"chapter": [str(n) for n in numbers]})
    domain = table.domains[0]
    known = [np.nan if label is None else float(label) for label in domain.labels]
    table = replace(table, domains=(replace(domain, numbers=np.array(known)),))
    policy = policy_of(["x"], ["chapter"])
    object.__setattr__(policy, "models", (ModelSpec("k-e-anonymity", params),))
    return rows_in_reach(table, Requirement(1, demands=demands_of(table, policy)))


def test_what_takes_large_classes_is_told():
    table = encoded({"x": list(range(100))}, {"chapter": CHAPTERS})
    policy = policy_of(["x"], ["chapter"])
    for level, told in (
        (
            2.43,
            [("entropy 2.43-diversity of chapter is nearly out of reach: expect classes of about"
             " 100 of 100 rows")],
        ),
        (1.5, []),
    ):  # fmt: skip
        object.__setattr__(policy, "models", (ModelSpec("entropy-l-diversity", {"l": level}),))
        asked = Requirement(2, demands=demands_of(table, policy))
        assert told == list(outlier_advice(table, np.arange(100), asked))


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
