"""Whoever is gone from a table is shown no longer than its policy promises."""

from collections import Counter, defaultdict
from dataclasses import replace
from functools import partial

import pytest
from tables import make_patients, patients_policy

import dbanon
from dbanon.domain.policy import Role

K, L = 4, 2
LEAVER = 17
ROWS = "SELECT age::text, sex::text, born::text, weight::text, disease FROM anon.patients"


def publish_noted(database, *, noted=True):
    """Make a table of 120 people who are published, each with a note or without."""
    table = make_patients(database, rows=120)
    set_policy(database, table, noted=noted)
    dbanon.publish(table, settings=database.settings)


MAKE = {"noted": publish_noted, "plain": partial(publish_noted, noted=False)}


@pytest.fixture(params=MAKE)
def patients(copied, request):
    return copied(MAKE[request.param])


def set_policy(database, table="patients", *, noted=True, within="30d"):
    policy = patients_policy(dbanon.TableName.parse(f"{table}"), k=K, l=L, algorithm="mdav")
    rules = policy.columns
    if not noted:
        *rules, note = rules
        rules = (*rules, replace(note, role=Role.IDENTIFIER, allow=()))
    policy = replace(policy, columns=rules, erase_within=within)
    dbanon.set_policy(table, policy, settings=database.settings)


def is_noted(database):
    policy = dbanon.load_policy("patients", settings=database.settings)
    return any(r.column == "note" for r in policy.with_role(Role.INSENSITIVE))


def leave(database, *persons):
    database.execute("CREATE TABLE IF NOT EXISTS public.gone (LIKE public.patients)")
    database.execute(
        "WITH d AS (DELETE FROM public.patients WHERE id = ANY (%s) RETURNING *)"
        " INSERT INTO public.gone SELECT * FROM d",
        (list(persons),),
    )


def refresh(database, **options):
    (found,) = dbanon.refresh("patients", settings=database.settings, **options)
    return found


def wait(database, days):
    """Let days pass, for all that is remembered."""
    database.execute(
        "UPDATE dbanon.history_leaver SET missed_at = missed_at - make_interval(days => %s)",
        (days,),
    )


def remembered(database):
    return database.execute("SELECT sum(cardinality(persons))::int FROM dbanon.history_leaver")


def published(database):
    return Counter(database.execute(ROWS))


def is_safe(rows):
    """Tell whether what two releases differ by hides everybody in it."""
    found = defaultdict(Counter)
    for row, n in rows.items():
        found[row[:4]][row[4]] += n
    return all(values.total() >= K and len(values) >= L for values in found.values())


def test_somebody_who_is_gone_is_shown_until_the_deadline_and_no_longer(patients):
    before = published(patients)
    leave(patients, LEAVER)
    first = refresh(patients)
    assert (False, 1, 0) == (first.changed, first.growth.deferred, first.growth.left)
    wait(patients, 29)
    assert not refresh(patients).changed
    assert before == published(patients)
    wait(patients, 2)
    found = refresh(patients)
    assert (True, 0, 1, 1) == (
        found.changed,
        found.growth.deferred,
        found.growth.left,
        found.growth.overdue,
    )
    assert found.release.composition.holds
    assert is_safe(before - published(patients))
    assert not published(patients) - before
    assert 1 == found.growth.withdrawn
    if is_noted(patients):
        assert [] == patients.execute(f"SELECT FROM anon.patients WHERE note = 'note {LEAVER}'")
    assert [(None,)] == remembered(patients)


def test_the_worker_takes_them_out_though_nothing_else_has_changed(patients):
    leave(patients, LEAVER)
    newcomers = "SELECT id + 1000, age, sex, born, weight, disease, note FROM public.patients"
    patients.execute(f"INSERT INTO public.patients {newcomers}")
    assert refresh(patients).changed
    assert not refresh(patients, if_changed=True).changed
    wait(patients, 31)
    found = refresh(patients, if_changed=True)
    assert (True, 0, 1) == (found.changed, found.growth.deferred, found.growth.left)


def test_a_deadline_that_is_set_later_counts_from_when_they_were_missed(patients):
    noted = is_noted(patients)
    set_policy(patients, noted=noted, within=None)
    leave(patients, LEAVER)
    assert refresh(patients).growth.due is None
    wait(patients, 500)
    assert 1 == refresh(patients).growth.deferred
    set_policy(patients, noted=noted, within="365d")
    found = refresh(patients)
    assert (None, 0, 1) == (found.regrouped, found.growth.deferred, found.growth.left)


def test_somebody_who_comes_back_is_not_gone(patients):
    leave(patients, LEAVER)
    refresh(patients)
    wait(patients, 29)
    patients.execute("INSERT INTO public.patients SELECT * FROM public.gone")
    assert 0 == refresh(patients).growth.deferred
    assert [(None,)] == remembered(patients)
    leave(patients, LEAVER)
    refresh(patients)
    wait(patients, 2)
    assert 1 == refresh(patients).growth.deferred


def test_of_two_who_are_gone_the_one_who_comes_back_is_not_gone(patients):
    leave(patients, LEAVER, LEAVER + 1)
    refresh(patients)
    assert [(2,)] == remembered(patients)
    wait(patients, 29)
    patients.execute(
        "INSERT INTO public.patients SELECT * FROM public.gone WHERE id = %s", (LEAVER,)
    )
    refresh(patients)
    assert [(1,)] == remembered(patients)
    leave(patients, LEAVER)
    refresh(patients)
    wait(patients, 2)
    assert 1 == refresh(patients).growth.overdue


def test_a_refresh_forgets_nobody_who_is_gone_of_another_relation(patients):
    patients.execute(
        "CREATE TABLE public.others (LIKE public.patients INCLUDING ALL);"
        "INSERT INTO public.others SELECT * FROM public.patients"
    )
    set_policy(patients, "others", noted=is_noted(patients))
    dbanon.publish("others", settings=patients.settings)
    patients.execute("DELETE FROM public.others WHERE id = %s", (LEAVER,))
    dbanon.refresh("others", settings=patients.settings)
    leave(patients, LEAVER + 1)
    refresh(patients)
    assert [(2,)] == remembered(patients)


def test_a_moment_that_is_yet_to_come_puts_nothing_off(patients):
    leave(patients, LEAVER)
    refresh(patients)
    wait(patients, -3000)
    refresh(patients)
    wait(patients, 31)
    assert 0 == refresh(patients).growth.deferred


def test_a_dry_run_takes_nobody_out_and_remembers_nobody(patients):
    leave(patients, LEAVER)
    refresh(patients, dry_run=True)
    assert [(None,)] == remembered(patients)
    refresh(patients)
    wait(patients, 31)
    assert 1 == refresh(patients, dry_run=True).growth.overdue
    assert [(1,)] == remembered(patients)


@pytest.mark.parametrize("again", ["drop", "publish", "new series"])
def test_nobody_is_remembered_as_gone_whom_the_relation_shows_no_more(patients, again):
    leave(patients, LEAVER)
    release = refresh(patients).release
    if again == "drop":
        dbanon.drop_release(release.id, settings=patients.settings)
    elif again == "publish":
        dbanon.publish("patients", settings=patients.settings)
    else:
        refresh(patients, new_series=True, recipients_changed=True)
    assert [(None,)] == remembered(patients)
    if again != "drop":
        wait(patients, 31)
        assert 0 == refresh(patients).growth.deferred


def test_readers_learn_of_nobody_since_when_they_are_gone(patients):
    reader = patients.role("reader")
    dbanon.grant("anon.patients", [reader], settings=patients.settings)
    leave(patients, LEAVER)
    refresh(patients)
    asked = "SELECT has_table_privilege(%s, 'dbanon.history_leaver', 'SELECT')"
    assert [(False,)] == patients.execute(asked, (reader,))


def test_each_relation_shows_who_is_gone_until_its_own_deadline(patients):
    dbanon.publish("patients", name="second", grants=["public"], settings=patients.settings)
    leave(patients, LEAVER)
    dbanon.refresh("patients", settings=patients.settings)
    patients.execute(
        "UPDATE dbanon.history_leaver SET missed_at = missed_at - interval '31 days'"
        " WHERE relation_name = 'patients'"
    )
    found = dbanon.refresh("patients", settings=patients.settings)
    assert {"patients": (1, 0), "second": (0, 1)} == {
        one.release.relation.name: (one.growth.overdue, one.growth.deferred) for one in found
    }
