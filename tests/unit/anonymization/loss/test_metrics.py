from dataclasses import replace
from fractions import Fraction

import naive
import numpy as np
import pyarrow as pa
import pytest
from builders import encoded, leaf_tree, policy_of, tables_and_requirements, tree
from hypothesis import given
from hypothesis import strategies as st
from naive import greedy
from naive import metrics as twins

from dbanon.anonymization.algorithms.partitioning.mondrian import RelaxedMondrian
from dbanon.anonymization.encoding.encode import encode
from dbanon.anonymization.interfaces import Requirement
from dbanon.anonymization.loss import metrics
from dbanon.anonymization.loss.costs import leaf_shares
from dbanon.anonymization.outcome import published_values
from dbanon.anonymization.registry import METRICS, RECODINGS, recoding_named
from dbanon.domain.assignment import Assignment, GroupValues, height_shares
from dbanon.domain.policy import ColumnRule, Role
from dbanon.domain.table import ColumnKind

COUNTRIES = tree(
    "countries",
    leaf_tree(
        America={"North": ["USA", "Canada"], "South": ["Brazil", "Mexico"]},
        Asia={"West": ["Iran", "Egypt"], "East": ["India", "Japan"]},
        Europe={"SouthEurope": ["Greece"]},
    ),
)
JOBS = tree("jobs", {job: {} for job in ["Armed", "Teacher", "Doctor", "Salesman", "Support"]})


def measured(table, ids, *, k):
    """Return the publication of groups numbered from 0, -1 being suppressed, and its report."""
    assignment = Assignment(np.array(ids, np.int32), max(ids) + 1)
    columns = [RECODINGS[recoding_named(c)].publish(c, assignment) for c in table.quasi]
    values = GroupValues(tuple(columns), assignment.n_groups)
    published = metrics.publication(table, assignment, values, k=k)
    return published, metrics.report(published, METRICS)


def published_by(table, ids):
    """Return the metrics of groups whose columns are published as their rules say."""
    assignment = Assignment(np.array(ids, np.int32), max(ids) + 1)
    values = published_values(table, assignment)
    return metrics.report(metrics.publication(table, assignment, values, k=2), METRICS).metrics


@pytest.mark.parametrize(
    ("ids", "penalty"),
    [([0, 1, 1, 1, 0, 0], Fraction(51, 8)), ([0, 0, 0, 1, 1, 1], Fraction(15, 2))],
)
def test_global_and_local_recoding_of_xu_et_al(ids, penalty):
    table = encoded(
        {
            "age": [24, 25, 30, 30, 32, 32],
            "zip": [53712, 53711, 53711, 53711, 53712, 53713],
        }
    )
    loss = measured(table, ids, k=3)[1]
    assert float(penalty) == pytest.approx(loss.ncp * 12)
    assert (18, 3, 1) == (
        loss.metrics["discernibility"],
        loss.metrics["c-avg"],
        loss.metrics["c-avg-normalized"],
    )


@pytest.mark.parametrize(
    ("ids", "penalty", "discernibility", "size", "normalized"),
    [
        ([0, 0, 1, 1, 2, 2], Fraction(7, 2), 12, 2, 1),
        ([0, 0, 0, 1, 1, 1], Fraction(27, 10), 18, 3, 1.5),
    ],
)
def test_size_metrics_are_not_loss_metrics(ids, penalty, discernibility, size, normalized):
    table = encoded({"x": [10, 20, 20, 50, 50, 60], "y": [60, 70, 50, 20, 10, 15]})
    loss = measured(table, ids, k=2)[1]
    assert float(penalty) == pytest.approx(loss.ncp * 12)
    assert (discernibility, size, normalized) == (
        loss.metrics["discernibility"],
        loss.metrics["c-avg"],
        loss.metrics["c-avg-normalized"],
    )


@pytest.mark.parametrize(
    ("ids", "total"),
    [
        ([0, 1, 0, 1, 0, 1], Fraction(157, 11)),
        ([1, 1, 0, 1, 0, 0], Fraction(172, 11)),
        ([0, 1, 2, 1, 2, 0], Fraction(364, 33)),
        ([0, 1, 0, 2, 2, 1], None),
        ([0, 0, 0, 0, 0, 0], Fraction(18)),
    ],
)
def test_information_loss_of_byun_et_al(ids, total):
    table = encoded(
        {
            "age": [41, 57, 40, 38, 24, 45],
            "country": ["USA", "India", "Canada", "Iran", "Brazil", "Greece"],
            "job": ["Armed", "Support", "Teacher", "Support", "Doctor", "Salesman"],
        },
        rules={"country": {"taxonomy": "countries"}, "job": {"taxonomy": "jobs"}},
        taxonomies=[COUNTRIES, JOBS],
    )
    loss = measured(table, ids, k=2)[1].metrics["il"]
    expected = sum(
        ids.count(g)
        * sum(
            naive.cost_of_codes(c, c.codes[[i == g for i in ids]].tolist(), by_height=True)
            for c in table.quasi
        )
        for g in set(ids)
    )
    assert expected == pytest.approx(loss)
    assert total is None or float(total) == pytest.approx(loss)


def test_a_share_of_leaves_is_what_a_node_loses():
    tree_of_eight = tree(
        "places",
        leaf_tree(America={"North": "ab", "South": "cd"}, Asia={"West": "ef", "East": "gh"}),
    )
    shares = dict(zip(tree_of_eight.labels, leaf_shares(tree_of_eight), strict=True))
    assert (1, 1 / 2, 1 / 4) == (shares["*"], shares["America"], shares["North"])
    heights = dict(zip(tree_of_eight.labels, height_shares(tree_of_eight), strict=True))
    assert (1, 2 / 3, 1 / 3, 0) == pytest.approx(
        (heights["*"], heights["America"], heights["North"], heights["a"])
    )


@pytest.mark.parametrize(
    ("places", "loss"),
    [("ab", Fraction(1, 8)), ("ad", Fraction(3, 8)), ("ah", Fraction(7, 8)), ("aa", Fraction(0))],
)
def test_iloss_counts_the_other_leaves_that_a_node_stands_for(places, loss):
    tree_of_eight = tree(
        "places",
        leaf_tree(America={"North": "ab", "South": "cd"}, Asia={"West": "ef", "East": "gh"}),
    )
    table = encoded(
        {"place": list(places)},
        rules={"place": {"taxonomy": "places"}},
        taxonomies=[tree_of_eight],
    )
    assert float(loss) == pytest.approx(measured(table, [0, 0], k=2)[1].metrics["iloss"] / 2)


@given(tables_and_requirements(max_sensitive=0, weights=(1.0, 0.25)), st.data())
def test_iloss_equals_its_naive_twin(drawn, data):
    table, k, _ = drawn
    ids = data.draw(st.lists(st.integers(-1, 2), min_size=table.n_rows, max_size=table.n_rows))
    ids[0] = 0
    group = np.unique([-1, *ids], return_inverse=True)[1][1:] - 1
    published, loss = measured(table, group.tolist(), k=k)
    classes = naive.members(Assignment(published.classes, len(published.size)))
    expected = greedy.iloss(table, classes, published.n_suppressed)
    assert expected == pytest.approx(loss.metrics["iloss"])


@given(tables_and_requirements(), st.data())
def test_distortion_precision_and_gain_equal_their_naive_twins(drawn, data):
    table, k, _ = drawn
    ids = data.draw(st.lists(st.integers(-1, 2), min_size=table.n_rows, max_size=table.n_rows))
    ids[0] = 0
    group = np.unique([-1, *ids], return_inverse=True)[1][1:] - 1
    published, loss = measured(table, group.tolist(), k=k)
    classes = naive.members(Assignment(published.classes, len(published.size)))
    gone = published.n_suppressed
    assert twins.minimal_distortion(table, classes, gone) == loss.metrics["md"]
    assert twins.precision(table, classes, gone) == pytest.approx(loss.metrics["prec"])
    if table.label is None:
        assert "igpl" not in loss.metrics
        return
    labels = [table.label[rows].tolist() for rows in classes]
    expected = twins.gain_per_privacy_loss(labels)
    assert expected == pytest.approx(loss.metrics["igpl"], abs=1e-9)


@given(tables_and_requirements(max_sensitive=0, weights=(1.0, 0.25)), st.data())
def test_radii_equal_their_naive_twin(drawn, data):
    table, k, _ = drawn
    ids = data.draw(st.lists(st.integers(-1, 2), min_size=table.n_rows, max_size=table.n_rows))
    ids[0] = 0
    group = np.unique([-1, *ids], return_inverse=True)[1][1:] - 1
    published, loss = measured(table, group.tolist(), k=k)
    classes = naive.members(Assignment(published.classes, len(published.size)))
    expected = twins.radii(table, classes)
    total = sum(len(rows) * radius for rows, radius in zip(classes, expected, strict=True))
    assert [max(expected), total] == pytest.approx(
        [loss.metrics["max-radius"], loss.metrics["size-times-radius"]]
    )


def test_a_radius_is_that_of_the_most_central_row():
    table = encoded({"x": [0, 1, 2, 4, 10, 10]})
    loss = measured(table, [0, 0, 0, 0, 1, 1], k=2)[1].metrics
    assert 2 / 10 == pytest.approx(loss["max-radius"])  # 2 is 2 from 0 and 4
    assert 4 * 2 / 10 == pytest.approx(loss["size-times-radius"])


def test_radii_of_classes_with_too_many_pairs_of_rows_are_not_measured(monkeypatch):
    table = encoded({"x": [0, 1, 2, 4, 10, 10]})
    monkeypatch.setattr(metrics, "MOST_PAIRS", 4 * 4 + 2 * 2)
    assert "max-radius" in measured(table, [0, 0, 0, 0, 1, 1], k=2)[1].metrics
    monkeypatch.setattr(metrics, "MOST_PAIRS", 4 * 4 + 2 * 2 - 1)
    found = measured(table, [0, 0, 0, 0, 1, 1], k=2)[1].metrics
    assert not {"max-radius", "size-times-radius"} & found.keys()


def test_precision_is_that_of_sweeney():
    table = encoded(
        {"place": list("abcdefgh"), "sex": list("mfmfmfmf")},
        rules={"place": {"taxonomy": "places"}},
        taxonomies=[tree("places", leaf_tree(A={"P": "ab", "Q": "cd"}, B={"R": "ef", "S": "gh"}))],
    )
    loss = measured(table, [0, 0, 1, 1, 2, 2, 2, 2], k=2)[1].metrics
    assert 16 == loss["md"]
    assert 1 - (4 * 1 / 3 + 4 * 2 / 3 + 8) / 16 == pytest.approx(loss["prec"])
    loss = measured(table, [0, 1, 0, 1, -1, -1, -1, -1], k=2)[1].metrics
    assert 12 == loss["md"]
    assert 1 - (4 * 2 / 3 + 8) / 16 == pytest.approx(loss["prec"])


def test_values_that_are_published_coarser_than_they_are_in_all_rows_of_a_class_are_distorted():
    columns = {"x": [1, 1, 2, 2], "y": list("aabb")}
    floors = measured(encoded(columns, rules={"x": {"bands": 10}}), [0, 0, 1, 1], k=2)[1].metrics
    starred = {"x": {"recoding": "suppress"}, "y": {"recoding": "suppress"}}
    stars = published_by(encoded(columns, rules=starred), [0, 0, 1, 1])
    assert (4, 8) == (floors["md"], stars["md"])
    assert 0 == stars["prec"]
    assert 1 == measured(encoded(columns), [0, 0, 1, 1], k=2)[1].metrics["prec"]


def test_labels_of_a_grid_count_with_the_height_that_is_published():
    table = encoded(
        {"place": list("aaab")},
        rules={"place": {"taxonomy": "places", "recoding": "global"}},
        taxonomies=[tree("places", leaf_tree(A={"P": "ab", "Q": "cd"}, B={"R": "ef", "S": "gh"}))],
    )
    found = published_by(table, [0, 0, 1, 1])
    assert 4 == found["md"]
    assert 1 - 1 / 3 == pytest.approx(found["prec"])


def test_a_mean_that_some_class_has_exactly_is_distorted_in_the_others_only():
    rules = {"x": {"recoding": "mean"}}
    table = encoded({"x": [5, 5, 4, 6], "y": list("aabb")}, rules=rules)
    assert 2 == published_by(table, [0, 0, 1, 1])["md"]


def test_the_gain_of_blue_and_white_collars_is_that_of_fung_et_al():
    jobs = ["blue"] * 16 + ["white"] * 18
    credit = ["Y"] * 5 + ["N"] * 11 + ["Y"] * 16 + ["N"] * 2
    table = encoded({"job": jobs}, {"credit": credit})
    ids = [int(job == "white") for job in jobs]
    assert 0.2716 / 19 == pytest.approx(measured(table, ids, k=2)[1].metrics["igpl"], abs=1e-5)
    assert 0 == measured(table, [0] * 34, k=2)[1].metrics["igpl"]


def test_heights_of_an_uneven_tree_are_those_of_the_longest_path():
    uneven = tree("uneven", {"a": {}, "b": {"c": {"d": {}}, "e": {}}})
    assert [1, 0, 2 / 3, 1 / 3, 0, 0] == pytest.approx(height_shares(uneven).tolist())


def test_groups_that_publish_the_same_are_one_class():
    table = encoded({"x": [1, 1, 1, 1, 2, 2]})
    published, loss = measured(table, [0, 0, 1, 1, 2, 2], k=2)
    assert [0, 0, 0, 0, 1, 1] == published.classes.tolist()
    assert (2, 2, 20) == (loss.n_classes, loss.smallest_class, loss.metrics["discernibility"])


def test_a_suppressed_row_loses_everything():
    table = encoded({"x": [1, 1, 5, 9], "y": ["a", "a", "b", "c"]})
    published, loss = measured(table, [0, 0, -1, -1], k=2)
    assert (2, 0.5, {"x": 0.5, "y": 0.5}) == (loss.n_suppressed, loss.ncp, loss.columns)
    assert (4.0, 12.0, 0.5) == (
        loss.metrics["il"],
        loss.metrics["discernibility"],
        loss.metrics["suppressed"],
    )
    assert [0, 0, -1, -1] == published.classes.tolist()


def test_squared_error_ratio_compares_classes_with_the_table():
    table = encoded({"x": [1, 3, 11, 13, None]})
    assert 100 * 4 / 104 == pytest.approx(
        measured(table, [0, 0, 1, 1, 1], k=2)[1].metrics["sse-ratio"]
    )


def test_a_metric_that_does_not_apply_is_left_out():
    loss = measured(encoded({"x": ["a", "b"]}), [0, 0], k=2)[1]
    assert "sse-ratio" not in loss.metrics
    constant = measured(encoded({"x": [1, 1]}), [0, 0], k=2)[1]
    assert "sse-ratio" not in constant.metrics


@given(tables_and_requirements(max_sensitive=0))
def test_the_reported_loss_is_the_cost_of_the_published_boxes(drawn):
    table, k, _ = drawn
    assignment = RelaxedMondrian().assign(table, Requirement(k), seed=0)
    loss = measured(table, assignment.group.tolist(), k=k)[1]
    total = sum(len(rows) * naive.cost(table, rows) for rows in naive.members(assignment))
    assert total == pytest.approx(loss.ncp * table.n_rows * len(table.quasi))
    assert loss.smallest_class >= k


# The hospital tables of Machanavajjhala et al.: (zip, age, condition) of persons 1 to 12.
CONDITIONS = ["heart", "heart", "viral", "viral", "cancer", "heart", "viral", "viral"]
CONDITIONS += ["cancer"] * 4
HOSPITAL = {
    "zip": [13053, 13068, 13068, 13053, 14853, 14853, 14850, 14850, 13053, 13053, 13068, 13068],
    "age": [28, 29, 21, 23, 50, 55, 47, 49, 31, 37, 36, 35],
}


@pytest.mark.parametrize(
    ("ids", "share"),
    [
        ([0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2], Fraction(1, 3)),
        ([0, 2, 2, 0, 1, 1, 1, 1, 0, 0, 2, 2], Fraction(1, 2)),
    ],
)
def test_classification_metric_of_the_hospital_tables(ids, share):
    loss = measured(encoded(HOSPITAL, {"condition": CONDITIONS}), ids, k=4)[1]
    assert float(share) == pytest.approx(loss.metrics["cm"], abs=1e-9)
    assert (48, 4) == (loss.metrics["discernibility"], loss.metrics["c-avg"])


def test_the_class_label_is_a_column_of_its_own():
    income = ["high", "low", "high", "low", *["high"] * 4, "low", None, None, "low"]
    data = {**HOSPITAL, "condition": CONDITIONS, "income": income}
    policy = policy_of(["zip", "age"], ["condition"], class_label="income")
    rule = ColumnRule("income", Role.INSENSITIVE)
    table = encode(
        pa.table(data),
        replace(policy, columns=(*policy.columns, rule)),
        kinds=dict.fromkeys(HOSPITAL, ColumnKind.INTEGER),
        taxonomies={},
    )
    loss = measured(table, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2], k=4)[1]
    assert 4 / 12 == pytest.approx(loss.metrics["cm"])  # 2 of the first class, 2 of the last
    assert ("condition",) == table.sensitive_names


@given(tables_and_requirements(max_sensitive=0, weights=(0.5, 1.0, 4.0)))
def test_penalties_are_reported_with_weights_and_without(drawn):
    table, k, _ = drawn
    assignment = RelaxedMondrian().assign(table, Requirement(k), seed=0)
    loss = measured(table, assignment.group.tolist(), k=k)[1]
    weights = {column.name: column.rule.weight for column in table.quasi}
    assert loss.ncp == pytest.approx(sum(loss.columns.values()) / len(weights))
    if len(set(weights.values())) == 1:
        assert (None, loss.ncp) == (loss.weighted_ncp, loss.asked)
        return
    boxes = naive.members(assignment)
    total = sum(len(rows) * naive.cost(table, rows) for rows in boxes)
    assert total / table.n_rows / sum(weights.values()) == pytest.approx(loss.weighted_ncp)
    assert loss.asked == loss.weighted_ncp


def test_a_row_that_is_left_out_loses_everything_whatever_the_weights():
    table = encoded({"x": [1, 1, 2], "y": [1, 1, 1]}, rules={"x": {"weight": 3.0}})
    loss = measured(table, [0, 0, -1], k=2)[1]
    assert (1 / 3, 1 / 3) == pytest.approx((loss.ncp, loss.weighted_ncp))
    loss = measured(table, [0, 0, 0], k=2)[1]
    assert (1 / 2, 3 / 4) == pytest.approx((loss.ncp, loss.weighted_ncp))


def test_classification_metric_needs_a_label():
    assert "cm" not in measured(encoded({"x": [1, 1]}), [0, 0], k=2)[1].metrics


@given(tables_and_requirements(), st.data())
def test_classification_metric_is_the_share_of_rows_outside_the_majority(drawn, data):
    table, k, _ = drawn
    assignment = RelaxedMondrian().assign(table, Requirement(k), seed=0)
    ids = assignment.group.tolist()
    gone = data.draw(st.sets(st.sampled_from(range(table.n_rows)), max_size=table.n_rows // 3))
    kept = [-1 if row in gone else group for row, group in enumerate(ids)]
    if set(kept) - {-1} != set(ids):
        kept = ids
    published, loss = measured(table, kept, k=k)
    if not table.sensitive_names:
        assert "cm" not in loss.metrics
        return
    expected = twins.classification(published.classes.tolist(), table.sensitive[:, 0].tolist())
    assert float(expected) == pytest.approx(loss.metrics["cm"])


def nine(recoding, *, suppressed=()):
    """Return the metrics of the nine points of the reference, in their three groups."""
    points = [(1, 1), (2, 1), (1, 2), (10, 10), (11, 10), (10, 11), (5, 5), (6, 5), (5, 6)]
    columns = {"x": [x for x, _ in points], "y": [y for _, y in points]}
    rules = {name: {"recoding": recoding, "digits": 9} for name in columns}
    table = encoded(columns, rules=rules, kinds=dict.fromkeys(columns, ColumnKind.FLOAT))
    ids = [-1 if i in suppressed else group for i, group in enumerate([1] * 3 + [0] * 3 + [2] * 3)]
    assignment = Assignment(np.array(ids, np.int32), 3)
    values = [RECODINGS[recoding].publish(column, assignment) for column in table.quasi]
    published = metrics.publication(table, assignment, GroupValues(tuple(values), 3), k=2)
    return metrics.report(published, METRICS).metrics


def test_numbers_of_classes_lose_what_the_reference_says():
    found = nine("mean")
    expected = (0.152413, 0, 0.016129, 0.008264, 0.024793)
    assert expected == pytest.approx([found[f"il{i}"] for i in range(1, 6)], abs=1e-6)
    assert found["il-overall"] == pytest.approx(4.031998, abs=1e-6)
    assert found["il1s"] > 0


def test_statistics_are_those_of_the_rows_that_are_published():
    some, rest = nine("mean", suppressed=(0, 8)), nine("mean")
    assert all(0 <= some[f"il{i}"] < 1 for i in range(1, 6))
    assert some["il1"] != rest["il1"]


def test_only_columns_that_publish_a_number_have_statistics():
    assert not {*(f"il{i}" for i in range(1, 6)), "il-overall", "il1s"} & nine("interval").keys()
    assert {f"il{i}" for i in range(1, 6)} <= nine("midpoint").keys()
    table = encoded({"x": [1, 2, None, 4]}, rules={"x": {"recoding": "mean"}})
    assignment = Assignment(np.array([0, 0, 1, 1], np.int32), 2)
    values = GroupValues((RECODINGS["mean"].publish(table.quasi[0], assignment),), 2)
    published = metrics.publication(table, assignment, values, k=2)
    known = metrics.report(published, METRICS).metrics  # (1, 2, 4) as (1.5, 1.5, 4)
    assert known["il1"] == pytest.approx((0.5 + 0.25) / 3)
    assert "il4" not in known


def test_a_class_that_publishes_null_is_compared_in_nothing():
    table = encoded(
        {"x": [1, 1, None, None, 4, 5], "y": [2, 2, 2, 3, 3, 5]},
        rules={"x": {"recoding": "mode"}, "y": {"recoding": "mean"}},
    )
    assignment = Assignment(np.array([0, 0, 1, 1, 1, 0], np.int32), 2)
    values = [RECODINGS[c.rule.recoding].publish(c, assignment) for c in table.quasi]
    published = metrics.publication(table, assignment, GroupValues(tuple(values), 2), k=2)
    found = metrics.report(published, METRICS).metrics  # (1, 1, 5) as (1, 1, 1), (2, 2, 5) as 3
    assert found["il1"] == pytest.approx((0.8 + 0.5 + 0.5 + 0.4) / 6)
    assert found["il2"] == pytest.approx((4 / 7) / 2)
    assert all(np.isfinite(value) for value in found.values())


@pytest.mark.parametrize("sign", [-1, 1])
def test_the_squared_error_of_integers_of_many_digits_is_that_of_their_differences(sign):
    ids = [0, 0, 0, 1, 1, 1]
    plain, far = (
        published_by(encoded({"x": [start + step for step in (0, 1, 3, 5, 8, 9)]}), ids)
        for start in (0, sign * 2**62)
    )
    assert plain["sse-ratio"] == pytest.approx(far["sse-ratio"])
