"""Somebody who has to go at once takes no more others along than hide who it was."""

from collections import Counter

import pytest

import dbanon
from dbanon.domain.policy import K_ANONYMITY, L_DIVERSITY, ColumnRule, ModelSpec, Policy, Role

pytestmark = pytest.mark.one_server
K, L, CLASS = 5, 2, 20


@pytest.fixture
def patients(database):
    """Return a table of people of three ages, twenty of each, who are published."""
    database.execute(
        "CREATE TABLE public.patients (id int PRIMARY KEY, age int, disease text);"
        "INSERT INTO public.patients"
        f" SELECT i, 30 + i / {CLASS} * 10, (ARRAY['flu', 'cold', 'gout'])[1 + i % 3]"
        f" FROM generate_series(0, {3 * CLASS - 1}) AS i"
    )
    rules = (
        ColumnRule("id", Role.IDENTIFIER),
        ColumnRule("age", Role.QUASI),
        ColumnRule("disease", Role.SENSITIVE),
    )
    models = (ModelSpec(K_ANONYMITY, {"k": K}), ModelSpec(L_DIVERSITY, {"l": L}))
    table = dbanon.TableName("public", "patients")
    policy = Policy(table, rules, models, algorithm="mondrian")
    dbanon.set_policy(table, policy, settings=database.settings)
    dbanon.publish(table, settings=database.settings)
    return database


def published(database):
    return Counter(database.execute("SELECT age::text, disease FROM anon.patients"))


def leave(database, person, **options):
    """Let somebody leave; return what became of the release, and the rows that went with it."""
    before = published(database)
    database.execute("DELETE FROM public.patients WHERE id = %s", (person,))
    (found,) = dbanon.refresh("patients", leavers="retire", settings=database.settings, **options)
    assert not published(database) - before
    return found, before - published(database)


def test_a_leaver_takes_as_many_along_as_hide_who_it_was(patients):
    sizes = []
    for person in range(CLASS):  # all of one class; who goes first, nobody knows beforehand
        found, went = leave(patients, person)
        assert bool(went) is found.changed
        if went:
            sizes.append((went.total(), found.growth.withdrawn))
            assert 1 == len({age for age, _ in went})
            assert len(went) >= L
            assert found.release.composition.holds
    # Of the last five, too few would stay.
    assert [(K, 0), (K, 0), (K, 0), (K, 1)] == sizes
    assert 2 * CLASS == published(patients).total()


def test_a_plan_draws_the_same_as_the_refresh_that_follows_it(patients):
    planned, nothing = leave(patients, 0, dry_run=True)
    assert not nothing
    before = published(patients)
    (done,) = dbanon.refresh("patients", leavers="retire", settings=patients.settings)
    assert planned.growth == done.growth
    assert planned.release.loss.ncp == done.release.loss.ncp
    assert K == (before - published(patients)).total()
