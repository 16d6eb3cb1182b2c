"""What is said of a command that was cut off is true: published, not published, or unknown."""

import subprocess
import sys
from itertools import product
from pathlib import Path

import psycopg
import pytest
from faults.proxies import wire
from selection import each_once, exhaustive_after
from tables import define_patients, make_patients, patients_policy

import dbanon
from dbanon.cli import main
from dbanon.db import session
from dbanon.domain.outcomes import Operations

TREE = "a;*\nb;*\n"
# What a command is told to do, how that is said, whether it was done, and what begins it.
COMMANDS = {
    "publish": (
        ("publish", "patients"),
        "anon.patients was published",
        "SELECT max(release_id) = 2 FROM dbanon.release WHERE served",
        b"INSERT INTO dbanon.release",
    ),
    "refresh": (
        ("refresh", "patients", "--new-series"),
        "anon.patients was published",
        "SELECT max(release_id) = 2 FROM dbanon.release WHERE served",
        b"INSERT INTO dbanon.release",
    ),
    "release drop": (
        ("release", "drop", "1"),
        "release 1 was withdrawn",
        "SELECT NOT served FROM dbanon.release WHERE release_id = 1",
        b"DELETE FROM ONLY",
    ),
    "grant": (
        ("grant", "anon.patients", "fate_other"),
        "access to anon.patients was granted",
        "SELECT has_table_privilege('fate_other', to_regclass('anon.patients'), 'SELECT')",
        b"GRANT ",
    ),
    "revoke": (
        ("revoke", "anon.patients", "fate_analyst"),
        "access to anon.patients was revoked",
        "SELECT NOT has_table_privilege('fate_analyst', to_regclass('anon.patients'), 'SELECT')",
        b"REVOKE ",
    ),
    "policy set": (
        ("policy", "set", "patients", "--file", "policy.toml"),
        "the policy of patients was stored",
        "SELECT document::text LIKE '%\"k\": 6%' FROM dbanon.policy",
        b"INSERT INTO dbanon.policy",
    ),
    "taxonomy import": (
        ("taxonomy", "import", "letters", "letters.csv"),
        "taxonomy letters was stored",
        "SELECT count(*) = 1 FROM dbanon.taxonomy",
        b"INSERT INTO dbanon.taxonomy",
    ),
}
EVERY = pytest.mark.parametrize("name", COMMANDS)
# What a shell can do to the output of a command, and what is then said of it.
LOST = {
    "> /dev/full": "No space left on device",
    ">&-": "Bad file descriptor",
    "| true": "Broken pipe",
}


def publish_for_an_analyst(database):
    define_patients(database)
    grants = [database.role("fate_analyst")]
    database.role("fate_other")
    dbanon.publish("patients", grants=grants, settings=database.settings)


@pytest.fixture
def patients(copied, monkeypatch, tmp_path):
    """A table that is published and granted, and the files that commands read."""
    database = copied(publish_for_an_analyst)
    (tmp_path / "letters.csv").write_text(TREE, encoding="utf-8")
    text = dbanon.export_policy("patients", settings=database.settings)
    (tmp_path / "policy.toml").write_text(text.replace("k = 5", "k = 6"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DBANON_DSN", database.dsn)
    return database


@pytest.fixture
def run(monkeypatch, capsys):
    def command(*words):
        monkeypatch.setattr(sys, "argv", ["dbanon", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code or 0, capsys.readouterr()

    return command


@pytest.fixture
def run_into_full(monkeypatch, run):
    """Run a command whose output goes to a disk that is full; return its code and its errors."""

    def command(*words):
        with Path("/dev/full").open("w", encoding="utf-8") as full:
            monkeypatch.setattr(sys, "stdout", full)
            code, shown = run(*words)
        return code, shown.err

    return command


def shell(words, redirection):
    """Run a command in a shell that does something odd to its output."""
    command = f'"$0" -m dbanon "$@" {redirection}'
    return subprocess.run(
        ["/bin/bash", "-o", "pipefail", "-c", command, sys.executable, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def done(database, name):
    return database.execute(COMMANDS[name][2]) == [(True,)]


@pytest.mark.parametrize(("name", "passes"), each_once(COMMANDS, [True, False]))
def test_a_connection_lost_at_the_commit_is_looked_up(patients, run, monkeypatch, name, passes):
    words, sentence, _, first = COMMANDS[name]
    with wire(patients, first, passes=passes, reopens=True) as line:
        monkeypatch.setenv("DBANON_DSN", line.dsn)
        code, shown = run(*words)
        assert line.cut
    assert passes == done(patients, name)
    if passes:
        assert (0, False) == (code, "error" in shown.err)
        assert shown.out
    else:
        assert 1 == code
        what = sentence.split()[-1]
        assert f"error: the connection was lost; nothing was {what}\n" in shown.err


@EVERY
def test_what_cannot_be_looked_up_is_called_unknown(patients, run, monkeypatch, name):
    monkeypatch.setattr(session, "_ASKING_SECONDS", 0.5)
    words, sentence, _, first = COMMANDS[name]
    with wire(patients, first, passes=True, reopens=False) as line:
        monkeypatch.setenv("DBANON_DSN", line.dsn)
        code, shown = run(*words)
        assert line.cut
    assert 1 == code
    assert f"whether {sentence} is unknown\n" in shown.err
    assert "  try: " in shown.err
    assert "nothing was" not in shown.err
    assert done(patients, name)


@pytest.mark.parametrize(("name", "late"), each_once(COMMANDS, [True, False]))
def test_ctrl_c_at_the_commit_says_what_became_of_it(patients, run, monkeypatch, name, late):
    words, sentence, *_ = COMMANDS[name]
    commit, begun = psycopg.Connection.commit, []

    def interrupted(connection):
        if begun:  # another connection looks up what became of it
            return commit(connection)
        begun.append(True)
        if late:
            commit(connection)
        raise KeyboardInterrupt

    def armed(self, operation):
        monkeypatch.setattr(psycopg.Connection, "commit", interrupted)
        begin(self, operation)

    begin = Operations.begin
    monkeypatch.setattr(Operations, "begin", armed)
    code, shown = run(*words)
    assert (130, [True]) == (code, begun), shown.err
    told = sentence if late else f"nothing was {sentence.split()[-1]}"
    assert shown.err.endswith(f"interrupted; {told}\n")
    assert late == done(patients, name)


@pytest.mark.parametrize(
    ("name", "redirection"), exhaustive_after(len(LOST), product(sorted(COMMANDS), LOST))
)
def test_what_was_done_is_not_called_undone_for_want_of_an_output(patients, name, redirection):
    words, sentence, *_ = COMMANDS[name]
    ended = shell(words, redirection)
    assert "Traceback" not in ended.stderr
    assert "Exception" not in ended.stderr
    reason = LOST[redirection]
    warning = f"warning: the output could not be written ({reason}); {sentence}\n"
    assert (0, True) == (ended.returncode, warning in ended.stderr), ended.stderr
    assert done(patients, name)


@EVERY
def test_whatever_was_done_is_said_when_its_output_is_lost(patients, run_into_full, name):
    words, sentence, *_ = COMMANDS[name]
    code, error = run_into_full(*words)
    warning = f"warning: the output could not be written (No space left on device); {sentence}\n"
    assert (0, True) == (code, warning in error), error
    assert done(patients, name)


def test_a_command_that_only_shows_fails_when_its_output_is_lost(patients):
    for redirection, code in (("> /dev/full", 1), (">&-", 1), ("| true", 141)):
        ended = shell(["release", "list"], redirection)
        assert (code, False) == (ended.returncode, "Traceback" in ended.stderr)
        assert ("error: the output could not be written" in ended.stderr) == (code == 1)


def test_a_dry_run_whose_output_is_lost_says_that_nothing_was_published(patients, run_into_full):
    code, error = run_into_full("publish", "patients", "--dry-run")
    assert 1 == code
    assert error.endswith("(No space left on device); nothing was published\n")
    assert not done(patients, "publish")


def test_lost_errors_do_not_change_what_is_returned(patients):
    assert 0 == shell(["publish", "patients"], "> /dev/full 2> /dev/full").returncode
    assert done(patients, "publish")
    assert 0 == shell(["refresh", "patients", "--new-series"], ">&- 2>&- <&-").returncode
    assert 1 == shell(["publish", "nobody"], "> /dev/full 2> /dev/full").returncode


def test_a_refresh_of_several_fails_although_its_output_is_lost(patients, run_into_full):
    make_patients(patients, name="others")
    table = dbanon.TableName("public", "others")
    dbanon.set_policy(table, patients_policy(table), settings=patients.settings)
    dbanon.publish(table, settings=patients.settings)
    patients.execute("TRUNCATE public.others")
    code, error = run_into_full("refresh", "--all", "--new-series")
    assert 1 == code
    assert "anon.patients was published; anon.others was not published\n" in error
    assert [(3,)] == patients.execute(
        "SELECT release_id FROM dbanon.release WHERE served AND relation_name = 'patients'"
    )
