import io
import json
import re
import subprocess
import sys
from dataclasses import replace
from typing import NamedTuple

import pytest
from selection import exhaustive_after
from tables import make_patients, patients_policy, unseal

import dbanon
from dbanon.cli import main
from dbanon.db.metadata import migrate
from dbanon.domain.policy import Role
from dbanon.formats import policies


class Finished(NamedTuple):
    """What a command printed."""

    stdout: str
    stderr: str


@pytest.fixture
def run(database, monkeypatch, capsys):
    """Run the command line on the test's database and return what it printed."""
    monkeypatch.setenv("DBANON_DSN", database.dsn)

    def command(*words, code=0, dsn=None):
        if dsn is not None:
            monkeypatch.setenv("DBANON_DSN", dsn)
        monkeypatch.setattr(sys, "argv", ["dbanon", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        finished = Finished(*capsys.readouterr())
        assert (ended.value.code or 0) == code, finished
        assert "Traceback" not in finished.stderr
        return finished

    return command


@pytest.fixture
def patients(database):
    table = make_patients(database)
    dbanon.set_policy(table, patients_policy(table, k=None, l=None), settings=database.settings)
    return database


def assert_error(process, *words, next_command):
    assert process.stdout == ""
    for word in words:
        assert word in process.stderr
    assert f"try: {next_command}" in process.stderr


@pytest.mark.wheel
def test_the_whole_way_of_a_steward(run, database, tmp_path):
    make_patients(database)
    assert "disease" in run("inspect", "patients").stdout
    draft = tmp_path / "patients.toml"
    run("policy", "suggest", "patients", "--output", draft)
    assert "[columns.disease]" in draft.read_text()
    draft.write_text(policies.dump(patients_policy(dbanon.TableName("public", "patients"))))
    run("policy", "set", "patients", "--file", draft)
    assert policies.parse(run("policy", "export", "patients").stdout) == policies.parse(
        draft.read_text()
    )
    assert "int4range" in run("plan", "patients").stdout
    assert "CREATE OR REPLACE VIEW" in run("plan", "patients", "--print-sql").stdout
    assert "served as anon.patients" in run("publish", "patients", "--timings").stdout
    assert "passed" in run("check", "anon.patients").stdout
    assert "unchanged" in run("refresh", "patients", "--if-changed").stdout
    assert run("refresh", "patients").stderr == ""  # nothing changed, so there is nothing to see
    database.execute("DELETE FROM public.patients WHERE id = 17")
    assert "1 published although deleted" in run("refresh", "patients").stdout
    refused = run("refresh", "patients", "--new-series", code=3).stderr
    assert "compared with release 1" in refused
    assert "release 1 is served on" in refused
    run("check", "anon.patients", "--history")
    drawing = tmp_path / "history.svg"
    shown = run("history", "patients", "--plot", drawing)
    assert "nothing to compare: persons are stored of one release at most" in shown.stdout
    assert "history.svg written" in shown.stderr.replace("\n", "")
    assert drawing.read_text().startswith("<?xml")
    assert json.loads(run("history", "patients", "--json").stdout)
    assert json.loads(run("policy", "show", "patients", "--json").stdout)["table"]
    refused = run("history", "nothing_here", "--plot", "history.gif", code=1).stderr
    assert "try: --plot history.svg" in refused
    releases = json.loads(run("release", "list", "--json").stdout)
    assert [release["served"] for release in releases] == [True]
    assert "k-anonymity" in run("release", "show", releases[0]["id"]).stdout
    assert "no leak found" in run("doctor").stdout
    run("release", "drop", releases[0]["id"])
    assert json.loads(run("release", "forget", releases[0]["id"], "--yes", "--json").stdout)
    assert database.execute("SELECT to_regclass('anon.patients')") == [(None,)]
    run("policy", "drop", "patients")
    assert json.loads(run("policy", "list", "--json").stdout) == []


@pytest.mark.wheel
def test_the_whole_life_of_a_taxonomy(run, database, tmp_path):
    make_patients(database)
    file = tmp_path / "sex.csv"
    file.write_text("F;*\nM;*\n")
    assert "version 1" in run("taxonomy", "import", "sex", file).stdout
    assert "version 2" in run("taxonomy", "derive", "sex", "patients", "sex").stdout
    tens = ("--kind", "intervals", "--width", "10", "--json")
    assert json.loads(run("taxonomy", "derive", "age", "patients", "age", *tens).stdout)["version"]
    assert "[20, 30)" in run("taxonomy", "show", "age").stdout
    listed = json.loads(run("taxonomy", "list", "--json").stdout)
    assert [(row["name"], row["version"]) for row in listed] == [("age", 1), ("sex", 2), ("sex", 1)]
    assert run("taxonomy", "export", "sex").stdout == "F;*\nM;*\n"
    assert "us-state" in json.loads(run("taxonomy", "builtin", "list", "--json").stdout)
    added = run("taxonomy", "builtin", "add", "us-state", "--as", "state").stdout
    assert "taxonomy state, version 1: 51 leaves" in added
    query = run("taxonomy", "missing", "sex", "public.patients", "sex").stdout
    assert database.execute(query) == []
    run("taxonomy", "drop", "sex")
    assert "try: dbanon taxonomy list" in run("taxonomy", "show", "sex", code=1).stderr


@pytest.mark.exhaustive
def test_json_says_what_was_published(run, patients):
    release = json.loads(run("publish", "patients", "--k", 5, "--l", 3, "--json").stdout)
    assert release["relation"] == "anon.patients"
    assert [result["verdict"] for result in release["checks"]["results"]] == ["passed", "passed"]
    assert set(release["loss"]["columns"]) == {"age", "sex", "born", "weight"}


@pytest.mark.exhaustive
def test_a_second_release_that_could_be_compared_is_refused(run, patients):
    assert "taken together, releases" not in run("publish", "patients", "--k", 5).stderr
    anew = ("publish", "patients", "--k", 7, "--new-series")
    assert "taken together, releases" in run(*anew, code=3).stderr
    assert "taken together, releases" in run(*anew, "--name", "other", code=3).stderr
    assert "taken together, releases" in run(*anew, "--recipients-changed").stderr


def test_refresh_all_goes_on_after_a_failure_and_reports_the_worst_code(run, patients):
    other = make_patients(patients, name="others")
    dbanon.set_policy(other, patients_policy(other), settings=patients.settings)
    run("publish", "patients", "--k", 5)
    run("publish", "others")
    patients.execute("ALTER TABLE public.others ADD unknown text")
    process = run("refresh", "--all", "--new-series", "--json", code=4)
    results = {result["relation"]: result for result in json.loads(process.stdout)}
    assert results["anon.patients"]["changed"] is True
    assert "unknown" in results["anon.others"]["error"]


def test_what_runs_from_cron_is_quiet_when_all_is_well(run, patients):
    policy = patients_policy(dbanon.TableName("public", "patients"))
    rules = [r if r.column != "note" else replace(r, role=Role.IDENTIFIER) for r in policy.columns]
    dbanon.set_policy("patients", replace(policy, columns=tuple(rules)), settings=patients.settings)
    run("publish", "patients")
    for words in ("refresh --all", "refresh --all --if-changed", "check --all", "doctor"):
        assert ("", "") == run(*words.split(), "--quiet")
    patients.execute("ALTER TABLE public.patients ADD unknown text")
    assert "unknown" in run("refresh", "--all", "--quiet", code=4).stderr
    shown = run("doctor", "--quiet", code=4).stdout
    assert "unknown" in shown
    assert " ok " not in shown


def test_release_drop_asks_whoever_sits_at_a_terminal(run, patients, monkeypatch):
    run("publish", "patients", "--k", 5)
    monkeypatch.setattr("dbanon.cli.terminal.console.can_ask", lambda: True)
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    process = run("release", "drop", 1, code=1)
    assert "Withdraw anon.patients, release 1 of public.patients?" in process.stderr
    assert "nothing was withdrawn\n  try: dbanon release drop 1 --yes" in process.stderr
    assert patients.execute("SELECT count(*) > 0 FROM anon.patients") == [(True,)]
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert "withdrawn" in run("release", "drop", 1).stdout
    run("publish", "patients", "--k", 5)
    assert "withdrawn" in run("release", "drop", 2, "--yes").stdout


def test_the_schema_of_releases_can_be_set_once_for_all(run, patients, monkeypatch):
    monkeypatch.setenv("DBANON_SCHEMA", "published")
    assert "served as published.patients" in run("publish", "patients", "--k", 5).stdout
    assert 'CREATE SCHEMA "published"' in run("init", "--print-sql", "--role", "somebody").stdout
    assert "anon" not in json.loads(run("release", "list", "--json").stdout)[0]["relation"]


def test_plan_says_which_models_it_was_asked_for(run, patients):
    shown = run("plan", "patients", "--k", 5, "--l", 2).stdout
    assert "every class meets 5-anonymity, distinct 2-diversity" in shown


def test_refresh_all_says_that_nothing_is_published(run, patients):
    process = run("refresh", "--all")
    assert process.stdout == ""
    assert "nothing is published" in process.stderr
    assert json.loads(run("refresh", "--all", "--json").stdout) == []


def test_a_policy_is_not_written_over_a_file(run, patients, tmp_path):
    file = tmp_path / "policy.toml"
    file.write_text("mine")
    process = run("policy", "suggest", "patients", "-o", file, code=1)
    assert_error(process, "File exists", next_command="name another file")
    assert file.read_text() == "mine"


def test_no_server(run):
    process = run("doctor", code=1, dsn="host=/nowhere/at/all dbname=x")
    assert_error(process, "cannot connect", next_command="check --dsn")


def test_a_missing_table(run):
    process = run("publish", "nothing_here", "--k", 5, code=1)
    assert_error(process, "nothing_here", next_command="dbanon inspect")


def test_no_primary_key(run, patients):
    patients.execute("ALTER TABLE public.patients DROP CONSTRAINT patients_pkey")
    process = run("publish", "patients", "--k", 5, code=1)
    assert_error(process, "primary key", next_command="")


def test_no_policy(run, database):
    make_patients(database)
    process = run("publish", "patients", "--k", 5, code=1)
    assert_error(process, "no policy", next_command="dbanon policy suggest public.patients")


def test_lists_show_the_l_of_columns_that_are_named(run, database):
    table = make_patients(database)
    policy = patients_policy(table, l=None)
    named = dbanon.ModelSpec("l-diversity", {"l": 3, "columns": ("disease",)})
    asked = replace(policy, models=(*policy.models, named))
    dbanon.set_policy(table, asked, settings=database.settings)
    run("publish", "patients")
    for words in (("policy", "list"), ("release", "list")):
        assert "3 (disease)" in run(*words).stdout
    strict = dbanon.ModelSpec("l-diversity", {"l": 2, "multi": "strict"})
    for model, shown in ((strict, "2"), (dbanon.ModelSpec("l-diversity", {"l": 3}), "3")):
        asked = replace(policy, models=(*policy.models, model))
        dbanon.set_policy(table, asked, settings=database.settings)
        lines = run("policy", "list").stdout.splitlines()
        (row,) = [line.split() for line in lines if "public.patients" in line]
        assert ["public.patients", "default", "5", shown] == row[:4]


def test_no_k(run, patients):
    assert_error(run("publish", "patients", code=1), "k is not set", next_command="pass --k 5")


def test_an_unknown_column_in_the_policy(run, patients, tmp_path):
    file = tmp_path / "policy.toml"
    text = policies.dump(patients_policy(dbanon.TableName("public", "patients")))
    file.write_text(text + '[columns.hieght]\nrole = "quasi"\n')
    process = run("policy", "set", "patients", "--file", file, code=1)
    assert_error(process, "hieght", next_command="dbanon")


@pytest.mark.exhaustive
def test_a_taxonomy_that_lacks_a_value(run, patients, tmp_path):
    (tmp_path / "sex.csv").write_text("F;*\nX;*\n")
    run("taxonomy", "import", "sex", tmp_path / "sex.csv")
    policy = policies.dump(patients_policy(dbanon.TableName("public", "patients")))
    policy = policy.replace("[columns.sex]", '[columns.sex]\ntaxonomy = "sex"')
    (tmp_path / "policy.toml").write_text(policy)
    run("policy", "set", "patients", "--file", tmp_path / "policy.toml")
    process = run("publish", "patients", "--k", 5, code=1)
    assert_error(process, "sex", next_command="dbanon taxonomy")
    assert "'M'" not in process.stderr


@pytest.mark.exhaustive
def test_fewer_rows_than_k(run, patients):
    run("publish", "patients", "--k", 5, "--l", 3)
    process = run("publish", "patients", "--k", 100_000, code=1)
    assert_error(process, "200", "100", next_command="")
    assert "passed" in run("check", "anon.patients").stdout


def test_more_diversity_than_values(run, patients):
    process = run("publish", "patients", "--k", 5, "--l", 50, code=1)
    assert_error(process, "disease", "50", next_command="")


def test_an_empty_table(run, patients):
    patients.execute("TRUNCATE public.patients")
    assert_error(run("publish", "patients", "--k", 5, code=1), "0 rows", next_command="")


def test_no_privilege(run, patients):
    stranger = patients.role("stranger_cli")
    process = run("publish", "patients", "--k", 5, code=1, dsn=patients.dsn_as(stranger))
    assert_error(process, "may not read the metadata schema", next_command="ask its owner")
    assert "may not read" in run("doctor", code=1).stdout


def test_no_privilege_on_the_source(run, patients):
    steward = patients.role("steward_cli")
    patients.execute(f"GRANT USAGE ON SCHEMA dbanon TO {steward}")
    patients.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA dbanon TO {steward}")
    process = run("publish", "patients", "--k", 5, code=1, dsn=patients.dsn_as(steward))
    assert_error(
        process, "permission denied for table patients", next_command="let the owner GRANT"
    )


@pytest.mark.exhaustive
def test_a_metadata_schema_out_of_date(run, patients):
    patients.execute("COMMENT ON SCHEMA dbanon IS 'dbanon metadata: revision 0000'")
    assert_error(run("publish", "patients", code=1), "metadata", next_command="dbanon init")
    run("init")
    run("publish", "patients", "--k", 5)


def test_no_metadata_schema(run, bare_database):
    process = run("policy", "list", code=1, dsn=bare_database.dsn)
    assert_error(process, "no dbanon metadata schema", next_command="dbanon init")


def test_wrong_usage_exits_2(run, patients):
    assert "Missing argument" in run("release", "show", code=2).stderr
    assert "one table, or --dataset FILE" in run("publish", code=2).stderr
    assert "'--k'" in run("publish", "patients", "--k", "many", code=2).stderr
    assert "table or view" in run("publish", "patients", "--as", "carpet", code=2).stderr
    assert "frobnicate" in run("frobnicate", code=2).stderr


# Take rows away from the smallest class until it has k - 1.
SHRINK = """
DELETE FROM {release} WHERE ctid IN (
    SELECT ctid FROM (
        SELECT ctid,
               count(*) OVER w AS members,
               row_number() OVER (w ORDER BY ctid) AS number,
               min(age::text || sex || born::text) OVER w AS class
          FROM {release}
        WINDOW w AS (PARTITION BY age, sex, born, weight)
    ) AS c
    WHERE class = (SELECT min(age::text || sex || born::text) FROM {release}) AND number > 4
)
"""
TAMPERING = {
    "a class of k - 1": SHRINK,
    "two values": "UPDATE {release} SET disease = CASE WHEN disease = 'flu' THEN 'flu' END",
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("statement", TAMPERING.values(), ids=TAMPERING)
def test_check_fails_on_a_release_that_was_tampered_with(run, patients, statement):
    run("publish", "patients", "--k", 5, "--l", 3)
    (release,) = [r for r in dbanon.list_releases(settings=patients.settings) if r.served]
    unseal(patients, release.data_id)
    patients.execute(statement.format(release=f"dbanon_data.release_{release.data_id}"))
    process = run("check", "anon.patients", code=3)
    assert "error:" in process.stderr
    assert "failed" in process.stdout


@pytest.mark.exhaustive
def test_check_of_a_release_that_was_emptied_is_no_answer(run, patients):
    run("publish", "patients", "--k", 5, "--l", 3)
    (release,) = [r for r in dbanon.list_releases(settings=patients.settings) if r.served]
    unseal(patients, release.data_id)
    patients.execute(f"DELETE FROM dbanon_data.release_{release.data_id}")
    assert "changed at the same time" in run("check", "anon.patients", code=1).stderr


def test_check_of_a_relation_without_a_promise_takes_it_from_the_command_line(run, patients):
    process = run("check", "public.patients", code=1)
    assert "carries no promise" in process.stderr
    quasi = ("--quasi", "sex")
    run("check", "public.patients", *quasi, "--k", 5)
    run("check", "public.patients", *quasi, "--k", 150, code=3)
    run("check", "public.patients", *quasi, "--k", 5, "--sensitive", "disease", "--l", 5)
    run("check", "public.patients", *quasi, "--k", 5, "--l", 5, code=1)
    assert (
        "nonsense"
        in run("check", "public.patients", "--quasi", "nonsense", "--k", 5, code=1).stderr
    )


@pytest.mark.wheel
@pytest.mark.parametrize(
    ("dataset", "rows"), exhaustive_after(1, [("patients", 7_874), ("adult", 30_162)])
)
def test_the_demonstration_tells_the_whole_story_twice(run, database, dataset, rows):
    for _ in range(2):
        shown = run("demo", "--dataset", dataset).stdout
        assert f"anon.{dataset}, proved in the database" in shown
        assert shown.count("passed") == 2
        assert "all (NCP)" in shown
    found = database.execute(f"SELECT count(*) FROM anon.{dataset}")
    assert found == [(rows,)]
    queries = shown.rpartition("What an analyst could run next")[2].partition(":\n")[2]
    statements = [statement for statement in queries.split(";\n") if statement.strip()]
    assert len(statements) == 3
    for statement in statements:
        assert database.execute(statement)


@pytest.mark.wheel
def test_the_demonstration_publishes_linked_tables_twice(run, database):
    for _ in range(2):
        shown = run("demo", "--dataset", "clinic").stdout
        assert shown.count("dbanon publish --dataset clinic.toml published it as anon.clinic_") == 3
    assert database.execute("SELECT count(*) FROM anon.clinic_persons") == [(2_000,)]
    queries = shown.rpartition("What an analyst could run next")[2].partition(":\n")[2]
    statements = [statement for statement in queries.split(";\n") if statement.strip()]
    assert [len(database.execute(statement)) > 1 for statement in statements] == [True] * 3


def test_the_demonstration_leaves_a_table_of_the_same_name_alone(run, database):
    database.execute("CREATE TABLE public.patients (id int PRIMARY KEY)")
    assert "not the demonstration's" in run("demo", code=1).stderr


@pytest.mark.wheel
def test_the_module_runs_as_a_program(database):
    command = [sys.executable, "-m", "dbanon", "policy", "list", "--dsn", database.dsn, "--json"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.wheel
def test_the_version_is_told(run):
    told = r"dbanon \d+\.\d+\.\d+(rc\d+)?( \(commit [0-9a-f]{12}\))?\n"
    assert re.fullmatch(told, run("--version").stdout)


@pytest.mark.wheel
def test_init_says_what_it_did(run, bare_database, monkeypatch):
    revision = migrate.REVISION
    assert f"installed (revision {revision})" in run("init", dsn=bare_database.dsn).stdout
    assert json.loads(run("init", "--json").stdout)["changed"] is False
    assert "was current already" in run("init").stdout
    bare_database.execute("COMMENT ON SCHEMA dbanon IS 'of another version'")
    assert f"brought up to date (revision {revision})" in run("init").stdout
    upgraded = {"changed": True, "former": "0004", "revision": revision, "lost": [], "lacking": []}
    with monkeypatch.context() as patch:
        patch.setattr("dbanon.init", lambda *_, **__: upgraded)
        assert f"upgraded from revision 0004 to {revision}" in run("init").stdout
    assert "CREATE TABLE dbanon.release" in run("init", "--print-sql").stdout


def test_an_unforeseen_error_shows_no_value(run, monkeypatch):
    def fail(**_):
        raise RuntimeError("a secret")

    monkeypatch.setattr("dbanon.doctor", fail)
    shown = run("doctor", code=1)
    assert "unforeseen RuntimeError" in shown.stderr
    assert "a secret" not in shown.stderr


def test_an_interruption_changes_nothing(run, monkeypatch):
    def interrupt(**_):
        raise KeyboardInterrupt

    monkeypatch.setattr("dbanon.doctor", interrupt)
    assert "interrupted; nothing was changed" in run("doctor", code=130).stderr
