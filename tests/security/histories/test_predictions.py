"""An attacker predicts every refresh of a year, without an unpublished value: none can be inferred.

The demo's patients come and leave, change their values and have birthdays. The attacker knows who
is in the table, and in which class whom a release publishes. All rates and l, in some minutes:
``pytest -m "" tests/security/histories/test_predictions.py -k "not pg15"``.
"""

import gzip
import math
import random
from collections import Counter, defaultdict
from fractions import Fraction

import pytest
from selection import exhaustive_after

import dbanon
from dbanon import resources
from dbanon.domain.policy import ColumnRule, ModelSpec, Policy, Role

K, MONTHS, PATIENTS, FIRST = 5, 12, 900, 450
RATES = [(0.08, 3), (0.02, 2), (0.02, 3), (0.05, 2), (0.05, 3), (0.08, 2)]
COLUMNS = (
    "patient_id int, age int, sex text, sample_yr int, kappa numeric, lambda numeric, flc_grp int,"
    " creatinine numeric, mgus text, futime int, death text, chapter text"
)


def load(database):
    """Create a table of all patients, in a random order, and an empty one of those present."""
    with database.connect() as connection:
        connection.execute(f"CREATE TABLE everybody ({COLUMNS})")
        copy = "COPY everybody FROM STDIN WITH (FORMAT csv, HEADER)"
        with connection.cursor().copy(copy) as rows:
            rows.write(gzip.decompress(resources.data("patients.csv.gz").read_bytes()))
        connection.execute(
            "CREATE TABLE patients (id int PRIMARY KEY, note text, age int, sex text, chapter text)"
        )
    return [one for (one,) in database.execute("SELECT patient_id FROM everybody ORDER BY 1")]


def arrive(database, persons):
    database.execute(
        "INSERT INTO patients SELECT patient_id, patient_id, age, sex, chapter FROM everybody"
        " WHERE patient_id = ANY (%s)",
        (persons,),
    )


def publish(database, l):
    roles = {
        "id": Role.IDENTIFIER,
        "note": Role.INSENSITIVE,
        "age": Role.QUASI,
        "sex": Role.QUASI,
        "chapter": Role.SENSITIVE,
    }
    models = (ModelSpec("k-anonymity", {"k": K}), ModelSpec("l-diversity", {"l": l}))
    rules = tuple(ColumnRule(name, role) for name, role in roles.items())
    policy = Policy(dbanon.TableName("public", "patients"), rules, models, algorithm="mondrian")
    dbanon.set_policy("patients", policy, settings=database.settings)
    dbanon.publish("patients", settings=database.settings)


def released(database):
    """Return the class and the value of each published person."""
    shown = "SELECT note::int, age::text, sex, chapter FROM anon.patients"
    return {note: ((age, sex), chapter) for note, age, sex, chapter in database.execute(shown)}


def pool(release, l):
    """Return how many persons a pool needs.

    Fewer than l values once in a million times, and a hundred classes or a tenth of the table.
    """
    values = Counter(value for _, value in release.values())
    shares = [count / len(release) for count in values.values()]

    def fails(draws):
        ones = sum(share**draws for share in shares)
        if l == 2:
            return ones
        pairs = sum((a + b) ** draws for i, a in enumerate(shares) for b in shares[:i])
        return pairs - (len(shares) - 2) * ones

    usual = min(100 * K, len(release) // 10)
    return max(2 * K, usual, next(q for q in range(1, 10**4) if fails(q) <= 1e-6))


def predict(release, ever, present, l):
    """Return whom the next release publishes; ever: all who were published before."""
    members = defaultdict(set)
    for person, (label, _) in release.items():
        members[label].add(person)
    found = set()
    for own in members.values():
        gone, n = len(own - present), len(own)
        if gone < max(math.ceil(Fraction(3, 5) * n), n - K + 1):
            found |= own
    new = present - ever
    return found | new if len(new) >= pool(release, l) else found


def live(database, chance, present, rate):
    """Let people leave, get another value, and grow older."""
    gone = chance.sample(sorted(present), int(len(present) * rate))
    database.execute("DELETE FROM patients WHERE id = ANY (%s)", (gone,))
    left = sorted(present - {*gone})
    for one in chance.sample(left, len(left) // 20):
        value = "SELECT chapter FROM everybody ORDER BY md5(patient_id::text || %s) LIMIT 1"
        changed = f"UPDATE patients SET chapter = ({value}) WHERE id = %s"
        database.execute(changed, (str(chance.random()), one))
    aged = chance.sample(left, len(left) // 100)
    database.execute("UPDATE patients SET age = age + 1 WHERE id = ANY (%s)", (aged,))
    return {*left}


@pytest.mark.parametrize(("rate", "l"), exhaustive_after(1, RATES))
def test_every_refresh_of_a_year_follows_from_who_came_and_left(database, rate, l):
    chance = random.Random(f"{rate} {l}")  # noqa: S311 - people, not secrets
    everybody = chance.sample(load(database), PATIENTS)
    present, coming = {*everybody[:FIRST]}, everybody[FIRST:]
    arrive(database, [*present])
    publish(database, l)
    release = released(database)
    ever, decisions = {*release}, Counter()
    for month in range(MONTHS):
        present = live(database, chance, present, rate)
        new = coming[month::MONTHS]
        arrive(database, new)
        present |= {*new}
        expected = predict(release, ever, present, l)
        (told,) = dbanon.refresh("patients", settings=database.settings)
        release = released(database)
        assert expected == {*release}, month
        ever |= {*release}
        growth = told.growth
        decisions += Counter(withdrawn=growth.withdrawn, inserted=growth.inserted)
    assert decisions["inserted"]
    assert decisions["withdrawn"] or rate < 0.08
