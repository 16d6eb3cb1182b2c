"""A large made-up table of people: eleven quasi-identifiers and a diagnosis.

Five numbers (age, income in hundreds, hours of work, size of the household, years at the address)
and six categories with taxonomies (sex, zip of 600 in 60 areas and 10 regions, marital status,
education, occupation of 60 in 12 fields, country of birth of 80 in 16 parts of the world). Like in
tables of people, most values are skewed (half of all live in some 60 zips, nine of ten were born in
one country, incomes are log-normal) and columns depend on each other: education, marital status,
the household and the years on age, occupation on education, income on both and on hours. Hardly two
rows are equal. The same number of rows and the same seed give the same table.
"""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

    from samples.datasets import Dataset

NAME, PROTECTED = "people", "diagnosis"
NUMBERS = ("age", "income", "hours", "household", "years")
CATEGORIES = ("sex", "zip", "marital", "education", "occupation", "country")
SEED = 11
ZIPS, AREAS, REGIONS = 600, 60, 10
JOBS, FIELDS = 60, 12
COUNTRIES, PARTS = 80, 16
MARITAL = {"never": "alone", "widowed": "alone", "divorced": "alone", "separated": "alone"}
MARITAL |= {"married": "together", "partner": "together", "away": "together"}
LEVELS = ("none", "school", "college", "university")
DEGREES, DIAGNOSES = 16, 90


def trees() -> dict[str, list[tuple[str, ...]]]:
    """Return by category the path of each leaf to the root."""
    return {
        "sex": [("f", "*"), ("m", "*")],
        "zip": [
            (f"{10_000 + i}", f"area {i * AREAS // ZIPS}", f"region {i * REGIONS // ZIPS}", "*")
            for i in range(ZIPS)
        ],
        "marital": [(leaf, node, "*") for leaf, node in MARITAL.items()],
        "education": [
            (f"degree {i:02}", LEVELS[i * len(LEVELS) // DEGREES], "*") for i in range(DEGREES)
        ],
        "occupation": [(f"job {i:02}", f"field {i * FIELDS // JOBS}", "*") for i in range(JOBS)],
        "country": [
            (f"country {i:02}", f"part {i * PARTS // COUNTRIES}", "*") for i in range(COUNTRIES)
        ],
    }


def make(rows: int, *, seed: int = SEED) -> pa.Table:
    """Draw a table of so many rows."""
    import pyarrow as pa

    random = np.random.default_rng(seed)
    age = np.minimum(100 * random.beta(1.3, 2.0, rows), 99).astype(np.int64)
    adult = age > 17
    schooled = np.clip((age - 5) * 0.8, 0, 9 + 2.5 * random.standard_normal(rows))
    degree = np.clip(schooled, 0, DEGREES - 1).astype(np.int64)
    status = _status(age, random)
    job = np.where(adult, (degree * 3 + 9 * random.standard_normal(rows)) % JOBS, 0)
    job = np.where(random.random(rows) < 0.3, 5 * (job // 5), job).astype(np.int64)
    hours = np.where(random.random(rows) < 0.55, 40, np.rint(random.normal(32, 12, rows)))
    hours = np.where(adult & (age < 67), np.clip(hours, 0, 80), 0).astype(np.int64)
    usual = 120 * (1 + 0.15 * degree + 0.02 * (job // 5)) * (0.3 + hours / 50)
    income = np.where(adult, usual * random.lognormal(0, 0.4, rows), 0)
    together = np.isin(status, (4, 5, 6))
    household = 1 + random.poisson(np.where(together, 1.8, np.where(adult, 0.5, 2.6)))
    columns = {
        "age": age,
        "income": np.clip(income, 0, 5_000).astype(np.int64),
        "hours": hours,
        "household": np.minimum(household, 10),
        "years": np.minimum(random.exponential(9, rows), age).astype(np.int64),
        "sex": (random.random(rows) < 0.49).astype(np.int64),
        "zip": skewed(ZIPS, rows, random, exponent=0.8),
        "marital": status,
        "education": degree,
        "occupation": job,
        "country": np.where(random.random(rows) < 0.9, 7, skewed(COUNTRIES, rows, random)),
    }
    paths = trees()
    for name in CATEGORIES:
        leaves = np.array([path[0] for path in paths[name]])
        columns[name] = leaves[columns[name]]
    ill = skewed(DIAGNOSES, rows, random)
    columns[PROTECTED] = np.array([f"diagnosis {i:02}" for i in range(DIAGNOSES)])[ill]
    return pa.table(columns)


def skewed(size: int, rows: int, random: np.random.Generator, *, exponent: float = 1.0):
    """Draw values of which the i-th most frequent is 1 / i ** exponent as frequent as the first."""
    weights = 1.0 / np.arange(1, size + 1) ** exponent
    values = np.random.default_rng(size).permutation(size)
    return values[random.choice(size, rows, p=weights / weights.sum())]


def _status(age, random: np.random.Generator):
    """Draw the marital status, in the order of ``MARITAL``."""
    chance = random.random(len(age))
    grown = np.clip((age - 18) / 25, 0.0, 1.0)
    status = np.zeros(len(age), np.int64)
    status[chance < 0.75 * grown] = 4
    status[chance < 0.35 * grown] = 2
    status[chance < 0.20 * grown] = 5
    status[chance < 0.08 * grown] = 3
    status[chance < 0.04 * grown] = 6
    status[(age > 60) & (chance > 1 - (age - 60) / 60)] = 1
    return status


def policy_text(*, k: int, l: int) -> str:
    """Return the policy file, with tight intervals."""
    lines = [f'table = "public.{NAME}"', "[models]", f"k = {k}", *([f"l = {l}"] if l > 1 else [])]
    lines += ["[columns]", 'id.role = "identifier"', f'{PROTECTED}.role = "sensitive"']
    lines += [f'{name} = {{role = "quasi", recoding = "interval"}}' for name in NUMBERS]
    lines += [
        f'{name} = {{role = "quasi", recoding = "label", taxonomy = "{NAME}_{name}"}}'
        for name in CATEGORIES
    ]
    return "\n".join(lines) + "\n"


def encoded_people(rows: int, folder: Path, *, k: int, l: int) -> Dataset:
    """Make the table and encode it as a publication does."""
    from samples.datasets import encode_made

    return encode_made(make(rows), policy_text(k=k, l=l), trees(), folder=folder)


def prepare(rows: int, *, k: int, l: int) -> None:
    """Load a table of so many rows into the server, with its taxonomies and its policy."""
    from measuring import apart, measure

    from samples.datasets import write_trees

    apart(_load, rows)
    with tempfile.TemporaryDirectory() as folder:
        for name, file in write_trees(NAME, trees(), folder=Path(folder)).items():
            measure("taxonomy", "import", f"{NAME}_{name}", str(file))
        file = Path(folder) / f"{NAME}.toml"
        file.write_text(policy_text(k=k, l=l), encoding="utf-8")
        measure("policy", "set", NAME, "--file", str(file))


def _load(rows: int) -> None:
    from measuring import connected
    from pyarrow import csv

    table, buffer = make(rows), io.BytesIO()
    csv.write_csv(table, buffer, csv.WriteOptions(include_header=False))
    declared = ", ".join(
        f"{name} {'integer' if name in NUMBERS else 'text'} NOT NULL" for name in table.column_names
    )
    with connected() as connection:
        connection.execute(
            f"CREATE TABLE public.{NAME}"
            f" (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, {declared})"
        )
        copy = f"COPY public.{NAME} ({', '.join(table.column_names)}) FROM STDIN (FORMAT csv)"
        with connection.cursor().copy(copy) as to:
            to.write(buffer.getbuffer())
        connection.execute(f"VACUUM ANALYZE public.{NAME}")
