"""What an attacker learns who keeps every release of a table that people come to and leave.

All 1,002, in a night: ``pytest -m "" --hypothesis-profile=exhaustive -k "not pg15" FILE``.
"""

import random
from collections import Counter, defaultdict
from itertools import product

import pytest
from selection import at_depth, exhaustive_after

import dbanon
from dbanon.domain.policy import ColumnRule, ModelSpec, Policy, Role

K, L, REFRESHES = 4, 2, at_depth(10)
PERSONS, FIRST = 260, 120
KINDS = ("one", "two", "due")
FEW = [(kind, 0) for kind in KINDS]
STREAMS = [*FEW, *(s for s in product(KINDS, range(334)) if s not in FEW)]
REFUSED = ("would show nobody", "the same persons with other keys")  # a handful was left
SHOWN = "SELECT note, age::text, zone::text, disease FROM anon.{}"


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
    """Publish the first of them, each with a note of their own, and of ``two`` a coarser view."""
    roles = {
        "id": Role.IDENTIFIER,
        "age": Role.QUASI,
        "zone": Role.QUASI,
        "disease": Role.SENSITIVE,
        "note": Role.INSENSITIVE,
    }
    table = dbanon.TableName("public", "people")
    policy = Policy(
        table,
        tuple(ColumnRule(name, role) for name, role in roles.items()),
        (ModelSpec("k-anonymity", {"k": K}), ModelSpec("l-diversity", {"l": L})),
        algorithm="mondrian",
        erase_within="30d" if kind == "due" else None,
    )
    dbanon.set_policy(table, policy, settings=database.settings)
    arrive(database, range(1, FIRST + 1))
    dbanon.publish(table, settings=database.settings)
    if kind == "two":
        dbanon.publish(table, name="coarse", k=2 * K, settings=database.settings)
    return ["people", "coarse"] if kind == "two" else ["people"]


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


class Attacker:
    """Somebody who knows who is in which class of every release of every relation."""

    def __init__(self, database, relations):
        self.database, self.relations = database, relations
        self.course, self.values = defaultdict(list), defaultdict(set)
        self.releases = 0

    def look(self):
        """Keep what is shown by now; return how many rows are in the smallest class."""
        self.releases += 1
        least = []
        for relation in self.relations:
            sizes = Counter()
            for person, *class_, value in self.database.execute(SHOWN.format(relation)):
                self.course[person].append((self.releases, relation, *class_))
                self.values[person].add((relation, value))
                sizes[tuple(class_)] += 1
            least.append(min(sizes.values()))
        return min(least)

    def worst(self):
        """Return how few persons were always shown alike, how few values of these are known."""
        cells = defaultdict(list)
        for person, course in self.course.items():
            cells[tuple(course)].append(person)
        persons = min(len(members) for members in cells.values())
        values = min(
            len({value for one in members for _, value in self.values[one]})
            for members in cells.values()
        )
        return persons, values


@pytest.mark.parametrize(("kind", "seed"), exhaustive_after(len(FEW), STREAMS))
def test_nobody_is_left_with_fewer_candidates_by_any_number_of_releases(people, kind, seed):
    chance = random.Random(f"{kind} {seed}")  # noqa: S311 - people, not secrets
    attacker = Attacker(people, begin(people, kind))
    coming = list(range(FIRST + 1, PERSONS + 1))
    attacker.look()
    for _ in range(REFRESHES):
        live(people, chance, coming)
        try:
            found = dbanon.refresh("people", settings=people.settings)
        except (dbanon.Unsatisfiable, dbanon.CheckFailed) as error:
            assert any(reason in str(error) for reason in REFUSED)  # noqa: PT017 - it is no other
            break
        assert {None} == {one.regrouped for one in found}
        assert attacker.look() >= K
        persons, values = attacker.worst()
        assert persons >= K
        assert values >= L
        assert all(len({value for _, value in s}) == 1 for s in attacker.values.values())
        people.execute("UPDATE dbanon.history_leaver SET missed_at = missed_at - interval '9 days'")
    assert attacker.releases > 1
    assert dbanon.check_history("anon.people", settings=people.settings)[0].holds
