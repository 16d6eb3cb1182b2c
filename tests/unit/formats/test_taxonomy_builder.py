import naive
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbanon.domain.errors import TaxonomyError
from dbanon.formats.taxonomies import MAX_HEIGHT, NodeRow, from_edges, from_levels, from_rows, rows

NAMES = st.text(min_size=1, max_size=6).filter(lambda text: "\x00" not in text)


@st.composite
def edge_lists(draw):
    """Edges of a tree, shuffled, over hostile labels."""
    labels = draw(st.lists(NAMES, min_size=2, max_size=25, unique=True))
    edges = [
        (labels[draw(st.integers(0, child - 1))], labels[child]) for child in range(1, len(labels))
    ]
    return draw(st.permutations(edges))


def problems_of(build):
    with pytest.raises(TaxonomyError) as caught:
        build()
    return [line.strip() for line in str(caught.value).splitlines()[1:]]


def naive_leaves(edges, label):
    below = [child for parent, child in edges if parent == label]
    return {label} if not below else set().union(*(naive_leaves(edges, child) for child in below))


def naive_ancestors(edges, label):
    above = [parent for parent, child in edges if child == label]
    return [label, *naive_ancestors(edges, above[0])] if above else [label]


@given(edge_lists())
def test_leaves_below_every_node_are_contiguous_and_those_of_the_edges(edges):
    taxonomy = from_edges("t", edges)
    for node, label in enumerate(taxonomy.labels):
        span = range(taxonomy.leaf_lo[node], taxonomy.leaf_hi[node] + 1)
        assert naive_leaves(edges, label) == {taxonomy.leaf_labels[leaf] for leaf in span}
        assert len(naive_ancestors(edges, label)) - 1 == taxonomy.depth[node]


@given(edge_lists(), st.data())
def test_the_lowest_common_ancestor_of_the_outer_leaves_is_that_of_the_set(edges, data):
    taxonomy = from_edges("t", edges)
    leaves = data.draw(st.sets(st.integers(0, taxonomy.n_leaves - 1), min_size=1))
    paths = [naive_ancestors(edges, taxonomy.leaf_labels[leaf]) for leaf in leaves]
    expected = next(label for label in paths[0] if all(label in path for path in paths))
    node = naive.common_ancestor(taxonomy, {min(leaves), max(leaves)})
    assert expected == taxonomy.labels[node]


@given(edge_lists())
def test_nodes_are_numbered_in_preorder(edges):
    taxonomy = from_edges("t", edges)
    assert -1 == taxonomy.parent[0]
    for node in range(1, len(taxonomy.labels)):
        ancestors = {0}
        above = node - 1
        while above > 0:
            ancestors.add(above)
            above = int(taxonomy.parent[above])
        assert taxonomy.parent[node] in ancestors


@given(edge_lists())
def test_stored_rows_give_the_taxonomy_back(edges):
    taxonomy = from_edges("t", edges)
    assert rows(taxonomy) == rows(from_rows("t", rows(taxonomy)[::-1], version=3))
    assert 3 == from_rows("t", rows(taxonomy), version=3).version


@given(edge_lists(), st.data())
def test_one_damaged_stored_number_is_refused(edges, data):
    stored = rows(from_edges("t", edges))
    victim = data.draw(st.integers(0, len(stored) - 1))
    field = data.draw(st.sampled_from(["node_id", "parent_id", "depth", "leaf_lo", "leaf_hi"]))
    old = getattr(stored[victim], field)
    other = st.integers(-2, len(stored) + 1).filter(lambda number: number != old)
    stored[victim] = stored[victim]._replace(**{field: data.draw(other)})
    with pytest.raises(TaxonomyError):
        from_rows("t", stored, version=1)


@pytest.mark.parametrize(
    "stored",
    [
        [],
        [(0, "", None, 0, 0, 0)],
        [(0, "a\x00", None, 0, 0, 0)],
        [(0, 5, None, 0, 0, 0)],
        [(0, "a", None, 0, 0)],
        [NodeRow(0, "a", 0, 0, 0, 0)],
        [NodeRow(0, "*", None, 0, 0, 1), NodeRow(1, "a", 0, 1, 0, 0), NodeRow(2, "a", 0, 1, 1, 1)],
        [
            NodeRow(0, "*", None, 0, 0, 1),
            NodeRow(1, "a", 0, 1, 0, 0),
            NodeRow(2, "a", 1, 2, 0, 0),
            NodeRow(3, "b", 0, 1, 1, 1),
        ],
    ],
)
def test_stored_rows_that_are_no_taxonomy_are_refused(stored):
    with pytest.raises(TaxonomyError):
        from_rows("t", stored, version=1)


def test_children_are_ordered_by_first_appearance():
    taxonomy = from_levels("t", ["aXR", "bYR", "cXR"])
    assert ("R", "X", "a", "c", "Y", "b") == taxonomy.labels


def test_a_root_is_added_when_the_last_labels_differ():
    assert ("*", "a", "b") == from_levels("t", [["a"], ["b"]]).labels


def test_a_single_value_is_a_tree_of_height_0():
    taxonomy = from_levels("t", [["a"]])
    assert (1, 0) == (taxonomy.n_leaves, taxonomy.height)


def test_a_chain_may_repeat_the_label_of_its_only_leaf():
    taxonomy = from_levels("t", [("Asia", "Asia", "*"), ("Rome", "Europe", "*")])
    assert ("*", "Asia", "Asia", "Europe", "Rome") == taxonomy.labels
    assert ("Asia", "Rome") == taxonomy.leaf_labels


def test_every_problem_of_levels_is_told_at_once_by_line():
    table = [
        ("a", "X", "*"),
        ("a", "X", "*"),
        ("b", "Y"),
        ("c", "", "*"),
        ("d\x00", "X", "*"),
        ("X", "Z", "*"),
        ("\ud800", "Z", "*"),
    ]
    assert [
        "line 2: the leaf of line 1 again",
        "line 3: 2 columns, where line 1 has 3",
        "line 4: column 2: a label is empty",
        "line 5: column 1: a label holds a character that PostgreSQL cannot store",
        "line 6: a label that names another node on line 1",
        "line 7: column 1: a label holds a character that PostgreSQL cannot store",
    ] == problems_of(lambda: from_levels("t", table))


def test_a_level_must_follow_from_the_one_below():
    table = [("a", "X", "P", "*"), ("b", "X", "Q", "*"), ("c", "Z", "Q", "*")]
    assert ["line 2: column 2 has another parent than on line 1"] == problems_of(
        lambda: from_levels("t", table)
    )


def test_an_inner_label_may_not_recur_under_another_branch():
    table = [("a", "Other", "P", "*"), ("b", "Q", "Other", "*")]
    assert ["line 2: a label that names another node on line 1"] == problems_of(
        lambda: from_levels("t", table)
    )


def test_every_problem_of_edges_is_told_at_once_by_line():
    edges = [
        ("r", "a"),
        ("s", "b"),
        ("a", "b"),
        ("x", "y"),
        ("y", "x"),
        ("z", "z"),
        ("a", ""),
        ("a",),
        ("a", "\x00"),
        ("", "t"),
    ]
    assert [
        "line 2: a second root; line 1 has one already",
        "line 3: the child already has its place, on line 2",
        "line 4: part of a cycle of length 2",
        "line 6: part of a cycle of length 1",
        "line 7: a label is empty",
        "line 8: 1 columns, where parent and child are expected",
        "line 9: a label holds a character that PostgreSQL cannot store",
        "line 10: a second root; line 1 has one already",
    ] == problems_of(lambda: from_edges("t", edges))


def test_edges_that_go_round_have_no_root():
    assert [
        "there is no root: every node has a parent",
        "line 1: part of a cycle of length 2",
    ] == problems_of(lambda: from_edges("t", [("a", "b"), ("b", "a")]))


def test_nothing_is_no_taxonomy():
    assert ["there is no root"] == problems_of(lambda: from_edges("t", []))
    assert ["there is no leaf"] == problems_of(lambda: from_levels("t", []))


def test_leaves_may_lie_at_unequal_depths():
    assert 2 == from_edges("t", [("*", "a"), ("*", "B"), ("B", "b")]).height


def test_a_very_high_tree_is_refused():
    edges = [(str(i), str(i + 1)) for i in range(MAX_HEIGHT + 1)]
    assert MAX_HEIGHT == from_edges("t", edges[:-1]).height
    assert ["the tree is 256 levels high; the limit is 255"] == problems_of(
        lambda: from_edges("t", edges)
    )


def test_messages_stay_readable_when_everything_is_wrong():
    found = problems_of(lambda: from_levels("t", [["a", "*"]] + [["a"]] * 500))
    assert 101 == len(found)
    assert "and 400 more" == found[-1]


def test_messages_never_hold_a_label():
    with pytest.raises(TaxonomyError) as caught:
        from_levels("t", [("secret", "X", "*"), ("secret", "Y", "*"), ("Y", "X", "P")])
    assert "secret" not in str(caught.value)


def test_a_taxonomy_needs_a_name():
    assert ["the name of a taxonomy is not empty and holds no NUL character"] == problems_of(
        lambda: from_levels("", ["a*"])
    )


CITIES = [
    ("New York", "New York", "US"),
    ("Albany", "New York", "US"),
    ("Berlin", "Berlin", "DE"),
]


def test_a_label_of_two_levels_is_told_apart_where_it_means_more_above():
    taxonomy = from_levels("t", CITIES)
    expected = ("*", "US", "New York (all)", "New York", "Albany", "DE", "Berlin", "Berlin")
    assert expected == taxonomy.labels
    assert ("New York", "Albany", "Berlin") == taxonomy.leaf_labels


def test_a_label_that_is_taken_already_is_not_made_up():
    table = [*CITIES, ("New York (all)", "Elsewhere", "US")]
    assert ["line 1: a label that names another node on line 1"] == problems_of(
        lambda: from_levels("t", table)
    )


CODES = ("E11", "E11.0", "E11.9", "I10")


def test_a_value_may_lie_above_others():
    edges = [("*", "E"), ("E", "E11"), ("E11", "E11"), ("E11", "E11.0"), ("E11", "E11.9")]
    taxonomy = from_edges("icd", [*edges, ("*", "I10")])
    assert ("*", "E", "E11 (all)", "E11", "E11.0", "E11.9", "I10") == taxonomy.labels
    assert CODES == taxonomy.leaf_labels


def test_all_inner_labels_can_be_values():
    edges = [("*", "E11"), ("E11", "E11.0"), ("E11", "E11.9"), ("*", "I10")]
    assert CODES == from_edges("icd", edges, inner_values=True).leaf_labels
    levels = [("E11.0", "E11", "*"), ("E11.9", "E11", "*"), ("I10", "I10", "*")]
    taxonomy = from_levels("icd", levels, inner_values=True)
    assert set(CODES) == set(taxonomy.leaf_labels)
    assert {"E11 (all)", "I10", "*"} < set(taxonomy.labels)
    assert {2} == set(taxonomy.depth[taxonomy.leaves].tolist())


@given(edge_lists())
def test_inner_values_add_a_leaf_for_each_inner_node_below_the_root(edges):
    plain = from_edges("t", edges)
    inner = set(plain.labels[1:]) - set(plain.leaf_labels)
    taken = {f"{label} (all)" for label in inner} & set(plain.labels)
    found = from_edges("t", edges, inner_values=True)
    expected = {*plain.leaf_labels, *inner} - {label[:-6] for label in taken}
    assert expected == set(found.leaf_labels)
