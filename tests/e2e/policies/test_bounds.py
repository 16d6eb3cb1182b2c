"""Recodings ``bounds`` and ``center``: two ordinary columns where tools know no ranges."""

from dataclasses import replace
from datetime import date
from itertools import product

import pytest
from selection import exhaustive_after
from tables import define_patients, patients_policy, rows_proved

import dbanon
from dbanon.anonymization.loss import metrics

SOURCE = "public.patients"
COLUMNS = (
    "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute"
    " WHERE attrelid = 'anon.patients'::regclass AND attnum > 0 ORDER BY attnum"
)


@pytest.fixture
def patients(copied):
    return copied(define_patients)


def published(database, *names, kind="table", **changes):
    """Publish with bounds of the columns, and with the other keys of age."""
    policy = dbanon.load_policy(SOURCE, settings=database.settings)
    rules = [
        replace(rule, recoding="bounds", **(changes if rule.column == "age" else {}))
        if rule.column in names
        else rule
        for rule in policy.columns
    ]
    dbanon.set_policy(SOURCE, replace(policy, columns=tuple(rules)), settings=database.settings)
    return dbanon.publish(SOURCE, kind=kind, settings=database.settings)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["table", "view"])
def test_bounds_are_those_of_the_interval_and_classes_are_told_by_both(patients, kind):
    plain = dbanon.publish(SOURCE, name="ranges", settings=patients.settings)
    release = published(patients, "age", "born", "weight", kind=kind)
    assert patients.execute(COLUMNS) == [
        ("age_min", "integer"),
        ("age_max", "integer"),
        ("sex", "text"),
        ("born_min", "date"),
        ("born_max", "date"),
        ("weight_min", "numeric"),
        ("weight_max", "numeric"),
        ("disease", "text"),
        ("note", "text"),
    ]
    same = "SELECT {}, sex, disease, note FROM anon.{} ORDER BY note"
    ranges = (
        "lower(age), upper(age) - 1, lower(born), upper(born) - 1, lower(weight), upper(weight)"
    )
    bounds = "age_min, age_max, born_min, born_max, weight_min, weight_max"
    found = patients.execute(same.format(bounds, "patients"))
    assert found == patients.execute(same.format(ranges, "ranges"))
    assert plain.loss.n_rows == release.loss.n_rows
    assert plain.loss.ncp == pytest.approx(release.loss.ncp, rel=1e-12)
    assert rows_proved(release) == 200
    assert dbanon.check("anon.patients", settings=patients.settings).passed
    ((least,),) = patients.execute(
        f"SELECT min(n) FROM (SELECT count(*) AS n FROM anon.patients GROUP BY sex, {bounds}) AS c"
    )
    assert least >= 5
    looked = [f for f in dbanon.doctor(settings=patients.settings) if f.level == "failure"]
    assert looked == []


@pytest.mark.exhaustive
def test_what_has_no_bound_is_null_and_cells_are_whole(patients):
    published(patients, "age", bands=10.0, top=80.0, bottom=20.0)
    found = patients.execute("SELECT DISTINCT age_min, age_max FROM anon.patients")
    assert {low % 10 for low, _ in found if low is not None} == {0}
    assert {high % 10 for _, high in found if high is not None} == {9}
    patients.execute("UPDATE public.patients SET age = NULL WHERE id % 2 = 0")
    dbanon.refresh(SOURCE, settings=patients.settings)
    assert (None, None) in patients.execute("SELECT DISTINCT age_min, age_max FROM anon.patients")
    assert dbanon.check("anon.patients", settings=patients.settings).passed


def test_readers_are_told_what_the_columns_are(patients):
    published(patients, "born")
    told = {
        column.name: (column.role, column.words)
        for column in dbanon.describe("anon.patients", settings=patients.settings).columns
    }
    role, words = told["born_min"]
    assert ("quasi", True) == (role, "the least value of the class" in words)
    role, words = told["born_max"]
    assert ("quasi", True) == (role, "the greatest value of the class" in words)


def test_odd_names_and_narrow_types_are_kept(database):
    database.execute(
        'CREATE TABLE public.odd (id int PRIMARY KEY, "A""; --" smallint, "big one" bigint,'
        " day date, disease text)"
    )
    database.execute(
        "INSERT INTO public.odd SELECT i, i % 9, i * 10000000000, '2020-01-01'::date + i, i % 4"
        " FROM generate_series(1, 60) AS i"
    )
    rules = (
        dbanon.ColumnRule("id", dbanon.Role.IDENTIFIER),
        dbanon.ColumnRule('A"; --', dbanon.Role.QUASI, "bounds"),
        dbanon.ColumnRule("big one", dbanon.Role.QUASI, "bounds"),
        dbanon.ColumnRule("day", dbanon.Role.QUASI, "bounds", at_least="month"),
        dbanon.ColumnRule("disease", dbanon.Role.SENSITIVE),
    )
    table = dbanon.TableName("public", "odd")
    policy = replace(patients_policy(table, l=None), columns=rules)
    dbanon.set_policy(table, policy, settings=database.settings)
    assert dbanon.publish(table, settings=database.settings).checks.passed
    found = database.execute(COLUMNS.replace("patients", "odd"))
    assert found[:4] == [
        ('A"; --_min', "integer"),
        ('A"; --_max', "integer"),
        ("big one_min", "bigint"),
        ("big one_max", "bigint"),
    ]
    days = database.execute("SELECT DISTINCT day_min, day_max FROM anon.odd")
    assert {low.day for low, _ in days} == {1}
    assert {date(2020, 1, 31), date(2020, 2, 29)} & {high for _, high in days}


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["table", "view"])
def test_a_center_and_its_radius_reach_to_both_bounds(patients, kind):
    plain = dbanon.publish(SOURCE, name="ranges", settings=patients.settings)
    patients.execute("ALTER TABLE public.patients ADD seen timestamptz")
    patients.execute("UPDATE public.patients SET seen = born::timestamptz + id * interval '1 hour'")
    policy = dbanon.load_policy(SOURCE, settings=patients.settings)
    rules = [
        replace(rule, recoding="center") if rule.column in {"age", "born", "weight"} else rule
        for rule in policy.columns
    ]
    rules.append(dbanon.ColumnRule("seen", dbanon.Role.IDENTIFIER))
    dbanon.set_policy(SOURCE, replace(policy, columns=tuple(rules)), settings=patients.settings)
    release = dbanon.publish(SOURCE, kind=kind, settings=patients.settings)
    assert patients.execute(COLUMNS)[:7] == [
        ("age_center", "numeric"),
        ("age_radius", "numeric"),
        ("sex", "text"),
        ("born_center", "date"),
        ("born_radius", "integer"),
        ("weight_center", "numeric"),
        ("weight_radius", "numeric"),
    ]
    same = "SELECT {}, sex, disease, note FROM anon.{} ORDER BY note"
    ranges = "lower(age), upper(age) - 1, upper(born) - 1, lower(weight), upper(weight)"
    centers = (
        "(age_center - age_radius)::int, (age_center + age_radius)::int, born_center + born_radius,"
        " weight_center - weight_radius, weight_center + weight_radius"
    )
    found = patients.execute(same.format(centers, "patients"))
    assert found == patients.execute(same.format(ranges, "ranges"))
    ((outside,),) = patients.execute(
        "SELECT count(*) FROM anon.patients AS a JOIN public.patients AS s USING (note)"
        " WHERE abs(s.age - age_center) > age_radius OR abs(s.born - born_center) > born_radius"
    )
    assert outside == 0
    assert plain.loss.ncp == pytest.approx(release.loss.ncp, rel=1e-12)
    assert dbanon.check("anon.patients", settings=patients.settings).passed
    told = {
        c.name: c.words
        for c in dbanon.describe("anon.patients", settings=patients.settings).columns
    }
    assert "the middle of the class" in told["age_center"]
    assert "from its middle at most" in told["age_radius"]


def test_the_radius_of_a_time_is_an_interval(patients):
    patients.execute("ALTER TABLE public.patients ADD seen timestamptz")
    patients.execute("UPDATE public.patients SET seen = born::timestamptz + id * interval '1 hour'")
    policy = dbanon.load_policy(SOURCE, settings=patients.settings)
    rules = (
        *(
            replace(r, role=dbanon.Role.IDENTIFIER) if r.column == "born" else r
            for r in policy.columns
        ),
        dbanon.ColumnRule("seen", dbanon.Role.QUASI, "center"),
    )
    dbanon.set_policy(SOURCE, replace(policy, columns=rules), settings=patients.settings)
    dbanon.publish(SOURCE, settings=patients.settings)
    assert {("seen_center", "timestamp with time zone"), ("seen_radius", "interval")} <= set(
        patients.execute(COLUMNS)
    )
    ((outside,),) = patients.execute(
        "SELECT count(*) FROM anon.patients AS a JOIN public.patients AS s USING (note)"
        " WHERE s.seen NOT BETWEEN seen_center - seen_radius AND seen_center + seen_radius"
    )
    assert outside == 0


@pytest.mark.parametrize("kind", ["table", "view"])
@pytest.mark.parametrize("step", ["17 hours", "1 microsecond"])
def test_a_center_of_times_reaches_to_both_bounds_in_every_zone(database, kind, step):
    database.execute(
        "CREATE TABLE public.seen (id int PRIMARY KEY, z timestamptz, t timestamp, note text)"
    )
    database.execute(
        "INSERT INTO public.seen SELECT i, '2019-01-01 00:00+00'::timestamptz + i * %s::interval,"
        " '2019-01-01'::timestamp + i * %s::interval, i FROM generate_series(1, 500) AS i",
        [step, step],
    )
    rules = (
        dbanon.ColumnRule("id", dbanon.Role.IDENTIFIER),
        dbanon.ColumnRule("z", dbanon.Role.QUASI, "center"),
        dbanon.ColumnRule("t", dbanon.Role.QUASI, "center"),
        dbanon.ColumnRule("note", dbanon.Role.INSENSITIVE),
    )
    table = dbanon.TableName("public", "seen")
    policy = replace(patients_policy(table, k=250, l=None), columns=rules)
    dbanon.set_policy(table, policy, settings=database.settings)
    dbanon.publish(table, kind=kind, settings=database.settings)
    found = []
    for zone in ("UTC", "Europe/Berlin", "America/New_York"):
        with database.connect() as reader:
            reader.execute(f"SET timezone = '{zone}'")
            found += reader.execute(
                "SELECT count(*), sum(extract(epoch FROM z_center))"
                "  FROM anon.seen AS a JOIN public.seen AS s USING (note)"
                " WHERE s.z BETWEEN z_center - z_radius AND z_center + z_radius"
                "   AND s.t BETWEEN t_center - t_radius AND t_center + t_radius"
            ).fetchall()
    assert len(set(found)) == 1
    assert found[0][0] == 500


def test_a_center_of_extreme_integers_does_not_overflow(database):
    database.execute("CREATE TABLE public.far (id int PRIMARY KEY, x bigint, y int)")
    database.execute(
        "INSERT INTO public.far SELECT i, 9223372036854775806 - i, 2147483646 - i"
        " FROM generate_series(1, 20) AS i"
    )
    rules = (
        dbanon.ColumnRule("id", dbanon.Role.IDENTIFIER),
        dbanon.ColumnRule("x", dbanon.Role.QUASI, "center"),
        dbanon.ColumnRule("y", dbanon.Role.QUASI, "center"),
    )
    table = dbanon.TableName("public", "far")
    policy = replace(patients_policy(table, l=None), columns=rules)
    dbanon.set_policy(table, policy, settings=database.settings)
    assert dbanon.publish(table, settings=database.settings).checks.passed
    ((least,),) = database.execute("SELECT min(y_center - y_radius)::bigint FROM anon.far")
    assert least == 2147483646 - 20


def test_a_center_has_no_place_for_open_cells(patients):
    policy = dbanon.load_policy(SOURCE, settings=patients.settings)
    rules = tuple(
        replace(r, recoding="center", top=80.0) if r.column == "age" else r for r in policy.columns
    )
    with pytest.raises(dbanon.PolicyError, match="no place for top and bottom"):
        dbanon.set_policy(SOURCE, replace(policy, columns=rules), settings=patients.settings)


def publish_parts(database, of, parts, recoding, *, kind="table"):
    """Publish column x, each part of its values as a class of its own."""
    rows = [(part, value) for part, values in enumerate(parts) for value in values]
    database.execute(f"CREATE TABLE public.parts (id serial PRIMARY KEY, part int, x {of})")
    with database.connect() as connection, connection.cursor() as cursor:
        cursor.executemany("INSERT INTO public.parts (part, x) VALUES (%s, %s)", rows)
    rules = (
        dbanon.ColumnRule("id", dbanon.Role.IDENTIFIER),
        dbanon.ColumnRule("part", dbanon.Role.QUASI, keep=True),
        dbanon.ColumnRule("x", dbanon.Role.QUASI, recoding),
    )
    policy = patients_policy(dbanon.TableName("public", "parts"), k=2, l=None)
    policy = replace(policy, columns=rules)
    dbanon.set_policy(policy.table, policy, settings=database.settings)
    return dbanon.publish(policy.table, kind=kind, settings=database.settings)


@pytest.mark.parametrize("kind", ["table", "view"])
@pytest.mark.parametrize("recoding", ["bounds", "center"])
def test_a_class_of_nulls_and_one_with_a_null_are_one_class(database, recoding, kind):
    database.execute(
        "CREATE TABLE public.people (id serial PRIMARY KEY, x int);"
        "INSERT INTO public.people (x) VALUES (NULL), (NULL), (1), (NULL), (5), (6)"
    )
    rules = (
        dbanon.ColumnRule("id", dbanon.Role.IDENTIFIER),
        dbanon.ColumnRule("x", dbanon.Role.QUASI, recoding),
    )
    policy = patients_policy(dbanon.TableName("public", "people"), k=2, l=None)
    policy = replace(policy, columns=rules, algorithm="mdav")
    dbanon.set_policy(policy.table, policy, settings=database.settings)
    planned = dbanon.plan(policy.table, settings=database.settings).loss
    release = dbanon.publish(policy.table, kind=kind, settings=database.settings)
    assert (2, 2) == (release.loss.n_classes, release.loss.smallest_class)
    assert (2, 2) == (planned.n_classes, planned.smallest_class)
    assert rows_proved(release) == 6


def test_other_classes_than_the_loss_is_of_are_never_published(patients, monkeypatch):
    def wrong(*arguments):
        found = metrics.report(*arguments)
        return replace(found, n_classes=found.n_classes + 1)

    monkeypatch.setattr("dbanon.anonymization.outcome.report", wrong)
    with pytest.raises(dbanon.DatabaseError, match=r"classes in the database, and its loss is"):
        published(patients, "age")
    assert [(None,)] == patients.execute("SELECT to_regclass('anon.patients')")


DAY, MOMENT = "2020-01-{:02}", "2020-01-01 00:00:00.00000{}"


PARTS = [
    ("int", [None, None, 1, None, 5, 6]),
    ("date", [None, None, DAY.format(1), None, DAY.format(4), DAY.format(5)]),
    ("int", [2**31 - 1, 2**31 - 2, None, 3, None, None]),
    ("bigint", [2**63 - 1, 5, 2**63 - 1, 7, None, None]),
    ("date", [DAY.format(2), DAY.format(3), DAY.format(1), DAY.format(3)]),
    ("timestamp", [MOMENT.format(2), MOMENT.format(3), MOMENT.format(1), MOMENT.format(3)]),
    ("timestamptz", [MOMENT.format(0), MOMENT.format(3), MOMENT.format(0), MOMENT.format(4)]),
    ("timestamp", [MOMENT.format(1), MOMENT.format(4), MOMENT.format(0), MOMENT.format(4)]),
]
RECODED = product(["table", "view"], PARTS, ["bounds", "center"])


@pytest.mark.parametrize(
    ("kind", "column", "recoding"), exhaustive_after(2 * len(PARTS) + 2, RECODED)
)
def test_two_columns_hold_all_values_of_their_class(database, kind, column, recoding):
    of, values = column
    parts = [values[i : i + 2] for i in range(0, len(values), 2)]
    release = publish_parts(database, of, parts, recoding, kind=kind)
    first, second = ("x_min", "x_max") if recoding == "bounds" else ("x_center", "x_radius")
    ((seen,),) = database.execute(
        f"SELECT count(*) FROM (SELECT part, {first}, {second} FROM anon.parts GROUP BY 1, 2, 3)"
        " AS c"
    )
    assert seen == release.loss.n_classes
    assert rows_proved(release) == len(values)
    around = (
        "(x_min IS NULL OR s.x >= x_min) AND (x_max IS NULL OR s.x <= x_max)"
        if recoding == "bounds"
        else "x_center IS NULL OR s.x BETWEEN x_center - x_radius AND x_center + x_radius"
    )
    ((wrong,),) = database.execute(
        f"SELECT count(*) FROM public.parts AS s WHERE NOT EXISTS (SELECT FROM anon.parts AS a"
        f" WHERE a.part = s.part AND ({around}))"
    )
    assert wrong == 0
