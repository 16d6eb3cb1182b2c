"""Measure what the guards of a live view cost writers of single rows, with pgbench.

    python tests/benchmarks/trigger_cost.py                    # 1,000,000 rows, k = 5 and l = 3
    python tests/benchmarks/trigger_cost.py --rows 100000 --entropy 2.5 --no-sync
    python tests/benchmarks/trigger_cost.py --classes 5 50 340 3400 --rows 50000 --no-sync

Runs with and without the guards take turns; the ratio is that of the median latencies. The server
has the settings that it comes with; ``--no-sync`` lets it commit without waiting for the disk, so
that nothing but the work itself is compared. With ``--classes``, an update of the sensitive column
is measured for classes of each size, in transactions a second of one client and of eight.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg
from concurrency import server
from psycopg import sql

import dbanon
from dbanon.domain.policy import ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.table import TableName
from dbanon.server.server import bundled_binaries

TABLE = TableName("public", "people")
CREATE = """
CREATE TABLE public.people (
    id int PRIMARY KEY, age int, sex text, zip int, disease text, note text
);
INSERT INTO public.people
SELECT i, 18 + (random() * 70)::int, (ARRAY['F', 'M'])[1 + i % 2], (random() * 9999)::int,
       'disease ' || (random() * 19)::int, 'note ' || i
  FROM generate_series(1, {rows}) AS i;
VACUUM ANALYZE public.people
"""
ANYONE = "\\set id random(1, {rows})\n\\set any random(0, 19)\n"
WRITES = {
    "UPDATE of the sensitive column": (
        "UPDATE public.people SET disease = 'disease ' || :any WHERE id = :id;"
    ),
    "UPDATE of an unrelated column": "UPDATE public.people SET note = :any WHERE id = :id;",
    "DELETE and INSERT of one key": (
        "BEGIN;\nDELETE FROM public.people WHERE id = :id;\nINSERT INTO public.people"
        " VALUES (:id, 44, 'F', 1234, 'disease ' || :any, 'note');\nEND;"
    ),
}
CLASSES = """
DROP TABLE IF EXISTS public.people CASCADE;
CREATE TABLE public.people (
    id int PRIMARY KEY, age int, sex text, zip int, disease text, note text
);
INSERT INTO public.people
SELECT i, p / {size}, 'F', 0, 'disease ' || (random() * 19)::int, 'note ' || i
  FROM (SELECT i, row_number() OVER (ORDER BY random()) - 1 AS p
          FROM generate_series(1, {rows}) AS i) AS s
 ORDER BY i;
VACUUM ANALYZE public.people
"""
CLIENTS = (1, 8)
RATE = re.compile(r"tps = ([\d.]+)")
LATENCY = re.compile(r"latency average = ([\d.]+) ms")
BAR = 1.3


def prepare(settings: dbanon.Settings, create: str, entropy: float | None) -> None:
    dbanon.init(settings)
    with psycopg.connect(settings.dsn, autocommit=True) as connection:
        for statement in create.split(";\n"):
            connection.execute(statement)
    roles = {"age": Role.QUASI, "sex": Role.QUASI, "zip": Role.QUASI}
    roles |= {"disease": Role.SENSITIVE, "id": Role.IDENTIFIER, "note": Role.INSENSITIVE}
    models = [ModelSpec("k-anonymity", {"k": 5}), ModelSpec("l-diversity", {"l": 3})]
    if entropy is not None:
        models.append(ModelSpec("entropy-l-diversity", {"l": entropy}))
    columns = tuple(ColumnRule(name, role) for name, role in roles.items())
    policy = Policy(TABLE, columns, tuple(models), max_suppressed=0.1)
    dbanon.set_policy(TABLE, policy, settings=settings)
    dbanon.publish(TABLE, kind="view", algorithm="mondrian", settings=settings)


def arm(dsn: str, *, armed: bool) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        found = connection.execute(
            "SELECT tgname FROM pg_trigger WHERE starts_with(tgname, 'dbanon_guard')"
        )
        for (name,) in found.fetchall():
            statement = sql.SQL("ALTER TABLE public.people {} TRIGGER {}").format(
                sql.SQL(_mode(name) if armed else "DISABLE"), sql.Identifier(name)
            )
            connection.execute(statement)


def _mode(trigger: str) -> str:
    """Return how the guard is armed: those of replicated rows do not fire for a statement."""
    return "ENABLE REPLICA" if "_row_" in trigger else "ENABLE ALWAYS"


def pgbench(binaries: Path, dsn: str, script: Path, seconds: int, *, clients: int = 1) -> str:
    command = [binaries / "pgbench", "-n", "-M", "prepared", "-T", str(seconds), "-f", script]
    command += ["-c", str(clients), "-j", "2" if clients > 1 else "1", dsn]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def measure_classes(binaries: Path, dsn: str, script: Path, *, seconds: int, turns: int) -> None:
    """Print how many transactions a second there are without guards and with them."""
    for clients in CLIENTS:
        found: dict[bool, list[float]] = {False: [], True: []}
        for _ in range(turns):
            for armed in (False, True):
                arm(dsn, armed=armed)
                printed = pgbench(binaries, dsn, script, seconds, clients=clients)
                found[armed].append(float(RATE.search(printed)[1]))
        without, with_guards = (statistics.median(found[armed]) for armed in (False, True))
        sys.stdout.write(
            f"{clients:>10} {without:>12,.0f} {with_guards:>12,.0f} {without / with_guards:>7.2f}\n"
        )
        sys.stdout.flush()


def measure(binaries: Path, dsn: str, script: Path, *, seconds: int, turns: int) -> None:
    found: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(turns):
        for armed in (False, True):
            arm(dsn, armed=armed)
            printed = pgbench(binaries, dsn, script, seconds)
            found[armed].append(float(LATENCY.search(printed)[1]))
    without, with_guards = (statistics.median(found[armed]) for armed in (False, True))
    ratio = with_guards / without
    spread = [b / a for a, b in zip(found[False], found[True], strict=True)]
    sys.stdout.write(
        f"{without:>12.3f} {with_guards:>12.3f} {ratio:>7.2f}"
        f"   {min(spread):.2f}-{max(spread):.2f}   {'met' if ratio <= BAR else 'MISSED'}\n"
    )
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=int, default=5, help="of each run")
    parser.add_argument(
        "--turns", type=int, default=5, help="runs with guards, and as many without"
    )
    parser.add_argument("--classes", type=int, nargs="+", help="sizes of classes to compare")
    parser.add_argument("--entropy", type=float, help="keep entropy l-diversity, too")
    parser.add_argument(
        "--no-sync", action="store_true", help="commit without waiting for the disk"
    )
    parser.add_argument("--binaries", type=Path, default=bundled_binaries())
    arguments = parser.parse_args()
    with server(arguments.binaries) as dsn, tempfile.TemporaryDirectory() as folder:
        options = "-c synchronous_commit=off" if arguments.no_sync else None
        fast = psycopg.conninfo.make_conninfo(dsn, options=options)
        script = Path(folder, "write.sql")
        (by_class if arguments.classes else by_write)(arguments, dsn, fast, script)


def by_write(arguments: argparse.Namespace, dsn: str, fast: str, script: Path) -> None:
    """Measure each kind of write."""
    prepare(dbanon.Settings(dsn=dsn), CREATE.format(rows=arguments.rows), arguments.entropy)
    sys.stdout.write(
        f"{arguments.rows:,} rows, ms a transaction\n"
        f"{'':<32} {'without':>12} {'with guards':>12} {'ratio':>7}   each turn   bar {BAR}\n"
    )
    for name, write in WRITES.items():
        script.write_text(ANYONE.format(rows=arguments.rows) + write)
        sys.stdout.write(f"{name:<32} ")
        measure(arguments.binaries, fast, script, seconds=arguments.seconds, turns=arguments.turns)


def by_class(arguments: argparse.Namespace, dsn: str, fast: str, script: Path) -> None:
    """Measure an update of the sensitive column for classes of each size."""
    update, *_ = WRITES.values()
    script.write_text(ANYONE.format(rows=arguments.rows) + update)
    with psycopg.connect(dsn) as connection:
        version = connection.execute("SHOW server_version").fetchone()[0]
    sys.stdout.write(f"PostgreSQL {version}, {arguments.rows:,} rows, transactions a second\n")
    for size in arguments.classes:
        create = CLASSES.format(rows=arguments.rows, size=size)
        prepare(dbanon.Settings(dsn=dsn), create, arguments.entropy)
        sys.stdout.write(f"classes of {size}\n   clients      without  with guards   ratio\n")
        options = {"seconds": arguments.seconds, "turns": arguments.turns}
        measure_classes(arguments.binaries, fast, script, **options)
        (release,) = dbanon.list_releases(settings=dbanon.Settings(dsn=dsn))[:1]
        dbanon.drop_release(release.id, settings=dbanon.Settings(dsn=dsn))


if __name__ == "__main__":
    main()
