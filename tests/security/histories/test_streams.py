"""What an attacker learns who keeps every release of a table that people come to and leave.

All 1,000, in a night: ``pytest -m "" --hypothesis-profile=exhaustive -k "not pg15" FILE``.
"""

import random
from collections import Counter, defaultdict
from itertools import product

import pytest
from selection import at_depth, exhaustive_after

import dbanon
from dbanon.domain.policy import ColumnRule, ModelSpec, Policy, Role

K, L, REFRESHES = 4, 2, at_depth(20)
PERSONS, FIRST = 260, 120
KINDS = ("plain", "noted")
LEAVERS = ("defer", "retire")
FEW = [("plain", "defer", 0), ("noted", "retire", 0)]
STREAMS = [*FEW, *(s for s in product(KINDS, LEAVERS, range(250)) if s not in FEW)]
REFUSED = ("would show nobody", "the same persons under other keys")  # a handful was left
SHOWN = "SELECT age::text, zone::text, disease, count(*) FROM anon.people GROUP BY 1, 2, 3"


@pytest.fixture
def people(database):
    """Return a database with everybody who may ever come."""
    database.execute(
        f"""
        CREATE TABLE public.everybody AS
        SELECT p AS id, 20 + p * 7 % 61 AS age, p * 13 % 9 AS zone,
               (ARRAY['flu', 'cold', 'cough', 'gout', 'mumps'])[1 + p * p % 5] AS disease,
               'note ' || p AS note
          FROM generate_series(1, {PERSONS}) AS p;
        CREATE TABLE public.people (LIKE public.everybody, PRIMARY KEY (id))
        """
    )
    return database


def begin(database, kind):
    """Publish the first of them, with a note of each that nobody else has, or without."""
    roles = {
        "id": Role.IDENTIFIER,
        "age": Role.QUASI,
        "zone": Role.QUASI,
        "disease": Role.SENSITIVE,
        "note": Role.INSENSITIVE if kind == "noted" else Role.IDENTIFIER,
    }
    table = dbanon.TableName("public", "people")
    policy = Policy(
        table,
        tuple(ColumnRule(name, role) for name, role in roles.items()),
        (ModelSpec("k-anonymity", {"k": K}), ModelSpec("l-diversity", {"l": L})),
        algorithm="mondrian",
    )
    dbanon.set_policy(table, policy, settings=database.settings)
    arrive(database, range(1, FIRST + 1))
    dbanon.publish(table, settings=database.settings)


def arrive(database, persons):
    database.execute(
        "INSERT INTO public.people SELECT * FROM public.everybody WHERE id = ANY (%s)",
        (list(persons),),
    )


def live(database, chance, coming):
    """Let a month pass."""
    arrive(database, [coming.pop() for _ in range(min(len(coming), chance.randint(0, 14)))])
    present = [row[0] for row in database.execute("SELECT id FROM people ORDER BY 1")]
    gone = chance.sample(present, min(len(present) // 3, chance.randint(0, 9)))
    if chance.random() < 0.2:  # a whole neighbourhood leaves
        zone = chance.randint(0, 8)
        gone += [p for p in present if p * 13 % 9 == zone]
    database.execute("DELETE FROM public.people WHERE id = ANY (%s)", (gone,))
    if chance.random() < 0.3:
        database.execute(
            "UPDATE public.people SET disease = 'cancer', age = age + 1 WHERE id %% 11 = %s",
            (chance.randint(0, 10),),
        )


def classes(database):
    """Return the diseases of each class that readers see."""
    found = defaultdict(Counter)
    for age, zone, disease, rows in database.execute(SHOWN):
        found[age, zone][disease] += rows
    return found


def is_safe(values):
    """Tell whether nobody, or enough people with enough values, came or went."""
    return not values or (values.total() >= K and len(values) >= L)


def compare(releases):
    """Hold the last release against each of those before, class by class.

    Where rows of a class both went and came meanwhile, the difference is that of no set of people.
    """
    now, later = releases[-1], releases[-1]
    have_gone, have_come = set(), set()
    for before in reversed(releases[:-1]):
        for class_ in before.keys() | later.keys():
            if before[class_] - later[class_]:
                have_gone.add(class_)
            if later[class_] - before[class_]:
                have_come.add(class_)
        later = before
        for class_ in before.keys() | now.keys():
            if class_ not in have_gone & have_come:
                assert is_safe(before[class_] - now[class_])
                assert is_safe(now[class_] - before[class_])
            if before[class_] and now[class_]:
                assert len(before[class_].keys() & now[class_].keys()) >= L


@pytest.mark.one_server
@pytest.mark.parametrize(("kind", "leavers", "seed"), exhaustive_after(len(FEW), STREAMS))
def test_nobody_is_left_with_fewer_candidates_by_any_number_of_releases(
    people, kind, leavers, seed
):
    chance = random.Random(f"{kind} {leavers} {seed}")  # noqa: S311 - people, not secrets
    begin(people, kind)
    coming = list(range(FIRST + 1, PERSONS + 1))
    releases = [classes(people)]
    for _ in range(REFRESHES):
        live(people, chance, coming)
        try:
            (found,) = dbanon.refresh("people", leavers=leavers, settings=people.settings)
        except (dbanon.Unsatisfiable, dbanon.CheckFailed) as error:
            assert any(reason in str(error) for reason in REFUSED)  # noqa: PT017 - it is no other
            break
        assert (None, ()) == (
            found.regrouped,
            found.release.composition.warnings if found.release.composition else (),
        )
        now = classes(people)
        assert all(is_safe(values) for values in now.values())
        releases.append(now)
        compare(releases)
    assert len(releases) > 1
    (together,) = dbanon.check_history("anon.people", settings=people.settings)
    assert together.holds
