"""Time dbanon.verify on a published relation beside a plain GROUP BY of the same columns.

    python tests/benchmarks/verify.py                  # 1,000,000 rows of Adult, k = 10, l = 3
    python tests/benchmarks/verify.py --hard --k 5     # a table of which few rows are equal
    python tests/benchmarks/verify.py --rows 20000 --repeats 3

On every server that tests run on. Both statements run in one session with the settings that a
server gives to anyone, in turn; the ratio is that of the medians. ``plain`` counts the classes:
count(*) by the quasi-identifiers. ``with sensitive`` also groups by the sensitive column.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from measuring import connected, measure, say
from samples.resampled import HARD, LARGE, prepare

sys.path.insert(0, str(Path(__file__).parents[1]))

if TYPE_CHECKING:
    import psycopg
    from samples.resampled import Sample

MOST = 3.0


def statements(sample: Sample) -> dict[str, str]:
    quasi = ", ".join(f'"{name}"' for name in sample.quasi)
    counted = f"SELECT count(*) AS n FROM anon.{sample.name} GROUP BY {quasi}"
    return {
        "plain": f"SELECT count(*), min(c.n) FROM ({counted}) AS c",
        "with sensitive": f'SELECT count(*), min(c.n) FROM ({counted}, "{sample.protected}") AS c',
        "verify": f"SELECT * FROM dbanon.verify('anon.{sample.name}')",
    }


def in_turn(
    connection: psycopg.Connection, asked: dict[str, str], repeats: int
) -> dict[str, float]:
    """Return the median seconds of each statement, all of them run once before."""
    seconds: dict[str, list[float]] = {name: [] for name in asked}
    for repeat in range(repeats + 1):
        for name, statement in asked.items():
            start = time.perf_counter()
            connection.execute(statement).fetchall()
            if repeat:
                seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(measured) for name, measured in seconds.items()}


def judge(sample: Sample, repeats: int) -> float:
    """Print what each statement takes and return verify's ratio to the plain one."""
    with connected() as connection:
        found = connection.execute(statements(sample)["verify"]).fetchall()
        if {row[-1] for row in found} != {"passed"}:
            sys.exit(f"anon.{sample.name} was not verified: {found}")
        classes, rows = found[0][5], found[0][7]
        say(f"    {rows:,} rows, {classes:,} classes, {len(sample.quasi)} quasi-identifiers")
        seconds = in_turn(connection, statements(sample), repeats)
    for name, taken in seconds.items():
        say(f"    {name:<16} {taken:>7.3f} s {taken / seconds['plain']:>6.2f}x")
    return seconds["verify"] / seconds["plain"]


def benchmark(sample: Sample, arguments: argparse.Namespace) -> None:
    measure("init")
    measure("demo", "--dataset", "adult")  # brings the taxonomies
    prepare(sample, arguments.rows)
    models = ["--k", str(arguments.k), "--l", str(arguments.l)]
    measure("publish", sample.name, *models, "--algorithm", "mondrian")
    ratio = judge(sample, arguments.repeats)
    say(f"    at most {MOST:g}x     {'met' if ratio <= MOST else 'MISSED'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--hard", action="store_true", help="three dense numbers among the columns")
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--l", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    from servers import Server, available

    for choice in available(None)[0]:
        with (
            choice.open() as dsn,
            Server(dsn, choice.major).prepared() as server,
            server.database() as database,
        ):
            os.environ["DBANON_DSN"] = database.dsn
            say(f"PostgreSQL {choice.version} ({choice.id})")
            benchmark(HARD if arguments.hard else LARGE, arguments)


if __name__ == "__main__":
    main()
