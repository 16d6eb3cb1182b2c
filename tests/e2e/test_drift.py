"""What changes about a published table stops the next publication; the release is served on."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from selection import exhaustive_after
from tables import make_patients, patients_policy, rows_proved

import dbanon
from dbanon.cli import main

SOURCE = "public.patients"
COUNT = "SELECT count(*), sum(hashtext(p::text)) FROM anon.patients AS p"
KEY = "ALTER TABLE public.patients DROP CONSTRAINT patients_pkey"
NO_KEY_NULL = "ALTER TABLE public.patients ALTER id DROP NOT NULL"
ASIDE = "ALTER TABLE public.patients RENAME TO aside"
BACK = "ALTER TABLE public.aside RENAME TO patients"
MOVE = "ALTER TABLE public.patients SET SCHEMA clinic"
RENAME_BACK = "ALTER TABLE public.people RENAME TO patients"
TRADE = (
    "ALTER TABLE public.patients RENAME disease TO note2;"
    "ALTER TABLE public.patients RENAME note TO disease;"
    "ALTER TABLE public.patients RENAME note2 TO note"
)
NEWER = (
    "INSERT INTO dbanon.taxonomy (name, version, n_leaves, height)"
    " SELECT name, 2, n_leaves, height FROM dbanon.taxonomy;"
    "INSERT INTO dbanon.taxonomy_node SELECT n.taxonomy_id + 1, node_id, label, parent_id,"
    " depth, leaf_lo, leaf_hi FROM dbanon.taxonomy_node AS n"
)

# What is done, what undoes it, and what is said of it.
CHANGES = {
    "new column": (
        "ALTER TABLE public.patients ADD hiv boolean",
        "ALTER TABLE public.patients DROP hiv",
        "column hiv is new and has no role",
    ),
    "renamed column": (
        "ALTER TABLE public.patients RENAME age TO years",
        "ALTER TABLE public.patients RENAME years TO age",
        "column age was renamed to years",
    ),
    "traded names": (
        TRADE,
        TRADE,
        "column disease is another column than before under the same name",
    ),
    "type": (
        "ALTER TABLE public.patients ALTER age TYPE bigint",
        "ALTER TABLE public.patients ALTER age TYPE integer",
        "column age is of type bigint now, and was integer",
    ),
    "no leaf": (
        "INSERT INTO public.patients (id, sex) VALUES (999, 'X')",
        "DELETE FROM public.patients WHERE id = 999",
        "taxonomy 'sexes' has no leaf for 1 distinct values of column sex, on 1 rows",
    ),
    "dropped key": (
        KEY,
        "ALTER TABLE public.patients ADD PRIMARY KEY (id)",
        "its primary key was dropped",
    ),
    "key that may be NULL": (
        f"{KEY}; {NO_KEY_NULL}",
        "ALTER TABLE public.patients ADD PRIMARY KEY (id)",
        "column id may be NULL now, and was part of the key",
    ),
    "another key": (
        f"{KEY}; ALTER TABLE public.patients ADD PRIMARY KEY (id, note)",
        f"{KEY}; ALTER TABLE public.patients ADD PRIMARY KEY (id)",
        "its primary key is another one now: id, note",
    ),
    "row-level security": (
        "ALTER TABLE public.patients ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE public.patients DISABLE ROW LEVEL SECURITY",
        "row-level security was switched on",
    ),
    "forced row-level security": (
        "ALTER TABLE public.patients FORCE ROW LEVEL SECURITY",
        "ALTER TABLE public.patients NO FORCE ROW LEVEL SECURITY",
        "row-level security was forced on its owner",
    ),
    "a view": (
        f"{ASIDE}; CREATE VIEW public.patients AS SELECT * FROM public.aside",
        f"DROP VIEW public.patients; {BACK}",
        "public.patients is a view now",
    ),
    "a partitioned table": (
        f"{ASIDE}; CREATE TABLE public.patients (LIKE public.aside) PARTITION BY LIST (sex)",
        f"DROP TABLE public.patients; {BACK}",
        "public.patients is partitioned now",
    ),
    "a child": (
        "CREATE TABLE public.child () INHERITS (public.patients)",
        "DROP TABLE public.child",
        "other tables inherit from it now",
    ),
    "a parent": (
        "CREATE TABLE public.above (age integer); ALTER TABLE public.patients INHERIT public.above",
        "ALTER TABLE public.patients NO INHERIT public.above; DROP TABLE public.above",
        "it has a parent now, whose readers can read it",
    ),
    "renamed": (ASIDE, BACK, "public.patients is called public.aside now"),
    "a newer taxonomy": (
        NEWER,
        "DELETE FROM dbanon.taxonomy WHERE version = 2",
        "taxonomy sexes is at version 2 now, and was at 1",
    ),
    "a right": (
        "GRANT SELECT ON public.patients TO analyst_drift",
        "REVOKE SELECT ON public.patients FROM analyst_drift",
        "analyst_drift can read public.patients",
    ),
    "a right on a column": (
        "GRANT SELECT (age) ON public.patients TO analyst_drift",
        "REVOKE SELECT (age) ON public.patients FROM analyst_drift",
        "analyst_drift can read public.patients",
    ),
    "a right of everybody": (
        "GRANT SELECT ON public.patients TO PUBLIC",
        "REVOKE SELECT ON public.patients FROM PUBLIC",
        "analyst_drift can read public.patients",
    ),
}
BY_ADMINISTRATORS = {
    "a right through a role": (
        13,
        "GRANT SELECT ON public.patients TO reader_drift; GRANT reader_drift TO analyst_drift",
        "REVOKE reader_drift FROM analyst_drift; REVOKE ALL ON public.patients FROM reader_drift",
        "analyst_drift can read public.patients",
    ),
    "a right on all data": (
        14,
        "GRANT pg_read_all_data TO analyst_drift",
        "REVOKE pg_read_all_data FROM analyst_drift",
        "analyst_drift can read public.patients",
    ),
    "a foreign table": (
        13,
        f"{ASIDE}; CREATE FOREIGN TABLE public.patients (id int) SERVER nowhere",
        f"DROP FOREIGN TABLE public.patients; {BACK}",
        "public.patients is a foreign table now",
    ),
    "a foreign child": (
        13,
        "CREATE FOREIGN TABLE public.far () INHERITS (public.patients) SERVER nowhere",
        "DROP FOREIGN TABLE public.far",
        "some of its rows are in a foreign table now",
    ),
}


def define(database, tmp_path, **changes):
    """Store a policy of public.patients, the sex of which is a category of a taxonomy."""
    table = make_patients(database)
    sexes = tmp_path / "sexes.csv"
    sexes.write_text("F;*\nM;*\n")
    dbanon.import_taxonomy("sexes", sexes, settings=database.settings)
    policy = patients_policy(table)
    columns = [
        replace(rule, taxonomy="sexes") if rule.column == "sex" else rule for rule in policy.columns
    ]
    policy = replace(policy, columns=tuple(columns), **changes)
    dbanon.set_policy(table, policy, settings=database.settings)
    return policy


def publish_for_an_analyst(database):
    with TemporaryDirectory() as folder:
        define(database, Path(folder))
    database.role("reader_drift", login=False)
    grants = [database.role("analyst_drift")]
    dbanon.publish(SOURCE, grants=grants, settings=database.settings)


@pytest.fixture
def served(copied):
    """Patients published as release 1, and granted to a role."""
    return copied(publish_for_an_analyst)


def said(database):
    """Publish and consult the doctor; return what each says, after a look at the exit codes."""
    with pytest.raises(dbanon.DriftError) as published:
        dbanon.publish(SOURCE, settings=database.settings)
    findings = [
        finding for finding in dbanon.doctor(settings=database.settings) if finding.exit_code
    ]
    assert {4} == {published.value.exit_code, *(f.exit_code for f in findings)}
    assert all(finding.hint for finding in findings)
    assert published.value.hint
    return str(published.value), "\n".join(finding.message for finding in findings)


@pytest.mark.parametrize("names", exhaustive_after(1, [[*CHANGES][:4], [*CHANGES][4:]]))
def test_every_change_is_said_and_the_release_is_served_on(served, names):
    before = served.execute(COUNT)
    for name in names:
        change, undo, expected = CHANGES[name]
        served.execute(change)
        published, doctor = said(served)
        assert expected in published, name
        assert "served" in published, name
        assert expected in doctor, name
        assert before == served.execute(COUNT), name
        served.execute(undo)
    assert [] == [f for f in dbanon.doctor(settings=served.settings) if f.exit_code]
    assert [1] == [release.id for release in dbanon.list_releases(settings=served.settings)]
    assert rows_proved(dbanon.publish(SOURCE, settings=served.settings)) == 200


def test_what_an_administrator_changes_is_said_too(served):
    before, admin = served.execute(COUNT), served.admin()
    admin.execute(
        "CREATE FOREIGN DATA WRAPPER none; CREATE SERVER nowhere FOREIGN DATA WRAPPER none"
    )
    for name, (since, change, undo, expected) in BY_ADMINISTRATORS.items():
        if served.server.version < since:
            continue
        admin.execute(change)
        published, doctor = said(served)
        for text in (published, doctor):
            assert expected in text, name
        assert before == served.execute(COUNT), name
        admin.execute(undo)
    assert rows_proved(dbanon.publish(SOURCE, settings=served.settings)) == 200


@pytest.mark.exhaustive
def test_what_is_published_by_a_taxonomy_is_published_again_by_a_newer_one(served):
    def refreshed():
        (result,) = dbanon.refresh(SOURCE, if_changed=True, settings=served.settings)
        return result.changed

    assert not refreshed()
    served.execute(NEWER)
    policy = dbanon.load_policy(SOURCE, settings=served.settings)
    dbanon.set_policy(SOURCE, policy, settings=served.settings)
    assert refreshed()
    assert not refreshed()


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["age", "note"])
def test_a_column_made_again_is_not_the_old_one(served, name):
    kind = "integer" if name == "age" else "text"
    served.execute(f"ALTER TABLE public.patients DROP {name}")
    for text in said(served):
        assert f"column {name} was dropped" in text
    served.execute(f"ALTER TABLE public.patients ADD {name} {kind}")
    for text in said(served):
        assert f"column {name} is another column than before under the same name" in text
    policy = dbanon.load_policy(SOURCE, settings=served.settings)
    dbanon.set_policy(SOURCE, policy, settings=served.settings)
    assert [] == [f for f in dbanon.doctor(settings=served.settings) if f.exit_code]


@pytest.mark.parametrize(
    ("change", "name", "back"),
    exhaustive_after(
        1,
        [
            (
                "ALTER TABLE public.patients RENAME TO people",
                "public.people",
                RENAME_BACK,
            ),
            (
                f"CREATE SCHEMA clinic; {MOVE}; ALTER TABLE clinic.patients RENAME TO people",
                "clinic.people",
                f"ALTER TABLE clinic.people SET SCHEMA public; {RENAME_BACK}",
            ),
        ],
    ),
)
def test_a_table_that_was_renamed_is_found_and_the_way_back_is_named(served, change, name, back):
    served.execute(change)
    for text in said(served):
        assert f"public.patients is called {name} now; anon.patients is served on" in text
    with pytest.raises(dbanon.DriftError) as caught:
        dbanon.publish(SOURCE, settings=served.settings)
    assert f"{back}, and go on; or dbanon release drop 1" == caught.value.hint
    served.execute(back)
    assert rows_proved(dbanon.publish(SOURCE, settings=served.settings)) == 200


def test_another_table_is_not_taken_for_the_one_that_is_gone(served):
    served.execute(f"{ASIDE}; ALTER TABLE public.aside DROP note, ADD note text")
    for text in said(served):
        assert "public.patients is gone" in text


def test_an_owner_who_was_renamed_is_named(served):
    admin, owner = served.admin(), served.role("owner_drift")
    publisher = served.execute("SELECT current_user")[0][0]
    admin.execute(f"GRANT {owner} TO {publisher}; ALTER TABLE public.patients OWNER TO {owner}")
    policy = dbanon.load_policy(SOURCE, settings=served.settings)
    dbanon.set_policy(SOURCE, policy, settings=served.settings)
    admin.execute(f"ALTER ROLE {owner} RENAME TO renamed_drift")
    try:
        for text in said(served):
            assert "its owner owner_drift seems to be called renamed_drift now" in text
    finally:
        admin.execute(f"ALTER ROLE renamed_drift RENAME TO {owner}")


def publish_with_an_enum(database):
    table = make_patients(database)
    database.execute(
        "CREATE TYPE public.illness AS ENUM ('asthma', 'cancer', 'flu', 'gastritis');"
        "CREATE DOMAIN public.known_illness AS public.illness;"
        "ALTER TABLE public.patients ALTER disease"
        " TYPE public.known_illness USING disease::public.illness"
    )
    dbanon.set_policy(table, patients_policy(table), settings=database.settings)
    dbanon.publish(SOURCE, settings=database.settings)


@pytest.mark.exhaustive
def test_renamed_labels_of_an_enum_are_drift_and_new_ones_are_not(copied):
    database = copied(publish_with_an_enum)
    before = database.execute(COUNT)
    database.execute("ALTER TYPE public.illness ADD VALUE 'measles' BEFORE 'flu'")
    assert [] == [f for f in dbanon.doctor(settings=database.settings) if f.exit_code]
    database.execute("ALTER TYPE public.illness RENAME VALUE 'flu' TO 'influenza'")
    for text in said(database):
        assert "column disease has an enum of which 1 labels were renamed" in text
        assert "flu" not in text
    (refreshed,) = dbanon.refresh(all_tables=True, settings=database.settings)
    assert 4 == refreshed.error.exit_code
    assert before == database.execute(COUNT)
    database.execute("ALTER TYPE public.illness RENAME VALUE 'influenza' TO 'flu'")
    assert [] == [f for f in dbanon.doctor(settings=database.settings) if f.exit_code]


@pytest.mark.exhaustive
def test_a_policy_set_again_accepts_what_changed(served, tmp_path):
    served.execute("ALTER TABLE public.patients ALTER age TYPE bigint")
    (refreshed,) = dbanon.refresh(all_tables=True, if_changed=True, settings=served.settings)
    assert "column age is of type bigint now" in str(refreshed.error)
    assert refreshed.error.exit_code == 4
    assert not refreshed.changed
    policy = dbanon.load_policy(SOURCE, settings=served.settings)
    dbanon.set_policy(SOURCE, policy, settings=served.settings)
    assert [] == [f for f in dbanon.doctor(settings=served.settings) if f.exit_code]
    assert dbanon.publish(SOURCE, settings=served.settings).id > 1


def test_a_right_that_a_reader_gained_is_a_matter_of_rights_too(served):
    served.execute("GRANT SELECT ON public.patients TO analyst_drift")
    with pytest.raises(dbanon.NotPermitted, match="analyst_drift can read") as caught:
        dbanon.publish(SOURCE, settings=served.settings)
    assert caught.value.exit_code == 4


@pytest.mark.exhaustive
def test_a_live_view_drifts_like_a_table(served):
    dbanon.publish(SOURCE, kind="view", name="live", settings=served.settings)
    served.execute("ALTER TABLE public.patients ADD hiv boolean")
    with pytest.raises(dbanon.DriftError, match="column hiv is new"):
        dbanon.publish(SOURCE, kind="view", name="live", settings=served.settings)
    drifted = [f.subject for f in dbanon.doctor(settings=served.settings) if f.exit_code == 4]
    assert ["anon.live", "anon.patients"] == sorted(drifted)


@pytest.mark.exhaustive
def test_before_anything_is_served_a_change_is_no_drift(database, tmp_path):
    define(database, tmp_path)
    database.execute("ALTER TABLE public.patients ADD hiv boolean, ENABLE ROW LEVEL SECURITY")
    with pytest.raises(dbanon.PolicyError, match="hiv has no role") as caught:
        dbanon.publish(SOURCE, settings=database.settings)
    assert caught.value.exit_code == 1
    database.execute(
        "ALTER TABLE public.patients DROP hiv, DISABLE ROW LEVEL SECURITY, ALTER age TYPE bigint"
    )
    dbanon.publish(SOURCE, settings=database.settings)
    assert [] == [f for f in dbanon.doctor(settings=database.settings) if f.exit_code]
    assert rows_proved(dbanon.publish(SOURCE, settings=database.settings)) == 200


@pytest.mark.exhaustive
def test_a_grantee_of_the_command_line_is_an_error_and_no_drift(served):
    leaky = served.role("leaky_drift")
    served.execute(f"GRANT SELECT ON public.patients TO {leaky}")
    with pytest.raises(dbanon.NotPermitted, match="leaky_drift can read") as caught:
        dbanon.publish(SOURCE, grants=[leaky], settings=served.settings)
    assert caught.value.exit_code == 1


def test_commands_exit_with_the_code_of_drift(served, monkeypatch, capsys):
    def run(*words):
        monkeypatch.setattr(sys, "argv", ["dbanon", *words, "--dsn", served.dsn])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, *capsys.readouterr()

    served.execute("ALTER TABLE public.patients ADD hiv boolean, ALTER age TYPE bigint")
    for words in (("publish", "patients"), ("refresh", "patients")):
        code, _, err = run(*words)
        assert code == 4
        assert "column hiv is new and has no role" in err
        assert "column age is of type bigint now, and was integer" in err
        assert "try: dbanon policy export public.patients" in err
    code, out, _ = run("doctor", "--json")
    assert code == 4
    assert 2 == sum(finding["exit_code"] == 4 for finding in json.loads(out))
    code, out, _ = run("check", "anon.patients", "--json")
    assert code in {0, None}


def test_a_taxonomy_of_another_column_is_refused_when_the_policy_is_set(database, tmp_path):
    policy = define(database, tmp_path)
    columns = [
        replace(rule, taxonomy="sexes") if rule.column == "disease" else rule
        for rule in policy.columns
    ]
    other = replace(policy, columns=tuple(columns))
    with pytest.raises(dbanon.PolicyError, match="sexes has no value of column disease: it seems"):
        dbanon.set_policy(SOURCE, other, warn=lambda _: None, settings=database.settings)
    assert policy == dbanon.set_policy(
        SOURCE, policy, warn=lambda _: None, settings=database.settings
    )
