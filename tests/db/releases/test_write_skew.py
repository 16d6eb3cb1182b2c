"""Two transactions that are each harmless to a class must not harm it together."""

import threading
import time
from dataclasses import dataclass

import psycopg
import pytest
from live import CLASSES, SIXES, VISITS, policy_of, serve, shown
from psycopg import IsolationLevel

from dbanon.domain.policy import ModelSpec

BLOCKED = "SELECT cardinality(pg_blocking_pids(%s)) > 0"
PATIENCE = 20


@dataclass(frozen=True)
class Skew:
    """Two writes to the first class, which holds under either of them and fails under both."""

    models: tuple[ModelSpec, ...]
    writes: tuple[str, str]
    rows: list
    subject: str | None = None


TAKEN = ("DELETE FROM public.people WHERE id = 0", "DELETE FROM public.people WHERE id = 1")
# Three values twice each; one more of the third makes 1, 2, 3 of them, both make 1, 1, 4.
SPOILT = (
    "UPDATE public.people SET wage = 4 WHERE id = 0",
    "UPDATE public.people SET wage = 4 WHERE id = 2",
)
OF_WAGES = {"columns": ("wage",)}
K1 = ModelSpec("k-anonymity", {"k": 1})
CROSSED = [(j, f"zip {i}", *row) for i in range(2) for j, row in enumerate(CLASSES[0])]
SKEWS = {
    "k": Skew((ModelSpec("k-anonymity", {"k": 5}),), TAKEN, CROSSED),
    "k by moving": Skew(
        (ModelSpec("k-anonymity", {"k": 5}),),
        (
            "UPDATE public.people SET zip = 'x' WHERE id = 0",
            "UPDATE public.people SET id = 99 WHERE id = 1",
        ),
        CROSSED,
    ),
    "k by persons": Skew(
        (ModelSpec("k-anonymity", {"k": 2}),),
        (
            "DELETE FROM public.people WHERE person = 0",
            "UPDATE public.people SET person = 77 WHERE person = 1",
        ),
        VISITS,
        "person",
    ),
    "distinct l": Skew((K1, ModelSpec("l-diversity", {"l": 2})), (
        "UPDATE public.people SET disease = 'b' WHERE id = 0 OR id = 2",
        "UPDATE public.people SET disease = 'b' WHERE id = 4",
    ), CROSSED),
    "entropy": Skew(
        (K1, ModelSpec("entropy-l-diversity", {"l": 2.5, **OF_WAGES})), SPOILT, CROSSED
    ),
    "recursive": Skew(
        (K1, ModelSpec("recursive-l-diversity", {"c": 1.5, "l": 2, **OF_WAGES})), SPOILT, CROSSED
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def shared(server, template):
    with server.database(template) as database:
        yield database


def both(database, writes, isolation):
    """Begin both transactions, then write by one and by the other; return how the second failed."""
    first, second = database.connect(autocommit=False), database.connect(autocommit=False)
    for connection in (first, second):
        connection.isolation_level = isolation
        connection.execute("SELECT count(*) FROM public.people")
    first.execute(writes[0])
    failures = []

    def write_second():
        try:
            second.execute(writes[1])
            second.commit()
        except psycopg.errors.SerializationFailure as failure:
            failures.append(failure)
            second.rollback()

    thread = threading.Thread(target=write_second)
    thread.start()
    assert waits(first, second, thread), "the second must wait for the first"
    first.commit()
    thread.join(timeout=PATIENCE)
    assert not thread.is_alive()
    return failures


def waits(first, second, thread):
    """Whether the second comes to wait for the first, of which PostgreSQL is asked."""
    end = time.monotonic() + PATIENCE
    while thread.is_alive() and time.monotonic() < end:
        if first.execute(BLOCKED, (second.info.backend_pid,)).fetchone()[0]:
            return True
        time.sleep(0.005)
    return False


@pytest.mark.parametrize("isolation", list(IsolationLevel)[1:], ids=lambda i: i.name)
@pytest.mark.parametrize("skew", SKEWS.values(), ids=SKEWS)
def test_what_holds_under_either_of_two_transactions_is_not_shown_under_both(
    shared, skew, isolation
):
    serve(shared, policy_of(*skew.models, subject=skew.subject), skew.rows)
    everyone = shown(shared)
    failures = both(shared, skew.writes, isolation)
    read_committed = isolation is IsolationLevel.READ_COMMITTED
    assert bool(failures) == (not read_committed)
    first_class = "SELECT count(*) FROM anon.people WHERE zip = 'zip 0'"
    assert (shared.execute(first_class)[0][0] == 0) == read_committed
    assert shown(shared) >= everyone - 6
    verdicts = shared.execute("SELECT DISTINCT verdict FROM dbanon.verify('anon.people')")
    assert verdicts == [("passed",)]


@pytest.mark.parametrize("isolation", list(IsolationLevel)[1:], ids=lambda i: i.name)
def test_one_transaction_that_gives_up_leaves_the_class_to_the_other(shared, isolation):
    serve(shared, policy_of(ModelSpec("k-anonymity", {"k": 5})), SIXES)
    first = shared.connect(autocommit=False)
    first.isolation_level = isolation
    first.execute(TAKEN[0])
    first.rollback()
    shared.execute(TAKEN[1])
    assert shown(shared) == len(SIXES) - 1


def test_classes_are_taken_in_order_so_that_writers_of_several_do_not_lock_each_other(shared):
    serve(shared, policy_of(ModelSpec("k-anonymity", {"k": 2})), SIXES)
    there = "UPDATE public.people SET disease = 'x' WHERE id IN (0, 6, 12)"
    back = "UPDATE public.people SET disease = 'y' WHERE id IN (13, 7, 1)"
    assert [] == both(shared, (there, back), IsolationLevel.READ_COMMITTED)
    assert shown(shared) == len(SIXES)


def test_several_classes_are_taken_in_order_whatever_the_plan(shared):
    """Who waits for one class holds none that comes after it, or two could wait for each other."""
    serve(shared, policy_of(ModelSpec("k-anonymity", {"k": 2})), SIXES)
    # The first class comes last in the file, whose order is that of a scan without the index.
    shared.execute(
        "WITH g AS (DELETE FROM dbanon_data.groups_1 WHERE group_id = 0 RETURNING *)"
        " INSERT INTO dbanon_data.groups_1 SELECT * FROM g"
    )
    holder, waiter = shared.connect(autocommit=False), shared.connect(autocommit=False)
    holder.execute("UPDATE public.people SET disease = 'y' WHERE id = 2")
    waiter.execute("SET enable_indexscan = off; SET enable_indexonlyscan = off")
    of_both = "UPDATE public.people SET disease = 'z' WHERE id IN (0, 6)"
    thread = threading.Thread(target=waiter.execute, args=(of_both,))
    thread.start()
    assert waits(holder, waiter, thread)
    try:
        with shared.connect() as other:
            other.execute("SET lock_timeout = '2s'")
            other.execute("UPDATE public.people SET disease = 'y' WHERE id = 8")
    finally:
        holder.commit()
        thread.join(timeout=PATIENCE)
        waiter.commit()
    assert shown(shared) == len(SIXES)
