"""Pages of what is served, planned and compared, from the command to the browser."""

import pytest
from browsers import hindrances
from selection import exhaustive_after
from tables import define_patients, publish_patients

import dbanon
from dbanon.domain.report import CONFIDENTIAL
from dbanon.domain.table import TableName

PAPER = {"width": 680, "height": 960}
TOO_WIDE = "() => document.documentElement.scrollWidth - window.innerWidth"


def require_good(show, path):
    """Assert that a page opens without a network, prints whole and is in nobody's way."""
    text = path.read_text("utf-8")
    shown = show(text)
    assert [url for url in shown.requests if not url.startswith("file://")] == []
    assert shown.complaints == []
    assert shown.page.locator("svg rect.fill:not(.least)").count() > 10
    assert hindrances(shown.page) == {}
    printed = show(text, viewport=PAPER).page
    printed.emulate_media(media="print")
    assert printed.evaluate(TOO_WIDE) <= 0
    assert printed.pdf(format="A4").startswith(b"%PDF-")


@pytest.mark.exhaustive
def test_a_report_is_written_as_a_page(copied, run, tmp_path):
    path = tmp_path / "report.html"
    database = copied(publish_patients)
    run("report", "anon.patients", "--html", path, dsn=database.dsn)
    text = path.read_text("utf-8")
    assert "Report of anon.patients: Passed" in text
    assert "release 1 of" in text
    assert "SELECT * FROM dbanon.verify" in text


def test_a_plan_is_written_as_a_page_and_nothing_is_published(copied, run, tmp_path):
    path = tmp_path / "plan.html"
    database = copied(define_patients)
    printed = run("plan", "patients", "--html", path, dsn=database.dsn)
    assert "every class meets 5-anonymity" in printed.out
    assert f"{path} written" in printed.err
    text = path.read_text("utf-8")
    assert "Plan of anon.patients: Planned" in text
    assert CONFIDENTIAL in text
    assert 0o600 == path.stat().st_mode & 0o777
    assert "a range, from the least to the greatest value of the class" in text
    assert [(None,)] == database.execute("SELECT to_regclass('anon.patients')")


@pytest.mark.exhaustive
def test_the_figures_of_a_plan_are_those_of_the_release_that_follows(copied):
    from dbanon.actions.plan import plan_with_report

    database = copied(define_patients)
    _, planned = plan_with_report("patients", settings=database.settings)
    dbanon.publish("patients", settings=database.settings)
    served = dbanon.report("anon.patients", settings=database.settings)
    assert served.risk.sizes == planned.risk.sizes
    assert served.risk.disclosures == planned.risk.disclosures
    assert served.risk.reidentification == planned.risk.reidentification
    assert served.risk.unique_sets == planned.risk.unique_sets
    assert served.utility.distributions == planned.utility.distributions
    proved = [(one.model, one.column, one.achieved) for one in served.checks.results]
    assert proved == [(one.model, one.column, one.achieved) for one in planned.checks.results]
    assert served.columns.keys() == planned.columns.keys()
    assert served.columns["age"] == planned.columns["age"]
    recoded = [(rule.column, rule.recoding) for rule in planned.policy.columns]
    assert recoded == [(rule.column, rule.recoding) for rule in served.policy.columns]
    assert ("age", "interval") in recoded


def test_a_comparison_is_written_as_a_page(copied, run, tmp_path):
    path = tmp_path / "compared.html"
    database = copied(define_patients)
    asked = ("--compare", "--algorithms", "mondrian,k-member", "--ks", "5,10", "--html", path)
    run("plan", "patients", *asked, dsn=database.dsn)
    text = path.read_text("utf-8")
    assert "Comparison of public.patients" in text
    assert text.count('<g class="point">') == 4


def test_what_no_page_can_be_written_to_is_refused_before_anything_is_computed(
    copied, run, tmp_path
):
    database = copied(define_patients)
    for path, hint in (("plan.svg", "--html plan.html"), ("none/plan.html", "mkdir -p")):
        failed = run("plan", "patients", "--html", tmp_path / path, code=1, dsn=database.dsn)
        assert hint in failed.err
    dataset = ("--dataset", "clinic.toml", "--html", tmp_path / "plan.html")
    assert "dbanon plan TABLE --html" in run("plan", *dataset, code=1, dsn=database.dsn).err
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the command line on a database and return what it printed."""
    from dbanon.cli import main

    def command(*words, dsn, code=0):
        monkeypatch.setenv("DBANON_DSN", dsn)
        monkeypatch.setattr("sys.argv", ["dbanon", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        finished = capsys.readouterr()
        assert (ended.value.code or 0) == code, finished
        return finished

    return command


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.parametrize("dataset", exhaustive_after(1, ["patients", "adult"]))
def test_pages_of_real_data_are_good_in_a_browser(database, run, show, tmp_path, dataset):
    dbanon.demo(dataset, settings=database.settings)
    path = tmp_path / "report.html"
    run("report", f"anon.{dataset}", "--html", path, dsn=database.dsn)
    require_good(show, path)
    assert str(TableName("public", dataset)) in path.read_text("utf-8")
