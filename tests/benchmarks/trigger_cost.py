"""Measure what the guards of a live view cost writers of single rows, with pgbench.

    python tests/benchmarks/trigger_cost.py                    # 1,000,000 rows, k = 5 and l = 3
    python tests/benchmarks/trigger_cost.py --rows 100000 --entropy 2.5 --no-sync

Runs with and without the guards take turns; the ratio is that of the median latencies. The server
has the settings that it comes with; ``--no-sync`` lets it commit without waiting for the disk, so
that nothing but the work itself is compared.
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
from dbanon.db.embedded.binaries import bundled_binaries
from dbanon.domain.policy import ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.table import TableName

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
LATENCY = re.compile(r"latency average = ([\d.]+) ms")
BAR = 1.3


def prepare(settings: dbanon.Settings, rows: int, entropy: float | None) -> None:
    dbanon.init(settings)
    with psycopg.connect(settings.dsn, autocommit=True) as connection:
        for statement in CREATE.format(rows=rows).split(";\n"):
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
                sql.SQL("ENABLE ALWAYS" if armed else "DISABLE"), sql.Identifier(name)
            )
            connection.execute(statement)


def latency(binaries: Path, dsn: str, script: Path, seconds: int) -> float:
    command = [binaries / "pgbench", "-n", "-M", "prepared", "-T", str(seconds), "-f", script, dsn]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(LATENCY.search(done.stdout)[1])


def measure(binaries: Path, dsn: str, script: Path, *, seconds: int, turns: int) -> None:
    found: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(turns):
        for armed in (False, True):
            arm(dsn, armed=armed)
            found[armed].append(latency(binaries, dsn, script, seconds))
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
    parser.add_argument("--entropy", type=float, help="keep entropy l-diversity, too")
    parser.add_argument(
        "--no-sync", action="store_true", help="commit without waiting for the disk"
    )
    parser.add_argument("--binaries", type=Path, default=bundled_binaries())
    arguments = parser.parse_args()
    with server(arguments.binaries) as dsn, tempfile.TemporaryDirectory() as folder:
        options = "-c synchronous_commit=off" if arguments.no_sync else None
        fast = psycopg.conninfo.make_conninfo(dsn, options=options)
        prepare(dbanon.Settings(dsn=dsn), arguments.rows, arguments.entropy)
        sys.stdout.write(
            f"{arguments.rows:,} rows, ms a transaction\n"
            f"{'':<32} {'without':>12} {'with guards':>12} {'ratio':>7}   each turn   bar {BAR}\n"
        )
        for name, write in WRITES.items():
            script = Path(folder, "write.sql")
            script.write_text(ANYONE.format(rows=arguments.rows) + write)
            sys.stdout.write(f"{name:<32} ")
            measure(
                arguments.binaries, fast, script, seconds=arguments.seconds, turns=arguments.turns
            )


if __name__ == "__main__":
    main()
