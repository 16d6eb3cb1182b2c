"""What somebody learns who kept every release of a table that is refreshed class by class."""

import random
from collections import Counter, defaultdict
from contextlib import contextmanager
from dataclasses import replace

import pytest
from selection import exhaustive_after
from tables import make_patients, patients_policy, unseal

import dbanon
from dbanon.actions.publication import series
from dbanon.domain.errors import DatabaseError, Unsatisfiable
from dbanon.domain.policy import ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.release import Delta

K, L = 4, 2
ROWS = "SELECT age::text, sex::text, born::text, weight::text, disease, note FROM anon.patients"


def publish_few(database):
    """Make a table of 120 people who are published, and 60 more who are not in it yet."""
    table = make_patients(database, rows=180)
    database.execute("CREATE TABLE public.others AS SELECT * FROM public.patients WHERE id >= 120")
    database.execute("DELETE FROM public.patients WHERE id >= 120")
    policy = patients_policy(table, k=K, l=L, algorithm="mdav")
    dbanon.set_policy(table, policy, settings=database.settings)
    dbanon.publish(table, settings=database.settings)


@pytest.fixture
def patients(copied):
    return copied(publish_few)


@pytest.fixture
def ungated(monkeypatch):
    """Return how to publish what an older dbanon only warned of."""

    @contextmanager
    def publishing():
        with monkeypatch.context() as patched:
            patched.setattr(series, "_require_no_worse", lambda *_, **__: None)
            patched.setattr("dbanon.actions.publication.steps.reuse_groups", lambda *_, **__: None)
            yield

    return publishing


def refresh(database):
    (found,) = dbanon.refresh("patients", settings=database.settings)
    return found


def arrive(database, *numbers):
    database.execute(
        "INSERT INTO public.patients SELECT * FROM public.others WHERE id = ANY (%s)",
        (list(numbers),),
    )


def published(database):
    """Return what readers see, counted."""
    return Counter(database.execute(ROWS))


def classes(rows):
    """Return the diseases of each class."""
    found = defaultdict(Counter)
    for row, n in rows.items():
        found[row[:4]][row[4]] += n
    return found


def is_safe(values):
    """Tell whether a class, or what two releases differ by, hides everybody in it."""
    return not values or (values.total() >= K and len(values) >= L)


@pytest.mark.exhaustive
def test_nobody_who_stays_is_published_otherwise(patients):
    before = published(patients)
    patients.execute("UPDATE public.patients SET age = age + 1, disease = 'plague'")
    arrive(patients, *range(120, 160))
    found = refresh(patients)
    assert before <= published(patients)
    assert (True, 120, ()) == (found.changed, found.growth.kept, found.release.composition.warnings)
    assert 120 + found.growth.inserted == published(patients).total() > 120
    assert found.release.checks.passed


@pytest.mark.exhaustive
def test_new_persons_wait_until_they_are_a_pool_and_come_together(patients):
    before = published(patients)
    arrive(patients, 120, 121, 122)
    found = refresh(patients)
    assert (False, 120, 3, 3) == (
        found.changed,
        found.growth.kept,
        found.growth.waiting,
        found.growth.pending,
    )
    assert before == published(patients)
    arrive(patients, *range(123, 120 + found.growth.pool))
    found = refresh(patients)
    assert (True, 0) == (found.changed, found.growth.waiting)
    assert 120 + found.growth.inserted == published(patients).total() > 122


@pytest.mark.exhaustive
def test_newcomers_come_to_classes_without_a_sensitive_column(database):
    table = make_patients(database, rows=60)
    policy = patients_policy(table, k=K, l=None, algorithm="mdav")
    rules = [
        replace(rule, role=Role.INSENSITIVE) if rule.role is Role.SENSITIVE else rule
        for rule in policy.columns
    ]
    dbanon.set_policy(table, replace(policy, columns=tuple(rules)), settings=database.settings)
    dbanon.publish(table, settings=database.settings)
    database.execute(
        "INSERT INTO public.patients SELECT id + 60, age, sex, born, weight, disease, note || '+'"
        " FROM public.patients"
    )
    found = refresh(database)
    assert (60, 60) == (found.growth.kept, found.growth.inserted + found.growth.waiting)
    assert found.growth.inserted > K
    assert 60 + found.growth.inserted == published(database).total()


@pytest.mark.exhaustive
def test_a_class_stays_until_most_of_it_have_left_and_goes_as_a_whole(patients):
    before = published(patients)
    (members,) = patients.execute(
        "SELECT array_agg(s.id) FROM anon.patients AS a"
        "  JOIN public.patients AS s ON s.note = a.note GROUP BY a.age, a.sex, a.born, a.weight"
        " ORDER BY count(*) DESC LIMIT 1"
    )[0]
    most = max(-(-6 * len(members) // 10), len(members) - K + 1)
    patients.execute("DELETE FROM public.patients WHERE id = ANY (%s)", (members[: most - 1],))
    waiting = refresh(patients)
    assert (False, most - 1, 0) == (
        waiting.changed,
        waiting.growth.deferred,
        waiting.growth.withheld,
    )
    assert before == published(patients)
    patients.execute("DELETE FROM public.patients WHERE id = ANY (%s)", (members[:most],))
    found = refresh(patients)
    rest = len(members) - most
    assert (True, 1, 0, most, rest) == (
        found.changed,
        found.growth.withdrawn,
        found.growth.deferred,
        found.growth.left,
        found.growth.withheld,
    )
    gone = before - published(patients)
    assert (len(members), 1) == (gone.total(), len(classes(gone)))
    assert found.release.checks.passed
    again = refresh(patients)  # and nobody of it comes back
    assert (False, rest) == (again.changed, again.growth.withheld)


@pytest.fixture
def alike(database):
    """Return a table of 16 people of one class."""
    table = dbanon.TableName("public", "alike")
    database.execute(
        "CREATE TABLE public.alike (id int PRIMARY KEY, age int, disease text);"
        "INSERT INTO public.alike SELECT i, 30, (ARRAY['flu', 'cold'])[1 + i % 2]"
        "  FROM generate_series(1, 16) AS i"
    )
    rules = (
        ColumnRule("id", Role.IDENTIFIER),
        ColumnRule("age", Role.QUASI),
        ColumnRule("disease", Role.SENSITIVE),
    )
    models = (ModelSpec("k-anonymity", {"k": 4}), ModelSpec("l-diversity", {"l": 2}))
    policy = Policy(table, rules, models, algorithm="mdav")
    dbanon.set_policy(table, policy, settings=database.settings)
    dbanon.publish(table, settings=database.settings)
    return database


def test_a_release_that_would_show_nobody_is_served_on(alike):
    alike.execute("DELETE FROM public.alike WHERE id <= 14")
    with pytest.raises(Unsatisfiable, match="would show nobody"):
        dbanon.refresh("alike", settings=alike.settings)
    assert [(16,)] == alike.execute("SELECT count(*) FROM anon.alike")


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "types",
    ["uuid", "numeric(6, 2)", "timestamptz", "char(5)", "date", "bool", "float8"],
)
def test_persons_are_known_again_by_keys_of_every_type(database, types):
    values = {
        "uuid": "md5(i::text)::uuid",
        "numeric(6, 2)": "i * 1.10",
        "timestamptz": "now() + i * interval '1 second 17 microseconds'",
        "char(5)": "i::text",
        "date": "date '2020-02-27' + i",
        "bool": "i % 2 = 0",
        "float8": "i / 7.0",
    }
    database.execute(
        f"CREATE DOMAIN public.tag AS {types};"
        "CREATE TABLE public.keyed (a public.tag, b int, c text, age int, PRIMARY KEY (a, b, c));"
        f"INSERT INTO public.keyed SELECT {values[types]}, i, 'é\"'' ' || i, i % 7"
        "  FROM generate_series(1, 60) AS i"
    )
    rules = [ColumnRule(name, Role.IDENTIFIER) for name in "abc"]
    rules += [ColumnRule("age", Role.QUASI)]
    table = dbanon.TableName("public", "keyed")
    models = (ModelSpec("k-anonymity", {"k": 3}),)
    policy = Policy(table, tuple(rules), models, algorithm="mdav")
    dbanon.set_policy(table, policy, settings=database.settings)
    dbanon.publish(table, settings=database.settings)
    (found,) = dbanon.refresh(table, settings=database.settings)
    assert (False, Delta(60, pool=6)) == (found.changed, found.growth)


def test_nothing_is_learnt_from_all_releases_together(patients):
    assert play(patients, 0) > 1
    assert dbanon.check_history("anon.patients", settings=patients.settings)[0].holds


@pytest.mark.parametrize("seed", exhaustive_after(1, range(1, 26)))
def test_an_attacker_who_compares_everything_learns_nothing(patients, seed):
    assert play(patients, seed) > 1
    assert dbanon.check_history("anon.patients", settings=patients.settings)[0].holds


def play(database, seed):
    """Let people come and go at random, hold each release against all before, and count them."""
    chance = random.Random(seed)  # noqa: S311 - people, not secrets
    waiting, releases = list(range(120, 180)), [classes(published(database))]
    for _ in range(6):
        coming = [waiting.pop() for _ in range(min(chance.randint(0, 25), len(waiting)))]
        arrive(database, *coming)
        for statement in (
            "DELETE FROM public.patients WHERE id %% 40 = %s AND %s < 5",
            "UPDATE public.patients SET disease = 'cancer' WHERE id %% 9 = %s AND %s < 7",
        ):
            database.execute(statement, (chance.randint(0, 39), chance.randint(0, 9)))
        found = refresh(database)
        if not found.changed:
            continue
        assert () == found.release.composition.warnings
        now = classes(published(database))
        assert all(is_safe(values) for values in now.values())
        for before in releases:
            for class_ in before.keys() | now.keys():
                assert is_safe(before[class_] - now[class_])
                assert is_safe(now[class_] - before[class_])
                if before[class_] and now[class_]:
                    assert len(before[class_] & now[class_]) >= L
        releases.append(now)
    return len(releases)


def shared(database):
    """Refresh what cannot be extended, in classes that are unions of those published."""
    found = refresh(database)
    assert (True, None, None) == (found.changed, found.growth, found.regrouped)
    return found.release.sharing


@pytest.mark.exhaustive
def test_what_was_revealed_before_does_not_stop_a_refresh_that_adds_nothing(patients, ungated):
    patients.execute("DELETE FROM public.patients WHERE id = 17")
    with ungated():
        regrouped = dbanon.publish("patients", settings=patients.settings).composition
    arrive(patients, *range(120, 160))
    found = refresh(patients).release.composition
    failing = [
        (c.results[0].result.achieved, c.results[0].result.failing_classes)
        for c in (regrouped, found)
    ]
    assert failing[0] == failing[1]
    assert failing[0][0] == 1


@pytest.mark.exhaustive
def test_a_copy_that_was_changed_is_not_extended(patients):
    unseal(patients, 1)
    patients.execute("DELETE FROM dbanon_data.release_1 WHERE disease = 'flu'")
    arrive(patients, *range(120, 160))
    assert 40 == shared(patients).inserted
    assert 160 == published(patients).total()


def test_a_copy_that_shows_others_than_are_remembered_is_not_extended(patients):
    patients.execute(
        "UPDATE dbanon.history_member SET persons = persons[2:], classes = classes[2:],"
        " value_ids = value_ids[2:]"
    )
    arrive(patients, *range(120, 160))
    with pytest.raises(DatabaseError, match="other classes than are remembered"):
        refresh(patients)
    assert 120 == published(patients).total()


@pytest.mark.exhaustive
def test_a_copy_with_a_class_of_which_nobody_is_remembered_is_not_extended(patients):
    patients.execute("""
        UPDATE dbanon.history_member AS m
           SET (persons, classes, value_ids)
             = (SELECT array_agg(e.person), array_agg(e.class), array_agg(e.value_id)
                  FROM unnest(m.persons, m.classes, m.value_ids) AS e (person, class, value_id)
                 WHERE e.class <> m.classes[1])
    """)
    arrive(patients, *range(120, 160))
    with pytest.raises(DatabaseError, match="other classes than are remembered"):
        refresh(patients)
    assert 120 == published(patients).total()


@pytest.mark.exhaustive
def test_a_changed_policy_shares_the_classes(patients):
    stored = dbanon.load_policy("patients", settings=patients.settings)
    changed = replace(stored, models=(ModelSpec("k-anonymity", {"k": 5}),))
    dbanon.set_policy(stored.table, changed, settings=patients.settings)
    found = shared(patients)
    assert (120, 0) == (found.kept, found.withheld)


@pytest.mark.exhaustive
def test_a_new_series_groups_all_rows_anew(patients):
    patients.execute("UPDATE public.patients SET disease = 'plague ' || id % 2")
    others = {"new_series": True, "recipients_changed": True}
    (found,) = dbanon.refresh("patients", **others, settings=patients.settings)
    assert (True, None, None) == (found.changed, found.growth, found.regrouped)
    assert {"plague 0", "plague 1"} == {row[4] for row in published(patients)}


@pytest.mark.exhaustive
def test_models_of_the_whole_share_the_classes(patients):
    stored = dbanon.load_policy("patients", settings=patients.settings)
    models = (*stored.models, ModelSpec("t-closeness", {"t": 0.9}))
    dbanon.set_policy(stored.table, replace(stored, models=models), settings=patients.settings)
    dbanon.publish("patients", settings=patients.settings)
    assert 120 == shared(patients).kept


@pytest.mark.exhaustive
def test_labels_are_of_all_classes_and_share_them(patients):
    stored = dbanon.load_policy("patients", settings=patients.settings)
    dbanon.set_policy(stored.table, replace(stored, labels=True), settings=patients.settings)
    dbanon.publish("patients", settings=patients.settings)
    arrive(patients, *range(120, 160))
    found = shared(patients)
    assert (120, 40) == (found.kept, found.inserted)


@pytest.mark.exhaustive
def test_bounds_share_the_classes(patients):
    stored = dbanon.load_policy("patients", settings=patients.settings)
    rules = tuple(
        replace(rule, recoding="bounds") if rule.column == "age" else rule
        for rule in stored.columns
    )
    dbanon.set_policy(stored.table, replace(stored, columns=rules), settings=patients.settings)
    dbanon.publish("patients", settings=patients.settings)
    arrive(patients, *range(120, 160))
    found = shared(patients)
    assert (120, 40) == (found.kept, found.inserted)


@pytest.mark.exhaustive
def test_a_kept_assignment_shares_the_classes(patients):
    dbanon.publish("patients", keep_assignment=True, settings=patients.settings)
    arrive(patients, *range(120, 160))
    assert 40 == shared(patients).inserted
    assert [(160,)] == patients.execute("SELECT count(*) FROM dbanon_data.rows_3")


@pytest.mark.exhaustive
def test_what_relations_have_revealed_keeps_neither_from_growing(patients, ungated):
    with ungated():
        dbanon.publish("patients", name="others", k=K + 1, settings=patients.settings)
    arrive(patients, *range(120, 180))
    one, two = dbanon.refresh("patients", settings=patients.settings)
    assert one.release.composition.warnings
    assert ("others", "patients") == (one.relation.name, two.relation.name)
    assert (True, True) == (one.changed, two.changed)
    assert one.growth.inserted == two.growth.inserted > 0


@pytest.mark.exhaustive
def test_the_loss_counts_the_classes_that_are_served(patients):
    arrive(patients, *range(120, 180))
    patients.execute("DELETE FROM public.patients WHERE id = 17")
    loss = refresh(patients).release.loss
    sizes = [values.total() for values in classes(published(patients)).values()]
    assert (len(sizes), min(sizes)) == (loss.n_classes, loss.smallest_class)


def test_without_memory_there_is_nothing_to_extend(patients):
    patients.execute("TRUNCATE dbanon.history_key")
    assert "its membership is not stored" == refresh(patients).regrouped
