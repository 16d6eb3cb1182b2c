"""Pseudonyms from the policy to what an analyst joins."""

from dataclasses import replace

import pytest
from data.schemas.clinic import POLICIES, TABLES, make_clinic
from tables import make_patients, patients_policy, rows_proved

import dbanon
from dbanon.domain.errors import ConfigError, PolicyError
from dbanon.formats import policies
from dbanon.formats.datasets import dataset_of

CLINIC = dataset_of(TABLES)
PERSON = 'pseudonym = "person"\n'
IN_GROUPS = 'rows_per_subject = "group"\n'


@pytest.fixture
def patients(database):
    table = make_patients(database)
    document = policies.dump(patients_policy(table, k=5, l=2, algorithm="mdav"))
    store(database, table, document)
    return database


def store(database, table, document, *, extra=PERSON):
    policy = policies.parse(extra + document)
    dbanon.set_policy(table, policy, settings=database.settings)
    return policy


def pseudonyms(database, relation):
    return [row[0] for row in database.execute(f"SELECT person FROM {relation}")]


@pytest.mark.exhaustive
def test_every_person_has_a_pseudonym_that_stays(patients):
    release = dbanon.publish("patients", settings=patients.settings)
    first = pseudonyms(patients, "anon.patients")
    assert rows_proved(release)
    assert len(first) == len(set(first)) == rows_proved(release)
    patients.execute("UPDATE public.patients SET note = 'new' WHERE id = 1")
    dbanon.refresh("patients", settings=patients.settings)
    assert set(first) == set(pseudonyms(patients, "anon.patients"))
    dbanon.publish("patients", name="larger", k=10, settings=patients.settings)
    assert set(pseudonyms(patients, "anon.larger")) <= set(first)


@pytest.mark.exhaustive
def test_readers_of_another_series_get_other_pseudonyms(patients):
    dbanon.publish("patients", settings=patients.settings)
    dbanon.publish(
        "patients",
        name="others",
        new_series=True,
        recipients_changed=True,
        settings=patients.settings,
    )
    first, second = (set(pseudonyms(patients, f"anon.{n}")) for n in ("patients", "others"))
    assert len(first) == len(second) > 0
    assert not first & second


@pytest.mark.exhaustive
def test_a_pseudonym_is_no_hash_that_anybody_can_repeat_or_that_is_remembered(patients):
    dbanon.publish("patients", settings=patients.settings)
    shown = {str(one) for one in pseudonyms(patients, "anon.patients")}
    ((remembered,),) = patients.execute(
        "SELECT array_agg(p::text) FROM dbanon.history_member CROSS JOIN unnest(persons) AS p"
    )
    guessed = patients.execute(
        "SELECT encode(substr(sha256(convert_to(x, 'UTF8')), 1, 16), 'hex')::uuid::text"
        "  FROM public.patients,"
        "       unnest(ARRAY[id::text, json_build_array(id::text)::text,"
        "                    'pseudonym' || json_build_array(id::text)::text]) AS x"
    )
    assert remembered
    assert not shown & set(remembered)
    assert not shown & {row[0] for row in guessed}


@pytest.mark.exhaustive
def test_an_analyst_follows_a_person_through_the_tables_of_a_dataset(database, tmp_path):
    make_clinic(database, tmp_path)
    for table, document in POLICIES.items():
        grouped = "" if table == "persons" else IN_GROUPS
        store(database, f"public.{table}", document, extra=grouped + PERSON)
    analyst = database.role("follower")
    dbanon.publish_dataset(CLINIC, k=5, settings=database.settings, grants=(analyst,))
    reader = database.connect_as(analyst)
    pairs = reader.execute(
        "SELECT e.total_cost::text, c.icd_code, p.marital_status"
        "  FROM anon.persons AS p JOIN anon.encounters AS e USING (person)"
        "  JOIN anon.conditions AS c USING (person)"
    ).fetchall()
    true = database.execute(
        "SELECT e.total_cost::text, c.icd_code, p.marital_status"
        "  FROM public.persons AS p JOIN public.encounters AS e USING (person_id)"
        "  JOIN public.conditions AS c USING (person_id)"
    )
    assert len(pairs) > 100
    assert set(pairs) <= set(true)
    ((least,),) = database.execute(
        "SELECT min(n) FROM (SELECT count(DISTINCT person) AS n FROM anon.encounters"
        " GROUP BY birth_date, sex, race, zip, started, encounter_class) AS c"
    )
    assert least >= 5


@pytest.mark.exhaustive
def test_columns_say_what_a_pseudonym_is(patients, run):
    dbanon.publish("patients", settings=patients.settings)
    ((comment,),) = patients.execute(
        "SELECT col_description('anon.patients'::regclass, attnum) FROM pg_attribute"
        " WHERE attrelid = 'anon.patients'::regclass AND attname = 'person'"
    )
    assert comment == (
        "person: published as what stands for a person, the same in all relations that are"
        " published for the same readers"
    )


@pytest.mark.parametrize(
    ("extra", "refused"),
    [
        ('pseudonym = "id"\n', "a column that there is already"),
        ('pseudonym = "ctid"\n', "no name for a column"),
        (f'pseudonym = "{"p" * 64}"\n', "no name for a column: 1 to 63 bytes"),
        ('anatomy = true\npseudonym = "person"\n', "leave out anatomy"),
        ('subject = "note"\npseudonym = "person"\n', "shows how many rows a person has"),
    ],
)
def test_what_cannot_be_published_by_pseudonyms_is_refused(database, extra, refused):
    table = make_patients(database)
    document = policies.dump(patients_policy(table, k=5, l=2, algorithm="mdav"))
    with pytest.raises(PolicyError, match=refused):
        store(database, table, document, extra=extra)


def test_a_live_view_has_no_pseudonyms(patients):
    with pytest.raises(ConfigError, match="a live view cannot keep pseudonyms"):
        dbanon.publish("patients", kind="view", settings=patients.settings)


@pytest.mark.exhaustive
def test_a_hostile_name_is_only_a_name(database):
    table = make_patients(database)
    document = policies.dump(patients_policy(table, k=5, l=2, algorithm="mdav"))
    name = 'p"; DROP TABLE public.patients; --\n{key} %s'
    policy = replace(policies.parse(document), pseudonym=name)
    dbanon.set_policy(table, policy, settings=database.settings)
    dbanon.publish("patients", settings=database.settings)
    ((shown,),) = database.execute(
        "SELECT array_agg(attname::text) FROM pg_attribute"
        " WHERE attrelid = 'anon.patients'::regclass AND attnum > 0"
    )
    assert name in shown
    ((there,),) = database.execute("SELECT to_regclass('public.patients') IS NOT NULL")
    assert there


@pytest.mark.exhaustive
def test_those_who_leave_take_their_class_along(patients):
    dbanon.publish("patients", settings=patients.settings)
    quasi = "age, sex, born, weight"
    before = dict(patients.execute(f"SELECT person, ROW({quasi})::text FROM anon.patients"))
    policy = dbanon.load_policy("patients", settings=patients.settings)
    due = replace(policy, erase_within="1d")
    dbanon.set_policy(policy.table, due, settings=patients.settings)
    patients.execute("DELETE FROM public.patients WHERE id IN (1, 2, 3)")
    dbanon.refresh("patients", settings=patients.settings)
    patients.execute("UPDATE dbanon.history_leaver SET missed_at = missed_at - interval '2 days'")
    dbanon.refresh("patients", settings=patients.settings)
    after = set(pseudonyms(patients, "anon.patients"))
    gone = before.keys() - after
    assert gone
    for person in gone:
        alike = {other for other, shown in before.items() if shown == before[person]}
        assert len(alike & gone) >= 5


@pytest.mark.exhaustive
def test_one_person_whose_number_is_written_in_two_ways_has_one_pseudonym(database):
    database.execute(
        "CREATE TABLE public.visits (id int PRIMARY KEY, patient numeric NOT NULL, age int);"
        "INSERT INTO public.visits"
        " SELECT i, CASE WHEN i % 2 = 0 THEN 1.0 ELSE 1.00 END * (i / 2), 1"
        "   FROM generate_series(2, 21) AS i"
    )
    document = """
table = "public.visits"
subject = "patient"
[columns]
id.role = "identifier"
patient.role = "identifier"
age.role = "quasi"
"""
    store(database, "public.visits", document, extra=IN_GROUPS + PERSON)
    dbanon.publish("visits", k=3, settings=database.settings)
    shown = pseudonyms(database, "anon.visits")
    assert (20, 10) == (len(shown), len(set(shown)))
