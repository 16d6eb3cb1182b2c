"""Count what the code is made of and what commands run through, against figures that may only fall.

    python tests/benchmarks/corridor.py            # all of it, and the time of the ledger
    python tests/benchmarks/corridor.py --counts   # what is counted, as in CI: no times
    python tests/benchmarks/corridor.py --names    # also what ran and was sent, file by file
    python tests/benchmarks/corridor.py --lower    # store figures that have fallen
    python tests/benchmarks/corridor.py --record   # the time of the ledger alone

Counted are lines and modules of the package (with code; imported by exactly one other), SQL files,
and, of warm commands on the demo's table, the files with a function that runs in the main thread
(bodies of modules and classes are none) and the statements sent through psycopg (a pipeline is
one). Then a column of many values is published by a taxonomy of as many leaves, and the stage is
timed that enters a release into the ledger. ``corridor.json`` holds the greatest figure allowed
of each. The exit code is 1 if one is exceeded.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from measuring import DBANON, connected, measure, own_server, say, server_cpu

import dbanon
from dbanon.domain.outcomes import Stages

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, FrameType

TREE = Path(__file__).resolve().parents[2]
PACKAGE = TREE / "dbanon"
FIGURES = Path(__file__).with_suffix(".json")
PUBLISH = ("publish", "patients", "--k", "5", "--l", "3")
REFRESH = ("refresh", "patients")
REPORT = ("report", "anon.patients")
EARLIER = 10  # releases before the last commands
BAR_RECORD = 0.3
COUNTED = {
    ("formats/policies.py", "from_document"): "policies read from a document",
    ("db/metadata/store.py", "load_taxonomies"): "loads of whole taxonomies",
}
LEAVES = 100_000
COMPREHENSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})
POLICY = """\
table = "public.visits"
[models]
k = 5
[columns]
id = {role = "identifier"}
place = {role = "quasi", taxonomy = "places"}
ill = {role = "sensitive"}
"""


def is_function(code: CodeType) -> bool:
    """Whether code is that of a function: the bodies of modules and classes have no fast locals."""
    return bool(code.co_flags & inspect.CO_OPTIMIZED) and code.co_name not in COMPREHENSIONS


def profile(report: Path, words: list[str]) -> None:
    """Run a command in this process; write down which functions ran and who sent statements."""
    calls: Counter[tuple[str, str]] = Counter()
    known: dict[CodeType, tuple[str, str] | None] = {}

    def name_of(code: CodeType) -> tuple[str, str] | None:
        if code not in known:
            path = Path(code.co_filename)
            within = path.is_relative_to(PACKAGE) and is_function(code)
            known[code] = (str(path.relative_to(PACKAGE)), code.co_qualname) if within else None
        return known[code]

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and (name := name_of(frame.f_code)) is not None:
            calls[name] += 1

    sent = count_statements()
    sys.argv = ["dbanon", *words]
    sys.setprofile(note)
    try:
        from dbanon.cli import main

        main()
    finally:
        sys.setprofile(None)
        found = [[path, name, count] for (path, name), count in calls.items()]
        report.write_text(json.dumps({"calls": found, "sent": sent}), encoding="utf-8")


def count_statements() -> Counter[str]:
    """Count from now on what cursors of psycopg send, by the file of the package that sends it.

    The server's replies of one pipeline are awaited once, so it counts once; if they are asked for
    within it, each time counts as well.
    """
    import psycopg

    sent: Counter[str] = Counter()

    def sender() -> str:
        frame = sys._getframe(2)  # noqa: SLF001 - the stack alone knows
        while frame is not None:
            path = Path(frame.f_code.co_filename)
            if path.is_relative_to(PACKAGE) and path.name != "session.py":
                return str(path.relative_to(PACKAGE))
            frame = frame.f_back
        return "elsewhere"

    def counted(original, *, within: bool):
        def call(self, *arguments, **named):
            is_off = self.connection.pgconn.pipeline_status == psycopg.pq.PipelineStatus.OFF
            if is_off != within:
                sent[sender()] += 1
            return original(self, *arguments, **named)

        return call

    def pipeline(connection):
        sent[sender()] += 1
        return original_pipeline(connection)

    sending, fetching = ("execute", "executemany", "copy"), ("fetchone", "fetchall", "__iter__")
    for name in (*sending, *fetching):
        original = getattr(psycopg.Cursor, name)
        setattr(psycopg.Cursor, name, counted(original, within=name in fetching))
    original_pipeline, psycopg.Connection.pipeline = psycopg.Connection.pipeline, pipeline
    return sent


@dataclass(frozen=True)
class Road:
    """What a command ran through."""

    calls: dict[tuple[str, str], int]
    sent: dict[str, int]

    @property
    def files(self) -> list[str]:
        return sorted({path for path, _ in self.calls})

    @property
    def statements(self) -> int:
        return sum(self.sent.values())


def run(*words: str, names: bool) -> Road:
    """Run a command under a profiler, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "calls.json"
        command = [sys.executable, __file__, "--profile", str(report), *words]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        found = json.loads(report.read_text("utf-8"))
    road = Road({(path, name): n for path, name, n in found["calls"]}, found["sent"])
    if names:
        say(f"dbanon {' '.join(words)}")
        for path in road.files:
            ran = ", ".join(sorted(name for where, name in road.calls if where == path))
            say(f"    {path}: {road.sent.get(path, 0)} statements; {ran}")
    return road


def roads(*, names: bool) -> dict[str, int]:
    """Publish the demo's table again and again, and return what the commands ran through."""
    measure("demo")
    with connected() as connection:  # what nobody was granted is not compared with what follows
        connection.execute("GRANT SELECT ON anon.patients TO public")
    found: dict[str, int] = {}
    publish = run(*PUBLISH, names=names)
    found["files that run in publish"] = len(publish.files)
    found |= {what: publish.calls.get(counted, 0) for counted, what in COUNTED.items()}
    found["statements of publish, release 2"] = publish.statements
    for _ in range(EARLIER - 3):
        measure(*PUBLISH)
    found[f"statements of publish, release {EARLIER}"] = run(*PUBLISH, names=False).statements
    with connected() as connection:
        connection.execute("DELETE FROM public.patients WHERE patient_id % 100 = 0")
    refresh = run(*REFRESH, names=names)
    found["files that run in refresh"] = len(refresh.files)
    found[f"statements of refresh, after release {EARLIER}"] = refresh.statements
    found["files that run in report"] = len(run(*REPORT, names=names).files)
    return found


def structure() -> dict[str, int]:
    """Return what the package is made of."""
    modules = {name_of_module(path): path for path in PACKAGE.rglob("*.py")}
    callers: dict[str, set[str]] = {name: set() for name in modules}
    with_code, lines = set(), 0
    for name, path in modules.items():
        text = path.read_text("utf-8")
        tree = ast.parse(text)
        lines += text.count("\n")
        if any(not isinstance(node, ast.Expr) for node in tree.body):
            with_code.add(name)
        for target in imported_by(tree) & modules.keys() - {name}:
            callers[target].add(name)
    return {
        "lines of the package": lines,
        "modules with code": len(with_code),
        "modules with one caller": sum(len(callers[name]) == 1 for name in with_code),
        "SQL files": sum(1 for _ in (TREE / "sql").rglob("*.sql")),
    }


def name_of_module(path: Path) -> str:
    parts = path.relative_to(TREE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_by(tree: ast.Module) -> set[str]:
    """Return every name that an import anywhere in a module could mean as a module."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def compare(found: dict[str, int], *, lower: bool) -> bool:
    """Print each figure beside the greatest one allowed, and return whether none is exceeded."""
    allowed: dict[str, int] = json.loads(FIGURES.read_text("utf-8"))
    if found.keys() != allowed.keys():
        sys.exit(f"{FIGURES.name} is not about {sorted(found.keys() ^ allowed.keys())}")
    met = [judge(what, figure, allowed[what]) for what, figure in found.items()]
    if lower:
        least = {what: min(figure, allowed[what]) for what, figure in found.items()}
        FIGURES.write_text(json.dumps(least, indent=2) + "\n", encoding="utf-8")
    return all(met)


def record() -> bool:
    """Publish by a large taxonomy, and return whether the release is entered fast enough."""
    measure("init")
    with connected() as connection:
        connection.execute(
            "CREATE TABLE public.visits AS SELECT i AS id, 'p' || lpad((i %% %s)::text, 6, '0')"
            " AS place, 'i' || i %% 7 AS ill FROM generate_series(1, %s) AS i",
            (LEAVES, LEAVES),
        )
        connection.execute("ALTER TABLE public.visits ADD PRIMARY KEY (id)")
    with tempfile.TemporaryDirectory() as folder:
        tree, policy = Path(folder) / "places.csv", Path(folder) / "visits.toml"
        leaves = (f"p{i:06}" for i in range(LEAVES))
        tree.write_text("\n".join(f"{leaf};{leaf[:5]};{leaf[:3]};*" for leaf in leaves))
        policy.write_text(POLICY)
        subprocess.run([*DBANON, "taxonomy", "import", "places", str(tree)], check=True)
        subprocess.run([*DBANON, "policy", "set", "visits", "--file", str(policy)], check=True)
    stages = Metered()
    dbanon.publish("visits", algorithm="mondrian", stages=stages)
    say(f"publication of {LEAVES:,} rows by a taxonomy of {LEAVES:,} leaves")
    say(f"{'':<28} {'wall s':>8} {'CPU s':>8} {'server s':>8}")
    for name, seconds in stages.seconds.items():
        command, server = stages.cpu.get(name, (0.0, 0.0))  # none of what is told apart later
        say(f"    {name:<24} {seconds:>8.2f} {command:>8.2f} {server:>8.2f}")
    return judge("seconds of stage record", stages.seconds["record"], BAR_RECORD)


@dataclass
class Metered(Stages):
    """Stages that know the CPU seconds of the command and of the server."""

    cpu: dict[str, tuple[float, float]] = field(default_factory=dict)

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        before = time.process_time(), server_cpu()
        with Stages.__call__(self, name):
            yield
        found = time.process_time() - before[0], server_cpu() - before[1]
        known = self.cpu.get(name, (0.0, 0.0))
        self.cpu[name] = (known[0] + found[0], known[1] + found[1])


def judge(what: str, found: float, bar: float) -> bool:
    """Print a figure beside its bar, and return whether it is met."""
    met = found <= bar
    say(f"{what:<44} {found:>8g}   <= {bar:<6g} {'met' if met else 'MISSED'}")
    return met


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--counts", action="store_true", help="count, and time nothing")
    parser.add_argument("--record", action="store_true", help="time the ledger only")
    parser.add_argument("--names", action="store_true", help="print what ran, file by file")
    parser.add_argument("--lower", action="store_true", help="store figures that have fallen")
    parser.add_argument("--profile", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.profile:
        profile(Path(options.profile[0]), options.profile[1:])
        return
    met = True
    with own_server():
        if not options.record:
            met = compare(structure() | roads(names=options.names), lower=options.lower)
        if not options.counts:
            met = record() and met
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
