"""Tables of the same persons against the definition: who is shown alike in all of them."""

import re
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pytest
from builders import encoded, policy_of
from hypothesis import assume, given
from hypothesis import strategies as st

from dbanon.anonymization.linked import require_each, solve_linked
from dbanon.anonymization.problem import Problem
from dbanon.domain.errors import Unsatisfiable
from dbanon.domain.outcomes import Stages

# A person: its own quasi-identifier and sensitive value, its visits, and its findings.
VISIT = st.tuples(st.integers(0, 9), st.sampled_from("abc"))
PERSON = st.tuples(
    st.integers(0, 9),
    st.sampled_from("mno"),
    st.lists(VISIT, max_size=3),
    st.lists(st.sampled_from("uvw"), max_size=2),
)
MOST = st.sampled_from([None, "group", 1, 2])
INTERVAL = re.compile(r"([\[(])(\d*),(\d*)([\])])")


def published(people, *, most=(None, None), k=2, l=1, max_suppressed=0.0, models=((), ())):
    """Return for each table what is published: (person, label, quasi-identifiers, value)."""
    persons = [(i, (x,), s) for i, (x, s, _, _) in enumerate(people)]
    visits = [(i, (x, y), s) for i, (x, _, of, _) in enumerate(people) for y, s in of]
    findings = [(i, (x,), s) for i, (x, _, _, of) in enumerate(people) for s in of]
    asked = {"k": k, "l": l, "max_suppressed": max_suppressed, "algorithm": "mondrian"}
    tables = []
    for rows, names, number in ((visits, ["x", "y"], most[0]), (findings, ["x"], most[1])):
        if rows:
            own = {name: [row[1][j] for row in rows] for j, name in enumerate(names) if j}
            table = encoded(own, {"s": [s for *_, s in rows]})
            policy = policy_of(names, ["s"], subject="person", rows_per_subject=number, **asked)
            policy = replace(policy, models=(*policy.models, *models[1]))
            subjects = np.array([i for i, *_ in rows], np.int32)
            draws = np.arange(len(rows), dtype=np.uint64)[:, np.newaxis]
            tables.append(Problem(table, policy, subjects, draws))
    table = encoded({"x": [x for _, (x,), _ in persons]}, {"s": [s for *_, s in persons]})
    policy = policy_of(["x"], ["s"], subject="person", **asked)
    policy = replace(policy, models=(*policy.models, *models[0]))
    outcomes = solve_linked(Problem(table, policy), tables, seed=0, stages=Stages())
    require_each(tables, outcomes[1:])
    found = iter(outcomes)
    return [shown(rows, next(found)) if rows else [] for rows in (persons, visits, findings)]


def shown(rows, outcome):
    group, columns = outcome.assignment.group.tolist(), outcome.values.columns
    assert outcome.loss.n_suppressed == group.count(-1)
    return [
        (i, tuple(column.labels[column.index[g]] for column in columns), known, s)
        for (i, known, s), g in zip(rows, group, strict=True)
        if g >= 0
    ]


def holds(label, number):
    opens, low, high, closes = INTERVAL.fullmatch(label).groups()
    above = not low or number > int(low) or (opens == "[" and number == int(low))
    return above and (not high or number < int(high) or (closes == "]" and number == int(high)))


def cells(tables, most):
    """Return for each person what is shown of it in all tables, with numbers that may be known."""
    seen = defaultdict(set)
    for number, rows in enumerate(tables):
        times = Counter(i for i, *_ in rows)
        counts = number > 0 and most[number - 1] is not None
        for i, label, *_ in rows:
            seen[i].add((number, label, times[i] if counts else None))
    return {i: frozenset(parts) for i, parts in seen.items()}


def fewest_values(rows, cell):
    """Return how few values a cell has in a table, if anyone in it is ruled out, too."""
    values = defaultdict(lambda: defaultdict(set))
    for i, _, _, s in rows:
        values[cell[i]][i].add(s)
    found = [
        (set().union(*owned.values()), [set().union(*(owned[j] for j in owned if j != i))])
        for owned in values.values()
        for i in owned
    ]
    return min((min(len(every), len(rest) + 1) for every, (rest,) in found), default=99)


@pytest.mark.exhaustive
@given(
    st.lists(PERSON, min_size=6, max_size=24),
    st.tuples(MOST, MOST),
    st.integers(2, 3),
    st.integers(1, 2),
    st.sampled_from([0.0, 0.2]),
)
def test_persons_who_are_shown_alike_in_all_tables_are_k_and_diverse(people, most, k, l, budget):
    assume(any(visits or findings for _, _, visits, findings in people))
    try:
        tables = published(people, most=most, k=k, l=l, max_suppressed=budget)
    except Unsatisfiable:
        return
    cell = cells(tables, most)
    assert min(Counter(cell.values()).values()) >= k
    assert all(fewest_values(rows, cell) >= l for rows in tables)
    assert len(people) - len(tables[0]) <= budget * len(people)
    of_persons = {i: label for i, label, *_ in tables[0]}
    for number, rows in enumerate(tables):
        for i, label, known, _ in rows:
            assert all(map(holds, label, known))
            assert label[0] == of_persons[i][0]
        assert len({(i, label) for i, label, *_ in rows}) == len({i for i, *_ in rows})
        owned = Counter(i for i, *_ in rows)
        if number and isinstance(most[number - 1], int):
            assert max(owned.values(), default=0) <= most[number - 1]


def test_persons_who_are_alike_in_another_table_have_different_values_in_this_one():
    """Those who share a class of visits, by their days, have one finding each."""
    people = [
        (0, "mn"[i % 2], [(i, "ab"[i % 2])], [finding]) for i, finding in enumerate("uuvv" * 2)
    ]
    tables = published(people, k=2, l=2)
    assert fewest_values(tables[2], cells(tables, (None, None))) >= 2


def test_values_of_persons_with_one_row_each_are_merged_until_they_differ():
    people = [(i, "mn"[i % 2], [], [finding]) for i, finding in enumerate("uuvv" * 2)]
    tables = published(people, k=2, l=2)
    assert fewest_values(tables[2], cells(tables, (None, None))) >= 2
    assert len({label for _, label, *_ in tables[2]}) > 1


@pytest.mark.parametrize("without", [1, 2])
def test_few_persons_without_rows_cost_few_rows_of_others(without):
    """They need k - 1 others beside them at most, and all of those have rows today."""
    k, n = 3, 30
    people = [(i % 10, "m", [], ["u"] if i >= without else []) for i in range(n)]
    _, _, findings = published(people, k=k)
    assert len(findings) == n - k


def test_a_table_of_which_no_row_can_be_published_is_no_defect():
    people = [(i, "m", [], ["u", "v"] if i < 2 else []) for i in range(9)]
    with pytest.raises(Unsatisfiable):
        published(people, k=3)
