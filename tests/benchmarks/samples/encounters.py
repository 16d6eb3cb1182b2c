"""Made-up hospital encounters with 47 quasi-identifiers, most of them categories of few values.

As in records of the treatment of one disease: who the patient is, the stay, counts of what was
done, three diagnoses of 19 chapters, and 23 drugs that most patients do not get. An unseen severity
moves counts and drugs together. The same number of rows and the same seed give the same table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from samples.datasets import encode_made
from samples.distinct import tree
from samples.people import skewed

if TYPE_CHECKING:
    from pathlib import Path

    from samples.datasets import Dataset

SEED, ROWS = 31, 101_766
# Leaves of categories, and the power by which rarer ones are rarer.
CATEGORIES = {
    "race": (6, 1.6),
    "sex": (3, 1.0),
    "weight": (10, 4.0),
    "admission": (8, 1.2),
    "discharge": (26, 1.8),
    "source": (17, 1.6),
    "payer": (18, 0.9),
    "specialty": (72, 1.1),
    "glucose": (4, 3.5),
    "haemoglobin": (4, 2.0),
}
COUNTS = {  # most, and the mean if the severity is average
    "stay": (14, 4.0),
    "laboratory": (118, 43.0),
    "procedures": (6, 1.3),
    "medications": (74, 16.0),
    "outpatient": (38, 0.4),
    "emergency": (32, 0.2),
    "inpatient": (20, 0.6),
    "diagnoses": (16, 7.4),
}
DIAGNOSES, CHAPTERS = ("first", "second", "third"), (19, 5, 8)
DRUGS, DOSES = 23, ("none", "steady", "up", "down")
SHARES = np.geomspace(0.5, 0.0001, DRUGS)  # of the patients who get each drug
DECADES = 10


def make(rows: int, *, seed: int = SEED) -> tuple[dict[str, np.ndarray], dict[str, list]]:
    """Return the columns, and the taxonomies of those that have one."""
    random = np.random.default_rng((seed, rows))
    severity = random.gamma(4.0, 0.25, rows)
    columns = {"age": np.clip(random.normal(6.1, 1.6, rows), 0, DECADES - 1).astype(np.int64)}
    trees: dict[str, list] = {}
    for name, (size, exponent) in CATEGORIES.items():
        trees[name] = tree(name, size)
        columns[name] = skewed(size, rows, random, exponent=exponent)
    for name, (most, mean) in COUNTS.items():
        columns[name] = np.minimum(random.poisson(mean * severity), most)
    for name in DIAGNOSES:
        trees[name] = tree(name, *CHAPTERS)
        columns[name] = skewed(int(np.prod(CHAPTERS)), rows, random, exponent=1.0)
    treated = np.zeros(rows, np.bool_)
    changed = np.zeros(rows, np.bool_)
    for i, share in enumerate(SHARES):
        gets = random.random(rows) < np.minimum(share * severity, 0.95)
        dose = np.where(gets, 1 + skewed(3, rows, random, exponent=2.5), 0)
        trees[f"drug_{i:02}"], columns[f"drug_{i:02}"] = tree(f"dose{i}", len(DOSES)), dose
        treated |= gets
        changed |= dose > 1
    for name, values in (("change", changed), ("treated", treated)):
        trees[name], columns[name] = tree(name, 2), values.astype(np.int64)
    return columns, trees


def encoded_encounters(rows: int, folder: Path) -> Dataset:
    """Make a table and encode it as a publication does, with tight intervals."""
    import pyarrow as pa

    made, trees = make(rows)
    columns = {
        name: np.array([path[0] for path in trees[name]])[values] if name in trees else values
        for name, values in made.items()
    }
    lines = ['table = "public.encounters"', "[models]", "k = 5", "[columns]"]
    for name in columns:
        shown = 'recoding = "interval"'
        if name in trees:
            shown = f'recoding = "label", taxonomy = "encounters_{name}"'
        lines.append(f'{name} = {{role = "quasi", {shown}}}')
    return encode_made(pa.table(columns), "\n".join(lines) + "\n", trees, folder=folder)
