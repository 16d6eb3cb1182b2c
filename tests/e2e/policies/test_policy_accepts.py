"""What ``policy set`` accepts is what ``publish`` can do."""

import pytest
from selection import exhaustive_after

import dbanon
from dbanon import ColumnRule, ModelSpec, Policy, Role
from dbanon.anonymization.registry import RECODINGS
from dbanon.domain.table import TableName

VALUES = {
    "text": "'low'",
    "integer": "1",
    "numeric": "1.5",
    "date": "'2020-01-01'",
    "boolean": "true",
    "public.level": "'low'",
}


def policy_of(**rule):
    columns = (ColumnRule("id", Role.IDENTIFIER), ColumnRule("x", Role.QUASI, **rule))
    models = (ModelSpec("k-anonymity", {"k": 2}),)
    return Policy(TableName("public", "t"), columns, models=models)


def attempt(action, *args, **kwargs):
    try:
        return action(*args, **kwargs)
    except dbanon.PolicyError as error:
        return error


@pytest.mark.parametrize("declared", exhaustive_after(1, VALUES))
def test_a_policy_is_set_when_its_recodings_can_publish_and_refused_when_not(
    database, monkeypatch, tmp_path, declared
):
    file = tmp_path / "t.csv"
    file.write_text("low;*\nmedium;*\n1;*\n1.5;*\n2020-01-01;*\ntrue;*\n")
    dbanon.import_taxonomy("t", file, settings=database.settings)
    connection = database.connect()
    connection.execute("CREATE TYPE public.level AS ENUM ('low', 'medium')")
    connection.execute(f"CREATE TABLE public.t (id int PRIMARY KEY, x {declared})")
    connection.execute(
        f"INSERT INTO public.t SELECT i, {VALUES[declared]} FROM generate_series(1, 4) AS i"
    )
    further = [{}, {"taxonomy": "t"}]
    if declared in {"text", "public.level"}:
        further.append({"order": ("low", "medium")})
    for more in further:
        for recoding in RECODINGS:
            policy = policy_of(recoding=recoding, **more)
            accepted = attempt(dbanon.set_policy, "t", policy, settings=database.settings)
            with monkeypatch.context() as patch:
                # what would be published if nobody looked before
                patch.setattr("dbanon.formats.policy_validation._of_recoding", lambda *_: ())
                dbanon.set_policy("t", policy, settings=database.settings)
                possible = attempt(dbanon.plan, "t", settings=database.settings)
            fits = not isinstance(accepted, dbanon.PolicyError)
            assert fits == (not isinstance(possible, dbanon.PolicyError)), (recoding, more)


def test_a_policy_with_an_order_that_fits_nothing_is_refused(database):
    database.connect().execute("CREATE TABLE public.t (id int PRIMARY KEY, x text, y int, z text)")
    columns = (
        ColumnRule("id", Role.IDENTIFIER),
        ColumnRule("x", Role.QUASI, recoding="label", order=("a", "b")),
        ColumnRule("y", Role.SENSITIVE, order=("1", "2")),
        ColumnRule("z", Role.SENSITIVE),
    )
    close = ModelSpec("t-closeness", {"t": 0.2, "distance": "ordered"})
    policy = Policy(TableName("public", "t"), columns, models=(close,), class_label="w")
    with pytest.raises(dbanon.PolicyError) as caught:
        dbanon.set_policy("t", policy, settings=database.settings)
    assert [line.strip() for line in str(caught.value).splitlines()[1:]] == [
        (
            "t-closeness needs the order of sensitive column z, whose type has none:"
            ' order = ["low", "medium", "high"]'
        ),
        "class label w is no column that is published as it is: give it the role insensitive",
        (
            "column x: recoding label does not publish values in an order, as those of type text"
            " are here"
        ),
        "column y: order lists texts, and type integer is none",
    ]


def test_the_class_label_is_read_and_measured(database):
    connection = database.connect()
    connection.execute("CREATE TABLE public.t (id int PRIMARY KEY, x int, s text, label numeric)")
    connection.execute(
        "INSERT INTO public.t SELECT i, i / 4, i % 2, CASE WHEN i % 4 > 0 THEN i % 4 / 3 END"
        " FROM generate_series(0, 7) AS i"
    )
    columns = (
        ColumnRule("id", Role.IDENTIFIER),
        ColumnRule("x", Role.QUASI),
        ColumnRule("s", Role.SENSITIVE),
        ColumnRule("label", Role.INSENSITIVE),
    )
    for label, share in ((None, 1 / 2), ("label", 1 / 2), ("s", 1 / 2)):
        policy = Policy(
            TableName("public", "t"),
            columns,
            models=(ModelSpec("k-anonymity", {"k": 4}),),
            class_label=label,
        )
        dbanon.set_policy("t", policy, settings=database.settings)
        assert share == dbanon.plan("t", settings=database.settings).loss.metrics["cm"]
    connection.execute("UPDATE public.t SET label = x")
    dbanon.set_policy(
        "t",
        Policy(policy.table, columns, models=policy.models, class_label="label"),
        settings=database.settings,
    )
    release = dbanon.publish("t", settings=database.settings)
    assert 0.0 == release.loss.metrics["cm"]
    assert 4 == len(connection.execute("SELECT * FROM anon.t").description) + 1


def test_a_policy_with_weights_reports_and_compares_what_they_ask_for(database):
    connection = database.connect()
    connection.execute("CREATE TABLE public.t (id int PRIMARY KEY, x int, y int)")
    connection.execute(
        "INSERT INTO public.t SELECT i, i % 2, i / 2 FROM generate_series(0, 3) AS i"
    )
    columns = (
        ColumnRule("id", Role.IDENTIFIER),
        ColumnRule("x", Role.QUASI, weight=4.0),
        ColumnRule("y", Role.QUASI),
    )
    policy = Policy(TableName("public", "t"), columns, models=(ModelSpec("k-anonymity", {"k": 2}),))
    dbanon.set_policy("t", policy, settings=database.settings)
    loss = dbanon.plan("t", settings=database.settings).loss
    assert (0.5, 0.2) == (loss.ncp, loss.weighted_ncp)
    found = dbanon.compare("t", algorithms=["auto", "mondrian"], settings=database.settings)
    assert found.is_weighted
    assert [0.2, 0.2] == [result.loss.asked for result in found.results]
    dbanon.publish("t", settings=database.settings)
    (release,) = dbanon.list_releases("t", settings=database.settings)
    assert loss == release.loss
