"""The attacks of the literature on the tables of the literature, weak and as we publish them."""

import pytest
from goldens import DISEASE_TREE, DISEASES, NAMES, PUBLISHED, SALARIES, SKEWED
from tables import HOSPITAL_A, rows_proved

import dbanon
from dbanon.domain.policy import K_ANONYMITY, L_DIVERSITY, ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.table import TableName
from dbanon.formats import taxonomies

# Machanavajjhala et al. (TKDD 2007): what a public register knows of each patient of table A.
REGISTER = [
    (13053, 28, "Russian"),
    (13068, 29, "American"),
    (13068, 21, "Japanese"),
    (13053, 23, "American"),
    (14853, 50, "Indian"),
    (14853, 55, "Russian"),
    (14850, 47, "American"),
    (14850, 49, "American"),
    (13053, 31, "American"),
    (13053, 37, "Indian"),
    (13068, 36, "Japanese"),
    (13068, 35, "American"),
]
CONDITIONS = [condition for *_, condition in HOSPITAL_A]
TABLE = TableName("public", "patients")
K3, K4 = (ModelSpec(K_ANONYMITY, {"k": k}) for k in (3, 4))


def publish(database, columns, rows, *models, taxonomy=None):
    """Create a table of quasi-identifiers and one last, sensitive, column; publish it."""
    *quasi, (sensitive, _) = columns.items()
    declared = ", ".join(f"{name} {type_}" for name, type_ in columns.items())
    database.execute(f"CREATE TABLE public.patients (id int PRIMARY KEY, {declared})")
    with database.connect().cursor().copy("COPY public.patients FROM STDIN") as copy:
        for i, row in enumerate(rows):
            copy.write_row((i, *row))
    rules = (
        ColumnRule("id", Role.IDENTIFIER),
        *(ColumnRule(name, Role.QUASI) for name, _ in quasi),
        ColumnRule(sensitive, Role.SENSITIVE, taxonomy=taxonomy),
    )
    dbanon.set_policy(TABLE, Policy(TABLE, rules, models), settings=database.settings)
    assert rows_proved(dbanon.publish(TABLE, settings=database.settings)) == len(rows)


def publish_hospital(database, *models):
    columns = {"zip": "int", "age": "int", "nationality": "text", "condition": "text"}
    rows = [(*known, condition) for known, condition in zip(REGISTER, CONDITIONS, strict=True)]
    publish(database, columns, rows, K4, *models)


def candidates(database, person):
    """Return the conditions of all published rows that may be that person's."""
    found = database.execute(
        "SELECT condition FROM anon.patients"
        " WHERE zip @> %s::int AND age @> %s::int AND nationality IN (%s, '*')",
        person,
    )
    return [row[0] for row in found]


def published_classes(database, column):
    found = database.execute(f"SELECT array_agg({column}) FROM anon.patients GROUP BY age")
    return [row[0] for row in found]


def test_linking_to_a_register_finds_nobody(database):
    rows = list(zip(REGISTER, CONDITIONS, strict=True))
    weak = [[condition for known, condition in rows if known == person] for person in REGISTER]
    assert [[condition] for condition in CONDITIONS] == weak

    publish_hospital(database)
    for person, condition in rows:
        found = candidates(database, person)
        assert len(found) >= 4
        assert condition in found


def test_no_class_is_of_one_mind(database):
    thirties = {condition for zip_, age, condition in HOSPITAL_A if (zip_, age) == ("130**", "3*")}
    assert thirties == {NAMES["c"]}

    publish_hospital(database, ModelSpec(L_DIVERSITY, {"l": 3}))
    for person in REGISTER:
        assert len(set(candidates(database, person))) >= 3


@pytest.mark.exhaustive
def test_ruling_out_one_condition_leaves_two(database):
    young = [condition for zip_, age, condition in HOSPITAL_A if (zip_, age) == ("130**", "<30")]
    assert {NAMES["v"]} == set(young) - {NAMES["h"]}  # heart disease is rare among Japanese

    publish_hospital(database, ModelSpec(L_DIVERSITY, {"l": 3}))
    for person in REGISTER:
        found = set(candidates(database, person))
        for condition in NAMES.values():
            assert len(found - {condition}) >= 2


@pytest.mark.exhaustive
def test_membership_of_a_class_makes_nothing_much_likelier(database):
    # 1 % are positive; in a class that is 2-diverse, three of four may be.
    positive, negative = SKEWED[2]
    assert (positive + negative, 2) == (4, len({"positive": positive, "negative": negative}))
    assert positive / 4 > 70 * 0.01

    rows = [(i // 4, "positive" if i in {40, 41, 42, 43} else "negative") for i in range(400)]
    close = ModelSpec("t-closeness", {"t": 0.05})
    publish(database, {"age": "int", "test": "text"}, rows, K4, close)
    shares = [found.count("positive") / len(found) for found in published_classes(database, "test")]
    assert len(shares) > 1
    assert max(shares) <= 0.01 + 0.05


def spread(values):
    return max(values) - min(values)


def organ(disease):
    """Return the label two levels below the root: what the disease is a disease of."""
    node = DISEASE_TREE.labels.index(disease)
    while DISEASE_TREE.depth[node] > 2:
        node = DISEASE_TREE.parent[node]
    return DISEASE_TREE.labels[node]


@pytest.mark.exhaustive
def test_no_class_of_different_salaries_is_one_of_low_ones(database):
    weak = [SALARIES[row - 1] for row in PUBLISHED[0]]
    assert (3, 2) == (len(set(weak)), spread(weak))  # 3-diverse: 3, 4 and 5 of 3 to 11 thousand

    ages = [29, 22, 27, 43, 52, 47, 30, 36, 32]
    close = ModelSpec("t-closeness", {"t": 1 / 6, "distance": "ordered"})
    rows = list(zip(ages, SALARIES, strict=True))
    publish(
        database, {"age": "int", "salary": "int"}, rows, ModelSpec(K_ANONYMITY, {"k": 3}), close
    )
    for found in published_classes(database, "salary"):
        assert spread(found) >= 5


@pytest.mark.exhaustive
def test_no_class_of_different_diseases_is_one_of_the_stomach(database, tmp_path):
    weak = [DISEASES[row - 1] for row in PUBLISHED[0]]
    assert (3, {"stomach"}) == (len(set(weak)), set(map(organ, weak)))

    file = tmp_path / "diseases.csv"
    file.write_text(taxonomies.write_csv(DISEASE_TREE), encoding="utf-8")
    dbanon.import_taxonomy("diseases", file, settings=database.settings)
    ages = [29, 22, 27, 43, 52, 47, 30, 36, 32]
    close = ModelSpec("t-closeness", {"t": 0.3, "distance": "hierarchical"})
    rows = list(zip(ages, DISEASES, strict=True))
    publish(database, {"age": "int", "disease": "text"}, rows, K3, close, taxonomy="diseases")
    for found in published_classes(database, "disease"):
        assert len(set(map(organ, found))) >= 2


@pytest.mark.exhaustive
@pytest.mark.parametrize("models", [(), (ModelSpec(L_DIVERSITY, {"l": 3}),)])
def test_the_ledger_says_whether_sensitive_values_had_a_say(database, models):
    publish_hospital(database, *models)
    (release,) = dbanon.list_releases(settings=database.settings)
    assert bool(models) is release.loss.sensitive_aware
