"""What a materialized view is made of by a function whose parts the catalogs know."""

import pytest

import dbanon
from dbanon.domain.policy import K_ANONYMITY, ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.table import TableName

STORED = TableName("public", "stored")
RULES = (
    ColumnRule("id", Role.IDENTIFIER),
    ColumnRule("age", Role.QUASI),
    ColumnRule("disease", Role.SENSITIVE),
)
MODELS = (ModelSpec(K_ANONYMITY, {"k": 5}),)


@pytest.mark.pg(">= 14")  # earlier servers record nothing of what a function reads
def test_what_a_function_below_a_materialized_view_reads_is_as_private_as_it(database):
    database.role("mole")
    database.execute(
        "CREATE TABLE public.patient (id int PRIMARY KEY, age int, disease text);"
        "INSERT INTO public.patient"
        " SELECT i, i % 20, 'disease ' || i % 3 FROM generate_series(1, 100) AS i"
    )
    database.execute(
        "CREATE FUNCTION public.everyone() RETURNS TABLE (id int, age int, disease text)"
        " STABLE LANGUAGE sql BEGIN ATOMIC SELECT id, age, disease FROM public.patient; END"
    )
    database.execute("CREATE MATERIALIZED VIEW public.stored AS SELECT * FROM public.everyone()")
    database.execute("GRANT SELECT ON public.patient TO mole")
    policy = Policy(STORED, RULES, MODELS, algorithm="mondrian", key=("id",))
    dbanon.set_policy(STORED, policy, settings=database.settings)
    with pytest.raises(dbanon.NotPermitted, match=r"mole can read public\.patient"):
        dbanon.publish(STORED, settings=database.settings, grants=("mole",))
