import random
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from builders import LETTERS, encoded, policy_of
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import population as naive
from selection import at_depth

from dbanon.anonymization.adjusting.merging import cover
from dbanon.anonymization.data_frame import anonymize
from dbanon.anonymization.encoding.population import count_presence, encode_population, missing_rows
from dbanon.anonymization.outcome import published_values
from dbanon.anonymization.problem import Problem, solve
from dbanon.domain.assignment import Assignment
from dbanon.domain.errors import PolicyError, Unsatisfiable
from dbanon.domain.outcomes import Stages
from dbanon.domain.policy import ModelSpec
from dbanon.models.anonymity.delta_presence import DeltaPresence
from dbanon.models.anonymity.k_map import KMap

REGIONS = st.lists(
    st.tuples(st.integers(1, 2), st.frozensets(st.integers(0, 4))), min_size=1, max_size=3
)


def presence_of(classes, n_people=5):
    rows = np.array([rows for rows, _ in classes])
    covers = [np.array(sorted(region), np.int64) for _, region in classes]
    return count_presence(rows, np.ones(n_people, np.int64), covers)


@pytest.mark.exhaustive
@settings(max_examples=at_depth(300))
@given(REGIONS)
def test_a_row_may_be_as_many_people_as_k_map_says(classes):
    found = naive.candidates(classes, 5)
    if None in found:
        return
    promised = KMap(1).achieved(presence_of(classes))
    assert all(n >= p for n, p in zip(found, promised.tolist(), strict=True))


@pytest.mark.exhaustive
@settings(max_examples=at_depth(300))
@given(REGIONS)
def test_people_are_there_as_often_as_delta_presence_says(classes):
    found = naive.presence(classes, 5)
    if found is None:
        return
    shares = DeltaPresence(0.0, 1.0).achieved(presence_of(classes)).tolist()
    for share, (_, region) in zip(shares, classes, strict=True):
        for person in region if share < np.inf else ():
            assert found[person] == pytest.approx(share)
    covered = {person for _, region in classes for person in region}
    assert all(found[person] == 0 for person in set(range(5)) - covered)


def test_the_rows_of_a_region_are_not_all_candidates():
    classes = [(2, {0, 1}), (1, {1, 2})]
    assert [2, 1] == naive.candidates(classes, 3)
    assert [2.0, 1.0] == KMap(2).achieved(presence_of(classes, 3)).tolist()


def test_shares_by_class_say_too_little_where_classes_share_people():
    apart = [{0, 1}, {2, 3}, {4, 5}]
    found = naive.presence([(1, region | {6}) for region in apart], 7)
    assert found[6] == pytest.approx(3 / 5)
    presence = presence_of([(1, region | {6}) for region in apart], 7)
    assert np.isinf(DeltaPresence(0.0, 0.5).achieved(presence)).all()
    assert DeltaPresence(0.0, 0.5).failing(presence).all()


def test_whoever_is_in_no_class_is_known_to_be_absent():
    presence = presence_of([(1, {0, 1})], 3)
    assert [False] == DeltaPresence(0.0, 0.5).failing(presence).tolist()
    assert [True] == DeltaPresence(0.1, 0.5).failing(presence).tolist()


def table_of(xs, ys):
    return encoded({"x": xs, "y": ys}, rules={"y": {"taxonomy": "letters"}}, taxonomies=[LETTERS])


def people_of(table, people):
    xs, ys = zip(*people, strict=True)
    source = pa.table({"x": pa.array(xs, pa.int64()), "y": pa.array(ys, pa.string())})
    return encode_population(source, table)


def publish(table, population, *models, algorithm="mondrian", **rules):
    policy = policy_of(["x", "y"], k=1, algorithm=algorithm, rules=rules)
    object.__setattr__(policy, "models", (policy.models[0], *models))
    return solve(Problem(table, policy, population=population), seed=0, stages=Stages())


PEOPLE = st.tuples(st.none() | st.integers(0, 9), st.none() | st.sampled_from("abcdefgz"))
ROWS = st.lists(PEOPLE.filter(lambda p: p[1] != "z"), min_size=2, max_size=12)


@pytest.mark.exhaustive
@settings(max_examples=at_depth(80))
@given(
    ROWS,
    st.lists(PEOPLE, max_size=30),
    st.sampled_from(
        [
            ModelSpec("k-map", {"k": 4}),
            ModelSpec("delta-presence", {"dmax": 0.5}),
            ModelSpec("delta-presence", {"dmin": 0.2, "dmax": 0.9}),
        ]
    ),
)
def test_what_is_published_holds_by_hand(rows, others, spec):
    people = rows + others
    table = table_of(*zip(*rows, strict=True))
    try:
        found = publish(table, people_of(table, people), spec)
    except Unsatisfiable:
        with pytest.raises(Unsatisfiable, match="impossible"):
            publish(table, people_of(table, people), spec, algorithm="full-domain")
        return
    trees = [None, leaves_by_label()]
    groups = found.assignment.group.tolist()
    shown = {
        tuple(c.labels[c.index[g]] for c in found.values.columns): 0 for g in sorted(set(groups))
    }
    for g in groups:
        shown[tuple(c.labels[c.index[g]] for c in found.values.columns)] += 1
    regions = {labels: naive.region(labels, people, trees) for labels in shown}
    if spec.name == "k-map":
        assert all(len(region) >= 4 for region in regions.values())
        return
    least, most = spec.params.get("dmin", 0), spec.params["dmax"]
    times = [sum(i in region for region in regions.values()) for i in range(len(people))]
    assert max(times) <= 1
    assert least == 0 or min(times) == 1
    assert all(least <= n / len(regions[labels]) <= most for labels, n in shown.items())


def leaves_by_label():
    return {
        label: set(LETTERS.leaf_labels[LETTERS.leaf_lo[node] : LETTERS.leaf_hi[node] + 1])
        for node, label in enumerate(LETTERS.labels)
    }


def test_rows_that_no_population_has_are_counted():
    table = table_of([1, 1, 2, None], ["a", "a", None, "b"])
    assert missing_rows(table, people_of(table, [(1, "a"), (2, None), (3, "b")])) == 2
    assert missing_rows(table, people_of(table, [(1, "a")] * 2 + [(2, None), (None, "b")])) == 0
    with pytest.raises(Unsatisfiable, match="2 rows of the table have no row of their own"):
        publish(
            table,
            people_of(table, [(1, "a"), (2, None), (3, "b")]),
            ModelSpec("delta-presence", {"dmax": 1}),
        )


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (ModelSpec("k-map", {"k": 5}), "cover 4 rows of the population with 4 and leave 0"),
        (ModelSpec("delta-presence", {"dmax": 0.9}), r"\(0, 0.9\)-presence is impossible"),
    ],
)
def test_what_no_grouping_meets_is_refused_with_numbers(spec, message):
    rows = [(1, "a"), (2, "b"), (3, "c"), (4, "d")]
    table = table_of(*zip(*rows, strict=True))
    with pytest.raises(Unsatisfiable, match=message):
        publish(table, people_of(table, rows), spec)


def test_a_model_of_a_population_needs_one_and_regions_to_count_in():
    table = table_of([1, 2], ["a", "b"])
    with pytest.raises(PolicyError, match="the policy names none"):
        publish(table, None, ModelSpec("k-map", {"k": 1}))
    mean = encoded({"x": [1, 2], "y": [1, 2]}, rules={"x": {"recoding": "mean"}})
    population = encode_population(pa.table({"x": [1, 2], "y": [1, 2]}), mean)
    with pytest.raises(PolicyError, match="recoding 'mean' of column x does not tell"):
        publish(mean, population, ModelSpec("k-map", {"k": 1}))


@pytest.mark.parametrize("algorithm", ["auto", "full-domain"])
def test_levels_for_a_larger_k_keep_classes_apart_where_merging_leaves_one(algorithm):
    source = random.Random(9)  # noqa: S311 - people, not secrets
    rows = [(source.randint(1, 8), source.choice("bcdgef")) for _ in range(24)]
    others = [(source.randint(1, 8), source.choice("abcdgef")) for _ in range(40)]
    table = table_of(*zip(*rows, strict=True))
    population = people_of(table, rows + others)
    spec = ModelSpec("delta-presence", {"dmax": 0.5})
    policy = policy_of(["x", "y"], k=1)
    object.__setattr__(policy, "models", (policy.models[0], spec))
    apart = Assignment(np.arange(24, dtype=np.int32), 24)
    merged = cover(table, apart, policy, population, publish=partial(published_values, table))
    assert merged.n_groups == 1
    found = publish(table, population, spec, algorithm=algorithm)
    assert found.loss.n_classes == 2


def test_a_frame_takes_its_population_from_another():
    data, everybody = pa.table({"x": [1, 2, 3, 4]}), pa.table({"x": [1, 2, 3, 4] * 2})
    models = [ModelSpec("k-map", {"k": 4})]
    found = anonymize(
        data, k=1, models=models, quasi=["x"], algorithm="mondrian", population=everybody
    )
    assert {"[1,2]", "[3,4]"} == set(found.column("x").to_pylist())
    with pytest.raises(PolicyError, match="x is missing"):
        anonymize(data, k=1, quasi=["x"], population=everybody.rename_columns(["z"]))
