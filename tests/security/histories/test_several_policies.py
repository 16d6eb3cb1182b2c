"""What a refresh of relations that promise different things proposes is never refused."""

import dataclasses
import random

import pytest
from psycopg import sql
from selection import exhaustive_after

import dbanon
from dbanon.domain.policy import ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.release import CheckFailed

PERSONS = 160
POLICIES = {
    "larger": {"k": 10, "l": 3},
    "diverse": {"k": 3, "l": 4},
    "plain": {"k": 8, "l": 1},
    "other": {"k": 6, "l": 2, "sensitive": "habit"},
    "both": {"k": 5, "l": 3, "sensitive": "disease habit"},
    "entropy": {"k": 4, "l": 1, "model": ModelSpec("entropy-l-diversity", {"l": 2.5})},
}
PAIRS = [("finer", name) for name in POLICIES if name != "other"] + [
    (name, "finer") for name in POLICIES
]
POLICIES["finer"] = {"k": 5, "l": 3}


def policy(*, k, l, sensitive="disease", model=None, **changes):
    roles = dict.fromkeys(("id", "disease", "habit"), Role.IDENTIFIER)
    roles |= {"age": Role.QUASI} | dict.fromkeys(sensitive.split(), Role.SENSITIVE)
    models = [ModelSpec("k-anonymity", {"k": k})]
    models += [ModelSpec("l-diversity", {"l": l})] if l > 1 else []
    models += [model] if model else []
    table = dbanon.TableName("public", "people")
    columns = tuple(ColumnRule(name, role) for name, role in roles.items())
    return Policy(table, columns, tuple(models), algorithm="mondrian", **changes)


@pytest.fixture
def people(database):
    database.execute(
        f"""
        CREATE TABLE public.people (id integer PRIMARY KEY, age integer, disease text, habit text);
        INSERT INTO public.people
        SELECT i, i, (ARRAY['flu', 'cold', 'cough', 'gout', 'mumps'])[1 + i % 5],
               (ARRAY['tea', 'coffee', 'water'])[1 + i % 3]
          FROM generate_series(1, {PERSONS}) AS i
        """
    )
    return database


def store(database, name, **changes):
    found = policy(**POLICIES[name], **changes)
    dbanon.set_policy("public.people", found, name=name, settings=database.settings)


def publish(database, name):
    return dbanon.publish("people", policy=name, name=name, settings=database.settings)


def refresh(database):
    return dbanon.refresh("people", settings=database.settings)


def remove_a_class(database, relation):
    """Delete everybody of the first class that a relation shows."""
    shown = sql.SQL("SELECT age FROM {} ORDER BY age LIMIT 1").format(
        sql.Identifier("anon", relation)
    )
    return database.execute(
        sql.SQL("DELETE FROM public.people WHERE age <@ ({}) RETURNING id").format(shown)
    )


@pytest.mark.exhaustive
@pytest.mark.parametrize("is_dropped", [False, True])
def test_a_coarser_second_view_does_not_block_the_finer_one(people, is_dropped):
    people.execute(
        "INSERT INTO public.people"
        " SELECT i, 500, 'flu' || i % 4, 'tea' FROM generate_series(500, 511) AS i"
    )
    for name in ("finer", "larger"):
        store(people, name, erase_within="1d")
        published = publish(people, name)
    if is_dropped:
        dbanon.drop_release(published.id, settings=people.settings)
    people.execute("DELETE FROM public.people WHERE id BETWEEN 500 AND 504")
    people.execute(
        "INSERT INTO public.people"
        " SELECT i, i, 'flu' || i % 7, 'tea' FROM generate_series(600, 680) AS i"
    )
    waiting = refresh(people)[0].growth
    assert (81, 5, 0) == (waiting.inserted, waiting.deferred, waiting.left)
    people.execute("UPDATE dbanon.history_leaver SET missed_at = missed_at - interval '9 days'")
    overdue = refresh(people)[0].growth
    assert (0, 5, 7) == (overdue.deferred, overdue.overdue, overdue.withheld)
    assert all(one.holds for one in dbanon.check_history("anon.finer", settings=people.settings))


@pytest.mark.exhaustive
@pytest.mark.parametrize(("first", "second"), exhaustive_after(3, PAIRS))
def test_what_a_refresh_proposes_is_never_refused(people, first, second):
    chance, coming = random.Random(first + second), iter(range(1000, 2000))  # noqa: S311 - people
    for name in (first, second):
        store(people, name, erase_within="1d")
        publish(people, name)
    rounds = []
    for _ in range(3):
        ids = [row[0] for row in people.execute("SELECT id FROM public.people ORDER BY age")]
        start = chance.randrange(len(ids) - 12)
        gone = {*chance.sample(ids, 4), *ids[start : start + chance.randint(0, 12)]}
        people.execute("DELETE FROM public.people WHERE id = ANY (%s)", (list(gone),))
        for new in (next(coming) for _ in range(chance.randint(0, 25))):
            people.execute(
                "INSERT INTO public.people VALUES (%s, %s, %s, %s)",
                (new, chance.randint(1, PERSONS), chance.choice("abcde"), chance.choice("xyz")),
            )
        rounds += dbanon.refresh("people", settings=people.settings)
        people.execute("UPDATE dbanon.history_leaver SET missed_at = missed_at - interval '9 days'")
    assert any(one.growth and one.growth.left for one in rounds)


@pytest.mark.exhaustive
def test_a_release_that_divides_cells_is_refused_with_the_reason_first(people, monkeypatch):
    for name in ("finer", "larger"):
        store(people, name)
        publish(people, name)
    remove_a_class(people, "finer")
    monkeypatch.setattr(
        "dbanon.actions.publication.plan._obstacle_to_reuse", lambda *_: "as a test says"
    )
    with pytest.raises(CheckFailed) as refused:
        dbanon.publish("people", policy="finer", name="finer", settings=people.settings)
    reason = "compared with the other releases of public.people, 20 more groups are smaller than k"
    assert reason == str(refused.value).splitlines()[0]


def test_one_newcomer_of_a_kept_value_does_not_keep_the_others_waiting(people):
    found = policy(k=5, l=2)
    columns = (*found.columns, ColumnRule("place", Role.QUASI, keep=True))
    people.execute("ALTER TABLE public.people ADD COLUMN place text NOT NULL DEFAULT 'here'")
    kept = dataclasses.replace(found, columns=columns)
    dbanon.set_policy("public.people", kept, settings=people.settings)
    dbanon.publish("people", settings=people.settings)
    people.execute(
        "INSERT INTO public.people SELECT i, i - 400, 'flu' || i % 7, 'tea', 'here'"
        " FROM generate_series(500, 530) AS i;"
        "INSERT INTO public.people VALUES (600, 50, 'flu', 'tea', 'there')"
    )
    (refreshed,) = refresh(people)
    assert (31, 1) == (refreshed.growth.inserted, refreshed.growth.waiting)
