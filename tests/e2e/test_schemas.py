"""Four databases as stewards have them: from a look to a checked release in six commands."""

import re
from dataclasses import dataclass
from types import ModuleType

import pytest
from data.schemas import court, health, personnel, rentals
from data.schemas.loading import load
from psycopg import sql
from selection import exhaustive_after

import dbanon
from dbanon.domain.policy import Role


def role(column, before, after):
    """Return an edit: the line of a draft under a column that gives it another role."""
    return f'[columns.{column}]\nrole = "{before}"', f'[columns.{column}]\nrole = "{after}"'


@dataclass(frozen=True)
class Case:
    """A schema, what a steward publishes of it, and what must be changed in the draft."""

    schema: ModuleType
    name: str
    edits: tuple[tuple[str, str], ...] = ()


CASES = [
    Case(health, "clinic"),
    Case(rentals, "rentals"),
    Case(personnel, "pay"),
    # A text that follows from a score, which --strict refuses.
    Case(court, "screenings", (role("recommended_text", "quasi", "sensitive"),)),
]
PROTECTED = Case(
    rentals,
    "rentals",
    (role("category", "quasi", "sensitive"), role("rating", "quasi", "sensitive")),
)
# What the release is made of, by the definition: rows with the values of their classes.
CLASSES = """
WITH rows AS (
    SELECT g.group_id, s.{subject} AS person, {published}
      FROM public.{table} AS s
      JOIN dbanon_data.{rows} AS r ON {same_key}
      JOIN dbanon_data.{groups} AS g USING (group_id)
), persons AS (
    SELECT count(DISTINCT person) AS n FROM rows GROUP BY {quasi}
)
SELECT (SELECT min(n) FROM persons),
       (SELECT min(n) FROM (SELECT count(*) AS n FROM anon.{table} GROUP BY {quasi}) AS c),
       (SELECT count(*) FROM anon.{table}),
       (SELECT count(*)
          FROM (SELECT {columns} FROM rows EXCEPT ALL SELECT {columns} FROM anon.{table}) AS more),
       (SELECT count(*)
          FROM (SELECT {columns} FROM anon.{table} EXCEPT ALL SELECT {columns} FROM rows) AS less),
       (SELECT max(n)
          FROM (SELECT count(DISTINCT group_id) AS n FROM rows GROUP BY person) AS places)
"""


def joined(names, table=None):
    made = [sql.Identifier(*filter(None, [table, name])) for name in names]
    return sql.SQL(", ").join(made)


def counted(database, release):
    """Return what SQL counts of a release and of the private tables that it was made of."""
    policy = release.policy
    info = dbanon.inspect(policy.table, settings=database.settings).info
    quasi = [rule.column for rule in policy.with_role(Role.QUASI)]
    plain = [rule.column for rule in policy.columns if rule.role is Role.SENSITIVE]
    key = policy.key or info.primary_key
    same = [
        sql.SQL("r.{} = s.{}").format(sql.Identifier(f"k{i}"), sql.Identifier(name))
        for i, name in enumerate(key, 1)
    ]
    of_classes = [
        sql.SQL("g.{} AS {}").format(sql.Identifier(f"q{i}"), sql.Identifier(name))
        for i, name in enumerate(quasi, 1)
    ]
    statement = sql.SQL(CLASSES).format(
        subject=sql.Identifier(policy.subject),
        table=sql.Identifier(policy.table.name),
        rows=sql.Identifier(f"rows_{release.data_id}"),
        groups=sql.Identifier(f"groups_{release.data_id}"),
        same_key=sql.SQL(" AND ").join(same),
        published=sql.SQL(", ").join([*of_classes, joined(plain, "s")]),
        quasi=joined(quasi),
        columns=joined([*quasi, *plain]),
    )
    return database.execute(statement)[0]


def walk(run, case, file):
    """Go from a look to a checked release in six commands, and edit the draft in between."""
    look = [case.name]
    if hasattr(case.schema, "JOIN"):
        look = ["--query", case.schema.JOIN, "--create-view", case.name]
    looked = run("inspect", *look).out
    run("policy", "suggest", case.name, "--output", file)
    for before, after in case.edits:
        assert file.read_text().count(before) == 1
        edited = file.read_text().replace(before, after)
        file.write_text(re.sub(r'(role = "sensitive"\n)recoding = .*\n', r"\1", edited))
    assert run("policy", "set", case.name, "--file", file, "--strict").err == ""
    assert "all (NCP)" in run("plan", case.name).out
    run("publish", case.name, "--strict", "--keep-assignment")
    assert "passed" in run("check", f"anon.{case.name}").out
    return looked


@pytest.mark.exhaustive
@pytest.mark.parametrize("case", exhaustive_after(3, CASES), ids=lambda case: case.name)
def test_from_a_look_to_a_checked_release_in_six_commands(run, database, tmp_path, case):
    load(database, case.schema)
    looked = walk(run, case, tmp_path / "policy.toml")
    (release,) = dbanon.list_releases(settings=database.settings)
    subject = release.policy.subject
    assert f"persons by column {subject}: subject = " in looked
    assert "rows of a person differ in" in looked
    assert release.policy.k == 5
    persons, rows, shown, *wrong, places = counted(database, release)
    assert min(persons, rows) >= 5
    assert database.execute(
        sql.SQL("SELECT count(*) FROM public.{}").format(sql.Identifier(case.name))
    ) == [(shown,)]
    assert (wrong, places) == ([0, 0], 1)


def test_what_differs_within_a_person_costs_less_in_another_role(run, database, tmp_path):
    load(database, PROTECTED.schema)
    walk(run, PROTECTED, tmp_path / "policy.toml")
    (release,) = dbanon.list_releases(settings=database.settings)
    persons, rows, shown, *wrong, places = counted(database, release)
    assert min(persons, rows) >= 5
    assert (shown, wrong, places) == (rentals.RENTALS, [0, 0], 1)
    losses = {column: 100 * loss for column, loss in release.loss.columns.items()}
    assert max(losses[column] for column in ("country", "city", "active")) < 20
