"""Attackers with several releases: succeed if these are grouped from scratch, and are refused.

Those are published here for other readers, as otherwise nothing is published to attack. The same
attacks fail on releases that share classes, see ``test_sharing.py``.
"""

from collections import Counter, defaultdict

import pytest
from tables import make_patients, patients_policy

import dbanon
from dbanon.db.histories import memory
from dbanon.domain.policy import ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.release import CheckFailed

K, L = 5, 3


@pytest.fixture
def patients(database):
    table = make_patients(database)
    policy = patients_policy(table, k=K, l=L, algorithm="mdav")
    dbanon.set_policy(table, policy, settings=database.settings)
    return database


def publish(database, **options):
    return dbanon.publish("patients", keep_assignment=True, settings=database.settings, **options)


def regroup(database, **options):
    """Publish for others what is refused to those who had the release before."""
    with pytest.raises(CheckFailed, match="fail their models"):
        publish(database, new_series=True, **options)
    return publish(database, new_series=True, recipients_changed=True, **options)


def diseases(database, relation="anon.patients"):
    return Counter(row[0] for row in database.execute(f"SELECT disease FROM {relation}"))


def members(database, release):
    """Return the class of each person in a release: its quasi-identifiers as published."""
    found = database.execute(
        f"SELECT k1, ARRAY[q1::text, q2::text, q3::text, q4::text]"
        f" FROM dbanon_data.rows_{release.id} JOIN dbanon_data.groups_{release.id} USING (group_id)"
    )
    return {person: tuple(values) for person, values in found}


def shown(classes, values):
    """Return the values that each class shows."""
    found = defaultdict(set)
    for person, own in classes.items():
        found[own].add(values[person])
    return found


def values_of(database):
    return dict(database.execute("SELECT id, disease FROM public.patients"))


def candidates(before, now, *, values):
    """Return how many diseases both classes of each person show; (classes, diseases) of each."""
    first, second = shown(before, values[0]), shown(now, values[1])
    both = before.keys() & now.keys()
    return {p: len(first[before[p]] & second[now[p]]) for p in both}


def exposed(release):
    """Return (release, persons below l, persons of one value) as they are named."""
    return [
        (against.release, found.below, found.to_one)
        for against in release.composition.against
        for found in against.exposures
    ]


def k_of_cells(release):
    return release.composition.results[0].result.achieved


@pytest.mark.exhaustive
def test_what_a_refresh_after_one_deletion_lacks_is_the_value_of_who_left(patients):
    first = publish(patients)
    assert first.composition.warnings == ()
    number = first.id
    for leaver in (17, 44):
        secret, before = values_of(patients)[leaver], diseases(patients)
        patients.execute("DELETE FROM public.patients WHERE id = %s", (leaver,))
        second = regroup(patients)
        assert Counter([secret]) == before - diseases(patients)  # the attack
        assert 1 == k_of_cells(second)
        assert f"releases {number}, {second.id}" in str(second.composition.warnings[-1])
        number = second.id
    assert [(1, 198)] == [(a.smallest, a.in_both) for a in second.composition.against]


@pytest.mark.exhaustive
def test_birthdays_of_a_few_leave_the_others_with_fewer_values(patients):
    first = publish(patients, algorithm="k-member")
    before, values = members(patients, first), values_of(patients)
    patients.execute("UPDATE public.patients SET age = age + 1 WHERE id % 10 = 3")
    second = regroup(patients, algorithm="k-member")
    left = candidates(before, members(patients, second), values=(values, values))
    few = sum(n < L for n in left.values())
    assert few > 0  # the attack
    assert [(first.id, few, sum(n == 1 for n in left.values()))] == exposed(second)
    pairs = Counter((before[p], own) for p, own in members(patients, second).items())
    below = sum(n for n in pairs.values() if n < K)
    assert below == second.composition.against[0].below > 0
    assert min(pairs.values()) == k_of_cells(second)


@pytest.mark.exhaustive
def test_two_algorithms_by_one_policy_leave_fewer_values(patients):
    first, values = publish(patients), values_of(patients)
    second = regroup(patients, name="others", algorithm="mondrian")
    left = candidates(members(patients, first), members(patients, second), values=(values, values))
    few = sum(n < L for n in left.values())
    assert few > 20  # the attack
    assert [(first.id, few, sum(n == 1 for n in left.values()))] == exposed(second)
    assert 1 == k_of_cells(second)


@pytest.mark.exhaustive
def test_two_relations_that_share_a_number_are_joined_on_it(database):
    table = make_patients(database)
    database.execute("UPDATE public.patients SET weight = 50 + id * 0.1")
    columns = ("id", "age", "sex", "born", "weight", "disease", "note")
    for name, quasi in {"default": ("age", "sex"), "born": ("born",)}.items():
        roles = dict.fromkeys(columns, Role.IDENTIFIER) | dict.fromkeys(quasi, Role.QUASI)
        rules = tuple(ColumnRule(c, r) for c, r in (roles | {"weight": Role.SENSITIVE}).items())
        models = (ModelSpec("k-anonymity", {"k": K}),)
        policy = Policy(table, rules, models, algorithm="mdav", name=name)
        dbanon.set_policy(table, policy, settings=database.settings)
    first = publish(database)
    second = regroup(database, policy="born")
    assert ((), True) == (first.composition.warnings, second.composition.warnings != ())
    found = database.execute(
        "SELECT s.id, s.weight, count(*), min(a.weight)"
        "  FROM public.patients AS s"
        "  JOIN anon.patients AS a ON a.age @> s.age AND a.sex IN (s.sex, '*')"
        "  JOIN anon.patients_born AS b ON b.weight = a.weight AND b.born @> s.born"
        " GROUP BY s.id HAVING count(*) = 1"
    )
    assert len(found) > 10  # the attack
    assert all(own == joined for _, own, _, joined in found)
    assert 1 == k_of_cells(second)


@pytest.mark.exhaustive
def test_strict_refuses_what_comparing_reveals_and_serves_on(patients):
    first = publish(patients)
    before = patients.execute("SELECT * FROM anon.patients ORDER BY 1, 2, 3, 4, 5, 6")
    patients.execute("DELETE FROM public.patients WHERE id = 17")
    with pytest.raises(CheckFailed, match="compared with release 1") as refused:
        publish(patients, strict=True, new_series=True)
    assert (3, False) == (refused.value.exit_code, refused.value.report.passed)
    assert before == patients.execute("SELECT * FROM anon.patients ORDER BY 1, 2, 3, 4, 5, 6")
    history = dbanon.history("patients", settings=patients.settings)
    assert [(first.id, 200)] == [(c.release, c.changed) for c in history.entries]
    assert dbanon.check_history("anon.patients", settings=patients.settings)[0].holds


def test_the_check_repeats_what_was_found(patients, monkeypatch):
    publish(patients)
    patients.execute("DELETE FROM public.patients WHERE id = 17")
    # As versions did that grouped from scratch and only warned of it.
    monkeypatch.setattr("dbanon.actions.publication.steps.reuse_groups", lambda *_, **__: None)
    monkeypatch.setattr(
        "dbanon.actions.publication.series._require_no_worse", lambda *_, **__: None
    )
    second = publish(patients)
    for relation in ("anon.patients", None):
        with pytest.raises(CheckFailed) as failed:
            dbanon.check_history(relation, settings=patients.settings)
        assert "\n  ".join(one.message for one in second.composition.warnings) == str(failed.value)


def test_a_release_that_was_dropped_is_not_forgotten(patients):
    first = publish(patients)
    dbanon.drop_release(first.id, settings=patients.settings)
    patients.execute("DELETE FROM public.patients WHERE id = 17")
    second = publish(patients)
    assert (first.id, second.id) == second.composition.releases
    assert second.sharing.withheld > 0


@pytest.mark.exhaustive
def test_live_views_are_said_to_be_compared_with_nothing(patients):
    publish(patients)
    live = publish(patients, name="live", kind="view").composition
    assert ((1,), (2,)) == (live.releases, live.unknown)
    (warning,) = live.warnings
    assert warning.message == "release 2: not compared, live view"
    with pytest.raises(CheckFailed, match="release 2: not compared, live view"):
        publish(patients, name="others", strict=True)
    (later,) = publish(patients, name="others").composition.warnings
    assert later == warning


@pytest.mark.exhaustive
def test_a_history_is_checked_beside_live_views_which_are_named(patients, monkeypatch):
    publish(patients)
    publish(patients, name="live", kind="view")
    publish(patients, name="others")
    (found,) = dbanon.check_history("anon.patients", settings=patients.settings)
    assert ((1, 3), (2,), True) == (found.releases, found.unknown, found.holds)
    (warning,) = found.warnings
    assert warning.message == "release 2: not compared, live view"
    patients.execute("DELETE FROM public.patients WHERE id = 17")
    monkeypatch.setattr("dbanon.actions.publication.steps.reuse_groups", lambda *_, **__: None)
    monkeypatch.setattr(
        "dbanon.actions.publication.series._require_no_worse", lambda *_, **__: None
    )
    publish(patients)
    with pytest.raises(CheckFailed, match="fail their models"):
        dbanon.check_history("anon.patients", settings=patients.settings)


@pytest.mark.exhaustive
@pytest.mark.parametrize("earlier", [0, 1])
def test_a_new_series_is_remembered_once(patients, monkeypatch, earlier):
    for _ in range(earlier):
        publish(patients)
    times, original = [], memory.remember
    monkeypatch.setattr(memory, "remember", lambda *a, **kw: times.append(a) or original(*a, **kw))
    publish(patients, new_series=True, recipients_changed=True)
    assert len(times) == 1


@pytest.mark.exhaustive
def test_nobody_but_who_publishes_can_read_what_is_remembered(patients):
    publish(patients)
    reader = patients.role("curious_reader")
    dbanon.grant("anon.patients", [reader], settings=patients.settings)
    for table in ("history", "history_key", "history_member", "history_value"):
        assert [(False,)] == patients.execute(
            "SELECT has_table_privilege(%s, %s, 'SELECT')", (reader, f"dbanon.{table}")
        )
        patients.execute(f"GRANT SELECT ON dbanon.{table} TO {reader}")
        findings = dbanon.doctor(settings=patients.settings)
        assert any(f"can read dbanon.{table}" in f.message for f in findings)
        patients.execute(f"REVOKE SELECT ON dbanon.{table} FROM {reader}")
