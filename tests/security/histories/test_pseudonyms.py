"""Attacks by whoever joins releases by pseudonyms, and knows how many rows each person has."""

from collections import Counter, defaultdict
from dataclasses import replace

import pytest

import dbanon
from dbanon.domain.release import CheckFailed
from dbanon.formats import policies
from dbanon.formats.datasets import dataset_of

K = 4
VISITS = """
table = "public.visits"
subject = "person"
rows_per_subject = "group"
pseudonym = "who"
[columns]
visit.role = "identifier"
person.role = "identifier"
sex.role = "quasi"
ward.role = "quasi"
cost.role = "sensitive"
"""
PERSONS = """
table = "public.persons"
pseudonym = "who"
[columns]
id.role = "identifier"
ref.role = "identifier"
age.role = "quasi"
zone.role = "identifier"
sick.role = "sensitive"
"""
TABLES = ("people", "visits", "findings")
OF_DATASET = {
    "people": 'id.role = "identifier"\nage.role = "quasi"\n',
    "visits": 'id.role = "identifier"\nperson.role = "identifier"\nyear.role = "quasi"\n',
    "findings": 'id.role = "identifier"\nperson.role = "identifier"\ncode.role = "sensitive"\n',
}
QUASI = {"people": "age", "visits": "age, year", "findings": "age"}
FOR_OTHERS = {"new_series": True, "recipients_changed": True}


def look(database, relation, quasi):
    """Return what each pseudonym is shown with, and how often."""
    columns = ", ".join(f"{name}::text" for name in quasi.split(", "))
    rows = database.execute(f"SELECT who, ARRAY[{columns}], count(*) FROM {relation} GROUP BY 1, 2")
    found = defaultdict(set)
    for who, values, count in rows:
        found[who].add((tuple(values), count))
    return found


def fewest(*seen):
    """Return how few persons are alike in all that was seen; a person may be in some of it only."""
    everybody = set().union(*seen)
    alike = Counter(tuple(frozenset(one.get(who, ())) for one in seen) for who in everybody)
    return min(alike.values())


def store(database, table, document):
    dbanon.set_policy(table, policies.parse(document), settings=database.settings)


@pytest.fixture
def visits(database):
    """Persons of one and of two rows, eight of each in a class, of whom some move and return."""
    database.execute(
        "CREATE TABLE public.visits"
        " (visit serial PRIMARY KEY, person int NOT NULL, sex text, ward int, cost int);"
        "INSERT INTO public.visits (person, sex, ward, cost)"
        " SELECT p + o, CASE o WHEN 0 THEN 'f' ELSE 'm' END, 1, p * 7 + i"
        "   FROM unnest(ARRAY[0, 100]) AS o, generate_series(1, 16) AS p,"
        "        generate_series(1, CASE WHEN p <= 8 THEN 1 ELSE 2 END) AS i"
    )
    store(database, "visits", VISITS)
    dbanon.publish("visits", k=K, settings=database.settings)
    first = look(database, "anon.visits", "sex, ward")
    assert fewest(first) >= K
    database.execute(
        "UPDATE public.visits SET ward = 2 WHERE person % 100 IN (1, 2, 9, 10, 11, 12, 13, 14);"
        "INSERT INTO public.visits (person, sex, ward, cost)"
        " SELECT DISTINCT person, sex, ward, 5 FROM public.visits WHERE person % 100 <= 8;"
        "UPDATE public.visits SET cost = cost + 1000"
    )
    return database, first


def again(database, way):
    settings = database.settings
    if way == "publish":
        dbanon.publish("visits", k=K, settings=settings)
    elif way == "another":
        dbanon.publish("visits", k=K, name="others", settings=settings)
    elif way == "anew":
        dbanon.refresh("visits", new_series=True, settings=settings)
    else:
        store(database, "visits", VISITS.replace("[columns]", "max_suppressed = 0.1\n[columns]"))
        dbanon.refresh("visits", settings=settings)


@pytest.mark.parametrize("way", ["publish", "another", "anew", "changed"])
def test_numbers_of_rows_that_pseudonyms_show_are_not_held_against_other_classes(visits, way):
    database, first = visits
    with pytest.raises(CheckFailed, match="how many rows each has in every release"):
        again(database, way)
    assert first == look(database, "anon.visits", "sex, ward")


def test_the_same_without_pseudonyms_from_now_on_is_refused_as_well(visits):
    database, first = visits
    store(database, "visits", VISITS.replace('pseudonym = "who"', ""))
    with pytest.raises(CheckFailed, match="how many rows each has in every release"):
        dbanon.publish("visits", k=K, settings=database.settings)
    assert first == look(database, "anon.visits", "sex, ward")


def test_others_are_shown_other_pseudonyms_of_classes_made_anew(visits):
    database, first = visits
    dbanon.publish("visits", k=K, settings=database.settings, **FOR_OTHERS)
    second = look(database, "anon.visits", "sex, ward")
    assert not first.keys() & second.keys()
    assert fewest(second) >= K


@pytest.fixture
def persons(database):
    database.execute(
        "CREATE TABLE public.persons"
        " (id int PRIMARY KEY, ref text NOT NULL UNIQUE, age int, zone int, sick text);"
        "INSERT INTO public.persons SELECT i, i::text, 20 + i * 7 % 61, i * 13 % 9, 's' || i % 5"
        "  FROM generate_series(1, 200) AS i"
    )
    store(database, "persons", PERSONS)
    dbanon.publish("persons", k=K, settings=database.settings)
    return database


OTHERWISE = (
    PERSONS.replace("[columns]", 'subject = "ref"\nrows_per_subject = 1\n[columns]')
    .replace('age.role = "quasi"', 'age.role = "identifier"')
    .replace('zone.role = "identifier"', 'zone.role = "quasi"')
)


def test_persons_who_are_told_apart_otherwise_do_not_get_the_same_pseudonyms(persons):
    first = look(persons, "anon.persons", "age")
    policy = replace(policies.parse(OTHERWISE), name="second")
    dbanon.set_policy("persons", policy, settings=persons.settings)
    with pytest.raises(CheckFailed, match="told apart by other columns before"):
        dbanon.publish("persons", k=K, policy="second", settings=persons.settings)
    store(persons, "persons", OTHERWISE)
    with pytest.raises(CheckFailed, match="told apart by other columns before"):
        dbanon.refresh("persons", settings=persons.settings)
    assert first == look(persons, "anon.persons", "age")


def make_three(database):
    """Make three tables of persons with a policy each, whose readers see pseudonyms."""
    database.execute(
        "CREATE TABLE public.people (id int PRIMARY KEY, age int);"
        "CREATE TABLE public.visits (id serial PRIMARY KEY, person int NOT NULL, year int);"
        "CREATE TABLE public.findings (id serial PRIMARY KEY, person int NOT NULL, code text);"
        "INSERT INTO public.people SELECT p, 30 FROM generate_series(1, 32) AS p;"
        "INSERT INTO public.visits (person, year) SELECT p, 2020 FROM generate_series(1, 32) AS p;"
        "INSERT INTO public.findings (person, code)"
        " SELECT p, 'c' || p FROM generate_series(1, 16) AS p"
    )
    for table, columns in OF_DATASET.items():
        grouped = "" if table == "people" else 'subject = "person"\nrows_per_subject = "group"\n'
        head = f'table = "public.{table}"\npseudonym = "who"\n{grouped}'
        store(database, table, f"{head}[columns]\n{columns}")


def publish_three(database):
    make_three(database)
    dbanon.publish_dataset(dataset_of(TABLES), k=K, settings=database.settings)
    seen = [look(database, f"anon.{table}", QUASI[table]) for table in TABLES]
    assert fewest(*seen) >= K


@pytest.fixture
def dataset(copied):
    return copied(publish_three)


def drop(database, *tables):
    for release in dbanon.list_releases(settings=database.settings):
        if release.relation.name in tables:
            dbanon.drop_release(release.id, settings=database.settings)


@pytest.mark.parametrize(
    "moved",
    [
        "UPDATE public.people SET age = 50 WHERE id IN (1, 2, 30, 31)",
        "UPDATE public.visits SET year = 2024 WHERE person IN (1, 2, 30, 31)",
    ],
)
def test_a_table_that_left_the_dataset_is_joined_with_nothing_new(dataset, moved):
    drop(dataset, "findings")
    dataset.execute(moved)
    before = [look(dataset, f"anon.{table}", QUASI[table]) for table in TABLES[:2]]
    with pytest.raises(CheckFailed, match=r"releases of public\.findings, which is not published"):
        dbanon.publish_dataset(dataset_of(TABLES[:2]), k=K, settings=dataset.settings)
    assert before == [look(dataset, f"anon.{table}", QUASI[table]) for table in TABLES[:2]]


@pytest.mark.parametrize("table", ["visits", "people"])
def test_a_table_alone_is_not_joined_with_the_dataset_that_it_was_in(dataset, table):
    drop(dataset, *TABLES)
    dataset.execute("UPDATE public.visits SET year = 2024 WHERE person IN (1, 2, 30, 31)")
    with pytest.raises(CheckFailed, match="which is not published together with it"):
        dbanon.publish(table, k=K, settings=dataset.settings)
    assert dataset.execute(f"SELECT to_regclass('anon.{table}')") == [(None,)]


def test_a_dataset_is_not_joined_with_a_table_that_was_published_alone(database):
    """The last release in the ledger is one of before, too, and here not the first."""
    make_three(database)
    dbanon.publish("people", k=K, settings=database.settings)
    dbanon.publish("people", k=K, settings=database.settings, **FOR_OTHERS)
    with pytest.raises(CheckFailed, match="how many rows each has in every release"):
        dbanon.publish_dataset(dataset_of(TABLES), k=K, settings=database.settings)
    assert [(None,)] == database.execute("SELECT to_regclass('anon.visits')")


def test_a_dataset_for_others_has_other_pseudonyms(dataset):
    before = set().union(*(look(dataset, f"anon.{table}", QUASI[table]) for table in TABLES))
    asked = {"k": K, "settings": dataset.settings, **FOR_OTHERS}
    dbanon.publish_dataset(dataset_of(TABLES), **asked)
    seen = [look(dataset, f"anon.{table}", QUASI[table]) for table in TABLES]
    assert fewest(*seen) >= K
    assert not before & set().union(*seen)


def test_a_refresh_keeps_the_pseudonyms_of_a_dataset(dataset):
    before = [set(look(dataset, f"anon.{table}", QUASI[table])) for table in TABLES]
    dataset.execute(
        "INSERT INTO public.people SELECT p, 30 FROM generate_series(101, 116) AS p;"
        "INSERT INTO public.visits (person, year)"
        " SELECT p, 2020 FROM generate_series(101, 116) AS p"
    )
    dbanon.refresh("people", settings=dataset.settings)
    after = [look(dataset, f"anon.{table}", QUASI[table]) for table in TABLES]
    assert all(one <= set(now) for one, now in zip(before, after, strict=True))
    assert len(after[0]) == 48
    assert fewest(*after) >= K
