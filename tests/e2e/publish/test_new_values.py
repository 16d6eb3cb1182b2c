"""One new value does not stop what runs from cron, where the policy says so."""

from dataclasses import replace

import psycopg
import pytest
from tables import make_patients, patients_policy

import dbanon
from dbanon.actions.taxonomy import missing_values_sql


@pytest.fixture
def policy(database, tmp_path):
    """The policy of patients whose sex has a taxonomy of the values that there are."""
    table = make_patients(database)
    file = tmp_path / "sex.csv"
    file.write_text("f;*\nm;*\nF;*\nM;*\n")
    dbanon.import_taxonomy("sex", file, settings=database.settings)
    return patients_policy(table)


def rule_of(policy, **changes):
    rules = (replace(r, **changes) if r.column == "sex" else r for r in policy.columns)
    return replace(policy, columns=tuple(rules))


@pytest.mark.exhaustive
def test_new_values_are_published_as_other_by_a_refresh(database, policy):
    policy = rule_of(policy, taxonomy="sex", recoding="label", on_new_value="other")
    dbanon.set_policy(policy.table, policy, settings=database.settings)
    dbanon.publish(policy.table, settings=database.settings)
    database.execute("UPDATE public.patients SET sex = 'unheard of' WHERE id % 3 = 0")
    others = {"new_series": True, "recipients_changed": True}
    assert dbanon.refresh(policy.table, **others, settings=database.settings)[0].changed
    shown = {row[0] for row in database.execute("SELECT DISTINCT sex FROM anon.patients")}
    assert "unheard of" not in shown
    assert shown & {"other", "*"}
    assert dbanon.check("anon.patients", settings=database.settings).passed
    assert not [f for f in dbanon.doctor(settings=database.settings) if f.exit_code]


@pytest.mark.exhaustive
def test_the_query_lists_what_the_taxonomy_lacks(database, policy):
    policy = rule_of(policy, taxonomy="sex", recoding="label")
    dbanon.set_policy(policy.table, policy, settings=database.settings)
    dbanon.publish(policy.table, settings=database.settings)
    query = missing_values_sql("sex", "sex", table="public.patients")
    assert [] == database.execute(query)
    database.execute("UPDATE public.patients SET sex = '\"odd' WHERE id < 3")
    with pytest.raises(dbanon.DriftError, match="has no leaf for 1 distinct values"):
        dbanon.refresh(policy.table, settings=database.settings)
    ((value, rows),) = database.execute(query)
    assert '"odd' == value
    assert [(rows,)] == database.execute("SELECT count(*) FROM public.patients WHERE id < 3")


def test_odd_names_are_quoted_in_the_query(database):
    database.execute('CREATE TABLE public."a;b" ("it\'s" text)')
    database.execute("INSERT INTO public.\"a;b\" VALUES ('x')")
    query = missing_values_sql("no'ne", "it's", table='public."a;b"')
    assert [("x", 1)] == database.execute(query)
    with pytest.raises(psycopg.errors.UndefinedTable):
        database.execute(missing_values_sql("none", "x", table="public.nowhere"))


@pytest.mark.exhaustive
def test_a_new_code_is_published_where_its_beginning_says(database, tmp_path):
    table = make_patients(database)
    file = tmp_path / "zip.csv"
    lines = ["02138;021**;02***", "02140;021**;02***", "02501;025**;02***", "02502;025**;02***"]
    file.write_text("".join(f"{line};*\n" for line in lines))
    dbanon.import_taxonomy("zip", file, settings=database.settings)
    database.execute("UPDATE public.patients SET sex = (ARRAY['02138', '02501'])[1 + id % 2]")
    policy = rule_of(patients_policy(table), taxonomy="zip", on_new_value="derive", at_least=1)
    dbanon.set_policy(table, policy, settings=database.settings)
    dbanon.publish(table, settings=database.settings)
    database.execute("UPDATE public.patients SET sex = '02139' WHERE id % 4 = 0")
    others = {"new_series": True, "recipients_changed": True}
    assert dbanon.refresh(table, **others, settings=database.settings)[0].changed
    assert dbanon.check("anon.patients", settings=database.settings).passed
    shown = {row[0] for row in database.execute("SELECT DISTINCT sex FROM anon.patients")}
    assert shown <= {"021**", "025**", "02***", "*"}
    database.execute("UPDATE public.patients SET sex = '77777' WHERE id = 1")
    with pytest.raises(dbanon.DriftError, match="names no branch that they surely belong to"):
        dbanon.refresh(table, settings=database.settings)
