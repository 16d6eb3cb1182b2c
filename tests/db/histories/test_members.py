"""Persons are remembered by a keyed hash, each published one once."""

import hashlib
import hmac
import json
import os
from dataclasses import replace
from uuid import UUID

import pytest
from psycopg import sql
from selection import exhaustive_after

import dbanon
from dbanon.db.histories import memory
from dbanon.db.person_hashes import person_hash
from dbanon.db.releases import release_rows
from dbanon.domain.errors import DatabaseError, PolicyError
from dbanon.domain.policy import (
    K_ANONYMITY,
    ColumnRule,
    Comparison,
    Condition,
    ModelSpec,
    Policy,
    Role,
)
from dbanon.domain.table import TableName

STAYS = TableName("public", "stays")
FEW = Condition("number", Comparison.BELOW, value=20)
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
    return policy


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


def test_a_person_may_have_several_rows_that_two_columns_tell_apart(stays):
    policy = replace(set_policy(stays, "ward", "number"), subject="ward", algorithm="auto")
    dbanon.set_policy(STAYS, policy, settings=stays.settings)
    release = publish(stays)
    assert len({person for person, _ in remembered(stays, release)}) == 7


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


PLACES = """
SELECT count(*),
       count(*) FILTER (WHERE s.ctid IS NULL OR p.place IS NULL),
       count(*) FILTER (WHERE p.state = 0 AND p.person = ANY (m.persons)),
       count(*) FILTER (WHERE p.state = -1 AND p.person <> ALL (m.persons))
  FROM (SELECT s.ctid, {person} AS person
          FROM public.stays AS s CROSS JOIN dbanon.history_key AS k
         WHERE {selected}) AS s
  FULL JOIN {places} AS p ON p.place = s.ctid AND p.person = s.person
 CROSS JOIN dbanon.history_member AS m
"""  # after one release of few persons
PAGES = "SELECT (s.ctid::text::point)[0] FROM public.stays AS s WHERE {}"


@pytest.mark.parametrize("texts", ["s.ward, s.number::text", "s.number::text"])
@pytest.mark.parametrize(
    ("given", "selected", "options", "others"),
    exhaustive_after(
        2,
        [
            ({"algorithm": "auto"}, "true", {}, 1),
            ({"where": (FEW,)}, "s.number < 20", {}, 0),
            ({"algorithm": "auto"}, "true", {"rows_per_block": 10}, 0),
            ({"algorithm": "auto"}, "true", {"rows_per_block": 1000}, 1),
        ],
    ),
)
def test_the_place_of_each_row_in_the_source_is_stored_published_or_not(
    stays, texts, given, selected, *, options, others
):
    if "ward" not in texts:
        stays.execute(
            "ALTER TABLE public.stays DROP CONSTRAINT stays_pkey, ADD PRIMARY KEY (number)"
        )
    stays.execute("UPDATE public.stays SET number = number WHERE number > 9")  # moves
    policy = replace(set_policy(stays, "ward", "number"), **given)
    dbanon.set_policy(STAYS, policy, settings=stays.settings)
    release = publish(stays, **options)
    ((state,),) = stays.execute("SELECT source_state FROM dbanon.release")
    statement = sql.SQL(PLACES).format(
        person=person_hash(sql.SQL(texts)),
        selected=sql.SQL(selected),
        places=sql.Identifier("dbanon_data", f"places_{state['places']}"),
    )
    each, *rows = json.loads(state["pages"].translate({ord("{"): "[", ord("}"): "]"}))
    pages = [int(page) for (page,) in stays.execute(PAGES.format(selected))]
    assert (each, rows) == (1, [pages.count(page) for page in range(max(pages) + 1)])
    published = release.loss.n_rows - others
    assert stays.execute(statement.as_string(None)) == [(published + others, 0, published, others)]


FAULTS = {
    "one is double": "INSERT INTO {0} SELECT r.* FROM {0} AS r WHERE r.k2 = 7",
    "one is nobody": "UPDATE {0} SET k2 = -7 WHERE k2 = 7",
    "one is another": "UPDATE {0} SET k1 = o.k1, k2 = 8 FROM {0} AS o"
    " WHERE {0}.k2 = 7 AND o.k2 = 8",
}


def publish_with(fault, stays, monkeypatch):
    """Try to publish while the list of published rows is damaged; return what was stored."""
    fill = release_rows.fill

    def faulty(session, publication, *given, **rest):
        fill(session, publication, *given, **rest)
        damaged = session.pg.execute(sql.SQL(FAULTS[fault]).format(publication.rows))
        assert damaged.rowcount == 1

    monkeypatch.setattr(release_rows, "fill", faulty)
    with pytest.raises((DatabaseError, PolicyError), match=r"would be incomplete|same key"):
        publish(stays)
    return [
        stays.execute(f"SELECT count(*) FROM dbanon.{table}")[0][0]
        for table in ("release", "history_member")
    ]


@pytest.mark.parametrize("fault", FAULTS)
def test_nothing_is_published_when_not_everybody_is_remembered_once(stays, monkeypatch, fault):
    assert [0, 0] == publish_with(fault, stays, monkeypatch)


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
    assert [0, 0] == publish_with("one is double", stays, monkeypatch)


def test_nothing_is_published_when_hashing_fails(stays, monkeypatch):
    def fail(session, *_, **__):
        session.pg.execute("SELECT 1 / 0")

    monkeypatch.setattr(memory, "write_members", fail)
    with pytest.raises(DatabaseError):
        publish(stays)
    assert stays.execute("SELECT count(*) FROM dbanon.release") == [(0,)]


def documents(database, release):
    """Return the secret key of a release, and what is hashed of everybody in the source."""
    (keys,) = database.execute(
        "SELECT k.inner_key, k.outer_key FROM dbanon.history_key AS k"
        f" JOIN dbanon.history AS h ON h.key_id = k.key_id WHERE h.release_id = {release.id}"
    )
    rows = database.execute("SELECT ward, number FROM public.stays")
    return keys, [json.dumps([ward, str(number)], ensure_ascii=False) for ward, number in rows]


def test_a_person_is_half_of_the_hash_of_a_secret_key_and_the_person(stays):
    release = publish(stays)
    (key, other), everybody = documents(stays, release)
    assert (len(key), other) == (32, key)
    hashes = {UUID(bytes=hashlib.sha256(key + one.encode()).digest()[:16]) for one in everybody}
    shown = {person for person, _ in remembered(stays, release)}
    assert shown
    assert shown <= hashes


def first_versions_key(session):
    """Make a key as the first version did, in the two forms of HMAC (RFC 2104)."""
    secret = os.urandom(32).ljust(64, b"\0")
    forms = [bytes(byte ^ pad for byte in secret) for pad in (0x36, 0x5C)]
    return session.one(
        "INSERT INTO dbanon.history_key (inner_key, outer_key) VALUES (%s, %s) RETURNING key_id",
        forms,
    )[0]


def test_persons_of_a_series_of_the_first_version_are_known_again(stays, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(memory, "new_key", first_versions_key)
        first = publish(stays)
    (inner, outer), everybody = documents(stays, first)
    secret = bytes(byte ^ 0x36 for byte in inner)
    assert inner != outer
    hashes = {UUID(bytes=hmac.digest(secret, d.encode(), "sha256")[:16]) for d in everybody}
    shown = {person for person, _ in remembered(stays, first)}
    assert shown
    assert shown <= hashes
    stays.execute("DELETE FROM public.stays WHERE number = 9")
    (refreshed,) = dbanon.refresh(STAYS, settings=stays.settings)
    assert refreshed.growth.deferred + refreshed.growth.left == 1
    begun = publish(stays, new_series=True, recipients_changed=True)
    (key, other), _ = documents(stays, begun)
    assert key == other
    assert first.id in begun.composition.releases
