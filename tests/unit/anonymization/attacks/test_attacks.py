"""Attacks where it is known by construction of whom they are right."""

import tracemalloc
from dataclasses import replace

import naive.attacks
import naive.released
import numpy as np
import pytest
from builders import encoded, grouped, policy_of, tables
from goldens import DISEASE_TREE, DISEASES, PUBLISHED
from hypothesis import given
from hypothesis import strategies as st

from dbanon.anonymization.attacks.beliefs import (
    background,
    beliefs,
    exclude,
    homogeneity,
    minimality,
    near_values,
    similarity,
    skewness,
    suspicion,
)
from dbanon.anonymization.attacks.definetti import Cover, definetti, self_consistent
from dbanon.anonymization.attacks.registry import ATTACKS, BY, attack
from dbanon.anonymization.attacks.reidentification import (
    journalist,
    linkage,
    marketer,
    membership,
    of_labels,
    prosecutor,
)
from dbanon.anonymization.attacks.scenario import Case, Named, NotTried, draw, naming
from dbanon.anonymization.released.cells import covers
from dbanon.domain.assignment import SensitiveDomain
from dbanon.domain.outcomes import Stages
from dbanon.domain.policy import ModelSpec
from dbanon.domain.report import Attacker, Naming
from dbanon.models.tally import joint_codes


def case_of(columns, diseases, groups, *, knows=True, k=1, rules=None, taxonomies=(), models=None):
    sensitive = {"disease": list(diseases)} if diseases else {}
    table = encoded(columns, sensitive, rules=rules, taxonomies=taxonomies)
    policy = policy_of(columns, sensitive, k=k, rules=rules)
    if models is not None:
        specs = tuple(ModelSpec(name, params) for name, params in models)
        policy = replace(policy, models=policy.models + specs)
    released = grouped(table, groups, policy)
    released = released if knows else replace(released, classes=None)
    return draw(released, policy, samples=1000, generator=np.random.default_rng(1))


def tried(one, case, seed=0):
    return list(one(case, np.random.default_rng(seed)))


def hospital(values="hhvvvvchcccc", **options):
    """Return the classes of the paper, four rows each, that cover nobody else."""
    ages = [10 * (i // 4) + i % 2 for i in range(len(values))]
    return case_of({"age": ages}, values, [i // 4 for i in range(len(values))], **options)


# To find the row of a person


@pytest.mark.parametrize("knows", [True, False])
def test_a_prosecutor_is_right_once_in_the_rows_that_a_person_may_have(knows):
    # 2 is in the first class and in the second one, which begins with it.
    case = case_of({"age": [1, 2, 2, 3, 7, 8]}, None, [0, 0, 1, 1, 2, 2], knows=knows, k=2)
    (found,) = tried(prosecutor, case)
    assert pytest.approx((1 / 2 + 1 / 4 + 1 / 4 + 3 * 1 / 2) / 6) == found.rate
    assert (6, 2, 0.5) == (found.tried, found.candidates, found.expected)
    assert pytest.approx(1 / 6) == found.baseline


def test_who_is_published_as_they_are_is_found():
    case = case_of({"age": [1, 2, 3, 4]}, None, [0, 1, 2, 3])
    for one in (prosecutor, journalist, marketer):
        (found,) = tried(one, case)
        assert (1.0, 1.0, None) == (found.rate, found.high, found.expected)


def test_a_journalist_takes_the_rows_that_fewest_may_have():
    case = case_of({"age": [1, 1, 1, 5, 6, 9, 9]}, None, [0, 0, 0, 1, 1, 2, 2], k=2)
    (found,) = tried(journalist, case)
    assert (4, 2.0, 0.5) == (found.tried, found.candidates, found.rate)
    (found,) = tried(marketer, case)
    assert (7, 3 / 7) == (found.tried, pytest.approx(found.rate))


def test_who_was_left_out_makes_others_harder_to_find():
    case = case_of({"age": [1, 2, 3, 4]}, None, [0, -1, -1, 0], k=2)
    (found,) = tried(journalist, case)
    assert (2, 4.0, 0.25) == (found.tried, found.candidates, found.rate)


@given(st.lists(st.tuples(*3 * [st.integers(-1, 3)]), max_size=12))
def test_rows_are_alike_that_have_all_codes_in_common(rows):
    codes = np.array(rows, np.int32).reshape(-1, 3)
    distinct = sorted(set(rows))
    assert [distinct.index(row) for row in rows] == joint_codes(codes).tolist()


def test_rows_are_compared_column_by_column_in_memory_too():
    codes = np.zeros((20_000, 64), np.int32)
    tracemalloc.start()
    joint_codes(codes)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < codes.size * 8


# To know a value


def test_a_class_of_one_value_tells_it():
    (found,) = tried(homogeneity, hospital())
    assert pytest.approx(4 / 12) == found.rate
    assert (None, 4 / 12, 2.0) == (found.expected, found.baseline, found.candidates)
    assert Naming(persons=4, right=4, usual=4) == found.named
    (found,) = tried(homogeneity, hospital("cchvvvchcchv", models=[("l-diversity", {"l": 3})]))
    assert (0.0, 0.0) == (found.rate, found.expected)


@pytest.mark.parametrize(("true", "right"), [("cccc", 4), ("cccv", 3)])
def test_of_persons_who_are_named_it_is_counted_how_many_are_named_rightly(true, right):
    case = hospital("hhvvvvch" + true, k=5)
    own = next(iter(case.targets()))
    is_guessed = own.truth == own.guess
    named = Named(np.arange(12) > 7, own.truth == own.truth[8], is_guessed)
    found = naming("homogeneity", own.name, named, expected=None, left=1.0)
    usual = int(is_guessed[8:].sum())
    assert (4, right, usual) == (found.named.persons, found.named.right, found.named.usual)
    assert (right / 12, usual / 12) == (found.rate, found.baseline)


def test_a_skewed_class_is_guessed_right_more_often_than_the_relation():
    (found,) = tried(skewness, hospital())
    # Two of four, two of four and all, where cancer is that of five of twelve.
    assert pytest.approx(8 / 12) == found.rate
    assert pytest.approx(5 / 12) == found.baseline
    assert found.expected is None


@pytest.mark.parametrize("knows", [True, False])
def test_who_may_be_in_several_classes_is_guessed_beyond_what_a_model_admits(knows):
    """Half of each class may be in the other, too: to be guessed by both tells them apart."""
    first, second = [0, 1, 2, 3, 4, 4, 6, 7, 8, 9, 10], [5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
    case = case_of(
        {"age": 10 * (first + second)},
        10 * ("f" * 6 + "m" * 5 + "m" * 6 + "s" * 5),
        10 * (11 * [0] + 11 * [1]),
        knows=knows,
        models=[("alpha-k-anonymity", {"alpha": 0.55})],
    )
    (found,) = tried(skewness, case)
    assert found.rate > 0.75
    assert found.expected is None or found.rate <= found.expected


@pytest.mark.parametrize(("k", "l"), [(2, 1.5), (5, 3.0)])
def test_who_may_be_in_several_classes_loosens_the_bound_by_as_many(k, l):
    """Two of ten may be in both."""
    case = case_of(
        {"age": [0, 1, 2, 3, 4, 4, 5, 6, 7, 8]},
        "fmfmffmfmm",
        5 * [0] + 5 * [1],
        k=k,
        models=[("probabilistic-l-diversity", {"l": l})],
    )
    (found,) = tried(skewness, case)
    assert pytest.approx(1 / l + 2 / 10) == found.expected


def test_a_guess_is_right_no_more_often_than_its_model_admits():
    models = [("probabilistic-l-diversity", {"l": 2})]
    (found,) = tried(skewness, hospital("cchvvvchcchv", models=models))
    assert (0.5, 0.5) == (found.rate, found.expected)


def test_a_bound_is_not_told_where_it_is_not_known_who_is_in_the_release():
    models = [("alpha-k-anonymity", {"alpha": 0.5})]
    values = "hhvvvvch"
    groups = [0, 0, 0, 0, 1, 1, -1, -1]
    ages = [1, 2, 1, 2, 5, 6, 5, 6]
    for knows, persons, expected in ((True, 6, 0.5), (False, 8, None)):
        case = case_of({"age": ages}, values, groups, models=models, knows=knows)
        (found,) = tried(skewness, case)
        assert (persons, expected) == (found.tried, found.expected)


def test_excluding_the_other_value_of_two_leaves_one():
    case = case_of({"age": [1, 2, 1, 2, 6, 7]}, "hhvvvc", [0, 0, 0, 0, 1, 1])
    one, two = tried(background, case)
    assert (1.0, 1.0) == (one.rate, two.rate)
    assert ("background knowledge of 1", "background knowledge of 2") == (one.name, two.name)
    assert one.baseline < 1


@given(st.integers(0, 100), st.integers(1, 3))
def test_what_is_excluded_is_there_and_not_true(seed, excluded):
    generator = np.random.default_rng(seed)
    belief = generator.random((5, 4)) * (generator.random((5, 4)) < 0.7)
    truth = generator.integers(0, 4, 5)
    belief[np.arange(5), truth] += 0.1
    left = exclude(belief, truth, excluded=excluded, generator=generator)
    gone = (belief > 0) & (left == 0)
    others = np.count_nonzero(belief, axis=1) - 1
    assert np.minimum(others, excluded).tolist() == gone.sum(axis=1).tolist()
    assert not gone[np.arange(5), truth].any()
    assert (left[~gone] == belief[~gone]).all()


def test_any_other_value_is_excluded_as_often():
    belief, truth = np.tile([0.7, 0.2, 0.1, 0.0], (3000, 1)), np.zeros(3000, np.int64)
    left = exclude(belief, truth, excluded=1, generator=np.random.default_rng(3))
    gone = ((belief > 0) & (left == 0)).mean(axis=0)
    assert [0, 0.5, 0.5, 0] == pytest.approx(gone.tolist(), abs=0.03)


def test_values_that_are_alike_are_guessed_together():
    # Li et al.: the first class has three diseases, all of the stomach.
    groups = [next(g for g, rows in enumerate(PUBLISHED) if i in rows) for i in range(1, 10)]
    ages = [[29, 22, 27, 43, 52, 47, 30, 36, 32][i] for i in range(9)]
    rules = {"disease": {"taxonomy": "diseases"}}
    case = case_of({"age": ages}, DISEASES, groups, rules=rules, taxonomies=[DISEASE_TREE], k=3)
    (found,) = tried(similarity, case)
    assert pytest.approx(7 / 9) == found.rate
    assert pytest.approx(5 / 9) == found.baseline


def test_numbers_are_near_within_a_tenth_of_their_range():
    labels, numbers = ("0", "4", "50", "100", None), np.array([0, 4, 50, 100, np.nan])
    salaries = SensitiveDomain(labels, numbers, np.zeros(0, np.int64), has_order=True)
    # NULL is near nothing.
    assert [0, 0, 1, 2, 3] == near_values(salaries, np.ones(5, np.int64)).tolist()
    assert near_values(replace(salaries, has_order=False), np.ones(5, np.int64)) is None
    ranks = replace(salaries, labels=tuple("abcde"), numbers=np.full(5, np.nan))
    assert near_values(ranks, np.ones(5, np.int64)) is None  # each of five is a fifth from the next
    many = replace(salaries, labels=tuple(map(str, range(40))), numbers=np.full(40, np.nan))
    sets = near_values(many, np.ones(40, np.int64))
    assert (10, True) == (len(np.unique(sets)), np.bincount(sets).max() <= 5)


def test_a_value_that_is_not_published_moves_no_other():
    numbers = np.array([0, 4, 50, 100, 9_000, np.nan])
    salaries = SensitiveDomain(
        (*map(str, numbers),), numbers, np.zeros(0, np.int64), has_order=True
    )
    salaries = replace(salaries, labels=(*salaries.labels[:-1], None))
    assert [0, 0, 1, 2, 2, 3] == near_values(salaries, np.array([1, 1, 1, 1, 0, 1])).tolist()
    ranks = replace(salaries, numbers=np.full(6, np.nan))
    assert near_values(ranks, np.array([1, 1, 1, 1, 0, 1])) is None


def test_nothing_is_near_without_an_order_or_a_taxonomy():
    with pytest.raises(NotTried, match="order or a taxonomy"):
        tried(similarity, hospital())


# To learn


def test_persons_who_were_published_with_others_were_too_often_ill():
    # Wong et al.: both persons of the first place are ill, and published with two of the second.
    ages, groups = [1, 1, 2, 2, 2, 2, 2], [0, 0, 0, 0, 1, 1, 1]
    values = ["ill", "ill", *map(str, range(5))]
    models = [("probabilistic-l-diversity", {"l": 2})]
    case = case_of({"age": ages}, values, groups, k=2, models=models)
    (found,) = tried(minimality, case)
    assert (2, 1.0, None) == (found.tried, found.rate, found.expected)
    counts = np.array([[2, 1, 1]])
    told = suspicion(counts, np.array([2]), share=0.5, strictly=True)
    assert [1.0, 0.0, 0.0] == pytest.approx(told[0].tolist())


@given(st.lists(st.sampled_from("abc"), min_size=2, max_size=7), st.data())
def test_what_is_suspected_is_what_all_worlds_say(values, data):
    alike = data.draw(st.integers(1, len(values)))
    share = data.draw(st.sampled_from([1 / 3, 0.5, 0.7]))
    strictly = data.draw(st.booleans())
    names = sorted(set(values))
    counts = np.array([[values.count(name) for name in names]])
    found = suspicion(counts, np.array([alike]), share=share, strictly=strictly)[0]

    def too_frequent(count, rows):
        over = count - share * rows
        return over > 1e-9 if strictly else over > -1e-9

    expected = naive.attacks.suspicion(values, alike, too_frequent=too_frequent)
    if expected is None:
        expected = {name: values.count(name) / len(values) for name in names}
    assert [expected[name] for name in names] == pytest.approx(found.tolist())


def test_classes_that_tell_teach_what_others_hide():
    # The young have a cold and the old gout; every other class mixes two of them.
    ages, values, groups = [], [], []
    for i in range(40):
        young, old = i // 4, 50 + i // 4
        members = [(young, "cold"), (old, "gout")] if i % 2 else [(young, "cold")] * 2
        members = [(old, "gout")] * 2 if i % 4 == 0 else members
        for age, value in members:
            ages.append(age)
            values.append(value)
            groups.append(i)
    wards = [f"ward {group}" for group in groups]  # so that nobody else is in a class
    case = case_of({"age": ages, "ward": wards}, values, groups)
    (learned,), (guessed,) = tried(definetti, case), tried(skewness, case)
    assert (1.0, 0.75) == (learned.rate, guessed.rate)
    assert learned.expected is None


@given(st.data())
def test_rows_are_spread_over_codes_as_they_say_of_themselves(data):
    ages = data.draw(st.lists(st.none() | st.integers(0, 5), min_size=4, max_size=12))
    groups = [i // 2 for i in range(len(ages))]
    table = encoded({"age": ages}, kinds={"age": encoded({"age": [1]}).quasi[0].kind})
    released = grouped(table, groups, policy_of(["age"]))
    (cells,), (column,) = released.columns, table.quasi
    covered = [
        [
            code
            for code in range(column.size + 1)
            if naive.released.is_covered(cells, label, code, size=column.size)
        ]
        for label in range(len(cells.labels))
    ]
    published = cells.index[released.classes].tolist()
    register = np.bincount(column.codes, minlength=column.size + 1) / len(ages)
    rows = np.bincount(published, minlength=len(cells.labels))[:, None].astype(float)
    found = self_consistent(rows, Cover(cells, column.size), register)
    expected = naive.attacks.self_consistent(
        published, covered, dict(enumerate(register.tolist())), rounds=5
    )
    assert [expected[code] for code in range(column.size + 1)] == pytest.approx(
        found[:, 0].tolist()
    )


@given(st.data())
def test_beliefs_are_those_of_the_rows_that_a_person_may_have(data):
    table = data.draw(tables(min_sensitive=1, max_sensitive=1))
    groups = [i // 2 for i in range(table.n_rows)]
    policy = policy_of([one.name for one in table.quasi], table.sensitive_names)
    case = draw(grouped(table, groups, policy), policy, samples=100, generator=None)
    weight = np.linspace(1, 2, case.released.n_classes)
    for target in case.targets():
        parts = beliefs(case.coverage, target.tally, weight, n_codes=len(target.whole))
        found = np.concatenate([belief for _, belief in parts])
        expected = naive.attacks.beliefs(case.released, case.rows, target.name, weight=weight)
        assert np.allclose(expected, found)


# To take what is nearest


def test_the_nearest_row_is_that_of_a_person_who_is_published_as_is():
    case = case_of({"age": [10, 20, 30, 40], "sex": list("abab")}, "hvch", [0, 1, 2, 3])
    exact = {(one.name, one.column): one for one in tried(linkage, case)}
    assert 1.0 == exact["linkage by distance", None].rate
    assert exact["fuzzy linkage by distance", None].tried == 4
    told = {
        name: "with a mistake in what is known" in one.words for (name, _), one in exact.items()
    }
    assert [name.startswith("fuzzy") for name in told] == [*told.values()]


def test_who_is_in_a_class_of_two_is_found_every_other_time():
    ages = [10, 12, 50, 52, 90, 92]
    for knows in (True, False):
        case = case_of({"age": ages}, "hvhvcc", [0, 0, 1, 1, 2, 2], k=2, knows=knows)
        found = {one.name: one for one in tried(linkage, case)}
        assert (0.5, 0.5) == (
            found["linkage by distance"].rate,
            found["linkage by distance"].expected,
        )
        # With the value, there is one row of each class but the last.
        assert pytest.approx(5 / 6) == found["linkage by distance, with a sensitive value"].rate
        assert ("upper bound" in found["linkage by distance"].words) is not knows


@given(st.data())
def test_distances_are_those_of_a_label_and_a_value(data):
    table = data.draw(tables(max_sensitive=0))
    groups = [i // 2 for i in range(table.n_rows)]
    released = grouped(table, groups, policy_of([one.name for one in table.quasi]))
    for cells, column in zip(released.columns, table.quasi, strict=True):
        codes = column.codes.astype(np.int64)
        has_scale = len(column.position) > 0
        position = np.append(column.position, np.nan)[codes] if has_scale else np.zeros(len(codes))
        found = of_labels(cells, column, (codes, position))
        for row, code in enumerate(codes.tolist()):
            for label in range(len(cells.labels)):
                expected = naive.attacks.label_distance(
                    cells, label, code, position[row], size=column.size, has_scale=has_scale
                )
                assert pytest.approx(expected) == found[row, label]


# To tell who is there


def test_who_was_left_out_is_told_from_the_others_if_no_class_covers_them():
    ages = [*range(20), *range(100, 120)]
    groups = [*[i // 2 for i in range(20)], *[-1] * 20]
    (found,) = tried(membership, case_of({"age": ages}, None, groups, k=2))
    assert (40, 1.0, 0.5) == (found.tried, found.rate, found.baseline)


@pytest.mark.parametrize(
    ("groups", "knows", "why"),
    [
        ([0, 0, 1, 1], True, "no rows were left out"),
        ([0, 0, 1, 1], False, "no rows were left out"),
        ([0, 0, -1, -1], False, "suppressed persons are not stored"),
    ],
)
def test_it_is_not_told_where_nobody_was_or_nobody_knows(groups, knows, why):
    case = case_of({"age": [1, 2, 3, 4]}, None, groups, knows=knows)
    with pytest.raises(NotTried, match=why):
        tried(membership, case)


def test_one_who_was_left_out_is_told_from_one_of_the_others():
    case = case_of({"age": [*range(20), 100]}, None, [*[i // 2 for i in range(20)], -1], k=2)
    (found,) = tried(membership, case)
    assert 2 == found.tried


# All of them


def test_persons_whom_no_class_covers_are_not_tried():
    released = case_of({"age": [1, 2, 3, 4]}, "hvhv", [0, 0, 1, 1]).released
    later = encoded({"age": [1, 2, 3, 9]}, {"disease": list("hvhv")})
    columns = tuple(replace(cells, hi=np.minimum(cells.hi, 2)) for cells in released.columns)
    released = replace(released, table=later, columns=columns, classes=None)
    policy = policy_of(["age"], ["disease"], k=1)
    case = draw(released, policy, samples=9, generator=np.random.default_rng(0))
    assert ([0, 1, 2], 1) == (case.rows.tolist(), case.unseen)
    assert covers(released, case.rows).classes.tolist() == case.coverage.classes.tolist()


@pytest.mark.parametrize("name", ATTACKS)
@given(data=st.data())
def test_every_attack_tells_a_rate_within_its_interval_or_why_there_is_none(name, data):
    table = data.draw(tables(rows=st.integers(4, 24)))
    knows = data.draw(st.booleans())
    groups = [-1 if data.draw(st.integers(0, 9)) == 0 else i // 3 for i in range(table.n_rows)]
    kept = sorted(set(groups) - {-1})
    groups = [kept.index(one) if one >= 0 else -1 for one in groups]
    if not kept:
        return
    policy = policy_of([one.name for one in table.quasi], table.sensitive_names, k=1)
    released = grouped(table, groups, policy)
    released = released if knows else replace(released, classes=None)
    asked = {"names": (name,), "samples": 10, "seed": 3, "stages": Stages()}
    found = attack(released, policy, **asked)
    assert found == attack(released, policy, **asked)
    assert (not found.attacks) <= (name in found.not_tried)
    for one in found.attacks:
        assert 0 <= one.low <= one.rate <= one.high <= 1
        assert 0 < one.tried
        assert 0 <= one.baseline <= 1
        assert one.words


def test_every_attack_is_tried_by_somebody():
    assert set(ATTACKS) == {name for names in BY.values() for name in names}
    assert set(BY) == set(Attacker)


def test_attacks_on_fewer_than_k_persons_are_not_told():
    case = case_of({"age": [1, 1, 2, 2, 2, 2, 2]}, "iiabcde", [0, 0, 0, 0, 1, 1, 1], k=3)
    models = (*case.policy.models, ModelSpec("probabilistic-l-diversity", {"l": 2}))
    policy = replace(case.policy, models=(ModelSpec("k-anonymity", {"k": 2}), models[-1]))
    asked = {"names": ("minimality",), "samples": 9, "seed": 0, "stages": Stages()}
    assert 1 == len(attack(case.released, policy, **asked).attacks)
    stricter = replace(policy, models=case.policy.models)
    assert {"minimality"} == set(attack(case.released, stricter, **asked).not_tried)


def test_what_there_is_no_time_for_is_told():
    case = hospital()
    asked = {"samples": 9, "seed": 0}
    late = attack(case.released, case.policy, stages=Stages(), until=0.0, **asked)
    stopped = attack(case.released, case.policy, stages=Stages(stopped=True), **asked)
    assert set(ATTACKS) == set(late.not_tried) == set(stopped.not_tried)
    assert () == late.attacks == stopped.attacks


def test_an_empty_relation_is_attacked_in_vain():
    case = hospital()
    nothing = replace(case.released, classes=np.full(12, -1, np.int32))
    found = attack(nothing, case.policy, samples=9, seed=0, stages=Stages())
    assert set(ATTACKS) == set(found.not_tried)


def test_buckets_are_not_attacked():
    case = hospital()
    buckets = replace(case.released, columns=())
    found = attack(buckets, case.policy, samples=9, seed=0, stages=Stages())
    assert set(ATTACKS) == set(found.not_tried)


def test_fewer_persons_are_drawn_where_each_may_be_in_any_class(monkeypatch):
    rules = {"age": {"recoding": "mean"}}
    case = case_of({"age": [*range(40)]}, None, [i // 4 for i in range(40)], k=4, rules=rules)
    assert (40, [40.0] * 10) == (case.tried, case.n_candidates.tolist())
    monkeypatch.setattr("dbanon.anonymization.attacks.scenario._HELD", 50)
    some = draw(case.released, case.policy, samples=40, generator=np.random.default_rng(0))
    assert 5 == some.tried


def test_a_sample_is_counted_for_all():
    ages = list(range(100))
    case = case_of({"age": ages}, "hvch" * 25, [i // 5 for i in range(100)], k=5)
    some = draw(case.released, case.policy, samples=20, generator=np.random.default_rng(0))
    assert isinstance(some, Case)
    assert 20 == some.tried
    assert (some.n_candidates >= case.released.size).all()
    assert (case.n_candidates == 5).all()
