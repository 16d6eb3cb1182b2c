"""Health records: persons, their encounters, and the conditions found at them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from data.schemas import people

if TYPE_CHECKING:
    from random import Random

PERSONS = 400
DDL = """
CREATE TABLE public.persons (
    person_id integer PRIMARY KEY, first_name text NOT NULL, last_name text NOT NULL,
    ssn text NOT NULL UNIQUE, birth_date date NOT NULL, death_date date, sex text NOT NULL,
    race text, marital_status text, street text, city text, zip text);
CREATE TABLE public.encounters (
    encounter_id integer PRIMARY KEY,
    person_id integer NOT NULL REFERENCES public.persons,
    started timestamp with time zone NOT NULL, ended timestamp with time zone,
    encounter_class text NOT NULL, total_cost numeric(10, 2));
CREATE TABLE public.conditions (
    condition_id integer PRIMARY KEY,
    encounter_id integer NOT NULL REFERENCES public.encounters,
    person_id integer NOT NULL REFERENCES public.persons,
    icd_code text NOT NULL, description text NOT NULL);
"""
# What a steward puts together to publish: a row for each condition found at an encounter.
JOIN = """
SELECT c.condition_id, e.person_id, p.first_name, p.last_name, p.ssn, p.birth_date, p.sex, p.race,
       p.zip, e.started, e.encounter_class, c.icd_code
  FROM persons AS p
  JOIN encounters AS e USING (person_id)
  JOIN conditions AS c USING (encounter_id)
"""
CONDITIONS = {
    "E11.9": "Type 2 diabetes mellitus without complications",
    "F32.9": "Major depressive disorder, single episode",
    "I10": "Essential hypertension",
    "J20.9": "Acute bronchitis",
    "J45.909": "Unspecified asthma",
    "K21.9": "Gastro-esophageal reflux disease",
    "M54.5": "Low back pain",
    "N39.0": "Urinary tract infection",
    "S93.4": "Sprain of ankle",
}
TOWNS = {"021": "Boston", "014": "Fitchburg", "018": "Lowell", "026": "Barnstable"}


def tables(source: Random) -> dict[str, list[tuple]]:
    persons = [_person(source, number) for number in range(1, PERSONS + 1)]
    encounters, conditions = [], []
    for person in persons:
        for _ in range(min(12, 1 + int(source.expovariate(0.5)))):
            number = len(encounters) + 1
            encounters.append((number, person[0], *_visit(source)))
            for code in source.sample(sorted(CONDITIONS), source.choice([0, 1, 1, 1, 2])):
                conditions.append((len(conditions) + 1, number, person[0], code, CONDITIONS[code]))
    return {"persons": persons, "encounters": encounters, "conditions": conditions}


def _person(source: Random, number: int) -> tuple:
    born = people.day(source, 1928, 2019)
    died = people.day(source, 2024, 2024) if source.random() < 0.04 else None
    place = source.choice(sorted(TOWNS))
    return (
        number,
        people.first_name(source),
        people.last_name(source),
        f"{number:03}-{people.ssn(source)[4:]}",
        born,
        died,
        source.choice("FM"),
        source.choices(["white", "black", "asian", "native"], [70, 15, 12, 3])[0],
        source.choice(["M", "S", None]),
        f"{source.randint(1, 99)} Elm Street",
        TOWNS[place],
        f"{place}{source.randint(1, 12):02}",
    )


def _visit(source: Random) -> tuple:
    started = datetime.fromisoformat(f"{people.day(source, 2019, 2023)}T08:00:00+00:00")
    started += timedelta(seconds=source.randrange(10 * 3600))
    kind = source.choices(["ambulatory", "emergency", "inpatient", "wellness"], [5, 1, 1, 3])[0]
    return started, started + timedelta(minutes=15), kind, round(source.lognormvariate(5, 1), 2)
