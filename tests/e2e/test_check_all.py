import json
import sys

import pytest
from psycopg import sql
from tables import publish_patients, unseal

import dbanon
from dbanon.cli import main
from dbanon.db.metadata import ledger


@pytest.fixture
def patients(copied):
    return copied(publish_patients)


@pytest.fixture
def run(patients, monkeypatch, capsys):
    def command(*words, code=0, dsn=patients.dsn):
        monkeypatch.setenv("DBANON_DSN", dsn)
        monkeypatch.setattr(sys, "argv", ["dbanon", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        assert (ended.value.code or 0) == code
        return capsys.readouterr()

    return command


def documents(finished):
    return {one["relation"]: one for one in json.loads(finished.out)}


def test_every_served_release_is_checked_and_recorded(patients, run):
    dbanon.publish("patients", name="second", k=10, settings=patients.settings)
    found = documents(run("check", "--all", "--json"))
    assert {"anon.patients", "anon.second"} == set(found)
    for one in found.values():
        assert ("passed", True, None) == (one["verdict"], one["recorded"], one["error"])
        models = [(r["model"], r["verdict"]) for r in one["results"]]
        assert [("k-anonymity", "passed"), ("l-diversity", "passed")] == models
    run("check", "anon.second")
    shown = json.loads(run("release", "show", "2", "--json").out)
    assert ["passed", "passed"] == [one["verdict"] for one in shown["verifications"]]
    assert {patients.server.owner} == {one["verified_by"] for one in shown["verifications"]}
    assert patients.server.owner in run("release", "show", "1").out


@pytest.mark.exhaustive
def test_one_that_fails_and_one_that_cannot_be_checked_are_told_and_recorded(patients, run):
    for name in ("emptied", "replaced", "broken", "softened"):
        dbanon.publish("patients", name=name, settings=patients.settings)
    for release in (1, 2):
        unseal(patients, release)
    patients.execute(
        "DELETE FROM dbanon_data.release_2; DROP VIEW anon.replaced; DROP VIEW anon.broken;"
        " CREATE VIEW anon.replaced AS SELECT 1 AS age;"
        " UPDATE dbanon_data.release_1 SET age = int4range(1, 2) WHERE ctid = '(0,1)'"
    )
    comment = patients.execute("SELECT obj_description('anon.softened'::regclass)")[0][0]
    softer = sql.SQL("COMMENT ON VIEW anon.softened IS {}")
    patients.execute(softer.format(sql.Literal(comment.replace('"k": 5', '"k": 1'))))
    found = documents(run("check", "--all", "--json", code=3))
    assert {
        "anon.patients": "failed",
        "anon.emptied": "not checked",
        "anon.replaced": "not checked",
        "anon.broken": "not checked",
        "anon.softened": "not checked",
    } == {relation: one["verdict"] for relation, one in found.items()}
    assert "changed at the same time" in found["anon.emptied"]["error"]
    assert "is not what was published" in found["anon.replaced"]["error"]
    assert {True} == {one["recorded"] for one in found.values()}
    (entry,) = dbanon.list_verifications(1, settings=patients.settings)
    assert (dbanon.Verdict.FAILED, 2) == (entry.verdict, len(entry.results))
    assert "requires 5, the worst class has 1" in entry.reason
    told = run("check", "--all", code=3)
    assert "failed" in told.out
    assert "anon.broken" in told.err


def test_what_cannot_be_checked_alone_gives_another_code_than_0(patients, run):
    patients.execute("ALTER VIEW anon.patients RENAME TO elsewhere")
    assert "not checked" in run("check", "--all", code=1).out


@pytest.mark.exhaustive
def test_an_auditor_checks_without_a_ledger_and_is_told(patients, run):
    auditor = patients.role("check_auditor")
    dbanon.grant("anon.patients", [auditor], settings=patients.settings)
    found = json.loads(run("check", "anon.patients", "--json", dsn=patients.dsn_as(auditor)).out)
    assert ("passed", False) == (found["verdict"], found["recorded"])
    out = run("check", "anon.patients", dsn=patients.dsn_as(auditor)).out
    assert "not recorded: this role cannot write the ledger" in out
    run("check", "--all", dsn=patients.dsn_as(auditor), code=1)
    assert dbanon.list_verifications(1, settings=patients.settings) == []


def test_a_check_that_finds_no_ledger_says_so(patients, run):
    patients.execute("DROP TABLE dbanon.verification")
    out = run("check", "anon.patients").out
    assert "not recorded: the ledger has lost a table; dbanon doctor names it" in out


def test_what_a_release_does_not_promise_is_not_recorded(patients, run):
    run("check", "anon.patients", "--k", "2")
    run("check", "public.patients", "--k", "2", "--quasi", "sex")
    assert dbanon.list_verifications(1, settings=patients.settings) == []


def test_a_role_that_reads_only_by_default_checks_and_records(patients, run):
    found = dbanon.check_all(
        settings=dbanon.Settings(
            dsn=f"{patients.dsn} options='-c default_transaction_read_only=on'"
        )
    )
    assert [(True, True)] == [(one.verdict == "passed", one.recorded) for one in found]


@pytest.mark.parametrize("words", [(), ("--all", "anon.patients"), ("--all", "--k", "5")])
def test_a_command_that_names_none_or_both_is_refused(run, words):
    run("check", *words, code=2)


def test_nothing_published_is_nothing_to_check(patients, run):
    dbanon.drop_release(1, settings=patients.settings)
    assert json.loads(run("check", "--all", "--json").out) == []


def test_what_is_replaced_or_withdrawn_meanwhile_raises_no_alarm(patients, monkeypatch):
    dbanon.publish("patients", name="second", settings=patients.settings)
    listed = ledger.releases

    def slow(session, **conditions):
        found = listed(session, **conditions)
        monkeypatch.undo()
        dbanon.refresh("patients", new_series=True, settings=patients.settings)
        dbanon.drop_release(3, settings=patients.settings)
        return found

    monkeypatch.setattr(ledger, "releases", slow)
    (found,) = dbanon.check_all(settings=patients.settings)
    assert ("passed", True, 4) == (found.verdict, found.recorded, found.release)


@pytest.mark.parametrize(
    "change",
    [{"quasi": ["sex"]}, {"models": [{"name": "k-anonymity", "params": {"k": 5}}]}, {"release": 2}],
)
def test_a_comment_that_promises_less_than_the_ledger_is_refused(patients, run, change):
    comment = patients.execute("SELECT obj_description('anon.patients'::regclass)")[0][0]
    promise = json.loads(comment.removeprefix("dbanon: ")) | change
    less = sql.SQL("COMMENT ON VIEW anon.patients IS {}").format(f"dbanon: {json.dumps(promise)}")
    patients.execute(less)
    told = run("check", "anon.patients", code=1).err
    assert "is not, or does not promise, what release 1 published" in told
    assert "its comment " in run("doctor", code=1).out
    assert [(0,)] == patients.execute("SELECT count(*) FROM dbanon.verification")
