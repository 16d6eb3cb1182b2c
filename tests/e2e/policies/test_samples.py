"""Persons are drawn by a secret key: the same ones each time, and what they are is not shown."""

import json
from dataclasses import replace

import pytest
from tables import make_patients, patients_policy, rows_proved

import dbanon
from dbanon.cli import main
from dbanon.domain.policy import Comparison, Condition

SOURCE = "public.patients"
NOTES = "SELECT note FROM anon.patients ORDER BY note"


def define(database):
    table = make_patients(database, rows=400)
    database.execute("ALTER TABLE public.patients ADD person text NOT NULL DEFAULT 'x'")
    database.execute(
        "UPDATE public.patients AS p SET person = 'p' || p.id / 2, age = q.age, sex = q.sex,"
        " born = q.born, weight = q.weight FROM public.patients AS q WHERE q.id = p.id / 2 * 2"
    )
    policy = patients_policy(table, rest="drop", l=None)
    dbanon.set_policy(table, policy, settings=database.settings)


@pytest.fixture
def patients(copied):
    """A table of 400 rows; each of 200 persons has two, which are alike."""
    return copied(define)


def stored(database, **changes):
    policy = replace(dbanon.load_policy(SOURCE, settings=database.settings), **changes)
    dbanon.set_policy(SOURCE, policy, settings=database.settings)
    assert policy == dbanon.load_policy(SOURCE, settings=database.settings)


def published(database, **changes):
    stored(database, **changes)
    return dbanon.publish(SOURCE, settings=database.settings)


def notes(database):
    return {note for (note,) in database.execute(NOTES)}


@pytest.mark.exhaustive
def test_a_part_of_the_rows_is_published_proved_and_counted(patients):
    stored(patients, sample=0.5)
    planned = dbanon.plan(SOURCE, settings=patients.settings).loss
    release = dbanon.publish(SOURCE, settings=patients.settings)
    n_rows, n_not_drawn = release.loss.n_rows, release.loss.n_not_drawn
    assert (planned.n_rows, planned.n_not_drawn) == (n_rows, n_not_drawn)
    assert n_rows + n_not_drawn == 400
    assert 140 < n_rows < 260
    assert n_rows == rows_proved(release) == len(notes(patients))
    assert release.loss.smallest_class >= 5
    assert dbanon.check("anon.patients", settings=patients.settings).passed


def test_persons_are_drawn_with_all_their_rows(patients):
    release = published(patients, sample=0.4, subject="person")
    drawn = patients.execute(
        "SELECT person, count(*) FROM public.patients JOIN anon.patients USING (note) GROUP BY 1"
    )
    assert {count for _, count in drawn} == {2}
    assert len(drawn) * 2 == release.loss.n_rows < 400


@pytest.mark.exhaustive
def test_a_refresh_draws_the_same_persons_and_those_who_came(patients):
    published(patients, sample=0.5, subject="person")
    before = notes(patients)
    patients.execute(
        "INSERT INTO public.patients (id, age, sex, born, weight, disease, note, person)"
        " SELECT id + 1000, age, sex, born, weight, disease, 'late ' || id, 'q' || id / 2"
        " FROM public.patients"
    )
    others = {"new_series": True, "recipients_changed": True}
    dbanon.refresh(SOURCE, settings=patients.settings, **others)
    after = notes(patients)
    assert before == {note for note in after if note.startswith("note")}
    assert 140 < len(after - before) < 260


@pytest.mark.exhaustive
def test_a_larger_sample_holds_the_smaller(patients):
    published(patients, sample=0.3)
    small = notes(patients)
    stored(patients, sample=0.6)
    others = {"new_series": True, "recipients_changed": True}
    dbanon.publish(SOURCE, settings=patients.settings, **others)
    assert small < notes(patients)


def test_conditions_come_first(patients):
    where = (Condition("age", Comparison.BELOW, 50),)
    release = published(patients, sample=0.5, where=where)
    ((n_young,),) = patients.execute("SELECT count(*) FROM public.patients WHERE age < 50")
    assert release.loss.n_filtered == 400 - n_young
    assert release.loss.n_rows + release.loss.n_not_drawn == n_young
    assert 0 < release.loss.n_not_drawn


@pytest.mark.exhaustive
def test_persons_of_a_view_are_drawn_as_those_of_its_table(patients):
    published(patients, sample=0.5, subject="person")
    patients.execute("CREATE VIEW public.visits AS SELECT * FROM public.patients")
    policy = dbanon.load_policy(SOURCE, settings=patients.settings)
    policy = replace(policy, table=dbanon.TableName("public", "visits"), key=("id",))
    dbanon.set_policy("visits", policy, settings=patients.settings)
    release = dbanon.publish("visits", settings=patients.settings)
    of_view = {note for (note,) in patients.execute("SELECT note FROM anon.visits")}
    assert notes(patients) == of_view
    assert len(of_view) == rows_proved(release)


@pytest.mark.exhaustive
def test_no_value_of_others_is_left_where_labels_and_counts_are_made(patients):
    """The tree of a column without one knows the drawn rows only."""
    patients.execute("UPDATE public.patients SET sex = 'alone-' || id")
    rules = dbanon.load_policy(SOURCE, settings=patients.settings).columns
    rules = tuple(replace(r, recoding="set") if r.column == "sex" else r for r in rules)
    release = published(patients, sample=0.5, columns=rules)
    rows = [set(row) for (row,) in patients.execute("SELECT sex FROM anon.patients")]
    own = patients.execute("SELECT p.sex FROM public.patients AS p JOIN anon.patients USING (note)")
    assert set().union(*rows) == {sex for (sex,) in own}
    parts = [len(row) / len(rows) for row in rows]  # of the values that were drawn
    assert release.loss.columns["sex"] == pytest.approx(sum(parts) / len(parts))


@pytest.mark.exhaustive
def test_nobody_is_warned_of_values_that_only_others_have(patients):
    published(patients, sample=0.5)
    patients.execute(
        "UPDATE public.patients SET disease = 'alone-' || id"
        " WHERE note NOT IN (SELECT note FROM anon.patients)"
    )
    release = dbanon.publish(SOURCE, settings=patients.settings)
    assert [] == [warning for warning in release.warnings if warning.column == "disease"]


@pytest.mark.exhaustive
def test_the_key_is_in_the_metadata_and_nowhere_else(patients):
    published(patients, sample=0.5, subject="person")
    ((key,),) = patients.execute("SELECT key FROM dbanon.sampling_key")
    assert len(key) == 32
    told = patients.execute(
        "SELECT pg_get_viewdef('anon.patients'::regclass),"
        " obj_description('anon.patients'::regclass),"
        " (SELECT json_agg(r) FROM dbanon.release AS r),"
        " (SELECT string_agg(prosrc, '') FROM pg_proc"
        " WHERE pronamespace = 'dbanon_data'::regnamespace)"
    )
    assert key.hex() not in json.dumps(told, default=str)


@pytest.mark.exhaustive
def test_nobody_reads_a_sample_who_can_read_the_key(patients):
    stored(patients, sample=0.5)
    reader = patients.role("samples_reader")
    patients.execute(
        f"GRANT USAGE ON SCHEMA dbanon TO {reader}; GRANT SELECT ON dbanon.sampling_key TO {reader}"
    )
    with pytest.raises(dbanon.NotPermitted, match=r"can also read hidden data: .*sampling_key"):
        dbanon.publish(SOURCE, grants=[reader], settings=patients.settings)


def test_what_a_policy_says_of_a_sample_and_of_labels_is_shown(patients, monkeypatch, capsys):
    stored(patients, sample=0.5, labels=True)
    monkeypatch.setenv("DBANON_DSN", patients.dsn)
    monkeypatch.setattr("sys.argv", ["dbanon", "policy", "show", "patients"])
    with pytest.raises(SystemExit):
        main()
    shown = capsys.readouterr().out
    assert "sample: 0.5 of the persons" in shown
    assert "labels: published beside the release" in shown


def test_without_the_key_nothing_is_drawn_anew(patients):
    published(patients, sample=0.5)
    before = notes(patients)
    patients.execute("DELETE FROM dbanon.sampling_key")
    with pytest.raises(
        dbanon.DatabaseError, match="key by which samples are drawn is gone"
    ) as lost:
        dbanon.refresh(SOURCE, settings=patients.settings)
    assert "restore it from a backup" in lost.value.hint
    assert before == notes(patients)


def test_a_live_view_refuses_a_sample(patients):
    stored(patients, sample=0.5)
    with pytest.raises(dbanon.ConfigError, match="a live view cannot keep a sample"):
        dbanon.publish(SOURCE, kind="view", settings=patients.settings)
