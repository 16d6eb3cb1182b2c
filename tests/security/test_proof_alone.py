"""Groups that do not hold, handed over by a search gone wrong: the database refuses them."""

import numpy as np
import pytest
from psycopg import sql
from tables import make_patients, patients_policy

import dbanon
from dbanon.anonymization import linked
from dbanon.anonymization.loss.metrics import publication, report
from dbanon.anonymization.outcome import Outcome, published_values
from dbanon.anonymization.registry import METRICS
from dbanon.db.proofs import checks
from dbanon.domain.assignment import Assignment
from dbanon.domain.policy import ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.release import Verdict
from dbanon.domain.table import TableName
from dbanon.models.registry import MODELS

K2, K4 = (ModelSpec("k-anonymity", {"k": k}) for k in (2, 4))
L3 = ModelSpec("l-diversity", {"l": 3})
# What fails of classes that nearly all have one value of the sensitive column.
ONE_VALUE = [
    L3,
    ModelSpec("entropy-l-diversity", {"l": 2}),
    ModelSpec("probabilistic-l-diversity", {"l": 2}),
    ModelSpec("recursive-l-diversity", {"c": 3, "l": 2}),
    ModelSpec("pd-recursive-l-diversity", {"c": 3, "l": 2, "positive": ("flu",)}),
    ModelSpec(
        "npd-recursive-l-diversity",
        {"c": 3, "l": 2, "positive": ("flu",), "share": 0.5, "negative": ("cancer",)},
    ),
    ModelSpec("alpha-k-anonymity", {"alpha": 0.6}),
    ModelSpec("listed-alpha-k-anonymity", {"alpha": 0.6, "listed": ("cancer", "flu")}),
    ModelSpec("p-sensitivity", {"p": 2}),
    ModelSpec("t-closeness", {"t": 0.3}),
    ModelSpec("n-t-closeness", {"n": 100, "t": 0.3}),
    ModelSpec("beta-likeness", {"beta": 1}),
    ModelSpec("delta-disclosure", {"delta": 1}),
    ModelSpec("m-uniqueness", {"m": 3}),
    ModelSpec("x-y-anonymity", {"k": 3, "y": ("disease",)}),
]
# What fails of classes of very few rows.
FEW_ROWS = [ModelSpec("k-map", {"k": 12}), ModelSpec("delta-presence", {"dmax": 0.5})]


def hand_over(monkeypatch, groups):
    """Replace the search, which certifies what it finds, by one that returns any groups."""

    def solve(given, **_):
        encoded, policy = given.encoded, given.policy
        found = groups(given).astype(np.int32)
        assignment = Assignment(found, int(found.max()) + 1)
        values = published_values(encoded, assignment)
        published = publication(encoded, assignment, values, k=policy.k)
        return Outcome(assignment, values, report(published, METRICS))

    monkeypatch.setattr(linked, "solve", solve)


def runs(order, size):
    """Group runs of so many rows in an order."""
    groups = np.empty(len(order), np.int64)
    groups[order] = np.minimum(np.arange(len(order)) // size, len(order) // size - 1)
    return groups


def by_disease(given):
    return runs(np.argsort(given.encoded.sensitive[:, 0], kind="stable"), 5)


def by_two(given):
    return runs(np.lexsort([column.codes for column in given.encoded.quasi]), 2)


def failures(database, table, **options):
    """Publish and return what the database refused, (model, column) each."""
    with pytest.raises(dbanon.CheckFailed, match="did not hold in the database") as caught:
        dbanon.publish(table, new_series=True, settings=database.settings, **options)
    assert caught.value.exit_code == 3
    results = caught.value.report.results
    return {(r.model, r.column) for r in results if r.verdict is Verdict.FAILED}


def define_patients(database):
    table = make_patients(database)
    database.execute(
        "CREATE TABLE public.people AS SELECT age, sex, born, weight FROM public.patients"
        " UNION ALL SELECT age + d, sex, born + d, weight"
        "             FROM public.patients, generate_series(1, 2) AS d"
    )
    policy = patients_policy(table, k=4, l=None)
    dbanon.set_policy(table, policy, settings=database.settings)


@pytest.fixture
def patients(copied):
    """200 patients of 600 people, with a policy of k = 4 and no other model."""
    return copied(define_patients)


def test_classes_below_k_are_refused_and_the_release_before_is_served_on(patients, monkeypatch):
    for kind in ("table", "view"):
        dbanon.publish("patients", kind=kind, name=kind, settings=patients.settings)
    before = patients.execute("SELECT sum(hashtext(t::text)) FROM anon.table AS t")
    hand_over(monkeypatch, by_two)
    for kind in ("table", "view"):
        found = failures(patients, "patients", kind=kind, name=kind)
        assert found == {("k-anonymity", None)}
        with pytest.raises(dbanon.CheckFailed, match="did not hold"):
            dbanon.refresh("patients", new_series=True, settings=patients.settings)
    assert before == patients.execute("SELECT sum(hashtext(t::text)) FROM anon.table AS t")
    assert [True, True] == [r.served for r in dbanon.list_releases(settings=patients.settings)]


def test_classes_that_fail_a_model_are_refused(patients, monkeypatch):
    asked = {spec.name for spec in (K2, *ONE_VALUE, *FEW_ROWS)}
    assert asked == set(MODELS) - {"k-e-anonymity"}  # which is about numbers
    hand_over(monkeypatch, by_disease)
    for spec in ONE_VALUE:
        kinds = ("table",) if MODELS[spec.name].of_whole else ("table", "view")
        for kind in kinds:
            found = failures(patients, "patients", models=[spec], kind=kind)
            assert found == {(spec.name, "disease")}, (spec.name, kind)
    hand_over(monkeypatch, by_two)
    for spec in FEW_ROWS:
        options = {"models": [K2, spec], "population": "public.people"}
        assert failures(patients, "patients", **options) == {(spec.name, None)}
    assert patients.execute("SELECT to_regclass('anon.patients')") == [(None,)]


def test_classes_of_like_numbers_are_refused(database, monkeypatch):
    table = TableName("public", "wages")
    database.execute(
        "CREATE TABLE public.wages AS SELECT i AS id, i AS age, 1000 + i AS wage"
        " FROM generate_series(1, 40) AS i; ALTER TABLE public.wages ADD PRIMARY KEY (id)"
    )
    roles = {"id": Role.IDENTIFIER, "age": Role.QUASI, "wage": Role.SENSITIVE}
    rules = tuple(ColumnRule(name, role) for name, role in roles.items())
    spread = ModelSpec("k-e-anonymity", {"k": 2, "e": 10})
    dbanon.set_policy(table, Policy(table, rules, (K2, spread)), settings=database.settings)
    hand_over(monkeypatch, by_two)
    for kind in ("table", "view"):
        assert failures(database, table, kind=kind) == {("k-e-anonymity", "wage")}


COLUMNS = "model sensitive parameters required achieved classes failing_classes row_count verdict"


@pytest.mark.parametrize(
    ("wrong", "condition"),
    [
        ({}, "v.model <> 'k-anonymity'"),
        ({"failing_classes": "1"}, "true"),
        ({"classes": "0"}, "true"),
        ({"row_count": "0"}, "true"),
        ({"achieved": "NULL"}, "true"),
    ],
)
def test_an_answer_that_leaves_out_a_model_or_contradicts_itself_is_none(
    patients, monkeypatch, wrong, condition
):
    shown = ", ".join(wrong.get(name, f"v.{name}") for name in COLUMNS.split())
    answer = f"SELECT {shown} FROM dbanon.verify({{}}) AS v WHERE {condition}"
    monkeypatch.setattr(checks, "verification", sql.SQL(answer).format)
    with pytest.raises(dbanon.DatabaseError, match="did not answer for each promised model"):
        dbanon.publish("patients", settings=patients.settings)
    assert patients.execute("SELECT to_regclass('anon.patients')") == [(None,)]


def make_visits(database):
    database.execute(
        "CREATE TABLE public.visits (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
        " person int NOT NULL, age int, disease text);"
        "INSERT INTO public.visits (person, age, disease)"
        " SELECT p, 20 + p, 'd' || CASE WHEN p % 2 = 0 THEN v % 3 ELSE 0 END"
        " FROM generate_series(0, 23) AS p, generate_series(1, 3 + p % 2) AS v"
    )


@pytest.fixture
def visits(copied):
    """24 persons of different ages: three or four visits, for three diseases or always the same."""
    return copied(make_visits)


@pytest.mark.parametrize("kind", ["table", "view"])
def test_classes_that_hold_of_rows_and_not_of_persons_are_refused(visits, monkeypatch, kind):
    for models, persons, expected in (
        ([K2], 1, ("k-anonymity", "person")),
        ([K2, L3], 2, ("l-diversity", "disease by person")),
    ):
        policy = visits_policy(models)
        dbanon.set_policy(policy.table, policy, settings=visits.settings)
        hand_over(monkeypatch, lambda given, of=persons: given.subjects // of)
        assert failures(visits, policy.table, kind=kind) == {expected}


def test_a_share_that_holds_of_rows_and_not_of_persons_is_refused(visits, monkeypatch):
    policy = visits_policy([K2, ModelSpec("alpha-k-anonymity", {"alpha": 0.8})])
    dbanon.set_policy(policy.table, policy, settings=visits.settings)
    hand_over(monkeypatch, lambda given: given.subjects // 2)
    assert failures(visits, policy.table) == {("alpha-k-anonymity", "disease by person")}


def test_classes_whose_persons_have_different_numbers_of_rows_are_refused(visits, monkeypatch):
    policy = visits_policy([K2], rows_per_subject="group")
    dbanon.set_policy(policy.table, policy, settings=visits.settings)
    hand_over(monkeypatch, lambda given: given.subjects // 2)
    assert failures(visits, policy.table) == {("k-anonymity", "person by number of rows")}
    hand_over(monkeypatch, astride)
    assert failures(visits, policy.table) == {("k-anonymity", "person by number of rows")}


def astride(given):
    """Group persons in two halves, of whom some have one row in the other."""
    persons = given.subjects
    first = np.zeros(len(persons), bool)
    first[np.unique(persons, return_index=True)[1]] = True
    return np.where((persons < 8) | ((persons < 16) & first), 0, 1)


def visits_policy(models, **changes):
    roles = {
        "id": Role.IDENTIFIER,
        "person": Role.IDENTIFIER,
        "age": Role.QUASI,
        "disease": Role.SENSITIVE,
    }
    rules = tuple(ColumnRule(name, role) for name, role in roles.items())
    return Policy(TableName("public", "visits"), rules, tuple(models), subject="person", **changes)
