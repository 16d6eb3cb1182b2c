"""Tables of the same persons, read by somebody who has all rows of the source and joins them.

The reader is given more than that, the class of every row. Persons who are shown alike in all
tables, by their classes and by how many rows they have in each, cannot be told apart.
"""

from collections import Counter, defaultdict
from dataclasses import replace
from itertools import chain, combinations

import numpy as np
import pytest
from data.schemas import health
from data.schemas.clinic import QUASI, SHARED, SHOWN, TABLES, store_policies
from data.schemas.loading import load
from psycopg import sql

import dbanon
from dbanon.db import rights
from dbanon.domain.assignment import Assignment
from dbanon.domain.policy import GROUP
from dbanon.domain.release import CheckFailed
from dbanon.formats.datasets import dataset_of

K = 5
CLINIC = dataset_of(TABLES)
KEYS = {"persons": "person_id", "encounters": "encounter_id", "conditions": "condition_id"}
# Each published row of a table with its person, as the private tables have it.
KNOWN = """
SELECT s.person_id, {columns}
  FROM public.{table} AS s
  JOIN {rows} AS r ON r.k1 = s.{key}
  JOIN {groups} AS g USING (group_id)
"""

# Persons who are like those who are there, with all of their rows.
NEWCOMERS = {
    "persons": """
INSERT INTO public.persons
SELECT person_id + 1000, first_name, last_name, 'n' || ssn, birth_date, death_date, sex, race,
       marital_status, street, city, zip
  FROM public.persons
""",
    "encounters": """
INSERT INTO public.encounters
SELECT encounter_id + 10000, person_id + 1000, started, ended, encounter_class, total_cost
  FROM public.encounters
""",
    "conditions": """
INSERT INTO public.conditions
SELECT condition_id + 10000, encounter_id + 10000, person_id + 1000, icd_code, description
  FROM public.conditions
""",
}


def known(database, release, *, table, key, quasi, kept=()):
    """Return the published rows of a table: the person, and a value of each column by its name."""
    columns = [
        sql.SQL("g.{}::text").format(sql.Identifier(f"q{i}")) for i, _ in enumerate(quasi, 1)
    ]
    columns += [sql.SQL("s.{}::text").format(sql.Identifier(name)) for name in kept]
    rows = database.execute(
        sql.SQL(KNOWN).format(
            columns=sql.SQL(", ").join(columns),
            table=sql.Identifier(table),
            key=sql.Identifier(key),
            rows=sql.Identifier("dbanon_data", f"rows_{release.data_id}"),
            groups=sql.Identifier("dbanon_data", f"groups_{release.data_id}"),
        )
    )
    return [(row[0], dict(zip((*quasi, *kept), row[1:], strict=True))) for row in rows]


def published(database, **options):
    releases = dbanon.publish_dataset(
        CLINIC, k=K, keep_assignment=True, settings=database.settings, **options
    )
    found = {}
    for release in releases:
        table = release.relation.name
        found[table] = known(database, release, table=table, key=KEYS[table], quasi=QUASI[table])
    return found


def fewest(tables, *, numbers):
    """Return how few persons share all that is shown of them; numbers: rows of each count, too.

    tables: for each the published rows, and the columns that are looked at.
    """
    shown = defaultdict(Counter)
    for number, (rows, columns) in enumerate(tables):
        for person, values in rows:
            shown[person][number, *(values[column] for column in columns)] += 1
    alike = Counter(
        frozenset(seen.items()) if numbers else frozenset(seen) for seen in shown.values()
    )
    return min(alike.values())


def subsets(items):
    return list(chain.from_iterable(combinations(items, n) for n in range(1, len(items) + 1)))


@pytest.mark.exhaustive
def test_two_views_by_themselves_leave_persons_alone(database):
    """Each is proved, and those who are in the same classes of both are fewer than k."""
    load(database, health)
    found = []
    for view, table, key in (
        ("visits", "encounters", KEYS["encounters"]),
        ("findings", "conditions", KEYS["conditions"]),
    ):
        own = [name for name in SHOWN[table] if name not in SHARED]
        columns = sql.SQL(", ").join(map(sql.Identifier, own))
        database.execute(
            sql.SQL(
                "CREATE VIEW public.{} AS SELECT t.{}, person_id, birth_date, sex, race, zip, {}"
                " FROM public.persons JOIN public.{} AS t USING (person_id)"
            ).format(sql.Identifier(view), sql.Identifier(key), columns, sql.Identifier(table))
        )
        rules = {name: {"role": "quasi"} for name in SHARED}
        rules |= {own[-1]: {"role": "sensitive"}}
        policy = policy_of(view, key, rules)
        dbanon.set_policy(view, policy, settings=database.settings)
        release = dbanon.publish(view, k=K, keep_assignment=True, settings=database.settings)
        found.append((known(database, release, table=view, key=key, quasi=SHARED), SHARED))
    assert all(fewest([one], numbers=False) >= K for one in found)
    assert fewest(found, numbers=False) < K


def policy_of(view, key, rules):
    from dbanon.formats import policies

    columns = "\n".join(f'[columns.{name}]\nrole = "{r["role"]}"' for name, r in rules.items())
    return policies.parse(
        f'table = "public.{view}"\nkey = ["{key}"]\nsubject = "person_id"\nrest = "drop"\n{columns}'
    )


def test_no_columns_of_any_tables_lead_to_fewer_than_k_persons(database):
    load(database, health)
    store_policies(database)
    rows = published(database)
    for tables in subsets(TABLES):
        every = [(rows[table], QUASI[table]) for table in tables]
        assert fewest(every, numbers=False) >= K
    for table in TABLES:
        for columns in subsets(QUASI[table]):
            others = [(rows[other], QUASI[other]) for other in TABLES if other != table]
            assert fewest([(rows[table], columns), *others], numbers=False) >= K
    assert fewest([(rows[table], QUASI[table]) for table in TABLES], numbers=True) < K


@pytest.mark.parametrize("most", [GROUP, 2, 1])
def test_nor_do_numbers_of_rows_where_the_policies_say_so(database, most):
    load(database, health)
    line = f"rows_per_subject = {most!r}"
    store_policies(database, encounters=line, conditions=line)
    rows = published(database)
    for tables in subsets(TABLES):
        assert fewest([(rows[table], QUASI[table]) for table in tables], numbers=True) >= K
    times = [Counter(person for person, _ in rows[table]) for table in TABLES[1:]]
    assert all(max(found.values()) <= (most if most != GROUP else 99) for found in times)


def test_sensitive_values_stay_diverse_among_those_who_are_alike_everywhere(database):
    load(database, health)
    store_policies(database)
    releases = dbanon.publish_dataset(
        CLINIC, k=K, l=3, keep_assignment=True, settings=database.settings
    )
    cells = defaultdict(list)
    rows = {}
    for release in releases:
        table = release.relation.name
        sensitive = SHOWN[table][-1] if table != "persons" else "marital_status"
        rows[table] = known(
            database, release, table=table, key=KEYS[table], quasi=QUASI[table], kept=[sensitive]
        )
        for person, values in rows[table]:
            shared = tuple(values[name] for name in QUASI[table])
            cells[person].append((table, shared))
    cell = {person: frozenset(seen) for person, seen in cells.items()}
    assert min(Counter(cell.values()).values()) >= K
    for table in TABLES:
        sensitive = SHOWN[table][-1] if table != "persons" else "marital_status"
        values = defaultdict(set)
        for person, shown in rows[table]:
            values[cell[person]].add(shown[sensitive])
        assert min(map(len, values.values())) >= 3


def test_values_of_one_table_are_masked_as_its_policy_says(database):
    load(database, health)
    steps = "{columns = ['icd_code'], method = 'pram', keep = 0.5}"
    steps += ", {columns = ['icd_code'], method = 'permutation'}"
    store_policies(database, conditions=f"masking = [{steps}]")
    dbanon.publish_dataset(CLINIC, k=K, settings=database.settings)
    shown = "SELECT icd_code::text FROM anon.conditions ORDER BY 1"
    before = database.execute(shown)
    assert before != database.execute("SELECT icd_code::text FROM public.conditions ORDER BY 1")
    dbanon.publish_dataset(CLINIC, k=K, settings=database.settings)
    assert before == database.execute(shown)
    ((words,),) = database.execute(
        "SELECT col_description(attrelid, attnum) FROM pg_attribute"
        " WHERE attrelid = 'anon.conditions'::regclass AND attname = 'icd_code'"
    )
    assert ("masked by pram" in words, "masked by permutation" in words) == (True, True)


@pytest.fixture(params=range(len(TABLES)), ids=TABLES)
def moved(request, monkeypatch):
    """Put the rows of somebody into another class of one table, which still has k persons.

    Is a list of whether the class that was left has k persons, too.
    """
    from dbanon.actions.preparation import prepare

    search, part, spare = prepare.solve_linked, request.param, []

    def move(persons, tables, **options):
        outcomes = search(persons, tables, **options)
        group = outcomes[part].assignment.group.copy()
        subjects = tables[part - 1].subjects if part else np.arange(len(group))
        pairs = np.unique(np.column_stack([group, subjects])[group >= 0], axis=0)
        sizes = np.bincount(pairs[:, 0])
        largest = int(sizes.argmax())
        spare.append(sizes[largest] > K)
        somebody = pairs[pairs[:, 0] == largest][0, 1]
        group[subjects == somebody] = (largest + 1) % len(sizes)
        assignment = Assignment(group, outcomes[part].assignment.n_groups)
        outcomes[part] = replace(outcomes[part], assignment=assignment)
        return outcomes

    with monkeypatch.context() as patch:
        patch.setattr(prepare, "solve_linked", move)
        yield spare


def require_alone(failed, spare):
    """Require that somebody was found who is like k others in each table and like nobody in all."""
    assert [True] == spare
    by_itself = [r for r in failed.value.report.results if r.column == "person_id"]
    together = [r for r in failed.value.report.results if r.column == "person_id by all tables"]
    assert min(r.achieved for r in by_itself) >= K
    assert min(r.achieved for r in together) == 1


def test_the_database_refuses_persons_who_are_alike_in_each_table_and_not_in_all(database, moved):
    load(database, health)
    store_policies(database)
    with pytest.raises(CheckFailed) as failed:
        dbanon.publish_dataset(CLINIC, k=K, settings=database.settings)
    require_alone(failed, moved)
    assert dbanon.list_releases(settings=database.settings) == []
    assert database.execute("SELECT to_regclass('anon.persons')") == [(None,)]


def publish_clinic(database):
    load(database, health)
    store_policies(database)
    dbanon.publish_dataset(CLINIC, k=K, settings=database.settings)


@pytest.fixture
def clinic(copied):
    return copied(publish_clinic)


def test_nor_may_such_persons_come_with_a_refresh(clinic, moved):
    for table in TABLES:
        clinic.execute(NEWCOMERS[table])
    before = clinic.execute("SELECT count(*) FROM anon.persons")
    with pytest.raises(CheckFailed) as failed:
        dbanon.refresh("persons", settings=clinic.settings)
    require_alone(failed, moved)
    assert before == clinic.execute("SELECT count(*) FROM anon.persons")


@pytest.mark.exhaustive
def test_doctor_asks_each_question_of_reach_once(clinic, monkeypatch):
    asked, original = [], vars(rights)["_ask"]

    def rows(session, name, where):
        if name == "reach.private":
            asked.append((where["published"], where["source"]))
        return original(session, name, where)

    monkeypatch.setattr(rights, "_ask", rows)
    dbanon.doctor(settings=clinic.settings)
    assert [] == asked  # nobody reads what has no readers
    clinic.execute("GRANT SELECT ON ALL TABLES IN SCHEMA anon TO PUBLIC")
    dbanon.doctor(settings=clinic.settings)
    assert Counter(dict.fromkeys(asked, 1)) == Counter(asked)
    assert 9 == len(asked)
