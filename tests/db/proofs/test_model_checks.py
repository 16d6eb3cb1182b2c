"""The checks in SQL against those in Python, and both against the examples of the papers."""

import math
from contextlib import nullcontext

import goldens
import numpy as np
import psycopg
import pytest
from builders import LETTERS, encoded, policy_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from naive.models import worst
from psycopg import sql
from selection import at_depth

from dbanon.db.models.functions import demands, model_statement, order_document, tree_document
from dbanon.domain.policy import ModelSpec
from dbanon.domain.table import ColumnKind
from dbanon.models.base import Scope
from dbanon.models.demands import achieved, all_demands, wholes
from dbanon.models.registry import MODELS

RELATION = sql.SQL("'public.t'::regclass")
SPECS = [
    ModelSpec("l-diversity", {"l": 2, "multi": "strict"}),
    ModelSpec("probabilistic-l-diversity", {"l": 1.5}),
    ModelSpec("entropy-l-diversity", {"l": 1.8}),
    ModelSpec("recursive-l-diversity", {"c": 1.3, "l": 2}),
    ModelSpec("recursive-l-diversity", {"c": 2, "l": 1}),
    ModelSpec("pd-recursive-l-diversity", {"c": 1.3, "l": 2, "positive": ("1", "b")}),
    ModelSpec("pd-recursive-l-diversity", {"c": 1.3, "l": 3, "positive": ("2", "true", "a")}),
    ModelSpec(
        "npd-recursive-l-diversity",
        {"c": 3, "l": 2, "positive": ("1", "b"), "share": 0.2, "negative": ("3", "c")},
    ),
    ModelSpec("alpha-k-anonymity", {"alpha": 0.5}),
    ModelSpec("listed-alpha-k-anonymity", {"alpha": 0.3, "listed": ("1", "b", "true", "B")}),
    ModelSpec("p-sensitivity", {"p": 2}),
    ModelSpec("t-closeness", {"t": 0.3}),
    ModelSpec("t-closeness", {"t": 0.3, "distance": "ordered"}),
    ModelSpec("t-closeness", {"t": 0.3, "distance": "hierarchical"}),
    ModelSpec("t-closeness", {"t": 0.3, "multi": "strict"}),
    ModelSpec("n-t-closeness", {"n": 4, "t": 0.3}),
    ModelSpec("n-t-closeness", {"n": 3, "t": 0.3, "distance": "ordered"}),
    ModelSpec("n-t-closeness", {"n": 5, "t": 0.2, "distance": "hierarchical", "multi": "strict"}),
    ModelSpec("beta-likeness", {"beta": 0.7}),
    ModelSpec("beta-likeness", {"beta": 0.7, "kind": "enhanced"}),
    ModelSpec("delta-disclosure", {"delta": 0.9}),
    ModelSpec("k-e-anonymity", {"k": 2, "e": 1.5}),
    ModelSpec("m-uniqueness", {"m": 2}),
]
LETTER = st.sampled_from(["a", "b", "c", "d", "e", "f", "g"])
KINDS = {
    "text": (ColumnKind.CATEGORY, LETTER),
    "varchar": (ColumnKind.CATEGORY, st.sampled_from(["", "B", "a", "á", "%s", "b"])),
    "integer": (ColumnKind.INTEGER, st.sampled_from(["1", "2", "3", "10", "-4"])),
    "numeric": (ColumnKind.DECIMAL, st.sampled_from(["1", "2.5", "10", "0.1", "1e3", "NaN"])),
    "float8": (ColumnKind.FLOAT, st.sampled_from(["0.1", "1", "-0", "0", "1e+20", "NaN"])),
    "real": (ColumnKind.FLOAT, st.sampled_from(["0.1", "1", "3.5"])),
    "date": (ColumnKind.DATE, st.sampled_from(["2020-01-01", "2019-12-31", "2021-03-01"])),
    "boolean": (ColumnKind.BOOLEAN, st.sampled_from(["true", "false"])),
    "public.mood": (ColumnKind.ORDINAL, st.sampled_from(["b", "a", "B", ""])),
    "public.word": (ColumnKind.CATEGORY, st.sampled_from(["", "B", "a", "á", "b"])),
    "public.amount": (ColumnKind.DECIMAL, st.sampled_from(["1", "2.5", "10", "0.1"])),
}
NUMBERS = {"integer", "numeric", "float8", "real", "public.amount"}
# None of them is that of the bytes. That of the enum is its own, and no document lists it.
ORDERS = {
    "text": tuple("dgafbec"),
    "varchar": ("b", "B", "á", "%s", "", "a"),
    "public.mood": ("b", "B", "", "never", "a"),
    "public.word": ("b", "B", "á", "", "a"),
}


def one(connection, spec, *, quasi, sensitive, tree=None, order=None):
    """Return one row for each column that the model is asked of."""
    known = {**(tree_document(tree) if tree else {}), **(order_document(order) if order else {})}
    trees = dict.fromkeys(sensitive, known) if known else {}
    found = demands([spec], quasi=quasi, sensitive=sensitive)
    calls = [model_statement(RELATION, demand, trees=trees) for demand in found]
    return [connection.execute(call).fetchone() for call in calls]


def fill(connection, columns, rows):
    connection.execute("DROP TABLE IF EXISTS public.t")
    spelled = sql.SQL(", ").join(
        sql.SQL("{} {}").format(sql.Identifier(n), sql.SQL(t)) for n, t in columns.items()
    )
    connection.execute(sql.SQL("CREATE TABLE public.t ({})").format(spelled))
    with connection.cursor().copy("COPY public.t FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)


@pytest.fixture(scope="module")
def connection(server, template):
    with server.database(template) as database, database.connect() as connection:
        connection.execute("CREATE TYPE public.mood AS ENUM ('b', 'B', '', 'a')")
        connection.execute("ALTER TYPE public.mood ADD VALUE 'never' BEFORE 'a'")
        connection.execute("CREATE DOMAIN public.noun AS text")
        connection.execute("CREATE DOMAIN public.word AS public.noun")
        connection.execute("CREATE DOMAIN public.amount AS numeric")
        yield connection


def in_python(table, spec, classes, coarser):
    """Return (achieved, failing classes) of the worst class of each sensitive column."""
    policy = policy_of(["q1"], table.sensitive_names)
    object.__setattr__(policy, "models", (spec,))
    rows, found = np.arange(table.n_rows), []
    demands = all_demands(table, policy)
    for demand, whole in zip(demands, wholes(table, demands, rows, coarser=coarser), strict=True):
        level = achieved(table, demand, rows, classes, whole=whole)
        bound = demand.model.bound
        found.append((worst(bound, level), bool(bound.holds(level, demand.model.required).all())))
    return found


def coarser_of(keys):
    """Return the class of each row by its keys, and for each prefix of them the set of a class."""
    ids = sorted(set(keys), key=repr)
    sets = []
    for width in range(1, len(ids[0]) + 1):
        prefixes = sorted({key[:width] for key in ids}, key=repr)
        sets.append(np.array([prefixes.index(key[:width]) for key in ids]))
    return np.array([ids.index(key) for key in keys], np.int32), tuple(sets)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=at_depth(12), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_the_database_counts_what_python_counts(connection, kind, data):
    column_kind, values = KINDS[kind]
    row = st.tuples(
        st.none() | st.sampled_from(["x", "y", ""]),
        st.none() | st.integers(0, 1),
        st.none() | values,
        st.none() | st.integers(1, 2),
    )
    rows = data.draw(st.lists(row, min_size=1, max_size=40))
    fill(connection, {"q1": "text", "q2": "int", "s": kind, "o": "int"}, rows)
    tree = LETTERS if kind == "text" else None
    table = encoded(
        {"q1": [r[0] for r in rows]},
        {"s": [r[2] for r in rows], "o": [None if r[3] is None else str(r[3]) for r in rows]},
        kinds={"s": column_kind, "o": ColumnKind.INTEGER},
        rules={"s": {"taxonomy": tree and "letters", "order": ORDERS.get(kind)}},
        taxonomies=[LETTERS],
    )
    classes, coarser = coarser_of([row[:2] for row in rows])
    for spec in SPECS:
        if spec.params.get("distance") == "hierarchical" and not tree:
            continue
        if spec.name == "k-e-anonymity" and kind not in NUMBERS:
            continue
        asked_of = ModelSpec(spec.name, {**spec.params, "columns": ("s",)})
        expected = in_python(table, asked_of, classes, coarser)
        order = None if kind == "public.mood" else ORDERS.get(kind)
        (found,) = one(
            connection, asked_of, quasi=["q1", "q2"], sensitive=["s", "o"], tree=tree, order=order
        )
        assert found[1] == pytest.approx(expected[0][0], abs=1e-9), (spec, rows)
        assert (found[5] == "passed") == expected[0][1], (spec, rows)
        assert found[4] == len(rows)


@pytest.mark.parametrize("kind", ["smallint", "bigint", *sorted(NUMBERS)])
def test_the_least_range_of_numbers_of_a_class_is_found(connection, kind):
    rows = [("x", 1), ("x", 4), ("y", 2), ("y", 9)]
    fill(connection, {"q1": "text", "s": kind}, rows)
    spec = ModelSpec("k-e-anonymity", {"k": 2, "e": 3})
    (found,) = one(connection, spec, quasi=["q1"], sensitive=["s"])
    assert (3, "passed") == (found[1], found[5])


def test_every_model_of_a_sensitive_column_is_compared():
    of_columns = {name for name, model in MODELS.items() if model.scope is Scope.SENSITIVE}
    assert {spec.name for spec in SPECS} == of_columns


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{spec.name}-{len(spec.params)}")
def test_an_empty_relation_is_not_checked(connection, spec):
    fill(connection, {"q1": "text", "s": "text"}, [])
    (found,) = one(connection, spec, quasi=["q1"], sensitive=["s"], tree=LETTERS, order=["a"])
    assert (None, 0, 0, 0, "not checked") == found[1:]


@pytest.mark.parametrize("name", [name for name in MODELS if MODELS[name].scope is Scope.SENSITIVE])
def test_a_call_that_says_nothing_is_refused(connection, name):
    fill(connection, {"q1": "text", "s": "text"}, [("x", "a")])
    function = sql.Identifier("dbanon", f"check_{name.replace('-', '_')}")
    wrong = {"int": "0", "float": "'NaN'", "tuple": "'{}'", "str": "'x'"}
    kinds = MODELS[name].parameters()
    for bad in [None, *kinds]:  # first a call in which all is right
        good = {"int": "2", "float": "0.5" if name != "x" else "", "tuple": "'{a}'", "str": "NULL"}
        values = {p: (wrong if p == bad else good)[kind.kind.__name__] for p, kind in kinds.items()}
        if "l" in values and kinds["l"].kind is float and bad != "l":
            values["l"] = "2"
        defaults = {p: v for p, v in values.items() if v != "NULL"}
        given = sql.SQL(", ").join(
            sql.SQL("{} => {}").format(sql.Identifier(p), sql.SQL(v)) for p, v in defaults.items()
        )
        call = sql.SQL("SELECT * FROM {}({}, ARRAY['q1'], 's', {})")
        refused = pytest.raises(psycopg.errors.InvalidParameterValue) if bad else nullcontext()
        with refused:
            connection.execute(call.format(function, RELATION, given))


@pytest.mark.parametrize(
    ("relation", "quasi", "sensitive"),
    [
        (None, ["q1"], "s"),
        ("public.t", None, "s"),
        ("public.t", [], "s"),
        ("public.t", ["q1"], None),
    ],
)
def test_a_tally_of_nothing_is_refused(connection, relation, quasi, sensitive):
    fill(connection, {"q1": "text", "s": "text"}, [("x", "a")])
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        connection.execute("SELECT dbanon.tally(%s, %s, %s)", (relation, quasi, sensitive))


def test_a_column_of_the_system_is_no_sensitive_column(connection):
    fill(connection, {"q1": "text", "s": "text"}, [("x", "a")])
    with pytest.raises(psycopg.errors.UndefinedColumn, match="the relation has no column xmin"):
        connection.execute("SELECT dbanon.tally('public.t', ARRAY['q1'], 'xmin')")


def test_names_are_never_run_as_sql(connection):
    fill(connection, {"q1": "text", "s": "text"}, [("x", "a")])
    evil = 's") FROM public.t; DROP TABLE public.t; --'
    for quasi, sensitive in ((["q1"], evil), ([evil], "s")):
        with pytest.raises(psycopg.errors.UndefinedColumn):
            connection.execute(
                "SELECT * FROM dbanon.check_t_closeness('public.t', %s, %s, 0.1, 'ordered',"
                ' \'{"order": ["a"]}\')',
                (quasi, sensitive),
            )


@pytest.mark.parametrize(("name", "params", "a", "b"), goldens.HOSPITAL)
def test_the_hospital_tables_achieve_what_the_reference_says(connection, name, params, a, b):
    for classes, expected in ((goldens.A, a), (goldens.B, b)):
        rows = [(str(i), goldens.NAMES[c]) for i, row in enumerate(classes) for c in row]
        fill(connection, {"q": "text", "s": "text"}, rows)
        least = worst(MODELS[name].bound, expected)
        columns = {"quasi": ["q"], "sensitive": ["s"]}
        spec = ModelSpec(name, {**params, "columns": ("s",)})
        (found,) = one(connection, spec, **columns)
        assert found[1] == pytest.approx(least, rel=1e-6)
        asked_for = next(iter(params))
        if MODELS[name].parameters()[asked_for].kind is int:
            for limit in {int(level) + more for level in expected for more in (0, 1)}:
                some = ModelSpec(name, {**spec.params, asked_for: limit})
                (found,) = one(connection, some, **columns)
                assert (sum(level < limit for level in expected), limit) == (found[3], found[0])
        for level in {level for level in expected if 0 < level < math.inf}:
            if MODELS[name].parameters()[asked_for].kind is int:
                continue
            near = level * (1 - 1e-4), min(level * (1 + 1e-4), 1.0 if asked_for == "alpha" else 99)
            for limit in near if level > 1 or asked_for != "l" else near[1:]:
                some = ModelSpec(name, {**spec.params, asked_for: limit})
                bound = MODELS[name].bound
                failing = int((~bound.holds(np.array(expected, float), limit)).sum())
                (found,) = one(connection, some, **columns)
                assert (failing, limit) == (found[3], found[0])


def test_the_hospital_tables_are_4_anonymous_and_have_the_entropies_of_the_reference(connection):
    for name, classes in (("A", goldens.A), ("B", goldens.B)):
        rows = [(str(i), goldens.NAMES[c]) for i, row in enumerate(classes) for c in row]
        fill(connection, {"q": "text", "s": "text"}, rows)
        for k, failing in ((4, 0), (5, 3)):
            call = f"SELECT * FROM dbanon.check_k_anonymity('public.t', '{{q}}', {k})"
            assert (k, 4, 3, failing, 12) == connection.execute(call).fetchone()[:5]
        entropy = (
            "SELECT ln(achieved) FROM dbanon.check_entropy_l_diversity('public.t', %s, 's', 1)"
        )
        (worst,) = connection.execute(entropy, (["q"],)).fetchone()
        assert worst == pytest.approx(min(goldens.ENTROPIES[name]), abs=1e-6)
        fill(connection, {"q": "text", "s": "text"}, [("all", s) for _, s in rows])
        (whole,) = connection.execute(entropy, (["q"],)).fetchone()
        assert math.exp(whole) == pytest.approx(goldens.WHOLE_ENTROPY, abs=5e-5)
        for number, row in enumerate(classes):
            fill(connection, {"q": "text", "s": "text"}, [("one", c) for c in row])
            (of_class,) = connection.execute(entropy, (["q"],)).fetchone()
            assert of_class == pytest.approx(goldens.ENTROPIES[name][number], abs=1e-6)


def test_recursive_diversity_is_strict(connection):
    call = (
        "SELECT achieved, verdict"
        " FROM dbanon.check_recursive_l_diversity('public.t', %s, 's', %s, %s)"
    )
    rows = [(str(i), goldens.NAMES[c]) for i, row in enumerate(goldens.B) for c in row]
    fill(connection, {"q": "text", "s": "text"}, rows)
    for c, l, holds in goldens.RECURSIVE:
        found = connection.execute(call, (["q"], c, l)).fetchone()
        assert holds == (found[1] == "passed"), (c, l)
    fill(connection, {"q": "text", "s": "text"}, [("x", c) for c in goldens.VECTOR])
    for l, c in goldens.INFIMA.items():
        for more, verdict in ((0, "failed"), (1e-6, "passed")):
            found = connection.execute(call, (["q"], c + more, l)).fetchone()
            assert (pytest.approx(c), verdict) == found


@pytest.mark.parametrize(("classes", "salary", "tree", "equal"), goldens.CLOSENESS)
def test_the_tables_of_li_et_al_are_as_close_as_the_reference_says(
    connection, classes, salary, tree, equal
):
    rows = [
        (str(i), goldens.SALARIES[row - 1], goldens.DISEASES[row - 1])
        for i, members in enumerate(classes)
        for row in members
    ]
    fill(connection, {"q": "text", "salary": "int", "disease": "text"}, rows)
    document = psycopg.types.json.Jsonb(tree_document(goldens.DISEASE_TREE))
    for column, distance, expected in (
        ("salary", "ordered", salary),
        ("disease", "hierarchical", tree),
        ("disease", "equal", equal),
    ):
        found = connection.execute(
            "SELECT achieved FROM dbanon.distances('public.t', '{q}', %s, %s, %s, 0, 0)"
            " ORDER BY class",
            (column, distance, document),
        ).fetchall()
        assert expected == pytest.approx([row[0] for row in found])
        distinct = ModelSpec("l-diversity", {"l": 3, "columns": (column,)})
        assert [(3, 3, 3, 0, 9, "passed")] == one(
            connection, distinct, quasi=["q"], sensitive=["salary", "disease"]
        )
    close = ModelSpec("t-closeness", {"t": 1 / 6, "distance": "ordered", "columns": ("salary",)})
    (found,) = one(connection, close, quasi=["q"], sensitive=["salary"])
    assert ("passed" if classes == goldens.ALTERNATIVE else "failed") == found[5]


def test_strictly_the_table_of_li_et_al_is_1_diverse(connection):
    rows = [
        (str(i), goldens.SALARIES[row - 1], goldens.DISEASES[row - 1])
        for i, members in enumerate(goldens.PUBLISHED)
        for row in members
    ]
    fill(connection, {"q": "text", "salary": "int", "disease": "text"}, rows)
    columns = {"quasi": ["q"], "sensitive": ["disease", "salary"]}
    strict = ModelSpec("l-diversity", {"l": 2, "multi": "strict", "columns": ("disease",)})
    apart = ModelSpec("l-diversity", {"l": 3, "columns": ("disease",)})
    assert [(2, 1, 9, 9, 9, "failed")] == one(connection, strict, **columns)
    assert [(3, 3, 3, 0, 9, "passed")] == one(connection, apart, **columns)


def test_the_least_diverse_class_of_a_skewed_table_is_the_closest(connection):
    rows = [(str(i), "p") for i, (p, _) in enumerate(goldens.SKEWED) for _ in range(p)]
    rows += [(str(i), "n") for i, (_, n) in enumerate(goldens.SKEWED) for _ in range(n)]
    positive = 100 - sum(p for p, _ in goldens.SKEWED)
    rows += [("rest", "p")] * positive + [("rest", "n")] * (10_000 - 12 - positive)
    fill(connection, {"q": "text", "s": "text"}, rows)
    found = connection.execute(
        "SELECT achieved FROM dbanon.distances('public.t', '{q}', 's', 'equal', NULL, 0, 0)"
        " ORDER BY class"
    ).fetchall()
    assert goldens.SKEWED_ACHIEVED == pytest.approx([row[0] for row in found[:3]])
    assert not math.isnan(found[3][0])
    for level in (1, 2, 3):
        row = connection.execute(
            "SELECT failing_classes FROM dbanon.check_l_diversity('public.t', '{q}', 's', %s)",
            (level,),
        ).fetchone()
        few = sum(distinct < level for distinct in [*goldens.SKEWED_DISTINCT, 2])
        assert (few,) == row
