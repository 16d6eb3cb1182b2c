"""How many rows of a person are published: from the command line to the ledger."""

import json
import sys

import pytest

import dbanon
from dbanon.cli import main
from dbanon.domain.outcomes import Stages
from dbanon.domain.policy import Role

TABLE = dbanon.TableName("public", "visits")
K3, L2 = dbanon.ModelSpec("k-anonymity", {"k": 3}), dbanon.ModelSpec("l-diversity", {"l": 2})


def make_visits(database):
    database.execute(
        "CREATE TABLE public.visits (id int PRIMARY KEY, person text NOT NULL, age int,"
        " disease text);"
        "INSERT INTO public.visits"
        " SELECT row_number() OVER (), 'p' || p, 20 + p / 3, (ARRAY['a','b','c'])[1 + p % 3]"
        " FROM generate_series(1, 60) AS p, generate_series(1, 1 + p % 5) AS v"
    )
    columns = (
        dbanon.ColumnRule("id", Role.IDENTIFIER),
        dbanon.ColumnRule("person", Role.IDENTIFIER),
        dbanon.ColumnRule("age", Role.QUASI),
        dbanon.ColumnRule("disease", Role.SENSITIVE),
    )
    policy = dbanon.Policy(TABLE, columns, (K3, L2), "mondrian", subject="person")
    dbanon.set_policy(TABLE, policy, settings=database.settings)


@pytest.fixture
def visits(copied):
    """One to five visits of each of 60 persons, who have one age and one disease."""
    return copied(make_visits)


def publish(database, **options):
    return dbanon.publish(TABLE, settings=database.settings, **options)


def kept(database, release):
    """Return which rows are published, and of how many persons by number of rows."""
    rows = database.execute(f"SELECT k1 FROM dbanon_data.rows_{release.id} ORDER BY k1")
    persons = database.execute(
        "SELECT n, count(*) FROM (SELECT count(*) AS n FROM public.visits"
        f" JOIN dbanon_data.rows_{release.id} ON k1 = id GROUP BY person) AS p GROUP BY n"
    )
    return [row[0] for row in rows], dict(persons)


def test_the_command_line_asks_for_it_and_a_refresh_again(visits, monkeypatch, capsys):
    def run(*words):
        monkeypatch.setattr(sys, "argv", ["dbanon", *words, "--dsn", visits.dsn])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code or 0, *capsys.readouterr()

    for word, numbers in (("group", dict.fromkeys(range(1, 6), 12)), ("2", {1: 12, 2: 48})):
        words = ("publish", "visits", "--rows-per-subject", word, "--keep-assignment", "--json")
        code, out, _ = run(*words, "--new-series", "--recipients-changed")
        release = json.loads(out)
        assert code == 0
        assert str(release["policy"]["rows_per_subject"]) == word
        assert release["loss"]["n_sampled"] == release["loss"]["n_suppressed"]
        assert release["loss"]["n_rows"] == 180
        before = kept(visits, dbanon.load_release(release["id"], settings=visits.settings))
        assert before[1] == numbers
        assert len(before[0]) == 180 - release["loss"]["n_sampled"]
        (again,) = dbanon.refresh(TABLE, new_series=True, settings=visits.settings)
        assert before == kept(visits, again.release)
        (same,) = dbanon.refresh(TABLE, if_changed=True, settings=visits.settings)
        assert not same.changed
    _, out, _ = run("plan", "visits", "--rows-per-subject", "2")
    assert "180 rows, 72 suppressed (72 by numbers of rows)" in out
    code, _, err = run("publish", "visits", "--rows-per-subject", "0")
    assert (code, "a number of rows, or group" in err) == (2, True)


@pytest.mark.exhaustive
def test_rows_that_come_leave_the_choice_of_others_as_it_was(visits):
    before, _ = kept(visits, publish(visits, rows_per_subject=2, keep_assignment=True))
    visits.execute(
        "INSERT INTO public.visits SELECT 1000 + id, person, age, disease FROM public.visits"
        " WHERE person IN ('p4', 'p9', 'p14')"
    )
    after, _ = kept(visits, publish(visits, rows_per_subject=2, keep_assignment=True))
    others = {id_ for (id_,) in visits.execute("SELECT id FROM public.visits WHERE id < 1000")}
    others -= {
        id_
        for (id_,) in visits.execute(
            "SELECT id FROM public.visits WHERE person IN ('p4', 'p9', 'p14')"
        )
    }
    assert others & set(before) == others & set(after)
    third, _ = kept(visits, publish(visits, rows_per_subject=2, keep_assignment=True, seed=7))
    assert set(third) == set(after)  # a seed, which can be guessed, decides nothing
    visits.execute("UPDATE dbanon.sampling_key SET key = sha256('another')")
    other, _ = kept(visits, publish(visits, rows_per_subject=2, keep_assignment=True))
    assert set(other) != set(after)


def test_one_row_a_person_lets_all_models_be_asked(visits):
    visits.execute("UPDATE public.visits SET age = age + 1, disease = 'z' WHERE id = 3")
    asked = [
        dbanon.ModelSpec("t-closeness", {"t": 0.3}),
        dbanon.ModelSpec("entropy-l-diversity", {"l": 2}),
    ]
    release = publish(visits, rows_per_subject=1, models=asked)
    assert visits.execute("SELECT count(*) FROM anon.visits") == [(60,)]
    assert release.loss.n_sampled == 120
    found = {r.column for r in release.checks.results if r.model == "t-closeness"}
    assert found == {"disease", "disease by person", "disease by person by number of rows"}
    with pytest.raises(dbanon.PolicyError, match="t-closeness cannot be proved of the persons"):
        publish(visits, rows_per_subject="group", models=asked)


@pytest.mark.exhaustive
def test_a_live_view_shows_one_row_a_person_or_all(visits):
    for most in ("group", 2):
        with pytest.raises(dbanon.ConfigError, match="a live view cannot keep rows_per_subject"):
            publish(visits, rows_per_subject=most, kind="view")
    release = publish(visits, rows_per_subject=1, kind="view")
    assert kept(visits, release)[1] == {1: 60}
    visits.execute(
        "INSERT INTO public.visits SELECT 1000 + id, person, age, disease FROM public.visits;"
        "DELETE FROM public.visits WHERE person IN ('p1', 'p2', 'p3', 'p4', 'p5', 'p6')"
    )
    assert visits.execute("SELECT count(*) <= 54 FROM anon.visits") == [(True,)]
    shown = visits.execute(
        "SELECT min(n), max(m) FROM (SELECT count(DISTINCT person) AS n, count(*) AS rows"
        f" FROM public.visits JOIN dbanon_data.rows_{release.id} ON k1 = id"
        f" JOIN dbanon_data.groups_{release.id} AS g USING (group_id) WHERE g.shown"
        " GROUP BY group_id) AS c,"
        f" (SELECT count(*) AS m FROM public.visits JOIN dbanon_data.rows_{release.id} ON k1 = id"
        " GROUP BY person) AS p"
    )
    assert shown[0][0] >= 3
    assert shown[0][1] == 1


def test_it_needs_a_subject(visits):
    policy = dbanon.load_policy(TABLE, settings=visits.settings)
    text = dbanon.export_policy(TABLE, settings=visits.settings)
    assert "rows_per_subject" not in text
    without = dbanon.Policy(TABLE, policy.columns, policy.models, rows_per_subject=2)
    with pytest.raises(dbanon.PolicyError, match="rows_per_subject needs a subject"):
        dbanon.set_policy(TABLE, without, settings=visits.settings)


@pytest.mark.exhaustive
def test_it_is_told_why_a_release_is_not_made_of_earlier_classes(visits):
    notes = []
    for _ in range(2):
        assert [] == notes
        publish(visits, rows_per_subject=1, stages=Stages(on_note=notes.append))
    (told,) = notes
    assert "is not made of the classes of earlier releases: which rows of a person" in told
