from dataclasses import replace
from itertools import pairwise

import psycopg
import pytest
from selection import exhaustive_after
from tables import define_patients, make_patients, patients_policy, rows_proved

import dbanon
from dbanon.anonymization.registry import ALGORITHMS
from dbanon.db.metadata import ledger
from dbanon.domain.policy import ColumnRule, Role
from dbanon.domain.table import TableName
from dbanon.formats import policies

VIEW = TableName("anon", "patients")
COUNT = "SELECT count(*) FROM anon.patients"


@pytest.fixture
def patients(copied):
    """A table of 200 patients with a stored policy: k = 5, l = 3."""
    return copied(define_patients)


def publish(database, **options):
    return dbanon.publish("patients", settings=database.settings, **options)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["table", "view"])
def test_what_is_published_holds_in_the_database(patients, kind):
    release = publish(patients, kind=kind)
    assert release.relation == VIEW
    assert rows_proved(release) == 200
    assert [result.required for result in release.checks.results] == [5, 3]
    assert patients.execute(COUNT) == [(200,)]
    assert dbanon.check(VIEW, settings=patients.settings).passed


@pytest.mark.exhaustive
def test_a_policy_by_which_a_table_is_published_again_is_read_once(patients, monkeypatch):
    publish(patients)
    read, from_document = [], policies.from_document

    def counted(document):
        read.append(document)
        return from_document(document)

    monkeypatch.setattr(policies, "from_document", counted)
    ledger._read.cache_clear()  # noqa: SLF001 - as in a process of its own
    assert 2 == publish(patients).id
    assert 1 == len(read)


@pytest.mark.parametrize("kind", ["table", "view"])
def test_every_published_value_is_true_of_its_row(patients, kind):
    publish(patients, kind=kind)
    assert true_rows(patients) == 200


def true_rows(patients):
    """Count the published rows that hold of their row in the source."""
    # note is insensitive and unique, so that a published row can be held against its source.
    ((found,),) = patients.execute(
        "SELECT count(*) FROM anon.patients AS a JOIN public.patients AS p USING (note)"
        " WHERE a.age @> p.age AND a.sex IN (p.sex, '*') AND a.born @> p.born"
        " AND (a.weight @> p.weight OR (p.weight IS NULL AND coalesce(a.weight = '(,)', true)))"
        " AND a.disease IS NOT DISTINCT FROM p.disease"
    )
    return found


@pytest.fixture
def drafted(patients):
    """The same with no insensitive column: the copy is made of what was read."""
    policy = patients_policy(TableName("public", "patients"))
    *others, note = policy.columns
    policy = replace(policy, columns=(*others, replace(note, role=Role.SENSITIVE)))
    dbanon.set_policy("patients", policy, settings=patients.settings)
    return patients


@pytest.mark.exhaustive
def test_a_copy_made_without_the_source_is_true_of_it(drafted):
    publish(drafted, keep_assignment=True)
    assert true_rows(drafted) == 200
    tables = drafted.execute(
        "SELECT relname::text, relpersistence::text FROM pg_class"
        " WHERE relnamespace = 'dbanon_data'::regnamespace AND relkind = 'r'"
        " AND relname NOT LIKE 'places%' ORDER BY 1"
    )
    assert tables == [("groups_1", "p"), ("release_1", "p"), ("rows_1", "p")]
    ids = drafted.execute(
        "SELECT count(*) FROM anon.patients AS a JOIN public.patients AS p USING (note)"
        " JOIN dbanon_data.rows_1 AS r ON r.k1 = p.id"
        " JOIN dbanon_data.groups_1 AS g ON g.group_id = r.group_id WHERE a.age = g.q1"
    )
    assert ids == [(200,)]


@pytest.mark.exhaustive
def test_rows_left_out_are_in_no_copy_made_without_the_source(drafted):
    drafted.execute(
        "INSERT INTO public.patients SELECT 200 + i, 5000 * i, 'F', born, weight, disease,"
        " 'far ' || i FROM public.patients, generate_series(1, 4) AS i WHERE id = i"
    )
    release = publish(drafted, algorithm="mdav", max_suppressed=0.05, keep_assignment=True)
    assert 0 < release.loss.n_suppressed
    for relation in ("anon.patients", f"dbanon_data.rows_{release.id}"):
        found = drafted.execute(f"SELECT count(*) FROM {relation}")
        assert found == [(204 - release.loss.n_suppressed,)]


VALUES = [
    ("text", "(ARRAY['', E'\\\\.', E'a\\n,\"b\"', 'NULL', ' x '])[1 + i % 5]"),
    ('text COLLATE "C"', "'d' || i % 5"),
    ("varchar(9)", "'d ' || i % 5 || ' '"),
    ("name", "'d' || i % 5"),
    ("uuid", "('00000000-0000-0000-0000-00000000000' || i % 5)::uuid"),
    ("timestamptz(3)", "to_timestamp(i % 5 / 7.0)"),
    ("timestamp", "timestamp '2020-01-01 BC' + i % 5 * interval '1.5 s'"),
    ("date", "CASE WHEN i % 5 = 0 THEN 'infinity' ELSE date '2020-01-01' + i % 5 END"),
    ("float4", "CASE WHEN i % 5 = 0 THEN 'NaN' ELSE i % 5 / 7.0 END"),
    ("float8", "CASE WHEN i % 5 = 0 THEN '-0' ELSE i % 5 / 7.0 END"),
    ("int2", "i % 5"),
    ("int8", "9223372036854775807 - i % 5"),
    ("boolean", "CASE WHEN i % 3 > 0 THEN i % 3 = 1 END"),
    ("numeric", "(i % 5) * 1.50"),
    ("char(5)", "'d' || i % 5"),
    ("bpchar", "'d' || i % 5 || '  '"),
    ("inet", "'10.0.0.0/24'::inet + i % 5"),
    ("jsonb", "to_jsonb(i % 5)"),
]


@pytest.mark.exhaustive
def test_a_sensitive_value_is_published_as_it_is(database):
    names = [f"odd{i}" for i in range(len(VALUES))]
    pairs = list(zip(names, VALUES, strict=True))
    declared = ", ".join(f"{name} {type_}" for name, (type_, _) in pairs)
    values = ", ".join(value for _, (_, value) in pairs)
    database.execute(
        f"CREATE TABLE public.people (id int PRIMARY KEY, age int, {declared});"
        f"INSERT INTO public.people SELECT i, i % 20, {values} FROM generate_series(1, 100) AS i"
    )
    table = TableName("public", "people")
    roles = {"id": Role.IDENTIFIER, "age": Role.QUASI, **dict.fromkeys(names, Role.SENSITIVE)}
    columns = tuple(ColumnRule(name, role) for name, role in roles.items())
    policy = replace(patients_policy(table, l=2), columns=columns)
    dbanon.set_policy(table, policy, settings=database.settings)
    assert rows_proved(dbanon.publish(table, settings=database.settings)) == 100
    values = "SELECT format('%s|%s', {1} IS NULL, {1}) FROM {0} ORDER BY 1"
    types = (
        "SELECT atttypid, atttypmod, attcollation FROM pg_attribute"
        " WHERE attrelid = '{}'::regclass AND attname = '{}'"
    )
    for name, (type_, _) in pairs:
        for query in (values, types):
            source, published = (query.format(t, name) for t in ("public.people", "anon.people"))
            assert database.execute(source) == database.execute(published), type_


def test_readers_see_ordinary_types_and_no_identifier(patients):
    publish(patients)
    found = patients.execute(
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute"
        " WHERE attrelid = 'anon.patients'::regclass AND attnum > 0 ORDER BY attnum"
    )
    assert found == [
        ("age", "int4range"),
        ("sex", "text"),
        ("born", "daterange"),
        ("weight", "numrange"),
        ("disease", "text"),
        ("note", "text"),
    ]


def test_every_recoding_is_published_in_its_type(patients):
    rules = {
        "age": ColumnRule("age", Role.QUASI, recoding="mean"),
        "sex": ColumnRule("sex", Role.QUASI, recoding="set"),
        "born": ColumnRule("born", Role.QUASI, recoding="median"),
        "weight": ColumnRule("weight", Role.QUASI, recoding="interval-text"),
    }
    policy = patients_policy(TableName("public", "patients"))
    columns = tuple(rules.get(rule.column, rule) for rule in policy.columns)
    dbanon.set_policy("patients", replace(policy, columns=columns), settings=patients.settings)
    publish(patients)
    found = patients.execute(
        "SELECT DISTINCT pg_typeof(age)::text, pg_typeof(sex)::text, pg_typeof(born)::text,"
        " pg_typeof(weight)::text FROM anon.patients"
    )
    assert found == [("numeric", "text[]", "date", "text")]


@pytest.mark.exhaustive
def test_publishing_again_replaces_the_release_cleanly(patients):
    first, second = publish(patients), publish(patients, k=10, keep_assignment=True)
    assert first.id < second.id
    assert second.policy.k == 10
    ledger = dbanon.list_releases(settings=patients.settings)
    assert [(release.id, release.served) for release in ledger] == [
        (second.id, True),
        (first.id, False),
    ]
    left = patients.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = 'dbanon_data'::regnamespace"
        " AND relkind = 'r' AND relname NOT LIKE 'places%' ORDER BY relname"
    )
    tables = f"groups_{second.id}", f"release_{first.id}", f"rows_{second.id}"
    assert left == [(name,) for name in tables]
    assert second.data_id == first.id


@pytest.mark.exhaustive
def test_which_row_is_in_which_class_of_a_copy_is_kept_only_if_asked(patients):
    def private():
        found = patients.execute(
            "SELECT relname::text FROM pg_class WHERE relnamespace = 'dbanon_data'::regnamespace"
            " AND relkind = 'r' AND relname NOT LIKE 'places%' ORDER BY relname"
        )
        return [row[0] for row in found]

    publish(patients)
    assert private() == ["release_1"]
    assert dbanon.check(VIEW, settings=patients.settings).passed
    publish(patients, keep_assignment=True)
    assert private() == ["groups_2", "release_1", "rows_2"]
    dbanon.refresh("patients", settings=patients.settings)
    assert private() == ["groups_3", "release_1", "rows_3"]
    publish(patients)
    dbanon.refresh("patients", settings=patients.settings)
    assert private() == ["release_1"]
    findings = dbanon.doctor(settings=patients.settings)
    assert [finding.message for finding in findings if finding.exit_code] == []


@pytest.mark.exhaustive
@pytest.mark.parametrize(("before", "after"), [("table", "view"), ("view", "table")])
def test_a_release_can_change_its_kind(patients, before, after):
    publish(patients, kind=before)
    publish(patients, kind=after)
    assert patients.execute(COUNT) == [(200,)]
    triggers = patients.execute("SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'dbanon_guard%'")
    assert triggers == [(6 if after == "view" else 0,)]


@pytest.mark.exhaustive
def test_replacing_keeps_grants_and_what_depends_on_the_view(patients):
    reader = patients.role("reader_kept")
    publish(patients, grants=[reader])
    patients.execute("CREATE VIEW public.mine AS SELECT age FROM anon.patients")
    publish(patients)
    assert patients.connect_as(reader).execute(COUNT).fetchone() == (200,)
    assert patients.execute("SELECT count(*) FROM public.mine") == [(200,)]


def change_columns(database):
    policy = patients_policy(TableName("public", "patients"))
    columns = (*policy.columns[:-1], ColumnRule("note", Role.IDENTIFIER))
    dbanon.set_policy("patients", replace(policy, columns=columns), settings=database.settings)


def test_replacing_with_other_columns_keeps_grants(patients):
    reader, other = patients.role("reader_one"), patients.role("reader_two")
    publish(patients, grants=[reader])
    patients.execute(f"GRANT USAGE ON SCHEMA anon TO {other}")
    patients.execute(f"GRANT SELECT (age, note) ON anon.patients TO {other} WITH GRANT OPTION")
    change_columns(patients)
    publish(patients)
    assert patients.connect_as(reader).execute(COUNT).fetchone() == (200,)
    assert (
        len(patients.connect_as(other).execute("SELECT age FROM anon.patients").fetchall()) == 200
    )


@pytest.mark.exhaustive
def test_k_above_the_rows_keeps_the_old_release(patients):
    first = publish(patients)
    with pytest.raises(dbanon.Unsatisfiable, match=r"200.*100,?000"):
        publish(patients, k=100_000)
    assert patients.execute(COUNT) == [(200,)]
    assert dbanon.list_releases(settings=patients.settings)[0].id == first.id


def test_l_above_the_sensitive_values_is_refused(patients):
    with pytest.raises(dbanon.Unsatisfiable, match="disease"):
        publish(patients, l=6)


def test_a_dry_run_leaves_nothing(patients):
    release = publish(patients, dry_run=True)
    assert rows_proved(release) == 200
    assert patients.execute("SELECT to_regclass('anon.patients')") == [(None,)]
    assert dbanon.list_releases(settings=patients.settings) == []


def test_somebody_else_s_relation_is_never_replaced(patients):
    patients.execute("CREATE SCHEMA anon; CREATE VIEW anon.patients AS SELECT 1 AS one")
    with pytest.raises(dbanon.ConfigError, match="was not published by dbanon"):
        publish(patients)
    assert patients.execute("SELECT one FROM anon.patients") == [(1,)]


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["table", "view"])
def test_a_view_put_in_the_place_of_a_release_is_not_replaced(patients, kind):
    publish(patients, kind=kind)
    patients.execute("DROP VIEW anon.patients; CREATE VIEW anon.patients AS SELECT 1 AS one")
    with pytest.raises(dbanon.ConfigError, match="was not published by dbanon"):
        publish(patients, kind=kind)
    (release,) = dbanon.list_releases(settings=patients.settings)
    dbanon.drop_release(release.id, settings=patients.settings)
    assert patients.execute("SELECT one FROM anon.patients") == [(1,)]
    patients.execute("DROP VIEW anon.patients")
    assert rows_proved(publish(patients, kind=kind)) == 200


def test_two_tables_cannot_share_a_relation(patients):
    other = make_patients(patients, name="others")
    dbanon.set_policy(other, patients_policy(other), settings=patients.settings)
    publish(patients)
    with pytest.raises(dbanon.ConfigError, match=r"serves release \d+ of public.patients"):
        dbanon.publish("others", name="patients", settings=patients.settings)


def test_a_plan_agrees_with_the_publication_and_writes_nothing(patients):
    before = patients.execute("SELECT count(*) FROM pg_class")
    plan = dbanon.plan("patients", settings=patients.settings)
    assert patients.execute("SELECT count(*) FROM pg_class") == before
    release = publish(patients)
    assert plan.loss == release.loss
    assert plan.relation == release.relation
    for column in plan.columns:
        assert column.loss == pytest.approx(column.others[column.recoding])


@pytest.mark.parametrize("kind", ["table", "view"])
def test_the_release_that_is_returned_is_the_one_in_the_ledger(patients, kind):
    publish(patients, kind="table")
    models = [dbanon.ModelSpec("t-closeness", {"t": 0.9, "columns": ("disease",)})]
    reader = patients.role("reader")
    options = {"grants": [reader], "max_suppressed": 0.1, "algorithm": "v-mdav", "l": 2}
    options |= {} if kind == "view" else {"models": models, "params": {"gamma": "0.3"}}
    release = publish(patients, kind=kind, name="again", **options)
    assert release == dbanon.load_release(release.id, settings=patients.settings)
    assert (1, True) == (release.earlier, release.served)


@pytest.mark.parametrize("with_source", [True, False])
def test_rows_come_in_an_order_that_tells_nothing_of_the_source(patients, request, with_source):
    if not with_source:
        request.getfixturevalue("drafted")
    publish(patients)
    rows = patients.execute("SELECT note FROM anon.patients")
    numbers = [int(row[0].split()[1]) for row in rows]
    assert sorted(numbers) == list(range(200))
    neighbours = sum(abs(a - b) == 1 for a, b in pairwise(numbers))
    assert neighbours < 20


def test_suppression_stays_within_the_budget(patients):
    release = publish(patients, max_suppressed=0.05)
    assert release.loss.n_suppressed <= 10
    assert patients.execute(COUNT) == [(200 - release.loss.n_suppressed,)]


# One of each kind, then the others; whatever is found is published by the same statements.
KINDS = ["auto", "mondrian", "mdav", "forest", "full-domain", "k-means", "k-member"]


@pytest.mark.parametrize(
    "algorithm",
    exhaustive_after(len(KINDS), [*KINDS, *(name for name in ALGORITHMS if name not in KINDS)]),
)
def test_every_algorithm_publishes_what_holds(patients, algorithm):
    release = publish(patients, algorithm=algorithm, k=2, l=2)
    assert release.policy.algorithm == algorithm
    assert rows_proved(release) == 200
    assert release.loss.n_classes > 1
    assert patients.execute(COUNT) == [(200,)]


@pytest.mark.exhaustive
def test_a_partitioned_table_is_published(database):
    database.execute(
        "CREATE TABLE public.visits (id int, age int, disease text, PRIMARY KEY (id, age))"
        " PARTITION BY RANGE (age)"
    )
    database.execute(
        "CREATE TABLE public.young PARTITION OF public.visits FOR VALUES FROM (0) TO (40)"
    )
    database.execute("CREATE TABLE public.old PARTITION OF public.visits DEFAULT")
    database.execute(
        "INSERT INTO public.visits SELECT i, i % 80, 'd' || i % 7 FROM generate_series(1, 500) AS i"
    )
    columns = (
        ColumnRule("id", Role.IDENTIFIER),
        ColumnRule("age", Role.QUASI),
        ColumnRule("disease", Role.SENSITIVE),
    )
    table = TableName("public", "visits")
    policy = replace(patients_policy(table), columns=columns)
    dbanon.set_policy(table, policy, settings=database.settings)
    assert rows_proved(dbanon.publish(table, settings=database.settings)) == 500
    assert rows_proved(dbanon.publish(table, kind="view", settings=database.settings)) == 500


def test_a_subject_counts_once_however_its_rows_differ(patients):
    policy = patients_policy(TableName("public", "patients"), subject="id")
    dbanon.set_policy("patients", policy, settings=patients.settings)
    assert rows_proved(publish(patients)) == 200
    patients.execute(
        "ALTER TABLE public.patients ADD person int NOT NULL DEFAULT 0;"
        "UPDATE public.patients SET person = id / 60"
    )
    columns = (*policy.columns, ColumnRule("person", Role.IDENTIFIER))
    policy = replace(policy, columns=columns, subject="person")
    dbanon.set_policy("patients", policy, settings=patients.settings)
    with pytest.raises(dbanon.Unsatisfiable, match="the table has 4 rows, fewer than k = 5"):
        publish(patients)
    patients.execute("UPDATE public.patients SET person = id / 40")
    assert publish(patients).loss.n_classes == 1


@pytest.mark.exhaustive
def test_a_new_column_without_a_role_is_drift(patients):
    publish(patients)
    patients.execute("ALTER TABLE public.patients ADD hiv boolean")
    with pytest.raises(dbanon.DriftError, match="hiv") as caught:
        publish(patients)
    assert caught.value.exit_code == 4
    assert patients.execute(COUNT) == [(200,)]


@pytest.mark.exhaustive
def test_rows_committed_after_the_snapshot_are_not_half_published(patients):
    publish(patients)
    with psycopg.connect(patients.dsn) as writer:
        writer.execute("INSERT INTO public.patients (id, note) VALUES (1000, 'late')")
        release = publish(patients)
    assert release.loss.n_rows == 200
    assert publish(patients).loss.n_rows == 201
