"""The search beside other algorithms and longer searches, on tables of which no rows are equal.

``reference`` carves with many seeds from as many rows at once as there are (see
dbanon.anonymization.auto.start) and goes on for thirty rounds; ``peeled`` does so from the
fullest lattice that some minutes allow. Small clusters are not carved: that takes n^2/k.
"""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

from measuring import say

from dbanon.anonymization.auto import algorithm, plans, start
from dbanon.anonymization.auto.plans import EFFORTS, Plan
from dbanon.anonymization.auto.start import PEELING, USUAL, Start, start_by_carving
from dbanon.domain.errors import DbanonError
from samples.distinct import encoded_distinct
from samples.published import publish

if TYPE_CHECKING:
    from collections.abc import Iterator

    from samples.datasets import Dataset
    from samples.published import Scored

WITHIN = 1.03
PEERS = {"mondrian": {}, "full-domain": {}, "k-member": {"cost": "ncp"}}
ROUNDS, SEEDS = 30, 6
NODES, LOOKUPS = 1_000_000, 1_000_000_000
REFERENCES = ("reference", "peeled")
CARVED_FROM = 20  # rows of a cluster: with fewer the search itself does not carve


@contextmanager
def beginning(way: str) -> Iterator[None]:
    """Have the effort that is the default begin in this way, and go on for thirty rounds."""

    def chosen(space, *, seed, **_):
        if way == "peeled":
            levels = start.lattice(space)
            label = start.peel_off(space, levels, lookups=LOOKUPS)
            return Start(start.complete(space, label, seed=seed), PEELING)
        label = start_by_carving(space, seeds=SEEDS, segment=space.n_rows, seed=seed)
        return Start(label, way)

    rounds = Plan(ROUNDS, ROUNDS, ROUNDS, work=0.0, annealing=0.0, carving=USUAL)
    with (
        mock.patch.object(algorithm, "start", chosen),
        mock.patch.object(start, "MAX_NODES", NODES),
        mock.patch.object(plans, "_FADED", 0.0),
        mock.patch.dict(EFFORTS, {"fast": rounds, "balanced": rounds}),
    ):
        yield


def tell(name: str, k: int, way: str, scored: Scored) -> float:
    loss = 100 * scored.ncp
    say(f"{name:<10} {k:>4} {way:<12} {loss:>8.3f} {scored.cpu:>8.1f}  {scored.start}")
    return loss


def compare(name: str, dataset: Dataset, k: int, *, best: bool, peers: bool) -> bool:
    """Print a line for each way; return whether the search is what it should be."""
    efforts = ["fast", "balanced", *(["best"] if best else [])]
    found = {
        effort: tell(name, k, effort, publish(dataset, k=k, params={"effort": effort}))
        for effort in efforts
    }
    others = {}
    for peer, params in PEERS.items():
        if peer == "k-member" and not peers:
            continue
        try:
            scored = publish(dataset, k=k, algorithm=peer, params=params)
        except DbanonError as error:
            say(f"{name:<10} {k:>4} {peer:<12} {'-':>8} {'-':>8}  {error}")
            continue
        others[peer] = tell(name, k, peer, scored)
    references = []
    for way in REFERENCES if k >= CARVED_FROM else REFERENCES[1:]:
        with beginning(way):
            references.append(tell(name, k, way, publish(dataset, k=k)))
    lost = [peer for peer, loss in others.items() if loss < found["fast"]]
    ratio = found["balanced"] / min(references)
    say(f"{name:<10} {k:>4} balanced / least reference {ratio:.3f}; fast loses to {lost or 'none'}")
    return ratio <= WITHIN and not lost


def compare_all(sizes: list[int], *, rows: int, names: list[str], best: bool, peers: bool) -> bool:
    """Print all lines.

    Return whether ``fast`` loses to no peer, and ``balanced`` at most 3 % above the references.
    """
    say(f"{'table':<10} {'k':>4} {'search':<12} {'NCP %':>8} {'CPU s':>8}  {rows:,} rows")
    kept = True
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            dataset = encoded_distinct(name, rows, Path(folder))
            for k in sizes:
                kept &= compare(name, dataset, k, best=best, peers=peers)
    return kept
