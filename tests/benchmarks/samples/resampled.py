"""Adult resampled to any number of rows: the tables to publish, and what their server needs."""

from __future__ import annotations

import io
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from measuring import Statement, apart, connected, measure, server_cpu

from samples.datasets import read

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

SEED = 20_000
ROWS_AT_ONCE = 1_000_000
GROUP_SIZE = 5


@dataclass(frozen=True)
class Sample:
    """A table to publish: its columns in order, the protected one among them.

    ``made`` are those that Adult has not; ``intervals`` are published as ranges, the others by
    the taxonomies of Adult.
    """

    name: str
    columns: tuple[str, ...]
    intervals: tuple[str, ...]
    made: tuple[str, ...] = ()
    protected: str = "occupation"

    @property
    def quasi(self) -> tuple[str, ...]:
        return tuple(name for name in self.columns if name != self.protected)


LARGE = Sample(
    "large",
    (
        "sex",
        "age",
        "race",
        "marital-status",
        "education",
        "native-country",
        "workclass",
        "occupation",
        "salary-class",
    ),
    intervals=("age",),
)
HARD = Sample(
    "hard",
    (
        "age",
        "income",
        "hours",
        "workclass",
        "education",
        "marital-status",
        "race",
        "native-country",
        "occupation",
    ),
    intervals=("age", "income", "hours"),
    made=("income", "hours"),
)


def prepare(sample: Sample, rows: int) -> None:
    """Load a sample of so many rows and store its policy."""
    apart(load, sample, rows)
    with tempfile.TemporaryDirectory() as folder:
        measure("policy", "set", sample.name, "--file", str(policy(sample, Path(folder))))


def policy(sample: Sample, folder: Path) -> Path:
    """Write the policy of a sample, with tight intervals."""
    lines = [f'table = "public.{sample.name}"', "[models]", "k = 5", "l = 3"]
    lines += ["[columns]", 'id.role = "identifier"', f'{sample.protected}.role = "sensitive"']
    for name in sample.quasi:
        recoding = f'recoding = "label", taxonomy = "adult_{name}"'
        if name in sample.intervals:
            recoding = 'recoding = "interval"'
        lines.append(f'{name} = {{role = "quasi", {recoding}}}')
    path = folder / f"{sample.name}.toml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def load(sample: Sample, rows: int) -> None:
    """Make the table: Adult resampled, ages moved by at most 3, 5 % of other cells redrawn."""
    import numpy as np
    from pyarrow import csv

    adult = read("adult")
    random = np.random.default_rng(SEED)
    names = ", ".join(f'"{name}"' for name in sample.columns)
    declared = ", ".join(
        f'"{name}" {"integer" if name in sample.intervals else "text"} NOT NULL'
        for name in sample.columns
    )
    with connected() as connection:
        connection.execute(
            f"CREATE TABLE public.{sample.name}"
            f" (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, {declared})"
        )
        copy = f"COPY public.{sample.name} ({names}) FROM STDIN (FORMAT csv)"
        for start in range(0, rows, ROWS_AT_ONCE):
            buffer = io.BytesIO()
            drawn = draw(sample, adult, min(ROWS_AT_ONCE, rows - start), random)
            csv.write_csv(drawn, buffer, csv.WriteOptions(include_header=False))
            with connection.cursor().copy(copy) as to:
                to.write(buffer.getbuffer())
        connection.execute(f"VACUUM ANALYZE public.{sample.name}")


def draw(sample: Sample, adult: pa.Table, rows: int, random) -> pa.Table:
    import pyarrow as pa

    drawn = random.integers(adult.num_rows, size=rows)
    columns = {}
    for name in sample.columns:
        if name in sample.made:
            column = _made(name, adult["salary-class"].to_numpy()[drawn], random)
        else:
            values = adult[name].to_numpy(zero_copy_only=False)
            column = values[drawn]
            if name == "age":
                column = column + random.integers(-3, 4, size=rows)
            else:
                redrawn = random.random(rows) < 0.05
                column[redrawn] = values[random.integers(adult.num_rows, size=int(redrawn.sum()))]
        columns[name] = pa.array(column)
    return pa.table(columns)


def _made(name: str, salary_class, random):
    """Draw an income of some 10,000 distinct values, or the hours of a week."""
    import numpy as np

    rows = len(salary_class)
    if name == "hours":
        return np.clip(np.rint(random.normal(40, 12, rows)), 1, 99).astype(np.int64)
    usual = np.where(salary_class == "<=50K", 2_500, 5_500)
    return np.clip(usual * random.lognormal(0, 0.35, rows), 0, 9_999).astype(np.int64)


def floor(sample: Sample) -> dict[str, Statement]:
    """Time what no publication of a sample can do without, statement by statement."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import csv

    measured = {}

    @contextmanager
    def timed(name: str) -> Iterator[None]:
        server, start = server_cpu(), time.perf_counter()
        yield
        measured[name] = Statement(time.perf_counter() - start, server_cpu() - server)

    published = ", ".join(f'"{name}"' for name in sample.columns)
    quasi = ", ".join(f'"{name}"' for name in sample.quasi)
    with connected() as connection, connection.cursor() as cursor:
        rows = cursor.execute(f"SELECT count(*) FROM public.{sample.name}").fetchone()[0]
        number = np.arange(rows, dtype=np.int32)
        lines = pa.BufferOutputStream()
        groups = pa.table({"id": number + 1, "group": number // GROUP_SIZE})
        csv.write_csv(groups, lines, csv.WriteOptions(include_header=False))
        cursor.execute("CREATE TABLE public.floor_rows (id integer, group_id integer)")
        copy = f"COPY public.{sample.name} TO STDOUT (FORMAT binary)"
        with timed("COPY out"), cursor.copy(copy) as out:
            for _ in out:
                pass
        copy = "COPY public.floor_rows FROM STDIN (FORMAT csv)"
        with timed("COPY in"), cursor.copy(copy) as to:
            to.write(memoryview(lines.getvalue()))
        with timed("CREATE TABLE AS"):
            copied = f"SELECT {published} FROM anon.{sample.name}"
            cursor.execute(f"CREATE TABLE public.floor_copy AS {copied}")
        with timed("GROUP BY"):
            classes = f"SELECT count(*) AS n FROM public.floor_copy GROUP BY {quasi}"
            cursor.execute(f"SELECT min(c.n) FROM ({classes}) AS c").fetchone()
        cursor.execute("DROP TABLE public.floor_rows, public.floor_copy")
    return measured
