from __future__ import annotations

import gc
import os
import shutil
import subprocess
from contextlib import ExitStack
from functools import cache
from typing import TYPE_CHECKING

import adbc_driver_postgresql
import pytest
import typer.main
from drivers import connecting, really_connect
from forked import forking
from hypothesis import HealthCheck, Phase, settings
from packaging.specifiers import SpecifierSet
from scheduling import is_fast, one_compiler, processes, turn
from servers import Choice, Server, available

from dbanon.settings import LIBPQ_VARIABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from forked import Forked
    from servers import Database

    Make = Callable[[Database], object]

# The first example of a test may compile a kernel, and a busy machine is no defect. Where a change
# is judged, the examples are the same every time.
for name, count in {"patient": 12, "exhaustive": 100}.items():
    settings.register_profile(
        name,
        deadline=None,
        max_examples=count,
        suppress_health_check=[HealthCheck.too_slow],
        derandomize=bool(os.environ.get("CI")),
    )
# Where a failure is only counted, nobody waits for its simplest example.
settings.register_profile(
    "mutants",
    settings.get_profile("patient"),
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
)
settings.load_profile("patient")

BEFORE_A_CHANGE_LANDS = "not exhaustive"  # the -m of pyproject.toml
CHOICES = pytest.StashKey[list[Choice]]()
REASONS = pytest.StashKey[list[str]]()


def pytest_addoption(parser):
    group = parser.getgroup("dbanon")
    group.addoption(
        "--dsn",
        default=os.environ.get("DBANON_TEST_DSN") or None,
        help="test on this server only; its role must be a superuser, or CREATEDB and CREATEROLE",
    )
    group.addoption(
        "--require-db", action="store_true", help="fail, rather than skip, without a server"
    )


def pytest_configure(config):
    config.stash[CHOICES], config.stash[REASONS] = available(config.getoption("--dsn"))


def pytest_report_header(config):
    found = ", ".join(f"{choice.id} ({choice.version})" for choice in config.stash[CHOICES])
    why_not = "; ".join(config.stash[REASONS])
    return f"postgresql: {found or 'none'}" + (f" [{why_not}]" if why_not else "")


def pytest_generate_tests(metafunc):
    if "server" in metafunc.fixturenames:
        choices = metafunc.config.stash[CHOICES] or [None]
        if metafunc.config.option.markexpr == BEFORE_A_CHANGE_LANDS:
            choices = choices[:1]  # half of all tests would be made only to be left out
        ids = [choice.id if choice else "no-server" for choice in choices]
        metafunc.parametrize("server", choices, indirect=True, ids=ids, scope="session")


@pytest.hookimpl(optionalhook=True)  # pytest-xdist calls it for -n auto, the default
def pytest_xdist_auto_num_workers(config):
    return processes(config.args)


@pytest.hookimpl(optionalhook=True)  # pytest-xdist calls it, for a run in several processes
def pytest_xdist_make_scheduler(config, log):
    return one_compiler(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_collection_finish():
    gc.collect()
    gc.freeze()  # thousands of tests, which each collection of garbage would look through


@pytest.hookimpl(tryfirst=True)  # before -m deselects
def pytest_collection_modifyitems(config, items):
    first = next(iter(config.stash[CHOICES]), None)
    items.sort(key=lambda item: turn(item.nodeid))
    for item in items:
        if is_fast(item):
            item.add_marker(pytest.mark.fast)
        callspec = getattr(item, "callspec", None)
        choice = callspec.params.get("server") if callspec else None
        if choice is None:
            continue
        specs = [SpecifierSet(marker.args[0]) for marker in item.iter_markers("pg")]
        if choice is not first:
            item.add_marker(pytest.mark.exhaustive)
        for spec in specs:
            if not spec.contains(str(choice.major)):
                item.add_marker(pytest.mark.skip(reason=f"needs PostgreSQL {spec}"))


@pytest.fixture(scope="session", autouse=True)
def own_settings(tmp_path_factory) -> Iterator[None]:
    """Keep the developer's servers out of the tests: only what a test sets is set."""
    with pytest.MonkeyPatch.context() as patch:
        for name in (*LIBPQ_VARIABLES, "DBANON_DSN", "DBANON_OWNER", "DBANON_TEST_DSN"):
            patch.delenv(name, raising=False)
        patch.setenv("DBANON_HOME", str(tmp_path_factory.mktemp("nobody-starts-a-server-here")))
        yield


@pytest.fixture(scope="session", autouse=True)
def one_program() -> Iterator[None]:
    """Build the command line once a process, not at each command: that takes 0.035 seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", cache(typer.main.get_command))
        yield


@pytest.fixture(scope="session", autouse=True)
def is_unread() -> Iterator[Callable[..., bool]]:
    """Take all releases as granted to somebody, though most tests grant none.

    Otherwise each would be grouped from scratch. Returns the test of their grants.
    """
    from dbanon.db.histories import readers

    with pytest.MonkeyPatch.context() as patch:
        found = readers.is_unread
        patch.setattr(readers, "is_unread", lambda *_: False)
        yield found


@pytest.fixture
def by_grants(is_unread, monkeypatch) -> None:
    """Let the grants of releases decide whether the next one keeps their classes."""
    monkeypatch.setattr("dbanon.db.histories.readers.is_unread", is_unread)


@pytest.fixture(scope="session", autouse=True)
def one_driver() -> Iterator[None]:
    """Let the driver that reads tables query types once a process: that takes 0.07 seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adbc_driver_postgresql, "connect", connecting())
        yield


@pytest.fixture
def own_drivers(monkeypatch) -> None:
    """Connect as users do, for tests of what the driver does first on a connection."""
    monkeypatch.setattr(adbc_driver_postgresql, "connect", really_connect)


@pytest.fixture(scope="session")
def fork() -> Iterator[Callable[..., AbstractContextManager[Forked]]]:
    """Start a process of dbanon in a fraction of the time that it takes to import it."""
    with forking() as fork:
        yield fork


@pytest.fixture(scope="session")
def start() -> Iterator[Callable[[Choice], Server]]:
    """Return a server with a template database: a new one, or that of an earlier test.

    It runs until the last test of the process, as it takes longer to start than most tests last.
    """
    from dbanon.actions.init import init

    with ExitStack() as stack:

        @cache
        def start(choice: Choice) -> Server:
            dsn = stack.enter_context(choice.open())
            server = stack.enter_context(Server(dsn, choice.major).prepared())
            template = stack.enter_context(server.database())
            init(template.settings)
            server.template = template.name
            return server

        yield start


@pytest.fixture(scope="session")
def server(request, start) -> Server:
    """A running server; tests that take it run once on each that was found."""
    choice = request.param
    if choice is None:
        complain = pytest.fail if request.config.getoption("--require-db") else pytest.skip
        complain("no PostgreSQL: " + "; ".join(request.config.stash[REASONS]))
    return start(choice)


@pytest.fixture(scope="session")
def template(server) -> str:
    """The name of a database with dbanon's metadata schema in it, to make others from."""
    return server.template


@pytest.fixture
def database(server, template) -> Iterator[Database]:
    """A database of this test's own, with dbanon's metadata schema."""
    with server.database(template) as database:
        yield database


@pytest.fixture(scope="module")
def originals(server, template) -> Iterator[Callable[[Make], Database]]:
    """What tests of a file copy: the database that a function made, which ran once."""
    with ExitStack() as stack:

        @cache
        def original(make: Make) -> Database:
            database = stack.enter_context(server.database(template))
            make(database)
            database.close()  # nobody copies a database that is in use
            return database

        yield original


@pytest.fixture
def copied(server, originals) -> Iterator[Callable[[Make], Database]]:
    """Return a copy of the database that a function makes: it publishes once for all of a file.

    The roles that it creates are those of the copies, too.
    """
    with ExitStack() as stack:
        yield lambda make: stack.enter_context(server.database(originals(make).name))


@pytest.fixture
def bare_database(server) -> Iterator[Database]:
    """A database of this test's own with nothing in it."""
    with server.database() as database:
        yield database


@pytest.fixture
def certificate(tmp_path) -> tuple[str, str]:
    """Return the files of a certificate for 127.0.0.1 that signed itself, and of its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    key, file = str(tmp_path / "key.pem"), str(tmp_path / "certificate.pem")
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=dbanon"]
    words += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", file]
    subprocess.run([openssl, *words], check=True, capture_output=True)
    return file, key
