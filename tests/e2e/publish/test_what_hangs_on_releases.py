"""Grants, comments, views of readers and their prepared statements outlive every way to refresh."""

import pytest
from data.schemas.clinic import POLICIES, make_clinic
from selection import exhaustive_after
from tables import patients_policy, publish_patients, serve_patients

import dbanon

RIGHTS = """
SELECT a.attname, coalesce(g.rolname, 'public'), x.privilege_type, x.is_grantable
  FROM pg_attribute AS a
  JOIN pg_class AS c ON c.oid = a.attrelid
 CROSS JOIN LATERAL (SELECT * FROM aclexplode(a.attacl)
                      UNION ALL
                     SELECT * FROM aclexplode(c.relacl) WHERE a.attnum = 1) AS x
  LEFT JOIN pg_roles AS g ON g.oid = x.grantee
 WHERE a.attrelid = %s::regclass
 ORDER BY 1, 2, 3
"""


def change(database):
    """Let people come, and all of one class leave."""
    database.execute(
        "INSERT INTO public.patients"
        " SELECT 1000 + id, age, sex, born, weight, disease, note FROM public.patients"
        "  WHERE id < 20;"
        "DELETE FROM public.patients WHERE id BETWEEN 30 AND 40"
    )


def extend(database):
    change(database)
    (done,) = dbanon.refresh("patients", settings=database.settings)
    assert (True, None) == (done.growth is not None, done.regrouped)


def regroup(database):
    change(database)
    policy = patients_policy(dbanon.TableName("public", "patients"), k=5, l=2)
    dbanon.set_policy("patients", policy, settings=database.settings)
    (done,) = dbanon.refresh("patients", settings=database.settings)
    assert done.changed
    assert done.growth is None


def share(database):
    dbanon.publish("patients", name="others", algorithm="mdav", settings=database.settings)
    change(database)
    release = dbanon.publish("patients", k=6, settings=database.settings)
    assert release.sharing is not None


def group_anew(database):
    (done,) = dbanon.refresh("patients", new_series=True, settings=database.settings)
    assert (True, None) == (done.changed, done.growth)


def refresh(database):
    change(database)
    (done,) = dbanon.refresh("patients", settings=database.settings)
    assert done.changed


def ask_a_worker(database):
    change(database)
    database.execute("SELECT dbanon.enqueue('public.patients')")
    done = []
    dbanon.work(once=True, on_job=done.append, settings=database.settings)
    assert ["refreshed"] == [str(one.outcome.result) for one in done]


def change_kind(database):
    dbanon.publish("patients", kind="view", settings=database.settings)


WAYS = {
    "class by class": (publish_patients, extend),
    "by another policy": (publish_patients, regroup),
    "of shared classes": (publish_patients, share),
    "as a new series": (publish_patients, group_anew),
    "live": (serve_patients, refresh),
    "by a worker": (publish_patients, ask_a_worker),
    "live by a worker": (serve_patients, ask_a_worker),
    "as another kind": (publish_patients, change_kind),
}


def hang(database, relation, column, *, name):
    """Let an analyst, and somebody whom the steward lets grant on, use a relation by all means."""
    analyst, other = database.role(f"analyst_{name}"), database.role(f"other_{name}")
    dbanon.grant(relation, [analyst], settings=database.settings)
    schema, _, _ = relation.partition(".")
    database.execute(
        f"GRANT USAGE ON SCHEMA {schema} TO {other};"
        f"GRANT SELECT ({column}) ON {relation} TO {other} WITH GRANT OPTION;"
        f"CREATE VIEW public.mine AS SELECT {column} AS own FROM {relation};"
        "COMMENT ON VIEW public.mine IS 'what I need';"
        "CREATE VIEW public.counted AS SELECT count(own) AS n FROM public.mine;"
        f"COMMENT ON COLUMN {relation}.{column} IS 'as the wiki has it'"
    )
    reader = database.connect_as(analyst)
    reader.execute("SET plan_cache_mode = force_generic_plan")
    reader.execute(f"PREPARE mine AS SELECT count({column}), min({column}::text) FROM {relation}")
    reader.execute("EXECUTE mine")
    return reader


def holds(database, relation, column, reader):
    """Look whether all that hangs on a relation shows what it does."""
    found = database.execute(f"SELECT count({column}), min({column}::text) FROM {relation}")
    assert found == reader.execute("EXECUTE mine").fetchall()
    assert [(found[0][0],)] == database.execute("SELECT n FROM public.counted")
    columns = dbanon.describe(relation, settings=database.settings).columns
    words = {one.name: one.words for one in columns}
    assert "as the wiki has it" == words.pop(column)
    assert all("published as" in text for text in words.values())
    assert [("what I need",)] == database.execute("SELECT obj_description('public.mine'::regclass)")
    assert dbanon.check(relation, settings=database.settings).passed


@pytest.mark.parametrize("way", exhaustive_after(1, WAYS))
def test_what_hangs_on_a_relation_outlives_a_refresh(copied, way):
    make, again = WAYS[way]
    database = copied(make)
    reader = hang(database, "anon.patients", "disease", name=way.replace(" ", "_"))
    before = database.execute(RIGHTS, ("anon.patients",))
    again(database)
    assert before == database.execute(RIGHTS, ("anon.patients",))
    holds(database, "anon.patients", "disease", reader)


@pytest.mark.exhaustive
def test_what_hangs_on_a_dataset_outlives_a_refresh(database, tmp_path):
    file = make_clinic(database, tmp_path)
    dbanon.publish_dataset(file, k=5, settings=database.settings)
    reader = hang(database, "anon.persons", "sex", name="of_dataset")
    before = database.execute(RIGHTS, ("anon.persons",))
    done = dbanon.refresh("persons", new_series=True, settings=database.settings)
    assert [True] * len(POLICIES) == [one.changed for one in done]
    assert before == database.execute(RIGHTS, ("anon.persons",))
    holds(database, "anon.persons", "sex", reader)
