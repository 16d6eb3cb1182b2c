"""The guards of a live view hide just the classes that the checks find failing."""

import random

import pytest
from psycopg import sql
from tables import make_patients, patients_policy

import dbanon
from dbanon.db import catalog, relations, views
from dbanon.db.judgements import arithmetic
from dbanon.db.models import asked, model_statement
from dbanon.db.relations import Publication
from dbanon.db.session import connect
from dbanon.domain.models import MODEL_KINDS, SHORT, title
from dbanon.domain.policy import ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.release import ReleaseKind
from dbanon.domain.table import TableName

TABLE, VIEW = TableName("public", "people"), TableName("anon", "people")
K2 = ModelSpec("k-anonymity", {"k": 2})
OF_ONE_CLASS = [
    ModelSpec("l-diversity", {"l": 2}),
    ModelSpec("l-diversity", {"l": 2, "columns": ("wage",)}),
    ModelSpec("l-diversity", {"l": 2, "multi": "strict"}),
    ModelSpec("probabilistic-l-diversity", {"l": 1.5}),
    ModelSpec("entropy-l-diversity", {"l": 2.5}),
    ModelSpec("entropy-l-diversity", {"l": 1.5, "multi": "strict"}),
    ModelSpec("recursive-l-diversity", {"c": 1.5, "l": 2}),
    ModelSpec("pd-recursive-l-diversity", {"c": 1.2, "l": 2, "positive": ("a", "1.5")}),
    ModelSpec(
        "npd-recursive-l-diversity",
        {
            "c": 3,
            "l": 2,
            "positive": ("a", "it's \\ %s"),
            "share": 0.15,
            "negative": ("b",),
            "columns": ("disease",),
        },
    ),
    ModelSpec("alpha-k-anonymity", {"alpha": 0.5}),
    ModelSpec("p-sensitivity", {"p": 3, "columns": ("disease",)}),
    ModelSpec("k-e-anonymity", {"k": 2, "e": 1.5, "columns": ("wage",)}),
    ModelSpec("m-uniqueness", {"m": 2, "columns": ("wage",)}),
]
DISEASES = ["a", "b", "c", None, "it's \\ %s"]
WAGES = ["1.5", "1.50", "2", "4", None]
# (disease, wage) of the six rows of a class: crossed, distinct, skewed, constant.
CLASSES = [
    [(d, w) for w in ("1.5", "2", "4") for d in ("a", "b")],
    [(d, str(i)) for i, d in enumerate([*DISEASES, "a"])],
    [("a", "1.5"), ("a", "1.5"), ("a", "1.50"), ("a", "1.5"), ("b", "2"), ("c", "4")],
    [("a", "2")] * 6,
]
SIZE = 3
SIXES = [(j, f"zip {i}", *row) for i, rows in enumerate(CLASSES) for j, row in enumerate(rows)]
EIGHT = SIXES + [(j, f"{place}, other", *row) for j, place, *row in SIXES]


@pytest.fixture(scope="module")
def shared(server, template):
    """One database for all tests of this file: making them takes longer than the tests."""
    with server.database(template) as database:
        yield database


def policy_of(*models, subject=None):
    columns = (
        ColumnRule("id", Role.IDENTIFIER),
        ColumnRule("person", Role.IDENTIFIER),
        ColumnRule("zip", Role.QUASI),
        ColumnRule("disease", Role.SENSITIVE),
        ColumnRule("wage", Role.SENSITIVE),
    )
    return Policy(table=TABLE, columns=columns, models=models, subject=subject)


def serve(database, policy, rows):
    """Serve people live without a search: three rows a group, two groups a postcode."""
    database.execute("DROP TABLE IF EXISTS public.people CASCADE")
    with connect(database.settings) as session, session.transaction():
        relations.drop_private(session, 1)
    database.execute(
        "CREATE TABLE public.people (id int PRIMARY KEY, person int NOT NULL, zip text,"
        " disease text, wage numeric)"
    )
    with (
        database.connect() as writer,
        writer.cursor().copy("COPY public.people FROM STDIN") as copy,
    ):
        for i, row in enumerate(rows):
            copy.write_row((i, *row))
    groups = len(rows) // SIZE
    with connect(database.settings) as session, session.transaction():
        publication = Publication(
            id=1,
            info=catalog.describe(session, TABLE),
            policy=policy,
            kind=ReleaseKind.VIEW,
            view=VIEW,
            recodings=(("zip", "label"),),
        )
        for statement in relations.build_statements(publication):
            session.pg.execute(statement)
        session.pg.execute(
            sql.SQL("INSERT INTO {} SELECT id, id / {} FROM public.people").format(
                publication.rows, SIZE
            )
        )
        session.pg.execute(
            sql.SQL("INSERT INTO {} (group_id, q1) SELECT g, 'zip ' || g / 2 FROM {} AS g").format(
                publication.groups, sql.SQL("generate_series(0, {})").format(groups - 1)
            )
        )
        for statement in relations.serve_statements(publication):
            session.pg.execute(statement)
        views.ensure_schema(session, VIEW)
        views.replace(session, VIEW, relations.view_statement(publication))
        session.pg.execute(relations.comment_statement(publication))
    return publication


WRITES = [
    "UPDATE public.people SET disease = %(disease)s WHERE id = ANY (%(some)s)",
    "UPDATE public.people SET wage = %(wage)s WHERE id = ANY (%(some)s)",
    "DELETE FROM public.people WHERE id = ANY (%(few)s)",
    "UPDATE public.people SET zip = 'elsewhere' WHERE id = ANY (%(few)s)",
    "UPDATE public.people SET id = id + 1000 WHERE id = ANY (%(few)s)",
    "INSERT INTO public.people VALUES ((%(few)s::int[])[1], 1, 'zip 1', 'a', 2)"  # noqa: ISC004
    " ON CONFLICT (id) DO UPDATE SET disease = excluded.disease",
]

EVERYONE = "UPDATE public.people SET wage = wage + 0.25"


def write(connection, dice):
    some = dice.sample(range(48), 8)
    connection.execute(
        dice.choice(WRITES),
        {
            "disease": dice.choice(DISEASES),
            "wage": dice.choice(WAGES),
            "some": some,
            "few": some[:2],
        },
    )


def hidden(connection):
    rows = connection.execute("SELECT group_id FROM dbanon_data.groups_1 WHERE NOT shown")
    return {row[0] for row in rows}


def fails(connection, policy, group):
    """Whether the checks fail a class alone, hidden or not."""
    connection.execute(sql.SQL("SET test.class = {}").format(sql.Literal(str(group))))
    relation = sql.SQL("'public.one'::regclass")
    smallest = connection.execute("SELECT count(*) FROM public.one").fetchone()[0]
    verdicts = []
    if policy.l > 1:
        check = "SELECT verdict FROM dbanon.check_l_diversity('public.one', '{zip}', %s, %s)"
        columns = ("disease", "wage")
        verdicts += [connection.execute(check, (c, policy.l)).fetchone()[0] for c in columns]
    for question in asked(policy.models, quasi=("zip",), sensitive=("disease", "wage")):
        statement = model_statement(relation, question, trees={})
        verdicts.append(connection.execute(statement).fetchone()[-1])
    return smallest < policy.k or "failed" in verdicts


@pytest.mark.parametrize("spec", OF_ONE_CLASS, ids=title)
def test_a_class_is_hidden_when_its_check_fails_and_not_before(shared, spec):
    policy = policy_of(K2, spec)
    serve(shared, policy, EIGHT)
    connection, dice = shared.connect(), random.Random(5)  # noqa: S311
    connection.execute("SET DateStyle = 'SQL, DMY'; SET extra_float_digits = -10")
    connection.execute(
        "CREATE VIEW public.one AS SELECT 'z' AS zip, s.disease, s.wage FROM public.people AS s"
        " JOIN dbanon_data.rows_1 AS r ON r.k1 = s.id"
        " WHERE r.group_id = current_setting('test.class')::int"
    )
    before, judged = hidden(connection), 0
    connection.execute(EVERYONE)
    for _ in range(8):
        now = hidden(connection)
        for group in now - before:
            assert fails(connection, policy, group)
        found = connection.execute("SELECT verdict FROM dbanon.verify('anon.people')").fetchall()
        assert ("failed",) not in found
        judged += len(now - before) * (("passed",) in found)
        before = now
        write(connection, dice)
    assert 0 < judged


def test_the_arithmetic_of_every_check_of_one_class_is_found():
    kinds = {name for name, kind in MODEL_KINDS.items() if kind.per_sensitive}
    whole = {name for name in kinds if MODEL_KINDS[name].of_whole}
    assert {"t-closeness", "n-t-closeness", "beta-likeness", "delta-disclosure"} == whole
    for name in kinds - whole:
        steps, fails_ = arithmetic(name)
        assert steps.rstrip().endswith(")"), name
        assert "each_class AS" in steps, name
        assert fails_.startswith("e.achieved"), name


def test_groups_that_publish_alike_are_judged_as_one_class(shared):
    serve(shared, policy_of(ModelSpec("k-anonymity", {"k": 5})), SIXES)
    shared.execute("DELETE FROM public.people WHERE id = 0")
    assert shown(shared) == 23  # three and two rows under one postcode
    shared.execute("DELETE FROM public.people WHERE id = 5")
    assert shown(shared) == 18  # all four are hidden


def shown(database):
    return database.execute("SELECT count(*) FROM anon.people")[0][0]


VISITS = [(i // 2, f"zip {i // 6}", "abc"[i // 2 % 3], "1") for i in range(12)]


def test_k_counts_persons_where_one_has_several_rows(shared):
    serve(shared, policy_of(ModelSpec("k-anonymity", {"k": 3}), subject="person"), VISITS)
    shared.execute("DELETE FROM public.people WHERE id IN (0, 2)")
    assert shown(shared) == 10
    shared.execute("DELETE FROM public.people WHERE id = 1")  # four rows of two persons are left
    assert shown(shared) == 6


def test_a_person_with_two_values_counts_for_neither(shared):
    models = (K2, ModelSpec("l-diversity", {"l": 2, "columns": ("disease",)}))
    serve(shared, policy_of(*models, subject="person"), VISITS)
    shared.execute("UPDATE public.people SET disease = 'z' WHERE id IN (0, 1)")
    assert shown(shared) == 12
    shared.execute("UPDATE public.people SET disease = 'y' WHERE id = 6")
    assert shown(shared) == 6


@pytest.mark.parametrize("name", ["t", "beta", "delta"])
def test_models_that_compare_with_the_whole_are_refused(database, name):
    table = make_patients(database, rows=20)
    dbanon.set_policy(table, patients_policy(table, k=2, l=None), settings=database.settings)
    asked_for = [ModelSpec(SHORT[name], {name: 0.5})]
    with pytest.raises(dbanon.ConfigError, match="the whole") as caught:
        dbanon.publish(table, models=asked_for, kind="view", settings=database.settings)
    assert "--as table" in caught.value.hint
    assert "dbanon refresh public.patients" in caught.value.hint
