"""Refresh a table of patients month by month, class by class, beside grouping it anew every time.

    python tests/benchmarks/months.py                     # twelve months
    python tests/benchmarks/months.py --leaving 0.05 --pool 600 --l 2
    python tests/benchmarks/months.py --within 180d --months 6

Half of the demo patients are there at first, the others come in the order of the year of their
sample. Every month 2 % leave (or ``--leaving``), 5 % get another chapter and 1 % have a birthday.
``shown`` is the share of those present who are published, ``NCP`` that of what readers see, counted
here from the published values on the scales of the table as it is that month, ``anew`` what
``plan`` loses that month; ``k`` and ``l`` are the least of all cells of all releases. The exit code
is 1 if a cell is below what the policy asks for.
"""

from __future__ import annotations

import argparse
import gzip
import random
import sys
import time
from dataclasses import replace

from measuring import connected, own_server, say

import dbanon
from dbanon import resources
from dbanon.domain.policy import L_DIVERSITY, ModelSpec
from dbanon.settings import Settings

SEED, TOLERANCE = 7, 1e-9
TABLE = "public.patients"
CREATE = """
CREATE TABLE public.everybody (
    patient_id int, age int, sex text, sample_yr int, kappa numeric, lambda numeric, flc_grp int,
    creatinine numeric, mgus text, futime int, death text, chapter text
);
CREATE TABLE public.patients (LIKE public.everybody, PRIMARY KEY (patient_id))
"""
ARRIVE = """
INSERT INTO public.patients
SELECT * FROM public.everybody ORDER BY sample_yr, patient_id OFFSET %s LIMIT %s
"""
# A published interval of whole numbers ends before its upper bound; NULL stands for
# people of whom nothing is known, and nobody else.
LOSS = """
WITH scale AS (
    SELECT max(age) - min(age) AS age, max(sample_yr) - min(sample_yr) AS sample_yr,
           max(creatinine) - min(creatinine) AS creatinine
      FROM public.patients
)
SELECT (avg(coalesce(least((upper(p.age) - 1 - lower(p.age))::numeric / s.age, 1), 1))
        + avg((p.sex = '*')::int)
        + avg(coalesce((upper(p.sample_yr) - 1 - lower(p.sample_yr))::numeric / s.sample_yr, 1))
        + avg(CASE WHEN p.creatinine IS NULL THEN 0
                   ELSE least((upper(p.creatinine) - lower(p.creatinine)) / s.creatinine, 1) END)
       ) / 4
  FROM anon.patients AS p, scale AS s
"""
MONTH = "UPDATE dbanon.history_leaver SET missed_at = missed_at - interval '30 days'"


def load(connection) -> None:
    connection.execute(CREATE)
    rows = gzip.decompress(resources.data("patients.csv.gz").read_bytes())
    with connection.cursor().copy(
        "COPY public.everybody FROM STDIN WITH (FORMAT csv, HEADER)"
    ) as copy:
        copy.write(rows)


def count(connection, statement: str, *arguments) -> float:
    return float(connection.execute(statement, arguments).fetchone()[0])


def change(connection, chance: random.Random, leaving: float) -> None:
    """Let people leave, get other diagnoses, and grow older."""
    present = [row[0] for row in connection.execute("SELECT patient_id FROM patients ORDER BY 1")]
    chapters = [
        row[0] for row in connection.execute("SELECT DISTINCT chapter FROM everybody ORDER BY 1")
    ]
    gone = chance.sample(present, int(len(present) * leaving))
    connection.execute("DELETE FROM patients WHERE patient_id = ANY (%s)", (gone,))
    left = sorted(set(present) - set(gone))
    for one in chance.sample(left, len(left) // 20):
        connection.execute(
            "UPDATE patients SET chapter = %s WHERE patient_id = %s", (chance.choice(chapters), one)
        )
    born = chance.sample(left, len(left) // 100)
    connection.execute("UPDATE patients SET age = age + 1 WHERE patient_id = ANY (%s)", (born,))


def prepare(connection, settings: Settings, *, diversity: int, **changes) -> None:
    load(connection)
    dbanon.init(settings)
    dbanon.import_taxonomy(
        "patients_sex", resources.data("patients_taxonomy_sex.csv"), settings=settings
    )
    dbanon.set_policy(TABLE, resources.data("patients.toml"), settings=settings)
    policy = replace(dbanon.load_policy(TABLE, settings=settings), **changes)
    policy = policy.with_models(ModelSpec(L_DIVERSITY, {"l": diversity}))
    dbanon.set_policy(TABLE, policy, settings=settings)


def months(connection, settings: Settings, *, leaving: float, number: int, effort: str) -> bool:
    """Live through so many months; return whether all cells of all releases were safe."""
    chance = random.Random(SEED)  # noqa: S311 - people, not secrets
    everybody = int(count(connection, "SELECT count(*) FROM everybody"))
    arrived = everybody // 2
    connection.execute(ARRIVE, (0, arrived))
    first = dbanon.publish(TABLE, effort=effort, grants=["public"], settings=settings)
    if abs(first.loss.ncp - count(connection, LOSS)) > TOLERANCE:
        sys.exit("the published values do not lose what the report says")
    say(
        f"{'month':>5} {'rows':>6} {'shown':>7} {'NCP %':>7} {'anew %':>7} {'new':>5} {'wait':>5}"
        f" {'held':>5} {'gone':>5} {'old':>5} {'k':>4} {'l':>4} {'s':>6}"
    )
    safe = True
    for month in range(1, number + 1):
        change(connection, chance, leaving)
        coming = (everybody - everybody // 2) * month // 12 + everybody // 2 - arrived
        connection.execute(ARRIVE, (arrived, coming))
        arrived += coming
        start = time.perf_counter()
        (found,) = dbanon.refresh(TABLE, settings=settings)
        seconds = time.perf_counter() - start
        connection.execute(MONTH)
        rows = int(count(connection, "SELECT count(*) FROM patients"))
        fresh = {"new_series": True, "recipients_changed": True}
        anew = dbanon.plan(TABLE, effort=effort, settings=settings, **fresh).loss.ncp
        (found_together,) = dbanon.history(TABLE, settings=settings).compositions
        cells = found_together.results
        least = {one.result.model: one.result.achieved for one in cells}
        safe = safe and all(one.result.verdict == "passed" for one in cells)
        growth = found.growth
        shown = (growth.shown - growth.deferred) / rows
        say(
            f"{month:>5} {rows:>6} {shown:>7.3f} {100 * count(connection, LOSS):>7.3f}"
            f" {100 * anew:>7.3f} {growth.inserted:>5} {growth.waiting:>5}"
            f" {growth.withheld:>5} {growth.deferred:>5} {growth.changed:>5}"
            f" {least.get('k-anonymity', 0):>4g} {least.get('l-diversity', 0):>4g} {seconds:>6.1f}"
        )
    return safe


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--leaving", type=float, default=0.02)
    parser.add_argument("--l", type=int, default=3)
    parser.add_argument("--pool", type=int)
    parser.add_argument("--within")
    parser.add_argument("--months", type=int, default=12)
    parser.add_argument("--effort", default="fast")
    given = parser.parse_args()
    with own_server(), connected() as connection:
        settings = Settings.load()
        changes = {"pool_size": given.pool, "erase_within": given.within}
        prepare(connection, settings, diversity=given.l, **changes)
        sys.exit(
            not months(
                connection,
                settings,
                leaving=given.leaving,
                number=given.months,
                effort=given.effort,
            )
        )


if __name__ == "__main__":
    main()
