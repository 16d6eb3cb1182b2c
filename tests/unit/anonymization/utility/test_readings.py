"""What readers take cells for: queries, bins and moments against enumerated values."""

import re
from datetime import date

import numpy as np
import pytest
from builders import LETTERS, encoded, grouped, policy_of
from hypothesis import given
from hypothesis import strategies as st
from naive import ancestors
from naive.released import taken_for

from dbanon.anonymization.outcome import Outcome
from dbanon.anonymization.registry import RECODINGS
from dbanon.anonymization.released.reading import of_outcome
from dbanon.anonymization.utility.distributions import Bins, categories_of
from dbanon.anonymization.utility.measure import association
from dbanon.anonymization.utility.queries import Query, QuerySet, answers, parts_of
from dbanon.anonymization.utility.readings import readings_of
from dbanon.domain.assignment import Assignment, GroupValues
from dbanon.domain.table import ColumnKind

VALUES = {
    "integer": [-3, 0, 1, 4, 11],
    "number set": [2, 3, 5, 8],
    "letter": [*"abcdefg"],
    "letter set": [*"abcdefg"],
    "size": ["small", "middle", "large"],
    "mode": [*"xyz"],
}
RULES = {
    "integer": {"recoding": "interval"},
    "number set": {"recoding": "set"},
    "letter": {"taxonomy": "letters", "recoding": "label"},
    "letter set": {"taxonomy": "letters", "recoding": "set"},
    "size": {"order": ("small", "middle", "large"), "recoding": "interval-text"},
    "mode": {"recoding": "mode"},
}
KINDS = dict.fromkeys(VALUES, ColumnKind.CATEGORY) | dict.fromkeys(
    ["integer", "number set"], ColumnKind.INTEGER
)


def publication(columns, groups, sensitive=None, *, rules=RULES, kinds=KINDS):
    rules = {name: rules[name] for name in columns}
    table = encoded(columns, sensitive, kinds=kinds, rules=rules, taxonomies=[LETTERS])
    kept = sorted(set(groups) - {-1})
    numbers = np.array([kept.index(g) if g >= 0 else -1 for g in groups], np.int32)
    assignment = Assignment(numbers, len(kept))
    values = tuple(RECODINGS[c.rule.recoding].publish(c, assignment) for c in table.quasi)
    outcome = Outcome(assignment, GroupValues(values, len(kept)), None)
    policy = policy_of(list(columns), sensitive or {}, rules=rules)
    return table, assignment, of_outcome(table, outcome, policy)


def classes_of(table, assignment):
    """Return by group its rows and what readers take each of its columns for."""
    groups = [np.flatnonzero(assignment.group == g).tolist() for g in range(assignment.n_groups)]
    codes = {c.name: [c.codes[rows].tolist() for rows in groups] for c in table.quasi}

    def taken(g):
        return {c.name: taken_for(c, c.rule.recoding, codes[c.name], g) for c in table.quasi}

    return [(rows, taken(g)) for g, rows in enumerate(groups)]


@st.composite
def publications(draw, *, least=1):
    n = draw(st.integers(2, 14))
    names = draw(st.lists(st.sampled_from([*VALUES]), min_size=least, max_size=3, unique=True))
    columns = {
        name: draw(
            st.lists(st.none() | st.sampled_from(VALUES[name]), min_size=n, max_size=n).filter(
                lambda values: len(set(values) - {None}) > 1
            )
        )
        for name in names
    }
    groups = [0, *draw(st.lists(st.integers(-1, 3), min_size=n - 1, max_size=n - 1))]
    return publication(columns, groups, {"disease": [*"fg" * n][:n]})


@given(publications(least=2), st.data())
def test_answers_are_sums_of_rows_times_the_shares_of_both_conditions(made, data):
    table, assignment, released = made
    ranged, other = readings_of(released)[:2]
    column, second = table.quasi[:2]
    first = data.draw(st.integers(0, column.size - 1))
    last = data.draw(st.integers(first, column.size - 1))
    parts = np.arange(other.n_codes)
    code = data.draw(st.integers(0, second.size - 1))
    asked = QuerySet(ranged.name, other.name, parts, (Query(first, last, (code,), 1),))
    low, high = column.values[first], column.values[last]
    if column.name in {"integer", "number set"}:
        meets = lambda value: value is not None and low <= value <= high  # noqa: E731
    else:
        wanted = set(column.values[first : last + 1].tolist())
        meets = wanted.__contains__
    expected = sum(
        len(rows)
        * sum(share for value, share in taken[column.name].items() if meets(value))
        * taken[second.name].get(second.values[code], 0.0)
        for rows, taken in classes_of(table, assignment)
    )
    assert [expected] == pytest.approx(answers(ranged, other, asked)[0].tolist())


@given(publications())
def test_categories_hold_the_rows_that_readers_take_for_them(made):
    table, assignment, released = made
    for reading in readings_of(released):
        if reading.line is not None or reading.classes is not None:
            continue
        column = next(column for column in table.quasi if column.name == reading.name)
        bins = categories_of(reading)
        values = [*column.values.tolist(), None]
        expected = np.zeros(len(bins.names))
        for rows, taken in classes_of(table, assignment):
            for value, share in taken[column.name].items():
                expected[bins.of_code[values.index(value)]] += len(rows) * share
        assert expected.tolist() == pytest.approx(bins.of_release(reading).tolist())
        of_rows = bins.of_code[column.codes]
        counted = np.bincount(of_rows, minlength=len(bins.names))
        assert counted.tolist() == bins.of_source(reading).tolist()
        assert of_rows.tolist() == bins.places(reading).tolist()


@given(publications(least=2))
def test_what_goes_together_is_that_of_the_values_that_readers_take_cells_for(made):
    table, assignment, released = made
    a, b = readings_of(released)[:2]
    bins = [categories_of(each) if each.line is None else None for each in (a, b)]
    found = association(list(zip((a, b), bins, strict=True)))
    samples = [
        (x, y, len(rows) * p * q)
        for rows, taken in classes_of(table, assignment)
        for x, p in taken[a.name].items()
        for y, q in taken[b.name].items()
    ]
    expected = strength(samples, a, b, bins)
    assert expected == pytest.approx(found.published[0][1] or 0.0, abs=6e-4)
    values = [[*column.values.tolist(), None] for column in table.quasi[:2]]
    codes = zip(*(column.codes.tolist() for column in table.quasi[:2]), strict=True)
    exact = [(values[0][i], values[1][j], 1.0) for i, j in codes]
    assert strength(exact, a, b, bins) == pytest.approx(found.source[0][1] or 0.0, abs=6e-4)


def strength(samples, a, b, bins):
    """Return the correlation, correlation ratio or Cramer's V of weighted pairs, 0 if undefined."""
    sides = []
    for place, (reading, kept) in enumerate(zip((a, b), bins, strict=True)):
        texts = [*reading.names]
        if kept is None:
            samples = [sample for sample in samples if sample[place] is not None]
            sides.append(lambda value: value)
        else:
            sides.append(lambda value, kept=kept, texts=texts: kept.of_code[texts.index(value)])
    x = np.array([sides[0](sample[0]) for sample in samples], float)
    y = np.array([sides[1](sample[1]) for sample in samples], float)
    weight = np.array([sample[2] for sample in samples])
    if not len(x) or np.ptp(x) == 0 or np.ptp(y) == 0:
        return 0.0
    if bins[0] is None and bins[1] is None:
        matrix = np.cov(x, y, aweights=weight, ddof=0)
        return matrix[0, 1] / np.sqrt(matrix[0, 0] * matrix[1, 1])
    if bins[0] is not None and bins[1] is not None:
        table = np.zeros((len(bins[0].names), len(bins[1].names)))
        np.add.at(table, (x.astype(int), y.astype(int)), weight)
        table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
        expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
        squares = ((table - expected) ** 2 / expected).sum()
        return np.sqrt(squares / table.sum() / (min(table.shape) - 1))
    number, place = (x, y) if bins[0] is None else (y, x)
    mean = np.average(number, weights=weight)
    between = sum(
        weight[place == one].sum()
        * (np.average(number[place == one], weights=weight[place == one]) - mean) ** 2
        for one in np.unique(place)
    )
    return np.sqrt(between / (weight * (number - mean) ** 2).sum())


def test_a_date_is_one_of_the_days_of_its_range():
    days = [date(2000, 1, 1), date(2000, 1, 4), date(2000, 1, 9), date(2000, 1, 11)]
    rules, kinds = {"day": {"recoding": "interval"}}, {"day": ColumnKind.DATE}
    made = publication({"day": days}, [0, 0, 1, 1], rules=rules, kinds=kinds)
    line = readings_of(made[2])[0].line
    shares = line.between(line.begins[[0, 1]], line.ends[[1, 2]])
    assert [[1.0, 0.0], [0.25, 1 / 3]] == [pytest.approx(row) for row in shares.tolist()]


def test_a_band_is_one_of_all_numbers_in_it():
    rules = {"age": {"recoding": "interval", "bands": 10.0}}
    kinds = {"age": ColumnKind.INTEGER}
    made = publication({"age": [21, 25, 31, 58]}, [0, 0, 1, 1], rules=rules, kinds=kinds)
    reading = readings_of(made[2])[0]
    shares = reading.runs(np.array([0, 1, 0]), np.array([0, 1, 2]))
    assert [[1.0, 0.0], [0.0, 1 / 3], [1.0, 1.0]] == [pytest.approx(row) for row in shares.tolist()]


def test_sensitive_values_are_read_as_they_are():
    made = publication(
        {"integer": [0, 1, 4, 11]}, [0, 0, 1, -1], {"disease": ["f", None, "f", "g"]}
    )
    reading = readings_of(made[2])[1]
    assert (["f", "g", None], 2) == ([*reading.names], reading.null)
    bins = categories_of(reading)
    assert isinstance(bins, Bins)
    assert ("f", "NULL", "other values") == bins.names  # the one of g is left out
    assert [2.0, 1.0, 0.0] == bins.of_release(reading).tolist()
    assert [2.0, 1.0, 1.0] == bins.of_source(reading).tolist()


def test_of_many_values_queries_ask_for_nodes_and_never_for_less_than_a_cell():
    rules = {"letter": {"taxonomy": "letters", "recoding": "label", "at_least": 1}}
    kinds = {"letter": ColumnKind.CATEGORY}
    made = publication({"letter": [*"abcdefg"]}, [0] * 7, rules=rules, kinds=kinds)
    parts = parts_of(readings_of(made[2])[0])
    cells = made[0].quasi[0].cells
    assert cells.tolist() == parts[:-1].tolist()
    assert parts[-1] == -1


@given(publications())
def test_a_bin_of_categories_is_named_by_what_is_published_or_above_it(made):
    _, _, released = made
    for reading in readings_of(released):
        if reading.line is not None:
            continue
        rows = reading.of_labels
        texts = {text for text, n in zip(reading.texts, rows, strict=True) if n and text}
        shown = texts | {part for text in texts for part in re.split(r"[\[\]{},]+ ?", text)}
        if reading.tree is not None:
            tree = reading.tree
            for node in range(len(tree.labels)):
                if tree.labels[node] in texts:
                    shown |= {tree.labels[above] for above in ancestors(tree, node)}
        assert {*categories_of(reading).names} <= {*shown, "NULL", "other values"}


def test_half_of_the_rows_of_a_set_of_null_and_a_number_are_known():
    columns = {"age": [-3, -2, -1, 0] * 2 + [0], "dose": [None] * 7 + [2, 3]}
    rules = {"dose": {"recoding": "set"}}
    table = encoded(columns, rules=rules)
    released = grouped(table, [0] * 8 + [1], policy_of(columns, rules=rules))
    found = association([(reading, None) for reading in readings_of(released)])
    # Of eight rows four are taken for 2, each with -3 to 0, and one is 3 with 0.
    x, y = [-3, -2, -1, 0, 0], [2, 2, 2, 2, 3]
    assert found.published[0][1] == pytest.approx(np.corrcoef(x, y)[0, 1], abs=6e-4)
