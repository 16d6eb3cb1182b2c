"""Views that somebody else defines, or that are replaced while they are read."""

from contextlib import nullcontext

import pytest
from tables import rows_proved

import dbanon
from dbanon.db import catalog, identity, transfer
from dbanon.db.session import connect
from dbanon.domain.policy import K_ANONYMITY, ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.table import TableName

VIEW = TableName("clinic", "people")
RULES = (
    ColumnRule("id", Role.IDENTIFIER),
    ColumnRule("age", Role.QUASI),
    ColumnRule("disease", Role.SENSITIVE),
)
POLICY = Policy(VIEW, RULES, (ModelSpec(K_ANONYMITY, {"k": 5}),), algorithm="mondrian", key=("id",))
TRUE = "CREATE OR REPLACE VIEW clinic.people AS SELECT id, age, disease FROM clinic.patient"
SPYING = (
    "CREATE OR REPLACE VIEW clinic.people AS"
    " SELECT id, age, clinic.spy(disease) AS disease FROM clinic.patient"
)
CLINIC = """
CREATE SCHEMA clinic;
GRANT USAGE ON SCHEMA clinic TO PUBLIC;
CREATE SEQUENCE clinic.caught;
GRANT ALL ON SEQUENCE clinic.caught TO PUBLIC;
CREATE FUNCTION clinic.spy(text) RETURNS text STABLE LANGUAGE plpgsql AS $$
BEGIN
    IF current_user <> 'stranger' THEN PERFORM nextval('clinic.caught'); END IF;
    RETURN $1;
EXCEPTION WHEN OTHERS THEN RETURN 'caught';
END $$;
CREATE TABLE clinic.patient (id int PRIMARY KEY, age int, disease text);
INSERT INTO clinic.patient
SELECT i, i % 20, 'disease ' || i % 3 FROM generate_series(1, 100) AS i;
"""


@pytest.fixture
def stranger(database):
    """A role that owns the table and the function below the view, which is the publisher's own."""
    name = database.role("stranger")
    database.execute(f"GRANT CREATE ON DATABASE {database.name} TO {name}")
    connection = database.connect_as(name)
    connection.execute(CLINIC)
    connection.execute(f'GRANT ALL ON SCHEMA clinic TO "{owner_of(database)}"')
    connection.execute("GRANT SELECT ON clinic.patient TO PUBLIC")
    database.execute(TRUE)
    yield connection
    connection.close()
    admin = database.admin()
    admin.execute("DROP SCHEMA IF EXISTS anon CASCADE; DROP OWNED BY stranger CASCADE")


def owner_of(database):
    ((owner,),) = database.execute("SELECT current_user")
    return owner


def caught(stranger):
    return stranger.execute("SELECT is_called FROM clinic.caught").fetchone()[0]


def publish(database):
    dbanon.set_policy(VIEW, POLICY, settings=database.settings)
    return dbanon.publish(VIEW, settings=database.settings)


def test_a_view_of_a_stranger_is_not_read(database, stranger):
    """It could look up by name what no dependency tells."""
    stranger.execute(
        "CREATE VIEW clinic.theirs AS SELECT id, age, disease FROM clinic.patient;"
        "GRANT SELECT ON clinic.theirs TO PUBLIC"
    )
    theirs = TableName("clinic", "theirs")
    with pytest.raises(dbanon.NotPermitted, match=r"clinic\.theirs of stranger"):
        dbanon.inspect(theirs, settings=database.settings)
    database.execute(
        "CREATE OR REPLACE VIEW clinic.people AS SELECT id, age, disease FROM clinic.theirs"
    )
    with pytest.raises(dbanon.NotPermitted, match=r"clinic\.theirs of stranger"):
        publish(database)


def test_a_view_that_calls_a_stranger_s_function_is_not_read(database, stranger):
    database.execute(SPYING)
    for act in (dbanon.inspect, dbanon.suggest_policy):
        with pytest.raises(dbanon.NotPermitted, match=r"clinic\.spy of stranger"):
            act(VIEW, settings=database.settings)
    with pytest.raises(dbanon.NotPermitted, match=r"clinic\.spy of stranger"):
        publish(database)
    assert not caught(stranger)


def test_a_view_below_that_calls_a_stranger_s_function_is_not_read(database, stranger):
    database.execute(
        "CREATE VIEW clinic.inner_view AS"
        " SELECT id, age, clinic.spy(disease) AS disease FROM clinic.patient;"
        "CREATE OR REPLACE VIEW clinic.people AS SELECT id, age, disease FROM clinic.inner_view"
    )
    with pytest.raises(dbanon.NotPermitted, match=r"clinic\.spy of stranger"):
        publish(database)
    assert not caught(stranger)


@pytest.mark.parametrize("act", [dbanon.publish, dbanon.plan])
def test_a_view_cannot_be_replaced_while_it_is_read(database, stranger, monkeypatch, act):
    """Whoever replaces it has to wait from the first look until the end."""
    dbanon.set_policy(VIEW, POLICY, settings=database.settings)
    read, waited = transfer.read, []
    beside = database.connect()
    beside.execute("SET lock_timeout = '200ms'")

    def replaced(*args, **options):
        with pytest.raises(Exception, match="lock timeout"):
            beside.execute(SPYING)
        waited.append(True)
        return read(*args, **options)

    monkeypatch.setattr(transfer, "read", replaced)
    act(VIEW, settings=database.settings)
    assert waited
    assert not caught(stranger)


@pytest.mark.parametrize("act", [dbanon.publish, dbanon.plan, dbanon.inspect])
def test_a_view_that_is_replaced_just_before_it_is_held_is_judged_as_it_became(
    database, stranger, monkeypatch, act
):
    """No snapshot may be older than the lock: it would show the definition that was."""
    dbanon.set_policy(VIEW, POLICY, settings=database.settings)
    hold, replaced = identity.hold, []

    def late(session, info):
        if info.name == VIEW and not replaced:
            replaced.append(database.execute(SPYING))
        hold(session, info)

    lock = "dbanon.db.releases.publication_lock.lock_source"
    if act is dbanon.publish:
        from dbanon.db.releases.guards import lock_source

        def late_lock(session, info, *, exclude_writers):
            if not replaced:
                replaced.append(database.execute(SPYING))
            lock_source(session, info, exclude_writers=exclude_writers)

        monkeypatch.setattr(lock, late_lock)
    else:
        monkeypatch.setattr(identity, "hold", late)
    with pytest.raises((dbanon.NotPermitted, dbanon.DriftError)):
        act(VIEW, settings=database.settings)
    assert replaced
    assert not caught(stranger)


def test_a_schema_that_is_exchanged_meanwhile_is_noticed(database, stranger, monkeypatch):
    dbanon.set_policy(VIEW, POLICY, settings=database.settings)
    stranger.execute(
        "CREATE SCHEMA trap; GRANT USAGE ON SCHEMA trap TO PUBLIC;"
        "CREATE VIEW trap.people AS SELECT id, age, clinic.spy(disease) AS disease"
        " FROM clinic.patient; GRANT SELECT ON trap.people TO PUBLIC"
    )
    read = transfer.read

    def swapped(*args, **options):
        stranger.execute(
            "BEGIN; ALTER SCHEMA clinic RENAME TO aside; ALTER SCHEMA trap RENAME TO clinic; COMMIT"
        )
        return read(*args, **options)

    monkeypatch.setattr(transfer, "read", swapped)
    with pytest.raises(dbanon.DatabaseError, match="another relation by now"):
        dbanon.publish(VIEW, settings=database.settings)
    assert database.execute("SELECT count(*) FROM dbanon.release") == [(0,)]


def test_a_view_that_was_exchanged_while_it_was_locked_is_not_admitted(
    database, stranger, monkeypatch
):
    """The lock is on the trap: whoever may replace the view could do so before it is read."""
    stranger.execute("CREATE SCHEMA trap; CREATE VIEW trap.people AS SELECT 1 AS id")
    stranger.execute("GRANT ALL ON SCHEMA trap TO PUBLIC; GRANT SELECT ON trap.people TO PUBLIC")
    lock, code_of = identity._lock, identity._code_of  # noqa: SLF001

    exchange = "BEGIN; ALTER SCHEMA clinic RENAME TO {}; ALTER SCHEMA {} RENAME TO clinic; COMMIT"

    def locked(session, info):
        stranger.execute(exchange.format("aside", "trap"))
        lock(session, info)

    def looked_at(session, info):
        stranger.execute(exchange.format("trap", "aside"))
        return code_of(session, info)

    with connect(database.settings) as session, session.transaction(keep=False):
        info = catalog.describe(session, VIEW)
        monkeypatch.setattr(identity, "at_once", nullcontext)
        monkeypatch.setattr(identity, "_lock", locked)
        monkeypatch.setattr(identity, "_code_of", looked_at)
        with pytest.raises(dbanon.DatabaseError, match=r"people.* is another relation"):
            identity.admit(session, info)


def test_a_view_over_a_stranger_s_table_is_published(database, stranger):
    assert rows_proved(publish(database)) == 100
    (refreshed,) = dbanon.refresh(VIEW, new_series=True, settings=database.settings)
    assert refreshed.changed
    assert not caught(stranger)
