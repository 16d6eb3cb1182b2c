"""Pools of new persons: the same persons come and go in two worlds with other values."""

from dataclasses import replace

import pytest
from selection import exhaustive_after

import dbanon
from dbanon.domain.policy import ColumnRule, Comparison, Condition, ModelSpec, Policy, Role
from dbanon.formats import policies
from dbanon.formats.datasets import dataset_of

MODELS = (ModelSpec("k-anonymity", {"k": 5}), ModelSpec("l-diversity", {"l": 2}))
WORLDS = ("alpha", "omega")


def column(name, role, **options):
    return ColumnRule(name, Role(role), **options)


def make(database, name, rules, **options):
    """Create a table of people, one row each, with a policy."""
    table = dbanon.TableName("public", name)
    database.execute(
        f"CREATE TABLE {table} (id int PRIMARY KEY, age int, sex text, disease text, job text)"
    )
    every = {"id": "identifier", "age": "quasi", "sex": "identifier", "job": "identifier"}
    given = {rule.column: rule for rule in rules}
    columns = (*(given.pop(n, None) or column(n, role) for n, role in every.items()),)
    columns += (column("disease", "sensitive"), *given.values())
    policy = Policy(table, columns, MODELS, algorithm="mondrian", **options)
    dbanon.set_policy(table, policy, settings=database.settings)
    return policy


def come(database, name, first, diseases, *, age=40, sex="m", jobs="tp"):
    database.execute(
        f"INSERT INTO public.{name} SELECT %s - 1 + i, %s, %s, substr(%s, i, 1),"
        " substr(%s, 1 + i / 2 %% %s, 1) FROM generate_series(1, %s) i",
        (first, age, sex, diseases, jobs, len(jobs), len(diseases)),
    )


def publish(database, table, **options):
    try:
        found = dbanon.publish(table, settings=database.settings, **options)
    except dbanon.DbanonError as error:
        return f"{type(error).__name__}: {error}".replace(table, "X")
    return str(found.sharing)


def refresh(database, name, **options):
    """Return what the owner is told of every relation, or the refusal, without the table's name."""
    try:
        found = dbanon.refresh(name, settings=database.settings, **options)
    except dbanon.DbanonError as error:
        return f"{type(error).__name__}: {error}".replace(name, "X")
    return [(str(one.relation).replace(name, "X"), one.changed, str(one.growth)) for one in found]


def count(database, relation, condition="true"):
    return database.execute(f"SELECT count(*) FROM anon.{relation} WHERE {condition}")[0][0]


KEPT = (column("sex", "quasi", keep=True),)


def test_a_kept_value_whose_pool_fails_keeps_no_other_one_waiting(database):
    make(database, "people", KEPT)
    come(database, "people", 1, "fh" * 6)
    come(database, "people", 101, "fh" * 6, sex="w")
    publish(database, "people")
    come(database, "people", 1000, "f" * 21)
    come(database, "people", 2000, "fh" * 12, sex="w")
    ((_, _, told),) = refresh(database, "people")
    assert "all of them together do not meet the models; pool 21 of 42" in told
    assert (12, 36) == tuple(count(database, "people", f"sex = '{s}'") for s in "mw")


@pytest.mark.exhaustive
@pytest.mark.parametrize("meanwhile", ["nothing", "one leaves"])
def test_one_more_of_a_kept_value_does_not_complete_its_failed_pool(database, meanwhile):
    courses = []
    for world, last in zip(WORLDS, "fh", strict=True):
        make(database, world, KEPT)
        come(database, world, 1, "fh" * 6)
        come(database, world, 101, "fh" * 6, sex="w")
        publish(database, world)
        come(database, world, 1000, "f" * 21)
        course = [refresh(database, world)]
        if meanwhile == "one leaves":
            database.execute(f"DELETE FROM public.{world} WHERE id = 1000")
        come(database, world, 3000, "fh" * 12, sex="w")  # whose pool is published
        come(database, world, 4000, "fh", sex="x")
        course.append(refresh(database, world))
        come(database, world, 2000, last)
        course += [refresh(database, world), count(database, world)]
        courses.append(course)
    assert courses[0] == courses[1]
    assert 48 == courses[0][-1]


@pytest.mark.exhaustive
def test_the_pool_of_a_kept_value_is_as_large_as_its_own_published_values_require(database):
    make(database, "people", KEPT)
    come(database, "people", 1, ("f" * 19 + "h") * 5)
    come(database, "people", 1001, "fh" * 50, sex="w")
    publish(database, "people")
    come(database, "people", 2000, "f" * 21)
    come(database, "people", 3000, "fh" * 12, sex="w")
    ((_, _, told),) = refresh(database, "people")
    assert "pool 21 of 270" in told
    assert (100, 124) == tuple(count(database, "people", f"sex = '{s}'") for s in "mw")
    come(database, "people", 4000, "fh" * 40, sex="x")  # was never published
    assert "(pool 80 of 270)" in refresh(database, "people")[0][2]


def several(database, name, rows_of, **options):
    """Create a table with several rows of each person; rows_of: (first, values, rows, sex)."""
    table = dbanon.TableName("public", name)
    database.execute(
        f"CREATE TABLE {table} (id serial PRIMARY KEY, person int, age int, sex text, disease text)"
    )
    roles = {"id": "identifier", "person": "identifier", "age": "quasi", "disease": "sensitive"}
    sex = options.pop("sex", column("sex", "identifier"))
    rules = (*(column(*one) for one in roles.items()), sex)
    policy = Policy(table, rules, MODELS, algorithm="mondrian", subject="person", **options)
    dbanon.set_policy(table, policy, settings=database.settings)
    add(database, name, rows_of)


def add(database, name, rows_of):
    for first, values, rows, sex in rows_of:
        database.execute(
            f"INSERT INTO public.{name} (person, age, sex, disease) SELECT %s - 1 + i, 40, %s,"
            " substr(%s, i, 1) FROM generate_series(1, %s) i, generate_series(1, %s)",
            (first, sex, values, len(values), rows),
        )


@pytest.mark.exhaustive
def test_with_a_subject_each_kept_value_is_a_pool_of_its_own(database):
    courses = []
    for world, six in zip(WORLDS, ("ffffff", "fhfhfh"), strict=True):
        before = [(1, "fh" * 15, 2, "m"), (101, "fh" * 15, 2, "w")]
        several(database, world, before, sex=KEPT[0])
        publish(database, world)
        add(database, world, [(1000, six, 2, "m"), (2000, "fh" * 25, 2, "w")])
        shown = [count(database, world, f"sex = '{s}'") for s in "mw"]
        courses.append((refresh(database, world), shown, count(database, world)))
    assert courses[0] == courses[1]
    assert 220 == courses[0][2]


@pytest.mark.parametrize("number", exhaustive_after(1, ["group", 2]))
def test_persons_with_a_rare_number_of_rows_are_published_whatever_their_values(database, number):
    courses = []
    for world, six in zip(WORLDS, ("ffffff", "fhfhfh"), strict=True):
        before = [(1, "fh" * 15, 1, "m"), (101, "fh" * 15, 2, "m")]
        several(database, world, before, rows_per_subject=number)
        publish(database, world)
        rest = ("hhh" if six == "ffffff" else "fff") + "fh" * 25 + "f"
        add(database, world, [(1000, six, 2, "m"), (2000, rest, 1, "m")])
        courses.append((refresh(database, world), count(database, world)))
    assert courses[0] == courses[1]
    assert 90 + 60 == courses[0][1]  # of the six, one row each


def dataset(database, name, *, keep=False):
    """Create a table of persons and one of their visits, with policies."""
    people, visits = f"{name}_people", f"{name}_visits"
    database.execute(
        f"CREATE TABLE public.{people} (id int PRIMARY KEY, age int, sex text, insurance text);"
        f"CREATE TABLE public.{visits} (visit serial PRIMARY KEY, person int NOT NULL, cost text)"
    )
    roles = {"id": "identifier", "age": "quasi", "sex": "quasi", "insurance": "sensitive"}
    lines = [f'{name}.role = "{role}"' for name, role in roles.items()]
    lines += ["sex.keep = true"] if keep else []
    define(database, people, "\n".join(["max_suppressed = 0.2", "[columns]", *lines]))
    roles = {"visit": "identifier", "person": "identifier", "cost": "sensitive"}
    lines = [f'{name}.role = "{role}"' for name, role in roles.items()]
    define(database, visits, "\n".join(['subject = "person"', "[columns]", *lines]))
    return people, visits


def define(database, table, text):
    policy = policies.parse(f'table = "public.{table}"\n{text}')
    dbanon.set_policy(f"public.{table}", policy, settings=database.settings)


def visit(database, tables, first, values, *, sex="m", visits=True):
    people, of_visits = tables
    database.execute(
        f"INSERT INTO public.{people} SELECT %s - 1 + i, 40, %s, substr(%s, i, 1)"
        " FROM generate_series(1, %s) i",
        (first, sex, values, len(values)),
    )
    if visits:
        database.execute(
            f"INSERT INTO public.{of_visits} (person, cost) SELECT %s - 1 + i,"
            " (ARRAY['x', 'y'])[1 + i %% 2] FROM generate_series(1, %s) i",
            (first, len(values)),
        )


SIXTY = {"AAAAAA": "BBB" + "AB" * 25 + "A", "ABABAB": "AAA" + "AB" * 25 + "A"}


@pytest.mark.exhaustive
def test_persons_with_rows_in_rare_tables_are_published_whatever_their_values(database):
    courses = []
    for world, (six, rest) in zip(WORLDS, SIXTY.items(), strict=True):
        tables = dataset(database, world)
        visit(database, tables, 1, "AB" * 20)
        visit(database, tables, 101, "AB" * 10, visits=False)
        dbanon.publish_dataset(dataset_of(tables), k=5, l=2, settings=database.settings)
        visit(database, tables, 1000, six, visits=False)
        visit(database, tables, 2000, rest)
        told = refresh(database, tables[0])
        courses.append((str(told).replace(world, "X"), *(count(database, t) for t in tables)))
    assert courses[0] == courses[1]
    assert 60 + 60 == courses[0][1]


@pytest.mark.exhaustive
def test_in_a_dataset_each_kept_value_is_a_pool_of_its_own(database):
    courses = []
    for world, (six, rest) in zip(WORLDS, SIXTY.items(), strict=True):
        tables = dataset(database, world, keep=True)
        visit(database, tables, 1, "AB" * 20)
        visit(database, tables, 101, "AB" * 20, sex="w")
        dbanon.publish_dataset(dataset_of(tables), k=5, l=2, settings=database.settings)
        visit(database, tables, 1000, six)
        visit(database, tables, 2000, rest, sex="w")
        told = refresh(database, tables[0])
        courses.append((str(told).replace(world, "X"), *(count(database, t) for t in tables)))
    assert courses[0] == courses[1]
    assert (80 + 54, 80 + 54) == courses[0][1:]


def test_a_failed_pool_is_remembered_though_the_refresh_is_refused(database):
    courses = []
    for world, last in zip(WORLDS, "fh", strict=True):
        make(database, world, ())
        come(database, world, 1, "fh" * 6)
        publish(database, world)
        database.execute(f"DELETE FROM public.{world} WHERE id <= 8")
        come(database, world, 100, "f" * 21, age=70)
        course = [refresh(database, world)]
        come(database, world, 200, last, age=70)
        course += [refresh(database, world), count(database, world)]
        courses.append(course)
    assert courses[0] == courses[1]
    assert courses[0][0].startswith("Unsatisfiable: anon.X would show nobody")
    assert 21 == dbanon.history("alpha", settings=database.settings).retained[0].failed


@pytest.mark.exhaustive
def test_new_persons_wait_for_a_pool_where_everybody_published_has_left(database):
    courses = []
    for world, last in zip(WORLDS, "fh", strict=True):
        make(database, world, ())
        come(database, world, 1, "fh" * 30)
        publish(database, world)
        database.execute(f"DELETE FROM public.{world}")
        come(database, world, 100, "ffff" + last, age=70)
        courses.append((publish(database, world), count(database, world)))
    assert courses[0] == courses[1]
    come(database, "alpha", 200, "fh" * 8, age=70)
    publish(database, "alpha")
    assert 21 == count(database, "alpha")


def two(database, name, **options):
    """Publish a table by disease, and in another relation by disease and job."""
    policy = make(database, name, (), **options)
    come(database, name, 1, "fh" * 6, age=30)
    come(database, name, 101, "fh" * 6, age=60)
    rules = [replace(r, role=Role.SENSITIVE) if r.column == "job" else r for r in policy.columns]
    second = replace(policy, columns=tuple(rules), pool_size=40)
    dbanon.set_policy(policy.table, second, name="second", settings=database.settings)
    publish(database, name)
    publish(database, name, policy="second", name=f"{name}_second")


@pytest.mark.exhaustive
def test_new_classes_are_safe_for_the_columns_of_every_relation(database):
    courses = []
    for world, (jobs, others) in zip(WORLDS, (("t", "p"), ("tp", "tp")), strict=True):
        two(database, world)
        come(database, world, 1000, "fh" * 6, age=70, jobs=jobs)
        come(database, world, 1100, "fh" * 6, age=75, jobs=others)
        course = [refresh(database, world), count(database, f"{world}_second")]
        for first in (1200, 1300, 1400):
            come(database, world, first, "fh" * 12, age=80)
            course += [refresh(database, world), count(database, f"{world}_second")]
        courses.append(course)
    assert courses[0] == courses[1]
    assert [24, 72, 72, 120] == courses[0][1::2]


@pytest.mark.exhaustive
def test_a_deadline_holds_in_every_relation(database):
    two(database, "people", erase_within="30d")
    come(database, "people", 1000, "fh" * 6, age=70, jobs="t")
    come(database, "people", 1100, "fh" * 6, age=75)
    refresh(database, "people")
    database.execute("DELETE FROM people WHERE id = 1")
    refresh(database, "people")
    database.execute("UPDATE dbanon.history_leaver SET missed_at = missed_at - interval '1 year'")
    refresh(database, "people")
    assert (
        0 == count(database, "people_second", "age @> 30") == count(database, "people", "age @> 30")
    )


def test_a_new_column_is_not_published_of_classes_that_were_made_before_it(database):
    courses = []
    for world, jobs in zip(WORLDS, ("t", "tp"), strict=True):
        policy = make(database, world, ())
        come(database, world, 1, "fh" * 6, age=30)
        publish(database, world)
        rules = [
            replace(r, role=Role.SENSITIVE) if r.column == "job" else r for r in policy.columns
        ]
        condition = Condition("age", Comparison("<"), 50)
        second = replace(policy, columns=tuple(rules), where=(condition,))
        dbanon.set_policy(policy.table, second, name="second", settings=database.settings)
        come(database, world, 1000, "fh" * 12, age=70, jobs=jobs)
        refresh(database, world)
        publish(database, world, policy="second", name=f"{world}_second")
        database.execute(f"UPDATE public.{world} SET age = 40 WHERE age = 70")
        courses.append((refresh(database, world), count(database, f"{world}_second")))
    assert courses[0] == courses[1]
    assert 12 == courses[0][1]


@pytest.mark.exhaustive
def test_a_pool_of_another_relation_is_published_though_nothing_changed_since(database):
    policy = make(database, "people", ())
    come(database, "people", 1, "fh" * 12)
    second = replace(policy, pool_size=40)
    dbanon.set_policy(policy.table, second, name="second", settings=database.settings)
    publish(database, "people")
    publish(database, "people", policy="second", name="a_second")
    come(database, "people", 100, "fh" * 12)
    refresh(database, "people", if_changed=True)
    assert (48, 24) == (count(database, "people"), count(database, "a_second"))
    refresh(database, "people", if_changed=True)
    assert 48 == count(database, "a_second")
    refresh(database, "people", if_changed=True)
    assert {False} == {told[1] for told in refresh(database, "people", if_changed=True)}
    number = "SELECT max(release_id) FROM dbanon.release"
    assert [(4,)] == database.execute(number)


@pytest.mark.exhaustive
def test_pools_ignore_the_columns_of_live_views_which_are_not_compared(database):
    policy = make(database, "people", ())
    come(database, "people", 1, "fh" * 12)
    rules = [replace(r, role=Role.SENSITIVE) if r.column == "job" else r for r in policy.columns]
    second = replace(policy, columns=tuple(rules))
    dbanon.set_policy(policy.table, second, name="second", settings=database.settings)
    publish(database, "people")
    publish(database, "people", policy="second", name="second", kind="view")
    assert 24 == count(database, "second")
    come(database, "people", 100, "fh" * 12, jobs="t")
    refresh(database, "people")
    assert 48 == count(database, "people")
