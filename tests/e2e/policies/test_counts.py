"""Counts with noise from the policy to what an analyst reads, and to the last of the budget."""

import json
import re
from dataclasses import replace
from decimal import Decimal

import psycopg
import pytest
from tables import DISEASES, make_patients, patients_policy

import dbanon
from dbanon.domain.errors import ConfigError, PolicyError, Unsatisfiable

ALL = tuple(sorted({disease for disease in DISEASES if disease is not None}))


def store(database, name, **changes):
    policy = replace(patients_policy(name, k=5, l=2, algorithm="mdav"), budget=1.0)
    orders = {"sex": ("F", "M"), "disease": (*ALL, "none of these")}
    rules = tuple(replace(r, order=orders.get(r.column, r.order)) for r in policy.columns)
    policy = replace(policy, **{"columns": rules, **changes})
    dbanon.set_policy(name, policy, settings=database.settings)
    return policy


def published(database):
    table = make_patients(database)
    store(database, table)
    dbanon.publish("patients", settings=database.settings)


@pytest.fixture
def patients(copied):
    return copied(published)


def count(database, *by, epsilon=0.5, relation="anon.patients", **options):
    return dbanon.count(relation, by=by, epsilon=epsilon, settings=database.settings, **options)


def spent(database):
    ((total,),) = database.execute("SELECT coalesce(sum(epsilon), 0) FROM dbanon.spending")
    return total


@pytest.mark.exhaustive
def test_every_combination_is_counted_and_no_count_is_far_off(patients):
    found = count(patients, "sex", "disease", epsilon=1.0)
    rows = patients.execute("SELECT sex, disease, persons FROM anon.patients_counts")
    true = {
        (sex, disease): n
        for sex, disease, n in patients.execute(
            "SELECT sex, disease, count(*) FROM public.patients GROUP BY 1, 2"
        )
    }
    cells = {
        (sex, disease) for sex in ("F", "M", None) for disease in (*ALL, "none of these", None)
    }
    assert cells == {(sex, disease) for sex, disease, _ in rows}
    assert len(rows) == len(cells) == found.cells
    assert max(abs(n - true.get((sex, disease), 0)) for sex, disease, n in rows) < 40
    assert (1.0, 1.0, 3) == (found.spent, found.budget, found.within)


@pytest.mark.exhaustive
def test_counts_have_noise_and_each_time_another(patients):
    seen = set()
    for _ in range(4):
        count(patients, "sex", "disease", epsilon=0.1)
        rows = patients.execute("SELECT persons FROM anon.patients_counts ORDER BY sex, disease")
        seen.add(tuple(rows))
    assert len(seen) == 4


@pytest.mark.exhaustive
def test_beyond_the_budget_nothing_is_counted(patients):
    count(patients, "sex", epsilon=0.7)
    before = patients.execute("TABLE anon.patients_counts")
    with pytest.raises(Unsatisfiable, match=r"more than is left of the budget.*: 0\.3 of 1"):
        count(patients, "sex", epsilon=0.31)
    assert before == patients.execute("TABLE anon.patients_counts")
    assert Decimal("0.7") == spent(patients)
    count(patients, "sex", epsilon=0.3)
    assert Decimal("1.0") == spent(patients)


def test_a_dry_run_spends_nothing(patients):
    found = count(patients, "sex", epsilon=0.4, dry_run=True)
    assert (3, 0.4) == (found.cells, found.spent)
    assert spent(patients) == 0
    assert patients.execute("SELECT to_regclass('anon.patients_counts')") == [(None,)]


@pytest.mark.exhaustive
def test_what_is_spent_stays_spent(patients):
    count(patients, "sex", epsilon=0.9)
    (release,) = dbanon.list_releases(settings=patients.settings)
    dbanon.drop_release(release.id, settings=patients.settings)
    assert patients.execute("SELECT to_regclass('anon.patients_counts')") == [(None,)]
    dbanon.publish("patients", new_series=True, recipients_changed=True, settings=patients.settings)
    with pytest.raises(Unsatisfiable):
        count(patients, "sex", epsilon=0.2)


def test_a_table_of_another_name_goes_on_with_its_account(patients):
    count(patients, "sex", epsilon=0.9)
    for release in dbanon.list_releases(settings=patients.settings):
        dbanon.drop_release(release.id, settings=patients.settings)
    patients.execute("ALTER TABLE public.patients RENAME TO people")
    store(patients, dbanon.TableName("public", "people"))
    dbanon.publish("people", new_series=True, settings=patients.settings)
    with pytest.raises(Unsatisfiable):
        count(patients, "sex", epsilon=0.2, relation="anon.people")


@pytest.mark.exhaustive
def test_readers_of_the_release_read_the_counts_and_nobody_else_does(patients):
    analyst, other = patients.role("counting"), patients.role("stranger")
    count(patients, "sex")
    dbanon.grant("anon.patients", [analyst], settings=patients.settings)
    reader = patients.connect_as(analyst)
    assert reader.execute("SELECT count(*) FROM anon.patients_counts").fetchone() == (3,)
    dbanon.publish("patients", grants=(other,), settings=patients.settings)
    stranger = patients.connect_as(other)
    assert stranger.execute("SELECT count(*) FROM anon.patients_counts").fetchone() == (3,)
    dbanon.revoke("anon.patients", [analyst], settings=patients.settings)
    ((may,),) = patients.execute(
        "SELECT has_table_privilege(%s, 'anon.patients_counts', 'SELECT')", (analyst,)
    )
    assert may is False


@pytest.mark.parametrize(
    ("by", "refused"),
    [
        (["note"], "nothing but its rows says which values"),
        (["nothing"], "has no column nothing"),
        (["sex", "sex"], "each of them once"),
        ([], "by one column or more"),
    ],
)
def test_columns_of_unknown_values_are_refused(patients, by, refused):
    with pytest.raises(PolicyError, match=refused):
        count(patients, *by)
    assert spent(patients) == 0


def test_counts_are_no_finer_than_the_floor_of_a_column(patients):
    settings = patients.settings
    dbanon.derive_taxonomy("births", "born", table="patients", kind="dates", settings=settings)
    policy = dbanon.load_policy("patients", settings=settings)
    floor = {"taxonomy": "births", "at_least": 3}
    rules = tuple(replace(r, **floor) if r.column == "born" else r for r in policy.columns)
    store(patients, policy.table, columns=rules)
    count(patients, "born")
    labels = patients.execute("SELECT born FROM anon.patients_counts WHERE born IS NOT NULL")
    assert len(labels) > 1
    assert all(re.fullmatch(r"\d{4}|\d{3}0-\d{3}9", label) for (label,) in labels)


def test_a_value_that_the_policy_lacks_is_refused_without_being_named(patients):
    patients.execute("UPDATE public.patients SET sex = 'Secretsex' WHERE id = 1")
    with pytest.raises(PolicyError, match="its order lacks 1 of its values") as caught:
        count(patients, "sex")
    assert "Secretsex" not in str(caught.value)
    assert spent(patients) == 0


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan"), float("inf"), 1e-9])
def test_an_epsilon_that_is_none_is_refused(patients, epsilon):
    with pytest.raises(ConfigError, match=r"epsilon is 0\.001 to 10"):
        count(patients, "sex", epsilon=epsilon)
    assert spent(patients) == 0


def test_without_a_budget_nothing_is_counted(patients):
    store(patients, dbanon.TableName("public", "patients"), budget=None)
    with pytest.raises(PolicyError, match="has no budget"):
        count(patients, "sex")


def test_persons_of_several_rows_are_not_counted(patients):
    patients.execute("ALTER TABLE public.patients ALTER note SET NOT NULL")
    policy = store(patients, dbanon.TableName("public", "patients"))
    rules = tuple(
        replace(r, role=dbanon.Role.IDENTIFIER) if r.column == "note" else r for r in policy.columns
    )
    store(patients, policy.table, columns=rules, subject="note")
    with pytest.raises(PolicyError, match="persons may have several rows"):
        count(patients, "sex")


def test_what_serves_no_release_has_no_counts(patients):
    with pytest.raises(ConfigError, match="serves no release"):
        count(patients, "sex", relation="public.patients")
    patients.execute("CREATE TABLE anon.patients_counts (mine int)")
    with pytest.raises(ConfigError, match="is no relation of counts"):
        count(patients, "sex")
    assert spent(patients) == 0


def test_the_command_says_what_it_cost(patients, run, monkeypatch):
    monkeypatch.setenv("DBANON_DSN", patients.dsn)
    shown = run("count", "anon.patients", "--by", "sex", "--epsilon", "0.25").out
    assert "3 counts of public.patients are served as anon.patients_counts" in shown
    assert "what is spent to 0.25 of 1" in shown
    found = json.loads(
        run("count", "anon.patients", "--by", "sex", "--epsilon", "0.5", "--json").out
    )
    assert (0.75, ["sex"]) == (found["spent"], found["by"])


def test_a_view_of_the_counts_shows_those_that_take_their_place(patients):
    count(patients, "sex", epsilon=0.1)
    patients.execute("CREATE VIEW public.mine AS SELECT * FROM anon.patients_counts")
    found = count(patients, "sex", epsilon=0.1)
    shown = patients.execute("TABLE public.mine")
    assert (3, ()) == (len(shown), found.notes)
    assert sorted(map(str, patients.execute("TABLE anon.patients_counts"))) == sorted(
        map(str, shown)
    )


def test_a_view_of_the_counts_does_not_keep_others_from_being_published(patients):
    count(patients, "sex", epsilon=0.1)
    analyst = patients.role("counting_on")
    dbanon.grant("anon.patients", [analyst], settings=patients.settings)
    idle = patients.connect_as(analyst)
    idle.execute("CREATE TEMPORARY VIEW mine AS SELECT persons FROM anon.patients_counts")
    (note,) = count(patients, "disease", epsilon=0.1).notes
    assert note.message.startswith("relations that depend on ")
    assert note.hint.endswith(" from anon.patients_counts")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        idle.execute("TABLE mine")
    rows = idle.execute("SELECT disease FROM anon.patients_counts").fetchall()
    assert {(disease,) for disease in (*ALL, "none of these", None)} == set(rows)


def test_revoking_a_release_with_counts_takes_the_use_of_the_schemas_too(patients):
    analyst = patients.role("counting_no_more")
    count(patients, "sex", epsilon=0.1)
    dbanon.grant("anon.patients", [analyst], settings=patients.settings)
    (taken,) = dbanon.revoke("anon.patients", [analyst], settings=patients.settings)
    assert () == taken.remarks
    uses = "SELECT has_schema_privilege(%s, name, 'USAGE') FROM unnest(%s::text[]) AS name"
    assert [(False,), (False,)] == patients.execute(uses, (analyst, ["anon", "dbanon"]))
