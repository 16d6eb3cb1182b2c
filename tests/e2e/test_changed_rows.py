"""A refresh reads changed rows, found by their places, and all rows if places do not show changes.

Each result is compared with that of a refresh that reads all rows.
"""

import json
import random
from contextlib import suppress
from dataclasses import replace

import psycopg
import pytest
from psycopg import sql
from selection import at_depth, exhaustive_after

import dbanon
from dbanon.actions.preparation import inputs
from dbanon.actions.publication import plan
from dbanon.db import catalog, person_hashes
from dbanon.db.histories import memory
from dbanon.db.metadata import ledger
from dbanon.db.proofs import checks
from dbanon.db.releases import immutability
from dbanon.db.session import connect
from dbanon.domain.errors import ConfigError, DatabaseError, DbanonError, DriftError
from dbanon.domain.policy import (
    DROP,
    K_ANONYMITY,
    L_DIVERSITY,
    ColumnRule,
    Comparison,
    Condition,
    ModelSpec,
    Policy,
    Role,
)
from dbanon.domain.release import CheckFailed
from dbanon.domain.table import TableName
from dbanon.formats.datasets import dataset_of
from dbanon.settings import Settings

TABLE = TableName("public", "people")
MAKE = """
CREATE TYPE public.mood AS ENUM ('calm', 'glad', 'sad', 'wild');
CREATE TABLE public.people (
    id integer PRIMARY KEY, age integer, sex text, mood public.mood, here boolean DEFAULT true
) WITH (autovacuum_enabled = false);
INSERT INTO public.people
SELECT i, 20 + i % 20, CASE WHEN i % 3 = 0 THEN 'F' ELSE 'M' END,
       (ARRAY['calm', 'glad', 'sad', 'wild']::public.mood[])[1 + i % 4]
  FROM generate_series(1, 600) AS i
"""
COLUMNS = (
    ColumnRule("id", Role.IDENTIFIER),
    ColumnRule("age", Role.QUASI),
    ColumnRule("sex", Role.QUASI),
    ColumnRule("mood", Role.SENSITIVE),
    ColumnRule("here", Role.IDENTIFIER),
)
POLICY = Policy(
    table=TABLE,
    columns=COLUMNS,
    models=(ModelSpec(K_ANONYMITY, {"k": 3}),),
    algorithm="mondrian",
    pool_size=10,
    rest=DROP,
)
DIVERSE = ModelSpec(L_DIVERSITY, {"l": 2})
HERE = Condition("here", Comparison.EQUAL, value=True)
CHANGE = """
INSERT INTO people SELECT i, 30, 'F', 'sad' FROM generate_series(701, 712) AS i;
DELETE FROM people WHERE id IN (7, 27, 47);
UPDATE people SET mood = 'wild' WHERE id BETWEEN 10 AND 20
"""


@pytest.fixture
def people(database):
    """Return a published table, of which a reader may have the release."""
    database.execute(MAKE)
    publish(database, POLICY)
    return database


def publish(database, policy):
    dbanon.set_policy(TABLE, policy, settings=database.settings)
    dbanon.publish(TABLE, settings=database.settings)
    database.execute("GRANT SELECT ON anon.people TO public")


def refresh(database, **options):
    (found,) = dbanon.refresh(TABLE, settings=database.settings, **options)
    return found


def reading_all(database):
    """Return what a refresh would do that reads all rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(person_hashes, "find_changes", lambda *_: "a test reads all")
        return refresh(database, dry_run=True)


def refresh_as_if_all_were_read(database):
    """Refresh, and require the result of a refresh that reads all rows, and that all is done."""
    expected = reading_all(database)
    found = refresh(database)
    assert (expected.changed, expected.growth) == (found.changed, found.growth)
    assert expected.release.loss == found.release.loss
    assert expected.release.checks.results == found.release.checks.results
    assert figures(expected) == figures(found)
    require_places(database)
    require_history(database)
    require_sums(database)
    again = refresh(database)
    assert (None, False) == (again.all_read, again.changed)
    return found


def figures(refreshed):
    """Return what the releases together reveal, without their numbers."""
    found = refreshed.release.composition
    if not refreshed.changed or found is None:
        return None
    pairs = [replace(pair, release=0) for pair in found.against]
    return found.small, found.persons, [one.result for one in found.results], pairs


def require_history(database):
    """Require that counting all releases from what is stored finds what the last one found."""
    (composition,) = dbanon.history(TABLE, settings=database.settings).compositions
    assert ((), ()) == (composition.altered, composition.unknown)


def state(database):
    ((document,),) = database.execute(
        "SELECT source_state FROM dbanon.release WHERE served AND table_name = 'people'"
    )
    return document


def require_sums(database):
    """Require that the stored sums and digest of the copy are those of all of its rows."""
    with connect(database.settings) as session, session.transaction():
        entry = ledger.latest_entry(session, TableName("anon", "people"))
        published = catalog.describe_published(session, entry.relation)
        found = immutability.sums(session, published, entry.data_id)
    assert list(found) == state(database)["copy"]
    assert immutability.numbered_content(published, found) == entry.content


def require_places(database, where="true"):
    """Require that each row of the source has its place, and is marked if it is not published."""
    number = state(database)["places"]
    table = sql.Identifier("dbanon_data", f"places_{number}")
    statement = sql.SQL(
        "SELECT count(*) FILTER (WHERE p.place IS NULL OR s.id IS NULL),"
        "       count(*), count(DISTINCT p.person)"
        "  FROM (SELECT s.ctid AS place, s.id FROM public.people AS s WHERE {}) AS s"
        "  FULL JOIN {} AS p ON p.place = s.place"
    )
    ((wrong, rows, persons),) = database.execute(statement.format(sql.SQL(where), table))
    assert (0, rows) == (wrong, persons)


@pytest.mark.exhaustive
def test_only_changed_rows_are_read_and_all_is_as_if_all_were(people):
    people.execute(CHANGE)
    found = refresh_as_if_all_were_read(people)
    assert (None, True, 12) == (found.all_read, found.changed, found.growth.inserted)
    assert (3, 8) == (found.growth.deferred, found.growth.changed)
    assert {"mood": 8 / 600} == found.growth.former
    assert found.new_ncp is not None


@pytest.fixture
def spreads(monkeypatch):
    """Return a list to which each refresh adds how often it looked for rows with all values."""
    found, template = [], person_hashes.template
    listed = lambda name, **slots: found.append(name) or template(name, **slots)  # noqa: E731
    monkeypatch.setattr(person_hashes, "template", listed)

    def count():
        """Return how often since the last time."""
        n = found.count("persons.find_spread")
        found.clear()
        return n

    return count


OF_VALUES = """
SELECT count(DISTINCT s.age) + count(DISTINCT s.sex) + count(DISTINCT s.mood)
  FROM people AS s
"""


def require_spread(database):
    """Require that stored places have all values of the source, and that no value is stored."""
    columns, values, places = state(database)["spread"]
    assert ["age", "sex", "mood"] == columns
    assert [(values,)] == database.execute(OF_VALUES)
    some = f"{OF_VALUES} WHERE ctid = ANY (%s::tid[])"
    assert [(values,)] == database.execute(some, (places,))
    assert set() == {*places} - {*'{}"(),0123456789'}


@pytest.mark.exhaustive
def test_rows_with_all_values_are_found_by_their_places_unless_a_value_goes(
    people, spreads, monkeypatch
):
    monkeypatch.setattr(person_hashes, "_MOST_CHANGED", 10)
    require_spread(people)
    come = "INSERT INTO people SELECT i, {}, '{}', 'sad' FROM generate_series({}, {}) AS i"
    changes = {
        come.format("30 + i % 40", "M", 701, 740): 1,
        come.format(75, "X", 751, 765): 1,
        "DELETE FROM people WHERE id IN (SELECT min(id) FROM people GROUP BY age)": 2,
        "UPDATE people SET sex = 'M' WHERE sex = 'X'; DELETE FROM people WHERE age = 69": 2,
        come.format(33, "F", 801, 812): 1,
    }
    for change, times in changes.items():
        people.execute(change)
        reading_all(people)
        spreads()
        refresh(people)
        assert times == spreads(), change
        require_spread(people)


@pytest.mark.exhaustive
def test_another_row_in_a_stored_place_hides_no_value(people, monkeypatch):
    monkeypatch.setattr(person_hashes, "_MOST_CHANGED", 10)
    people.execute("DELETE FROM people WHERE id IN (SELECT max(id) FROM people GROUP BY age, sex)")
    people.execute("DELETE FROM people WHERE age = 39")
    people.execute("VACUUM people")
    come = "INSERT INTO people SELECT i, 20, 'F', 'calm' FROM generate_series(701, 760) AS i"
    people.execute(come)
    assert refresh_as_if_all_were_read(people).all_read is None
    require_spread(people)


@pytest.mark.exhaustive
def test_places_of_many_values_are_not_stored(people, monkeypatch):
    monkeypatch.setattr(person_hashes, "_MOST_SPREAD", 3)
    for first in (701, 801):
        rows = f"generate_series({first}, {first + 11})"
        people.execute(f"INSERT INTO people SELECT i, 30, 'F', 'sad' FROM {rows} AS i")
        assert refresh_as_if_all_were_read(people).all_read is None
        assert state(people)["spread"] is None


@pytest.mark.exhaustive
def test_stored_places_of_other_columns_are_not_used(people, spreads):
    people.execute(
        "UPDATE dbanon.release"
        """   SET source_state = jsonb_set(source_state, '{spread,0}', '["age", "mood", "sex"]')"""
    )
    people.execute(CHANGE)
    spreads()
    assert refresh(people).changed
    assert 1 == spreads()
    require_spread(people)


OF_MOODS = ModelSpec("entropy-l-diversity", {"l": 1.2})
COME = """
INSERT INTO people
SELECT i, 30, 'F', (enum_range(NULL::mood))[1 + i % 4] FROM generate_series(701, 820) AS i;
DELETE FROM people WHERE id IN (7, 27, 47);
UPDATE people SET mood = 'wild' WHERE id BETWEEN 10 AND 20
"""
BY_KEY = replace(POLICY, subject="id", models=(*POLICY.models, DIVERSE))


def with_key(database, columns, policy):
    """Give the table another key, which a refresh refuses until the policy is set again."""
    key = f"DROP CONSTRAINT people_pkey, ADD PRIMARY KEY ({columns})"
    database.execute(f"ALTER TABLE people {key}")
    with pytest.raises(DriftError, match=f"primary key is another one now: {columns}"):
        refresh(database)
    dbanon.set_policy(TABLE, policy, settings=database.settings)


@pytest.fixture
def obstacles(monkeypatch):
    """Return a list to which each refresh adds the reason why it keeps no classes, or None."""
    found, find = [], plan._obstacle_to_refresh  # noqa: SLF001
    listed = lambda *given: found.append(find(*given)) or found[-1]  # noqa: E731
    monkeypatch.setattr(plan, "_obstacle_to_refresh", listed)
    return found


PARTS_OF_FIFTY = """
CREATE TABLE public.stored AS SELECT * FROM dbanon.history_member;
DELETE FROM dbanon.history_member;
INSERT INTO dbanon.history_member (release_id, part, persons, classes, value_ids)
SELECT s.release_id, i, s.persons[a:z], s.classes[a:z], s.value_ids[a:z]
  FROM public.stored AS s
 CROSS JOIN generate_series(0, (cardinality(s.persons) - 1) / 50) AS i
 CROSS JOIN LATERAL (VALUES (50 * i + 1, 50 * i + 50)) AS p (a, z)
"""


@pytest.mark.exhaustive
def test_persons_are_found_in_each_part_of_what_is_stored_of_the_first_release(people):
    people.execute(PARTS_OF_FIFTY)
    assert [(12,)] == people.execute("SELECT count(*) FROM dbanon.history_member")
    people.execute(CHANGE)
    assert refresh_as_if_all_were_read(people).changed
    people.execute("DELETE FROM people WHERE id % 5 = 0")
    assert refresh_as_if_all_were_read(people).changed


@pytest.mark.exhaustive
def test_a_column_may_be_named_as_the_class(database):
    database.execute(MAKE)
    database.execute("ALTER TABLE public.people RENAME COLUMN sex TO class")
    columns = [replace(c, column="class") if c.column == "sex" else c for c in COLUMNS]
    publish(database, replace(POLICY, columns=tuple(columns)))
    database.execute(CHANGE)
    assert refresh_as_if_all_were_read(database).changed


@pytest.mark.exhaustive
@pytest.mark.parametrize("model", [DIVERSE, OF_MOODS], ids=lambda one: one.name)
def test_only_changed_rows_are_read_of_a_table_whose_subject_is_its_key(
    database, model, monkeypatch
):
    monkeypatch.setattr(person_hashes, "_MOST_CHANGED", 1)
    database.execute(MAKE)
    publish(database, replace(BY_KEY, models=(*POLICY.models, model)))
    database.execute(COME)
    found = refresh_as_if_all_were_read(database)
    assert (None, True, 120) == (found.all_read, found.changed, found.growth.inserted)
    assert (3, 8) == (found.growth.deferred, found.growth.changed)
    assert [(False, 2)] == database.execute(
        "SELECT several, count(*) FROM dbanon.history GROUP BY 1"
    )


@pytest.mark.exhaustive
def test_a_history_in_which_a_person_could_have_several_rows_is_compared_all_the_same(database):
    """As earlier versions stored of a subject that is the key."""
    database.execute(MAKE)
    publish(database, BY_KEY)
    database.execute("UPDATE dbanon.history SET several = true")
    database.execute(f"{COME}; DELETE FROM people WHERE id > 720")
    found = refresh_as_if_all_were_read(database)
    assert (None, 20) == (found.all_read, found.growth.inserted)


def test_a_subject_that_is_the_key_no_more_has_several_rows(database, obstacles):
    database.execute(MAKE)
    publish(database, BY_KEY)
    with_key(database, "id, sex", BY_KEY)
    database.execute(COME)
    database.execute("INSERT INTO people SELECT id, age, 'M', mood FROM people WHERE id > 700")
    found = refresh(database)
    assert ("its persons may have several rows", 240) == (found.all_read, found.growth.inserted)
    database.execute("DELETE FROM people WHERE id > 700 AND sex = 'M'")
    with_key(database, "id", BY_KEY)
    assert refresh(database).growth is None
    assert [
        None,
        "its series shows several rows of a person, who has one by the present key",
    ] == obstacles


@pytest.mark.exhaustive
def test_a_model_of_all_rows_of_a_person_keeps_no_classes_once_the_subject_is_not_the_key(
    database, obstacles
):
    database.execute(MAKE)
    policy = replace(BY_KEY, models=(*POLICY.models, OF_MOODS))
    publish(database, policy)
    with_key(database, "id, sex", policy)
    assert refresh(database).growth is None
    assert ["entropy-l-diversity is proved of all rows of a person"] == obstacles


CHARTS = """
CREATE TABLE public.charts (id integer PRIMARY KEY, weight integer, blood public.mood);
INSERT INTO public.charts SELECT id, 50 + id % 7, mood FROM people;
"""
OF_CHARTS = Policy(
    table=TableName("public", "charts"),
    columns=(
        ColumnRule("id", Role.IDENTIFIER),
        ColumnRule("weight", Role.QUASI),
        ColumnRule("blood", Role.SENSITIVE),
    ),
    models=(*POLICY.models, OF_MOODS),
    subject="id",
)


@pytest.mark.exhaustive
def test_tables_of_a_dataset_with_one_row_a_person_each_keep_their_classes(database, obstacles):
    """With a model that is proved of all rows of a person."""
    database.execute(MAKE + ";" + CHARTS)
    settings = database.settings
    dbanon.set_policy(TABLE, replace(BY_KEY, models=OF_CHARTS.models), settings=settings)
    dbanon.set_policy(OF_CHARTS.table, OF_CHARTS, settings=settings)
    dbanon.publish_dataset(dataset_of(["people", "charts"]), settings=settings)
    database.execute("GRANT SELECT ON anon.people, anon.charts TO public")
    come = "INSERT INTO charts SELECT id, 50 + id % 7, mood FROM people WHERE id > 700"
    database.execute(f"{COME}; {come}")
    persons, charts = dbanon.refresh(TABLE, settings=settings)
    assert (120, 3, 8) == (persons.growth.inserted, persons.growth.deferred, persons.growth.changed)
    assert (120, 0) == (charts.growth.inserted, charts.growth.changed)
    assert [None] == obstacles
    (composition,) = dbanon.history(TABLE, settings=settings).compositions[:1]
    assert ((), ()) == (composition.altered, composition.unknown)
    assert dbanon.check("anon.charts", settings=settings).passed


@pytest.mark.exhaustive
def test_all_is_counted_again_without_figures_of_the_release_before(people):
    people.execute(CHANGE)
    people.execute("DELETE FROM dbanon.history_figures")
    assert refresh_as_if_all_were_read(people).all_read is None


COUNTED = "SELECT classes, value_ids, persons FROM dbanon.history_class"


def test_persons_of_each_class_are_counted_if_an_earlier_version_has_not_stored_it(people):
    ((classes, _, persons),) = before = people.execute(COUNTED)
    copy = "SELECT count(DISTINCT dbanon_class), count(*) FROM dbanon_data.release_1"
    assert [(len(set(classes)), sum(persons))] == people.execute(copy)
    people.execute("DELETE FROM dbanon.history_class")
    people.execute(CHANGE)
    assert refresh_as_if_all_were_read(people).all_read is None
    assert before == people.execute(COUNTED)


@pytest.mark.exhaustive
def test_counts_that_do_not_add_up_to_the_release_are_not_used(people):
    people.execute(CHANGE)
    people.execute("UPDATE dbanon.history_class SET persons[1] = persons[1] + 1")
    assert refresh_as_if_all_were_read(people).all_read is None


@pytest.mark.exhaustive
def test_a_class_that_is_counted_wrong_refuses_the_refresh(people):
    ((classes, _, persons),) = people.execute(COUNTED)
    firsts = [classes.index(one) for one in sorted(set(classes))]
    for more, fewer in zip(firsts[::2], firsts[1::2], strict=False):
        persons[more], persons[fewer] = persons[more] + 1, persons[fewer] - 1
    people.execute("UPDATE dbanon.history_class SET persons = %s", (persons,))
    people.execute("DELETE FROM people WHERE age = 20")
    with pytest.raises(DatabaseError, match="other classes than are remembered"):
        refresh(people)


@pytest.mark.exhaustive
@pytest.mark.parametrize("on_new_value", [None, "other", "derive"])
def test_values_of_a_taxonomy_are_found_as_if_all_rows_were_read(database, tmp_path, on_new_value):
    file = tmp_path / "sexes.csv"
    file.write_text("02115;021**;*\n02117;021**;*\n03115;031**;*\n", encoding="utf-8")
    dbanon.import_taxonomy("sexes", file, settings=database.settings)
    database.execute(MAKE)
    last = "5" if on_new_value is None else "CASE id % 9 WHEN 0 THEN 6 ELSE 5 END"
    branch = "CASE sex WHEN 'F' THEN '0211' ELSE '0311' END"
    database.execute(f"UPDATE people SET sex = {branch} || {last}")
    of_sex = {"taxonomy": "sexes", "on_new_value": on_new_value}
    columns = tuple(
        replace(rule, **of_sex) if rule.column == "sex" else replace(rule, role=Role.IDENTIFIER)
        for rule in COLUMNS
        if rule.column != "mood" or on_new_value is None
    )
    publish(database, Policy(**{**vars_of(POLICY), "columns": columns}))
    for sex, first, last in (("02115", 701, 712), ("02117", 801, 802)):
        new = f"SELECT i, 30, '{sex}', 'sad' FROM generate_series({first}, {last}) AS i"
        database.execute(f"INSERT INTO people {new}")
    found = refresh_as_if_all_were_read(database)
    assert (None, 14) == (found.all_read, found.growth.inserted)


@pytest.mark.exhaustive
@pytest.mark.parametrize("models", [POLICY.models, (*POLICY.models, DIVERSE)], ids=len)
def test_a_long_stream_of_changes_is_found_as_if_all_rows_were_read(database, models, monkeypatch):
    people = database
    people.execute(MAKE)
    publish(people, Policy(**{**vars_of(POLICY), "models": models}))
    monkeypatch.setattr(person_hashes, "_MOST_CHANGED", 10)
    chance, new = random.Random(5), 1000  # noqa: S311 - rows, not secrets
    for _ in range(at_depth(8)):
        some = [chance.randrange(1, 601) for _ in range(6)]
        people.execute("DELETE FROM people WHERE id = ANY (%s)", (some[:2],))
        people.execute("UPDATE people SET mood = 'glad' WHERE id = ANY (%s)", (some[2:4],))
        people.execute("UPDATE people SET age = age + 1 WHERE id = ANY (%s)", (some[4:],))
        people.execute("VACUUM people")
        size = chance.randrange(8)
        people.execute(
            "INSERT INTO people (id, age, sex, mood)"
            " SELECT i, 20 + i %% 20, 'M', 'calm'"
            "   FROM generate_series(%s::integer, %s::integer) AS i",
            (new + 1, new + size),
        )
        new += size
        assert refresh_as_if_all_were_read(people).all_read is None


@pytest.mark.exhaustive
def test_whole_classes_that_go_and_persons_who_come_back_are_found(people):
    people.execute("CREATE TABLE gone AS SELECT * FROM people WHERE age = 25 AND sex = 'M'")
    people.execute("DELETE FROM people WHERE age = 25 AND sex = 'M' AND id > 25")
    found = refresh_as_if_all_were_read(people)
    assert (None, True) == (found.all_read, found.growth.withdrawn > 0)
    people.execute("INSERT INTO people SELECT * FROM gone ON CONFLICT DO NOTHING")
    found = refresh_as_if_all_were_read(people)
    assert (None, True) == (found.all_read, found.growth.withheld > 0)


MIX = """
UPDATE people
   SET mood = (enum_range(NULL::mood))[1 + id / 20 % CASE WHEN age = 25 AND sex = 'M'
                                                          THEN 2 ELSE 4 END]
"""


@pytest.mark.exhaustive
def test_all_is_counted_again_once_the_worst_class_is_withdrawn(database):
    database.execute(MAKE)
    database.execute(MIX)
    publish(database, Policy(**{**vars_of(POLICY), "models": (*POLICY.models, DIVERSE)}))
    database.execute("DELETE FROM people WHERE age = 25 AND sex = 'M'")
    found = refresh_as_if_all_were_read(database)
    assert (None, True) == (found.all_read, found.growth.withdrawn > 0)


@pytest.mark.exhaustive
def test_rows_that_begin_and_cease_to_meet_a_condition_are_found(database):
    database.execute(MAKE)
    database.execute("UPDATE people SET here = false WHERE id > 590")
    publish(database, Policy(**{**vars_of(POLICY), "where": (HERE,)}))
    database.execute("UPDATE people SET here = NOT here WHERE id BETWEEN 585 AND 595")
    expected, found = reading_all(database), refresh(database)
    assert expected.growth == found.growth
    assert (None, 6) == (found.all_read, found.growth.deferred)
    require_places(database, "here")


def vars_of(policy):
    return {name: getattr(policy, name) for name in policy.__dataclass_fields__}


REWRITES = {
    "vacuum full": "VACUUM FULL people",
    "cluster": "CLUSTER people USING people_pkey",
    "truncate": "CREATE TABLE kept AS TABLE people; TRUNCATE people; INSERT INTO people TABLE kept",
    "another type": "ALTER TABLE people ALTER here TYPE text USING here::text",
    "the same column with a default": "ALTER TABLE people DROP COLUMN sex,"
    " ADD COLUMN sex text DEFAULT 'F'",
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("rewrite", REWRITES)
def test_all_rows_are_read_after_what_changes_values_without_row_versions(people, rewrite):
    people.execute(CHANGE)
    refresh(people)
    for statement in REWRITES[rewrite].split("; "):
        people.execute(statement)
    dbanon.set_policy(TABLE, POLICY, settings=people.settings)  # which has looked at the columns
    found = refresh_as_if_all_were_read(people)
    assert "rewritten" in found.all_read


@pytest.mark.exhaustive
def test_all_rows_are_read_after_a_column_with_a_default_was_added(people):
    people.execute("ALTER TABLE people ADD COLUMN more text DEFAULT 'x'")
    more = (*COLUMNS, ColumnRule("more", Role.IDENTIFIER))
    dbanon.set_policy(
        TABLE, Policy(**{**vars_of(POLICY), "columns": more}), settings=people.settings
    )
    before, found = state(people), refresh(people)
    assert found.regrouped or found.release.sharing or found.all_read
    assert before["facts"] != state(people)["facts"]
    people.execute("DELETE FROM people WHERE id = 9")
    assert 1 == refresh_as_if_all_were_read(people).growth.deferred


@pytest.mark.exhaustive
def test_all_rows_are_read_after_a_value_of_an_enum_was_renamed(people):
    people.execute("ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'")
    dbanon.set_policy(TABLE, POLICY, settings=people.settings)  # which has looked at it
    found = refresh_as_if_all_were_read(people)
    assert ("rewritten" in found.all_read, 150) == (True, found.growth.changed)


@pytest.mark.pg(">= 18")
def test_a_virtual_column_is_always_read(database):
    database.execute(MAKE)
    database.execute(
        "CREATE FUNCTION public.one() RETURNS text IMMUTABLE RETURN 'x';"
        "ALTER TABLE people ADD COLUMN kind text GENERATED ALWAYS AS ('a' || sex) VIRTUAL"
    )
    rules = (*COLUMNS, ColumnRule("kind", Role.SENSITIVE))
    publish(database, Policy(**{**vars_of(POLICY), "columns": rules}))
    assert state(database) is None
    database.execute("ALTER TABLE people ALTER kind SET EXPRESSION AS ('b' || sex)")
    found = refresh(database)
    assert ("version of a row" in found.all_read, 600) == (True, found.growth.changed)


@pytest.mark.exhaustive
def test_a_savepoint_released_in_a_transaction_in_progress_is_found_once_it_is_committed(people):
    other = psycopg.connect(people.dsn)
    other.execute("UPDATE people SET mood = 'wild' WHERE id = 4")
    other.execute("SAVEPOINT one")
    other.execute("INSERT INTO people (id, age, sex, mood) VALUES (701, 30, 'F', 'sad')")
    other.execute("RELEASE one")
    people.execute("DELETE FROM people WHERE id = 9")  # a later transaction
    assert 1 == refresh_as_if_all_were_read(people).growth.deferred
    other.commit()
    other.close()
    found = refresh_as_if_all_were_read(people)
    assert (None, 1) == (found.all_read, found.growth.waiting + found.growth.inserted)
    assert 1 == found.growth.changed


@pytest.mark.exhaustive
def test_a_transaction_that_is_prepared_before_a_refresh_is_found_once_it_is_committed(people):
    with people.connect(autocommit=False) as other:
        other.execute("UPDATE people SET age = 21, mood = 'wild' WHERE id < 4")
        other.execute("PREPARE TRANSACTION 'of_another'")
    people.execute("UPDATE people SET mood = 'sad' WHERE id = 50")
    assert refresh(people).all_read is None
    people.execute("COMMIT PREPARED 'of_another'")
    assert refresh_as_if_all_were_read(people).all_read is None


@pytest.mark.exhaustive
def test_a_transaction_that_lasts_for_several_refreshes_is_found_once_it_is_committed(people):
    other = people.connect(autocommit=False)
    other.execute("DELETE FROM people WHERE id IN (5, 6, 7)")
    other.execute(
        "INSERT INTO people SELECT i, 25, 'M', 'calm' FROM generate_series(801, 803) AS i"
    )
    for mood in ("sad", "glad", "calm"):
        people.execute(f"UPDATE people SET mood = '{mood}' WHERE id = 500")
        assert refresh(people).all_read is None
    other.commit()
    assert refresh_as_if_all_were_read(people).growth.deferred == 3


@pytest.mark.exhaustive
def test_rows_in_the_places_of_those_of_a_writer_that_rolled_back_are_found(people):
    for first in (2000, 2010, 2020):
        other = people.connect(autocommit=False)
        other.execute("UPDATE people SET mood = 'wild' WHERE id < 20")
        people.execute("UPDATE people SET age = age + 1 WHERE id = 100")
        refresh(people)
        other.rollback()
        people.execute("VACUUM people")
        values = f"SELECT i, 33, 'M', 'glad' FROM generate_series({first}, {first + 3}) AS i"
        people.execute(f"INSERT INTO people {values}")
        assert refresh_as_if_all_were_read(people).all_read is None


@pytest.mark.exhaustive
def test_a_row_that_moves_into_the_place_of_a_deleted_one_is_another(people):
    ((place,),) = people.execute("SELECT ctid FROM people WHERE id = 600")
    people.execute("DELETE FROM people WHERE id = 600")
    people.execute("VACUUM people")
    people.execute("UPDATE people SET mood = 'wild', sex = 'F' WHERE id = 598")
    assert [(place,)] == people.execute("SELECT ctid FROM people WHERE id = 598")
    found = refresh_as_if_all_were_read(people)
    assert (None, 1) == (found.all_read, found.growth.deferred)


@pytest.mark.exhaustive
def test_frozen_rows_are_unchanged(people):
    people.execute("VACUUM FREEZE people")
    people.execute("DELETE FROM people WHERE id = 9")
    found = refresh_as_if_all_were_read(people)
    assert (None, 1) == (found.all_read, found.growth.deferred)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "snapshot", ["9000000000:9000000000:", "-1000000000:-1000000000:"], ids=["later", "earlier"]
)
def test_all_rows_are_read_where_the_numbers_of_transactions_are_of_another_time(people, snapshot):
    people.execute(
        "UPDATE dbanon.release SET source_state = jsonb_set(source_state, '{snapshot}', %s)",
        (json.dumps(snapshot),),
    )
    people.execute("DELETE FROM people WHERE id = 9")
    assert refresh_as_if_all_were_read(people).all_read is not None


@pytest.mark.exhaustive
def test_all_rows_are_read_in_a_copy_of_the_database(people, server):
    people.close()  # nobody copies a database that is in use
    with server.database(people.name) as copy:
        copy.execute("DELETE FROM people WHERE id = 9")
        found = refresh_as_if_all_were_read(copy)
        assert "rewritten" in found.all_read


@pytest.mark.exhaustive
def test_all_rows_are_read_again_once_much_has_changed(people):
    people.execute("UPDATE people SET mood = 'wild' WHERE id <= 40")
    expected, found = reading_all(people), refresh(people)
    assert expected.growth == found.growth
    assert ("much has changed" in found.all_read, 0) == (True, state(people)["changed"])


@pytest.mark.parametrize("fault", exhaustive_after(1, ["lost", "another", "twice"]))
def test_places_that_do_not_add_up_refuse_the_refresh(people, fault):
    table = f"dbanon_data.places_{state(people)['places']}"
    faults = {
        "lost": f"DELETE FROM {table} WHERE place = '(0,5)'",
        "another": f"UPDATE {table} SET place = '(9999,1)' WHERE place = '(0,5)'",
        "twice": f"INSERT INTO {table} SELECT * FROM {table} WHERE place = '(0,5)'",
    }
    people.execute(faults[fault])
    people.execute("DELETE FROM people WHERE id = 9")
    before = people.execute("SELECT count(*), max(release_id) FROM dbanon.release")
    with pytest.raises(DatabaseError, match="places of rows do not fit") as refused:
        refresh(people)
    assert "dbanon publish" in refused.value.hint
    assert before == people.execute("SELECT count(*), max(release_id) FROM dbanon.release")
    dbanon.publish(TABLE, settings=people.settings)
    people.execute("DELETE FROM people WHERE id = 19")
    assert refresh_as_if_all_were_read(people).all_read is None


def test_all_rows_are_read_where_their_places_are_gone(people):
    people.execute(f"DROP TABLE dbanon_data.places_{state(people)['places']}")
    people.execute("DELETE FROM people WHERE id = 9")
    assert "are gone" in refresh_as_if_all_were_read(people).all_read


@pytest.mark.exhaustive
def test_an_unchanged_table_is_not_read_to_see_that(people, monkeypatch):
    people.execute(CHANGE)
    refresh(people)
    monkeypatch.setattr(inputs, "digest_of_rows", None)
    assert not refresh(people, if_changed=True).changed
    assert refresh(people, if_changed=True).growth is None


@pytest.mark.exhaustive
def test_rows_that_are_written_again_with_the_same_values_change_nothing(people):
    people.execute("UPDATE people SET mood = mood WHERE id < 20")
    assert refresh(people, if_changed=True).growth is None  # by a digest of all rows
    found = refresh_as_if_all_were_read(people)
    assert (None, False, 0) == (found.all_read, found.changed, found.growth.changed)


def write_copy(people, change):
    """Change the copy as its owner can, and close it again."""
    copy = "SELECT 'release_' || data_id FROM dbanon.release WHERE served"
    copy = sql.Identifier("dbanon_data", *people.execute(copy)[0])
    grant = sql.SQL("GRANT UPDATE ON {} TO CURRENT_USER").format(copy)
    opened, closed = immutability.open_statements(copy), immutability.close_statements(copy)
    for statement in (*opened, grant, sql.SQL(change).format(copy=copy), *closed):
        people.execute(statement)


@pytest.mark.exhaustive
def test_a_value_that_its_owner_changed_in_the_copy_is_not_published_again(people):
    before = people.execute("SELECT mood FROM anon.people GROUP BY mood")
    write_copy(people, "UPDATE {copy} SET mood = 'calm' WHERE mood = 'wild'")
    people.execute(CHANGE)
    found = refresh(people)
    assert found.all_read is None
    assert found.release.sharing or "changed after publication" in found.regrouped
    assert {*before} == {*people.execute("SELECT mood FROM anon.people GROUP BY mood")}


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE {copy} SET mood = 'calm' WHERE mood = 'wild'",
        "DELETE FROM {copy} WHERE age @> 25",
        "INSERT INTO {copy} SELECT * FROM {copy} WHERE age @> 25",
    ],
    ids=["write", "remove", "add"],
)
def test_rows_that_the_owner_wrote_in_the_copy_are_found_without_reading_them(people, change):
    people.execute(CHANGE)
    refresh(people)
    assert not refresh(people, if_changed=True).changed
    write_copy(people, change)
    found = refresh(people, if_changed=True)
    assert found.changed
    assert found.release.sharing or "changed after publication" in found.regrouped
    assert dbanon.check("anon.people", settings=people.settings).passed


@pytest.mark.exhaustive
def test_a_copy_that_is_written_again_with_the_same_values_is_read_once(people):
    people.execute(CHANGE)
    before = refresh(people).release
    write_copy(people, "UPDATE {copy} SET mood = mood WHERE age @> 25")
    found, again = refresh(people, if_changed=True), refresh(people, if_changed=True)
    assert (False, False) == (found.changed, again.changed)
    assert found.growth is not None  # all was compared
    assert again.growth is None
    people.execute("DELETE FROM people WHERE id BETWEEN 100 AND 110")
    found = refresh_as_if_all_were_read(people)
    assert found.release.data_id == before.data_id


def test_rows_that_the_owner_wrote_are_found_once_a_refresh_has_stored_the_sums(people):
    """Of a copy that an earlier version published."""
    people.execute("UPDATE dbanon.release SET source_state = source_state - 'copy'")
    assert not refresh(people).changed
    require_sums(people)
    write_copy(people, "UPDATE {copy} SET mood = 'calm'")
    assert refresh(people, if_changed=True).changed
    assert people.execute("SELECT count(DISTINCT mood) FROM anon.people") != [(1,)]


@pytest.mark.exhaustive
def test_another_name_of_a_published_value_is_found_though_no_row_was_written(people):
    people.execute(CHANGE)
    refresh(people)
    people.execute("ALTER TYPE mood RENAME VALUE 'wild' TO 'mad'")
    with pytest.raises(DriftError):
        refresh(people)


@pytest.mark.exhaustive
def test_nobody_but_the_owner_reads_places_and_they_go_with_the_release(people):
    name = f"places_{state(people)['places']}"
    find = "SELECT relname::text FROM pg_class WHERE relname LIKE 'places%' AND relkind = 'r'"
    assert [(name,)] == people.execute(find)
    assert [(None,)] == people.execute("SELECT relacl FROM pg_class WHERE relname = %s", (name,))
    dbanon.publish(TABLE, settings=people.settings)
    assert [(name,)] == people.execute(find)
    dbanon.drop_release(release(people), settings=people.settings)
    assert [] == people.execute(find)


def release(database):
    return database.execute("SELECT max(release_id) FROM dbanon.release WHERE served")[0][0]


def places(database):
    return f"dbanon_data.places_{state(database)['places']}"


def hashes(database, **row):
    """Return the hash that ``content_digest`` sums, for each mood a person may have."""
    for mood in ("calm", "glad", "sad", "wild"):
        cells = " # ".join(
            f"hashtextextended('{value}' COLLATE \"C\", {i})"
            for i, (_, value) in enumerate(sorted({**row, "mood": mood}.items()), 1)
        )
        yield mood, database.execute(f"SELECT hashtextextended('' COLLATE \"C\", {cells})")[0][0]


@pytest.mark.exhaustive
def test_the_stored_state_does_not_tell_the_value_of_a_pending_person(people):
    """Who reads the ledger or a kept --json, and knows key, age and sex, finds the mood."""
    dbanon.publish(TABLE, name="people_b", settings=people.settings)
    people.execute("GRANT SELECT ON anon.people_b TO public")
    contents = []
    for change in ("SELECT 1", "INSERT INTO people VALUES (777, 33, 'F', 'sad')"):
        people.execute(change)
        dbanon.refresh(TABLE, settings=people.settings)
        find = "SELECT source_state->>'content' FROM dbanon.release WHERE served LIMIT 1"
        contents.append(people.execute(find)[0][0].rpartition(":")[2])
    assert contents[0] != contents[1]
    sums = [int(content) for content in contents if content.lstrip("-").isdecimal()]
    difference = sums[1] - sums[0] if sums else None
    told = [mood for mood, one in hashes(people, id=777, age=33, sex="F") if one == difference]
    assert [] == told


@pytest.mark.exhaustive
def test_no_json_has_the_state_or_a_digest_of_the_source(people, run):
    people.execute("DELETE FROM people WHERE id = 9")
    for words in (("refresh", "people"), ("release", "list"), ("publish", "people")):
        printed = run(*words, "--json").out
        assert not [word for word in ("source_state", "fingerprint", "compared") if word in printed]


@pytest.mark.parametrize("what", exhaustive_after(1, ["places", "copy", "rule", "groups"]))
def test_a_role_that_drops_a_release_runs_no_code_of_its_owner(people, what):
    other = people.role(f"member_{people.name[-8:]}")
    with people.admin() as admin:
        admin.execute(f"GRANT {people.server.owner} TO {other}")
    if what == "groups":
        options = {"new_series": True, "recipients_changed": True}
        dbanon.publish(TABLE, kind="view", **options, settings=people.settings)
    number = release(people)
    tables = {"places": places(people) if what == "places" else None}
    tables |= {"groups": f"dbanon_data.groups_{number}"}
    table = tables.get(what) or f"dbanon_data.release_{number}"
    people.execute(
        "CREATE FUNCTION f() RETURNS oid LANGUAGE sql AS 'SELECT lo_create(424242)';"
        "CREATE FUNCTION g() RETURNS trigger LANGUAGE plpgsql AS"
        " $$BEGIN PERFORM public.f(); RETURN NULL; END$$;"
        f"GRANT TRIGGER ON {table} TO CURRENT_USER"
    )
    add = f"TRIGGER t AFTER DELETE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION g()"
    rule = f"RULE r AS ON DELETE TO {table} DO ALSO SELECT public.f()"
    people.execute(f"CREATE {rule if what == 'rule' else add}")
    dbanon.drop_release(number, settings=Settings(dsn=people.dsn_as(other)))
    assert [] == people.execute("SELECT lomowner::regrole::text FROM pg_largeobject_metadata")
    assert [(None,)] == people.execute(f"SELECT to_regclass('{table}')")


@pytest.mark.exhaustive
@pytest.mark.parametrize("then", ["drop", "forget"])
def test_no_places_stay_after_the_release_though_a_reader_kept_the_refresh_from_dropping_them(
    people, then
):
    """As pg_dump does while a second relation, or a new right, ends the use of places."""
    with people.connect(autocommit=False) as dump:
        dump.execute(f"LOCK TABLE {places(people)} IN ACCESS SHARE MODE")
        dbanon.publish(TABLE, name="people_b", settings=people.settings)
        people.execute("UPDATE people SET mood = 'wild' WHERE id = 9")
        dbanon.refresh(TABLE, settings=people.settings)
        assert people.execute("SELECT 1 FROM pg_class WHERE relname ~ '^places_'")
    numbers = people.execute("SELECT release_id FROM dbanon.release WHERE served ORDER BY 1")
    for (number,) in numbers:
        dbanon.drop_release(number, settings=people.settings)
    if then == "forget":
        with suppress(DbanonError):
            dbanon.forget_series(numbers[0][0], settings=people.settings)
    left = "SELECT relname::text FROM pg_class WHERE relname ~ '^places_' AND relkind = 'r'"
    assert [] == people.execute(left)


@pytest.mark.parametrize("is_dumped", [False, True])
def test_places_of_a_new_grouping_replace_the_former_also_during_a_dump(people, is_dumped):
    table, rows = places(people), people.execute("SELECT count(*) FROM people")
    find = f"SELECT count(*), pg_relation_filenode('{table}') FROM {table}"
    former = people.execute(find)
    with people.connect(autocommit=False) as dump:
        dump.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        dump.execute(f"LOCK TABLE {table} IN ACCESS SHARE MODE" if is_dumped else "SELECT 1")
        people.execute("UPDATE people SET mood = 'wild' WHERE id = 9")
        people.execute("REVOKE ALL ON anon.people FROM public")
        options = {"new_series": True, "recipients_changed": True}
        dbanon.publish(TABLE, **options, settings=people.settings)
        if is_dumped:
            assert former == dump.execute(find).fetchall()
    assert table == places(people)
    ((n, file),) = people.execute(find)
    assert (rows, is_dumped) == ([(n,)], file == former[0][1])
    require_places(people)
    people.execute("UPDATE people SET mood = 'glad' WHERE id = 9")
    refresh_as_if_all_were_read(people)


def test_a_series_is_not_forgotten_while_a_session_keeps_its_places(people):
    number = release(people)
    with people.connect(autocommit=False) as dump:
        dump.execute(f"LOCK TABLE {places(people)} IN ACCESS SHARE MODE")
        dbanon.publish(TABLE, name="people_b", settings=people.settings)
        people.execute("UPDATE people SET mood = 'wild' WHERE id = 9")
        dbanon.refresh(TABLE, settings=people.settings)
        for (one,) in people.execute("SELECT release_id FROM dbanon.release WHERE served"):
            dbanon.drop_release(one, settings=people.settings)
        with pytest.raises(ConfigError, match="of a withdrawn release could not be dropped yet"):
            dbanon.forget_series(number, settings=people.settings)
    assert number in dbanon.forget_series(number, settings=people.settings).releases
    left = "SELECT relname::text FROM pg_class WHERE relname ~ '^places_' AND relkind = 'r'"
    assert [] == people.execute(left)


@pytest.mark.exhaustive
def test_whether_all_rows_are_read_does_not_depend_on_sensitive_values(server, template):
    reasons = []
    for value in ("1", "id"):
        with server.database(template) as database:
            database.execute(f"{MAKE}; ALTER TABLE people ADD pay integer")
            database.execute(f"UPDATE people SET pay = {value}")
            rules = (*COLUMNS, ColumnRule("pay", Role.SENSITIVE))
            publish(database, Policy(**{**vars_of(POLICY), "columns": rules}))
            database.execute("DELETE FROM people WHERE id = 9")
            reasons.append(refresh(database).all_read)
    assert reasons[0] == reasons[1]


@pytest.mark.exhaustive
def test_a_proof_by_class_numbers_finds_what_one_by_published_values_does(people):
    people.execute(CHANGE)
    refresh(people)
    people.execute("DELETE FROM people WHERE id BETWEEN 300 AND 330")
    proved = refresh(people).release.checks
    counted = dbanon.check("anon.people", settings=people.settings)
    assert counted.results == proved.results


def test_the_rows_of_a_copy_are_counted_where_the_server_counts_no_changes(people):
    """It does so for statistics, which superusers can turn off."""
    off = sql.SQL("ALTER DATABASE {} SET track_counts = off").format(sql.Identifier(people.name))
    people.admin().execute(off)
    people.execute(CHANGE)
    assert refresh_as_if_all_were_read(people).changed


LEAVE_ONE = (
    "DELETE FROM {0} AS r USING (SELECT dbanon_class AS class, min(ctid) AS place"
    " FROM {0} WHERE (xmin = pg_current_xact_id()::xid) = %s GROUP BY dbanon_class LIMIT 1) AS c"
    " WHERE r.dbanon_class = c.class AND r.ctid <> c.place"
)
WRITE_AGAIN = (
    "WITH gone AS (DELETE FROM {0} WHERE ctid = (SELECT min(ctid) FROM {0}"
    " WHERE (xmin = pg_current_xact_id()::xid) = %s) RETURNING *)"
    " INSERT INTO {0} SELECT * FROM gone"
)


def changing(monkeypatch, statement, *, is_written):
    """Have each refresh change rows of a copy that it has written, or not, or not yet (None)."""
    extend = memory.extend

    def extended(session, publication, previous):
        made = extend(session, publication, previous) if is_written is not None else None
        copy = sql.Identifier("dbanon_data", f"release_{previous.data_id}")
        session.run(immutability.open_statements(copy))
        session.pg.execute(sql.SQL(statement).format(copy), (bool(is_written),))
        session.run(immutability.close_statements(copy))
        return made or extend(session, publication, previous)

    monkeypatch.setattr(memory, "extend", extended)


@pytest.mark.exhaustive
def test_a_class_of_too_few_rows_fails_the_proof_by_class_numbers(people, monkeypatch):
    changing(monkeypatch, LEAVE_ONE, is_written=True)
    people.execute(CHANGE)
    with pytest.raises(CheckFailed, match="k-anonymity requires 3, the worst class has 1"):
        refresh(people)


@pytest.mark.parametrize("is_written", exhaustive_after(1, [False, None]))
@pytest.mark.parametrize("statement", exhaustive_after(1, [WRITE_AGAIN, LEAVE_ONE]))
def test_no_other_row_of_a_copy_changes(people, monkeypatch, statement, is_written):
    changing(monkeypatch, statement, is_written=is_written)
    people.execute(CHANGE)
    match = "other rows of the copy|k-anonymity requires 3, the worst class has 1"
    with pytest.raises((CheckFailed, DatabaseError), match=match):
        refresh(people)


LOSE = """
ALTER TABLE dbanon_data.release_1 DISABLE TRIGGER released_table_is_immutable;
GRANT DELETE ON dbanon_data.release_1 TO CURRENT_USER;
DELETE FROM dbanon_data.release_1 AS r
 USING (SELECT dbanon_class AS class, min(ctid) AS place
          FROM dbanon_data.release_1 GROUP BY 1 ORDER BY 1 LIMIT 3) AS c
 WHERE r.dbanon_class = c.class AND r.ctid <> c.place;
REVOKE DELETE ON dbanon_data.release_1 FROM CURRENT_USER;
ALTER TABLE dbanon_data.release_1 ENABLE ALWAYS TRIGGER released_table_is_immutable
"""


@pytest.mark.exhaustive
def test_a_row_that_code_writes_in_a_savepoint_of_the_refresh_is_not_served(people):
    """The owner of the copy has an index over a function, which the refresh runs."""
    ((copy,),) = people.execute("SELECT 'dbanon_data.release_' || data_id FROM dbanon.release")
    people.execute(
        f"""
        CREATE FUNCTION public.spy(bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
        BEGIN
            IF current_query() ~ '[r]emoved AS' AND current_setting('spy.on', true) IS NULL THEN
                PERFORM set_config('spy.on', 'done', false);
                BEGIN
                    GRANT UPDATE ON {copy} TO CURRENT_USER;
                    UPDATE {copy} SET sex = 'X'
                     WHERE ctid = (SELECT min(ctid) FROM {copy} WHERE age @> 25);
                    REVOKE UPDATE ON {copy} FROM CURRENT_USER;
                EXCEPTION WHEN division_by_zero THEN NULL;
                END;
            END IF;
            RETURN 1;
        END$$;
        CREATE INDEX ON {copy} (public.spy(dbanon_class));
        ALTER FUNCTION public.spy VOLATILE;
        INSERT INTO people SELECT i, 38, 'F', 'sad' FROM generate_series(701, 740) AS i;
        DELETE FROM people WHERE age = 33
        """
    )
    with pytest.raises(DbanonError, match="nothing was published"):
        refresh(people)
    assert people.execute("SELECT count(*) FROM anon.people WHERE sex = 'X'") == [(0,)]


@pytest.mark.exhaustive
def test_the_proof_of_a_class_does_not_outlast_its_rows(people, obstacles):
    """A refresh proves what it writes, and relies on the seal for the rest."""
    people.execute(LOSE)
    with pytest.raises(CheckFailed, match="3 of 40 classes fail"):
        dbanon.check("anon.people", settings=people.settings)
    people.execute(CHANGE)
    assert refresh(people).changed
    assert ["it was changed after publication"] == obstacles
    assert dbanon.check("anon.people", settings=people.settings).passed


FORMER = {
    "none": "'[]'",
    "less": "jsonb_set(checks::jsonb, '{0,required}', '2')",
    "failed": """jsonb_set(checks::jsonb, '{0,verdict}', '"failed"')""",
    "another model": """jsonb_set(checks::jsonb, '{0,model}', '"p-sensitivity"')""",
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("former", FORMER)
def test_all_classes_are_proved_if_the_former_ones_have_no_proof_like_that(
    people, monkeypatch, former
):
    proved, prove = [], checks.prove
    listed = lambda *given, **more: proved.append(prove(*given, **more)) or proved[-1]  # noqa: E731
    monkeypatch.setattr(checks, "prove", listed)
    people.execute(CHANGE)
    assert refresh(people).changed
    people.execute(
        "INSERT INTO people SELECT i, 31, 'F', 'sad' FROM generate_series(801, 812) AS i"
    )
    people.execute(f"UPDATE dbanon.release SET checks = ({FORMER[former]})::json")
    assert refresh(people).changed
    assert [False, False, True] == [one.results[0].n_rows == 624 for one in proved]


@pytest.fixture(params=[3, 20_000])
def parts(request, monkeypatch):
    """Count rows by parts of two pages, or of one; return how often only parts were read."""
    monkeypatch.setattr(person_hashes, "_PARTS", request.param)
    monkeypatch.setattr(person_hashes, "_MOST_CHANGED", 10)
    found, template = [], person_hashes.template
    listed = lambda name, **slots: found.append(name) or template(name, **slots)  # noqa: E731
    monkeypatch.setattr(person_hashes, "template", listed)
    return lambda: found.count("persons.rows")


FULL = "INSERT INTO people SELECT i, 30, 'F', 'sad' FROM generate_series({}, {}) AS i"
IN_SAVEPOINTS = """
BEGIN; SAVEPOINT s; DELETE FROM people WHERE id < 9; ROLLBACK TO s;
SAVEPOINT t; DELETE FROM people WHERE id > 590; RELEASE t; COMMIT
"""
STEPS = {
    "deleted": ["DELETE FROM people WHERE id IN (1, 200, 600)"],
    "reused": ["DELETE FROM people WHERE id < 40", "VACUUM people", FULL.format(701, 720)],
    "moved": [
        "DELETE FROM people WHERE id < 9",
        "VACUUM people",
        "UPDATE people SET age = age WHERE id < 99",
    ],
    "in place": ["UPDATE people SET mood = 'wild' WHERE id % 50 = 0", "VACUUM people"],
    "shorter": ["DELETE FROM people WHERE id > 400", "VACUUM people", FULL.format(701, 703)],
    "longer": [FULL.format(701, 1200), "DELETE FROM people WHERE id IN (7, 1100)"],
    "rolled back": ["BEGIN; DELETE FROM people WHERE id < 300; ROLLBACK", CHANGE],
    "savepoints": [IN_SAVEPOINTS],
    "frozen": ["DELETE FROM people WHERE id = 300", "VACUUM FREEZE people"],
    "rewritten": ["DELETE FROM people WHERE id = 300", "VACUUM FULL people"],
}


@pytest.mark.exhaustive
@pytest.mark.pg(">= 14")
@pytest.mark.parametrize("steps", STEPS)
def test_only_parts_that_gained_or_lost_a_row_are_read(parts, people, steps):
    moves = "UPDATE people SET age = age + 1 WHERE id % 9 = 0"
    for changes in (STEPS[steps], ["DELETE FROM people WHERE id = 44"], [moves]):
        for statement in changes:
            people.execute(statement)
        expected, found = reading_all(people), refresh(people)
        assert (expected.changed, expected.growth) == (found.changed, found.growth)
        assert expected.release.loss == found.release.loss
        require_places(people)
    assert 2 + (steps != "rewritten") == parts()


@pytest.mark.pg(">= 14")
def test_parts_are_counted_if_an_earlier_version_has_not_stored_their_rows(people):
    people.execute("UPDATE dbanon.release SET source_state = source_state - 'pages'")
    people.execute("DELETE FROM people WHERE id = 9")
    assert refresh_as_if_all_were_read(people).all_read is None
    pages, *rows = json.loads(state(people)["pages"].translate({123: 91, 125: 93}))
    assert (1, 599) == (pages, sum(rows))


@pytest.mark.pg(">= 14")
@pytest.mark.parametrize("change", ["{}, {} - 1", "{} - 1, {} + 1"])
def test_rows_of_parts_that_do_not_add_up_refuse_the_refresh(people, change):
    pages, first, second, *others = state(people)["pages"].split(",")
    numbers = people.execute(f"SELECT {change.format(first, second)}")[0]
    text = ",".join([pages, *map(str, numbers), *others])
    changed = f"""jsonb_set(source_state, '{{pages}}', '"{text}"')"""
    people.execute(f"UPDATE dbanon.release SET source_state = {changed}")
    people.execute("DELETE FROM people WHERE id IN (9, 599)")
    with pytest.raises(DatabaseError, match="places of rows do not fit"):
        refresh(people)
