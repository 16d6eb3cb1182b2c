"""What a view reads with the rights of its publisher, though it names no such relation."""

from contextlib import suppress

import pytest
from selection import exhaustive_after

import dbanon
from dbanon.domain.policy import K_ANONYMITY, ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.table import TableName

VIEW, WARDS = TableName("clinic", "people"), TableName("public", "wards")
RULES = (
    ColumnRule("id", Role.IDENTIFIER),
    ColumnRule("age", Role.QUASI),
    ColumnRule("disease", Role.SENSITIVE),
)
MODELS = (ModelSpec(K_ANONYMITY, {"k": 5}),)
CLINIC = """
CREATE SCHEMA clinic;
GRANT USAGE ON SCHEMA clinic TO PUBLIC;
CREATE TABLE clinic.patient (id int PRIMARY KEY, age int, disease text);
INSERT INTO clinic.patient
SELECT i, i % 20, 'disease ' || i % 3 FROM generate_series(1, 100) AS i;
"""
SECRETS = """
CREATE TABLE public.wards (id int PRIMARY KEY, age int, disease text);
INSERT INTO public.wards SELECT i, i % 10, 'secret ' || i % 4 FROM generate_series(1, 100) AS i;
REVOKE ALL ON public.wards FROM PUBLIC;
ANALYZE public.wards
"""
READING = {
    "statistics": (
        "(SELECT most_common_vals::text FROM pg_stats"
        " WHERE tablename = 'wards' AND attname = 'disease')"
    ),
    "a table of others": "(SELECT w.disease FROM public.wards AS w WHERE w.id = p.id)",
    "a private table": (
        "table_to_xml(to_regclass('dbanon_data.' || 'release_1'), true, true, '')::text"
    ),
}


@pytest.mark.parametrize("how", exhaustive_after(1, READING))
def test_a_view_shows_nothing_that_neither_its_owner_nor_its_readers_may_read(database, how):
    """The statistics and the private tables of another table's release, in a column of a view."""
    if how == "a private table" and database.server.version > 15:
        pytest.skip("this server knows no XML")
    database.execute(SECRETS)
    wards = Policy(WARDS, RULES, MODELS, algorithm="mondrian")
    dbanon.set_policy(WARDS, wards, settings=database.settings)
    dbanon.publish(WARDS, settings=database.settings)
    stranger = database.connect_as(database.role("stranger"))
    reader = database.connect_as(database.role("reader"))
    database.execute(f"GRANT CREATE ON DATABASE {database.name} TO stranger")
    ((publisher,),) = database.execute("SELECT current_user")
    stranger.execute(CLINIC)
    # Older servers have no such views; pg_stats checks the reader in every view.
    option = " WITH (security_invoker)" if database.server.version >= 15 else ""
    stranger.execute(
        f"CREATE VIEW clinic.people{option} AS SELECT id, age,"
        f" CASE WHEN id < 50 THEN disease ELSE {READING[how]} END AS disease"
        " FROM clinic.patient AS p;"
        f'GRANT SELECT ON clinic.people, clinic.patient TO "{publisher}"'
    )
    policy = Policy(VIEW, RULES, MODELS, algorithm="mondrian", key=("id",))
    dbanon.set_policy(VIEW, policy, settings=database.settings)
    with suppress(dbanon.DbanonError):
        dbanon.publish(VIEW, settings=database.settings, grants=("reader",))
    names = "SELECT count(*) FROM pg_views WHERE schemaname = 'anon' AND viewname = 'people'"
    shown = reader.execute(names).fetchone()[0]
    seen = reader.execute("SELECT DISTINCT disease FROM anon.people").fetchall() if shown else []
    stranger.execute("DROP OWNED BY stranger CASCADE")
    assert not [text for (text,) in seen if text and "secret" in text]
