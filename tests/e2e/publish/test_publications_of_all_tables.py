"""A publication FOR ALL TABLES, as Debezium makes it, carries the private tables too."""

import re
from dataclasses import replace

import pytest
from selection import exhaustive_after
from tables import make_patients, patients_policy

import dbanon
from dbanon.actions.doctor import Level

EVERYTHING = "CREATE PUBLICATION everything FOR ALL TABLES"
UNIDENTIFIED = """
SELECT format('%s.%s', t.schemaname, t.tablename)
  FROM pg_publication_tables AS t
  JOIN pg_namespace AS n ON n.nspname = t.schemaname
  JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = t.tablename
 WHERE t.schemaname IN ('dbanon', 'dbanon_data', 'anon')
   AND c.relreplident <> 'f'
   AND NOT (c.relreplident = 'd'
            AND EXISTS (SELECT FROM pg_index AS i WHERE i.indrelid = c.oid AND i.indisprimary))
 ORDER BY 1
"""
PARTED = """
CREATE TABLE public.parted (LIKE public.patients, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE public.low PARTITION OF public.parted FOR VALUES FROM (MINVALUE) TO (100);
CREATE TABLE public.high PARTITION OF public.parted FOR VALUES FROM (100) TO (1000);
INSERT INTO public.parted SELECT * FROM public.patients
"""


@pytest.fixture
def patients(database):
    """The patients, in a database of which every table is published."""
    table = make_patients(database)
    database.admin().execute(EVERYTHING)
    dbanon.set_policy(table, patients_policy(table), settings=database.settings)
    return database


def publish(database, table="patients", **options):
    return dbanon.publish(table, settings=database.settings, **options)


def change(database, **changes):
    policy = dbanon.load_policy("patients", settings=database.settings)
    dbanon.set_policy(policy.table, replace(policy, **changes), settings=database.settings)


def rows_of(database, relation="anon.patients"):
    return database.execute(f"SELECT count(*) FROM {relation}")[0][0]


def drop(database, release, relation="anon.patients"):
    dbanon.drop_release(release.id, settings=database.settings)
    assert [(None,)] == database.execute("SELECT to_regclass(%s)", (relation,))


def leave_and_come(database, table="public.patients"):
    """Let persons leave classes, and others come."""
    database.execute(
        f"INSERT INTO {table} SELECT id + 500, age, sex, born, weight, disease, note"
        f" FROM {table} WHERE id < 20"
    )
    database.execute(f"DELETE FROM {table} WHERE id % 10 = 3")


@pytest.mark.exhaustive
def test_a_copy_is_published_again_refreshed_and_dropped(patients):
    analyst = patients.role("everything_analyst")
    publish(patients, grants=[analyst])
    assert 200 == rows_of(patients)
    publish(patients, new_series=True)
    leave_and_come(patients)
    dbanon.refresh("patients", settings=patients.settings)
    patients.execute("DELETE FROM public.patients WHERE id < 100 AND age < 60")
    (refreshed,) = dbanon.refresh("patients", settings=patients.settings)
    assert refreshed.growth.withdrawn
    assert 0 < rows_of(patients) < 220
    assert [] == patients.execute(UNIDENTIFIED)
    dbanon.revoke("patients", [analyst], settings=patients.settings)
    drop(patients, refreshed.release)


@pytest.mark.parametrize("table", exhaustive_after(1, ["patients", "parted"]))
def test_the_source_of_a_live_view_is_written_and_the_view_published_again(patients, table):
    patients.execute(PARTED)
    if table == "parted":
        name = dbanon.TableName("public", table)
        dbanon.set_policy(name, patients_policy(name), settings=patients.settings)
    publish(patients, table, kind="view")
    leave_and_come(patients, f"public.{table}")
    patients.execute(f"UPDATE public.{table} SET age = age + 30, disease = 'flu' WHERE id % 10 = 4")
    assert [] == patients.execute(UNIDENTIFIED)
    release = publish(patients, table, kind="view", new_series=True)
    assert 0 < rows_of(patients, f"anon.{table}")
    patients.execute(f"TRUNCATE public.{table}")
    assert 0 == rows_of(patients, f"anon.{table}")
    drop(patients, release, f"anon.{table}")


@pytest.mark.exhaustive
def test_sensitive_values_of_buckets_are_filled_again_and_withdrawn(patients):
    meant = ("anatomy: presence is no secret here",)
    policy = patients_policy(dbanon.TableName("public", "patients"), k=None, anatomy=True)
    dbanon.set_policy(policy.table, replace(policy, allow=meant), settings=patients.settings)
    publish(patients)
    release = publish(patients, new_series=True)
    assert 200 == patients.execute("SELECT sum(count) FROM anon.patients_sensitive")[0][0]
    assert [] == patients.execute(UNIDENTIFIED)
    drop(patients, release)


@pytest.mark.exhaustive
def test_labels_and_counts_are_filled_again_and_withdrawn(patients):
    policy = patients_policy(dbanon.TableName("public", "patients"), labels=True, budget=1.0)
    orders = {"sex": ("F", "M")}
    rules = tuple(replace(r, order=orders.get(r.column, r.order)) for r in policy.columns)
    dbanon.set_policy(policy.table, replace(policy, columns=rules), settings=patients.settings)
    publish(patients)
    for _ in range(2):
        dbanon.count("anon.patients", by=["sex"], epsilon=0.4, settings=patients.settings)
    release = publish(patients, new_series=True)
    assert 3 == rows_of(patients, "anon.patients_counts")
    assert [] == patients.execute(UNIDENTIFIED)
    change(patients, labels=False)
    release = publish(patients, new_series=True)
    drop(patients, release)


PRIVATE = {
    "all tables": "FOR ALL TABLES",
    "one table": "FOR TABLE dbanon_data.release_1",
    "metadata": "FOR TABLE dbanon.policy, public.patients",
}
COUNTED = {"all tables": r"[1-9]\d+", "one table": "1", "metadata": "1"}


def warned(database):
    found = dbanon.doctor(settings=database.settings)
    return [f for f in found if f.subject == "publications" and f.level is Level.WARNING]


@pytest.mark.exhaustive
@pytest.mark.parametrize("tables", PRIVATE)
def test_doctor_names_publications_that_include_private_tables(patients, tables):
    publish(patients)
    admin = patients.admin()
    admin.execute("DROP PUBLICATION everything")
    admin.execute("CREATE PUBLICATION harmless FOR TABLE public.patients")
    assert [] == warned(patients)
    admin.execute(f'CREATE PUBLICATION "to all" {PRIVATE[tables]}')
    (finding,) = warned(patients)
    assert re.fullmatch(
        f"publication to all sends {COUNTED[tables]} private tables? to its subscribers",
        finding.message,
    )


@pytest.mark.pg(">= 15")
def test_doctor_names_publications_of_a_private_schema(patients):
    publish(patients)
    admin = patients.admin()
    admin.execute("DROP PUBLICATION everything")
    admin.execute("CREATE PUBLICATION data FOR TABLES IN SCHEMA dbanon_data")
    (finding,) = warned(patients)
    assert "publication data sends 2 private tables to its subscribers" == finding.message
