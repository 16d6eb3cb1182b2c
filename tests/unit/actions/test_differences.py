"""Reports that were written as JSON, or by anything else."""

import pytest

from dbanon.actions.releases import report
from dbanon.domain.errors import ConfigError
from dbanon.domain.report import Change

EMPTY = {"checks": {}, "loss": {}, "risk": {}, "utility": {}}


def test_what_nests_without_end_is_no_report(tmp_path):
    path = tmp_path / "before.json"
    path.write_text(100_000 * "[")
    with pytest.raises(ConfigError, match="holds no report"):
        report.read(path)


def compared(before, now):
    return report.compare(EMPTY | before, EMPTY | now).different


def test_reports_of_two_tables_are_not_compared():
    assert () == compared({"table": "public.visits"}, {"table": "public.visits"})
    with pytest.raises(ConfigError, match=r"of public.visits, and not of public.patients"):
        compared({"table": "public.visits"}, {"table": "public.patients"})


def attacked(rate, **more):
    one = {"name": "skewness", "column": "disease", "rate": rate, "low": 0.2, "high": 0.4}
    return {"risk": {"attacks": [one | {"expected": 0.5} | more]}}


def test_names_that_are_no_texts_are_told_as_they_are():
    (found,) = compared({"utility": [{"columns": ["age", 1], "distance": 0.5}]}, {})
    assert ("utility [age, 1] distance", 0.5, None) == (found.figure, found.before, found.now)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 10**400])
def test_what_no_report_says_is_no_figure(number):
    assert () == compared({"loss": {"ncp": number}}, {})


def test_columns_that_go_together_are_told_once_and_how_far_they_are_from_the_source():
    def use(r):
        own = {"source": [[1, 0.5], [0.5, 1]], "published": [[1, r], [r, 1]]}
        return {"utility": {"associations": [{"columns": ["age", "sex"], **own}]}}

    pair, apart = compared(use(0.5), use(0.25))
    assert "utility associations [age, sex] published [age] [sex]" == pair.figure
    assert (0.5, 0.25, None) == (pair.before, pair.now, pair.change)
    assert (0, 0.25, Change.LESS_USEFUL) == (apart.before, apart.now, apart.change)


def test_bins_are_told_by_what_they_hold():
    def use(bins, shares):
        one = {"column": "age", "bins": bins, "source": shares}
        return {"utility": {"distributions": [one]}}

    (found,) = compared(use(["a", "c"], [0.5, 0.5]), use(["a", "b", "c"], [0.5, 0.0, 0.5]))
    assert ("utility distributions [age] source [b]", None) == (found.figure, found.before)


@pytest.mark.parametrize(
    ("before", "now", "figure", "change"),
    [
        (attacked(0.3), attacked(0.39), "rate", None),
        (attacked(0.3), attacked(0.45), "rate", Change.RISKIER),
        (attacked(0.3), attacked(0.3, expected=None), "expected", Change.RISKIER),
        (attacked(0.3), attacked(0.3, low=0.1), "low", None),
        ({"loss": {"ncp": 0.2}}, {"loss": {"ncp": 0.2001}}, "ncp", None),
        ({"loss": {"ncp": 0.2}}, {"loss": {"ncp": 0.1}}, "ncp", Change.MORE_USEFUL),
        ({"loss": {"ncp": 0.2}}, {"loss": {}}, "ncp", None),
    ],
)
def test_a_change_is_told_where_it_is_more_than_chance(before, now, figure, change):
    (found,) = compared(before, now)
    assert (True, change) == (found.figure.endswith(figure), found.change)


@pytest.mark.parametrize(
    ("model", "change"),
    [("k-anonymity", Change.RISKIER), ("t-closeness", Change.SAFER), ("?", None)],
)
def test_what_is_achieved_is_safer_by_the_bound_of_its_model(model, change):
    def checked(achieved):
        return {"checks": {"results": [{"model": model, "column": "age", "achieved": achieved}]}}

    (found,) = compared(checked(5), checked(4))
    assert change == found.change


def test_each_error_of_counts_is_told_by_itself():
    def counted(error):
        return {"utility": {"queries": [{"selectivity": 0.05, "median": error, "upper": error}]}}

    words = [one.words for one in compared(counted(0.1), counted(0.2))]
    queries = "of COUNT queries true of 0.05"
    assert [f"median error {queries}", f"95th percentile of errors {queries}"] == words


def test_rows_left_out_and_their_share_have_other_words():
    def lost(rows, share):
        return {"loss": {"n_suppressed": rows, "metrics": {"suppressed": share}}}

    words = [one.words for one in compared(lost(10, 0.1), lost(20, 0.2))]
    assert ["rows left out", "share suppressed"] == words
