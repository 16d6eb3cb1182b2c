"""Names that mean what somebody else decides: schemas of strangers, relations put in a place."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from live import wait_for_lock
from selection import each_once
from tables import rows_proved

import dbanon
from dbanon.db import identity, transfer
from dbanon.db.releases import copies, immutability, relations
from dbanon.domain.policy import K_ANONYMITY, ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.table import TableName

TABLE, VIEW = TableName("clinic", "people"), TableName("anon", "people")
RULES = (
    ColumnRule("id", Role.IDENTIFIER),
    ColumnRule("age", Role.QUASI),
    ColumnRule("disease", Role.SENSITIVE),
)
POLICY = Policy(TABLE, RULES, (ModelSpec(K_ANONYMITY, {"k": 5}),), algorithm="mondrian")
SPY = """
CREATE SCHEMA den;
GRANT USAGE ON SCHEMA den TO PUBLIC;
CREATE SEQUENCE den.caught;
GRANT ALL ON SEQUENCE den.caught TO PUBLIC;
CREATE FUNCTION den.spy(text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    IF current_user <> 'stranger' THEN PERFORM nextval('den.caught'); END IF;
    RETURN $1;
END $$;
"""
ROWS = "SELECT i AS id, i % 20 AS age, 'false ' || i % 3 AS disease FROM generate_series(1, 100) i"
TRAPS = {
    "a table": f"""
        CREATE TABLE trap.people (id int PRIMARY KEY, age int, disease text);
        INSERT INTO trap.people {ROWS};""",
    "a view": f"""
        CREATE VIEW trap.people AS
        SELECT id, age, den.spy(disease) AS disease FROM ({ROWS}) AS r;""",
}
SWAP = "BEGIN; ALTER SCHEMA clinic RENAME TO aside; ALTER SCHEMA trap RENAME TO clinic; COMMIT"
SWAP_BACK = "BEGIN; ALTER SCHEMA clinic RENAME TO trap; ALTER SCHEMA aside RENAME TO clinic; COMMIT"


@pytest.fixture
def stranger(database):
    """A role that may create schemas and owns the one in which our table is."""
    name = database.role("stranger")
    database.execute(f"GRANT CREATE ON DATABASE {database.name} TO {name}")
    connection = database.connect_as(name)
    connection.execute(SPY)
    connection.execute("CREATE SCHEMA clinic; GRANT ALL ON SCHEMA clinic TO PUBLIC")
    database.execute(
        "CREATE TABLE clinic.people (id int PRIMARY KEY, age int, disease text);"
        f"INSERT INTO clinic.people {ROWS.replace('false', 'true')}"
    )
    yield connection
    connection.close()
    admin = database.admin()
    admin.execute("DROP SCHEMA IF EXISTS anon CASCADE; DROP OWNED BY stranger CASCADE")


def trap(stranger, kind):
    """Let the stranger prepare what is to take our table's place."""
    stranger.execute("CREATE SCHEMA trap; GRANT USAGE ON SCHEMA trap TO PUBLIC")
    stranger.execute(TRAPS[kind] + "GRANT SELECT ON trap.people TO PUBLIC")


def caught(stranger):
    """Return whether the stranger's function ran, and could write, as somebody else."""
    return stranger.execute("SELECT is_called FROM den.caught").fetchone()[0]


def publish(database, kind="table"):
    dbanon.set_policy(TABLE, POLICY, settings=database.settings)
    return dbanon.publish(TABLE, kind=kind, settings=database.settings)


def certified(database):
    """Return which diseases readers see, true ones or false ones."""
    found = database.execute("SELECT DISTINCT split_part(disease, ' ', 1) FROM anon.people")
    return {word for (word,) in found}


def failures(database):
    return [f.message for f in dbanon.doctor(settings=database.settings) if f.exit_code]


# A schema of a stranger's in which something is published.

USURP = """
DROP VIEW anon.people CASCADE;
CREATE VIEW anon.people AS
SELECT int4range(id, id) AS age, den.spy('x') AS disease FROM generate_series(1, 9) AS i (id);
GRANT SELECT ON anon.people TO PUBLIC;
"""


def usurp(database, stranger):
    """Put the stranger's view in the place of a release, with the comment of the release."""
    comment = database.execute("SELECT obj_description('anon.people'::regclass)")[0][0]
    admin = database.admin()
    admin.execute("ALTER SCHEMA anon OWNER TO stranger; GRANT USAGE ON SCHEMA anon TO PUBLIC")
    stranger.execute(USURP)
    quoted = comment.replace("'", "''")
    stranger.execute(f"COMMENT ON VIEW anon.people IS '{quoted}'")


def test_nothing_is_published_into_a_schema_of_a_stranger(database, stranger):
    stranger.execute("CREATE SCHEMA anon; GRANT ALL ON SCHEMA anon TO PUBLIC")
    with pytest.raises(dbanon.NotPermitted, match="schema anon belongs to stranger"):
        publish(database)
    assert database.execute("SELECT to_regclass('anon.people')") == [(None,)]


@pytest.mark.parametrize("kind", ["table", "view"])
def test_doctor_reads_nothing_of_a_stranger_s(database, stranger, kind):
    publish(database, kind)
    usurp(database, stranger)
    found = failures(database)
    assert not caught(stranger)
    assert "schema anon belongs to stranger, who can put another relation in its place" in found
    assert "anon.people belongs to stranger, who can put another relation in its place" in found
    assert "reading anon.people may run den.spy of stranger" in found


@pytest.mark.parametrize(
    "check",
    [
        lambda settings: dbanon.check(VIEW, settings=settings),
        lambda settings: dbanon.check(VIEW, k=2, settings=settings),
        lambda settings: dbanon.grant(VIEW, ["public"], settings=settings),
    ],
    ids=["check", "check of another k", "grant"],
)
def test_what_took_the_place_of_a_release_is_not_read(database, stranger, check):
    publish(database)
    usurp(database, stranger)
    with pytest.raises(dbanon.DbanonError, match=r"not what was published|of stranger"):
        check(database.settings)
    assert not caught(stranger)


def test_check_all_reads_nothing_of_a_stranger_s(database, stranger):
    publish(database)
    usurp(database, stranger)
    (found,) = dbanon.check_all(settings=database.settings)
    assert "not what was published" in str(found.error)
    assert not caught(stranger)


def test_a_view_of_the_private_tables_that_a_stranger_owns_serves_nothing(database, stranger):
    publish(database)
    database.execute(
        "GRANT USAGE ON SCHEMA dbanon_data TO stranger;"
        "GRANT SELECT ON dbanon_data.release_1 TO stranger"
    )
    comment = database.execute("SELECT obj_description('anon.people'::regclass)")[0][0]
    stranger.execute(
        "CREATE VIEW den.people AS SELECT age, disease FROM dbanon_data.release_1;"
        "GRANT SELECT ON den.people TO PUBLIC"
    )
    quoted = comment.replace("'", "''")
    stranger.execute(f"COMMENT ON VIEW den.people IS '{quoted}'")
    with pytest.raises(dbanon.ConfigError, match="not what was published"):
        dbanon.check("den.people", settings=database.settings)


def test_doctor_notices_another_definition_of_a_live_view(database, stranger):
    publish(database, "view")
    assert failures(database) == []
    definition = database.execute("SELECT pg_get_viewdef('anon.people'::regclass)")[0][0]
    assert "g.shown" in definition
    changed = definition.replace("g.shown", "true")
    database.execute(
        f"CREATE OR REPLACE VIEW anon.people WITH (security_barrier = true) AS {changed}"
    )
    assert failures(database) == ["its definition is not the one that was published"]


def test_a_definition_that_another_server_printed_is_told_of_and_not_called_changed(
    database, stranger
):
    publish(database, "view")
    database.execute("UPDATE dbanon.release SET content = '12:' || split_part(content, ':', 2)")
    assert failures(database) == []
    findings = dbanon.doctor(settings=database.settings)
    warnings = [finding.message for finding in findings if finding.level == "warning"]
    (message,) = [text for text in warnings if "no-diversity" not in text]
    assert "its definition was not compared" in message


WRITER = """
CREATE SEQUENCE public.written;
CREATE FUNCTION public.write(int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN PERFORM nextval('public.written'); RETURN $1; END $$;
CREATE VIEW public.writing AS SELECT public.write(1) AS age FROM generate_series(1, 9);
"""


def test_what_is_checked_can_write_nothing(database):
    database.execute(WRITER)
    with pytest.raises(dbanon.DatabaseError, match="read-only"):
        dbanon.check("public.writing", quasi=["age"], k=2, settings=database.settings)
    assert database.execute("SELECT is_called FROM public.written") == [(False,)]


def test_doctor_reads_in_read_only_transactions(database, stranger, monkeypatch):
    publish(database)
    modes, content = [], immutability.content

    def noted(session, published):
        modes.append(session.pg.execute("SHOW transaction_read_only").fetchone()[0])
        return content(session, published)

    monkeypatch.setattr(immutability, "content", noted)
    assert failures(database) == []
    assert modes == ["on"]


# The schema of the source, renamed and replaced by its owner.


def test_a_table_that_takes_the_name_while_refresh_waits_is_not_published(database, stranger):
    publish(database)
    trap(stranger, "a table")
    holder = database.connect(autocommit=False)
    holder.execute("LOCK TABLE clinic.people IN ACCESS EXCLUSIVE MODE")
    with ThreadPoolExecutor() as pool:
        refreshed = pool.submit(dbanon.refresh, TABLE, settings=database.settings)
        wait_for_lock(database)
        stranger.execute(SWAP)
        holder.commit()
        with pytest.raises(dbanon.DatabaseError, match=r"clinic\.people is another relation"):
            refreshed.result()
    assert certified(database) == {"true"}


def at(monkeypatch, place, moment, action):
    """Do something once, when a function of dbanon's is called."""
    original, done = getattr(place, moment), []

    def wrapped(*args, **kwargs):
        if not done:
            done.append(action())
        return original(*args, **kwargs)

    monkeypatch.setattr(place, moment, wrapped)


MOMENTS = {
    "before the values are tried": (transfer, "require_fit"),
    "before another session reads": (transfer, "read"),
    "while another session reads": (transfer, "_fetch"),
    "before the release is written": (relations, "build_statements"),
    "before the release is served": (copies, "refilled"),
}


@pytest.mark.parametrize(("moment", "kind"), each_once(MOMENTS, TRAPS))
def test_a_schema_exchanged_at_any_moment_ends_the_refresh(
    database, stranger, monkeypatch, moment, kind
):
    publish(database)
    trap(stranger, kind)
    at(monkeypatch, *MOMENTS[moment], lambda: stranger.execute(SWAP))
    with pytest.raises(dbanon.DbanonError) as refused:
        dbanon.refresh(TABLE, new_series=True, settings=database.settings)
    assert "false" not in str(refused.value)
    assert certified(database) == {"true"}
    assert not caught(stranger)
    assert database.execute("SELECT max(release_id) FROM dbanon.release") == [(1,)]


@pytest.mark.parametrize("kind", TRAPS)
def test_a_schema_exchanged_for_the_moment_of_reading_is_found_out(
    database, stranger, monkeypatch, kind
):
    publish(database)
    trap(stranger, kind)
    fetch = transfer._fetch  # noqa: SLF001 - the moment of reading

    def fetched(*args, **kwargs):
        stranger.execute(SWAP)
        try:
            return fetch(*args, **kwargs)
        finally:
            stranger.execute(SWAP_BACK)

    monkeypatch.setattr(transfer, "_fetch", fetched)
    with pytest.raises(dbanon.DatabaseError):
        dbanon.refresh(TABLE, settings=database.settings)
    assert certified(database) == {"true"}
    assert not caught(stranger)


PARTED = f"""
CREATE TABLE clinic.parted (id int PRIMARY KEY, age int, disease text) PARTITION BY RANGE (id);
CREATE TABLE clinic.part PARTITION OF clinic.parted DEFAULT;
INSERT INTO clinic.parted {ROWS};
"""


def test_no_partition_is_read_by_a_name_that_is_exchanged(database, stranger, monkeypatch):
    database.execute(PARTED)
    table = TableName("clinic", "parted")
    dbanon.set_policy(table, replace(POLICY, table=table), settings=database.settings)
    trap(stranger, "a view")
    stranger.execute(
        "ALTER VIEW trap.people RENAME TO parted;"
        "CREATE VIEW trap.part AS SELECT * FROM trap.parted; GRANT SELECT ON trap.part TO PUBLIC"
    )
    at(monkeypatch, copies, "refilled", lambda: stranger.execute(SWAP))
    with pytest.raises(dbanon.DbanonError):
        dbanon.publish(table, kind="view", settings=database.settings)
    assert not caught(stranger)
    stranger.execute(SWAP_BACK)
    release = dbanon.publish(table, kind="view", settings=database.settings)
    assert rows_proved(release) == 100
    (placed,) = database.execute(
        f"SELECT array_agg(DISTINCT leaf) FROM dbanon_data.rows_{release.id}"
    )
    assert placed == ([1],)


def test_a_table_of_a_stranger_that_took_the_name_before_is_drift(database, stranger):
    publish(database)
    trap(stranger, "a table")
    stranger.execute(SWAP)
    with pytest.raises(dbanon.DriftError, match="belongs to stranger now"):
        dbanon.refresh(TABLE, settings=database.settings)
    assert certified(database) == {"true"}


@pytest.mark.parametrize("kind", TRAPS)
def test_a_guard_keeps_to_its_table_when_the_schema_is_exchanged(database, stranger, kind):
    publish(database, "view")
    trap(stranger, kind)
    classes = "SELECT array_agg(k1 ORDER BY k1) FROM dbanon_data.rows_1 GROUP BY group_id"
    (keys,) = database.execute(f"{classes} ORDER BY 1 LIMIT 1")[0]
    stranger.execute(SWAP)
    database.execute("DELETE FROM aside.people WHERE id = ANY (%s)", (keys[1:],))
    assert not caught(stranger)
    assert database.execute("SELECT count(*) FROM anon.people") == [(100 - len(keys),)]


def test_an_exchange_between_the_question_and_the_reading_runs_nothing(
    database, stranger, monkeypatch
):
    """The names are right whenever dbanon asks, and wrong in one gap between two questions."""
    publish(database)
    trap(stranger, "a view")
    ask, asked, swapped, gap = identity._refuse_moved, [], [], [0]  # noqa: SLF001

    def exchanged(*args):
        if swapped:
            stranger.execute(SWAP_BACK)
            swapped.clear()
        ask(*args)
        asked.append(None)
        if len(asked) == gap[0]:
            stranger.execute(SWAP)
            swapped.append(None)

    monkeypatch.setattr(identity, "_refuse_moved", exchanged)
    outcomes = []
    while not outcomes or len(asked) >= gap[0]:
        gap[0] += 1
        asked.clear()
        try:
            dbanon.refresh(TABLE, settings=database.settings)
            outcomes.append("refreshed")
        except dbanon.DbanonError as error:
            outcomes.append(type(error).__name__)
        if swapped:
            stranger.execute(SWAP_BACK)
            swapped.clear()
        assert not caught(stranger)
        assert certified(database) == {"true"}
    assert len(outcomes) > len(MOMENTS)
    assert outcomes[-1] == "refreshed"
    assert len(set(outcomes)) > 1
