"""Attacks on counts with noise: a person who counts more than once, and an account that forgets."""

from dataclasses import replace

import pytest
from selection import exhaustive_after

import dbanon
from dbanon.db.releases import companion_relations
from dbanon.domain.errors import (
    ConfigError,
    DatabaseError,
    NotPermitted,
    PolicyError,
    Unsatisfiable,
)
from dbanon.formats import policies

POLICY = """
table = "public.{}"
budget = 1.0
rest = "drop"
{}
[models]
k = 2
[columns]
id.role = "identifier"
sex = {{ role = "quasi", order = ["F", "M"] }}
"""
FOR_OTHERS = {"new_series": True, "recipients_changed": True}


def store(database, table, *lines, name=None):
    policy = policies.parse(POLICY.format(table, "\n".join(lines)))
    policy = policy if name is None else replace(policy, name=name)
    dbanon.set_policy(table, policy, settings=database.settings)


def count(database, relation="anon.people", *, epsilon=0.5):
    return dbanon.count(relation, by=["sex"], epsilon=epsilon, settings=database.settings)


def make_people(database):
    database.execute(
        "CREATE TABLE public.people (id int PRIMARY KEY, sex text, file text NOT NULL);"
        "INSERT INTO public.people SELECT i, CASE WHEN i % 2 = 0 THEN 'F' ELSE 'M' END, i::text"
        "  FROM generate_series(1, 40) AS i"
    )
    store(database, "people")
    dbanon.publish("people", settings=database.settings)


@pytest.fixture
def people(copied):
    return copied(make_people)


def is_counted(database, relation):
    name = f"{relation}_counts"
    return database.execute("SELECT to_regclass(%s) IS NOT NULL", (name,)) == [(True,)]


@pytest.mark.parametrize("lines", [['key = ["id"]'], ['key = ["id"]', 'subject = "id"']])
def test_a_person_who_has_several_rows_of_a_view_by_now_is_not_counted(people, lines):
    people.execute(
        "CREATE TABLE public.stays AS SELECT id, sex FROM public.people;"
        "CREATE VIEW public.stayed AS SELECT id, sex FROM public.stays"
    )
    store(people, "stayed", *lines)
    dbanon.publish("stayed", settings=people.settings)
    people.execute("INSERT INTO public.stays SELECT 1, 'F' FROM generate_series(1, 500)")
    with pytest.raises(PolicyError, match="does not tell its rows apart"):
        count(people, "anon.stayed")
    assert not is_counted(people, "anon.stayed")


@pytest.mark.parametrize("name", ["by_file", "whole_file"])  # before the other policy, and after it
def test_a_person_who_has_several_rows_by_another_policy_is_not_counted(people, name):
    people.execute("UPDATE public.people SET file = id / 20")
    store(people, "people", 'subject = "file"', name=name)
    with pytest.raises(PolicyError, match="persons may have several rows"):
        count(people)
    assert not is_counted(people, "anon.people")


def test_nothing_is_counted_for_a_reader_who_can_read_the_source_by_now(people):
    analyst = people.role("analyst")
    dbanon.grant("anon.people", [analyst], settings=people.settings)
    people.execute(f"GRANT SELECT ON public.people TO {analyst}")
    with pytest.raises(NotPermitted, match=r"can read public\.people"):
        count(people)
    assert not is_counted(people, "anon.people")
    assert people.execute("SELECT FROM dbanon.spending") == []


def test_nothing_is_counted_next_to_a_view_that_shows_something_else_by_now(people):
    people.execute(
        "CREATE OR REPLACE VIEW anon.people AS SELECT 'F'::text AS sex FROM public.people"
    )
    with pytest.raises(ConfigError, match=r"anon\.people is not what was published"):
        count(people)
    assert not is_counted(people, "anon.people")
    assert people.execute("SELECT FROM dbanon.spending") == []


def test_a_person_of_several_rows_that_no_policy_names_is_not_counted(people):
    people.execute(
        "CREATE TABLE public.visits (id int PRIMARY KEY, patient_id int NOT NULL, sex text);"
        "INSERT INTO public.visits SELECT i, i / 2, 'F' FROM generate_series(0, 79) AS i"
    )
    store(people, "visits")
    dbanon.publish("visits", settings=people.settings)
    with pytest.raises(PolicyError, match="80 rows, 40 persons by column patient_id"):
        count(people, "anon.visits")
    assert not is_counted(people, "anon.visits")


def test_nothing_is_counted_by_a_transaction_that_reads_something_else(people, monkeypatch):
    people.execute("CREATE TABLE public.other (id int)")
    publish = companion_relations.publish_counts

    def read_and_publish(session, *arguments, **options):
        session.pg.execute("TABLE public.other")
        publish(session, *arguments, **options)

    monkeypatch.setattr(companion_relations, "publish_counts", read_and_publish)
    with pytest.raises(DatabaseError, match="was opened in place of what was to be read"):
        count(people)
    assert not is_counted(people, "anon.people")
    assert people.execute("SELECT FROM dbanon.spending") == []


def test_only_rows_that_meet_the_conditions_are_counted(people):
    people.execute(
        "INSERT INTO public.people SELECT i, 'M', i::text FROM generate_series(41, 2040) AS i"
    )
    store(people, "people", 'where = [{ column = "sex", is = "=", value = "F" }]')
    count(people)
    found = dict(people.execute("SELECT sex, persons FROM anon.people_counts"))
    assert found["M"] < 1000  # nobody, with noise


def test_an_account_of_no_number_has_nothing_left(people):
    people.execute(
        "INSERT INTO dbanon.spending (table_oid, table_schema, table_name, epsilon, columns)"
        " VALUES ('public.people'::regclass, 'public', 'people', 'NaN', '{}')"
    )
    with pytest.raises(Unsatisfiable, match="the spent budget of"):
        count(people)


def test_an_account_that_is_lost_has_nothing_left(people):
    count(people, epsilon=1.0)
    people.execute("DROP TABLE dbanon.spending")
    for _ in range(2):
        (lost,) = dbanon.init(settings=people.settings)["lost"]
        assert "the spent budget of public.people is lost" in lost
    found = [finding.message for finding in dbanon.doctor(settings=people.settings)]
    assert sum("the spent budget of public.people is lost" in message for message in found) == 1
    with pytest.raises(Unsatisfiable, match="the spent budget of"):
        count(people)


def publish_as(database, name):
    for release in dbanon.list_releases(settings=database.settings):
        if release.served:
            dbanon.drop_release(release.id, settings=database.settings)
    store(database, name)
    dbanon.publish(name, settings=database.settings, **FOR_OTHERS)


@pytest.mark.exhaustive
def test_a_copy_under_the_first_name_goes_on_with_the_account_of_the_second(people):
    count(people, epsilon=0.5)
    people.execute("ALTER TABLE public.people RENAME TO persons")
    publish_as(people, "persons")
    count(people, "anon.persons", epsilon=0.5)
    people.execute(
        "CREATE TABLE public.people AS TABLE public.persons;"
        "ALTER TABLE public.people ADD PRIMARY KEY (id);"
        "DROP TABLE public.persons"
    )
    publish_as(people, "people")
    with pytest.raises(Unsatisfiable, match="more than is left of the budget"):
        count(people, epsilon=0.5)


@pytest.mark.parametrize(
    "loss",
    exhaustive_after(
        1,
        [
            "DELETE FROM dbanon.spending",
            "TRUNCATE dbanon.spending",
            "DELETE FROM dbanon.spending WHERE epsilon = 0.3",
            "DELETE FROM dbanon.spending WHERE epsilon = 0.2",
            "DELETE FROM dbanon.account",
        ],
    ),
)
def test_an_account_that_lacks_entries_has_nothing_left(people, loss):
    count(people, epsilon=0.2)
    count(people, epsilon=0.3)
    rows = people.execute("SELECT * FROM dbanon.spending ORDER BY spending_id")
    people.execute(loss)
    told = "the spent budget of public.people is lost"
    found = [f for f in dbanon.doctor(settings=people.settings) if told in f.message]
    assert ["failure"] == [f.level.value for f in found]
    with pytest.raises(Unsatisfiable, match="the spent budget of"):
        count(people, epsilon=0.1)
    if "spending" in loss:
        people.execute("DELETE FROM dbanon.spending")
        for row in rows:
            places = ", ".join(["%s"] * len(row))
            people.execute(
                f"INSERT INTO dbanon.spending OVERRIDING SYSTEM VALUE VALUES ({places})", row
            )
        assert 0.6 == count(people, epsilon=0.1).spent
        assert [] == [f for f in dbanon.doctor(settings=people.settings) if told in f.message]


@pytest.mark.exhaustive
def test_entries_that_are_lost_with_the_name_of_the_table_are_missed(people):
    count(people, epsilon=0.9)
    people.execute("DELETE FROM dbanon.spending; ALTER TABLE public.people RENAME TO persons")
    publish_as(people, "persons")
    with pytest.raises(Unsatisfiable, match="the spent budget of"):
        count(people, "anon.persons", epsilon=0.2)


def test_counts_of_which_nothing_says_what_they_spent_are_told_of_and_nothing_more_is_counted(
    people,
):
    """What a backup without the schema dbanon leaves."""
    count(people, epsilon=0.9)
    people.execute(
        "CREATE TABLE public.kept AS TABLE anon.people_counts;"
        "DO $$ BEGIN EXECUTE format('COMMENT ON TABLE public.kept IS %L',"
        " obj_description('anon.people_counts'::regclass)); END $$;"
        "DROP SCHEMA dbanon, dbanon_data CASCADE; DROP TABLE anon.people_counts;"
        "ALTER TABLE public.kept RENAME TO people_counts;"
        "ALTER TABLE public.people_counts SET SCHEMA anon"
    )
    dbanon.init(settings=people.settings)
    told = "anon.people_counts has counts with noise, and nothing says what they have spent"
    assert [told] == [
        f.message for f in dbanon.doctor(settings=people.settings) if "counts" in f.message
    ]
    store(people, "people")
    dbanon.publish("people", settings=people.settings)
    with pytest.raises(Unsatisfiable, match=told):
        count(people, epsilon=0.5)
    people.execute("DROP TABLE anon.people_counts")
    assert 0.5 == count(people, epsilon=0.5).spent
    assert [] == [f for f in dbanon.doctor(settings=people.settings) if "counts" in f.message]
