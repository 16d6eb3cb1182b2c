"""What models let a guess be, against every class that meets them."""

from dataclasses import replace

import numpy as np
import pytest
from builders import LETTERS, encoded, policy_of

from dbanon.anonymization.attacks.bounds import least_rows, limits, of_cells, share_at
from dbanon.domain.policy import ModelSpec
from dbanon.models.demands import all_demands, wholes
from dbanon.models.tally import tally_of_counts

LABELS = list("abcdefg")
SPECS = [
    ("alpha-k-anonymity", {"alpha": 0.4}),
    ("probabilistic-l-diversity", {"l": 2.5}),
    ("entropy-l-diversity", {"l": 2.2}),
    ("recursive-l-diversity", {"c": 1.5, "l": 2}),
    ("recursive-l-diversity", {"c": 3.0, "l": 3}),
    ("m-uniqueness", {"m": 3}),
    ("t-closeness", {"t": 0.2}),
    ("t-closeness", {"t": 0.1, "distance": "ordered"}),
    ("t-closeness", {"t": 0.2, "distance": "hierarchical"}),
    ("beta-likeness", {"beta": 0.7}),
    ("beta-likeness", {"beta": 3.0, "kind": "enhanced"}),
    ("delta-disclosure", {"delta": 0.8}),
    ("listed-alpha-k-anonymity", {"alpha": 0.3, "listed": ("c", "d", "other")}),
    ("l-diversity", {"l": 3}),
    ("p-sensitivity", {"p": 3}),
]
OF_FEW = {"l-diversity", "p-sensitivity", "listed-alpha-k-anonymity"}
BOUNDED = [spec for spec in SPECS if spec[0] not in OF_FEW]


def world(whole, *specs):
    """Return a table of one class with these counts, and a policy of these models."""
    rows = [label for label, count in zip(LABELS, whole, strict=True) for _ in range(count)]
    rules = {"disease": {"taxonomy": "letters", "order": tuple(LABELS)}}
    table = encoded({"age": [1] * len(rows)}, {"disease": rows}, rules=rules, taxonomies=[LETTERS])
    policy = policy_of(["age"], ["disease"], k=1, l=1)
    policy = replace(policy, models=tuple(ModelSpec(name, params) for name, params in specs))
    return table, policy


def found(table, policy, whole):
    share = np.array([count for count in whole if count]) / sum(whole)
    return limits(policy, "disease", share, table.domains[0])


def classes_of(whole, generator, *, tries):
    """Draw classes of a relation: any of its rows, some of each value, or about the same shares."""
    whole = np.array(whole)
    drawn = [
        generator.integers(0, whole + 1, size=(tries, len(whole))),
        generator.integers(0, 2, size=(tries, len(whole))) * (whole > 0),
        np.maximum(whole - generator.integers(0, 2, size=(tries, len(whole))), 0),
    ]
    found = np.concatenate(drawn)
    return found[found.sum(axis=1) > 0][:, whole > 0]


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_no_class_that_meets_a_model_goes_beyond_it(spec):
    generator, met = np.random.default_rng(5), 0
    for _ in range(30):
        whole = [0, 0, *generator.integers(1, 9, size=4).tolist(), int(generator.integers(0, 5))]
        table, policy = world(whole, spec)
        (demand,) = all_demands(table, policy)
        (of_whole,) = wholes(table, [demand], np.arange(table.n_rows))
        cells = classes_of(whole, generator, tries=200)
        cells = cells[demand.model.meets(demand.model.achieved(tally_of_counts(cells), of_whole))]
        share, bound = cells / cells.sum(axis=1, keepdims=True), found(table, policy, whole)
        some = generator.integers(0, 2, size=(8, share.shape[1])).astype(bool)
        met += len(cells)
        assert (share <= bound.value + 1e-6).all()
        assert (np.count_nonzero(share, axis=1) >= bound.distinct).all()
        assert (share @ some.T <= bound.whole @ some.T + bound.gain + 1e-6).all()
        if bound.most is not None:
            assert share.max(initial=0) <= bound.most + 1e-6
        for one in some:
            of_set = bound.most_of(one[None, :])
            assert of_set is None or (share[:, one].sum(axis=1) <= of_set + 1e-6).all()
    assert met > 20


@pytest.mark.parametrize("spec", BOUNDED, ids=str)
def test_models_of_shares_bound_a_guess(spec):
    whole = [2, 2, 2, 2, 2, 2, 2]
    bound = found(*world(whole, spec), whole)
    assert bound.most is not None
    assert bound.distinct == 2


@pytest.mark.parametrize("spec", [("l-diversity", {"l": 3}), ("p-sensitivity", {"p": 3})])
def test_numbers_of_values_bound_no_guess(spec):
    whole = [2, 2, 2, 2, 2, 2, 2]
    bound = found(*world(whole, spec), whole)
    assert (None, 3) == (bound.most, bound.distinct)


@pytest.mark.parametrize(
    ("spec", "most"),
    [
        (("alpha-k-anonymity", {"alpha": 0.4}), 0.4),
        (("probabilistic-l-diversity", {"l": 4}), 0.25),
        (("recursive-l-diversity", {"c": 1, "l": 2}), 0.5),
        (("t-closeness", {"t": 0.2}), 1 / 2 + 0.2),
        (("beta-likeness", {"beta": 0.5}), 0.75),
        (("m-uniqueness", {"m": 4}), 0.25),
    ],
)
def test_bounds_by_hand(spec, most):
    whole = [4, 2, 2, 0, 0, 0, 0]
    assert pytest.approx(most) == found(*world(whole, spec), whole).most


def test_only_listed_values_are_bounded_by_a_model_of_them():
    spec = ("listed-alpha-k-anonymity", {"alpha": 0.25, "listed": ("b", "e", "other")})
    bound = found(*world([1] * 5 + [0, 0], spec), [1] * 5 + [0, 0])
    assert [1, 0.25, 1, 1, 0.25] == bound.value.tolist()


def test_a_share_at_an_entropy_is_that_of_equal_others():
    # 0.5, 0.25, 0.25 has the entropy of 2 ** 1.5 values.
    assert 0.5 == pytest.approx(share_at(1.5 * np.log(2), 3))
    assert 1 / 3 == pytest.approx(share_at(np.log(3), 3))
    assert 1.0 == share_at(0.0, 3)


def test_excluding_values_makes_the_others_likelier():
    whole = [1] * 5 + [0, 0]
    bound = found(*world(whole, ("alpha-k-anonymity", {"alpha": 0.25})), whole)
    assert [pytest.approx(1 / 3), pytest.approx(1 / 2), None] == [
        bound.most_without(excluded) for excluded in (1, 2, 3)
    ]


def test_the_weaker_of_two_policies_holds_of_those_in_the_same_classes_of_both():
    _, strong = world([1] * 7, ("alpha-k-anonymity", {"alpha": 0.25}))
    _, weak = world([1] * 7, ("alpha-k-anonymity", {"alpha": 0.5}), ("t-closeness", {"t": 0.1}))
    counts = np.ones(7, np.int64)
    assert (0.25, 2) == of_cells((strong, strong), "disease", counts)
    assert (0.5, 2) == of_cells((strong, weak), "disease", counts)
    assert (None, 1) == of_cells((strong, replace(weak, models=())), "disease", counts)


def test_classes_have_as_many_rows_as_values():
    assert [5, 3, 1] == [
        least_rows(policy_of(["age"], ["disease"], k=k, l=l)) for k, l in ((5, 3), (2, 3), (1, 1))
    ]
