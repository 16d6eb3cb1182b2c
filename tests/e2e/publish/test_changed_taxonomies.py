"""Taxonomies that were damaged, or replaced by others of the same name."""

from dataclasses import replace

import pytest
from builders import leaf_tree
from tables import make_patients, patients_policy

import dbanon
from dbanon.domain.policy import Role

TREE = leaf_tree(acute=["flu", "gastritis"], chronic=["cancer", "asthma"])
OTHER = leaf_tree(one=["flu", "cancer"], two=["asthma"], three=["gastritis"])
DAMAGES = {
    "no node": "DELETE FROM dbanon.taxonomy_node",
    "a circle": "UPDATE dbanon.taxonomy_node SET parent_id = node_id WHERE node_id = 1",
}


@pytest.fixture
def load(database, tmp_path):
    def load(tree):
        file = tmp_path / "diseases.csv"
        leaves = [(leaf, branch) for branch, leaves in tree.items() for leaf in leaves]
        file.write_text("\n".join(f"{leaf};{branch};*" for leaf, branch in leaves))
        return dbanon.import_taxonomy("diseases", file, settings=database.settings)

    return load


@pytest.fixture
def policy(database, load):
    policy = patients_policy(make_patients(database), k=3, l=2)
    rules = (
        replace(rule, taxonomy="diseases") if rule.role is Role.SENSITIVE else rule
        for rule in policy.columns
    )
    policy = replace(policy, columns=tuple(rules))
    load(TREE)
    dbanon.set_policy(policy.table, policy, settings=database.settings)
    dbanon.publish(policy.table, settings=database.settings)
    return policy


@pytest.mark.parametrize("damage", DAMAGES)
def test_nothing_goes_by_a_taxonomy_that_is_damaged(database, policy, damage):
    database.execute(DAMAGES[damage])
    for act in (
        lambda: dbanon.set_policy(policy.table, policy, settings=database.settings),
        lambda: dbanon.plan(policy.table, settings=database.settings),
        lambda: dbanon.publish(policy.table, settings=database.settings),
        lambda: dbanon.refresh(policy.table, if_changed=True, settings=database.settings),
    ):
        with pytest.raises(dbanon.TaxonomyError, match="taxonomy 'diseases' has"):
            act()


def test_another_taxonomy_of_the_same_name_is_another_version(database, policy, load):
    ledger = dbanon.list_releases(settings=database.settings)
    assert [{"diseases": 1}] == [dict(release.taxonomies) for release in ledger]
    dbanon.drop_policy(policy.table, settings=database.settings)
    dbanon.drop_taxonomy("diseases", settings=database.settings)
    assert load(OTHER).version == 2
    dbanon.set_policy(policy.table, policy, settings=database.settings)
    (done,) = dbanon.refresh(policy.table, if_changed=True, settings=database.settings)
    assert done.changed
