"""Answer random COUNT queries by SQL from a published relation, and compare with the source.

A query asks for a range of ages and some values of another column that 50 persons or more have. It
is estimated, and bounded, by the functions that analysts have. The same is asked of the best
full-domain recoding of the same k."""

from __future__ import annotations

import random
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from measuring import connected, measure, own_server, say
from psycopg import sql

if TYPE_CHECKING:
    import psycopg

LEAST = 50
SELECTIVITIES = (0.01, 0.05, 1.0)
NEW_SERIES = ("--new-series", "--recipients-changed")
COLUMNS = "SELECT DISTINCT column_name FROM anon.near_labels ORDER BY 1"
VALUES = "SELECT DISTINCT {column} FROM public.adult ORDER BY 1"
TRUTH = """
SELECT count(*) FROM public.adult WHERE age BETWEEN {low} AND {high} AND {column} = ANY ({wanted})
"""
ANSWER = """
SELECT coalesce(sum(l.at_least * dbanon.at_least(a.age, int4range({low}, {high}, '[]'))), 0),
       coalesce(sum(l.share * dbanon.share(a.age, int4range({low}, {high}, '[]'))), 0)::float8,
       coalesce(sum(l.at_most * dbanon.at_most(a.age, int4range({low}, {high}, '[]'))), 0)
  FROM {view} AS a
  JOIN dbanon.shares_of_labels({labels}, {name}, {wanted}) AS l ON l.label = a.{column}
"""


@dataclass(frozen=True)
class Question:
    """Whom a query asks for, and how many they are."""

    column: str
    wanted: tuple[str, ...]
    low: int
    high: int
    count: int

    def slots(self) -> dict[str, sql.Composable]:
        return {
            "column": sql.Identifier(self.column),
            "name": sql.Literal(self.column),
            "wanted": sql.Literal(list(self.wanted)),
            "low": sql.Literal(self.low),
            "high": sql.Literal(self.high),
        }


def publish(k: int) -> None:
    """Publish Adult with its labels: by the default algorithm, and by full-domain recoding."""
    measure("demo", "--dataset", "adult")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "adult.toml")
        shown = measure("policy", "export", "adult").output
        table, _, rest = shown.partition("\n")
        file.write_text(f"{table}\nlabels = true\n{rest}", encoding="utf-8")
        measure("policy", "set", "adult", "--file", str(file))
    for name, algorithm in (("near", "auto"), ("full", "full-domain")):
        measure(
            *("publish", "adult", "--name", name, "--k", str(k), "--l", "1"),
            *("--algorithm", algorithm, *NEW_SERIES),
        )


def draw(connection: psycopg.Connection, chance: random.Random, n: int) -> list[Question]:
    """Return questions that enough people answer."""
    values: dict[str, list[str]] = {}
    for (name,) in connection.execute(COLUMNS):
        found = connection.execute(sql.SQL(VALUES).format(column=sql.Identifier(name)))
        values[name] = [value for (value,) in found if value is not None]
    questions: list[Question] = []
    while len(questions) < n:
        column = chance.choice(sorted(values))
        wanted = chance.sample(values[column], chance.randint(1, min(3, len(values[column]))))
        low = chance.randint(17, 80)
        asked = Question(column, tuple(wanted), low, low + chance.randint(1, 30), 0)
        row = connection.execute(sql.SQL(TRUTH).format(**asked.slots())).fetchone()
        if row is not None and row[0] >= LEAST:
            questions.append(Question(column, asked.wanted, low, asked.high, row[0]))
    return questions


def ask(connection: psycopg.Connection, questions: list[Question], name: str) -> bool:
    """Print how far off the answers of a view are; return whether all bounds hold."""
    errors: list[tuple[float, int]] = []
    widths, contained = [], 0
    for question in questions:
        slots = {"view": sql.Identifier("anon", name), "labels": sql.Literal(f"anon.{name}_labels")}
        statement = sql.SQL(ANSWER).format(**slots, **question.slots())
        row = connection.execute(statement).fetchone()
        assert row is not None
        least, about, most = row
        errors.append((abs(about - question.count) / question.count, question.count))
        widths.append((most - least) / question.count)
        contained += least <= question.count <= most
    row = connection.execute("SELECT count(*) FROM public.adult").fetchone()
    total = row[0] if row else 0
    say(f"\nanon.{name}")
    for low, high in zip((0.0, *SELECTIVITIES), SELECTIVITIES, strict=False):
        own = [error for error, count in errors if low < count / total <= high]
        if own:
            report(f"  {100 * low:g} to {100 * high:g} % of the rows", own)
    report("  all", [error for error, _ in errors])
    say(
        f"  bounds contain the count: {contained:,} of {len(questions):,};"
        f" width in the median {statistics.median(widths):.2f} of the count"
    )
    return contained == len(questions)


def report(what: str, errors: list[float]) -> None:
    high = statistics.quantiles(errors, n=20)[-1] if len(errors) > 1 else errors[0]
    median = statistics.median(errors)
    say(
        f"{what:<28} {len(errors):>6,} queries, relative error: median {100 * median:6.1f} %,"
        f" 95th percentile {100 * high:6.1f} %"
    )


def compare(*, queries: int, k: int, seed: int) -> bool:
    """Print how far off the answers of both releases are; return whether all bounds hold."""
    with own_server():
        publish(k)
        with connected() as connection:
            chance = random.Random(seed)  # noqa: S311 - questions, not secrets
            questions = draw(connection, chance, queries)
            hold = [ask(connection, questions, name) for name in ("near", "full")]
    return all(hold)
