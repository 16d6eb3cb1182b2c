"""Break what guards the promise, one place at a time, and see whether a test notices.

    python tests/mutation.py --list                 # the mutants, how many a file has
    python tests/mutation.py --sample 20 --jobs 2   # 20 of each file, two at a time
    python tests/mutation.py --only dbanon/actions/publication/steps.py

A mutant is one edit of a copy of the tree: a condition turned round, a raise or a call left out, a
comparison moved by one, a clause of SQL dropped. The tests named for its file run on one server,
those first that have killed before, until one fails. What no test notices has survived and is
printed with its line; the exit code is 1 if there is one. An edit that no longer compiles is none;
one that no test has judged within the limit of time is named as undecided, and is not killed.
The whole list takes hours; what Ctrl-C stops has tried equally many mutants of each file.
"""

from __future__ import annotations

import argparse
import ast
import multiprocessing
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

# Loaded once, before the forks: what tests and targets import takes longer than most mutants live.
import adbc_driver_postgresql.dbapi  # noqa: F401
import hypothesis  # noqa: F401
import numba  # noqa: F401
import pytest
import scipy.optimize  # noqa: F401

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection
    from multiprocessing.queues import Queue

_FORKS = multiprocessing.get_context("fork")

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 600  # seconds a mutant
TOO_LONG = "time limit"

# What guards the promise, and the tests that are to notice: few enough to be run for each mutant.
_PROOF = ["tests/security/test_proof_alone.py", "tests/db/proofs/test_checks.py"]
_PERSONS = ["tests/db/proofs/test_subjects.py"]
_GUARDS = [
    "tests/db/releases/test_guards.py",
    "tests/db/releases/test_guarded_writes.py",
    "tests/db/releases/test_write_skew.py",
]
_NAMES = ["tests/security/names/test_names.py"]
_OPENED = ["tests/security/names/test_opened.py"]
_VIEWS = ["tests/security/names/test_views_of_strangers.py"]
_REACH = [
    "tests/security/readers/test_rights_of_readers.py",
    "tests/security/readers/test_inside_statements.py",
]
_COUNTS = [
    "tests/security/test_budgets.py",
    "tests/e2e/policies/test_counts.py",
    "tests/security/test_approvals.py",
]
_PSEUDONYMS = ["tests/security/histories/test_pseudonyms.py"]
_JOINT = ["tests/db/proofs/test_linked.py", "tests/security/test_linked_tables.py"]
_REFUSALS = ["tests/unit/test_support.py", "tests/e2e/test_refused_modes.py"]
_OVERLAYS = ["tests/db/histories/test_overlay.py"]
_REPORT = "tests/e2e/reports/test_report.py"
TARGETS = {
    "dbanon/db/rights.py": [
        "tests/e2e/test_grant.py",
        "tests/security/histories/test_series.py",
        "tests/security/readers/test_access.py",
        "tests/e2e/publish/test_columns_that_leave.py",
        *_REACH,
    ],
    "dbanon/db/proofs/checks.py": _PROOF,
    "dbanon/db/releases/copies.py": [
        "tests/e2e/interruptions/test_idle_readers.py",
        "tests/db/releases/test_altered_sources.py",
    ],
    "dbanon/actions/releases/counting.py": _COUNTS,
    "dbanon/actions/publication/series.py": [
        "tests/security/readers/test_unread.py",
        *_PSEUDONYMS,
        "tests/security/test_masked_series.py",
        "tests/security/histories/test_composition.py",
        "tests/security/histories/test_forgotten_series.py",
    ],
    "dbanon/formats/finders.py": _REFUSALS,
    "dbanon/formats/support.py": _REFUSALS,
    "dbanon/actions/releases/released_data.py": [
        "tests/e2e/reports/test_noninterference.py",
        "tests/e2e/readers/test_attack.py",
        f"{_REPORT}::test_survey_weights_lower_the_journalists_risk_and_are_not_published",
    ],
    "dbanon/db/histories/overlay.py": [
        *_JOINT,
        *_OVERLAYS,
        "tests/security/histories/test_linked_releases.py",
    ],
    "sql/functions/check_anatomy.sql": ["tests/db/proofs/test_check_anatomy.py"],
    "sql/membership.sql#discard_leavers": ["tests/security/histories/leavers/test_erasure.py"],
    "sql/membership.sql#find_leavers": ["tests/security/histories/leavers/test_erasure.py"],
    "sql/overlays.sql#count_cells": [*_JOINT, *_OVERLAYS],
    "sql/histories.sql#known_by_key": _PSEUDONYMS,
    "sql/histories.sql#merge_alike": [*_JOINT, *_OVERLAYS],
    "sql/histories.sql#shown": _OVERLAYS,
    "sql/overlays.sql#cells": _OVERLAYS,
    "sql/overlays.sql#compare": _OVERLAYS,
    "sql/overlays.sql#compare_first": _OVERLAYS,
    "sql/overlays.sql#link": _JOINT,
    "sql/overlays.sql#linked_cells": _JOINT,
    "sql/proofs.sql#cell_members": _JOINT,
    "sql/proofs.sql#prove_cells": _JOINT,
    "dbanon/db/models/functions.py": [
        "tests/db/proofs/test_checks.py",
        "tests/db/proofs/test_model_checks.py",
        "tests/db/proofs/test_verify.py",
        "tests/e2e/publish/test_published_orders.py",
    ],
    "dbanon/db/identity.py": [*_OPENED, *_VIEWS, *_NAMES, "tests/security/names/test_owner.py"],
    "dbanon/db/releases/guards.py": [
        "tests/db/releases/test_guarded_models.py",
        "tests/db/releases/test_altered_sources.py",
        "tests/db/releases/test_live_partitions.py",
        *_GUARDS,
    ],
    "dbanon/db/releases/immutability.py": [
        "tests/security/test_immutable.py",
        *_NAMES,
        "tests/e2e/test_planned_refresh.py",
    ],
    "dbanon/db/proofs/subjects.py": [
        "tests/security/test_keys.py",
        "tests/db/proofs/test_population_checks.py",
        *_PERSONS,
        *_PROOF,
        *_JOINT,
        "tests/security/test_numbers_of_rows.py",
        "tests/e2e/publish/test_published_population.py",
    ],
    "dbanon/db/releases/publication_lock.py": ["tests/e2e/interruptions/test_turns.py"],
    "sql/functions/check_k_and_l.sql": ["tests/db/proofs/test_checks.py"],
    "sql/functions/classes.sql": ["tests/db/proofs/test_checks.py"],
    "sql/functions/tally.sql": ["tests/db/proofs/test_model_checks.py"],
    "sql/models/anonymity/k_anonymity.sql": ["tests/db/proofs/test_checks.py"],
    "sql/models/diversity/l_diversity.sql": ["tests/db/proofs/test_checks.py"],
    "sql/releases.sql#broken_seals": ["tests/security/test_immutable.py"],
    "sql/identity.sql#foreign_code": ["tests/security/names/test_owner.py", *_VIEWS, *_NAMES],
    "sql/identity.sql#moved_names": [*_OPENED, *_NAMES],
    "sql/identity.sql#opened_relations": [*_OPENED, *_NAMES],
    "sql/reach.sql#by_reading": ["tests/security/readers/test_reach.py", *_REACH],
    "sql/reach.sql#by_writing": _REACH,
    "sql/reach.sql#in_statements": _REACH,
    "sql/reach.sql#private": [
        "tests/security/readers/test_reach.py",
        "tests/security/readers/test_reach_below_views.py",
        *_REACH,
    ],
    "sql/reach.sql#readers": ["tests/security/readers/test_reach.py", *_REACH],
    "sql/identity.sql#serves_release": _NAMES,
    "sql/checks.sql#create_check": [
        "tests/db/proofs/test_checks.py",
        "tests/db/proofs/test_model_checks.py",
        "tests/db/proofs/test_population_checks.py",
    ],
    "sql/checks.sql#create_verify_promise": [
        "tests/db/proofs/test_verify.py",
        "tests/security/test_proof_alone.py",
        "tests/e2e/policies/test_anatomy.py",
    ],
    "sql/guards.sql#guard_body": _GUARDS,
    "sql/guards.sql#guard_first": _GUARDS,
    "sql/guards.sql#guard_model": ["tests/db/releases/test_guarded_models.py"],
    "sql/guards.sql#guard_plain": _GUARDS,
    "sql/guards.sql#guard_route_body": ["tests/db/releases/test_live_partitions.py"],
    "sql/guards.sql#guard_truncate_body": _GUARDS,
    "sql/live.sql#live_seen_body": ["tests/db/releases/test_altered_sources.py"],
    "sql/proofs.sql#prove_keys": ["tests/security/test_keys.py"],
    "sql/proofs.sql#prove_occurrences": _PERSONS,
    "sql/proofs.sql#prove_persons": _PERSONS,
    "sql/proofs.sql#prove_subjects": _PERSONS,
    "sql/releases.sql#seen_body": ["tests/e2e/interruptions/test_idle_readers.py"],
    "sql/live.sql#source_marks": ["tests/db/releases/test_altered_sources.py"],
    # Last: those that judge it publish, and take a minute each.
    "dbanon/actions/publication/steps.py": [
        *_PROOF,
        *_NAMES,
        "tests/security/readers/test_access.py",
        "tests/e2e/test_drift.py",
        "tests/e2e/publish/test_planned_statements.py",
        *_JOINT,
        "tests/security/test_keys.py",
        "tests/e2e/publish/test_rows_per_subject.py",
        "tests/security/readers/test_rules_and_triggers.py",
    ],
}

# Arguments and calls that change how fast something is, or what kind of class, and no answer.
HARMLESS = {"allow_memory", "eq", "frozen", "prepare", "slots"}
COMPARISONS = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
SQL_EDITS = (
    (r">=", ">"),
    (r"<=", "<"),
    (r"(?<![<>=])<(?![>=])(?!.*1e-9)", "<="),  # nothing lies at the edge of a tolerance
    (r"(?<![<>=-])>(?![>=])(?!.*1e-9)", ">="),
    (r"<>", "="),
    (r"(?<![<>=!:])=(?![>=])", "<>"),
    (r"\bAND\b", "OR"),
    (r"(?<!CREATE )\bOR\b", "AND"),
    (r"\bNOT EXISTS\b", "EXISTS"),
    (r"(?<!NOT )\bEXISTS\b", "NOT EXISTS"),
    (r"\bNOT (?!EXISTS|NULL)", ""),
    (r"\bDISTINCT\b(?! ON| FROM)", ""),
    (r"\bUNION ALL\b", "EXCEPT"),
    (r"\bEXCEPT\b(?! ALL)", "INTERSECT"),
    (r"\bEXCEPT ALL\b", "EXCEPT"),
    (r"\bFOR UPDATE\b", ""),
    (r"\bmin\(", "max("),
    (r"\bmax\(", "min("),
    (r"\btrue\b", "false"),
    (r"\bfalse\b", "true"),
    (r"'[a-z_A-Z]+'(?=[,)])", "'another'"),
)


@dataclass(frozen=True)
class Mutant:
    """One edit of a target: where it begins and ends, what stands there and what is put there."""

    target: str
    start: int
    end: int
    before: str
    after: str
    line: int

    @property
    def path(self) -> str:
        return self.target.partition("#")[0]

    def __str__(self) -> str:
        was, now = (" ".join(text.split())[:60] for text in (self.before, self.after))
        return f"{self.path}:{self.line}: {was!r} -> {now!r}"


def mutants(target: str) -> list[Mutant]:
    """Return every mutant of a file, or of one of its statements, in the order of its lines."""
    path, _, statement = target.partition("#")
    text = (ROOT / path).read_text(encoding="utf-8")
    first, last = _span(text, statement) if statement else (0, len(text))
    edits = _python(text) if path.endswith(".py") else _sql(text)
    found = [
        Mutant(target, start, end, text[start:end], after, text.count("\n", 0, start) + 1)
        for start, end, after in edits
        if first <= start and end <= last
    ]
    return sorted(set(found), key=lambda mutant: (mutant.start, mutant.end, mutant.after))


def _span(text: str, statement: str) -> tuple[int, int]:
    """Return where a statement of a family of SQL begins and ends."""
    start = text.index(f"-- name: {statement}\n")
    end = text.find("-- name: ", start + 1)
    return start, len(text) if end < 0 else end


def _python(text: str) -> Iterator[tuple[int, int, str]]:
    tree = ast.parse(text)
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    harmless: set[int] = set()
    for node in ast.walk(tree):
        if _is_harmless(node):
            harmless |= {id(part) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) in harmless or not hasattr(node, "lineno"):
            continue
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        for after in _edited(node, text):
            yield start, end, after


def _is_harmless(node: ast.AST) -> bool:
    """Return True for what changes no answer: docstrings, imports of types and ``HARMLESS``."""
    if isinstance(node, ast.If):
        return getattr(node.test, "id", "") == "TYPE_CHECKING"
    if isinstance(node, ast.keyword):
        return node.arg in HARMLESS
    if not isinstance(node, ast.Expr):
        return False
    if isinstance(node.value, ast.Call):
        return getattr(node.value.func, "attr", "") in HARMLESS
    return isinstance(node.value, ast.Constant)


def _edited(node: ast.AST, text: str) -> Iterator[str]:
    """Yield what may stand in a node's place; sources are ASCII, so columns are characters."""
    if isinstance(node, (ast.Raise, ast.Expr)):
        yield "pass"
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
        yield f"{left} {COMPARISONS[type(node.ops[0])]} {right}"
    elif isinstance(node, ast.BoolOp):
        word = " or " if isinstance(node.op, ast.And) else " and "
        yield "(" + word.join(f"({ast.unparse(value)})" for value in node.values) + ")"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield ast.unparse(node.operand)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield str(not node.value)
    elif isinstance(node, (ast.If, ast.IfExp)):
        test = ast.get_source_segment(text, node.test)
        yield ast.get_source_segment(text, node).replace(test, f"not ({test})", 1)
    elif isinstance(node, ast.Return) and isinstance(node.value, (ast.List, ast.ListComp)):
        yield "return []"


def _sql(text: str) -> Iterator[tuple[int, int, str]]:
    prose = [match.span() for match in re.finditer(r"--.*|RAISE EXCEPTION\s+'.*'", text)]
    for pattern, after in SQL_EDITS:
        for match in re.finditer(pattern, text):
            if not any(start <= match.start() < end for start, end in prose):
                yield *match.span(), after


def survives(mutant: Mutant, tree: Path, judge: Judge) -> str | None:
    """Return the test that fails on the mutant, "" if none does; None if it is no mutant."""
    path = tree / mutant.path
    text = path.read_text(encoding="utf-8")
    edited = text[: mutant.start] + mutant.after + text[mutant.end :]
    if edited == text:
        return None
    if path.suffix == ".py":
        try:
            compile(edited, str(path), "exec")
        except SyntaxError:
            return None
    path.write_text(edited, encoding="utf-8")
    try:
        return judge(list(dict.fromkeys(TARGETS[mutant.target])))
    finally:
        path.write_text(text, encoding="utf-8")


class Verdict:
    """A plugin of pytest: runs first what has killed before, and keeps the name of what fails."""

    def __init__(self, killers: list[str]) -> None:
        self.killers = killers
        self.failed = ""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        rank = {name: i for i, name in enumerate(self.killers)}
        items.sort(key=lambda item: rank.get(item.nodeid, len(rank)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed = self.failed or report.nodeid


class Judge:
    """Runs tests in forks of a process that has loaded the libraries and none of the targets."""

    def __init__(self, tree: Path, dsn: str) -> None:
        self.tree = tree
        self.dsn = dsn
        self.killers: list[str] = []

    def __call__(self, names: list[str]) -> str:
        heard, said = _FORKS.Pipe(duplex=False)
        child = _FORKS.Process(target=self._run, args=(names, said))
        child.start()
        said.close()
        try:
            failed = heard.recv() if heard.poll(LIMIT) else TOO_LONG
        except EOFError:
            failed = "a crash"
        child.kill()
        child.join()
        if "::" in failed:
            self.killers = [failed, *(name for name in self.killers if name != failed)]
        return failed

    def _run(self, names: list[str], said: Connection) -> None:
        with Path(os.devnull).open("w") as nowhere:
            for stream in (sys.stdout, sys.stderr):
                os.dup2(nowhere.fileno(), stream.fileno())
        verdict = Verdict(self.killers)
        options = ["-x", "-q", "-p", "no:cacheprovider", "-n", "0", "-W", "default"]
        options.append("--hypothesis-profile=mutants")
        code = pytest.main([*options, "--dsn", self.dsn, *names], plugins=[verdict])
        said.send(verdict.failed or ("" if code == 0 else f"exit code {code}"))


def main() -> int:
    """Run the mutants that were asked for, and print what became of each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", choices=sorted(TARGETS), metavar="FILE")
    parser.add_argument("--sample", type=int, help="at most so many of each file, at random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--list", action="store_true", help="print the mutants and run none")
    options = parser.parse_args()
    rounds: list[tuple[int, Mutant]] = []
    for path in options.only or TARGETS:
        found = mutants(path)
        print(f"{path}: {len(found)} mutants", flush=True)  # noqa: T201
        random.Random(options.seed).shuffle(found)  # noqa: S311
        rounds += enumerate(found[: options.sample])
    # A round takes one mutant of each file, so that what is stopped has looked everywhere.
    chosen = [mutant for _, mutant in sorted(rounds, key=itemgetter(0))]
    if options.list:
        print(*chosen, sep="\n")  # noqa: T201
        return 0
    counts = _run(chosen, options.jobs)
    print(*(f"{word}: {count}" for word, count in sorted(counts.items())), sep=", ")  # noqa: T201
    return 1 if counts["survived"] or counts["undecided"] else 0


def _run(chosen: list[Mutant], jobs: int) -> Counter[str]:
    counts: Counter[str] = Counter()
    todo, done = _FORKS.Queue(), _FORKS.Queue()
    for mutant in chosen:
        todo.put(mutant)
    workers = [_FORKS.Process(target=_work, args=(todo, done)) for _ in range(jobs)]
    for worker in workers:
        todo.put(None)
        worker.start()
    try:
        for _ in chosen:
            mutant, failed, seconds = done.get()
            word = "no mutant" if failed is None else "killed" if failed else "survived"
            word = "undecided" if failed == TOO_LONG else word
            counts[word] += 1
            print(f"{word:>9} {seconds:6.1f} s  {mutant}  {failed or ''}", flush=True)  # noqa: T201
    except KeyboardInterrupt:
        counts["not tried"] = len(chosen) - counts.total()
    for worker in workers:
        worker.join()
    return counts


def _work(todo: Queue[Mutant | None], done: Queue[tuple[Mutant, str | None, float]]) -> None:
    """Judge mutants, in a copy of the tree and on a server of this process's own."""
    with (
        suppress(KeyboardInterrupt),
        tempfile.TemporaryDirectory(prefix="dbanon-mutation-") as folder,
    ):
        tree = Path(folder) / "tree"
        skip = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", "build")
        shutil.copytree(ROOT, tree, ignore=skip)
        Path(folder).chmod(0o755)
        os.chdir(tree)
        os.environ["PYTHONPATH"] = str(tree)  # of the commands that tests start
        sys.dont_write_bytecode = True  # an edit that keeps size and second would not be seen
        sys.path[:0] = [str(tree), str(tree / "tests")]
        with _server(tree) as dsn:
            judge = Judge(tree, dsn)
            while (mutant := todo.get()) is not None:
                began = time.monotonic()
                done.put((mutant, survives(mutant, tree, judge), time.monotonic() - began))


@contextmanager
def _server(tree: Path) -> Iterator[str]:
    """Start a server by the code of the tests, which a process that judges must not have loaded."""
    code = (
        "from servers import available\n"
        "with available(None)[0][0].open() as dsn:\n"
        "    print(dsn, flush=True)\n"
        "    input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=tree,
        env=os.environ | {"PYTHONPATH": f"{tree}:{tree / 'tests'}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process.stdout.readline().strip()
        process.communicate("\n")


if __name__ == "__main__":
    sys.exit(main())
