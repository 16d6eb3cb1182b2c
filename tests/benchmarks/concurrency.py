"""Write to a live view's source from many connections while a reader verifies the view.

    python tests/benchmarks/concurrency.py                              # 8 writers for 120 s
    python tests/benchmarks/concurrency.py --seconds 3 --binaries /usr/lib/postgresql/15/bin

Writers change single rows and many, delete, insert, take over keys and change quasi-identifiers,
under all isolation levels; some transactions are rolled back. Every few seconds the table is filled
up and published again, or soon nothing would be left to show. A read that finds a class failing is
a failing read; the exit code is 1 if there is one, or if nothing was read or written.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from psycopg import IsolationLevel

import dbanon
from dbanon.domain.policy import ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.table import TableName
from dbanon.server import EmbeddedServer
from dbanon.server.server import bundled_binaries

if TYPE_CHECKING:
    from collections.abc import Iterator

TABLE = TableName("public", "people")
ROWS, HOT, PLACES_A_SECOND = 6000, 24, 20
REPUBLISH = 10.0
DISEASES = ["flu", "gastritis", "cancer", "asthma", None]
MODELS = (
    ModelSpec("k-anonymity", {"k": 5}),
    ModelSpec("l-diversity", {"l": 3, "columns": ("disease",)}),
    ModelSpec("entropy-l-diversity", {"l": 2.5, "columns": ("disease",)}),
    ModelSpec("recursive-l-diversity", {"c": 3, "l": 2, "columns": ("disease",)}),
    ModelSpec("alpha-k-anonymity", {"alpha": 0.6, "columns": ("disease",)}),
    ModelSpec("k-e-anonymity", {"k": 3, "e": 2, "columns": ("wage",)}),
)
CREATE = """
CREATE TABLE public.people (
    id int PRIMARY KEY, person bigint NOT NULL, age int, sex text, disease text, wage int, note text
)
"""
FILL = """
INSERT INTO public.people
SELECT i, (random() * 1e15)::bigint, i / 8, (ARRAY['F', 'M'])[1 + i %% 2],
       (%(diseases)s::text[])[1 + (random() * 4.99)::int], (random() * 40)::int, '-'
  FROM generate_series(1, %(rows)s) AS i
    ON CONFLICT DO NOTHING
"""
TIDY = "DELETE FROM public.people WHERE id > %(rows)s"
# Each with how often it is taken; some are many keys at once, of neighbours and of strangers.
WRITES = {
    "UPDATE public.people SET disease = %(disease)s WHERE id = %(one)s": 20,
    "UPDATE public.people SET wage = %(wage)s WHERE id = %(one)s": 15,
    "UPDATE public.people SET note = 'x' WHERE id = %(one)s": 10,
    "UPDATE public.people SET disease = %(disease)s WHERE id = ANY (%(some)s)": 10,
    "UPDATE public.people SET wage = wage + 1 WHERE id BETWEEN %(one)s AND %(one)s + 20": 3,
    "DELETE FROM public.people WHERE id = %(one)s": 60,
    "DELETE FROM public.people WHERE id = ANY (%(some)s)": 4,
    "UPDATE public.people SET age = age + 1 WHERE id = %(one)s": 4,
    "UPDATE public.people SET id = id + 1000000 WHERE id = %(one)s": 3,
    "UPDATE public.people SET person = (random() * 1e15)::bigint WHERE id = %(one)s": 3,
    "INSERT INTO public.people"
    " VALUES (%(one)s, (random() * 1e15)::bigint, %(one)s / 8, 'F', %(disease)s, 3, 'x')"
    " ON CONFLICT (id) DO UPDATE SET disease = excluded.disease": 15,
}
# What readers can repeat, and the count of persons, for which the private tables are needed. A
# class is what is published: the groups are not asked which of them publish alike.
VERIFY = "SELECT verdict FROM dbanon.verify('anon.people')"
PERSONS = """
SELECT CASE WHEN count(*) = 0 THEN 'not checked'
            WHEN min(c.persons) >= 5 THEN 'passed' ELSE 'failed' END
  FROM (SELECT count(DISTINCT s.person) AS persons
          FROM public.people AS s
          JOIN dbanon_data.rows_{0} AS r ON r.k1 = s.id
          JOIN dbanon_data.groups_{0} AS g ON g.group_id = r.group_id
         WHERE g.shown
         GROUP BY g.q1, g.q2) AS c
"""


@dataclass
class Tally:
    """What happened, counted by every thread."""

    counts: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)
    release: int = 0

    def add(self, what: str) -> None:
        with self.lock:
            self.counts[what] += 1


@contextmanager
def server(binaries: Path) -> Iterator[str]:
    """Run a server of its own, with the settings it comes with, and yield its owner's dsn."""
    folder = Path(tempfile.mkdtemp(prefix="dbanon-concurrency-"))
    folder.chmod(0o711)  # the server's account must pass through
    started = EmbeddedServer(folder / "home", binaries=binaries)
    started.start()
    try:
        yield started.dsn()
    finally:
        started.stop()
        shutil.rmtree(folder)


def hurry(dsn: str) -> str:
    """Let deadlocks be found sooner than after a second; return the version of the server."""
    admin = psycopg.conninfo.make_conninfo(dsn, user="postgres")
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET deadlock_timeout = '20ms'")
        connection.execute("SELECT pg_reload_conf()")
        return connection.execute("SHOW server_version").fetchone()[0]


def prepare(settings: dbanon.Settings) -> None:
    dbanon.init(settings)
    with psycopg.connect(settings.dsn, autocommit=True) as connection:
        connection.execute(CREATE)
    fill(settings.dsn)
    roles = {"age": Role.QUASI, "sex": Role.QUASI, "disease": Role.SENSITIVE}
    roles |= {"wage": Role.SENSITIVE, "id": Role.IDENTIFIER, "person": Role.IDENTIFIER}
    columns = tuple(ColumnRule(name, role) for name, role in roles.items())
    columns = (*columns, ColumnRule("note", Role.INSENSITIVE))
    policy = Policy(TABLE, columns, MODELS, subject="person", max_suppressed=0.2)
    dbanon.set_policy(TABLE, policy, settings=settings)


def fill(dsn: str) -> None:
    """Put others in the place of who was deleted or moved; no two rows are of one person."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in (TIDY, FILL):
            # Writers may lock it out; the next time comes soon.
            with suppress(psycopg.errors.DeadlockDetected):
                connection.execute(statement, {"rows": ROWS, "diseases": DISEASES})


def publish(settings: dbanon.Settings, tally: Tally) -> None:
    options = {"kind": "view", "algorithm": "mondrian", "settings": settings}
    tally.release = dbanon.publish(TABLE, **options).data_id
    tally.add("publications")


def draw(dice: random.Random) -> tuple[str, dict[str, object]]:
    # All write to the same few classes at a time: neighbours by their keys are of an age.
    first = int(time.monotonic() * PLACES_A_SECOND) * HOT % (ROWS - HOT)
    one = first + dice.randint(1, HOT)
    few = [first + dice.randint(1, HOT) for _ in range(dice.choice([2, 5]))]
    some = dice.choice([few, list(range(one, one + 3))])
    values = {"one": one, "some": some, "wage": dice.randint(0, 40)}
    (statement,) = dice.choices(list(WRITES), list(WRITES.values()))
    return statement, {**values, "disease": dice.choice(DISEASES)}


def write(dsn: str, seed: int, end: float, tally: Tally) -> None:
    dice = random.Random(seed)  # noqa: S311 - a load, not a secret
    # Commits that do not wait for the disk come closer together.
    with psycopg.connect(dsn, options="-c synchronous_commit=off") as connection:
        while time.monotonic() < end:
            connection.isolation_level = dice.choice(list(IsolationLevel)[1:])
            try:
                for _ in range(dice.choice([1, 1, 1, 2, 4])):
                    connection.execute(*draw(dice))
                if dice.random() < 0.1:
                    connection.rollback()
                    tally.add("rolled back")
                else:
                    connection.commit()
                    tally.add("committed")
            except psycopg.errors.SerializationFailure:
                connection.rollback()
                tally.add("serialization failures")
            except psycopg.errors.DeadlockDetected:
                connection.rollback()
                tally.add("deadlocks")
            except psycopg.errors.UniqueViolation:
                connection.rollback()  # a key was moved to a place that is taken
                tally.add("keys taken")


def read(dsn: str, end: float, tally: Tally) -> None:
    dice = random.Random(0)  # noqa: S311 - a load, not a secret
    with psycopg.connect(dsn, autocommit=True) as connection:
        while time.monotonic() < end:
            connection.isolation_level = dice.choice(list(IsolationLevel)[1:])
            try:
                verdicts = {row[0] for row in connection.execute(VERIFY)}
                verdicts |= {row[0] for row in connection.execute(PERSONS.format(tally.release))}
            except (psycopg.errors.UndefinedTable, psycopg.errors.SerializationFailure):
                continue  # it was published again meanwhile
            tally.add("reads")
            if verdicts != {"passed"}:
                tally.add("failing reads" if "failed" in verdicts else "empty reads")


def run(settings: dbanon.Settings, writers: int, seconds: float) -> Tally:
    """Write and read for so long, and return what happened."""
    tally = Tally()
    publish(settings, tally)
    end = time.monotonic() + seconds
    with ThreadPoolExecutor(writers + 1) as pool:
        dsn = settings.dsn
        working = [pool.submit(write, dsn, seed, end, tally) for seed in range(writers)]
        working.append(pool.submit(read, dsn, end, tally))
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, REPUBLISH))
            if left > REPUBLISH:
                fill(dsn)
                publish(settings, tally)
        for work in working:
            work.result()  # raises what it did not foresee
    return tally


def report(tally: Tally, seconds: float) -> bool:
    """Print the counts, and tell whether they are those of a live view that held."""
    for name in ("committed", "rolled back", "serialization failures", "deadlocks", "keys taken"):
        sys.stdout.write(
            f"{name:<24}{tally.counts[name]:>10,}{tally.counts[name] / seconds:>10.1f}/s\n"
        )
    for name in ("publications", "reads", "empty reads", "failing reads"):
        sys.stdout.write(f"{name:<24}{tally.counts[name]:>10,}\n")
    counts = tally.counts
    return counts["committed"] > 0 and counts["reads"] > 0 and not counts["failing reads"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--binaries", type=Path, default=bundled_binaries())
    arguments = parser.parse_args()
    with server(arguments.binaries) as dsn:
        version = hurry(dsn)
        sys.stdout.write(
            f"PostgreSQL {version}, {arguments.writers} writers for {arguments.seconds:g} s\n"
        )
        settings = dbanon.Settings(dsn=dsn)
        prepare(settings)
        held = report(run(settings, arguments.writers, arguments.seconds), arguments.seconds)
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
