"""Measure one publication of a table of any size, stage by stage, beside the server's own floor.

    python tests/benchmarks/scale.py                           # 1,000,000 rows of Adult
    python tests/benchmarks/scale.py --rows 10000000 --k 10    # other options go to dbanon publish
    python tests/benchmarks/scale.py --hard --algorithm mondrian
    python tests/benchmarks/scale.py --k 10 --l 1 --report  # and report what was published

Adult resampled has many equal rows. ``--hard`` is a table of three dense numbers and five
categories, of which few are equal. Kernels are compiled before anything is measured.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from measuring import (
    Bar,
    apart,
    measure,
    own_server,
    report_command,
    report_floor,
    report_head,
    report_publication,
    say,
)
from samples.resampled import HARD, LARGE, floor, prepare

if TYPE_CHECKING:
    from samples.resampled import Sample

GIBIBYTE = 2**30
OF_REPORTS = {1_000_000: Bar(60.0)}
BARS = {1_000_000: Bar(15.0, 2 * GIBIBYTE), 10_000_000: Bar(360.0, 8 * GIBIBYTE)}


def benchmark(sample: Sample, rows: int, options: list[str], *, report: bool) -> None:
    measure("demo", "--dataset", "adult")  # brings the taxonomies
    anew = ("--new-series", "--recipients-changed")  # the demonstration has published it
    measure("publish", "adult", *options, *anew)  # compiles what is not compiled
    prepare(sample, rows)
    run = measure("publish", sample.name, *options, "--json", "--timings")
    say(" ".join(["dbanon publish", sample.name, *options]))
    report_head()
    report_publication(f"{sample.name} ({rows:,} rows)", run, BARS.get(rows))
    report_floor(apart(floor, sample), run)
    if report:
        told = measure("report", f"anon.{sample.name}", "--json")
        report_command(f"dbanon report anon.{sample.name}", told, OF_REPORTS.get(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--hard", action="store_true", help="three dense numbers among the columns")
    parser.add_argument("--report", action="store_true", help="report what was published, too")
    arguments, options = parser.parse_known_args()
    say(f"Python {sys.version.split()[0]}, {os.cpu_count()} processors")
    with own_server():
        sample = HARD if arguments.hard else LARGE
        benchmark(sample, arguments.rows, options, report=arguments.report)


if __name__ == "__main__":
    main()
