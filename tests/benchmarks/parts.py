"""Divide what publications and refreshes cost the server among its statements, beside plain ones.

    python tests/benchmarks/parts.py                    # 1,000,000 rows, .1 % and 1 % changed
    python tests/benchmarks/parts.py --rows 100000 --least-shown 0.01

The embedded server counts the CPU seconds of every statement (``log_statement_stats``), which are
named as in sql/, without parallel workers. The rest is outside of statements: sessions, reading
ahead, the log of changes, autovacuum. After each command come the least statements for the same
rows, by hand: what has to be read, joined or written at any rate; in parentheses, their tables.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path

import changes
import psycopg
from measuring import Run, apart, measure, own_server, report_command, report_head, say, server_cpu
from psycopg.conninfo import make_conninfo
from samples.resampled import LARGE

STATEMENTS = Path(__file__).parents[2] / "sql"
NAMED = re.compile(r"^-- name: (\S+)\n-- (.*)$", re.MULTILINE)
COUNTED = re.compile(
    r"STATISTICS\n.*?!\t([\d.]+) s user, ([\d.]+) s system.*?STATEMENT:  (.*?)(?=^[\d-]{10} |\Z)",
    re.DOTALL | re.MULTILINE,
)
SETTINGS = (
    "log_statement_stats = on",
    "log_min_error_statement = 'log'",
    "log_error_verbosity = 'default'",
    "max_parallel_workers_per_gather = 0",  # those of a worker count as nobody's
)
QUASI = ", ".join(f'"{name}"' for name in LARGE.quasi)
SHOWN = ", ".join(f'"{name}"' for name in LARGE.columns)
KEYED = "encode(substr(sha256(k || convert_to({}, 'UTF8')), 1, 16), 'hex')::uuid"
HASH = KEYED.format("s.id::text")
UNCHANGED = "age(s.xmin) > (SELECT age({snapshot}::xid))"


@cache
def names() -> dict[str, str]:
    """Return the name of each statement by the first line of what it says of itself."""
    return {
        line: f"{path.stem}.{name}"
        for path in STATEMENTS.rglob("*.sql")
        for name, line in NAMED.findall(path.read_text(encoding="utf-8"))
    }


def name(statement: str) -> str:
    """Name a statement as in sql/, others by their beginning."""
    head, _, rest = statement.strip().partition("\n")
    known = names().get(head.removeprefix("-- "))
    return known or re.sub(r"\s+", " ", f"{head} {rest}")[:44]


def log() -> Path:
    return Path(os.environ["DBANON_HOME"], "log")


def superuser() -> psycopg.Connection:
    run = Path(os.environ["DBANON_HOME"], "run")
    dsn = make_conninfo(host=str(run), port=5432, dbname="dbanon", user="postgres")
    return psycopg.connect(dsn, autocommit=True)


def count_statements() -> None:
    """Have the server count the processor time of each statement of the commands."""
    with superuser() as connection:
        for setting in SETTINGS:
            connection.execute(f"ALTER ROLE dbanon SET {setting}")


def divided(verb: str, *arguments: str, least_shown: float) -> Run:
    """Run a command, and print its CPU seconds in the server by statement."""
    start = log().stat().st_size
    run = measure(verb, *arguments)
    with log().open(encoding="utf-8", errors="replace") as lines:
        lines.seek(start)
        text = lines.read()
    seconds: dict[str, float] = defaultdict(float)
    found = COUNTED.findall(text)
    for user, system, statement in found:
        seconds[name(statement)] += float(user) + float(system)
    report_command(" ".join([verb, *arguments]), run)
    shown = {one: cpu for one, cpu in seconds.items() if cpu >= least_shown}
    for one, cpu in sorted(shown.items(), key=lambda pair: -pair[1]):
        say(f"    {one:<49} {'':>8} {cpu:>8.2f}")
    others = sum(seconds.values()) - sum(shown.values())
    say(f"    {f'others, of {len(found):,} messages in all':<49} {'':>8} {others:>8.2f}")
    say(f"    {'outside of statements':<49} {'':>8} {run.server - sum(seconds.values()):>8.2f}")
    return run


def least(statements: dict[str, str]) -> None:
    """Print the CPU seconds of plain statements, each once, without parallel workers."""
    say("  least, by plain statements")
    total = 0.0
    with superuser() as connection:
        connection.execute("SET max_parallel_workers_per_gather = 0")
        connection.execute("SET work_mem = '256MB'")
        connection.execute("CHECKPOINT")
        for what, statement in statements.items():
            before = server_cpu()
            connection.execute(statement)
            cpu = server_cpu() - before
            total += 0 if what.startswith("(") else cpu
            say(f"    {what:<49} {'':>8} {cpu:>8.2f}")
    say(f"    {'sum':<49} {'':>8} {total:>8.2f}")


def tables() -> dict[str, str]:
    """Return the private copy and the table of places of the large table."""
    find = "SELECT relname FROM pg_class WHERE relname ~ %s AND relkind = 'r'"
    with superuser() as connection:
        return {
            kind: f"dbanon_data.{kind}_{max(int(row[0].split('_')[1]) for row in found)}"
            for kind in ("release", "places")
            for found in [connection.execute(find, (f"^{kind}_[0-9]+$",)).fetchall()]
        }


def of_publication() -> dict[str, str]:
    """Compose what a first publication reads, hashes, joins, writes and counts at any rate."""
    copied = f"SELECT {SHOWN}, s.id % 60000 AS class FROM public.large AS s"
    return {
        "send all rows": f"COPY (SELECT id, {SHOWN} FROM public.large)"
        " TO '/dev/null' (FORMAT binary)",
        "write place and group of each row": "CREATE TABLE public.least_rows AS"
        " SELECT id, ctid AS place, id % 60000 AS class FROM public.large",
        "(hash persons)": f"SELECT count({HASH}) FROM public.large AS s, {_key()}",
        "write the hash, the place and the class": "CREATE TABLE public.least_persons AS"
        f" SELECT {HASH} AS person, s.place, s.class FROM public.least_rows AS s, {_key()}",
        "sort and store them": "CREATE TABLE public.least_members AS"
        " SELECT array_agg(p.person) AS persons, array_agg(p.class) AS classes"
        " FROM (SELECT * FROM public.least_persons ORDER BY person) AS p",
        "write the copy": f"CREATE TABLE public.least_copy AS {copied}",
        "group the copy by its values": f"SELECT min(c.n) FROM (SELECT count(*) AS n"
        f" FROM public.least_copy GROUP BY {QUASI}) AS c",
        "group the copy by class and value": _proof("public.least_copy", "class"),
    }


def of_refresh(copy: str, places: str, snapshot: str) -> dict[str, str]:
    """Compose what a refresh scans, joins, writes again and counts at any rate."""
    unchanged = UNCHANGED.format(snapshot=f"'{snapshot}'")
    newest = f"SELECT max(xmin::text::bigint) FROM {copy}"
    touched = f"SELECT DISTINCT dbanon_class FROM {copy} WHERE xmin::text::bigint = ({newest})"
    return {
        "(a copy to write to)": f"CREATE TABLE public.least_copy AS SELECT * FROM {copy}",
        "(classes that gained rows)": f"CREATE TABLE public.least_touched AS {touched}",
        "(statistics)": "ANALYZE public.least_copy, public.least_touched",
        "count rows and unchanged ones": "SELECT count(*),"
        f" count(*) FILTER (WHERE {unchanged}) FROM public.large AS s",
        "places without an unchanged row": f"SELECT count(*) FROM {places} AS p WHERE NOT EXISTS"
        f" (SELECT FROM public.large AS s WHERE s.ctid = p.place AND {unchanged})",
        "hash new persons": f"SELECT count({HASH}) FROM public.large AS s, {_key()}"
        f" WHERE NOT {unchanged}",
        "unpublished places": f"SELECT count(*) FROM {places} WHERE state < 0",
        "write their classes again": "WITH gone AS (DELETE FROM public.least_copy WHERE"
        " dbanon_class IN (SELECT dbanon_class FROM public.least_touched) RETURNING *)"
        " INSERT INTO public.least_copy SELECT * FROM gone"
        " ORDER BY sha256(int8send(row_number() OVER ()))",
        "who wrote the copy": f"SELECT xmin, count(*) FROM {copy} GROUP BY xmin",
        "count the classes that changed": _proof(
            f"{copy} JOIN public.least_touched USING (dbanon_class)", "dbanon_class"
        ),
        "vacuum": "VACUUM (TRUNCATE false) public.least_copy",
    }


def of_grouping(copy: str, places: str, **_: str) -> dict[str, str]:
    """Compose what grouping all rows anew does beside a first publication at any rate."""
    return {
        "(a copy to write to)": f"CREATE TABLE public.least_copy AS SELECT * FROM {copy}",
        "(places to write to)": f"CREATE TABLE public.least_places AS SELECT * FROM {places}",
        "persons by the former key": "CREATE TABLE public.least_former AS"
        f" SELECT {HASH} AS person, s.id AS class FROM public.large AS s, {_key()}",
        "who has another class": "SELECT count(*) FROM public.least_former AS f FULL JOIN"
        " (SELECT e.person, e.class FROM dbanon.history_member AS m CROSS JOIN LATERAL"
        " unnest(m.persons, m.classes) AS e (person, class) WHERE m.release_id ="
        " (SELECT h.release_id FROM dbanon.history AS h WHERE h.relation_name = 'large'"
        " ORDER BY 1 LIMIT 1)) AS b USING (person) WHERE f.class IS DISTINCT FROM b.class",
        "the former copy deleted": "DELETE FROM public.least_copy",
        "the former places deleted": "DELETE FROM public.least_places",
        "vacuum": "VACUUM (TRUNCATE false) public.least_copy, public.least_places",
    }


def _key() -> str:
    return "(SELECT inner_key AS k FROM dbanon.history_key LIMIT 1) AS key"


def _proof(source: str, number: str) -> str:
    counted = f"SELECT {number}, occupation, count(*) AS n FROM {source} GROUP BY 1, 2"
    return (
        "SELECT min(c.n), min(c.v) FROM"
        f" (SELECT sum(n) AS n, count(*) AS v FROM ({counted}) AS v GROUP BY {number}) AS c"
    )


def cleared(statements: dict[str, str]) -> None:
    """Print what plain statements take, and drop what they made."""
    least(statements)
    with superuser() as connection:
        made = connection.execute("SELECT relname FROM pg_class WHERE relname ~ '^least_'")
        for (one,) in made.fetchall():
            connection.execute(f"DROP TABLE public.{one}")


def changed(rows: int) -> str:
    """Change so many rows; return a transaction before."""
    with superuser() as connection:
        (snapshot,) = connection.execute("SELECT pg_current_xact_id()::xid::text").fetchone()
    apart(changes.change, LARGE.name, LARGE.columns, rows)
    return snapshot


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--least-shown", type=float, default=0.05, help="CPU seconds")
    arguments = parser.parse_args()
    rows, shown = arguments.rows, arguments.least_shown
    say(f"Python {sys.version.split()[0]}, {os.cpu_count()} processors, {rows:,} rows")
    with own_server():
        changes.prepared(LARGE, rows, [])
        count_statements()
        report_head()
        divided("publish", LARGE.name, least_shown=shown)
        cleared(of_publication())
        for verb in ("grant", "revoke"):  # what nobody was granted would be grouped from scratch
            measure(verb, f"anon.{LARGE.name}", "public")
        for _ in range(2):
            divided("refresh", LARGE.name, "--if-changed", least_shown=shown)
        for share in (0.001, 0.01):
            snapshot = changed(int(rows * share))
            divided("refresh", LARGE.name, least_shown=shown)
            say(f"  of {share:.1%} of the rows")
            cleared(of_refresh(**{**_named(), "snapshot": snapshot}))
        snapshot = changed(int(rows * share))
        divided("publish", LARGE.name, *changes.ANEW, least_shown=shown)
        cleared(of_grouping(**{**_named(), "snapshot": snapshot}))


def _named() -> dict[str, str]:
    found = tables()
    return {"copy": found["release"], "places": found["places"]}


if __name__ == "__main__":
    main()
