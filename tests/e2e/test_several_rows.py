"""Persons with several rows are found, proposed as the subject, and warned of without one."""

import sys

import pytest

import dbanon
from dbanon.cli import main
from dbanon.domain.policy_warning import Code

ROWS, PERSONS = 8376, 1152
POLICY = """
table = "public.charges"
models = { k = 5 }
[columns]
row_id.role = "identifier"
person_id.role = "identifier"
age.role = "quasi"
sex.role = "quasi"
"""


@pytest.fixture
def charges(database, tmp_path):
    """8,376 charges against 1,152 persons, and the file of a policy that names no subject."""
    database.execute(
        "CREATE TABLE public.charges (row_id int PRIMARY KEY, person_id int NOT NULL, age int,"
        " sex text);"
        f"INSERT INTO public.charges SELECT i, i % {PERSONS}, 18 + i % {PERSONS} % 50,"
        f" (ARRAY['f', 'm'])[1 + i % {PERSONS} % 2] FROM generate_series(1, {ROWS}) AS i"
    )
    file = tmp_path / "charges.toml"
    file.write_text(POLICY)
    return database, file


@pytest.fixture
def run(charges, monkeypatch, capsys):
    def run(*words):
        monkeypatch.setattr(sys, "argv", ["dbanon", *words, "--dsn", charges[0].dsn])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code or 0, *capsys.readouterr()

    return run


@pytest.mark.exhaustive
def test_8376_rows_of_1152_persons_without_a_subject_are_warned_of_and_strict_refuses(charges, run):
    database, file = charges
    figure = "8,376 rows, 1,152 persons by column person_id"
    code, _, err = run("policy", "set", "charges", "--file", str(file), "--strict")
    assert (code, figure in err, "[no-subject]" in err) == (1, True, True)
    with pytest.raises(dbanon.PolicyError, match="has no policy"):
        dbanon.load_policy("charges", settings=database.settings)
    for words in (("policy", "set", "charges", "--file", str(file)), ("plan", "charges")):
        code, _, err = run(*words)
        assert (code, f"warning: {figure}" in err) == (0, True)
    code, _, err = run("publish", "charges", "--strict")
    assert (code, figure in err) == (1, True)
    assert dbanon.list_releases(settings=database.settings) == []
    code, _, err = run("publish", "charges", "--strict", "--subject", "person_id")
    assert (code, "no-subject" in err) == (0, False)


def test_the_draft_of_a_policy_names_the_subject_and_passes_strict(charges, run):
    database, file = charges
    _, out, _ = run("inspect", "charges")
    assert '8,376 rows, 1,152 persons by column person_id: subject = "person_id"' in out
    file.write_text(dbanon.suggest_policy("charges", settings=database.settings))
    code, _, err = run("policy", "set", "charges", "--file", str(file), "--strict")
    assert (code, err) == (0, "")
    assert dbanon.load_policy("charges", settings=database.settings).subject == "person_id"


@pytest.mark.exhaustive
def test_a_subject_that_may_be_null_and_is_not_is_suggested_and_published(charges, run):
    database, file = charges
    database.execute("ALTER TABLE public.charges ALTER person_id DROP NOT NULL")
    file.write_text(dbanon.suggest_policy("charges", settings=database.settings))
    assert dbanon.set_policy("charges", file, settings=database.settings).subject == "person_id"
    release = dbanon.publish("charges", k=5, settings=database.settings)
    assert release.policy.subject == "person_id"
    with pytest.raises(dbanon.ConfigError, match=r"person_id of .* may become NULL"):
        dbanon.publish("charges", k=5, kind="view", name="live", settings=database.settings)
    shown = database.execute("SELECT count(*) FROM anon.charges")
    database.execute("UPDATE public.charges SET person_id = NULL WHERE row_id = 1")
    for ask in (dbanon.publish, dbanon.plan):
        with pytest.raises(dbanon.PolicyError, match="column person_id has 1 NULLs"):
            ask("charges", k=5, settings=database.settings)
    with pytest.raises(dbanon.DriftError, match="column person_id has 1 NULLs"):
        dbanon.refresh("charges", settings=database.settings)
    assert shown == database.execute("SELECT count(*) FROM anon.charges")
    text = dbanon.suggest_policy("charges", settings=database.settings)
    assert ', once its 1 NULLs are filled or left out by where\n# subject = "person_id"' in text


def test_a_reason_says_that_rows_are_meant(charges, run):
    _, file = charges
    file.write_text('allow = ["no-subject: a row is what somebody is judged for"]\n' + POLICY)
    code, _, err = run("policy", "set", "charges", "--file", str(file), "--strict")
    assert (code, err) == (0, "")


def test_a_foreign_key_to_persons_is_followed(database):
    database.execute(
        "CREATE TABLE public.customers (id int PRIMARY KEY);"
        "CREATE TABLE public.countries (id int PRIMARY KEY);"
        "CREATE TABLE public.rentals (id int PRIMARY KEY, of_whom int NOT NULL"
        " REFERENCES public.customers, where_to int REFERENCES public.countries);"
        "INSERT INTO public.customers SELECT generate_series(1, 599);"
        "INSERT INTO public.countries SELECT generate_series(1, 3);"
        "INSERT INTO public.rentals SELECT i, 1 + i % 599, 1 + i % 3"
        " FROM generate_series(1, 1600) AS i;"
        "CREATE VIEW public.rented AS SELECT id, of_whom FROM public.rentals"
    )
    found = dbanon.inspect("rentals", settings=database.settings)
    assert (found.persons.column, found.persons.n_values) == ("of_whom", 599)
    assert found.persons.reason == "refers to public.customers"
    assert dbanon.inspect("rented", settings=database.settings).persons == found.persons
    assert dbanon.inspect("customers", settings=database.settings).persons is None


def test_who_may_not_count_persons_is_warned_of_what_the_catalog_says(charges):
    database, file = charges
    author = database.role("author_of_charges")
    database.execute(f"GRANT USAGE ON SCHEMA dbanon TO {author}")
    database.execute(
        f"GRANT SELECT ON ALL TABLES IN SCHEMA dbanon TO {author};"
        f"GRANT INSERT, UPDATE ON dbanon.policy TO {author};"
        f"GRANT INSERT ON dbanon.policy_version TO {author};"
        f"GRANT SELECT (row_id, age, sex) ON public.charges TO {author}"
    )
    found = []
    settings = dbanon.Settings(dsn=database.dsn_as(author))
    dbanon.set_policy("public.charges", file, warn=found.append, settings=settings)
    assert [caution.code for caution in found] == [Code.NO_SUBJECT]
    assert "person_id may identify persons (not counted)" in found[0].message
