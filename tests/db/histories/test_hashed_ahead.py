"""Persons hashed while their rows are grouped are remembered as if they were hashed later."""

import time

import psycopg
import pytest
from psycopg import sql
from selection import exhaustive_after

import dbanon
from dbanon.db import person_hashes
from dbanon.db.person_hashes import person_hash
from dbanon.db.session import connect
from dbanon.domain.errors import DatabaseError
from dbanon.domain.policy import K_ANONYMITY, ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.table import TableName

STAYS = TableName("public", "stays")
REMEMBERED = """
SELECT e.person, v.value ->> 'disease'
  FROM dbanon.history_member AS m
 CROSS JOIN LATERAL unnest(m.persons, m.classes, m.value_ids) AS e (person, class, value_id)
  JOIN dbanon.history_value AS v ON v.value_id = e.value_id
 WHERE m.release_id = {}
"""


@pytest.fixture
def stays(database):
    """Persons told by two columns, of text and of numbers; one cannot be grouped with others."""
    database.execute(
        "CREATE TABLE public.stays AS"
        " SELECT 'ward \"' || p % 7 || '\" \\ ä' AS ward, p AS number,"
        "        CASE WHEN p = 100 THEN 100000 ELSE p * 37 % 60 END AS age,"
        "        (ARRAY['flu', 'gout', 'asthma', 'cancer'])[1 + p % 4] AS disease"
        "   FROM generate_series(1, 100) AS p ORDER BY p * 41 % 101"
    )
    database.execute("ALTER TABLE public.stays ADD PRIMARY KEY (ward, number)")
    set_policy(database, "ward", "number")
    return database


def set_policy(database, *identifiers):
    roles = dict.fromkeys(identifiers, Role.IDENTIFIER)
    roles |= {"age": Role.QUASI, "disease": Role.SENSITIVE}
    rules = tuple(ColumnRule(column, role) for column, role in roles.items())
    models = (ModelSpec(K_ANONYMITY, {"k": 3}),)
    policy = Policy(STAYS, rules, models, algorithm="mdav", max_suppressed=0.1)
    dbanon.set_policy(STAYS, policy, settings=database.settings)


def publish(database, **options):
    return dbanon.publish(STAYS, settings=database.settings, **options)


def remembered(database, release):
    return sorted(database.execute(REMEMBERED.format(release.id)))


def persons(database, texts="s.ward, s.number::text"):
    """Return everybody with the disease in the source, by the key that was made last."""
    query = sql.SQL(
        "SELECT {}, s.disease FROM public.stays AS s"
        " CROSS JOIN dbanon.history AS h JOIN dbanon.history_key AS k ON k.key_id = h.key_id"
        " WHERE h.release_id = (SELECT max(release_id) FROM dbanon.history)"
    ).format(person_hash(sql.SQL(texts)))
    return sorted(database.execute(query.as_string(None)))


@pytest.mark.parametrize("options", exhaustive_after(1, [{}, {"keep_assignment": True}]))
def test_everybody_who_is_shown_is_remembered_with_their_own_values(stays, options):
    release = publish(stays, **options)
    shown = remembered(stays, release)
    assert set(shown) <= set(persons(stays))
    assert len(shown) == release.loss.n_rows - release.loss.n_suppressed


@pytest.mark.exhaustive
@pytest.mark.parametrize("key", [["number"], ["number", "bed"], ["bed", "number"]])
def test_a_key_of_numbers_is_hashed_like_any_other(stays, key):
    stays.execute(
        "ALTER TABLE public.stays DROP CONSTRAINT stays_pkey, ALTER number TYPE smallint,"
        " ADD bed bigint GENERATED ALWAYS AS (-9000000000 * (number % 3)) STORED NOT NULL,"
        f" ADD PRIMARY KEY ({', '.join(key)})"
    )
    set_policy(stays, "ward", "number", "bed")
    shown = remembered(stays, publish(stays))
    assert shown
    assert set(shown) <= set(persons(stays, ", ".join(f"s.{name}::text" for name in key)))


@pytest.mark.exhaustive
def test_a_new_series_is_remembered_by_a_key_of_its_own(stays):
    first = remembered(stays, publish(stays))
    second = publish(stays, new_series=True, recipients_changed=True)
    again = remembered(stays, second)
    assert set(again) <= set(persons(stays))
    assert not {person for person, _ in first} & {person for person, _ in again}


FAULTS = {
    "one is missing": "DELETE FROM pg_temp.history_hashed WHERE k2 = 7",
    "one is double": "INSERT INTO pg_temp.history_hashed"
    " SELECT h.* FROM pg_temp.history_hashed AS h WHERE h.k2 = 7",
    "one is another": "UPDATE pg_temp.history_hashed SET k2 = 8 WHERE k2 = 7",
}


def publish_with(fault, stays, monkeypatch):
    """Publish while what was hashed is damaged, and expect to be refused."""
    hash_persons = person_hashes.hash_persons

    def faulty(session, *asked, **former):
        hash_persons(session, *asked, **former)
        session.pg.execute(FAULTS[fault])

    monkeypatch.setattr(person_hashes, "hash_persons", faulty)
    with pytest.raises(DatabaseError, match="would be incomplete"):
        publish(stays)


@pytest.mark.parametrize("fault", FAULTS)
def test_nothing_is_published_when_not_everybody_was_hashed_once(stays, monkeypatch, fault):
    publish_with(fault, stays, monkeypatch)
    assert stays.execute("SELECT count(*) FROM dbanon.release") == [(0,)]
    assert stays.execute("SELECT count(*) FROM dbanon.history_member") == [(0,)]


def test_a_row_without_a_value_does_not_make_up_for_a_double_one(stays, monkeypatch):
    stays.execute("UPDATE public.stays SET disease = 'plague' WHERE number = 8")
    stays.execute(
        "CREATE FUNCTION public.lose() RETURNS trigger LANGUAGE plpgsql"
        " AS $$BEGIN RETURN CASE WHEN NEW.value ->> 'disease' <> 'plague' THEN NEW END; END$$"
    )
    stays.execute(
        "CREATE TRIGGER lose BEFORE INSERT ON dbanon.history_value"
        " FOR EACH ROW EXECUTE FUNCTION public.lose()"
    )
    publish_with("one is double", stays, monkeypatch)
    assert stays.execute("SELECT count(*) FROM dbanon.release") == [(0,)]


def test_nothing_is_published_when_hashing_fails(stays, monkeypatch):
    def fail(session, *_, **__):
        session.pg.execute("SELECT 1 / 0")

    monkeypatch.setattr(person_hashes, "hash_persons", fail)
    with pytest.raises(DatabaseError):
        publish(stays)
    assert stays.execute("SELECT count(*) FROM dbanon.release") == [(0,)]


def test_what_fails_meanwhile_ends_what_the_database_does(database):
    begun = time.monotonic()
    with connect(database.settings) as session, pytest.raises(KeyboardInterrupt):
        fail_while_asleep(session)
    assert time.monotonic() - begun < 30


def fail_while_asleep(session):
    with session.transaction(), session.meanwhile(lambda: sleep(session)):
        time.sleep(0.2)
        raise KeyboardInterrupt


def sleep(session):
    with pytest.raises(psycopg.errors.QueryCanceled):
        session.pg.execute("SELECT pg_sleep(60)")
