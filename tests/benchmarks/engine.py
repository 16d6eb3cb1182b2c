"""Compare the search with its reference figures: NCP of what is published, and CPU seconds.

    python tests/benchmarks/engine.py            # everything; a few minutes
    python tests/benchmarks/engine.py --quick    # k = 5 and 10, without peers and bounds
    python tests/benchmarks/engine.py --best 60  # also --effort best, a minute for each line
    python tests/benchmarks/engine.py --distinct 50 100 --rows 20000 --peers
    python tests/benchmarks/engine.py --wide --rows 100000
    python tests/benchmarks/engine.py --json     # the same tables for programs

Labels are tight: intervals without a grid, and lowest common ancestors. Every publication is
scored twice and held against its raw values (see published.py). Seconds are those of the search,
kernels ready and data loaded; CPU seconds count all threads. The exact greedy k-member of the
same k tells how fast the machine is. ARX is the best of its local recodings, its classes scored
with the same tight labels. ``--distinct`` compares on made-up tables without equal rows instead
(see samples/comparison.py); the exit code is 1 if they lose more than they should.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple
from unittest import mock

import numpy as np
from bounds.records import sample_bounds
from measuring import say
from samples.comparison import compare_all
from samples.datasets import load
from samples.distinct import TABLES
from samples.published import publish
from samples.widths import compare_widths

from dbanon.anonymization.auto import algorithm
from dbanon.anonymization.auto.start import Start, lattice, start_by_peeling, start_in_blocks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from samples.datasets import Dataset
    from samples.published import Scored

QUICK = (5, 10)
SAMPLE = 500


class Line(NamedTuple):
    """A line of the acceptance: the bars, in percent and CPU seconds, and what ARX loses."""

    k: int
    l: int
    bar: float
    arx: float
    cpu: float | None = None


ADULT = (
    Line(2, 1, 0.81, 1.14, 1.1),
    Line(5, 1, 2.39, 2.95, 3.1),
    Line(10, 1, 3.94, 4.57, 5.3),
    Line(25, 1, 6.72, 7.34, 6.3),
    Line(50, 1, 9.42, 10.09, 6.4),
    Line(100, 1, 12.83, 13.56, 6.1),
    Line(5, 3, 2.58, 3.34, 2.7),
    Line(10, 3, 4.03, 4.71, 3.9),
)
PATIENTS = (Line(5, 1, 0.70, 1.20), Line(10, 1, 1.48, 2.29), Line(5, 3, 2.17, 6.43))
NINE = (Line(5, 1, 4.76, 5.60), Line(10, 1, 7.00, 8.25))
SETS = (Line(5, 1, 1.58, 1.90), Line(10, 1, 2.90, 3.42))
K_MEMBER_CPU = {2: 5.3, 5: 3.6, 10: 3.0, 25: 2.7, 50: 2.8, 100: 2.4}  # of the reference
PEERS = {
    "mondrian": {},
    "mondrian-relaxed": {},
    "top-down": {},
    "k-member": {"cost": "ncp"},
}

Row = dict[str, object]
COLUMNS = {
    "data": "<13",
    "algorithm": "<26",
    "k": ">4",
    "l": ">2",
    "allowed": ">8.3f",
    "left out": ">9,",
    "NCP %": ">8.4f",
    "+-": ">6.3f",
    "bar %": ">7.2f",
    "loss": ">7",
    "ARX %": ">7.2f",
    "/ARX": ">6.3f",
    "bound %": ">8.3f",
    "/bound": ">7.2f",
    "CPU s": ">7.2f",
    "wall s": ">7.2f",
    "CPU bar": ">8.1f",
    "time": ">7",
    "smallest": ">9,",
    "k-member s": ">11.2f",
    "reference s": ">12.1f",
    "best %": ">8.4f",
    "gain %": ">7.2f",
}


def judged(value: float, bar: float) -> str:
    return "met" if value <= bar else "MISSED"


def against(line: Line, scored: Scored) -> Row:
    """Hold a publication against the bars of its line."""
    loss = 100 * scored.ncp
    row = {
        "k": line.k,
        "l": line.l,
        "NCP %": loss,
        "bar %": line.bar,
        "loss": judged(loss, line.bar),
        "ARX %": line.arx,
        "/ARX": loss / line.arx,
        "CPU s": scored.cpu,
        "wall s": scored.wall,
        "smallest": scored.smallest,
    }
    if line.cpu is not None:
        row |= {"CPU bar": line.cpu, "time": judged(scored.cpu, line.cpu)}
    return row


def adult_lines(adult: Dataset, lines: Iterable[Line], *, limit: float | None) -> Iterator[Row]:
    speed = {}
    for line in lines:
        scored = publish(adult, k=line.k, l=line.l)
        row = against(line, scored)
        if line.k not in speed:
            greedy = publish(adult, k=line.k, algorithm="k-member", params={"cost": "ncp"})
            speed[line.k] = greedy.cpu
        row |= {"k-member s": speed[line.k], "reference s": K_MEMBER_CPU[line.k]}
        if limit is not None:
            params = {"effort": "best", "time_limit": limit}
            best = publish(adult, k=line.k, l=line.l, params=params)
            gain = 100 * (1 - best.ncp / scored.ncp)
            row |= {"best %": 100 * best.ncp, "gain %": gain}
        yield row


def other_lines() -> Iterator[Row]:
    cases = (
        ("patients", load("patients"), PATIENTS),
        ("Adult QI9", load("adult", more_quasi=("occupation",)), NINE),
        ("Adult, sets", load("adult", sets=True), SETS),
    )
    for name, dataset, lines in cases:
        for line in lines:
            yield {"data": name} | against(line, publish(dataset, k=line.k, l=line.l))


@contextmanager
def starting(way: str) -> Iterator[None]:
    """Have the search begin in this way without trying both."""

    def chosen(space, *, seed, **_):
        if way == "blocks":
            return Start(start_in_blocks(space, seed=seed), way)
        return Start(start_by_peeling(space, lattice(space), seed=seed), way)

    with mock.patch.object(algorithm, "start", chosen):
        yield


def starts_and_peers(adult: Dataset, *, k: int) -> Iterator[Row]:
    for way in ("peeling", "blocks"):
        with starting(way):
            yield one(way, publish(adult, k=k, search=False), k=k)
            for effort in ("fast", "balanced"):
                scored = publish(adult, k=k, params={"effort": effort})
                yield one(f"{way}, {effort}", scored, k=k)
    for effort in ("fast", "balanced"):
        scored = publish(adult, k=k, params={"effort": effort})
        yield one(f"auto {effort}: {scored.start}", scored, k=k)
    for name, params in PEERS.items():
        yield one(name, publish(adult, k=k, algorithm=name, params=params), k=k)


def one(name: str, scored: Scored, *, k: int) -> Row:
    return {
        "algorithm": name,
        "k": k,
        "NCP %": 100 * scored.ncp,
        "CPU s": scored.cpu,
        "wall s": scored.wall,
    }


def budgets(adult: Dataset, sizes: Iterable[int]) -> Iterator[Row]:
    for k in sizes:
        for allowed in (0.0, 0.01, 0.02, 0.05):
            scored = publish(adult, k=k, max_suppressed=allowed)
            yield {
                "k": k,
                "allowed": allowed,
                "left out": scored.suppressed,
                "NCP %": 100 * scored.ncp,
                "CPU s": scored.cpu,
            }


def bounds(adult: Dataset, sizes: Iterable[int]) -> Iterator[Row]:
    for k in sizes:
        rows, least = sample_bounds(adult.encoded, k=k, rows=SAMPLE)
        scored = publish(adult, k=k)
        if (least > scored.losses[rows].mean(axis=1) + 1e-12).any():
            sys.exit(f"k = {k}: a row loses less than its lower bound")
        yield {
            "k": k,
            "NCP %": 100 * scored.ncp,
            "bound %": 100 * least.mean(),
            "+-": 100 * least.std(ddof=1) / np.sqrt(SAMPLE),
            "/bound": scored.ncp / least.mean(),
        }


def show(title: str, rows: Iterable[Row], *, silent: bool) -> list[Row]:
    """Print each row as soon as it is there; return all."""
    tell = (lambda _="": None) if silent else say
    tell(f"\n{title}")
    shown = []
    for row in rows:
        if not shown:
            tell(" ".join(format(name, COLUMNS[name].partition(".")[0].strip(",")) for name in row))
        tell(" ".join(format(value, COLUMNS[name]) for name, value in row.items()))
        shown.append(row)
    return shown


def tables(*, quick: bool, limit: float | None) -> Iterator[tuple[str, Iterator[Row]]]:
    adult = load("adult")
    lines = [line for line in ADULT if line.k in QUICK or not quick]
    yield "Adult, eight quasi-identifiers", adult_lines(adult, lines, limit=limit)
    yield "Other tables, nine quasi-identifiers, sets of values", other_lines()
    if not quick:
        yield "Starts, efforts and other algorithms", starts_and_peers(adult, k=10)
        yield "Adult with rows left out, which lose 1 everywhere", budgets(adult, QUICK)
        yield f"A bound from below, of {SAMPLE} rows", bounds(adult, (5, 10, 50))


def warm_up() -> None:
    """Load the machine code of every algorithm, or compile it."""
    few = load("adult", rows=2_000)
    for l in (1, 3):
        publish(few, k=5, l=l)
    for name, params in PEERS.items():
        publish(few, k=5, algorithm=name, params=params)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="k = 5 and 10, fewer tables")
    parser.add_argument("--best", type=float, metavar="SECONDS", help="also with --effort best")
    parser.add_argument("--json", action="store_true", help="print one document instead")
    parser.add_argument("--distinct", type=int, nargs="+", metavar="K", help="distinct rows")
    parser.add_argument("--wide", action="store_true", help="4 to 24 columns, and 15 categories")
    parser.add_argument("--rows", type=int, default=60_000, help="of these tables")
    parser.add_argument("--tables", nargs="+", choices=tuple(TABLES), default=tuple(TABLES))
    parser.add_argument("--peers", action="store_true", help="of these also k-member, for minutes")
    chosen = parser.parse_args()
    if chosen.wide:
        sys.exit(int(not compare_widths(chosen.rows)))
    if chosen.distinct:
        where = {"rows": chosen.rows, "names": chosen.tables, "peers": chosen.peers}
        sys.exit(int(not compare_all(chosen.distinct, best=chosen.best is not None, **where)))
    machine = f"Python {sys.version.split()[0]}, {os.cpu_count()} processors"
    if not chosen.json:
        say(machine)
    warm_up()
    found = {
        title: show(title, rows, silent=chosen.json)
        for title, rows in tables(quick=chosen.quick, limit=chosen.best)
    }
    if chosen.json:
        say(json.dumps({"machine": machine, "tables": found}, indent=2))


if __name__ == "__main__":
    main()
