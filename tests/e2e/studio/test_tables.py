"""What the studio knows of tables and columns before anything is decided."""

import re
from dataclasses import replace

import pytest
from studios import Visitor
from tables import define_patients, make_patients, patients_policy, publish_patients

import dbanon
from dbanon.actions import inspect as inspecting
from dbanon.actions.compare import compare_request, comparisons
from dbanon.actions.inspect import profile
from dbanon.actions.policy import policy_of_profile
from dbanon.actions.tables import State, list_tables
from dbanon.domain.outcomes import Stages
from dbanon.domain.policy import ColumnRule, Role
from dbanon.domain.table import TableName
from dbanon.formats import policies
from dbanon.request import Request
from dbanon.studio.searches import tried
from dbanon.studio.tables import bars_of

PATIENTS = TableName("public", "patients")


def state(database):
    (one,) = (one for one in list_tables(settings=database.settings) if one.table == PATIENTS)
    return one


def test_the_state_of_a_table_follows_its_policy_and_its_releases(database):
    make_patients(database)
    assert (State.NO_POLICY, 200, None) == (
        state(database).state,
        state(database).n_rows,
        state(database).n_persons,
    )
    policy = patients_policy(PATIENTS)
    dbanon.set_policy(PATIENTS, policy, settings=database.settings)
    assert (State.STORED, 200) == (state(database).state, state(database).n_persons)
    dbanon.publish(PATIENTS, settings=database.settings)
    found = state(database)
    assert (State.PUBLISHED, ("default",)) == (found.state, found.policies)
    assert (TableName("anon", "patients"),) == found.served
    assert ["patients"] == [one.table.name for one in list_tables(settings=database.settings)]
    dbanon.set_policy(PATIENTS, policy.with_k(7), settings=database.settings)
    assert State.STALE is state(database).state
    database.execute("ALTER TABLE patients DROP COLUMN age")
    drifted = state(database)
    assert State.DRIFTED is drifted.state
    assert "age" in drifted.reason


def test_a_table_that_has_drifted_is_shown_with_what_to_do(copied):
    database = copied(publish_patients)
    database.execute("ALTER TABLE patients DROP COLUMN age, ADD COLUMN height integer")
    visitor = Visitor(database.settings)
    assert "drifted" in visitor.get("tables").text
    shown = visitor.get("columns", table="public.patients")
    assert 200 == shown.status
    assert "The table has no such column any more" in shown.text
    assert "The policy has no role for <bdi>height</bdi>" in shown.text
    assert 400 == visitor.get("column", table="public.patients", column="age").status
    job = visitor.result(visitor.post("publish", table="public.patients"))
    assert "age" in job.failure.message
    assert 1 == len(dbanon.list_releases(settings=database.settings))


def test_published_relations_and_tables_of_others_are_not_listed(copied):
    database = copied(publish_patients)
    with database.admin() as admin:
        admin.execute("CREATE TABLE public.of_admin (a integer)")
    found = {str(one.table) for one in list_tables(settings=database.settings)}
    assert "public.patients" in found
    assert not {"anon.patients", "public.of_admin"} & found


def test_long_names_break_between_words_and_hostile_ones_stay_text(database):
    database.execute('CREATE TABLE public."admissions_<b>.x_&amp;_" (first_name text)')
    visitor = Visitor(database.settings)
    shown = visitor.get("tables").text
    quoted = "&#34;admissions_<wbr>&lt;b&gt;.<wbr>x_<wbr>&amp;amp;_<wbr>&#34;"
    assert f"<bdi>public.<wbr>{quoted}</bdi></a>" in shown
    shown = visitor.get("columns", table='public."admissions_<b>.x_&amp;_"').text
    assert "<bdi>first_<wbr>name</bdi>" in shown


def test_the_list_of_tables_makes_the_studio_read_them_again(copied):
    database = copied(make_patients)
    visitor = Visitor(database.settings)
    visitor.get("columns", table="public.patients")
    database.execute("ALTER TABLE patients ADD COLUMN height integer")
    visitor.get("tables")
    shown = visitor.get("columns", table="public.patients").text
    assert "The policy has no role for <bdi>height</bdi>" in shown


def test_a_profile_has_no_value_of_few_rows_and_counts_all_others(copied):
    found = profile(PATIENTS, settings=copied(make_patients).settings)
    assert (False, 200) == (found.is_sample, found.n_rows)
    assert "note" not in found.values  # nearly unique: it may identify persons
    rows = {one.label: one.rows for one in found.values["sex"]}
    assert {"F", "M"} == rows.keys()
    assert 200 == sum(rows.values())
    counts = [one.rows for values in found.values.values() for one in values]
    assert min(counts) >= found.least


def test_the_bars_of_a_column_are_shares_of_all_rows(copied):
    database = copied(make_patients)
    database.execute("UPDATE patients SET sex = NULL WHERE id % 4 > 0")
    found = profile(PATIENTS, settings=database.settings)
    sex = next(one for one in found.inspection.columns if one.info.name == "sex")
    bars = {bar.label: bar for bar in bars_of(found, sex)}
    assert {"F", "M", "NULL"} == bars.keys()
    assert 0.75 == bars["NULL"].share
    assert 0.25 == pytest.approx(bars["F"].share + bars["M"].share)
    shown = Visitor(database.settings).get("column", table="public.patients", column="sex").text
    assert "A bar of full width is all rows." in shown


def test_a_value_of_many_rows_of_few_persons_is_not_shown(database):
    database.execute(
        "CREATE TABLE public.visits (visit_id int PRIMARY KEY, patient_id int, word text);"
        " INSERT INTO visits SELECT i, i / 10, CASE WHEN i < 20 THEN 'of two' ELSE 'of many' END"
        " FROM generate_series(0, 499) AS i"
    )
    found = profile("public.visits", settings=database.settings)
    assert "patient_id" == found.inspection.persons.column
    assert ["of many"] == [one.label for one in found.values["word"]]


def test_a_large_table_is_described_and_compared_by_a_sample(copied, monkeypatch):
    database = copied(lambda database: make_patients(database, rows=6_000))
    database.execute("ANALYZE patients")
    assert not profile(PATIENTS, settings=database.settings).is_sample
    monkeypatch.setattr(inspecting, "PROFILED", 1_000)
    monkeypatch.setattr(inspecting, "WHOLE", 5_000)
    found = profile(PATIENTS, settings=database.settings)
    assert found.is_sample
    assert 5_500 < found.n_rows < 6_500
    assert 300 < found.inspection.n_rows < 3_000
    policy = replace(patients_policy(PATIENTS), name="default")
    request = Request(draft=policy, ks=(3,), algorithms=("mondrian",), settings=database.settings)
    first, compared = comparisons(PATIENTS, request, most_rows=1_000)
    assert ((), compared.n_rows) == (first.results, first.n_rows)
    assert 300 < compared.n_rows < 3_000
    assert compared.results[0].loss is not None
    whole = compare_request(PATIENTS, request)
    assert (6_000, False, True) == (whole.n_rows, whole.is_sample, compared.is_sample)


def test_candidates_are_compared_on_larger_and_larger_samples(copied):
    database = copied(lambda database: make_patients(database, rows=6_000))
    database.execute("ANALYZE patients")
    policy = replace(patients_policy(PATIENTS), name="default")
    request = Request(
        draft=policy, ks=(3, 900), algorithms=("mondrian",), settings=database.settings
    )
    found = [*tried(str(PATIENTS), request, (600, 2_000, None), Stages())]
    assert [0, 1] == [len(one.results) for one in found[:2]]
    complete = [one for one in found if len(one.results) == len(one.ks)]
    assert [True, True, False] == [one.is_sample for one in complete]
    assert complete[0].n_rows < complete[1].n_rows < complete[2].n_rows == 6_000
    few = replace(request, ks=(4_000,))  # more than the rows of a sample
    (last,) = {one.n_rows for one in tried(str(PATIENTS), few, (600, None), Stages())}
    assert 6_000 == last


@pytest.mark.parametrize("chosen", [{}, {"algorithm": "auto", "params": {"effort": "best"}}])
def test_each_k_loses_on_all_rows_what_it_loses_once_published(copied, chosen):
    database = copied(make_patients)
    visitor, policy = Visitor(database.settings), patients_policy(PATIENTS, l=2, **chosen)
    dbanon.set_policy(PATIENTS, policy, settings=database.settings)
    table = str(PATIENTS)
    job = visitor.result(visitor.post("curve", table=table, ks="2 5 9", l="2", all="1"))
    losses = [dbanon.plan(PATIENTS, k=k, settings=database.settings).loss for k in (2, 5, 9)]
    assert losses == [one.loss for one in job.result.results]
    assert f"{losses[1].ncp:.2%}" in visitor.get("curve", table=table, job=job.id).text


@pytest.mark.parametrize(("k", "pair"), [(2, (2, 5)), (4, (5, 9)), (5, (5, 9)), (9, (5, 9))])
def test_the_candidate_of_the_draft_and_the_next_one_are_first_side_by_side(copied, k, pair):
    database = copied(make_patients)
    visitor, table = Visitor(database.settings), str(PATIENTS)
    policy = patients_policy(PATIENTS, l=2, k=k)
    dbanon.set_policy(PATIENTS, policy, settings=database.settings)
    job = visitor.result(visitor.post("curve", table=table, ks="2 5 9", l="2", all="1"))
    shown = visitor.get("curve", table=table, job=job.id).text
    assert [*pair] == [*map(int, re.findall(r">[12]: k = (\d+)<", shown))][:2]


def test_counts_are_compared_unless_a_person_may_have_several_rows(copied):
    database = copied(make_patients)
    database.execute("ALTER TABLE patients ADD person int; UPDATE patients SET person = id / 4")
    persons = replace(patients_policy(PATIENTS), name="default")
    of_rows = replace(persons, columns=(*persons.columns, ColumnRule("person", Role.IDENTIFIER)))
    shown = []
    for policy in (of_rows, replace(of_rows, subject="person")):
        request = Request(
            draft=policy, ks=(3,), algorithms=("mondrian",), settings=database.settings
        )
        *_, found = comparisons(PATIENTS, request)
        assert found.results[0].sizes
        shown.append([one.source for one in found.results[0].answers])
    assert all(count >= 3 for count in shown[0])
    assert [3, 0] == [*map(len, shown)]


def test_a_page_names_the_columns_of_a_table_before_it_has_counted_their_values(copied):
    database = copied(define_patients)
    visitor = Visitor(database.settings)
    visitor.workspace.patience = 0.0
    first = visitor.get("columns", table="public.patients").text
    assert "Reading some rows" in first
    assert "<bdi>disease</bdi>" in first
    assert "role of disease" in visitor.get("columns", table="public.patients", wait=1).text
    visitor.workspace.patience = 60.0
    assert "role of disease" in visitor.get("columns", table="public.patients").text


@pytest.mark.exhaustive
def test_a_command_is_listed_only_once_it_has_succeeded(copied):
    database = copied(define_patients)
    visitor, table = Visitor(database.settings), "public.patients"
    for k, listed in ((5_000, []), (5, ["dbanon plan public.patients --file patients.toml"])):
        text = policies.dump(patients_policy(PATIENTS).with_k(k))
        visitor.post("policy", table=table, text=text)
        job = visitor.result(visitor.post("preview", table=table))
        assert (job.failure is None) == bool(listed)
        assert listed == visitor.workspace.commands


def test_the_suggested_policy_of_a_profile_is_that_of_the_command_line(copied):
    database = copied(define_patients)
    found = policy_of_profile(profile(PATIENTS, settings=database.settings))
    text = dbanon.suggest_policy(PATIENTS, settings=database.settings)
    assert found == policies.parse(text)
    assert 5 == found.k
