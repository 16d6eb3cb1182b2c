"""Search under strict models, large k, and persons of many rows; beside Mondrian and k-member.

    python tests/benchmarks/strict.py                            # everything; many minutes
    python tests/benchmarks/strict.py --only entropy "k = 1000"
    python tests/benchmarks/strict.py --only entropy --algorithms "auto fast" auto
    python tests/benchmarks/strict.py --rows 20000               # smaller tables

Each search runs in a process of its own, kernels ready: CPU seconds are those of the search, of all
threads, the peak of memory is that of the process. The loss is that of the published classes, which
are certified. The shapes are in samples/strict.py. ``--main FOLDER`` runs the package of another
tree as well, each line after ours. Of persons of several rows, the loss of their own intervals is
printed first: no search can lose less.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from measuring import MEBIBYTE, say
from samples.strict import SHAPES, problem, visits

SEED, FEW = 1, 3_000


class Found(NamedTuple):
    """NCP in percent, CPU and wall seconds of the search, MiB, and how it began."""

    loss: float
    cpu: float
    wall: float
    peak: float
    classes: int
    start: str


def search(name: str, algorithm: str, rows: int | None) -> Found:
    """Search twice if a kernel was compiled; a few rows come first, to load the kernels."""
    from samples.published import Meter

    from dbanon.anonymization.problem import solve

    shape, meter = SHAPES[name], Meter()
    with tempfile.TemporaryDirectory() as folder:
        sizes = [rows] if shape.rows <= FEW else [max(FEW, 2 * shape.k), rows]
        for size in sizes:
            asked = problem(shape, algorithm, rows=size, folder=Path(folder))
            meter = Meter()
            outcome = solve(asked, seed=SEED, stages=meter)
        if "compile" in meter.seconds:
            meter = Meter()
            outcome = solve(asked, seed=SEED, stages=meter)
    unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / MEBIBYTE
    start = ", ".join(meter.remarks).removeprefix("start: ")
    wall, cpu = meter.seconds["cluster"], meter.cpu["cluster"]
    return Found(100 * outcome.loss.ncp, cpu, wall, peak, outcome.loss.n_classes, start)


def own_loss(name: str, rows: int | None) -> float:
    """Return the NCP in percent if each person of several rows were a class of its own."""
    from dbanon.anonymization.auto.space import make_space, total_cost
    from dbanon.anonymization.interfaces import Requirement
    from dbanon.anonymization.persons import profiles

    with tempfile.TemporaryDirectory() as folder:
        asked = problem(SHAPES[name], "auto", rows=rows, folder=Path(folder))
    assert asked.subjects is not None
    space = make_space(profiles(asked.encoded, asked.subjects), Requirement(1), loss="ncp")
    cells = space.n_rows * sum(column.rule.weight for column in asked.encoded.quasi)
    return 100 * total_cost(space, np.arange(space.n_rows, dtype=np.int32)) / cells


def searched_by(tree: Path, name: str, algorithm: str, rows: int | None) -> Found:
    """Search with the package of a tree, in a process of its own."""
    command = [sys.executable, __file__, "--one", name, algorithm, str(rows or 0)]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    found = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return Found(*json.loads(found.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=tuple(SHAPES), default=tuple(SHAPES))
    parser.add_argument("--algorithms", nargs="+", metavar="NAME", help="instead of auto and peers")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--main", type=Path, metavar="FOLDER", help="another tree, for comparison")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        name, algorithm, rows = chosen.one
        say(json.dumps(search(name, algorithm, int(rows) or None)))
        return
    own = Path(__file__).parents[2]
    trees = {"": own} | ({" (main)": chosen.main.resolve()} if chosen.main else {})
    say(f"Python {sys.version.split()[0]}, {os.cpu_count()} processors")
    say(f"{'shape':<16} {'search':<18} {'NCP %':>8} {'CPU s':>7} {'wall s':>7} {'MiB':>6} classes")
    for name in chosen.only:
        shape = SHAPES[name]
        if shape.make is visits:
            say(f"{name:<16} {'each alone':<18} {own_loss(name, chosen.rows):>8.3f}")
        for algorithm in chosen.algorithms or ("auto", *shape.peers):
            for which, tree in trees.items():
                one = searched_by(tree, name, algorithm, chosen.rows)
                shown = f"{one.loss:>8.3f} {one.cpu:>7.2f} {one.wall:>7.2f} {one.peak:>6,.0f}"
                bar = shape.bars.get(algorithm)
                asked = f"  <= {bar[0]:g} %, {bar[1]:g} s" if bar else ""
                told = f"{one.classes:>7,} {one.start}{asked}"
                say(f"{name:<16} {algorithm + which:<18} {shown} {told}")


if __name__ == "__main__":
    main()
