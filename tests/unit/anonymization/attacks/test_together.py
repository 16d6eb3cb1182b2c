"""Attacks of who has two relations, where it is known by construction of whom they are right."""

from dataclasses import replace

import numpy as np
import pytest
from builders import encoded, grouped, policy_of, tables
from hypothesis import given
from hypothesis import strategies as st

from dbanon.anonymization.attacks.pair import (
    ATTACKS_ON_BOTH,
    Shown,
    alike,
    attack_both,
    cell_sizes,
    codes_in,
    differencing,
    draw_both,
    in_both,
    intersection,
    join,
    together,
)
from dbanon.anonymization.attacks.scenario import NotTried
from dbanon.domain.outcomes import Stages
from dbanon.domain.policy import ModelSpec
from dbanon.domain.report import Naming

BOB, ALICE, ANDY, DAVID = 21, 22, 51, 52


def shown(ages, diseases, groups, rows, *, k=1, knows=True, models=()):
    table = encoded({"age": ages}, {"disease": list(diseases)})
    policy = policy_of(["age"], ["disease"], k=k)
    policy = replace(policy, models=policy.models + models)
    released = grouped(table, groups, policy)
    released = released if knows else replace(released, classes=None)
    return Shown(released, policy, np.array(rows))


def both(first, second, *, is_judged=False, samples=1000):
    generator = np.random.default_rng(1)
    return draw_both(first, second, is_judged=is_judged, samples=samples, generator=generator)


def bob_and_david(**options):
    """Return the releases of which both are diverse, and together are not (Xiao and Tao)."""
    ages = [BOB, ALICE, ANDY, DAVID]
    values = ["dyspepsia", "bronchitis", "flu", "gastritis"]
    first = shown(ages, values, [0, 0, 1, 1], [0, 3], **options)
    second = shown([BOB, DAVID], ["dyspepsia", "gastritis"], [0, 0], [0, 1], **options)
    return first, second


@pytest.mark.parametrize("knows", [True, False])
def test_both_relations_tell_what_neither_does(knows):
    likeliest, certain = intersection(both(*bob_and_david(knows=knows)))
    assert (2, 1.0, 1.0) == (certain.tried, certain.rate, certain.candidates)
    assert (0.0, None) == (certain.baseline, certain.expected)
    assert Naming(persons=2, right=2, usual=0) == certain.named
    assert 1.0 == likeliest.rate
    assert likeliest.baseline <= 0.5


def test_who_may_be_in_several_classes_is_guessed_beyond_what_both_were_judged_by():
    first, second = [0, 1, 2, 3, 4, 4, 6, 7, 8, 9, 10], [5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
    values = "f" * 6 + "m" * 5 + "m" * 6 + "s" * 5
    models = (ModelSpec("alpha-k-anonymity", {"alpha": 0.55}),)
    one = shown(first + second, values, 11 * [0] + 11 * [1], range(22), models=models)
    likeliest, _ = intersection(both(one, one, is_judged=True))
    assert likeliest.rate > 0.75
    assert likeliest.expected is None or likeliest.rate <= likeliest.expected


def test_who_is_in_the_same_classes_of_both_is_found_among_these():
    (found,) = join(both(*bob_and_david()))
    assert (2, 1.0, 1.0, None) == (found.tried, found.rate, found.candidates, found.expected)
    assert found.baseline == 0.5


def test_relations_that_were_judged_together_are_bounded():
    models = (ModelSpec("alpha-k-anonymity", {"alpha": 0.5}),)
    ages, values = [1, 2, 1, 2, 7, 8, 7, 8], "hvhvcgcg"
    first = shown(ages, values, [0] * 4 + [1] * 4, range(8), k=4, models=models)
    second = shown(ages, values, [0] * 8, range(8), k=4, models=models)
    pair = both(first, second, is_judged=True)
    (found,) = join(pair)
    assert (0.25, 0.25, 4.0) == (found.rate, found.expected, found.candidates)
    likeliest, certain = intersection(pair)
    assert (0.5, 0.5) == (likeliest.rate, likeliest.expected)
    assert (0.0, 0.0) == (certain.rate, certain.expected)


def test_a_newcomer_is_what_a_class_has_more():
    first = shown([1, 2, 2], "hvc", [0, 0, 0], [0, 1, 2], k=2)
    second = shown([1, 2, 2, 1], "hvcg", [0, 0, 0, 0], [0, 1, 2], k=2)
    (found,) = differencing(both(first, second))
    assert (1, 1.0, 1.0, 0.25) == (found.tried, found.rate, found.candidates, found.baseline)
    # The other way round it is who left.
    (found,) = differencing(both(second, first))
    assert (1, 1.0) == (found.tried, found.rate)


def test_classes_that_differ_by_k_rows_or_not_at_all_are_not_subtracted():
    first = shown([1, 2, 1, 2], "hvhv", [0] * 4, range(4), k=2)
    larger = shown([1, 2] * 3, "hvhvcg", [0] * 6, range(4), k=2)
    for second in (first, larger):
        with pytest.raises(NotTried, match="larger in one"):
            list(differencing(both(first, second)))


def test_relations_of_other_columns_are_not_subtracted():
    first, second = bob_and_david()
    columns = tuple(replace(cells, name="other") for cells in second.released.columns)
    second = second._replace(released=replace(second.released, columns=columns))
    with pytest.raises(NotTried, match="same quasi-identifiers"):
        list(differencing(both(first, second)))


def test_values_are_the_same_by_their_labels():
    first, second = bob_and_david()
    pair = both(first, second)
    ((mine, theirs),) = pair.targets()
    labels = mine.domain.labels
    assert [labels.index("dyspepsia"), labels.index("gastritis"), labels.index(None)] == codes_in(
        mine, theirs
    ).tolist()


@given(st.integers(0, 1000))
def test_a_belief_by_both_is_that_of_two_witnesses(seed):
    generator = np.random.default_rng(seed)
    share = generator.dirichlet(np.ones(4))
    seen = generator.dirichlet(np.ones(3), size=(2, 4))  # of each value, what each relation shows
    first, second = (
        np.array([share * one[:, what] / (share * one[:, what]).sum() for what in range(3)])
        for one in seen
    )
    expected = share * seen[0][:, 1] * seen[1][:, 2]
    found = together(first[1:2], second[2:3], share)
    assert (expected / expected.sum()).tolist() == pytest.approx(found[0].tolist())


@given(st.lists(st.tuples(st.integers(-1, 2), st.integers(-1, 2)), min_size=1, max_size=12))
def test_cells_are_the_classes_of_both(classes):
    pairs = np.array(classes, np.int32)
    found = cell_sizes([pairs[:, 0], pairs[:, 1]], [pairs[:, 0], pairs[:, 1]])
    assert [classes.count(one) for one in classes] == found.tolist()


def test_without_a_memory_those_are_counted_whom_both_classes_cover():
    ages, values = [1, 2, 3, 4, 5, 6], "hvchvc"
    first = shown(ages, values, [0, 0, 0, 1, 1, 1], range(6), knows=False)
    second = shown(ages, values, [0, 0, 1, 1, 2, 2], range(6), knows=False)
    pair = both(first, second)
    assert [2, 2, 1, 1, 2, 2] == in_both(pair).tolist()
    (found,) = join(pair)
    assert found.expected is None
    assert "upper bound" in found.words
    few = both(first, second, samples=2)  # are tried, and all are counted
    assert np.array([2, 2, 1, 1, 2, 2])[few.first.rows].tolist() == in_both(few).tolist()


@given(st.data())
def test_classes_of_the_same_labels_are_found(data):
    table = data.draw(tables())
    policy = policy_of([one.name for one in table.quasi], table.sensitive_names)
    first = grouped(table, [i // 2 for i in range(table.n_rows)], policy)
    second = grouped(table, [i // 4 for i in range(table.n_rows)], policy)

    def labels(released):
        return [
            tuple(cells.labels[cells.index[one]] for cells in released.columns)
            for one in range(released.n_classes)
        ]

    mine, other = alike(first, second)
    a, b = labels(first), labels(second)
    assert set(a) & set(b) == {a[one] for one in mine} == {b[one] for one in other}
    assert [a[one] for one in mine] == [b[one] for one in other]


@pytest.mark.parametrize("name", ATTACKS_ON_BOTH)
@given(data=st.data())
def test_every_attack_tells_a_rate_within_its_interval_or_why_there_is_none(name, data):
    table = data.draw(tables(rows=st.integers(4, 24)))
    policy = policy_of([one.name for one in table.quasi], table.sensitive_names, k=1)
    parts, knows = [], data.draw(st.booleans())
    for size in data.draw(st.lists(st.integers(2, 5), min_size=2, max_size=2)):
        released = grouped(table, [i // size for i in range(table.n_rows)], policy)
        released = released if knows else replace(released, classes=None)
        parts.append(Shown(released, policy, np.arange(table.n_rows)))
    found = attack_both(*parts, samples=10, seed=3, stages=Stages())
    assert found == attack_both(*parts, samples=10, seed=3, stages=Stages())
    for one in found.attacks:
        assert 0 <= one.low <= one.rate <= one.high <= 1
        assert 0 < one.tried


def test_nobody_is_in_both():
    first, second = bob_and_david()
    nobody = [one._replace(rows=np.zeros(0, np.int64)) for one in (first, second)]
    found = attack_both(*nobody, samples=9, seed=0, stages=Stages())
    assert set(ATTACKS_ON_BOTH) == set(found.not_tried)
    late = attack_both(first, second, samples=9, seed=0, stages=Stages(), until=0.0)
    assert set(ATTACKS_ON_BOTH) == set(late.not_tried)
