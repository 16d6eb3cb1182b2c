"""Which tests reach nothing that others leave out."""

from cover import redundant

BRANCHES = {"long": {1, 2}, "longer": {1, 2, 3}, "only one": {4}, "short": {3}}


def test_what_reaches_nothing_else_is_named_where_it_takes_long():
    seconds = {"long": 2.0, "longer": 4.0, "only one": 9.0, "short": 0.1}
    assert redundant(BRANCHES, seconds, above=1) == ["longer"]
    assert redundant(BRANCHES, seconds, above=3) == ["longer"]
    assert redundant(BRANCHES, seconds, above=5) == []


def test_of_two_that_reach_the_same_the_cheaper_one_stays():
    assert redundant({"a": {1}, "b": {1}}, {"a": 2.0, "b": 3.0}, above=1) == ["b"]
    assert redundant({"a": {1}, "b": {1}}, {"a": 3.0, "b": 2.0}, above=1) == ["a"]
