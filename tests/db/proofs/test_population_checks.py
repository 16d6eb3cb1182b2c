"""The checks of a population and of (X, Y) in SQL against those in Python."""

from contextlib import nullcontext
from datetime import date

import numpy as np
import psycopg
import pyarrow as pa
import pytest
from builders import ARROW_TYPES, LETTERS, encoded
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from naive.models import worst
from psycopg import sql
from psycopg.types.json import Jsonb

from dbanon.anonymization.adjusting.merging import failing
from dbanon.anonymization.encoding.population import encode_population, presence_of
from dbanon.anonymization.loss.metrics import publication
from dbanon.anonymization.registry import RECODINGS
from dbanon.db import catalog
from dbanon.db.models.functions import Demand, demands, model_statement
from dbanon.db.proofs import subjects
from dbanon.db.proofs.subjects import labels_document, persons_statement
from dbanon.db.releases.publication import published_type
from dbanon.db.session import connect
from dbanon.domain.assignment import Assignment, GroupValues
from dbanon.domain.errors import PolicyError
from dbanon.domain.policy import ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.table import ColumnInfo, ColumnKind, TableName
from dbanon.models.demands import achieved_by_persons
from dbanon.models.registry import MODELS, model_of

TEXTS = st.none() | st.sampled_from(["x", "B", "", "*", 'quo"ted, {}\\', "NULL"])
LEAVES = st.none() | st.sampled_from("abcdefg")
# the type of a column, its kind, its values in the table and in the population, and its rules
COLUMNS = {
    "integer": (ColumnKind.INTEGER, st.none() | st.integers(-2, 6), {}),
    "bigint": (ColumnKind.INTEGER, st.integers(0, 9), {"snap": 4}),
    "numeric": (ColumnKind.DECIMAL, st.none() | st.sampled_from([0.1, 0.25, 1.0, 10.0]), {}),
    "float8": (ColumnKind.FLOAT, st.sampled_from([0.1, 0.3, 1e20, -1.5]), {"snap": 0.1}),
    "real": (ColumnKind.FLOAT, st.sampled_from([0.1, 0.5, 2.0]), {"recoding": "set"}),
    "date": (ColumnKind.DATE, st.none() | st.dates(date(2020, 1, 1), date(2020, 1, 6)), {}),
    "text": (ColumnKind.CATEGORY, TEXTS, {}),
    "varchar": (ColumnKind.CATEGORY, LEAVES, {"taxonomy": "letters"}),
    "char(4)": (ColumnKind.CATEGORY, st.none() | st.sampled_from("xyz"), {"recoding": "set"}),
    "boolean": (ColumnKind.BOOLEAN, st.sampled_from(["true", "false"]), {"recoding": "suppress"}),
}
SPECS = [
    ModelSpec("k-map", {"k": 2}),
    ModelSpec("k-map", {"k": 5}),
    ModelSpec("delta-presence", {"dmax": 0.5}),
    ModelSpec("delta-presence", {"dmin": 0.2, "dmax": 1.0}),
]


@pytest.fixture(scope="module")
def connection(server, template):
    with server.database(template) as database, database.connect() as connection:
        yield connection


def create(connection, name, columns, rows):
    table = sql.Identifier("public", name)
    connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(table))
    spelled = [sql.SQL("{} {}").format(sql.Identifier(n), sql.SQL(t)) for n, t in columns.items()]
    connection.execute(sql.SQL("CREATE TABLE {} ({})").format(table, sql.SQL(", ").join(spelled)))
    with connection.cursor().copy(sql.SQL("COPY {} FROM STDIN").format(table)) as copy:
        for row in rows:
            copy.write_row(row)


@st.composite
def publications(draw):
    """Draw a publication of some groups, its population, and both as tables of SQL."""
    types = draw(st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=3, unique=True))
    names = [f"q {i}" for i in range(len(types))]
    values = st.tuples(*(COLUMNS[t][1] for t in types))
    rows = draw(st.lists(values, min_size=1, max_size=10))
    people = draw(st.lists(values | st.sampled_from(rows), max_size=25))
    kinds = {name: COLUMNS[t][0] for name, t in zip(names, types, strict=True)}
    rules = {name: COLUMNS[t][2] for name, t in zip(names, types, strict=True)}
    rules = {name: rule for name, rule in rules.items() if rule}
    columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    sensitive = {"s": draw(st.lists(LEAVES, min_size=len(rows), max_size=len(rows)))}
    table = encoded(columns, sensitive, kinds=kinds, rules=rules, taxonomies=[LETTERS])
    source = {
        name: pa.array([row[i] for row in people], ARROW_TYPES[kinds[name]])
        for i, name in enumerate(names)
    }
    group = draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows)))
    found, number = np.unique(group, return_inverse=True)
    assignment = Assignment(number.astype(np.int32), len(found))
    shown = tuple(
        RECODINGS[
            column.rule.recoding or ("interval" if column.taxonomy is None else "label")
        ].publish(column, assignment)
        for column in table.quasi
    )
    published = publication(table, assignment, GroupValues(shown, len(found)), k=1)
    infos = [
        ColumnInfo(n, t, {"integer": "int4", "bigint": "int8"}.get(t, t), kinds[n])
        for n, t in zip(names, types, strict=True)
    ]
    return published, encode_population(pa.table(source), table), infos, people


def fill(connection, published, infos, people):
    """Create what is published, and the population, and return the trees of its labels."""
    shown = published.values.columns
    types = {c.name: published_type(c.recoding, info) for c, info in zip(shown, infos, strict=True)}
    group = published.assignment.group
    rows = [
        (*(column.labels[column.index[g]] for column in shown), label)
        for g, label in zip(group.tolist(), published.table.sensitive[:, 0].tolist(), strict=True)
    ]
    create(connection, "t", {**types, "s": "integer"}, rows)
    create(connection, "p", {info.name: info.type for info in infos}, people)
    trees = {
        column.name: labels_document(column.taxonomy)
        for column, values in zip(published.table.quasi, shown, strict=True)
        if column.rule.taxonomy and values.recoding == "label"
    }
    return [info.name for info in infos], Jsonb(trees)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(publications())
def test_the_database_covers_what_python_covers(connection, drawn):
    published, population, infos, people = drawn
    names, trees = fill(connection, published, infos, people)
    found = connection.execute(
        "SELECT members, covered, alone, taken FROM dbanon.presence('public.t', %s, 'public.p', %s)"
        " WHERE class IS NOT NULL ORDER BY 1, 2, 3, 4",
        (names, trees),
    ).fetchall()
    presence = presence_of(published, population)
    assert sorted(zip(*(array.tolist() for array in presence[:4]), strict=True)) == found
    (uncovered,) = connection.execute(
        "SELECT covered FROM dbanon.presence('public.t', %s, 'public.p', %s) WHERE class IS NULL",
        (names, trees),
    ).fetchone()
    assert presence.uncovered == uncovered
    for spec in SPECS:
        model = model_of(spec)
        named = [sql.SQL("{} => {}").format(sql.Identifier(n), v) for n, v in spec.params.items()]
        function = sql.Identifier("dbanon", f"check_{spec.name.replace('-', '_')}")
        call = sql.SQL("SELECT * FROM {}('public.t', {}, 'public.p', trees => {}, {})").format(
            function, names, trees, sql.SQL(", ").join(named)
        )
        row = connection.execute(call).fetchone()
        bad = failing(published, [model], population)[0]
        assert (row[5] == "passed") == (not bad.any()), spec
        assert row[2] == len(published.size)
        if row[0] == model.required:
            assert row[1] == pytest.approx(worst(model.bound, model.achieved(presence)))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(publications(), st.data())
def test_the_database_links_what_python_links(connection, drawn, data):
    published, _, infos, people = drawn
    names, _ = fill(connection, published, infos, people)
    order = data.draw(st.permutations([*names, "s"]))
    cut = data.draw(st.integers(1, len(order) - 1))
    y = tuple(order[:cut])
    x = data.draw(st.sampled_from([(), tuple(order[cut:])])) if set(names) - set(y) else ()
    if not x and not set(names) - set(y):
        x = tuple(order[cut:])
    for k in (1, 2, 3):
        spec = ModelSpec("x-y-anonymity", {"k": k, "y": y, **({"x": x} if x else {})})
        (demand,) = demands([spec], quasi=names, sensitive=["s"])
        call = model_statement(sql.SQL("'public.t'::regclass"), demand, trees={})
        found = connection.execute(call).fetchone()
        shown = published.table, published.assignment.group, published.values
        assert model_of(spec).holds(*shown) == (found[5] == "passed")
        params = Jsonb(
            {key: list(v) if isinstance(v, tuple) else v for key, v in spec.params.items()}
        )
        again = connection.execute(
            "SELECT * FROM dbanon.verify_model('public.t', 'x-y-anonymity', %s, NULL, %s, NULL)",
            (names, params),
        ).fetchone()
        assert found == again


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.none() | st.sampled_from("xy"),
            st.none() | st.integers(0, 1),
            st.none() | st.sampled_from("abc"),
            st.integers(0, 4),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_the_database_counts_the_persons_that_python_counts(connection, rows):
    create(connection, "t", {"q": "text", "r": "int", "s": "text", "p": "int"}, rows)
    keys, people, values = (
        np.unique([repr(part) for part in column], return_inverse=True)[1].astype(np.int32)
        for column in ([r[:2] for r in rows], [r[3] for r in rows], [r[2] for r in rows])
    )
    for name, model in MODELS.items():
        if model.of_persons is None:
            continue
        parameter = {"alpha-k-anonymity": "alpha", "p-sensitivity": "p"}.get(name, "l")
        spec = ModelSpec(name, {parameter: 0.5 if parameter == "alpha" else 2})
        demand = Demand(spec, "s", ("q", "r"))
        statement = persons_statement(sql.Identifier("public", "t"), demand, subject="p")
        found = connection.execute(statement).fetchone()
        level = achieved_by_persons(model.of_persons, keys, people, values)
        required = spec.params[parameter]
        below, above = (level < required - 1e-9).sum(), (level > required + 1e-9).sum()
        assert (required, len(level), below, above) == (found[0], *found[3:6])
        assert (level.min(), level.max()) == pytest.approx(found[1:3])


@pytest.mark.parametrize(
    "call",
    [
        "check_x_y_anonymity('public.t', '{q}', '{s}', 0)",
        "check_x_y_anonymity('public.t', '{q}', '{}', 1)",
        "check_x_y_anonymity('public.t', '{q}', '{q}', 1)",
        "check_x_y_anonymity(NULL, '{q}', '{s}', 1)",
        "check_k_map('public.t', '{q}', 'public.t', 0)",
        "check_k_map('public.t', '{q}', NULL, 1)",
        "check_k_map('public.t', '{}', 'public.t', 1)",
        "check_delta_presence('public.t', '{q}', 'public.t', 0.5, 0.6)",
        "check_delta_presence('public.t', '{q}', 'public.t', 'NaN')",
        "check_delta_presence('public.t', '{q}', 'public.t', 1.5)",
    ],
)
def test_a_call_that_says_nothing_is_refused(connection, call):
    create(connection, "t", {"q": "text", "s": "text"}, [("x", "y")])
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        connection.execute(f"SELECT * FROM dbanon.{call}")


def test_names_are_never_run_as_sql(connection):
    create(connection, "t", {"q": "text", "s": "text"}, [("x", "y")])
    evil = '{"q\\") FROM public.t; DROP TABLE public.t; --"}'
    for call in (
        "check_x_y_anonymity('public.t', %s, '{s}', 1)",
        "check_x_y_anonymity('public.t', '{s}', %s, 1)",
        "check_k_map('public.t', %s, 'public.t', 1)",
        "check_delta_presence('public.t', %s, 'public.t', 1)",
    ):
        with pytest.raises(psycopg.errors.UndefinedColumn):
            connection.execute(f"SELECT * FROM dbanon.{call}", (evil,))
    odd = "%s $1 %1$s"
    create(connection, "t", {odd: "text", "s": "text"}, [("x", "y"), ("x", "z")])
    for call, achieved in (
        ("check_x_y_anonymity('public.t', %s, '{s}', 1)", 2),
        ("check_k_map('public.t', %s, 'public.t', 1)", 2),
        ("check_delta_presence('public.t', %s, 'public.t', 1)", 1),
    ):
        found = connection.execute(f"SELECT * FROM dbanon.{call}", ([odd],)).fetchone()
        assert (achieved, "passed") == (found[1], found[5])


def test_an_empty_relation_is_not_checked(connection):
    create(connection, "t", {"q": "text", "s": "text"}, [])
    create(connection, "p", {"q": "text"}, [("x",)])
    for call in (
        "check_x_y_anonymity('public.t', '{q}', '{s}', 1)",
        "check_k_map('public.t', '{q}', 'public.p', 1)",
        "check_delta_presence('public.t', '{q}', 'public.p', 1, 0.5)",
    ):
        found = connection.execute(f"SELECT * FROM dbanon.{call}").fetchone()
        assert (None, 0, 0, 0, "not checked") == found[1:]


# What becomes of a table, and why it can no longer be read as a population.
UNREADABLE = {
    "a view": (
        "ALTER TABLE public.everybody RENAME TO a; CREATE VIEW public.everybody AS TABLE public.a",
        "it is no table",
    ),
    "row-level security": (
        "ALTER TABLE public.everybody ENABLE ROW LEVEL SECURITY",
        "it has row-level security",
    ),
}
MISFITTING = {
    "a column less": ("ALTER TABLE public.everybody DROP q", "it has no column q"),
    "another type": ("ALTER TABLE public.everybody ALTER q TYPE bigint", "is of type bigint"),
    "fewer rows": ("DELETE FROM public.everybody", "it has 0 rows, fewer than the 1 of public.few"),
}
FEW, EVERYBODY = TableName("public", "few"), TableName("public", "everybody")
OF_EVERYBODY = Policy(
    FEW,
    (ColumnRule("id", Role.IDENTIFIER), ColumnRule("q", Role.QUASI)),
    (ModelSpec("k-anonymity", {"k": 1}), ModelSpec("k-map", {"k": 1})),
    population=EVERYBODY,
)


@pytest.mark.parametrize("change", [None, *UNREADABLE, *MISFITTING])
def test_a_population_is_a_table_of_as_many_people_with_the_same_columns(database, change):
    database.execute(
        "CREATE TABLE public.few (id int PRIMARY KEY, q int); INSERT INTO public.few VALUES (1, 1);"
        "CREATE TABLE public.everybody AS SELECT q FROM public.few"
    )
    statement, told = {**UNREADABLE, **MISFITTING}.get(change, ("SELECT", None))
    database.execute(statement)
    refused = pytest.raises(PolicyError, match=told) if told else nullcontext()
    with connect(database.settings) as session:
        with session.transaction(keep=False), refused:
            info = catalog.describe(session, FEW)
            subjects.describe_population(session, info, OF_EVERYBODY, n_rows=1)
        with (
            session.transaction(keep=False),
            refused if change in UNREADABLE else nullcontext(),
        ):
            subjects.admitted_population(session, EVERYBODY)
