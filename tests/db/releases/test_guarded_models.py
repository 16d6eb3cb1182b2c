"""The guards of a live view hide just the classes that the checks find failing."""

import random

import pytest
from live import DISEASES, EIGHT, K2, SIXES, VISITS, WAGES, policy_of, serve, shown
from psycopg import sql
from tables import make_patients, patients_policy

import dbanon
from dbanon.db.models.functions import demands, model_statement
from dbanon.domain.policy import ModelSpec
from dbanon.models.registry import MODELS, SHORT, is_plain, title

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
    ModelSpec(
        "listed-alpha-k-anonymity",
        {"alpha": 0.5, "listed": ("a", "it's \\ %s"), "columns": ("disease",)},
    ),
    ModelSpec("p-sensitivity", {"p": 3, "columns": ("disease",)}),
    ModelSpec("k-e-anonymity", {"k": 2, "e": 1.5, "columns": ("wage",)}),
    ModelSpec("m-uniqueness", {"m": 2, "columns": ("wage",)}),
]


@pytest.fixture(scope="module")
def shared(server, template):
    """One database for all tests of this file: making them takes longer than the tests."""
    with server.database(template) as database:
        yield database


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
    models = [spec for spec in policy.models if not is_plain(spec)]
    for demand in demands(models, quasi=("zip",), sensitive=("disease", "wage")):
        statement = model_statement(relation, demand, trees={})
        verdicts.append(connection.execute(statement).fetchone()[-1])
    return smallest < policy.k or "failed" in verdicts


def test_every_model_of_one_class_is_guarded():
    of_classes = {name for name, model in MODELS.items() if not model.of_whole}
    assert of_classes - {spec.name for spec in OF_ONE_CLASS} == {"k-anonymity"}


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


def test_groups_that_publish_alike_are_judged_as_one_class(shared):
    serve(shared, policy_of(ModelSpec("k-anonymity", {"k": 5})), SIXES)
    shared.execute("DELETE FROM public.people WHERE id = 0")
    assert shown(shared) == 23  # three and two rows under one postcode
    shared.execute("DELETE FROM public.people WHERE id = 5")
    assert shown(shared) == 18  # all four are hidden


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
