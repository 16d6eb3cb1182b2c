"""Measure publications by anatomy, of persons and of linked tables beside a plain one.

    python tests/benchmarks/kinds.py
    python tests/benchmarks/kinds.py --share 0.1              # a tenth of the rows
    python tests/benchmarks/kinds.py --before ../ae1eed7e     # and by another checkout

Plain and by anatomy: 1,000,000 rows of Adult, resampled. Persons: 50,000 who have ten rows each.
Linked: 100,000 persons, and 500,000 rows of two tables that refer to them. k = 5, l = 3. Bars are
of the server, as strict.py and linked.py measure searches. That of anatomy is what a plain
publication takes in all, of the other checkout if there is one.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from linked import persons_of, tables_of
from measuring import (
    Bar,
    apart,
    by_checkout,
    connected,
    measure,
    own_server,
    report_command,
    report_head,
    say,
)
from samples.resampled import LARGE, prepare
from samples.strict import EACH, visits

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from measuring import Run

SEED, VALUES = 11, 14
ROWS, PERSONS, LINKED = 1_000_000, 50_000, 100_000
EXACT = dataclasses.replace(LARGE, name="exact")
MODELS = ("--k", "5", "--l", "3")
BARS = {"persons": 12.0, "linked": 15.0}
HIDDEN = 'illness = {role = "sensitive"}'
DATASET = 'persons = "persons"\ntables = ["stays", "drugs"]\n'


def store(name: str, source: pa.Table, key: str | None) -> None:
    """Make a table with a made-up illness in each row; key: by default another column."""
    import io

    import numpy as np
    import pyarrow as pa
    from pyarrow import csv

    drawn = np.random.default_rng((SEED, source.num_rows)).geometric(0.15, source.num_rows) % VALUES
    source = source.append_column("illness", pa.array([f"illness {i:02}" for i in drawn]))
    if key is None:
        source = source.append_column("id", pa.array(np.arange(source.num_rows)))
    columns = ", ".join(
        f'"{field.name}" {"integer" if pa.types.is_integer(field.type) else "text"} NOT NULL'
        for field in source.schema
    )
    buffer = io.BytesIO()
    csv.write_csv(source, buffer, csv.WriteOptions(include_header=False))
    with connected() as connection:
        connection.execute(f'CREATE TABLE public.{name} ({columns}, PRIMARY KEY ("{key or "id"}"))')
        copy = f"COPY public.{name} FROM STDIN (FORMAT csv)"
        with connection.cursor().copy(copy) as to:
            to.write(buffer.getbuffer())
        connection.execute(f"VACUUM ANALYZE public.{name}")


def make_persons(persons: int, folder: Path) -> Mapping[str, Path]:
    made = visits(persons * EACH, folder)
    store("visits", made.source, None)
    return {f"visits_{name}": file for name, file in made.trees.items()}


def make_linked(persons: int, folder: Path) -> Mapping[str, Path]:
    import numpy as np
    import pyarrow as pa

    made = persons_of(persons, folder)
    store("persons", made.source, "person")
    for name, table in zip(("stays", "drugs"), tables_of(persons, folder), strict=True):
        days = np.random.default_rng((SEED, persons)).integers(0, 730, len(table.subjects))
        store(name, pa.table({"person": table.subjects, "day": days}), None)
    return {f"persons_{name}": file for name, file in made.trees.items()}


def policies_of_persons() -> dict[str, str]:
    """Return the policy of each table of persons with several rows, and of the linked tables."""
    shown = {"visits": ("postcode", "born", "sex"), "persons": ("born", "sex")}
    intervals = {"visits": ("age", "day", "days", "charge"), "persons": ("age",)}
    intervals |= {"stays": ("day",), "drugs": ("day",)}
    policies = {}
    for name, ranges in intervals.items():
        lines = [f'table = "public.{name}"', "[columns]", HIDDEN]
        if name == "persons":
            lines.append('person.role = "identifier"')
        else:
            lines.insert(1, 'subject = "person"')
            lines += ['person.role = "identifier"', 'id.role = "identifier"']
        lines += [f'{one} = {{role = "quasi", recoding = "interval"}}' for one in ranges]
        for one in shown.get(name, ()):
            tree = f'recoding = "label", taxonomy = "{name}_{one}"'
            lines.append(f'{one} = {{role = "quasi", {tree}}}')
        policies[name] = "\n".join(lines) + "\n"
    return policies


def by_anatomy(folder: Path) -> Path:
    """Write the policy of the exact table."""
    lines = ['table = "public.exact"', "anatomy = true"]
    lines += ['allow = ["anatomy: to measure"]', "[models]", "l = 3", "[columns]"]
    lines += ['id.role = "identifier"', f'{LARGE.protected}.role = "sensitive"']
    lines += [f'{name}.role = "quasi"' for name in LARGE.quasi]
    path = folder / "anatomy.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


def prepared(share: float, folder: Path) -> Path:
    """Make all tables with their policies; return the file of the dataset."""
    measure("demo", "--dataset", "adult")  # brings taxonomies, and compiles the search
    for sample in (LARGE, EXACT):
        prepare(sample, int(ROWS * share))
    measure("policy", "set", "exact", "--file", str(by_anatomy(folder)))
    trees = apart(make_persons, int(PERSONS * share), folder)
    trees |= apart(make_linked, int(LINKED * share), folder)
    for name, file in trees.items():
        measure("taxonomy", "import", name, str(file))
    for name, text in policies_of_persons().items():
        path = folder / f"{name}.toml"
        path.write_text(text)
        measure("policy", "set", name, "--file", str(path))
    dataset = folder / "dataset.toml"
    dataset.write_text(DATASET)
    return dataset


def published(share: float) -> dict[str, Run]:
    """Publish all, after plans that compile what their searches take."""
    with own_server(), tempfile.TemporaryDirectory() as folder:
        dataset = prepared(share, Path(folder))
        kinds = {
            "plain": ("large", *MODELS),
            "by anatomy": ("exact",),
            "persons": ("visits", *MODELS),
            "linked": ("--dataset", str(dataset), *MODELS),
        }
        for arguments in kinds.values():
            measure("plan", *arguments)
        return {
            kind: measure("publish", *arguments, "--timings") for kind, arguments in kinds.items()
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--share", type=float, default=1.0, help="of the rows")
    parser.add_argument("--before", type=Path, help="checkout to compare with")
    arguments = parser.parse_args()
    say(f"Python {sys.version.split()[0]}, {os.cpu_count()} processors")
    report_head()
    plain: Run | None = None
    if arguments.before:
        with by_checkout(arguments.before):
            for kind, run in published(arguments.share).items():
                plain = plain or run
                report_command(f"{kind}, before", run)
    for kind, run in published(arguments.share).items():
        plain = plain or run
        most = plain.cpu + plain.server if kind == "by anatomy" else BARS.get(kind)
        report_command(kind, run, None if most is None else Bar(server=most))
        for stage, seconds in run.stages.items():
            say(f"    {stage:<40} {seconds:>8.2f}")


if __name__ == "__main__":
    main()
