"""Adult published by other tools and by dbanon, scored alike; see README.md.

    python tests/benchmarks/peers/compare.py --python A/bin/python B/bin/python --k 5 10
    python tests/benchmarks/peers/compare.py --published ARX=arx.csv --k 5

Rows with equal published quasi-identifiers are a class, missing rows are suppressed. Every class is
scored with tight labels: the least that a publication of these classes can lose. With pyCANON in
one of the environments, it counts k of what dbanon publishes, too.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from measuring import say
from samples.datasets import load
from samples.published import losses_of, publish

from dbanon.anonymization.outcome import Outcome, published_values
from dbanon.domain.assignment import Assignment

if TYPE_CHECKING:
    from samples.datasets import Dataset

HERE = Path(__file__).parent
MODULES = {
    "anjana": "anjana",
    "lighthouse": "project_lighthouse_anonymize",
    "pycanon": "pycanon",
}
OWN = {
    "dbanon auto": {},
    "dbanon auto fast": {"params": {"effort": "fast"}},
    "dbanon mondrian": {"algorithm": "mondrian", "params": {}},
    "dbanon k-member": {"algorithm": "k-member", "params": {"cost": "ncp"}},
}
COUNTED = """
import sys, pandas
from pycanon.anonymity import k_anonymity
table = pandas.read_csv(sys.argv[1], dtype=str)
print(k_anonymity(table, [name for name in table.columns if name != "row"]))
"""


class Line(NamedTuple):
    """What a tool published: NCP in percent, rows left out, least class, classes, seconds."""

    ncp: float
    suppressed: int
    least: int
    classes: int
    cpu: float | None = None
    wall: float | None = None


def prepare(dataset: Dataset, folder: Path) -> None:
    """Write the table, the names of its quasi-identifiers, and their taxonomies."""
    from pyarrow import csv as arrow_csv

    quasi = [column.name for column in dataset.encoded.quasi]
    numbers = [name for name in quasi if name not in dataset.trees]
    table = dataset.source.select(quasi)
    table = table.add_column(0, "row", [np.arange(table.num_rows)])
    arrow_csv.write_csv(table, folder / "table.csv")
    (folder / "quasi.json").write_text(json.dumps([quasi, numbers]), encoding="utf-8")
    for name, file in dataset.trees.items():
        (folder / f"tree_{name}.csv").write_bytes(file.read_bytes())


def read_classes(dataset: Dataset, file: Path) -> np.ndarray:
    """Return the class of each row of a published file, -1 if it is not there."""
    quasi = [column.name for column in dataset.encoded.quasi]
    group, numbers = np.full(dataset.encoded.n_rows, -1, np.int32), {}
    with file.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            label = tuple(row[name] for name in quasi)
            group[int(row["row"])] = numbers.setdefault(label, len(numbers))
    return group


def scored(dataset: Dataset, group: np.ndarray) -> Line:
    """Score classes with tight labels."""
    assignment = Assignment(group, int(group.max()) + 1)
    outcome = Outcome(assignment, published_values(dataset.encoded, assignment), None)
    least = int(np.bincount(group[group >= 0]).min())
    ncp = 100 * float(losses_of(dataset, outcome).mean())
    return Line(ncp, assignment.n_suppressed, least, assignment.n_groups)


def by_peer(dataset: Dataset, name: str, k: int, *, python: Path, folder: Path) -> Line:
    """Run a tool in its own environment, and score what it published."""
    command = [python, HERE / "run_peer.py", name, folder, str(k)]
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=without_ours())
    cpu, wall = json.loads(run.stdout.splitlines()[-1])
    line = scored(dataset, read_classes(dataset, folder / f"{name}.csv"))
    return line._replace(cpu=cpu, wall=wall)


def by_us(dataset: Dataset, k: int, changes: dict, file: Path) -> Line:
    """Publish with dbanon, write what readers see, and score it."""
    found = publish(dataset, k=k, **changes)
    group, columns = found.outcome.assignment.group, found.outcome.values.columns
    with file.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.writer(lines)
        writer.writerow(["row", *(column.name for column in columns)])
        for row in np.flatnonzero(group >= 0).tolist():
            labels = (column.labels[column.index[group[row]]] for column in columns)
            writer.writerow([row, *labels])
    line = scored(dataset, read_classes(dataset, file))
    return line._replace(cpu=found.cpu, wall=found.wall)


def counted(file: Path, python: Path) -> int:
    """Return k of a published file as pyCANON counts it."""
    command = [python, "-c", COUNTED, file]
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=without_ours())
    return int(run.stdout)


def without_ours() -> dict[str, str]:
    """Return the environment without our packages, which another tool must not import."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def environments(pythons: list[Path]) -> dict[str, Path]:
    """Return an interpreter for each tool that one of them has."""
    found = {}
    for name, module in MODULES.items():
        for python in (one.absolute() for one in pythons):  # a link names its environment
            if name not in found and has(python, module):
                found[name] = python
    return found


def has(python: Path, module: str) -> bool:
    """Return True if an environment has a module."""
    command = [python, "-c", f"import {module}"]
    run = subprocess.run(command, stderr=subprocess.DEVNULL, check=False, env=without_ours())
    return run.returncode == 0


def show(name: str, k: int, line: Line, told: str = "") -> None:
    seconds = [f"{'-' if s is None else format(s, '.1f'):>8}" for s in (line.cpu, line.wall)]
    shown = f"{line.ncp:>8.3f} {line.suppressed:>7,} {line.least:>6} {line.classes:>8,}"
    say(f"{k:>4} {name:<18} {shown} {' '.join(seconds)} {told}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--k", type=int, nargs="+", default=[5, 10])
    parser.add_argument("--rows", type=int, help="the first rows only")
    parser.add_argument("--python", type=Path, nargs="+", default=[], help="interpreters of tools")
    parser.add_argument("--published", nargs="+", default=[], metavar="NAME=FILE")
    chosen = parser.parse_args()
    there = environments(chosen.python)
    pycanon = there.pop("pycanon", None)
    dataset = load("adult", rows=chosen.rows)
    say(
        f"{'k':>4} {'tool':<18} {'NCP %':>8} {'left out':>8} {'least':>5} {'classes':>8} CPU s wall"
    )
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        prepare(dataset, folder)
        for k in chosen.k:
            for name, changes in OWN.items():
                file = folder / "own.csv"
                line = by_us(dataset, k, changes, file)
                told = f"pyCANON: k = {counted(file, pycanon)}" if pycanon else ""
                show(name, k, line, told)
            for name, python in there.items():
                show(name, k, by_peer(dataset, name, k, python=python, folder=folder))
            for one in chosen.published:
                name, _, file = one.partition("=")
                show(name, k, scored(dataset, read_classes(dataset, Path(file))))


if __name__ == "__main__":
    main()
