"""Views, joins and materialized views as what is published."""

from dataclasses import replace

import pytest
from tables import rows_proved

import dbanon
from dbanon.domain.policy import K_ANONYMITY, ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.table import TableName

SHOP = """
CREATE TABLE public.customer (customer_id int PRIMARY KEY, born date NOT NULL, city text);
CREATE TABLE public.film (film_id int PRIMARY KEY, category text);
CREATE TABLE public.rental (
    rental_id int PRIMARY KEY, customer_id int REFERENCES public.customer,
    film_id int REFERENCES public.film, amount numeric(6, 2), remark text);
INSERT INTO public.customer
SELECT i, date '1950-01-01' + i * 37, 'city ' || i % 4 FROM generate_series(1, 150) AS i;
INSERT INTO public.film SELECT i, 'category ' || i % 5 FROM generate_series(1, 40) AS i;
INSERT INTO public.rental
SELECT i, 1 + i % 150, 1 + i * 7 % 40, i % 9 + 0.50, CASE WHEN i % 3 > 0 THEN 'remark ' || i END
  FROM generate_series(1, 400) AS i;
CREATE VIEW public.rentals AS
SELECT rental_id, customer_id, born, city, category, amount, remark
  FROM public.rental JOIN public.customer USING (customer_id) JOIN public.film USING (film_id);
CREATE MATERIALIZED VIEW public.stored AS SELECT * FROM public.rentals;
CREATE VIEW public.nested AS SELECT * FROM public.rentals;
"""
RENTALS = TableName("public", "rentals")
ROLES = {
    "rental_id": Role.IDENTIFIER,
    "customer_id": Role.IDENTIFIER,
    "born": Role.QUASI,
    "city": Role.QUASI,
    "category": Role.SENSITIVE,
    "amount": Role.INSENSITIVE,
    "remark": Role.INSENSITIVE,
}


def make_shop(database):
    database.execute(SHOP)


@pytest.fixture
def shop(copied):
    return copied(make_shop)


def policy_of(name, **changes):
    columns = tuple(ColumnRule(column, role) for column, role in ROLES.items())
    models = (ModelSpec(K_ANONYMITY, {"k": 5}),)
    values = {"key": ("rental_id",), "models": models, **changes}
    return Policy(TableName("public", name), columns, **values)


def publish(database, name="rentals", *, policy=None, **options):
    policy = policy or policy_of(name)
    dbanon.set_policy(policy.table, policy, settings=database.settings)
    return dbanon.publish(policy.table, settings=database.settings, **options)


def true_rows(database, name):
    """Count the published rows that hold of their row in the source."""
    ((found,),) = database.execute(
        f"SELECT count(*) FROM anon.{name} AS a JOIN public.rentals AS r ON a.born @> r.born"
        " AND a.city IN (r.city, '*') AND a.category = r.category AND a.amount = r.amount"
        " AND a.remark = r.remark"
    )
    return found


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["rentals", "stored", "nested"])
def test_a_join_is_published_with_every_value_of_its_row(shop, name):
    release = publish(shop, name)
    assert rows_proved(release) == 400
    assert true_rows(shop, name) == 267
    assert shop.execute(f"SELECT count(*) FROM anon.{name} WHERE remark IS NULL") == [(133,)]
    assert dbanon.check(release.relation, settings=shop.settings).passed


@pytest.mark.exhaustive
def test_persons_are_counted_across_the_rows_of_a_join(shop):
    release = publish(shop, policy=policy_of("rentals", subject="customer_id"))
    assert rows_proved(release) == 400
    found = [result for result in release.checks.results if result.model == K_ANONYMITY]
    assert min(result.achieved for result in found) >= 5
    assert dbanon.check(release.relation, settings=shop.settings).passed


@pytest.mark.exhaustive
def test_doctor_finds_nothing_wrong_with_a_published_view(shop):
    publish(shop, policy=policy_of("rentals", subject="customer_id"))
    found = dbanon.doctor(settings=shop.settings)
    assert [finding.message for finding in found if finding.exit_code] == []
    shop.execute("UPDATE public.film SET category = NULL WHERE film_id = 3")
    found = dbanon.doctor(settings=shop.settings)
    assert [finding.message for finding in found if finding.exit_code] == []


@pytest.mark.exhaustive
def test_all_rows_of_a_person_lead_to_k_persons(shop):
    """The attacker has the source: whose rows can all be the published rows of a person?"""
    roles = {**ROLES, "amount": Role.QUASI, "remark": Role.IDENTIFIER}
    columns = tuple(ColumnRule(column, role) for column, role in roles.items())
    policy = replace(policy_of("rentals", subject="customer_id"), columns=columns)
    release = publish(shop, policy=policy, keep_assignment=True)
    assert rows_proved(release) == 400
    assert shop.execute(
        "SELECT count(*) FROM (SELECT customer_id FROM public.rentals GROUP BY customer_id"
        " HAVING count(DISTINCT amount) > 1) AS p"
    ) == [(150,)]
    classes = "SELECT DISTINCT a.born, a.city, a.amount FROM anon.rentals AS a"  # what readers see
    fitting = (
        f"SELECT c.*, r.customer_id FROM ({classes}) AS c JOIN public.rentals AS r"
        " ON c.born @> r.born AND c.city IN (r.city, '*') AND c.amount @> r.amount"
        " GROUP BY c.born, c.city, c.amount, r.customer_id HAVING count(*) ="
        " (SELECT count(*) FROM public.rentals AS s WHERE s.customer_id = r.customer_id)"
    )
    ((fewest,),) = shop.execute(
        f"SELECT min(n) FROM (SELECT count(*) AS n FROM ({fitting}) AS f"
        " GROUP BY born, city, amount) AS g"
    )
    assert fewest >= 5
    ((persons,),) = shop.execute(f"SELECT count(DISTINCT customer_id) FROM ({fitting}) AS f")
    assert persons == 150


@pytest.mark.exhaustive
def test_a_refresh_sees_what_the_tables_below_have_become(shop):
    publish(shop)
    (same,) = dbanon.refresh("rentals", if_changed=True, settings=shop.settings)
    assert not same.changed
    shop.execute("UPDATE public.film SET category = 'other' WHERE film_id = 3")
    others = {"new_series": True, "recipients_changed": True}
    options = {**others, "if_changed": True, "settings": shop.settings}
    (again,) = dbanon.refresh("rentals", **options)
    assert again.changed
    ((expected,),) = shop.execute("SELECT count(*) FROM public.rentals WHERE category = 'other'")
    assert shop.execute("SELECT count(*) FROM anon.rentals WHERE category = 'other'") == [
        (expected,)
    ]


def test_a_join_takes_all_that_a_policy_can_say(shop, tmp_path):
    """Key, subject, floor, filter, name and rest, in one file."""
    file = tmp_path / "rentals.toml"
    file.write_text(
        """
        table = "public.rentals"
        name = "research"
        key = ["rental_id"]
        subject = "customer_id"
        rest = "drop"
        where = [{ column = "city", is = "in", value = ["city 1", "city 2"] }]
        models = { k = 4, l = 2 }
        [columns]
        born = { role = "quasi", at_least = "decade" }
        amount = { role = "quasi", bands = 5 }
        category = { role = "sensitive" }
        """
    )
    dbanon.set_policy("rentals", file, settings=shop.settings)
    release = dbanon.publish("rentals", policy="research", settings=shop.settings)
    assert str(release.relation) == "anon.rentals_research"
    ((rows,),) = shop.execute("SELECT count(*) FROM public.rentals WHERE city ~ '[12]$'")
    assert shop.execute("SELECT count(*) FROM anon.rentals_research") == [(rows,)]
    assert shop.execute(
        "SELECT count(*) FROM anon.rentals_research WHERE date_part('year', lower(born))::int % 10"
        " + date_part('year', upper(born))::int % 10 <> 0 OR lower(amount) % 5 <> 0"
    ) == [(0,)]
    (again,) = dbanon.refresh("rentals", if_changed=True, settings=shop.settings)
    assert not again.changed
    assert dbanon.check(release.relation, settings=shop.settings).passed


def test_a_key_that_repeats_is_refused(shop):
    with pytest.raises(dbanon.PolicyError, match=r"\(customer_id\) does not tell its rows apart"):
        publish(shop, policy=policy_of("rentals", key=("customer_id",)))


def test_a_key_that_is_null_is_refused(shop):
    shop.execute(
        "CREATE OR REPLACE VIEW public.rentals AS SELECT NULLIF(rental_id, 7) AS rental_id,"
        " customer_id, born, city, category, amount, remark FROM public.stored"
    )
    with pytest.raises(dbanon.PolicyError, match="does not tell its rows apart"):
        publish(shop)


def test_a_view_without_a_key_is_refused_with_the_line_to_write(shop):
    with pytest.raises(dbanon.PolicyError, match=r'key = \["column", ...\]'):
        publish(shop, policy=policy_of("rentals", key=()))


def test_a_subject_that_is_null_is_refused(shop):
    shop.execute(
        "CREATE OR REPLACE VIEW public.rentals AS SELECT rental_id, NULLIF(customer_id, 7)"
        " AS customer_id, born, city, category, amount, remark FROM public.stored"
    )
    with pytest.raises(dbanon.PolicyError, match="subject column customer_id has 3 NULLs"):
        publish(shop, policy=policy_of("rentals", subject="customer_id"))


def test_a_view_cannot_be_published_live(shop):
    with pytest.raises(dbanon.ConfigError, match="no table, and guards of a live view"):
        publish(shop, kind="view")


@pytest.mark.exhaustive
def test_a_key_of_the_policy_is_not_enough_for_a_live_view(shop):
    roles = {"film_id": Role.IDENTIFIER, "category": Role.QUASI}
    columns = tuple(ColumnRule(column, role) for column, role in roles.items())
    policy = Policy(
        TableName("public", "film"),
        columns,
        (ModelSpec(K_ANONYMITY, {"k": 5}),),
        key=("film_id",),
    )
    with pytest.raises(dbanon.ConfigError, match="told apart at every moment"):
        publish(shop, policy=policy, kind="view")
    assert rows_proved(publish(shop, policy=policy)) == 40


def test_a_table_without_a_primary_key_is_published_by_the_key_of_its_policy(shop):
    shop.execute("CREATE TABLE public.keyless AS SELECT * FROM public.rentals")
    assert rows_proved(publish(shop, "keyless")) == 400
    shop.execute("INSERT INTO public.keyless SELECT * FROM public.rentals WHERE rental_id = 1")
    with pytest.raises(dbanon.PolicyError, match="does not tell its rows apart"):
        dbanon.refresh("keyless", settings=shop.settings)


@pytest.mark.exhaustive
def test_row_level_security_below_a_view_is_refused(shop):
    publish(shop)
    shop.execute("ALTER TABLE public.customer ENABLE ROW LEVEL SECURITY")
    with pytest.raises(dbanon.PolicyError, match=r"public\.customer, which has row-level security"):
        publish(shop)
    found = [f.message for f in dbanon.doctor(settings=shop.settings) if f.exit_code]
    assert any("public.customer, which has row-level security" in message for message in found)


@pytest.mark.parametrize("call", ["random() < 2", "clock_timestamp() > '2000-01-01'"])
def test_a_view_whose_rows_differ_at_each_reading_is_refused(shop, call):
    shop.execute(
        f"CREATE OR REPLACE VIEW public.rentals AS SELECT * FROM public.stored WHERE {call}"
    )
    with pytest.raises(dbanon.PolicyError, match="VOLATILE: its rows are others"):
        publish(shop)
    with pytest.raises(dbanon.PolicyError, match="VOLATILE: its rows are others"):
        publish(shop, "nested")


@pytest.mark.exhaustive
def test_what_depends_on_the_moment_is_read_at_one_moment(shop):
    shop.execute(
        "CREATE VIEW public.aged AS SELECT rental_id, customer_id, born, city, category,"
        " remark, date_part('epoch', now()) AS amount FROM public.stored"
    )
    release = publish(shop, "aged", policy=policy_of("aged", subject="customer_id"))
    assert rows_proved(release) == 400
    assert shop.execute("SELECT count(DISTINCT amount) FROM anon.aged") == [(1,)]


def test_a_view_that_is_defined_otherwise_is_drift(shop):
    publish(shop, "nested")
    shop.execute(
        "CREATE OR REPLACE VIEW public.rentals AS SELECT rental_id, customer_id, born, city,"
        " 'hidden ' || category AS category, amount, remark FROM public.stored"
    )
    with pytest.raises(dbanon.DriftError, match="is defined otherwise now"):
        dbanon.refresh("nested", settings=shop.settings)


@pytest.mark.exhaustive
@pytest.mark.parametrize("below", ["public.customer", "public.rental", "public.rentals"])
def test_a_reader_who_can_read_what_a_view_is_made_of_is_refused(shop, below):
    analyst = shop.role("analyst_of_joins")
    shop.execute(f"GRANT SELECT ON {below} TO {analyst}")
    with pytest.raises(dbanon.NotPermitted, match=f"can read {below.replace('.', '[.]')}"):
        publish(shop, grants=[analyst])


@pytest.mark.exhaustive
def test_a_reader_of_a_partition_below_a_view_is_refused(shop):
    shop.execute(
        "CREATE TABLE public.parted (LIKE public.rental) PARTITION BY RANGE (rental_id);"
        "CREATE TABLE public.part PARTITION OF public.parted DEFAULT;"
        "INSERT INTO public.parted SELECT * FROM public.rental;"
        "CREATE OR REPLACE VIEW public.rentals AS SELECT rental_id, customer_id, born, city,"
        " category, r.amount, r.remark FROM public.parted AS r JOIN public.customer"
        " USING (customer_id) JOIN public.film USING (film_id)"
    )
    analyst = shop.role("analyst_of_parts")
    shop.execute(f"GRANT SELECT ON public.part TO {analyst}")
    with pytest.raises(dbanon.NotPermitted, match=r"can read public\.part"):
        publish(shop, grants=[analyst])


def test_a_column_named_like_one_of_the_system_is_refused(shop):
    shop.execute("CREATE VIEW public.odd AS SELECT *, 1 AS ctid FROM public.stored")
    policy = policy_of("odd")
    columns = (*policy.columns, ColumnRule("ctid", Role.INSENSITIVE))
    odd = Policy(policy.table, columns, policy.models, key=policy.key)
    with pytest.raises(dbanon.PolicyError, match="system column ctid"):
        publish(shop, policy=odd)


@pytest.mark.exhaustive
def test_a_person_who_is_written_in_two_ways_is_one(shop):
    shop.execute(
        "CREATE VIEW public.signed AS SELECT rental_id, born, city, category, amount,"
        " remark, CASE WHEN customer_id > 30 THEN customer_id WHEN rental_id % 2 = 0"
        " THEN '-0'::float8 ELSE '0'::float8 END AS customer_id FROM public.rentals"
    )
    policy = policy_of("signed", subject="customer_id")
    publish(shop, "signed", policy=policy)
    ((persons,),) = shop.execute("SELECT count(DISTINCT customer_id) FROM public.signed")
    remembered = "SELECT count(DISTINCT p) FROM dbanon.history_member, unnest(persons) AS p"
    assert [(persons,)] == shop.execute(remembered)
