"""What the benchmarks share: whole processes, their use of the machine, and a server of their own.

CPU seconds and peak memory of a command are those of its process; the seconds of the server are
those of all its processes meanwhile, as Linux counts them.
"""

from __future__ import annotations

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

_COMMAND = ("-P", "-m", "dbanon")  # not from the current folder, which may be another checkout
DBANON = (sys.executable, *_COMMAND)
STAGE = re.compile(r"^ *(\S.*?) +(\d+\.\d+) s$", re.MULTILINE)
MEBIBYTE = 2**20
UTIME, STIME, CUTIME, CSTIME = 11, 12, 13, 14  # of /proc/<pid>/stat, after the name


@dataclass(frozen=True)
class Run:
    """One process from start to end; memory in bytes, ``server`` in CPU seconds."""

    wall: float
    cpu: float
    server: float
    peak: int
    output: str
    stages: dict[str, float]


@dataclass(frozen=True)
class Bar:
    """What is required: seconds, bytes if memory matters, CPU seconds of both or of the server."""

    wall: float | None = None
    peak: float | None = None
    cpu: float | None = None
    server: float | None = None

    def judge(self, run: Run) -> str:
        bars = [
            (self.wall, run.wall, 1, "{:g} s"),
            (self.cpu, run.cpu + run.server, 1, "{:.2f} CPU s"),
            (self.server, run.server, 1, "{:.2f} server s"),
            (self.peak, run.peak, MEBIBYTE, "{:,.0f} MiB"),
        ]
        asked = [
            (form.format(most / unit), found <= most)
            for most, found, unit, form in bars
            if most is not None
        ]
        names = ", ".join(name for name, _ in asked)
        return f"{'<= ' + names:<18} {'met' if all(met for _, met in asked) else 'MISSED'}"


@dataclass(frozen=True)
class Statement:
    """What a statement took: wall, and CPU seconds of the server."""

    wall: float
    server: float


def say(text: str = "") -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def measure(*arguments: str) -> Run:
    """Run one command and ask the kernel what it used."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        server = server_cpu()
        start = time.perf_counter()
        process = subprocess.Popen(
            [*DBANON, *arguments], stdin=subprocess.DEVNULL, stdout=out, stderr=err
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        server = server_cpu() - server
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        output, told = out.read(), err.read()
    if process.returncode != 0:
        sys.exit(f"dbanon {' '.join(arguments)} failed:\n{told}")
    stages = {name: float(seconds) for name, seconds in STAGE.findall(told)}
    unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss
    cpu = usage.ru_utime + usage.ru_stime
    return Run(wall, cpu, server, usage.ru_maxrss * unit, output, stages)


@contextmanager
def by_checkout(checkout: Path) -> Iterator[None]:
    """Run the commands of another checkout, with its own .venv, in the block."""
    global DBANON  # noqa: PLW0603
    own = DBANON
    DBANON = (str(checkout / ".venv/bin/python"), *_COMMAND)
    try:
        yield
    finally:
        DBANON = own


def server_cpu() -> float:
    """Return the CPU seconds that the embedded server has used; 0 before it runs or off Linux."""
    try:
        lines = Path(os.environ["DBANON_HOME"], "data", "postmaster.pid").read_text()
        postmaster = int(lines.splitlines()[0])
        ticks = sum(_times(postmaster)[UTIME : CSTIME + 1])
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    except (OSError, KeyError, ValueError):
        return 0.0
    for child in children:
        try:
            ticks += sum(_times(int(child))[UTIME : STIME + 1])
        except OSError:
            continue  # it has ended since
    return ticks / os.sysconf("SC_CLK_TCK")


def _times(pid: int) -> list[int]:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return [int(field) if field.lstrip("-").isdigit() else 0 for field in fields]


def median(runs: list[Run]) -> Run:
    """Take the run in the middle by wall time, so that its figures belong together."""
    middle = statistics.median_low(run.wall for run in runs)
    return next(run for run in runs if run.wall == middle)


def report_head() -> None:
    say(f"{'':<44} {'wall s':>8} {'CPU s':>8} {'server s':>8} {'peak MiB':>9}   bar")


def report_command(what: str, run: Run, bar: Bar | None = None) -> None:
    judgement = bar.judge(run) if bar else "-"
    peak = f"{run.peak / MEBIBYTE:,.0f}"
    say(f"{what:<44} {run.wall:>8.2f} {run.cpu:>8.2f} {run.server:>8.2f} {peak:>9}   {judgement}")


def report_publication(what: str, run: Run, bar: Bar | None = None) -> None:
    report_command(what, run, bar)
    for name, seconds in run.stages.items():
        say(f"    {name:<40} {seconds:>8.2f}")
    loss = json.loads(run.output)["loss"]
    say(f"    {loss['n_classes']:,} classes, NCP {100 * loss['ncp']:.3f} %")


def report_floor(statements: dict[str, Statement], run: Run) -> None:
    lowest = sum(statement.wall for statement in statements.values())
    server = sum(statement.server for statement in statements.values())
    say(f"{'the floor of the same rows':<44} {lowest:>8.2f} {'':>8} {server:>8.2f}")
    for name, statement in statements.items():
        say(f"    {name:<40} {statement.wall:>8.2f} {'':>8} {statement.server:>8.2f}")
    say(f"{'publish / floor':<44} {run.wall / lowest:>8.1f}")
    if server:
        ratio = (run.cpu + run.server) / server
        say(f"{'CPU of command and server / of the floor':<44} {'':>8} {'':>8} {ratio:>8.1f}")


@contextmanager
def own_server() -> Iterator[None]:
    """Give every command an embedded server that nobody else has, and stop it at the end.

    Commands keep compiled modules: otherwise each would compile what it imports.
    """
    foreign = ("PG", "DBANON_", "PYTHONDONTWRITEBYTECODE")
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

    dsn = os.environ.get("DBANON_DSN")
    if dsn is None:
        url = subprocess.run([*DBANON, "server", "url"], capture_output=True, text=True, check=True)
        dsn = url.stdout.strip()
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


def apart(function, *arguments) -> object:
    """Call a function in a fresh process: what this one holds would count as its children's."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)
