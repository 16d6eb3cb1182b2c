"""Search a large table of people by every effort, side by side, and publish it as a whole.

    python tests/benchmarks/efforts.py                  # 2,000,000 rows; several minutes
    python tests/benchmarks/efforts.py --rows 200000 --k 10 --l 3
    python tests/benchmarks/efforts.py --only fast mondrian
    python tests/benchmarks/efforts.py --only publish
    python tests/benchmarks/efforts.py --promises 1000  # small tables instead; ten minutes

The table has eleven quasi-identifiers (see samples/people.py). Each search runs in a process of its
own, kernels ready and the table encoded before the clock starts: seconds are those of the search,
CPU seconds count all threads, the peak of memory is that of the process. ``publish`` is a whole
command with the effort that is the default, on an embedded server of its own. The exit code is 1 if
a search with a time limit that Mondrian could keep loses more than Mondrian; with ``--promises``,
if an effort loses more than it promises on a small table (see samples/promises.py).
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import resource
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from measuring import (
    MEBIBYTE,
    Bar,
    apart,
    measure,
    own_server,
    report_head,
    report_publication,
    say,
)
from samples.people import NAME, encoded_people, prepare
from samples.promises import hold

ROWS, LIMIT, SEED, FEW = 2_000_000, 30.0, 1, 2_000
BAR = Bar(90.0)
MONDRIAN, LIMITED, PUBLISH = "mondrian", "limited", "publish"
SEARCHES: dict[str, dict[str, object]] = {
    "balanced": {"params": {"effort": "balanced"}},
    "fast": {"params": {"effort": "fast"}},
    MONDRIAN: {"algorithm": "mondrian"},
    LIMITED: {"params": {"time_limit": LIMIT}},
}


class Found(NamedTuple):
    """What a search found and used: NCP in percent, seconds, MiB, and how it began."""

    loss: float
    wall: float
    cpu: float
    peak: float
    start: str


def search(name: str, rows: int, k: int, l: int) -> Found:
    """Make the table and search it; a few rows come first, to load the kernels."""
    from samples.published import Meter

    from dbanon.anonymization.problem import Problem, solve

    with tempfile.TemporaryDirectory() as folder:
        for size in (FEW, rows):
            people = encoded_people(size, Path(folder), k=k, l=l)
            policy = dataclasses.replace(people.policy, **{"algorithm": "auto"} | SEARCHES[name])
            if size == FEW and name == LIMITED:
                policy = dataclasses.replace(policy, params={"time_limit": 1.0})
            stages = Meter()
            outcome = solve(Problem(people.encoded, policy), seed=SEED, stages=stages)
    unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / MEBIBYTE
    wall, cpu = stages.seconds["cluster"], stages.cpu["cluster"]
    return Found(100 * outcome.loss.ncp, wall, cpu, peak, ", ".join(stages.remarks))


def compare(names: list[str], *, rows: int, k: int, l: int) -> dict[str, Found]:
    say(f"{'search':<12} {'NCP %':>8} {'wall s':>8} {'CPU s':>8} {'peak MiB':>9}")
    found = {}
    for name in names:
        found[name] = one = apart(search, name, rows, k, l)
        shown = f"{one.loss:>8.3f} {one.wall:>8.1f} {one.cpu:>8.1f} {one.peak:>9,.0f}"
        say(f"{name:<12} {shown}  {one.start}")
    return found


def publish(*, rows: int, k: int, l: int) -> None:
    with own_server():
        measure("demo", "--dataset", "adult")  # compiles what is not compiled
        prepare(rows, k=k, l=l)
        run = measure("publish", NAME, "--json", "--timings")
        report_head()
        bar = BAR if rows == ROWS else None
        report_publication(f"dbanon publish {NAME} ({rows:,} rows)", run, bar)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--k", type=int, default=5)
    parser.add_argument("--l", type=int, default=1)
    choices = (*SEARCHES, PUBLISH)
    parser.add_argument("--only", nargs="+", choices=choices, default=choices, metavar="NAME")
    parser.add_argument("--promises", type=int, metavar="TABLES", help="compare on small tables")
    chosen = parser.parse_args()
    if chosen.promises:
        sys.exit(int(not hold(chosen.promises)))
    size = {"rows": chosen.rows, "k": chosen.k, "l": chosen.l}
    say(f"Python {sys.version.split()[0]}, {os.cpu_count()} processors, {size}")
    found = compare([name for name in SEARCHES if name in chosen.only], **size)
    if PUBLISH in chosen.only:
        publish(**size)
    if {MONDRIAN, LIMITED} <= found.keys() and found[MONDRIAN].wall <= LIMIT:
        sys.exit(int(found[LIMITED].loss > found[MONDRIAN].loss))


if __name__ == "__main__":
    main()
