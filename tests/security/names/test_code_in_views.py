"""Code of others that no function call in a view names: types check what is read as one."""

import pytest

import dbanon
from dbanon.db import transfer
from dbanon.domain.policy import K_ANONYMITY, ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.table import TableName

VIEW = TableName("clinic", "people")
RULES = (
    ColumnRule("id", Role.IDENTIFIER),
    ColumnRule("age", Role.QUASI),
    ColumnRule("disease", Role.SENSITIVE),
)
POLICY = Policy(VIEW, RULES, (ModelSpec(K_ANONYMITY, {"k": 5}),), algorithm="mondrian", key=("id",))
LOCK = 4711
CLINIC = f"""
CREATE SCHEMA clinic;
GRANT USAGE ON SCHEMA clinic TO PUBLIC;
CREATE TABLE clinic.patient (id int PRIMARY KEY, age numeric, disease text);
INSERT INTO clinic.patient
SELECT i, i % 20, 'disease ' || i % 3 FROM generate_series(1, 100) AS i;
-- A lock of a session needs no right to write and no relation, and everybody sees its number.
CREATE FUNCTION clinic.spy(text) RETURNS boolean STABLE LANGUAGE plpgsql AS $$
BEGIN
    IF current_user <> 'stranger' THEN
        PERFORM pg_advisory_lock_shared({LOCK}, (SELECT count(*)::int FROM dbanon.policy));
    END IF;
    RETURN true;
END $$;
CREATE DOMAIN clinic.inner_text AS text CHECK (clinic.spy(VALUE));
CREATE DOMAIN clinic.outer_text AS clinic.inner_text;
CREATE TYPE clinic.pair AS (v clinic.inner_text);
CREATE TYPE clinic.span AS RANGE (SUBTYPE = clinic.inner_text, SUBTYPE_OPCLASS = text_ops);
CREATE VIEW clinic.trap AS SELECT clinic.spy('x');
GRANT SELECT ON clinic.trap TO PUBLIC;
"""
SPYING = {
    "a domain over a domain": "disease::clinic.outer_text",
    "an array of a domain": "('{' || id || '}')::clinic.inner_text[]",
    "a row from a text": "('(' || id || ')')::clinic.pair",
    "a row from a document": "jsonb_populate_record(NULL::clinic.pair, jsonb_build_object('v', 1))",
    "a range of a domain": "('[' || id || ',]')::clinic.span",
    "a type by its number": "domain_in('', to_regtype('clinic.inner_' || 'text'), 1) IS NULL",
    "a type by its name": "pg_input_is_valid(disease, 'clinic.' || 'inner_text')",
    "a view by its name": "table_to_xml(to_regclass('clinic.' || 'trap'), true, true, '')",
}
NEEDS = {"a type by its name": (16, 99), "a view by its name": (13, 15)}  # 18 here has no libxml


@pytest.fixture
def stranger(database):
    """A role that owns the view that is published, and all below it."""
    name = database.role("stranger")
    database.execute(f"GRANT CREATE ON DATABASE {database.name} TO {name}")
    connection = database.connect_as(name)
    connection.execute(CLINIC)
    yield connection
    connection.close()
    admin = database.admin()
    admin.execute("DROP SCHEMA IF EXISTS anon CASCADE; DROP OWNED BY stranger CASCADE")


def show(stranger, disease):
    stranger.execute(
        f"CREATE VIEW clinic.people AS SELECT id, age + length({disease}) * 0 AS age,"
        f" left({disease}, 0) || disease AS disease FROM clinic.patient"
    )
    stranger.execute("GRANT SELECT ON clinic.people TO PUBLIC")


@pytest.mark.parametrize("how", SPYING)
def test_what_is_published_runs_no_check_of_a_stranger_s_type(database, stranger, monkeypatch, how):
    since, until = NEEDS.get(how, (13, 99))
    if not since <= database.server.version <= until:
        pytest.skip("this server has no such function")
    show(stranger, f"({SPYING[how]})::text")
    read, told = transfer.read, []

    def watched(*args):
        locks = "SELECT objid FROM pg_locks WHERE locktype = 'advisory' AND classid = %s"
        told.extend(stranger.execute(locks, (LOCK,)).fetchall())
        return read(*args)

    monkeypatch.setattr(transfer, "read", watched)
    dbanon.set_policy(VIEW, POLICY, settings=database.settings)
    refused = None
    try:
        dbanon.publish(VIEW, settings=database.settings)
    except dbanon.DbanonError as error:
        refused = error
    assert told == [], "the stranger's function counted the policies as the publisher"
    assert isinstance(refused, dbanon.NotPermitted)
