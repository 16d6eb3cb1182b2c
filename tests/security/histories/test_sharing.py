"""Attacks by whoever has several views of the same persons: none works where they share classes."""

from collections import Counter, defaultdict
from dataclasses import replace

import pytest
from selection import exhaustive_after
from tables import make_patients, patients_policy

import dbanon
from dbanon.domain.errors import Unsatisfiable
from dbanon.domain.policy import K_ANONYMITY, L_DIVERSITY, ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.release import GroupReuse

K, L = 5, 3
COLUMNS = ("id", "age", "sex", "born", "weight", "disease", "note")


@pytest.fixture
def patients(database):
    table = make_patients(database)
    policy = patients_policy(table, k=K, l=L, algorithm="mdav")
    dbanon.set_policy(table, policy, settings=database.settings)
    return database


def publish(database, **options):
    return dbanon.publish("patients", keep_assignment=True, settings=database.settings, **options)


def other_policy(database, name, *, quasi, sensitive, k=K, l=None, **changes):
    """Store a policy of the patients that shows these columns and no others."""
    table = dbanon.load_policy("patients", settings=database.settings).table
    roles = dict.fromkeys(COLUMNS, Role.IDENTIFIER) | dict.fromkeys(quasi, Role.QUASI)
    roles |= dict.fromkeys(sensitive, Role.SENSITIVE)
    models = [ModelSpec(K_ANONYMITY, {"k": k})] + [ModelSpec(L_DIVERSITY, {"l": l})] * bool(l)
    rules = tuple(ColumnRule(column, role) for column, role in roles.items())
    policy = Policy(table, rules, tuple(models), algorithm="mdav", name=name, **changes)
    dbanon.set_policy(table, policy, settings=database.settings)
    return name


def members(database, release):
    """Return the class of each person in a release: its quasi-identifiers as published."""
    names = ", ".join(f"q{i}::text" for i in range(1, len(release.loss.columns) + 1))
    found = database.execute(
        f"SELECT k1, ARRAY[{names}]"
        f" FROM dbanon_data.rows_{release.id} JOIN dbanon_data.groups_{release.id} USING (group_id)"
    )
    return {person: tuple(values) for person, values in found}


def shown(classes, values):
    """Return the values that each class shows."""
    found = defaultdict(set)
    for person, own in classes.items():
        found[own].add(values[person])
    return found


def candidates(before, now, values):
    """Return how many diseases both classes of each person show."""
    first, second = shown(before, values), shown(now, values)
    return {p: len(first[before[p]] & second[now[p]]) for p in before.keys() & now.keys()}


def cells(*found):
    """Return how many persons were in the same classes of some releases, for each combination."""
    everybody = set().union(*found)
    return Counter(tuple(one.get(person) for one in found) for person in everybody)


def values_of(database, column="disease"):
    return dict(database.execute(f"SELECT id, {column} FROM public.patients"))


def arrive(database, size):
    """Let people come who are like the first ones."""
    database.execute(
        "INSERT INTO public.patients"
        " SELECT 1000 + id, age, sex, born, weight, disease, note FROM public.patients"
        "  WHERE id < %s",
        (size,),
    )


@pytest.mark.exhaustive
def test_two_algorithms_by_one_policy_leave_as_many_values_as_one(patients):
    first, values = publish(patients), values_of(patients)
    second = publish(patients, name="others", algorithm="mondrian")
    left = candidates(members(patients, first), members(patients, second), values)
    assert (200, True) == (len(left), min(left.values()) >= L)
    assert ((), ()) == (second.composition.warnings, second.composition.failed)
    assert GroupReuse(second.loss.n_classes, 200, 0, 0, 0, 0) == second.sharing


@pytest.mark.exhaustive
def test_two_relations_that_share_a_number_identify_nobody(patients):
    patients.execute("UPDATE public.patients SET weight = 50 + id * 0.1")
    for name, quasi in {"one": ("age", "sex"), "born": ("born",)}.items():
        other_policy(patients, name, quasi=quasi, sensitive=["weight"])
    first, second = publish(patients, policy="one"), publish(patients, policy="born")
    assert () == second.composition.warnings
    found = patients.execute(
        "SELECT s.id, count(*)"
        "  FROM public.patients AS s"
        "  JOIN anon.patients_one AS a ON a.age @> s.age AND a.sex IN (s.sex, '*')"
        "  JOIN anon.patients_born AS b ON b.weight = a.weight AND b.born @> s.born"
        " GROUP BY s.id"
    )
    assert (200, True) == (len(found), min(count for _, count in found) >= K)
    both = cells(members(patients, first), members(patients, second))
    assert min(both.values()) >= K


@pytest.mark.exhaustive
def test_a_view_of_larger_classes_is_made_of_the_smaller_ones(patients):
    first = publish(patients)
    second = publish(patients, name="larger", k=4 * K)
    assert second.loss.smallest_class >= 4 * K
    before, now = members(patients, first), members(patients, second)
    assert cells(before) == Counter({(own,): n for (own, _), n in cells(before, now).items()})
    assert second.loss.n_classes < second.sharing.atoms == first.loss.n_classes


@pytest.mark.exhaustive
def test_whoever_has_a_view_of_smaller_classes_too_is_left_with_what_that_one_promises(patients):
    publish(patients)
    second = publish(patients, name="larger", k=4 * K, strict=True)
    assert "promise different k; together k =" in second.composition.note.message
    (together,) = dbanon.check_history("anon.patients", settings=patients.settings)
    assert (True, ()) == (together.holds, together.warnings)
    of_k = next(one.result for one in together.results if one.result.model == K_ANONYMITY)
    assert (K, True, 0) == (of_k.required, of_k.achieved >= K, of_k.failing_classes)
    assert together.small > 0
    arrive(patients, 30)
    dbanon.refresh("patients", settings=patients.settings)
    assert dbanon.check_history("anon.patients", settings=patients.settings)[0].holds


@pytest.mark.exhaustive
def test_a_smaller_k_afterwards_does_not_excuse_smaller_cells(patients):
    publish(patients, k=4 * K)
    with pytest.raises(dbanon.CheckFailed, match="nothing was published"):
        publish(patients, name="smaller", k=K, new_series=True, algorithm="mondrian")


@pytest.mark.exhaustive
def test_more_values_are_asked_of_classes_and_not_of_those_they_are_made_of(patients):
    first = publish(patients)
    second = publish(patients, name="varied", l=L + 1)
    assert (200, 0) == (second.sharing.kept, second.sharing.withheld)
    both = cells(members(patients, first), members(patients, second))
    assert len(both) == first.loss.n_classes > second.loss.n_classes


@pytest.mark.exhaustive
def test_an_old_release_of_the_same_relation_is_coarsened(patients):
    first = publish(patients)
    before = members(patients, first)
    second = publish(patients, k=3 * K)
    assert second.relation == first.relation
    assert len(cells(before, members(patients, second))) == first.loss.n_classes


def test_a_new_column_in_which_some_classes_are_alike_is_refused_whichever_these_are(patients):
    one = other_policy(patients, "one", quasi=["age"], sensitive=["disease"])
    two = other_policy(patients, "two", quasi=["sex"], sensitive=["disease", "note"], l=2)
    before = members(patients, publish(patients, policy=one))
    for alike in ("age < 40", "age >= 40"):
        patients.execute(
            f"UPDATE public.patients SET note = CASE WHEN {alike} THEN 'no' ELSE id::text END"
        )
        notes = shown(before, values_of(patients, "note"))
        of_alike = [p for p, own in before.items() if len(notes[own]) < 2]
        assert 0 < len(of_alike) < 200
        with pytest.raises(Unsatisfiable, match=f"{len(of_alike)} of those published") as raised:
            publish(patients, policy=two)
        assert "note" in str(raised.value)
        assert "--new-series --recipients-changed" in raised.value.hint
        found = patients.execute("SELECT to_regclass('anon.patients_two') IS NULL")
        assert [(True,)] == found


@pytest.mark.exhaustive
def test_a_new_column_is_shown_of_everybody_if_no_class_is_alike_in_it(patients):
    one = other_policy(patients, "one", quasi=["age"], sensitive=["disease"])
    two = other_policy(patients, "two", quasi=["sex"], sensitive=["disease", "note"], l=2)
    publish(patients, policy=one)
    second = publish(patients, policy=two)
    assert (200, 0) == (second.sharing.kept, second.sharing.withheld)
    assert () == second.composition.failed


@pytest.mark.exhaustive
def test_a_column_that_was_never_shown_is_shown_of_no_fewer_than_its_release_promises(patients):
    one = other_policy(patients, "one", quasi=["age"], sensitive=["disease"])
    sensitive = ["disease", "note"]
    two = other_policy(patients, "two", quasi=["sex"], sensitive=sensitive, k=2 * K)
    first = publish(patients, policy=one)
    assert first.loss.smallest_class < 2 * K
    patients.execute("UPDATE public.patients SET note = id % 4")
    # among the persons of both classes, whom their diseases tell from others, are fewer than 2 K
    with pytest.raises(Unsatisfiable, match="nobody of those who were published before") as raised:
        publish(patients, policy=two)
    assert "None" not in raised.value.hint
    three = other_policy(patients, "three", quasi=["sex"], sensitive=sensitive)
    assert 200 == publish(patients, policy=three).sharing.kept
    assert 200 == publish(patients, policy=two).sharing.kept  # there is nothing new in it any more


@pytest.mark.exhaustive
def test_values_are_those_that_were_published_before(patients):
    publish(patients)
    before = values_of(patients)
    patients.execute("UPDATE public.patients SET disease = 'plague', weight = 70 WHERE id % 3 = 0")
    drafted = other_policy(patients, "drafted", quasi=["age", "sex"], sensitive=["disease"])
    found = publish(patients, policy=drafted)
    assert (67, 200) == (found.sharing.frozen, found.sharing.kept)
    shown = patients.execute("SELECT disease FROM anon.patients_drafted")
    assert Counter(before.values()) == Counter(row[0] for row in shown)
    again = publish(patients)  # with a column that is read from the source again
    shown = patients.execute("SELECT disease, note FROM anon.patients")
    assert {f"note {person}": disease for person, disease in before.items()} == {
        note: disease for disease, note in shown
    }
    assert () == again.composition.warnings


def test_numbers_are_those_that_were_published_before(patients):
    one = other_policy(patients, "one", quasi=["age"], sensitive=["weight", "disease"])
    two = other_policy(patients, "two", quasi=["sex"], sensitive=["weight"])
    publish(patients, policy=one)
    before = patients.execute("SELECT weight FROM public.patients ORDER BY 1")
    patients.execute("UPDATE public.patients SET weight = coalesce(weight, 0) + id")
    found = publish(patients, policy=two)
    assert 199 <= found.sharing.frozen <= 200
    assert before == patients.execute("SELECT weight FROM anon.patients_two ORDER BY 1")
    assert () == found.composition.warnings


@pytest.mark.parametrize("column", exhaustive_after(1, ["weight", "born", "age", "sex"]))
def test_a_value_that_changed_is_in_no_bound_of_another_view(patients, column):
    patients.execute("UPDATE public.patients SET weight = 60 + id % 7 WHERE weight IS NULL")
    rest = {"weight": "born", "born": "weight", "age": "born", "sex": "born"}[column]
    one = other_policy(patients, "one", quasi=[rest], sensitive=[column])
    two = other_policy(patients, "two", quasi=[rest, column], sensitive=["disease"])
    before = members(patients, publish(patients, policy=one))
    whole = publish(patients, policy=two)
    assert (200, 0) == (whole.sharing.kept, whole.sharing.withheld)
    changed = {"weight": "199.9", "born": "'1901-01-01'", "age": "120", "sex": "'X'"}[column]
    patients.execute(f"UPDATE public.patients SET {column} = {changed} WHERE id = 17")
    second = publish(patients, policy=two)
    assert {p for p, own in before.items() if own != before[17]} == members(patients, second).keys()
    assert () == second.composition.failed


@pytest.mark.exhaustive
def test_those_of_whom_one_is_gone_are_withheld(patients):
    first = publish(patients)
    before = members(patients, first)
    patients.execute("DELETE FROM public.patients WHERE id = 17")
    second = publish(patients, name="others")
    gone = {person for person, own in before.items() if own == before[17]}
    assert before.keys() - gone == members(patients, second).keys()
    assert len(gone) - 1 == second.sharing.withheld
    assert () == second.composition.failed


@pytest.mark.exhaustive
def test_newcomers_are_among_themselves_and_as_many_as_was_ever_promised(patients):
    publish(patients, k=2 * K)
    arrive(patients, 33)
    second = publish(patients)
    now = members(patients, second)
    assert (200, 33, 0) == (second.sharing.kept, second.sharing.inserted, second.sharing.waiting)
    of_newcomers = Counter(own for person, own in now.items() if person >= 1000)
    assert min(of_newcomers.values()) >= 2 * K
    assert not of_newcomers.keys() & {own for person, own in now.items() if person < 1000}
    assert () == second.composition.warnings


@pytest.mark.exhaustive
def test_newcomers_have_the_values_that_were_ever_promised(patients):
    dbanon.publish("patients", settings=patients.settings)
    everything = {"quasi": ("age", "sex", "born", "weight"), "sensitive": ("disease",)}
    larger = other_policy(patients, "larger", **everything, k=2 * K)
    dbanon.publish("patients", policy=larger, name="larger", settings=patients.settings)
    patients.execute(
        "INSERT INTO public.patients"
        " SELECT 1000 + i, 30 + i, 'F', '1990-01-01', 70, 'flu', ''"
        "   FROM generate_series(1, 30) AS i"
    )
    for _ in range(2):
        done = dbanon.refresh("patients", settings=patients.settings)
        assert [None, None] == [one.error for one in done]
        assert [(0, 30), (0, 30)] == [(one.growth.inserted, one.growth.waiting) for one in done]


@pytest.mark.exhaustive
def test_newcomers_whom_one_view_shows_are_shown_by_the_others_in_the_same_sets(patients):
    dbanon.publish("patients", settings=patients.settings)
    everything = {"quasi": ("age", "sex", "born", "weight"), "sensitive": ("disease",)}
    larger = other_policy(patients, "larger", **everything, k=2 * K)
    dbanon.publish("patients", policy=larger, name="larger", settings=patients.settings)
    arrive(patients, 60)
    done = dbanon.refresh("patients", settings=patients.settings)
    added = [one.growth.inserted for one in done]
    assert added[0] == added[1] >= 2 * K
    counts = [patients.execute(f"SELECT count(*) FROM {one.relation}") for one in done]
    assert [[(200 + added[0],)]] * 2 == counts
    *_, last = sorted(done, key=lambda one: one.release.id)
    of_k, *of_values = (cell.result for cell in last.release.composition.results)
    assert of_k.achieved >= K
    assert min(result.achieved for result in of_values) >= L
    again = dbanon.refresh("patients", settings=patients.settings)
    assert [False, False] == [one.changed for one in again]


@pytest.mark.exhaustive
def test_too_few_newcomers_wait(patients):
    publish(patients)
    arrive(patients, 3)
    second = publish(patients)
    assert (0, 3) == (second.sharing.inserted, second.sharing.waiting)


@pytest.mark.exhaustive
def test_what_no_union_meets_is_refused_with_the_way_out(patients):
    publish(patients)
    with pytest.raises(Unsatisfiable, match="unions of those published before") as refused:
        publish(patients, name="others", l=6)
    assert "--new-series --recipients-changed" in refused.value.hint


@pytest.mark.exhaustive
def test_a_new_series_groups_anew(patients):
    publish(patients)
    found = publish(patients, name="others", new_series=True, recipients_changed=True)
    assert found.sharing is None


@pytest.mark.exhaustive
def test_a_changed_policy_is_refreshed_by_sharing(patients):
    first = publish(patients)
    stored = dbanon.load_policy("patients", settings=patients.settings)
    models = (ModelSpec(K_ANONYMITY, {"k": 3 * K}),)
    dbanon.set_policy(stored.table, replace(stored, models=models), settings=patients.settings)
    (found,) = dbanon.refresh("patients", settings=patients.settings)
    assert (200, 3 * K) == (found.release.sharing.kept, found.release.policy.k)
    assert found.release.sharing.atoms == first.loss.n_classes
    assert found.release.loss.smallest_class >= 3 * K


@pytest.mark.exhaustive
def test_models_of_the_whole_are_asked_of_the_classes(patients):
    publish(patients)
    found = publish(patients, name="close", models=[ModelSpec("t-closeness", {"t": 0.4})])
    assert found.sharing is not None
    assert any(one.model == "t-closeness" for one in found.checks.results)


@pytest.mark.exhaustive
def test_all_rows_of_a_person_stay_together(database):
    table = make_patients(database)
    database.execute("ALTER TABLE public.patients ADD COLUMN person text")
    database.execute("UPDATE public.patients SET person = 'p' || id / 2")
    database.execute("ALTER TABLE public.patients ALTER COLUMN person SET NOT NULL")
    policy = patients_policy(table, k=K, l=None, algorithm="mdav", subject="person")
    rules = (*policy.columns, ColumnRule("person", Role.IDENTIFIER))
    dbanon.set_policy(table, replace(policy, columns=rules), settings=database.settings)
    first = publish(database)
    # 3 has another value, 8 is gone, and 1000 is one row more of the person of 20 and 21.
    database.execute("UPDATE public.patients SET disease = 'plague' WHERE id = 3")
    database.execute("DELETE FROM public.patients WHERE id = 8")
    database.execute(
        "INSERT INTO public.patients SELECT 1000, age, sex, born, weight, disease, note, person"
        " FROM public.patients WHERE id = 20"
    )
    second = publish(database, name="others")
    before, now = members(database, first), members(database, second)
    broken = {before[3], before[8], before[20]}
    assert now.keys() == {person for person, own in before.items() if own not in broken}
    owners = [{p // 2 for p, own in now.items() if own == one} for one in set(now.values())]
    assert (100 - len({p // 2 for p in before if before[p] in broken}), True) == (
        sum(map(len, owners)),
        min(map(len, owners)) >= K,
    )
    assert () == second.composition.failed
