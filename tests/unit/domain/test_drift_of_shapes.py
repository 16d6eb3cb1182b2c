from dataclasses import asdict, replace

import pytest

from dbanon.domain.drift import Baseline, ColumnShape, Shape, compare
from dbanon.domain.table import TableName

TABLE = TableName("public", "patients")
SHAPE = Shape(
    relkind="r",
    row_security=False,
    forced=False,
    key=("id",),
    columns=(
        ColumnShape("id", 1, "integer", nullable=False),
        ColumnShape("age", 3, "integer", nullable=True),
        ColumnShape("odd name", 4, "text", nullable=True),
    ),
    has_children=False,
    has_parents=False,
    foreign_parts=False,
    owner="publisher",
)
BEFORE = Baseline(SHAPE, {"ages": 2})


def reasons(taxonomies=None, **changes):
    now = Baseline(replace(SHAPE, **changes), taxonomies or BEFORE.taxonomies)
    return [str(change) for change in compare(BEFORE, now, table=TABLE)]


def test_a_baseline_is_read_back_from_its_document():
    assert BEFORE == Baseline.from_document(asdict(BEFORE))


def test_a_baseline_that_lost_its_owner_cannot_be_read():
    document = asdict(BEFORE)
    del document["shape"]["owner"]
    with pytest.raises(TypeError):
        Baseline.from_document(document)


def test_the_same_table_has_not_changed():
    assert [] == reasons()


def test_a_restored_table_whose_columns_are_numbered_anew_has_not_changed():
    columns = tuple(replace(column, number=i) for i, column in enumerate(SHAPE.columns, 1))
    assert [] == reasons(columns=columns)


def test_the_last_column_made_again_is_another_one():
    columns = (*SHAPE.columns[:2], replace(SHAPE.columns[2], number=5))
    assert ['column "odd name" is another column than before under the same name'] == reasons(
        columns=columns
    )


def test_columns_of_a_view_that_was_made_again_are_compared_by_their_order():
    before = Baseline(replace(SHAPE, relkind="v", definition="a"))
    columns = tuple(replace(column, number=i) for i, column in enumerate(SHAPE.columns, 5))
    now = Baseline(replace(before.shape, columns=columns))
    assert [] == compare(before, now, table=TABLE)


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        (("a", "b"), ("a", "c"), ["column age has an enum of which 1 labels were renamed"]),
        (("a", "b"), ("b", "a"), ["column age has an enum whose labels are in another order now"]),
        (("a", "b"), ("a", "c", "b"), []),
        (None, ("a", "b"), []),
    ],
)
def test_labels_that_were_renamed_are_a_change_and_new_ones_are_values(before, now, expected):
    def shape(labels):
        columns = (SHAPE.columns[0], replace(SHAPE.columns[1], labels=labels))
        return Baseline.from_document(asdict(Baseline(replace(SHAPE, columns=columns))))

    changes = compare(shape(before), shape(now), table=TABLE)
    assert expected == [str(change) for change in changes]


def test_every_column_is_named_as_sql_would():
    assert ['column "odd name" was dropped'] == reasons(columns=SHAPE.columns[:2])


def test_a_dropped_column_and_a_new_one_are_two_changes():
    columns = (*SHAPE.columns[:2], ColumnShape("other", 5, "text", nullable=True))
    assert ['column "odd name" was dropped', "column other is new and has no role"] == reasons(
        columns=columns
    )


@pytest.mark.parametrize(
    "change", [{"row_security": True}, {"forced": True}, {"has_parents": True}, {"key": ()}]
)
def test_what_was_so_before_is_no_change(change):
    before = Baseline(replace(SHAPE, **change))
    assert [] == compare(before, before, table=TABLE)


def test_partitions_of_a_partitioned_table_come_and_go():
    before = Baseline(replace(SHAPE, relkind="p"))
    now = Baseline(replace(SHAPE, relkind="p", has_children=True))
    assert [] == compare(before, now, table=TABLE)


def test_another_version_of_a_taxonomy_is_a_change():
    assert ["taxonomy ages is at version 3 now, and was at 2"] == reasons({"ages": 3})


def test_a_new_column_stops_nothing_where_it_is_left_out_unless_another_is_gone():
    hiv = ColumnShape("hiv", 5, "boolean", nullable=True)

    def changes(*columns):
        now = Baseline(replace(SHAPE, columns=columns), BEFORE.taxonomies)
        found = compare(BEFORE, now, table=TABLE, drops_rest=True)
        return [(str(change), change.stops) for change in found]

    assert [("column hiv is new, and left out", False)] == changes(*SHAPE.columns, hiv)
    swapped = (*SHAPE.columns[:1], replace(SHAPE.columns[1], name="hiv"), SHAPE.columns[2])
    assert [("column age was renamed to hiv, which has no role", True)] == changes(*swapped)
    assert [
        ('column "odd name" was dropped', True),
        ("column hiv is new and has no role", True),
    ] == changes(*SHAPE.columns[:2], hiv)
