"""HIPAA Safe Harbor by the policy of the guide, on generated health records."""

import random
from datetime import date, timedelta

import pytest
from pages import page
from tables import rows_proved

import dbanon
from dbanon.formats import policies

GUIDE = page("docs/guides/safe-harbor.md")
# HHS, Guidance Regarding Methods for De-identification (2012): census of 2000; and that of 2010.
RESTRICTED = set(
    "036 059 063 102 203 556 692 790 821 823 830 831 878 879 884 890 893".split()  # noqa: SIM905
    + "036 059 102 203 205 369 556 692 821 823 878 879 884 893".split()  # noqa: SIM905
)
PLACES = ["021", "100", "606", "941", "331", "770"]
DIAGNOSES = ["I10", "E11.9", "J45.909", "F32.9", "N39.0"]


def record(source, number):
    age = source.choice([source.randint(0, 89), source.randint(60, 104)])
    admitted = date(2019, 1, 1) + timedelta(source.randrange(5 * 365))
    place = source.choice([*PLACES * 10, *sorted(RESTRICTED)])
    return (
        number,
        f"Person {number}",
        f"{source.randrange(10**9):09}",
        f"person{number}@example.org",
        f"555-{source.randrange(10**4):04}",
        f"{source.randint(1, 99)} Elm Street",
        "Springfield",
        admitted - timedelta(age * 365 + 100),
        age,
        source.choice("FM"),
        f"{place}{source.randrange(100):02}",
        admitted,
        admitted + timedelta(source.randint(1, 90)),
        source.choice(DIAGNOSES),
    )


def make_records(database):
    database.execute(
        """
        CREATE TABLE public.health_records (
            record_id integer PRIMARY KEY, name text, ssn text, email text, phone text, street text,
            city text, born date, age integer, sex text, zip text, admitted date, discharged date,
            diagnosis text)
        """
    )
    source = random.Random(45)  # noqa: S311 - people, not secrets
    with (
        database.connect() as connection,
        connection.cursor().copy("COPY public.health_records FROM STDIN") as copy,
    ):
        for number in range(1200):
            copy.write_row(record(source, number))
    (text,) = GUIDE.blocks("toml")
    dbanon.set_policy("health_records", policies.parse(text), settings=database.settings)


@pytest.fixture
def records(copied):
    return copied(make_records)


@pytest.mark.exhaustive
@pytest.mark.parametrize("algorithm", ["mondrian", "auto"])
def test_the_policy_of_the_guide_keeps_safe_harbor(records, algorithm):
    release = dbanon.publish("health_records", algorithm=algorithm, settings=records.settings)
    assert rows_proved(release) == 1200
    shown = records.execute(
        "SELECT attname FROM pg_attribute WHERE attrelid = 'anon.health_records'::regclass"
        " AND attnum > 0 ORDER BY attnum"
    )
    kept = ["age", "sex", "zip", "admitted", "discharged", "diagnosis"]
    assert sorted(kept) == sorted(name for (name,) in shown)
    (check,) = GUIDE.blocks("sql")
    assert [(0,)] == records.execute(check)
    ((old, within),) = records.execute(
        """
        SELECT count(*) FILTER (WHERE upper_inf(age)),
               count(*) FILTER (WHERE to_char(lower(discharged), 'MM-DD') = '01-01'
                                  AND to_char(upper(discharged), 'MM-DD') = '01-01')
          FROM anon.health_records
        """
    )
    assert (True, 1200) == (old > 0, within)
    labels = {label for (label,) in records.execute("SELECT DISTINCT zip FROM anon.health_records")}
    assert {label[:3] for label in labels} & RESTRICTED == set()
    assert labels & {f"{place}*" for place in PLACES}


def test_few_people_are_published_as_000(records):
    """With records of these places alone, nothing is coarser than what the rule asks."""
    records.execute(
        "DELETE FROM public.health_records WHERE substr(zip, 1, 3) <> ALL (%s)",
        (sorted(RESTRICTED),),
    )
    dbanon.publish("health_records", algorithm="mondrian", settings=records.settings)
    assert [("000*",)] == records.execute("SELECT DISTINCT zip FROM anon.health_records")


def test_the_list_of_the_guide_is_that_of_both_censuses(records):
    policy = dbanon.load_policy("health_records", settings=records.settings)
    (rule,) = [rule for rule in policy.columns if rule.column == "zip"]
    assert set(rule.pooled) == RESTRICTED
