"""What a published relation risks, told of what is served and of its source as it is now."""

import json
import re
from collections import Counter
from dataclasses import replace

import pytest
from selection import exhaustive_after
from tables import make_patients, patients_policy, publish_patients, serve_patients, unseal

import dbanon
from dbanon.anonymization.risk.assessment import BY_WEIGHTS
from dbanon.domain.errors import ConfigError, DatabaseError, DriftError, NotPermitted, TableNotFound
from dbanon.domain.policy import ColumnRule, Comparison, Condition, MaskingStep, ModelSpec, Role
from dbanon.domain.release import Verdict
from dbanon.domain.report import CONFIDENTIAL, Attacker
from dbanon.domain.table import TableName
from dbanon.settings import Settings

SHOWN = "SELECT age::text, sex::text, born::text, weight::text, disease FROM anon.patients"


@pytest.fixture
def patients(copied):
    return copied(publish_patients)


def reported(database, relation="anon.patients", **options):
    return dbanon.report(relation, settings=database.settings, **options)


def require_alike(public, report):
    """Assert that a public report has the figures of the release, by the labels alone."""
    assert report.checks == public.checks
    assert report.risk.sizes == public.risk.sizes
    assert report.risk.disclosures == public.risk.disclosures
    assert report.risk.not_judged == public.risk.not_judged
    assert (report.columns, report.readers) == (public.columns, public.readers)
    assert all(0.0 <= share <= 1.0 for share in public.label_loss.values())


def by_attacker(report):
    return {one.attacker: one for one in report.risk.reidentification}


@pytest.mark.exhaustive
def test_figures_are_those_of_what_readers_see(patients):
    rows = patients.execute(SHOWN)
    classes = Counter(row[:4] for row in rows)
    found = reported(patients)
    assert (TableName("anon", "patients"), TableName("public", "patients"), 1) == (
        found.relation,
        found.table,
        found.release,
    )
    assert found.checks.passed
    prosecutor = by_attacker(found)[Attacker.PROSECUTOR]
    assert prosecutor.highest == 1 / min(classes.values())
    assert prosecutor.average == pytest.approx(len(classes) / len(rows))
    over = sum(n for n in classes.values() if 1 / n > 0.2)
    assert prosecutor.above == pytest.approx(over / len(rows))
    bands = [(band.classes, band.rows) for band in found.risk.sizes]
    assert (len(classes), len(rows)) == tuple(map(sum, zip(*bands, strict=True)))
    (disease,) = found.risk.disclosures
    within, whole = Counter(rows), Counter(row[4] for row in rows)
    shares = {row: n / classes[row[:4]] for row, n in within.items()}
    assert disease.highest == pytest.approx(max(shares.values()))
    assert disease.baseline == pytest.approx(max(whole.values()) / len(rows))
    lifts = [share / (whole[row[4]] / len(rows)) for row, share in shares.items()]
    assert disease.lift == pytest.approx(max(lifts))
    assert len(whole) == disease.values


@pytest.mark.exhaustive
def test_it_says_who_may_read_of_what_type_and_how_to_prove_it_again(patients):
    analyst = patients.role("report_analyst")
    dbanon.grant("anon.patients", [analyst], settings=patients.settings)
    found = reported(patients)
    assert (analyst,) == found.readers
    assert ("int4range", "daterange") == (found.columns["age"], found.columns["born"])
    with patients.connect_as(analyst) as connection:
        for statement in found.statements:
            answers = connection.execute(statement).fetchall()
            assert all("passed" in row for row in answers), statement


@pytest.mark.exhaustive
def test_what_makes_the_source_unique_is_counted_exactly(patients):
    found = {one.columns: one.rows for one in reported(patients).risk.unique_sets}
    for column in ("weight", "born"):
        (alone,) = patients.execute(
            "SELECT count(*) FROM"
            f" (SELECT FROM public.patients GROUP BY {column} HAVING count(*) = 1) AS alone"
        )[0]
        assert alone == found[(column,)]


def test_rows_are_sampled_and_what_there_is_no_time_for_is_named(patients):
    found = reported(patients, samples=50)
    assert 50 == found.sampled
    assert all(one.rows <= 50 for one in found.risk.unique_sets)
    hurried = reported(patients, time_limit=1e-9)
    late = ("unique sets", "attacks", "utility")
    assert ((), late) == (hurried.risk.unique_sets, hurried.left_out)
    assert by_attacker(hurried)[Attacker.PROSECUTOR].highest == 1 / 5


def test_a_population_lowers_the_journalists_risk(patients):
    unknown, known = by_attacker(reported(patients)), reported(patients, population=20_000)
    assert "upper bound" in unknown[Attacker.JOURNALIST].basis
    assert unknown[Attacker.JOURNALIST].highest == unknown[Attacker.PROSECUTOR].highest
    assert "20,000" in by_attacker(known)[Attacker.JOURNALIST].basis
    assert by_attacker(known)[Attacker.JOURNALIST].highest < 0.01
    assert {20_000} == {one.population for one in known.risk.uniqueness}
    assert [200 / 20_000] == sorted({one.sampled for one in known.risk.uniqueness})


def test_a_population_table_is_counted(database):
    make_patients(database, rows=600, name="everybody")
    database.execute(
        "CREATE TABLE public.patients (LIKE public.everybody INCLUDING ALL);"
        "INSERT INTO public.patients SELECT * FROM public.everybody WHERE id % 3 = 0"
    )
    table = TableName("public", "patients")
    policy = patients_policy(table, population=TableName("public", "everybody"))
    dbanon.set_policy(table, policy, settings=database.settings)
    dbanon.publish(table, settings=database.settings)
    found = reported(database)
    journalist = by_attacker(found)[Attacker.JOURNALIST]
    assert "public.everybody" == journalist.basis
    counts = database.execute(
        "SELECT c.n, count(*) FROM (SELECT age, sex, born, weight, count(*) AS n"
        " FROM anon.patients GROUP BY 1, 2, 3, 4) AS c"
        " JOIN public.everybody AS e ON e.age <@ c.age AND (e.sex = c.sex OR c.sex = '*')"
        " AND e.born <@ c.born AND (e.weight <@ c.weight OR (c.weight = '(,)')"
        " OR (c.weight IS NULL AND e.weight IS NULL))"
        " GROUP BY c.age, c.sex, c.born, c.weight, c.n"
    )
    assert journalist.highest == pytest.approx(max(1 / persons for _, persons in counts))
    rows = sum(n for n, _ in counts)
    assert journalist.average == pytest.approx(sum(n / persons for n, persons in counts) / rows)
    assert {600} == {one.population for one in found.risk.uniqueness}


def test_of_a_sample_the_table_is_the_population(database):
    table = make_patients(database, rows=400)
    policy = patients_policy(table, sample=0.5, subject="id", l=None)
    dbanon.set_policy(table, policy, settings=database.settings)
    dbanon.publish(table, settings=database.settings)
    found = by_attacker(reported(database))
    assert "a sample is published" in found[Attacker.JOURNALIST].basis
    assert found[Attacker.JOURNALIST].average < found[Attacker.PROSECUTOR].average


def test_by_anatomy_exact_rows_are_found_and_buckets_disclose(database):
    table = make_patients(database)
    meant = ("anatomy: presence is no secret here",)
    policy = patients_policy(table, k=None, anatomy=True, allow=meant)
    dbanon.set_policy(table, policy, settings=database.settings)
    dbanon.publish(table, settings=database.settings)
    found = reported(database)
    assert by_attacker(found)[Attacker.PROSECUTOR].highest == 1.0
    (disease,) = found.risk.disclosures
    assert disease.highest <= 1 / 3
    assert found.checks.passed
    public = reported(database, public=True)
    require_alike(public, found)
    assert by_attacker(public)[Attacker.PROSECUTOR].highest == 1.0
    assert {} == public.label_loss


@pytest.mark.exhaustive
def test_a_live_view_has_a_report(copied):
    database = copied(serve_patients)
    found = reported(database)
    assert found.checks.passed
    require_alike(reported(database, public=True), found)
    assert by_attacker(found)[Attacker.PROSECUTOR].highest <= 1 / 5
    assert found.hiding is None


def test_what_a_live_view_hides_is_counted(copied, run, monkeypatch):
    database = copied(serve_patients)
    monkeypatch.setenv("DBANON_DSN", database.dsn)
    database.execute("DELETE FROM public.patients WHERE id % 9 = 0")
    found = reported(database)
    assert [(found.hiding.n_rows,)] == database.execute("SELECT count(*) FROM anon.patients")
    assert f"{found.hiding.n_rows:,} rows in" in run("report", "anon.patients").out


def test_masked_values_are_said_not_to_be_judged(database):
    table = make_patients(database)
    step = MaskingStep("pram", ("disease",), {"keep": 0.8})
    policy = patients_policy(table, l=None, masking=(step,))
    dbanon.set_policy(table, policy, settings=database.settings)
    dbanon.publish(table, settings=database.settings)
    found = reported(database).risk
    assert ((), {"disease": "pram (keep 0.8)"}) == (found.disclosures, found.not_judged)
    public = reported(database, public=True).risk
    assert ((), found.not_judged) == (public.disclosures, public.not_judged)
    why = {
        "join": "a second relation",
        "membership": "no rows were left out",
        "skewness": "no sensitive column",
    }
    assert [name for name, words in why.items() if words not in found.not_tried[name]] == []


@pytest.mark.exhaustive
def test_few_persons_are_counted_exactly_under_a_heading(database, run, monkeypatch, tmp_path):
    table = make_patients(database, rows=204)
    policy = patients_policy(table, where=(Condition("id", Comparison.AT_LEAST, 4),))
    dbanon.set_policy(table, policy, settings=database.settings)
    dbanon.publish(table, settings=database.settings)
    monkeypatch.setenv("DBANON_DSN", database.dsn)
    page = tmp_path / "report.html"
    (left,) = database.execute("SELECT count(*) FROM public.patients WHERE id < 4")[0]
    assert 0 < left < 5
    printed = run("report", "anon.patients", "--html", page).out
    assert printed.startswith(f"{CONFIDENTIAL}\n")
    assert f"{left} more rows of the table do not meet" in printed
    assert f"{left} more do not meet the conditions" in page.read_text("utf-8")
    assert CONFIDENTIAL in page.read_text("utf-8")
    assert 0o600 == page.stat().st_mode & 0o777
    document = json.loads(run("report", "anon.patients", "--json").out)
    assert CONFIDENTIAL == document["confidential"]
    assert left == document["loss"]["n_filtered"]
    database.execute("DELETE FROM public.patients WHERE id = 9")
    document = json.loads(run("report", "anon.patients", "--json").out)
    tried = {one["name"]: one["tried"] for one in document["risk"]["attacks"]}
    (present,) = database.execute("SELECT count(*) FROM public.patients WHERE id >= 4")[0]
    assert present == tried["re-identification, prosecutor"]


RECODED = ["bounds", "center", "interval-text", "mean", "median", "set", "global", "suppress"]


@pytest.mark.parametrize("recoding", exhaustive_after(2, RECODED))
def test_every_recoding_is_read_from_the_database(database, recoding):
    table = make_patients(database, rows=120)
    policy = patients_policy(table, l=None)
    numbers = {"age", "weight", "born"}
    rules = tuple(
        replace(rule, recoding=recoding) if rule.column in numbers else rule
        for rule in policy.columns
    )
    dbanon.set_policy(table, replace(policy, columns=rules), settings=database.settings)
    dbanon.publish(table, settings=database.settings)
    found = reported(database)
    (k,) = [result for result in found.checks.results if result.model == "k-anonymity"]
    assert k.classes == sum(band.classes for band in found.risk.sizes)
    assert k.n_rows == sum(band.rows for band in found.risk.sizes)
    require_alike(reported(database, public=True), found)


def test_a_relation_that_fails_has_a_report_that_says_so(patients, run, monkeypatch):
    unseal(patients, 1)
    patients.execute("UPDATE dbanon_data.release_1 SET age = int4range(1, 2) WHERE ctid = '(0,1)'")
    found = reported(patients)
    assert Verdict.FAILED is found.checks.verdict
    assert by_attacker(found)[Attacker.PROSECUTOR].highest == 1.0
    monkeypatch.setenv("DBANON_DSN", patients.dsn)
    finished = run("report", "anon.patients", code=3)
    assert "does not hold what it promises" in finished.err
    assert "failed" in finished.out


def test_two_reports_are_held_against_each_other(patients, run, monkeypatch, tmp_path):
    monkeypatch.setenv("DBANON_DSN", patients.dsn)
    before = tmp_path / "before.json"
    before.write_text(run("report", "anon.patients", "--json").out)
    assert "no figure is different" in run("report", "anon.patients", "--against", before).out
    dbanon.publish("patients", k=10, settings=patients.settings)
    shown = run("report", "anon.patients", "--against", before)
    assert 35 >= len(shown.out.splitlines())
    assert re.search(r"k-anonymity: required +5 +10 ", shown.out)
    assert "nothing that both reports have is riskier" in shown.out
    assert "attack is right: re-identification" in shown.out or "finds a record" in shown.out
    assert not re.search(r"reidentification|n_rows|\[", shown.out)
    document = json.loads(run("report", "anon.patients", "--against", before, "--json").out)
    assert CONFIDENTIAL == document["confidential"]
    found = {one["figure"]: (one["before"], one["now"]) for one in document["figures"]}
    smallest = dbanon.list_releases(settings=patients.settings)[0].loss.smallest_class
    assert (1 / 5, 1 / smallest) == found["risk reidentification [prosecutor] highest"]
    assert smallest >= 10
    assert (5, 10) == found["checks results [k-anonymity] required"]


def test_what_is_no_report_is_not_compared(patients, run, monkeypatch, tmp_path):
    monkeypatch.setenv("DBANON_DSN", patients.dsn)
    for text in ("{}", "[", "[1]"):
        (tmp_path / "x.json").write_text(text)
        finished = run("report", "anon.patients", "--against", tmp_path / "x.json", code=1)
        assert "holds no report" in finished.err
    finished = run("report", "anon.patients", "--against", tmp_path / "none.json", code=1)
    assert "cannot read" in finished.err


@pytest.mark.exhaustive
def test_nobody_is_named(patients, run, monkeypatch):
    """Values of the source that the relation does not show are nowhere in a report."""
    monkeypatch.setenv("DBANON_DSN", patients.dsn)
    canary = "CANARY-5fe1"
    patients.execute(f"UPDATE public.patients SET disease = '{canary}' WHERE id = 7")
    finished = run("report", "anon.patients")
    assert canary not in finished.out + finished.err
    document = run("report", "anon.patients", "--json")
    assert canary not in document.out + document.err
    assert "note 7" not in document.out


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ("DROP TABLE public.patients CASCADE", DriftError, "gone"),
        ("ALTER TABLE public.patients DROP COLUMN weight", DriftError, '"?weight'),
        ("ALTER TABLE public.patients ALTER age TYPE text USING age::text", DriftError, "age"),
    ],
)
def test_a_source_that_is_gone_or_changed_is_named(patients, change, error, words):
    patients.execute(change)
    with pytest.raises(error, match=words):
        reported(patients)
    with pytest.raises(error) as raised:
        reported(patients)
    assert 4 == raised.value.exit_code


def test_a_value_that_the_taxonomy_lacks_is_not_told(database, tmp_path):
    table = make_patients(database)
    (tmp_path / "sexes.csv").write_text("child,parent\n*,\nF,*\nM,*\n")
    dbanon.import_taxonomy("sexes", tmp_path / "sexes.csv", settings=database.settings)
    policy = patients_policy(table)
    rules = tuple(
        replace(rule, taxonomy="sexes") if rule.column == "sex" else rule for rule in policy.columns
    )
    dbanon.set_policy(table, replace(policy, columns=rules), settings=database.settings)
    dbanon.publish(table, settings=database.settings)
    database.execute("UPDATE public.patients SET sex = 'CANARY' WHERE id = 1")
    with pytest.raises(DriftError, match="no leaf") as raised:
        reported(database)
    assert "CANARY" not in str(raised.value)


def test_what_serves_nothing_has_no_report(patients):
    with pytest.raises(ConfigError, match="serves no release"):
        reported(patients, "public.patients")
    with pytest.raises(TableNotFound):
        reported(patients, "anon.nobody")
    dbanon.drop_release(1, settings=patients.settings)
    with pytest.raises(TableNotFound):
        reported(patients)


def test_a_relation_that_somebody_emptied_has_no_report(patients):
    """Whoever reads it is told to read it anew, as those are whose snapshot is too old for it."""
    unseal(patients, 1)
    patients.execute("DELETE FROM dbanon_data.release_1")
    with pytest.raises(DatabaseError, match="changed at the same time"):
        reported(patients)


def test_a_role_without_rights_is_told_so(patients):
    analyst = patients.role("report_reader")
    dbanon.grant("anon.patients", [analyst], settings=patients.settings)
    with pytest.raises(NotPermitted):
        dbanon.report("anon.patients", settings=Settings(dsn=patients.dsn_as(analyst)))


@pytest.mark.parametrize(
    "options", [{"threshold": 0}, {"threshold": 1.0}, {"samples": 0}, {"population": 199}]
)
def test_senseless_figures_are_refused(patients, options):
    with pytest.raises(ConfigError):
        reported(patients, **options)


@pytest.mark.exhaustive
def test_a_person_of_several_rows_is_among_persons(database):
    table = make_patients(database, rows=100)
    database.execute(
        "ALTER TABLE public.patients ADD person integer NOT NULL DEFAULT 0;"
        "UPDATE public.patients AS p SET person = p.id / 2, age = q.age, sex = q.sex,"
        " born = q.born, weight = q.weight FROM public.patients AS q WHERE q.id = p.id / 2 * 2"
    )
    policy = patients_policy(table, subject="person", l=None)
    rules = (*policy.columns, ColumnRule("person", Role.IDENTIFIER))
    policy = replace(policy, columns=rules, models=(ModelSpec("k-anonymity", {"k": 5}),))
    dbanon.set_policy(table, policy, settings=database.settings)
    dbanon.publish(table, settings=database.settings)
    whole = reported(database)
    assert not whole.risk.unique_sets  # each row has another of the same person beside it
    found = by_attacker(whole)[Attacker.PROSECUTOR]
    rows = database.execute("SELECT count(*) FROM anon.patients GROUP BY age, sex, born, weight")
    assert min(n for (n,) in rows) >= 10
    assert found.highest == pytest.approx(1 / 5)


@pytest.mark.exhaustive
def test_the_rows_of_a_person_hide_no_risk_of_theirs(database, run, monkeypatch, tmp_path):
    """Of five persons of ten rows each any is found with 1 of 5, though fifty rows are alike."""
    table = make_patients(database, rows=100)
    database.execute(
        "ALTER TABLE public.patients ADD person integer NOT NULL DEFAULT 0;"
        "UPDATE public.patients AS p SET person = p.id % 10, age = 30 + p.id % 2, sex = 'F',"
        " born = date '1990-01-01', weight = 70"
    )
    policy = patients_policy(table, subject="person", l=None)
    rules = (*policy.columns, ColumnRule("person", Role.IDENTIFIER))
    policy = replace(policy, columns=rules, models=(ModelSpec("k-anonymity", {"k": 5}),))
    dbanon.set_policy(table, policy, settings=database.settings)
    dbanon.publish(table, settings=database.settings)
    found = reported(database, threshold=0.15)
    proved = {(one.model, one.column) for one in found.checks.results}
    assert ("k-anonymity", "person, when published") in proved
    public = reported(database, public=True)
    assert ("k-anonymity of person, 5 required: passed when it was published",) == public.proofs
    assert 1 / 5 == pytest.approx(by_attacker(public)[Attacker.PROSECUTOR].average)
    assert all(one.is_bound for one in found.risk.reidentification)
    monkeypatch.setenv("DBANON_DSN", database.dsn)
    run("report", "anon.patients", "--html", tmp_path / "page.html")
    assert "at most 20.00%" in (tmp_path / "page.html").read_text("utf-8")
    for one in found.risk.reidentification:
        assert one.average == pytest.approx(1 / 5)
        assert (one.highest, one.above) == (pytest.approx(1 / 5), 1.0)
    for attack in found.risk.attacks:
        if attack.name == "re-identification, prosecutor":
            assert attack.rate >= 1 / 5 or attack.expected is None


def survey(database, *, weights="id % 7 + 10", **changes):
    """Publish patients whose rows stand for many persons, and return the policy."""
    table = make_patients(database)
    database.execute("ALTER TABLE public.patients ADD COLUMN persons numeric")
    database.execute(f"UPDATE public.patients SET persons = {weights}")
    policy = patients_policy(table, **changes)
    policy = replace(policy, columns=(*policy.columns, ColumnRule("persons", Role.WEIGHT)))
    dbanon.set_policy(table, policy, settings=database.settings)
    dbanon.publish("patients", settings=database.settings)
    return policy


def test_survey_weights_lower_the_journalists_risk_and_are_not_published(database):
    survey(database)
    found = reported(database)
    assert "persons" not in found.columns
    attackers = by_attacker(found)
    assert BY_WEIGHTS == attackers[Attacker.JOURNALIST].basis
    assert attackers[Attacker.PROSECUTOR].highest == 0.2
    # 5 rows that stand for 10 to 16 persons each
    assert 1 / 80 < attackers[Attacker.JOURNALIST].highest < 1 / 50 * 1.3
    assert () == found.risk.uniqueness


def test_a_row_of_a_sample_stands_for_as_many_more(database):
    survey(database, weights="10", sample=0.5)
    found = by_attacker(reported(database))[Attacker.JOURNALIST]
    assert BY_WEIGHTS == found.basis
    # 5 rows or more, of 20 persons each; which rows are drawn, the secret key decides
    assert 1 / 150 < found.highest < 1 / 60


@pytest.mark.parametrize("wrong", exhaustive_after(1, ["NULL", "0", "-1", "'NaN'", "'Infinity'"]))
def test_what_is_no_weight_is_refused_by_the_report_and_stops_no_publication(database, wrong):
    survey(database, weights=f"CASE WHEN id < 3 THEN {wrong} ELSE 12.5 END")
    with pytest.raises(ConfigError, match=r"weight column persons .* in 3 rows"):
        reported(database)


@pytest.mark.exhaustive
def test_a_changed_weight_is_no_reason_to_publish_again(database):
    survey(database)
    database.execute("UPDATE public.patients SET persons = 99")
    first = reported(database).release
    dbanon.refresh("patients", settings=database.settings)
    assert first == reported(database).release
