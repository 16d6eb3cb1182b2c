"""Joins with several rows of a person, read by somebody who has all rows of the source.

The reader is given more than that, the class of every row. Who has to find it by the values of a
person finds at least the rows and persons of that class, and perhaps those of others.
"""

import json
import sys
from itertools import chain, combinations

import pytest
from data.schemas import health
from data.schemas.loading import load
from psycopg import sql

import dbanon
from dbanon.cli import main
from dbanon.domain.policy_warning import Code

K = 5
QUASI = ("birth_date", "sex", "race", "zip")
POLICY = f"""
table = "public.clinic"
key = ["condition_id"]
rest = "drop"
algorithm = "mondrian"
models = {{ k = {K}, l = 2 }}
[columns]
birth_date.role = "quasi"
sex.role = "quasi"
race.role = "quasi"
zip.role = "quasi"
icd_code.role = "sensitive"
"""
SUBJECT = 'subject = "person_id"\n'
# What differs from visit to visit.
VISITS = ("started", "encounter_class")
OF_VISITS = "".join(f'{name}.role = "quasi"\n' for name in VISITS)
# Each row of the source as it is published, with the person and how many published rows they have.
KNOWN = """
CREATE TABLE public.known AS
SELECT s.person_id, {classes}, {values}, s.icd_code, count(*) OVER (PARTITION BY person_id) AS times
  FROM public.clinic AS s
  JOIN {rows} AS r ON r.k1 = s.condition_id
  JOIN {groups} AS g USING (group_id)
"""
# The fewest persons who have any published combination of some columns.
FEWEST = """
SELECT min(n) FROM (SELECT count(DISTINCT person_id) AS n FROM public.known GROUP BY {}) AS c
"""


@pytest.fixture
def run(database, monkeypatch, capsys):
    """Run the command line on health records and the view that joins them."""
    load(database, health)
    dbanon.inspect_query(health.JOIN, create_view="public.clinic", settings=database.settings)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["dbanon", *words, "--dsn", database.dsn])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code or 0, *capsys.readouterr()

    return run


@pytest.fixture
def store(run, tmp_path):
    def store(text, *options):
        file = tmp_path / "policy.toml"
        file.write_text(text)
        return run("policy", "set", "clinic", "--file", str(file), *options)

    return store


def linked(database, release, quasi=QUASI):
    """Link every row of the source with the class that it is published in."""
    classes = [
        sql.SQL("g.{} AS {}").format(sql.Identifier(f"q{i}"), sql.Identifier(name))
        for i, name in enumerate(quasi, 1)
    ]
    values = [
        sql.SQL("s.{} AS {}").format(sql.Identifier(name), sql.Identifier(f"own_{name}"))
        for name in quasi
    ]
    database.execute("DROP TABLE IF EXISTS public.known")
    database.execute(
        sql.SQL(KNOWN).format(
            classes=sql.SQL(", ").join(classes),
            values=sql.SQL(", ").join(values),
            rows=sql.Identifier("dbanon_data", f"rows_{release['data_id']}"),
            groups=sql.Identifier("dbanon_data", f"groups_{release['data_id']}"),
        )
    )
    columns = sql.SQL(", ").join(map(sql.Identifier, [*quasi, "icd_code"]))
    both = sql.SQL(
        "SELECT count(*) FROM (SELECT {0} FROM public.known EXCEPT ALL SELECT {0} FROM anon.clinic"
        " UNION ALL (SELECT {0} FROM anon.clinic EXCEPT ALL SELECT {0} FROM public.known)) AS d"
    )
    assert database.execute(both.format(columns)) == [(0,)]


def fewest(database, columns):
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    return database.execute(sql.SQL(FEWEST).format(names))[0][0]


def subsets(columns):
    return chain.from_iterable(combinations(columns, n) for n in range(1, len(columns) + 1))


def published(run, *options):
    code, out, err = run("publish", "clinic", "--keep-assignment", "--json", *options)
    assert code == 0, err
    return json.loads(out), err


@pytest.mark.exhaustive
def test_without_a_subject_classes_are_single_persons_and_that_is_warned_of(run, store, database):
    figure = "1,020 rows, 372 persons by column person_id"
    code, _, err = store(POLICY, "--strict")
    assert (code, figure in err, f"[{Code.NO_SUBJECT}]" in err) == (1, True, True)
    code, _, err = store(POLICY)
    assert (code, figure in err) == (0, True)
    code, _, err = run("publish", "clinic", "--strict")
    assert (code, figure in err, f"[{Code.NO_SUBJECT}]" in err) == (1, True, True)
    assert dbanon.list_releases(settings=database.settings) == []
    release, err = published(run)
    assert figure in err
    linked(database, release)
    assert fewest(database, QUASI) == 1


@pytest.mark.exhaustive
def test_with_a_subject_the_number_of_rows_still_tells_persons_apart(run, store, database):
    store(SUBJECT + POLICY, "--strict")
    release, _ = published(run, "--strict")
    linked(database, release)
    assert [c for c in subsets(QUASI) if fewest(database, c) < K] == []
    assert fewest(database, [*QUASI, "times"]) == 1


@pytest.mark.exhaustive
@pytest.mark.parametrize("most", ["group", "2", "1"])
def test_no_columns_and_no_number_of_rows_lead_to_fewer_than_k_persons(run, store, database, most):
    store(SUBJECT + POLICY, "--strict")
    release, _ = published(run, "--strict", "--rows-per-subject", most)
    linked(database, release)
    known = [c for c in subsets([*QUASI, "times"]) if fewest(database, c) < K]
    assert known == []


# Rows that their class does not hold of, which would rule somebody out.
RULED_OUT = """
SELECT count(*)
  FROM public.known
 WHERE NOT own_birth_date <@ birth_date
    OR NOT own_started <@ started
    OR sex NOT IN (own_sex, '*')
    OR race NOT IN (own_race, '*')
    OR zip NOT IN (own_zip, '*')
    OR encounter_class NOT IN (own_encounter_class, '*')
"""


@pytest.mark.exhaustive
def test_who_knows_all_visits_of_a_person_is_left_with_k_persons(run, store, database):
    quasi = (*QUASI, *VISITS)
    store(SUBJECT + POLICY + OF_VISITS, "--strict")
    release, _ = published(run, "--strict", "--rows-per-subject", "group")
    linked(database, release, quasi)
    assert [c for c in subsets([*quasi, "times"]) if fewest(database, c) < K] == []
    assert database.execute(RULED_OUT) == [(0,)]
    classes = "SELECT max(n) FROM (SELECT count(DISTINCT ({})) AS n FROM public.known"
    classes += " GROUP BY person_id) AS p"
    names = sql.SQL(", ").join(map(sql.Identifier, quasi))
    assert database.execute(sql.SQL(classes).format(names)) == [(1,)]


def test_values_that_others_know_are_quasi_identifiers_and_then_lead_nowhere_either(
    run, store, database
):
    """Nothing is published as it is: all columns together lead to k persons."""
    known = POLICY.replace('icd_code.role = "sensitive"', 'icd_code.role = "quasi"')
    store(SUBJECT + known.replace(", l = 2", ""), "--strict")
    release, _ = published(run, "--strict", "--rows-per-subject", "1")
    everything = [
        rule["column"] for rule in release["policy"]["columns"] if rule["role"] == "quasi"
    ]
    assert set(everything) == {*QUASI, "icd_code"}
    classes = "SELECT min(n) FROM (SELECT count(*) AS n FROM anon.clinic GROUP BY {}) AS c"
    for columns in subsets(everything):
        names = sql.SQL(", ").join(map(sql.Identifier, columns))
        ((rows,),) = database.execute(sql.SQL(classes).format(names))
        assert rows >= K  # one row is one person here
    assert release["loss"]["n_rows"] - release["loss"]["n_suppressed"] == 372
