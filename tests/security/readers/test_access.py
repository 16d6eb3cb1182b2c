import psycopg
import pytest
from selection import exhaustive_after
from tables import define_patients, rows_proved

import dbanon

PRIVATE = (
    "SELECT * FROM public.patients",
    "SELECT count(*) FROM public.patients",
    "SELECT * FROM dbanon.release",
    "SELECT * FROM dbanon.policy",
    "SELECT * FROM dbanon.taxonomy_node",
    "SELECT * FROM dbanon_data.rows_1",
    "SELECT * FROM dbanon_data.groups_1",
    "SELECT * FROM dbanon_data.release_1",
)


@pytest.fixture
def patients(copied):
    return copied(define_patients)


def publish(database, **options):
    return dbanon.publish("patients", keep_assignment=True, settings=database.settings, **options)


def assert_reads_only_the_release(connection):
    assert connection.execute("SELECT count(*) FROM anon.patients").fetchone() == (200,)
    for statement in PRIVATE:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(statement)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["table", "view"])
def test_a_grantee_reads_the_release_and_nothing_else(patients, kind):
    analyst = patients.role("analyst_direct")
    publish(patients, grants=[analyst], kind=kind)
    connection = patients.connect_as(analyst)
    assert connection.execute("SELECT count(*) FROM anon.patients").fetchone() == (200,)
    for statement in PRIVATE[:5]:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(statement)


@pytest.mark.exhaustive
def test_a_role_that_inherits_the_grant_reads_nothing_else(patients):
    group, member = patients.role("analysts_group", login=False), patients.role("analyst_member")
    patients.admin().execute(f"GRANT {group} TO {member}")
    publish(patients, grants=[group])
    assert_reads_only_the_release(patients.connect_as(member))


@pytest.mark.exhaustive
def test_public_can_be_granted_and_reads_nothing_else(patients):
    anyone = patients.role("anyone_at_all")
    publish(patients, grants=["public"])
    assert_reads_only_the_release(patients.connect_as(anyone))


def test_without_a_grant_nobody_reads_the_release(patients):
    stranger = patients.role("stranger_none")
    publish(patients)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        patients.connect_as(stranger).execute("SELECT * FROM anon.patients")


@pytest.mark.parametrize(
    "leak",
    exhaustive_after(
        1,
        [
            "GRANT SELECT ON public.patients TO {role}",
            "GRANT SELECT (age) ON public.patients TO {role}",
            "GRANT SELECT ON public.patients TO PUBLIC",
            "GRANT SELECT ON dbanon.release TO {role}",
            "ALTER DEFAULT PRIVILEGES IN SCHEMA dbanon_data GRANT SELECT ON TABLES TO {role}",
        ],
    ),
)
def test_a_grantee_who_can_read_what_is_private_stops_the_publication(patients, leak):
    analyst = patients.role("analyst_leaky")
    patients.execute(leak.format(role=analyst))
    with pytest.raises(dbanon.NotPermitted, match="analyst_leaky can read"):
        publish(patients, grants=[analyst])
    assert patients.execute("SELECT to_regclass('anon.patients')") == [(None,)]


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["table", "view"])
def test_default_privileges_open_nothing_private(patients, kind):
    mole = patients.role("mole_by_default")
    patients.execute(
        f"GRANT USAGE ON SCHEMA dbanon_data TO {mole};"
        "ALTER DEFAULT PRIVILEGES IN SCHEMA dbanon_data"
        f" GRANT SELECT ON TABLES TO {mole} WITH GRANT OPTION;"
        "ALTER DEFAULT PRIVILEGES IN SCHEMA dbanon_data GRANT SELECT ON TABLES TO PUBLIC"
    )
    publish(patients, kind=kind)
    assert [] == relations_of(patients, mole)
    patients.execute("DELETE FROM public.patients WHERE id < 50")
    dbanon.refresh("patients", settings=patients.settings)
    assert [] == relations_of(patients, mole)
    assert {"ok"} == {finding.level for finding in dbanon.doctor(settings=patients.settings)}


def relations_of(database, role):
    return database.execute(
        "SELECT c.relname FROM pg_class AS c WHERE c.relkind IN ('r', 'v')"
        "   AND c.relnamespace = 'dbanon_data'::regnamespace"
        "   AND has_any_column_privilege(%s, c.oid, 'SELECT')",
        (role,),
    )


def test_doctor_names_who_may_read_what_is_private_and_no_release(patients):
    mole, publisher = patients.role("mole_by_hand"), patients.role("another_publisher")
    publish(patients)
    dbanon.init(role=publisher, settings=patients.settings)
    patients.execute(
        f"GRANT SELECT (k1), INSERT ON dbanon_data.rows_1 TO {mole};"
        f"GRANT SELECT ON ALL TABLES IN SCHEMA dbanon TO {mole}"
    )
    found = [f for f in dbanon.doctor(settings=patients.settings) if f.level != "ok"]
    assert [
        f"{mole} has the right to read 5 private tables with the keys and hashes of persons",
        f"{mole} has the right to read 1 private table with the classes of source rows",
    ] == [finding.message for finding in found]
    for finding in found:
        patients.execute(finding.hint)
    assert {"ok"} == {finding.level for finding in dbanon.doctor(settings=patients.settings)}


@pytest.mark.exhaustive
def test_a_right_that_comes_with_another_role_is_found(patients):
    analyst, reader = patients.role("analyst_noinherit", inherit=False), patients.role("reader_all")
    patients.admin().execute(f"GRANT {reader} TO {analyst}")
    patients.execute(f"GRANT SELECT ON public.patients TO {reader}")
    with pytest.raises(dbanon.NotPermitted, match=r"analyst_noinherit can read public\.patients"):
        publish(patients, grants=[analyst])


def test_public_as_grantee_must_not_read_the_source_either(patients):
    patients.execute("GRANT SELECT ON public.patients TO PUBLIC")
    with pytest.raises(dbanon.NotPermitted, match=r"PUBLIC can read public\.patients"):
        publish(patients, grants=["public"])


@pytest.mark.exhaustive
def test_a_grant_made_by_hand_is_verified_at_the_next_publication(patients):
    leaky = patients.role("leaky_by_hand")
    publish(patients)
    patients.execute(f"GRANT SELECT ON anon.patients, public.patients TO {leaky}")
    with pytest.raises(dbanon.NotPermitted, match="leaky_by_hand"):
        publish(patients)
    findings = dbanon.doctor(settings=patients.settings)
    assert any("leaky_by_hand" in finding.message for finding in findings)


def test_a_grant_that_does_not_take_is_an_error(patients):
    analyst = patients.role("analyst_shut_out")
    admin = patients.admin()
    admin.execute(
        f"CREATE SCHEMA theirs; GRANT USAGE, CREATE ON SCHEMA theirs TO {patients.server.owner}"
    )
    with pytest.raises(dbanon.NotPermitted, match="analyst_shut_out cannot read the release"):
        publish(patients, schema="theirs", grants=[analyst])
    assert patients.execute("SELECT to_regclass('theirs.patients')") == [(None,)]


def test_an_unknown_grantee_is_named(patients):
    with pytest.raises(dbanon.ConfigError, match="no role nobody_here"):
        publish(patients, grants=["nobody_here"])


@pytest.mark.exhaustive
def test_a_grantee_can_check_the_release_for_itself(patients):
    analyst = patients.role("analyst_checks")
    publish(patients, grants=[analyst])
    settings = dbanon.Settings(dsn=patients.dsn_as(analyst))
    assert dbanon.check("anon.patients", settings=settings).passed


@pytest.mark.exhaustive
def test_an_auditor_can_call_the_functions_in_plain_sql(patients):
    analyst = patients.role("analyst_audits")
    publish(patients, grants=[analyst])
    found = patients.connect_as(analyst).execute(
        "SELECT verdict FROM dbanon.check_k_anonymity("
        "'anon.patients', ARRAY['age', 'sex', 'born', 'weight'], 5)"
    )
    assert found.fetchone() == ("passed",)


def test_a_superuser_is_refused_unless_allowed(patients):
    dsn = patients.server.admin_dsn
    superuser = psycopg.conninfo.make_conninfo(dsn, dbname=patients.name)
    with pytest.raises(dbanon.NotPermitted, match="is a superuser"):
        dbanon.publish("patients", settings=dbanon.Settings(dsn=superuser))
    settings = dbanon.Settings(dsn=superuser, allow_superuser=True)
    assert rows_proved(dbanon.publish("patients", settings=settings)) == 200


def test_objects_belong_to_the_owner_role_when_one_is_set(patients):
    owner = patients.role("dbanon_owner", login=False)
    admin = patients.admin()
    admin.execute(f"GRANT {owner} TO {patients.server.owner}")
    admin.execute(f"GRANT SELECT ON public.patients TO {owner}")
    admin.execute(f"GRANT CREATE ON DATABASE {patients.name} TO {owner}")
    admin.execute(f"GRANT ALL ON SCHEMA dbanon, dbanon_data TO {owner}")
    admin.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA dbanon TO {owner}")
    admin.execute(f"GRANT ALL ON ALL SEQUENCES IN SCHEMA dbanon TO {owner}")
    settings = dbanon.Settings(dsn=patients.dsn, owner=owner)
    dbanon.publish("patients", settings=settings)
    found = patients.execute(
        "SELECT relowner::regrole::text FROM pg_class WHERE relname = 'release_1'"
    )
    assert found == [(owner,)]
    admin.execute(f"DROP OWNED BY {owner} CASCADE")


@pytest.mark.exhaustive
def test_a_release_shows_no_ctid_and_keeps_its_barrier(patients):
    publish(patients)
    with pytest.raises(psycopg.errors.UndefinedColumn):
        patients.execute("SELECT ctid FROM anon.patients")
    publish(patients)
    found = patients.execute(
        "SELECT reloptions FROM pg_class WHERE oid = 'anon.patients'::regclass"
    )
    assert found == [(["security_barrier=true"],)]


def test_the_view_s_text_and_comment_hold_no_value(patients):
    publish(patients, seed=123456789)
    text, comment = patients.execute(
        "SELECT pg_get_viewdef('anon.patients'::regclass),"
        " obj_description('anon.patients'::regclass)"
    )[0]
    for secret in ("123456789", "gastritis", "note 1", "public.patients"):
        assert secret not in text
        assert secret not in comment
