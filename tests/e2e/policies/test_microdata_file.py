"""A file for researchers by the policy of the guide, on the census data of the demo."""

import gzip

import pytest
from pages import page

import dbanon
from dbanon import resources
from dbanon.actions.demo import DATASETS
from dbanon.db import demo_tables
from dbanon.db.session import connect
from dbanon.domain.table import TableName
from dbanon.formats import policies

GUIDE = page("docs/guides/microdata-file.md")
OTHERS = {"new_series": True, "recipients_changed": True}


def make_adult(database):
    sample = DATASETS["adult"]
    with (
        connect(database.settings, writes=True) as session,
        session.transaction(),
        gzip.open(resources.data("adult.csv.gz")) as file,
    ):
        demo_tables.load(
            session, TableName("public", "adult"), file.read(), delimiter=sample.delimiter
        )
    for name, file in sample.taxonomies.items():
        dbanon.import_taxonomy(name, resources.data(file), settings=database.settings)
    (text,) = GUIDE.blocks("toml")
    dbanon.set_policy(None, policies.parse(text), settings=database.settings)


@pytest.fixture
def adult(copied):
    return copied(make_adult)


def publish(adult):
    return dbanon.publish(
        "adult",
        policy="microdata",
        name="adult_microdata",
        algorithm="mondrian",
        settings=adult.settings,
        **OTHERS,
    )


def test_the_policy_of_the_guide_makes_a_file_of_bands(adult):
    release = publish(adult)
    drawn = release.loss.n_rows
    assert (30_162, True) == (drawn + release.loss.n_not_drawn, 14_500 < drawn < 15_700)
    assert release.loss.n_suppressed <= 0.02 * drawn
    ((smallest,),) = adult.execute(
        "SELECT min(persons) FROM (SELECT count(*) AS persons FROM anon.adult_microdata"
        ' GROUP BY sex, age, "marital-status", education, "native-country", workclass) AS c'
    )
    assert smallest >= 5
    (check,) = GUIDE.blocks("sql")
    assert [(0,)] == adult.execute(check)
    places = adult.execute('SELECT DISTINCT "native-country" FROM anon.adult_microdata')
    assert {place for (place,) in places} <= {
        *("Africa", "Asia", "Europe", "North America", "South America", "*")
    }


@pytest.mark.exhaustive
def test_everybody_who_was_drawn_is_drawn_again(adult):
    first = publish(adult)
    adult.execute("UPDATE public.adult SET age = age + 1 WHERE id % 100 = 0")
    again = publish(adult)
    assert (first.loss.n_rows, first.relation) == (again.loss.n_rows, again.relation)
