"""Anatomy: exact quasi-identifiers and the sensitive values of buckets, in two relations."""

import re
from collections import Counter
from dataclasses import replace

import psycopg
import pytest
from goldens import ANATOMY, ANATOMY_BUCKETS
from pages import page
from tables import make_patients, patients_policy

import dbanon
from dbanon.db.proofs import checks
from dbanon.domain.errors import ConfigError, DbanonError, PolicyError, Unsatisfiable
from dbanon.domain.policy import ColumnRule, ModelSpec, Role
from dbanon.domain.table import TableName

SOURCE = "public.patients"
MEANT = ("anatomy: presence is no secret here",)
SIZES = """
SELECT bucket, count(*) FROM anon.patients GROUP BY bucket ORDER BY bucket"""
COUNTS = """
SELECT bucket, sum(count)::int FROM anon.patients_sensitive GROUP BY bucket ORDER BY bucket"""
MOST = "SELECT bucket, max(count) FROM anon.patients_sensitive GROUP BY bucket"
OTHER_KEY = "UPDATE dbanon.sampling_key SET key = sha256('another')"
VERIFY = "SELECT model, sensitive, required, classes, row_count, verdict FROM dbanon.verify(%s)"


def policy_of(table, *, l=3, **changes):
    options = {"k": None, "l": l, "anatomy": True, "allow": MEANT, **changes}
    return patients_policy(table, **options)


def define(database):
    table = make_patients(database)
    dbanon.set_policy(table, policy_of(table), settings=database.settings)


@pytest.fixture
def patients(copied):
    """The patients, by a policy of anatomy with l = 3."""
    return copied(define)


def publish(database, **options):
    return dbanon.publish(SOURCE, settings=database.settings, **options)


def changed(database, **changes):
    policy = dbanon.load_policy(SOURCE, settings=database.settings)
    dbanon.set_policy(SOURCE, replace(policy, **changes), settings=database.settings)


@pytest.mark.exhaustive
def test_an_analyst_reads_exact_rows_and_the_values_of_buckets_and_proves_both(patients):
    analyst = patients.role("anatomy_analyst")
    release = publish(patients, grants=[analyst])
    assert release.checks.passed
    (checked,) = release.checks.results
    assert ("probabilistic-l-diversity", "disease", 3) == (
        checked.model,
        checked.column,
        checked.required,
    )
    with patients.connect_as(analyst) as reader:
        rows = reader.execute("SELECT * FROM anon.patients").fetchall()
        names = [column.name for column in reader.execute("TABLE anon.patients").description]
        assert ["age", "sex", "born", "weight", "note", "bucket"] == names
        source = patients.execute("SELECT age, sex, born, weight, note FROM public.patients")
        assert sorted(map(str, source)) == sorted(str(row[:-1]) for row in rows)
        sizes, counts = (reader.execute(query).fetchall() for query in (SIZES, COUNTS))
        assert sizes == counts
        assert all(size >= 3 for _, size in sizes)
        most = dict(reader.execute(MOST).fetchall())
        assert all(3 * most[bucket] <= size for bucket, size in sizes)
        found = reader.execute(VERIFY, ("anon.patients",)).fetchall()
        expected = ("probabilistic-l-diversity", "disease", 3.0, len(sizes), 200, "passed")
        assert [expected] == found
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            reader.execute("TABLE public.patients")


def with_exact_columns(database):
    """Change the policy so that all that is published is an integer or a text."""
    policy = policy_of(TableName("public", "patients"))
    roles = {"born": Role.IDENTIFIER, "weight": Role.IDENTIFIER, "note": Role.QUASI}
    rules = (ColumnRule(r.column, roles.get(r.column, r.role)) for r in policy.columns)
    changed(database, columns=tuple(rules))


def test_exact_texts_and_integers_are_published_as_they_were_read(patients):
    notes = "'', NULL, E'a \"b\",\\n\\\\.', ' x '"
    patients.execute(f"UPDATE public.patients SET note = (ARRAY[{notes}])[id % 4 + 1]")
    with_exact_columns(patients)
    publish(patients, keep_assignment=True)
    joined = (
        " FROM public.patients AS p JOIN dbanon_data.rows_1 AS r ON r.k1 = p.id"
        " JOIN dbanon_data.groups_1 AS g USING (group_id)"
    )
    expected = patients.execute(f"SELECT age, sex, note, q1{joined}")
    shown = patients.execute("SELECT age, sex, note, bucket FROM anon.patients")
    assert sorted(map(str, expected)) == sorted(map(str, shown))
    expected = patients.execute(f"SELECT q1, disease, count(*){joined} GROUP BY 1, 2")
    dealt = patients.execute("SELECT bucket, disease, count FROM anon.patients_sensitive")
    assert sorted(map(str, expected)) == sorted(map(str, dealt))
    kept = patients.execute("SELECT * FROM dbanon_data.rows_1 LIMIT 1")
    assert [2] == [*map(len, kept)]  # the key and the group: no value of a person is kept
    assert [] == patients.execute("SELECT FROM pg_class WHERE relname LIKE 'draft%'")


def test_rows_are_joined_with_no_sensitive_value_whose_order_they_would_keep(patients):
    """A merge join sorts the rows by value, and a large hash join deals them by value."""
    with_exact_columns(patients)
    statements = dbanon.plan(SOURCE, settings=patients.settings).statements
    assert any("draft_" in statement for statement in statements)
    (copy,) = (one for one in statements if 'AS "note"' in one and "dbanon_class" in one)
    assert "rows_" in copy
    assert "draft_" not in copy


def test_an_analyst_checks_both_with_no_right_on_anything_else(patients):
    analyst = patients.role("anatomy_auditor")
    publish(patients, grants=[analyst])
    settings = replace(patients.settings, dsn=patients.dsn_as(analyst))
    assert dbanon.check("anon.patients", settings=settings).passed


@pytest.mark.exhaustive
def test_a_table_that_changed_is_not_dealt_anew_for_the_same_readers(patients):
    publish(patients)
    patients.execute("DELETE FROM public.patients WHERE id = 7")
    with pytest.raises(dbanon.CheckFailed, match="buckets are dealt from all rows"):
        dbanon.refresh(SOURCE, settings=patients.settings)
    assert [(200,)] == patients.execute("SELECT sum(count)::int FROM anon.patients_sensitive")


def test_both_relations_say_what_they_are(patients):
    publish(patients)
    described = dbanon.describe("anon.patients", settings=patients.settings)
    words = {column.name: column.words for column in described.columns}
    assert "quasi-identifier, published as it is" == words["age"]
    assert "published as the number of a bucket of persons" == words["bucket"]
    ((comment,),) = patients.execute(
        "SELECT obj_description('anon.patients_sensitive'::regclass, 'pg_class')"
    )
    assert "the sensitive values of the buckets of anon.patients; made by dbanon" == comment


@pytest.mark.exhaustive
def test_a_check_proves_it_again_and_finds_what_was_changed_by_hand(patients):
    publish(patients)
    report = dbanon.check("anon.patients", settings=patients.settings)
    assert (report.passed, 200) == (True, report.results[0].n_rows)
    assert [] == [f for f in dbanon.doctor(settings=patients.settings) if f.level == "failure"]
    change = "UPDATE anon.patients_sensitive SET disease = 'flu' WHERE bucket = 1"
    patients.execute(change)
    with pytest.raises(dbanon.CheckFailed, match="1 of 66 classes fail"):
        dbanon.check("anon.patients", settings=patients.settings)


def test_a_check_asks_for_nothing_else(patients):
    publish(patients)
    with pytest.raises(ConfigError, match="promises the values of its buckets") as caught:
        dbanon.check("anon.patients", k=2, quasi=["age"], settings=patients.settings)
    assert "dbanon check anon.patients" == caught.value.hint
    with pytest.raises(ConfigError, match="is proved with it") as caught:
        dbanon.check("anon.patients_sensitive", settings=patients.settings)
    assert "dbanon check anon.patients" == caught.value.hint


@pytest.mark.exhaustive
def test_values_that_are_exchanged_between_buckets_are_noticed(patients):
    publish(patients)
    # Which persons share a bucket is left to chance: two buckets may have the same values.
    held = patients.execute(
        "SELECT bucket, array_agg(coalesce(disease, '') || ' ' || count ORDER BY disease)"
        " FROM anon.patients_sensitive GROUP BY bucket"
    )
    one, other = next(
        (a, b) for a, values in held for b, others in held if sorted(values) != sorted(others)
    )
    patients.execute(
        "UPDATE anon.patients_sensitive SET bucket = CASE bucket WHEN %(one)s THEN %(other)s"
        " ELSE %(one)s END WHERE bucket IN (%(one)s, %(other)s)",
        {"one": one, "other": other},
    )
    (found,) = [f for f in dbanon.doctor(settings=patients.settings) if f.level == "failure"]
    assert "it shows other rows or columns than were published" == found.message
    (again,) = dbanon.refresh(SOURCE, settings=patients.settings)
    assert again.changed
    assert [] == [f for f in dbanon.doctor(settings=patients.settings) if f.level == "failure"]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE {} SET count = count + 1 WHERE bucket = 1",
        "UPDATE {} SET count = NULL WHERE bucket = 1",
        "UPDATE {} SET bucket = NULL WHERE bucket = 1",
        "DELETE FROM {} WHERE bucket = 1",
        "INSERT INTO {} SELECT 999, disease, count FROM {} WHERE bucket = 1",
        "INSERT INTO {} VALUES (1, 'x', 5), (1, 'y', -5)",
    ],
)
def test_relations_that_do_not_agree_fail(patients, change):
    publish(patients)
    patients.execute(change.replace("{}", "anon.patients_sensitive"))
    ((*_, verdict),) = patients.execute(
        "SELECT failing_classes, verdict FROM dbanon.verify('anon.patients')"
    )
    assert "failed" == verdict


def test_no_second_relation_and_no_promise_is_no_proof(patients):
    publish(patients)
    patients.execute("DROP TABLE anon.patients_sensitive")
    failures = [f for f in dbanon.doctor(settings=patients.settings) if f.level == "failure"]
    assert any("its sensitive values are gone" in str(f) for f in failures)
    with pytest.raises(DbanonError):
        dbanon.check("anon.patients", settings=patients.settings)
    with pytest.raises(psycopg.errors.UndefinedTable, match="no relation of sensitive values"):
        patients.execute("SELECT * FROM dbanon.verify('anon.patients')")


@pytest.mark.exhaustive
def test_the_second_relation_comes_and_goes_with_the_release(patients):
    analyst, other = patients.role("anatomy_first"), patients.role("anatomy_other")
    release = publish(patients, grants=[analyst])
    dbanon.grant("anon.patients", [other], settings=patients.settings)
    with patients.connect_as(other) as reader:
        assert reader.execute(COUNTS).fetchall()
    (taken,) = dbanon.revoke("anon.patients", [other], settings=patients.settings)
    assert () == taken.remarks
    with patients.connect_as(other) as reader, pytest.raises(psycopg.Error):
        reader.execute(COUNTS)
    dbanon.drop_release(release.id, settings=patients.settings)
    there = "SELECT to_regclass('anon.patients_sensitive') IS NOT NULL"
    assert [(False,)] == patients.execute(there)


@pytest.mark.exhaustive
def test_the_buckets_that_were_proved_are_those_that_readers_get(patients, monkeypatch):
    proved, prove = [], checks.prove

    def noted(session, info, *rest, **options):
        beside = f"{info.name}_sensitive"
        proved.append(session.one("SELECT to_regclass(%s)::oid::bigint", (beside,))[0])
        return prove(session, info, *rest, **options)

    monkeypatch.setattr(checks, "prove", noted)
    served = "SELECT 'anon.patients_sensitive'::regclass::oid::bigint"
    publish(patients)
    assert [(oid,) for oid in proved] == patients.execute(served)
    (first,) = proved
    publish(patients)  # readers may use the relation, so it stays, and the copied rows are proved
    assert [first] == proved[2:]
    assert [(first,)] == patients.execute(served)


def test_the_values_of_a_bucket_lie_in_their_own_order_whatever_that_of_the_source_is(patients):
    publish(patients)
    stored = "SELECT bucket, disease, count FROM anon.patients_sensitive"
    assert patients.execute(f"{stored} ORDER BY bucket, disease") == patients.execute(stored)


@pytest.mark.exhaustive
def test_the_same_rows_are_published_again_in_the_same_buckets(patients):
    publish(patients)
    before = patients.execute("SELECT note, bucket FROM anon.patients ORDER BY note")
    (again,) = dbanon.refresh(SOURCE, settings=patients.settings)
    assert again.changed
    assert "its buckets are dealt from all rows" == again.regrouped
    assert before == patients.execute("SELECT note, bucket FROM anon.patients ORDER BY note")


@pytest.mark.exhaustive
def test_other_buckets_of_the_same_persons_are_refused(patients):
    first = publish(patients)
    patients.execute(OTHER_KEY)
    with pytest.raises(dbanon.CheckFailed, match=f"release {first.id} is served on"):
        publish(patients)
    assert patients.execute(SIZES) == patients.execute(COUNTS)


@pytest.mark.exhaustive
def test_nobody_without_the_secret_key_can_repeat_the_deal(patients):
    """Whoever could would find exact values by the order of the source and the buckets."""
    publish(patients)
    buckets = "SELECT note, bucket FROM anon.patients ORDER BY note"
    shown = patients.execute(buckets)
    fresh = {"new_series": True, "recipients_changed": True}
    for seed in (0, 1):  # which decides nothing
        publish(patients, seed=seed, **fresh)
        assert shown == patients.execute(buckets)
    patients.execute(OTHER_KEY)
    publish(patients, **fresh)
    other = patients.execute(buckets)
    alike = sum(one == two for one, two in zip(shown, other, strict=True))
    assert alike < 20  # of 200 persons, about 3 by chance


def test_a_release_that_was_dealt_by_a_seed_is_named_until_it_is_published_again(patients):
    release = publish(patients)
    findings = dbanon.doctor(settings=patients.settings)
    assert [] == [found for found in findings if found.level == "failure"]
    patients.execute(OTHER_KEY)
    patients.execute(
        "UPDATE dbanon.release SET fingerprint = regexp_replace(fingerprint, '^.*: ', '')"
    )
    (found,) = [f for f in dbanon.doctor(settings=patients.settings) if f.level == "failure"]
    assert "anon.patients" == found.subject
    assert "dealt by a seed" in found.message
    drop, then = f"dbanon release drop {release.id}", "dbanon publish public.patients --new-series"
    assert f"{drop}, then {then}" == found.hint
    dbanon.drop_release(release.id, settings=patients.settings)
    publish(patients, new_series=True)
    findings = dbanon.doctor(settings=patients.settings)
    assert [] == [found for found in findings if found.level == "failure"]


def test_nothing_is_written_by_a_dry_run_nor_by_a_plan(patients):
    planned = dbanon.plan(SOURCE, settings=patients.settings)
    assert '"anon"."patients_sensitive"' in planned.script
    # psql takes the rows of a COPY from the script; without them, all else runs as it is printed.
    statements = [text for text in planned.statements if not text.startswith("COPY ")]
    with patients.connect() as connection, connection.transaction(force_rollback=True):
        for statement in statements:
            connection.execute(statement)
    publish(patients, dry_run=True)
    assert [(None,)] == patients.execute("SELECT to_regclass('anon.patients_sensitive')")


@pytest.mark.exhaustive
def test_a_release_of_ranges_takes_the_place_of_one_by_anatomy(patients):
    release = publish(patients)
    dbanon.drop_release(release.id, settings=patients.settings)
    changed(
        patients,
        anatomy=False,
        models=(ModelSpec("k-anonymity", {"k": 5}), ModelSpec("l-diversity", {"l": 3})),
    )
    publish(patients, new_series=True, recipients_changed=True)
    assert [(None,)] == patients.execute("SELECT to_regclass('anon.patients_sensitive')")


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"k": 5}, PolicyError, "cannot promise k-anonymity, but l alone"),
        ({"models": [ModelSpec("t-closeness", {"t": 0.5})]}, PolicyError, "t-closeness"),
        ({"kind": "view"}, ConfigError, "a live view cannot keep buckets"),
        ({"l": 1}, PolicyError, "l is not set"),
        ({"l": 6}, Unsatisfiable, "more than one in l = 6"),
    ],
)
def test_what_anatomy_cannot_keep_is_refused_with_the_reason(patients, options, error, says):
    if options.get("l") == 1:
        changed(patients, models=())
    with pytest.raises(error, match=says) as caught:
        publish(patients, **options)
    assert caught.value.hint
    assert [(None,)] == patients.execute("SELECT to_regclass('anon.patients')")


@pytest.mark.exhaustive
def test_persons_with_several_rows_are_refused(patients):
    patients.execute("ALTER TABLE public.patients ADD person integer NOT NULL DEFAULT 0")
    patients.execute("UPDATE public.patients SET person = id / 2")
    policy = dbanon.load_policy(SOURCE, settings=patients.settings)
    rules = (*policy.columns, ColumnRule("person", dbanon.Role.IDENTIFIER))
    changed(patients, subject="person", columns=rules)
    with pytest.raises(PolicyError, match="some person has several rows"):
        publish(patients)
    patients.execute("UPDATE public.patients SET person = id")
    assert publish(patients).checks.passed


def test_a_view_is_published_as_it_was_read(patients):
    patients.execute("CREATE VIEW public.all_patients AS TABLE public.patients")
    policy = dbanon.load_policy(SOURCE, settings=patients.settings)
    name = dbanon.TableName("public", "all_patients")
    dbanon.set_policy(name, replace(policy, table=name, key=("id",)), settings=patients.settings)
    release = dbanon.publish(name, settings=patients.settings)
    assert release.checks.passed
    assert [(200,)] == patients.execute("SELECT sum(count)::int FROM anon.all_patients_sensitive")


def test_a_name_of_somebody_elses_is_left_alone(patients):
    patients.execute("CREATE SCHEMA anon; CREATE TABLE anon.patients_sensitive (mine text)")
    with pytest.raises(ConfigError, match="is no relation of anatomy"):
        publish(patients)


def guided(database, *, disease="pneumonia", everybody=False):
    """Return what the query of the guide counts of a disease, of everybody or where it says."""
    (query,) = page("docs/guides/anatomy.md").blocks("sql")
    assert "pneumonia" in query
    if everybody:
        query = re.sub(r"WHERE .*20000\n   AND", "WHERE", query, flags=re.DOTALL)
    ((found,),) = database.execute(query.replace("pneumonia", disease))
    return float(found)


def test_the_example_of_the_paper_is_counted_as_it_is(database):
    database.execute(
        "CREATE SCHEMA anon; CREATE TABLE anon.patients (age int, sex text, zip int, bucket int);"
        " CREATE TABLE anon.patients_sensitive (bucket int, disease text, count bigint)"
    )
    held = Counter((bucket, row[-1]) for row, bucket in zip(ANATOMY, ANATOMY_BUCKETS, strict=True))
    with database.connect() as connection, connection.cursor() as cursor:
        persons = [(*row[:3], n) for row, n in zip(ANATOMY, ANATOMY_BUCKETS, strict=True)]
        cursor.executemany("INSERT INTO anon.patients VALUES (%s, %s, %s, %s)", persons)
        values = [(*of, count) for of, count in held.items()]
        cursor.executemany("INSERT INTO anon.patients_sensitive VALUES (%s, %s, %s)", values)
    assert guided(database) == pytest.approx(1)
    checked = "SELECT achieved, classes, verdict FROM dbanon.check_anatomy('anon.patients', %s, %s)"
    assert [(2.0, 2, "passed")] == database.execute(checked, ("disease", 2))
    assert [(2.0, 2, "failed")] == database.execute(checked, ("disease", 2.5))


def test_persons_of_the_paper_are_dealt_for_the_greatest_l_and_each_disease_adds_up(database):
    database.execute(
        "CREATE TABLE public.patients"
        " (id int PRIMARY KEY, age int, sex text, zip int, disease text)"
    )
    with database.connect() as connection, connection.cursor() as cursor:
        rows = [(i, *row) for i, row in enumerate(ANATOMY)]
        cursor.executemany("INSERT INTO public.patients VALUES (%s, %s, %s, %s, %s)", rows)
    roles = {"id": dbanon.Role.IDENTIFIER, "disease": dbanon.Role.SENSITIVE}
    names = ("id", "age", "sex", "zip", "disease")
    policy = dbanon.Policy(
        dbanon.TableName("public", "patients"),
        tuple(ColumnRule(name, roles.get(name, dbanon.Role.QUASI)) for name in names),
        models=(ModelSpec("l-diversity", {"l": 4}),),
        anatomy=True,
    )
    dbanon.set_policy(policy.table, policy, settings=database.settings)
    release = publish(database)
    assert 4 == release.checks.results[0].achieved
    assert ["anatomy"] == [caution.code for caution in release.warnings if caution.column is None]
    for disease, count in Counter(row[-1] for row in ANATOMY).items():
        assert count == pytest.approx(guided(database, disease=disease, everybody=True))
    # Both of those who are asked for are in a bucket of four with one pneumonia.
    assert guided(database) == pytest.approx(2 / 4)
    with pytest.raises(Unsatisfiable, match="2 of 8 persons") as caught:
        publish(database, l=5)
    assert "--l 4" == caught.value.hint
