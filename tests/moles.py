"""People who are published live, and a mole among the readers, for tests of what readers reach."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import dbanon
from dbanon.domain.policy import K_ANONYMITY, ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.table import TableName

if TYPE_CHECKING:
    from servers import Database

TABLE = TableName("public", "people")
ROLES = {
    "id": Role.IDENTIFIER,
    "practice": Role.IDENTIFIER,
    "age": Role.QUASI,
    "disease": Role.SENSITIVE,
}
K = 5
PEOPLE = """
CREATE TABLE public.practices (id int PRIMARY KEY);
INSERT INTO public.practices SELECT generate_series(1, 40);
CREATE TABLE public.people (
    id int PRIMARY KEY,
    practice int NOT NULL REFERENCES public.practices ON DELETE CASCADE ON UPDATE CASCADE,
    age int,
    disease text
);
INSERT INTO public.people SELECT i, i, i / 5, 'd' || i % 5 FROM generate_series(1, 40) AS i;
CREATE TABLE public.visits (
    person int REFERENCES public.people ON DELETE CASCADE ON UPDATE CASCADE
);
INSERT INTO public.visits SELECT id FROM public.people;
CREATE VIEW public.editable AS SELECT id, age FROM public.people;
"""
# What a mole makes in a schema of its own: it looks at the release, and notes the smallest class.
MOLE = """
CREATE SEQUENCE mole.number START 1000;
CREATE TABLE mole.seen (class bigint);
CREATE FUNCTION mole.look() RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO mole.seen SELECT count(*) FROM {view} GROUP BY age;
    RETURN true;
END $$;
CREATE FUNCTION mole.fired() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO mole.seen SELECT count(*) FROM {view} GROUP BY age;
    RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
END $$;
"""


def make_people(database: Database) -> None:
    """Make people who are published live as ``anon.people``, with k = 5."""
    database.execute(PEOPLE)
    rules = tuple(ColumnRule(column, role) for column, role in ROLES.items())
    policy = Policy(TABLE, rules, (ModelSpec(K_ANONYMITY, {"k": K}),), "mondrian")
    dbanon.set_policy(TABLE, policy, settings=database.settings)
    dbanon.publish(TABLE, kind="view", settings=database.settings)


def add_mole(database: Database) -> None:
    """Add a mole who may read that release and nothing else, and member of a role."""
    mole, _ = database.role("mole"), database.role("mole_writer", login=False)
    admin = database.admin()
    admin.execute(f"CREATE SCHEMA mole AUTHORIZATION {mole}")
    admin.execute("GRANT USAGE ON SCHEMA anon, mole TO PUBLIC")
    admin.execute(f"GRANT SELECT ON anon.people TO {mole}")
    database.connect_as(mole).execute(MOLE.format(view="anon.people"))


def assert_refused(database: Database, told: str, *, grantee: str = "mole") -> None:
    """Assert that the doctor names the way, and neither a publication nor a grant stands it."""
    messages = [f.message for f in dbanon.doctor(settings=database.settings)]
    assert [told] == [told for message in messages if told in message][:1]
    with pytest.raises(dbanon.DriftError) as drifted:
        dbanon.publish(TABLE, kind="view", settings=database.settings)
    assert told in str(drifted.value)
    with pytest.raises(dbanon.NotPermitted) as refused:
        dbanon.grant("anon.people", [grantee], settings=database.settings)
    assert told in str(refused.value)
