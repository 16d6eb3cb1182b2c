"""What is stored of a policy is what was given, and one that is damaged harms no other."""

import json
import sys

import pytest

import dbanon
from dbanon.cli import main
from dbanon.domain.policy import ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.table import TableName

FILE = """
table = "public.{name}"
algorithm = "mdav"
[models]
k = 5
[columns.id]
role = "identifier"
[columns.age]
role = "quasi"
recoding = "interval"
snap = {snap}
weight = {weight}
"""


@pytest.fixture
def people(database, monkeypatch):
    for name in ("people", "others"):
        database.execute(f"CREATE TABLE public.{name} (id int PRIMARY KEY, age float8)")
        database.execute(f"INSERT INTO public.{name} SELECT i, i FROM generate_series(1, 20) AS i")
    monkeypatch.setenv("DBANON_DSN", database.dsn)
    return database


def command(monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["dbanon", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    return ended.value.code, printed.out + printed.err


@pytest.mark.parametrize("number", ["1e300", "1e-300", "1e17", "0.1", "9007199254740993.0"])
def test_a_policy_that_is_stored_can_be_read(people, tmp_path, number):
    file = tmp_path / "policy.toml"
    file.write_text(FILE.format(name="people", snap=number, weight=number))
    given = dbanon.set_policy("people", file, settings=people.settings)
    assert [given] == [one.policy for one in dbanon.list_policies(settings=people.settings)]
    assert float(number) == given.columns[1].snap


def test_a_policy_that_would_be_read_otherwise_is_not_stored(people):
    huge = ModelSpec("k-anonymity", {"k": 5})
    rules = (ColumnRule("id", Role.IDENTIFIER), ColumnRule("age", Role.QUASI, snap=float("inf")))
    policy = Policy(TableName("public", "people"), rules, (huge,), algorithm="mdav")
    with pytest.raises(dbanon.DatabaseError, match="22P02"):  # jsonb knows no infinity
        dbanon.set_policy("people", policy, settings=people.settings)
    assert [] == dbanon.list_policies(settings=people.settings)


def test_one_damaged_policy_harms_no_other(people, tmp_path, monkeypatch, capsys):
    file = tmp_path / "policy.toml"
    for name in ("people", "others"):
        file.write_text(FILE.format(name=name, snap=1, weight=1))
        dbanon.set_policy(name, file, settings=people.settings)
    damaged = {"table": "public.others", "columns": [{"column": "age", "taxonomy": "tree"}]}
    people.execute(
        "UPDATE dbanon.policy SET document = %s WHERE table_name = 'others'", (json.dumps(damaged),)
    )
    dbanon.derive_taxonomy("tree", "age", table="people", kind="flat", settings=people.settings)
    code, printed = command(monkeypatch, capsys, "policy", "list")
    assert (0, True) == (code, "public.people" in printed)
    assert "stored for public.others" in printed
    code, printed = command(monkeypatch, capsys, "doctor")
    assert code == 1
    assert "stored for public.others" in printed
    assert "dbanon policy set public.others --file" in printed
    # Nobody knows whether it needs the taxonomy that it names.
    code, printed = command(monkeypatch, capsys, "taxonomy", "drop", "tree")
    assert (1, True) == (code, "public.others" in printed)
    assert 5 == dbanon.publish("people", settings=people.settings).policy.k
