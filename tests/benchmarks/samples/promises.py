"""What the efforts of the search promise each other and other algorithms, on small random tables.

On every table ``best`` loses no more than ``balanced``, ``balanced`` no more than ``fast``, and
``fast`` no more than Mondrian, k-member clustering and the full-domain search, where these meet the
policy; and where rows may be left out, no effort loses more than if none may. Tables have 2 to
3,000 rows of numbers and categories, and policies ask for k, and some for l, entropy, t-closeness,
bounds on a grid, or weights, of which some are 0. The same number of a table gives the same table.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from measuring import say

from dbanon.anonymization.problem import Problem, solve
from dbanon.domain.errors import Unsatisfiable
from dbanon.domain.outcomes import Stages
from dbanon.domain.policy import ModelSpec
from samples.datasets import encode_made
from samples.distinct import tree

if TYPE_CHECKING:
    from dbanon.domain.assignment import EncodedTable
    from dbanon.domain.policy import Policy
    from samples.datasets import Dataset

Random = np.random.Generator

EFFORTS = ("best", "balanced", "fast")
PEERS = ("mondrian", "k-member", "full-domain")
PAIRS = (("best", "balanced"), ("balanced", "fast"), *(("fast", peer) for peer in PEERS))
BRANCHES = ((2,), (5,), (2, 3), (3, 4), (2, 2, 3), (10, 10))
NONE_OUT = "none left out"
TOLERANCE = 1e-9


def draw(number: int, folder: Path) -> Dataset:
    """Make the table of that number, with its policy."""
    import pyarrow as pa

    random = np.random.default_rng(number)
    most = random.choice((12, 60, 300, 3_000), p=(0.35, 0.45, 0.15, 0.05))
    n = int(random.integers(2, most + 1))
    columns, rules, trees = {}, [], {}
    for j in range(random.integers(1, 7)):
        name = f"c{j}"
        shown = _tree(name, n, random, columns, trees) if random.random() < 0.5 else None
        shown = shown or _numbers(name, n, random, columns)
        rules.append(f'{name} = {{role = "quasi", {shown}}}')
    diseases = np.array([f"s{i}" for i in range(random.integers(2, 9))])
    columns["s"] = diseases[_frequent(len(diseases), n, random)]
    text = ['table = "public.small"', "[models]", "k = 2", "[columns]", 's.role = "sensitive"']
    made = encode_made(pa.table(columns), "\n".join([*text, *rules]) + "\n", trees, folder=folder)
    allowed = random.choice((0.0, 0.02, 0.1, 0.3), p=(0.6, 0.1, 0.2, 0.1))
    policy = dataclasses.replace(
        made.policy, models=_models(n, random), algorithm="auto", max_suppressed=float(allowed)
    )
    return dataclasses.replace(made, policy=policy, encoded=_weighted(made.encoded, random))


def _weighted(table: EncodedTable, random: Random) -> EncodedTable:
    """Give some columns another weight than 1."""
    weights = np.where(random.random(9) < 0.2, random.choice((0.0, 0.3, 7.0), 9), 1.0).tolist()
    quasi = [
        dataclasses.replace(column, rule=dataclasses.replace(column.rule, weight=weight))
        for column, weight in zip(table.quasi, weights, strict=False)
    ]
    return dataclasses.replace(table, quasi=tuple(quasi))


def _numbers(name: str, n: int, random: Random, columns: dict[str, np.ndarray]) -> str:
    """Draw a column of few or many numbers; return how it is published."""
    if random.random() < 0.5:
        columns[name] = random.integers(0, random.integers(1, 30), n)
    else:
        columns[name] = np.round(random.lognormal(3, 1, n), 2)
    snap = ", snap = 5" if random.random() < 0.2 else ""
    return f'recoding = "interval"{snap}'


def _tree(
    name: str, n: int, random: Random, columns: dict[str, np.ndarray], trees: dict[str, list]
) -> str:
    """Draw a column of a taxonomy's leaves; return how it is published."""
    paths = tree(name, *BRANCHES[random.integers(len(BRANCHES))])
    trees[name] = paths
    columns[name] = np.array([path[0] for path in paths])[_frequent(len(paths), n, random)]
    recoding = "set" if random.random() < 0.15 else "label"
    return f'recoding = "{recoding}", taxonomy = "small_{name}"'


def _frequent(size: int, n: int, random: Random) -> np.ndarray:
    """Draw n numbers below ``size``, some of them more often."""
    return random.choice(size, n, p=random.dirichlet(np.full(size, 0.7)))


def _models(n: int, random: Random) -> tuple[ModelSpec, ...]:
    models = [ModelSpec("k-anonymity", {"k": int(min(random.integers(2, 11), n))})]
    asked = random.choice(("", "l", "entropy", "t"), p=(0.55, 0.2, 0.1, 0.15))
    if asked == "l":
        models.append(ModelSpec("l-diversity", {"l": int(random.integers(2, 4))}))
    elif asked == "entropy":
        models.append(ModelSpec("entropy-l-diversity", {"l": float(random.choice((1.5, 2.0)))}))
    elif asked == "t":
        models.append(ModelSpec("t-closeness", {"t": float(random.choice((0.15, 0.3, 0.5)))}))
    return tuple(models)


def lost(dataset: Dataset, policy: Policy, *, seed: int) -> float | None:
    """Return what a publication loses, weighted as the policy says; None if there is none."""
    try:
        return solve(Problem(dataset.encoded, policy), seed=seed, stages=Stages()).loss.asked
    except Unsatisfiable:
        return None


def losses(dataset: Dataset, *, seed: int) -> dict[str, float | None]:
    """Return what each effort and algorithm loses of a table, with and without rows left out."""
    policy = dataset.policy
    ways = {effort: dataclasses.replace(policy, params={"effort": effort}) for effort in EFFORTS}
    if policy.max_suppressed > 0:
        ways |= {
            f"{effort}, {NONE_OUT}": dataclasses.replace(way, max_suppressed=0.0)
            for effort, way in ways.items()
        }
    ways |= {peer: dataclasses.replace(policy, algorithm=peer) for peer in PEERS}
    return {name: lost(dataset, way, seed=seed) for name, way in ways.items()}


def hold(tables: int, *, first: int = 0) -> bool:
    """Print how often and by how much each promise is broken; return whether all are kept."""
    pairs = (*PAIRS, *((effort, f"{effort}, {NONE_OUT}") for effort in EFFORTS))
    more: dict[tuple[str, str], list[tuple[float, int]]] = defaultdict(list)
    compared = dict.fromkeys(pairs, 0)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(first, first + tables):
            found = losses(draw(number, Path(folder)), seed=number)
            for pair in pairs:
                less, than = (found.get(name) for name in pair)
                if than is None:
                    continue
                compared[pair] += 1
                if less is None or less > than + TOLERANCE:
                    more[pair].append((1.0 if less is None else less - than, number))
    say(f"{'loses more':<10} {'than':<26} {'tables':>7} {'broken':>7} {'median':>8} {'worst':>8}")
    for pair in pairs:
        by = [difference for difference, _ in more[pair]] or [0.0]
        line = f"{pair[0]:<10} {pair[1]:<26} {compared[pair]:>7,} {len(more[pair]):>7,}"
        worst = f"  table {max(more[pair])[1]}" if more[pair] else ""
        say(f"{line} {np.median(by):>8.4f} {max(by):>8.4f}{worst}")
    return not any(more.values())
