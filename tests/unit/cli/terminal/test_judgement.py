import pytest

from dbanon.cli.terminal import report
from dbanon.domain.report import (
    Attack,
    Attacker,
    Classification,
    Disclosure,
    Distribution,
    QueryError,
    Reidentification,
    Risk,
    SizeBand,
    Uniqueness,
    UniqueSet,
    Utility,
)

RISK = Risk(
    reidentification=(Reidentification(Attacker.PROSECUTOR, 0.2, 0.05, 0.0, 0.2, "the relation"),),
    sizes=(SizeBand(1, 1, 3, 3), SizeBand(5, 9, 10, 61), SizeBand(500, None, 1, 700)),
    disclosures=(Disclosure("disease", 4, 0.5, 2.0, 0.4, 0.3, 0.0, 0.1, 2.5, 0.25),),
    uniqueness=(Uniqueness("zayatz", 144_000, 0.05, 0.0423),),
    unique_sets=(UniqueSet(("age", "sex"), 12, 0.06),),
    not_judged={"ward": "pram (keep 0.8)"},
    attacks=(Attack("linkage", "disease", 100, 7.0, 0.11, 0.05, 0.18, 0.02, 0.2, "nearest"),),
)
USE = Utility(
    distributions=(Distribution("age", ("a",), (1.0,), (1.0,), 0.125),),
    queries=(QueryError(0.01, 1000, 0.042, 0.246, 1.37, 8.5),),
    classifications=(
        Classification("salary", "boosting", (0.85, 0.81, 0.75), None),
        Classification("sex", "boosting", (0.5, 0.45, 0.5), None),
    ),
)


def lines(capsys):
    shown = capsys.readouterr().out.splitlines()
    return [" ".join(line.split()) for line in shown if line.strip() and "─" not in line]


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")


def test_risks_are_shown(capsys):
    report.risk(RISK)
    assert {
        "prosecutor 20.00% 5.00% 0.00% 20.00% the relation",
        "1 3 3",
        "5-9 10 61",
        "500+ 1 700",
        "not judged: ward is masked by pram (keep 0.8)",
        "disease 4 50.00% 2 40.00% 30.00% 0.00% 10.00% 2.5 0.25",
    } < set(lines(capsys))


def test_who_is_unique_is_shown(capsys):
    report.uniqueness(RISK, sampled=200)
    shown = lines(capsys)
    assert {"zayatz 144,000 5.00% 4.23%", "age, sex 12 6.00%"} < set(shown)
    assert "Smallest sets of columns that make rows of the source unique, of 200 rows" in shown
    assert "unique by exact values, as inspect counts them" in shown


def test_attacks_are_shown(capsys):
    report.attacks(RISK.attacks)
    shown = lines(capsys)
    assert "linkage disease 100 7 11.00% 5.00% 18.00% 2.00% 20.00%" in shown
    assert "linkage: nearest" in shown


def test_use_is_shown(capsys):
    report.utility(USE)
    assert {
        "age 12.50%",
        "1.00% 1,000 4.20% 24.60% 137.00% 850.00%",
        "salary boosting 85.00% 81.00% 75.00% - - -",
        USE.classifications[1].guessed_in_words,
    } < set(lines(capsys))


def test_of_nothing_nothing_is_shown(capsys):
    report.uniqueness(Risk((), ()), sampled=0)
    report.attacks(())
    report.utility(Utility())
    assert [] == lines(capsys)
