"""Words for what is published."""

import pytest

from dbanon.anonymization.registry import RECODINGS
from dbanon.domain.messages import RECODED, floor_in_words, in_words
from dbanon.domain.policy import ColumnRule, Role


def test_every_recoding_has_words():
    assert set(RECODINGS) == set(RECODED)


def test_what_is_suppressed_is_said_as_it_is_published():
    assert RECODED["suppress"].startswith("*")


@pytest.mark.parametrize(
    ("floor", "words"),
    [
        ({}, ""),
        ({"at_least": "year"}, "; nothing finer than a year"),
        ({"bands": 10.0}, "; nothing finer than bands of 10"),
        ({"bands": 0.5, "top": 90.0}, "; nothing finer than bands of 0.5; one band from 90 on"),
        ({"bottom": 18.0}, "; one band below 18"),
        ({"at_least": 1}, "; nothing finer than 1 character"),
        ({"at_least": 3}, "; nothing finer than 3 characters"),
        ({"at_least": 1, "taxonomy": "towns"}, "; nothing finer than 1 level above the deepest"),
        ({"snap": 2.5}, "; its bounds are rounded outward"),
    ],
)
def test_the_finest_that_is_published_is_said(floor, words):
    rule = ColumnRule("age", Role.QUASI, **floor)
    plain = f"age: quasi-identifier, published as {RECODED['interval']}"
    assert plain + words == in_words(
        "age", rule.role, recoding="interval", floor=floor_in_words(rule)
    )
