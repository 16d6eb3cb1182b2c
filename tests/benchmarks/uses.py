"""Measure what analysts feel of a publication: COUNT queries and classifiers, by algorithm.

    python tests/benchmarks/uses.py counts         # 1,000 queries of each selectivity
    python tests/benchmarks/uses.py classifiers    # learned from releases, tested on originals
    python tests/benchmarks/uses.py sql            # counts by the functions in the database

The first two publish Adult in memory by several algorithms, with the same tight labels, and ask and
learn as dbanon's own reports do (dbanon/anonymization/utility). CPU seconds are those of the whole
process. The last one publishes to a server of its own, asks it with the functions for analysts, and
holds their bounds against the source: the exit code is 1 if one does not hold.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

from measuring import say

WIDTHS = {"algorithm": 26}


def show(rows) -> None:
    """Print each row as soon as it is there."""
    told = False
    for row in rows:
        if not told:
            say("  ".join(f"{name:>{_width(name)}}" for name in row))
            told = True
        say("  ".join(f"{_text(value):>{_width(name)}}" for name, value in row.items()))


def _width(name):
    return WIDTHS.get(name, max(len(name), 6))


def _text(value):
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("counts", "classifiers", "sql"))
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--k", type=int, default=5, help="of the releases that sql asks")
    parser.add_argument("--seed", type=int, default=1, help="of the queries that sql asks")
    chosen = parser.parse_args()
    if chosen.what == "sql":
        from analysts.sql_counts import compare

        sys.exit(0 if compare(queries=chosen.queries, k=chosen.k, seed=chosen.seed) else 1)
    say(f"Python {sys.version.split()[0]}, {os.cpu_count()} processors")
    if chosen.what == "counts":
        from analysts import counts

        show(counts.lines(chosen.queries))
    else:
        from analysts import classifiers

        show(classifiers.lines())
    say(f"{time.process_time():.0f} CPU seconds")


if __name__ == "__main__":
    main()
