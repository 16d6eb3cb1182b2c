"""Every refusal of a combination, word for word."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dbanon.domain.errors import DbanonError
from dbanon.domain.policy import ColumnRule, MaskingStep, ModelSpec, Policy, Role
from dbanon.domain.table import Below, ColumnInfo, ColumnKind, Partition, TableInfo, TableName
from dbanon.formats.finders import RowCounts
from dbanon.formats.support import FEATURES, Mode, reasons, require
from dbanon.models.registry import MODELS
from dbanon.request import Request

PEOPLE = TableName("public", "people")
KEPT = Path(__file__).with_name("refusals.json")


def column(name, **changes):
    return ColumnInfo(name, "integer", "int4", ColumnKind.INTEGER, **{"nullable": False} | changes)


INFO = TableInfo(
    1, PEOPLE, "r", (*map(column, ("id", "person", "age", "zip", "disease")),), ("id",)
)
POLICY = Policy(
    table=PEOPLE,
    columns=(
        ColumnRule("id", Role.IDENTIFIER),
        ColumnRule("person", Role.IDENTIFIER),
        ColumnRule("age", Role.QUASI),
        ColumnRule("zip", Role.QUASI),
        ColumnRule("disease", Role.SENSITIVE),
    ),
    models=(ModelSpec("k-anonymity", {"k": 5}), ModelSpec("l-diversity", {"l": 2})),
)


def having(name, **changes):
    return {
        "columns": tuple(
            replace(rule, **changes) if rule.column == name else rule for rule in POLICY.columns
        )
    }


def masked(method, params, name="disease"):
    return {"masking": (MaskingStep(method, (name,), params),)}


BUCKETS = (ModelSpec("probabilistic-l-diversity", {"l": 3}),)


def model(name, **more):
    known = {
        "alpha": 0.5, "beta": 1.0, "c": 2.0, "delta": 0.5, "dmax": 0.9, "dmin": 0.1, "e": 5.0,
        "k": 5, "l": 2, "m": 2, "max": 0.5, "min": 0.1, "n": 50, "p": 2, "t": 0.2,
        "x": ("age",), "y": ("disease",), "values": ("1",),
        "positive": ("1",), "negative": ("2",), "share": 0.5, "listed": ("1=0.5",),
    }  # fmt: skip
    params = {key: known[key] for key in MODELS[name].parameters() if key in known}
    return {"models": (*POLICY.models, ModelSpec(name, params | more))}


OF_POLICY = {
    "nothing": {},
    "key": {"key": ("id",)},
    "where": {"where": ("age > 5",)},
    "masking by rounding": masked("rounding", {"base": 10}),
    "masking by all rows": masked("rank-swapping", {"percent": 5.0}),
    "masking within classes": masked("permutation", {}),
    "pseudonym": {"pseudonym": "code", "subject": "person"},
    "sample": {"sample": 0.5},
    "class_label": {"class_label": "age"},
    "one row a subject": {"subject": "person", "rows_per_subject": 1},
    "two rows a subject": {"subject": "person", "rows_per_subject": 2},
    "labels": {"labels": True},
    "keep": having("zip", keep=True),
    "recoding global": having("age", recoding="global"),
    "recoding full-domain": having("age", recoding="full-domain"),
    "recoding bounds": having("age", recoding="bounds"),
    "restore_variance": having("age", recoding="mean", restore_variance=True),
    "subject": {"subject": "person"},
    "a subject that is the key": {"subject": "id"},
    "block": {"block": 100},
    "population": {"population": TableName("public", "everybody")},
    "max_suppressed": {"max_suppressed": 0.1},
    "algorithm": {"algorithm": "mdav"},
    "params": {"params": {"effort": "fast"}},
    "two sensitive columns": having("zip", role=Role.SENSITIVE),
    "a column named bucket": having("zip", column="bucket"),
    "a floor": having("age", at_least=10.0),
    **{name: model(name) for name in MODELS if name not in {"k-anonymity", "l-diversity"}},
    "t-closeness, rows left out": model("t-closeness") | {"max_suppressed": 0.1},
}
OF_TABLE = {
    "virtual column": {"columns": (*INFO.columns[:-1], column("disease", is_virtual=True))},
    "nullable subject": {"columns": (INFO.columns[0], column("person", nullable=True))},
    "view": {"relkind": "v"},
    "foreign part": {
        "relkind": "v",
        "below": (Below(TableName("public", "far"), "f", row_security=False),),
    },
    "foreign partition": {
        "relkind": "p",
        "partitions": (Partition(2, TableName("public", "far"), "f", (2, 1)),),
    },
    "children": {"has_children": True},
    "parents": {"has_parents": True},
}
OF_REQUEST = {
    "--name": {"name": "x"},
    "--subject": {"subject": "person"},
    "--population": {"population": "public.everybody"},
    "--as view": {"kind": "view"},
    "--keep-assignment": {"keep_assignment": True},
    "--series": {"series": "anon.people"},
    "--executor": {"executor": "processes"},
    "--rows-per-block": {"rows_per_block": 1000},
}
CASES = {
    **{name: (replace(POLICY, **given), INFO, Request()) for name, given in OF_POLICY.items()},
    **{
        f"keep, {name}": (replace(POLICY, **given | having("zip", keep=True)), INFO, Request())
        for name, given in OF_POLICY.items()
        if "models" in given
    },
    **{
        f"of persons, {name}": (replace(POLICY, **given, subject="person"), INFO, Request())
        for name, given in OF_POLICY.items()
        if "models" in given
    },
    "of persons, strict": (
        replace(POLICY, **model("entropy-l-diversity", multi="strict"), subject="person"),
        INFO,
        Request(),
    ),
    **{
        f"anatomy, {name}": (
            replace(POLICY, **{"models": BUCKETS} | given, anatomy=True),
            INFO,
            Request(),
        )
        for name, given in OF_POLICY.items()
    },
    **{
        name: (replace(POLICY, subject="person"), replace(INFO, **given), Request())
        for name, given in OF_TABLE.items()
    },
    **{name: (POLICY, INFO, Request(**given)) for name, given in OF_REQUEST.items()},
}
OF_PLAN = ("file", "compare", "algorithms", "ks", "plot", "html")
OF_RELEASES = ("new_series", "recipients_changed", "strict", "schema", "grants", "print_sql")


def refused(mode, asked):
    try:
        require(mode, asked)
    except DbanonError as error:
        return f"{type(error).__name__}: {error} -> {error.hint}"
    return None


def said(policy, info, request):
    """Return what each mode says of it, nothing where it does it."""
    asked = request.for_table(policy, info)
    found = {
        str(mode): refused(mode, asked)
        for mode in (Mode.VIEW, Mode.DATASET, Mode.BLOCKS, Mode.COMPARISON)
    }
    modes = (Mode.REUSE, Mode.REFRESH, Mode.PLACES)
    found |= {str(mode): next(reasons(mode, asked), None) for mode in modes}
    found["anatomy"] = [*reasons(Mode.BUCKETS, asked)] if policy.anatomy else None
    if any(rule.keep for rule in policy.columns):
        found["kept values"] = refused(Mode.APART, asked)
    return {mode: text for mode, text in found.items() if text}


def test_each_combination_is_refused_in_the_words_that_were_agreed():
    found = {name: said(*case) for name, case in CASES.items()}
    found |= {
        f"plan --{name}": {"dataset": refused(Mode.DATASET, frozenset({name}))} for name in OF_PLAN
    }
    found |= {
        f"plan --compare --{name}": {"comparison": refused(Mode.COMPARISON, frozenset({name}))}
        for name in (*OF_RELEASES, "algorithm")
    }
    several = RowCounts(replace(POLICY, **model("entropy-l-diversity")), 10, 9)
    found["several rows a person"] = {
        str(mode): refused(mode, several) for mode in (Mode.VIEW, Mode.BLOCKS)
    }
    assert json.loads(KEPT.read_text()) == found


def test_persons_with_one_row_each_are_refused_by_no_mode():
    counted = RowCounts(replace(POLICY, **model("entropy-l-diversity")), 10, 10)
    assert [] == [text for mode in Mode for text in reasons(mode, counted)]


@pytest.mark.parametrize(
    ("mode", "parts"),
    [(Mode.BUCKETS, {Policy, RowCounts}), (Mode.APART, {Policy}), (Mode.FRAME, {Policy})],
)
def test_what_is_asked_of_a_policy_alone_is_refused_by_its_keys_alone(mode, parts):
    """Else a policy that is checked before its table is known would count as supported.

    The persons of buckets are counted when these are made.
    """
    assert parts == {feature.find.part for feature in FEATURES if mode in feature.refused}
