"""Means and midpoints that analysts read, held against those that PostgreSQL computes exactly."""

from dataclasses import replace

import pytest
from selection import each_once
from tables import rows_proved

import dbanon
from dbanon.anonymization.recodings.central import Mean, Midpoint
from dbanon.domain.policy import ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.table import TableName

# A column, how it is published, its values and every fifth one, what is exact of it, and how far
# rounding moves it.
COLUMNS = {
    "whole": ("bigint", "mean", "i * 31 % 97", "-9223372036854775000 + i", "{}", "0.05"),
    "broken": ("numeric", "mean", "i * 1.37 % 91", "-999999999999999", "{}", "0.0005"),
    "tiny": ("numeric", "midpoint", "i * 0.0137 % 1", "1e14 + i", "{}", "0.0005"),
    "float": ("float8", "mean", "i * 0.37 % 7", "1e30", "{}::text::numeric", "0.0005"),
    "small": ("real", "mean", "i % 7", "-3.4e38", "{}::text::numeric", "0.0005"),
    "born": (
        "date",
        "mean",
        "'epoch'::date + i * 7",
        "date '0001-01-01'",
        "({} - date 'epoch')",
        "0.5",
    ),
    "seen": (
        "timestamptz",
        "mean",
        "timestamptz '2024-01-01+00' + i * interval '7.3 s'",
        "'0001-01-01 00:00+00'",
        "extract(epoch FROM {})",
        "0.5",
    ),
}
TABLE = TableName("public", "people")


def make_people(database):
    values = ", ".join(
        f"CASE WHEN i % 5 = 4 THEN ({sentinel})::{of} ELSE ({made})::{of} END AS {name}"
        for name, (of, _, made, sentinel, *_) in COLUMNS.items()
    )
    database.execute(
        f"CREATE TABLE public.people AS SELECT i AS id, i % 5 / 4 AS kind, {values},"
        " CASE WHEN i % 9 > 0 THEN i % 50 END AS often FROM generate_series(1, 200) AS i;"
        "ALTER TABLE public.people ADD PRIMARY KEY (id);"
        "CREATE VIEW public.seen_people AS SELECT * FROM public.people"
    )


@pytest.fixture
def people(copied):
    return copied(make_people)


def policy_of(name="people", **changes):
    quasi = [ColumnRule(c, Role.QUASI, recoding=of[1]) for c, of in COLUMNS.items()]
    columns = (
        ColumnRule("id", Role.IDENTIFIER),
        ColumnRule("kind", Role.QUASI, keep=True),
        *quasi,
        ColumnRule("often", Role.QUASI, recoding="midpoint"),
    )
    models = (ModelSpec("k-anonymity", {"k": 4}),)
    values = {"algorithm": "mondrian", **changes}
    return Policy(TableName("public", name), columns, models, **values)


def publish(database, name="people", **options):
    policy = policy_of(name, key=("id",) if name != "people" else ())
    dbanon.set_policy(policy.table, policy, settings=database.settings)
    return dbanon.publish(policy.table, settings=database.settings, **options)


@pytest.mark.exhaustive
def test_means_are_those_that_the_database_computes(people):
    release = publish(people, kind="view")
    assert rows_proved(release) == 200
    number, admin = release.id, people.admin()
    for place, (name, (_, recoding, _, _, exact, error)) in enumerate(COLUMNS.items(), 2):
        value, mean = exact.format(f"s.{name}"), exact.format(f"g.q{place}")
        of_mean = f"sum({value}) AS total, count({value}) AS n"
        truth = of_mean if recoding == "mean" else f"min({value}) + max({value}) AS total, 2 AS n"
        found = admin.execute(
            f"SELECT count(*), count(*) FILTER (WHERE abs({mean} * c.n - c.total) > {error} * c.n)"
            f"  FROM (SELECT r.group_id, {truth} FROM public.people AS s"
            f"          JOIN dbanon_data.rows_{number} AS r ON r.k1 = s.id GROUP BY 1) AS c"
            f"  JOIN dbanon_data.groups_{number} AS g USING (group_id)"
        ).fetchone()
        assert (release.loss.n_classes, 0) == found, name


@pytest.mark.parametrize(
    ("column", "name"), each_once([*COLUMNS, "often"], ["people", "seen_people"])
)
def test_a_mean_outside_of_its_class_is_never_published(people, monkeypatch, name, column):
    between = {"born": "1950-01-01", "seen": "1950-01-01 00:00:00+00"}.get(column, "200")

    def wrong(publish):
        def published(self, of, assignment):
            found = publish(self, of, assignment)
            labels = tuple(label and between for label in found.labels)
            return replace(found, labels=labels) if of.name == column else found

        return published

    for recoding in (Mean, Midpoint):
        monkeypatch.setattr(recoding, "publish", wrong(recoding.publish))
    with pytest.raises(dbanon.DatabaseError, match=f"means of column {column} lie outside"):
        publish(people, name)
    assert [(None,)] == people.execute(f"SELECT to_regclass('anon.{name}')")


def test_stretched_means_may_lie_outside_of_their_classes(people):
    policy = policy_of()
    rules = tuple(
        ColumnRule(rule.column, rule.role, recoding="mean", restore_variance=True)
        if rule.column == "broken"
        else rule
        for rule in policy.columns
    )
    policy = Policy(TABLE, rules, policy.models, algorithm="mondrian")
    dbanon.set_policy(TABLE, policy, settings=people.settings)
    assert rows_proved(dbanon.publish(TABLE, settings=people.settings)) == 200
