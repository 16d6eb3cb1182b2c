"""Queries and what is learned: what is asked and held out, how far off answers are, all parts."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from builders import LETTERS, encoded, policy_of, tables_and_requirements
from hypothesis import given
from selection import some

from dbanon.anonymization.problem import Problem, solve
from dbanon.anonymization.released.reading import of_outcome, of_texts
from dbanon.anonymization.utility.measure import (
    BOOSTING,
    LOGISTIC,
    classifiers,
    features_of,
    scores,
    target_of,
    utility_of,
)
from dbanon.anonymization.utility.queries import Query, QuerySet, deviations, draw, query_errors
from dbanon.anonymization.utility.readings import readings_of
from dbanon.domain.outcomes import Stages
from dbanon.domain.policy import ModelSpec

RULES = {"letter": {"taxonomy": "letters"}}


def people(n=900, *, seed=3):
    """Return a table in which a disease follows from the age, and a policy."""
    random = np.random.default_rng(seed)
    age = random.integers(18, 80, n)
    columns = {
        "age": age.tolist(),
        "letter": random.choice([*"abcdefg"], n).tolist(),
        "sex": random.choice(["f", "m"], n).tolist(),
    }
    disease = np.where(age + random.normal(0, 5, n) > 50, "gout", "flu").tolist()
    table = encoded(columns, {"disease": disease}, rules=RULES, taxonomies=[LETTERS])
    return table, policy_of([*columns], ["disease"], k=5, rules=RULES, algorithm="mondrian")


@pytest.fixture(scope="module")
def published():
    table, policy = people()
    return of_outcome(table, solve(Problem(table, policy), seed=1, stages=Stages()), policy), policy


def exact(table, policy):
    """Return a release that tells everything: every row is a class of its own."""
    policy = replace(policy, models=(ModelSpec("k-anonymity", {"k": 1}),))
    return of_outcome(table, solve(Problem(table, policy), seed=1, stages=Stages()), policy)


def drawn(readings, *, share=0.05, n=120):
    return draw(readings, share=share, n=n, generator=np.random.default_rng(5))


def test_queries_are_true_of_about_the_share_of_rows_that_is_asked_for(published):
    readings = {reading.name: reading for reading in readings_of(published[0])}
    found = drawn([*readings.values()])
    assert 120 == sum(len(asked.queries) for asked in found)
    assert {"age"} == {asked.ranged for asked in found}
    assert {"letter", "sex", "disease"} == {asked.column for asked in found}
    for asked in found:
        codes, parts = readings[asked.ranged].codes, asked.parts[readings[asked.column].codes]
        for query in asked.queries:
            meets = (codes >= query.first) & (codes <= query.last) & np.isin(parts, query.wanted)
            assert query.rows == meets.sum()
            assert 45 <= query.rows <= 49.5
            assert 1 <= len(query.wanted) <= 3


def test_the_same_seed_asks_the_same(published):
    readings = readings_of(published[0])
    once, again = drawn(readings), drawn(readings)
    assert [asked.queries for asked in once] == [asked.queries for asked in again]


def test_the_error_of_an_answer_is_its_distance_over_the_truth(published):
    table, policy = people(40)
    readings = readings_of(exact(table, policy))
    age, sex = table.quasi[0], table.quasi[2]
    truth = int(((age.codes <= 20) & (sex.codes == 0)).sum())
    asked = QuerySet("age", "sex", np.arange(3), (Query(0, 20, (0,), truth), Query(0, 20, (0,), 1)))
    assert [0.0, truth - 1.0] == pytest.approx(deviations(readings, [asked]).error.tolist())
    doubled = deviations(readings, [asked], scale=2.0)
    assert [1.0, 2.0 * truth - 1.0] == pytest.approx(doubled.error.tolist())


AGES = [20, 21, 22, 23, 30, 31, 32, 33, 40, 41, 42, 43, *[50] * 4]
SEXES = ["f", "f", "m", "m", *"ffff", *"mmmm", *"ffff"]


@pytest.mark.parametrize(
    ("first", "last", "sexes", "true", "rows"),
    [
        (0, 3, "f", 2, 4),  # ages 20 to 23, whose class has both sexes
        (1, 4, "m", 2, 4),  # 21 to 30: the next class begins with 30, but has no men
        (3, 4, "fm", 2, 8),  # 23 to 30: one row of each of two classes
        (12, 12, "f", 4, 4),  # 50, a class of its own
    ],
)
def test_the_imprecision_is_how_many_rows_too_many_overlapping_classes_have(
    first, last, sexes, true, rows
):
    rules = {"sex": {"recoding": "set"}}
    table = encoded({"age": AGES, "sex": SEXES}, rules=rules)
    cells = {
        "age": [age for age in ("[20,23]", "[30,33]", "[40,43]", "[50,50]") for _ in range(4)],
        "sex": [sex for sex in ("{f,m}", "{f}", "{m}", "{f}") for _ in range(4)],
    }
    policy = policy_of(["age", "sex"], k=4, rules=rules)
    released = of_texts(table, pa.table(cells), np.ones(16, np.int64), policy=policy)
    wanted = tuple("fm".index(sex) for sex in sexes)
    asked = QuerySet("age", "sex", np.arange(3), (Query(first, last, wanted, true),))
    found = deviations(readings_of(released), [asked])
    assert [rows / true - 1.0] == pytest.approx(found.imprecision.tolist())


@pytest.mark.parametrize("last", ["[30.5,40.5]", "[30.5,40.5)"])
def test_a_class_overlaps_a_query_that_ends_where_it_begins(last):
    table = encoded({"amount": [10.5, 20.5, 30.5, 35.5], "sex": [*"ffff"]})
    shown = pa.table({"amount": [*["[10.5,20.5]"] * 2, *[last] * 2], "sex": [*"ffff"]})
    policy = policy_of(["amount", "sex"], k=2)
    released = of_texts(table, shown, np.ones(4, np.int64), policy=policy)
    asked = QuerySet("amount", "sex", np.arange(2), (Query(1, 2, (0,), 2), Query(0, 1, (0,), 2)))
    assert [1.0, 0.0] == deviations(readings_of(released), [asked]).imprecision.tolist()


@pytest.mark.exhaustive
def test_what_is_published_exactly_has_no_errors(published):
    readings = readings_of(exact(*people(200)))
    found = query_errors(readings, generator=np.random.default_rng(1))
    assert [0.005, 0.01, 0.05] == [error.selectivity for error in found]
    assert {(0.0, 0.0)} == {(error.median, error.upper) for error in found}
    assert {(0.0, 0.0)} == {(error.imprecision, error.imprecision_upper) for error in found}


@pytest.mark.exhaustive
def test_a_sample_is_scaled_to_all_rows(published):
    released, policy = published
    half = replace(
        released,
        size=released.size // 2,
        sensitive=tuple(replace(one, rows=one.rows / 2) for one in released.sensitive),
    )
    arguments = {"samples": 0, "stages": Stages()}
    found = [
        utility_of(each, asked, generator=np.random.default_rng(2), **arguments).queries[-1].median
        for each, asked in (
            (released, policy),
            (half, policy),
            (half, replace(policy, sample=0.5)),
        )
    ]
    assert found[1] > 0.4
    assert found[2] < 2 * found[0] + 0.1


@pytest.mark.parametrize("kept", [["letter", "sex"], ["age"]])
def test_without_a_range_or_a_category_others_stand_in(kept):
    table, policy = people()
    quasi = tuple(column for column in table.quasi if column.name in kept)
    table = replace(table, quasi=quasi)
    if kept == ["age"]:
        table = replace(table, sensitive=table.sensitive[:, :0], sensitive_names=(), domains=())
        table = replace(
            table, quasi=(*quasi, replace(quasi[0], rule=replace(quasi[0].rule, column="b")))
        )
    rules = {**RULES} if "letter" in kept else {}
    policy = policy_of([c.name for c in table.quasi], table.sensitive_names, k=5, rules=rules)
    policy = replace(policy, algorithm="mondrian")
    released = of_outcome(table, solve(Problem(table, policy), seed=1, stages=Stages()), policy)
    found = drawn(readings_of(released), share=0.066, n=20)
    assert sum(len(asked.queries) for asked in found) == 20


def test_features_are_the_middle_of_numbers_and_the_shares_of_other_values(published):
    age, letter, sex = readings_of(published[0])[:3]
    column = published[0].table.quasi[0]
    features = features_of(age)
    label = age.texts.index(next(text for text in age.texts if text.startswith("[")))
    low, high = (int(end) for end in age.texts[label][1:-1].split(","))
    span = column.values[-1] - column.values[0]
    middle = ((low + high) / 2 - column.values[0]) / span
    assert [middle, 0.0] == pytest.approx(features.labels[label].tolist())
    assert [0.0, 1.0] == pytest.approx(features.codes[[0, -2], 0].tolist())
    assert [0.5, 1.0] == features.codes[-1].tolist()  # NULL
    for reading in (letter, sex):
        features = features_of(reading)
        assert np.ones(reading.n_labels) == pytest.approx(features.labels.sum(axis=1))
        assert np.ones(reading.n_codes) == pytest.approx(features.codes.sum(axis=1))


def test_a_classifier_that_knows_the_answer_is_right():
    train = np.arange(200.0)[:, None]
    found = scores(train, np.arange(200) > 99, test=train, truth=np.arange(200) > 99, seed=1)
    assert {BOOSTING, LOGISTIC} == set(found)
    for score in found.values():
        assert score.accuracy > 0.97
        assert score.auc > 0.999


def test_of_several_values_areas_are_those_of_each_against_the_others():
    random = np.random.default_rng(1)
    truth = random.integers(0, 3, 300)
    train = np.eye(3)[truth] + random.normal(0, 0.05, (300, 3))
    found = scores(train, truth, test=train, truth=truth, seed=1)
    assert found[LOGISTIC].auc > 0.999
    unlearned = scores(train[truth < 2], truth[truth < 2], test=train, truth=truth, seed=1)
    assert unlearned[LOGISTIC].accuracy < 0.8
    assert unlearned[LOGISTIC].auc < found[LOGISTIC].auc


def test_of_many_features_fewer_trees_are_grown():
    values = np.arange(40)[:, None] % 2.0
    rounds = [classifiers(np.repeat(values, n, axis=1), 3, seed=1) for n in (1, 128, 512, 5120)]
    assert [100, 100, 25, 15] == [found[BOOSTING][1].max_iter for found in rounds]


def test_each_feature_has_bins_for_the_most_values_of_any():
    train = np.column_stack([np.arange(400) % n for n in (2, 7, 3)])
    bins = [classifiers(some, 2, seed=1)[BOOSTING][1].max_bins for some in (train, train[:1])]
    assert [7, 2] == bins
    assert 255 == classifiers(np.arange(400.0)[:, None], 2, seed=1)[BOOSTING][1].max_bins


def test_trees_get_features_that_can_split_once_each_and_regression_all_that_vary():
    rows = np.arange(60)
    features = [rows * 0, rows < 19, rows < 20, rows >= 40, 3.0 * (rows >= 40), rows % 3]
    found = classifiers(np.column_stack(features), 2, seed=1)
    assert ([2, 3, 5], [1, 2, 3, 4, 5]) == (found[BOOSTING][0], found[LOGISTIC][0])


def test_one_value_is_predicted_of_all():
    rows = np.zeros((4, 1))
    found = scores(rows, np.zeros(4), test=rows, truth=np.array([0, 0, 0, 1]), seed=1)
    assert (0.75, 0.5) == found[BOOSTING]


def learned(released, policy, *, samples=900):
    return utility_of(
        released, policy, generator=np.random.default_rng(4), samples=samples, stages=Stages()
    ).classifications


@pytest.mark.exhaustive
@pytest.mark.parametrize("remembered", [True, False])
def test_a_release_teaches_about_as_much_as_the_source_and_more_than_guessing(
    published, remembered
):
    released, policy = published
    released = released if remembered else replace(released, classes=None)
    for found in learned(released, policy):
        source, release, guesser = found.accuracy
        assert source > 0.8
        assert release > 0.8
        assert 0.4 < guesser < 0.65
        assert min(found.auc[:2]) > 0.85
        assert (0.5, 600, 300, "disease") == (found.auc[2], found.rows, found.tested, found.column)


@pytest.mark.exhaustive
@pytest.mark.parametrize("remembered", [True, False])
def test_rows_that_are_tested_are_not_learned_from(remembered):
    """Where each row is unique and has a random value, nobody who has not seen it knows it."""
    random = np.random.default_rng(8)
    n = 600
    columns = {"age": list(range(n)), "place": random.choice([*"xyz"], n).tolist()}
    table = encoded(columns, {"disease": random.choice(["flu", "gout"], n).tolist()})
    policy = policy_of([*columns], ["disease"], k=1, algorithm="mondrian")
    released = exact(table, policy)
    assert released.n_classes == n
    released = released if remembered else replace(released, classes=None)
    for found in learned(released, policy):
        assert found.accuracy[1] < 0.62
        assert found.rows == 400


@pytest.mark.exhaustive
def test_a_sample_bounds_what_is_learned_from(published):
    for found in learned(*published, samples=300):
        assert (200, 100) == (found.rows, found.tested)


def test_what_is_predicted_is_the_class_label_or_the_first_column_of_few_values():
    n = 90
    columns = {"age": list(range(n))}
    sensitive = {
        "many": [f"v{i}" for i in range(n)],
        "few": ["a", "b", None] * 30,
        "two": ["x", "y"] * 45,
        "one": ["z"] * n,
    }
    table = encoded(columns, sensitive)
    policy = policy_of([*columns], sensitive, k=2, algorithm="mondrian")
    outcome = solve(Problem(table, policy), seed=1, stages=Stages())
    readings = readings_of(of_outcome(table, outcome, policy))
    assert "few" == target_of(readings, policy).name
    assert "two" == target_of(readings, replace(policy, class_label="two")).name
    assert "few" == target_of(readings, replace(policy, class_label="many")).name
    assert target_of([each for each in readings if each.name in {"age", "one"}], policy) is None


def test_all_parts_are_measured_and_what_comes_after_a_stop_is_left_out(published):
    released, policy = published
    stages = Stages()
    generator = np.random.default_rng(4)
    found = utility_of(released, policy, generator=generator, samples=200, stages=stages)
    names = ("age", "letter", "sex", "disease")
    assert names == tuple(each.column for each in found.distributions)
    assert [names] == [each.columns for each in found.associations]
    assert 2 == len(found.queries)
    assert 2 == len(found.classifications)
    assert ["utility", "queries", "classifiers"] == list(stages.seconds)
    stages.on_start = lambda name: setattr(stages, "stopped", name == "queries")
    found = utility_of(released, policy, generator=generator, samples=200, stages=stages)
    assert found.queries
    assert not found.classifications


def test_a_release_of_nothing_has_no_use():
    table, policy = people(20)
    released = exact(table, policy)
    nothing = replace(released, size=released.size[:0], columns=(), sensitive=())
    found = utility_of(
        nothing, policy, generator=np.random.default_rng(1), samples=9, stages=Stages()
    )
    assert ((), (), (), ()) == (
        found.distributions,
        found.associations,
        found.queries,
        found.classifications,
    )


@some()
@given(tables_and_requirements())
def test_of_any_table_shares_are_shares(drawn):
    table, k, _ = drawn
    names = [column.name for column in table.quasi]
    rules = RULES if "letter" in names else {}
    policy = policy_of(names, table.sensitive_names, k=k, rules=rules, algorithm="mondrian")
    released = of_outcome(table, solve(Problem(table, policy), seed=1, stages=Stages()), policy)
    found = utility_of(
        released, policy, generator=np.random.default_rng(1), samples=100, stages=Stages()
    )
    for each in found.distributions:
        assert 0.0 <= each.distance <= 1.0
        assert all(0.0 <= share <= 1.0 for share in (*each.source, *each.published))
    for each in found.associations:
        rows = (*each.source, *each.published)
        strengths = [value for row in rows for value in row]
        assert all(-1.0 <= value <= 1.0 for value in strengths if value is not None)
