"""Measure dbanon as a user meets it: whole processes, on an embedded server of their own.

    python tests/benchmarks/run.py            # a million rows; a few minutes
    python tests/benchmarks/run.py --quick    # 100,000 rows, every command once

Kernels are compiled before anything is measured. CPU seconds and peak memory are those of the
command, without the server. The floor is what the server alone needs to hand out the table, take
back a group for each row, write the copy and count its classes.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import multiprocessing
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psycopg

DBANON = (sys.executable, "-m", "dbanon")
DATA = Path(__file__).parents[2] / "dbanon" / "data"
STAGE = re.compile(r"^ *(\S.*?) +(\d+\.\d+) s$", re.MULTILINE)
MEBIBYTE = 2**20
SEED = 20_000
COLUMNS = (
    "sex",
    "age",
    "race",
    "marital-status",
    "education",
    "native-country",
    "workclass",
    "occupation",
    "salary-class",
)
QUASI = tuple(name for name in COLUMNS if name != "occupation")


@dataclass(frozen=True)
class Run:
    """One process from start to end; memory in bytes."""

    wall: float
    cpu: float
    peak: int
    output: str
    stages: dict[str, float]


@dataclass(frozen=True)
class Bar:
    """What the project asks for: seconds, and bytes if memory matters."""

    wall: float
    peak: float | None = None

    def judge(self, run: Run) -> str:
        met = run.wall <= self.wall and (self.peak is None or run.peak <= self.peak)
        asked = f"<= {self.wall:g} s"
        if self.peak is not None:
            asked += f", {self.peak / MEBIBYTE:,.0f} MiB"
        return f"{asked:<18} {'met' if met else 'MISSED'}"


def say(text: str = "") -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def measure(*arguments: str) -> Run:
    """Run one command and ask the kernel what it used."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        start = time.perf_counter()
        process = subprocess.Popen(
            [*DBANON, *arguments], stdin=subprocess.DEVNULL, stdout=out, stderr=err
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        output, told = out.read(), err.read()
    if process.returncode != 0:
        sys.exit(f"dbanon {' '.join(arguments)} failed:\n{told}")
    stages = {name: float(seconds) for name, seconds in STAGE.findall(told)}
    unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss
    return Run(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit, output, stages)


def median(runs: list[Run]) -> Run:
    """Take the run in the middle by wall time, so that its figures belong together."""
    middle = statistics.median_low(run.wall for run in runs)
    return next(run for run in runs if run.wall == middle)


def report(what: str, run: Run, bar: Bar | None = None) -> None:
    judgement = bar.judge(run) if bar else "-"
    peak = f"{run.peak / MEBIBYTE:,.0f}"
    say(f"{what:<44} {run.wall:>8.2f} {run.cpu:>8.2f} {peak:>9}   {judgement}")


def report_publication(what: str, run: Run, bar: Bar | None = None) -> None:
    report(what, run, bar)
    for name, seconds in run.stages.items():
        say(f"    {name:<40} {seconds:>8.2f}")
    loss = json.loads(run.output)["loss"]
    say(f"    {loss['n_classes']:,} classes, NCP {100 * loss['ncp']:.2f} %")


@contextmanager
def own_server() -> Iterator[None]:
    """Give every command an embedded server that nobody else has, and stop it at the end."""
    foreign = ("PG", "DBANON_")
    for name in [name for name in os.environ if name.startswith(foreign)]:
        del os.environ[name]
    with tempfile.TemporaryDirectory(prefix="dbanon-benchmark-") as folder:
        Path(folder).chmod(0o711)  # root's server runs under an account of its own
        os.environ["DBANON_HOME"] = str(Path(folder) / "home")
        try:
            yield
        finally:
            measure("server", "stop")


@contextmanager
def connected() -> Iterator[psycopg.Connection]:
    import psycopg

    url = subprocess.run([*DBANON, "server", "url"], capture_output=True, text=True, check=True)
    with psycopg.connect(url.stdout.strip(), autocommit=True) as connection:
        yield connection


def apart(function, *arguments) -> object:
    """Call a function in a fresh process: what this one holds would count as its children's."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def load_large(rows: int) -> None:
    """Make the table ``large``: Adult resampled, ages moved by at most 3, 5 % of cells redrawn."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import csv

    text = gzip.decompress((DATA / "adult.csv.gz").read_bytes())
    adult = csv.read_csv(io.BytesIO(text), parse_options=csv.ParseOptions(delimiter=";"))
    random = np.random.default_rng(SEED)
    drawn = random.integers(adult.num_rows, size=rows)
    columns = {}
    for name in COLUMNS:
        values = adult[name].to_numpy(zero_copy_only=False)
        column = values[drawn]
        if name == "age":
            column = column + random.integers(-3, 4, size=rows)
        else:
            redrawn = random.random(rows) < 0.05
            column[redrawn] = values[random.integers(adult.num_rows, size=int(redrawn.sum()))]
        columns[name] = pa.array(column)
    buffer = io.BytesIO()
    csv.write_csv(pa.table(columns), buffer, csv.WriteOptions(include_header=False))
    names = ", ".join(f'"{name}"' for name in COLUMNS)
    with connected() as connection:
        connection.execute("CREATE TABLE public.large (LIKE public.adult INCLUDING ALL)")
        with connection.cursor().copy(f"COPY public.large ({names}) FROM STDIN (FORMAT csv)") as to:
            to.write(buffer.getbuffer())
        connection.execute("ANALYZE public.large")


def floor() -> dict[str, float]:
    """Time what no publication of ``large`` can do without, statement by statement."""
    import numpy as np

    seconds = {}

    @contextmanager
    def timed(name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        seconds[name] = time.perf_counter() - start

    published = ", ".join(f'"{name}"' for name in COLUMNS)
    quasi = ", ".join(f'"{name}"' for name in QUASI)
    with connected() as connection, connection.cursor() as cursor:
        rows = cursor.execute("SELECT count(*) FROM public.large").fetchone()[0]
        group = np.arange(rows) // 5
        lines = "".join(f"{i},{g}\n" for i, g in enumerate(group.tolist(), 1)).encode()
        cursor.execute("CREATE TABLE public.floor_rows (id integer, group_id integer)")
        with (
            timed("COPY out"),
            cursor.copy("COPY public.large TO STDOUT (FORMAT binary)") as out,
        ):
            for _ in out:
                pass
        with (
            timed("COPY in"),
            cursor.copy("COPY public.floor_rows FROM STDIN (FORMAT csv)") as to,
        ):
            to.write(lines)
        with timed("CREATE TABLE AS"):
            cursor.execute(f"CREATE TABLE public.floor_copy AS SELECT {published} FROM anon.large")
        with timed("GROUP BY"):
            classes = f"SELECT count(*) AS n FROM public.floor_copy GROUP BY {quasi}"
            cursor.execute(f"SELECT min(c.n) FROM ({classes}) AS c").fetchone()
        cursor.execute("DROP TABLE public.floor_rows, public.floor_copy")
    return seconds


def large_policy(folder: Path) -> Path:
    text = (DATA / "adult.toml").read_text(encoding="utf-8")
    path = folder / "large.toml"
    path.write_text(text.replace('"public.adult"', '"public.large"'), encoding="utf-8")
    return path


def publish(table: str) -> Run:
    models = ("--k", "5", "--l", "3", "--algorithm", "mondrian")
    return measure("publish", table, *models, "--as", "table", "--json", "--timings")


def benchmark(*, rows: int, repeats: int) -> None:
    say(f"{'':<44} {'wall s':>8} {'CPU s':>8} {'peak MiB':>9}   bar")
    shown = median([measure("--help") for _ in range(repeats)])
    report("dbanon --help", shown, Bar(0.4))
    measure("demo", "--dataset", "adult")  # loads the table, and compiles what is not compiled
    adult = median([publish("adult") for _ in range(repeats)])
    report_publication("dbanon publish adult (30,162 rows)", adult, Bar(4.0))
    apart(load_large, rows)
    with tempfile.TemporaryDirectory() as folder:
        measure("policy", "set", "large", "--file", str(large_policy(Path(folder))))
    large = publish("large")
    bar = Bar(25.0, 2 * 2**30) if rows == 1_000_000 else None
    report_publication(f"dbanon publish large ({rows:,} rows)", large, bar)
    statements = apart(floor)
    lowest = sum(statements.values())
    say(f"{'the floor of the same rows':<44} {lowest:>8.2f}")
    for name, seconds in statements.items():
        say(f"    {name:<40} {seconds:>8.2f}")
    say(f"{'publish large / floor':<44} {large.wall / lowest:>8.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="100,000 rows, every command once")
    quick = parser.parse_args().quick
    say(f"Python {sys.version.split()[0]}, {os.cpu_count()} processors")
    with own_server():
        benchmark(rows=100_000 if quick else 1_000_000, repeats=1 if quick else 3)


if __name__ == "__main__":
    main()
