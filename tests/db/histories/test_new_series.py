"""A release that starts a series is compared with those before as one that continues it is."""

import random
from dataclasses import replace

import pytest
from tables import make_patients, patients_policy

import dbanon
from dbanon.domain.policy import ColumnRule, Role
from dbanon.domain.table import TableName

STEPS = "dbanon.actions.publication.steps.reuse_groups"
SERIES = "dbanon.actions.publication.series._require_no_worse"
CHANGES = (
    "DELETE FROM public.patients WHERE id % 29 = 3",
    "UPDATE public.patients SET disease = 'flu' WHERE id % 17 = 5",
    "UPDATE public.patients SET age = age + 1 WHERE id % 13 = 2",
)
BACK = "INSERT INTO public.patients SELECT * FROM public.gone ON CONFLICT DO NOTHING"


@pytest.fixture
def patients(database):
    table = make_patients(database)
    database.execute("CREATE TABLE public.gone AS SELECT * FROM public.patients WHERE id % 29 = 3")
    dbanon.set_policy(table, of_patients(table), settings=database.settings)
    return database


def of_patients(table):
    return patients_policy(table, k=5, l=3, algorithm="mdav")


def set_subject(database, person):
    """Tell persons by a column of its own, of this value."""
    table = TableName("public", "patients")
    database.execute("ALTER TABLE public.patients ADD COLUMN person text")
    database.execute(f"UPDATE public.patients SET person = {person}")
    rules = (*of_patients(table).columns, ColumnRule("person", Role.IDENTIFIER))
    policy = replace(of_patients(table), columns=rules, subject="person")
    dbanon.set_policy(table, policy, settings=database.settings)


def publish(database, **options):
    return dbanon.publish("patients", settings=database.settings, **options)


def found(release):
    """Return what comparing found, without the number of the release itself."""
    own, composition = release.id, release.composition
    results = {
        (0 if one.release == own else one.release, one.result.model, one.result.column): one.result
        for one in composition.results
    }
    return (
        [n for n in composition.releases if n != own],
        [n for n in composition.unknown if n != own],
        [n for n in composition.live if n != own],
        composition.altered,
        composition.persons,
        composition.small,
        results,
        composition.against,
    )


def continued(database, monkeypatch, **options):
    """Group all rows anew in the series of before, whatever that discloses, and keep nothing."""
    with monkeypatch.context() as patched:
        patched.setattr(STEPS, lambda *_, **__: None)
        patched.setattr(SERIES, lambda *_, **__: None)
        return publish(database, dry_run=True, **options)


def started(database, **options):
    options |= {"new_series": True, "recipients_changed": True}
    return publish(database, dry_run=True, **options)


def both(database, monkeypatch, **options):
    """Return what comparing finds in the series of before, and beside it."""
    return found(continued(database, monkeypatch, **options)), found(started(database, **options))


def test_a_new_series_is_compared_with_what_came_left_and_changed(patients, monkeypatch):
    publish(patients)
    for statement in CHANGES:
        patients.execute(statement)
        publish(patients)
    expected, beside = both(patients, monkeypatch)
    assert expected == beside
    releases, *_, against = beside
    assert releases == [1, 2, 3, 4]
    assert len(against) == 4
    patients.execute(BACK)
    expected, beside = both(patients, monkeypatch, k=7)
    assert expected == beside


def test_who_left_since_the_last_release_is_told_from_who_stayed(patients, monkeypatch):
    patients.execute("UPDATE public.patients SET age = 40, sex = 'F', born = NULL, weight = NULL")
    publish(patients)
    patients.execute("DELETE FROM public.patients WHERE id < 3")
    expected, beside = both(patients, monkeypatch)  # the class is published alike
    assert expected == beside
    *_, persons, small, _, (against,) = beside
    assert (200, 1, 3) == (persons, small, against.smallest)


STREAM = (
    "DELETE FROM public.patients WHERE id % {} = {}",
    "UPDATE public.patients SET disease = 'flu' WHERE id % {} = {}",
    "UPDATE public.patients SET age = age + 1 WHERE id % {} = {}",
    BACK.replace("gone", "everybody").replace(" ON", " WHERE id % {} = {} ON"),
)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(4))
def test_a_new_series_is_compared_with_random_releases(patients, monkeypatch, seed):
    chance = random.Random(seed)  # noqa: S311 - people, not secrets
    patients.execute("CREATE TABLE public.everybody AS SELECT * FROM public.patients")
    for _ in range(chance.randint(2, 6)):
        for statement in chance.choices(STREAM, k=chance.randint(0, 3)):
            modulus = chance.randint(3, 40)
            patients.execute(statement.format(modulus, chance.randrange(modulus)))
        name, k = chance.choice(["patients", "patients", "others"]), chance.choice([5, 5, 6])
        with monkeypatch.context() as patched:  # as if nobody compared, so that nothing is refused
            patched.setattr(SERIES, lambda *_, **__: None)
            if chance.random() < 0.3:
                patched.setattr(STEPS, lambda *_, **__: None)
            publish(patients, name=name, k=k)
        patients.execute(BACK)
    name = chance.choice(["patients", "others"])
    expected, beside = both(patients, monkeypatch, name=name, k=chance.choice([4, 5, 7]))
    assert expected == beside


@pytest.mark.exhaustive
def test_a_new_series_is_compared_with_other_relations(patients, monkeypatch):
    publish(patients)
    publish(patients, name="others", k=7)
    publish(patients, name="live", kind="view")
    patients.execute(CHANGES[0])
    publish(patients)
    publish(patients, name="others", k=6)
    for name in ("patients", "others"):
        expected, beside = both(patients, monkeypatch, name=name)
        assert expected == beside


@pytest.mark.exhaustive
def test_a_new_series_of_persons_with_several_rows_is_compared(patients, monkeypatch):
    set_subject(patients, "'p' || id % 300")
    publish(patients)
    patients.execute(CHANGES[0])
    expected, beside = both(patients, monkeypatch)
    assert expected == beside


@pytest.mark.exhaustive
def test_nobody_who_was_told_by_other_columns_is_compared(patients, monkeypatch):
    publish(patients)
    set_subject(patients, "'p' || id")
    expected, beside = both(patients, monkeypatch)
    assert expected == beside
    assert beside[1] == [1]  # is unknown
