"""Who may read a release must reach what it hides by no way that the catalogs know."""

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from tables import make_patients, patients_policy

import dbanon
from dbanon.db import rights
from dbanon.db.session import connect

# What is done by a superuser, with what is found: group and analyst were granted the release,
# member is in group, and owner publishes.
LEAKS = {
    "a view": (
        (
            "CREATE VIEW public.ages AS SELECT age FROM public.patients;"
            " GRANT SELECT ON public.ages TO reach_analyst"
        ),
        "reach_analyst can read public.ages, a view of what is private",
    ),
    "a materialized view of a view": (
        (
            "CREATE VIEW public.ages AS SELECT age FROM public.patients;"
            " CREATE MATERIALIZED VIEW public.old AS SELECT count(*) FROM public.ages;"
            " GRANT SELECT (count) ON public.old TO PUBLIC"
        ),
        "reach_analyst can read public.old, a materialized view of what is private",
    ),
    "a view of the ledger": (
        (
            "CREATE VIEW public.steps AS SELECT * FROM dbanon.release;"
            " GRANT SELECT ON public.steps TO reach_member"
        ),
        "reach_member can read public.steps, a view of what is private",
    ),
    "a view in the place of another release": (
        (
            "DROP VIEW anon.other; CREATE VIEW anon.other AS SELECT age FROM public.patients;"
            " GRANT SELECT ON anon.other TO reach_analyst"
        ),
        "reach_analyst can read anon.other, a view of what is private",
    ),
    "default privileges": (
        "ALTER DEFAULT PRIVILEGES FOR ROLE {owner} GRANT SELECT ON TABLES TO PUBLIC",
        "reach_analyst is given SELECT on new tables in any schema by default",
    ),
    "a right of a member": (
        "GRANT SELECT (age) ON public.patients TO reach_member",
        "reach_member can read public.patients",
    ),
    "a right of one who may act as a grantee": (
        (
            "CREATE ROLE reach_actor NOINHERIT IN ROLE reach_group;"
            " GRANT SELECT ON dbanon.policy TO reach_actor"
        ),
        "reach_actor can read dbanon.policy",
    ),
    "an owner whom a grantee may act as": (
        (
            "CREATE ROLE reach_clerk; ALTER TABLE public.patients OWNER TO reach_clerk;"
            " ALTER ROLE reach_analyst NOINHERIT; GRANT reach_clerk TO reach_analyst"
        ),
        "reach_analyst can read public.patients as reach_clerk",
    ),
    "a right that is inherited": (
        (
            "CREATE ROLE reach_clerk; GRANT SELECT ON public.patients TO reach_clerk;"
            " GRANT reach_clerk TO reach_member"
        ),
        "reach_member can read public.patients as reach_clerk",
    ),
    "all tables": (
        "CREATE PUBLICATION reach_all FOR ALL TABLES; ALTER ROLE reach_analyst REPLICATION",
        "reach_analyst can replicate what is private (publication reach_all)",
    ),
    "one table": (
        (
            "CREATE PUBLICATION reach_one FOR TABLE public.patients;"
            " ALTER ROLE reach_member REPLICATION"
        ),
        "reach_member can replicate what is private (publication reach_one)",
    ),
    "no publication yet": (
        "ALTER ROLE reach_member REPLICATION",
        "reach_member can replicate what is private",
    ),
    **{
        f"the files of the server, as {role}": (
            f"GRANT {role} TO reach_analyst",
            f"reach_analyst can read the files of the server as {role}",
        )
        for role in ("pg_read_server_files", "pg_write_server_files", "pg_execute_server_program")
    },
}
LATER_LEAKS = {
    "all data": (
        14,
        "GRANT pg_read_all_data TO reach_analyst",
        "reach_analyst can read public.patients as pg_read_all_data",
    ),
    "a function of its owner's": (
        14,
        (
            "CREATE FUNCTION public.eldest() RETURNS integer SECURITY DEFINER"
            " BEGIN ATOMIC SELECT max(age) FROM public.patients; END"
        ),
        "reach_member can call public.eldest, which reads what is private as its owner",
    ),
    "all tables of a schema": (
        15,
        (
            "CREATE PUBLICATION reach_schema FOR TABLES IN SCHEMA dbanon_data;"
            " ALTER ROLE reach_member REPLICATION"
        ),
        "reach_member can replicate what is private (publication reach_schema)",
    ),
}
NO_LEAKS = {
    "nothing": (13, "SELECT"),
    "a view of a release": (
        13,
        (
            "CREATE VIEW public.derived AS SELECT age FROM anon.other;"
            " GRANT SELECT ON public.derived TO reach_analyst"
        ),
    ),
    "a view with the rights of its reader": (
        15,
        (
            "CREATE VIEW public.ages WITH (security_invoker) AS SELECT age FROM public.patients;"
            " GRANT SELECT ON public.ages TO reach_analyst"
        ),
    ),
    "a publication for others": (13, "CREATE PUBLICATION reach_all FOR ALL TABLES"),
    "a member who may act as the publisher": (13, "GRANT reach_group TO {owner}"),
    "a function that nobody may call": (
        14,
        (
            "CREATE FUNCTION public.eldest() RETURNS integer SECURITY DEFINER"
            " BEGIN ATOMIC SELECT max(age) FROM public.patients; END;"
            " REVOKE EXECUTE ON FUNCTION public.eldest() FROM PUBLIC"
        ),
    ),
}


@pytest.fixture(scope="module")
def released(server, template):
    """A database with two releases, one of them a live view."""
    with server.database(template) as database:
        table = make_patients(database)
        dbanon.set_policy(table, patients_policy(table), settings=database.settings)
        group = database.role("reach_group", login=False)
        analyst, member = database.role("reach_analyst"), database.role("reach_member")
        database.admin().execute(f"GRANT {group} TO {member}")
        dbanon.publish("patients", grants=[group, analyst], settings=database.settings)
        dbanon.publish("patients", name="other", kind="view", settings=database.settings)
        yield database


def reach_after(database, statements):
    """Return what is found when a superuser has run the statements, and undo them."""
    dsn = make_conninfo(database.server.admin_dsn, dbname=database.name)
    with connect(dbanon.Settings(dsn=dsn)) as session, session.transaction(keep=False):
        session.pg.execute(statements.format(owner=database.server.owner))
        oids = session.pg.execute(
            "SELECT 'anon.patients'::regclass::oid, 'public.patients'::regclass::oid"
        ).fetchone()
        targets = rights.targets_of(session, published=oids[0], sources=[oids[1]])
        found = rights.reach_of(session, targets)
    return [str(way) for way in found]


@pytest.mark.parametrize("leak", LEAKS)
def test_a_way_around_the_release_is_found(released, leak):
    statements, told = LEAKS[leak]
    assert told in reach_after(released, statements)


@pytest.mark.parametrize("leak", LATER_LEAKS)
def test_a_way_around_the_release_of_later_versions_is_found(released, leak):
    since, statements, told = LATER_LEAKS[leak]
    if released.server.version < since:
        pytest.skip(f"needs PostgreSQL {since}")
    assert told in reach_after(released, statements)


@pytest.mark.parametrize("harmless", NO_LEAKS)
def test_what_leads_to_nothing_private_is_no_way_around(released, harmless):
    since, statements = NO_LEAKS[harmless]
    if released.server.version < since:
        pytest.skip(f"needs PostgreSQL {since}")
    assert reach_after(released, statements) == []


def test_the_doctor_tells_of_a_way_that_was_opened_later(released):
    released.execute(
        "CREATE VIEW public.later AS SELECT * FROM public.patients;"
        " GRANT SELECT ON public.later TO reach_analyst"
    )
    findings = dbanon.doctor(settings=released.settings)
    with pytest.raises(dbanon.NotPermitted, match=r"reach_analyst can read public\.later, a view"):
        dbanon.publish("patients", settings=released.settings)
    released.execute("DROP VIEW public.later")
    assert "reach_analyst can read public.later" in " ".join(f.message for f in findings)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        released.connect_as("reach_analyst").execute("SELECT * FROM dbanon_data.release_1")
