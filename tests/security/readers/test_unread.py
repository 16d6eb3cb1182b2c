"""Releases bind nothing if no role but the owner was ever granted them, otherwise or if unknown."""

import pytest
from selection import exhaustive_after
from tables import define_patients

import dbanon
from dbanon.actions.publication.series import UNREAD
from dbanon.domain.table import TableName

pytestmark = pytest.mark.usefixtures("by_grants")

VIEW = "anon.patients"
GIVEN = {
    "a grant": ["GRANT SELECT ON anon.patients TO {reader}"],
    "a grant that was revoked": [
        "GRANT SELECT ON anon.patients TO {reader}",
        "REVOKE SELECT ON anon.patients FROM {reader}",
    ],
    "a grant to everybody": ["GRANT SELECT ON anon.patients TO PUBLIC"],
    "a grant to everybody that was revoked": [
        "GRANT SELECT ON anon.patients TO PUBLIC",
        "REVOKE SELECT ON anon.patients FROM PUBLIC",
    ],
    "a column": ["GRANT SELECT (disease) ON anon.patients TO {reader}"],
    "a column that was revoked": [
        "GRANT SELECT (disease) ON anon.patients TO {reader}",
        "REVOKE SELECT (disease) ON anon.patients FROM {reader}",
    ],
    "all columns, revoked": [
        "GRANT SELECT (age, sex, born, weight, disease, note) ON anon.patients TO {reader}",
        "REVOKE SELECT (age, sex, born, weight, disease, note) ON anon.patients FROM {reader}",
    ],
    "a dependent view with a grant": [
        "CREATE VIEW public.ages AS SELECT age FROM anon.patients",
        "GRANT SELECT ON public.ages TO {reader}",
    ],
    "a dependent view": ["CREATE VIEW public.ages AS SELECT age FROM anon.patients"],
    "a materialized view": ["CREATE MATERIALIZED VIEW public.ages AS TABLE anon.patients"],
    "a function of its rows": [
        "CREATE FUNCTION f() RETURNS SETOF anon.patients LANGUAGE sql AS 'TABLE anon.patients'"
    ],
    "a function with a body that depends on it": [
        "CREATE FUNCTION public.n() RETURNS text RETURN (SELECT max(note) FROM anon.patients)",
    ],
    "nothing known of it": ["UPDATE dbanon.release SET relation_mark = NULL"],
    "a mark of another database": ["UPDATE dbanon.release SET relation_mark = '1/2/3'"],
    "a release missing in the ledger": ["DELETE FROM dbanon.release WHERE release_id = 1"],
}


@pytest.fixture
def published(database):
    define_patients(database)
    dbanon.publish("patients", settings=database.settings)
    return database


def change(database):
    database.execute("DELETE FROM public.patients WHERE id % 50 = 0")
    database.execute("UPDATE public.patients SET disease = 'flu' WHERE id % 50 = 1")


def give(database, statements):
    reader = database.role("reader")
    for statement in statements:
        database.execute(statement.format(reader=reader))


def test_what_nobody_was_granted_is_grouped_from_scratch(published):
    change(published)
    (found,) = dbanon.refresh("patients", settings=published.settings)
    assert (UNREAD, None) == (found.regrouped, found.growth)
    assert 196 == found.release.loss.n_rows
    assert (found.release.id,) == found.release.composition.releases
    again = dbanon.publish("patients", k=4, settings=published.settings)
    assert again.sharing is None
    history = dbanon.history("patients", settings=published.settings)
    assert [3, 2, 0] == [one.series for one in history.entries]


def test_what_nobody_was_granted_stays_if_nothing_changed(published):
    for options in ({}, {"if_changed": True}, {"dry_run": True}):
        (found,) = dbanon.refresh("patients", **options, settings=published.settings)
        assert (False, 1) == (found.changed, found.release.id)


@pytest.mark.parametrize("given", exhaustive_after(1, GIVEN))
def test_classes_are_kept_after(published, is_unread, given):
    if given == "a release missing in the ledger":
        dbanon.publish("patients", name="others", settings=published.settings)
        dbanon.publish("patients", settings=published.settings)
    table = dbanon.inspect("patients", settings=published.settings).info
    connection, relation = published.connect(), TableName.parse(VIEW)
    assert is_unread(connection, table, relation) == (given != "a release missing in the ledger")
    give(published, GIVEN[given])
    assert not is_unread(connection, table, relation)


@pytest.mark.exhaustive
def test_classes_are_kept_though_all_rights_were_revoked(published):
    give(published, GIVEN["all columns, revoked"])
    change(published)
    (found,) = dbanon.refresh("patients", settings=published.settings)
    assert UNREAD != found.regrouped
    history = dbanon.history("patients", settings=published.settings)
    assert {0} == {one.series for one in history.entries}


@pytest.mark.exhaustive
def test_default_privileges_bind_after_they_are_revoked(database):
    define_patients(database)
    reader = database.role("reader")
    database.execute("CREATE SCHEMA anon")
    database.execute(f"ALTER DEFAULT PRIVILEGES IN SCHEMA anon GRANT SELECT ON TABLES TO {reader}")
    dbanon.publish("patients", settings=database.settings)
    database.execute(f"REVOKE SELECT ON anon.patients FROM {reader}")
    database.execute(
        f"ALTER DEFAULT PRIVILEGES IN SCHEMA anon REVOKE SELECT ON TABLES FROM {reader}"
    )
    change(database)
    (found,) = dbanon.refresh("patients", settings=database.settings)
    assert (None, 4) == (found.regrouped, found.growth.deferred + found.growth.left)


@pytest.mark.exhaustive
def test_a_grant_of_dbanon_binds_after_it_was_revoked(published):
    reader = published.role("reader")
    dbanon.grant(VIEW, [reader], settings=published.settings)
    dbanon.revoke(VIEW, [reader], settings=published.settings)
    change(published)
    (found,) = dbanon.refresh("patients", settings=published.settings)
    assert found.growth is not None


@pytest.mark.exhaustive
def test_a_grant_with_a_later_release_binds(published):
    reader = published.role("reader")
    dbanon.publish("patients", grants=[reader], settings=published.settings)
    change(published)
    (found,) = dbanon.refresh("patients", settings=published.settings)
    assert found.growth is not None


@pytest.mark.exhaustive
def test_a_second_relation_joins_the_series(published):
    second = dbanon.publish("patients", name="others", settings=published.settings)
    assert second.sharing is not None
    change(published)
    found = dbanon.refresh("patients", settings=published.settings)
    assert {None} == {one.regrouped for one in found}


@pytest.mark.exhaustive
def test_a_member_of_the_owner_who_cannot_read_the_source_binds(published):
    member = published.role("member")
    (owner,) = published.execute("SELECT session_user")[0]
    published.admin().execute(f"ALTER ROLE {member} NOINHERIT")
    published.admin().execute(f'GRANT "{owner}" TO {member}')
    change(published)
    (found,) = dbanon.refresh("patients", settings=published.settings)
    assert found.regrouped != UNREAD


def test_a_grant_during_the_publication_refuses_it(published, monkeypatch):
    from dbanon.db.histories import readers

    reader, mark = published.role("reader"), readers.mark

    def marked(*given, **named):
        mark(*given, **named)
        monkeypatch.setattr(readers, "is_unread", lambda *_: False)

    monkeypatch.setattr(readers, "mark", marked)
    assert reader
    change(published)
    with pytest.raises(dbanon.CheckFailed, match="granted meanwhile; nothing was published"):
        dbanon.refresh("patients", settings=published.settings)
    assert {1} == {one.id for one in dbanon.list_releases(settings=published.settings)}
