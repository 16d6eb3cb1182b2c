"""What is proved of persons, every figure of it, against definitions spelled out in Python."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from naive.models import effective_entropy, worst
from psycopg import sql

from dbanon.db import catalog
from dbanon.db.proofs.subjects import prove_subjects
from dbanon.db.releases import relations
from dbanon.db.releases.publication import Publication
from dbanon.db.session import connect
from dbanon.domain.policy import ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.release import CheckReport, ReleaseKind, Verdict
from dbanon.domain.table import TableName
from dbanon.models.registry import MODELS

TABLE = TableName("public", "visits")
POSTCODES = ["zip 0", "zip 0", None, None]  # of the groups, two of which are one class
RULES = (
    ColumnRule("id", Role.IDENTIFIER),
    ColumnRule("person", Role.IDENTIFIER),
    ColumnRule("zip", Role.QUASI),
    ColumnRule("disease", Role.SENSITIVE),
)


def shares_of_values(pairs):
    """Return the share of a class's persons who have each value; pairs: (person, value)."""
    persons = len({person for person, _ in pairs})
    return [n / persons for n in Counter(value for _, value in pairs).values()]


def values_without_anybody(pairs):
    """Return how many values are left, and one, when the rows of any one person go."""
    everything = {value for _, value in pairs}
    left = [len({value for other, value in pairs if other != person}) + 1 for person, _ in pairs]
    return min(len(everything), *left)


# What a class achieves of distinct (person, value), and whether its result counts persons.
ACHIEVED = {
    "l-diversity": (values_without_anybody, True),
    "p-sensitivity": (values_without_anybody, True),
    "alpha-k-anonymity": (lambda pairs: max(shares_of_values(pairs)), True),
    "probabilistic-l-diversity": (lambda pairs: 1 / max(shares_of_values(pairs)), True),
    "entropy-l-diversity": (lambda pairs: effective_entropy([v for _, v in pairs]), False),
}
OF_VALUES = [
    ModelSpec("l-diversity", {"l": 2}),
    ModelSpec("alpha-k-anonymity", {"alpha": 0.5}),
    ModelSpec("probabilistic-l-diversity", {"l": 1.5}),
    ModelSpec("p-sensitivity", {"p": 3}),
    ModelSpec("entropy-l-diversity", {"l": 1.8}),
]


def judged(model, column, required, levels, members):
    """Return what is to be reported of classes that achieve these levels."""
    bound = MODELS[model].bound
    at_least = bound == "at least"
    failing = sum(v < required - 1e-9 if at_least else v > required + 1e-9 for v in levels)
    verdict = Verdict.FAILED if failing else Verdict.PASSED
    return model, column, required, worst(bound, levels), len(levels), failing, members, verdict


def of_classes(rows, whose):
    """Return the distinct (person, value) of each class; rows: (class, person, value)."""
    found = {}
    for row in rows:
        found.setdefault(whose(row), set()).add(row[1:])
    return [sorted(pairs, key=repr) for pairs in found.values()]


def expected(rows, k):
    """Return every figure of a proof; rows: (class, person, value) of what is published."""
    owned = Counter(person for _, person, _ in rows)
    ways = {
        "disease by person": lambda row: row[0],
        "disease by person by number of rows": lambda row: (row[0], owned[row[1]]),
    }
    for column, whose in ways.items():
        classes = of_classes(rows, whose)
        for spec in OF_VALUES:
            achieved, by_persons = ACHIEVED[spec.name]
            (required,) = spec.params.values()
            counted = [len({p for p, _ in pairs} if by_persons else pairs) for pairs in classes]
            yield judged(spec.name, column, required, list(map(achieved, classes)), sum(counted))
    of_person = Counter((c, person) for c, person, _ in rows)
    alike = {(c, n): 0 for (c, _), n in of_person.items()}
    for (c, person), n in of_person.items():
        alike[c, n] += n == owned[person]
    yield judged("k-anonymity", "person by number of rows", k, list(alike.values()), len(rows))
    persons = [len({p for p, _ in pairs}) for pairs in of_classes(rows, lambda row: row[0])]
    yield judged("k-anonymity", "person", k, persons, len(rows))


@pytest.fixture(scope="module")
def session(server, template):
    with server.database(template) as database, connect(database.settings) as session:
        yield session


def published(session, policy, rows):
    """Return a publication whose groups are given, two of them under each postcode."""
    session.pg.execute(
        "CREATE TABLE public.visits (id int PRIMARY KEY, person int NOT NULL, zip text,"
        " disease text)"
    )
    publication = Publication(
        id=1,
        info=catalog.describe(session, TABLE),
        policy=policy,
        kind=ReleaseKind.TABLE,
        view=TableName("anon", "visits"),
        recodings=(("zip", "label"),),
    )
    for statement in relations.build_statements(publication):
        session.pg.execute(statement)
    insert = sql.SQL("INSERT INTO {} VALUES (%s, %s)").format(publication.rows)
    groups = sql.SQL("INSERT INTO {} (group_id, q1) VALUES (%s, %s)").format(publication.groups)
    with session.pg.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO public.visits VALUES (%s, %s, 'z', %s)",
            [(i, person, value) for i, (_, person, value) in enumerate(rows)],
        )
        cursor.executemany(insert, [(i, g) for i, (g, _, _) in enumerate(rows) if g is not None])
        cursor.executemany(groups, [(g, POSTCODES[g]) for g in range(4)])
    return publication


ROWS = st.lists(
    st.tuples(st.none() | st.integers(0, 3), st.integers(0, 5), st.none() | st.sampled_from("abc")),
    max_size=24,
)


# A class that has two values of one person alone, and a smaller one.
OF_ONE = [(0, 1, "a"), (0, 1, "b"), (0, 2, "c"), (1, 3, "c"), (0, 1, "c"), (2, 4, "a")]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ROWS, st.integers(1, 3))
@example(OF_ONE, 2)
def test_the_figures_of_a_proof_of_persons_are_those_of_the_definitions(session, rows, k):
    models = (ModelSpec("k-anonymity", {"k": k}), *OF_VALUES)
    policy = Policy(TABLE, RULES, models, subject="person", rows_per_subject="group")
    with session.transaction(keep=False):
        publication = published(session, policy, rows)
        report = prove_subjects(session, publication, CheckReport(TABLE, ()), several=True)
    shown = [(POSTCODES[g], person, value) for g, person, value in rows if g is not None]
    if not shown:
        assert {Verdict.NOT_CHECKED} == {found.verdict for found in report.results}
        assert {(None, 0, 0)} == {(r.achieved, r.classes, r.n_rows) for r in report.results}
        return
    for found, figures in zip(report.results, expected(shown, k), strict=True):
        assert pytest.approx(figures[3]) == found.achieved, figures
        assert figures == (
            found.model,
            found.column,
            found.required,
            figures[3],
            found.classes,
            found.failing_classes,
            found.n_rows,
            found.verdict,
        )
