"""Foreign tables that a view reads as partitions or children of what it names."""

import pytest

import dbanon
from dbanon.domain.policy import K_ANONYMITY, ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.table import TableName

RULES = (
    ColumnRule("id", Role.IDENTIFIER),
    ColumnRule("age", Role.QUASI),
    ColumnRule("disease", Role.SENSITIVE),
)
FOREIGN = """
CREATE FOREIGN DATA WRAPPER far;
CREATE SERVER away FOREIGN DATA WRAPPER far;
CREATE FOREIGN TABLE public.elsewhere (id int, age int, disease text) SERVER away;
"""
PATIENTS = """
CREATE TABLE public.patient (id int, age int, disease text) PARTITION BY RANGE (id);
CREATE TABLE public.here PARTITION OF public.patient FOR VALUES FROM (0) TO (1000);
INSERT INTO public.patient
SELECT i, i % 20, 'disease ' || i % 3 FROM generate_series(1, 100) AS i;
ALTER TABLE public.patient ATTACH PARTITION public.elsewhere FOR VALUES FROM (1000) TO (2000);
CREATE VIEW public.people AS SELECT id, age, disease FROM public.patient
"""


@pytest.mark.parametrize("name", ["patient", "people"])
def test_a_foreign_partition_is_read_only_if_that_is_allowed(database, name):
    ((publisher,),) = database.execute("SELECT current_user")
    admin = database.admin()
    admin.execute(FOREIGN)
    admin.execute(f'ALTER FOREIGN TABLE public.elsewhere OWNER TO "{publisher}"')
    database.execute(PATIENTS)
    table = TableName("public", name)
    models = (ModelSpec(K_ANONYMITY, {"k": 5}),)
    policy = Policy(table, RULES, models, algorithm="mondrian", key=("id",))
    dbanon.set_policy(table, policy, settings=database.settings)
    with pytest.raises(dbanon.ConfigError, match="reads the foreign table"):
        dbanon.publish(table, settings=database.settings)
