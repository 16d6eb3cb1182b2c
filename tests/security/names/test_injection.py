"""SQL where nobody expects any, and commands to the terminal that prints it."""

import itertools
import json
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import sql
from selection import at_depth

import dbanon
from dbanon.cli import main
from dbanon.cli.terminal import console
from dbanon.domain.policy import K_ANONYMITY, ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.table import TableName

DROP = "DROP TABLE public.canary; --"
CANARY = "CREATE TABLE IF NOT EXISTS public.canary (alive boolean)"

# What may end a name, a string, a body, a comment, an expression or a slot, then the statement.
ENDINGS = ["'", '"', "\\'", "$$", "$function$", "*/", ")", "')", "{0}", "%s", "%(k)s", "\n", "\t"]
PAYLOADS = st.builds(
    lambda endings, rest: f"{''.join(endings)}{rest}; {DROP}",
    st.lists(st.sampled_from(ENDINGS), max_size=3),
    st.sampled_from(["", "x", "1", "NULL", "é", "\u200b", " "]),
)


def alive(database):
    return database.execute("SELECT to_regclass('public.canary') IS NOT NULL") == [(True,)]


NAIVE = {
    "a name": ("CREATE VIEW public.naive AS SELECT TEXT FROM public.people", f"1; {DROP}"),
    "a quoted name": ('CREATE VIEW public."TEXT" AS SELECT 1', f'x" AS SELECT 1; {DROP}'),
    "a label": ("SELECT * FROM public.people WHERE kind = 'TEXT'", f"'; {DROP}"),
    "a comment": ("COMMENT ON TABLE public.people IS 'TEXT'", f"'; {DROP}"),
    "a body": ("DO $$ BEGIN RAISE NOTICE 'TEXT'; END $$", f"'; END $$; {DROP}"),
}


@pytest.mark.parametrize("place", NAIVE)
def test_a_statement_made_of_texts_runs_what_they_say(database, place):
    statement, payload = NAIVE[place]
    database.execute(f"{CANARY}; CREATE TABLE public.people (kind text)")
    database.execute(
        "CREATE FUNCTION public.naive(text) RETURNS void LANGUAGE plpgsql AS"
        " $f$ BEGIN EXECUTE $1; END $f$"
    )
    database.execute("SELECT public.naive(%s)", (statement.replace("TEXT", payload),))
    assert not alive(database)


def make(database, table, names, *, labels):
    """Create a table under those names with those labels in it, and comments of the same kind."""
    target = sql.Identifier(table.schema, table.name)
    columns = [sql.Identifier(name) for name in names]
    connection = database.connect()
    connection.execute(
        sql.SQL("CREATE TABLE {} ({} int PRIMARY KEY, {} int, {} text, {} text, {} text)").format(
            target, *columns
        )
    )
    with connection.cursor().copy(sql.SQL("COPY {} FROM STDIN").format(target)) as copy:
        for i in range(30):
            copy.write_row((i, i % 7, labels[i % 3], labels[i % 2], labels[0]))
    comment = sql.SQL("COMMENT ON {} {} IS {}")
    connection.execute(comment.format(sql.SQL("TABLE"), target, sql.Literal(labels[0])))
    for name in names:
        column = sql.Identifier(table.schema, table.name, name)
        connection.execute(comment.format(sql.SQL("COLUMN"), column, sql.Literal(labels[1])))
    connection.close()


NUMBERS = itertools.count()


@pytest.mark.exhaustive
@settings(max_examples=3, suppress_health_check=list(HealthCheck))
@given(
    texts=st.lists(PAYLOADS, min_size=4, max_size=4, unique=True),
    kind=st.sampled_from(["table", "view"]),
)
def test_no_name_label_comment_or_taxonomy_is_run(database, tmp_path, texts, kind):
    database.execute(CANARY)
    given_settings, number = database.settings, next(NUMBERS)
    names = [f"{i}{text}"[:60] for i, text in enumerate([texts[0]] * 5)]
    table, tree = TableName("public", f"{number}{texts[1]}"[:60]), f"{number}{texts[2]}"
    make(database, table, names, labels=texts[:3])
    file = tmp_path / "labels.csv"
    rows = [(label, texts[3], "*") for label in texts[:3]]
    quoted = (";".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows)
    file.write_text("\n".join(quoted) + "\n", encoding="utf-8")
    dbanon.import_taxonomy(tree, file, settings=given_settings)
    roles = (Role.IDENTIFIER, Role.QUASI, Role.QUASI, Role.SENSITIVE, Role.INSENSITIVE)
    rules = [ColumnRule(name, role) for name, role in zip(names, roles, strict=True)]
    rules[2] = ColumnRule(names[2], Role.QUASI, taxonomy=tree, weight=0.001)
    policy = Policy(table, tuple(rules), (ModelSpec(K_ANONYMITY, {"k": 10}),), "mondrian")
    dbanon.set_policy(table, policy, settings=given_settings)
    dbanon.inspect(table, settings=given_settings)
    assert dbanon.suggest_policy(table, settings=given_settings)
    asked = {"kind": kind, "schema": f"s{texts[2]}"[:60], "name": f"{number}{texts[3]}"[:60]}
    release = dbanon.publish(table, **asked, settings=given_settings)
    assert dbanon.check(release.relation, settings=given_settings).passed
    relation = sql.Identifier(release.relation.schema, release.relation.name)
    shown = sql.SQL("SELECT DISTINCT {} FROM {}").format(sql.Identifier(names[2]), relation)
    assert {row[0] for row in database.execute(shown)} <= {*texts, "*"}
    verify = sql.SQL("SELECT DISTINCT verdict FROM dbanon.verify({}::regclass)")
    assert [("passed",)] == database.execute(verify.format(relation.as_string()))
    assert alive(database)


FIELDS = (
    'table = "public.people"\nalgorithm = {}\n[columns.age]\nrole = "quasi"\n',
    'table = {}\n[columns.age]\nrole = "quasi"\n',
    'table = "public.people"\nsubject = {}\n[columns.age]\nrole = "quasi"\n',
    'table = "public.people"\n[columns.age]\nrole = {}\n',
    'table = "public.people"\n[columns.age]\nrole = "quasi"\nrecoding = {}\n',
    'table = "public.people"\n[columns.age]\nrole = "quasi"\ntaxonomy = {}\n',
    'table = "public.people"\n[columns.age]\nrole = "quasi"\n[columns.{}]\nrole = "quasi"\n',
    'table = "public.people"\n[columns.age]\nrole = "quasi"\n[[models]]\nname = {}\n',
    'table = "public.people"\n[columns.age]\nrole = "quasi"\n[params]\n{} = 1\n',
)


@settings(max_examples=at_depth(12), suppress_health_check=list(HealthCheck))
@given(text=PAYLOADS, field=st.sampled_from(FIELDS))
def test_no_field_of_a_policy_file_is_run(database, tmp_path, text, field):
    database.execute(
        f"{CANARY}; CREATE TABLE IF NOT EXISTS public.people (id int PRIMARY KEY, age int)"
    )
    file = tmp_path / "policy.toml"
    file.write_text(field.format(json.dumps(text, ensure_ascii=False)), encoding="utf-8")
    with pytest.raises(dbanon.DbanonError):
        dbanon.set_policy("people", file, settings=database.settings)
    assert alive(database)


# The terminal.

OBEYED = "\x1b[2J\x1b]0;owned\x07\x9b31m\x7f\r\u202etxt.exe"
HIDDEN = "\u00ad\u200b\u2028\U000e0041\ufe0f\ue000"  # each of another kind
CONTROLS = {*map(chr, range(32)), *map(chr, range(127, 160)), "\u202e", *HIDDEN} - {"\n", "\t"}
FAKE = "error: forged"


def test_nothing_that_is_printed_commands_the_terminal(database, monkeypatch, capsys):
    obeyed = OBEYED[:18] + HIDDEN + f"\n{FAKE}"
    table = TableName("public", f"people{obeyed}")
    names = [f"{i}{obeyed}" for i in range(5)]
    make(database, table, names, labels=[f"a{obeyed}", f"b{obeyed}", f"c{obeyed}"])
    sys.stdout.write(f"there is no table {table.name}")
    assert CONTROLS & set(capsys.readouterr().out) == (CONTROLS & set(obeyed))

    dbanon.derive_taxonomy("kinds", names[2], table=table, kind="flat", settings=database.settings)
    roles = (Role.IDENTIFIER, Role.QUASI, Role.QUASI, Role.SENSITIVE, Role.INSENSITIVE)
    rules = tuple(ColumnRule(name, role) for name, role in zip(names, roles, strict=True))
    policy = Policy(table, rules, (ModelSpec(K_ANONYMITY, {"k": 3}),))
    dbanon.set_policy(table, policy, settings=database.settings)
    monkeypatch.setenv("DBANON_DSN", database.dsn)
    said = str(table)
    for words in (
        ["inspect", said],
        ["policy", "show", said],
        ["plan", said],
        ["plan", said, "--json"],
        ["publish", said, "--name", obeyed],
        ["release", "list"],
        ["doctor"],
        ["check", said],
        ["check", f"nothing{obeyed}"],
    ):
        printed = run(words, monkeypatch, capsys)
        assert CONTROLS & set(printed.out + printed.err) == set(), words
        lines = (printed.out + printed.err).splitlines()
        assert [] == [line for line in lines if line.lstrip().startswith(FAKE)], words
    # What is for other programs is only changed where a person would see it.
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda _: True)
    for words in (
        ["policy", "suggest", said],
        ["policy", "export", said],
        ["taxonomy", "show", "kinds"],
        ["taxonomy", "export", "kinds"],
        ["plan", said, "--print-sql"],
    ):
        printed = run(words, monkeypatch, capsys).out
        assert (CONTROLS & set(printed), True) == (set(), "owned" in printed), words


def run(words, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["dbanon", *words])
    with pytest.raises(SystemExit):
        main()
    return capsys.readouterr()


def test_what_is_for_another_program_is_printed_as_it_is(capsys):
    console.verbatim(OBEYED)
    assert capsys.readouterr().out == OBEYED
    console.document({"name": OBEYED})
    assert json.loads(capsys.readouterr().out) == {"name": OBEYED}
