from dataclasses import replace

import pytest
from builders import policy_of

from dbanon.domain.policy import ColumnRule, MaskingStep, ModelSpec, Role, anatomy_level, of_buckets
from dbanon.formats.support import Mode, reasons

PEOPLE = replace(policy_of(["age"], ["disease"], l=3), anatomy=True, models=())
DIVERSE = ModelSpec("probabilistic-l-diversity", {"l": 3})


def problems(policy):
    return [*reasons(Mode.BUCKETS, policy)] if policy.anatomy else []


def asking(*models, **changes):
    return replace(PEOPLE, models=models, **changes)


@pytest.mark.parametrize(
    "models",
    [
        [ModelSpec("l-diversity", {"l": 3})],
        [ModelSpec("l-diversity", {"l": 2}), DIVERSE],
        [ModelSpec("l-diversity", {"l": 3}), ModelSpec("probabilistic-l-diversity", {"l": 2})],
        [ModelSpec("k-anonymity", {"k": 1}), ModelSpec("probabilistic-l-diversity", {"l": 3.0})],
    ],
)
def test_the_greatest_l_that_is_asked_for_is_that_of_buckets(models):
    policy = of_buckets(asking(*models))
    assert ((DIVERSE,), 3) == (policy.models, anatomy_level(policy))
    assert policy == of_buckets(policy)
    assert [] == list(problems(asking(*models)))


def test_a_policy_without_anatomy_is_as_it_was():
    policy = replace(policy_of(["age"], ["a", "b"], k=5, l=3), labels=True)
    assert of_buckets(policy) is policy
    assert [] == list(problems(policy))


@pytest.mark.parametrize(
    "model",
    [
        ModelSpec("k-anonymity", {"k": 2}),
        ModelSpec("delta-presence", {"min": 0.1, "max": 0.5}),
        ModelSpec("t-closeness", {"t": 0.2}),
        ModelSpec("probabilistic-l-diversity", {"l": 2.5}),
        ModelSpec("l-diversity", {"l": 3, "columns": ("disease",)}),
    ],
)
def test_what_is_promised_besides_l_is_refused_as_everybody_is_found(model):
    policy = asking(DIVERSE, model)
    assert model in of_buckets(policy).models
    (problem,) = problems(policy)
    assert "whoever knows them finds the row" in problem
    assert f"cannot promise {model.name}" in problem


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"rows_per_subject": 2}, "rows_per_subject has no meaning"),
        ({"population": PEOPLE.table}, "population has no meaning"),
        ({"labels": True}, "publishes no labels"),
    ],
)
def test_other_keys_that_it_cannot_keep_are_named(changes, says):
    (problem,) = problems(asking(DIVERSE, **changes))
    assert says in problem


@pytest.mark.parametrize("sensitive", [[], ["disease", "salary"]])
def test_there_is_one_sensitive_column(sensitive):
    (problem,) = problems(replace(policy_of(["age"], sensitive, k=1), anatomy=True))
    assert f"and there are {len(sensitive)}" in problem


@pytest.mark.parametrize(
    "said",
    [
        {"recoding": "mean"},
        {"taxonomy": "t"},
        {"bands": 10.0},
        {"top": 90.0},
        {"at_least": "year"},
        {"keep": True},
        {"rare": "suppress"},
        {"snap": 5.0},
        {"pooled": ("036",)},
    ],
)
def test_a_quasi_identifier_that_is_to_be_coarser_is_refused(said):
    columns = (ColumnRule("age", Role.QUASI, **said), ColumnRule("disease", Role.SENSITIVE))
    (problem,) = problems(asking(DIVERSE, columns=columns))
    assert "column age is published as it is by anatomy" in problem


def test_a_quasi_identifier_is_not_masked_and_a_sensitive_column_may_be():
    steps = [MaskingStep("pram", (column,), {"keep": 0.8}) for column in ("age", "disease")]
    (problem,) = problems(asking(DIVERSE, masking=(steps[0],)))
    assert "column age is published as it is by anatomy: leave its masking out" in problem
    assert [] == list(problems(asking(DIVERSE, masking=(steps[1],))))


@pytest.mark.parametrize(
    ("name", "role", "is_taken"),
    [
        ("bucket", Role.QUASI, True),
        ("bucket", Role.INSENSITIVE, True),
        ("bucket", Role.IDENTIFIER, False),
        ("count", Role.QUASI, False),
    ],
)
def test_names_of_its_own_columns_are_taken(name, role, is_taken):
    found = list(problems(asking(DIVERSE, columns=(*PEOPLE.columns, ColumnRule(name, role)))))
    assert is_taken == any("has the name of one that anatomy adds" in text for text in found)


@pytest.mark.parametrize("name", ["bucket", "count"])
def test_and_so_are_those_beside_the_sensitive_one(name):
    columns = (ColumnRule("age", Role.QUASI), ColumnRule(name, Role.SENSITIVE))
    (problem,) = problems(asking(DIVERSE, columns=columns))
    assert "has the name of one that anatomy adds" in problem
