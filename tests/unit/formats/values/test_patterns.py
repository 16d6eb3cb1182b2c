"""What values look like, and what only seems to look like it."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbanon.domain.policy_warning import Code
from dbanon.domain.table import ColumnInfo, ColumnKind
from dbanon.formats.policy_warnings import LONGEST, signs

TEXT = ColumnInfo("c", "text", "text", ColumnKind.CATEGORY)
MOMENT = ColumnInfo("c", "timestamp", "timestamp", ColumnKind.TIMESTAMP)
SENTENCE = "was seen by the doctor on duty at night and sent home, case {}"


def of_texts(values):
    return set(signs(TEXT, values))


@pytest.mark.parametrize(
    ("code", "form"),
    [
        (Code.LOOKS_LIKE_SSN, "123-45-6{:03}"),
        (Code.LOOKS_LIKE_SSN, "ssn 219-09-9{:03}, checked"),
        (Code.LOOKS_LIKE_EMAIL, "jane.doe+{}@mail.example.org"),
        (Code.LOOKS_LIKE_EMAIL, "write to x{}@y.ch"),
        (Code.LOOKS_LIKE_PHONE, "+41 44 668 {:02} 00"),
        (Code.LOOKS_LIKE_PHONE, "(555) 123-4{:03}"),
        (Code.LOOKS_LIKE_PHONE, "555-123-4{:03}"),
        (Code.LOOKS_LIKE_PHONE, "555.123.4{:03}"),
        (Code.LOOKS_LIKE_PHONE, "555-4{:03}"),
        (Code.LOOKS_LIKE_PHONE, "+415551234{:03}"),
        (Code.LOOKS_LIKE_COORDINATES, "47.37{:03}, 8.5417"),
        (Code.LOOKS_LIKE_COORDINATES, "(-33.86{:03} 151.209)"),
    ],
)
def test_a_pattern_is_known(code, form):
    assert of_texts([form.format(i) for i in range(50)]) == {code}


@pytest.mark.parametrize(
    "form",
    [
        *("{}", "-{}.5", "8{:04}-1234", "{:05}", "1{:02}-2{:02}", "2020-01-{:02}", "01/{:02}/1990"),
        *("1.{}.2020", "10.0.0.{}", "48{:02}-6", "0002-1{:03}-80", "{}000-{}999", "E11.{}"),
        *("10000 - 2{:04}", "ward {}", "{} mg", "000-12-3{:03}", "900-12-3{:03}x", "a@b {}"),
        *("Level {}", "c{}@", "2020-01-{:02} 10:00"),
    ],
)
def test_what_only_resembles_a_pattern_is_none(form):
    values = [form.format(i, i) for i in range(10, 60)]
    assert of_texts(values) == set()


def test_one_mail_address_in_twenty_values_is_enough_and_one_in_a_hundred_is_not():
    words = [f"word{i}" for i in range(99)]
    assert of_texts([*words, "a@b.ch"]) == set()
    assert of_texts([*words[:15], "a@b.ch"]) == {Code.LOOKS_LIKE_EMAIL}


FIRST = ["Emma", "Noah", "Olivia", "Liam", "Ava"]
LAST = ["Okafor", "O'Brien", "Meier", "van Dyk", "Lopez-Ruiz", "Smith", "Ng", "Da Silva"]


def test_names_are_known_by_their_form_and_by_given_names():
    capital = [f"{f} {n.title()}" for f in FIRST for n in LAST]
    assert of_texts(capital) == {Code.LOOKS_LIKE_NAME}
    assert of_texts([f"{n.title()}, {f}" for f in FIRST for n in LAST]) == {Code.LOOKS_LIKE_NAME}
    assert of_texts(["mary", "JOHN", "Zoltan", "Sakura", "linda"] * 30) == {Code.LOOKS_LIKE_NAME}


def test_titles_of_jobs_and_cities_that_many_share_are_no_names():
    assert (
        of_texts(["Sales Manager", "New York", "Los Angeles", "San Jose", "Data Clerk"] * 20)
        == set()
    )
    assert of_texts(["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul"] * 20) == set()


def test_free_text_is_long_and_of_each_row():
    assert of_texts([SENTENCE.format(i) for i in range(50)]) == {Code.FREE_TEXT}
    assert of_texts([SENTENCE.format(i % 5) for i in range(50)]) == set()
    assert of_texts([f"note {i}" for i in range(50)]) == set()


@pytest.mark.parametrize("base", ["json", "jsonb", "xml", "bytea"])
def test_a_type_that_holds_anything_needs_no_look(base):
    column = ColumnInfo("c", base, base, ColumnKind.OTHER)
    assert list(signs(column, ())) == [Code.FREE_TEXT]


def test_moments_to_the_second():
    assert list(signs(MOMENT, [f"2020-01-01 10:{i}:07" for i in range(10, 30)])) == [
        Code.TO_THE_SECOND
    ]
    assert list(signs(MOMENT, [f"2020-01-01 10:00:00.{i}+01" for i in range(10, 30)])) != []
    for form in ("2020-01-{} 00:00:00", "2020-01-01 10:{}:00", "2020-01-01 10:{}:00+02"):
        assert list(signs(MOMENT, [form.format(i) for i in range(10, 30)])) == []
    assert list(signs(MOMENT, ["2020-01-01 10:10:07"] * 20)) == []  # when all were loaded


def test_nothing_is_said_of_what_nobody_may_see_or_is_empty():
    for column in (TEXT, MOMENT):
        assert list(signs(column, ())) == list(signs(column, [None, None, ""])) == []


@given(st.lists(st.none() | st.text(max_size=LONGEST), max_size=20))
def test_any_text_can_be_looked_at(values):
    assert of_texts(values) <= set(Code)


@pytest.mark.parametrize(
    "text", ["a" * LONGEST, "a" * (LONGEST - 1) + "@", "a." * 99 + "@", "1" * LONGEST, "@a" * 100]
)
def test_no_text_takes_long_to_look_at(text):
    start = time.process_time()
    of_texts([text + str(i) for i in range(1000)])
    assert time.process_time() - start < 2
