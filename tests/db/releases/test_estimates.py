"""Readers estimate and bound counts of what is published, whatever search path they have."""

from fractions import Fraction

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

ENDS = {
    "int4range": (0, 3, 7, 30, -2_147_483_648, 2_147_483_647),
    "int8range": (0, 3, 7, 30, -(2**63), 2**63 - 2),
    "numrange": ("0", "0.5", "3.25", "7", "1e30"),
    "daterange": ("2020-01-01", "2020-01-06", "2020-02-29", "1900-01-01", "infinity"),
    "tsrange": ("2020-01-01 10:00", "2020-01-06 00:00:00.5", "2020-02-29", "-infinity"),
    "tstzrange": ("2020-01-01 10:00+02", "2020-01-06 00:00:00.5+00", "2020-02-29 00:00+00"),
}


def ask(database, statement):
    ((value,),) = database.execute(f"SELECT {statement}")
    return value


@pytest.mark.parametrize(
    ("published", "wanted", "share"),
    [
        ("[0,9]", "[5,20]", 0.5),
        ("[0,9]", "[0,9]", 1),
        ("[0,9]", "[10,20]", 0),
        ("[4,4]", "[4,20]", 1),
        ("[0,9]", "[9,]", 0.1),
        ("[0,9]", "(,)", 1),
        ("[90,]", "[90,]", 1),
        ("[90,]", "[,89]", 0),
        ("[90,]", "[95,96]", None),
        ("(,)", "[30,39]", None),
        ("[-2147483648,2147483646]", "[0,2147483646]", 0.5),
    ],
)
def test_a_share_is_that_of_equally_likely_values(database, published, wanted, share):
    found = ask(database, f"dbanon.share('{published}'::int4range, '{wanted}')")
    assert share == pytest.approx(found) if share is not None else found is None


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("dbanon.share(NULL::int4range, '[1,2]')", 0),
        ("dbanon.share('[1,3]'::numrange, '[2,10]')", 0.5),
        ("dbanon.share('[1,2]'::numrange, '[2,3]')", 0),
        ("dbanon.share('[2020-01-01,2020-01-10]'::daterange, '[2020-01-06,]')", 0.5),
        ("dbanon.share('[2020-01-01,infinity]'::daterange, '[2020-01-06,infinity)')", None),
        ("dbanon.share('{flu,cold,NULL,gout}'::text[], 'flu'::text)", 0.25),
        ("dbanon.share('{flu,cold,NULL,gout}'::text[], '{flu,gout,mumps}')", 0.5),
        ("dbanon.share('{flu,cold}'::text[], '{cold,flu,gout}')", 1),
        ("dbanon.share('{flu,cold}'::text[], '{gout}')", 0),
        ("dbanon.share(NULL::text[], '{gout}')", 0),
        ("dbanon.share('{}'::text[], '{gout}')", 0),
        ("dbanon.share('{1,2}'::int[], 3)", 0),
        ("dbanon.at_least('[1,3]'::int4range, '[1,9]')", 1),
        ("dbanon.at_least('[1,3]'::int4range, '[2,9]')", 0),
        ("dbanon.at_most('[1,3]'::int4range, '[3,9]')", 1),
        ("dbanon.at_most('[1,3]'::int4range, '[4,9]')", 0),
        ("dbanon.at_least('{a,b}'::text[], '{a,b,c}')", 1),
        ("dbanon.at_most('{a,b}'::text[], '{c}')", 0),
        ("dbanon.middle('[60,65]'::int4range)", 62.5),
        ("dbanon.middle('[60,65]'::numrange)", 62.5),
        ("dbanon.middle('[60,]'::int8range)", None),
        ("dbanon.middle('[2020-01-01,2020-01-09]'::daterange)::text", "2020-01-05"),
        ("dbanon.middle('[2020-01-01,infinity]'::daterange)", None),
        ("dbanon.middle('[2020-01-01 10:00,2020-01-02]'::tsrange)::text", "2020-01-01 17:00:00"),
    ],
)
def test_values_of_other_types_are_estimated_as_well(database, statement, expected):
    assert expected == ask(database, statement)


@pytest.mark.parametrize("kind", ENDS)
def test_an_estimate_lies_between_its_bounds(bare_ranges, kind):
    bounds = [*ENDS[kind], None]

    @given(*(st.sampled_from(bounds) for _ in range(4)))
    def lies_between(a, b, c, d):
        try:
            published, wanted = (
                bare_ranges.execute(f"SELECT {kind}(%s, %s, '[)')::text", pair).fetchone()[0]
                for pair in ((a, b), (c, d))
            )
        except psycopg.errors.DataException:
            return  # the ends are in the wrong order
        least, share, most, is_empty = bare_ranges.execute(
            f"SELECT dbanon.at_least(p, w), dbanon.share(p, w), dbanon.at_most(p, w), isempty(p)"
            f" FROM (SELECT %s::{kind}, %s::{kind}) AS r (p, w)",
            (published, wanted),
        ).fetchone()
        assert is_empty or least <= (least if share is None else share) <= most

    lies_between()


@pytest.fixture
def bare_ranges(database):
    with database.connect() as connection:
        connection.autocommit = True
        yield connection


def test_a_share_of_numbers_is_exact(bare_ranges):
    @given(st.tuples(*[st.integers(-50, 50)] * 4))
    def is_exact(ends):
        (a, b), (c, d) = sorted(ends[:2]), sorted(ends[2:])
        both = [n for n in range(a, b + 1) if c <= n <= d]
        (share,) = bare_ranges.execute(
            "SELECT dbanon.share(int4range(%s, %s, '[]'), int4range(%s, %s, '[]'))", (a, b, c, d)
        ).fetchone()
        assert float(Fraction(len(both), b - a + 1)) == pytest.approx(share)

    is_exact()


@pytest.mark.parametrize(
    "call",
    [
        "dbanon.share(r, int4range(30, 40))",
        "dbanon.share(s, 'a'::text)",
        "dbanon.share(t, '[2020-01-01,2020-02-01)')",
        "dbanon.at_least(r, int4range(30, 40))",
        "dbanon.at_most(s, '{a}')",
        "dbanon.middle(r)",
        "dbanon.middle(t)",
    ],
)
def test_the_planner_takes_them_in(database, call):
    database.execute("CREATE TABLE public.seen (r int4range, s text[], t tstzrange)")
    plan = database.execute(f"EXPLAIN (VERBOSE) SELECT sum(({call} IS NULL)::int) FROM public.seen")
    assert "dbanon." not in "\n".join(line for (line,) in plan)


def test_they_mean_the_same_by_any_search_path(database):
    database.execute(
        """
        CREATE SCHEMA traps;
        CREATE FUNCTION traps.always(anyrange, anyrange) RETURNS boolean LANGUAGE sql
            AS 'SELECT true';
        CREATE OPERATOR traps.<@ (FUNCTION = traps.always, LEFTARG = anyrange, RIGHTARG = anyrange);
        CREATE OPERATOR traps.&& (FUNCTION = traps.always, LEFTARG = anyrange, RIGHTARG = anyrange);
        CREATE FUNCTION traps.lower(int4range) RETURNS int LANGUAGE sql AS 'SELECT 7';
        """
    )
    with database.connect() as connection:
        connection.execute("SET search_path = traps, pg_catalog")
        found = connection.execute(
            "SELECT dbanon.share('[0,9]'::int4range, '[20,30]'),"
            " dbanon.at_least('[0,9]'::int4range, '[20,30]'),"
            " dbanon.at_most('[0,9]'::int4range, '[20,30]'),"
            " dbanon.share('[0,9]'::int4range, '[5,30]'), dbanon.middle('[0,9]'::int4range)"
        ).fetchone()
    assert (0, 0, 0, 0.5, 4.5) == found
