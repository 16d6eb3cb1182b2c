"""The tables that ship with dbanon, encoded under their own policies without a grid.

A grid widens intervals, so losses on it do not compare with those of tight labels.
"""

from __future__ import annotations

import dataclasses
import gzip
import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from dbanon.domain.assignment import EncodedTable
    from dbanon.domain.policy import Policy


@dataclasses.dataclass(frozen=True, eq=False)
class Dataset:
    """Rows as they are in the file and as codes, and what is published of them.

    ``trees`` holds by column the CSV file of its taxonomy.
    """

    source: pa.Table
    encoded: EncodedTable
    policy: Policy
    trees: Mapping[str, Path]

    def under(self, *, k: int, l: int = 1, **changes) -> Policy:
        """Return the policy with these models; changes are those of other fields."""
        from dbanon.domain.policy import K_ANONYMITY, L_DIVERSITY, ModelSpec

        models = [ModelSpec(K_ANONYMITY, {"k": k})]
        if l > 1:
            models.append(ModelSpec(L_DIVERSITY, {"l": l}))
        return dataclasses.replace(self.policy, models=tuple(models), **changes)


def read(name: str) -> pa.Table:
    """Read a data set; empty fields are NULL."""
    from pyarrow import csv

    from dbanon import resources
    from dbanon.actions.demo import DATASETS

    text = gzip.decompress(resources.data(f"{name}.csv.gz").read_bytes())
    return csv.read_csv(
        io.BytesIO(text),
        parse_options=csv.ParseOptions(delimiter=DATASETS[name].delimiter),
        convert_options=csv.ConvertOptions(null_values=[""], strings_can_be_null=True),
    )


def load(
    name: str,
    *,
    more_quasi: tuple[str, ...] = (),
    not_quasi: tuple[str, ...] = (),
    sets: bool = False,
    rows: int | NDArray[np.int64] | None = None,
) -> Dataset:
    """Encode a data set, its first rows, or those of some numbers.

    more_quasi: columns that are quasi-identifiers although the policy has them otherwise;
    not_quasi: those that are published as they are instead; sets: whether columns with a taxonomy
    are published as sets of values.
    """
    from dbanon import resources
    from dbanon.actions.demo import DATASETS
    from dbanon.anonymization.encoding.encode import encode
    from dbanon.domain.policy import ColumnRule, Role
    from dbanon.formats import policies, taxonomies

    files = {tree: resources.data(file) for tree, file in DATASETS[name].taxonomies.items()}
    trees = {tree: taxonomies.read_csv(file, name=tree) for tree, file in files.items()}
    policy = policies.parse(resources.data(f"{name}.toml").read_text(encoding="utf-8"))
    columns = tuple(
        ColumnRule(rule.column, Role.INSENSITIVE)
        if rule.column in not_quasi
        else _tight(rule, tree=f"{name}_{rule.column}", quasi=rule.column in more_quasi, sets=sets)
        for rule in policy.columns
    )
    policy = dataclasses.replace(policy, columns=columns)
    source = read(name)
    source = source.slice(0, rows) if rows is None or isinstance(rows, int) else source.take(rows)
    kinds = {field.name: kind_of(field.type) for field in source.schema}
    encoded = encode(source, policy, kinds=kinds, taxonomies=trees)
    used = {column.name: files[column.rule.taxonomy] for column in encoded.quasi if column.taxonomy}
    return Dataset(source, encoded, policy, used)


def _tight(rule, *, tree: str, quasi: bool, sets: bool):
    from dbanon.domain.policy import ColumnRule, Role

    if quasi:
        rule = ColumnRule(rule.column, Role.QUASI, recoding="label", taxonomy=tree)
    if sets and rule.taxonomy:
        rule = dataclasses.replace(rule, recoding="set")
    return dataclasses.replace(rule, snap=None)


def encode_made(
    source: pa.Table,
    policy_text: str,
    trees: Mapping[str, Sequence[tuple[str, ...]]],
    *,
    folder: Path,
) -> Dataset:
    """Encode a table that was made, whose taxonomies are written into a folder.

    trees: by column, the path of each leaf to the root; the policy calls them by the table's and
    the column's name.
    """
    from dbanon.anonymization.encoding.encode import encode
    from dbanon.formats import policies, taxonomies

    policy = policies.parse(policy_text)
    name = policy.table.name
    files = write_trees(name, trees, folder=folder)
    read_trees = {
        f"{name}_{column}": taxonomies.read_csv(file, name=f"{name}_{column}")
        for column, file in files.items()
    }
    kinds = {field.name: kind_of(field.type) for field in source.schema}
    encoded = encode(source, policy, kinds=kinds, taxonomies=read_trees)
    return Dataset(source, encoded, policy, files)


def write_trees(
    name: str, trees: Mapping[str, Sequence[tuple[str, ...]]], *, folder: Path
) -> dict[str, Path]:
    """Write the taxonomies of a table as files; return them by column."""
    files = {}
    for column, paths in trees.items():
        files[column] = folder / f"{name}_{column}.csv"
        files[column].write_text("".join(";".join(path) + "\n" for path in paths), encoding="utf-8")
    return files


def kind_of(data_type: pa.DataType):
    import pyarrow as pa

    from dbanon.domain.table import ColumnKind

    if pa.types.is_integer(data_type):
        return ColumnKind.INTEGER
    return ColumnKind.FLOAT if pa.types.is_floating(data_type) else ColumnKind.CATEGORY
