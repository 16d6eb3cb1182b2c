"""A live view shows no group that fails, whatever is written to its source."""

import threading
from dataclasses import replace

import psycopg
import pytest
from tables import make_patients, patients_policy, serve_patients

import dbanon
from dbanon.actions.releases.ledger import count_hidden
from dbanon.domain.policy import ColumnRule, Role
from dbanon.settings import Settings

CLASSES = """
SELECT min(members), min(diversity) FROM (
    SELECT count(*) AS members,
           count(DISTINCT disease) + (count(*) > count(disease))::int AS diversity
      FROM anon.patients GROUP BY age, sex, born, weight) AS c
"""
MEMBERS = """
SELECT r.k1 FROM dbanon_data.rows_{0} AS r JOIN dbanon_data.groups_{0} AS g USING (group_id)
 WHERE g.group_id = 0 ORDER BY r.k1
"""


@pytest.fixture
def live(copied):
    """Patients served as a live view with k = 5 and l = 3."""
    return copied(serve_patients)


def members(database):
    """Return the keys of one group of the served release."""
    (release,) = [r for r in dbanon.list_releases(settings=database.settings) if r.served]
    return [row[0] for row in database.execute(MEMBERS.format(release.data_id))]


def shown(database):
    return database.execute("SELECT count(*) FROM anon.patients")[0][0]


def assert_holds(database):
    smallest, diversity = database.execute(CLASSES)[0]
    assert smallest is None or (smallest >= 5 and diversity >= 3)


def test_a_group_below_k_is_hidden_with_the_statement_that_broke_it(live):
    group = members(live)
    live.execute("DELETE FROM public.patients WHERE id = ANY (%s)", (group[4:],))
    assert shown(live) == 200 - len(group)
    assert_holds(live)


def test_it_is_hidden_within_the_transaction_too(live):
    group = members(live)
    with live.connect(autocommit=False) as writer:
        writer.execute("DELETE FROM public.patients WHERE id = ANY (%s)", (group[4:],))
        found = writer.execute("SELECT count(*) FROM anon.patients").fetchone()
        assert found == (200 - len(group),)
        writer.rollback()
    assert shown(live) == 200


def test_a_group_that_loses_its_diversity_is_hidden(live):
    group = members(live)
    live.execute("UPDATE public.patients SET disease = 'flu' WHERE id = ANY (%s)", (group,))
    assert shown(live) == 200 - len(group)


def test_a_row_whose_quasi_identifier_changed_is_not_shown_under_its_old_group(live):
    group = members(live)
    live.execute("UPDATE public.patients SET age = 17 WHERE id = %s", (group[0],))
    found = live.execute(
        "SELECT count(*) FROM anon.patients WHERE note = %s", (f"note {group[0]}",)
    )
    assert found == [(0,)]
    assert_holds(live)


def test_a_row_that_becomes_another_person_is_not_shown(database):
    table = make_patients(database)
    database.execute(
        "ALTER TABLE public.patients ADD person int; UPDATE public.patients SET person = id"
    )
    database.execute("ALTER TABLE public.patients ALTER person SET NOT NULL")
    policy = patients_policy(table, subject="person")
    columns = (*policy.columns, ColumnRule("person", Role.IDENTIFIER))
    policy = replace(policy, columns=columns)
    dbanon.set_policy(table, policy, settings=database.settings)
    dbanon.publish(table, kind="view", settings=database.settings)
    group = members(database)
    database.execute("UPDATE public.patients SET person = -1 WHERE id = ANY (%s)", (group,))
    assert shown(database) == 200 - len(group)


def test_a_change_of_an_insensitive_column_is_shown_at_once(live):
    group = members(live)
    live.execute("UPDATE public.patients SET note = 'new' WHERE id = %s", (group[0],))
    assert live.execute("SELECT count(*) FROM anon.patients WHERE note = 'new'") == [(1,)]
    assert shown(live) == 200


def test_new_rows_wait_for_the_next_release(live):
    live.execute("INSERT INTO public.patients (id, age) VALUES (1000, 50)")
    assert shown(live) == 200
    dbanon.refresh("patients", settings=live.settings)
    assert shown(live) == 201


def test_a_refresh_keeps_the_guards_that_stand(live):
    armed = "SELECT oid, tgname FROM pg_trigger WHERE tgname LIKE 'dbanon_guard%' ORDER BY tgname"
    before = live.execute(armed)
    dbanon.refresh("patients", settings=live.settings)
    assert before
    assert before == live.execute(armed)


def test_a_person_who_takes_over_a_key_is_not_shown_under_its_group(live):
    group = members(live)
    live.execute("DELETE FROM public.patients WHERE id = %s", (group[0],))
    live.execute("INSERT INTO public.patients (id, note) VALUES (%s, 'impostor')", (group[0],))
    assert live.execute("SELECT count(*) FROM anon.patients WHERE note = 'impostor'") == [(0,)]


@pytest.mark.parametrize(
    "statement",
    [
        "TRUNCATE public.patients",
        "DELETE FROM public.patients",
        "UPDATE public.patients SET id = id + 10000",
    ],
)
def test_whatever_empties_the_groups_empties_the_view(live, statement):
    live.execute(statement)
    assert shown(live) == 0


@pytest.mark.pg(">= 15")
def test_merge_is_guarded(live):
    group = members(live)
    live.execute(
        "MERGE INTO public.patients AS p USING unnest(%s::int[]) AS x (id) ON p.id = x.id"
        " WHEN MATCHED THEN DELETE",
        (group,),
    )
    assert shown(live) == 200 - len(group)


def test_a_cascade_is_guarded(live):
    live.execute(
        "CREATE TABLE public.parent (id int PRIMARY KEY);"
        "INSERT INTO public.parent SELECT id FROM public.patients;"
        "ALTER TABLE public.patients ADD FOREIGN KEY (id) REFERENCES public.parent"
        " ON DELETE CASCADE"
    )
    group = members(live)
    live.execute("DELETE FROM public.parent WHERE id = ANY (%s)", (group[1:],))
    assert shown(live) == 200 - len(group)


def test_replicated_changes_are_guarded(live):
    group = members(live)
    admin = live.admin()
    admin.execute("SET session_replication_role = replica")
    admin.execute("DELETE FROM public.patients WHERE id = ANY (%s)", (group[1:],))
    assert shown(live) == 200 - len(group)


def test_a_writer_needs_no_right_on_the_release(live):
    writer = live.role("writer_only")
    live.execute(f"GRANT SELECT, DELETE ON public.patients TO {writer}")
    group = members(live)
    connection = live.connect_as(writer)
    connection.execute("DELETE FROM public.patients WHERE id = ANY (%s)", (group[1:],))
    assert shown(live) == 200 - len(group)


def slack(database, room):
    """Delete members of one group until ``room`` more may go; return those that are left."""
    group = members(database)
    surplus = group[5 + room :]
    database.execute("DELETE FROM public.patients WHERE id = ANY (%s)", (surplus,))
    return group[: 5 + room]


@pytest.mark.parametrize("isolation", list(psycopg.IsolationLevel)[1:], ids=lambda i: i.name)
def test_two_writers_cannot_each_take_a_member_of_a_group_of_k_plus_1(live, isolation):
    # Five diseases over six rows may already be too few, so l is out of the way here.
    policy = patients_policy(dbanon.TableName("public", "patients"), l=None)
    dbanon.set_policy("patients", policy, settings=live.settings)
    dbanon.publish("patients", kind="view", algorithm="mondrian", settings=live.settings)
    left = slack(live, 1)
    assert len(left) == 6
    first, second = live.connect(autocommit=False), live.connect(autocommit=False)
    for connection in (first, second):
        connection.isolation_level = isolation
        connection.execute("SELECT count(*) FROM public.patients")
    first.execute("DELETE FROM public.patients WHERE id = %s", (left[0],))
    failures = []

    def delete_another():
        try:
            second.execute("DELETE FROM public.patients WHERE id = %s", (left[1],))
            second.commit()
        except psycopg.errors.SerializationFailure as error:
            failures.append(error)
            second.rollback()

    thread = threading.Thread(target=delete_another)
    thread.start()
    thread.join(timeout=0.3)
    assert thread.is_alive(), "the second writer must wait for the first"
    first.commit()
    thread.join(timeout=10)
    assert not thread.is_alive()
    assert_holds_k(live)
    assert bool(failures) == (isolation is not psycopg.IsolationLevel.READ_COMMITTED)


@pytest.mark.parametrize("statement", ["DELETE FROM public.patients", "TRUNCATE public.patients"])
@pytest.mark.parametrize("isolation", list(psycopg.IsolationLevel)[2:], ids=lambda i: i.name)
def test_a_writer_whose_snapshot_is_older_than_the_release_must_try_again(
    live, isolation, statement
):
    writer = live.connect(autocommit=False)
    writer.isolation_level = isolation
    writer.execute("SELECT 1")
    dbanon.refresh("patients", settings=live.settings)
    with pytest.raises(psycopg.errors.SerializationFailure):
        writer.execute(statement)
    writer.rollback()
    assert shown(live) == 200


def assert_holds_k(database):
    assert database.execute(CLASSES)[0][0] >= 5


def test_the_guards_go_with_the_release(live):
    (release,) = [r for r in dbanon.list_releases(settings=live.settings) if r.served]
    dbanon.drop_release(release.id, settings=live.settings)
    armed = live.execute(
        "SELECT count(*) FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid"
        " WHERE t.tgname LIKE 'dbanon%%' AND c.relnamespace <> 'dbanon'::regnamespace",
        (),
    )
    assert armed == [(0,)]
    left = live.execute(
        "SELECT count(*) FROM pg_proc WHERE pronamespace = 'dbanon_data'::regnamespace"
    )
    assert left == [(0,)]


def test_doctor_tells_of_a_disabled_guard(live):
    live.execute("ALTER TABLE public.patients DISABLE TRIGGER ALL")
    findings = dbanon.doctor(settings=live.settings)
    assert any("guard" in finding.message for finding in findings)


def test_only_the_owner_of_the_source_can_publish_a_live_view(database):
    table = make_patients(database)
    publisher = database.role("publisher_not_owner")
    database.execute(f"GRANT SELECT ON public.patients TO {publisher}")
    database.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA dbanon TO {publisher}")
    database.execute(f"GRANT USAGE ON SCHEMA dbanon TO {publisher}")
    dbanon.set_policy(table, patients_policy(table), settings=database.settings)
    settings = dbanon.Settings(dsn=database.dsn_as(publisher))
    with pytest.raises(dbanon.NotPermitted):
        dbanon.publish(table, kind="view", settings=settings)


def test_doctor_and_the_ledger_say_how_much_a_live_view_hides(live):
    assert dbanon.doctor(settings=live.settings)[-1].level == "ok"
    (release,) = dbanon.list_releases(settings=live.settings)
    assert count_hidden([release], settings=live.settings)[release.id].total == 0
    group = members(live)
    live.execute("UPDATE public.patients SET disease = 'flu' WHERE id = ANY (%s)", (group,))
    moved = live.execute("SELECT min(id) FROM public.patients WHERE id <> ALL (%s)", (group,))
    live.execute("UPDATE public.patients SET age = 17 WHERE id = %s", moved[0])
    hidden = 200 - shown(live)
    (finding,) = [f for f in dbanon.doctor(settings=live.settings) if f.level == "warning"]
    assert f"it hides {hidden} of the 200 rows that were published" in finding.message
    assert finding.hint == "dbanon refresh public.patients"
    counted = count_hidden([release], settings=live.settings)[release.id]
    assert (hidden, 1) == (counted.total, counted.gone)
    dbanon.refresh("patients", settings=live.settings)
    releases = dbanon.list_releases(settings=live.settings)
    assert [0] == [one.total for one in count_hidden(releases, settings=live.settings).values()]


def test_whoever_reads_the_ledger_alone_lists_releases_without_what_they_hide(live):
    auditor = live.role("ledger_auditor")
    live.execute(f"GRANT USAGE ON SCHEMA dbanon TO {auditor}")
    live.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA dbanon TO {auditor}")
    settings = Settings(dsn=live.dsn_as(auditor))
    assert {} == count_hidden(dbanon.list_releases(settings=settings), settings=settings)
