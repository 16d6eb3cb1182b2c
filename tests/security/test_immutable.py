"""Nobody but the publishing path changes a released table, and doctor tells of whoever did."""

from dataclasses import replace

import psycopg
import pytest
from tables import patients_policy, publish_patients, unseal

import dbanon
from dbanon.db.releases.immutability import broken_seals
from dbanon.db.session import connect
from dbanon.domain.policy import ColumnRule, Role

CHANGES = {
    "insert": "INSERT INTO {0} SELECT * FROM {0}",
    "insert of a default": "INSERT INTO {0} DEFAULT VALUES",
    "update": "UPDATE {0} SET disease = 'flu'",
    "update of no row": "UPDATE {0} SET disease = 'flu' WHERE false",
    "delete": "DELETE FROM {0}",
    "truncate": "TRUNCATE {0}",
    "merge": "MERGE INTO {0} AS t USING (SELECT 'F' AS sex) AS s ON t.sex = s.sex"
    " WHEN MATCHED THEN DELETE",
    "on conflict": "INSERT INTO {0} DEFAULT VALUES ON CONFLICT DO NOTHING",
    "with": "WITH gone AS (DELETE FROM {0} RETURNING disease) SELECT count(*) FROM gone",
    "copy": "COPY {0} (disease) FROM STDIN",
}
DEFINITIONS = {
    "add column": "ALTER TABLE {0} ADD COLUMN extra text",
    "type": "ALTER TABLE {0} ALTER COLUMN disease TYPE varchar",
    "drop column": "ALTER TABLE {0} DROP COLUMN disease",
    "rename column": "ALTER TABLE {0} RENAME COLUMN disease TO illness",
    "inherit": "ALTER TABLE {0} INHERIT public.twin",
    "attach": "ALTER TABLE public.parts ATTACH PARTITION {0} DEFAULT",
    "rule": 'CREATE RULE "_RETURN" AS ON SELECT TO {0} DO INSTEAD SELECT * FROM public.twin',
    "trigger": "CREATE TRIGGER odd BEFORE INSERT ON {0} EXECUTE FUNCTION public.odd()",
}
VIEW_CHANGES = {
    name: statement for name, statement in CHANGES.items() if name not in {"truncate", "copy"}
}
COUNT = "SELECT count(*), count(DISTINCT disease) FROM anon.patients"


def publish_to_be_attacked(database):
    publish_patients(database)
    database.execute(
        "CREATE TABLE public.twin AS SELECT * FROM dbanon_data.release_1 WITH NO DATA;"
        "CREATE TABLE public.parts (LIKE public.twin) PARTITION BY LIST (sex);"
        "CREATE FUNCTION public.odd() RETURNS trigger LANGUAGE plpgsql"
        "  AS $$ BEGIN RETURN NULL; END $$"
    )


@pytest.fixture
def patients(copied):
    """A served release with the number 1, and what hostile statements need beside it."""
    return copied(publish_to_be_attacked)


def refusals(connection, statements, relation):
    """Try every statement and roll it back; return the message of each, None where it worked."""
    found = {}
    for name, statement in statements.items():
        found[name] = None
        try:
            with connection.transaction(force_rollback=True), connection.cursor() as cursor:
                command = statement.format(relation)
                if name == "copy":
                    with cursor.copy(command) as copy:
                        copy.write_row(("flu",))
                else:
                    cursor.execute(command)
        except psycopg.Error as error:
            found[name] = error.diag.message_primary
    return found


def supported(statements, database):
    """Leave out what the server does not know."""
    known = database.server.version >= 15
    return {name: text for name, text in statements.items() if known or name != "merge"}


def failures(database):
    findings = dbanon.doctor(settings=database.settings)
    return [finding.message for finding in findings if finding.exit_code]


@pytest.mark.exhaustive
def test_on_a_plain_table_every_statement_works(patients):
    patients.execute("CREATE TABLE public.plain AS SELECT * FROM public.twin WITH NO DATA")
    statements = supported({**CHANGES, **DEFINITIONS}, patients)
    if patients.server.version > 15:
        del statements["rule"]  # refused on every table
    found = refusals(patients.connect(), statements, "public.plain")
    assert dict.fromkeys(statements) == found
    patients.execute("CREATE VIEW anon.plain AS SELECT * FROM public.plain")
    statements = supported(VIEW_CHANGES, patients)
    if patients.server.version < 17:
        statements.pop("merge", None)  # of views only since
    assert dict.fromkeys(statements) == refusals(patients.connect(), statements, "anon.plain")


def test_the_owner_of_a_release_cannot_change_it(patients):
    statements = supported({**CHANGES, **DEFINITIONS}, patients)
    found = refusals(patients.connect(), statements, "dbanon_data.release_1")
    assert [] == [name for name, message in found.items() if message is None]
    assert "cannot add column to typed table" == found["add column"]
    assert "cannot alter column type of typed table" == found["type"]
    assert "cannot drop column from typed table" == found["drop column"]
    assert "cannot change inheritance of typed table" == found["inherit"]
    assert "cannot attach a typed table as partition" == found["attach"]
    through = refusals(patients.connect(), supported(VIEW_CHANGES, patients), "anon.patients")
    assert [] == [name for name, message in through.items() if message is None]
    assert [] == failures(patients)


def test_rights_granted_by_accident_change_nothing(patients):
    analyst, owner = patients.role("analyst_armed"), patients.server.owner
    patients.execute(
        f"GRANT ALL ON SCHEMA anon, dbanon_data TO {analyst};"
        f"GRANT ALL ON ALL TABLES IN SCHEMA anon, dbanon_data TO {analyst}, {owner}"
    )
    for role in (analyst, owner):
        connection = patients.connect_as(role)
        for relation, statements in (
            ("dbanon_data.release_1", CHANGES),
            ("anon.patients", VIEW_CHANGES),
        ):
            found = refusals(connection, supported(statements, patients), relation)
            assert [] == [name for name, message in found.items() if message is None]
            told = [text for text in found.values() if "released tables are immutable" in text]
            assert len(told) >= len(found) - 1  # MERGE into a view may be refused as such
    assert patients.execute(COUNT) == [(200, 4)]
    found = failures(patients)
    assert any("a role has the right to change its private copy" in text for text in found)
    assert any("right on it other than to read it" in text for text in found)


def test_replicated_changes_are_refused_too(patients):
    admin = patients.admin()
    admin.execute("SET session_replication_role = replica")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="immutable"):
        admin.execute("DELETE FROM dbanon_data.release_1")


def test_rows_of_a_child_are_not_served(patients):
    patients.execute(
        "CREATE TABLE public.child () INHERITS (dbanon_data.release_1);"
        "INSERT INTO public.child SELECT * FROM dbanon_data.release_1"
    )
    assert patients.execute(COUNT) == [(200, 4)]
    assert any("has children or a parent" in text for text in failures(patients))


# What an owner can do who means to, and what doctor says of it; first what undoes a seal.
OPENED = {
    "ALTER TYPE dbanon_data.shape_1 ADD ATTRIBUTE extra int CASCADE": "has other columns",
    "ALTER TABLE dbanon_data.release_1 NOT OF": "bound to no type",
    "ALTER TABLE dbanon_data.release_1 DISABLE TRIGGER ALL": "missing or disabled",
    "ALTER TABLE dbanon_data.release_1 ENABLE TRIGGER ALL": "missing or disabled",
    "DROP TRIGGER released_table_is_immutable ON dbanon_data.release_1": "missing or disabled",
    "GRANT UPDATE ON dbanon_data.release_1 TO CURRENT_USER": "the right to change",
    "GRANT UPDATE (disease) ON dbanon_data.release_1 TO CURRENT_USER": "the right to change",
    "CREATE RULE odd AS ON INSERT TO dbanon_data.release_1 DO INSTEAD NOTHING": "rule or a trigger",
    "ALTER TABLE dbanon_data.release_1 ENABLE ROW LEVEL SECURITY": "row-level security",
    "ALTER VIEW anon.patients SET (security_barrier = false)": "security_barrier is off",
    "CREATE OR REPLACE VIEW anon.patients WITH (security_barrier = true) AS"
    " SELECT * FROM dbanon_data.release_1 WHERE sex = 'F'": "other rows or columns",
    "CREATE OR REPLACE VIEW anon.patients WITH (security_barrier = true) AS SELECT r.* FROM"
    " dbanon_data.release_1 AS r CROSS JOIN (SELECT id FROM public.patients LIMIT 1) AS s":
        "its definition is not",
    "CREATE OR REPLACE VIEW anon.patients WITH (security_barrier = true) AS"
    " SELECT * FROM dbanon_data.release_1 WHERE current_user <> 'analyst'": "its definition is not",
    "ALTER VIEW anon.patients RENAME COLUMN disease TO illness": "other rows or columns",
}  # fmt: skip


@pytest.mark.exhaustive
def test_doctor_tells_what_a_determined_owner_opened(patients):
    release, found = 1, []
    for statement, expected in OPENED.items():
        if any(expected in text for text in found):
            (refreshed,) = dbanon.refresh("patients", settings=patients.settings)
            release = refreshed.release.id
            assert [] == failures(patients), statement
        patients.execute(statement.replace("_1", f"_{release}"))
        found = failures(patients)
        assert any(expected in text for text in found), (statement, found)
    dbanon.refresh("patients", settings=patients.settings)
    assert [] == failures(patients)


COPY, VIEW = "dbanon_data.release_1", "anon.patients"
TRIGGER = "TRIGGER released_table_is_immutable"
ANOTHER_TRIGGER = (
    f"GRANT TRIGGER ON {COPY} TO CURRENT_USER; DROP {TRIGGER} ON {COPY};"
    f"CREATE {TRIGGER} BEFORE {{}} ON {COPY} FOR EACH STATEMENT {{}} EXECUTE FUNCTION {{}}();"
    f"ALTER TABLE {COPY} ENABLE ALWAYS {TRIGGER}; REVOKE TRIGGER ON {COPY} FROM CURRENT_USER"
)
EVERY, REFUSE = "INSERT OR UPDATE OR DELETE OR TRUNCATE", "dbanon.refuse_change"
OLD_VIEW = (
    f"CREATE OR REPLACE VIEW {VIEW} WITH (security_barrier) AS"
    f" SELECT s.age, s.sex, s.born, s.weight, s.disease, s.note FROM ONLY {COPY} AS s"
)
UNSEALED, STRANGE = "missing or disabled", "copy has a rule or a trigger"
UNTYPED, UNLIKE_SEEN = "bound to no type", "the function that tells who can see it"
# What is done to a copy or its view, and all that is broken then.
BREACHES = {
    "SELECT": [],
    **{
        f"GRANT {right} ON {COPY} TO CURRENT_USER": ["the right to change"]
        for right in ("INSERT", "UPDATE", "DELETE", "TRUNCATE", "TRIGGER")
    },
    **{
        f"GRANT {right} (disease) ON {COPY} TO PUBLIC": ["the right to change"]
        for right in ("INSERT", "UPDATE")
    },
    f"GRANT SELECT, REFERENCES ON {COPY} TO PUBLIC; GRANT SELECT (sex) ON {COPY} TO PUBLIC": [],
    **{
        f"GRANT {right} ON {VIEW} TO PUBLIC": ["right on it other than to read it"]
        for right in ("INSERT", "UPDATE", "DELETE", "TRUNCATE", "TRIGGER")
    },
    f"GRANT SELECT ON {VIEW} TO PUBLIC; GRANT ALL ON {VIEW} TO CURRENT_USER": [],
    f"ALTER TABLE {COPY} NOT OF": [UNTYPED],
    f"ALTER TABLE {COPY} NOT OF; ALTER TABLE {COPY} INHERIT public.twin": [UNTYPED, "a parent"],
    f"CREATE TABLE public.child () INHERITS ({COPY})": ["has children"],
    **{
        f"ALTER TABLE {COPY} {mode} {TRIGGER}": [UNSEALED]
        for mode in ("DISABLE", "ENABLE", "ENABLE REPLICA")
    },
    f"DROP {TRIGGER} ON {COPY}": [UNSEALED],
    ANOTHER_TRIGGER.format(EVERY, "", REFUSE): [],
    ANOTHER_TRIGGER.format(EVERY, "WHEN (false)", REFUSE): [UNSEALED],
    ANOTHER_TRIGGER.format(EVERY, "", "public.odd"): [UNSEALED],
    ANOTHER_TRIGGER.format("UPDATE OR DELETE OR TRUNCATE", "", REFUSE): [UNSEALED],
    f"GRANT TRIGGER ON {COPY} TO CURRENT_USER;"
    f"CREATE TRIGGER odd AFTER DELETE ON {COPY} EXECUTE FUNCTION public.odd()": [
        STRANGE,
        "the right to change",
    ],
    f"CREATE RULE odd AS ON DELETE TO {COPY} DO INSTEAD NOTHING": [STRANGE],
    f"ALTER TABLE {COPY} ADD CHECK (sex <> 'X')": [STRANGE],
    f"ALTER TABLE {COPY} ENABLE ROW LEVEL SECURITY": ["row-level security"],
    f"ALTER TABLE {COPY} FORCE ROW LEVEL SECURITY": ["row-level security"],
    "ALTER TYPE dbanon_data.shape_1 ADD ATTRIBUTE extra int CASCADE": ["other columns"],
    **{
        f"ALTER FUNCTION dbanon_data.seen_1() {change}": [UNLIKE_SEEN]
        for change in ("SECURITY INVOKER", "VOLATILE", "RESET search_path")
    },
    "CREATE OR REPLACE FUNCTION dbanon_data.seen_1() RETURNS boolean LANGUAGE plpgsql STABLE"
    " SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS 'BEGIN RETURN true; END'": [
        UNLIKE_SEEN
    ],
    "ALTER FUNCTION dbanon_data.seen_1() SET SCHEMA public": ["its definition", UNLIKE_SEEN],
    OLD_VIEW: ["its definition"],
    f"{OLD_VIEW}; DROP FUNCTION dbanon_data.seen_1()": ["its definition", UNLIKE_SEEN],
    f"{OLD_VIEW} WHERE s.sex = 'F'; DROP FUNCTION dbanon_data.seen_1()": [
        "its definition",
        UNLIKE_SEEN,
    ],
    f"CREATE RULE odd AS ON INSERT TO {VIEW} DO INSTEAD NOTHING": ["it has a rule or a trigger"],
    f"CREATE TRIGGER odd INSTEAD OF DELETE ON {VIEW} FOR EACH ROW EXECUTE FUNCTION public.odd()": [
        "it has a rule or a trigger"
    ],
    f"ALTER TABLE {COPY} RENAME TO gone": ["its private copy is gone"],
}


def test_a_breach_is_told_by_its_name_and_by_no_other(patients):
    ((published,),) = patients.execute(f"SELECT '{VIEW}'::regclass::oid")
    with connect(patients.settings) as session:
        for statement, expected in BREACHES.items():
            with session.transaction(keep=False):
                session.pg.execute(statement)
                found = [seal.problem for seal in broken_seals(session, published, 1)]
            assert len(expected) == len(found), (statement, found)
            for words, problem in zip(expected, found, strict=True):
                assert words in problem, statement


@pytest.mark.exhaustive
def test_what_publishing_again_does_not_mend_comes_with_what_does(patients):
    patients.execute(
        "CREATE RULE odd AS ON INSERT TO anon.patients DO INSTEAD NOTHING;"
        "CREATE FUNCTION public.old() RETURNS trigger LANGUAGE plpgsql"
        "  AS $$ BEGIN RETURN OLD; END $$;"
        "CREATE TRIGGER odd INSTEAD OF DELETE ON anon.patients FOR EACH ROW"
        "  EXECUTE FUNCTION public.old()"
    )
    (finding,) = [f for f in dbanon.doctor(settings=patients.settings) if f.exit_code]
    assert finding.hint == "DROP RULE, or DROP TRIGGER"
    patients.execute("DROP RULE odd ON anon.patients; DROP TRIGGER odd ON anon.patients")
    assert [] == failures(patients)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE {0} SET disease = 'another' WHERE ctid = (SELECT min(ctid) FROM {0})",
        "DELETE FROM {0} WHERE ctid = (SELECT min(ctid) FROM {0})",
        "INSERT INTO {0} SELECT * FROM {0} LIMIT 1",
    ],
)
def test_doctor_tells_a_changed_row_after_the_seal_is_back(patients, statement):
    unseal(patients, 1)
    table = "dbanon_data.release_1"
    patients.execute(statement.format(table))
    patients.execute(
        f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER released_table_is_immutable;"
        f"REVOKE ALL ON {table} FROM CURRENT_USER; GRANT SELECT ON {table} TO CURRENT_USER"
    )
    (finding,) = [f for f in dbanon.doctor(settings=patients.settings) if f.exit_code]
    assert finding.message == "it shows other rows or columns than were published"
    assert finding.hint == "dbanon refresh public.patients"
    dbanon.refresh("patients", settings=patients.settings)
    assert [] == failures(patients)


@pytest.mark.parametrize("kind", ["table", "view"])
def test_a_release_without_its_digest_is_told_of_and_replaced(patients, kind):
    dbanon.publish("patients", kind=kind, new_series=True, settings=patients.settings)
    patients.execute("ALTER TABLE dbanon.release DROP COLUMN content")
    dbanon.init(settings=patients.settings)
    (finding,) = [f for f in dbanon.doctor(settings=patients.settings) if f.exit_code]
    assert "the digest of what was published is gone" in finding.message
    assert finding.hint == "dbanon refresh public.patients"
    dbanon.refresh("patients", settings=patients.settings)
    assert {"ok"} == {finding.level for finding in dbanon.doctor(settings=patients.settings)}


def test_withdrawing_a_release_leaves_nothing_behind(patients):
    dbanon.drop_release(1, settings=patients.settings)
    left = patients.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = 'dbanon_data'::regnamespace"
    )
    assert [] == left


@pytest.mark.exhaustive
def test_columns_of_odd_names_and_types_are_sealed_as_they_are(database):
    database.execute(
        "CREATE DOMAIN public.word AS varchar(9); CREATE TYPE public.mood AS ENUM ('a', 'b');"
        'CREATE TABLE public.odd ("; --" int PRIMARY KEY, s int, "A  \n""b" text COLLATE "C",'
        ' "select" public.word, moods public.mood[], amount numeric(9, 2), "$1" char(3));'
        "INSERT INTO public.odd SELECT i, i % 9, 'd' || i % 5, 'w' || i % 4,"
        " ARRAY['a']::public.mood[], i, 'x' FROM generate_series(1, 60) AS i"
    )
    table = dbanon.TableName("public", "odd")
    roles = [Role.IDENTIFIER, Role.QUASI, Role.SENSITIVE, *[Role.INSENSITIVE] * 4]
    names = ["; --", "s", 'A  \n"b', "select", "moods", "amount", "$1"]
    columns = tuple(map(ColumnRule, names, roles))
    policy = replace(patients_policy(table), columns=columns)
    dbanon.set_policy(table, policy, settings=database.settings)
    dbanon.publish(table, settings=database.settings)
    assert [] == failures(database)
    types = (
        "SELECT attname, format_type(atttypid, atttypmod), attcollation FROM pg_attribute"
        " WHERE attrelid = %s::regclass AND attname <> ALL ('{s,; --}') AND attnum > 0 ORDER BY 1"
    )
    shown = database.execute(types, ["dbanon_data.release_1"])
    assert shown == database.execute(types, ["dbanon_data.shape_1"])
    assert [name for name, *_ in shown if name != "dbanon_class"] == [
        name for name, *_ in database.execute(types, ["public.odd"])
    ]
    kinds = {name: kind for name, kind, _ in shown}
    assert ("text[]", "numeric(9,2)") == (kinds["moods"], kinds["amount"])
