"""The taxonomies that come with dbanon."""

import pytest

from dbanon.actions.taxonomy import BUILT_IN, add_built_in, load_built_in
from dbanon.domain.errors import ConfigError

# leaves, height, and one leaf with what is above it
FACTS = {
    "country": (248, 3, ("NO", "Northern Europe", "Europe", "*")),
    "country-alpha-3": (248, 3, ("BRA", "South America", "Americas", "*")),
    "us-state": (51, 3, ("CA", "Pacific", "West", "*")),
    "icd-10": (None, 2, ("E11", "IV Endocrine, nutritional and metabolic diseases (E00-E90)", "*")),
    "zip3": (1_000, 3, ("945", "94*", "9**", "*")),
    "zip5": (100_000, 5, ("94305", "9430*", "943**", "94***", "9****", "*")),
}


@pytest.mark.parametrize("name", BUILT_IN)
def test_what_comes_with_dbanon_is_a_taxonomy_of_the_facts(name):
    taxonomy = load_built_in(name, stored="mine")
    leaves, height, path = FACTS[name]
    assert ("mine", height) == (taxonomy.name, taxonomy.height)
    assert leaves in {None, taxonomy.n_leaves}
    node = int(taxonomy.leaves[taxonomy.leaf_labels.index(path[0])])
    found = []
    while node >= 0:
        found.append(taxonomy.labels[node])
        node = int(taxonomy.parent[node])
    assert path == tuple(found)


@pytest.mark.parametrize(
    ("code", "chapter"),
    [
        ("B99", "I "),
        ("D49", "II "),
        ("D50", "III "),
        ("H59", "VII "),
        ("H60", "VIII "),
        ("W15", "XX "),
    ],
)
def test_codes_are_in_their_chapters(code, chapter):
    taxonomy = load_built_in("icd-10", stored="icd")
    leaf = int(taxonomy.leaves[taxonomy.leaf_labels.index(code)])
    assert taxonomy.labels[taxonomy.parent[leaf]].startswith(chapter)
    assert 22 == len(set(taxonomy.parent[taxonomy.leaves].tolist()))


def test_a_name_that_is_none_is_answered_with_the_nearest():
    with pytest.raises(ConfigError, match="did you mean country") as caught:
        add_built_in("countries")
    assert "dbanon taxonomy builtin list" == caught.value.hint
