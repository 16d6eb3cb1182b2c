import csv
import gzip
import io
from pathlib import Path

import pytest

from dbanon import resources
from dbanon.anonymization.registry import RECODINGS, make_masking
from dbanon.domain.policy import Role
from dbanon.domain.table import ColumnInfo, ColumnKind, TableInfo
from dbanon.formats import policies, taxonomies
from dbanon.formats.policy_validation import validate

DEMOS = {"patients": (",", 7_874), "adult": (";", 30_162)}
NUMBERS = {"id", "patient_id", "age", "sample_yr", "creatinine"}


def table(name):
    data = gzip.decompress(resources.data(f"{name}.csv.gz").read_bytes()).decode("utf-8")
    return list(csv.DictReader(io.StringIO(data), delimiter=DEMOS[name][0]))


def policy(name):
    return policies.parse(resources.data(f"{name}.toml").read_text(encoding="utf-8"))


def stored_taxonomies(name):
    """Load the taxonomies under the names that the policies use."""
    found = {}
    for path in sorted(Path(resources.data("")).glob(f"{name}_*.csv")):
        column = path.stem.removeprefix(f"{name}_").partition("_")[2]
        found[column] = taxonomies.read_csv(path, name=f"{name}_{column}")
    return found


@pytest.mark.parametrize("name", DEMOS)
def test_the_tables_are_complete(name):
    assert DEMOS[name][1] == len(table(name))


@pytest.mark.parametrize("name", DEMOS)
def test_the_files_are_packed_without_a_time(name):
    assert bytes(4) == resources.data(f"{name}.csv.gz").read_bytes()[4:8]


@pytest.mark.parametrize("name", DEMOS)
def test_every_value_is_a_leaf_of_its_taxonomy(name):
    rows = table(name)
    found = stored_taxonomies(name)
    for column, taxonomy in found.items():
        assert {row[column] for row in rows} <= set(taxonomy.leaf_labels)


@pytest.mark.parametrize("name", DEMOS)
def test_the_policy_fits_the_table(name):
    demo = policy(name)
    columns = list(dict.fromkeys(["id"] * (name == "adult") + list(table(name)[0])))
    info = TableInfo(
        1,
        demo.table,
        "r",
        tuple(
            ColumnInfo(c, "t", "t", ColumnKind.DECIMAL if c in NUMBERS else ColumnKind.CATEGORY)
            for c in columns
        ),
        primary_key=(columns[0],),
    )
    names = {t.name for t in stored_taxonomies(name).values()}
    assert validate(demo, info, taxonomies=names, recodings=RECODINGS, masking=make_masking) is None
    assert (5, 3) == (demo.k, demo.l)
    assert demo == policies.parse(policies.dump(demo))


def test_the_comments_of_the_patients_policy_are_true():
    rows = table("patients")
    assert all((row["death"] == "alive") == (row["chapter"] == "") for row in rows)
    assert 72 == 100 * sum(row["chapter"] == "" for row in rows) // len(rows)
    assert {"yes", "no"} == {row["mgus"] for row in rows}
    assert 2_977 == len({row["futime"] for row in rows})
    assert [926, 796] == [len({row[c] for row in rows}) for c in ("kappa", "lambda")]


def test_the_sensitive_columns_have_enough_values():
    for name in DEMOS:
        rows = table(name)
        for rule in policy(name).with_role(Role.SENSITIVE):
            assert len({row[rule.column] for row in rows}) >= policy(name).l
