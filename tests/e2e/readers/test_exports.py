"""A relation is exported as it is proved, whole or not at all."""

import csv
import hashlib
import json
from pathlib import Path

import psycopg
import pytest
from pyarrow import parquet
from tables import make_patients, patients_policy, publish_patients, serve_patients

import dbanon
from dbanon.pages import files
from dbanon.settings import Settings

PROOF = Path(__file__).parents[3] / "docs/reference/proof.sql"


@pytest.fixture
def published(copied, monkeypatch, tmp_path):
    database = copied(publish_patients)
    monkeypatch.setenv("DBANON_DSN", database.dsn)
    monkeypatch.chdir(tmp_path)
    return database


@pytest.fixture
def command(published, run, monkeypatch):
    def command(*words, code=0):
        monkeypatch.setenv("DBANON_DSN", published.dsn)
        return run(*words, code=code)

    return command


def names():
    return sorted(path.name for path in Path().iterdir())


@pytest.mark.exhaustive
def test_csv_is_what_postgresql_prints_with_the_proof_beside_it(published, command):
    said = command("export", "anon.patients", "--format", "csv").out
    assert "200 rows of release 1 in patients.csv, proof in patients.csv.json" in said
    content = Path("patients.csv").read_bytes()
    proof = json.loads(Path("patients.csv.json").read_text())
    assert hashlib.sha256(content).hexdigest() == proof["sha256"]
    assert ("csv", 200, 1) == (proof["format"], proof["rows"], proof["release"])
    assert {"passed"} == {one["verdict"] for one in proof["checks"]["results"]}
    assert published.execute(proof["statement"]) != []
    rows = list(csv.reader(content.decode().splitlines()))
    assert rows[0] == [*proof["columns"]]
    assert sorted(row[rows[0].index("age")] for row in rows[1:]) == sorted(
        text for (text,) in published.execute("SELECT age::text FROM anon.patients")
    )
    assert 0o600 == Path("patients.csv").stat().st_mode & 0o777


def test_parquet_has_the_ends_of_ranges(published, command):
    found = json.loads(command("export", "anon.patients", "--json", "-o", "p.parquet").out)
    assert "content" not in found
    table = parquet.read_table("p.parquet")
    assert (200, [*found["columns"]]) == (table.num_rows, table.column_names)
    ends = published.execute("SELECT lower(age), upper(age) - 1 FROM anon.patients")
    ages = table["age"].to_pylist()
    assert sorted(ends) == sorted((one["low"], one["high"]) for one in ages)
    nobody = published.execute("SELECT count(*) FROM anon.patients WHERE disease IS NULL")
    assert [(table["disease"].null_count,)] == nobody


@pytest.mark.parametrize("client", ["duckdb", "polars", "pandas"])
def test_clients_read_what_was_exported(client, published, command):
    library = pytest.importorskip(client, reason=f"{client} is not installed")
    command("export", "anon.patients", "-o", "p.parquet")
    if client == "duckdb":
        ((count,),) = library.sql("SELECT count(age.low) FROM 'p.parquet'").fetchall()
    elif client == "polars":
        count = library.read_parquet("p.parquet")["age"].struct.field("low").count()
    else:
        count = library.read_parquet("p.parquet")["age"].count()
    assert 200 == count


def test_only_what_dbanon_published_is_exported(published, command):
    published.execute("CREATE VIEW anon.other AS SELECT age, disease FROM public.patients")
    comment = published.execute("SELECT obj_description('anon.patients'::regclass, 'pg_class')")
    for relation in ("public.patients", "anon.other"):
        refused = command("export", relation, code=1).err
        assert "is not a relation that dbanon published" in refused
    ((text,),) = comment
    published.execute(psycopg.sql.SQL("COMMENT ON VIEW anon.other IS {}").format(text))
    command("export", "anon.other", code=1)
    assert [] == names()


def test_a_reader_exports_and_nobody_else(published):
    reader, other = published.role("exports"), published.role("exports_not")
    dbanon.grant("anon.patients", [reader], settings=published.settings)
    settings = Settings(dsn=published.dsn_as(reader))
    assert 200 == dbanon.export("anon.patients", format="csv", settings=settings).rows
    with pytest.raises(dbanon.DbanonError):
        dbanon.export("anon.patients", settings=Settings(dsn=published.dsn_as(other)))


def test_a_relation_that_fails_is_not_exported(copied, monkeypatch, tmp_path, run):
    database = copied(serve_patients)
    monkeypatch.setenv("DBANON_DSN", database.dsn)
    monkeypatch.chdir(tmp_path)
    database.execute("TRUNCATE public.patients")
    assert "nothing was checked" in run("export", "anon.patients", code=3).err
    assert [] == names()


def test_no_file_is_replaced_and_none_is_half_written(published, command, monkeypatch):
    Path("patients.csv.json").write_text("mine")
    assert (
        "exists, and stays as it is"
        in command("export", "anon.patients", "--format", "csv", code=1).err
    )
    assert ["patients.csv.json"] == names()
    write = files.write_new

    def fail(content, path, **options):
        if path.suffix == ".json":
            raise dbanon.ConfigError("the disk is full")
        write(content, path, **options)

    monkeypatch.setattr(files, "write_new", fail)
    assert "the disk is full" in command("export", "anon.patients", code=1).err
    assert ["patients.csv.json"] == names()


def test_the_plain_query_counts_what_the_functions_count(database):
    table = make_patients(database)
    dbanon.set_policy(table, patients_policy(table), settings=database.settings)
    dbanon.publish(table, settings=database.settings)
    quasi = ", ".join(
        column.name
        for column in dbanon.describe("anon.patients", settings=database.settings).columns
        if column.role == "quasi"
    )
    text = PROOF.read_text()
    assert "GROUP BY age, sex, sample_yr, creatinine" in text
    query = text.replace("age, sex, sample_yr, creatinine", quasi).replace("chapter", "disease")
    ((k, l, classes, rows),) = database.execute(query)
    proved = database.execute(
        "SELECT achieved::int, classes, row_count FROM dbanon.verify('anon.patients')"
        " ORDER BY model"
    )
    assert [(k, classes, rows), (l, classes, rows)] == proved
