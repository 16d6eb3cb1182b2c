"""Count what one publication runs through: files, readings of the policy, loads of taxonomies.

A warm ``dbanon publish patients --k 5 --l 3`` of the demo runs under a profiler. Counted are the
files of the package that have a function running in the main thread; the bodies of modules and
classes are none. Then a column of many values is published by a taxonomy of as many leaves, and
the stage is timed that enters a release into the ledger.
"""

from __future__ import annotations

import argparse
import inspect
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from measuring import DBANON, connected, measure, own_server, say

if TYPE_CHECKING:
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


def corridor(*, names: bool) -> None:
    """Publish the demo's table once more and report what ran."""
    measure("demo")
    measure(*PUBLISH)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "calls.json"
        command = [sys.executable, __file__, "--profile", str(report)]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        calls = {(path, name): n for path, name, n in json.loads(report.read_text("utf-8"))}
    files = Counter(path for path, _ in calls)
    say(f"dbanon {' '.join(PUBLISH)}")
    judge("files whose functions run", len(files), BAR_FILES)
    for counted, what in COUNTED.items():
        judge(what, calls.get(counted, 0), BAR_CALLS)
    if names:
        for path in sorted(files):
            ran = ", ".join(sorted(name for where, name in calls if where == path))
            say(f"    {path}: {ran}")


def record() -> None:
    """Publish by a large taxonomy and report the stage that enters the release."""
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
    run = measure("publish", "visits", "--timings", "--json")
    say(f"publication of {LEAVES:,} rows by a taxonomy of {LEAVES:,} leaves")
    for name, seconds in run.stages.items():
        say(f"    {name:<40} {seconds:>8.2f}")
    judge("seconds of stage record", run.stages["record"], BAR_RECORD)


def judge(what: str, found: float, bar: float) -> None:
    say(f"{what:<44} {found:>8g}   <= {bar:<6g} {'met' if found <= bar else 'MISSED'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--names", action="store_true", help="print what ran, file by file")
    parser.add_argument("--profile", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.profile:
        profile(options.profile)
        return
    with own_server():
        corridor(names=options.names)
        record()


if __name__ == "__main__":
    main()
