"""What is printed can be pasted: statements into psql, commands into a shell."""

import shlex
import shutil
import subprocess
import sys

import pytest
from psycopg import sql

import dbanon
from dbanon.cli import main
from dbanon.domain.errors import ConfigError
from dbanon.domain.policy import K_ANONYMITY, ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.table import TableName
from dbanon.domain.text import command
from dbanon.server.server import bundled_binaries

# Ends the data of a COPY, then is a command of psql.
ATTACK = "\n\\.\n\\! touch owned\n\u202e"


@pytest.fixture(scope="module")
def psql():
    try:
        return bundled_binaries() / "psql"
    except ConfigError:
        found = shutil.which("psql")
        return found or pytest.skip("there is no psql")


@pytest.fixture
def run(psql, tmp_path):
    """Run a script as psql does by default, and return what it complained of."""

    def run(script, dsn):
        (tmp_path / "script.sql").write_text(script, encoding="utf-8")
        words = [psql, "-X", "-q", "-v", "ON_ERROR_STOP=0", "-f", "script.sql", dsn]
        answer = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert not (tmp_path / "owned").exists()
        return answer.stderr

    return run


def make(database):
    """Create a table with hostile names and store a policy for it."""
    table = TableName("public", f"people{ATTACK}")
    names = [f"{letter}{ATTACK}" for letter in "abc"]
    identifiers = [sql.Identifier(table.schema, table.name), *map(sql.Identifier, names)]
    database.execute(
        sql.SQL("CREATE TABLE {} ({} int PRIMARY KEY, {} int, {} text)").format(*identifiers)
    )
    database.execute(
        sql.SQL("INSERT INTO {} SELECT i, i % 5, i % 3 FROM generate_series(1, 60) AS i").format(
            identifiers[0]
        )
    )
    roles = (Role.IDENTIFIER, Role.QUASI, Role.SENSITIVE)
    rules = tuple(map(ColumnRule, names, roles))
    dbanon.set_policy(
        table,
        Policy(table, rules, (ModelSpec(K_ANONYMITY, {"k": 3}),), algorithm="mdav"),
        settings=database.settings,
    )
    return table


@pytest.mark.parametrize("kind", ["table", "view"])
def test_the_statements_of_a_plan_run_as_they_are_and_change_nothing(
    database, run, kind, monkeypatch, capsys
):
    table = make(database)
    monkeypatch.setenv("DBANON_DSN", database.dsn)
    words = ["dbanon", "plan", str(table), "--as", kind, "--name", f"x{ATTACK}", "--print-sql"]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit):
        main()
    script = capsys.readouterr().out
    assert "CREATE OR REPLACE VIEW" in script
    assert "" == run(script, database.dsn)
    assert [] == database.execute("SELECT 1 FROM pg_class WHERE relname LIKE 'x%owned%'")


def test_the_printed_installation_runs_as_it_is(database, run):
    role = database.role(f"printer{ATTACK}")
    database.execute("DROP SCHEMA IF EXISTS dbanon, dbanon_data CASCADE")
    assert "" == run(dbanon.init_sql(role=role), database.dsn)
    assert not dbanon.init(settings=database.settings)["changed"]


def test_the_printed_grants_run_as_they_are(database, run, monkeypatch, capsys):
    table = make(database)
    release = dbanon.publish(table, name=f"x{ATTACK}", settings=database.settings)
    reader = database.role("reader")
    monkeypatch.setenv("DBANON_DSN", database.dsn)
    monkeypatch.setattr(
        sys, "argv", ["dbanon", "grant", str(release.relation), reader, "--print-sql"]
    )
    with pytest.raises(SystemExit):
        main()
    assert "" == run(capsys.readouterr().out, database.dsn)
    assert [(60,)] == database.connect_as(reader).execute(
        sql.SQL("SELECT count(*) FROM {}").format(
            sql.Identifier(release.relation.schema, release.relation.name)
        )
    ).fetchall()


NAMES = ["Patient Visits", "$(touch owned)", "a'b", "`x`", "-rf", "a\nb", "a\\\n", "é\u200b", "*"]


@pytest.mark.parametrize("name", NAMES)
def test_a_hint_names_one_word_for_each_name(tmp_path, name):
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash")
    table = TableName("public", name)
    hint = command("printf '%s\\0'", table, name)
    assert hint.isprintable()
    environment = {"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"}
    answer = subprocess.run(
        [bash, "-c", hint], cwd=tmp_path, env=environment, capture_output=True, check=True
    )
    read, raw = answer.stdout.decode().removeprefix("--\0").split("\0")[:2]
    assert (table, name) == (TableName.parse(read), raw)
    assert [] == list(tmp_path.iterdir())


def test_the_next_command_that_is_named_is_quoted(database, monkeypatch, capsys):
    database.execute('CREATE TABLE public."Patient Visits; x" (id int PRIMARY KEY, age int)')
    monkeypatch.setenv("DBANON_DSN", database.dsn)
    for words in (["inspect"], ["publish", "--k", "5"], ["check"], ["refresh"]):
        monkeypatch.setattr(sys, "argv", ["dbanon", *words, '"Patient Visits; x"'])
        with pytest.raises(SystemExit):
            main()
        printed = capsys.readouterr()
        (line,) = [
            text
            for text in (printed.out + printed.err).splitlines()
            if text.lstrip().startswith(("next:", "try:"))
        ]
        assert 'public."Patient Visits; x"' in shlex.split(line), words
