import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbanon.domain.errors import ConfigError, TaxonomyError
from dbanon.formats import taxonomies
from dbanon.formats.taxonomies import (
    from_edges,
    from_levels,
    read_csv,
    render_tree,
    rows,
    write_csv,
)

ODD = st.sampled_from(
    ["parent", "child", "*", ";", ",", "\t", '"', "\r\n", "\ufeffa", " ", "a;b", "''"]
)
LABELS = ODD | st.text(min_size=1, max_size=5).filter(lambda text: "\x00" not in text)


@st.composite
def trees(draw):
    labels = draw(st.lists(LABELS, min_size=1, max_size=20, unique=True))
    edges = [(labels[draw(st.integers(0, i - 1))], labels[i]) for i in range(1, len(labels))]
    return from_edges("t", [("", labels[0]), *edges])


@st.composite
def level_tables(draw):
    """Leaves under two levels, some of them under a label of their own."""
    labels = draw(st.lists(LABELS, min_size=4, max_size=20, unique=True))
    root, left, right, *leaves = labels
    table = []
    for leaf in leaves:
        above = draw(st.sampled_from([leaf, left, right]))
        table.append((leaf, above, root))
    return from_levels("t", table)


@given(trees() | level_tables())
def test_what_is_written_reads_back(taxonomy):
    assert rows(taxonomy) == rows(read_csv(write_csv(taxonomy), name="t"))


@given(trees())
def test_drawing_shows_every_node_on_a_line_of_its_own(taxonomy):
    lines = render_tree(taxonomy, max_leaves=taxonomy.n_leaves)
    assert len(taxonomy.labels) == len(lines)
    assert all(line.isprintable() for line in lines)


def test_a_label_of_tabs_alone_reads_back():
    taxonomy = from_edges("t", [("", "\t")])  # the delimiter of a file of levels
    assert rows(taxonomy) == rows(read_csv(write_csv(taxonomy), name="t"))


def test_semicolons_mean_levels():
    taxonomy = read_csv("a;X;*\nb;X;*\nc;Y;*\n", name="t")
    assert ("*", "X", "a", "b", "Y", "c") == taxonomy.labels
    assert "a;X;*\nb;X;*\nc;Y;*\n" == write_csv(taxonomy)


@pytest.mark.parametrize("head", ["", "parent,child\n", "Parent, Child\n", ",*\n"])
def test_commas_mean_edges_with_or_without_a_header_or_a_root(head):
    taxonomy = read_csv(head + "*,X\nX,a\n*,b\n", name="t")
    assert ("*", "X", "a", "b") == taxonomy.labels
    assert "parent,child\n*,X\nX,a\n*,b\n" == write_csv(taxonomy)


def test_a_list_of_values_is_a_flat_taxonomy():
    assert ("*", "a", "b c") == read_csv("a\nb c\n", name="t").labels


def test_the_form_can_be_forced():
    assert ("*", "a,b", "c") == read_csv("a,b\nc\n", name="t", form="levels").labels
    assert ("a;b", "c") == read_csv("a;b,c\n", name="t", form="edges").labels


def test_files_of_other_systems_are_read(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes('\ufeff"São;\nPaulo";X;*\r\n\r\nb;X;*\r\n'.encode())
    assert ("São;\nPaulo", "b") == read_csv(path, name="t").leaf_labels


def test_problems_name_the_line_where_a_row_begins():
    with pytest.raises(TaxonomyError, match=r"line 4: the leaf of line 3 again"):
        read_csv('"a\nb";*\nc;*\nc;*\n', name="t")


@pytest.mark.parametrize("text", ['"a;*\nb;*\n', '"a"x;*\n', "a;*\n" + "x" * 200_000 + ";*\n"])
def test_broken_quotes_and_endless_fields_are_refused(text):
    with pytest.raises(TaxonomyError, match=r"line \d"):
        read_csv(text, name="t", form="levels")


def test_a_file_that_is_missing_or_not_text_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="cannot read"):
        read_csv(tmp_path / "none.csv", name="t")
    path = tmp_path / "latin.csv"
    path.write_bytes("é;*".encode("latin-1"))
    with pytest.raises(TaxonomyError, match="not UTF-8"):
        read_csv(path, name="t")


def test_a_drawing_is_cut_and_escapes_what_could_steer_a_terminal():
    taxonomy = read_csv("a\x1b[2J;X;*\nb;X;*\nc;Y;*\nd;Y;*\n", name="t")
    assert [
        "* (4)",
        "├── X (2)",
        "│   ├── a\\x1b[2J",
        "│   └── b",
        "└── Y (2)",
        "    ├── c",
        "… 1 more leaves",
    ] == render_tree(taxonomy, max_leaves=3)


@pytest.mark.exhaustive
@pytest.mark.slow
def test_50_000_leaves_load():
    text = "".join(f"v{i};a{i // 5};b{i // 50};c{i // 1250};*\n" for i in range(50_000))
    taxonomy = read_csv(text, name="t")
    assert (50_000, 4) == (taxonomy.n_leaves, taxonomy.height)


@pytest.mark.parametrize("text", ["a;g;*\nb;g;*\n", "parent,child\ng,a\ng,b\n"])
def test_a_file_beyond_the_limit_is_refused_before_all_of_it_is_read(monkeypatch, text):
    monkeypatch.setattr(taxonomies, "MAX_LABELS", 6)
    assert 2 == read_csv(text, name="t").n_leaves
    monkeypatch.setattr(taxonomies, "MAX_LABELS", 5)
    with pytest.raises(TaxonomyError, match="more than 5 labels, which is the limit"):
        read_csv(text + '"never read', name="t")


@pytest.mark.parametrize(
    "text",
    [
        "a,X,*\nb,X,*\nc,Y,*\n",
        "a\tX\t*\nb\tX\t*\nc\tY\t*\n",
        "value,level 1,level 2\na,X,*\nb,X,*\nc,Y,*\n",
        "Value;Group_1;All\na;X;*\nb;X;*\nc;Y;*\n",
        "diagnosis;chapter;everything\na;X;*\nb;X;*\nc;Y;*\n",
        "a;X\nb;X\nc;Y\n",
        "value;group\na;X\nb;X\nc;Y\n",
        "child,parent\nX,*\na,X\nb,X\nY,*\nc,Y\n",
    ],
)
def test_files_as_people_have_them_are_recognized(text):
    assert ("*", "X", "a", "b", "Y", "c") == read_csv(text, name="t").labels


def test_a_first_line_that_may_be_a_value_is_one():
    assert ("a", "b", "c") == read_csv("a;R1\nb;R2\nc;R2\n", name="t").leaf_labels


def test_values_and_groups_with_a_comma_are_explained_and_can_be_forced():
    text = "94305,West\n94306,West\n10001,East\n10002,East\n"
    with pytest.raises(TaxonomyError) as caught:
        read_csv(text, name="zip")
    assert "dbanon taxonomy import zip FILE.csv --form levels" in caught.value.hint
    taxonomy = read_csv(text, name="zip", form="levels")
    assert ("94305", "94306", "10001", "10002") == taxonomy.leaf_labels


def test_a_header_of_words_that_are_not_known_is_a_value_of_its_own():
    taxonomy = read_csv("town;province\nRome;Lazio\nMilan;Lombardy\n", name="t")
    assert "town" in taxonomy.leaf_labels
