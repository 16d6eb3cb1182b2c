from dataclasses import replace

import pytest
from builders import policy_of

from dbanon.anonymization.registry import METRICS
from dbanon.cli.terminal import report
from dbanon.domain.assignment import LossReport
from dbanon.domain.messages import MEANINGS
from dbanon.domain.policy import ModelSpec
from dbanon.domain.release import CheckReport, CheckResult, Verdict
from dbanon.domain.table import TableName
from dbanon.pages import figures

POLICY = policy_of(["age"], ["pay"], k=5, l=1)
LOSS = LossReport(
    n_rows=100,
    n_suppressed=0,
    n_classes=9,
    smallest_class=10,
    ncp=0.1,
    columns={"age": 0.1},
    metrics={"suppressed": 0.0, "suppressed-cells": 7636.0, "of-a-later-version": 1.0},
)


def test_every_metric_has_a_title_and_one_line_of_meaning():
    assert set(METRICS) == set(MEANINGS)
    assert all(meaning.title and "\n" not in meaning.line for meaning in MEANINGS.values())
    assert len({meaning.title for meaning in MEANINGS.values()}) == len(MEANINGS)


def test_cells_that_are_inexact_are_not_called_suppressed(capsys):
    report.loss(LOSS, POLICY, verbose=True)
    shown = capsys.readouterr().out
    (cells,) = [line for line in shown.splitlines() if "7,636" in line]
    assert "suppressed" not in cells
    assert MEANINGS["suppressed-cells"].line in cells


def test_a_metric_that_is_not_known_is_shown_by_its_name(capsys):
    report.loss(LOSS, POLICY, verbose=True)
    assert "of-a-later-version" in capsys.readouterr().out


def test_of_many_columns_the_ten_worst_are_shown_in_their_order(capsys):
    columns = {f"c{i:02}": i / 100 for i in range(50)}
    report.loss(replace(LOSS, columns=columns, ncp=0.2), POLICY)
    shown = capsys.readouterr().out
    named = [line.split()[0] for line in shown.splitlines() if line.startswith(" c")]
    assert [f"c{i}" for i in range(40, 50)] == named
    assert "40 others, at most  39.00%" in shown
    assert len(shown.splitlines()) <= 20
    report.loss(replace(LOSS, columns=columns, ncp=0.2), POLICY, verbose=True)
    assert sum(line.startswith(" c") for line in capsys.readouterr().out.splitlines()) == 50


def test_of_many_checks_ten_and_those_that_failed_are_shown(capsys):
    passed = [
        CheckResult("l-diversity", f"c{i:02}", 2, 2, 9, 0, 100, Verdict.PASSED) for i in range(30)
    ]
    failed = replace(passed[-1], column="late", verdict=Verdict.FAILED)
    of_k = replace(passed[0], model="k-anonymity", column="person")
    checks = CheckReport(TableName("anon", "t"), (*passed, failed, of_k))
    report.checks(checks, short=True)
    shown = capsys.readouterr().out
    assert "late" in shown
    assert "person" in shown
    assert "21 more results, all passed: --verbose or dbanon check" in shown
    assert sum(line.startswith(" l-diversity") for line in shown.splitlines()) == 10
    report.checks(checks)
    assert "more results" not in capsys.readouterr().out


def test_models_are_spelled_with_the_columns_of_which_they_are_asked():
    policy = policy_of(["age"], ["pay", "job"], k=5, l=1)
    asked = (policy.models[0], ModelSpec("t-closeness", {"t": 0.2, "columns": ("pay", "job")}))
    policy = replace(policy, models=asked)
    assert "5-anonymity, 0.2-closeness (equal) of pay and job" == figures.models(asked)


def test_advice_is_printed_if_there_is_any(capsys):
    report.loss(LOSS, POLICY, advice="without zip 3%")
    assert "without zip 3%" in capsys.readouterr().out
    report.loss(LOSS, POLICY)
    assert "without" not in capsys.readouterr().out


@pytest.mark.parametrize(("anatomy", "words"), [(False, "9 classes"), (True, "9 buckets")])
def test_persons_hide_in_buckets_by_anatomy(anatomy, words, capsys):
    report.loss(LOSS, replace(POLICY, anatomy=anatomy))
    assert f"100 rows, 0 suppressed, {words}, smallest 10" in capsys.readouterr().out


def test_no_l_is_told_where_none_is_promised():
    by_anatomy = replace(POLICY, anatomy=True)
    assert "one in" not in figures.anatomy(replace(by_anatomy, models=()))
    promised = (ModelSpec("probabilistic-l-diversity", {"l": 3}),)
    assert "one in 3 of" in figures.anatomy(replace(by_anatomy, models=promised))
