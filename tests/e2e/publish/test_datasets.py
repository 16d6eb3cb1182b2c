"""Several tables of the same persons, published together."""

import json

import pytest
from data.schemas.clinic import DATASET, POLICIES, SHOWN, TABLES, fill_clinic, write_dataset
from psycopg import sql

import dbanon
from dbanon.domain.release import Verdict
from dbanon.formats.datasets import dataset_of

K = 5
COLUMNS = """
SELECT attname FROM pg_attribute
 WHERE attrelid = to_regclass(%s) AND attnum > 0 ORDER BY attnum
"""


def publish_clinic(database):
    fill_clinic(database)
    dbanon.publish_dataset(dataset_of(TABLES), k=K, settings=database.settings)


@pytest.fixture
def database(copied, request):
    return copied(publish_clinic if "published" in request.fixturenames else fill_clinic)


@pytest.fixture
def clinic(tmp_path):
    """Return the file of a dataset that can be published."""
    return write_dataset(tmp_path)


@pytest.fixture
def published(clinic):
    """Return the file of a dataset that is published."""
    return clinic


def ids(database):
    return {name: release.id for name, release in served(database).items()}


def served(database):
    releases = dbanon.list_releases(settings=database.settings)
    return {release.relation.name: release for release in releases if release.served}


def counted(database, table):
    return database.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(*table)))[0][0]


@pytest.mark.exhaustive
def test_persons_and_their_tables_are_published_by_one_partition(run, database, clinic):
    printed = run("publish", "--dataset", clinic, "--k", K, "--l", 2).out
    releases = served(database)
    assert set(releases) == set(TABLES)
    for table, release in releases.items():
        assert f"of public.{table} is served as anon.{table}" in printed
        assert release.checks.verdict is Verdict.PASSED
        together = [r for r in release.checks.results if r.column == "person_id by all tables"]
        assert [(r.model, r.required, r.achieved >= K) for r in together] == [
            ("k-anonymity", K, True)
        ]
        shown = counted(database, ("anon", table)) + release.loss.n_suppressed
        assert shown == release.loss.n_rows == counted(database, ("public", table))
        columns = tuple(name for (name,) in database.execute(COLUMNS, (f"anon.{table}",)))
        assert columns == SHOWN[table]
    assert "passed" in run("check", "--all").out


@pytest.mark.exhaustive
def test_all_tables_show_the_same_values_of_a_class(run, database, published):
    shared = sql.SQL(", ").join(map(sql.Identifier, SHOWN["conditions"][:4]))
    strangers = sql.SQL("SELECT {0} FROM anon.{1} EXCEPT SELECT {0} FROM anon.persons")
    for table in TABLES[1:]:
        assert database.execute(strangers.format(shared, sql.Identifier(table))) == []


@pytest.mark.exhaustive
def test_json_holds_every_release(run, clinic):
    found = json.loads(run("publish", "--dataset", clinic, "--k", K, "--json").out)
    assert [release["relation"] for release in found] == [f"anon.{table}" for table in TABLES]
    assert {tuple(release["dataset"]) for release in found} == {
        tuple(f"public.{table}" for table in TABLES)
    }


@pytest.mark.exhaustive
def test_a_plan_costs_what_the_publication_does(run, database, clinic):
    planned = json.loads(run("plan", "--dataset", clinic, "--k", K, "--json").out)
    assert [plan["relation"] for plan in planned] == [f"anon.{table}" for table in TABLES]
    assert served(database) == {}
    done = json.loads(run("publish", "--dataset", clinic, "--k", K, "--json").out)
    assert [plan["loss"] for plan in planned] == [release["loss"] for release in done]
    shown = run("plan", "--dataset", clinic, "--k", K).out
    assert shown.count("all (NCP)") == len(TABLES)
    told = run("plan", "--dataset", clinic, "--compare", code=1).err
    assert "--compare is about one policy" in told
    told = run("plan", "--dataset", clinic, "--html", "p.html", code=1).err
    assert "dbanon plan TABLE --html FILE" in " ".join(told.split())


@pytest.mark.exhaustive
def test_a_dry_run_serves_nothing(run, database, clinic):
    assert "rolled back" in run("publish", "--dataset", clinic, "--k", K, "--dry-run").out
    assert served(database) == {}


@pytest.mark.exhaustive
def test_a_table_is_published_alone_once_no_other_of_its_dataset_is_served(
    run, database, published
):
    refused = run("publish", "encounters", "--k", K, code=1).err
    assert "was published together with public.encounters" in refused
    assert "publish --dataset" in refused
    for table in ("persons", "conditions"):
        run("release", "drop", served(database)[table].id, "--yes")
    run("publish", "encounters", "--k", K)
    assert served(database)["encounters"].dataset == ()


def test_one_that_fails_leaves_all_as_they_were(run, database, published):
    before = {table: release.id for table, release in served(database).items()}
    failed = run("publish", "--dataset", published, "--k", 500, code=1).err
    assert "fewer than k" in failed or "do not meet" in failed
    assert {table: release.id for table, release in served(database).items()} == before


def test_rows_of_nobody_are_left_out_and_counted(run, database, clinic):
    database.execute(
        "CREATE VIEW public.elders AS SELECT * FROM public.persons WHERE birth_date < '1980-01-01'"
    )
    text = POLICIES["persons"].replace("public.persons", "public.elders")
    text = 'key = ["person_id"]\n' + text
    clinic.write_text(DATASET.replace('"persons"', '"elders"'))
    (clinic.parent / "elders.toml").write_text(text)
    run("policy", "set", "elders", "--file", clinic.parent / "elders.toml")
    run("publish", "--dataset", clinic, "--k", K)
    of_elders = "SELECT count(*) FROM public.encounters JOIN public.elders USING (person_id)"
    ((expected,),) = database.execute(of_elders)
    release = served(database)["encounters"]
    assert 0 < expected < counted(database, ("public", "encounters"))
    assert counted(database, ("anon", "encounters")) + release.loss.n_suppressed == expected
    assert release.loss.n_of_nobody == counted(database, ("public", "encounters")) - expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "persons: is missing"),
        ('persons = "persons"\ntables = []\n', "tables: must be a list of strings"),
        ('persons = "persons"\ntables = ["persons"]\n', "names persons twice"),
        ('persons = "persons"\ntables = ["public.persons"]\n', "names public.persons twice"),
        ('persons = "persons"\ntable = ["encounters"]\n', "did you mean tables?"),
        ("persons = [", "not valid TOML"),
        ('persons = "persons"\ntables = ["nowhere"]\n', "nowhere"),
        ('persons = "encounters"\ntables = ["persons"]\n', "has a subject of its own"),
    ],
)
def test_a_file_that_is_wrong_says_where(run, database, clinic, text, why):
    clinic.write_text(text)
    assert why in run("publish", "--dataset", clinic, "--k", K, code=1).err
    assert served(database) == {}


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--name", "x"), "--name is about one table"),
        (("--subject", "person_id"), "--subject is about one table"),
        (("--as", "view"), "a live view cannot keep persons alike"),
        (("--model", "t-closeness:t=0.5"), "looks beyond the classes of one table"),
    ],
)
def test_options_of_one_table_are_refused(run, clinic, options, why):
    assert why in run("publish", "--dataset", clinic, "--k", K, *options, code=1).err


def test_either_a_table_or_a_dataset_is_published(run, clinic):
    assert "--dataset FILE" in run("publish", "--k", K, code=2).err
    assert "--dataset FILE" in run("publish", "persons", "--dataset", clinic, code=2).err


def test_a_table_without_quasi_identifiers_needs_its_persons(run, clinic):
    assert "--dataset FILE" in run("publish", "conditions", "--k", K, code=1).err


def test_a_column_of_both_tables_is_named(run, clinic, database):
    database.execute("ALTER TABLE public.conditions ADD COLUMN zip text DEFAULT '0'")
    both = POLICIES["conditions"] + 'zip.role = "insensitive"\n'
    (clinic.parent / "both.toml").write_text(both)
    run("policy", "set", "conditions", "--file", clinic.parent / "both.toml")
    failed = run("publish", "--dataset", clinic, "--k", K, code=1).err
    assert "both have a column zip to publish" in failed


@pytest.mark.exhaustive
def test_a_refresh_of_one_table_is_one_of_all(run, database, published):
    before = served(database)
    assert "unchanged" in run("refresh", "encounters", "--if-changed").out
    assert served(database) == before
    copy_persons(database, 60)
    printed = run("refresh", "encounters", "--if-changed").out
    assert printed.count("refreshed") == len(TABLES)
    after = served(database)
    assert all(after[table].id > before[table].id for table in TABLES)
    assert {release.dataset for release in after.values()} == {before["persons"].dataset}
    assert run("refresh", "--all", "--if-changed").out.count(": unchanged") == len(TABLES)


def copy_persons(database, number):
    """Let persons come who are like the first ones, rows and all."""
    for table, key in (("persons", None), ("encounters", "encounter_id"), ("conditions", None)):
        own = f"'{key or 'condition_id'}', {key or 'condition_id'} + 100000"
        own = "'ssn', 'x' || ssn" if table == "persons" else own
        database.execute(
            f"INSERT INTO public.{table}"
            f" SELECT (jsonb_populate_record(t, jsonb_build_object({own},"
            f" 'person_id', person_id + 1000))).* FROM public.{table} AS t WHERE person_id <= %s",
            (number,),
        )


@pytest.mark.exhaustive
def test_rows_of_persons_who_stay_are_shown_as_they_were(run, database, published):
    before, shown = ids(database), conditions(database)
    database.execute(
        "DELETE FROM public.conditions WHERE condition_id = 1;"
        "UPDATE public.conditions SET icd_code = 'X' WHERE condition_id IN (2, 3);"
        "INSERT INTO public.conditions"
        " SELECT 100000 + condition_id, encounter_id, person_id, 'Y', ''"
        "  FROM public.conditions WHERE condition_id < 6"
    )
    printed = run("refresh", "conditions").out
    assert printed.count(": unchanged") == len(TABLES)
    assert "published although deleted" in printed or "with former values" in printed
    assert "inserted for published persons, unpublished" in printed
    assert (before, shown) == (ids(database), conditions(database))
    assert run("refresh", "conditions", "--if-changed").out.count(": unchanged") == len(TABLES)


def conditions(database):
    return database.execute(
        "SELECT c::text, count(*) FROM anon.conditions AS c GROUP BY 1 ORDER BY 1"
    )


@pytest.mark.exhaustive
def test_a_dataset_can_be_grouped_anew_for_other_readers(run, database, published):
    database.execute("DELETE FROM public.conditions WHERE condition_id = 1")
    refused = run("refresh", "encounters", "--new-series", code=3).err
    assert "fail their models" in refused
    others = ("--new-series", "--recipients-changed")
    printed = run("refresh", "encounters", *others).out
    assert printed.count("refreshed") == len(TABLES)
    copy_persons(database, 60)
    assert run("refresh", "--all").out.count("refreshed") == len(TABLES)


def test_a_dataset_that_lost_a_table_is_not_refreshed(run, database, published):
    run("release", "drop", served(database)["encounters"].id, "--yes")
    refused = run("refresh", "persons", code=1).err
    assert "not all is served" in refused
    run("publish", "--dataset", published, "--k", K)
    assert set(served(database)) == set(TABLES)


@pytest.mark.exhaustive
def test_what_is_thought_of_a_table_alone_is_thought_of_it_in_a_dataset(run, database, clinic):
    database.execute("ALTER TABLE public.conditions ADD COLUMN email text")
    database.execute("UPDATE public.conditions SET email = condition_id || '@example.org'")
    more = POLICIES["conditions"] + 'email.role = "sensitive"\n'
    (clinic.parent / "more.toml").write_text(more)
    run("policy", "set", "conditions", "--file", clinic.parent / "more.toml")
    assert "email" in run("publish", "--dataset", clinic, "--k", K).err
    assert "email" in run("doctor").out
    refused = run("publish", "--dataset", clinic, "--k", K, "--strict", code=1).err
    assert "email" in refused


def test_what_another_table_protects_is_not_to_be_repeated(run, database, clinic):
    database.execute('ALTER TABLE public.conditions ADD COLUMN "Marital_Status" text')
    more = POLICIES["conditions"] + 'Marital_Status.role = "insensitive"\n'
    allowed = more + 'Marital_Status.allow = ["repeated: of the next of kin"]\n'
    for name, text in (("more", more), ("allowed", allowed)):
        (clinic.parent / f"{name}.toml").write_text(text)
    run("policy", "set", "conditions", "--file", clinic.parent / "more.toml")
    said = run("plan", "--dataset", clinic, "--k", K).err
    assert '"Marital_Status" is sensitive in public.persons' in said
    refused = run("publish", "--dataset", clinic, "--k", K, "--strict", code=1).err
    assert "[repeated]" in refused
    run("policy", "set", "conditions", "--file", clinic.parent / "allowed.toml")
    assert "repeat" not in run("plan", "--dataset", clinic, "--k", K).err


def test_a_release_says_with_what_it_was_published(run, database, published):
    shown = run("release", "show", served(database)["conditions"].id).out
    assert "published together: public.persons, public.encounters, public.conditions" in shown


@pytest.mark.exhaustive
def test_the_rows_of_the_persons_are_the_persons(run, database, clinic):
    other = 'subject = "ssn"\n' + POLICIES["persons"]
    (clinic.parent / "other.toml").write_text(other)
    run("policy", "set", "persons", "--file", clinic.parent / "other.toml")
    refused = run("publish", "--dataset", clinic, "--k", K, code=1).err
    assert "has a subject of its own" in refused
    assert served(database) == {}
