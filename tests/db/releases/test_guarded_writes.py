"""Every way of writing to a source served live passes its guards."""

import psycopg
import pytest
from live import CLASSES, policy_of, serve, shown
from tables import make_patients, patients_policy, rows_proved

import dbanon
from dbanon.domain.policy import ModelSpec

K5 = ModelSpec("k-anonymity", {"k": 5})
L2 = ModelSpec("l-diversity", {"l": 2})
PEOPLE = [(j, f"zip {i}", *row) for i in range(4) for j, row in enumerate(CLASSES[0])]
VERSIONS = "SELECT sum(version) FROM dbanon_data.groups_1"


@pytest.fixture(scope="module")
def shared(server, template):
    with server.database(template) as database:
        yield database


@pytest.fixture
def live(shared):
    """Four classes of six people in it, with k = 5 and l = 2."""
    serve(shared, policy_of(K5, L2), PEOPLE)
    yield shared
    shared.execute("DROP TABLE IF EXISTS public.people CASCADE; DROP TABLE IF EXISTS public.parent")


def test_copied_rows_are_not_shown(live):
    with live.connect() as writer, writer.cursor().copy("COPY public.people FROM STDIN") as copy:
        for i in range(100, 120):
            copy.write_row((i, 1, "zip 0", "a", 2))
    assert shown(live) == 24


def test_a_copied_row_does_not_take_the_place_of_one_that_was_deleted(live):
    live.execute("DELETE FROM public.people WHERE id = 0")
    with live.connect() as writer, writer.cursor().copy("COPY public.people FROM STDIN") as copy:
        copy.write_row((0, 0, "zip 0", "impostor", 2))
    assert shown(live) == 23
    assert live.execute("SELECT FROM anon.people WHERE disease = 'impostor'") == []
    live.execute("UPDATE public.people SET wage = 9 WHERE id = 0")
    live.execute("DELETE FROM public.people WHERE id = 1")  # the impostor does not count
    assert shown(live) == 18


def test_a_truncation_hides_every_class_and_forgets_whose_rows_they_were(live):
    left = "SELECT count(*) FILTER (WHERE shown), (SELECT count(*) FROM dbanon_data.rows_1)"
    assert live.execute(f"{left} FROM dbanon_data.groups_1") == [(4, 24)]
    live.execute("TRUNCATE public.people")
    assert live.execute(f"{left} FROM dbanon_data.groups_1") == [(0, 0)]


@pytest.mark.parametrize(
    "again",
    [
        "DELETE FROM public.people WHERE id = 0; INSERT INTO public.people VALUES (0, 0)",
        "UPDATE public.people SET id = 50 WHERE id = 0; INSERT INTO public.people VALUES (0, 0)",
        "UPDATE public.people SET id = 50 WHERE id = 0; UPDATE public.people SET id = id % 50",
        "UPDATE public.people SET zip = 'x' WHERE id = 0;"  # noqa: ISC004
        "UPDATE public.people SET zip = 'zip 0' WHERE id = 0",
    ],
)
def test_whoever_takes_over_a_key_later_is_not_shown(live, again):
    with live.connect(autocommit=False) as writer:  # in one transaction
        writer.execute(again)
        writer.commit()
    assert shown(live) == 23
    live.execute("DELETE FROM public.people WHERE id IN (0, 1)")
    assert shown(live) == 18


def test_the_only_class_is_guarded_too(shared):
    serve(shared, policy_of(K5, L2), PEOPLE[:6])
    shared.execute("DELETE FROM public.people WHERE id IN (0, 1)")
    assert shown(shared) == 0


def test_an_insert_that_updates_on_conflict_is_guarded(live):
    upsert = (
        "INSERT INTO public.people SELECT i, 0, 'zip 0', 'a', 2 FROM generate_series(0, 5) AS i"
        " ON CONFLICT (id) DO UPDATE SET "
    )
    live.execute(upsert + "wage = people.wage")
    assert shown(live) == 24
    live.execute(upsert + "disease = excluded.disease")
    assert shown(live) == 18


@pytest.mark.pg(">= 15")
def test_a_merge_that_deletes_updates_and_inserts_is_guarded(live):
    live.execute(
        "MERGE INTO public.people AS p USING generate_series(0, 30) AS i ON p.id = i"
        " WHEN MATCHED AND i < 2 THEN DELETE"
        " WHEN MATCHED AND i BETWEEN 6 AND 11 THEN UPDATE SET disease = 'a'"
        " WHEN NOT MATCHED THEN INSERT VALUES (i, 1, 'zip 0', 'a', 2)"
    )
    assert shown(live) == 12


@pytest.mark.parametrize(
    ("column", "rule", "write", "left"),
    [
        ("id", "ON DELETE CASCADE", "DELETE FROM public.parent WHERE value IN ('0', '1')", 18),
        ("id", "ON UPDATE CASCADE", "UPDATE public.parent SET value = value + 90", 0),
        ("zip", "ON UPDATE CASCADE", "UPDATE public.parent SET value = value || 'x'", 0),
        ("zip", "ON DELETE SET NULL", "DELETE FROM public.parent WHERE value <> 'zip 0'", 6),
        ("disease", "ON DELETE SET NULL", "DELETE FROM public.parent", 0),
        ("disease", "ON DELETE SET DEFAULT", "DELETE FROM public.parent WHERE value = 'b'", 0),
    ],
)  # fmt: skip
def test_a_cascade_is_guarded(live, column, rule, write, left):
    live.execute(
        f"CREATE TABLE public.parent AS SELECT DISTINCT {column} AS value FROM public.people;"
        "ALTER TABLE public.parent ADD PRIMARY KEY (value);"
        "ALTER TABLE public.people ALTER disease SET DEFAULT 'a';"
        f"ALTER TABLE public.people ADD FOREIGN KEY ({column}) REFERENCES public.parent {rule}"
    )
    live.execute(write)
    assert shown(live) == left


@pytest.mark.parametrize("write", ["DELETE FROM", "UPDATE"])
def test_replicated_changes_are_guarded(live, write):
    admin = live.admin()
    admin.execute("SET session_replication_role = replica")
    change = " SET zip = NULL" if write == "UPDATE" else ""
    admin.execute(f"{write} public.people{change} WHERE id IN (0, 1)")
    admin.execute("INSERT INTO public.people VALUES (24, 0), (25, 0)")
    assert shown(live) == 18


def test_what_is_rolled_back_to_a_savepoint_is_shown_again(live):
    with live.connect(autocommit=False) as writer:
        writer.execute("SAVEPOINT before")
        writer.execute("DELETE FROM public.people WHERE id IN (0, 1)")
        assert writer.execute("SELECT count(*) FROM anon.people").fetchone() == (18,)
        writer.execute("UPDATE public.people SET disease = 'a' WHERE id BETWEEN 2 AND 11")
        writer.execute("ROLLBACK TO before")
        assert writer.execute("SELECT count(*) FROM anon.people").fetchone() == (24,)
        writer.execute("DELETE FROM public.people WHERE id = 0")
        writer.commit()
    assert shown(live) == 23
    live.execute("DELETE FROM public.people WHERE id = 1")
    assert shown(live) == 18


@pytest.mark.parametrize("end", ["COMMIT PREPARED", "ROLLBACK PREPARED"])
def test_a_prepared_transaction_keeps_its_classes_from_others(live, end):
    if live.execute("SHOW max_prepared_transactions") == [("0",)]:
        pytest.skip("the server prepares no transactions")
    with live.connect(autocommit=False) as writer:
        writer.execute("DELETE FROM public.people WHERE id = 0")
        writer.execute("PREPARE TRANSACTION 'taken'")
    assert shown(live) == 24
    with live.connect() as writer:
        writer.execute("SET lock_timeout = '50ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            writer.execute("DELETE FROM public.people WHERE id = 1")
        writer.execute("DELETE FROM public.people WHERE id = 6")
        writer.execute(f"{end} 'taken'")
        writer.execute("DELETE FROM public.people WHERE id = 1")
    assert shown(live) == (17 if end == "COMMIT PREPARED" else 22)


@pytest.mark.parametrize(
    "write",
    [
        "UPDATE public.people SET disease = disease, zip = zip, id = id",
        "UPDATE public.people SET note = 'new'",
        "UPDATE public.people SET person = person + 1",
        "DELETE FROM public.people WHERE false",
    ],
)
def test_a_write_that_changes_nothing_of_matter_touches_no_class(live, write):
    live.execute("ALTER TABLE public.people ADD note text")
    live.execute(write)
    assert live.execute(VERSIONS) == [(0,)]
    assert shown(live) == 24


def test_two_rows_that_trade_their_keys_are_not_shown_as_each_other(live):
    live.execute(
        "ALTER TABLE public.people DROP CONSTRAINT people_pkey,"
        " ADD PRIMARY KEY (id) DEFERRABLE;"
        "UPDATE public.people SET id = 6 - id WHERE id IN (0, 6)"
    )
    assert live.execute("SELECT count(*) FROM dbanon_data.rows_1") == [(22,)]
    assert shown(live) == 0  # as the key was dropped


@pytest.mark.pg(">= 18")
def test_a_column_that_is_generated_on_reading_is_refused(database):
    """Transition tables hold no value of it."""
    table = make_patients(database)
    database.execute(
        "ALTER TABLE public.patients DROP disease,"
        " ADD disease text GENERATED ALWAYS AS (left(note, 6)) VIRTUAL"
    )
    dbanon.set_policy(table, patients_policy(table), settings=database.settings)
    assert rows_proved(dbanon.publish(table, settings=database.settings)) == 200
    with pytest.raises(dbanon.ConfigError, match="disease is generated on reading"):
        dbanon.publish(table, kind="view", settings=database.settings)
