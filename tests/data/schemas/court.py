"""A table of a court, 53 columns wide: who was screened before trial, and what came of them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from data.schemas import people

if TYPE_CHECKING:
    from datetime import date
    from random import Random

PERSONS = 900
DDL = """
CREATE TABLE public.screenings (
    screening_id integer PRIMARY KEY, person_id integer NOT NULL, case_number text NOT NULL,
    name text NOT NULL, first text NOT NULL, last text NOT NULL, middle text, dob date NOT NULL,
    age integer NOT NULL, age_cat text NOT NULL, sex text NOT NULL, race text NOT NULL,
    marital_status text, language text, zip text, phone text,
    agency text NOT NULL, reason text, custody_status text, legal_status text,
    screening_date date NOT NULL, supervision_level integer, assessor_id integer,
    juv_fel_count integer, juv_misd_count integer, juv_other_count integer, priors_count integer,
    decile_score integer, score_text text, v_decile_score integer, v_score_text text,
    raw_score double precision, recommended_text text,
    c_jail_in timestamp, c_jail_out timestamp, c_days_in_jail integer, c_offense_date date,
    c_arrest_date date, c_charge_degree text, c_charge_desc text, c_days_from_screening integer,
    r_case_number text, r_charge_degree text, r_charge_desc text, r_offense_date date,
    r_jail_in timestamp, r_jail_out timestamp, r_days_from_arrest integer,
    is_recid boolean, is_violent_recid boolean, two_year_recid boolean, in_custody date,
    out_custody date);
"""
LEVELS = {1: "Low", 5: "Medium", 8: "High"}
CHARGES = ("assault", "battery", "burglary", "driving while suspended", "fraud", "petty theft")
CHARGES += ("possession", "resisting", "trespass")


def tables(source: Random) -> dict[str, list[tuple]]:
    rows = []
    for number in range(1, PERSONS + 1):
        person = _person(source)
        for _ in range(source.choices([1, 2, 3], [6, 3, 1])[0]):
            rows.append((len(rows) + 1, number, *_screening(source, len(rows) + 1, *person)))
    return {"screenings": rows}


def _person(source: Random) -> tuple[tuple, date, tuple]:
    first, last = people.first_name(source), people.last_name(source)
    middle = source.choice([None, *"ABCDE"])
    seen = (
        source.choices(["Male", "Female"], [4, 1])[0],
        source.choices(["African-American", "Caucasian", "Hispanic", "Other"], [5, 4, 1, 1])[0],
        source.choice(["Single", "Married", "Divorced"]),
        source.choices(["English", "Spanish"], [9, 1])[0],
        f"330{source.randint(10, 30)}",
        people.phone(source),
    )
    return (f"{first} {last}".lower(), first, last, middle), people.day(source, 1950, 1994), seen


def _screening(source: Random, number: int, names: tuple, born: date, seen: tuple) -> list:
    screened = people.day(source, 2013, 2014)
    age = (screened - born).days // 365
    group = "Less than 25" if age < 25 else "25 - 45" if age <= 45 else "Greater than 45"
    agency = source.choice(["Pretrial", "Probation"]), "Intake", "Jail Inmate", "Pretrial"
    score, violent = source.randint(1, 10), source.randint(1, 10)
    return [
        *(f"{screened:%y}{number:06}CF10A", *names, born, age, group, *seen, *agency, screened),
        *(source.randint(1, 4), source.randint(1, 40)),
        *(int(source.expovariate(2)) for _ in range(3)),
        *(int(source.expovariate(0.4)), score, _level(score), violent, _level(violent)),
        *(round(source.gauss(0, 1), 2), _level(score)),
        *_charge(source, screened),
        *_recidivism(source, screened, number),
    ]


def _level(score: int) -> str:
    return LEVELS[max(least for least in LEVELS if least <= score)]


def _charge(source: Random, screened: date) -> tuple:
    jailed, days = _moment(source, screened - timedelta(1)), source.randint(0, 40)
    offense = screened - timedelta(source.randint(1, 30))
    charge = source.choice("FM"), source.choice(CHARGES)
    left = jailed + timedelta(days=days, minutes=90)
    return jailed, left, days, offense, offense, *charge, (screened - offense).days


def _recidivism(source: Random, screened: date, number: int) -> tuple:
    custody = screened + timedelta(1), screened + timedelta(source.randint(2, 90))
    if source.random() < 0.55:
        return *[None] * 7, False, False, False, *custody
    offense = screened + timedelta(source.randint(30, 1000))
    jailed = _moment(source, offense)
    charge = source.choice("FM"), source.choice(CHARGES)
    jail = jailed, jailed + timedelta(days=source.randint(1, 60)), source.randint(0, 3)
    soon = (offense - screened).days <= 730
    violent = source.random() < 0.2
    return f"{offense:%y}{number:06}CF20A", *charge, offense, *jail, True, violent, soon, *custody


def _moment(source: Random, day: date) -> datetime:
    return datetime.fromisoformat(f"{day}T00:00:00") + timedelta(seconds=source.randrange(86_400))
