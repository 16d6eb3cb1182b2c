"""What is left to guess of somebody whose number of rows is known."""

import random

import pytest
from selection import exhaustive_after

import dbanon
from dbanon.domain.policy import K_ANONYMITY, L_DIVERSITY, ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.table import TableName

TABLE = TableName("public", "visits")
K, L, PERSONS = 5, 3, 1500
COLUMNS = (
    ColumnRule("id", Role.IDENTIFIER),
    ColumnRule("person", Role.IDENTIFIER),
    ColumnRule("age", Role.QUASI),
    ColumnRule("zip", Role.QUASI),
    ColumnRule("disease", Role.SENSITIVE),
)
MODELS = (ModelSpec(K_ANONYMITY, {"k": K}), ModelSpec(L_DIVERSITY, {"l": L}))
# Every value of a class that as many rows have as the person is known to have, by person.
CANDIDATES = """
SELECT count(DISTINCT c.disease)
  FROM (SELECT person, age, zip, count(*) AS times
          FROM {}
         GROUP BY person, age, zip) AS p
  LEFT JOIN (SELECT age, zip, disease, count(*) AS times
               FROM anon.visits
              GROUP BY age, zip, disease) AS c
    ON p.age <@ c.age AND p.zip <@ c.zip AND c.times >= p.times
 GROUP BY p.person"""
ALL = "public.visits"
PUBLISHED = "public.visits JOIN dbanon_data.rows_1 ON k1 = id"


def make_visits(database):
    source = random.Random(3)  # noqa: S311 - people, not secrets
    database.execute(
        "CREATE TABLE public.visits (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
        " person int NOT NULL, age int, zip int, disease text)"
    )
    copy = "COPY public.visits (person, age, zip, disease) FROM STDIN"
    with database.connect().cursor().copy(copy) as rows:
        for person in range(PERSONS):
            row = (person, source.randint(18, 90), source.randint(0, 99), source.randint(1, 20))
            for _ in range(min(20, 1 + int(source.expovariate(0.25)))):
                rows.write_row(row)


@pytest.fixture
def visits(copied):
    """One to twenty visits of each person, for one of twenty diseases; few come often."""
    return copied(make_visits)


def publish(database, *, keep=False, **changes):
    policy = Policy(TABLE, COLUMNS, MODELS, "mondrian", subject="person", **changes)
    dbanon.set_policy(TABLE, policy, settings=database.settings)
    more = {"keep_assignment": True} if keep else {}
    return dbanon.publish(TABLE, settings=database.settings, **more)


def below(database, *, known=ALL):
    """Return how many persons are left with fewer than l values, and with one."""
    left = [row[0] for row in database.execute(CANDIDATES.format(known))]
    assert len(left) == PERSONS
    return sum(n < L for n in left), sum(n == 1 for n in left)


@pytest.mark.exhaustive
def test_who_knows_how_often_somebody_came_is_not_held_off_by_k_and_l_of_persons(visits):
    release = publish(visits)
    assert [result.failing_classes for result in release.checks.results] == [0, 0, 0, 0]
    fewer, one = below(visits)
    assert fewer > PERSONS / 5
    assert one > PERSONS / 20


@pytest.mark.exhaustive
def test_leaving_out_rows_alone_does_not_hold_off_who_knows_how_many_are_left(visits):
    visits.execute(
        "DELETE FROM public.visits AS v USING (SELECT id, row_number() OVER (PARTITION BY person)"
        " AS number FROM public.visits) AS n WHERE n.id = v.id AND n.number > 3"
    )
    publish(visits)
    fewer, one = below(visits)
    assert fewer > PERSONS / 50
    assert one > 0


@pytest.mark.parametrize("most", exhaustive_after(1, ["group", 3, 1]))
def test_rows_per_subject_leaves_who_knows_them_with_k_persons_and_l_values(visits, most):
    release = publish(visits, rows_per_subject=most, keep=True)
    assert below(visits, known=PUBLISHED) == (0, 0)
    by_number = [r for r in release.checks.results if "by number of rows" in (r.column or "")]
    assert [(r.model, r.column) for r in by_number] == [
        ("l-diversity", "disease by person by number of rows"),
        ("k-anonymity", "person by number of rows"),
    ]
    for found, required in zip(by_number, (L, K), strict=True):
        assert found.required == required <= found.achieved
    (published,) = visits.execute("SELECT count(*) FROM anon.visits")[0]
    assert published == release.loss.n_rows - release.loss.n_suppressed
    assert release.loss.n_suppressed == release.loss.n_sampled
    if most != "group":
        (expected,) = visits.execute(
            "SELECT sum(least(n, %s)) FROM (SELECT count(*) AS n FROM public.visits"
            " GROUP BY person) AS p",
            (most,),
        )[0]
        assert expected >= published > 0.99 * float(expected)
