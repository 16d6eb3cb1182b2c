"""Who is gone is taken out of views whose classes are several of another view."""

from collections import defaultdict
from functools import partial

import pytest

import dbanon
from dbanon.domain.policy import K_ANONYMITY, L_DIVERSITY, ColumnRule, ModelSpec, Policy, Role

K, LARGE, L, SIZE = 5, 9, 2, 100


def publish_merged(role, database):
    """Make a table with two views of which one shows whole classes of the other, merged."""
    database.execute(
        "CREATE TABLE public.patients (id int PRIMARY KEY, age int, disease text, note text);"
        "INSERT INTO public.patients"
        " SELECT i, i / 5 * 2, (ARRAY['flu', 'cold', 'gout'])[1 + i % 3], 'note ' || i"
        f" FROM generate_series(0, {SIZE - 1}) AS i"
    )
    rules = (
        ColumnRule("id", Role.IDENTIFIER),
        ColumnRule("age", Role.QUASI),
        ColumnRule("disease", Role.SENSITIVE),
        ColumnRule("note", role, allow=("near-unique: made up",) * (role is Role.INSENSITIVE)),
    )
    models = (ModelSpec(K_ANONYMITY, {"k": K}), ModelSpec(L_DIVERSITY, {"l": L}))
    table = dbanon.TableName("public", "patients")
    policy = Policy(table, rules, models, algorithm="mondrian")
    dbanon.set_policy(table, policy, settings=database.settings)
    for options in ({}, {"name": "larger", "k": LARGE}):
        dbanon.publish(table, keep_assignment=True, settings=database.settings, **options)
    database.execute("CREATE TABLE public.rows_1 AS SELECT * FROM dbanon_data.rows_1")
    for options in ({}, {"name": "larger", "k": LARGE}):
        dbanon.publish(table, settings=database.settings, **options)


MAKE = {str(role): partial(publish_merged, role) for role in (Role.IDENTIFIER, Role.INSENSITIVE)}


@pytest.fixture
def patients(copied, request):
    return copied(MAKE[getattr(request, "param", "identifier")])


def atoms(database):
    """Return the persons of each class of the first view."""
    found = defaultdict(list)
    for person, group in database.execute("SELECT k1, group_id FROM public.rows_1"):
        found[group].append(person)
    return [found[group] for group in sorted(found)]


def classes(database):
    """Return the atoms of each class of the merged view that has two and overlaps with none."""
    found = defaultdict(list)
    for *class_, members in database.execute(
        "SELECT l.age::text, array_agg(s.id)"
        "  FROM (SELECT age, count(*) AS rows FROM anon.larger GROUP BY age) AS l"
        "  JOIN public.patients AS s ON l.age @> s.age"
        " WHERE l.rows = 10 AND NOT EXISTS"
        "       (SELECT FROM anon.larger AS o WHERE o.age && l.age AND o.age <> l.age)"
        " GROUP BY l.age, s.age"
    ):
        found[tuple(class_)].append(members)
    return [atoms for atoms in found.values() if len(atoms) == 2]


def leave(database, persons):
    database.execute("DELETE FROM public.patients WHERE id = ANY (%s)", (list(persons),))


def refresh(database):
    """Return what became of the view of merged classes."""
    found = dbanon.refresh("patients", settings=database.settings)
    (larger,) = (one for one in found if one.relation.name == "larger")
    return larger.growth


def sizes(database):
    """Return how many persons, and how many diseases, each class of the merged view shows."""
    return database.execute(
        "SELECT count(*), count(DISTINCT disease) FROM anon.larger GROUP BY age"
    )


@pytest.mark.exhaustive
@pytest.mark.parametrize("patients", ["identifier", "insensitive"], indirect=True)
def test_whole_classes_of_one_view_leave_the_other(patients):
    gone = [person for members in atoms(patients)[::3] for person in members]
    leave(patients, gone)
    found = refresh(patients)
    assert all(persons >= LARGE and values >= L for persons, values in sizes(patients))
    assert found.shown == sum(persons for persons, _ in sizes(patients)) > 0
    assert found.kept + found.withheld == SIZE - len(gone)


def test_a_merged_class_stays_until_enough_of_it_are_gone(patients):
    first, *_ = classes(patients)
    leave(patients, first[0])
    before = sizes(patients)
    assert (len(first[0]), 0) == ((found := refresh(patients)).deferred, found.left)
    assert sorted(before) == sorted(sizes(patients))
    leave(patients, [person for atom in first for person in atom])
    found = refresh(patients)
    assert (0, 1) == (found.deferred, found.withdrawn)
    assert len(before) - 1 == len(sizes(patients))
