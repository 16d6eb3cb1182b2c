"""Anonymize a table with another tool; it runs in an environment that has that tool.

    python run_peer.py anjana FOLDER K

FOLDER has ``table.csv``, ``quasi.json`` (the names of quasi-identifiers and of those that are
numbers) and ``tree_NAME.csv`` for each of the others: leaf, its ancestors, root. Writes NAME.csv,
the published rows with their number in the column ``row``, and prints CPU and wall seconds as JSON.
"""

from __future__ import annotations

import csv
import json
import logging
import sys
import time
from pathlib import Path

import pandas as pd

SUPPRESSED = 2  # percent of the rows that a full-domain recoding may leave out
WIDTHS = (5, 10, 20, 40)  # of the intervals of numbers, in their own unit


def anjana(table, quasi, numbers, trees, k):
    """Full-domain recoding."""
    from anjana.anonymity import k_anonymity

    levels = {}
    for name in quasi:
        if name in numbers:
            columns = [table[name]]
            for width in WIDTHS:
                low = table[name] // width * width
                columns.append(low.astype(str) + "-" + (low + width - 1).astype(str))
            columns.append(pd.Series(["*"] * len(table)))
        else:
            paths = {path[0]: path for path in trees[name]}
            depth = max(map(len, paths.values()))
            columns = [
                table[name].map({leaf: path[i] for leaf, path in paths.items()})
                for i in range(depth)
            ]
        levels[name] = dict(enumerate(column.to_numpy() for column in columns))
    return k_anonymity(table, [], quasi, k, SUPPRESSED, levels)


def lighthouse(table, quasi, numbers, trees, k):
    """Mondrian with generalization trees; numbers are published as their mean."""
    from project_lighthouse_anonymize.gtrees import GTree
    from project_lighthouse_anonymize.wrappers.k_anonymize import k_anonymize

    made = {}
    for name in set(quasi) - set(numbers):
        tree, nodes = GTree(), {}
        for path in trees[name]:
            parent = None
            for depth in range(len(path) - 1, -1, -1):
                key = (depth, path[depth])
                if key not in nodes:
                    value = path[depth] if depth == 0 else f"{path[depth]} ({depth})"
                    nodes[key] = tree.create_node(value, parent=parent)
                parent = nodes[key]
        made[name] = tree
    quiet = logging.getLogger("lighthouse")
    quiet.addHandler(logging.NullHandler())
    quiet.propagate = False
    return k_anonymize(quiet, table, quasi, k, made, "row", parallelism=None)[0]


PEERS = {"anjana": anjana, "lighthouse": lighthouse}


def main() -> None:
    name, folder, k = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    quasi, numbers = json.loads((folder / "quasi.json").read_text(encoding="utf-8"))
    table = pd.read_csv(folder / "table.csv")
    trees = {}
    for column in set(quasi) - set(numbers):
        with (folder / f"tree_{column}.csv").open(encoding="utf-8", newline="") as lines:
            trees[column] = [tuple(path) for path in csv.reader(lines, delimiter=";")]
    cpu, wall = time.process_time(), time.perf_counter()
    published = PEERS[name](table, quasi, numbers, trees, k)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    published[["row", *quasi]].to_csv(folder / f"{name}.csv", index=False)
    sys.stdout.write(json.dumps([cpu, wall]))


if __name__ == "__main__":
    main()
