"""Reports made by hand, as a command would have them."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from browsers import browser, show

from dbanon.domain.assignment import LossReport
from dbanon.domain.policy import (
    ColumnRule,
    Comparison,
    Condition,
    MaskingStep,
    ModelSpec,
    Policy,
    Role,
)
from dbanon.domain.policy_warning import Code, PolicyWarning
from dbanon.domain.release import CheckReport, CheckResult, Verdict
from dbanon.domain.report import (
    Association,
    Attack,
    Attacker,
    Classification,
    Disclosure,
    Distribution,
    QueryError,
    Reidentification,
    Report,
    Risk,
    SizeBand,
    Uniqueness,
    UniqueSet,
    Utility,
)
from dbanon.domain.table import TableName

__all__ = ["browser", "show"]

RELATION = TableName("anon", "patients")
QUASI = ("age", "sex", "sample_yr", "creatinine", "death")
BINS = ("[50,55)", "[55,60)", "[60,65)", "[65,70)", "[70,75)", "[75,80)", "[80,85)", "[85,101)")
SHARES = (0.206, 0.171, 0.161, 0.153, 0.125, 0.087, 0.053, 0.044)


def made_policy():
    rules = (
        ColumnRule("patient_id", Role.IDENTIFIER),
        ColumnRule("age", Role.QUASI, recoding="interval", bands=5.0, top=85.0),
        ColumnRule("sex", Role.QUASI, recoding="label", taxonomy="sex"),
        ColumnRule("sample_yr", Role.QUASI, recoding="interval", allow=("known-to-others: yes",)),
        ColumnRule("creatinine", Role.QUASI, recoding="mean", weight=2.0),
        ColumnRule("death", Role.QUASI, order=("alive", "dead")),
        ColumnRule("chapter", Role.SENSITIVE, taxonomy="icd"),
        ColumnRule("kappa", Role.INSENSITIVE),
    )
    return Policy(
        TableName("public", "patients"),
        rules,
        models=(ModelSpec("k-anonymity", {"k": 5}), ModelSpec("l-diversity", {"l": 3})),
        params={"effort": "balanced"},
        subject="patient_id",
        max_suppressed=0.02,
        where=(Condition("sample_yr", Comparison.AT_LEAST, 1995),),
        masking=(MaskingStep("rounding", ("kappa",), {"base": 0.1}),),
        allow=("no-subject: one row each",),
    )


def made_checks(*, verdict=Verdict.PASSED):
    rows, classes = 7_871, 386
    results = (
        CheckResult("k-anonymity", None, 5, 5, classes, 0, rows, Verdict.PASSED),
        CheckResult("l-diversity", "chapter", 3, 3, classes, 0, rows, verdict),
        CheckResult("t-closeness", "chapter", 0.5, 0.4312, classes, 0, rows, Verdict.PASSED),
    )
    return CheckReport(RELATION, results)


def made_risk():
    def found(attacker, highest, average, basis="the relation"):
        return Reidentification(attacker, highest, average, 0.0, 0.2, basis)

    attacks = (
        Attack(
            *("homogeneity", "chapter", 10_000, 6, 0.316, 0.307, 0.325, 0.289, 0.333),
            "The attacker takes the most frequent value of the class of a known person.",
        ),
        Attack(
            *("linkage by distance", None, 10_000, 6, 0.142, 0.135, 0.149, 0.0001, 0.2),
            "The attacker takes the nearest published record.",
        ),
        Attack(
            *("membership", None, 2_000, None, 0.512, 0.490, 0.534, 0.5, None),
            "The attacker says whether a person of the population is in the relation.",
        ),
    )
    return Risk(
        reidentification=(
            found(Attacker.PROSECUTOR, 0.2, 0.049),
            found(Attacker.JOURNALIST, 0.0021, 0.0005, "the estimate of a population"),
            found(Attacker.MARKETER, 0.049, 0.049),
        ),
        sizes=(
            SizeBand(5, 5, 58, 290),
            SizeBand(6, 9, 131, 943),
            SizeBand(10, 19, 102, 1_402),
            SizeBand(20, 49, 71, 2_266),
            SizeBand(50, None, 24, 2_970),
        ),
        disclosures=(
            Disclosure("chapter", 17, 0.6, 41.2, 0.318, 0.289, 0.021, 0.114, 2.71, 0.4312),
        ),
        uniqueness=(
            Uniqueness("Pitman", 5_000_000, 0.0016, 0.0231),
            Uniqueness("Zayatz", 5_000_000, 0.0016, 0.0304),
        ),
        unique_sets=(
            UniqueSet(("creatinine", "age"), 612, 0.0777),
            UniqueSet(("creatinine", "sample_yr", "sex"), 1_211, 0.1538),
        ),
        attacks=attacks,
        floors={"age": "nothing finer than bands of 5"},
        not_judged={"ward": "pram (keep 0.8)"},
        not_tried=dict.fromkeys(("join", "intersection"), "a second relation is needed"),
    )


def made_utility():
    published = tuple(round(one * 1.04 - 0.006, 4) for one in SHARES)
    n = len(QUASI)
    source = tuple(
        tuple(1.0 if a == b else None if {a, b} == {1, 4} else (a - b) / 7 for b in range(n))
        for a in range(n)
    )
    kept = tuple(tuple(None if v is None else v * 0.9 for v in row) for row in source)
    return Utility(
        distributions=(
            Distribution("age", BINS, SHARES, published, 0.021),
            Distribution("sex", ("F", "M"), (0.55, 0.45), (0.548, 0.452), 0.002),
            Distribution("chapter", ("Circulatory", "Neoplasms"), (0.3, 0.7), (0.3, 0.7), 0.0),
        ),
        associations=(Association(QUASI, source, kept),),
        queries=(
            QueryError(0.005, 1_000, 0.142, 12.4, 3.9, 31.0),
            QueryError(0.01, 1_000, 0.091, 0.71, 2.4, 9.0),
            QueryError(0.05, 1_000, 0.042, 0.31, 1.1, 3.2),
        ),
        classifications=(
            Classification("death", "gradient boosting", (0.81, 0.79, 0.72), (0.86, 0.83, 0.5)),
            Classification("sex", "logistic regression", (0.61, 0.59, 0.55), None),
        ),
    )


def made_loss():
    return LossReport(
        n_rows=7_883,
        n_suppressed=12,
        n_classes=386,
        smallest_class=5,
        ncp=0.0233,
        columns={"age": 0.031, "sex": 0.0, "sample_yr": 0.022, "creatinine": 0.06, "death": 0.004},
        metrics={"il": 1_830.2, "discernibility": 812_331.0, "c-avg-normalized": 4.08, "new": 1.5},
        weighted_ncp=0.0267,
        n_filtered=12,
    )


@pytest.fixture(scope="session")
def report():
    """Return a report of what is served, with all there can be in one."""
    return Report(
        relation=RELATION,
        table=TableName("public", "patients"),
        release=12,
        created_at=datetime(2026, 3, 1, 9, 30, tzinfo=UTC),
        policy=made_policy(),
        checks=made_checks(),
        loss=made_loss(),
        risk=made_risk(),
        utility=made_utility(),
        columns={"age": "int4range", "sex": "text", "creatinine": "double precision"},
        taxonomies={"icd": 3, "sex": 1},
        readers=("analysts", "auditors"),
        statements=("SELECT model, achieved\n  FROM dbanon.verify('anon.x');",),
        warnings=(PolicyWarning(Code.MASKED, "kappa", "'kappa' is masked", "compare its means"),),
        sampled=7_874,
    )


@pytest.fixture(scope="session")
def planned(report):
    """Return a report of what is only planned."""
    return replace(report, release=None, created_at=None, readers=(), left_out=("utility",))


@pytest.fixture(scope="session")
def public(report):
    """Return a report without a figure of the source."""
    risk = replace(report.risk, uniqueness=(), unique_sets=(), attacks=(), not_tried={})
    return replace(
        report,
        loss=None,
        risk=risk,
        utility=None,
        warnings=(),
        sampled=None,
        label_loss={"age": 0.031, "sex": 0.0},
        proofs=("k-anonymity of patient_id, 5 required: passed when it was published",),
        confidential=None,
    )


@pytest.fixture(scope="session")
def bare(report):
    """Return a report of which hardly anything was computed."""
    return replace(
        report,
        policy=Policy(report.table, ()),
        checks=CheckReport(RELATION, ()),
        loss=LossReport(0, 0, 0, 0, 0.0, {}, sensitive_aware=False),
        risk=Risk((), ()),
        utility=Utility(),
        columns={},
        taxonomies={},
        readers=(),
        statements=(),
        warnings=(),
        sampled=0,
    )


HOSTILE = (
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(2)'>",
    "</style><style>*{display:none}",
    "</title><base href='http://example.org/'>",
    "{{ 7 * 7 }}{% raw %}",
    "two\nlines\rand a tab\t",
    "\u202egnp.exe\u2066\u200b",
    "javascript:alert(3)//' onload='alert(4)",
    "<!--[if IE]> & --> &lt;b&gt;",
    "w" * 63,
)


@pytest.fixture(scope="session")
def hostile(report):
    """Return a report in which every name and label is an attack."""
    names = HOSTILE
    rules = tuple(
        ColumnRule(name, Role.QUASI, taxonomy=name, recoding=name, allow=(f"masked: {name}",))
        for name in names
    )
    table = TableName(names[0], names[1])
    risk = report.risk
    return replace(
        report,
        relation=table,
        table=TableName(names[6], names[5]),
        policy=replace(
            report.policy,
            columns=rules,
            table=table,
            name=names[3],
            subject=names[0],
            models=(ModelSpec("l-diversity", {"l": 2, "columns": names}), ModelSpec(names[0], {})),
            params={names[1]: names[2]},
            where=(Condition(names[5], Comparison.EQUAL, names[0]),),
            allow=names,
        ),
        checks=CheckReport(
            table,
            tuple(CheckResult(n, n, 1, 1, 1, 0, 1, Verdict.PASSED) for n in names),
        ),
        loss=replace(report.loss, columns=dict.fromkeys(names, 0.1), metrics={names[0]: 1.0}),
        risk=replace(
            risk,
            disclosures=tuple(replace(risk.disclosures[0], column=n) for n in names),
            unique_sets=(UniqueSet(names, 5, 0.1),),
            attacks=tuple(replace(risk.attacks[0], name=n, column=n, words=n) for n in names),
            not_judged=dict(zip(names, names, strict=True)),
            not_tried=dict(zip(names, names, strict=True)),
            floors=dict(zip(names, names, strict=True)),
        ),
        utility=Utility(
            distributions=tuple(
                Distribution(n, names, (0.1,) * len(names), (0.1,) * len(names), 0.0) for n in names
            ),
            associations=(
                Association(
                    names, ((0.5,) * len(names),) * len(names), ((0.5,) * len(names),) * len(names)
                ),
            ),
            classifications=tuple(Classification(n, n, (0.5, 0.5, 0.5), None) for n in names),
        ),
        columns=dict(zip(names, names, strict=True)),
        taxonomies=dict.fromkeys(names, 1),
        readers=names,
        statements=names,
        warnings=tuple(PolicyWarning(Code.MASKED, n, n, n) for n in names),
    )
