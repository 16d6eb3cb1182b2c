"""Queries that somebody looks at, and keeps as views to publish."""

import pytest

import dbanon
from dbanon.domain.policy import Role
from dbanon.domain.table import TableName
from dbanon.settings import Settings

SHOP = """
CREATE TABLE public.customer (customer_id int PRIMARY KEY, age int, city text);
CREATE TABLE public.rental (rental_id int PRIMARY KEY, customer_id int, amount int);
INSERT INTO public.customer SELECT i, 20 + i % 50, 'city ' || i % 3 FROM generate_series(1, 40) i;
INSERT INTO public.rental SELECT i, 1 + i % 40, i % 7 FROM generate_series(1, 120) AS i;
"""
QUERY = "SELECT rental_id, customer_id, age, city, amount FROM rental JOIN customer USING"
QUERY += " (customer_id) WHERE city LIKE 'city%';"


@pytest.fixture
def shop(database):
    database.execute(SHOP)
    return database


def views(database):
    return database.execute(
        "SELECT nspname, relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace"
        " WHERE relkind = 'v' AND nspname !~ '^(pg_catalog|information_schema|dbanon)'"
    )


def test_a_query_is_looked_at_and_leaves_nothing(shop):
    found = dbanon.inspect_query(QUERY, settings=shop.settings)
    assert found.n_rows == 120
    assert [column.info.name for column in found.columns] == [
        *("rental_id", "customer_id", "age", "city", "amount")
    ]
    assert found.key == ("rental_id",)
    assert views(shop) == []


def test_a_query_is_kept_as_a_view_and_published_in_few_steps(shop):
    found = dbanon.inspect_query(QUERY, create_view="rentals", settings=shop.settings)
    assert found.info.name == TableName("public", "rentals")
    draft = dbanon.suggest_policy("rentals", settings=shop.settings)
    assert 'key = [\n    "rental_id",\n]' in draft
    assert 'subject = "customer_id"' in draft


def test_a_name_that_is_taken_is_kept(shop):
    with pytest.raises(dbanon.ConfigError, match="already exists"):
        dbanon.inspect_query(QUERY, create_view="public.rental", settings=shop.settings)
    assert shop.execute("SELECT count(*) FROM public.rental") == [(120,)]


def test_a_view_that_the_role_may_not_make_needs_a_right_and_no_other_query(shop):
    name = shop.role("maker_of_views")
    shop.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {name}; CREATE SCHEMA closed")
    settings = Settings(dsn=shop.dsn_as(name))
    with pytest.raises(dbanon.ConfigError, match="denied for schema closed") as caught:
        dbanon.inspect_query(QUERY, create_view="closed.rentals", settings=settings)
    assert "--create-view SCHEMA.NAME" in caught.value.hint


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM rental",
        "SELECT 1 AS a; DELETE FROM rental",
        "SELECT 1 AS a); DELETE FROM rental; SELECT (1",
        "WITH gone AS (DELETE FROM rental RETURNING *) SELECT * FROM gone",
        "SELECT * FROM nowhere",
        "SELECT rental_id, rental_id FROM rental",
        "SELECT $1",
        "",
    ],
)
@pytest.mark.parametrize("create_view", [None, "public.odd"])
def test_what_is_no_single_query_is_refused_and_does_nothing(shop, query, create_view):
    with pytest.raises(dbanon.ConfigError, match="makes no view of the query"):
        dbanon.inspect_query(query, create_view=create_view, settings=shop.settings)
    assert shop.execute("SELECT count(*) FROM public.rental") == [(120,)]
    assert views(shop) == []


def test_a_query_that_calls_a_stranger_s_function_is_not_run_and_not_kept(shop):
    name = shop.role("stranger_of_queries")
    shop.execute(f"GRANT CREATE ON DATABASE {shop.name} TO {name}")
    stranger = shop.connect_as(name)
    stranger.execute(
        "CREATE SCHEMA den; GRANT USAGE ON SCHEMA den TO PUBLIC; CREATE SEQUENCE den.caught;"
        "GRANT ALL ON SEQUENCE den.caught TO PUBLIC; CREATE FUNCTION den.spy(int) RETURNS int"
        " LANGUAGE sql AS 'SELECT nextval(''den.caught'')::int'"
    )
    with pytest.raises(dbanon.NotPermitted, match=r"den\.spy of stranger_of_queries"):
        dbanon.inspect_query(
            "SELECT den.spy(rental_id) AS a FROM rental",
            create_view="public.odd",
            settings=shop.settings,
        )
    assert stranger.execute("SELECT is_called FROM den.caught").fetchone() == (False,)
    assert views(shop) == []
    stranger.close()
    shop.admin().execute(f"DROP OWNED BY {name}")


def test_what_keeps_a_relation_from_being_published_is_said_when_it_is_looked_at(shop):
    shop.execute("ALTER TABLE public.customer ENABLE ROW LEVEL SECURITY")
    found = dbanon.inspect_query(QUERY, create_view="rentals", settings=shop.settings)
    assert [part.name.name for part in found.info.below if part.row_security] == ["customer"]
    assert found.columns[0].suggestion.role is Role.IDENTIFIER


def test_what_is_made_at_each_reading_is_no_key(shop):
    query = "SELECT random() AS draw, age, city FROM public.customer"
    found = dbanon.inspect_query(query, create_view="public.drawn", settings=shop.settings)
    assert found.key == ()
    assert "# no column alone tells the rows apart" in dbanon.suggest_policy(
        "drawn", settings=shop.settings
    )
