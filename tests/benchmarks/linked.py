"""Three linked tables: how many searches they take, for how many different problems.

    python tests/benchmarks/linked.py                      # 100,000 persons, 600,000 rows
    python tests/benchmarks/linked.py --persons 20000

Persons with rows in the same tables are one problem: comparing the tables reveals which these are.
One person in ten has no stays, one in twenty no drugs. CPU seconds are those of the search of all
threads; a kernel that is compiled first is not counted.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import numpy as np
from measuring import say
from samples.datasets import encode_made
from samples.distinct import TREES, make

from dbanon.anonymization import linked
from dbanon.anonymization.problem import Problem
from dbanon.domain.outcomes import Stages

if TYPE_CHECKING:
    from samples.datasets import Dataset

SEED, PERSONS = 7, 100_000
WITHOUT_STAYS, WITHOUT_DRUGS = 0.10, 0.05


def persons_of(n: int, folder: Path) -> Dataset:
    """Return one row of each person: age, sex and country."""
    import pyarrow as pa

    made, trees = make("register", n), {name: TREES["register"][name] for name in ("born", "sex")}
    columns = {name: np.array([path[0] for path in trees[name]])[made[name]] for name in trees}
    lines = ['table = "public.persons"', 'subject = "person"', "[models]", "k = 5", "[columns]"]
    lines += ['person.role = "identifier"', 'age = {role = "quasi", recoding = "interval"}']
    for name in trees:
        lines.append(
            f'{name} = {{role = "quasi", recoding = "label", taxonomy = "persons_{name}"}}'
        )
    table = pa.table({"person": np.arange(n), "age": made["age"], **columns})
    return encode_made(table, "\n".join(lines) + "\n", trees, folder=folder)


def rows_of(name: str, subjects: np.ndarray, folder: Path) -> Problem:
    """Return the rows of some persons, each with a day."""
    import pyarrow as pa

    random = np.random.default_rng((SEED, len(subjects)))
    lines = [f'table = "public.{name}"', 'subject = "person"', "[models]", "k = 5", "[columns]"]
    lines += ['person.role = "identifier"', 'day = {role = "quasi", recoding = "interval"}']
    table = pa.table({"person": subjects, "day": random.integers(0, 730, len(subjects))})
    made = encode_made(table, "\n".join(lines) + "\n", {}, folder=folder)
    return Problem(made.encoded, made.policy, subjects.astype(np.int32))


def tables_of(n: int, folder: Path) -> list[Problem]:
    """Return stays and drugs: with the persons, six rows a person."""
    random = np.random.default_rng((SEED, n))
    tables = []
    for name, each, without in (("stays", 2, WITHOUT_STAYS), ("drugs", 3, WITHOUT_DRUGS)):
        owners = np.flatnonzero(random.random(n) >= without)
        tables.append(rows_of(name, np.sort(random.choice(owners, each * n)), folder))
    return tables


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--persons", type=int, default=PERSONS)
    n = parser.parse_args().persons
    with tempfile.TemporaryDirectory() as folder:
        persons, tables = persons_of(n, Path(folder)), tables_of(n, Path(folder))
    searched: list[int] = []

    def counted(encoded, policy, **options):
        searched.append(encoded.n_rows)
        return search_rows(encoded, policy, **options)

    search_rows, first = linked.search_rows, Problem(persons.encoded, persons.policy)
    has_rows = [np.isin(np.arange(n), table.subjects) for table in tables]
    problems = len(np.unique(np.column_stack(has_rows), axis=0))
    stages, before = Stages(), time.process_time()
    with mock.patch.object(linked, "search_rows", counted):
        outcomes = linked.solve_linked(first, tables, seed=SEED, stages=stages)
    rows = n + sum(table.encoded.n_rows for table in tables)
    cpu, losses = time.process_time() - before, [100 * one.loss.ncp for one in outcomes]
    say(f"{n:,} persons, {rows:,} rows in {1 + len(tables)} tables: {problems} different problems")
    say(f"{len(searched)} searches of {', '.join(f'{rows:,}' for rows in searched)} persons")
    say(f"{cpu:.1f} CPU s, of which compiling {stages.seconds.get('compile', 0.0):.1f} s (wall)")
    say("NCP % of the tables: " + ", ".join(f"{loss:.2f}" for loss in losses))
    sys.exit(len(searched) != problems)


if __name__ == "__main__":
    main()
