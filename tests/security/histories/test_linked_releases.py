"""Attacks by whoever keeps several releases of several tables of the same persons, and joins them.

The attacker is given more: of each person that was ever published the class in every table of every
release, and all values of each class. Who was always shown alike cannot be told apart.
"""

import random
from collections import Counter, defaultdict

import pytest
from psycopg import sql
from selection import at_depth, exhaustive_after

import dbanon
from dbanon.domain.release import CheckFailed, Composition
from dbanon.formats import policies
from dbanon.formats.datasets import dataset_of

K, L, FIRST, PERSONS, REFRESHES = 4, 2, 120, 300, at_depth(8)
TABLES = ("people", "visits", "findings")
KEYS = {"people": "id", "visits": "visit", "findings": "finding"}
SENSITIVE = {"people": "insurance", "visits": "cost", "findings": "code", "stays": "cost"}
QUASI = {
    "people": "age, zone",
    "visits": "age, zone, year",
    "findings": "age, zone",
    "stays": "year, age",
}
POLICIES = {
    "people": """
table = "public.people"
[columns]
id.role = "identifier"
age.role = "quasi"
zone.role = "quasi"
insurance.role = "sensitive"
""",
    "visits": """
table = "public.visits"
subject = "person"
[columns]
visit.role = "identifier"
person.role = "identifier"
year.role = "quasi"
cost.role = "sensitive"
""",
    "findings": """
table = "public.findings"
subject = "person"
[columns]
finding.role = "identifier"
person.role = "identifier"
code.role = "sensitive"
""",
}
SCHEMA = """
CREATE TABLE public.people (id int PRIMARY KEY, age int, zone int, insurance text);
CREATE TABLE public.visits (visit serial PRIMARY KEY, person int NOT NULL, year int, cost int);
CREATE TABLE public.findings (finding serial PRIMARY KEY, person int NOT NULL, code text)
"""
ARRIVE = """
INSERT INTO public.people
SELECT p, 20 + p * 7 %% 61, p * 13 %% 9, (ARRAY['A', 'B', 'C'])[1 + p %% 3]
  FROM unnest(%(persons)s::int[]) AS p;
INSERT INTO public.visits (person, year, cost)
SELECT p, 2015 + (p * 5 + i) %% 8, (p * 31 + i * 17) %% 90
  FROM unnest(%(persons)s::int[]) AS p CROSS JOIN generate_series(0, p %% 3) AS i;
INSERT INTO public.findings (person, code)
SELECT p, (ARRAY['flu', 'gout', 'mumps', 'cold'])[1 + (p * p + i) %% 4]
  FROM unnest(%(persons)s::int[]) AS p CROSS JOIN generate_series(1, p %% 4) AS i
"""
KNOWN = """
SELECT s.{person}, s.{sensitive}::text, ARRAY[{shown}]
  FROM {source} AS s
  JOIN {rows} AS r ON {join}
  JOIN {groups} AS g USING (group_id)
"""


class Attacker:
    """Somebody who has all releases, and knows who formed which class with which values.

    classes: for every table and release the class of each person; values: what was published of
    each person in a table; counts: whether it is known how many rows each person has.
    """

    def __init__(self, database):
        self.database, self.classes, self.values, self._born = database, [], {}, {}
        self.tables, self.counts = TABLES, False

    def watch(self, build):
        def watched(session, prepared, request, stages, **options):
            built = build(session, prepared, request, stages, **options)
            one = built.publication
            slots = {
                "person": sql.Identifier(one.policy.subject),
                "sensitive": sql.Identifier(SENSITIVE[one.view.name]),
                "shown": sql.SQL(", ").join(
                    sql.SQL("g.{}::text").format(sql.Identifier(f"q{i}"))
                    for i, _ in enumerate(one.recodings, 1)
                ),
                "source": one.reading,
                "rows": one.rows,
                "groups": one.groups,
                "join": one.join,
            }
            found = session.pg.execute(sql.SQL(KNOWN).format(**slots)).fetchall()
            self._born[one.view.name] = (one.withdrawn is None, found)
            return built

        return watched

    def look(self):
        """Keep what is published by now."""
        now = {}
        for table in self.tables:
            is_anew, born = self._born.pop(table, (False, []))
            columns = ", ".join(f"{name}::text" for name in QUASI[table].split(", "))
            shown = Counter(
                {
                    tuple(class_): n
                    for class_, n in self.database.execute(
                        f"SELECT ARRAY[{columns}], count(*) FROM anon.{table} GROUP BY 1"
                    )
                }
            )
            before = {} if is_anew or not self.classes else self.classes[-1][table]
            stays = {person: class_ for person, class_ in before.items() if class_ in shown}
            fresh = {person: tuple(class_) for person, _, class_ in born}
            assert not stays.keys() & fresh.keys()
            for person in fresh:
                values = Counter(value for one, value, _ in born if one == person)
                self.values[len(self.classes), table, person] = values
            for person in stays:
                former = self.values[len(self.classes) - 1, table, person]
                self.values[len(self.classes), table, person] = former
            now[table] = stays | fresh
            rows = Counter()
            for person, class_ in now[table].items():
                rows[class_] += self.values[len(self.classes), table, person].total()
            assert shown == rows
        self.classes.append(now)

    def shown(self):
        """Return how many rows are published by now."""
        last = len(self.classes) - 1
        return sum(n.total() for (number, *_), n in self.values.items() if number == last)

    def cells(self):
        """Return the persons who were shown alike in all tables of all releases."""
        course = defaultdict(list)
        for number, release in enumerate(self.classes):
            for table, classes in release.items():
                for person, class_ in classes.items():
                    rows = self.values[number, table, person].total() if self.counts else 0
                    course[person].append((number, table, class_, rows))
        found = defaultdict(set)
        for person, classes in course.items():
            found[tuple(classes)].add(person)
        return found

    def worst(self):
        """Return how few persons a cell has, and how few values any table shows of it."""
        persons, values = [], []
        for classes, members in self.cells().items():
            persons.append(len(members))
            for number, table, *_ in classes:
                own = (self.values[number, table, person] for person in members)
                values.append(len(set().union(*own)))
        return min(persons), min(values)


@pytest.fixture
def attacker(database, monkeypatch):
    from dbanon.actions.publication import incremental, steps

    found = Attacker(database)
    for module in (incremental, steps):
        monkeypatch.setattr(module, "build", found.watch(module.build))
    return found


@pytest.fixture
def clinic(database):
    """Return a clinic whose tables are published together."""
    database.execute(SCHEMA)
    arrive(database, range(1, FIRST + 1))
    for table, text in POLICIES.items():
        dbanon.set_policy(table, policies.parse(text), settings=database.settings)
    dbanon.publish_dataset(dataset_of(TABLES), k=K, l=L, settings=database.settings)
    return database


@pytest.fixture
def seen(attacker, clinic):
    attacker.look()
    return attacker


def arrive(database, persons):
    for statement in ARRIVE.split(";"):
        database.execute(statement, {"persons": list(persons)})


def leave(database, persons):
    for table, key in (("people", "id"), ("visits", "person"), ("findings", "person")):
        database.execute(f"DELETE FROM public.{table} WHERE {key} = ANY (%s)", (list(persons),))


def refresh(database, **options):
    return dbanon.refresh("people", settings=database.settings, **options)


def live(database, chance, coming):
    """Let a month pass: persons come and go, have visits and findings, and lose some."""
    arrive(database, [coming.pop() for _ in range(min(len(coming), chance.randint(0, 20)))])
    present = [row[0] for row in database.execute("SELECT id FROM public.people ORDER BY 1")]
    gone = chance.sample(present, min(len(present) // 4, chance.randint(0, 12)))
    if chance.random() < 0.2:  # a whole neighbourhood leaves
        zone = chance.randint(0, 8)
        gone += [p for p in present if p * 13 % 9 == zone]
    leave(database, gone)
    some = chance.sample(present, 15)
    database.execute(
        "INSERT INTO public.visits (person, year, cost)"
        " SELECT p, 2023, 500 + p FROM unnest(%s::int[]) AS p JOIN public.people ON id = p",
        (some[:8],),
    )
    database.execute("DELETE FROM public.findings WHERE person = ANY (%s)", (some[8:10],))
    database.execute("UPDATE public.findings SET code = 'x' WHERE person = ANY (%s)", (some[10:],))
    database.execute("UPDATE public.people SET age = age + 1 WHERE id = ANY (%s)", (some,))


@pytest.mark.exhaustive
def test_grouped_anew_each_time_the_releases_tell_persons_apart(seen, clinic):
    live(clinic, random.Random(1), list(range(FIRST + 1, PERSONS)))  # noqa: S311
    with pytest.raises(CheckFailed, match="fail their models"):
        refresh(clinic, new_series=True)
    assert (True, True) == tuple(n >= least for n, least in zip(seen.worst(), (K, L), strict=True))
    refresh(clinic, new_series=True, recipients_changed=True)
    seen.look()
    persons, values = seen.worst()
    assert persons < K
    assert values < L


@pytest.mark.exhaustive
def test_tables_may_have_a_sensitive_column_of_one_name_and_of_several_types(clinic):
    for table, name in (("people", "insurance"), ("visits", "cost"), ("findings", "code")):
        clinic.execute(f"ALTER TABLE public.{table} RENAME {name} TO outcome")
        text = POLICIES[table].replace(name, "outcome")
        dbanon.set_policy(table, policies.parse(text), settings=clinic.settings)
    fresh = {"new_series": True, "recipients_changed": True}
    dbanon.publish_dataset(dataset_of(TABLES), k=K, l=L, settings=clinic.settings, **fresh)
    persons, *_ = ARRIVE.split(";")
    clinic.execute(persons, {"persons": list(range(FIRST + 1, FIRST + 41))})
    people, *_ = refresh(clinic)
    assert people.growth.inserted > 0
    for table in TABLES:
        found = dbanon.check_history(f"anon.{table}", settings=clinic.settings)
        assert all(one.holds for one in found)


def test_what_tables_reveal_together_is_unknown_if_one_has_no_stored_membership(clinic):
    clinic.execute(
        "DELETE FROM dbanon.history_member AS m USING dbanon.history AS h"
        " WHERE h.release_id = m.release_id AND h.table_name = 'visits'"
    )
    of_all = [
        one for one in dbanon.history("people", settings=clinic.settings).compositions if one.beside
    ]
    assert [True] == [bool(one.unknown) for one in of_all]


def test_a_first_release_of_every_table_is_counted_together(seen, clinic):
    *_, together = dbanon.check_history("anon.visits", settings=clinic.settings)
    persons, _ = seen.worst()
    achieved = [one.result.achieved for one in together.results if not one.result.column]
    assert (FIRST, [persons]) == (together.persons, achieved)
    clinic.execute("DELETE FROM dbanon.history_member")
    with pytest.raises(CheckFailed):
        dbanon.check_history("anon.visits", settings=clinic.settings)


STREAMS = range(200)


@pytest.mark.parametrize("seed", exhaustive_after(1, STREAMS))
def test_nobody_is_told_apart_by_any_number_of_releases(seen, clinic, seed):
    chance = random.Random(seed)  # noqa: S311 - people, not secrets
    coming = list(range(PERSONS, FIRST, -1))
    for _ in range(REFRESHES):
        live(clinic, chance, coming)
        try:
            found = refresh(clinic)
        except dbanon.Unsatisfiable as error:
            assert "would show nobody" in str(error)  # noqa: PT017 - it is no other
            break
        assert [None] * len(TABLES) == [one.regrouped for one in found]
        seen.look()
        persons, values = seen.worst()
        assert persons >= K
        assert values >= L
    assert len(seen.classes) > 2
    *_, together = dbanon.check_history("anon.visits", settings=clinic.settings)
    assert (2, True) == (len(together.beside), together.holds)
    assert persons == min(r.result.achieved for r in together.results if not r.result.column)


@pytest.fixture
def stays(attacker, database):
    """Return a database in which persons have several rows of one table."""
    database.execute(SCHEMA)
    arrive(database, range(1, FIRST + 1))
    database.execute(
        "CREATE VIEW public.stays AS SELECT visit, person, year, cost, age"
        "  FROM public.visits JOIN public.people ON id = person"
    )
    policy = POLICIES["visits"].replace("public.visits", "public.stays")
    policy = f'key = ["visit"]\n{policy}age.role = "quasi"\n'
    dbanon.set_policy("stays", policies.parse(policy), settings=database.settings)
    dbanon.publish("stays", k=K, l=L, settings=database.settings)
    attacker.tables = ("stays",)
    attacker.look()
    return attacker


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", exhaustive_after(1, STREAMS))
def test_nor_are_persons_of_several_rows_of_one_table(stays, database, seed):
    chance = random.Random(seed)  # noqa: S311 - people, not secrets
    coming = list(range(PERSONS, FIRST, -1))
    for _ in range(REFRESHES):
        live(database, chance, coming)
        (found,) = dbanon.refresh("stays", settings=database.settings)
        assert found.regrouped is None
        stays.look()
        persons, values = stays.worst()
        assert persons >= K
        assert values >= L
        ((source,),) = database.execute("SELECT count(*) FROM public.stays")
        growth = found.growth
        assert growth.shown == stays.shown()
        proved = {str(one.column) for one in found.release.checks.results}
        assert not any(column.endswith("by all tables") for column in proved)
        waiting = growth.waiting + growth.withheld + growth.later
        assert source == growth.kept + growth.inserted + waiting


@pytest.mark.exhaustive
@pytest.mark.parametrize("most", exhaustive_after(1, ["2", '"group"', "1"]))
def test_nor_by_numbers_of_rows_where_the_policies_say_so(attacker, database, most):
    database.execute(SCHEMA)
    arrive(database, range(1, FIRST + 1))
    for table, text in POLICIES.items():
        line = "" if table == "people" else f"rows_per_subject = {most}\n"
        dbanon.set_policy(table, policies.parse(line + text), settings=database.settings)
    dbanon.publish_dataset(dataset_of(TABLES), k=K, l=L, settings=database.settings)
    attacker.counts = True
    attacker.look()
    coming, chance = list(range(PERSONS, FIRST, -1)), random.Random(most)  # noqa: S311
    for _ in range(3):
        live(database, chance, coming)
        found = refresh(database)
        assert [None] * len(TABLES) == [one.regrouped for one in found]
        attacker.look()
        persons, values = attacker.worst()
        assert persons >= K
        assert values >= L


@pytest.fixture
def eight(database):
    """Return eight persons whom only the years of their visits tell apart at first."""
    database.execute(SCHEMA)
    for table, text in POLICIES.items():
        policy = policies.parse(text.replace('"sensitive"', '"quasi"'))
        dbanon.set_policy(table, policy, settings=database.settings)
    database.execute(
        "INSERT INTO public.people SELECT p, 30, 1, 'A' FROM generate_series(1, 8) AS p;"
        "INSERT INTO public.visits (person, year, cost)"
        " SELECT p, 2000 + 10 * (p / 5), 1 FROM generate_series(1, 8) AS p;"
        "INSERT INTO public.findings (person, code) SELECT p, 'x' FROM generate_series(1, 8) AS p"
    )
    dbanon.publish_dataset(dataset_of(TABLES), k=4, settings=database.settings)
    database.execute(
        "UPDATE public.visits SET year = 2000;"
        "UPDATE public.findings SET code = 'y' WHERE person % 2 = 0"
    )
    return database


def test_releases_that_are_safe_table_by_table_are_refused_for_who_joins_them(eight):
    with pytest.raises(CheckFailed, match="4 more groups are smaller than k"):
        refresh(eight, new_series=True)


@pytest.mark.exhaustive
def test_table_by_table_nothing_is_wrong_with_them(eight, monkeypatch):
    from dbanon.actions.publication import steps

    nothing = Composition(dbanon.TableName("public", "people"), 0, (), (), (), ())
    monkeypatch.setattr(steps, "compare_linked", lambda *_, **_given: nothing)
    found = refresh(eight, new_series=True)
    assert [True] * len(TABLES) == [one.release.composition.holds for one in found]
    with pytest.raises(CheckFailed, match="fail their models"):
        dbanon.check_history("anon.people", settings=eight.settings)


@pytest.mark.exhaustive
def test_a_deadline_takes_leavers_out_of_all_tables(database):
    database.execute(SCHEMA)
    arrive(database, range(1, FIRST + 1))
    for table, text in POLICIES.items():
        line = 'erase_within = "30d"\n' if table == "people" else ""
        dbanon.set_policy(table, policies.parse(line + text), settings=database.settings)
    dbanon.publish_dataset(dataset_of(TABLES), k=K, l=L, settings=database.settings)
    leave(database, [9])
    waiting = refresh(database)
    assert [False] * len(TABLES) == [one.changed for one in waiting]
    assert all(one.growth.deferred for one in waiting if one.relation.name != "findings")
    database.execute("UPDATE dbanon.history_leaver SET missed_at = missed_at - interval '31 days'")
    gone = refresh(database)
    assert [True] * len(TABLES) == [one.changed for one in gone]
    assert [0] * len(TABLES) == [one.growth.deferred for one in gone]


@pytest.mark.exhaustive
def test_persons_who_are_gone_may_leave_rows_behind(clinic):
    before = clinic.execute("SELECT count(*) FROM anon.visits")
    clinic.execute("DELETE FROM public.people WHERE id = 17")
    ((rows,),) = clinic.execute("SELECT count(*) FROM public.visits WHERE person = 17")
    persons, visits, _ = refresh(clinic)
    assert (False, 1, rows) == (persons.changed, persons.growth.deferred, visits.growth.deferred)
    assert before == clinic.execute("SELECT count(*) FROM anon.visits")


@pytest.mark.exhaustive
def test_persons_are_shown_no_longer_than_the_policy_of_any_table_promises(clinic):
    policy = policies.parse(f'erase_within = "30d"\n{POLICIES["visits"]}')
    dbanon.set_policy("visits", policy, settings=clinic.settings)
    leave(clinic, [17])
    due = [one.growth.due is not None for one in refresh(clinic, if_changed=True)]
    assert due[0]
    clinic.execute(
        "UPDATE dbanon.history_leaver SET missed_at = missed_at - make_interval(days => 31)"
    )
    told = dbanon.history("people", settings=clinic.settings).retained
    assert (1, 1) == (told[0].rows, told[0].overdue)
    persons, *_ = refresh(clinic, if_changed=True)
    assert (True, 0, 1) == (persons.changed, persons.growth.deferred, persons.growth.left)


def test_tables_do_not_grow_with_persons_whom_that_of_the_persons_never_showed(clinic):
    clinic.execute("""
        UPDATE dbanon.history_member
           SET persons = persons[2:], classes = classes[2:], value_ids = value_ids[2:]
         WHERE release_id = (SELECT max(release_id) FROM dbanon.release
                              WHERE table_name = 'people')
    """)
    before = clinic.execute("SELECT count(*) FROM anon.visits")
    arrive(clinic, range(FIRST + 1, 2 * FIRST + 1))
    with pytest.raises(CheckFailed, match="its tables do not remember their persons alike"):
        refresh(clinic)
    assert before == clinic.execute("SELECT count(*) FROM anon.visits")
