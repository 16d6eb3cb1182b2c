"""Reports on linked tables: what was proved of persons, and each table in short."""

import json

import pytest
from data.schemas.clinic import TABLES, make_clinic

import dbanon
from dbanon.domain.errors import ConfigError
from dbanon.domain.report import CONFIDENTIAL


@pytest.fixture
def file(database, tmp_path, monkeypatch):
    monkeypatch.setenv("DBANON_DSN", database.dsn)
    found = make_clinic(database, tmp_path)
    dbanon.publish_dataset(found, k=5, settings=database.settings)
    return found


def test_linked_tables_have_a_report_with_the_proofs_by_person(database, file, run):
    shown = run("report", "--dataset", file).out
    assert shown.startswith(f"{CONFIDENTIAL}\n")
    assert "person_id by all tables, when published" in shown
    document = json.loads(run("report", "--dataset", file, "--json").out)
    assert CONFIDENTIAL == document["confidential"]
    assert [f"public.{name}" for name in TABLES] == [one["table"] for one in document["tables"]]
    assert all(one["loss"]["n_rows"] > 0 for one in document["tables"])
    (joint,) = {
        check["n_rows"]
        for one in document["tables"]
        for check in one["checks"]["results"]
        if check["column"] == "person_id by all tables, when published"
        and check["model"] == "k-anonymity"
    }
    assert [(joint,)] == database.execute("SELECT count(*) FROM anon.persons")


def test_a_public_report_of_linked_tables_does_not_depend_on_their_rows(database, file, run):
    forms = ((), ("--json",))
    before = [run("report", "--dataset", file, "--public", *form).out for form in forms]
    database.execute("TRUNCATE persons, encounters, conditions CASCADE")
    after = [run("report", "--dataset", file, "--public", *form).out for form in forms]
    assert before == after
    assert CONFIDENTIAL not in "".join(before)
    assert (
        "k-anonymity of person_id by all tables, 5 required: passed when it was published"
        in (before[0])
    )
    document = json.loads(before[1])
    assert document["confidential"] is None
    assert [None] * 3 == [one["loss"] for one in document["tables"]]
    assert {"birth_date", "sex", "race", "zip"} == document["tables"][0]["label_loss"].keys()
    results = [check for one in document["tables"] for check in one["checks"]["results"]]
    assert not any("person_id" in (check["column"] or "") for check in results)


def test_tables_that_are_not_served_together_have_no_report_together(database, file, run):
    assert "dbanon report --dataset FILE" in run("report", "anon.persons", code=1).err
    other = file.with_name("other.toml")
    other.write_text('persons = "persons"\ntables = ["encounters"]\n')
    with pytest.raises(ConfigError, match="not served together"):
        dbanon.report_dataset(other, settings=database.settings)
    refused = run("report", "--dataset", file, "--html", "x.html", code=2).err
    assert "goes with --public and --json alone" in refused
    assert "name a relation" in run("report", code=2).err
