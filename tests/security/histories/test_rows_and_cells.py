"""Attacks by whoever has two views of persons who have several rows each."""

from collections import Counter

import pytest

import dbanon
from dbanon.domain.errors import DbanonError
from dbanon.domain.policy import K_ANONYMITY, ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.table import TableName

VISITS = TableName("public", "visits")
K = 3


@pytest.fixture
def visits(database):
    """Sixty persons, every fourth of whom came twice."""
    database.execute(
        "CREATE TABLE public.visits AS"
        " SELECT p * 10 + r AS id, p AS person, p * 37 % 60 AS age, p * 23 % 61 AS weight,"
        "        (ARRAY['flu', 'gout', 'asthma', 'cancer'])[1 + (p + r) % 4] AS disease"
        "   FROM generate_series(1, 60) AS p"
        "  CROSS JOIN generate_series(1, 2) AS r"
        "  WHERE r = 1 OR p % 4 = 0"
    )
    database.execute("ALTER TABLE public.visits ADD PRIMARY KEY (id)")
    database.execute("ALTER TABLE public.visits ALTER person SET NOT NULL")
    for name in ("age", "weight"):
        roles = dict.fromkeys(("id", "person", "age", "weight"), Role.IDENTIFIER)
        roles |= {name: Role.QUASI, "disease": Role.SENSITIVE}
        rules = tuple(ColumnRule(column, role) for column, role in roles.items())
        models = (ModelSpec(K_ANONYMITY, {"k": K}),)
        policy = Policy(VISITS, rules, models, algorithm="mdav", name=name, subject="person")
        dbanon.set_policy(VISITS, policy, settings=database.settings)
    return database


def classes(database, release):
    """Return the class of each person in a release: the quasi-identifier as published."""
    return dict(
        database.execute(
            f"SELECT DISTINCT k1 / 10, q1::text FROM dbanon_data.rows_{release.id}"
            f"  JOIN dbanon_data.groups_{release.id} USING (group_id)"
        )
    )


def publish(database, policy):
    return dbanon.publish(VISITS, policy=policy, keep_assignment=True, settings=database.settings)


@pytest.mark.exhaustive
def test_persons_of_several_rows_are_not_told_apart_by_two_views(visits):
    first = classes(visits, publish(visits, "age"))
    assert (60, K) == (len(first), min(Counter(first.values()).values()))
    try:
        second = classes(visits, publish(visits, "weight"))
    except DbanonError:
        return
    cells = Counter((first.get(person), second.get(person)) for person in first | second)
    assert min(cells.values()) >= K


def test_what_a_refresh_lacks_is_not_what_one_person_of_several_rows_had(visits):
    dbanon.publish(VISITS, policy="age", settings=visits.settings)
    before = diseases(visits)
    visits.execute("DELETE FROM public.visits WHERE person = 8")  # who came twice
    try:
        dbanon.refresh(VISITS, settings=visits.settings)
    except DbanonError:
        return
    gone = (before - diseases(visits)).total()
    assert gone == 0 or gone >= K


def diseases(database):
    return Counter(row[0] for row in database.execute("SELECT disease FROM anon.visits_age"))
