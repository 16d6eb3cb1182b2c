"""Count what one publication runs through: files, readings of the policy, loads of taxonomies.

    python tests/benchmarks/corridor.py            # what runs, and the time of the ledger
    python tests/benchmarks/corridor.py --names    # also what ran, file by file
    python tests/benchmarks/corridor.py --record   # the time of the ledger alone

A warm ``dbanon publish patients --k 5 --l 3`` of the demo runs under a profiler. Counted are the
files of the package that have a function running in the main thread; the bodies of modules and
classes are none. Then a column of many values is published by a taxonomy of as many leaves, and
the stage is timed that enters a release into the ledger. The exit code is 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
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
from dbanon.domain.progress import Stages

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, FrameType

PACKAGE = Path(__file__).resolve().parents[2] / "dbanon"
PUBLISH = ("publish", "patients", "--k", "5", "--l", "3")
BAR_FILES, BAR_CALLS, BAR_RECORD = 55, 1, 0.3
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


def profile(report: Path) -> None:
    """Run the command in this process and write down which functions ran how often."""
    calls: Counter[tuple[str, str]] = Counter()
    known: dict[CodeType, tuple[str, str] | None] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        if event != "call":
            return
        code = frame.f_code
        if code not in known:
            path = Path(code.co_filename)
            within = path.is_relative_to(PACKAGE) and is_function(code)
            known[code] = (str(path.relative_to(PACKAGE)), code.co_qualname) if within else None
        if (name := known[code]) is not None:
            calls[name] += 1

    sys.argv = ["dbanon", *PUBLISH]
    sys.setprofile(note)
    try:
        from dbanon.cli import main

        main()
    finally:
        sys.setprofile(None)
        found = [[path, name, count] for (path, name), count in calls.items()]
        report.write_text(json.dumps(found), encoding="utf-8")


def corridor(*, names: bool) -> bool:
    """Publish the demo's table once more, report what ran, and return whether all bars are met."""
    measure("demo")
    measure(*PUBLISH)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "calls.json"
        command = [sys.executable, __file__, "--profile", str(report)]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        calls = {(path, name): n for path, name, n in json.loads(report.read_text("utf-8"))}
    files = Counter(path for path, _ in calls)
    say(f"dbanon {' '.join(PUBLISH)}")
    met = [judge("files whose functions run", len(files), BAR_FILES)]
    met += [judge(what, calls.get(counted, 0), BAR_CALLS) for counted, what in COUNTED.items()]
    if names:
        for path in sorted(files):
            ran = ", ".join(sorted(name for where, name in calls if where == path))
            say(f"    {path}: {ran}")
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
    parser.add_argument("--record", action="store_true", help="time the ledger only")
    parser.add_argument("--names", action="store_true", help="print what ran, file by file")
    parser.add_argument("--profile", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.profile:
        profile(options.profile)
        return
    with own_server():
        met = options.record or corridor(names=options.names)
        met = record() and met
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
