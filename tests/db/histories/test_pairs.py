"""Random releases of a table, every two of which are compared as their definition says."""

import json
import random
import uuid
from collections import Counter
from typing import NamedTuple

import pytest
from naive import histories
from psycopg import sql
from selection import exhaustive_after

from dbanon.db.histories import cells, memory
from dbanon.db.histories.memory import Memory
from dbanon.db.session import connect
from dbanon.domain.policy import ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.table import TableName

TABLE = TableName("public", "people")
VALUES = [
    {"disease": disease, "wage": wage}
    for disease in ("flu", "hiv", "cold")
    for wage in (1, 2, None)
]
ONE_COLUMN = [{"disease": disease} for disease in ("flu", "hiv", "cold")]
CREATE = """
CREATE TEMPORARY TABLE history_entries (
    release_id bigint, relation bigint, person uuid, class bigint, value_id integer, until bigint,
    shown bigint, held bigint, place bigint, persons bigint
)
"""
STREAMS = 200


class Stream:
    """Releases of some relations, each of which shows some rows of some persons.

    ``relation`` has the first release of each one's relation; a person changes seldom, or in one
    release in four everybody does. Whole classes go, and persons wait and come back.
    """

    def __init__(self, seed):
        chance = self.chance = random.Random(seed)  # noqa: S311 - persons, not secrets
        self.several = chance.random() < 0.4
        self.relation, self.releases, first = {}, {}, {}
        shown, kinds = {}, {}
        for number in sorted(chance.sample(range(1, 30), chance.randint(2, 8))):
            name = chance.choice("aaab")
            relation = first.setdefault(name, number)
            kinds.setdefault(name, VALUES if chance.random() < 0.7 else ONE_COLUMN)
            rows = self.changed(shown.get(name, {}), kinds[name])
            shown[name] = self.releases[number] = rows
            self.relation[number] = relation
        self.k = {number: chance.randint(2, 4) for number in self.releases}
        self.l = {number: chance.randint(2, 3) for number in self.releases}

    def changed(self, rows, values):
        chance, share = self.chance, self.chance.choice((0.1, 0.1, 0.3, 1))
        gone = {chance.randint(1, 4)} if chance.random() < 0.3 else set()
        new = {}
        for person in range(12):
            own = rows.get(person, ())
            if not rows or chance.random() < share:
                most = 3 if self.several else 1
                number = chance.randint(0, most) if chance.random() < 0.5 else 1
                own = [(chance.randint(1, 4), chance.choice(values)) for _ in range(number)]
            own = [row for row in own if row[0] not in gone]
            if own:
                new[person] = sorted(own, key=repr)
        return new

    def policy(self, number):
        shown = {name for rows in self.releases[number].values() for _, v in rows for name in v}
        rules = [
            ColumnRule(name, Role.SENSITIVE if name in shown else Role.IDENTIFIER)
            for name in ("disease", "wage")
        ]
        diversity = ModelSpec("l-diversity", {"l": self.l[number], "columns": ("disease",)})
        models = (ModelSpec("k-anonymity", {"k": self.k[number]}), diversity)
        rules = (ColumnRule("id", Role.IDENTIFIER), ColumnRule("zip", Role.QUASI), *rules)
        return Policy(table=TABLE, columns=rules, models=models)

    def entries(self, value_ids):
        """Return what is remembered: the rows of each person when they changed."""
        sets, lists, found = {}, {}, []
        for relation in {*self.relation.values()}:
            own = [number for number in self.releases if self.relation[number] == relation]
            for person in range(12):
                last, course = (), []
                for number in own:
                    rows = tuple(self.releases[number].get(person, ()))
                    if rows != last:
                        course.append((number, rows))
                    last = rows
                ends = [*(number for number, _ in course[1:]), None][: len(course)]
                for (number, rows), until in zip(course, ends, strict=True):
                    of_rows = sorted((c, value_ids[json.dumps(v)]) for c, v in rows) or [(0, 0)]
                    shown, held = tuple(sorted({c for c, _ in of_rows})), tuple(of_rows)
                    numbers = (0, 0)
                    if rows:
                        numbers = (
                            sets.setdefault(shown, len(sets) + 1),
                            lists.setdefault(held, len(lists) + 1),
                        )
                    found += [
                        Entry(number, relation, person, *row, until, *numbers, place)
                        for place, row in enumerate(of_rows, 1)
                    ]
        return found


class Entry(NamedTuple):
    """What is remembered of a person in a release, or of several who are alike in all of them."""

    release: int
    relation: int
    person: int
    class_: int
    value_id: int
    until: int | None
    shown: int
    held: int
    place: int
    persons: int = 1


def alike(entries):
    """Return the entries with one person for all with the same ones, and who stands for whom."""
    courses = {}
    for entry in entries:
        courses.setdefault(entry.person, set()).add(entry._replace(person=0))
    stands_for = {
        person: min(other for other, own in courses.items() if own == course)
        for person, course in courses.items()
    }
    count = Counter(stands_for.values())
    return [e._replace(persons=count[e.person]) for e in entries if e.person in count], stands_for


@pytest.fixture
def session(database):
    """Return a session of a database that remembers the values of people."""
    with connect(database.settings) as session, session.transaction():
        for value in (*VALUES, *ONE_COLUMN):
            session.pg.execute(
                "INSERT INTO dbanon.history_value (table_schema, table_name, digest, value)"
                " VALUES ('public', 'people', sha256(%s::text::bytea), %s::jsonb)",
                (json.dumps(value), json.dumps(value)),
            )
        session.pg.execute(CREATE)
        yield session


def values_known(session):
    found = session.pg.execute("SELECT value_id, value FROM dbanon.history_value")
    return {
        json.dumps({name: value[name] for name in ("disease", "wage") if name in value}): n
        for n, value in found
    }


@pytest.mark.parametrize("part", exhaustive_after(1, range(4)))
def test_every_two_releases_are_compared_as_defined(session, part):
    value_ids = values_known(session)
    for seed in range(part * STREAMS, (part + 1) * STREAMS):
        stream = Stream(seed)
        session.pg.execute("TRUNCATE pg_temp.history_entries")
        entries, stands_for = stream.entries(value_ids), {person: person for person in range(12)}
        if not stream.several and seed % 2:
            entries, stands_for = alike(entries)
        with session.pg.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO pg_temp.history_entries"
                " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
                [e._replace(person=uuid.UUID(int=e.person)) for e in entries],
            )
        known = Memory(
            TABLE,
            {number: TableName("anon", str(one)) for number, one in stream.relation.items()},
            several=stream.several,
        )
        policies = {number: stream.policy(number) for number in stream.releases}
        compared = [
            *pairs(session, stream, known, policies),
            *values(session, stream, known, policies, stands_for=stands_for),
        ]
        assert [defined for defined, _ in compared] == [found for _, found in compared]


def pairs(session, stream, known, policies):
    """Yield every comparison with the newest release, as defined and as found."""
    newest = max(stream.releases)
    memory.rows(session, known, newest, cells.NOW)
    found = cells.against(session, known, {n: n for n in stream.releases}, policies)
    memory.drop(session, cells.NOW)
    now = stream.releases[newest]
    for number, before in stream.releases.items():
        k = max(stream.k[number], stream.k[newest])
        one = found[number]
        yield (
            histories.pair(before, now, k),
            (one.persons, one.in_both, one.smallest, one.below),
        )
        required = cells.required_of(policies[number], policies[newest])
        yield (
            [
                (column, l, *histories.exposure(before, now, column, l))
                for column, l in required.items()
            ],
            [(e.column, e.required, e.below, e.to_one) for e in one.exposures],
        )


def values(session, stream, known, policies, *, stands_for):
    """Yield what is counted of the diseases of every cell in every release, likewise.

    stands_for: the person that is in the entries for each.
    """
    memory.cells(session, cells.CELLS)
    rows = session.pg.execute(sql.SQL("SELECT person, cell FROM {}").format(cells.CELLS))
    of_entries = {person.int: cell for person, cell in rows}
    cell_of = {
        person: of_entries[other] for person, other in stands_for.items() if other in of_entries
    }
    found = cells.of_values(session, known, policies, ["wage"])
    memory.drop(session, cells.CELLS)
    for number, shown in stream.releases.items():
        sizes = histories.diversity(shown, cell_of, "disease")
        l = stream.l[number]
        (one,) = found[number]
        yield (
            (l, min(sizes, default=None), len(sizes), sum(size < l for size in sizes)),
            (one.required, one.achieved, one.classes, one.failing_classes),
        )
        if not stream.several:
            yield sum(len(own) for own in shown.values()), one.n_rows
