"""What is published or withdrawn between the moment a refresh begins and its turn on the table."""

import pytest
from selection import exhaustive_after
from tables import make_patients, patients_policy

import dbanon
from dbanon.db.metadata import ledger


@pytest.fixture
def patients(database):
    table = make_patients(database)
    policy = patients_policy(table, k=3, l=2)
    dbanon.set_policy(table, policy, settings=database.settings)
    return database


@pytest.fixture
def meanwhile(monkeypatch):
    """Let something happen after a refresh has looked up what is served."""

    def let(act):
        found = ledger.releases

        def late(*arguments, **options):
            monkeypatch.undo()
            served = found(*arguments, **options)
            act()
            return served

        monkeypatch.setattr(ledger, "releases", late)

    return let


def test_what_was_withdrawn_meanwhile_is_not_published_again(patients, meanwhile):
    first = dbanon.publish("patients", settings=patients.settings)
    meanwhile(lambda: dbanon.drop_release(first.id, settings=patients.settings))
    with pytest.raises(dbanon.ConfigError, match="was withdrawn meanwhile"):
        dbanon.refresh("patients", new_series=True, settings=patients.settings)
    assert [(None,)] == patients.execute("SELECT to_regclass('anon.patients')")


@pytest.mark.parametrize(
    ("kind", "if_changed"),
    exhaustive_after(1, [("table", False), ("view", False), ("table", True)]),
)
def test_what_was_published_meanwhile_is_refreshed_as_it_was_asked_for(
    patients, meanwhile, kind, if_changed
):
    first = dbanon.publish("patients", settings=patients.settings)
    meanwhile(lambda: dbanon.publish("patients", k=20, kind=kind, settings=patients.settings))
    options = {"if_changed": if_changed, "new_series": True, "settings": patients.settings}
    (done,) = dbanon.refresh("patients", **options)
    (now,) = (r for r in dbanon.list_releases(settings=patients.settings) if r.served)
    assert done.release.id == now.id > first.id
    assert (20, kind) == (now.policy.k, now.kind.value)
    assert done.changed is not if_changed
    pins = "SELECT count(*) FROM pg_class WHERE relname LIKE 'pin%'"  # views of the source
    assert [(0,)] == patients.execute(pins)
