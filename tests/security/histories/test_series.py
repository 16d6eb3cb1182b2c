"""A release that would make comparing releases worse is refused, unless others will read it."""

import pytest
from selection import exhaustive_after
from tables import make_patients, patients_policy

import dbanon
from dbanon.domain.errors import ConfigError, NotPermitted
from dbanon.domain.release import CheckFailed

OTHERS = {"new_series": True, "recipients_changed": True}


@pytest.fixture(autouse=True)
def unshared(monkeypatch):
    """Let every release group anew, as those do that cannot share the classes of others."""
    monkeypatch.setattr("dbanon.actions.publication.steps.reuse_groups", lambda *_, **__: None)


def publish_once(database):
    """Make patients who were published once, and of whom two groupings differ."""
    table = make_patients(database)
    policy = patients_policy(table, k=5, l=3, algorithm="mdav")
    dbanon.set_policy(table, policy, settings=database.settings)
    publish(database)


@pytest.fixture
def patients(copied):
    return copied(publish_once)


def publish(database, **options):
    return dbanon.publish("patients", settings=database.settings, **options)


def shown(database, relation="anon.patients"):
    return database.execute(f"SELECT * FROM {relation} ORDER BY 1, 2, 3, 4, 5, 6")


def released(database):
    chapters = dbanon.history("patients", settings=database.settings).entries
    return [chapter.release for chapter in chapters]


def reader(database, name, *relations):
    """Make a role that reads relations."""
    role = database.role(name)
    database.execute(f"GRANT USAGE ON SCHEMA anon TO {role}")
    for relation in relations:
        database.execute(f"GRANT SELECT ON {relation} TO {role}")
    return role


@pytest.mark.parametrize(
    "options", exhaustive_after(1, [{}, {"name": "others"}, {"new_series": True}, {"k": 9}])
)
def test_what_makes_comparing_worse_is_refused(patients, options):
    before = shown(patients)
    with pytest.raises(CheckFailed, match="compared with release 1") as refused:
        publish(patients, algorithm="mondrian", **options)
    assert (3, False) == (refused.value.exit_code, refused.value.report.passed)
    assert "--new-series --recipients-changed" in refused.value.hint
    assert before == shown(patients)
    assert [1] == released(patients)


@pytest.mark.exhaustive
def test_what_makes_it_no_worse_is_published(patients):
    before = shown(patients)
    assert () == publish(patients).composition.warnings
    assert before == shown(patients)
    assert [2, 1] == released(patients)


@pytest.mark.exhaustive
def test_others_read_a_series_of_their_own(patients):
    second = publish(patients, name="others", algorithm="mondrian", **OTHERS)
    assert second.composition.warnings != ()  # who has both after all can compare
    assert dbanon.check_history("anon.others", settings=patients.settings)[0].holds
    # Each goes on by itself.
    third = publish(patients, name="others", algorithm="mondrian")
    assert (second.id, third.id) == third.composition.releases
    fourth = publish(patients)
    assert (1, fourth.id) == fourth.composition.releases
    with pytest.raises(CheckFailed, match=f"compared with release {third.id}"):
        publish(patients, name="others")


@pytest.mark.exhaustive
def test_a_series_starts_anew_when_nothing_is_served(patients):
    dbanon.drop_release(1, settings=patients.settings)
    with pytest.raises(CheckFailed):
        publish(patients, algorithm="mondrian")
    second = publish(patients, algorithm="mondrian", new_series=True)
    assert second.composition.warnings != ()
    assert (second.id,) == publish(patients, algorithm="mondrian").composition.releases[:1]


@pytest.mark.exhaustive
def test_whoever_reads_on_is_no_other_recipient(patients):
    role = reader(patients, "analyst", "anon.patients")
    before = shown(patients)
    with pytest.raises(NotPermitted, match=f"{role} can read anon.patients and another series"):
        publish(patients, algorithm="mondrian", **OTHERS)
    with pytest.raises(NotPermitted, match=f"{role} can read anon.others"):
        publish(patients, name="others", grants=[role], algorithm="mondrian", **OTHERS)
    with pytest.raises(NotPermitted, match="the recipients are not others"):
        dbanon.refresh("patients", settings=patients.settings, **OTHERS)
    assert before == shown(patients)
    assert [1] == released(patients)
    new = reader(patients, "guest")
    publish(patients, name="others", grants=[new], algorithm="mondrian", **OTHERS)


@pytest.mark.exhaustive
def test_a_reader_through_a_role_or_public_is_no_other_recipient(patients):
    group = reader(patients, "analyst", "anon.patients")
    member = patients.role("member")
    with patients.admin() as admin:
        admin.execute(f"GRANT {group} TO {member}")
    with pytest.raises(NotPermitted, match=f"{member} can read anon.others"):
        publish(patients, name="others", grants=[member], algorithm="mondrian", **OTHERS)
    with pytest.raises(NotPermitted, match="the recipients are not others"):
        publish(patients, name="others", grants=["public"], algorithm="mondrian", **OTHERS)


@pytest.mark.exhaustive
def test_nobody_is_granted_two_series(patients):
    role = reader(patients, "analyst", "anon.patients")
    publish(patients, name="others", algorithm="mondrian", **OTHERS)
    with pytest.raises(NotPermitted, match=f"{role} can read anon.others and another series"):
        dbanon.grant("anon.others", [role], settings=patients.settings)
    dbanon.revoke("anon.patients", [role], settings=patients.settings)
    dbanon.grant("anon.others", [role], settings=patients.settings)
    with pytest.raises(NotPermitted, match=f"{role} can read anon.patients and another series"):
        publish(patients, grants=[role])


@pytest.mark.exhaustive
def test_a_grant_of_two_series_by_hand_is_found(patients):
    publish(patients, name="others", algorithm="mondrian", **OTHERS)

    def found():
        return {
            (one.subject, one.message.split(" can read ")[0])
            for one in dbanon.doctor(settings=patients.settings)
            if "another series" in one.message
        }

    role = reader(patients, "analyst", "anon.patients")
    assert set() == found()
    patients.execute(f"GRANT SELECT ON anon.others TO {role}")
    assert {("anon.patients", role), ("anon.others", role)} == found()


@pytest.mark.parametrize("kind", exhaustive_after(1, ["VIEW", "MATERIALIZED VIEW"]))
def test_who_reads_a_view_of_a_release_reads_its_series(patients, kind):
    patients.execute(
        f"CREATE {kind} public.mine AS SELECT * FROM anon.patients;"
        "CREATE VIEW public.counted AS SELECT age, count(*) FROM public.mine GROUP BY age"
    )
    role = reader(patients, "analyst", "public.counted")
    with pytest.raises(NotPermitted, match=f"{role} can read anon.others and another series"):
        publish(patients, name="others", grants=[role], algorithm="mondrian", **OTHERS)
    publish(patients, name="others", algorithm="mondrian", **OTHERS)
    patients.execute(
        "CREATE VIEW public.theirs AS SELECT * FROM anon.others;"
        f"GRANT SELECT ON public.theirs TO {role}"
    )
    found = [one for one in dbanon.doctor(settings=patients.settings) if one.level == "failure"]
    assert {"anon.patients", "anon.others"} == {one.subject for one in found}
    assert all(role in one.message for one in found)


@pytest.mark.exhaustive
@pytest.mark.pg(">= 15")
def test_a_view_that_asks_for_the_rights_of_its_reader_makes_nobody_a_reader(patients):
    patients.execute(
        "CREATE VIEW public.mine WITH (security_invoker) AS SELECT * FROM anon.patients"
    )
    role = reader(patients, "analyst", "public.mine")
    release = publish(patients, name="others", grants=[role], algorithm="mondrian", **OTHERS)
    assert "anon.others" == str(release.relation)


def test_a_series_and_a_live_view_that_is_older_have_no_reader_in_common(patients):
    publish(patients, name="live", kind="view")
    publish(patients, name="others", algorithm="mondrian", **OTHERS)
    one, other = reader(patients, "one", "anon.live"), reader(patients, "other", "anon.others")
    with pytest.raises(NotPermitted, match=f"{one} can read anon.others and another series"):
        dbanon.grant("anon.others", [one], settings=patients.settings)
    with pytest.raises(NotPermitted, match=f"{other} can read anon.live and another series"):
        dbanon.grant("anon.live", [other], settings=patients.settings)
    dbanon.grant("anon.live", [patients.role("third")], settings=patients.settings)


def test_other_recipients_are_said_of_a_new_series_alone(patients):
    with pytest.raises(ConfigError, match="is for a new series"):
        publish(patients, recipients_changed=True)
    with pytest.raises(ConfigError, match="is for a new series"):
        dbanon.refresh("patients", recipients_changed=True, settings=patients.settings)
