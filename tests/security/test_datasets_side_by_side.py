"""Datasets beside other releases, and readers of what their tables are made of."""

from collections import Counter, defaultdict

import pytest
from data.schemas import health
from data.schemas.clinic import POLICIES, TABLES, store_policies
from data.schemas.loading import load
from psycopg import sql

import dbanon
from dbanon.formats import policies
from dbanon.formats.datasets import dataset_of

K = 5
CLINIC = dataset_of(TABLES)
KEYS = {"persons": "person_id", "encounters": "encounter_id", "conditions": "condition_id"}
KNOWN = """
SELECT s.person_id, r.group_id FROM public.{table} AS s JOIN {rows} AS r ON r.k1 = s.{key}
"""


@pytest.fixture
def clinic(database):
    """Load health records with a policy for each table."""
    load(database, health)
    store_policies(database)
    return database


@pytest.fixture
def seen(monkeypatch):
    """Return the persons of each class of whatever is published, by the number of the release."""
    from dbanon.actions.publication import steps

    found = {}

    def watch(module):
        build = module.build

        def watched(session, prepared, request, stages, **options):
            built = build(session, prepared, request, stages, **options)
            publication = built.publication
            statement = sql.SQL(KNOWN).format(
                table=sql.Identifier(publication.info.name.name),
                rows=publication.rows,
                key=sql.Identifier(KEYS[publication.info.name.name]),
            )
            found[publication.id] = session.pg.execute(statement).fetchall()
            return built

        monkeypatch.setattr(module, "build", watched)

    watch(steps)
    return found


def served(database):
    releases = dbanon.list_releases(settings=database.settings)
    return {release.relation.name: release for release in releases if release.served}


def fewest(database, seen):
    """Return how few persons are in the same classes of all that is served."""
    classes = defaultdict(set)
    for release in served(database).values():
        for person, group in seen[release.id]:
            classes[person].add((release.id, group))
    return min(Counter(map(frozenset, classes.values())).values())


def test_a_smaller_dataset_leaves_no_table_of_the_larger_one_beside_it(clinic, seen):
    """What is left of the larger one shows classes that the new proof knows nothing of."""
    dbanon.publish_dataset(CLINIC, k=K, settings=clinic.settings)
    assert fewest(clinic, seen) >= K
    clinic.execute("UPDATE public.persons SET race = 'white' WHERE person_id % 2 = 0")
    smaller = dataset_of(["persons", "conditions"])
    with pytest.raises(dbanon.ConfigError, match="encounters was published together with"):
        dbanon.publish_dataset(smaller, k=K, settings=clinic.settings)
    assert fewest(clinic, seen) >= K


@pytest.mark.exhaustive
def test_one_that_is_dropped_and_published_alone_is_not_beside_the_others(clinic, seen):
    dbanon.publish_dataset(CLINIC, k=K, settings=clinic.settings)
    clinic.execute("UPDATE public.persons SET race = 'white' WHERE person_id % 2 = 0")
    dbanon.drop_release(served(clinic)["persons"].id, settings=clinic.settings)
    with pytest.raises(dbanon.ConfigError, match="was published together with public"):
        dbanon.publish("persons", k=K, settings=clinic.settings)
    assert fewest(clinic, seen) >= K


def test_tables_of_one_name_do_not_replace_each_other(clinic):
    clinic.execute(
        "CREATE SCHEMA visits; CREATE VIEW visits.persons AS SELECT * FROM public.encounters"
    )
    policy = POLICIES["encounters"].replace("public.encounters", "visits.persons")
    policy = policies.parse('key = ["encounter_id"]\n' + policy)
    dbanon.set_policy("visits.persons", policy, settings=clinic.settings)
    both = dataset_of(["public.persons", "visits.persons"])
    with pytest.raises(dbanon.ConfigError, match="would both be published as anon"):
        dbanon.publish_dataset(both, k=K, settings=clinic.settings)
    assert served(clinic) == {}


@pytest.mark.exhaustive
def test_who_reads_the_persons_is_given_no_table_made_with_them(clinic):
    """anon.conditions shows columns of public.persons, as that of a view of a join does."""
    mole = clinic.role("mole_of_persons")
    clinic.execute("GRANT SELECT ON public.persons TO mole_of_persons")
    dbanon.publish_dataset(CLINIC, k=K, settings=clinic.settings)
    with pytest.raises(dbanon.NotPermitted, match=r"can read public\.persons"):
        dbanon.grant("conditions", [mole], settings=clinic.settings)


@pytest.mark.exhaustive
def test_who_has_been_given_a_table_made_with_the_persons_cannot_read_them(clinic):
    mole = clinic.role("mole_of_persons")
    dbanon.publish_dataset(CLINIC, k=K, settings=clinic.settings)
    dbanon.grant("conditions", [mole], settings=clinic.settings)
    clinic.execute("GRANT SELECT ON public.persons TO mole_of_persons")
    with pytest.raises(dbanon.NotPermitted, match=r"can read public\.persons"):
        dbanon.refresh("conditions", settings=clinic.settings)


@pytest.mark.exhaustive
def test_one_row_of_each_person_may_be_asked_to_be_diverse(clinic):
    store_policies(clinic, conditions="rows_per_subject = 1")
    dbanon.publish_dataset(CLINIC, k=3, l=2, settings=clinic.settings)
    assert len(served(clinic)) == len(TABLES)


@pytest.mark.exhaustive
def test_one_person_without_rows_does_not_keep_a_dataset_from_being_published(clinic):
    clinic.execute("DELETE FROM public.conditions")
    clinic.execute("DELETE FROM public.encounters WHERE person_id = 7")
    dataset = dataset_of(["persons", "encounters"])
    _, encounters = dbanon.publish_dataset(dataset, k=K, settings=clinic.settings)
    assert encounters.loss.n_suppressed < encounters.loss.n_rows / 10


@pytest.mark.exhaustive
def test_a_column_named_like_a_bound_of_a_shared_one_is_told_before_the_database_does(clinic):
    clinic.execute("ALTER TABLE public.conditions ADD COLUMN birth_date_min text DEFAULT '0'")
    bounds = POLICIES["persons"].replace(
        'birth_date.role = "quasi"', 'birth_date = { role = "quasi", recoding = "bounds" }'
    )
    more = POLICIES["conditions"] + 'birth_date_min.role = "insensitive"\n'
    for table, text in (("persons", bounds), ("conditions", more)):
        dbanon.set_policy(table, policies.parse(text), settings=clinic.settings)
    with pytest.raises(dbanon.PolicyError, match="birth_date_min"):
        dbanon.publish_dataset(CLINIC, k=K, settings=clinic.settings)


@pytest.mark.exhaustive
def test_persons_are_found_however_many_zeros_their_number_ends_with(clinic):
    """The key is read as it is written, the subject as it compares."""
    clinic.execute(
        "CREATE TABLE public.people AS"
        " SELECT *, person_id::numeric(12, 1) AS number FROM public.persons;"
        "ALTER TABLE public.people ADD PRIMARY KEY (number);"
        "CREATE TABLE public.findings AS"
        " SELECT *, person_id::numeric(12, 1) AS number FROM public.conditions;"
        "ALTER TABLE public.findings ADD PRIMARY KEY (condition_id), ALTER number SET NOT NULL"
    )
    people = POLICIES["persons"].replace("public.persons", "public.people")
    findings = POLICIES["conditions"].replace("public.conditions", "public.findings")
    findings = findings.replace('"person_id"', '"number"')
    for table, text in (("people", people), ("findings", findings)):
        dbanon.set_policy(table, policies.parse(text), settings=clinic.settings)
    dataset = dataset_of(["people", "findings"])
    _, release = dbanon.publish_dataset(dataset, k=K, settings=clinic.settings)
    assert release.loss.n_of_nobody == 0
