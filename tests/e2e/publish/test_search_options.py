"""Options of the search, from the command line to the ledger and back by refresh."""

import json
import sys
from dataclasses import replace

import pytest
from selection import exhaustive_after
from tables import define_patients, patients_policy, rows_proved

import dbanon
from dbanon.anonymization.registry import ALGORITHMS
from dbanon.cli import main
from dbanon.domain.errors import ConfigError, PolicyError
from dbanon.domain.policy import ColumnRule, Role
from dbanon.domain.table import TableName

TABLE = TableName("public", "patients")


@pytest.fixture
def patients(copied, monkeypatch):
    """A table of 200 patients with a stored policy: k = 5, l = 3, by strict Mondrian."""
    database = copied(define_patients)
    monkeypatch.setenv("DBANON_DSN", database.dsn)
    return database


@pytest.fixture
def run(patients, monkeypatch, capsys):
    """Run the command line; return stdout, or stderr when a code other than 0 is expected."""

    def command(*words, code=0):
        monkeypatch.setattr(sys, "argv", ["dbanon", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        assert (ended.value.code or 0) == code, err
        return err if code else out

    return command


@pytest.mark.exhaustive
def test_what_the_search_was_told_is_kept_and_repeated_by_a_refresh(patients, run):
    options = ("--effort", "fast", "--time-limit", "300ms", "--param", "loss=il")
    published = json.loads(run("publish", "patients", "--algorithm", "auto", *options, "--json"))
    expected = {"effort": "fast", "time_limit": 0.3, "loss": "il"}
    assert ("auto", expected) == (published["policy"]["algorithm"], published["policy"]["params"])
    (again,) = dbanon.refresh("patients", settings=patients.settings)
    assert ("auto", expected) == (again.release.policy.algorithm, again.release.policy.params)
    assert "unchanged" in run("refresh", "patients", "--if-changed")


@pytest.mark.exhaustive
def test_blocks_are_kept_and_repeated_by_a_refresh(patients, run):
    run("publish", "patients", "--algorithm", "mdav", "--block", 60)
    (again,) = dbanon.refresh("patients", settings=patients.settings)
    assert ("mdav", 60) == (again.release.policy.algorithm, again.release.policy.block)
    assert rows_proved(again.release) == 200


@pytest.mark.exhaustive
def test_another_algorithm_begins_with_its_own_parameters(patients):
    policy = patients_policy(TABLE, algorithm="auto", params={"effort": "fast"})
    dbanon.set_policy(TABLE, policy, settings=patients.settings)
    planned = dbanon.plan(TABLE, settings=patients.settings, params={"time_limit": "2"})
    assert {"effort": "fast", "time_limit": 2.0} == planned.policy.params
    planned = dbanon.plan(TABLE, settings=patients.settings, algorithm="mdav", block=100)
    assert ({}, 100) == (planned.policy.params, planned.policy.block)
    policy = replace(policy, algorithm="mdav", params={}, block=80)
    dbanon.set_policy(TABLE, policy, settings=patients.settings)
    assert 80 == dbanon.plan(TABLE, settings=patients.settings).policy.block
    planned = dbanon.plan(TABLE, settings=patients.settings, algorithm="mondrian")
    assert planned.policy.block is None


@pytest.mark.exhaustive
def test_a_plan_tells_the_search(run):
    shown = run("plan", "patients", "--algorithm", "auto", "--effort", "best")
    assert "by auto (effort = best)" in shown
    shown = run("plan", "patients", "--algorithm", "mdav", "--block", 90)
    assert "by mdav (block = 90)" in shown


@pytest.mark.parametrize(
    ("words", "message", "advice"),
    [
        (("--effort", "best"), "mondrian takes no effort", "--algorithm auto"),
        (("--time-limit", "1s"), "mondrian takes no time limit", "--algorithm auto"),
        (("--param", "size=3"), "no parameter of mondrian 'size'", "it has none"),
        (("--algorithm", "auto", "--param", "time_limit=x"), "is a number", "leave time_limit out"),
        (
            ("--algorithm", "auto", "--block", "9"),
            "divides tables of any size",
            "leave out --block",
        ),
        (("--algorithm", "mdva"), "did you mean mdav", "choose one of"),
        (("--compare", "--param", "size=3"), "none of auto", "--algorithms"),
        (("--compare", "--k", "1000"), "fewer than k", "lower --k"),
        (("--compare", "--algorithm", "mdav"), "--algorithm names one search", "--algorithms"),
        *(
            (("--compare", option, *value), f"{option} is about a release", "leave it out")
            for option, *value in (
                ("--print-sql",),
                ("--new-series",),
                ("--recipients-changed",),
                ("--strict",),
                ("--series", "anon.patients"),
                ("--schema", "elsewhere"),
                ("--name", "other"),
                ("--grant", "public"),
            )
        ),
        (("--algorithms", "mdva"), "did you mean mdav", "choose one of"),
        (("--plot", "loss.gif"), "loss.gif is no drawing", "--plot loss.svg"),
        (("--plot", "nowhere/loss.svg"), "there is no folder", "mkdir -p nowhere"),
    ],
)
def test_what_the_search_cannot_do_is_told_with_what_to_do(run, words, message, advice):
    told = run("plan", "patients", *words, code=1)
    assert message in told
    assert advice in told.partition("try: ")[2]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--time-limit", "soon"), "write 30s, 2m or 500ms"),
        (("--time-limit", "0s"), "no time above zero"),
        (("--effort", "great"), "'fast', 'balanced', 'best'"),
        (("--on-interrupt", "shrug"), "'discard', 'publish'"),
        (("--param", "size"), "'size' is not NAME=VALUE"),
        (("--block", "0"), "--block"),
        (("--ks", "2,five"), "such as 2,5,10"),
        (("--ks", "0"), "such as 2,5,10"),
    ],
)
def test_wrong_words_are_a_usage_error(run, words, message):
    assert message in " ".join(run("plan", "patients", *words, code=2).split())


@pytest.mark.exhaustive
def test_a_comparison_shows_every_algorithm_with_its_costs(run):
    shown = run("plan", "patients", "--compare", "--algorithms", "mondrian,mdav,auto")
    assert "public.patients: 200 rows, k = 5, l = 3" in shown
    headers = "algorithm k NCP IL C_DM C_AVG/k CM suppressed seconds"
    assert headers in " ".join(shown.split())
    rows = [line.split() for line in shown.splitlines() if line.strip()]
    found = [row[0] for row in rows if row[0] in ALGORITHMS]
    assert ["mondrian", "mdav", "auto"] == found


def test_what_the_weights_of_a_policy_ask_for_is_shown_beside_what_they_do_not(run, patients):
    policy = patients_policy(TABLE)
    columns = (policy.columns[0], replace(policy.columns[1], weight=9.0), *policy.columns[2:])
    dbanon.set_policy(TABLE, replace(policy, columns=columns), settings=patients.settings)
    shown = " ".join(run("plan", "patients", "--compare", "--algorithms", "mondrian").split())
    assert "algorithm k weighted NCP NCP IL C_DM C_AVG/k CM suppressed seconds" in shown
    loss = json.loads(run("plan", "patients", "--json"))["loss"]
    expected = (8 * loss["columns"]["age"] + sum(loss["columns"].values())) / 12
    assert f" {100 * expected:.2f}% {100 * loss['ncp']:.2f}% " in shown
    shown = " ".join(run("plan", "patients").split())
    assert f"all, weighted (NCP) {100 * expected:.2f}%" in shown


@pytest.mark.exhaustive
def test_a_comparison_says_what_a_publication_would_cost(patients):
    found = dbanon.compare(
        "patients", algorithms=["mondrian", "mdav"], ks=[10, 3, 500], settings=patients.settings
    )
    assert ((3, 10), 200, 3) == (found.ks, found.n_rows, found.l)
    expected = [("mondrian", 3), ("mdav", 3), ("mondrian", 10), ("mdav", 10)]
    assert expected == [(result.algorithm, result.k) for result in found.results]
    for result in found.results:
        planned = dbanon.plan(
            "patients", k=result.k, algorithm=result.algorithm, settings=patients.settings
        )
        assert planned.loss == result.loss
        assert 0 <= result.seconds < 60
    assert [] == dbanon.list_releases(settings=patients.settings)


def test_a_comparison_gives_each_algorithm_the_parameters_that_it_has(patients, monkeypatch):
    seen = []

    def proposals(self, table, requirement, *, seed):
        seen.append((self.effort, self.time_limit))
        return [ALGORITHMS["mondrian"]().assign(table, requirement, seed=seed)]

    monkeypatch.setattr(ALGORITHMS["auto"], "proposals", proposals)
    found = dbanon.compare(
        "patients",
        algorithms=["auto", "mdav"],
        effort="fast",
        time_limit=1.5,
        block=60,
        settings=patients.settings,
    )
    assert all(result.loss is not None for result in found.results)
    assert ("fast", 1.5) == seen[-1]


def test_an_algorithm_that_fails_does_not_end_the_comparison(patients, monkeypatch, run):
    def fail(*_, **__):
        raise RuntimeError("a secret")

    monkeypatch.setattr(ALGORITHMS["mdav"], "MAX_ROWS", 100)
    monkeypatch.setattr(ALGORITHMS["mondrian-relaxed"], "assign", fail)
    found = dbanon.compare(
        "patients",
        algorithms=["mdav", "mondrian-relaxed", "mondrian"],
        settings=patients.settings,
    )
    assert [None, None] == [result.loss for result in found.results[:2]]
    assert "mdav takes at most 100 rows at once; the table has 200" in found.results[0].reason
    assert "try: --algorithm auto, or --block 100" in found.results[0].reason
    assert "unforeseen RuntimeError" == found.results[1].reason
    assert found.results[2].loss is not None
    shown = run("plan", "patients", "--algorithms", "mdav,mondrian-relaxed,mondrian")
    assert "mdav, k = 5: mdav takes at most 100 rows" in shown
    assert "a secret" not in shown


def test_a_comparison_needs_no_k_when_it_is_told_several(patients):
    policy = patients_policy(TABLE, k=None, l=None)
    dbanon.set_policy(TABLE, policy, settings=patients.settings)
    asked = {"algorithms": ["mondrian"], "settings": patients.settings}
    found = dbanon.compare("patients", ks=[4, 8], **asked)
    assert ((4, 8), 1) == (found.ks, found.l)
    with pytest.raises(PolicyError, match="k is not set"):
        dbanon.compare("patients", **asked)


def test_a_comparison_without_a_sensitive_column_has_no_classification_metric(patients, run):
    policy = patients_policy(TABLE, l=None)
    columns = tuple(
        ColumnRule(rule.column, Role.IDENTIFIER) if rule.role is Role.SENSITIVE else rule
        for rule in policy.columns
    )
    dbanon.set_policy(TABLE, replace(policy, columns=columns), settings=patients.settings)
    assert " - " in run("plan", "patients", "--algorithms", "mondrian")
    (result,) = json.loads(run("plan", "patients", "--algorithms", "mondrian", "--json"))["results"]
    assert "cm" not in result["loss"]["metrics"]


@pytest.mark.parametrize("suffix", exhaustive_after(1, ["png", "svg", "pdf"]))
def test_a_comparison_is_drawn(run, tmp_path, suffix):
    file = tmp_path / f"loss.{suffix}"
    shown = run("plan", "patients", "--algorithms", "mondrian,mdav", "--plot", file)
    assert "k = 2, 5, 10, 25, 50, 100" in shown
    starts = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    assert file.read_bytes().startswith(starts[suffix])


def test_without_matplotlib_the_drawing_is_refused_before_anything_is_read(monkeypatch, run):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    told = run("plan", "nothing_here", "--plot", "loss.svg", code=1)
    assert "pip install 'dbanon[plot]'" in told


@pytest.mark.exhaustive
def test_a_time_limit_of_the_library_is_in_seconds(patients):
    with pytest.raises(PolicyError, match="effort of auto is one of fast, balanced, best"):
        dbanon.plan("patients", algorithm="auto", effort=3, settings=patients.settings)
    with pytest.raises((PolicyError, ConfigError), match="block: must be at least 1"):
        dbanon.plan("patients", algorithm="mdav", block=0, settings=patients.settings)
    planned = dbanon.plan("patients", algorithm="auto", time_limit=2, settings=patients.settings)
    assert {"time_limit": 2.0} == planned.policy.params


@pytest.mark.parametrize("params", [{"size": 3}, {"effort": 3}])
def test_a_policy_with_wrong_parameters_is_not_stored(patients, params):
    policy = patients_policy(TABLE, algorithm="auto", params=params)
    with pytest.raises(PolicyError, match="parameter"):
        dbanon.set_policy(TABLE, policy, settings=patients.settings)
    stored = dbanon.load_policy(TABLE, settings=patients.settings)
    assert "mondrian" == stored.algorithm
