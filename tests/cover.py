"""Name the tests that take long and reach no branch that others leave out.

    pytest -m '' --cov --cov-context=test --cov-report= --junit-xml=tests.xml
    python tests/cover.py .coverage tests.xml --above 0.45

What it names may be marked `exhaustive`: it guards combinations, not code that nothing else runs.
Branches are those of Python. What a statement of SQL or another process does is not seen, so a
test of these stays, whatever is said here. The cover is chosen greedily, by new branches a second
(Chvatal 1979, Mathematics of Operations Research 4).
"""

from __future__ import annotations

import argparse
import sqlite3
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

BRANCHES = """
SELECT c.context, a.file_id, a.fromno, a.tono
  FROM arc AS a
  JOIN context AS c ON c.id = a.context_id
 WHERE c.context LIKE '%|run'
"""  # those of fixtures are reached by whatever test comes first


def reached(data: Path) -> dict[str, set[tuple[int, int, int]]]:
    """Return the branches that each test reaches, by "path::name"."""
    found: dict[str, set[tuple[int, int, int]]] = defaultdict(set)
    with closing(sqlite3.connect(f"file:{data}?mode=ro", uri=True)) as stored:
        for context, *branch in stored.execute(BRANCHES):
            found[context.removesuffix("|run")].add(tuple(branch))
    return found


def taken(report: Path) -> dict[str, float]:
    """Return the seconds that each test took, by "path::name"."""
    cases = ET.parse(report).iter("testcase")  # noqa: S314 - pytest has just written it
    return {
        f"{case.attrib['classname'].replace('.', '/')}.py::{case.attrib['name']}": float(
            case.attrib["time"]
        )
        for case in cases
    }


def redundant(
    branches: Mapping[str, AbstractSet[object]], seconds: Mapping[str, float], *, above: float
) -> list[str]:
    """Return the tests above some seconds that are not needed to reach every branch."""
    left = {test for test in branches if seconds.get(test, 0.0) > above}
    covered = {branch for test in branches.keys() - left for branch in branches[test]}
    while left:
        gain = {test: len(branches[test] - covered) / seconds[test] for test in left}
        best = max(sorted(left), key=gain.__getitem__)
        if not gain[best]:
            break
        covered |= branches[best]
        left.remove(best)
    return sorted(left, key=lambda test: (-seconds[test], test))


def main() -> None:
    """Print the tests that are not needed, those that take longest first."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="what coverage stored")
    parser.add_argument("report", type=Path, help="what pytest --junit-xml wrote")
    parser.add_argument("--above", type=float, default=0.45, help="seconds")
    options = parser.parse_args()
    seconds = taken(options.report)
    for test in redundant(reached(options.data), seconds, above=options.above):
        print(f"{seconds[test]:6.1f} s  {test}")  # noqa: T201


if __name__ == "__main__":
    main()
