"""What the studio must not show, and what a role may not do with it."""

import html
import re
import shlex
import socket
from contextlib import suppress
from urllib.parse import urlsplit

import pytest
from psycopg import sql
from studios import Visitor, served
from tables import make_patients

import dbanon
from dbanon.domain.table import TableName
from dbanon.settings import Settings
from dbanon.studio.workspace import Workspace

HOSTILE = "<img src=x onerror=alert(1)>\"'&{{7*7}}"
SCRIPT = "</textarea></code></pre><script>alert(2)</script>"


def test_a_column_is_changed_and_not_one_whose_name_spells_out_its_characters(copied):
    database = copied(make_patients)
    spelled = r"note\u200b"
    database.execute(
        sql.SQL("ALTER TABLE patients RENAME note TO {}; ALTER TABLE patients ADD {} text").format(
            sql.Identifier("note\u200b"), sql.Identifier(spelled)
        )
    )
    visitor, table = Visitor(database.settings), "public.patients"
    page = visitor.get("column", table=table, column="note\u200b").text
    (sent,) = set(re.findall('name="column" value="([^"]*)"', page))
    before = visitor.workspace.draft(table).rule(spelled)
    changed = visitor.post("column", table=table, column=html.unescape(sent), role="sensitive")
    assert 303 == changed.status
    draft = visitor.workspace.draft(table)
    assert (before, "sensitive") == (draft.rule(spelled), draft.rule("note\u200b").role)


def test_who_is_refused_is_not_answered_twice(copied, monkeypatch):
    with served(monkeypatch, Workspace(copied(make_patients).settings)) as access:
        place = urlsplit(access.origin)
        with socket.create_connection((place.hostname, place.port), timeout=20) as other:
            other.sendall(f"GET / HTTP/1.1\r\nHost: {access.host}\r\n\r\n".encode() * 2)
            answers = b""
            with suppress(ConnectionResetError):
                for more in iter(lambda: other.recv(4096), b""):
                    answers += more
    assert 1 == answers.count(b"HTTP/1.1 403")


def make_hostile(database):
    """Create a table whose names and frequent values are code, with a value that one row has."""
    name = sql.Identifier("public", HOSTILE)
    with database.connect() as connection:
        connection.execute(
            sql.SQL("CREATE TABLE {} (id integer PRIMARY KEY, {} text, age integer)").format(
                name, sql.Identifier(SCRIPT)
            )
        )
        connection.execute(
            sql.SQL(
                "INSERT INTO {} SELECT i, CASE WHEN i = 7 THEN 'canary-4711' ELSE %s END, i %% 40"
                " FROM generate_series(1, 200) AS i"
            ).format(name),
            (SCRIPT,),
        )
    return str(TableName("public", HOSTILE))


PAGES = ("columns", "curve", "preview", "publish", "policy", "releases")


def test_names_and_labels_are_text_on_every_page(database):
    table, visitor = make_hostile(database), Visitor(database.settings)
    answers = [visitor.get("tables"), visitor.get("column", table=table, column=SCRIPT)]
    answers += [visitor.get(page, table=table) for page in PAGES]
    for answer in answers:
        assert 200 == answer.status, answer.text
        assert "<img src=x" not in answer.text
        assert "<script>alert" not in answer.text
        assert "&amp;49" not in answer.text
    assert "&lt;script&gt;alert(2)" in answers[1].text
    refused = visitor.get("columns", table='"<script>alert(3)</script>"')
    assert 400 == refused.status
    assert "<script>alert(3)" not in refused.text


def test_commands_to_copy_run_nothing_that_a_name_says(database):
    name = "a'b; touch $(id) `id` x"
    database.execute(
        sql.SQL(
            "CREATE TABLE public.{0} (id int PRIMARY KEY, age int);"
            " INSERT INTO public.{0} SELECT i, i % 20 FROM generate_series(1, 100) AS i"
        ).format(sql.Identifier(name))
    )
    table, visitor = str(TableName("public", name)), Visitor(database.settings)
    assert 303 == visitor.post("save", table=table).status
    assert visitor.result(visitor.post("preview", table=table)).failure is None
    shown = re.search("(?s)id=.commands.[^>]*><code>(.*?)</code>", visitor.get("tables").text)[1]
    words = [shlex.split(line) for line in html.unescape(shown).splitlines()]
    file = "a_b_touch_id_id_x.toml"
    assert [
        ["dbanon", "policy", "set", table, "--file", file],
        ["dbanon", "plan", table, "--file", file],
    ] == words


def test_values_of_few_rows_are_on_no_page(database):
    table, visitor = make_hostile(database), Visitor(database.settings)
    texts = [visitor.get(page, table=table).text for page in PAGES]
    texts.append(visitor.get("column", table=table, column=SCRIPT).text)
    assert [text for text in texts if "canary-4711" in text] == []
    shown = Visitor(database.settings, show_source=True).get("policy", table=table).text
    assert "Rows of the source" in shown
    assert "Rows of the source" not in "".join(texts)


def test_no_number_of_few_rows_is_shown(database):
    database.execute(
        "CREATE TABLE public.few (id integer PRIMARY KEY, word text, empty text);"
        " INSERT INTO few SELECT i, CASE WHEN i <= 3 THEN 'rare' || i ELSE 'many' END,"
        " CASE WHEN i > 2 THEN 'x' END FROM generate_series(1, 100) AS i"
    )
    visitor = Visitor(database.settings)
    for column in ("word", "empty"):
        text = visitor.get("column", table="public.few", column=column).text
        assert "fewer than 5 rows</strong>" in text
        assert not re.search("rare[123]", text)
        assert not re.search(r"\b[23]\.0%|\b[23] NULLs", text)
    assert "2.00%" not in visitor.get("columns", table="public.few").text


def test_a_role_does_nothing_here_that_it_may_not_do(database):
    table = make_patients(database)
    reader = database.role("studio_reader")
    database.execute(f"GRANT SELECT ON {table} TO {reader}")
    visitor = Visitor(Settings(dsn=database.dsn_as(reader)))
    answers = [visitor.get("columns", table=table)]
    answers += [visitor.post(page, table=table) for page in ("save", "publish", "take", "undo")]
    answers.append(visitor.post("readers", table=table, relation="anon.patients", roles=reader))
    answers.append(visitor.post("schedule", table=table, cron="15 3 * * *"))
    assert [answer.status for answer in answers] == [400] * len(answers)
    reason = "this role may not read the metadata schema"
    assert [answer for answer in answers if reason not in answer.text] == []
    assert [] == dbanon.list_policies(settings=database.settings)
    assert [] == dbanon.list_releases(settings=database.settings)


def test_nothing_is_stored_before_it_is_saved(database):
    table = str(make_patients(database))
    visitor = Visitor(database.settings)
    changed = visitor.post("columns", table=table, **{"role-1": "insensitive"})
    assert 303 == changed.status
    assert [] == dbanon.list_policies(settings=database.settings)
    assert "the draft is not stored" in visitor.post("publish", table=table).text
    assert 303 == visitor.post("save", table=table).status
    (stored,) = dbanon.list_policies(settings=database.settings)
    rules = {rule.column: rule.role.value for rule in stored.policy.columns}
    assert "insensitive" == rules["age"]


def test_a_draft_follows_what_others_store_and_replaces_none_of_it(database):
    table = str(make_patients(database))
    first, second = Visitor(database.settings), Visitor(database.settings)
    assert 303 == first.post("save", table=table).status
    text = second.get("policy", table=table).text
    first.post("column", table=table, column="age", role="insensitive")
    assert 303 == first.post("save", table=table).status
    assert text != second.get("policy", table=table).text
    stale = second.post("column", table=table, column="sex", role="identifier", of="0")
    assert (400, True) == (stale.status, "was changed since" in stale.text)
    for visitor, role in ((first, "insensitive"), (second, "identifier")):
        assert 303 == visitor.post("column", table=table, column="sex", role=role).status
    assert 303 == first.post("save", table=table).status
    refused = second.post("save", table=table)
    assert (400, True) == (refused.status, "was changed since it was shown" in refused.text)
    assert 303 == second.post("save", table=table, save_as="other").status
    names = [stored.policy.name for stored in dbanon.list_policies(settings=database.settings)]
    assert ["default", "other"] == names


def test_an_answer_of_a_refused_form_keeps_the_draft_as_it_was(database):
    table = str(make_patients(database))
    visitor = Visitor(database.settings)
    before = visitor.get("policy", table=table).text
    refused = visitor.post("column", table=table, column="age", role="quasi", bands="wide")
    assert 400 == refused.status
    assert "bands" in refused.text
    assert re.findall("<textarea.*?</textarea>", before, re.DOTALL) == re.findall(
        "<textarea.*?</textarea>", visitor.get("policy", table=table).text, re.DOTALL
    )


@pytest.mark.slow
def test_addresses_have_no_value_of_a_row(database):
    table = str(make_patients(database))
    visitor = Visitor(database.settings)
    visitor.post("save", table=table)
    answers = [visitor.post(page, table=table, ks="5", l="2") for page in ("curve", "preview")]
    for answer in answers:
        assert re.fullmatch(
            r"/[\w-]+/\w+\?table=public\.patients&job=[\w-]+", answer.headers["location"]
        )
        visitor.workspace.jobs.get(answer.headers["location"].rpartition("job=")[2]).cancel()
