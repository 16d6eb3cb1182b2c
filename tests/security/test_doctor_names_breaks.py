"""An audit of a database in which everything that can go wrong has gone wrong, at once."""

from __future__ import annotations

import pytest

import dbanon
from dbanon.actions.doctor import Level
from dbanon.domain.policy import K_ANONYMITY, ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.table import TableName

RULES = (
    ColumnRule("id", Role.IDENTIFIER),
    ColumnRule("age", Role.QUASI),
    ColumnRule("disease", Role.SENSITIVE),
)
PEOPLE = """
CREATE TABLE {0} (id int PRIMARY KEY, age int, disease text);
INSERT INTO {0} SELECT i, i / 5, 'd' || i % 5 FROM generate_series(0, 39) AS i;
"""

# What is planted, by relation: how it is published, what is done as an administrator, and what the
# finding about it says.
BREAKS = {
    "another's view": (
        "table",
        (
            "DROP VIEW anon.{t}; SET ROLE stranger; CREATE VIEW anon.{t} AS"
            " SELECT 1 AS age, den.spy('x') AS disease; RESET ROLE"
        ),
        "belongs to stranger, who can put another relation in its place",
    ),
    "another's function": (
        "view",
        "CREATE INDEX ON public.{t} (den.spy(disease))",
        "may run den.spy of stranger",
    ),
    "another's table": (
        "table",
        (
            "ALTER TABLE public.{t} RENAME TO gone; SET ROLE stranger;"
            " CREATE TABLE public.{t} (id int PRIMARY KEY, age int, disease text); RESET ROLE"
        ),
        "owner",
    ),
    "a writer": (
        "view",
        "GRANT DELETE ON public.{t} TO mole",
        "mole can write public.{t}, and look at the live view between two rows of a statement",
    ),
    "an altered key": (
        "view",
        "ALTER TABLE public.{t} DROP CONSTRAINT {t}_pkey, ADD PRIMARY KEY (id) DEFERRABLE",
        "the primary key of public.{t}",
    ),
    "a right on the private tables": (
        "view",
        "GRANT UPDATE ON dbanon_data.groups_{n} TO mole; GRANT USAGE ON SCHEMA dbanon_data TO mole",
        "mole can write dbanon_data.groups_",
    ),
    "a trigger": (
        "table",
        "GRANT TRIGGER ON public.{t} TO mole",
        "mole can put a trigger on public.{t}",
    ),
    "a switched guard": (
        "view",
        (
            "ALTER TABLE public.{t} DISABLE TRIGGER dbanon_guard_{n}_update;"
            " ALTER TABLE public.{t} ENABLE ALWAYS TRIGGER dbanon_guard_{n}_update"
        ),
        "dbanon_guard_{n}_update on public.{t} was dropped, disabled or enabled",
    ),
    "rewritten": (
        "view",
        "ALTER TABLE public.{t} ADD COLUMN drawn float DEFAULT random()",
        "public.{t} was rewritten",
    ),
    "another definition": (
        "view",
        (
            "CREATE OR REPLACE VIEW anon.{t} WITH (security_barrier = true) AS"
            " SELECT int4range(1, 2) AS age, ''::text AS disease FROM dbanon_data.rows_{n} LIMIT 1"
        ),
        "its definition is not the one that was published",
    ),
    "no barrier": (
        "table",
        "ALTER VIEW anon.{t} RESET (security_barrier)",
        "security_barrier is off",
    ),
    "an open copy": (
        "table",
        "ALTER TABLE dbanon_data.release_{n} DISABLE TRIGGER ALL",
        "the trigger that refuses changes of its private copy is missing or disabled",
    ),
}


@pytest.fixture
def broken(database):
    """A database with every break planted; returns what is to be said, by the name of the break."""
    stranger, mole = database.role("stranger"), database.role("mole")
    admin = database.admin()
    admin.execute(
        f"CREATE SCHEMA den AUTHORIZATION {stranger}; CREATE SEQUENCE den.caught;"
        f" GRANT ALL ON SEQUENCE den.caught TO {stranger};"
        f" GRANT CREATE ON SCHEMA public TO {stranger}; GRANT USAGE ON SCHEMA den TO PUBLIC;"
        " CREATE FUNCTION den.spy(text) RETURNS text IMMUTABLE LANGUAGE plpgsql SECURITY DEFINER"
        " AS 'BEGIN PERFORM nextval(''den.caught''); RETURN $1; END';"
        f" ALTER FUNCTION den.spy(text) OWNER TO {stranger}"
    )
    said = {}
    for i, (name, (kind, _, says)) in enumerate(BREAKS.items(), 1):
        table = TableName("public", f"t{i}")
        database.execute(PEOPLE.format(table))
        policy = Policy(table, RULES, (ModelSpec(K_ANONYMITY, {"k": 5}),), algorithm="mondrian")
        dbanon.set_policy(table, policy, settings=database.settings)
        release = dbanon.publish(table, kind=kind, grants=[mole], settings=database.settings)
        said[name] = f"anon.t{i}", says.format(t=f"t{i}", n=release.id)
    admin.execute(f"GRANT USAGE, CREATE ON SCHEMA anon TO {stranger}")
    for i, (_, plant, _) in enumerate(BREAKS.values(), 1):
        admin.execute(plant.format(t=f"t{i}", n=i))
    admin.execute("SELECT setval('den.caught', 1, false)")
    yield said
    admin.execute("RESET ROLE; DROP OWNED BY stranger CASCADE; DROP OWNED BY mole CASCADE")


def test_doctor_names_every_break_that_was_planted(database, broken):
    findings = dbanon.doctor(settings=database.settings)
    told = [(f.subject, f.message) for f in findings if f.level is not Level.OK]
    missed = {
        name
        for name, (subject, says) in broken.items()
        if not any(subject == about and says in message for about, message in told)
    }
    assert missed == set(), told
    assert all(f.hint for f in findings if f.level is Level.FAILURE)
    called = database.admin().execute("SELECT is_called FROM den.caught").fetchone()
    assert called == (False,)  # whatever was planted, nothing of a stranger's ran
