"""What comparing releases reveals, every figure of it, against definitions in Python."""

from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import psycopg
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from selection import at_depth

import dbanon
from dbanon.db import catalog
from dbanon.db.histories import memory, overlay
from dbanon.db.metadata import ledger
from dbanon.db.releases import relations, release_rows
from dbanon.db.releases.publication import Publication
from dbanon.db.session import connect
from dbanon.db.transfer import SourceRows
from dbanon.domain.assignment import Assignment, GroupValues, LossReport, ValueColumn
from dbanon.domain.policy import ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.release import CheckReport, Release, ReleaseKind, Verdict
from dbanon.domain.table import ColumnKind, TableName
from dbanon.formats import policies

TABLE = TableName("public", "people")
K2 = ModelSpec("k-anonymity", {"k": 2})
L2 = ModelSpec("l-diversity", {"l": 2, "columns": ("disease",)})
RULES = (
    ColumnRule("id", Role.IDENTIFIER),
    ColumnRule("person", Role.IDENTIFIER),
    ColumnRule("zip", Role.QUASI),
    ColumnRule("disease", Role.SENSITIVE),
    ColumnRule("wage", Role.SENSITIVE),
)


def make_people(database):
    """Create an empty table of people."""
    database.execute(
        "CREATE TABLE public.people (id int PRIMARY KEY, person text, zip text, disease text,"
        " wage numeric)"
    )


BOTH = ("disease", "wage")


def note(database, number, rows, *, view="people", models=(K2, L2), subject=None, shows=BOTH):
    """Remember a release that shows some rows, and return what all releases reveal by then.

    A row is of whom, in which class it is published, and with which disease and wage; shows: which
    of these are published.
    """
    columns = tuple(
        replace(rule, role=Role.IDENTIFIER)
        if rule.role is Role.SENSITIVE and rule.column not in shows
        else rule
        for rule in RULES
    )
    policy = Policy(table=TABLE, columns=columns, models=tuple(models), subject=subject)
    classes = sorted({row[1] for row in rows})
    keys = [row[0] if subject is None else i for i, row in enumerate(rows)]
    settle(database, keys, rows, anew=subject is not None)
    with connect(database.settings) as session, session.transaction():
        publication = Publication(
            id=number,
            info=catalog.describe(session, TABLE),
            policy=policy,
            kind=ReleaseKind.TABLE,
            view=TableName("anon", view),
            recodings=(("zip", "label"),),
        )
        for statement in relations.build_statements(publication):
            session.pg.execute(statement)
        source = SourceRows(
            pa.table({"id": pa.array(keys, pa.int32())}),
            pa.table(
                {name: _column(rows, place) for place, name in enumerate(BOTH, 2) if name in shows}
            ),
        )
        group = np.array([classes.index(row[1]) for row in rows], np.int32)
        index = np.arange(len(classes), dtype=np.int32)
        column = ValueColumn(
            "zip", "label", ColumnKind.CATEGORY, index, tuple(classes), np.zeros(len(classes))
        )
        release_rows.fill(
            session,
            publication,
            source,
            assignment=Assignment(group, len(classes)),
            values=GroupValues((column,), len(classes)),
        )
        found = overlay.remember(session, publication)
        ledger.add_release(session, _entered(publication, len(rows)))
    return found


def settle(database, keys, rows, *, anew):
    """Let rows be in the table, by their keys; nobody ever leaves it.

    anew: whether the keys are those of other rows by now.
    """
    lines = [(key, str(row[0]), *row[1:]) for key, row in zip(keys, rows, strict=True)]
    insert = "INSERT INTO public.people VALUES (%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"
    with psycopg.connect(database.dsn) as connection:
        if anew:
            connection.execute("UPDATE public.people SET id = id + 1000000")
        connection.cursor().executemany(insert, lines)


def _column(rows, place):
    values = pa.array([row[place] for row in rows], pa.string())
    return pa.chunked_array([values.dictionary_encode()])


def _entered(publication, size):
    return Release(
        id=publication.id,
        table=TABLE,
        relation=publication.view,
        kind=ReleaseKind.TABLE,
        policy=publication.policy,
        seed=0,
        checks=CheckReport(publication.view, ()),
        loss=LossReport(size, 0, 1, 1, 0.0, {}),
        fingerprint="",
        data_id=publication.id,
    )


BOB, ALICE, ANDY, DAVID, EMILY, NOBODY = range(6)
FIRST = [
    (BOB, "1", "dyspepsia", None),
    (ALICE, "1", "bronchitis", None),
    (ANDY, "2", "flu", None),
    (DAVID, "2", "gastritis", None),
]


@pytest.fixture
def people(database):
    make_people(database)
    return database


def figures(found, model, column=None):
    """Return (release, required, achieved, cells, failing) of a model by release."""
    return [
        (one.release, r.required, r.achieved, r.classes, r.failing_classes)
        for one in found.results
        if ((r := one.result).model, r.column) == (model, column)
    ]


def exposed(found, column="disease"):
    """Return (release, below l, to one) of a column against each release before."""
    return [
        (one.release, e.below, e.to_one)
        for one in found.against
        for e in one.exposures
        if e.column == column
    ]


def test_a_regrouping_of_who_stayed_is_named_as_the_literature_does(people):
    first = note(people, 1, FIRST)
    assert (True, (), ()) == (first.holds, first.warnings, first.results)
    second = [(BOB, "3", "dyspepsia", None), (DAVID, "3", "gastritis", None)]
    found = note(people, 2, second)
    assert [(2, 2, 1, 4, 4)] == figures(found, "k-anonymity")  # Bob, Alice, Andy and David alone
    assert [(1, 2, 1, 4, 4)] == figures(found, "l-diversity", "disease")[:1]
    (against,) = found.against
    assert (4, 2, 1, 4) == (against.persons, against.in_both, against.smallest, against.below)
    assert [(1, 2, 2)] == exposed(found)
    assert [
        "compared with release 1: 4 persons below k = 2",
        "compared with release 1: 2 persons below l = 2 of disease",
        "compared with release 1: disease of 2 persons is known",
        "taken together, releases 1, 2 fail their models (4 cells)",
    ] == [one.message for one in found.warnings]


def test_counterfeits_leave_both_values_to_each(people):
    note(people, 1, FIRST)
    repaired = [
        (BOB, "3", "dyspepsia", None),
        (NOBODY, "3", "bronchitis", None),
        (DAVID, "4", "gastritis", None),
        (EMILY, "4", "flu", None),
    ]
    assert [(1, 0, 0)] == exposed(note(people, 2, repaired))


def test_a_release_that_changes_nothing_is_remembered_in_no_row(people):
    note(people, 1, FIRST)
    found = note(people, 2, FIRST)
    assert (True, (1, 2)) == (found.holds, found.releases)
    sizes = "SELECT release_id, sum(cardinality(persons)) FROM dbanon.history_member GROUP BY 1"
    assert [(1, 4), (2, 0)] == sorted(people.execute(sizes))


def test_whole_classes_may_come_go_and_come_back(people):
    pairs = [[(2 * i, str(i), "a", "1"), (2 * i + 1, str(i), "b", "2")] for i in range(4)]
    shown = [pairs[:2], pairs[1:3], pairs[:4], pairs[3:]]
    for number, release in enumerate(shown, 1):
        found = note(people, number, [row for pair in release for row in pair])
        assert (True, ()) == (found.holds, found.warnings)
    assert [(4, 2, 2, 4, 0)] == figures(found, "k-anonymity")


def test_a_newcomer_in_a_class_that_was_there_is_alone(people):
    note(people, 1, FIRST)
    found = note(people, 2, [*FIRST, (EMILY, "2", "cancer", None)])
    assert [(2, 2, 1, 3, 1)] == figures(found, "k-anonymity")


def test_whose_value_changes_is_a_cell_of_its_own(people):
    note(people, 1, FIRST)
    changed = [(BOB, "1", "cancer", None), *FIRST[1:]]
    found = note(people, 2, changed)
    assert [(2, 2, 1, 3, 2)] == figures(found, "k-anonymity")


def test_two_views_are_compared_like_two_releases(people):
    note(people, 1, FIRST)
    other = [(person, "12"[person in {BOB, DAVID}], *rest) for person, _, *rest in FIRST]
    found = note(people, 2, other, view="others")
    assert [(2, 2, 1, 4, 4)] == figures(found, "k-anonymity")
    again = note(people, 3, FIRST)  # the first view stays as it is; the other still tells
    assert [(3, 2, 1, 4, 4)] == figures(again, "k-anonymity")


@pytest.mark.parametrize("shows", [BOTH, ("disease",)])
@pytest.mark.parametrize("subject", [None, "person"])
def test_whose_value_another_view_shows_otherwise_is_a_cell_of_its_own(people, shows, subject):
    note(people, 1, FIRST, subject=subject)
    other = {"view": "others", "shows": shows, "subject": subject}
    assert [(2, 2, 2, 2, 0)] == figures(note(people, 2, FIRST, **other), "k-anonymity")
    changed = [(BOB, "1", "cancer", None), *FIRST[1:]]
    found = note(people, 3, changed, **{**other, "view": "new"})
    assert [(3, 2, 1, 3, 2)] == figures(found, "k-anonymity")


def test_whose_value_is_another_one_when_he_comes_back_is_a_cell_of_its_own(people):
    note(people, 1, FIRST)
    note(people, 2, FIRST[2:])
    found = note(people, 3, [(BOB, "1", "cancer", None), *FIRST[1:]])
    assert [(3, 2, 1, 3, 2)] == figures(found, "k-anonymity")


def test_a_sensitive_column_may_have_any_name(people):
    people.execute("ALTER TABLE public.people RENAME disease TO value_id")
    people.execute(
        "INSERT INTO public.people SELECT i, i, i % 2, i % 3 FROM generate_series(1, 12) i"
    )
    value = ColumnRule("value_id", Role.SENSITIVE)  # which what is remembered of values has, too
    rules = (*RULES[:3], value, ColumnRule("wage", Role.IDENTIFIER))
    policy = Policy(TABLE, rules, (K2, ModelSpec("l-diversity", {"l": 2})))
    dbanon.set_policy(TABLE, policy, settings=people.settings)
    dbanon.publish(TABLE, settings=people.settings)
    found = dbanon.publish(TABLE, seed=1, settings=people.settings).composition
    assert (1, 2) == found.releases
    assert "value_id" in {one.result.column for one in found.results}


def test_a_policy_that_releases_share_is_read_once(people, monkeypatch):
    read = []

    from_document = policies.from_document

    def counted(document):
        read.append(document)
        return from_document(document)

    monkeypatch.setattr(policies, "from_document", counted)
    ledger._read.cache_clear()  # noqa: SLF001 - other tests have such a policy, too
    for number in (1, 2, 3):
        note(people, number, FIRST)
    assert read == []  # that of the new release is known already
    for number in (4, 5):
        note(people, number, FIRST, models=(K2,))
        assert 1 == len(read)


def test_releases_whose_persons_are_told_otherwise_are_said_to_be_unknown(people):
    note(people, 1, FIRST)
    found = note(people, 2, FIRST, subject="person")
    assert ((2,), (1,), False) == (found.releases, found.unknown, found.holds)
    assert "release 1: not compared, record of persons lost" == found.warnings[0].message


@pytest.mark.parametrize("lost", ["history_key", "history_member", "history"])
def test_what_was_lost_is_said_to_be_unknown(people, lost):
    note(people, 1, FIRST)
    people.execute(f"DELETE FROM dbanon.{lost}")
    found = note(people, 2, FIRST)
    assert ((2,), (1,)) == (found.releases, found.unknown)


def test_no_person_and_no_key_can_be_read_where_persons_are_remembered(people):
    note(people, 1, [(i, *row) for i, (_, *row) in enumerate(FIRST, 4711)])
    (persons,) = people.execute("SELECT persons FROM dbanon.history_member")[0]
    (key,) = people.execute("SELECT inner_key FROM dbanon.history_key")[0]
    assert (4, 32) == (len(set(persons)), len(key))
    make_people_again = (
        "TRUNCATE dbanon.history, dbanon.history_class, dbanon.history_figures,"
        " dbanon.history_member, dbanon.history_key"
    )
    people.execute(make_people_again)
    note(people, 2, [(i, *row) for i, (_, *row) in enumerate(FIRST, 4711)])
    (others,) = people.execute("SELECT persons FROM dbanon.history_member")[0]
    assert not set(persons) & set(others)  # the key is another one, and so is every hash


@pytest.mark.exhaustive
def test_a_person_is_remembered_in_less_than_40_bytes(people):
    rows = [(i, str(i // 4), "abcd"[i % 4], str(i % 7)) for i in range(20_000)]
    note(people, 1, rows)
    note(people, 2, rows)
    size = "SELECT pg_total_relation_size('dbanon.history_member')"
    assert people.execute(size)[0][0] / len(rows) < 40


def test_several_rows_of_a_person_are_one_person(people):
    rows = [(person, zip_, disease, None) for person, zip_, disease, _ in FIRST]
    twice = [*rows, *rows]
    note(people, 1, twice, subject="person")
    assert note(people, 2, twice, subject="person").holds
    found = note(people, 3, [*twice, (BOB, "1", "flu", None)], subject="person")
    assert [(3, 2, 1, 3, 2)] == figures(found, "k-anonymity")


# The same three diseases and wages, together otherwise.
TOGETHER = [("flu", "1"), ("gout", "2"), ("gastritis", "3")]
OTHERWISE = [("flu", "2"), ("gout", "1"), ("gastritis", "3")]
AGAIN = [("flu", "2"), ("gout", "3"), ("gastritis", "1")]


def rows_of(held):
    """Return the rows of persons in one class, by person."""
    return [(person, "1", *values) for person, rows in held.items() for values in rows]


def test_whose_rows_are_others_of_the_same_values_is_a_cell_of_its_own(people):
    courses = {
        BOB: (TOGETHER, OTHERWISE, AGAIN),
        ALICE: (TOGETHER, OTHERWISE, TOGETHER),
        ANDY: (TOGETHER, TOGETHER, TOGETHER),
        DAVID: (TOGETHER, TOGETHER, TOGETHER),
    }
    for number in (1, 2, 3):
        shown = {person: course[number - 1] for person, course in courses.items()}
        found = note(people, number, rows_of(shown), subject="person")
    assert [(3, 2, 1, 3, 2)] == figures(found, "k-anonymity")


def test_values_of_other_tables_divide_no_cell(people):
    people.execute(
        "INSERT INTO dbanon.history_value (table_schema, table_name, digest, value)"
        " VALUES ('public', 'visits', '', '{\"ward\": \"1\"}')"
    )
    two = [("cold", "4"), ("cough", "5")]
    courses = {BOB: (TOGETHER[:2], two), ALICE: (TOGETHER[:2], [*two, ("asthma", "6")])}
    for number in (1, 2):
        shown = {person: course[number - 1] for person, course in courses.items()}
        found = note(people, number, rows_of(shown), subject="person")
    assert [(2, 2, 2, 1, 0)] == figures(found, "k-anonymity")


# Random streams: what each release shows of eight persons, by two views, one of which shows less.

CLASSES, VALUES = st.sampled_from(["a", "b", "c", None]), st.sampled_from(["x", "y", "z", None])
RELEASES = st.lists(
    st.tuples(
        st.sampled_from(["people", "others"]),
        st.lists(st.tuples(CLASSES, VALUES), min_size=8, max_size=8).filter(
            lambda shown: any(zip_ for zip_, _ in shown)
        ),
    ),
    min_size=2,
    max_size=4,
)


def cells_of(stream):
    """Return the cell of each person: the class in each release, and which values were equal."""
    vectors, first = defaultdict(list), {}
    for number, (_, shown) in enumerate(stream):
        for person, (zip_, value) in enumerate(shown):
            same = first.setdefault((person, value), number) if zip_ else None
            vectors[person].append((zip_, same))
    seen = {p for _, shown in stream for p, (zip_, _) in enumerate(shown) if zip_}
    return {person: tuple(vectors[person]) for person in seen}


def values_of(cells, shown):
    """Return the values of each cell in a release."""
    found = defaultdict(set)
    for person, (zip_, value) in enumerate(shown):
        if zip_:
            found[cells[person]].add(value)
    return found.values()


def held_against(before, now, l):
    """Return (persons, in both, smallest, below 2, below l, to one) of two releases."""
    pairs = [(a[0], b[0]) for a, b in zip(before, now, strict=True) if a[0] or b[0]]
    sizes, shown = Counter(pairs), [defaultdict(set), defaultdict(set)]
    for release, values in zip((before, now), shown, strict=True):
        for zip_, value in release:
            values[zip_].add(value)
    both = [(a, b) for a, b in pairs if a and b]
    left = [len(shown[0][a] & shown[1][b]) for a, b in both]
    return (
        len(pairs),
        len(both),
        min(sizes.values()),
        sum(sizes[pair] < 2 for pair in pairs),
        sum(0 < n < l for n in left),
        left.count(1),
    )


TABLES = (
    "history",
    "history_class",
    "history_figures",
    "history_member",
    "history_value",
    "history_key",
    "release",
)


def begin_again(database):
    """Forget all releases."""
    for table in TABLES:
        database.execute(f"TRUNCATE dbanon.{table} CASCADE")
    database.execute("DROP SCHEMA dbanon_data CASCADE")
    database.execute("CREATE SCHEMA dbanon_data")


def note_shown(database, number, view, shown, models=(K2, L2)):
    """Remember a release that shows each person in a class with a value."""
    rows = [(i, zip_, v, "1") for i, (zip_, v) in enumerate(shown) if zip_]
    shows = BOTH if view == "people" else ("disease",)
    return note(database, number, rows, view=view, shows=shows, models=models)


def require_definition(stream, found):
    """Hold every figure of the last of some releases against its definition."""
    cells = cells_of(stream)
    sizes = Counter(cells.values())
    few = sum(size < 2 for size in sizes.values())
    assert [(len(stream), 2, min(sizes.values()), len(sizes), few)] == figures(found, "k-anonymity")
    of_values = [[len(v) for v in values_of(cells, shown)] for _, shown in stream]
    assert [
        (i, 2, min(n), len(n), sum(value < 2 for value in n)) for i, n in enumerate(of_values, 1)
    ] == figures(found, "l-diversity", "disease")
    newest = stream[-1][1]
    assert [held_against(shown, newest, 2) for _, shown in stream[:-1]] == [
        (one.persons, one.in_both, one.smallest, one.below, e.below, e.to_one)
        for one in found.against
        for e in one.exposures
        if e.column == "disease"
    ]
    assert {Verdict.PASSED, Verdict.FAILED} >= {one.result.verdict for one in found.results}


@settings(max_examples=at_depth(12), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(stream=RELEASES)
def test_every_figure_is_that_of_the_definition(people, stream):
    begin_again(people)
    for number, (view, shown) in enumerate(stream, 1):
        found = note_shown(people, number, view, shown)
    require_definition(stream, found)
    assert (found,) == dbanon.history(TABLE, settings=people.settings).compositions


def test_each_of_many_values_counts(people):
    shown = [(f"c{i % 32}", f"v{i:02}") for i in range(96)]
    stream = [("people", shown), ("people", shown[64:] + shown[:64]), ("people", shown)]
    for number, (view, rows) in enumerate(stream, 1):
        found = note_shown(people, number, view, rows)
    require_definition(stream, found)
    assert [(1, 0), (2, 0)] == [(one.release, one.exposures[0].to_one) for one in found.against]


# Random streams in which few persons change at a time, so that a release starts from the figures of
# those before.

FEW = st.dictionaries(st.integers(0, 11), st.tuples(CLASSES, VALUES), max_size=4)
STEPS = st.lists(
    st.tuples(st.sampled_from(["people", "people", "others"]), FEW), min_size=3, max_size=7
)
AT_FIRST = [("ab"[i % 2], "xyz"[i % 3]) for i in range(12)]


@pytest.fixture
def carried(monkeypatch):
    """Let every release start from the figures before; return how many of them did so."""
    found = Counter()

    def counted(name):
        carry_on = getattr(overlay.Increment, name)

        def counting(*arguments):
            figures = carry_on(*arguments)
            found.update("anew" if one is None else name for one in figures.values())
            return figures

        return counting

    monkeypatch.setattr(overlay, "_SHARE", 1)
    for name in ("results", "compared"):
        monkeypatch.setattr(overlay.Increment, name, counted(name))
    return found


@settings(max_examples=at_depth(12), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_every_figure_that_is_carried_on_is_that_of_the_definition(people, carried, steps):
    begin_again(people)
    stream, shown = [], {"people": AT_FIRST, "others": AT_FIRST}
    for number, (view, changes) in enumerate([("people", {}), *steps], 1):
        shown[view] = [changes.get(i, before) for i, before in enumerate(shown[view])]
        if any(zip_ for zip_, _ in shown[view]):
            stream.append((view, shown[view]))
            found = note_shown(people, len(stream), view, shown[view])
            if number > 1:
                require_definition(stream, found)
    assert (found,) == dbanon.history(TABLE, settings=people.settings).compositions


def promised(stream, ks):
    """Return k of each cell: the least of the releases that show its persons; and its size."""
    cells, least = cells_of(stream), {}
    for (_, shown), k in zip(stream, ks, strict=True):
        for person, (zip_, _) in enumerate(shown):
            if zip_:
                least[cells[person]] = min(k, least.get(cells[person], k))
    return [(least[cell], size) for cell, size in Counter(cells.values()).items()]


KS = st.lists(st.sampled_from([2, 3, 5]), min_size=8, max_size=8)


@settings(max_examples=at_depth(10), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, ks=KS)
def test_a_cell_is_as_large_as_the_least_release_that_shows_it_promises(people, carried, steps, ks):
    begin_again(people)
    stream, shown, asked = [], {"people": AT_FIRST, "others": AT_FIRST}, []
    for (view, changes), k in zip([("people", {}), *steps], ks, strict=False):
        shown[view] = [changes.get(i, before) for i, before in enumerate(shown[view])]
        if any(zip_ for zip_, _ in shown[view]):
            stream.append((view, shown[view]))
            asked.append(k)
            models = (ModelSpec("k-anonymity", {"k": k}), L2)
            found = note_shown(people, len(stream), view, shown[view], models)
    again = dbanon.history(TABLE, settings=people.settings).compositions
    if len(stream) == 1:
        return
    of_each = promised(stream, asked)
    failing = [(k, size) for k, size in of_each if size < k]
    for one in (found, *again):
        ((_, required, achieved, cells, fail),) = figures(one, "k-anonymity")
        small = sum(size < max(asked) for _, size in of_each)
        assert (len(of_each), len(failing), small) == (cells, fail, one.small)
        if failing:
            assert (max(k for k, _ in failing), min(n for _, n in failing)) == (required, achieved)
        else:
            assert min(size for _, size in of_each) == achieved
            assert required == (min(asked) if small else max(asked))


def test_a_cell_that_is_gone_is_owed_nothing_less_by_later_releases(people):
    strict, lax = ((ModelSpec("k-anonymity", {"k": k}), L2) for k in (4, 2))
    gone = [(i, "1", "ab"[i % 2], None) for i in range(3)]
    stay = [(i, "2", "ab"[i % 2], None) for i in range(3, 8)]
    note(people, 1, [*gone, *stay], models=strict)
    note(people, 2, stay, models=strict)
    found = note(people, 3, stay, models=lax)
    assert [(3, 4, 3, 2, 1)] == figures(found, "k-anonymity")


def test_a_release_counts_only_those_whom_it_concerns(people, carried):
    rows = [(i, str(i // 4), "abcd"[i % 4], None) for i in range(40)]
    note(people, 1, rows)
    for number in range(2, 6):
        carried.clear()
        rows = [
            *rows[4:],
            *((40 * number + i, f"new {number}", "ab"[i % 2], None) for i in range(4)),
        ]
        found = note(people, number, rows)
        assert {"results": number, "compared": number} == carried
        assert (True, 40 + 4 * (number - 1)) == (found.holds, found.persons)
    assert (found,) == dbanon.history(TABLE, settings=people.settings).compositions


def test_a_new_grouping_unpacks_only_whom_it_shows_otherwise(people, monkeypatch):
    rows = [(i, str(i // 4), "abcd"[i % 4], None) for i in range(40)]
    note(people, 1, rows)
    note(people, 2, [*rows[:36], *((i, "9", "bacd"[i % 4], None) for i in range(36, 40))])
    moved = [(i, "new", "abcd"[i % 4], None) for i in range(4)]
    unpacked, widen = [], memory.widen

    def widening(session, *arguments):
        unpacked.append(session.one("SELECT count(DISTINCT person) FROM history_entries"))
        widen(session, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(memory, "widen", widening)
        found = note(people, 3, [*moved, *rows[4:36], *((i, "9", "a", None) for i in (40, 41))])
    assert (8,) == unpacked[0]
    assert (found,) == dbanon.history(TABLE, settings=people.settings).compositions


PLACES = st.tuples(st.sampled_from([None, *"0123"]), st.sampled_from("abc"))
FEW = st.dictionaries(st.integers(0, 24), PLACES, max_size=6)


@settings(max_examples=at_depth(12), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(FEW, min_size=1, max_size=4))
def test_every_figure_of_a_new_grouping_like_the_former_is_that_of_the_definition(people, steps):
    begin_again(people)
    shown = [(str(i // 6), "abc"[i % 3]) for i in range(24)] + [(None, "a")]
    stream = [("people", shown)]
    note_shown(people, 1, "people", shown)
    for number, changes in enumerate(steps, 2):
        shown = [changes.get(i, before) for i, before in enumerate(shown)]
        stream.append(("people", shown))
        found = note_shown(people, number, "people", shown)
        require_definition(stream, found)
    assert (found,) == dbanon.history(TABLE, settings=people.settings).compositions


def test_no_more_figures_are_kept_than_the_next_release_starts_from(people):
    def kept():
        return [row[0] for row in people.execute("SELECT release_id FROM dbanon.history_figures")]

    rows = [(i, str(i // 4), "abcd"[i % 4], None) for i in range(40)]
    for number in range(1, 6):
        note(people, number, rows[4 * number :])
    assert [4, 5] == sorted(kept())  # when 5 was noted, 4 was served
    note(people, 6, rows[24:], view="others")
    for number in range(7, 10):
        found = note(people, number, rows[4 * number :])
    assert [6, 7, 8, 9] == sorted(kept())
    assert (found,) == dbanon.history(TABLE, settings=people.settings).compositions


def test_figures_that_are_gone_are_counted_anew(people):
    note(people, 1, FIRST)
    people.execute("UPDATE dbanon.history_figures SET figures = '{}'")
    assert note(people, 2, FIRST).holds
    people.execute("DELETE FROM dbanon.history_figures")
    assert note(people, 3, FIRST).holds


def test_figures_that_disagree_with_what_is_remembered_are_not_believed(people):
    note(people, 1, FIRST)
    note(people, 2, [(BOB, "3", "dyspepsia", None), (DAVID, "3", "gastritis", None)])
    people.execute(
        "UPDATE dbanon.history_figures SET figures = jsonb_set(figures, '{results,1}', '[]')"
        " WHERE release_id = 2"
    )
    (found,) = dbanon.history(TABLE, settings=people.settings).compositions
    assert ((2,), (), False) == (found.altered, found.unknown, found.holds)
    assert "release 2: record of persons altered" == found.warnings[-1].message


def test_a_release_of_which_a_part_is_lost_is_said_to_be_altered(people):
    note(people, 1, FIRST)
    people.execute(
        "UPDATE dbanon.history_member SET persons = persons[2:], classes = classes[2:],"
        " value_ids = value_ids[2:]"
    )
    found = note(people, 2, FIRST)
    assert ((2,), (1,), False) == (found.releases, found.altered, found.holds)
    assert "lost" not in " ".join(map(str, found.warnings))


def test_one_release_is_compared_with_none(people):
    note(people, 1, FIRST)
    (found,) = dbanon.history(TABLE, settings=people.settings).compositions
    assert (True, (1,), ()) == (found.holds, found.releases, found.results)


def kept_of(database, number):
    """Return the figures that are kept of a release."""
    ((document,),) = database.execute(
        "SELECT figures FROM dbanon.history_figures WHERE release_id = %s", [number]
    )
    return document


@settings(max_examples=at_depth(12), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(stream=RELEASES, l=st.integers(1, 3))
def test_the_first_release_is_counted_as_all_are(people, stream, l):
    begin_again(people)
    (view, shown), *_ = stream
    asked = ModelSpec("l-diversity", {"l": l, "columns": ("disease",)})
    note_shown(people, 1, view, shown, models=(K2, asked))
    first = kept_of(people, 1)
    people.execute("DELETE FROM dbanon.history_figures")
    note_shown(people, 2, view, shown, models=(K2, asked))
    again = kept_of(people, 2)
    assert 2 == len(again["results"])
    assert [again["results"]["1"]] * 2 == [first["results"]["1"], again["results"]["2"]]
    assert [again["pairs"]["1"]] * 2 == [first["pairs"]["1"], again["pairs"]["2"]]
    assert (again["persons"], again["numbers"]) == (first["persons"], first["numbers"])


def test_the_first_release_is_remembered_in_one_table(people, monkeypatch):
    monkeypatch.setattr(overlay.memory, "cells", None)
    monkeypatch.setattr(overlay.memory, "rows", None)
    assert note(people, 1, FIRST).holds
    assert {"1": [4, 4, 2, 2, 0, [["disease", 2, 0, 0]]]} == {
        number: [*pair[:5], [e for e in pair[5] if e[0] == "disease"]]
        for number, pair in kept_of(people, 1)["pairs"].items()
    }
