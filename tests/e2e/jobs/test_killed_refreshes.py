"""Copies of several relations are refreshed class by class while all that does it is killed."""

import time
from collections import Counter
from contextlib import ExitStack, closing
from dataclasses import dataclass, field

import pytest
from faults.storms import Workers, answered, enqueue, harm, idle, own_server, repeating, settle
from tables import make_patients, patients_policy

import dbanon

pytestmark = pytest.mark.slow

RELATIONS = ("anon.patients", "anon.others")
LONGEST = 1.0  # seconds that a reader may wait
STATE = """
SELECT count(*), count(DISTINCT r.note),
       (SELECT min(c.n) FROM (SELECT count(*) FROM {0} GROUP BY age, sex, born, weight) AS c (n)),
       md5(string_agg(r::text, ' ' ORDER BY r::text))
  FROM {0} AS r
"""
WHOLE_CLASS = """
DELETE FROM public.patients
 WHERE note IN (SELECT r.note
                  FROM anon.patients AS r
                 WHERE (age, sex, born, weight)::text = (SELECT (age, sex, born, weight)::text
                                                           FROM anon.patients
                                                          ORDER BY length(note), note
                                                          LIMIT 1))
"""
NEWCOMERS = """
INSERT INTO public.patients
SELECT n, age, sex, born, weight, disease, 'note ' || n
  FROM (SELECT *, %(first)s + row_number() OVER (ORDER BY id) AS n
          FROM public.patients
         LIMIT 20) AS p
"""
PRIVATE = """
SELECT relname::text FROM pg_class
 WHERE relnamespace = 'dbanon_data'::regnamespace AND relkind IN ('r', 'v', 'p')
 ORDER BY relname
"""


def publish_two(database):
    """Publish people as two relations that share their classes, each to be extended."""
    table = make_patients(database, rows=500)
    dbanon.set_policy(table, patients_policy(table), settings=database.settings)
    dbanon.publish("patients", settings=database.settings)
    dbanon.publish("patients", name="others", algorithm="mdav", settings=database.settings)


def write(connection):
    """Let the last who came leave and somebody else come, and change somebody's values."""
    with connection.transaction():
        connection.execute("UPDATE public.patients SET disease = 'flu' WHERE id = 490")
        connection.execute(
            "WITH gone AS (DELETE FROM public.patients WHERE id = (SELECT max(id)"
            " FROM public.patients) RETURNING *) INSERT INTO public.patients"
            " SELECT id + 1, age, sex, born, weight, disease, 'note ' || id + 1 FROM gone"
        )


def turn_over(database, round_):
    """Let a class of one relation leave as a whole, so that it goes, and new people come."""
    answered(lambda: database.execute(WHOLE_CLASS))
    answered(lambda: database.execute(NEWCOMERS, {"first": 100_000 * (1 + round_)}))


@dataclass
class Readers:
    """What the readers of each relation saw, and what was served between two refreshes."""

    seen: dict[str, set] = field(default_factory=lambda: {name: set() for name in RELATIONS})
    served: dict[str, list] = field(default_factory=lambda: {name: [] for name in RELATIONS})
    readings: int = 0
    longest: float = 0.0

    def read(self, connection):
        for name in RELATIONS:
            start = time.monotonic()
            row = connection.execute(STATE.format(name)).fetchone()
            self.longest = max(self.longest, time.monotonic() - start)
            self.seen[name].add(row)
            self.readings += 1

    def note(self, database):
        """Note what is served while nobody publishes: each release of a relation changed it."""
        ledger = dbanon.list_releases(settings=database.settings)
        for name in RELATIONS:
            (now,) = database.execute(STATE.format(name))
            self.served[name] += [now] if [now] != self.served[name][-1:] else []
            releases = [one for one in ledger if str(one.relation) == name]
            assert len(releases) == len(self.served[name])

    def torn(self):
        """Return the readings that were none of a whole release, or of one that does not hold."""
        return [
            (name, found)
            for name in RELATIONS
            for found in self.seen[name]
            if found not in self.served[name] or found[0] != found[1] or found[2] < 5
        ]


def whole(database):
    """Look at all that is left once no job is: a release of each relation, and nothing else."""
    settings = database.settings
    for name in RELATIONS:
        assert dbanon.check(name, settings=settings).passed
    (together,) = dbanon.history("patients", settings=settings).compositions
    assert ((), True) == (together.warnings, together.holds)
    served = [one for one in dbanon.list_releases(settings=settings) if one.served]
    assert set(RELATIONS) == {str(one.relation) for one in served}
    jobs = database.execute("SELECT DISTINCT state, result, reason FROM dbanon.job")
    assert jobs in ([], [("done", "refreshed", None)])
    copies = sorted(f"release_{one.data_id}" for one in served)
    assert copies == [name for (name,) in database.execute(PRIVATE)]


def storm(database, times, *, crash=False):
    """Ask for refreshes of what has changed, do harm during each, and look at all that is left."""
    done, readers = [], Readers()
    readers.note(database)
    with ExitStack() as stack:
        workers = Workers(stack)
        stack.enter_context(repeating(database, write))
        stack.enter_context(repeating(database, readers.read))
        for round_ in range(times):
            if done[-1:] in ([], ["server"]):
                old, before = stack.enter_context(closing(idle(database, "SELECT 1"))), {}
            turn_over(database, round_)
            enqueue(database)
            done.append(harm(database, workers, crash=crash, within=2.5))
            for name in RELATIONS:
                assert answered(lambda name=name: dbanon.check(name, settings=database.settings))
            settle(database)
            answered(lambda: whole(database))
            readers.note(database)
            if done[-1] != "server":
                now = {name: old.execute(STATE.format(name)).fetchone() for name in RELATIONS}
                before = before or now
                assert before == now
    print(Counter(done), readers.readings, "readings,", round(readers.longest, 3))  # noqa: T201
    return readers


def attempts(database):
    """Return how often each job was tried."""
    found = [row[0] for row in database.execute("SELECT attempts FROM dbanon.job ORDER BY 1")]
    print("attempts", found)  # noqa: T201
    return found


def failures(database):
    """Return what ``doctor`` finds, after another refresh of what is left."""
    dbanon.refresh("patients", settings=database.settings)
    whole(database)
    return [f for f in dbanon.doctor(settings=database.settings) if f.level == "failure"]


def test_copies_of_several_relations_are_refreshed_once_whatever_is_killed(copied, monkeypatch):
    database = copied(publish_two)
    monkeypatch.setenv("DBANON_DSN", database.dsn)
    readers = storm(database, 2)
    assert ([], True) == (readers.torn(), 0 < readers.longest < LONGEST)
    assert 2 == len(attempts(database))
    assert [] == failures(database)


@pytest.mark.exhaustive
def test_copies_are_refreshed_once_in_fifty_refreshes_when_the_server_crashes_too(
    request, monkeypatch, server
):
    with own_server(request) as database:
        publish_two(database)
        monkeypatch.setenv("DBANON_DSN", database.dsn)
        readers = storm(database, 50, crash=True)
        assert ([], True) == (readers.torn(), 0 < readers.longest < LONGEST)
        assert 50 == len(attempts(database))
        assert [] == failures(database)
