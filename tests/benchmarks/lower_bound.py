"""Hold ``auto`` against the optimum, or against bounds that no publication can undercut.

    python tests/benchmarks/lower_bound.py

Adult with eight quasi-identifiers and tight labels, nobody left out. Samples are random rows, or
the rows nearest to a random one, which are as dense as the whole table is; they are published by
themselves. Small ones are solved exactly (bounds/optimum.py), larger ones have the bound of the
linear program over all classes (bounds/prices.py), and that of the records beside it
(bounds/records.py); all pairs of the whole table bound k = 2 (bounds/pairs.py). A ratio is what
the publication loses over the optimum or bound; where no optimum was proved in time, over the
bound. CPU seconds are those of the bound.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from bounds.boxes import Boxes, Tuples
from bounds.optimum import best_of_classes, best_publication
from bounds.pairs import mend_by_pairs
from bounds.prices import mend_by_boxes, raise_prices
from bounds.records import sample_bounds
from measuring import say
from samples.datasets import load
from samples.published import publish

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from samples.datasets import Dataset

SMALL, LARGE, DENSE = 30, 300, 2_000
SAMPLES, SEED = 5, 40
SECONDS = 20.0
GAP, GAP_OF_SMALL = 0.005, 1e-4
HEAD = (
    f"{'rows':<22}{'k':>4}{'auto %':>9}{'best %':>9}{'from %':>9}{'to %':>9}"
    f"{'prices %':>10}{'records %':>11}{'auto / bound':>14}{'best / bound':>14}{'CPU s':>8}"
)


class Line(NamedTuple):
    """Losses in sums over all cells: of ``auto``, and what the optimum is at least and at most.

    prices, records: bounds of these names; None is what was not computed.
    """

    balanced: float
    best: float | None
    at_least: float
    at_most: float
    prices: float
    records: float | None
    cells: int
    cpu: float


def random_rows(random: np.random.Generator, n: int) -> Dataset:
    whole = load("adult").encoded.n_rows
    return load("adult", rows=np.sort(random.choice(whole, n, replace=False)))


def near_rows(random: np.random.Generator, n: int) -> Dataset:
    """Return the rows that are nearest to a random one by what the two lose together."""
    tuples = Tuples(load("adult").encoded)
    center = tuples.of_row[random.integers(len(tuples.of_row))]
    cost = np.array([tuples.cost([center, other]) for other in range(len(tuples))])
    return load("adult", rows=np.sort(np.argsort(cost[tuples.of_row], kind="stable")[:n]))


def published(dataset: Dataset, k: int, effort: str):
    """Return the classes of ``auto`` and what they lose."""
    scored = publish(dataset, k=k, params={"effort": effort})
    tuples = Tuples(dataset.encoded)
    classes = tuples.classes(scored.outcome.assignment.group)
    lost = sum(one.cost for one in classes)
    if abs(lost / tuples.cells - scored.ncp) > 1e-9:
        sys.exit("the loss of the classes is not that of what was published")
    return classes, lost


def solved(dataset: Dataset, k: int) -> Line:
    tuples = Tuples(dataset.encoded)
    _, balanced = published(dataset, k, "balanced")
    classes, best = published(dataset, k, "best")
    start = time.process_time()
    boxes = Boxes.of(tuples, k)
    mend = partial(mend_by_boxes, boxes)
    raised = raise_prices(tuples.count, mend, classes, gap=GAP_OF_SMALL)
    known = min(balanced, best, best_of_classes(tuples.count, raised.classes, seconds=SECONDS))
    optimum = best_publication(boxes, raised.prices, known, seconds=SECONDS)
    cpu = time.process_time() - start
    bound = float(tuples.count @ raised.prices)
    return Line(balanced, best, *optimum, bound, None, tuples.cells, cpu)


def bounded(dataset: Dataset, k: int) -> Line:
    tuples = Tuples(dataset.encoded)
    _, balanced = published(dataset, k, "balanced")
    classes, best = published(dataset, k, "best")
    start = time.process_time()
    mend = partial(mend_by_boxes, Boxes.of(tuples, k))
    raised = raise_prices(tuples.count, mend, classes, gap=GAP)
    cpu = time.process_time() - start
    _, least = sample_bounds(dataset.encoded, k=k, rows=dataset.encoded.n_rows)
    bound = float(tuples.count @ raised.prices)
    known = min(balanced, best)
    records = least.mean() * tuples.cells
    return Line(balanced, best, bound, known, bound, records, tuples.cells, cpu)


def paired(dataset: Dataset) -> Line:
    tuples = Tuples(dataset.encoded)
    classes, balanced = published(dataset, 2, "balanced")
    start = time.process_time()
    raised = raise_prices(tuples.count, partial(mend_by_pairs, tuples), classes, gap=GAP)
    cpu = time.process_time() - start
    bound = float(tuples.count @ raised.prices)
    return Line(balanced, None, bound, balanced, bound, None, tuples.cells, cpu)


def report(what: str, k: int, lines: list[Line]) -> None:
    """Print what samples lose together."""
    cells = sum(line.cells for line in lines)
    *losses, prices, records = (_total([line[i] for line in lines]) for i in range(6))
    balanced, best, at_least, _ = losses
    if min(balanced, balanced if best is None else best) < at_least - 1e-9:
        sys.exit(f"{what}, k = {k}: a publication loses less than its lower bound")
    text = f"{what:<22}{k:>4}"
    text += "".join(_cell(loss, 9, 100 / cells) for loss in losses)
    text += _cell(prices, 10, 100 / cells) + _cell(records, 11, 100 / cells)
    text += _cell(balanced, 14, 1 / at_least) + _cell(best, 14, 1 / at_least)
    say(f"{text}{sum(line.cpu for line in lines):>8.1f}")


def _total(values):
    return None if None in values else sum(values)


def _cell(value, width, scale):
    return f"{'-':>{width}}" if value is None else f"{scale * value:>{width}.3f}"


def tables() -> Iterator[tuple[str, Callable, int, int, Callable, tuple[int, ...]]]:
    """Yield the name of a table, how to draw samples, of what size, how many, and what of them."""
    yield f"{SMALL} random", random_rows, SMALL, SAMPLES, solved, (2, 3, 4, 5)
    yield f"{LARGE} random", random_rows, LARGE, 1, bounded, (2, 5, 10)
    yield f"{DENSE} nearest to one", near_rows, DENSE, 1, bounded, (2, 5, 10, 25, 50)


def main() -> None:
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    say(f"Python {sys.version.split()[0]}, {os.cpu_count()} processors\n{HEAD}")
    for what, draw, n, samples, judge, sizes in tables():
        random = np.random.default_rng(SEED)
        drawn = [draw(random, n) for _ in range(samples)]
        for k in sizes:
            report(what, k, [judge(dataset, k) for dataset in drawn])
    report("all of Adult", 2, [paired(load("adult"))])
    say(f"{time.process_time():.0f} CPU seconds in all")


if __name__ == "__main__":
    main()
