"""Read releases in every way while they are published again and again.

    python tests/benchmarks/readers.py                              # 30 s for each kind of release
    python tests/benchmarks/readers.py --seconds 5 --binaries /usr/lib/postgresql/15/bin

Beside readers in a loop there are one that stays idle in a transaction, one with a snapshot that it
keeps, and pg_dump. A read that finds no row is empty, one that finds another release than its
snapshot saw before is torn; the exit code is 1 if there is either, or if any read failed, unless
it failed to serialize.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from concurrency import TABLE, hurry, prepare, server
from psycopg import IsolationLevel

import dbanon
from dbanon.server.server import bundled_binaries

IDLE, LONG = 4.0, 6.0
READS = (
    "SELECT count(*) FROM anon.people",
    "SELECT count(*) FROM anon.people WHERE sex = 'F'",
    "SELECT count(*) FROM dbanon.verify('anon.people') WHERE verdict <> 'not checked'",
)
# A release is told by its number, and by what all of its rows come to.
DIGEST = """
SELECT dbanon.promise('anon.people') ->> 'release', count(*), sum(hashtextextended(p::text, 0))
  FROM anon.people AS p
"""


# How long whoever reads has been waiting for a lock, the longest of all; known since 14.
WAITING = """
SELECT coalesce(max(extract(epoch FROM clock_timestamp() - l.waitstart)), 0)::float8
  FROM pg_locks AS l
 WHERE NOT l.granted
   AND l.mode = 'AccessShareLock'
"""


@dataclass
class Tally:
    """What happened, counted by every thread.

    longest: the longest read, in seconds; waited: the longest that a reader waited for a lock.
    """

    counts: Counter[str] = field(default_factory=Counter)
    longest: float = 0.0
    waited: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, what: str, *, seconds: float = 0.0) -> None:
        with self.lock:
            self.counts[what] += 1
            self.longest = max(self.longest, seconds)


def ask(connection: psycopg.Connection, statement: str, tally: Tally) -> tuple | None:
    """Read once, and count what came of it; return the row, None if there was none."""
    start = time.monotonic()
    try:
        row = connection.execute(statement).fetchone()
    except psycopg.errors.SerializationFailure:
        tally.add("serialization failures", seconds=time.monotonic() - start)
        return None
    except psycopg.Error as error:
        tally.add("failing reads", seconds=time.monotonic() - start)
        tally.add(f"  {error.sqlstate}: {error.diag.message_primary}")
        return None
    tally.add("reads", seconds=time.monotonic() - start)
    if 0 in row:
        tally.add("empty reads")
    return row


def read(dsn: str, seed: int, end: float, tally: Tally) -> None:
    dice = random.Random(seed)  # noqa: S311 - a load, not a secret
    with psycopg.connect(dsn, autocommit=True) as connection:
        while time.monotonic() < end:
            connection.isolation_level = dice.choice(list(IsolationLevel)[1:])
            ask(connection, dice.choice(READS), tally)


def watch(dsn: str, end: float, tally: Tally) -> None:
    """Look again and again whether a reader waits for a lock."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        while time.monotonic() < end:
            tally.waited = max(tally.waited, connection.execute(WAITING).fetchone()[0])
            time.sleep(0.01)


def stay_idle(dsn: str, end: float, tally: Tally) -> None:
    with psycopg.connect(dsn) as connection:
        while time.monotonic() < end:
            for _ in range(2):
                ask(connection, READS[0], tally)
                time.sleep(min(IDLE / 2, max(0.0, end - time.monotonic())))
            connection.rollback()


def keep_snapshot(dsn: str, end: float, tally: Tally) -> None:
    """Take a snapshot, and read again and again what belongs to it."""
    with psycopg.connect(dsn) as connection:
        connection.isolation_level = IsolationLevel.REPEATABLE_READ
        while time.monotonic() < end:
            connection.execute("SELECT 1")
            until, seen = time.monotonic() + LONG, set()
            while time.monotonic() < min(until, end):
                row = ask(connection, DIGEST, tally)
                if row is None:
                    break
                seen.add(row)
                time.sleep(0.2)
            if len(seen) > 1:
                tally.add("torn reads")
            connection.rollback()


def dump(dsn: str, kind: str, binaries: Path, end: float, tally: Tally) -> None:
    """Dump all that the owner of the database can read; the tables of releases are never empty."""
    filled = f"INSERT INTO dbanon_data.{'release' if kind == 'table' else 'groups'}_"
    while time.monotonic() < end:
        command = [binaries / "pg_dump", "--inserts", "--schema=dbanon_data", "--dbname", dsn]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode:
            tally.add("failing dumps")
            tally.add("  " + run.stderr.strip().splitlines()[0])
            continue
        tally.add("dumps")
        if filled not in run.stdout:
            tally.add("empty dumps")


def publish(settings: dbanon.Settings, end: float, tally: Tally) -> None:
    while time.monotonic() < end:
        start = time.monotonic()
        try:
            dbanon.refresh(TABLE, new_series=True, settings=settings)
            tally.add("publications")
        except dbanon.DatabaseError as error:
            tally.add("publications given up")
            tally.add(f"  {error}"[:100])
        time.sleep(max(0.0, 1.0 - (time.monotonic() - start)))


def run(settings: dbanon.Settings, kind: str, seconds: float, binaries: Path) -> Tally:
    """Publish and read for so long, and return what happened."""
    dbanon.publish(TABLE, kind=kind, algorithm="mondrian", settings=settings)
    tally, dsn, end = Tally(), settings.dsn, time.monotonic() + seconds
    with ThreadPoolExecutor(7) as pool:
        working = [pool.submit(read, dsn, seed, end, tally) for seed in range(2)]
        working.append(pool.submit(stay_idle, dsn, end, tally))
        working.append(pool.submit(keep_snapshot, dsn, end, tally))
        working.append(pool.submit(dump, dsn, kind, binaries, end, tally))
        working.append(pool.submit(publish, settings, end, tally))
        working.append(pool.submit(watch, dsn, end, tally))
        for work in working:
            work.result()  # raises what it did not foresee
    return tally


def report(kind: str, tally: Tally) -> bool:
    """Print the counts, and tell whether no reader was let down."""
    sys.stdout.write(f"--as {kind}\n")
    names = ("publications", "publications given up", "reads", "failing reads", "empty reads")
    names += ("torn reads", "serialization failures", "dumps", "failing dumps", "empty dumps")
    others = sorted(name for name in tally.counts if name.startswith("  "))
    for name in (*names, *others):
        sys.stdout.write(f"  {name:<24}{tally.counts[name]:>8,}\n")
    for name, seconds in (("longest read", tally.longest), ("longest wait", tally.waited)):
        sys.stdout.write(f"  {name:<24}{seconds * 1000:>8,.0f} ms\n")
    bad = ("failing reads", "empty reads", "torn reads", "empty dumps")
    return tally.counts["reads"] > 0 and not any(tally.counts[name] for name in bad)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--binaries", type=Path, default=bundled_binaries())
    arguments = parser.parse_args()
    with server(arguments.binaries) as dsn:
        sys.stdout.write(f"PostgreSQL {hurry(dsn)}, {arguments.seconds:g} s each\n")
        settings = dbanon.Settings(dsn=dsn)
        prepare(settings)
        held = [
            report(kind, run(settings, kind, arguments.seconds, arguments.binaries))
            for kind in ("table", "view")
        ]
    sys.exit(0 if all(held) else 1)


if __name__ == "__main__":
    main()
