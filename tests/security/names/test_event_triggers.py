"""An event trigger whose function a stranger owns runs with the rights of whoever publishes."""

import psycopg
import pytest
from tables import define_patients, publish_patients

import dbanon

SPY = """
CREATE FUNCTION spy.look() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('spied', (SELECT string_agg(disease, ',') FROM public.patients
                                 WHERE id < 20));
END $$
"""
TOLD = "event trigger watch runs spy.look of spy with this role's rights"


def watch(database, *, owner=None):
    """Let a stranger write what runs at each change of definitions."""
    spy, admin = database.role("spy"), database.admin()
    admin.execute(f"CREATE SCHEMA spy AUTHORIZATION {spy}")
    database.connect_as(spy).execute(SPY)
    admin.execute("CREATE EVENT TRIGGER watch ON ddl_command_end EXECUTE FUNCTION spy.look()")
    if owner is not None:
        admin.execute(f"ALTER FUNCTION spy.look() OWNER TO {owner}")


def test_the_function_of_a_stranger_gets_at_the_source_when_the_publisher_changes_a_table(copied):
    database = copied(define_patients)
    watch(database)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        database.connect_as("spy").execute("SELECT FROM public.patients")
    listener = database.connect_as("spy")
    listener.execute("LISTEN spied")
    database.execute("CREATE TABLE public.other (id int)")
    (told, *_) = listener.notifies(timeout=5, stop_after=1)
    assert "flu" in told.payload


ACTIONS = {
    "publish": lambda settings: dbanon.publish("patients", settings=settings),
    "refresh": lambda settings: dbanon.refresh("patients", settings=settings),
    "history": lambda settings: dbanon.history("patients", settings=settings),
    "init": lambda settings: dbanon.init(settings=settings),
    "drop": lambda settings: dbanon.drop_release(1, settings=settings),
}


@pytest.mark.parametrize("action", ACTIONS)
def test_nothing_is_changed_while_a_stranger_s_event_trigger_is_on(copied, action):
    database = copied(publish_patients)
    before = database.execute("SELECT * FROM anon.patients")
    watch(database)
    listener = database.connect_as("spy")
    listener.execute("LISTEN spied")
    with pytest.raises(dbanon.NotPermitted, match=TOLD):
        ACTIONS[action](database.settings)
    assert [] == list(listener.notifies(timeout=0.2))
    assert before == database.execute("SELECT * FROM anon.patients")


def test_the_doctor_names_a_stranger_s_event_trigger(copied):
    database = copied(publish_patients)
    watch(database)
    found = [f for f in dbanon.doctor(settings=database.settings) if TOLD in f.message]
    assert [("failure", "role")] == [(f.level, f.subject) for f in found]


@pytest.mark.exhaustive
def test_an_event_trigger_of_the_publisher_s_or_that_is_off_is_no_obstacle(copied):
    database = copied(publish_patients)
    watch(database, owner=database.server.owner)
    assert 2 == dbanon.publish("patients", settings=database.settings).id
    admin = database.admin()
    admin.execute("ALTER FUNCTION spy.look() OWNER TO spy; ALTER EVENT TRIGGER watch DISABLE")
    assert 3 == dbanon.publish("patients", settings=database.settings).id


LOG = """
CREATE SCHEMA audit;
GRANT USAGE ON SCHEMA audit TO PUBLIC;
CREATE TABLE audit.log (tag text);
GRANT INSERT ON audit.log TO PUBLIC;
CREATE FUNCTION audit.note() RETURNS event_trigger LANGUAGE plpgsql {rights} AS
    'BEGIN INSERT INTO audit.log VALUES (tg_tag); END';
CREATE EVENT TRIGGER audits ON ddl_command_end EXECUTE FUNCTION audit.note();
"""
WRITING = {
    "grant": lambda settings: dbanon.grant("anon.patients", ["other"], settings=settings),
    "revoke": lambda settings: dbanon.revoke("anon.patients", ["spy"], settings=settings),
    "drop": lambda settings: dbanon.drop_release(1, settings=settings),
    "publish": lambda settings: dbanon.publish("patients", settings=settings),
}


@pytest.mark.parametrize("action", WRITING)
def test_what_a_stranger_put_behind_an_event_trigger_of_a_superuser_s_is_undone(copied, action):
    database = copied(publish_patients)
    spy, admin = database.role("spy"), database.admin()
    database.role("other")
    if action == "revoke":
        dbanon.grant("anon.patients", [spy], settings=database.settings)
    admin.execute(
        f"{LOG.format(rights='')} GRANT CREATE ON SCHEMA audit TO spy;"
        "ALTER TABLE audit.log OWNER TO spy"
    )
    database.connect_as(spy).execute(
        "CREATE FUNCTION audit.bite() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN IF session_user <> 'spy' AND pg_trigger_depth() < 3 THEN"
        " GRANT SELECT ON public.patients TO spy; END IF; RETURN NEW; END $$;"
        "CREATE TRIGGER t BEFORE INSERT ON audit.log"
        " FOR EACH ROW EXECUTE FUNCTION audit.bite()"
    )
    reads = "SELECT has_table_privilege('spy', 'public.patients', 'SELECT')"
    assert [(False,)] == database.execute(reads)
    with pytest.raises(dbanon.DatabaseError, match=r"or event trigger audits opened it"):
        WRITING[action](database.settings)
    assert [(False,)] == database.execute(reads)
    admin.execute("DROP EVENT TRIGGER audits")
    WRITING[action](database.settings)
    assert [(False,)] == database.execute(reads)


@pytest.mark.exhaustive
def test_an_event_trigger_that_writes_a_log_is_named_with_what_to_do(copied):
    database = copied(publish_patients)
    admin = database.admin()
    admin.execute(LOG.format(rights="SECURITY DEFINER"))
    told = "event trigger audits runs audit.note at each change of definitions"
    found = [f for f in dbanon.doctor(settings=database.settings) if told in f.message]
    assert [("warning", "role")] == [(f.level, f.subject) for f in found]
    with pytest.raises(dbanon.DatabaseError, match=r"^audit\.log was opened") as refused:
        dbanon.publish("patients", settings=database.settings)
    assert "ALTER EVENT TRIGGER audits DISABLE" in refused.value.hint
    admin.execute("ALTER EVENT TRIGGER audits DISABLE")
    assert 2 == dbanon.publish("patients", settings=database.settings).id
    assert [] == [f for f in dbanon.doctor(settings=database.settings) if told in f.message]
