"""What goes, comes and waits in a refresh, and when, is the same whoever has which value.

All 200 streams: ``pytest -m "" tests/security/histories/test_timing.py -k "not pg15"``.
"""

import random
from collections import Counter
from dataclasses import replace

import pytest
from selection import exhaustive_after

import dbanon
from dbanon.domain.policy import ColumnRule, ModelSpec, Policy, Role

K, L, REFRESHES = 5, 2, 8
CLASS = range(1, 13)
SIX, SEVEN = range(1, 7), range(1, 8)


def make(database, name, values, *, within=None, pool=None):
    """Publish a table of people, by person their age and disease."""
    table = dbanon.TableName("public", name)
    database.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, age int, disease text)")
    arrive(database, name, values)
    rules = (
        ColumnRule("id", Role.IDENTIFIER),
        ColumnRule("age", Role.QUASI),
        ColumnRule("disease", Role.SENSITIVE),
    )
    models = (ModelSpec("k-anonymity", {"k": K}), ModelSpec("l-diversity", {"l": L}))
    policy = Policy(table, rules, models, algorithm="mondrian", erase_within=within, pool_size=pool)
    dbanon.set_policy(table, policy, settings=database.settings)
    dbanon.publish(table, settings=database.settings)


def arrive(database, name, values):
    ids, ages, diseases = zip(*((i, *v) for i, v in values.items()), strict=True)
    database.execute(
        f"INSERT INTO public.{name} SELECT * FROM unnest(%s::int[], %s::int[], %s::text[])",
        ([*ids], [*ages], [*diseases]),
    )


def leave(database, name, persons):
    database.execute(f"DELETE FROM public.{name} WHERE id = ANY (%s)", ([*persons],))


def refreshed(database, name):
    """Refresh; return the size of each class that readers see, and what the owner is told."""
    (found,) = dbanon.refresh(name, settings=database.settings)
    shown = f"SELECT age::text, count(*) FROM anon.{name} GROUP BY 1"
    return dict(database.execute(shown)), found.changed, replace(found.growth, due=None)


REFUSED = ("none of its classes stays", "the same persons with other keys")  # few are left


def decided(database, name):
    """Refresh; return what is decided, or the reason for which nearly nobody is left to show."""
    try:
        return refreshed(database, name)
    except (dbanon.Unsatisfiable, dbanon.CheckFailed) as error:
        (reason,) = [reason for reason in REFUSED if reason in str(error)]
        return reason


def wait(database):
    """Let a year pass."""
    database.execute("UPDATE dbanon.history_leaver SET missed_at = missed_at - interval '1 year'")


def some(members, *, others="fhfhfhfhfh"):
    """Return a class of persons of one age with these diseases, and another one."""
    aged = {i: (30, value) for i, value in zip(CLASS, members, strict=False)}
    return aged | {100 + i: (60, value) for i, value in enumerate(others)}


def newcomers(database, name, diseases):
    """Let six come, then another one."""
    make(database, name, some("fhfhfhfhfhfh"))
    *six, seventh = diseases
    arrive(database, name, {200 + i: (90, value) for i, value in enumerate(six)})
    yield refreshed(database, name)
    arrive(database, name, {300: (90, seventh)})
    yield refreshed(database, name)


def leavers(database, name, diseases):
    """Let six leave a class, then another one."""
    make(database, name, some(diseases))
    leave(database, name, SIX)
    yield refreshed(database, name)
    leave(database, name, SEVEN)
    yield refreshed(database, name)


def deadline(database, name, diseases):
    """Let six leave a class, and be due."""
    make(database, name, some(diseases), within="30d")
    leave(database, name, SIX)
    yield refreshed(database, name)
    wait(database)
    yield refreshed(database, name)


def stayers(database, name, diseases):
    """Let half of a class leave."""
    make(database, name, some(diseases))
    leave(database, name, SIX)
    yield refreshed(database, name)


@pytest.mark.parametrize(
    ("course", "one", "other"),
    [
        (newcomers, "ffffffh", "fffffff"),
        (leavers, "ffffffhfhfhf", "hfffffffhfhf"),
        (deadline, "ffffffhfhfhf", "ffffhhffhfff"),
        (stayers, "fffhhhffffff", "ffffhhfffffh"),
    ],
)
def test_the_smallest_cases_look_alike_whoever_has_which_value(database, course, one, other):
    assert [*course(database, "one", one)] == [*course(database, "other", other)]


@pytest.mark.exhaustive
def test_what_has_left_goes_with_its_whole_class_and_nobody_of_it_comes_back(database):
    make(database, "people", some("fhfhfhfhfhfh"))
    leave(database, "people", range(1, 8))
    assert {"[30,31)": 12, "[60,61)": 10} == refreshed(database, "people")[0]
    leave(database, "people", [8])  # 60 % of twelve, and fewer than k stay
    shown, _, growth = refreshed(database, "people")
    assert ({"[60,61)": 10}, 1, 8, 4) == (shown, growth.withdrawn, growth.left, growth.withheld)
    arrive(database, "people", {i: (30, "fh"[i % 2]) for i in range(400, 440)})
    shown, _, growth = refreshed(database, "people")
    assert ({"[30,31)": 40, "[60,61)": 10}, 4) == (shown, growth.withheld)


def test_a_pool_without_enough_values_is_named_and_waits_for_as_many_more(database):
    def pool(*, wanted):
        shown, _, growth = refreshed(database, "people")
        assert wanted == (growth.inserted, growth.pending, growth.pool, growth.failed)
        return shown, str(growth)

    def failed():
        return dbanon.history("people", settings=database.settings).retained[0].failed

    make(database, "people", some("fhfhfhfhfhfh"))
    arrive(database, "people", dict.fromkeys(range(200, 220), (90, "f")))
    pool(wanted=(0, 20, 21, False))
    arrive(database, "people", {300: (90, "f")})
    _, text = pool(wanted=(0, 21, 42, True))
    assert "21 pending (all of them together do not meet the models; pool 21 of 42)" in text
    assert 21 == failed()
    arrive(database, "people", {i: (90, "fh"[i % 2]) for i in range(400, 420)})
    pool(wanted=(0, 41, 42, False))
    arrive(database, "people", {500: (90, "f")})
    shown, _ = pool(wanted=(42, 0, 21, False))
    assert (42, 0) == (shown["[90,91)"], failed())


class Stream:
    """Families of one age each that come and leave, in two worlds that differ in who has what."""

    def __init__(self, seed):
        self.chance = random.Random(seed)  # noqa: S311 - people, not secrets
        self.worlds = {"one": {}, "other": {}}
        self.present, self.next, self.age = [], 1, 20

    def come(self, families):
        """Return who comes, in each world."""
        found = {name: {} for name in self.worlds}
        for _ in range(families):
            size = self.chance.randint(2 * K, 3 * K)
            values = [
                "flu",
                "flu",
                "hiv",
                "hiv",
                *self.chance.choices(["flu", "hiv", "cold"], k=size - 4),
            ]
            self.age += 1
            members = range(self.next, self.next + size)
            self.next += size
            for world in found.values():
                self.chance.shuffle(values)
                world |= {i: (self.age, v) for i, v in zip(members, values, strict=True)}
            self.present += members
        return found

    def go(self):
        """Return who leaves, in either world; now and then most of a family."""
        gone = self.chance.sample(self.present, min(len(self.present) // 5, 12))
        start = self.chance.randrange(len(self.present))
        gone += self.present[start : start + self.chance.choice([0, 0, 3 * K])]
        self.present = [i for i in self.present if i not in set(gone)]
        return gone


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", exhaustive_after(2, [0, 30, *range(1, 30), *range(31, 200)]))
def test_decisions_are_the_same_when_values_are_dealt_otherwise_within_classes(database, seed):
    stream = Stream(seed)
    for name, values in stream.come(8).items():
        make(database, name, values, within="30d" if seed % 2 else None, pool=6 * K)
    told = Counter()
    for month in range(REFRESHES):
        gone = stream.go()
        for name, values in stream.come(stream.chance.choice([0, 3])).items():
            leave(database, name, gone)
            if values:
                arrive(database, name, values)
        one, other = (decided(database, name) for name in stream.worlds)
        assert one == other, month
        if one in REFUSED:
            return
        told += Counter({"withdrawn": one[2].withdrawn, "inserted": one[2].inserted})
        if seed % 2 and month == REFRESHES // 2:
            wait(database)
    assert told.total()


@pytest.fixture
def pools_of_six(monkeypatch):
    """Let six new persons be a pool, whatever their number has to be for their values."""
    monkeypatch.setattr("dbanon.anonymization.pools.pool_size", lambda *_, **__: 6)


def again(database, name, *, by):
    """Publish or refresh a table; return how many rows readers see."""
    if by == "publish":
        dbanon.publish(name, settings=database.settings)
    else:
        refreshed(database, name)
    return database.execute(f"SELECT count(*) FROM anon.{name}")[0][0]


@pytest.mark.exhaustive
@pytest.mark.parametrize("first", ["refresh", "publish"])
@pytest.mark.parametrize("then", ["refresh", "publish"])
@pytest.mark.usefixtures("pools_of_six")
def test_whoever_makes_a_failed_pool_valid_is_not_the_next_to_come(database, first, then):
    make(database, "people", some("fhfhfhfhfhfh"))
    arrive(database, "people", {200 + i: (90, "f") for i in range(6)})
    before = again(database, "people", by=first)
    arrive(database, "people", {300: (90, "h")})
    assert before == again(database, "people", by=then) == 22
    arrive(database, "people", {310 + i: (90, "fh"[i % 2]) for i in range(5)})
    assert 34 == again(database, "people", by="refresh")


@pytest.mark.exhaustive
@pytest.mark.usefixtures("pools_of_six")
def test_a_failed_pool_of_one_relation_is_one_of_all_relations_of_the_table(database):
    make(database, "people", some("fhfhfhfhfhfh"))
    arrive(database, "people", {200 + i: (90, "f") for i in range(6)})
    again(database, "people", by="refresh")
    arrive(database, "people", {300: (90, "h")})
    dbanon.publish("people", name="others", settings=database.settings)
    assert [(22,)] == database.execute("SELECT count(*) FROM anon.others")


@pytest.mark.usefixtures("pools_of_six")
def test_a_failed_pool_of_a_kept_value_waits_for_a_whole_pool_of_that_value(database):
    table = dbanon.TableName("public", "people")
    database.execute("CREATE TABLE people (id int PRIMARY KEY, ward text, age int, disease text)")
    rules = (
        ColumnRule("id", Role.IDENTIFIER),
        ColumnRule("ward", Role.QUASI, keep=True),
        ColumnRule("age", Role.QUASI),
        ColumnRule("disease", Role.SENSITIVE),
    )
    models = (ModelSpec("k-anonymity", {"k": K}), ModelSpec("l-diversity", {"l": L}))
    dbanon.set_policy(
        table, Policy(table, rules, models, algorithm="mondrian"), settings=database.settings
    )

    def come(first, ward, diseases):
        for number, disease in enumerate(diseases, first):
            database.execute("INSERT INTO people VALUES (%s, %s, 30, %s)", (number, ward, disease))

    for first, ward in ((1, "a"), (101, "b")):
        come(first, ward, "fhfhfhfhfh")
    dbanon.publish(table, settings=database.settings)
    come(201, "a", "ffffff")
    assert 20 == again(database, "people", by="refresh")
    come(301, "b", "fhfhfh")
    come(401, "a", "h")
    assert 26 == again(database, "people", by="refresh")
