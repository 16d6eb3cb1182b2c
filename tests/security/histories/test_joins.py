"""Which series a relation of a new name joins has to be said where a table has several."""

from dataclasses import replace

import pytest
from selection import exhaustive_after
from tables import make_patients, patients_policy

import dbanon
from dbanon.domain.errors import ConfigError, NotPermitted
from dbanon.domain.table import TableName

OTHERS = {"new_series": True, "recipients_changed": True}
MONDRIAN = {"algorithm": "mondrian"}


def publish_twice(database):
    """Make patients of two series: the first was withdrawn, and others read what is served."""
    table = make_patients(database)
    policy = patients_policy(table, k=5, l=3, algorithm="mdav")
    dbanon.set_policy(table, policy, settings=database.settings)
    publish(database)
    dbanon.drop_release(1, settings=database.settings)
    publish(database, name="others", **MONDRIAN, **OTHERS)


@pytest.fixture
def patients(copied):
    return copied(publish_twice)


def publish(database, **options):
    return dbanon.publish("patients", settings=database.settings, **options)


def released(database):
    chapters = dbanon.history("patients", settings=database.settings).entries
    return [chapter.release for chapter in chapters]


@pytest.mark.parametrize(
    "options", exhaustive_after(2, [{}, {"new_series": True}, {**MONDRIAN, "k": 9}])
)
def test_a_relation_of_a_new_name_joins_no_series_by_itself(patients, options):
    with pytest.raises(ConfigError, match="are 2 series") as refused:
        publish(patients, name="again", **options)
    assert "anon.patients (release 1); anon.others (release 2)" in str(refused.value)
    assert "--series anon.patients or --series anon.others" in refused.value.hint
    assert "--new-series --recipients-changed" in refused.value.hint
    assert [2, 1] == released(patients)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("series", "former"), [("anon.patients", 1), ("anon.others", 2)])
def test_a_relation_joins_the_series_that_is_named(patients, series, former):
    found = publish(patients, name="again", series=series)
    assert (former, found.id) == found.composition.releases
    assert () == found.composition.warnings
    assert found.sharing is not None
    # From then on it is known.
    again = publish(patients, name="again")
    assert (former, found.id, again.id) == again.composition.releases
    assert publish(patients, name="again", series=series).composition.releases[0] == former


def test_what_is_grouped_anew_joins_the_series_that_is_named(patients):
    found = publish(patients, name="again", series="anon.others", new_series=True, **MONDRIAN)
    assert (2, found.id) == found.composition.releases


@pytest.mark.exhaustive
def test_readers_of_no_series_are_asked_of_none(patients):
    found = publish(patients, name="third", **OTHERS)
    assert (found.id,) == publish(patients, name="third").composition.releases[:1]


def test_a_relation_of_another_series_does_not_move(patients):
    with pytest.raises(ConfigError, match=r"in another series than anon\.patients"):
        publish(patients, name="others", series="anon.patients")
    with pytest.raises(ConfigError, match=r"not remembered as a relation of public\.patients"):
        publish(patients, name="again", series="anon.nowhere")
    with pytest.raises(ConfigError, match=r"cannot join that of anon\.patients"):
        publish(patients, name="again", series="anon.patients", **OTHERS)
    with pytest.raises(ConfigError, match="a live view is of no series"):
        publish(patients, name="live", kind="view", series="anon.patients")
    assert [2, 1] == released(patients)


@pytest.mark.exhaustive
def test_a_table_of_one_series_is_asked_nothing(database):
    table = make_patients(database)
    dbanon.set_policy(table, patients_policy(table, k=5, l=3), settings=database.settings)
    first = publish(database)
    assert (first.id, first.id + 1) == publish(database, name="again").composition.releases


@pytest.mark.parametrize("if_changed", exhaustive_after(1, [False, True]))
def test_a_refresh_that_changes_nothing_refuses_a_reader_of_two_series(patients, if_changed):
    publish(patients, name="again", series="anon.patients")
    role = patients.role("analyst")
    patients.execute(f"GRANT USAGE ON SCHEMA anon TO {role}")
    patients.execute(f"GRANT SELECT ON anon.again, anon.others TO {role}")
    options = {"if_changed": if_changed, "settings": patients.settings}
    with pytest.raises(NotPermitted, match=f"{role} can read .* and another series"):
        dbanon.refresh("patients", **options)
    patients.execute(f"REVOKE SELECT ON anon.others FROM {role}")
    found = dbanon.refresh("patients", **options)
    assert [False, False] == [one.changed for one in found]


@pytest.mark.exhaustive
def test_a_table_that_was_renamed_is_no_other_table(database):
    table = make_patients(database)
    policy = patients_policy(table, k=5, l=3)
    dbanon.set_policy(table, policy, settings=database.settings)
    publish(database)
    database.execute("ALTER TABLE patients RENAME TO people")
    people = replace(policy, table=TableName("public", "people"))
    dbanon.set_policy(people.table, people, settings=database.settings)
    for options in ({}, {"new_series": True}, {"kind": "view"}, OTHERS):
        with pytest.raises(
            ConfigError, match=r"before as public\.patients, which is gone"
        ) as found:
            dbanon.publish("people", settings=database.settings, **options)
        assert "dbanon release drop 1, then --new-series" in found.value.hint
    dbanon.drop_release(1, settings=database.settings)
    with pytest.raises(ConfigError, match="which is gone"):
        dbanon.publish("people", settings=database.settings)
    first = dbanon.publish("people", new_series=True, settings=database.settings)
    # From then on it has a history by this name.
    second = dbanon.publish("people", settings=database.settings)
    assert (first.id, second.id) == second.composition.releases


@pytest.mark.exhaustive
def test_a_table_whose_predecessor_is_gone_is_another_one(database):
    table = make_patients(database)
    dbanon.set_policy(table, patients_policy(table, k=5, l=3), settings=database.settings)
    publish(database)
    database.execute("CREATE TABLE people (LIKE patients INCLUDING ALL)")
    database.execute("INSERT INTO people SELECT * FROM patients")
    database.execute("DROP TABLE patients")
    people = patients_policy(TableName("public", "people"), k=5, l=3)
    dbanon.set_policy(people.table, people, settings=database.settings)
    # A publication that was rolled back is none.
    dbanon.publish("people", dry_run=True, settings=database.settings)
    assert dbanon.publish("people", settings=database.settings).composition.warnings == ()
