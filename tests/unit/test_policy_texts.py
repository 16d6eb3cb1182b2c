"""What dbanon writes, shows and refuses of policy files stays what it is, in whatever order.

A change that is meant: rm tests/unit/policy_texts.json, then run this file.
"""

import json
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import pytest
from unit.test_policy_schema import BAD, GOOD, SHIPPED

from dbanon.anonymization.registry import ALGORITHMS, MASKING, RECODINGS
from dbanon.cli import policy as commands
from dbanon.domain.errors import PolicyError
from dbanon.domain.messages import settings_in_words
from dbanon.domain.policy import Approval, Key, Policy, keys_of, meanings_of
from dbanon.domain.table import TableName
from dbanon.formats import policies
from dbanon.formats.document_reader import Section
from dbanon.models.registry import MODELS

FILE = Path(__file__).with_name("policy_texts.json")
KNOWN = policies.Known(ALGORITHMS, MODELS, RECODINGS, MASKING)
ALL = """
table = "t"
name = "research"
max_suppressed = 0.1
algorithm = "mdav"
block = 50
key = ["a", "b"]
subject = "person"
rows_per_subject = 2
population = "public.people"
class_label = "disease"
rest = "drop"
sample = 0.25
labels = true
erase_within = "30d"
pseudonym = "who"
budget = 2.5
allow = ["k-of-one: for a test"]
where = [{column = "a", is = "in", value = [1, 2]}, {column = "b", is = "is not null"}]
[[masking]]
method = "noise"
columns = ["dose"]
within = ["sex"]
share = 0.1
[models]
k = 5
l = 3
[columns.age]
role = "quasi"
bands = 10
top = 90
bottom = 18.5
rare = "suppress"
weight = 2
[columns.zip]
role = "quasi"
at_least = 3
pooled = ["036"]
on_new_value = "stop"
[columns.sex]
role = "quasi"
keep = true
allow = ["near-unique: it is"]
[columns.bmi]
role = "quasi"
recoding = "mean"
snap = 5
digits = 2
restore_variance = true
[columns.grade]
role = "quasi"
recoding = "interval-text"
order = ["low", "", "high"]
[columns.disease]
role = "sensitive"
taxonomy = "icd"
"""
WRONG = """
table = 5
name = "A b"
max_suppressed = 2
max_supressed = 1
block = 0
sample = 1
key = "a"
subject = ""
rows_per_subject = "all"
population = "people"
rest = "keep"
labels = "yes"
erase_within = "soon"
pseudonym = 1
budget = 0
allow = ["no-such: why"]
where = [{column = "a"}]
masking = [{method = "blur", columns = ["a", "a"]}]
[models]
j = 5
[columns.age]
role = "quasi"
bands = "wide"
top = true
rare = "drop"
weight = 0
at_least = "century"
pooled = []
keep = 1
snap = -1
digits = 0.5
order = ["a", "a"]
noise = 1
[columns.disease]
role = "sensitive"
bands = 5
recoding = "label"
[columns.id]
role = "identifier"
taxonomy = "t"
"""


def made_of(text, monkeypatch, capsys):
    """Return what dbanon writes and shows of a policy file, or why it refuses it."""
    try:
        policy = policies.parse(text, KNOWN)
    except PolicyError as error:
        return sorted(str(error).split("\n"))
    document = policies.to_document(policy)
    assert policies.from_document(document) == policy
    assert policies.parse(policies.dump(policy), KNOWN) == policy
    stored = Approval(policy.name, version=1, author="steward", digest="0" * 64)
    action = "dbanon.actions.policy.policy_with_approval"
    monkeypatch.setattr(action, lambda *_, **__: (policy, stored))
    commands.show("t")
    *shown, version = capsys.readouterr().out.rstrip().split("\n")
    stored = f"version 1, digest {'0' * 32}, stored by steward; not approved"
    assert version.startswith(stored)
    return {
        "document": document,
        "file": tomllib.loads(policies.dump(policy)),
        "shown": sorted(line.rstrip() for line in shown),
    }


def test_policies_are_written_shown_and_refused_as_they_were(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "120")
    texts = {"all": ALL, "all wrong": WRONG, **GOOD, **BAD} | dict(enumerate(SHIPPED))
    found = {str(name): made_of(text, monkeypatch, capsys) for name, text in texts.items()}
    if not FILE.exists():
        FILE.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        pytest.fail(f"{FILE.name} written: look at it")
    assert json.loads(FILE.read_text(encoding="utf-8")) == found


@dataclass(frozen=True, slots=True, kw_only=True)
class Commented(Policy):
    """A policy with one more key.

    comment: a remark | none
    """

    comment: Annotated[str | None, Key("text", shown="remark: {}", moves_classes=False)] = None


def test_a_new_key_needs_nothing_but_its_field():
    section = Section({"comment": "why"}, "", [])
    values = policies.read(section, keys_of(Commented), {})
    policy = Commented(table=TableName("public", "t"), columns=(), **values)
    assert ("a remark", "none") == meanings_of(Commented)["comment"]
    assert {"algorithm": "auto", "comment": "why", "table": "public.t"} == dict(
        policies.document(policy, {})
    )
    assert [("remark", "why")] == list(settings_in_words(policy, where=""))
    assert replace(policy, comment="new") == policy.refreshed_as(replace(policy, comment="new"))


def test_a_limit_of_nothing_is_shown():
    policy = Policy(table=TableName("public", "t"), columns=(), max_stale=0.0)
    assert ["more than 0% of the rows"] == [text for _, text in settings_in_words(policy, where="")]
