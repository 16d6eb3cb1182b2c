import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tables import HOSPITAL_A, HOSPITAL_B

import dbanon

CHECK_K = "SELECT * FROM dbanon.check_k_anonymity(%s, %s, %s)"
CHECK_L = "SELECT * FROM dbanon.check_l_diversity(%s, %s, %s, %s)"
CHECK_BOTH = "SELECT * FROM dbanon.check_k_and_l(%s, %s, %s, %s, %s)"
QUASI = ["zip", "age"]


@pytest.fixture
def hospital(database):
    def make(rows):
        connection = database.connect()
        connection.execute("CREATE TABLE public.hospital (zip text, age text, condition text)")
        with connection.cursor().copy("COPY public.hospital FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        return connection

    return make


@pytest.fixture
def empty(hospital):
    return hospital([])


def one(connection, call, *parameters):
    return connection.execute(call, parameters).fetchone()


@pytest.mark.parametrize(("rows", "diversity"), [(HOSPITAL_A, 1), (HOSPITAL_B, 3)])
def test_the_hospital_tables_are_4_anonymous_and_as_diverse_as_the_paper_says(
    hospital, rows, diversity
):
    connection = hospital(rows)
    assert one(connection, CHECK_K, "hospital", QUASI, 4) == (4, 4, 3, 0, 12, "passed")
    assert one(connection, CHECK_K, "hospital", QUASI, 5) == (5, 4, 3, 3, 12, "failed")
    failing = 1 if diversity == 1 else 0
    verdict = "failed" if failing else "passed"
    expected = (2, diversity, 3, failing, 12, verdict)
    assert one(connection, CHECK_L, "hospital", QUASI, "condition", 2) == expected


def test_null_is_a_value_of_the_quasi_identifier_and_of_the_sensitive_column(hospital):
    connection = hospital([(None, "1", None), (None, "1", "flu"), ("x", "1", None)])
    assert one(connection, CHECK_K, "hospital", QUASI, 2) == (2, 1, 2, 1, 3, "failed")
    assert one(connection, CHECK_L, "hospital", QUASI, "condition", 2) == (2, 1, 2, 1, 3, "failed")
    connection.execute("DELETE FROM public.hospital WHERE zip = 'x'")
    assert one(connection, CHECK_L, "hospital", QUASI, "condition", 2) == (2, 2, 1, 0, 2, "passed")


def test_an_empty_relation_is_not_checked(hospital):
    connection = hospital([])
    assert one(connection, CHECK_K, "hospital", QUASI, 2) == (2, None, 0, 0, 0, "not checked")
    found = one(connection, CHECK_L, "hospital", QUASI, "condition", 2)
    assert found == (2, None, 0, 0, 0, "not checked")


@pytest.mark.parametrize(
    ("call", "parameters"),
    [
        (CHECK_K, ("hospital", [], 5)),
        (CHECK_K, ("hospital", None, 5)),
        (CHECK_K, ("hospital", QUASI, 0)),
        (CHECK_K, (None, QUASI, 5)),
        (CHECK_L, ("hospital", QUASI, None, 2)),
        (CHECK_L, ("hospital", QUASI, "condition", None)),
        (CHECK_BOTH, (None, QUASI, 2, "condition", 2)),
        (CHECK_BOTH, ("hospital", [], 2, "condition", 2)),
        (CHECK_BOTH, ("hospital", QUASI, 0, "condition", 2)),
        (CHECK_BOTH, ("hospital", QUASI, 2, None, 2)),
        (CHECK_BOTH, ("hospital", QUASI, 2, "condition", 0)),
    ],
)
def test_a_call_that_says_nothing_is_refused(hospital, call, parameters):
    connection = hospital(HOSPITAL_A)
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        connection.execute(call, parameters)


def test_names_are_never_run_as_sql(hospital):
    connection = hospital(HOSPITAL_A)
    column = 'x") ; DROP TABLE public.hospital; --'
    with pytest.raises(psycopg.errors.UndefinedColumn):
        connection.execute(CHECK_K, ("hospital", [column], 4))
    with pytest.raises(psycopg.errors.UndefinedColumn):
        connection.execute(CHECK_L, ("hospital", QUASI, column, 4))
    with pytest.raises(psycopg.errors.UndefinedColumn):
        connection.execute(CHECK_BOTH, ("hospital", QUASI, 2, column, 4))
    assert connection.execute("SELECT count(*) FROM public.hospital").fetchone() == (12,)


def test_a_temporary_table_does_not_shadow_what_is_checked(hospital):
    connection = hospital(HOSPITAL_A)
    oid = connection.execute("SELECT 'public.hospital'::regclass::oid").fetchone()[0]
    connection.execute(
        "CREATE TEMP TABLE hospital AS SELECT 'a' AS zip, 'b' AS age, 'c' AS condition"
    )
    connection.execute("CREATE TEMP TABLE pg_class AS SELECT * FROM pg_catalog.pg_class LIMIT 0")
    assert (
        one(connection, CHECK_K.replace("%s", "%s::oid::regclass", 1), oid, QUASI, 4)[5] == "passed"
    )


def test_a_column_named_like_the_function_s_own_words_is_checked(database):
    connection = database.connect()
    connection.execute("CREATE TABLE public.t (members int, k int, relation int, diversity int)")
    connection.execute("INSERT INTO public.t SELECT 1, 2, 3, i FROM generate_series(1, 4) AS i")
    quasi = ["members", "k", "relation"]
    assert one(connection, CHECK_K, "t", quasi, 4) == (4, 4, 1, 0, 4, "passed")
    assert one(connection, CHECK_L, "t", quasi, "diversity", 4) == (4, 4, 1, 0, 4, "passed")
    found = one(connection, CHECK_BOTH, "t", quasi, 4, "diversity", 4)
    assert found == ("k-anonymity", 4, 4, 1, 0, 4, "passed")


@pytest.mark.parametrize("rows", [HOSPITAL_A, HOSPITAL_B, [(None, "1", None)] * 2, []])
@pytest.mark.parametrize(("k", "l"), [(1, 1), (4, 2), (5, 3)])
def test_both_models_at_once_are_what_each_is_alone(hospital, rows, k, l):
    connection = hospital(rows)
    both = connection.execute(CHECK_BOTH, ("hospital", QUASI, k, "condition", l)).fetchall()
    assert both == [
        ("k-anonymity", *one(connection, CHECK_K, "hospital", QUASI, k)),
        ("l-diversity", *one(connection, CHECK_L, "hospital", QUASI, "condition", l)),
    ]


def expected(required, levels, n_rows):
    """Return what a check reports of classes that achieve these levels."""
    failing = sum(level < required for level in levels)
    verdict = "failed" if failing else "passed"
    return (required, min(levels), len(levels), failing, n_rows, verdict)


ROW = st.tuples(
    st.none() | st.sampled_from(["1", "2"]),
    st.none() | st.just("x"),
    st.none() | st.sampled_from(["flu", "cancer", ""]),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(ROW, min_size=1, max_size=24), st.integers(1, 5), st.integers(1, 4))
def test_the_figures_of_k_and_l_are_those_of_the_definitions(empty, rows, k, l):
    classes = [[row[2] for row in rows if row[:2] == key] for key in {row[:2] for row in rows}]
    by_k = expected(k, [len(values) for values in classes], len(rows))
    by_l = expected(l, [len({*values}) for values in classes], len(rows))
    with empty.transaction(force_rollback=True):
        with empty.cursor().copy("COPY public.hospital FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        assert by_k == one(empty, CHECK_K, "hospital", QUASI, k)
        assert by_l == one(empty, CHECK_L, "hospital", QUASI, "condition", l)
        both = empty.execute(CHECK_BOTH, ("hospital", QUASI, k, "condition", l)).fetchall()
    assert both == [("k-anonymity", *by_k), ("l-diversity", *by_l)]


def test_a_database_without_the_checks_is_named_as_such(bare_database):
    bare_database.execute("CREATE TABLE public.hospital (zip text, age text)")
    with pytest.raises(dbanon.SchemaOutOfDate, match="has no dbanon check functions") as caught:
        dbanon.check("public.hospital", quasi=QUASI, k=2, settings=bare_database.settings)
    assert caught.value.hint == "dbanon init"
