"""Compare microaggregation with the reference figures; losses are 100 SSE / SST of z-scores.

    python tests/benchmarks/microaggregation.py            # with a million rows; some minutes
    python tests/benchmarks/microaggregation.py --quick    # 100,000 rows, best for a second

Kernels are compiled before anything is measured. CPU seconds are those of all threads.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from builders import encoded, read_numbers

from dbanon.anonymization.algorithms.microaggregation.microaggregation import (
    Mdav,
    Microaggregation,
    mdav_points,
)
from dbanon.anonymization.interfaces import Requirement

EIA = "utilityid resrevenue ressales comrevenue comsales indrevenue indsales"
EIA += " othrevenue othrsales totrevenue totsales"
SETS = {"tarragona": None, "census": None, "eia": EIA.split()}
SIZES = (3, 4, 5, 10)
MDAV = {
    "tarragona": (16.932587622824, 19.545962037987, 22.461859662645, 33.192884768498),
    "census": (5.692186278771, 7.494699832556, 9.088435497636, 14.155930425312),
    "eia": (0.482938725309, 0.671345140942, 1.666675161633, 3.839670225247),
}
LOCAL_SEARCH = {
    "tarragona": (14.931, 17.409, 20.750, 30.680),
    "census": (5.206, 6.734, 8.053, 12.210),
    "eia": (0.361, 0.533, 0.878, 2.011),
}
BEST_SEEN = {
    "tarragona": (14.480, 17.099, 20.165, 30.113),
    "census": (4.712, 6.064, 7.283, 11.376),
    "eia": (0.349, 0.483, 0.730, 1.934),
}
COLUMNS = 5


def say(text=""):
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def measured(algorithm, table, *, k):
    """Return the loss, wall seconds and CPU seconds of a run; sizes are checked."""
    wall, cpu = time.perf_counter(), time.process_time()
    group = algorithm.assign(table, Requirement(k), seed=1).group
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    size = np.bincount(group)
    if not k <= size.min() <= size.max() <= 2 * k - 1:
        sys.exit(f"groups of {size.min()} to {size.max()} rows at k = {k}")
    points, error = mdav_points(table), 0.0
    for column in points.T:
        means = np.bincount(group, column) / size
        error += float(((column - means[group]) ** 2).sum())
    return 100.0 * error / float((points**2).sum()), wall, cpu


def reference_sets(*, limit):
    best = Microaggregation(effort="best", time_limit=limit)
    say(
        f"{'set':<12}{'k':>3}{'mdav':>17} {'off by':>8}{'fast':>9} {'ratio':>6} {'CPU s':>6}"
        f"{'best':>9} {'ratio':>6} {'CPU s':>6}"
    )
    for name, columns in SETS.items():
        table = encoded(read_numbers(name, columns))
        for i, k in enumerate(SIZES):
            exact = measured(Mdav(), table, k=k)[0]
            quick, _, quick_cpu = measured(Microaggregation(), table, k=k)
            long, _, long_cpu = measured(best, table, k=k)
            say(
                f"{name:<12}{k:>3}{exact:>17.12f} {abs(exact - MDAV[name][i]):>8.0e}"
                f"{quick:>9.3f} {quick / LOCAL_SEARCH[name][i]:>6.3f} {quick_cpu:>6.2f}"
                f"{long:>9.3f} {long / BEST_SEEN[name][i]:>6.3f} {long_cpu:>6.2f}"
            )


def normal(rows):
    values = np.random.default_rng(0).normal(size=(rows, COLUMNS))
    return encoded({f"x{j}": values[:, j].tolist() for j in range(COLUMNS)})


def large(algorithm, *, rows):
    loss, wall, cpu = measured(algorithm, normal(rows), k=5)
    name = type(algorithm).__name__
    say(f"{name:<18}{rows:>10,} x {COLUMNS}{loss:>9.4f} {wall:>7.2f} {cpu:>7.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="100,000 rows, best for a second")
    quick = parser.parse_args().quick
    say(f"Python {sys.version.split()[0]}, {os.cpu_count()} processors")
    start = time.process_time()
    for algorithm in (Mdav(), Microaggregation()):
        measured(algorithm, normal(1_000), k=5)
    say(f"compiled or loaded in {time.process_time() - start:.1f} CPU s\n")
    reference_sets(limit=1.0 if quick else 5.0)
    say(f"\n{'standard normal':<18}{'rows':>14}{'loss':>9} {'wall s':>7} {'CPU s':>7}")
    large(Mdav(), rows=100_000)
    large(Microaggregation(), rows=100_000 if quick else 1_000_000)


if __name__ == "__main__":
    main()
