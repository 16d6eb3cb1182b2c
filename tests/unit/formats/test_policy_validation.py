import re
from dataclasses import replace
from functools import partial

import pytest

from dbanon.anonymization.registry import RECODINGS, make_masking
from dbanon.domain.errors import PolicyError
from dbanon.domain.policy import ColumnRule, MaskingStep, ModelSpec, Policy, Role
from dbanon.domain.table import Below, ColumnInfo, ColumnKind, TableInfo, TableName
from dbanon.formats import policy_validation

validate = partial(policy_validation.validate, recodings=RECODINGS, masking=make_masking)

NAME = TableName("public", "patients")
KINDS = {
    "integer": ColumnKind.INTEGER,
    "numeric": ColumnKind.DECIMAL,
    "date": ColumnKind.DATE,
    "text": ColumnKind.CATEGORY,
    "boolean": ColumnKind.BOOLEAN,
}


def column(name, declared, **changes):
    kind = KINDS.get(declared, ColumnKind.OTHER)
    return ColumnInfo(name, declared, declared, kind, **{"nullable": False} | changes)


SNAPPED = "choose one of bounds, center, global, interval, interval-text, suppress"
INFO = TableInfo(
    1,
    NAME,
    "r",
    (
        column("id", "integer"),
        column("age", "integer"),
        column("born", "date"),
        column("sex", "text"),
        column("cause", "text", nullable=True),
    ),
    primary_key=("id",),
)
POLICY = Policy(
    NAME,
    (
        ColumnRule("id", Role.IDENTIFIER),
        ColumnRule("age", Role.QUASI),
        ColumnRule("born", Role.QUASI, recoding="interval", snap=30),
        ColumnRule("sex", Role.QUASI, recoding="label", taxonomy="sex"),
        ColumnRule("cause", Role.SENSITIVE),
    ),
    models=(ModelSpec("k-anonymity", {"k": 5}), ModelSpec("l-diversity", {"l": 3})),
    subject="id",
)


def with_bounds(*names, **changes):
    """Return the policy with bounds of these columns."""
    rules = [
        replace(rule, recoding="bounds", snap=None) if rule.column in names else rule
        for rule in POLICY.columns
    ]
    return replace(POLICY, columns=tuple(rules), **changes)


def problems_of(policy=POLICY, info=INFO):
    with pytest.raises(PolicyError) as caught:
        validate(policy, info, taxonomies={"sex"})
    assert caught.value.hint == f"dbanon policy suggest {info.name}"
    return [line.strip() for line in str(caught.value).splitlines()[1:]]


def with_rule(**changes):
    """Change the rule of the column that ``changes`` names."""
    columns = tuple(
        replace(rule, **changes) if rule.column == changes["column"] else rule
        for rule in POLICY.columns
    )
    return replace(POLICY, columns=columns)


def with_column(**changes):
    columns = tuple(
        replace(info, **changes) if info.name == changes["name"] else info for info in INFO.columns
    )
    return replace(INFO, columns=columns)


def test_a_policy_that_fits_passes():
    assert validate(POLICY, INFO, taxonomies={"sex"}) is None
    unresolved = replace(POLICY, table=TableName(None, "patients"))
    assert validate(unresolved, INFO, taxonomies={"sex"}) is None
    partitioned = replace(INFO, relkind="p", has_children=True)
    assert validate(POLICY, partitioned, taxonomies={"sex"}) is None


def test_every_problem_is_told_at_once():
    policy = Policy(
        TableName("public", "visits"),
        (ColumnRule("ages", Role.QUASI), ColumnRule("born", Role.SENSITIVE)),
        subject="ID",
    )
    info = replace(INFO, relkind="v", row_security=True, primary_key=())
    assert [
        "the policy is about public.visits",
        "it has row-level security, which what its owner publishes would bypass",
        'it has no primary key, so its rows cannot be told apart: key = ["column", ...]',
        "column id has no role",
        "column age has no role",
        "column sex has no role",
        "column cause has no role",
        "the policy names column ages, which does not exist; did you mean age?",
        'subject column "ID" does not exist; did you mean id?',
    ] == problems_of(policy, info)


@pytest.mark.parametrize("relkind", ["v", "m", "f"])
def test_a_source_that_is_no_table_names_its_key(relkind):
    view = replace(INFO, relkind=relkind, primary_key=())
    assert any("key = [" in text for text in problems_of(info=view))
    policy = replace(POLICY, key=("id",))
    assert validate(policy, policy.keyed(view), taxonomies={"sex"}) is None


def test_a_key_names_columns_that_exist_and_are_hidden():
    policy = replace(POLICY, key=("ID",))
    assert [
        'key column "ID" does not exist; did you mean id?',
    ] == problems_of(policy, policy.keyed(INFO))
    shown = tuple(
        replace(rule, role=Role.INSENSITIVE) if rule.column == "id" else rule
        for rule in POLICY.columns
    )
    policy = replace(POLICY, key=("id",), columns=shown)
    found = problems_of(policy, policy.keyed(INFO))
    assert "its key would be published as it is, and tells every row apart" in found


def test_what_a_view_is_made_of_is_judged():
    below = (
        Below(TableName("public", "a"), "r", row_security=False),
        Below(TableName("public", "b"), "r", row_security=True),
    )
    view = replace(INFO, relkind="v", below=below, volatile=(TableName("pg_catalog", "random"),))
    assert [
        "it reads public.b, which has row-level security: which rows are its own?",
        "it calls pg_catalog.random, which is VOLATILE: its rows are others at each reading",
    ] == problems_of(info=view)


def test_a_table_that_others_inherit_from_is_refused():
    assert [
        "other tables inherit from it, and its primary key does not hold for their rows"
    ] == problems_of(info=replace(INFO, has_children=True))


def test_a_column_has_one_role():
    policy = replace(POLICY, columns=(*POLICY.columns, ColumnRule("age", Role.INSENSITIVE)))
    assert ["column age has 2 roles"] == problems_of(policy)


def test_there_must_be_a_quasi_identifier():
    columns = tuple(
        ColumnRule(rule.column, Role.IDENTIFIER if rule.role is Role.QUASI else rule.role)
        for rule in POLICY.columns
    )
    without = replace(POLICY, columns=columns)
    assert ["no column is a quasi-identifier, so there is nothing to anonymize"] == problems_of(
        replace(without, subject=None)
    )
    # Together with the persons whom a subject names, there is.
    assert validate(without, INFO, taxonomies={"sex"}) is None


def test_l_diversity_needs_a_sensitive_column():
    policy = with_rule(column="cause", role=Role.IDENTIFIER)
    assert ["l-diversity needs a sensitive column"] == problems_of(policy)


def test_models_of_rows_name_what_is_there():
    linked = ModelSpec("x-y-anonymity", {"k": 2, "x": ("age",), "y": ("cause", "nobody")})
    policy = replace(POLICY, models=(*POLICY.models, ModelSpec("k-map", {"k": 3}), linked))
    reason = "which is neither a quasi-identifier nor sensitive"
    assert [
        'k-map needs a population: population = "schema.table"',
        f"x-y-anonymity is about nobody, {reason}",
    ] == problems_of(policy)
    named = replace(POLICY, population=TableName("public", "people"))
    validate(replace(named, models=(ModelSpec("k-map", {"k": 3}),)), INFO, taxonomies=["sex"])


def test_a_model_that_there_is_not_is_named():
    policy = replace(POLICY, models=(*POLICY.models, ModelSpec("k-anonymty", {"k": 3})))
    (problem,) = problems_of(policy)
    assert problem == "there is no privacy model k-anonymty; did you mean k-anonymity?"


def test_who_lacks_a_population_only_is_told_how_to_name_one():
    policy = replace(POLICY, models=(ModelSpec("k-map", {"k": 3}),))
    with pytest.raises(PolicyError) as caught:
        validate(policy, INFO, taxonomies=["sex"])
    assert caught.value.hint == "--population schema.table, or population in the policy"
    with pytest.raises(PolicyError) as caught:
        validate(replace(policy, columns=policy.columns[:-1]), INFO, taxonomies=["sex"])
    assert "dbanon policy suggest" in caught.value.hint


@pytest.mark.parametrize(
    "declared", ["jsonb", "json", "xml", "text[]", "int4range", "bytea", "point"]
)
def test_a_type_without_generalization_cannot_be_quasi(declared):
    info = with_column(name="age", type=declared, kind=ColumnKind.OTHER)
    assert [
        (
            f"column age: type {declared} cannot be generalized: make a generated column of the "
            "part that identifies, or give it the role identifier"
        )
    ] == problems_of(info=info)


def test_a_sensitive_type_needs_equality():
    info = with_column(name="cause", type="json", has_equality=False)
    assert [
        "column cause: type json has no equality, so its distinct values cannot be counted"
    ] == problems_of(info=info)


def test_a_user_defined_type_is_refused_unless_the_column_is_not_read():
    info = with_column(name="age", type="mood", kind=ColumnKind.OTHER, user_defined=True)
    assert [
        (
            "column age: type mood is user-defined, and reading it may run foreign code: cast the "
            "column to a built-in type or make it an identifier"
        )
    ] == problems_of(info=info)
    assert validate(with_rule(column="age", role=Role.IDENTIFIER), info, taxonomies={"sex"}) is None
    key = with_column(name="id", type="mood", user_defined=True)
    assert [
        (
            "column id: type mood is user-defined, and reading it may run foreign code: cast the "
            "column to a built-in type"
        )
    ] == problems_of(info=key)


def test_the_subject_is_not_published_and_can_be_counted():
    info = with_column(name="age", nullable=True, has_equality=False)
    assert [
        "subject column age is of type integer, which has no equality to count persons by",
        "subject column age would be published: give it the role identifier",
    ] == problems_of(replace(POLICY, subject="age"), info)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"column": "sex", "taxonomy": "sexes"}, "there is no taxonomy sexes; did you mean sex?"),
        (
            {"column": "sex", "recoding": "interval", "taxonomy": None},
            "recoding interval needs an ordered type, text is none",
        ),
        (
            {"column": "sex", "recoding": "mean", "taxonomy": None},
            "recoding mean needs an ordered type, text is none",
        ),
        (
            {"column": "age", "recoding": "label"},
            "recoding label needs a taxonomy on type integer",
        ),
        (
            {"column": "age", "recoding": "interval", "taxonomy": "sex"},
            "recoding interval uses no taxonomy: leave one of them out",
        ),
        ({"column": "sex", "snap": 5.0}, "snap needs an ordered type, text is none"),
        ({"column": "sex", "digits": 2}, "digits needs an ordered type, text is none"),
        ({"column": "born", "digits": 2}, "digits needs a numeric type"),
        *(
            (
                {"column": "age", "snap": 5.0, "recoding": recoding},
                f"recoding {recoding} knows no snap: " + SNAPPED,
            )
            for recoding in ("cell-suppression", "mean", "median", "midpoint", "mode", "set")
        ),
        (
            {"column": "born", "recoding": "date-part"},
            "recoding date-part knows no snap: " + SNAPPED,
        ),
        (
            {"column": "age", "snap": 5.0, "taxonomy": "sex"},
            "recoding label knows no snap: " + SNAPPED,
        ),
        (
            {"column": "age", "digits": 0, "recoding": "median"},
            "recoding median knows no digits: choose one of mean, midpoint",
        ),
        (
            {"column": "age", "digits": 0},
            "recoding interval knows no digits: choose one of mean, midpoint",
        ),
        (
            {"column": "born", "at_least": 3, "snap": None},
            "at_least of type date is one of day, week, month, quarter, year, decade",
        ),
        (
            {"column": "age", "at_least": 1},
            "at_least means nothing of type integer here: use bands",
        ),
        (
            {"column": "sex", "at_least": "year"},
            "at_least of a column with a taxonomy is a number of levels above its leaves",
        ),
        (
            {"column": "sex", "at_least": "year", "taxonomy": None},
            "at_least of type text is a number of leading characters",
        ),
        (
            {"column": "sex", "at_least": 101, "taxonomy": None},
            "at_least is at most 100 characters",
        ),
        (
            {"column": "sex", "at_least": 1, "taxonomy": None, "order": ("a",), "recoding": None},
            "at_least means nothing of type text here: use a taxonomy",
        ),
        ({"column": "sex", "top": 9}, "top needs a numeric type, text is none"),
        (
            {"column": "born", "bands": 9, "snap": None},
            "bands needs a numeric type, date is none: use at_least",
        ),
        (
            {"column": "age", "bottom": 9, "taxonomy": "sex"},
            "bottom is for numbers on a line: leave it or the taxonomy out",
        ),
        ({"column": "age", "bands": 2.5}, "bands of type integer is a whole number"),
        ({"column": "age", "top": 1, "bottom": 2}, "bottom is at most top"),
        (
            {"column": "age", "top": 90, "snap": 5},
            "top publishes whole cells already: leave snap out",
        ),
        (
            {"column": "age", "keep": True, "bands": 10},
            "keep publishes the values as they are: leave bands out",
        ),
        (
            {"column": "sex", "pooled": ("036",), "taxonomy": None},
            "pooled goes with at_least, a number of leading characters",
        ),
        (
            {"column": "sex", "at_least": 1, "pooled": ("036",)},
            "pooled goes with at_least, a number of leading characters",
        ),
        (
            {"column": "sex", "at_least": 3, "pooled": ("036", "0359"), "taxonomy": None},
            "pooled lists texts of 3 characters, as many as at_least",
        ),
        (
            {"column": "age", "bands": 10, "recoding": "mean"},
            (
                "recoding mean knows no bands: choose one of bounds, center, date-part,"
                " full-domain, global, interval, interval-text, label, prefix, suppress"
            ),
        ),
    ],
)
def test_a_recoding_must_fit_the_type(changes, problem):
    assert [f"column {changes['column']}: {problem}"] == problems_of(with_rule(**changes))


@pytest.mark.parametrize("declared", ["text", "boolean"])
def test_labels_of_categories_need_no_taxonomy(declared):
    info = with_column(name="sex", type=declared, kind=KINDS[declared])
    assert validate(with_rule(column="sex", taxonomy=None), info, taxonomies=()) is None


def test_an_ordered_column_with_a_taxonomy_may_be_published_as_labels():
    policy = with_rule(column="age", recoding="label", taxonomy="age")
    assert validate(policy, INFO, taxonomies={"sex", "age"}) is None


def test_what_is_allowed_names_a_warning_and_a_reason():
    columns = (*POLICY.columns[:-1], replace(POLICY.columns[-1], allow=("near-unique",)))
    policy = replace(POLICY, columns=columns, allow=("loud: why",))
    known = (
        "k-of-one, no-diversity, unknown-value, no-subject, unique-together, new-column,"
        " not-approved, anatomy, pseudonym"
    )
    assert [
        f"allow names no warning that there is; those that it may name are {known}",
        'column cause: allow gives no reason: "near-unique: why"',
    ] == problems_of(policy)


def test_columns_that_are_not_named_may_be_dropped_and_nothing_else():
    named = replace(POLICY, columns=tuple(r for r in POLICY.columns if r.column != "born"))
    assert ["column born has no role"] == problems_of(named)
    assert validate(replace(named, rest="drop"), INFO, taxonomies={"sex"}) is None
    subject = replace(named, rest="drop", subject="born")
    assert validate(subject, INFO, taxonomies={"sex"}) is None


def test_new_values_need_a_taxonomy_and_no_population():
    validate(with_rule(column="sex", on_new_value="other"), INFO, taxonomies={"sex"})
    (problem,) = problems_of(with_rule(column="age", on_new_value="other"))
    assert "on_new_value needs a taxonomy" in problem
    counting = (*POLICY.models, ModelSpec("k-map", {"k": 20}))
    policy = replace(with_rule(column="sex", on_new_value="other"), models=counting)
    policy = replace(policy, population=TableName("public", "people"))
    (problem,) = problems_of(policy)
    assert "does not say what a class covers" in problem


def test_bounds_are_two_columns_of_names_that_nothing_else_has():
    validate(with_bounds("age", "born"), INFO, taxonomies={"sex"})
    info = replace(INFO, columns=(*INFO.columns, column("age_max", "text")))
    left_out = with_bounds("age")
    left_out = replace(
        left_out, columns=(*left_out.columns, ColumnRule("age_max", Role.IDENTIFIER))
    )
    validate(left_out, info, taxonomies={"sex"})
    shown = with_bounds("age")
    shown = replace(shown, columns=(*shown.columns, ColumnRule("age_max", Role.INSENSITIVE)))
    assert problems_of(shown, info) == [
        "column age: recoding bounds publishes a column age_max, and there is another one"
    ]


def test_names_of_bounds_are_not_cut_off():
    long = "é" * 30
    info = replace(INFO, columns=(*INFO.columns, column(long, "integer")))
    policy = replace(POLICY, columns=(*POLICY.columns, ColumnRule(long, Role.QUASI, "bounds")))
    assert [f"{long}_min", f"{long}_max"] == [
        re.search(r"publishes \"?([^\",]+)", text)[1] for text in problems_of(policy, info)
    ]


def test_a_model_about_a_column_is_asked_of_one():
    x_y = ModelSpec("x-y-anonymity", {"k": 2, "x": ("age",), "y": ("cause",)})
    policy = with_bounds("age", models=(*POLICY.models, x_y))
    (found,) = problems_of(policy)
    assert found.startswith("x-y-anonymity is about age, which recoding bounds publishes as two")


def test_one_column_of_numbers_has_the_role_weight():
    roles = {"sex": Role.WEIGHT, "born": Role.WEIGHT}
    columns = [replace(rule, role=roles.get(rule.column, rule.role)) for rule in POLICY.columns]
    columns = [ColumnRule(r.column, r.role) if r.role is Role.WEIGHT else r for r in columns]
    with pytest.raises(PolicyError) as caught:
        validate(replace(POLICY, columns=tuple(columns)), INFO, taxonomies={"sex"})
    assert "one column has the role weight, and not 2: born, sex" in str(caught.value)
    assert "weight column born is of type date, which is no number" in str(caught.value)


def test_a_weight_cannot_be_masked_as_nobody_gets_it():
    columns = [*POLICY.columns[:1], ColumnRule("age", Role.WEIGHT), *POLICY.columns[2:]]
    step = MaskingStep("rounding", ("age",), {"base": 5})
    with pytest.raises(PolicyError, match="masking by rounding of column age"):
        validate(replace(POLICY, columns=tuple(columns), masking=(step,)), INFO, taxonomies={"sex"})
