"""A dataset of health records: its policies, and what is published of each table."""

from data.schemas import health
from data.schemas.loading import load

import dbanon

TABLES = ("persons", "encounters", "conditions")
DATASET = """
persons = "persons"
tables = ["encounters", "conditions"]
"""
_PERSONS = """
table = "public.persons"
rest = "drop"
algorithm = "mondrian"
[columns]
birth_date.role = "quasi"
sex.role = "quasi"
race.role = "quasi"
zip.role = "quasi"
marital_status.role = "sensitive"
"""
_ENCOUNTERS = """
table = "public.encounters"
subject = "person_id"
rest = "drop"
algorithm = "mondrian"
[columns]
started = { role = "quasi", at_least = "year" }
encounter_class.role = "quasi"
total_cost.role = "sensitive"
"""
_CONDITIONS = """
table = "public.conditions"
subject = "person_id"
rest = "drop"
algorithm = "mondrian"
[columns]
icd_code.role = "sensitive"
"""
POLICIES = dict(zip(TABLES, (_PERSONS, _ENCOUNTERS, _CONDITIONS), strict=True))
SHARED = ("birth_date", "sex", "race", "zip")
QUASI = {
    "persons": SHARED,
    "encounters": (*SHARED, "started", "encounter_class"),
    "conditions": SHARED,
}
SHOWN = {
    "persons": ("birth_date", "sex", "race", "marital_status", "zip"),
    "encounters": (*QUASI["encounters"], "total_cost"),
    "conditions": (*SHARED, "icd_code"),
}


def make_clinic(database, folder):
    """Load health records with a policy for each table; return the file of the dataset."""
    fill_clinic(database)
    return write_dataset(folder)


def fill_clinic(database):
    """Load health records with a policy for each table."""
    load(database, health)
    store_policies(database)


def write_dataset(folder):
    """Write the file of the dataset."""
    file = folder / "clinic.toml"
    file.write_text(DATASET)
    return file


def store_policies(database, **more):
    """Store the policy of each table; more: a line to add to that of a table."""
    from dbanon.formats import policies

    for table, text in POLICIES.items():
        policy = policies.parse(f"{more.get(table, '')}\n{text}")
        dbanon.set_policy(table, policy, settings=database.settings)
