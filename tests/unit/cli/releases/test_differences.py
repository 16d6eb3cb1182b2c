"""Two reports that were compared, as they are printed."""

from types import SimpleNamespace

import pytest

from dbanon.actions.releases.report import compare
from dbanon.cli.releases import report

NOW = SimpleNamespace(relation="anon.patients", release=2)
NOTHING = {"checks": {}, "loss": {}, "risk": {}, "utility": {}}
DIVERSE = {"checks": {"results": [{"model": "l-diversity", "column": "disease", "achieved": 3}]}}
ATTACKED = {"risk": {"attacks": [{"name": "skewness", "column": "disease", "rate": 0.9}]}}


def shown(before, now, capsys):
    before, now = NOTHING | before, NOTHING | now
    report.show(NOW, compare(before, now), before)
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize(
    ("before", "now", "line"),
    [
        (DIVERSE, {}, "only before l-diversity, disease: achieved 3 -"),
        ({}, ATTACKED, "only now attack is right: skewness, disease - 90.00%"),
    ],
)
def test_a_risk_that_one_report_alone_has_is_named(capsys, before, now, line):
    lines = shown(before, now, capsys)
    assert line in lines
    assert "nothing that both reports have is riskier" in lines


def test_shares_are_told_in_percent_and_counts_whole(capsys):
    before = {"loss": {"ncp": 0.2, "metrics": {"il": 1_234.5}}}
    now = {"loss": {"ncp": 0.3, "metrics": {"il": 123_456.7}}}
    lines = shown(before, now, capsys)
    assert [line for line in lines if "20.00% 30.00%" in line]
    assert [line for line in lines if "1,234 123,457" in line]
