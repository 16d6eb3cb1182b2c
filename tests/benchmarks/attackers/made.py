"""Releases as one would make them in a hurry, and those that dbanon publishes in their place."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from samples.datasets import load

from dbanon.anonymization.outcome import Outcome, published_values
from dbanon.anonymization.problem import Problem, solve
from dbanon.anonymization.released.reading import of_outcome
from dbanon.domain.assignment import Assignment
from dbanon.domain.outcomes import Stages
from dbanon.domain.policy import ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.table import ColumnKind, TableName

if TYPE_CHECKING:
    from dbanon.anonymization.released.cells import Released
    from dbanon.domain.assignment import EncodedTable

WARDS, PERSONS, DISEASES = 60, 100, 6
_USUAL = 0.9


class Made(NamedTuple):
    """A release, by what it was made, and what it is called in the table."""

    name: str
    released: Released
    policy: Policy


def asked(k: int, *models: tuple[str, dict[str, object]]) -> tuple[ModelSpec, ...]:
    return tuple(ModelSpec(name, params) for name, params in (("k-anonymity", {"k": k}), *models))


SETTINGS = {
    "l = 1": (),
    "l = 3": (("l-diversity", {"l": 3}),),
    "entropy 3": (("entropy-l-diversity", {"l": 3.0}),),
    "t = 0.2": (("t-closeness", {"t": 0.2}),),
}


def table_of(name: str) -> tuple[EncodedTable, Policy]:
    """Return a table that ships with dbanon, or the wards of a hospital, with its policy."""
    if name == "wards":
        return wards()
    found = load(name)
    return found.encoded, found.policy


def wards() -> tuple[EncodedTable, Policy]:
    """Return patients of wards, of which nine in ten have the disease that their ward is for."""
    import pyarrow as pa

    from dbanon.anonymization.encoding.encode import encode

    draws = np.random.default_rng(7)
    ward = np.repeat(np.arange(WARDS), PERSONS)
    any_disease = draws.integers(0, DISEASES, len(ward))
    disease = np.where(draws.random(len(ward)) < _USUAL, ward % DISEASES, any_disease)
    source = pa.table(
        {"ward": ward, "age": draws.integers(20, 80, len(ward)), "disease": [*map(str, disease)]}
    )
    rules = [ColumnRule("ward", Role.QUASI), ColumnRule("age", Role.QUASI)]
    columns = (*rules, ColumnRule("disease", Role.SENSITIVE))
    policy = Policy(TableName("public", "wards"), columns)
    kinds = {"ward": ColumnKind.INTEGER, "age": ColumnKind.INTEGER}
    return encode(source, policy, kinds=kinds, taxonomies={}), policy


def as_it_is(encoded: EncodedTable, policy: Policy) -> Made:
    """Publish everybody's quasi-identifiers, without names."""
    groups = np.unique(encoded.codes, axis=0, return_inverse=True)[1].ravel().astype(np.int32)
    return _grouped("names left out", encoded, replace(policy, models=asked(1)), groups)


def ours(encoded: EncodedTable, policy: Policy, k: int, setting: str) -> Made:
    """Publish as dbanon does."""
    policy = replace(policy, models=asked(k, *SETTINGS[setting]))
    outcome = solve(Problem(encoded, policy), seed=0, stages=Stages())
    return Made(f"k = {k}, {setting}", of_outcome(encoded, outcome, policy), policy)


def grouped_again(first: Made, *, k: int, keeps_atoms: bool) -> Made:
    """Publish the table of a release once more: whole classes of it, or without a look at it."""
    encoded = first.released.table
    policy = replace(first.policy, models=asked(k, *_others(first.policy)), algorithm="auto")
    if keeps_atoms:
        atoms = first.released.classes
        assert atoms is not None
        outcome = solve(Problem(encoded, policy, atoms=atoms), seed=0, stages=Stages())
        name = f"{first.name}, then k = {k} of its classes"
    else:
        mondrian = replace(policy, algorithm="mondrian", params={})
        outcome = solve(Problem(encoded, mondrian), seed=0, stages=Stages())
        name = f"{first.name}, then k = {k} anew"
    return Made(name, of_outcome(encoded, outcome, policy), policy)


def _others(policy: Policy) -> tuple[tuple[str, dict[str, object]], ...]:
    return tuple((m.name, dict(m.params)) for m in policy.models if m.name != "k-anonymity")


def _grouped(name: str, encoded: EncodedTable, policy: Policy, groups: np.ndarray) -> Made:
    assignment = Assignment(groups, int(groups.max()) + 1)
    outcome = Outcome(assignment, published_values(encoded, assignment), None)
    return Made(name, of_outcome(encoded, outcome, policy), policy)
