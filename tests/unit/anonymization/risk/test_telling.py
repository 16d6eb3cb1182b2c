"""What reports tell of counts: as an attacker, who has the release, subtracts and divides."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest
from builders import encoded, grouped, policy_of
from hypothesis import given
from hypothesis import strategies as st

from dbanon.anonymization.attacks.registry import attack as attacked
from dbanon.anonymization.released.held import standing
from dbanon.anonymization.released.reading import of_texts
from dbanon.anonymization.risk.disclosure import disclosures
from dbanon.anonymization.risk.judge import sets_of
from dbanon.anonymization.risk.telling import Telling
from dbanon.anonymization.utility.associations import association
from dbanon.anonymization.utility.distributions import bins_of, distribution
from dbanon.anonymization.utility.measure import utility_of
from dbanon.anonymization.utility.queries import query_errors
from dbanon.anonymization.utility.readings import readings_of
from dbanon.domain.assignment import LossReport
from dbanon.domain.progress import Stages
from dbanon.domain.report import (
    Attack,
    Classification,
    QueryError,
    Risk,
    Uniqueness,
    UniqueSet,
    Utility,
)
from dbanon.domain.report.losses import told_loss
from dbanon.domain.table import ColumnKind

K = 5
OF_SOURCE = "re-identification, journalist"


def released_of(published, left_out):
    """Return a release by sex, of a source in which those left out have values of their own."""
    few = ["flu", "gout", "flu", "rash"][:left_out]
    columns = {
        "sex": ["f"] * 60 + ["m"] * (published - 60) + ["f"] * left_out,
        "age": [*range(published), *range(500, 500 + left_out)],
        "town": [*range(60)] + [99] * (published - 60 + left_out),
    }
    diseases = ["flu"] * 60 + ["gout"] * (published - 64) + ["rash"] * 4
    sensitive = {"disease": diseases + few, "drug": diseases[::-1] + few}
    groups = [0] * 60 + [1] * (published - 60) + [-1] * left_out
    policy = policy_of([*columns], [*sensitive], k=K)
    return grouped(encoded(columns, sensitive), groups, policy), policy


def of_loss(published, left_out):
    exact = {"age": 60.0, "sex": 20.0}
    rows = published + left_out
    columns = {name: (lost + left_out) / rows for name, lost in exact.items()}
    figures = {"ncp": (40 + left_out) / rows, "weighted_ncp": (50 + left_out) / rows}
    told = told_loss(
        LossReport(rows, left_out, 4, 5, columns=columns, **figures), least=K, shown=published
    )
    return replace(told, n_suppressed=0)


def of_hidden(shown, hidden):
    """Return the loss of a live view that shows fewer rows than were published."""
    rows = shown + hidden
    columns = {"age": 60 / rows, "sex": 20 / rows}
    figures = {"ncp": 40 / rows, "weighted_ncp": 50 / rows}
    smallest = 5 + hidden
    loss = LossReport(rows, 0, 4, smallest, columns=columns, **figures)
    return told_loss(loss, least=K, shown=shown)


def of_risk(published, left_out):
    n_rows, telling = published + left_out, Telling(published, K)
    risk = Risk(
        *((), ()),
        uniqueness=tuple(Uniqueness("z", n, n_rows / n, 0.5) for n in (published + 4, 20_000)),
        unique_sets=(UniqueSet(("age",), 57, 57 / n_rows),),
        attacks=(
            attack(n_rows, 61),
            attack(n_rows, 61, name=OF_SOURCE, candidates=60.0 + left_out),
            attack(n_rows, 1, named=(n_rows, 1, 1)),
        ),
    )
    looked = [telling.sampled(min(n, n_rows), of=n_rows) for n in range(190, 210)]
    return telling.risk(risk, n_rows=n_rows), looked


def of_learned(published, left_out):
    tested = round((published + left_out) / 3)
    rows, accuracy = published + left_out - tested, (60 / tested, 2 / tested, 40 / tested)
    one = Classification("a", "b", accuracy, accuracy, rows, tested)
    return Telling(published, K).utility(Utility(classifications=(one,))).classifications[0].rows


def of_columns(published, left_out):
    options = {"generator": np.random.default_rng(1), "samples": 300, "stages": Stages()}
    released, policy = released_of(published, left_out)
    told = utility_of(released, policy, told=standing(released, policy).is_told, **options)
    shown = [one for one in told.distributions if one.column != "age"]
    return replace(told, distributions=tuple(shown))


def of_sets(published, left_out):
    released, _ = released_of(published, left_out)
    sets = sets_of(released, np.arange(published + left_out), least=K)
    return Telling(published, K).risk(Risk((), (), unique_sets=sets), n_rows=published + left_out)


def of_membership(published, left_out):
    released, policy = released_of(published, left_out)
    options = {"names": ("membership",), "samples": 300, "seed": 1, "stages": Stages()}
    return attacked(released, policy, **options)


def of_queries(published, left_out):
    """Return of which shares is asked, around a hundred rows, 5 % of which are K."""
    released, _ = released_of(published - 102, left_out)
    generator = np.random.default_rng(1)
    found = query_errors(readings_of(released), least=K, generator=generator)
    return [one.selectivity for one in found]


@pytest.mark.parametrize("published", range(198, 206))
@pytest.mark.parametrize(
    "figures",
    [of_loss, of_hidden, of_risk, of_learned, of_columns, of_sets, of_membership, of_queries],
)
def test_no_figure_differs_by_how_few_rows_are_left_out(figures, published):
    first, *others = (figures(published, left_out) for left_out in range(1, K))
    assert [first] * len(others) == others


def loss(published, left_out, **counts):
    metrics = {"suppressed": left_out / (published + left_out), "c-avg": published / 4}
    return LossReport(published + left_out, left_out, 4, 5, 0.1, {"age": 0.1}, metrics, **counts)


@given(st.integers(20, 200), st.integers(0, 12), st.integers(0, 12), st.integers(0, 12))
def test_no_two_counts_of_a_loss_differ_by_fewer_persons_than_k(published, left_out, part, change):
    counts = {"n_sampled": min(part, left_out), "n_filtered": part}
    told = told_loss(loss(published, left_out, **counts), least=K, shown=published - change)
    known = [published - change, told.n_rows, told.n_published]
    numbers = [one for one in known if isinstance(one, int)]
    if isinstance(told.n_rows, int) and isinstance(told.n_suppressed, int):
        numbers.append(told.n_rows - told.n_suppressed)
    apart = {abs(a - b) for a in numbers for b in numbers}
    assert apart.isdisjoint(range(1, K))
    parts = [told.n_suppressed, told.n_sampled, told.n_filtered]
    assert {one for one in parts if isinstance(one, int)}.isdisjoint(range(1, K))
    if isinstance(told.n_suppressed, int) and isinstance(told.n_sampled, int):
        assert told.n_suppressed - told.n_sampled not in range(1, K)


SCALED_BY_THE_RANGE = {"il": 3.25, "max-radius": 0.4, "size-times-radius": 12.3}
MEASURED = SCALED_BY_THE_RANGE | {"c-avg": 25.0, "sse-ratio": 9.1, "il1": 0.0}


def test_few_rows_left_out_are_told_by_no_other_figure():
    few = told_loss(loss(100, 3, n_sampled=2, n_filtered=4), least=K)
    assert ("fewer than 5", "fewer than 5 besides those published") == (
        few.n_suppressed,
        few.n_rows,
    )
    assert ("all but fewer than 5", "fewer than 5", {}) == (
        few.n_sampled,
        few.n_filtered,
        few.metrics,
    )
    lost = (replace(loss(100, n), ncp=(9.7 + n) / (100 + n)) for n in (1, 2))
    assert [0.097, 0.097] == pytest.approx([told_loss(one, least=K).ncp for one in lost])
    many = told_loss(loss(100, 7), least=K)
    assert (107, 100, 7) == (many.n_rows, many.n_published, many.n_suppressed)
    exact = replace(loss(100, 7), metrics=MEASURED)
    told = told_loss(exact, least=K).metrics
    assert {"c-avg": 25.0, "sse-ratio": 8.8, "il1": 0.0} == pytest.approx(told)
    assert 9.1 == told_loss(exact, least=1).metrics["sse-ratio"]


def test_few_rows_that_a_live_view_hides_are_told_by_no_other_figure():
    told = told_loss(loss(100, 0), least=K, shown=98)
    figures = (told.n_rows, told.n_published)
    assert [str, str] == [type(one) for one in figures]
    assert {} == told.metrics


def attack(tried, right, **changes):
    of = {"baseline": 1 / tried, "expected": None, **changes}
    of = {"name": "a", "candidates": 3.0, **of}
    return Attack(column=None, tried=tried, rate=right / tried, low=0.0, high=1.0, words="", **of)


def told_attacks(*attacks):
    return Telling(1_000_000, K).risk(Risk((), (), attacks=attacks), n_rows=1).attacks


@pytest.mark.parametrize(("tried", "right"), [(7_874, 2), (7_874, 7_872), (103, 1), (6, 1)])
def test_of_an_attack_nobody_gets_how_few_it_is_right_or_wrong_of(tried, right):
    (told,) = told_attacks(attack(tried, right))
    assert told.rate >= right / tried
    found = told.rate * told.tried
    assert found > K - 1e-3
    assert told.tried - found < 1e-3 or told.tried - found > K - 1e-3
    (other,) = told_attacks(attack(tried + 1, right))
    assert (told.tried, told.baseline) == (other.tried, other.baseline) or tried == 6


def test_a_population_of_a_few_persons_more_than_the_release_is_not_told_of():
    few, many = (Uniqueness("z", 100 + more, 0.5, 0.25) for more in (K - 1, K))
    told = Telling(100, K).risk(Risk((), (), uniqueness=(few, many)), n_rows=1).uniqueness
    assert [many.population] == [one.population for one in told]


def test_who_is_as_good_as_a_guesser_is_told_to_be():
    """Both are rounded up; of whom a value is named is not told, nor of how many."""
    equal = attack(7_874, 0.1234 * 7_874, baseline=0.1234, named=(40, 3, 1))
    (told,) = told_attacks(equal)
    assert (0.124, 0.124) == pytest.approx((told.rate, told.baseline), abs=1e-4)
    assert told.rate == told.baseline
    assert told.named is None
    assert not told.is_beyond


def test_a_rate_is_not_rounded_beyond_its_bound():
    within, beyond = told_attacks(*(attack(70, n, expected=0.2) for n in (14, 15)))
    assert 0.2 == within.rate
    assert beyond.rate > 0.2


def test_candidates_of_the_source_are_multiples_and_others_as_they_are():
    found = told_attacks(*(attack(70, 9, name=OF_SOURCE, candidates=n) for n in (4.0, 14.5)))
    assert [None, 10.0] == [one.candidates for one in found]
    assert 3.0 == told_attacks(attack(70, 9))[0].candidates


def test_shares_have_no_denominator_but_what_is_told():
    risk = Risk(
        *((), ()),
        uniqueness=(Uniqueness("zayatz", 20_000, 203 / 20_000, 0.5),),
        unique_sets=(UniqueSet(("age",), 57, 57 / 203),),
    )
    telling = Telling(190, K)
    told = telling.risk(risk, n_rows=203)
    assert (60 / 205, 205 / 20_000) == (told.unique_sets[0].share, told.uniqueness[0].sampled)
    exact, areas = (2 / 67, 66 / 67, 0.5), (0.8473, 0.9, 0.5)
    used = Utility(classifications=(Classification("a", "b", exact, areas, 134, 67),))
    (found,) = telling.utility(used).classifications
    assert (133, 67) == (found.rows, found.tested)
    assert pytest.approx([0.0, 13 * K / 67], abs=1e-6) == found.accuracy[:2]
    assert pytest.approx(11 * K / 67, abs=1e-6) == found.auc[0]


def test_where_nothing_promises_k_all_is_told():
    risk = Risk((), (), attacks=(attack(70, 2),))
    assert risk == Telling(70, 1).risk(risk, n_rows=70)
    assert 3 == told_loss(loss(100, 3), least=1).n_suppressed


@pytest.mark.parametrize(("most", "is_told"), [(60_000, True), (9_999_999, False)])
def test_how_columns_go_together_tells_nobody_who_of_a_class_has_which_value(most, is_told):
    """Whoever knows all ages tries who of a class has which income: all must come out alike."""
    incomes = [13_000 + 700 * (i * i % 61) for i in range(59)] + [most]
    drugs = ["ab"[i * i % 7 > 2] for i in range(60)]

    def told(last):
        places = [*range(57), *last]
        sensitive = {
            "income": [str(incomes[i]) for i in places],
            "drug": [drugs[i] for i in places],
        }
        table = encoded({"age": [*range(60)]}, sensitive, kinds={"income": ColumnKind.INTEGER})
        groups = [i // K for i in range(60)]
        released = grouped(table, groups, policy_of(["age"], [*sensitive], k=K))
        columns = [(one, bins_of(one)) for one in readings_of(released)]
        return association(columns, least=K).source

    first, *others = map(told, permutations((57, 58, 59)))
    assert [first] * 5 == others
    assert is_told == (first[0][1] is not None)


@pytest.mark.parametrize(
    ("name", "gone"), [("income", "13000"), ("income", "900000"), ("drug", "b"), ("stage", "II")]
)
def test_no_figure_depends_on_whether_the_source_still_has_a_published_value(name, gone):
    """Who alone had a value, and has left or another one now, is not found by it."""
    ages = [*range(60)]
    values = {
        "income": ["13000", "900000", *[str(20_000 + 1_000 * (i % 30)) for i in range(58)]],
        "drug": ["b", *["ac"[i % 2] for i in range(59)]],
        "stage": ["II", *[("I", "III")[i // 30] for i in range(59)]],
    }
    kinds, rules = {"income": ColumnKind.INTEGER}, {"stage": {"order": ("I", "II", "III")}}
    ranges = [f"[{i // 10 * 10},{i // 10 * 10 + 10})" for i in ages]
    shown = pa.table({"age": ranges, **values})

    def told(now):
        table = encoded({"age": ages}, {**values, name: now}, kinds=kinds, rules=rules)
        policy = policy_of(["age"], [*values], k=K, rules=rules)
        released = of_texts(table, shown, np.ones(60, np.int64), policy=policy)
        columns = [(one, bins_of(one)) for one in readings_of(released)]
        shares = [distribution(*one, least=K) for one in columns]
        return shares, association(columns, least=K).published, disclosures(released)

    other = values[name][-1]
    assert told(values[name]) == told([other if one == gone else one for one in values[name]])


def test_a_share_is_not_hidden_for_one_who_had_the_value_and_has_left():
    """Of K who are published with it, the source then has K - 1."""
    diseases = ["flu"] * K + ["gout"] * (60 - K)
    shown = pa.table({"age": ["[0,60)"] * 60, "disease": diseases})

    def told(now):
        table = encoded({"age": [*range(len(now))]}, {"disease": now})
        policy = policy_of(["age"], ["disease"], k=K)
        released = of_texts(table, shown, np.ones(60, np.int64), policy=policy)
        (disease,) = (one for one in readings_of(released) if one.name == "disease")
        return distribution(disease, bins_of(disease), least=K)

    assert told(diseases) == told(diseases[1:]) == told(["gout", *diseases[1:]])


def test_errors_of_queries_are_told_in_steps_of_k_rows():
    errors = tuple(QueryError(0.05, 1000, one, 1.4, one, 1.4) for one in (0.26, 0.27, 0.29))
    found = Telling(60, K).utility(Utility(queries=errors)).queries
    assert [(0.25, 1.417)] * 3 == [(one.median, one.upper) for one in found]
    assert [(0.25, 1.417)] * 3 == [(one.imprecision, one.imprecision_upper) for one in found]


@pytest.mark.parametrize("last", ["[60,)", "(,)"])
def test_an_open_range_ends_for_readers_where_the_release_does(last):
    """The greatest value is that of one person, and no label shows it."""
    ranges = [*["[0,30)"] * 20, *["[30,60)"] * 20, *[last] * 20]
    incomes = [str(1_000 * (i * i % 37)) for i in range(60)]
    shown = pa.table({"age": ranges, "income": incomes})

    def told(oldest):
        ages, kinds = [*range(59), oldest], {"income": ColumnKind.INTEGER}
        table = encoded({"age": ages}, {"income": incomes}, kinds=kinds)
        policy = policy_of(["age"], ["income"], k=K)
        released = of_texts(table, shown, np.ones(60, np.int64), policy=policy)
        columns = [(one, bins_of(one)) for one in readings_of(released)]
        return association(columns, least=K).published, distribution(*columns[0], least=K).published

    assert told(70) == told(117)
