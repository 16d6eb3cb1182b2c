"""A thousand values of persons that the release does not show are nowhere in what is said of it."""

import random
import re
from functools import partial

import pytest
from selection import at_depth

import dbanon
from dbanon.cli.terminal import console
from dbanon.domain.policy import (
    ColumnRule,
    Comparison,
    Condition,
    MaskingStep,
    ModelSpec,
    Policy,
    Role,
)
from dbanon.domain.table import TableName

pytestmark = pytest.mark.slow

TABLE = TableName("public", "wards")
PERSONS, MARKED = 600, 200
WORDS = ("bone", "lung", "skin")


def planted(i):
    """Return the row of a person with a mark in every column."""
    rare = f"rare-{i:04}-qx"
    day = f"19{i % 80 + 10:02}-{i % 12 + 1:02}-{i % 28 + 1:02}"
    born = f"{day} 0{i % 10}:{i % 60:02}:{i % 50 + 7:02}"
    return (
        f"key-{i:04}-qx",
        f"name-{i:04}-qx",
        f"town-{i:04}-qx",
        7_310_011 + 7_919 * i,
        born,
        rare,
        WORDS[i % 3],
        "in",
    )


def ordinary(i, source):
    return (
        f"key-{i}",
        f"name {i}",
        f"town {i % 7}",
        source.randrange(1_000, 99_000) * 100,
        f"19{source.randint(40, 99)}-0{source.randint(1, 9)}-1{source.randint(0, 9)} 00:00:00",
        source.choice(("flu", "asthma", "gout")),
        source.choice(WORDS),
        "in",
    )


def left_out(i):
    """Return the row of a person whom the conditions of the policy leave out."""
    return (*planted(i)[:6], f"ward-{i:04}-qx", "out")


def everybody():
    source = random.Random(15)  # noqa: S311 - people, not secrets
    rows = [planted(i) for i in range(MARKED)]
    rows += [left_out(i) for i in range(MARKED, MARKED + 30)]
    return rows + [ordinary(i, source) for i in range(PERSONS)]


def marks():
    """Return all that is planted: more than a thousand different values, of every column."""
    rows = everybody()[: MARKED + 30]
    texts = {text for row in rows for text in (*row[:3], row[5], row[6]) if text.endswith("qx")}
    return texts | {str(row[3]) for row in rows} | {row[4] for row in rows}


def found_in(text, values):
    """Return those of some values that a text has, however numbers and dates are spelled."""
    plain = re.sub(r"(?<=\d),(?=\d{3})", "", text.replace("T", " "))
    there = [one for one in values if one in plain]  # to compile all patterns takes long
    return {one for one in there if re.search(rf"(?<!\d){re.escape(one)}(?!\d)", plain)}


def publish_marked(database):
    with database.connect() as connection:
        connection.execute(
            "CREATE TABLE public.wards (id text PRIMARY KEY, name text, town text, income integer,"
            " born timestamp, disease text, ward text, status text)"
        )
        copy = "COPY public.wards FROM STDIN"
        with connection.cursor().copy(copy) as rows:
            for row in everybody():
                rows.write_row(row)
    columns = (
        ColumnRule("id", Role.IDENTIFIER),
        ColumnRule("name", Role.IDENTIFIER),
        ColumnRule("town", Role.QUASI, recoding="label"),
        ColumnRule("income", Role.QUASI, bands=10_000.0),
        ColumnRule("born", Role.QUASI, at_least="month"),
        ColumnRule("disease", Role.SENSITIVE),
        ColumnRule("ward", Role.SENSITIVE),
        ColumnRule("status", Role.IDENTIFIER),
    )
    policy = Policy(
        TABLE,
        columns,
        models=(
            ModelSpec("k-anonymity", {"k": 5}),
            ModelSpec("l-diversity", {"l": 2, "columns": ("ward",)}),
        ),
        where=(Condition("status", Comparison.EQUAL, "in"),),
        masking=(MaskingStep("rare-to-other", ("disease",), {"persons": 10}),),
        params={"effort": "fast"},
    )
    dbanon.set_policy(TABLE, policy, settings=database.settings)


@pytest.fixture
def marked(copied):
    return copied(publish_marked)


@pytest.fixture
def run(marked, monkeypatch, capsys):
    from dbanon.cli import main

    monkeypatch.setenv("DBANON_DSN", marked.dsn)
    monkeypatch.setattr(console, "Lines", partial(console.Lines, after=0))

    def command(*words):
        monkeypatch.setattr("sys.argv", ["dbanon", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        assert not ended.value.code, err
        return out + err

    return command


def attacks(run):
    """Return all that attacks say, for people, as JSON and of how far they are."""
    kinds = [("--as", who) for who in ("prosecutor", "journalist", "marketer")]
    options = ("--samples", at_depth(300), "--timings")
    return "".join(
        run("attack", "anon.wards", *kind, *options, *form)
        for kind in (*kinds, ("--with", "anon.coarse"))
        for form in ((), ("--json",))
    )


def test_no_value_is_told_that_the_release_does_not_show(marked, run, tmp_path):
    values = marks()
    assert len(values) >= 1_000
    source = marked.execute("SELECT string_agg(w::text, ' ') FROM public.wards AS w")[0][0]
    assert found_in(source, values) == values
    planned, reported = tmp_path / "plan.html", tmp_path / "report.html"
    log = run("plan", "wards", "--html", planned, "--timings")
    log += run("publish", "wards", "--timings")
    log += run("report", "anon.wards", "--html", reported)
    document = run("report", "anon.wards", "--json")
    run("publish", "wards", "--name", "coarse", "--k", "40")
    attacked = attacks(run)
    shown = "".join(
        marked.execute(f"SELECT string_agg(w::text, ' ') FROM anon.{name} AS w")[0][0]
        for name in ("wards", "coarse")
    )
    hidden = values - found_in(shown, values)
    assert len(hidden) >= 1_000
    assert {"deFinetti", "marketer", "membership", "join"} <= {*re.findall(r"\w+", attacked)}
    pages = [path.read_text("utf-8") for path in (planned, reported)]
    for text in (*pages, document, log, attacked):
        assert found_in(text, hidden) == set()
    # What may be told is: the search finds what there is.
    for text in (*pages, document):
        assert found_in(text, {"town", "disease", "ward"}) == {"town", "disease", "ward"}
    for page in pages:
        assert found_in(page, WORDS) == set(WORDS)
    for text in (*pages, log):
        assert "born: nothing finer than a month" in text
    assert '"born": "nothing finer than a month"' in document


def test_a_document_has_no_value_that_its_policy_names(database, monkeypatch, capsys):
    """Whoever objected to being published is named by a condition, and an order names all."""
    from dbanon.cli import main

    table = TableName("public", "asked")
    database.execute(
        "CREATE TABLE public.asked (id integer PRIMARY KEY, name text, level text, code text);"
        "INSERT INTO public.asked SELECT i, 'name ' || i, (ARRAY['low', 'high'])[1 + i % 2],"
        " 'AB' || i % 4 FROM generate_series(1, 60) AS i"
    )
    columns = (
        ColumnRule("id", Role.IDENTIFIER),
        ColumnRule("name", Role.IDENTIFIER),
        ColumnRule("level", Role.QUASI, order=("low", "high", "unheard-of-qx")),
        ColumnRule("code", Role.QUASI),
    )
    objected = Condition("name", Comparison.DIFFERENT, "name 7")
    policy = Policy(table, columns, models=(ModelSpec("k-anonymity", {"k": 5}),), where=(objected,))
    dbanon.set_policy(table, policy, settings=database.settings)
    dbanon.publish(table, settings=database.settings)
    monkeypatch.setenv("DBANON_DSN", database.dsn)
    monkeypatch.setattr("sys.argv", ["dbanon", "report", "anon.asked", "--json"])
    with pytest.raises(SystemExit):
        main()
    document = capsys.readouterr().out
    assert '"comparison": "<>"' in document
    assert found_in(document, {"name 7", "unheard-of-qx"}) == set()
