"""Measure dbanon as a user meets it: whole processes, on an embedded server of their own.

    python tests/benchmarks/run.py            # a million rows; a few minutes
    python tests/benchmarks/run.py --quick    # 100,000 rows, every command once
    python tests/benchmarks/run.py --compare  # what each algorithm costs on Adult; draws a picture
    python tests/benchmarks/run.py --compare auto,mondrian

Kernels are compiled before anything is measured. CPU seconds and peak memory are those of the
command, without the server. The floor is what the server alone needs to hand out the table, take
back a group for each row, write the copy and count its classes.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from measuring import (
    Bar,
    apart,
    measure,
    median,
    own_server,
    report_command,
    report_floor,
    report_head,
    report_publication,
    say,
)
from samples.resampled import LARGE, floor, prepare

if TYPE_CHECKING:
    from measuring import Run

PICTURE = Path(__file__).parents[2] / "docs" / "loss.svg"
MODELS = ("--k", "5", "--l", "3", "--algorithm", "mondrian")
# What is published again is not held against what was published before.
ANEW = ("--new-series", "--recipients-changed")


def publish(table: str, *options: str) -> Run:
    return measure("publish", table, *MODELS, *options, "--as", "table", "--json", "--timings")


def benchmark(*, rows: int, repeats: int) -> None:
    report_head()
    shown = median([measure("--help") for _ in range(repeats)])
    report_command("dbanon --help", shown, Bar(0.4))
    measure("demo", "--dataset", "adult")  # loads the table, and compiles what is not compiled
    adult = median([publish("adult", *ANEW) for _ in range(repeats)])
    report_publication("dbanon publish adult (30,162 rows)", adult, Bar(4.0))
    prepare(LARGE, rows)
    large = publish("large")
    bar = Bar(15.0, 2 * 2**30) if rows == 1_000_000 else None
    report_publication(f"dbanon publish large ({rows:,} rows)", large, bar)
    report_floor(apart(floor, LARGE), large)


def compare(names: str) -> None:
    """Print the costs at k = 5 and l = 3, and draw the loss against k."""
    which = ("--algorithms", names) if names else ()
    measure("demo", "--dataset", "adult")
    say(measure("plan", "adult", "--compare", *which).output)
    PICTURE.unlink(missing_ok=True)
    measure("plan", "adult", "--compare", *which, "--plot", str(PICTURE))
    say(f"{PICTURE} written")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="100,000 rows, every command once")
    parser.add_argument(
        "--compare",
        nargs="?",
        const="",
        metavar="NAME,NAME",
        help="algorithms, the usual ones alone",
    )
    arguments = parser.parse_args()
    quick = arguments.quick
    say(f"Python {sys.version.split()[0]}, {os.cpu_count()} processors")
    with own_server():
        if arguments.compare is not None:
            compare(arguments.compare)
        else:
            benchmark(rows=100_000 if quick else 1_000_000, repeats=1 if quick else 3)


if __name__ == "__main__":
    main()
