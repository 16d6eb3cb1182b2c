"""A table has several policies, each with releases, a memory of the table, and a history."""

import io
import json
import sys
from dataclasses import replace

import pytest
from tables import make_patients, patients_policy

import dbanon
from dbanon.cli import main
from dbanon.domain.policy import Role

SOURCE = "public.patients"
COLUMNS = (
    "SELECT string_agg(attname, ' ' ORDER BY attnum) FROM pg_attribute"
    " WHERE attrelid = %s::regclass AND attnum > 0"
)
EVERYTHING = "age sex born weight disease note"
RESEARCH = "age disease"


def columns(database, relation):
    ((found,),) = database.execute(COLUMNS, (relation,))
    return found


def coarse(policy):
    """Return the policy with few columns left."""
    kept = [
        rule if rule.column in RESEARCH.split() else replace(rule, role=Role.IDENTIFIER)
        for rule in policy.columns
    ]
    return replace(policy, columns=tuple(kept), name="research")


@pytest.fixture
def patients(database, monkeypatch):
    """Patients with a default policy and one for research."""
    table = make_patients(database)
    policy = patients_policy(table)
    dbanon.set_policy(table, policy, settings=database.settings)
    dbanon.set_policy(table, coarse(policy), settings=database.settings)
    monkeypatch.setenv("DBANON_DSN", database.dsn)
    return database


@pytest.fixture
def run(monkeypatch, capsys):
    def run(*words):
        monkeypatch.setattr(sys, "argv", ["dbanon", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return ended.value.code, printed.out + printed.err

    return run


@pytest.mark.exhaustive
def test_a_refresh_uses_the_policy_of_each_release(patients):
    settings = patients.settings
    first = dbanon.publish(SOURCE, settings=settings)
    others = {"new_series": True, "recipients_changed": True}
    second = dbanon.publish(SOURCE, policy="research", settings=settings, **others)
    assert ["anon.patients", "anon.patients_research"] == [
        str(release.relation) for release in (first, second)
    ]
    assert ["default", "research"] == [first.policy.name, second.policy.name]
    for refreshed in (False, True):
        if refreshed:
            assert [True, True] == [one.changed for one in dbanon.refresh(SOURCE, new_series=True)]
        assert EVERYTHING == columns(patients, "anon.patients")
        assert RESEARCH == columns(patients, "anon.patients_research")
    served = {str(one.relation): one for one in dbanon.list_releases(SOURCE) if one.served}
    assert {"anon.patients": "default", "anon.patients_research": "research"} == {
        name: release.policy_name for name, release in served.items()
    }
    assert [False, False] == [one.changed for one in dbanon.refresh(SOURCE, if_changed=True)]


@pytest.mark.exhaustive
def test_what_is_set_for_one_policy_is_refreshed_for_its_releases_only(patients):
    dbanon.publish(SOURCE)
    dbanon.publish(SOURCE, policy="research")
    stored = dbanon.load_policy(SOURCE, name="research")
    dbanon.set_policy(SOURCE, replace(stored, max_suppressed=0.1))
    changed = {str(one.relation): one.changed for one in dbanon.refresh(SOURCE, if_changed=True)}
    assert {"anon.patients": False, "anon.patients_research": True} == changed


@pytest.mark.parametrize("verb", ["publish", "plan"])
def test_a_relation_keeps_the_policy_that_its_readers_know(patients, run, verb):
    dbanon.publish(SOURCE)
    code, printed = run(verb, "patients", "--policy", "research", "--name", "patients")
    assert 1 == code
    assert "anon.patients serves release 1 by policy default, not research" in printed
    assert "try: publish under another --name, or first: dbanon release drop 1" in printed
    assert EVERYTHING == columns(patients, "anon.patients")
    dbanon.drop_release(1)
    code, printed = run(verb, "patients", "--policy", "research", "--name", "patients")
    assert 0 == code, printed


@pytest.mark.exhaustive
def test_each_policy_remembers_the_table_for_itself(patients, run):
    dbanon.publish(SOURCE)
    dbanon.publish(SOURCE, policy="research")
    patients.execute("ALTER TABLE public.patients ADD hiv boolean")
    stored = dbanon.load_policy(SOURCE)
    hiv = replace(stored.columns[0], column="hiv")
    dbanon.set_policy(SOURCE, replace(stored, columns=(*stored.columns, hiv)))
    found = {str(one.relation): one.error for one in dbanon.refresh(all_tables=True)}
    assert found["anon.patients"] is None
    assert 4 == found["anon.patients_research"].exit_code
    assert "column hiv is new and has no role" in str(found["anon.patients_research"])
    hint = found["anon.patients_research"].hint
    assert "dbanon policy export public.patients --policy research > policy.toml" in hint
    assert "dbanon policy set public.patients --file policy.toml --policy research" in hint
    code, printed = run("doctor")
    assert (4, 1) == (code, printed.count("hiv is new"))


@pytest.mark.exhaustive
def test_a_release_whose_policy_was_dropped_is_served_on_and_not_refreshed_by_another(patients):
    dbanon.publish(SOURCE, policy="research")
    dbanon.drop_policy(SOURCE, name="research")
    with pytest.raises(dbanon.PolicyError, match="has no policy research; it has default"):
        dbanon.refresh(SOURCE)
    assert RESEARCH == columns(patients, "anon.patients_research")


def test_a_file_may_name_its_policy_and_is_not_stored_under_another(patients, run, tmp_path):
    file = tmp_path / "policy.toml"
    file.write_text(dbanon.export_policy(SOURCE, name="research"))
    assert 'name = "research"' in file.read_text()
    code, printed = run("policy", "set", "patients", "--file", str(file), "--policy", "other")
    assert (1, True) == (code, "this is the policy research, and not other" in printed)
    code, printed = run("policy", "set", "patients", "--file", str(file))
    assert (0, True) == (code, "policy research of public.patients stored" in printed)
    assert "next: dbanon plan public.patients --policy research" in printed
    file.write_text(dbanon.export_policy(SOURCE))
    code, printed = run("policy", "set", "patients", "--file", str(file), "--policy", "Other One")
    assert (1, True) == (code, "name: is 1 to 40 of a-z" in printed)
    assert 0 == run("policy", "set", "patients", "--file", str(file), "--policy", "other")[0]
    assert "other" == dbanon.load_policy(SOURCE, name="other").name


def test_a_list_says_what_is_served_by_each(patients, run):
    dbanon.publish(SOURCE, policy="research")
    code, printed = run("policy", "list", "--json")
    served = {one["policy"]["name"]: one["served_by"] for one in json.loads(printed)}
    assert (0, []) == (code, served["default"])
    assert ["anon.patients_research"] == served["research"]
    code, printed = run("policy", "list")
    assert (0, True) == (code, "research" in printed)
    assert 0 == run("policy", "drop", "patients", "--policy", "research")[0]
    assert ["default"] == [one.policy.name for one in dbanon.list_policies()]
    code, printed = run("policy", "show", "patients", "--policy", "research")
    assert (1, True) == (code, "has no policy research; it has default" in printed)


def test_policies_are_compared_key_by_key(patients, run, tmp_path):
    code, printed = run("policy", "diff", "patients", "default", "research", "--json")
    found = {one["key"]: (one["before"], one["after"]) for one in json.loads(printed)}
    gone = {f"columns.{name}.role" for name in ("sex", "born", "weight", "note")}
    assert (0, gone) == (code, set(found))
    assert ("quasi", "identifier") == found["columns.sex.role"]
    file = tmp_path / "draft.toml"
    file.write_text(dbanon.export_policy(SOURCE, name="research").replace("k = 5", "k = 7"))
    code, printed = run("policy", "diff", "patients", "--file", str(file))
    assert (0, True) == (code, "models.k-anonymity.k" in printed)
    assert "columns" not in printed
    assert "no difference" in run("policy", "diff", "patients", "default", "default")[1]
    assert 2 == run("policy", "diff", "patients")[0]


def test_the_history_has_every_policy_and_every_release(patients, run):
    stored = dbanon.load_policy(SOURCE, name="research")
    dbanon.publish(SOURCE, policy="research")
    dbanon.set_policy(SOURCE, stored)  # the same again is no version
    dbanon.set_policy(SOURCE, replace(stored, max_suppressed=0.1))
    dbanon.publish(SOURCE, policy="research", k=6)
    dbanon.drop_policy(SOURCE, name="research")
    dbanon.set_policy(SOURCE, stored)
    events = dbanon.policy_history(SOURCE, name="research")
    assert [
        ("stored", 4, []),
        ("dropped", 3, []),
        ("published", None, ["max_suppressed", "models.k-anonymity.k"]),
        ("stored", 2, ["max_suppressed"]),
        ("published", None, []),
        ("stored", 1, []),
    ] == [(e.operation, e.version, [change.key for change in e.changes]) for e in events]
    code, printed = run("policy", "history", "patients")
    assert (0, True) == (code, "default" in printed)
    code, printed = run("policy", "history", "patients", "--policy", "research", "--json")
    assert (0, 6) == (code, len(json.loads(printed)))


def test_a_draft_is_planned_by_and_not_stored(patients, run, tmp_path, monkeypatch):
    dbanon.publish(SOURCE)
    file = tmp_path / "draft.toml"
    file.write_text(dbanon.export_policy(SOURCE, name="research").replace("k = 5", "k = 7"))
    before = dbanon.list_policies()
    code, printed = run("plan", "patients", "--file", str(file))
    assert (0, True) == (code, "public.patients as anon.patients_research" in printed)
    assert ["age"] == [column.name for column in dbanon.plan(SOURCE, draft=file).columns]
    assert 7 == dbanon.plan(SOURCE, draft=file).policy.k
    assert 8 == dbanon.plan(SOURCE, draft=file, k=8).policy.k
    text = file.read_text().replace('name = "research"\n', "").encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    code, printed = run("plan", "patients", "--file", "-", "--policy", "trial")
    assert (0, True) == (code, "public.patients as anon.patients_trial" in printed)
    words = ("plan", "patients", "--file", str(file), "--compare", "--algorithms", "mondrian")
    code, printed = run(*words)
    assert (0, True) == (code, "k = 7" in printed)
    assert before == dbanon.list_policies()


def test_what_is_wrong_with_a_draft_is_no_drift(patients, run, tmp_path):
    dbanon.publish(SOURCE)
    file = tmp_path / "draft.toml"
    file.write_text('table = "patients"\n[columns.age]\nrole = "quasi"\n')
    code, printed = run("plan", "patients", "--k", "5", "--file", str(file))
    assert (1, True) == (code, "column sex has no role" in printed)
    make_patients(patients, name="others")
    code, printed = run("plan", "others", "--k", "5", "--file", str(file))
    assert (1, True) == (code, "a policy of patients, not of public.others" in printed)


def test_a_file_is_checked_and_not_stored(patients, run, tmp_path):
    file = tmp_path / "draft.toml"
    good = dbanon.export_policy(SOURCE, name="research")
    file.write_text(good.replace('name = "research"', 'name = "trial"'))
    code, printed = run("policy", "check", str(file))
    assert (0, True) == (code, "policy trial of public.patients fits" in printed)
    file.write_text(good.replace('role = "sensitive"', 'role = "sensitiv"'))
    code, printed = run("policy", "check", str(file))
    assert (1, True) == (code, "did you mean sensitive?" in printed)
    file.write_text(good.replace("columns.note", "columns.nota"))
    code, printed = run("policy", "check", str(file))
    assert (1, True) == (code, "column note has no role" in printed)
    file.write_text(good.replace("k = 5", "k = 1"))
    code, printed = run("policy", "check", str(file))
    assert (0, True) == (code, "warning" in printed)
    assert 1 == run("policy", "check", str(file), "--strict")[0]
    assert ["default", "research"] == [one.policy.name for one in dbanon.list_policies()]


@pytest.mark.parametrize("kind", ["table", "view"])
def test_columns_that_nobody_named_are_left_out_and_new_ones_stop_nothing(patients, run, kind):
    stored = dbanon.load_policy(SOURCE)
    kept = tuple(rule for rule in stored.columns if rule.column in {"age", "disease"})
    written = dbanon.set_policy(SOURCE, replace(stored, columns=kept, rest="drop", name="rest"))
    assert kept == dbanon.load_policy(SOURCE, name="rest").columns == written.columns
    dbanon.publish(SOURCE, policy="rest", kind=kind)
    assert RESEARCH == columns(patients, "anon.patients_rest")
    patients.execute("ALTER TABLE public.patients ADD hiv boolean DEFAULT true")
    code, printed = run("doctor")
    assert (0, True) == (code, "column hiv is new, and left out" in printed)
    assert [False] == [one.changed for one in dbanon.refresh(SOURCE, if_changed=True)]
    if kind == "view":  # which nothing can be compared with
        code, printed = run("refresh", "patients", "--strict")
        assert (3, True) == (code, "not compared, live view" in printed), printed
    code, printed = run("refresh", "patients", *(["--strict"] if kind == "table" else []))
    assert (0, True) == (code, "warning: column hiv is new, and left out" in printed)
    assert RESEARCH == columns(patients, "anon.patients_rest")
    code, printed = run("refresh", "patients")
    assert (0, False) == (code, "hiv" in printed)  # seen once is known
    patients.execute("ALTER TABLE public.patients RENAME age TO years")
    assert 4 == run("refresh", "patients")[0]


@pytest.mark.exhaustive
def test_persons_are_counted_by_a_column_that_nobody_named(patients):
    patients.execute("ALTER TABLE public.patients ADD person int NOT NULL DEFAULT 0")
    patients.execute("UPDATE public.patients SET person = id / 2, age = id / 2 % 60, sex = 'F'")
    stored = dbanon.load_policy(SOURCE)
    kept = tuple(rule for rule in stored.columns if rule.column in {"age", "sex"})
    policy = replace(stored, columns=kept, models=stored.models[:1], rest="drop", name="rest")
    dbanon.set_policy(SOURCE, replace(policy, subject="person"))
    release = dbanon.publish(SOURCE, policy="rest")
    assert "person" in {found.column for found in release.checks.results}
    assert release.loss.smallest_class >= 10  # five persons, of two rows each
    assert "age sex" == columns(patients, "anon.patients_rest")
