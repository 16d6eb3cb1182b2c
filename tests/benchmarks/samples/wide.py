"""Made-up tables of many quasi-identifiers, numbers and categories in turn or categories alone.

Columns come in groups, as those of surveys do: the columns of a group follow a number of the person
that is not in the table, each with noise of its own, and one cell in ten follows nothing. Numbers
have some hundred values, and categories 4 to 48 leaves, of which the first are the most frequent,
in taxonomies of three levels; both of one group agree in their order. A table of fewer columns is
the first columns of a wider one. The same number of rows and the same seed give the same table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from samples.datasets import Dataset

NAME = "wide"
SEED = 5
GROUPS = 4
FOLLOWS, NOISE = 0.9, 0.25
LEAVES = (12, 6, 20, 4, 48, 9, 30, 5)
NUMBERS = (90, 400, 60, 150)
BRANCHES = 4  # leaves below a node, about


def make(rows: int, columns: int, *, numbers: bool = True, seed: int = SEED) -> pa.Table:
    """Draw a table of so many rows and columns; without ``numbers`` all are categories."""
    import pyarrow as pa

    hidden = np.random.default_rng(seed).random((GROUPS, rows))
    drawn = {}
    for j in range(columns):
        random = np.random.default_rng((seed, j))
        own = random.random(rows)
        place = (1 - NOISE) * hidden[j % GROUPS] + NOISE * own
        place = np.where(random.random(rows) < FOLLOWS, place, random.random(rows))
        if numbers and is_number(j):
            size = NUMBERS[j // 2 % len(NUMBERS)]
            drawn[name_of(j, numbers=numbers)] = np.rint(size * place**1.5).astype(np.int64)
            continue
        n_leaves = leaves_of(j, numbers=numbers)
        leaves = np.array([path[0] for path in tree(n_leaves)])
        drawn[name_of(j, numbers=numbers)] = leaves[(n_leaves * place**1.5).astype(np.int64)]
    return pa.table(drawn)


def is_number(j: int) -> bool:
    """Whether column j of a table with numbers is one."""
    return j % 2 == 0


def name_of(j: int, *, numbers: bool) -> str:
    """Return the name of column j."""
    return f"{'number' if numbers and is_number(j) else 'answer'}_{j:02}"


def leaves_of(j: int, *, numbers: bool) -> int:
    """Return how many leaves the category in column j has."""
    return LEAVES[(j // 2 if numbers else j) % len(LEAVES)]


def tree(n_leaves: int) -> list[tuple[str, ...]]:
    """Return the path of each leaf to the root."""
    nodes = max(n_leaves // BRANCHES, 2)
    return [(f"leaf {i:02}", f"node {i * nodes // n_leaves:02}", "*") for i in range(n_leaves)]


def policy_text(columns: int, *, numbers: bool) -> str:
    """Return the policy file, with tight intervals."""
    lines = [f'table = "public.{NAME}"', "[models]", "k = 2", "[columns]"]
    for j in range(columns):
        name = name_of(j, numbers=numbers)
        if numbers and is_number(j):
            lines.append(f'{name} = {{role = "quasi", recoding = "interval"}}')
        else:
            taxonomy = f"{NAME}_{leaves_of(j, numbers=numbers)}"
            lines.append(
                f'{name} = {{role = "quasi", recoding = "label", taxonomy = "{taxonomy}"}}'
            )
    return "\n".join(lines) + "\n"


def encoded_wide(rows: int, columns: int, folder: Path, *, numbers: bool = True) -> Dataset:
    """Make a table and encode it as a publication does; its taxonomies are files in a folder."""
    from dbanon.anonymization.encoding.encode import encode
    from dbanon.formats import policies, taxonomies
    from samples.datasets import Dataset, kind_of

    files = {}
    for n_leaves in LEAVES:
        file = files[f"{NAME}_{n_leaves}"] = folder / f"{NAME}_{n_leaves}.csv"
        file.write_text("".join(";".join(path) + "\n" for path in tree(n_leaves)), encoding="utf-8")
    read = {name: taxonomies.read_csv(file, name=name) for name, file in files.items()}
    source = make(rows, columns, numbers=numbers)
    policy = policies.parse(policy_text(columns, numbers=numbers))
    kinds = {field.name: kind_of(field.type) for field in source.schema}
    encoded = encode(source, policy, kinds=kinds, taxonomies=read)
    trees = {
        column.name: files[column.rule.taxonomy] for column in encoded.quasi if column.taxonomy
    }
    return Dataset(source, encoded, policy, trees)
