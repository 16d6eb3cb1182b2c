"""Measure what a refresh costs beside a full publication, after a share of the rows has changed.

    python tests/benchmarks/changes.py                         # 1,000,000 rows, 1 % changed
    python tests/benchmarks/changes.py --rows 200000 --changed 0.005 --times 9
    python tests/benchmarks/changes.py --before ../ae1eed7e    # compare its first publication, too

Of the rows that change, half are inserted, a quarter deleted and a quarter updated. The last
publication groups all rows anew, in a series of its own, so that it is compared with all before and
let through. Bars are CPU seconds of the command and the server: shares of the first publication, by
another checkout with its own .venv if that is given.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from measuring import (
    Bar,
    apart,
    by_checkout,
    connected,
    measure,
    own_server,
    report_command,
    report_head,
    say,
)
from psycopg import sql
from samples.resampled import HARD, LARGE, prepare

if TYPE_CHECKING:
    from measuring import Run
    from samples.resampled import Sample

INSERT = """
INSERT INTO public.{table} ({columns})
SELECT {columns} FROM public.{table} ORDER BY random() LIMIT {n}
"""
DELETE = """
DELETE FROM public.{table}
 WHERE id IN (SELECT id FROM public.{table} ORDER BY random() LIMIT {n})
"""
UPDATE = """
UPDATE public.{table} SET age = age + 1
 WHERE id IN (SELECT id FROM public.{table} ORDER BY random() LIMIT {n})
"""
ANEW = ("--new-series", "--recipients-changed")
FEW = 0.001  # of the rows: refreshing them has a lower bar
HISTORY = "SELECT pg_total_relation_size('dbanon.history_member')"


def change(name: str, columns: tuple[str, ...], rows: int) -> None:
    """Insert, delete and update so many rows in all."""
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    with connected() as connection:
        for statement, n in ((INSERT, rows // 2), (DELETE, rows // 4), (UPDATE, rows // 4)):
            slots = {"table": sql.Identifier(name), "columns": names, "n": sql.Literal(n)}
            connection.execute(sql.SQL(statement).format(**slots))


def size() -> int:
    """Return how many bytes remembering takes."""
    with connected() as connection:
        return connection.execute(HISTORY).fetchone()[0]


def prepared(sample: Sample, rows: int, options: list[str]) -> None:
    """Make the table, and compile what a publication needs."""
    measure("demo", "--dataset", "adult")  # brings the taxonomies
    measure("publish", "adult", *options, *ANEW)
    measure("refresh", "adult")
    prepare(sample, rows)


def of_checkout(checkout: Path, sample: Sample, rows: int, options: list[str]) -> Run:
    """Publish the table for the first time by another checkout."""
    with by_checkout(checkout), own_server():
        prepared(sample, rows, options)
        return measure("publish", sample.name, *options, "--timings")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--changed", type=float, default=0.01, help="share of the rows")
    parser.add_argument("--times", type=int, default=1, help="how often they change")
    parser.add_argument("--before", type=Path, help="checkout to compare with")
    parser.add_argument("--hard", action="store_true", help="three dense numbers among the columns")
    arguments, options = parser.parse_known_args()
    sample, rows = HARD if arguments.hard else LARGE, arguments.rows
    say(f"Python {sys.version.split()[0]}, {os.cpu_count()} processors, {rows:,} rows")
    runs = {}
    if arguments.before:
        runs["publish, before"] = of_checkout(arguments.before, sample, rows, options)
    with own_server():
        prepared(sample, rows, options)
        before = size()
        runs["publish, the first"] = measure("publish", sample.name, *options, "--timings")
        bytes_a_row = (size() - before) / rows
        for verb in ("grant", "revoke"):  # what nobody was granted would be grouped from scratch
            measure(verb, f"anon.{sample.name}", "public")
        again = ("refresh", sample.name, "--timings")
        for time in ("once", "again"):  # the first command marks the new rows as committed
            runs[f"refresh --if-changed, {time}"] = measure(*again, "--if-changed")
        for i in range(1, arguments.times + 1):
            apart(change, sample.name, sample.columns, int(rows * arguments.changed))
            runs[f"refresh, change {i}"] = measure(*again)
        runs["history"] = measure("history", sample.name, "--json")
        publish = measure("publish", sample.name, *options, *ANEW, "--timings")
        runs["publish, all anew"] = publish
    report(runs, changed=arguments.changed)
    say(f"remembered at first: {bytes_a_row:.1f} bytes a row")
    found = json.loads(runs["history"].output)["compositions"]
    results = [one["result"] for each in found for one in each["results"]]
    failed = [one for one in results if one["verdict"] != "passed"]
    say(f"of {len(results)} figures of cells, {len(failed)} fail: {failed or 'none'}")


def report(runs: dict[str, Run], *, changed: float) -> None:
    """Print every run, and whether it takes at most its share of a first publication."""
    own = runs["publish, the first"]
    base = runs.get("publish, before", own)
    shares = {
        "refresh": (base, 1 / 5 if changed > FEW else 1 / 8),
        "refresh --if-changed": (base, 1 / 20),
        "publish, all anew": (own, 1.5),
    }
    if base is not own:
        shares["publish, the first"] = (base, 0.68)
    report_head()
    for what, run in runs.items():
        share = shares.get(what) or shares.get(what.partition(",")[0])
        bar = Bar(cpu=share[1] * (share[0].cpu + share[0].server)) if share else None
        report_command(what, run, bar)
        for name, seconds in run.stages.items():
            say(f"    {name:<40} {seconds:>8.2f}")


if __name__ == "__main__":
    main()
