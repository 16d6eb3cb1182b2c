"""What the order of rows tells of a release that was refreshed."""

from collections import Counter, defaultdict

import pytest
from tables import unseal

import dbanon
from dbanon.domain.policy import ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.table import TableName

TABLE = TableName("public", "people")
ROWS = "SELECT ward, disease, note FROM anon.people"
ADD = """
    INSERT INTO public.people
    SELECT i, chr(97 + i % 6), 'd' || i / 6 % 4, 'note ' || i FROM generate_series({}, {}) AS i"""


@pytest.fixture
def people(database):
    """Publish six wards of 20 persons each, of which each is a class."""
    database.execute(
        "CREATE TABLE public.people (id int PRIMARY KEY, ward text, disease text, note text)"
    )
    database.execute(ADD.format(0, 119))
    rules = (
        ColumnRule("id", Role.IDENTIFIER),
        ColumnRule("ward", Role.QUASI),
        ColumnRule("disease", Role.SENSITIVE),
        ColumnRule("note", Role.INSENSITIVE),
    )
    models = (ModelSpec("k-anonymity", {"k": 5}), ModelSpec("l-diversity", {"l": 2}))
    policy = Policy(TABLE, rules, models=models, algorithm="mondrian", max_suppressed=0.0)
    dbanon.set_policy(TABLE, policy, settings=database.settings)
    dbanon.publish(TABLE, settings=database.settings)
    return database


def refresh(database):
    (found,) = dbanon.refresh(TABLE, settings=database.settings)
    assert found.growth is not None
    return found.growth


def ordered(database):
    """Return the rows of each ward in the order in which readers get them."""
    found = defaultdict(list)
    for ward, *row in database.execute(ROWS):
        found[ward].append(tuple(row))
    return found


def moved(before, after):
    """Return the wards of which rows that are in both stand in another order."""
    wards = set()
    for ward, rows in after.items():
        both = {*before[ward]} & {*rows}
        if [row for row in before[ward] if row in both] != [row for row in rows if row in both]:
            wards.add(ward)
    return wards


@pytest.mark.exhaustive
def test_newcomers_stand_among_those_of_their_class_who_were_there(people):
    before = ordered(people)
    assert {20} == {len(rows) for rows in before.values()}
    people.execute(ADD.format(200, 259) + " WHERE i % 6 < 2")
    assert 20 == refresh(people).inserted
    after = ordered(people)
    for ward in "ab":
        old = {*before[ward]}
        assert (30, 20) == (len(after[ward]), len(old & {*after[ward]}))
        is_old = [row in old for row in after[ward]]
        assert any(is_old[20:])
        assert not all(is_old[:20])


@pytest.mark.exhaustive
def test_the_order_shows_which_classes_changed_as_their_rows_do_and_no_more(people):
    """Somebody who has both releases learns nothing from the order of their rows."""
    before = ordered(people)
    people.execute(ADD.format(300, 389) + " WHERE i % 6 IN (1, 4)")
    people.execute("DELETE FROM public.people WHERE ward = 'd' AND id < 100")
    refresh(people)
    after = ordered(people)
    wards = {*before, *after}
    changed = {ward for ward in wards if Counter(before[ward]) != Counter(after[ward])}
    assert ({"b", "d", "e"}, {"b", "e"}) == (changed, moved(before, after))
    assert not after["d"]
    # Of a class that changed, no place of a row says whether the row was there before.
    for ward in changed & {*"be"}:
        last = [row in before[ward] for row in after[ward][-15:]]
        assert {True, False} == {*last}


@pytest.mark.exhaustive
def test_classes_that_are_equal_by_null_and_by_several_columns_are_one(people):
    people.execute("ALTER TABLE public.people ADD age int")
    policy = dbanon.load_policy(TABLE, settings=people.settings)
    rules = (*policy.columns, ColumnRule("age", Role.QUASI, recoding="suppress"))
    changed = Policy(TABLE, rules, models=policy.models, algorithm="mondrian", max_suppressed=0.0)
    dbanon.set_policy(TABLE, changed, settings=people.settings)
    dbanon.publish(TABLE, new_series=True, recipients_changed=True, settings=people.settings)
    before = ordered(people)
    people.execute(
        "INSERT INTO public.people SELECT i, 'a', 'd' || i % 4, 'note ' || i, NULL"
        " FROM generate_series(200, 229) AS i"
    )
    refresh(people)
    after = ordered(people)
    assert 50 == len(after["a"])
    assert {"a"} == moved(before, after)


def number_wrongly(people):
    people.execute(ADD.format(200, 259) + " WHERE i % 6 < 2")
    unseal(people, 1)
    people.execute(
        "UPDATE dbanon_data.release_1 SET dbanon_class = (SELECT dbanon_class"
        " FROM dbanon_data.release_1 WHERE ward = 'c' LIMIT 1) WHERE ward = 'd'"
    )
    trigger = "ENABLE ALWAYS TRIGGER released_table_is_immutable"
    people.execute(f"ALTER TABLE dbanon_data.release_1 {trigger}")
    people.execute("REVOKE ALL ON dbanon_data.release_1 FROM CURRENT_USER")
    people.execute("GRANT SELECT ON dbanon_data.release_1 TO CURRENT_USER")


@pytest.mark.exhaustive
def test_a_row_with_the_number_of_another_class_is_found_before_a_refresh(people):
    number_wrongly(people)
    (found,) = dbanon.refresh(TABLE, settings=people.settings)
    assert found.changed
    assert found.growth is None
    assert [(1,)] == people.execute(
        "SELECT DISTINCT count(DISTINCT ward) FROM dbanon_data.release_1 GROUP BY dbanon_class"
    )


def test_classes_whose_numbers_no_digest_holds_are_grouped_from_scratch(people):
    """As in a copy that an early version made."""
    people.execute("ALTER TYPE dbanon_data.shape_1 DROP ATTRIBUTE dbanon_class CASCADE")
    people.execute("UPDATE dbanon.release SET content = split_part(content, ':', 1)")
    (found,) = dbanon.refresh(TABLE, settings=people.settings)
    assert (True, None) == (found.changed, found.growth)
