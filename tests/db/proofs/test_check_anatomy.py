"""What is proved of a release by anatomy, against a definition in Python."""

from collections import Counter, defaultdict

import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

CHECK = (
    "SELECT achieved, classes, failing_classes, row_count, verdict"
    " FROM dbanon.check_anatomy('public.people', 'disease', %s)"
)


@pytest.fixture(scope="module")
def connection(server, template):
    with server.database(template) as database:
        database.execute(
            "CREATE TABLE public.people (age int, bucket int);"
            "CREATE TABLE public.people_sensitive (bucket int, disease text, count bigint)"
        )
        with database.connect() as connection:
            yield connection


def achieved(members, rows):
    """Return what a bucket of so many persons achieves; rows: (value, count) of it."""
    counts = [count for _, count in rows]
    if not rows or None in counts or min(counts) < 1 or sum(counts) != members:
        return 0.0
    of_value = Counter()
    for value, count in rows:
        of_value[value] += count
    return members / max(of_value.values())


VALUES = st.tuples(
    st.integers(0, 2), st.sampled_from(["x", "y", "z", None]), st.sampled_from([1, 1, 1, 2, 0])
)


@example([(0, "x", 1), (0, "x", 2), (0, "y", 1)], None, 2)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(VALUES, min_size=1, max_size=9), st.none() | st.integers(0, 2), st.integers(1, 3))
def test_no_value_is_on_more_than_one_in_l_of_a_bucket(connection, held, other, l):
    """A value may have several rows; other: a bucket that one person more is in."""
    persons = [bucket for bucket, _, count in held for _ in range(count)]
    persons += [] if other is None else [other]
    rows = defaultdict(list)
    for bucket, value, count in held:
        rows[bucket].append((value, count))
    sizes = Counter(persons)
    levels = [achieved(sizes[bucket], rows[bucket]) for bucket in sizes.keys() | rows.keys()]
    failing = sum(level < l for level in levels)
    with connection.transaction(force_rollback=True), connection.cursor() as cursor:
        cursor.executemany("INSERT INTO public.people VALUES (1, %s)", [(b,) for b in persons])
        cursor.executemany("INSERT INTO public.people_sensitive VALUES (%s, %s, %s)", held)
        found = cursor.execute(CHECK, (l,)).fetchone()
    verdict = "failed" if failing else "passed"
    assert (pytest.approx(min(levels)), len(levels), failing, len(persons), verdict) == found


@pytest.mark.parametrize("count", [None, 0, -1, -(2**63), 2**31, 2**32 + 1, 2**63 - 1])
def test_a_count_that_no_bucket_can_have_fails(connection, count):
    with connection.transaction(force_rollback=True):
        connection.execute("INSERT INTO public.people VALUES (1, 1), (1, 1)")
        rows = "INSERT INTO public.people_sensitive VALUES (1, 'x', 1), (1, 'y', %s)"
        connection.execute(rows, (count,))
        assert connection.execute(CHECK, (1,)).fetchone() == (0, 1, 1, 2, "failed")


def test_a_relation_that_shows_the_value_of_each_row_is_refused(connection):
    with connection.transaction(force_rollback=True):
        connection.execute("ALTER TABLE public.people ADD disease text")
        with (
            pytest.raises(psycopg.errors.DuplicateColumn, match="shows the column disease"),
            connection.transaction(),
        ):
            connection.execute(CHECK, (2,))


@pytest.mark.parametrize("level", [None, 0, 0.99, float("inf"), float("nan")])
def test_a_level_that_proves_nothing_is_refused(connection, level):
    with (
        pytest.raises(psycopg.errors.InvalidParameterValue, match="l >= 1"),
        connection.transaction(),
    ):
        connection.execute(CHECK, (level,))
