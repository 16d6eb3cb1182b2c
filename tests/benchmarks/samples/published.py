"""Publish a data set and score what readers see: the texts, and nothing that made them.

The score is computed twice, by dbanon's own report and here from the labels, the raw values and
the files of the taxonomies. A publication that is not what it says ends the benchmark.
"""

from __future__ import annotations

import csv
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from unittest import mock

import numpy as np

from dbanon.anonymization.auto.plans import EFFORTS, Plan
from dbanon.anonymization.problem import Problem, solve
from dbanon.domain.outcomes import Stages

if TYPE_CHECKING:
    from collections.abc import Callable

    from dbanon.anonymization.outcome import Outcome
    from samples.datasets import Dataset

SEED = 1
TOLERANCE = 1e-9


@dataclass
class Meter(Stages):
    """Stages that know the CPU seconds of all threads."""

    cpu: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def __call__(self, name):
        before = time.process_time()
        with Stages.__call__(self, name):
            yield
        self.cpu[name] = self.cpu.get(name, 0.0) + time.process_time() - before


@dataclass(frozen=True, eq=False)
class Scored:
    """A publication that is true; CPU and wall seconds are those of the search.

    losses: (n, columns) what each row loses in each quasi-identifier; outcome: what was published.
    """

    outcome: Outcome
    losses: np.ndarray
    suppressed: int
    smallest: int
    cpu: float
    wall: float
    start: str

    @property
    def ncp(self) -> float:
        return float(self.losses.mean())


def publish(dataset: Dataset, *, k: int, l: int = 1, search: bool = True, **changes) -> Scored:
    """Publish and score; without ``search`` what ``auto`` starts with is all.

    changes: fields of the policy. A run that compiled a kernel is made again.
    """
    policy = dataset.under(k=k, l=l, **{"algorithm": "auto", **changes})
    carving = EFFORTS["balanced"].carving
    idle = Plan(0, 0, 0, work=0.0, annealing=0.0, carving=carving)
    with mock.patch.dict(EFFORTS, {} if search else {"fast": idle, "balanced": idle}):
        stages = Meter()
        outcome = solve(Problem(dataset.encoded, policy), seed=SEED, stages=stages)
        if "compile" in stages.seconds:
            stages = Meter()
            outcome = solve(Problem(dataset.encoded, policy), seed=SEED, stages=stages)
    losses = losses_of(dataset, outcome)
    if abs(losses.mean() - outcome.loss.ncp) > TOLERANCE:
        _refuse(f"the report has NCP {outcome.loss.ncp}, the labels have {losses.mean()}")
    smallest, least_diverse = _classes(dataset, outcome)
    if smallest != outcome.loss.smallest_class or smallest < k or least_diverse < l:
        _refuse(f"a class of {smallest} rows, one of {least_diverse} sensitive values")
    return Scored(
        outcome=outcome,
        losses=losses,
        suppressed=int((outcome.assignment.group < 0).sum()),
        smallest=smallest,
        cpu=stages.cpu["cluster"],
        wall=stages.seconds["cluster"],
        start=", ".join(stages.remarks).removeprefix("start: "),
    )


def _refuse(why: str):
    sys.exit(f"what was published is not what it should be: {why}")


def _classes(dataset: Dataset, outcome: Outcome) -> tuple[int, int]:
    """Return the least rows and the least distinct sensitive values of a published tuple."""
    group = outcome.assignment.group
    shown = np.flatnonzero(group >= 0)
    labels = np.column_stack([column.index[group[shown]] for column in outcome.values.columns])
    _, classes, size = np.unique(labels, axis=0, return_inverse=True, return_counts=True)
    least = int(size.min())
    for name in dataset.encoded.sensitive_names:
        values = dataset.source[name].to_pylist()
        pairs = {(c, values[row]) for c, row in zip(classes.tolist(), shown.tolist(), strict=True)}
        least = min(least, int(np.bincount([c for c, _ in pairs]).min()))
    return int(size.min()), least


def losses_of(dataset: Dataset, outcome: Outcome) -> np.ndarray:
    """Return what each row loses in each column, 1 if it is left out; labels must be true."""
    group = outcome.assignment.group
    shown = np.flatnonzero(group >= 0)
    losses = np.ones((len(group), len(outcome.values.columns)))
    for j, column in enumerate(outcome.values.columns):
        values = dataset.source[column.name].to_pylist()
        read = reader(dataset, column.name, column.recoding, values)
        lost, covers = zip(*[read(label) for label in column.labels], strict=True)
        label = column.index[group[shown]]
        losses[shown, j] = np.array(lost)[label]
        for place, row in set(zip(label.tolist(), shown.tolist(), strict=True)):
            if not covers[place](values[row]):
                _refuse(f"{column.name}: {column.labels[place]} stands for {values[row]}")
    return losses


def reader(dataset: Dataset, name: str, recoding: str, values: list) -> Callable:
    """Return how to read a label: what it loses, and which values it stands for."""
    if recoding == "interval":
        known = [value for value in values if value is not None]
        width = max(known) - min(known)
        return lambda label: _interval(label, width)
    below = leaves_below(dataset.trees[name])
    if recoding == "label":
        return lambda label: _node(label, below)
    n_values = len(below["*"]) + (None in values)
    return lambda label: _set(label, n_values)


def _interval(label: str | None, width: float):
    if label is None:
        return 0.0, lambda value: value is None
    if label == "(,)":
        return 1.0, lambda _: True
    lo, hi = (float(bound) for bound in label[1:-1].split(","))
    return (hi - lo) / width, lambda value: value is not None and lo <= value <= hi


def leaves_below(file) -> dict[str, set[str]]:
    below: dict[str, set[str]] = {}
    with file.open(encoding="utf-8", newline="") as lines:
        for path in csv.reader(lines, delimiter=";"):
            for node in path:
                below.setdefault(node, set()).add(path[0])
    return below


def _node(label: str | None, below: dict[str, set[str]]):
    if label is None:
        return 0.0, lambda value: value is None
    leaves = below[label]
    share = len(leaves) / len(below["*"]) if len(leaves) > 1 else 0.0
    return share, lambda value: value in leaves or label == "*"


def _set(label: str, n_values: int):
    (elements,) = csv.reader([label[1:-1]], escapechar="\\")
    share = len(elements) / n_values if len(elements) > 1 else 0.0
    held = {None if element == "NULL" else element for element in elements}
    return share, lambda value: value in held
