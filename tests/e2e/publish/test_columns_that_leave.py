"""A column that leaves a policy leaves the release, whatever others have made of the release."""

from dataclasses import replace

import psycopg
import pytest
from selection import each_once
from tables import patients_policy, publish_patients, serve_patients

import dbanon
from dbanon.domain.outcomes import Stages
from dbanon.domain.policy import Role

PATIENTS = dbanon.TableName("public", "patients")
COLUMNS = (
    "SELECT string_agg(attname, ' ' ORDER BY attnum) FROM pg_attribute"
    " WHERE attrelid = 'anon.patients'::regclass AND attnum > 0"
)
RETIRED = "SELECT relname FROM pg_class WHERE relname ~ '^retired_' AND relkind IN ('r', 'v')"
MAKERS = {"table": publish_patients, "view": serve_patients}


def leave_out_notes(database):
    policy = patients_policy(PATIENTS)
    rules = [replace(r, role=Role.IDENTIFIER) if r.column == "note" else r for r in policy.columns]
    dbanon.set_policy("patients", replace(policy, columns=tuple(rules)), settings=database.settings)


def publish(database, stages):
    kind = dbanon.list_releases(settings=database.settings)[0].kind
    dbanon.publish("patients", kind=kind, settings=database.settings, stages=stages)


def refresh(database, stages):
    dbanon.refresh("patients", settings=database.settings, stages=stages)


@pytest.mark.parametrize(("kind", "again"), each_once(MAKERS, [publish, refresh]))
def test_a_view_of_an_idle_session_keeps_no_column_in_a_release(copied, kind, again):
    database = copied(MAKERS[kind])
    analyst = database.role("analyst_idle")
    dbanon.grant("anon.patients", [analyst], settings=database.settings)
    idle = database.connect_as(analyst)
    idle.execute("CREATE TEMPORARY VIEW mine AS SELECT note FROM anon.patients")
    assert [(200,)] == idle.execute("SELECT count(note) FROM mine").fetchall()
    leave_out_notes(database)
    notes = []
    again(database, Stages(on_note=notes.append))
    assert [("age sex born weight disease",)] == database.execute(COLUMNS)
    assert [(200,)] == idle.execute("SELECT count(*) FROM anon.patients").fetchall()
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        idle.execute("SELECT count(note) FROM mine")
    told = "other relations depend on anon.patients as it was: they show nothing from now on"
    assert [True] == [note.startswith(told) for note in notes if "depend on" in note]
    ((left,),) = database.execute(RETIRED)
    found = [f for f in dbanon.doctor(settings=database.settings) if f.level != "ok"]
    assert [f"DROP VIEW dbanon_data.{left} CASCADE, with what others made of it"] == [
        f.hint for f in found
    ]
    idle.close()
    dbanon.publish("patients", kind=kind, settings=database.settings)
    assert [] == database.execute(RETIRED)
    assert [] == [f for f in dbanon.doctor(settings=database.settings) if f.level != "ok"]


@pytest.mark.exhaustive
def test_what_the_publisher_made_of_a_release_shows_nothing_of_the_former_columns(copied):
    database = copied(publish_patients)
    database.execute(
        "CREATE VIEW public.mine AS SELECT note FROM anon.patients;"
        "CREATE VIEW public.counted AS SELECT count(note) AS n FROM public.mine"
    )
    leave_out_notes(database)
    publish(database, Stages())
    assert [(0,)] == database.execute("SELECT n FROM public.counted")
    assert dbanon.check("anon.patients", settings=database.settings).passed
    refresh(database, Stages())
    database.execute("DROP VIEW public.mine CASCADE")
    dbanon.publish("patients", settings=database.settings)
    assert [] == database.execute(RETIRED)


def test_a_right_that_is_taken_away_meanwhile_does_not_come_back(copied, monkeypatch):
    from dbanon.db.releases import relations

    database = copied(publish_patients)
    analyst = database.role("analyst_gone")
    dbanon.grant("anon.patients", [analyst], settings=database.settings)
    database.execute("CREATE VIEW public.mine AS SELECT note FROM anon.patients")
    leave_out_notes(database)
    real, taken = relations.set_aside, []

    def set_aside(*args, **options):
        if not taken:
            taken.append(database.connect().execute(f"REVOKE ALL ON anon.patients FROM {analyst}"))
        return real(*args, **options)

    monkeypatch.setattr(relations, "set_aside", set_aside)
    with pytest.raises(dbanon.DatabaseError, match=r"rights on anon\.patients were changed"):
        publish(database, Stages())
    publish(database, Stages())
    (may,) = database.execute(
        "SELECT has_table_privilege(%s, 'anon.patients', 'SELECT')", (analyst,)
    )
    assert (False,) == may
