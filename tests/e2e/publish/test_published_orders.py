"""Columns whose values come in an order: what is proved of them, and how they are published."""

import json
from dataclasses import replace

import psycopg
import pytest
from selection import each_once

import dbanon
from dbanon import ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.table import TableName

LEVELS = ("low", "medium", "high")
# Two classes: 50 low and 1 medium, 50 high and 1 medium.
ROWS = [(1, "low")] * 50 + [(1, "medium")] + [(2, "high")] * 50 + [(2, "medium")]
DISTANCE = 50 / 102  # twice over 2 steps; by the bytes of the labels it is half of that
CHECK = (
    "SELECT achieved, verdict FROM dbanon.check_t_closeness(%s, '{age}', 'level', 0.3, 'ordered'"
)


def make(database, declared, rows=ROWS):
    with database.connect() as connection:
        connection.execute("CREATE TYPE public.level AS ENUM ('low', 'medium', 'high')")
        connection.execute(
            psycopg.sql.SQL(
                "CREATE TABLE public.people (id int PRIMARY KEY, age int, level {})"
            ).format(psycopg.sql.SQL(declared))
        )
        with connection.cursor().copy("COPY public.people FROM STDIN") as copy:
            for number, row in enumerate(rows):
                copy.write_row((number, *row))


def policy_of(t, *, roles=(Role.QUASI, Role.SENSITIVE), k=5, **rule):
    models = [ModelSpec("k-anonymity", {"k": k})]
    if t is not None:
        models.append(ModelSpec("t-closeness", {"t": t, "distance": "ordered"}))
    columns = (
        ColumnRule("id", Role.IDENTIFIER),
        ColumnRule("age", roles[0]),
        ColumnRule("level", roles[1], **rule),
    )
    return Policy(TableName("public", "people"), columns, models=tuple(models))


def publish(database, policy, **options):
    dbanon.set_policy("people", policy, settings=database.settings)
    return dbanon.publish("people", settings=database.settings, **options)


def closeness(release):
    return next(r for r in release.checks.results if r.model == "t-closeness")


@pytest.mark.exhaustive
def test_closeness_of_an_enum_goes_by_the_order_of_its_labels(database):
    make(database, "public.level")
    auditor = database.role("auditor")
    release = publish(database, policy_of(0.5), grants=[auditor])
    assert (2, pytest.approx(DISTANCE)) == (closeness(release).classes, closeness(release).achieved)
    found = database.connect_as(auditor).execute(
        "SELECT achieved FROM dbanon.verify('anon.people') WHERE model = 't-closeness'"
    )
    assert found.fetchone() == (pytest.approx(DISTANCE),)
    found = database.connect().execute(f"{CHECK})", ("people",))
    assert found.fetchone() == (pytest.approx(DISTANCE), "failed")


@pytest.mark.exhaustive
def test_no_class_is_served_that_is_too_far_by_the_declared_order(database):
    make(database, "public.level")
    assert closeness(publish(database, policy_of(0.3))).classes == 1


@pytest.mark.exhaustive
@pytest.mark.parametrize("declared", ["text", "varchar(10)", "public.level"])
@pytest.mark.parametrize("order", [LEVELS, ("medium", "low", "high")])
def test_closeness_goes_by_the_order_that_the_policy_lists(database, declared, order):
    make(database, declared)
    auditor = database.role("auditor")
    release = publish(database, policy_of(0.5, order=order), grants=[auditor])
    expected = DISTANCE if order == LEVELS else DISTANCE / 2
    assert closeness(release).achieved == pytest.approx(expected)
    found = database.connect_as(auditor).execute(
        "SELECT achieved FROM dbanon.verify('anon.people') WHERE model = 't-closeness'"
    )
    assert found.fetchone() == (closeness(release).achieved,)
    checked = dbanon.check("anon.people", settings=database.settings)
    assert checked.results == release.checks.results


def test_texts_without_an_order_are_refused(database):
    make(database, "text")
    with pytest.raises(dbanon.PolicyError, match="needs the order of sensitive column level"):
        publish(database, policy_of(0.5))
    connection = database.connect()
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="needs the order of column"):
        connection.execute(f"{CHECK})", ("people",))
    document = json.dumps({"order": LEVELS})
    found = connection.execute(f"{CHECK}, %s)", ("people", document)).fetchone()
    assert (pytest.approx(DISTANCE), "failed") == found


def test_a_value_that_the_order_lacks_is_an_error_that_does_not_show_it(database):
    make(database, "text")
    for role in (Role.SENSITIVE, Role.QUASI):
        roles = (Role.QUASI, role)
        asked = policy_of(0.5 if role is Role.SENSITIVE else None, roles=roles, order=LEVELS[:2])
        with pytest.raises(dbanon.PolicyError, match="lacks 1 of its values, on 50 rows") as caught:
            publish(database, asked)
        assert "high" not in f"{caught.value} {caught.value.hint}".replace('"high"', "")
    document = json.dumps({"order": LEVELS[:2]})
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="lacks 1 of its values"):
        database.connect().execute(f"{CHECK}, %s)", ("people", document))


def test_the_comment_lists_no_value_that_is_not_shown(database):
    rows = [*ROWS, (90, "fatal")]
    make(database, "text", rows)
    policy = policy_of(0.5, order=("none", *LEVELS, "fatal"))
    release = publish(database, replace(policy, max_suppressed=0.02), algorithm="full-domain")
    shown = database.connect().execute("SELECT DISTINCT level FROM anon.people").fetchall()
    comment = database.connect().execute("SELECT dbanon.promise('anon.people')").fetchone()[0]
    listed = comment["trees"]["level"]["order"]
    assert listed == [level for level in policy.columns[2].order if (level,) in shown]
    assert "none" not in listed
    assert closeness(release).achieved == pytest.approx(DISTANCE, abs=0.02)


PUBLISHED = {
    None: {"[low, medium]", "high"},
    "median": {"low", "high"},
    "set": {"{low,medium}", "{high}"},
    "label": {"*", "high"},
}


@pytest.mark.parametrize(("recoding", "kind"), each_once(PUBLISHED, ["table", "view"]))
def test_an_enum_is_published_by_its_order(database, recoding, kind):
    rows = [(1, "low")] * 3 + [(1, "medium")] * 3 + [(1, "high")] * 6
    make(database, "public.level", rows)
    policy = policy_of(None, roles=(Role.INSENSITIVE, Role.QUASI), k=6, recoding=recoding)
    release = publish(database, policy, kind=kind)
    found = database.connect().execute("SELECT DISTINCT level::text FROM anon.people").fetchall()
    assert PUBLISHED[recoding] == {value for (value,) in found}
    assert (6, 2) == (release.checks.results[0].achieved, release.checks.results[0].classes)


@pytest.mark.exhaustive
def test_a_refresh_takes_the_order_of_the_enum_as_it_is_by_then(database):
    make(database, "public.level")
    publish(database, policy_of(0.5))
    connection = database.connect()
    connection.execute("ALTER TYPE public.level ADD VALUE 'grave' AFTER 'low'")
    connection.execute("UPDATE public.people SET level = 'grave' WHERE id = 0")
    others = {"new_series": True, "recipients_changed": True}
    (refreshed,) = dbanon.refresh("people", settings=database.settings, **others)
    comment = connection.execute("SELECT dbanon.promise('anon.people')").fetchone()[0]
    assert ["low", "grave", "medium", "high"] == comment["trees"]["level"]["order"]
    assert closeness(refreshed.release).achieved < 0.5
