"""Samples, bounds and labels of tables that are published together."""

from dataclasses import replace

import pytest
from data.schemas.clinic import TABLES, make_clinic

import dbanon
from dbanon.domain.policy import Role


@pytest.fixture
def clinic(database, tmp_path):
    return make_clinic(database, tmp_path)


def change(database, table, column=None, *, of_column=None, **changes):
    """Store the policy of a table with other keys, and one of its columns with others."""
    policy = dbanon.load_policy(table, settings=database.settings)
    columns = tuple(
        replace(rule, **of_column) if rule.column == column else rule for rule in policy.columns
    )
    changed = replace(policy, columns=columns, **changes)
    dbanon.set_policy(policy.table, changed, settings=database.settings)


@pytest.mark.exhaustive
def test_a_sample_of_persons_is_one_of_all_their_rows(database, clinic):
    change(database, "persons", "birth_date", of_column={"recoding": "bounds"}, sample=0.5)
    releases = dbanon.publish_dataset(clinic, k=5, settings=database.settings)
    assert {release.relation.name for release in releases} == set(TABLES)
    assert all(release.checks.passed for release in releases)
    by_name = {release.relation.name: release.loss for release in releases}
    assert 0 < by_name["persons"].n_not_drawn
    assert 0 < by_name["encounters"].n_of_nobody
    for table in TABLES:
        ((strangers,),) = database.execute(
            "SELECT count(*) FROM (SELECT birth_date_min, birth_date_max FROM"
            f" anon.{table} EXCEPT SELECT birth_date_min, birth_date_max FROM anon.persons) AS s"
        )
        assert strangers == 0


def test_bounds_of_persons_collide_with_no_column_of_their_tables(database, clinic):
    change(database, "persons", "birth_date", of_column={"recoding": "bounds"})
    database.execute("ALTER TABLE public.encounters ADD birth_date_min date")
    policy = dbanon.load_policy("encounters", settings=database.settings)
    rule = dbanon.ColumnRule("birth_date_min", Role.INSENSITIVE)
    columns = (*(r for r in policy.columns if r.column != rule.column), rule)
    dbanon.set_policy("encounters", replace(policy, columns=columns), settings=database.settings)
    with pytest.raises(dbanon.PolicyError, match="both have a column birth_date_min"):
        dbanon.publish_dataset(clinic, k=5, settings=database.settings)
